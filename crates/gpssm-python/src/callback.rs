//! Python functions that the sampler calls, vectorised over particles.
//!
//! The sampler runs without the interpreter lock, in threads of its own, and takes the lock for each call. An
//! exception is kept, the values become NaN, and the run stops after the sweep; then the exception is raised
//! as if it came from the run itself, with its own traceback.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gpssm::kernel::KernelFunction;
use gpssm::{InitialDensity, Points, PriorDensity, SensorDensity, StateFunction};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTuple};
use rand::Rng;

use crate::attached::Kept;
use crate::error::value_error;

/// The first exception of a run.
#[derive(Default)]
pub(crate) struct Failure {
    raised: AtomicBool,
    error: Mutex<Option<PyErr>>,
    /// Thread states of the threads that call functions.
    pub(crate) kept: Kept,
}

impl Failure {
    /// Whether a function has raised.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    fn keep(&self, error: PyErr) {
        self.raised.store(true, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Raises what was kept, and forgets it.
    pub(crate) fn check(&self) -> PyResult<()> {
        self.raised.store(false, Ordering::Relaxed);
        match self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// A Python function, its name in messages, and whether it wants the inputs.
pub(crate) struct Callable {
    name: String,
    function: Py<PyAny>,
    wants_u: bool,
    n_x: usize,
    failure: Arc<Failure>,
}

impl Callable {
    pub(crate) fn new(
        name: &str,
        function: Py<PyAny>,
        wants_u: bool,
        n_x: usize,
        failure: &Arc<Failure>,
    ) -> Self {
        Self { name: name.to_owned(), function, wants_u, n_x, failure: Arc::clone(failure) }
    }

    /// Calls `function(*first, x, [u], *parameters)`, x and u with one row for each point.
    fn call<'py>(
        &self,
        py: Python<'py>,
        first: Option<Bound<'py, PyAny>>,
        z: &Points,
        parameters: &[f64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = columns(py, z, 0..self.n_x);
        let u = self.wants_u.then(|| columns(py, z, self.n_x..z.n_components()));
        let numbers = parameters.iter().map(|value| PyFloat::new(py, *value).into_any());
        let arguments: Vec<_> = first.into_iter().chain([x]).chain(u).chain(numbers).collect();
        self.function.bind(py).call1(PyTuple::new(py, arguments)?)
    }

    /// The values of a result, one for each point; a single number stands for all of them.
    fn read(&self, result: &Bound<'_, PyAny>, out: &mut [f64]) -> PyResult<()> {
        if let Ok(values) = result.extract::<PyReadonlyArray1<'_, f64>>() {
            if values.len() == out.len() {
                out.iter_mut().zip(values.as_array()).for_each(|(out, value)| *out = *value);
                return Ok(());
            }
        } else {
            let helper = result.py().import("gpssm._callables")?.getattr("as_values")?;
            let values = helper.call1((result, out.len(), &self.name))?;
            return self.read(&values, out);
        }
        Err(value_error(format!("{} returned {} values for {} points", self.name, result.len()?, out.len())))
    }

    fn evaluate(&self, first: Option<&[f64]>, z: &Points, parameters: &[f64], out: &mut [f64]) {
        self.guarded(out, |py| {
            let first = first.map(|y| PyArray1::from_slice(py, y).into_any());
            self.call(py, first, z, parameters)
        });
    }

    /// Calls `function(values)`.
    fn evaluate_values(&self, values: &[f64], out: &mut [f64]) {
        self.guarded(out, |py| self.function.bind(py).call1((PyArray1::from_slice(py, values),)));
    }

    /// Makes a call and reads its result; NaN after an exception.
    fn guarded(
        &self,
        out: &mut [f64],
        call: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        if self.failure.is_raised() {
            out.fill(f64::NAN);
            return;
        }
        self.failure.kept.keep();
        if let Err(error) = Python::attach(|py| self.read(&call(py)?, out)) {
            out.fill(f64::NAN);
            self.failure.keep(error);
        }
    }

    /// Calls `function(rng, ...)` with a NumPy generator whose seed comes from the sampler's stream.
    fn draw(&self, z: Option<(&[f64], &[f64])>, rng: &mut dyn Rng, out: &mut [f64]) {
        self.failure.kept.keep();
        let outcome = Python::attach(|py| {
            let generator = py.import("numpy.random")?.call_method1("default_rng", (rng.next_u64(),))?;
            let result = match z {
                Some((z, parameters)) => {
                    self.call(py, Some(generator), &Points::from_rows(z.len(), [z]), parameters)?
                }
                None => self.function.bind(py).call1((generator, 1))?,
            };
            let helper = py.import("gpssm._callables")?.getattr("as_row")?;
            self.read(&helper.call1((result, out.len(), &self.name))?, out)
        });
        if let Err(error) = outcome {
            out.fill(f64::NAN);
            self.failure.keep(error);
        }
    }
}

impl StateFunction for Callable {
    fn evaluate(&self, z: &Points, parameters: &[f64], out: &mut [f64]) {
        self.evaluate(None, z, parameters, out);
    }
}

/// A sensor: its log density and, where simulation is wanted, how to draw from it.
pub(crate) struct PythonSensor {
    pub(crate) log_density: Callable,
    pub(crate) sample: Option<Callable>,
}

impl SensorDensity for PythonSensor {
    fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]) {
        self.log_density.evaluate(Some(y), z, parameters, out);
    }

    fn sample(&self, z: &[f64], parameters: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        match &self.sample {
            Some(sample) => sample.draw(Some((z, parameters)), rng, y),
            None => y.fill(f64::NAN),
        }
    }

    fn can_sample(&self) -> Result<(), String> {
        let missing =
            || format!("{} has no sample function: give one to draw outputs", self.log_density.name);
        self.sample.as_ref().map(|_| ()).ok_or_else(missing)
    }
}

/// Some components of points as an array, one row for each point.
fn columns<'py>(py: Python<'py>, z: &Points, range: std::ops::Range<usize>) -> Bound<'py, PyAny> {
    let array = PyArray2::<f64>::zeros(py, [z.len(), range.len()], true);
    if let Ok(mut array) = array.try_readwrite()
        && let Ok(values) = array.as_slice_mut()
        && !z.is_empty()
    {
        for (values, c) in values.chunks_exact_mut(z.len()).zip(range) {
            values.copy_from_slice(z.column(c));
        }
    }
    array.into_any()
}

/// A kernel: `function(z, z2, *parameters)` is k of every row of z with the point z2.
pub(crate) struct PythonKernel(pub(crate) Callable);

impl KernelFunction for PythonKernel {
    fn row(&self, z: &Points, other: &[f64], parameters: &[f64], out: &mut [f64]) {
        self.0.guarded(out, |py| {
            let points = [columns(py, z, 0..z.n_components()), PyArray1::from_slice(py, other).into_any()];
            let numbers = parameters.iter().map(|value| PyFloat::new(py, *value).into_any());
            self.0
                .function
                .bind(py)
                .call1(PyTuple::new(py, points.into_iter().chain(numbers).collect::<Vec<_>>())?)
        });
    }
}

/// The log density of a parameter.
pub(crate) struct PythonPrior(pub(crate) Callable);

impl PriorDensity for PythonPrior {
    fn log_density(&self, values: &[f64], out: &mut [f64]) {
        self.0.evaluate_values(values, out);
    }
}

/// A density of the initial state.
pub(crate) struct PythonInitial {
    pub(crate) log_density: Callable,
    pub(crate) sample: Callable,
}

impl InitialDensity for PythonInitial {
    fn log_density(&self, x: &[f64]) -> f64 {
        let mut value = [f64::NAN];
        self.log_density.evaluate(None, &Points::from_rows(x.len(), [x]), &[], &mut value);
        value[0]
    }

    fn sample(&self, rng: &mut dyn Rng, x: &mut [f64]) {
        self.sample.draw(None, rng, x);
    }
}
