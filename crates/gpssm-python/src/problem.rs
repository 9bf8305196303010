//! A model and a record: sampling, and what to make of the draws.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gpssm::convergence::Wording;
use gpssm::dynamics::{BasisChoice, FourierChoice, HilbertChoice};
use gpssm::mcmc::{ChainDraws, ChainReport, ChainState, SweepInfo};
use gpssm::posterior::sample_prior;
use gpssm::{
    ChainPlan, Draw, Ended, Functions, Look, Phase, Points, Progress, RunReport, Settings, Sink, diagnostics,
};
use gpssm_io::config::{ConfigError, ModelConfig, Run, RunError, RunFile, States};
use gpssm_io::fit::FitError;
use gpssm_io::store::ParameterArray;
use gpssm_io::table::Data;
use numpy::ndarray::Axis;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::{Deserialize, Serialize};

use crate::arrays::{flat, matrix, record, rows};
use crate::callback::{Callable, Failure, LogDensity, PythonInitial, PythonPrior, PythonSensor};
use crate::error::{from_json, to_json, to_python, value_error};
use crate::kernels::{PythonKernels, with_kernels};
use crate::native::Native;
use crate::store::{Both, StorePlan};

/// How often the main thread looks for interrupts.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// What is sampled.
#[pyclass(frozen)]
pub(crate) struct Problem {
    /// With the finite basis, once it is chosen.
    pub(crate) problem: gpssm::Problem,
    pub(crate) run: Run,
    pub(crate) data: Data,
    pub(crate) failure: Arc<Failure>,
}

/// A Python function and whether it wants the inputs.
type Function = (Py<PyAny>, bool);

/// Python functions by the names that the model knows them by.
pub(crate) struct Registered {
    pub(crate) functions: Functions,
    pub(crate) failure: Arc<Failure>,
}

/// Functions, sensors, densities of the initial state and of parameters, kernels.
type Callables = (
    HashMap<String, Function>,
    HashMap<String, (Function, Option<Function>)>,
    HashMap<String, (Py<PyAny>, Py<PyAny>)>,
    HashMap<String, Py<PyAny>>,
    PythonKernels,
);

impl Registered {
    /// For a model with `n_x` states.
    pub(crate) fn new(py: Python<'_>, callables: &Callables, n_x: usize) -> Self {
        let failure = Arc::new(Failure::default());
        let callable = |name: &str, function: &Py<PyAny>, wants_u: bool| {
            Callable::new(name, function.clone_ref(py), wants_u, n_x, &failure)
        };
        let mut registry = Functions::new();
        let native = |name: &str, function: &Py<PyAny>| Native::new(name, function.bind(py), n_x, &failure);
        for (name, (function, wants_u)) in &callables.0 {
            registry = match native(name, function) {
                Some(native) => registry.with(name, native),
                None => registry.with(name, callable(name, function, *wants_u)),
            };
        }
        for (name, (log_density, sample)) in &callables.1 {
            let sample = sample.as_ref().map(|(function, wants_u)| callable(name, function, *wants_u));
            let log_density = match native(name, &log_density.0) {
                Some(native) => LogDensity::Native(name.clone(), native),
                None => LogDensity::Python(callable(name, &log_density.0, log_density.1)),
            };
            registry = registry.with_sensor(name, PythonSensor { log_density, sample });
        }
        for (name, (log_density, sample)) in &callables.2 {
            let density = PythonInitial {
                log_density: callable(name, log_density, false),
                sample: callable(name, sample, false),
            };
            registry = registry.with_initial(name, density);
        }
        for (name, log_density) in &callables.3 {
            registry = registry.with_prior(name, PythonPrior(callable(name, log_density, false)));
        }
        Self { functions: with_kernels(py, registry, &callables.4, &failure), failure }
    }
}

/// Names and times of a record: outputs, inputs, labels of sequences, times of rows, and dates behind them as JSON.
pub(crate) type Labels = (Vec<String>, Vec<String>, Vec<String>, Vec<Vec<f64>>, Option<String>);

/// Outputs and inputs as they were measured, where the model sees others.
type Measured<'py> = (Vec<PyReadonlyArray2<'py, f64>>, Option<Vec<PyReadonlyArray2<'py, f64>>>);

/// Name, dimensions with the names along them, places in theta.
type NamedArray = (String, Vec<(String, Vec<String>)>, Vec<usize>);

#[pymethods]
impl Problem {
    /// From keys of the run file and their values as JSON, such as `{"model.kernel": "se + linear"}`.
    #[new]
    fn new(
        py: Python<'_>,
        keys: &str,
        y: Vec<PyReadonlyArray2<'_, f64>>,
        u: Option<Vec<PyReadonlyArray2<'_, f64>>>,
        labels: Labels,
        measured: Option<Measured<'_>>,
        callables: Callables,
    ) -> PyResult<Self> {
        let (file, data) = file_and_data(keys, &y, u.as_deref(), labels)?;
        let measured = measured.map(|(y, u)| record(&y, u.as_deref())).transpose()?;
        let data = Data { measured, ..data };
        let config = file.config().map_err(config_error)?;
        let n_x = n_states(&config.model, data.outputs.len());
        let registered = Registered::new(py, &callables, n_x);
        let run = py.detach(|| file.resolve_with(&config, &data, &registered.functions));
        registered.failure.check()?;
        let run = run.map_err(|error| match error {
            RunError::Config(error) => config_error(error),
            RunError::Data(error) => value_error(error.to_string()),
        })?;
        Ok(Self { problem: run.problem.clone(), run, data, failure: registered.failure })
    }

    /// The model with every default written out, as JSON.
    #[getter]
    fn model(&self) -> PyResult<String> {
        to_json("model", self.problem.model())
    }

    /// Draws before any fit: theta (draw, parameter), and for each sequence states and outputs (draw, row, channel) under its
    /// inputs. Draws that overflow are left out.
    fn sample_prior<'py>(&self, py: Python<'py>, n: u64, seed: u64) -> PyResult<Bound<'py, PyDict>> {
        let (problem, failure) = (&self.problem, &self.failure);
        let sequences = problem.record().sequences();
        let inputs: Vec<Vec<Vec<f64>>> =
            sequences.iter().map(|s| (0..s.n_rows()).map(|t| s.u(t).to_vec()).collect()).collect();
        let none = Points::new(problem.n_x() + problem.model().n_u);
        let mut found = Vec::new();
        for index in 0..n {
            py.check_signals()?;
            let drawn = py.detach(|| sample_prior(problem, &inputs, &none, seed, index));
            failure.check()?;
            let drawn = drawn.map_err(to_python)?;
            if drawn.paths.iter().chain(&drawn.outputs).flatten().all(|value| value.is_finite()) {
                found.push(drawn);
            }
        }
        let result = PyDict::new(py);
        let theta: Vec<f64> = found.iter().flat_map(|drawn| drawn.theta.clone()).collect();
        result.set_item("theta", matrix(py, theta, found.len(), problem.table().len())?)?;
        let (x, y) = (PyList::empty(py), PyList::empty(py));
        for (s, sequence) in sequences.iter().enumerate() {
            let states: Vec<f64> = found.iter().flat_map(|drawn| drawn.paths[s].clone()).collect();
            let outputs: Vec<f64> = found.iter().flat_map(|drawn| drawn.outputs[s].clone()).collect();
            let n_rows = sequence.n_rows();
            x.append(PyArray1::from_vec(py, states).reshape([found.len(), n_rows, problem.n_x()])?)?;
            y.append(PyArray1::from_vec(py, outputs).reshape([found.len(), n_rows, sequence.n_y()])?)?;
        }
        result.set_item("x", x)?;
        result.set_item("y", y)?;
        result.set_item("diverged", n - found.len() as u64)?;
        Ok(result)
    }

    /// What functions of the user returned wrongly since this was last asked, in words.
    fn faults(&self) -> Option<String> {
        self.failure.faults()
    }

    /// Draws of the hyper-parameters from their prior (draw, parameter).
    fn prior_theta<'py>(&self, py: Python<'py>, n: u64, seed: u64) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let draws = (0..n as usize).map(|index| gpssm::posterior::prior_theta(&self.problem, seed, index));
        let draws = draws.collect::<Result<Vec<_>, _>>();
        self.failure.check()?;
        matrix(py, draws.map_err(to_python)?.concat(), n as usize, self.problem.table().len())
    }

    /// Log prior densities of hyper-parameters (draw, parameter).
    fn log_prior<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (draws, table) = (rows(&theta), self.problem.table());
        let values = py.detach(|| draws.iter().flat_map(|theta| table.log_densities(theta)).collect());
        self.failure.check()?;
        matrix(py, values, draws.len(), table.len())
    }

    /// The settings with every default written out, as JSON.
    #[getter]
    fn settings(&self) -> PyResult<String> {
        to_json("settings", &self.run.settings)
    }

    /// The run file that leaves nothing open.
    fn to_toml(&self) -> String {
        self.run.to_toml()
    }

    /// Names of the states.
    #[getter]
    fn state_names(&self) -> Vec<String> {
        self.problem.model().state_names()
    }

    /// Names of all hyper-parameters.
    #[getter]
    fn parameter_names(&self) -> Vec<String> {
        self.problem.table().parameters.iter().map(|parameter| parameter.name.clone()).collect()
    }

    /// Arrays of the hyper-parameters that are learned, or of those that are known: name, dimensions with the names along
    /// them, places in theta.
    fn parameter_arrays(&self, learned: bool) -> Vec<NamedArray> {
        let arrays = ParameterArray::all(self.problem.table(), learned).into_iter();
        let named = arrays.map(|array| {
            let dims = array.dims.into_iter().map(|dim| (dim.name, dim.labels)).collect();
            (array.name, dims, array.places)
        });
        named.collect()
    }

    #[getter]
    fn n_x(&self) -> usize {
        self.problem.n_x()
    }

    /// Refuses settings that cannot be run.
    fn check(&self, settings: &str) -> PyResult<()> {
        let settings: Settings = from_json("settings", settings)?;
        settings.check(&self.problem).map_err(to_python)
    }

    /// Time limit of a run with these settings, in seconds.
    fn time_limit(&self, settings: &str) -> PyResult<Option<f64>> {
        let settings: Settings = from_json("settings", settings)?;
        Ok(settings.time_limit().map(|limit| limit.as_secs_f64()))
    }

    /// The finite basis as JSON, once it is chosen.
    #[getter]
    fn basis(&self) -> PyResult<Option<String>> {
        self.problem.basis().map(basis_to_json).transpose()
    }

    /// The same problem with this finite basis.
    fn with_basis(&self, basis: &str) -> PyResult<Self> {
        Ok(self.with_problem(self.problem.with_basis(basis_from_json(basis)?)))
    }

    /// The same problem with its finite basis chosen, if the model asks for one.
    fn prepare(&self, py: Python<'_>, settings: &str) -> PyResult<Self> {
        let settings: Settings = from_json("settings", settings)?;
        settings.check(&self.problem).map_err(to_python)?;
        let problem = py.detach(|| gpssm::prepare(&self.problem, &settings));
        self.failure.check()?;
        Ok(self.with_problem(problem.map_err(to_python)?))
    }

    /// Draws from the posterior: chains with their draws, how the run ended ("complete", "interrupted" or "budget"), and
    /// the finite basis, if there is one. A plan is a chain, its state and the draws that it has.
    ///
    /// The sampler works in threads of its own. This thread sleeps without the interpreter lock, looks for
    /// interrupts, and reports progress as (chain, phase, done, total) to `on_progress`, and what looks at all chains
    /// found as (draws, ESS, its name, R-hat, its name, draws expected) to `on_look`.
    #[pyo3(signature = (settings, plans, save_warmup, on_progress, on_look, store))]
    #[allow(clippy::too_many_arguments, reason = "arguments of the binding")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        settings: &str,
        plans: Vec<(u32, Option<String>, Option<ArrayDraws<'py>>)>,
        save_warmup: bool,
        on_progress: Option<Bound<'py, PyAny>>,
        on_look: Option<Bound<'py, PyAny>>,
        store: Option<StorePlan>,
    ) -> PyResult<(Bound<'py, PyList>, &'static str, Option<String>)> {
        let settings: Settings = from_json("settings", settings)?;
        let plan = |(chain, state, draws): (u32, Option<String>, Option<ArrayDraws<'_>>)| {
            let from = state.map(|text| from_json::<ChainState>("state", &text)).transpose()?;
            let draws = draws.filter(|_| settings.draws.is_none()).map(|draws| chain_draws(&[draws]));
            let earlier = draws.transpose()?.unwrap_or_default().pop().unwrap_or_default();
            PyResult::Ok(ChainPlan { chain, from, earlier })
        };
        let plans = plans.into_iter().map(plan).collect::<PyResult<Vec<_>>>()?;
        let sink = ArraySink { save_warmup, chains: Mutex::default() };
        let stop = AtomicBool::new(false);
        let (on_progress, on_look) = (on_progress.map(Bound::unbind), on_look.map(Bound::unbind));
        let mut interrupt = None;
        let report = py.detach(|| {
            std::thread::scope(|scope| {
                let (sender, receiver) = mpsc::channel::<Progress>();
                let (sink, stop, settings) = (&sink, &stop, &settings);
                let worker = scope.spawn(move || -> Result<RunReport, FitError> {
                    let tell = |progress: &Progress| {
                        // The receiver outlives the run.
                        let _ = sender.send(progress.clone());
                        !stop.load(Ordering::Relaxed) && !self.failure.is_raised()
                    };
                    settings.check(&self.problem)?;
                    let problem = gpssm::prepare(&self.problem, settings)?;
                    match store {
                        None => Ok(gpssm::sample_chains(&problem, settings, plans, sink, &tell)?),
                        Some(plan) => {
                            let run = Run { settings: settings.clone(), ..self.run.clone() };
                            let store = plan.open(&run, &problem, &self.data)?;
                            let both = Both { store: &store, memory: sink };
                            let report = gpssm::sample_chains(&problem, settings, plans, &both, &tell);
                            store.flush()?;
                            Ok(report?)
                        }
                    }
                });
                let mut looked = 0;
                loop {
                    let first = receiver.recv_timeout(POLL);
                    let over = matches!(first, Err(RecvTimeoutError::Disconnected));
                    // One message for each chain is enough: the latest.
                    let latest: HashMap<u32, Progress> =
                        first.into_iter().chain(receiver.try_iter()).map(|p| (p.chain, p)).collect();
                    let look = latest.values().filter_map(|progress| progress.look.clone());
                    let look = look.max_by_key(|look| look.draws).filter(|look| look.draws > looked);
                    looked = look.as_ref().map_or(looked, |look| look.draws);
                    let watched = Python::attach(|py| {
                        watch(py, on_progress.as_ref(), latest)?;
                        tell_look(py, on_look.as_ref(), look.as_deref())
                    });
                    if let Err(error) = watched {
                        stop.store(true, Ordering::Relaxed);
                        interrupt.get_or_insert(error);
                    }
                    if over {
                        let report = worker.join();
                        self.failure.kept.wait();
                        break report;
                    }
                    if on_progress.is_some() {
                        std::thread::sleep(POLL);
                    }
                }
            })
        });
        self.failure.check()?;
        // A panic of the worker goes on as one of this thread, where pyo3 makes an exception of it.
        let report = report.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let report = report.map_err(|error| self.failure.explain(py, run_error(error)))?;
        let ended = match (interrupt, report.ended) {
            (Some(error), _) if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => {
                "interrupted"
            }
            (Some(error), _) => return Err(error),
            (None, Ended::Budget) => "budget",
            (None, Ended::Complete | Ended::Cancelled) => "complete",
        };
        let mut chains = sink.chains.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = PyList::empty(py);
        for report in &report.chains {
            let draws = chains.remove(&report.chain).unwrap_or_default();
            result.append(self.chain_to_python(py, report, draws)?)?;
        }
        Ok((result, ended, report.basis.as_ref().map(basis_to_json).transpose()?))
    }
}

impl Problem {
    fn with_problem(&self, problem: gpssm::Problem) -> Self {
        let (run, data) = (self.run.clone(), self.data.clone());
        Self { problem, run, data, failure: Arc::clone(&self.failure) }
    }

    /// One chain: number, state, start evidence, draws of both phases.
    fn chain_to_python<'py>(
        &self,
        py: Python<'py>,
        report: &ChainReport,
        draws: Phases,
    ) -> PyResult<Bound<'py, PyDict>> {
        let chain = PyDict::new(py);
        chain.set_item("chain", report.chain)?;
        chain.set_item("state", report.state.as_ref().map(|state| to_json("state", state)).transpose()?)?;
        let evidence = report.start.as_ref().map(|start| start.log_marginal_likelihood);
        chain.set_item("start_log_marginal_likelihood", evidence)?;
        for (name, phase) in [("warmup", draws.warmup), ("draws", draws.sample)] {
            chain.set_item(name, self.phase_to_python(py, phase)?)?;
        }
        Ok(chain)
    }

    fn phase_to_python<'py>(&self, py: Python<'py>, phase: Flat) -> PyResult<Bound<'py, PyDict>> {
        let n = phase.info.len();
        let result = PyDict::new(py);
        result.set_item("theta", matrix(py, phase.theta, n, self.problem.table().len())?)?;
        let paths = PyList::empty(py);
        let mut flat = phase.paths.into_iter();
        for sequence in self.problem.sequences() {
            let shape = [n, sequence.n_rows(), self.problem.n_x()];
            paths.append(PyArray1::from_vec(py, flat.next().unwrap_or_default()).reshape(shape)?)?;
        }
        result.set_item("paths", paths)?;
        result.set_item("statistics", statistics_to_python(py, &phase.info)?)?;
        Ok(result)
    }
}

/// A finite basis as plain data, internal units.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BasisData {
    Fic(Vec<Vec<f64>>),
    Dtc(Vec<Vec<f64>>),
    Hilbert(HilbertChoice),
    Fourier(FourierChoice),
}

pub(crate) fn basis_to_json(basis: &BasisChoice) -> PyResult<String> {
    let rows = |points: &Points| (0..points.len()).map(|i| points.row(i)).collect();
    let data = match basis {
        BasisChoice::Fic(points) => BasisData::Fic(rows(points)),
        BasisChoice::Dtc(points) => BasisData::Dtc(rows(points)),
        BasisChoice::Hilbert(choice) => BasisData::Hilbert((**choice).clone()),
        BasisChoice::Fourier(choice) => BasisData::Fourier((**choice).clone()),
    };
    to_json("basis", &data)
}

fn basis_from_json(text: &str) -> PyResult<BasisChoice> {
    let points = |rows: Vec<Vec<f64>>| {
        Arc::new(Points::from_rows(rows.first().map_or(0, Vec::len), rows.iter().map(Vec::as_slice)))
    };
    Ok(match from_json("basis", text)? {
        BasisData::Fic(rows) => BasisChoice::Fic(points(rows)),
        BasisData::Dtc(rows) => BasisChoice::Dtc(points(rows)),
        BasisData::Hilbert(choice) => BasisChoice::Hilbert(Arc::new(choice)),
        BasisData::Fourier(choice) => BasisChoice::Fourier(Arc::new(choice)),
    })
}

/// Looks for interrupts and reports progress.
fn watch(py: Python<'_>, on_progress: Option<&Py<PyAny>>, latest: HashMap<u32, Progress>) -> PyResult<()> {
    py.check_signals()?;
    if let Some(on_progress) = on_progress {
        for progress in latest.values() {
            let phase = match progress.phase {
                Phase::Start => "start",
                Phase::Tune => "tune",
                Phase::Sample => "sample",
            };
            on_progress.call1(py, (progress.chain, phase, progress.done, progress.total))?;
        }
    }
    Ok(())
}

/// Tells what a look at all chains found.
fn tell_look(py: Python<'_>, on_look: Option<&Py<PyAny>>, look: Option<&Look>) -> PyResult<()> {
    if let (Some(on_look), Some(look)) = (on_look, look) {
        let Look { draws, ess, r_hat, expected, .. } = look;
        on_look.call1(py, (draws, ess.0, &ess.1, r_hat.0, &r_hat.1, expected))?;
    }
    Ok(())
}

/// Draws of one phase, each quantity in one piece.
#[derive(Default)]
struct Flat {
    theta: Vec<f64>,
    /// By sequence: (draw, t, d).
    paths: Vec<Vec<f64>>,
    info: Vec<SweepInfo>,
}

#[derive(Default)]
struct Phases {
    warmup: Flat,
    sample: Flat,
}

pub(crate) struct ArraySink {
    save_warmup: bool,
    chains: Mutex<HashMap<u32, Phases>>,
}

impl Sink for ArraySink {
    fn take(&self, draw: &Draw) -> Result<(), gpssm::Error> {
        if draw.phase != Phase::Sample && !self.save_warmup {
            return Ok(());
        }
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let chain = chains.entry(draw.chain).or_default();
        let phase = if draw.phase == Phase::Sample { &mut chain.sample } else { &mut chain.warmup };
        phase.theta.extend_from_slice(draw.theta);
        phase.paths.resize_with(draw.paths.len(), Vec::new);
        for (all, path) in phase.paths.iter_mut().zip(draw.paths) {
            all.extend_from_slice(path);
        }
        phase.info.push(*draw.info);
        Ok(())
    }
}

/// A table of values as TOML text.
#[pyfunction]
pub(crate) fn toml_text(table: &str) -> PyResult<String> {
    let value = to_toml(from_json("table", table)?);
    let text = value.map(|value| toml::to_string(&value)).transpose();
    Ok(text.map_err(|error| value_error(error.to_string()))?.unwrap_or_default())
}

/// JSON as TOML, which knows no null.
fn to_toml(value: serde_json::Value) -> Option<toml::Value> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(value) => value.into(),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(values) => {
            toml::Value::Array(values.into_iter().filter_map(to_toml).collect())
        }
        serde_json::Value::Object(entries) => {
            let entries = entries.into_iter().filter_map(|(key, value)| Some((key, to_toml(value)?)));
            toml::Value::Table(entries.collect())
        }
    })
}

/// Keys and values as a run file, and the record that it is about.
pub(crate) fn file_and_data(
    keys: &str,
    y: &[PyReadonlyArray2<'_, f64>],
    u: Option<&[PyReadonlyArray2<'_, f64>]>,
    labels: Labels,
) -> PyResult<(RunFile, Data)> {
    let mut file = RunFile::new();
    for (key, value) in from_json::<serde_json::Map<String, serde_json::Value>>("arguments", keys)? {
        // Errors name the argument.
        let option = key.rsplit('.').next().unwrap_or(&key).to_owned();
        if let Some(value) = to_toml(value) {
            file.put(&key, value, &option).map_err(config_error)?;
        }
    }
    let (outputs, inputs, sequences, time, dates) = labels;
    let record = record(y, u)?;
    for (key, names) in [("data.y", &outputs), ("data.u", &inputs)] {
        // Inputs with past values have names of their own, and the run file says what they were made of.
        if !file.is_given(key) {
            file.put(key, names.clone(), key).map_err(config_error)?;
        }
    }
    let data = Data::from_record(record, outputs, inputs, "data").with_labels(time, sequences);
    let dates = dates.map(|text| from_json("dates", &text)).transpose()?;
    Ok((file, Data { dates, ..data }))
}

/// How many states the model will have: what user functions are called with.
fn n_states(model: &ModelConfig, n_y: usize) -> usize {
    match (model.lags, model.states) {
        (Some(lags), _) => n_y * (1 + lags),
        (None, _) if !model.state.is_empty() => model.state.len(),
        (None, Some(States::Number(states))) => states,
        // Auto is settled before, or refused when the model is resolved.
        (None, Some(States::Auto) | None) => n_y,
    }
}

pub(crate) fn config_error(error: ConfigError) -> PyErr {
    value_error(error.to_string())
}

/// Errors of the engine and of the store.
pub(crate) fn run_error(error: FitError) -> PyErr {
    match error {
        FitError::Engine(error) => to_python(error),
        FitError::Store(error) => PyOSError::new_err(error.to_string()),
        other => value_error(other.to_string()),
    }
}

/// Estimates and diagnostics of several quantities, each with draws (chain, draw): columns mean, sd, lower,
/// upper, mcse_mean, ess_bulk, ess_tail, r_hat; NaN where they are not defined.
#[pyfunction]
pub(crate) fn summarise<'py>(
    py: Python<'py>,
    quantities: Vec<PyReadonlyArray2<'py, f64>>,
    level: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let mut values = Vec::with_capacity(8 * quantities.len());
    for quantity in &quantities {
        let chains = rows(quantity);
        let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        let s = diagnostics::summarise(&chains, level);
        let columns = [s.mean, s.sd, s.lower, s.upper, s.mcse_mean, s.ess_bulk, s.ess_tail, s.r_hat];
        values.extend(columns.map(|value| value.unwrap_or(f64::NAN)));
    }
    matrix(py, values, quantities.len(), 8)
}

/// Whether all that is identified has converged, name, R-hat, bulk and tail ESS of each quantity that was judged, names of
/// those that are not identified, and warnings in words on the draws of all chains.
type Assessment = (bool, Vec<(String, f64, f64, f64)>, Vec<String>, Vec<String>);

/// What to make of the draws of all chains; `resume` is how more are asked for.
#[pyfunction]
pub(crate) fn assess(
    py: Python<'_>,
    problem: &Problem,
    settings: &str,
    chains: Vec<ArrayDraws<'_>>,
    resume: &str,
) -> PyResult<Assessment> {
    let settings: Settings = from_json("settings", settings)?;
    let chains = chain_draws(&chains)?;
    let found = py.detach(|| gpssm::convergence::assess(&problem.problem, &settings, &chains, 0.9));
    problem.failure.check()?;
    let (time, sequences) = (&problem.data.time, &problem.data.sequence_labels);
    let clock = problem.data.clock();
    let clock = |time: f64| clock.text(time);
    let wording = Wording { time, clock: &clock, sequences, resume };
    let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let judged = found.verdict.judged.iter().map(|judged| {
        let name = judged.quantity.describe(&wording);
        (name, or_nan(judged.r_hat), or_nan(judged.ess_bulk), or_nan(judged.ess_tail))
    });
    let warnings = found.warnings.iter().map(|warning| warning.describe(&wording));
    Ok((found.verdict.is_good(), judged.collect(), found.verdict.excluded.clone(), warnings.collect()))
}

/// Draws of each chain at the look after the one at `draws`; at the first one without any.
#[pyfunction]
pub(crate) fn next_look(draws: u64) -> u64 {
    if draws == 0 { gpssm::run::FIRST_LOOK } else { gpssm::run::next_look(draws) }
}

/// A time limit in its shortest form; refuses what is none.
#[pyfunction]
pub(crate) fn budget(text: &str) -> PyResult<String> {
    let budget: gpssm::Budget = text.parse().map_err(|error| value_error(format!("budget: {error}")))?;
    Ok(budget.to_string())
}

/// Draws of one chain as arrays: theta (draw, entry), paths (draw, t, d) of each sequence, statistics.
pub(crate) type ArrayDraws<'py> =
    (PyReadonlyArray2<'py, f64>, Vec<PyReadonlyArray3<'py, f64>>, PyReadonlyArray2<'py, f64>);

/// The same as the library has them.
pub(crate) fn chain_draws(chains: &[ArrayDraws<'_>]) -> PyResult<Vec<ChainDraws>> {
    let chain = |(theta, paths, info): &ArrayDraws<'_>| {
        let n = theta.as_array().nrows();
        let path = |i: usize| -> Vec<Vec<f64>> {
            let rows =
                |p: &PyReadonlyArray3<'_, f64>| p.as_array().index_axis(Axis(0), i).iter().copied().collect();
            paths.iter().map(rows).collect()
        };
        Ok(ChainDraws { theta: rows(theta), paths: (0..n).map(path).collect(), info: infos(info)? })
    };
    chains.iter().map(chain).collect()
}

/// What is kept of each sweep, as arrays by name.
pub(crate) fn statistics_to_python<'py>(py: Python<'py>, info: &[SweepInfo]) -> PyResult<Bound<'py, PyDict>> {
    let statistics = PyDict::new(py);
    let values: Vec<serde_json::Value> =
        info.iter().map(|sweep| serde_json::to_value(sweep).unwrap_or_default()).collect();
    for (name, is_count) in statistic_names()? {
        if is_count {
            let counts = values.iter().map(|value| value[&name].as_i64().unwrap_or(i64::MAX));
            statistics.set_item(&name, PyArray1::from_iter(py, counts))?;
        } else {
            let numbers = values.iter().map(|value| value[&name].as_f64().unwrap_or(f64::NAN));
            statistics.set_item(&name, PyArray1::from_iter(py, numbers))?;
        }
    }
    Ok(statistics)
}

/// Names of what is kept of each sweep, and whether each is a count.
fn statistic_names() -> PyResult<Vec<(String, bool)>> {
    let fields =
        serde_json::to_value(SweepInfo::default()).map_err(|error| value_error(error.to_string()))?;
    let fields = fields.as_object().into_iter().flatten();
    Ok(fields.map(|(name, value)| (name.clone(), value.is_u64())).collect())
}

/// The same from rows with one column for each name.
fn infos(rows: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<SweepInfo>> {
    let names = statistic_names()?;
    let one = |row: &[f64]| {
        let entry = |((name, is_count), value): (&(String, bool), &f64)| {
            let value = if *is_count { (*value as u64).into() } else { (*value).into() };
            (name.clone(), value)
        };
        let fields: serde_json::Map<String, serde_json::Value> = names.iter().zip(row).map(entry).collect();
        serde_json::from_value(fields.into()).map_err(|error| value_error(format!("statistics: {error}")))
    };
    flat(rows).chunks_exact(names.len()).map(one).collect()
}
