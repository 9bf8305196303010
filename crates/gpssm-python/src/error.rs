//! Errors of the library as Python exceptions.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};

/// ValueError for what the caller can put right, MemoryError and RuntimeError for the rest.
pub(crate) fn to_python(error: gpssm::Error) -> PyErr {
    let message = error.to_string();
    match error {
        gpssm::Error::Memory { .. } => PyMemoryError::new_err(message),
        gpssm::Error::Start { .. } | gpssm::Error::Sink { .. } => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// A ValueError.
pub(crate) fn value_error(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// Reads a description; what the Python layer writes is well formed, so the message names the place only.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, PyErr> {
    serde_json::from_str(text).map_err(|error| value_error(format!("{what}: {error}")))
}

/// Writes a description.
pub(crate) fn to_json<T: serde::Serialize>(what: &str, value: &T) -> Result<String, PyErr> {
    serde_json::to_string(value).map_err(|error| value_error(format!("{what}: {error}")))
}
