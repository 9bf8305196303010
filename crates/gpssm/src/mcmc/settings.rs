//! How a run is made.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::moves;
use super::start::plan::plan;
use crate::dynamics::covariance_cache::most_cached;
use crate::error::Error;
use crate::model::compile::Problem;
use crate::model::dynamics::{DynamicsSpec, InducingSpec};
use crate::smc::filter::FilterOptions;
use crate::smc::proposal::Proposal;
use crate::smc::resampling::Resampling;

/// Settings of a run; the defaults suit records of a few hundred rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Chains.
    pub chains: u32,
    /// Sweeps that are dropped and used to adapt.
    pub tune: u64,
    /// Draws that are kept of each chain; none to go on until they are good, see [`Settings::ess`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<u64>,
    /// Without a fixed number of draws, chains go on until every identified hyper-parameter, f at points that the
    /// data visit, and the states have this bulk and tail effective sample size, and an R-hat of at most 1.01.
    pub ess: u64,
    /// Time limit; the draws that were made until then are kept.
    pub budget: Budget,
    /// Particles of the conditional filter.
    pub particles: usize,
    /// Threads; none for one for each core.
    pub threads: Option<usize>,
    /// How ancestors are drawn.
    pub resampling: Resampling,
    /// How states are proposed.
    pub proposal: Proposal,
    /// Where a chain begins.
    pub start_at: StartAt,
    /// GP-NARX: the outputs and their past values are the states, without sensor noise, and are not drawn. f is then a
    /// Gaussian process regression of outputs on past outputs and inputs, far cheaper than drawing states.
    pub narx: bool,
    /// A point estimate by stochastic-approximation EM in place of draws from the posterior: one chain with one draw, which is theta, a
    /// path, and with them a Gaussian process. `tune` is the number of iterations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub point: bool,
    /// Names of the moves that a sweep makes (see [`mcmc::moves`](super::moves)); empty for those made by default.
    pub moves: Vec<String>,
    /// The cold start, where one is searched for.
    pub start: StartSettings,
    /// Memory limit in MB; larger runs are refused before they start.
    pub max_memory_mb: u64,
}

/// Where a chain begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StartAt {
    /// At a path that is searched for, see [`StartSettings`].
    #[default]
    Search,
    /// At the mean of the path if every unknown function were its mean, by a Kalman smoother: for means that are nearly right
    /// already, such as a linear model of the record.
    Mean,
    /// On the outputs themselves, taken back through the sensor: for precise sensors, where every state is an output or an output
    /// some rows before.
    Outputs,
}

/// How a chain finds its first path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartSettings {
    /// Draws of the hyper-parameters from the prior that are tried on the beginning of the record. Those with
    /// good evidence go on to half as much again, and so on, until a few have seen the whole record. This is done
    /// twice; where every function has a known form, with four times as many.
    pub restarts: u32,
    /// Particles of the filters; none for as many as a second or so allows, 200 at the most (400 where
    /// every function has a known form).
    pub particles: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            chains: 4,
            tune: 300,
            draws: None,
            ess: 400,
            budget: Budget::Auto,
            particles: 20,
            threads: None,
            resampling: Resampling::default(),
            proposal: Proposal::default(),
            start_at: StartAt::default(),
            narx: false,
            point: false,
            moves: Vec::new(),
            start: StartSettings::default(),
            max_memory_mb: 8_000,
        }
    }
}

impl Default for StartSettings {
    fn default() -> Self {
        Self { restarts: 64, particles: None }
    }
}

impl Settings {
    /// Settings of a point estimate.
    pub fn point() -> Self {
        Self { point: true, chains: 1, draws: Some(1), ..Self::default() }
    }

    /// Whether chains begin on the outputs; a GP-NARX model has nowhere else to begin.
    pub(crate) fn starts_on_outputs(&self) -> bool {
        self.narx || self.start_at == StartAt::Outputs
    }

    /// Time limit of the run, if it has one.
    pub fn time_limit(&self) -> Option<Duration> {
        match self.budget {
            Budget::Auto => self.draws.is_none().then_some(Budget::DEFAULT),
            Budget::None => None,
            Budget::Time(time) => Some(time),
        }
    }

    /// Options of the conditional filter.
    pub fn filter_options(&self) -> FilterOptions {
        FilterOptions { n_particles: self.particles, resampling: self.resampling, proposal: self.proposal }
    }

    /// Particles of the starting filters over the whole record.
    pub fn start_particles(&self, problem: &Problem) -> usize {
        plan(problem, self).last().map_or(2, |stage| stage.particles)
    }

    /// Threads at work at one time.
    pub fn n_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or(cores).clamp(1, self.chains.max(1) as usize)
    }

    /// Refuses what cannot be run.
    pub fn check(&self, problem: &Problem) -> Result<(), Error> {
        for (key, value) in [
            ("chains", u64::from(self.chains)),
            ("draws", self.draws.unwrap_or(1)),
            ("ess", self.ess),
            ("start.restarts", u64::from(self.start.restarts)),
        ] {
            if value == 0 {
                return Err(Error::settings(key, "must be at least one"));
            }
        }
        if self.point && self.chains != 1 {
            return Err(Error::settings("chains", "a point estimate is one chain; leave chains out"));
        }
        if self.point && self.draws != Some(1) {
            return Err(Error::settings("draws", "a point estimate is one draw; leave draws and ess out"));
        }
        if self.draws.is_none() && self.chains < 2 {
            let message = "one chain cannot be judged; use at least two, or set draws";
            return Err(Error::settings("chains", message));
        }
        if self.particles < 2 {
            return Err(Error::settings("particles", "the conditional filter needs at least two"));
        }
        if self.threads == Some(0) {
            return Err(Error::settings("threads", "must be at least one"));
        }
        moves::check(&self.moves, problem)?;
        self.check_presample(problem)?;
        if self.narx && problem.record().has_missing() {
            if !problem.model().skip_missing {
                let message =
                    "outputs are missing, so the states cannot be held there; set skip_missing in the model";
                return Err(Error::settings("narx", message));
            }
            if problem.sequences().iter().all(|sequence| sequence.learned_from().is_empty()) {
                let message = "no transition has all its past outputs; use fewer lags, or leave it out and draw the states";
                return Err(Error::settings("narx", message));
            }
        }
        let linear = problem.model().sensor.is_linear_gaussian();
        if self.proposal == Proposal::Adapted && !linear {
            return Err(Error::settings("proposal", "the adapted proposal needs a linear-Gaussian sensor"));
        }
        let needed_mb = self.memory_bytes(problem) / 1_000_000;
        if needed_mb > self.max_memory_mb {
            return Err(Error::Memory {
                needed_mb,
                allowed_mb: self.max_memory_mb,
                advice: format!(
                    "use fewer threads (now {}), a shorter record, or raise max_memory_mb",
                    self.n_threads()
                ),
            });
        }
        Ok(())
    }

    /// Refuses to draw states where some transitions do not count.
    pub(crate) fn check_presample(&self, problem: &Problem) -> Result<(), Error> {
        if self.narx || (problem.model().presample == 0 && !problem.model().skip_missing) {
            return Ok(());
        }
        let message = "model.presample is for states that are held on the outputs; set it to true, or leave presample out";
        Err(Error::settings("narx", message))
    }

    /// Estimate of the memory that the sampler itself needs at its peak, draws not included.
    pub fn memory_bytes(&self, problem: &Problem) -> u64 {
        let all = problem.record().n_transitions() as f64;
        let longest = problem.sequences().iter().map(|s| s.length()).max().unwrap_or(0) as f64;
        let transition = problem.bind_transition(&vec![1.0; problem.table().len()]);
        let n_start = self.start_particles(problem) as f64;
        let nodes = |n: f64| n * (n.ln() + 2.0);
        let mut factors = 0.0f64;
        let mut largest = 0.0f64;
        let mut cached = 0.0f64;
        let mut start = 0.0;
        let mut linear = 0.0;
        for block in transition.blocks() {
            let p = block.len() as f64;
            if block.iter().all(|&d| transition.kernels[d].is_zero()) {
                continue;
            }
            let (n, t) = (p * all, p * longest);
            if let Some(w) = n_weights(problem, block.len()) {
                // Sums, their checkpoints, and rows of the nodes; a factor for each particle of the start.
                factors += w * w * (8.0 + longest / 512.0) + 4.0 * p * w * nodes(self.particles as f64);
                start += n_start * w * (0.5 * w + 2.0 * p);
                linear += (p + 2.0) * all + 2.0 * longest * self.particles.max(n_start as usize) as f64;
                continue;
            }
            // Path and reference factors, trunk rows of g (a list that grows by doubling), the factor given the
            // future, and three rows for each dimension of a node; lines that meet late make four times as
            // many nodes.
            factors += n * n + 2.0 * t * n + 0.5 * t * t + 12.0 * p * n * nodes(self.particles as f64);
            start += 0.5 * n * n + p * n * nodes(n_start);
            // Where signs are drawn, f is at both signs of every point.
            let signs =
                !problem.model().symmetries.is_empty() && !problem.model().sensor.is_linear_gaussian();
            let both = if signs { 5.0 * n * n } else { 0.0 };
            largest = largest.max(n * n + both);
            cached = cached.max(most_cached(n));
        }
        // States and ancestors of all generations.
        let n = n_start.max(self.particles as f64);
        start += n * (longest + 1.0) * (problem.n_x() as f64 + 1.0);
        // One dense matrix for the factorisation of the moment and one for the hyper-parameters, with the parts of its kernel.
        let numbers = (factors.max(start) + linear + 2.0 * largest + cached) * self.n_threads() as f64;
        // A fifth more was seen than is accounted for.
        (1.2 * 8.0 * numbers) as u64
    }
}

/// Weights of a block of `p` dimensions, if the prior is a finite basis.
pub(super) fn n_weights(problem: &Problem, p: usize) -> Option<f64> {
    let most = match &problem.model().dynamics {
        DynamicsSpec::Exact => return None,
        DynamicsSpec::Fic { inducing, .. } | DynamicsSpec::Dtc { inducing, .. } => match inducing {
            InducingSpec::Given(points) => points.len(),
            InducingSpec::Grid(counts) => counts.iter().product(),
            InducingSpec::KMeans(n) | InducingSpec::Greedy(n) | InducingSpec::Variance(n) => *n,
        },
        DynamicsSpec::Hilbert { functions, .. } => *functions,
        DynamicsSpec::Fourier { frequencies, .. } => 2 * frequencies,
    };
    // Linear and constant parts add a few.
    Some((p * (most + problem.n_x() + problem.model().n_u)) as f64)
}
