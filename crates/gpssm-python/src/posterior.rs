//! What was learned, put to use.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpssm::posterior::{
    DistilOptions, DistilledFunction, Ensemble, Initial, OnlineOptions, SimulateOptions, Target, ThinMethod,
    Warning,
};
use gpssm_identify::fitted::spread_draws;
use gpssm_identify::{FittedModel, FreeRunOptions, LinearOptions, ScoreOptions, Start};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;

use crate::arrays::{matrix, rows, sequence};
use crate::callback::Failure;
use crate::error::{from_json, to_json, to_python};
use crate::problem::{ArrayDraws, Problem, chain_draws};

/// How often interrupts are looked for.
const POLL: Duration = Duration::from_millis(50);

/// Draws, each a function, with the layout of their rows and their calibration.
#[pyclass(frozen)]
pub(crate) struct Posterior {
    fitted: FittedModel,
    failure: Arc<Failure>,
}

/// Where paths start.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum InitialWords {
    Model,
    LastTraining { sequence: usize },
    Given(Vec<f64>),
}

fn initial(text: &str) -> PyResult<Initial> {
    Ok(match from_json("initial", text)? {
        InitialWords::Model => Initial::Model,
        InitialWords::LastTraining { sequence } => Initial::LastTraining { sequence },
        InitialWords::Given(x) => Initial::Given(x),
    })
}

fn words(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

fn cube<'py>(py: Python<'py>, ensemble: &Ensemble) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let shape = [ensemble.n_samples(), ensemble.n_rows(), ensemble.n_channels()];
    let values = (0..shape[0]).flat_map(|i| ensemble.sample(i).to_vec()).collect();
    PyArray1::<f64>::from_vec(py, values).reshape(shape)
}

impl Posterior {
    /// Runs work that reports progress, without the interpreter lock; an interrupt ends it.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&FittedModel, &dyn Fn(usize, usize) -> bool) -> Result<T, gpssm::Error>,
    ) -> PyResult<T> {
        let (outcome, interrupt) = py.detach(|| {
            let interrupt = RefCell::new(None);
            let last = Cell::new(Instant::now());
            let keep_going = |_, _| {
                if last.get().elapsed() > POLL {
                    last.set(Instant::now());
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        interrupt.replace(Some(error));
                    }
                }
                interrupt.borrow().is_none() && !self.failure.is_raised()
            };
            (work(&self.fitted, &keep_going), interrupt.into_inner())
        });
        self.failure.check()?;
        match interrupt {
            Some(error) => Err(error),
            None => outcome.map_err(to_python),
        }
    }
}

#[pymethods]
impl Posterior {
    #[new]
    fn new(
        py: Python<'_>,
        problem: &Problem,
        chains: Vec<ArrayDraws<'_>>,
        max_draws: Option<usize>,
    ) -> PyResult<Self> {
        let chains = spread_draws(&chain_draws(&chains)?, max_draws.unwrap_or(usize::MAX));
        let fitted = py.detach(|| {
            let posterior = gpssm::posterior::Posterior::new(&problem.problem, &chains)?;
            let (layout, measured) = (problem.run.data.columns().layout(), problem.data.measured.clone());
            let calibration = problem.run.calibration.clone().unwrap_or_default();
            FittedModel::new(posterior, layout, calibration, measured)
        });
        Ok(Self { fitted: fitted.map_err(to_python)?, failure: Arc::clone(&problem.failure) })
    }

    /// f or the next state at given points: mean, covariance, quantiles (probability, point, state), warnings.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x_star: PyReadonlyArray2<'py, f64>,
        u_star: PyReadonlyArray2<'py, f64>,
        next_state: bool,
        probabilities: Vec<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (x_star, u_star) = (rows(&x_star), rows(&u_star));
        let target = if next_state { Target::NextState } else { Target::Function };
        let found = self.run(py, |fitted, _| fitted.posterior.predict(&x_star, &u_star, target))?;
        let (n, n_x) = (found.n_points(), found.n_x());
        let result = PyDict::new(py);
        let (mean, covariance, quantiles) = py.detach(|| {
            let mean: Vec<f64> = (0..n).flat_map(|i| found.mean(i)).collect();
            let covariance: Vec<f64> = (0..n).flat_map(|i| found.covariance(i)).collect();
            let quantile = |(p, i)| (0..n_x).map(move |d| (p, i, d));
            let entries = probabilities.iter().flat_map(|p| (0..n).map(move |i| (*p, i))).flat_map(quantile);
            let quantiles: Vec<f64> = entries.map(|(p, i, d)| found.quantile(i, d, p)).collect();
            (mean, covariance, quantiles)
        });
        result.set_item("mean", matrix(py, mean, n, n_x)?)?;
        result.set_item("cov", PyArray1::from_vec(py, covariance).reshape([n, n_x, n_x])?)?;
        let shape = [probabilities.len(), n, n_x];
        result.set_item("quantiles", PyArray1::from_vec(py, quantiles).reshape(shape)?)?;
        result.set_item("warnings", words(&found.warnings))?;
        Ok(result)
    }

    /// Free runs under inputs as they were measured; with `y`, paths first follow these outputs.
    #[pyo3(signature = (u, n_rows, y, initial_state, options, raw))]
    #[expect(clippy::too_many_arguments, reason = "called by the Python layer alone")]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        u: Option<PyReadonlyArray2<'py, f64>>,
        n_rows: usize,
        y: Option<PyReadonlyArray2<'py, f64>>,
        initial_state: &str,
        options: &str,
        raw: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let inputs = u.map_or_else(|| vec![Vec::new(); n_rows], |u| rows(&u));
        let (start, y) = (initial(initial_state)?, y.map(|y| rows(&y)));
        let start = y.as_ref().map_or_else(|| start.into(), |y| Start::Outputs { n_init: y.len() });
        let simulate: SimulateOptions = from_json("options", options)?;
        let filter = OnlineOptions { seed: simulate.seed, ..OnlineOptions::default() };
        let options = FreeRunOptions { simulate, filter, raw };
        let found = self.run(py, |fitted, keep_going| {
            let record = fitted.inputs(inputs)?.with_first_outputs(&y.unwrap_or_default())?;
            fitted.free_run(&record, &start, &options, keep_going)
        })?;
        let result = PyDict::new(py);
        result.set_item("x", cube(py, &found.x)?)?;
        result.set_item("y", cube(py, &found.y)?)?;
        result.set_item("draws", found.draws)?;
        result.set_item("warnings", words(&found.warnings))?;
        Ok(result)
    }

    /// Filtered states of a record.
    fn filter<'py>(
        &self,
        py: Python<'py>,
        y: PyReadonlyArray2<'py, f64>,
        u: Option<PyReadonlyArray2<'py, f64>>,
        initial_state: &str,
        options: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (record, start) = (sequence(&y, u.as_ref())?, initial(initial_state)?);
        let options: OnlineOptions = from_json("options", options)?;
        let found = self
            .run(py, |fitted, keep_going| fitted.posterior.filter(&record, &start, &options, keep_going))?;
        let (n, n_x) = (found.log_marginal_likelihood.len(), self.fitted.posterior.problem().n_x());
        let result = PyDict::new(py);
        result.set_item("mean", matrix(py, found.mean, n, n_x)?)?;
        result.set_item("sd", matrix(py, found.sd, n, n_x)?)?;
        result.set_item("log_marginal_likelihood", PyArray1::from_vec(py, found.log_marginal_likelihood))?;
        result.set_item("warnings", words(&found.warnings))?;
        Ok(result)
    }

    /// Trajectories from the smoothing distribution of a record.
    fn smooth<'py>(
        &self,
        py: Python<'py>,
        y: PyReadonlyArray2<'py, f64>,
        u: Option<PyReadonlyArray2<'py, f64>>,
        n_paths: usize,
        options: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let record = sequence(&y, u.as_ref())?;
        let options: OnlineOptions = from_json("options", options)?;
        let found = self.run(py, |fitted, _| fitted.posterior.smooth(&record, n_paths, &options))?;
        let result = PyDict::new(py);
        result.set_item("x", cube(py, &found.x)?)?;
        result.set_item("draws", found.draws)?;
        result.set_item("log_marginal_likelihood", found.log_marginal_likelihood)?;
        result.set_item("warnings", words(&found.warnings))?;
        Ok(result)
    }

    /// Predictions k steps ahead along a record.
    #[expect(clippy::too_many_arguments, reason = "called by the Python layer alone")]
    fn predict_ahead<'py>(
        &self,
        py: Python<'py>,
        y: PyReadonlyArray2<'py, f64>,
        u: Option<PyReadonlyArray2<'py, f64>>,
        k: usize,
        n_samples: usize,
        initial_state: &str,
        options: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (record, start) = (sequence(&y, u.as_ref())?, initial(initial_state)?);
        let options: OnlineOptions = from_json("options", options)?;
        let found = self.run(py, |fitted, keep_going| {
            fitted.posterior.predict_ahead(&record, k, n_samples, &start, &options, keep_going)
        })?;
        let result = PyDict::new(py);
        result.set_item("y", cube(py, &found.y)?)?;
        result.set_item("first_row", found.first_row)?;
        result.set_item("log_score", PyArray1::from_vec(py, found.log_score))?;
        result.set_item("warnings", words(&found.warnings))?;
        Ok(result)
    }

    /// Log densities of the observations: (draw, row, output), or (draw, row, 1) where a row has one value.
    fn log_likelihood<'py>(&self, py: Python<'py>) -> PyResult<(bool, Bound<'py, PyArray3<f64>>)> {
        let found = self.run(py, |fitted, _| Ok(fitted.posterior.log_likelihood()))?;
        let problem = self.fitted.posterior.problem();
        let n_rows: usize = problem.sequences().iter().map(|sequence| sequence.n_rows()).sum();
        let n_draws = self.fitted.posterior.len();
        let shape = [n_draws, n_rows, found.values.len() / (n_draws * n_rows)];
        Ok((found.by_output, PyArray1::from_vec(py, found.values).reshape(shape)?))
    }

    /// Outputs of the training record drawn given the states of each draw (draw, row, output).
    fn replicate<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let values = self.run(py, |fitted, _| Ok(fitted.posterior.replicate(seed)))?;
        let (n_draws, n_y) = (self.fitted.posterior.len(), self.fitted.training.n_y());
        let n_rows = values.len() / (n_draws * n_y);
        PyArray1::from_vec(py, values).reshape([n_draws, n_rows, n_y])
    }

    /// Models by their one-step log scores on a record, as JSON.
    #[staticmethod]
    fn compare(
        py: Python<'_>,
        models: Vec<(String, PyRef<'_, Self>)>,
        y: PyReadonlyArray2<'_, f64>,
        u: Option<PyReadonlyArray2<'_, f64>>,
        n_init: usize,
        options: &str,
    ) -> PyResult<String> {
        let record = sequence(&y, u.as_ref())?;
        let options: OnlineOptions = from_json("options", options)?;
        let parts: Vec<(&str, &FittedModel)> =
            models.iter().map(|(name, model)| (name.as_str(), &model.fitted)).collect();
        let ranked = py.detach(|| {
            let models: Vec<_> = parts.iter().map(|(name, fitted)| (*name, &fitted.posterior)).collect();
            gpssm::posterior::compare(&models, &record, n_init, &options, &|_, _| true)
        });
        models.iter().try_for_each(|(_, model)| model.failure.check())?;
        to_json("ranking", &ranked.map_err(to_python)?)
    }

    /// Scores of the model and its baselines, as JSON, and warnings.
    fn score(
        &self,
        py: Python<'_>,
        y: PyReadonlyArray2<'_, f64>,
        u: Option<PyReadonlyArray2<'_, f64>>,
        options: &str,
    ) -> PyResult<(String, Vec<String>)> {
        let record = sequence(&y, u.as_ref())?;
        let options: ScoreOptions = from_json("options", options)?;
        let found = self.run(py, |fitted, keep_going| fitted.score(&record, &options, keep_going))?;
        Ok((to_json("scores", &found)?, words(&found.warnings)))
    }

    /// Fewer draws: numbers of those that are kept and what is lost, as JSON.
    fn thin(&self, py: Python<'_>, k: usize, method: &str, seed: u64) -> PyResult<String> {
        let method: ThinMethod = from_json("method", &format!("\"{method}\""))?;
        let (_, loss) = self.run(py, |fitted, _| fitted.posterior.thin(k, method, seed))?;
        to_json("loss", &loss)
    }

    /// One sparse Gaussian process in place of the mixture, as JSON.
    fn distil(&self, py: Python<'_>, options: &str) -> PyResult<String> {
        let options: DistilOptions = from_json("options", options)?;
        to_json("distilled", &self.run(py, |fitted, _| fitted.distil(&options))?)
    }

    /// A distilled model with posterior functions beside its mean, as JSON.
    fn with_scenarios(&self, py: Python<'_>, distilled: &str, k: usize, seed: u64) -> PyResult<String> {
        let mut distilled = from_json("distilled", distilled)?;
        let found = self.run(py, |fitted, _| {
            fitted.posterior.add_scenarios(&mut distilled, k, seed)?;
            Ok(distilled)
        });
        to_json("distilled", &found?)
    }

    /// The model near a point, as JSON.
    fn linearise(
        &self,
        py: Python<'_>,
        x: Vec<f64>,
        u: Vec<f64>,
        level: f64,
        steps: Option<usize>,
        seed: u64,
    ) -> PyResult<String> {
        let options = LinearOptions { level, steps, seed };
        to_json("linearised", &self.run(py, |fitted, _| fitted.linearise(&x, &u, &options))?)
    }

    /// The state that stays where it is near `x`, by default the middle of the data, as JSON.
    fn equilibrium(
        &self,
        py: Python<'_>,
        x: Option<Vec<f64>>,
        u: Vec<f64>,
        level: f64,
        seed: u64,
    ) -> PyResult<String> {
        let options = LinearOptions { level, seed, ..LinearOptions::default() };
        let found = self.run(py, |fitted, _| {
            let x = x.unwrap_or_else(|| fitted.middle().0);
            fitted.equilibrium(&x, &u, &options)
        });
        to_json("equilibrium", &found?)
    }

    /// Smallest and largest value of each component of (x, u) that the paths visited.
    fn visited(&self) -> Vec<(f64, f64)> {
        self.fitted.posterior.visited()
    }
}

/// Mean and variance of a distilled function at points, and the Jacobian of the mean.
#[pyfunction]
pub(crate) fn evaluate_distilled<'py>(
    py: Python<'py>,
    distilled: &str,
    x: PyReadonlyArray2<'py, f64>,
    u: PyReadonlyArray2<'py, f64>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray3<f64>>)> {
    let mut function = DistilledFunction::new(&from_json("distilled", distilled)?).map_err(to_python)?;
    let (x, u) = (rows(&x), rows(&u));
    let (n, n_x) = (x.len(), x.first().map_or(0, Vec::len));
    let n_z = n_x + u.first().map_or(0, Vec::len);
    let (mut mean, mut variance) = (vec![0.0; n * n_x], vec![0.0; n * n_x]);
    let mut jacobian = vec![0.0; n * n_x * n_z];
    for (i, x) in x.iter().enumerate() {
        let u = u.get(i).map_or(&[][..], Vec::as_slice);
        let range = i * n_x..(i + 1) * n_x;
        function.evaluate(x, u, &mut mean[range.clone()], &mut variance[range]);
        function.jacobian(x, u, &mut jacobian[i * n_x * n_z..(i + 1) * n_x * n_z]);
    }
    let jacobian = PyArray1::from_vec(py, jacobian).reshape([n, n_x, n_z])?;
    Ok((matrix(py, mean, n, n_x)?, matrix(py, variance, n, n_x)?, jacobian))
}
