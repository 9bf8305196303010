//! The building blocks for researchers: the paper's densities and filters with numbers for all parameters.

use std::sync::{Arc, Mutex, PoisonError};

use gpssm::dynamics::{BasisChoice, FunctionPrior, HilbertChoice, ProcessNoise};
use gpssm::function::{ScalarFunction, UserFunction};
use gpssm::linalg::small;
use gpssm::mcmc::{SliceLimits, slice_update as update};
use gpssm::random::{Purpose, stream};
use gpssm::scaling::Scaling;
use gpssm::sensor::{BoundSensor, LinearGaussian, SensorNoise, UserSensor};
use gpssm::smc::{FilterOptions, FilterOutcome};
use gpssm::state_space::{BoundInitial, SharedPairs};
use gpssm::{Functions, Points, smc, state_space};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rand::rngs::ChaCha8Rng;
use serde::Deserialize;

use crate::arrays::{flat, matrix, rows, sequence, stack};
use crate::callback::{Callable, Failure, LogDensity, PythonInitial, PythonSensor};
use crate::error::{from_json, to_python, value_error};
use crate::kernels::{PythonKernels, with_kernels, with_numbers};

/// A scalar function with numbers; a Python function is named by its place in a list.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FunctionNumbers {
    Zero,
    Component { index: usize },
    Linear { weights: Vec<f64>, offset: f64 },
    Callable { index: usize },
}

/// Python functions with a word on whether they want the inputs.
type Callables = Vec<(Py<PyAny>, bool)>;

struct Registry<'a> {
    callables: &'a Callables,
    n_x: usize,
    failure: &'a Arc<Failure>,
}

impl Registry<'_> {
    fn callable(&self, py: Python<'_>, index: usize, name: &str) -> PyResult<Callable> {
        let Some((function, wants_u)) = self.callables.get(index) else {
            return Err(value_error(format!("{name}: there is no function number {index}")));
        };
        Ok(Callable::new(name, function.clone_ref(py), *wants_u, self.n_x, self.failure))
    }

    fn function(&self, py: Python<'_>, numbers: FunctionNumbers, name: &str) -> PyResult<ScalarFunction> {
        Ok(match numbers {
            FunctionNumbers::Zero => ScalarFunction::Zero,
            FunctionNumbers::Component { index } => ScalarFunction::Component(index),
            FunctionNumbers::Linear { weights, offset } => ScalarFunction::Linear { weights, offset },
            FunctionNumbers::Callable { index } => ScalarFunction::User {
                function: UserFunction {
                    function: Arc::new(self.callable(py, index, name)?),
                    parameters: Vec::new(),
                    scaling: None,
                },
                shift: 0.0,
                scale: 1.0,
            },
        })
    }
}

/// The prior over f.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum PriorNumbers {
    Exact,
    Fic { points: Vec<Vec<f64>> },
    Dtc { points: Vec<Vec<f64>> },
    Hilbert { center: Vec<f64>, half_width: Vec<f64>, functions: usize },
}

impl PriorNumbers {
    fn build(self) -> FunctionPrior {
        let points = |rows: Vec<Vec<f64>>| {
            Arc::new(Points::from_rows(rows.first().map_or(0, Vec::len), rows.iter().map(Vec::as_slice)))
        };
        FunctionPrior::Collapsed(match self {
            Self::Exact => return FunctionPrior::Exact,
            Self::Fic { points: rows } => BasisChoice::Fic(points(rows)),
            Self::Dtc { points: rows } => BasisChoice::Dtc(points(rows)),
            Self::Hilbert { center, half_width, functions } => {
                BasisChoice::Hilbert(Arc::new(HilbertChoice::new(center, half_width, functions)))
            }
        })
    }
}

/// x_{t+1} = f(x_t, u_t) + v_t with f integrated out.
#[pyclass(frozen)]
pub(crate) struct Transition {
    transition: gpssm::dynamics::Transition,
    failure: Arc<Failure>,
}

#[pymethods]
impl Transition {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "called by the Python layer alone, all by name")]
    fn new(
        py: Python<'_>,
        kernels: &str,
        user_kernels: PythonKernels,
        n_u: usize,
        means: &str,
        callables: Callables,
        q: PyReadonlyArray2<'_, f64>,
        lags: Vec<Option<usize>>,
        prior: &str,
    ) -> PyResult<Self> {
        let failure = Arc::new(Failure::default());
        let n_x = lags.len();
        let kernels =
            with_numbers(kernels, n_x, n_u, &with_kernels(py, Functions::new(), &user_kernels, &failure))?;
        let registry = Registry { callables: &callables, n_x, failure: &failure };
        let means = from_json::<Vec<FunctionNumbers>>("means", means)?;
        let means = means.into_iter().map(|mean| registry.function(py, mean, "mean"));
        let q = flat(&q);
        let is_diagonal = (0..q.len()).all(|i| i / n_x == i % n_x || q[i] == 0.0);
        let noise = if is_diagonal && q.len() == n_x * n_x {
            ProcessNoise::Diagonal((0..n_x).map(|d| q[d * n_x + d]).collect())
        } else {
            ProcessNoise::Full(q)
        };
        let prior = from_json::<PriorNumbers>("prior", prior)?.build();
        let transition = gpssm::dynamics::Transition {
            kernels,
            means: means.collect::<PyResult<_>>()?,
            noise,
            lags,
            prior,
        };
        Ok(Self { transition, failure })
    }

    /// Mean and covariance of x_t given x_{0:t-1}, eq. 3.
    fn one_step<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        u: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (x, u) = (rows(&x), rows(&u));
        let next = self.finish(py.detach(|| self.transition.one_step(&x, &u)))?;
        let n_x = self.transition.n_x();
        Ok((PyArray1::from_vec(py, next.mean), matrix(py, next.covariance, n_x, n_x)?))
    }

    /// log p(x_{1:T} | x_0), eq. 4.
    fn log_joint(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f64>,
        u: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<f64> {
        let (x, u) = (rows(&x), rows(&u));
        self.finish(py.detach(|| self.transition.log_joint(&x, &u)))
    }

    /// log p(x~_{t:T} | x_{0:t-1}) of several prefixes, eq. 8.
    fn ancestor_log_weights<'py>(
        &self,
        py: Python<'py>,
        prefixes: PyReadonlyArray3<'py, f64>,
        future: PyReadonlyArray2<'py, f64>,
        u: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (prefixes, future, u) = (stack(&prefixes), rows(&future), rows(&u));
        let log_w = py.detach(|| self.transition.ancestor_log_weights(&prefixes, &future, &u));
        Ok(PyArray1::from_vec(py, self.finish(log_w)?))
    }

    /// Mean (n, n_x) and covariance (n n_x, n n_x) of f at test points given a path, eq. 12.
    fn f_posterior<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        u: PyReadonlyArray2<'py, f64>,
        x_star: PyReadonlyArray2<'py, f64>,
        u_star: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (x, u, x_star, u_star) = (rows(&x), rows(&u), rows(&x_star), rows(&u_star));
        let f = self.finish(py.detach(|| self.transition.f_posterior(&x, &u, &x_star, &u_star)))?;
        let (n, n_x) = (x_star.len(), self.transition.n_x());
        Ok((matrix(py, f.mean, n, n_x)?, matrix(py, f.covariance, n * n_x, n * n_x)?))
    }
}

impl Transition {
    fn finish<T>(&self, outcome: Result<T, gpssm::Error>) -> PyResult<T> {
        self.failure.check()?;
        outcome.map_err(to_python)
    }
}

/// A stream of random numbers.
#[pyclass(frozen)]
pub(crate) struct Random(Mutex<ChaCha8Rng>);

#[pymethods]
impl Random {
    #[new]
    fn new(seed: u64) -> Self {
        Self(Mutex::new(stream(seed, 0, Purpose::States, 0, 0)))
    }
}

/// How the states are seen.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum SensorNumbers {
    LinearGaussian { weights: Vec<f64>, offset: Vec<f64>, r: Vec<f64> },
    User { log_density: usize, sample: Option<usize> },
}

/// p(x_0).
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum InitialNumbers {
    Gaussian { mean: Vec<f64>, covariance: Vec<f64> },
    Fixed { x: Vec<f64> },
    User { log_density: usize, sample: usize },
}

/// A state-space model with numbers: what the filters run on.
#[pyclass(frozen)]
pub(crate) struct StateSpace {
    model: state_space::StateSpace,
    failure: Arc<Failure>,
}

#[pymethods]
impl StateSpace {
    #[new]
    fn new(
        py: Python<'_>,
        transition: &Transition,
        sensor: &str,
        initial: &str,
        callables: Callables,
    ) -> PyResult<Self> {
        let failure = Arc::clone(&transition.failure);
        let n_x = transition.transition.n_x();
        let registry = Registry { callables: &callables, n_x, failure: &failure };
        let sensor = match from_json("sensor", sensor)? {
            SensorNumbers::LinearGaussian { weights, offset, r } => {
                let n_y = offset.len();
                let is_diagonal = (0..r.len()).all(|i| i / n_y == i % n_y || r[i] == 0.0);
                if !small::cholesky(&mut r.clone(), n_y) {
                    return Err(value_error("R: not positive definite"));
                }
                let noise = if is_diagonal {
                    SensorNoise::Diagonal((0..n_y).map(|k| r[k * n_y + k]).collect())
                } else {
                    SensorNoise::Full(r)
                };
                BoundSensor::LinearGaussian(LinearGaussian { weights, offset, noise, n_x })
            }
            SensorNumbers::User { log_density, sample } => {
                let sample = sample.map(|index| registry.callable(py, index, "sensor sample")).transpose()?;
                let log_density =
                    LogDensity::Python(registry.callable(py, log_density, "sensor log density")?);
                let sensor = Arc::new(PythonSensor { log_density, sample });
                BoundSensor::User(UserSensor { sensor, parameters: Vec::new(), scaling: None })
            }
        };
        let initial = match from_json("initial", initial)? {
            InitialNumbers::Gaussian { mean, covariance } => {
                let mut chol = covariance;
                if !small::cholesky(&mut chol, n_x) {
                    return Err(value_error("initial: the covariance is not positive definite"));
                }
                BoundInitial::Gaussian { mean, chol }
            }
            InitialNumbers::Fixed { x } => BoundInitial::Fixed(x),
            InitialNumbers::User { log_density, sample } => {
                let log_density = registry.callable(py, log_density, "initial log density")?;
                let sample = registry.callable(py, sample, "initial sample")?;
                let density = Arc::new(PythonInitial { log_density, sample });
                BoundInitial::User { density, scaling: Arc::new(Scaling::identity(n_x, 0, 0)) }
            }
        };
        let model = state_space::StateSpace { transition: transition.transition.clone(), sensor, initial };
        Ok(Self { model, failure })
    }

    /// One pass of the particle filter, or of the conditional one if there is a reference: a path, the log
    /// evidence, and how many predictive covariances were clamped.
    #[pyo3(signature = (y, u, x_ref, n_particles, resampling, proposal, random))]
    #[expect(clippy::too_many_arguments, reason = "called by the Python layer alone, all by name")]
    fn filter<'py>(
        &self,
        py: Python<'py>,
        y: PyReadonlyArray2<'py, f64>,
        u: Option<PyReadonlyArray2<'py, f64>>,
        x_ref: Option<PyReadonlyArray2<'py, f64>>,
        n_particles: usize,
        resampling: &str,
        proposal: &str,
        random: &Random,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, f64, u64)> {
        let transition = &self.model.transition;
        let n_x = transition.n_x();
        let sequence = sequence(&y, u.as_ref())?;
        let options = FilterOptions {
            n_particles,
            resampling: from_json("resampling", &format!("\"{resampling}\""))?,
            proposal: from_json("proposal", &format!("\"{proposal}\""))?,
        };
        // A path of one state is checked against the transition and has no density of its own.
        let inputs: Vec<Vec<f64>> = (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
        let inputs = if sequence.n_u() == 0 { Vec::new() } else { inputs };
        transition.one_step(&[vec![0.0; n_x]], &inputs).map_err(to_python)?;
        let x_ref = x_ref.map(|x| flat(&x));
        let outcome: Result<FilterOutcome, _> = py.detach(|| {
            let mut rng = random.0.lock().unwrap_or_else(PoisonError::into_inner);
            let shared = SharedPairs::none(n_x, sequence.n_u());
            match &x_ref {
                Some(x_ref) => {
                    smc::conditional_filter(&self.model, &sequence, &shared, options, x_ref, &mut *rng)
                }
                None => smc::particle_filter(&self.model, &sequence, &shared, options, &mut *rng),
            }
        });
        self.failure.check()?;
        let outcome = outcome.map_err(|error| value_error(error.to_string()))?;
        Ok((
            matrix(py, outcome.path, sequence.n_rows(), n_x)?,
            outcome.log_marginal_likelihood,
            outcome.numerics.clamped,
        ))
    }
}

/// One slice update of a scalar (Neal 2003).
#[pyfunction]
pub(crate) fn slice_update<'py>(
    py: Python<'py>,
    x0: f64,
    log_density: Bound<'py, PyAny>,
    width: f64,
    random: &Random,
    max_step_out: u32,
    max_shrink: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let mut failure = None;
    let mut density = |x: f64| {
        if failure.is_some() {
            return f64::NAN;
        }
        log_density.call1((x,)).and_then(|value| value.extract::<f64>()).unwrap_or_else(|error| {
            failure = Some(error);
            f64::NAN
        })
    };
    let at_x0 = density(x0);
    let mut rng = random.0.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = SliceLimits { max_step_out, max_shrink };
    let outcome = update(x0, at_x0, width, limits, &mut density, &mut *rng);
    if let Some(error) = failure {
        return Err(error);
    }
    let result = PyDict::new(py);
    result.set_item("x", outcome.x)?;
    result.set_item("log_density", outcome.log_density)?;
    result.set_item("evaluations", outcome.evaluations)?;
    result.set_item("failures", outcome.failures)?;
    result.set_item("capped", outcome.capped)?;
    result.set_item("interval", outcome.interval)?;
    Ok(result)
}

/// Numbers of `k` points chosen by kernel herding, in the order of choice.
#[pyfunction]
pub(crate) fn kernel_herding(kernel: PyReadonlyArray2<'_, f64>, weights: Vec<f64>, k: usize) -> Vec<usize> {
    gpssm::posterior::kernel_herding(&flat(&kernel), &weights, k)
}
