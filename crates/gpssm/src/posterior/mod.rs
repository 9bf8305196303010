//! Using what was learned: weighted draws (theta, x_{0:T}), each a Gaussian process posterior of f, together a
//! mixture (section 5 of the paper, eq. 11 and 12).
//!
//! - [`Posterior`]: the draws, with methods that predict, simulate, filter, smooth, linearise, thin and distil
//! - [`OnlineFilter`]: filtering, one observation at a time
//! - [`sample_prior`], [`simulate_prior`]: parameters, function, states and data from the prior
//! - [`compare()`]: which of several models predicts a record best
//! - [`Distilled`]: one sparse Gaussian process in place of all draws
//! - [`Ensemble`], [`GaussianMixture`]: quantiles, CRPS and PIT of samples; moments, quantiles, density and CRPS of a mixture
//! - [`Warning`]: what a user should know of a result
//!
//! Everything is in original units, deterministic given its seed, and carries its uncertainty.

mod belief;
pub(crate) mod compare;
mod density;
pub(crate) mod distil;
pub(crate) mod distilled;
pub(crate) mod distilled_sensor;
pub(crate) mod drawn;
pub(crate) mod ensemble;
pub(crate) mod features;
pub(crate) mod filter;
pub(crate) mod function;
mod linear_head;
mod linearise;
mod mean_function;
pub(crate) mod mixture;
pub(crate) mod observe;
pub(crate) mod online;
pub(crate) mod paths;
pub(crate) mod predict;
mod prior;
pub(crate) mod simulate;
pub(crate) mod thin;
pub(crate) mod warning;

pub use self::compare::{Ranked, compare, rank};
pub use self::density::PointwiseLogLikelihood;
pub use self::distil::judge::DistilComparison;
pub use self::distil::scenarios::Scenario;
pub use self::distil::{DistilLoss, DistilOptions};
pub use self::distilled::{Distilled, DistilledFunction, DistilledRows, DistilledState, SparseFunction};
pub use self::distilled_sensor::{
    BoundFormula, DistilledInitial, DistilledOutput, DistilledPredictor, DistilledSensor, LinearSensor,
    Named, OutputDensity,
};
pub use self::ensemble::{Ensemble, Intervals, crps, quantile};
pub use self::filter::{Filtered, HorizonPrediction, Smoothed};
pub use self::linearise::{Equilibrium, LinearDraw};
pub use self::mixture::{GaussianMixture, standard_cdf, standard_quantile};
pub use self::online::{Estimate, OnlineFilter, OnlineOptions};
pub use self::predict::{Prediction, Target};
pub use self::prior::{PriorSample, prior_theta, sample_prior, simulate_prior};
pub use self::simulate::{Initial, SimulateOptions, Simulation};
pub use self::thin::{ThinLoss, ThinMethod, kernel_herding};
pub use self::warning::Warning;

use std::sync::{Arc, OnceLock};

use function::FunctionPosterior;
use rand::rngs::ChaCha8Rng;

use crate::error::Error;
use crate::mcmc::sink::ChainDraws;
use crate::model::compile::Problem;
use crate::model::dynamics::DynamicsSpec;
use crate::points::Points;
use crate::random::{Purpose, stream};
use crate::scaling::Scaling;

/// One draw, in original units.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedDraw {
    /// Hyper-parameters, in the order of the problem's table.
    pub theta: Vec<f64>,
    /// x_{0:T} of every sequence, row-major (t, d).
    pub paths: Vec<Vec<f64>>,
    /// Its share; the weights of all draws sum to one.
    pub weight: f64,
}

/// What was learned: a problem and weighted draws of it.
///
/// ```
/// use gpssm::posterior::Target;
/// use gpssm::{Functions, MemorySink, Model, Posterior, Problem, Sequence, Settings, sample};
///
/// let y: Vec<f64> = (0..20).map(|t| 0.8f64.powi(t)).collect();
/// let record = Sequence::scalar(&y, None)?;
/// let problem = Problem::new(Model::observed(1, 0), &Functions::new(), record.into())?;
/// let settings = Settings { chains: 1, tune: 10, draws: Some(10), ..Settings::default() };
/// let sink = MemorySink::new();
/// sample(&problem, &settings, &sink, &|_| true)?;
///
/// // The state after x = 0.5, with the uncertainty of f and of the process noise.
/// let posterior = Posterior::new(&problem, &sink.into_chains())?;
/// let next = posterior.predict(&[vec![0.5]], &[], Target::NextState)?;
/// assert!(next.sd(0, 0) > 0.0);
/// # Ok::<(), gpssm::Error>(())
/// ```
///
/// The factor of a draw is made when it is first needed and then kept: n^2 / 2 numbers for each group of
/// dimensions with an exact Gaussian process over n pairs (n p rows with full Q), M^2 / 2 for M weights of
/// a finite basis; see [`Posterior::memory_bytes`].
#[derive(Debug)]
pub struct Posterior {
    problem: Problem,
    draws: Vec<WeightedDraw>,
    functions: Vec<OnceLock<Result<Arc<FunctionPosterior>, Error>>>,
}

impl Posterior {
    /// All draws of all chains, with equal weights. A problem with a finite basis must carry the one that the
    /// run reported ([`Problem::with_basis`]).
    pub fn new(problem: &Problem, chains: &[ChainDraws]) -> Result<Self, Error> {
        let draws = chains.iter().flat_map(|chain| chain.theta.iter().zip(&chain.paths));
        let draws = draws.map(|(theta, paths)| WeightedDraw {
            theta: theta.clone(),
            paths: paths.clone(),
            weight: 1.0,
        });
        Self::from_draws(problem, draws.collect())
    }

    /// Draws with weights that need not sum to one.
    pub fn from_draws(problem: &Problem, mut draws: Vec<WeightedDraw>) -> Result<Self, Error> {
        if draws.is_empty() {
            return Err(Error::data("a posterior needs at least one draw"));
        }
        if problem.model().dynamics != DynamicsSpec::Exact && problem.basis().is_none() {
            return Err(Error::model(
                "dynamics",
                "the finite basis of the run is missing: take it from the run's report (with_basis)",
            ));
        }
        let (n_x, n_theta) = (problem.n_x(), problem.table().len());
        let sequences = problem.record().sequences();
        for (j, draw) in draws.iter().enumerate() {
            let wrong = |message: String| Err(Error::data(format!("draw {j}: {message}")));
            if draw.theta.len() != n_theta {
                return wrong(format!("{} hyper-parameters, the model has {n_theta}", draw.theta.len()));
            }
            if draw.paths.len() != sequences.len() {
                return wrong(format!("{} paths for {} sequences", draw.paths.len(), sequences.len()));
            }
            for (s, (path, sequence)) in draw.paths.iter().zip(sequences).enumerate() {
                if path.len() != n_x * sequence.n_rows() {
                    return wrong(format!(
                        "the path of sequence {s} has {} numbers, not {} rows of {n_x} states",
                        path.len(),
                        sequence.n_rows()
                    ));
                }
            }
            if draw.theta.iter().chain(draw.paths.iter().flatten()).any(|value| !value.is_finite()) {
                return wrong("holds numbers that are not finite".into());
            }
            if !(draw.weight >= 0.0 && draw.weight.is_finite()) {
                return wrong(format!("weight {} is not possible", draw.weight));
            }
        }
        let total: f64 = draws.iter().map(|draw| draw.weight).sum();
        if total.is_nan() || total <= 0.0 {
            return Err(Error::data("all draws have weight zero"));
        }
        draws.iter_mut().for_each(|draw| draw.weight /= total);
        let functions = draws.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { problem: problem.clone(), draws, functions })
    }

    /// Model, record and basis.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The draws; their weights sum to one.
    pub fn draws(&self) -> &[WeightedDraw] {
        &self.draws
    }

    /// Number of draws.
    pub fn len(&self) -> usize {
        self.draws.len()
    }

    /// Never: a posterior has at least one draw.
    pub fn is_empty(&self) -> bool {
        self.draws.is_empty()
    }

    /// Memory of all factors, once they are made.
    pub fn memory_bytes(&self) -> usize {
        let transition = self.problem.bind_transition(&self.draws[0].theta);
        let n = self.problem.record().n_transitions();
        let numbers: usize = transition
            .blocks()
            .iter()
            .map(|dims| {
                let rows = dims.len() * self.problem.basis().map_or(n, |basis| basis.n_functions());
                rows * rows / 2 + 2 * n * dims.len()
            })
            .sum();
        8 * self.len() * numbers
    }

    /// The posterior of f given draw `j`, made once.
    pub(crate) fn function(&self, j: usize) -> Result<&FunctionPosterior, Error> {
        self.made(j).map(|function| &**function)
    }

    /// The same, for those that outlive this posterior.
    pub(crate) fn shared_function(&self, j: usize) -> Result<Arc<FunctionPosterior>, Error> {
        self.made(j).map(Arc::clone)
    }

    fn made(&self, j: usize) -> Result<&Arc<FunctionPosterior>, Error> {
        let draw = &self.draws[j];
        let made = self.functions[j]
            .get_or_init(|| FunctionPosterior::new(&self.problem, &draw.theta, &draw.paths).map(Arc::new));
        made.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn weights(&self) -> Vec<f64> {
        self.draws.iter().map(|draw| draw.weight).collect()
    }

    pub(crate) fn n_x(&self) -> usize {
        self.problem.n_x()
    }

    pub(crate) fn n_u(&self) -> usize {
        self.problem.model().n_u
    }

    pub(crate) fn n_y(&self) -> usize {
        self.problem.model().n_y
    }

    /// `x1`, `u2`, ...: component `c` of z = (x, u).
    pub(crate) fn component_name(&self, c: usize) -> String {
        let n_x = self.n_x();
        if c < n_x { format!("x{}", c + 1) } else { format!("u{}", c - n_x + 1) }
    }
}

/// Points z = (x, u) in internal units.
pub(crate) fn to_internal(scaling: &Scaling, z: &Points) -> Points {
    let mut internal = z.clone();
    for c in 0..z.n_components() {
        let (shift, scale) = (scaling.z_shift(c), scaling.z_scale(c));
        internal.column_mut(c).iter_mut().for_each(|value| *value = (*value - shift) / scale);
    }
    internal
}

/// What a random stream is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Simulate = 1,
    Prior = 2,
    Filter = 3,
    Smooth = 4,
    Horizon = 5,
    Thin = 6,
    Distilled = 7,
    Replicate = 8,
    Linear = 9,
    Scenarios = 10,
}

/// The stream of one path, function or row.
pub(crate) fn stream_for(seed: u64, what: Stream, index: u64) -> ChaCha8Rng {
    stream(seed, what as u32, Purpose::Posterior, 0, index)
}

/// `n` indices in ascending order, as often as their weights say: at the points (i + 1/2) / n of the cumulative weights.
pub(crate) fn allocate(weights: &[f64], n: usize) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let last = weights.iter().rposition(|w| *w > 0.0).unwrap_or(0);
    let (mut j, mut cumulative) = (0, weights[0]);
    (0..n)
        .map(|i| {
            let point = total * (i as f64 + 0.5) / n as f64;
            while j < last && (point >= cumulative || weights[j] == 0.0) {
                j += 1;
                cumulative += weights[j];
            }
            j
        })
        .collect()
}
