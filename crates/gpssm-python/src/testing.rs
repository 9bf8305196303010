//! What is known of sensors, and checks of users' own sensors and kernels.

use std::sync::Arc;

use gpssm::conformance;
use gpssm::conformance::Nonconformity;
use gpssm::sensor::family::FAMILIES;
use gpssm::sensor::{BoundSensor, OutputSupport, UserSensor};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;

use crate::arrays::points;
use crate::callback::{Callable, Failure, LogDensity, PythonSensor};
use crate::error::{to_json, value_error};
use crate::kernels::{PythonKernels, one};

/// A function, and whether it wants the inputs.
type Function = (Py<PyAny>, bool);

/// The descriptors of all families of sensors, as JSON.
#[pyfunction]
pub(crate) fn sensor_families() -> PyResult<String> {
    to_json("families", &FAMILIES)
}

/// Checks a user's sensor at points z = (x, u). Supports are (whether outputs are whole numbers, low, high).
#[pyfunction]
pub(crate) fn check_sensor(
    py: Python<'_>,
    log_density: Function,
    sample: Option<Function>,
    z: PyReadonlyArray2<'_, f64>,
    n_x: usize,
    parameters: Vec<f64>,
    supports: Vec<(bool, f64, f64)>,
) -> PyResult<()> {
    let failure = Arc::new(Failure::default());
    let callable =
        |name: &str, (function, wants_u): Function| Callable::new(name, function, wants_u, n_x, &failure);
    let sensor = Arc::new(PythonSensor {
        log_density: LogDensity::Python(callable("log_density", log_density)),
        sample: sample.map(|sample| callable("sample", sample)),
    });
    let sensor = BoundSensor::User(UserSensor { sensor, parameters, scaling: None });
    let support = |&(integers, low, high): &(bool, f64, f64)| match integers {
        true => OutputSupport::Integers { low, high },
        false => OutputSupport::Interval { low, high },
    };
    let supports: Vec<OutputSupport> = supports.iter().map(support).collect();
    let z = points(&z);
    let outcome = py.detach(|| conformance::sensor(&sensor, &z, &supports));
    failure.check()?;
    outcome.map_err(raised)
}

/// Checks a kernel with numbers at random points of `n_z` components.
#[pyfunction]
pub(crate) fn check_kernel(
    py: Python<'_>,
    kernel: &str,
    callables: PythonKernels,
    n_x: usize,
    n_z: usize,
) -> PyResult<()> {
    let (kernel, failure) = one(py, kernel, &callables, n_x, n_z)?;
    let outcome = py.detach(|| conformance::kernel(&kernel, n_z));
    failure.check()?;
    outcome.map_err(raised)
}

fn raised(error: Nonconformity) -> PyErr {
    match error {
        Nonconformity::CannotCheck(message) => value_error(message),
        other => PyAssertionError::new_err(other.to_string()),
    }
}
