//! Models that leave the house: files as text, and expressions as JSON.

use gpssm::posterior::Distilled;
use gpssm_export::{File, Model, Options, c, expressions, fmu, onnx};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

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
    texts(c::export(&model(distilled, options)?).map_err(refused)?)
}

fn texts(files: Vec<File>) -> PyResult<Vec<(String, String)>> {
    let text =
        |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| PyValueError::new_err(error.to_string()));
    files.into_iter().map(|file| Ok((file.name, text(file.bytes)?))).collect()
}

/// An ONNX model: its name and bytes.
#[pyfunction]
pub(crate) fn export_onnx<'py>(
    py: Python<'py>,
    distilled: &str,
    options: &str,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let file = onnx::export(&model(distilled, options)?).map_err(refused)?;
    Ok((file.name, PyBytes::new(py, &file.bytes)))
}

/// Sources of a functional mock-up unit: names and texts.
#[pyfunction]
pub(crate) fn fmu_sources(distilled: &str, options: &str) -> PyResult<Vec<(String, String)>> {
    texts(fmu::sources(&model(distilled, options)?).map_err(refused)?)
}

/// A functional mock-up unit with compiled libraries by platform: its name and bytes.
#[pyfunction]
pub(crate) fn export_fmu<'py>(
    py: Python<'py>,
    distilled: &str,
    options: &str,
    binaries: Vec<(String, Vec<u8>)>,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let file = fmu::unit(&model(distilled, options)?, &binaries).map_err(refused)?;
    Ok((file.name, PyBytes::new(py, &file.bytes)))
}

/// The model as expressions, JSON.
#[pyfunction]
pub(crate) fn export_expressions(distilled: &str) -> PyResult<String> {
    Ok(expressions(&model(distilled, "{}")?))
}
