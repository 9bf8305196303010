//! Filtering with the learned model: one observation in, one estimate out, bounded memory.
//!
//! K functions are drawn from the posterior, spread over the draws by their weights, and each carries a particle filter of
//! its own with N particles and its own evidence. The functions are weighted by their evidence: the sum over functions is
//! exact, so resampling never makes one function win by chance, and no function is ever lost from memory.
//! f itself is not updated by the new record.
//!
//! A step costs K N evaluations of a function (see [`super`]: O(n + waves) for n training pairs, or O(M) for M weights);
//! memory is K N states and K functions, whatever the length of the record.
//!
//! With forgetting factor lambda the log weight of a function is lambda times the old one plus the new evidence. One is
//! Bayes' rule: over very long records the weights end on the one best function, since every function is a little
//! wrong. A factor below one remembers about 1 / (1 - lambda) observations and keeps the mixture alive.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::belief::Belief;
use super::drawn::{FunctionDraw, TransitionFunction};
use super::mixture::log_sum_exp;
use super::simulate::Initial;
use super::{Posterior, Stream, allocate, stream_for};
use crate::dynamics::predictions::Predictions;
use crate::error::Error;
use crate::initial::BoundInitial;
use crate::points::Points;
use crate::scaling::Scaling;
use crate::sensor::BoundSensor;
use crate::sensor::adapter::{Adapted, Adapter};
use crate::smc::proposal::{Lookahead, Proposal, sample_gaussian};
use crate::smc::resampling::Resampling;
use crate::smc::weights::normalise;
use crate::state_space::StateSpace;

/// How a filter runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnlineOptions {
    /// Functions K.
    pub functions: usize,
    /// Particles N of each function.
    pub particles: usize,
    /// Waves of the prior draw behind each function of an exact Gaussian process.
    pub waves: usize,
    /// Forgetting factor of the functions' weights, in (0, 1].
    pub forgetting: f64,
    /// How states are proposed.
    pub proposal: Proposal,
    /// Seed.
    pub seed: u64,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        Self { functions: 50, particles: 50, waves: 256, forgetting: 1.0, proposal: Proposal::Auto, seed: 1 }
    }
}

impl OnlineOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (key, value) in
            [("functions", self.functions), ("particles", self.particles), ("waves", self.waves)]
        {
            if value == 0 {
                return Err(Error::settings(key, "at least one is needed"));
            }
        }
        if !(self.forgetting > 0.0 && self.forgetting <= 1.0) {
            return Err(Error::settings("forgetting", format!("{} is not in (0, 1]", self.forgetting)));
        }
        Ok(())
    }
}

/// What is known of the state after an observation; original units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Estimate {
    /// Number of the observation, from 0.
    pub t: u64,
    /// E[x_t | y_{0:t}].
    pub mean: Vec<f64>,
    /// Standard deviations.
    pub sd: Vec<f64>,
    /// log p(y_t | y_{0:t-1}): low values are anomalies. Minus infinity if no particle can explain y_t.
    pub log_marginal_likelihood: f64,
    /// Effective number of functions, 1 / sum of squared weights.
    pub effective_functions: f64,
    /// Functions whose particles all died at this step and were started again from those of the others.
    pub restarted: u64,
}

/// One function with its particles.
pub(crate) struct FunctionFilter {
    pub function: Box<dyn TransitionFunction>,
    pub space: Arc<StateSpace>,
    /// States, row-major (particle, d), internal units, and their normalised weights.
    pub x: Vec<f64>,
    pub weights: Vec<f64>,
    uniform: bool,
    pub rng: ChaCha8Rng,
    pub predictions: Predictions,
    pub ancestors: Vec<usize>,
    adapted: bool,
    /// Whether transition and sensor are linear and Gaussian: then particles are drawn from what a Kalman filter knows.
    linear: bool,
    belief: Option<Belief>,
}

impl FunctionFilter {
    pub(crate) fn new(
        function: Box<dyn TransitionFunction>,
        space: Arc<StateSpace>,
        x: Vec<f64>,
        proposal: Proposal,
        rng: ChaCha8Rng,
    ) -> Self {
        let n = x.len() / space.transition.n_x();
        let adapted = matches!(proposal, Proposal::Auto | Proposal::Adapted)
            && space.sensor.as_linear_gaussian().is_some();
        Self {
            function,
            space,
            x,
            weights: vec![1.0 / n as f64; n],
            uniform: true,
            rng,
            predictions: Predictions::default(),
            ancestors: Vec::new(),
            adapted,
            linear: false,
            belief: None,
        }
    }

    /// The same for a transition that is known to be linear and Gaussian, or not.
    pub(crate) fn linear(self, linear: bool) -> Self {
        Self { linear: linear && self.adapted, ..self }
    }

    /// Draws the particles from a belief; its log evidence.
    fn draw_from(&mut self, found: Option<(Belief, f64)>) -> Option<f64> {
        let (belief, log_marginal_likelihood) = found?;
        for x in self.x.chunks_exact_mut(belief.mean.len()) {
            sample_gaussian(&belief.mean, &belief.chol, &mut self.rng, x);
        }
        let n = self.n();
        self.ancestors = (0..n).collect();
        self.weights.fill(1.0 / n as f64);
        self.uniform = true;
        self.belief = Some(belief);
        Some(log_marginal_likelihood)
    }

    pub(crate) fn n(&self) -> usize {
        self.weights.len()
    }

    fn points(&self, u: &[f64]) -> Points {
        let n_x = self.space.transition.n_x();
        let mut z = Points::new(n_x + u.len());
        self.x.chunks_exact(n_x).for_each(|x| z.push_parts(x, u));
        z
    }

    /// p(x' | x_i) of all particles under the input `u`.
    pub(crate) fn predict(&mut self, u: &[f64]) {
        let z = self.points(u);
        self.function.predict(&z, &mut self.predictions);
    }

    /// Generation 0 given the first observation: particles from p(x_0 | y_0) where they come from a Gaussian p(x_0)
    /// and the sensor is linear and Gaussian, otherwise weighed by p(y_0 | x_0). Its log evidence, none if all particles
    /// are dead.
    pub(crate) fn start(&mut self, from_model: bool, y: &[f64], u: &[f64]) -> Option<f64> {
        let space = Arc::clone(&self.space);
        if self.linear {
            let first = &self.x[..space.transition.n_x()];
            let found = match from_model {
                true => Belief::start(&space, y, u),
                false if self.x.chunks_exact(first.len()).all(|x| x == first) => {
                    Belief::at(first, &space, y, u)
                }
                false => None,
            };
            if found.is_some() {
                return self.draw_from(found);
            }
        }
        let sensor = space.sensor.as_linear_gaussian().filter(|_| self.adapted && from_model);
        if let (Some(sensor), BoundInitial::Gaussian { mean, chol }) = (sensor, &space.initial) {
            let mut posterior = Adapted::default();
            if !Adapter::new(sensor, y, u)?.condition(mean, chol, &mut posterior) {
                return None;
            }
            for x in self.x.chunks_exact_mut(mean.len()) {
                sample_gaussian(&posterior.mean, &posterior.chol, &mut self.rng, x);
            }
            return Some(posterior.log_marginal_likelihood);
        }
        self.weigh(y, u)
    }

    /// Moves on to the next observation: log p(y_t | y_{0:t-1}, f), none if all particles are dead. `u_before` drove
    /// the transition, `u` is the input now.
    pub(crate) fn step(&mut self, u_before: &[f64], y: &[f64], u: &[f64]) -> Option<f64> {
        let space = Arc::clone(&self.space);
        if let Some(belief) = self.belief.take() {
            let found = belief.next(self.function.as_mut(), &space, u_before, y, u);
            return self.draw_from(found);
        }
        self.predict(u_before);
        let n_x = self.space.transition.n_x();
        let n = self.n();
        let sensor = space.sensor.as_linear_gaussian().filter(|_| self.adapted);
        let mut adapter = sensor.and_then(|sensor| Adapter::new(sensor, y, u));
        let lookahead = adapter.as_mut().map(|adapter| Lookahead::new(adapter, &self.predictions, n));
        let mut log_marginal_likelihood = 0.0;
        if let Some(lookahead) = &lookahead {
            let mut weights: Vec<f64> = self
                .weights
                .iter()
                .enumerate()
                .map(|(i, w)| w.ln() + lookahead.log_marginal_likelihood(i))
                .collect();
            log_marginal_likelihood = normalise(&mut weights)? + (n as f64).ln();
            self.uniform &= y.iter().all(|y| y.is_nan());
            self.weights = weights;
        }
        self.ancestors = if self.uniform {
            (0..n).collect()
        } else {
            Resampling::Systematic.draw(&self.weights, n, &mut self.rng)
        };
        for (x, &a) in self.x.chunks_exact_mut(n_x).zip(&self.ancestors) {
            match &lookahead {
                Some(lookahead) => lookahead.sample(a, &mut self.rng, x),
                None => sample_gaussian(self.predictions.mean(a), self.predictions.chol(a), &mut self.rng, x),
            }
        }
        self.weights.fill(1.0 / n as f64);
        self.uniform = true;
        if lookahead.is_some() { Some(log_marginal_likelihood) } else { self.weigh(y, u) }
    }

    fn weigh(&mut self, y: &[f64], u: &[f64]) -> Option<f64> {
        let mut weights = vec![0.0; self.n()];
        self.space.sensor.add_log_density(y, &self.points(u), &mut weights);
        let n_x = self.space.transition.n_x();
        for (weight, x) in weights.iter_mut().zip(self.x.chunks_exact(n_x)) {
            if x.iter().any(|x| !x.is_finite()) {
                *weight = f64::NEG_INFINITY;
            }
        }
        let log_mean = normalise(&mut weights)?;
        self.uniform = y.iter().all(|y| y.is_nan()) && weights.iter().all(|w| *w > 0.0);
        self.weights = weights;
        Some(log_mean)
    }

    /// Takes over the particles of another filter.
    fn restart_from(&mut self, x: Vec<f64>, weights: Vec<f64>) {
        self.x = x;
        self.weights = weights;
        self.uniform = false;
    }
}

/// A filter that goes on for ever.
///
/// ```
/// # use gpssm::{Functions, MemorySink, Model, Posterior, Problem, Sequence, Settings, sample};
/// # let y: Vec<f64> = (0..25).map(|t| (0.5 * f64::from(t)).sin()).collect();
/// # let problem = Problem::new(Model::observed(1, 0), &Functions::new(), Sequence::scalar(&y, None)?.into())?;
/// # let settings = Settings { chains: 1, tune: 5, draws: Some(5), ..Settings::default() };
/// # let sink = MemorySink::new();
/// # sample(&problem, &settings, &sink, &|_| true)?;
/// # let posterior = Posterior::new(&problem, &sink.into_chains())?;
/// use gpssm::posterior::{OnlineFilter, OnlineOptions};
/// use gpssm::posterior::Initial;
///
/// let options = OnlineOptions { functions: 5, particles: 20, ..OnlineOptions::default() };
/// let mut filter = OnlineFilter::new(&posterior, &Initial::Model, &options)?;
/// let estimate = filter.step(&[0.3], &[])?;
/// assert!(estimate.mean[0].is_finite() && estimate.sd[0] > 0.0);
/// # Ok::<(), gpssm::Error>(())
/// ```
pub struct OnlineFilter {
    scaling: Scaling,
    n_u: usize,
    n_y: usize,
    n_x: usize,
    pub(crate) filters: Vec<FunctionFilter>,
    log_weights: Vec<f64>,
    forgetting: f64,
    t: u64,
    u_before: Vec<f64>,
    restarted: u64,
    from_model: bool,
    /// log p(y_t | y_{0:t-1}, f) of each function at the last step, original units.
    log_densities: Vec<f64>,
    /// First transitions whose past lies before the record: they say nothing about the functions.
    presample: u64,
}

impl std::fmt::Debug for OnlineFilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OnlineFilter")
            .field("t", &self.t)
            .field("functions", &self.filters.len())
            .finish()
    }
}

impl Posterior {
    /// K functions, each with its particles at the initial state.
    pub(crate) fn function_filters(
        &self,
        initial: &Initial,
        options: &OnlineOptions,
    ) -> Result<Vec<FunctionFilter>, Error> {
        options.check()?;
        self.check_initial(initial)?;
        let draws = allocate(&self.weights(), options.functions);
        let make = |(k, &j): (usize, &usize)| -> Result<FunctionFilter, Error> {
            let posterior = self.shared_function(j)?;
            let mut rng = stream_for(options.seed, Stream::Filter, k as u64);
            let function = FunctionDraw::new(&posterior, options.waves, &mut rng)?;
            let mut x = Vec::new();
            for _ in 0..options.particles {
                x.extend(self.initial_state(initial, j, &mut rng)?);
            }
            let space = Arc::new(posterior.space.clone());
            let filter = FunctionFilter::new(Box::new(function), space, x, options.proposal, rng);
            Ok(filter.linear(self.is_linear_gaussian()))
        };
        draws.iter().enumerate().map(make).collect()
    }
}

impl OnlineFilter {
    /// A filter at its initial state, before the first observation.
    pub fn new(posterior: &Posterior, initial: &Initial, options: &OnlineOptions) -> Result<Self, Error> {
        let filters = posterior.function_filters(initial, options)?;
        let from_model = *initial == Initial::Model;
        let presample = if from_model { posterior.problem().model().presample as u64 } else { 0 };
        let scaling = posterior.problem().scaling();
        Ok(Self { presample, ..Self::from_filters(scaling, filters, options.forgetting, from_model) })
    }

    pub(crate) fn from_filters(
        scaling: &Scaling,
        filters: Vec<FunctionFilter>,
        forgetting: f64,
        from_model: bool,
    ) -> Self {
        Self {
            scaling: scaling.clone(),
            n_x: scaling.x.scale.len(),
            n_u: scaling.u.scale.len(),
            n_y: scaling.y.scale.len(),
            log_weights: vec![0.0; filters.len()],
            log_densities: vec![0.0; filters.len()],
            filters,
            forgetting,
            t: 0,
            u_before: Vec::new(),
            restarted: 0,
            from_model,
            presample: 0,
        }
    }

    /// Takes the next observation y_t (missing components NaN) and the input u_t, original units.
    pub fn step(&mut self, y: &[f64], u: &[f64]) -> Result<Estimate, Error> {
        let t = self.t;
        if y.len() != self.n_y || u.len() != self.n_u {
            return Err(Error::data(format!(
                "observation {t} has {} outputs and {} inputs, the model has {} and {}",
                y.len(),
                u.len(),
                self.n_y,
                self.n_u
            )));
        }
        if let Some(c) = u.iter().position(|u| !u.is_finite()) {
            return Err(Error::data(format!("observation {t}: input {} is {}", c + 1, u[c])));
        }
        if let Some(k) = y.iter().position(|y| y.is_infinite()) {
            return Err(Error::data(format!("observation {t}: output {} is infinite", k + 1)));
        }
        let scaling = &self.scaling;
        let y_in: Vec<f64> = y.iter().enumerate().map(|(k, y)| scaling.y.to_internal(k, *y)).collect();
        let u_in: Vec<f64> = u.iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u)).collect();
        let unit = log_unit(scaling, y);
        let u_before = std::mem::replace(&mut self.u_before, u_in.clone());
        let from_model = self.from_model;
        let increments: Vec<Option<f64>> = self
            .filters
            .iter_mut()
            .map(|filter| match t {
                0 => filter.start(from_model, &y_in, &u_in),
                _ => filter.step(&u_before, &y_in, &u_in),
            })
            .collect();
        self.log_densities =
            increments.iter().map(|found| found.map_or(f64::NEG_INFINITY, |log| log - unit)).collect();
        let weights_before = (1..=self.presample).contains(&t).then(|| self.log_weights.clone());
        let log_marginal_likelihood = self.reweigh(&increments) - unit;
        if let Some(weights) = weights_before {
            self.log_weights = weights;
        }
        let restarted = self.restart(&increments, &y_in, &u_in);
        self.restarted += restarted;
        self.t += 1;
        let (mean, sd) = self.moments();
        let effective_functions = 1.0 / self.function_weights().iter().map(|w| w * w).sum::<f64>();
        Ok(Estimate { t, mean, sd, log_marginal_likelihood, effective_functions, restarted })
    }

    /// Updates the functions' weights; log of the evidence that they give together.
    fn reweigh(&mut self, increments: &[Option<f64>]) -> f64 {
        for log_weight in &mut self.log_weights {
            *log_weight *= self.forgetting;
        }
        let before = log_sum_exp(&self.log_weights);
        let joint = self.log_weights.iter().zip(increments);
        let joint: Vec<f64> = joint.map(|(w, inc)| inc.map_or(f64::NEG_INFINITY, |inc| w + inc)).collect();
        let after = log_sum_exp(&joint);
        if after.is_finite() {
            // A function that failed starts again as the worst of the others.
            let worst = joint.iter().copied().filter(|w| w.is_finite()).fold(f64::INFINITY, f64::min);
            let kept = joint.iter().map(|w| if w.is_finite() { *w } else { worst });
            self.log_weights = kept.map(|w| w - after).collect();
        }
        after - before
    }

    /// Functions whose particles died take over those of the best function, or fresh ones if all died.
    fn restart(&mut self, increments: &[Option<f64>], y: &[f64], u: &[f64]) -> u64 {
        let dead: Vec<usize> = (0..increments.len()).filter(|&k| increments[k].is_none()).collect();
        let best = (0..increments.len())
            .filter(|&k| increments[k].is_some())
            .max_by(|&a, &b| self.log_weights[a].total_cmp(&self.log_weights[b]));
        for &k in &dead {
            match best {
                Some(best) => {
                    let (x, weights) = (self.filters[best].x.clone(), self.filters[best].weights.clone());
                    self.filters[k].restart_from(x, weights);
                }
                None => {
                    let filter = &mut self.filters[k];
                    let (space, n_x) = (Arc::clone(&filter.space), self.n_x);
                    for x in filter.x.chunks_exact_mut(n_x) {
                        space.initial.sample(&mut filter.rng, x);
                    }
                    let share = 1.0 / filter.n() as f64;
                    filter.weights.fill(share);
                    filter.uniform = true;
                    filter.weigh(y, u);
                }
            }
        }
        dead.len() as u64
    }

    /// Normalised weights of the functions.
    pub(crate) fn function_weights(&self) -> Vec<f64> {
        let total = log_sum_exp(&self.log_weights);
        self.log_weights.iter().map(|w| (w - total).exp()).collect()
    }

    /// Mean and standard deviation of the state, original units.
    fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let functions = self.function_weights();
        let particles = || {
            self.filters.iter().zip(&functions).flat_map(|(filter, w)| {
                filter.x.chunks_exact(self.n_x).zip(&filter.weights).map(move |(x, p)| (x, w * p))
            })
        };
        let mut mean = vec![0.0; self.n_x];
        for (x, w) in particles().filter(|(_, w)| *w > 0.0) {
            mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += w * x);
        }
        let mut variance = vec![0.0; self.n_x];
        for (x, w) in particles().filter(|(_, w)| *w > 0.0) {
            for (d, variance) in variance.iter_mut().enumerate() {
                *variance += w * (x[d] - mean[d]) * (x[d] - mean[d]);
            }
        }
        let scale = &self.scaling.x;
        let sd = variance.iter().zip(&scale.scale).map(|(v, scale)| v.sqrt() * scale).collect();
        (mean.iter().enumerate().map(|(d, mean)| scale.to_original(d, *mean)).collect(), sd)
    }

    /// All particles with their weights: states (particle, d) in original units.
    pub fn particles(&self) -> (Vec<f64>, Vec<f64>) {
        let functions = self.function_weights();
        let (mut states, mut weights) = (Vec::new(), Vec::new());
        for (filter, w) in self.filters.iter().zip(functions) {
            weights.extend(filter.weights.iter().map(|p| w * p));
            states.extend(
                filter.x.iter().enumerate().map(|(i, x)| self.scaling.x.to_original(i % self.n_x, *x)),
            );
        }
        (states, weights)
    }

    /// log p(y_t | y_{0:t-1}, f) of each function at the last step, original units; minus infinity where all particles died.
    pub fn log_densities(&self) -> &[f64] {
        &self.log_densities
    }

    /// How often the particles of a function died and were started again, so far.
    pub(crate) fn restarted(&self) -> u64 {
        self.restarted
    }

    /// Observations so far.
    pub fn t(&self) -> u64 {
        self.t
    }
}

/// log of the unit of the observed components: densities in internal units are larger by it.
pub(crate) fn log_unit(scaling: &Scaling, y: &[f64]) -> f64 {
    let observed = y.iter().zip(&scaling.y.scale).filter(|(y, _)| !y.is_nan());
    observed.map(|(_, scale)| scale.ln()).sum()
}

/// Density of y given the predictions of the next state: of each particle, internal units.
pub(crate) fn log_predictive(
    sensor: &BoundSensor,
    predictions: &Predictions,
    x: &[f64],
    y: &[f64],
    u: &[f64],
    n_x: usize,
) -> Vec<f64> {
    let n = x.len() / n_x;
    if let Some(mut adapter) = sensor.as_linear_gaussian().and_then(|sensor| Adapter::new(sensor, y, u)) {
        let lookahead = Lookahead::new(&mut adapter, predictions, n);
        return (0..n).map(|i| lookahead.log_marginal_likelihood(i)).collect();
    }
    let mut z = Points::new(n_x + u.len());
    x.chunks_exact(n_x).for_each(|x| z.push_parts(x, u));
    let mut out = vec![0.0; n];
    sensor.add_log_density(y, &z, &mut out);
    out
}
