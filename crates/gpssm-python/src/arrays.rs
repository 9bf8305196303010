//! Arrays to rows and back.

use gpssm::{Points, Record, Sequence};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::{to_python, value_error};

/// The rows of a matrix.
pub(crate) fn rows(array: &PyReadonlyArray2<'_, f64>) -> Vec<Vec<f64>> {
    array.as_array().rows().into_iter().map(|row| row.to_vec()).collect()
}

/// The rows of each matrix of a stack.
pub(crate) fn stack(array: &PyReadonlyArray3<'_, f64>) -> Vec<Vec<Vec<f64>>> {
    let matrix = |m: numpy::ndarray::ArrayView2<'_, f64>| m.rows().into_iter().map(|r| r.to_vec()).collect();
    array.as_array().outer_iter().map(matrix).collect()
}

/// All values, row by row.
pub(crate) fn flat(array: &PyReadonlyArray2<'_, f64>) -> Vec<f64> {
    array.as_array().iter().copied().collect()
}

/// The rows as points.
pub(crate) fn points(array: &PyReadonlyArray2<'_, f64>) -> Points {
    let rows = rows(array);
    Points::from_rows(array.as_array().ncols(), rows.iter().map(Vec::as_slice))
}

/// A matrix from its values row by row.
pub(crate) fn matrix<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    n_rows: usize,
    n_columns: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_vec(py, values).reshape([n_rows, n_columns])
}

/// One sequence from outputs and inputs.
pub(crate) fn sequence(
    y: &PyReadonlyArray2<'_, f64>,
    u: Option<&PyReadonlyArray2<'_, f64>>,
) -> PyResult<Sequence> {
    let (inputs, n_u) = u.map_or((Vec::new(), 0), |u| (flat(u), u.as_array().ncols()));
    Sequence::from_flat(flat(y), y.as_array().ncols(), inputs, n_u).map_err(to_python)
}

/// A record from lists of outputs and inputs, one entry for each sequence.
pub(crate) fn record(
    y: &[PyReadonlyArray2<'_, f64>],
    u: Option<&[PyReadonlyArray2<'_, f64>]>,
) -> PyResult<Record> {
    if u.is_some_and(|u| u.len() != y.len()) {
        return Err(value_error("y and u have different numbers of sequences"));
    }
    let sequences = y.iter().enumerate().map(|(s, y)| sequence(y, u.map(|u| &u[s])));
    Record::new(sequences.collect::<PyResult<_>>()?).map_err(to_python)
}

/// Outputs and inputs, an array for each sequence.
pub(crate) fn sequences<'py>(
    py: Python<'py>,
    record: &Record,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let (outputs, inputs) = (PyList::empty(py), PyList::empty(py));
    for sequence in record.sequences() {
        let n = sequence.n_rows();
        let y = (0..n).flat_map(|t| sequence.y(t).to_vec()).collect();
        outputs.append(matrix(py, y, n, sequence.n_y())?)?;
        let u = (0..n).flat_map(|t| sequence.u(t).to_vec()).collect();
        inputs.append(matrix(py, u, n, sequence.n_u())?)?;
    }
    Ok((outputs, inputs))
}
