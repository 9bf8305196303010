//! A distilled model: plain data with a version, and its evaluation in microseconds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::distil::DistilLoss;
use super::distil::scenarios::Scenario;
use super::distilled_sensor::{DistilledInitial, DistilledSensor};
use super::drawn::TransitionFunction;
use super::online::{FunctionFilter, OnlineFilter};
use super::{Stream, stream_for};
use crate::dynamics::predictions::Predictions;
use crate::error::Error;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::simd::{Vectorised, dispatch, dot, dot_inline};
use crate::linalg::small;
use crate::model::compile::Problem;
use crate::points::Points;
use crate::scaling::Affine;
use crate::smc::proposal::Proposal;

/// The version of the data that this library writes.
pub(crate) const DISTILLED_VERSION: u32 = 2;

/// One sparse Gaussian process for each state. Inputs and outputs of its functions are in original units; what is stored
/// is in internal units, original value = shift + scale * internal value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distilled {
    /// Version of this layout.
    pub version: u32,
    /// States.
    pub n_x: usize,
    /// Inputs.
    pub n_u: usize,
    /// Outputs.
    #[serde(default)]
    pub n_y: usize,
    /// Names, as in the record; physical units are part of them where the record has them so.
    #[serde(default)]
    pub state_names: Vec<String>,
    /// Names of inputs, past values among them.
    #[serde(default)]
    pub input_names: Vec<String>,
    /// Names of outputs.
    #[serde(default)]
    pub output_names: Vec<String>,
    /// How rows of a record become rows of the model.
    #[serde(default)]
    pub rows: DistilledRows,
    /// Units of the states.
    pub x_units: Affine,
    /// Units of the inputs.
    pub u_units: Affine,
    /// Units of the outputs.
    #[serde(default = "no_units")]
    pub y_units: Affine,
    /// The functions.
    pub states: Vec<DistilledState>,
    /// Process noise covariance averaged over the draws, row-major, original units.
    pub process_noise: Vec<f64>,
    /// How the states are seen.
    #[serde(default)]
    pub sensor: Option<DistilledSensor>,
    /// The first state; none where it is a user's density.
    #[serde(default)]
    pub initial: Option<DistilledInitial>,
    /// Smallest and largest value of each component of (x, u) along the training paths, original units.
    #[serde(default)]
    pub visited: Vec<(f64, f64)>,
    /// Posterior functions on the same inducing inputs.
    #[serde(default)]
    pub scenarios: Vec<Scenario>,
    /// Names of theta.
    #[serde(default)]
    pub theta_names: Vec<String>,
    /// Mean of theta, for sensor and initial state of a filter.
    pub theta: Vec<f64>,
    /// What was lost against the mixture.
    pub loss: DistilLoss,
}

fn no_units() -> Affine {
    Affine::identity(0)
}

/// Rows of a record and rows of the model: in row t of the model stand the measured outputs of row t k and, for each measured
/// input, its values `delay` - 1, `delay`, ..., `delay` - 1 + `input_lags` rows of the model before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DistilledRows {
    /// Time from one row of the model to the next, if it is known.
    pub sampling_time: Option<f64>,
    /// Unit of the sampling time, if it is known: seconds of time stamps.
    pub time_unit: Option<String>,
    /// Rows of the record for each row of the model, k.
    pub every: usize,
    /// Past values of each input.
    pub input_lags: usize,
    /// Rows of the model from an input to the first state that it acts on.
    pub delay: usize,
}

impl Default for DistilledRows {
    fn default() -> Self {
        Self { sampling_time: None, time_unit: None, every: 1, input_lags: 0, delay: 1 }
    }
}

/// One state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum DistilledState {
    /// A copy of another state one step before.
    Lag {
        /// Which.
        of: usize,
    },
    /// A sparse Gaussian process.
    Sparse(Box<SparseFunction>),
}

/// f(z) = offset + slopes . z + phi(z) . w, phi(z) = L^{-1} k(U, z), w ~ N(weights, S S'); and an own variance k(z, z) - |phi|^2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseFunction {
    /// Constant term.
    pub offset: f64,
    /// One for each component of z = (x, u).
    pub slopes: Vec<f64>,
    /// k.
    pub kernel: Kernel,
    /// U, row-major (input, component).
    pub inducing: Vec<f64>,
    /// Number of inducing inputs.
    pub n_inducing: usize,
    /// Components of z.
    pub n_components: usize,
    /// L, lower triangle by rows.
    pub chol: Vec<f64>,
    /// Mean of w.
    pub weights: Vec<f64>,
    /// L^{-T} weights: mean = offset + slopes . z + k(z, U) . coefficients.
    pub coefficients: Vec<f64>,
    /// S, lower triangle by rows.
    pub variance_factor: Vec<f64>,
}

impl Distilled {
    /// Inducing inputs of the state that has most.
    pub fn largest_size(&self) -> usize {
        let size = |state: &DistilledState| match state {
            DistilledState::Sparse(function) => function.n_inducing,
            DistilledState::Lag { .. } => 0,
        };
        self.states.iter().map(size).max().unwrap_or(0)
    }
}

impl SparseFunction {
    fn check(&self, d: usize, n_z: usize) -> Result<(), Error> {
        let m = self.n_inducing;
        let triangle = m * (m + 1) / 2;
        let fits = self.n_components == n_z
            && self.slopes.len() == n_z
            && self.inducing.len() == m * n_z
            && self.chol.len() == triangle
            && self.variance_factor.len() == triangle
            && self.weights.len() == m
            && self.coefficients.len() == m
            && self.kernel.parts().all(|part| part.check(n_z).is_ok());
        let numbers =
            self.inducing.iter().chain(&self.chol).chain(&self.variance_factor).chain(&self.weights);
        match fits && numbers.chain(&self.coefficients).chain(&self.slopes).all(|v| v.is_finite()) {
            true => Ok(()),
            false => {
                Err(Error::data(format!("distilled model, state {}: sizes or numbers do not fit", d + 1)))
            }
        }
    }
}

/// One function with room for its evaluation.
#[derive(Clone, Debug)]
pub(crate) struct SparseEvaluator {
    function: SparseFunction,
    points: Points,
    phi: Vec<f64>,
    scratch: Scratch,
}

/// Forward substitution with packed rows, then |S' phi|^2: both in one dispatched loop.
struct ExplainedVariance<'a> {
    chol: &'a [f64],
    variance_factor: &'a [f64],
    phi: &'a mut [f64],
    room: &'a mut [f64],
}

impl Vectorised for ExplainedVariance<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: pulp::Simd>(self, simd: S) -> f64 {
        let mut from = 0;
        for i in 0..self.phi.len() {
            let row = &self.chol[from..from + i];
            let sum = self.phi[i] - dot_inline(simd, row, &self.phi[..i]);
            self.phi[i] = sum / self.chol[from + i];
            from += i + 1;
        }
        // S' phi, row by row of S.
        self.room.fill(0.0);
        let mut from = 0;
        for (i, phi) in self.phi.iter().enumerate() {
            for (sum, s) in self.room[..=i].iter_mut().zip(&self.variance_factor[from..]) {
                *sum += s * phi;
            }
            from += i + 1;
        }
        dot_inline(simd, self.room, self.room)
    }
}

impl SparseEvaluator {
    pub(crate) fn new(function: &SparseFunction) -> Self {
        let m = function.n_inducing;
        let points =
            Points::from_rows(function.n_components, function.inducing.chunks_exact(function.n_components));
        Self { function: function.clone(), points, phi: vec![0.0; 2 * m], scratch: Scratch::default() }
    }

    /// Mean and variance of f at z, internal units.
    pub(crate) fn evaluate(&mut self, z: &[f64]) -> (f64, f64) {
        let f = &self.function;
        let m = f.n_inducing;
        let (phi, room) = self.phi.split_at_mut(m);
        f.kernel.row(&self.points, 0..m, z, phi, &mut self.scratch);
        let known =
            dispatch(ExplainedVariance { chol: &f.chol, variance_factor: &f.variance_factor, phi, room });
        let linear = f.offset + f.slopes.iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
        let own = (f.kernel.diagonal(z) - dot(phi, phi)).max(0.0);
        (linear + dot(phi, &f.weights), own + known)
    }

    /// The linear part and k(z, U) . coefficients, internal units.
    fn with_coefficients(&mut self, z: &[f64], coefficients: &[f64]) -> f64 {
        let f = &self.function;
        let k = &mut self.phi[..f.n_inducing];
        f.kernel.row(&self.points, 0..f.n_inducing, z, k, &mut self.scratch);
        f.offset + f.slopes.iter().zip(z).map(|(a, z)| a * z).sum::<f64>() + dot(k, coefficients)
    }

    /// d mean / d z, internal units.
    fn gradient(&self, z: &[f64], out: &mut [f64]) {
        let f = &self.function;
        out.copy_from_slice(&f.slopes);
        for (u, c) in f.inducing.chunks_exact(f.n_components).zip(&f.coefficients) {
            f.kernel.add_gradient(z, u, *c, out);
        }
    }
}

/// A distilled model ready for evaluation: no allocation after this.
///
/// Cost of mean and variance for m inducing inputs: m kernel values and 3 m^2 / 2 multiply-adds for each state.
#[derive(Clone, Debug)]
pub struct DistilledFunction {
    n_x: usize,
    x_units: Affine,
    u_units: Affine,
    states: Vec<Result<SparseEvaluator, usize>>,
    z: Vec<f64>,
    gradient: Vec<f64>,
}

impl DistilledFunction {
    /// Checks version and sizes.
    pub fn new(distilled: &Distilled) -> Result<Self, Error> {
        if distilled.version != DISTILLED_VERSION {
            return Err(Error::data(format!(
                "distilled model of version {}, but this library reads version {DISTILLED_VERSION}: distil the run again",
                distilled.version
            )));
        }
        let (n_x, n_u) = (distilled.n_x, distilled.n_u);
        let units = |affine: &Affine, n: usize| affine.shift.len() == n && affine.scale.len() == n;
        if distilled.states.len() != n_x
            || distilled.process_noise.len() != n_x * n_x
            || !units(&distilled.x_units, n_x)
            || !units(&distilled.u_units, n_u)
        {
            return Err(Error::data("distilled model: states, units and noise do not fit together"));
        }
        let mut states = Vec::with_capacity(n_x);
        for (d, state) in distilled.states.iter().enumerate() {
            states.push(match state {
                DistilledState::Lag { of } if *of < n_x => Err(*of),
                DistilledState::Lag { of } => {
                    return Err(Error::data(format!(
                        "distilled model, state {}: there is no state {of}",
                        d + 1
                    )));
                }
                DistilledState::Sparse(function) => {
                    function.check(d, n_x + n_u)?;
                    Ok(SparseEvaluator::new(function))
                }
            });
        }
        let (x_units, u_units) = (distilled.x_units.clone(), distilled.u_units.clone());
        for (k, scenario) in distilled.scenarios.iter().enumerate() {
            let fits = scenario.coefficients.len() == n_x
                && scenario.process_noise.len() == n_x * n_x
                && distilled.states.iter().zip(&scenario.coefficients).all(|(state, c)| match state {
                    DistilledState::Sparse(function) => c.len() == function.n_inducing,
                    DistilledState::Lag { .. } => c.is_empty(),
                });
            if !fits {
                return Err(Error::data(format!("distilled model, scenario {}: sizes do not fit", k + 1)));
            }
        }
        Ok(Self { n_x, x_units, u_units, states, z: vec![0.0; n_x + n_u], gradient: vec![0.0; n_x + n_u] })
    }

    /// The function of a scenario of the model that this was made from at (x, u), original units.
    pub fn scenario(&mut self, scenario: &Scenario, x: &[f64], u: &[f64], next: &mut [f64]) {
        self.set_point(x, u);
        for (d, state) in self.states.iter_mut().enumerate() {
            let value = match state {
                Ok(evaluator) => evaluator.with_coefficients(&self.z, &scenario.coefficients[d]),
                Err(of) => self.z[*of],
            };
            next[d] = self.x_units.to_original(d, value);
        }
    }

    fn set_point(&mut self, x: &[f64], u: &[f64]) {
        for (d, x) in x.iter().enumerate().take(self.n_x) {
            self.z[d] = self.x_units.to_internal(d, *x);
        }
        for (c, u) in u.iter().enumerate().take(self.z.len() - self.n_x) {
            self.z[self.n_x + c] = self.u_units.to_internal(c, *u);
        }
    }

    /// Means and variances of f(x, u), original units, into slices of n_x numbers each.
    pub fn evaluate(&mut self, x: &[f64], u: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        self.set_point(x, u);
        let z = std::mem::take(&mut self.z);
        self.evaluate_internal(&z, mean, variance);
        self.z = z;
        for d in 0..self.n_x {
            mean[d] = self.x_units.to_original(d, mean[d]);
            variance[d] *= self.x_units.scale[d] * self.x_units.scale[d];
        }
    }

    pub(crate) fn evaluate_internal(&mut self, z: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        for (d, state) in self.states.iter_mut().enumerate() {
            (mean[d], variance[d]) = match state {
                Ok(evaluator) => evaluator.evaluate(z),
                Err(of) => (z[*of], 0.0),
            };
        }
    }

    /// d mean_d / d z_c, row-major (d, c) with c over (x, u), original units.
    pub fn jacobian(&mut self, x: &[f64], u: &[f64], jacobian: &mut [f64]) {
        self.set_point(x, u);
        let n_z = self.z.len();
        for (d, state) in self.states.iter().enumerate() {
            match state {
                Ok(evaluator) => evaluator.gradient(&self.z, &mut self.gradient),
                Err(of) => {
                    self.gradient.fill(0.0);
                    self.gradient[*of] = 1.0;
                }
            }
            for c in 0..n_z {
                let unit =
                    if c < self.n_x { self.x_units.scale[c] } else { self.u_units.scale[c - self.n_x] };
                jacobian[d * n_z + c] = self.gradient[c] * self.x_units.scale[d] / unit;
            }
        }
    }
}

/// The distilled function as a transition: what is uncertain about f is drawn afresh at each step, like noise.
struct DistilledTransition {
    function: DistilledFunction,
    /// Process noise covariance, row-major, internal units.
    noise: Vec<f64>,
    moving: Vec<usize>,
}

impl TransitionFunction for DistilledTransition {
    fn predict(&mut self, z: &Points, out: &mut Predictions) {
        let n_x = self.function.n_x;
        out.reset(z.len(), n_x);
        let (mut mean, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
        let p = self.moving.len();
        let (mut own, mut chol) = (vec![0.0; p], vec![0.0; p * p]);
        for i in 0..z.len() {
            self.function.evaluate_internal(&z.row(i), &mut mean, &mut variance);
            for (a, &d) in self.moving.iter().enumerate() {
                own[a] = mean[d];
                for (b, &e) in self.moving.iter().enumerate() {
                    chol[a * p + b] = self.noise[d * n_x + e] + if a == b { variance[d] } else { 0.0 };
                }
            }
            if !small::cholesky(&mut chol, p) {
                own.fill(f64::NAN);
            }
            out.set_block(i, &self.moving, &own, &chol);
            for d in (0..n_x).filter(|d| !self.moving.contains(d)) {
                out.set_known(i, d, mean[d]);
            }
        }
    }
}

impl OnlineFilter {
    /// A real-time particle filter on a distilled model, with the sensor and the initial state of the problem it was learned
    /// for (at the mean of theta). A step costs `particles` evaluations of the distilled function.
    pub fn from_distilled(
        distilled: &Distilled,
        problem: &Problem,
        particles: usize,
        proposal: Proposal,
        seed: u64,
    ) -> Result<Self, Error> {
        let function = DistilledFunction::new(distilled)?;
        let n_x = distilled.n_x;
        if problem.n_x() != n_x
            || problem.model().n_u != distilled.n_u
            || problem.table().len() != distilled.theta.len()
        {
            return Err(Error::data("the distilled model was not made from this problem"));
        }
        if particles == 0 {
            return Err(Error::settings("particles", "at least one is needed"));
        }
        let scale = &distilled.x_units.scale;
        let noise = distilled.process_noise.iter().enumerate();
        let noise = noise.map(|(i, q)| q / scale[i / n_x] / scale[i % n_x]).collect();
        let moving = (0..n_x).filter(|&d| matches!(distilled.states[d], DistilledState::Sparse(_))).collect();
        let transition = DistilledTransition { function, noise, moving };
        let space = Arc::new(problem.bind(&distilled.theta));
        let mut rng = stream_for(seed, Stream::Distilled, 0);
        let mut x = vec![0.0; particles * n_x];
        x.chunks_exact_mut(n_x).for_each(|x| space.initial.sample(&mut rng, x));
        let filter = FunctionFilter::new(Box::new(transition), space, x, proposal, rng);
        Ok(Self::from_filters(problem.scaling(), vec![filter], 1.0, true))
    }
}
