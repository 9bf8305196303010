//! Rows of a record as rows of a model.

use gpssm_identify::Layout;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{record, sequences};
use crate::error::to_python;

/// Outputs, inputs and names of inputs as a model sees them with this number of past inputs, delay and thinning.
#[pyfunction]
pub(crate) fn laid_out<'py>(
    py: Python<'py>,
    layout: (usize, usize, usize),
    y: Vec<PyReadonlyArray2<'py, f64>>,
    u: Option<Vec<PyReadonlyArray2<'py, f64>>>,
    inputs: Vec<String>,
) -> PyResult<(Bound<'py, PyList>, Option<Bound<'py, PyList>>, Vec<String>)> {
    let (input_lags, delay, every) = layout;
    let layout = Layout { input_lags, delay, every };
    let seen = layout.apply_to(&record(&y, u.as_deref())?).map_err(to_python)?;
    let (y, u) = sequences(py, &seen)?;
    Ok((y, (seen.n_u() > 0).then_some(u), layout.names(&inputs)))
}
