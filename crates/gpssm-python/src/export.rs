//! Models that leave the house: files as text, and expressions as JSON.

use gpssm::posterior::Distilled;
use gpssm_export::{Model, Options, c, expressions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::from_json;

fn model(distilled: &str, options: &str) -> PyResult<Model> {
    let distilled: Distilled = from_json("distilled", distilled)?;
    let options: Options = from_json("options", options)?;
    Model::new(&distilled, &options).map_err(refused)
}

fn refused(error: gpssm_export::ExportError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// C sources: names and texts.
#[pyfunction]
pub(crate) fn export_c(distilled: &str, options: &str) -> PyResult<Vec<(String, String)>> {
    let files = c::export(&model(distilled, options)?).map_err(refused)?;
    let text =
        |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| PyValueError::new_err(error.to_string()));
    files.into_iter().map(|file| Ok((file.name, text(file.bytes)?))).collect()
}

/// The model as expressions, JSON.
#[pyfunction]
pub(crate) fn export_expressions(distilled: &str) -> PyResult<String> {
    Ok(expressions(&model(distilled, "{}")?))
}
