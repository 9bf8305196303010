//! Kernels: the engine's table of them, and their values.

use std::collections::HashMap;
use std::sync::Arc;

use gpssm::kernel::{Descriptor, KERNELS};
use gpssm::{Functions, Kernel, KernelSpec};
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use serde_json::json;

use crate::arrays::{matrix, points};
use crate::callback::{Callable, Failure, PythonKernel};
use crate::error::{from_json, to_python};
use crate::native::Native;

/// The table of kernels, as JSON.
#[pyfunction]
pub(crate) fn kernels() -> String {
    let one = |kernel: &&Descriptor| {
        let parameters: Vec<_> = kernel
            .parameters
            .iter()
            .map(|parameter| {
                let (role, unit) = (format!("{:?}", parameter.role), format!("{:?}", parameter.unit));
                let (name, each, help) = (parameter.name, parameter.each, parameter.help);
                json!({ "name": name, "each": each, "role": role, "unit": unit, "help": help })
            })
            .collect();
        json!({
            "name": kernel.name,
            "short": kernel.short,
            "title": kernel.title,
            "formula": kernel.formula,
            "components": kernel.has_components(),
            "spectral_density": kernel.has_spectral_density(),
            "parameters": parameters,
        })
    };
    serde_json::Value::from(KERNELS.iter().map(one).collect::<Vec<_>>()).to_string()
}

/// Python functions of users' kernels by name, each with the names of its parameters.
pub(crate) type PythonKernels = HashMap<String, (Py<PyAny>, Vec<String>)>;

/// The registry with users' kernels.
pub(crate) fn with_kernels(
    py: Python<'_>,
    registry: Functions,
    kernels: &PythonKernels,
    failure: &Arc<Failure>,
) -> Functions {
    kernels.iter().fold(registry, |registry, (name, (function, parameters))| {
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        match Native::new(name, function.bind(py), 0, failure) {
            Some(native) => registry.with_kernel(name, &parameters, native),
            None => {
                let function = Callable::new(name, function.clone_ref(py), false, 0, failure);
                registry.with_kernel(name, &parameters, PythonKernel(function))
            }
        }
    })
}

/// The kernels of a model for `n_x` states and `n_u` inputs, all of whose hyper-parameters are numbers.
pub(crate) fn with_numbers(
    text: &str,
    n_x: usize,
    n_u: usize,
    functions: &Functions,
) -> PyResult<Vec<Kernel>> {
    let specs = from_json::<Vec<KernelSpec>>("kernels", text)?;
    specs.iter().map(|spec| spec.with_numbers(n_x, n_u, functions).map_err(to_python)).collect()
}

/// k(Z, Z') as a matrix.
#[pyfunction]
pub(crate) fn kernel_matrix<'py>(
    py: Python<'py>,
    kernel: &str,
    callables: PythonKernels,
    n_x: usize,
    z: PyReadonlyArray2<'py, f64>,
    other: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (rows, columns) = (points(&z), points(&other));
    let (kernel, failure) = one(py, kernel, &callables, n_x, rows.n_components())?;
    let values = py.detach(|| kernel.matrix(&rows, &columns));
    failure.check()?;
    matrix(py, values, rows.len(), columns.len())
}

/// A kernel with numbers, and where exceptions of its functions are kept.
pub(crate) fn one(
    py: Python<'_>,
    kernel: &str,
    callables: &PythonKernels,
    n_x: usize,
    n_z: usize,
) -> PyResult<(Kernel, Arc<Failure>)> {
    let failure = Arc::new(Failure::default());
    let functions = with_kernels(py, Functions::new(), callables, &failure);
    let kernel = from_json::<KernelSpec>("kernel", kernel)?;
    Ok((kernel.with_numbers(n_x, n_z.saturating_sub(n_x), &functions).map_err(to_python)?, failure))
}
