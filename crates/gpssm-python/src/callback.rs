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
use crate::native::Native;

/// The first exception of a run.
#[derive(Default)]
pub(crate) struct Failure {
    raised: AtomicBool,
    error: Mutex<Option<PyErr>>,
    /// Thread states of the threads that call functions.
    pub(crate) kept: Kept,
    faults: Mutex<Option<Fault>>,
}

/// Values that no function should give: the first of them in words, and how many there were.
struct Fault {
    words: String,
    n: u64,
}

/// Which function was called, and whether it is a log density, which may be minus infinity.
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) n_x: usize,
    pub(crate) is_density: bool,
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

    /// Takes note of values that are not numbers at points that are, and refuses densities of infinity.
    pub(crate) fn look_at(&self, asked: &Asked, z: &Points, parameters: &[f64], out: &[f64]) {
        let infinite =
            |value: f64| if asked.is_density { value == f64::INFINITY } else { value.is_infinite() };
        let wrong = |i: &usize| out[*i].is_nan() || infinite(out[*i]);
        let known = |i: &usize| (0..z.n_components()).all(|c| z.column(c)[*i].is_finite());
        let Some(first) = (0..out.len()).find(|i| wrong(i) && known(i)) else { return };
        let words = || {
            let row = z.row(first);
            let (x, u) = row.split_at(asked.n_x.min(row.len()));
            let with_u = if u.is_empty() { String::new() } else { format!(", u = {u:?}") };
            let with_parameters =
                if parameters.is_empty() { String::new() } else { format!(", parameters {parameters:?}") };
            let (name, value, n) = (asked.name, out[first], out.len());
            format!("{name} returned {value} in row {first} of {n}, at x = {x:?}{with_u}{with_parameters}")
        };
        if asked.is_density && out[first] == f64::INFINITY {
            self.keep(value_error(format!("{}; a log density must be finite or -inf", words())));
        }
        self.add_faults((0..out.len()).filter(|i| wrong(i) && known(i)).count(), words);
    }

    /// Takes note of covariances that are not finite and of negative variances.
    pub(crate) fn look_at_kernel(
        &self,
        name: &str,
        z: &Points,
        other: &[f64],
        parameters: &[f64],
        out: &[f64],
    ) {
        let wrong = |i: &usize| {
            let is_variance = || (0..z.n_components()).all(|c| z.column(c)[*i] == other[c]);
            !out[*i].is_finite() || out[*i] < 0.0 && is_variance()
        };
        let Some(first) = (0..out.len()).find(wrong) else { return };
        let words = || {
            let (row, value) = (z.row(first), out[first]);
            let why = if value.is_finite() { ", and a variance must not be negative" } else { "" };
            format!("{name} returned {value} for z = {row:?}, z2 = {other:?}, parameters {parameters:?}{why}")
        };
        self.add_faults((0..out.len()).filter(wrong).count(), words);
    }

    /// Keeps the first fault in words and counts all.
    fn add_faults(&self, n: usize, words: impl FnOnce() -> String) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = faults.get_or_insert_with(|| Fault { words: words(), n: 0 });
        fault.n += n as u64;
    }

    /// What functions returned wrongly so far, in words; it is forgotten.
    pub(crate) fn faults(&self) -> Option<String> {
        let fault = self.faults.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let times =
            if fault.n == 1 { String::new() } else { format!(", the first of {} such values", fault.n) };
        Some(format!("{}{times}", fault.words))
    }

    /// An error of the engine, with what functions returned wrongly before it.
    pub(crate) fn explain(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let Some(words) = self.faults() else { return error };
        let text = format!("{}; {words}", error.value(py));
        PyErr::from_type(error.get_type(py), text)
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
        if !self.failure.is_raised() {
            let asked = Asked { name: &self.name, n_x: self.n_x, is_density: first.is_some() };
            self.failure.look_at(&asked, z, parameters, out);
        }
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

/// A log density: a Python function, or a compiled one.
pub(crate) enum LogDensity {
    Python(Callable),
    Native(String, Native),
}

/// A sensor: its log density and, where simulation is wanted, how to draw from it.
pub(crate) struct PythonSensor {
    pub(crate) log_density: LogDensity,
    pub(crate) sample: Option<Callable>,
}

impl SensorDensity for PythonSensor {
    fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]) {
        match &self.log_density {
            LogDensity::Python(function) => function.evaluate(Some(y), z, parameters, out),
            LogDensity::Native(_, function) => function.evaluate(Some(y), z, parameters, out),
        }
    }

    fn sample(&self, z: &[f64], parameters: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        match &self.sample {
            Some(sample) => sample.draw(Some((z, parameters)), rng, y),
            None => y.fill(f64::NAN),
        }
    }

    fn can_sample(&self) -> Result<(), String> {
        let name = match &self.log_density {
            LogDensity::Python(function) => &function.name,
            LogDensity::Native(name, _) => name,
        };
        let missing = || format!("{name} has no sample function: give one to draw outputs");
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
        if !self.0.failure.is_raised() {
            self.0.failure.look_at_kernel(&self.0.name, z, other, parameters, out);
        }
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
