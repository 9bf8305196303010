//! One sweep of a chain (Algorithm 1 of the paper).

use serde::{Deserialize, Serialize};

use super::conditional::Conditional;
use super::hyper;
use super::interweave;
use super::signs;
use super::slice::WidthAdaptation;
use crate::dynamics::numerics::Numerics;
use crate::dynamics::path_density::PathDensityWork;
use crate::error::Error;
use crate::model::compile::Problem;
use crate::model::parameters::{Coordinate, ParameterPrior};
use crate::random::{Purpose, stream};
use crate::smc::filter::{FilterOptions, SharedPairs, conditional_filter};

/// Everything a chain needs to go on; together with seed and chain number it determines all later draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainState {
    /// Sweeps that were made, warm-up included.
    pub sweep: u64,
    /// Hyper-parameters, original units.
    pub theta: Vec<f64>,
    /// x_{0:T} of every sequence, internal units, row-major.
    pub paths: Vec<Vec<f64>>,
    /// Slice widths; frozen after warm-up.
    pub widths: Vec<WidthAdaptation>,
}

impl ChainState {
    /// A chain that starts here.
    pub fn new(problem: &Problem, theta: Vec<f64>, paths: Vec<Vec<f64>>) -> Self {
        let table = problem.table();
        let width = |k: usize| match (table.parameters[k].coordinate, &table.parameters[k].prior) {
            (Coordinate::Log, _) => 1.0,
            // Entries of a Cholesky row are of the size of its diagonal, the last of the row.
            (Coordinate::Identity, ParameterPrior::Matrix { row, column, .. }) => theta[k + row - column],
            (Coordinate::Identity, _) => theta[k].abs().max(1e-3),
        };
        let widths = (0..table.len()).map(|k| WidthAdaptation::new(width(k))).collect();
        Self { sweep: 0, theta, paths, widths }
    }

    /// Refuses a state that does not belong to this problem.
    pub fn check(&self, problem: &Problem) -> Result<(), Error> {
        let fits = self.theta.len() == problem.table().len()
            && self.widths.len() == problem.table().len()
            && self.paths.len() == problem.sequences().len()
            && self.paths.iter().zip(problem.sequences()).all(|(p, s)| p.len() == s.n_rows() * problem.n_x())
            && self.theta.iter().chain(self.paths.iter().flatten()).all(|value| value.is_finite());
        if fits {
            Ok(())
        } else {
            Err(Error::data("the state of the chain belongs to another model or record"))
        }
    }
}

/// What happened in one sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepInfo {
    /// Evidences p(x_{1:T} | x_0, theta) evaluated.
    pub density_evaluations: u64,
    /// Evidences that could not be computed; the proposal was rejected.
    pub density_failures: u64,
    /// Densities that were not a number, and conjugate draws that failed.
    pub slice_failures: u64,
    /// Slice updates that hit their limit on steps.
    pub slice_capped: u64,
    /// Sequences whose filter failed; the old path was kept.
    pub filter_failures: u64,
    /// Predictive covariances that rounding pushed below the process noise.
    pub clamped: u64,
    /// Sums of a finite basis that were formed anew on schedule.
    #[serde(default)]
    pub refreshed: u64,
    /// Sums of a finite basis that were formed anew because they could not be factored.
    #[serde(default)]
    pub breakdowns: u64,
    /// Largest jitter that the covariance of inducing inputs was given in any evidence or filter, relative to
    /// its diagonal.
    #[serde(default)]
    pub relative_jitter: f64,
    /// log p(theta, x, y).
    pub log_joint: f64,
    /// log p(y | x, theta).
    pub log_likelihood: f64,
}

impl SweepInfo {
    /// Adds the counts, keeps the larger jitter and takes over the log densities.
    pub(crate) fn add(&mut self, other: &Self) {
        self.density_evaluations += other.density_evaluations;
        self.density_failures += other.density_failures;
        self.slice_failures += other.slice_failures;
        self.slice_capped += other.slice_capped;
        self.filter_failures += other.filter_failures;
        self.clamped += other.clamped;
        self.refreshed += other.refreshed;
        self.breakdowns += other.breakdowns;
        self.relative_jitter = self.relative_jitter.max(other.relative_jitter);
        self.log_joint = other.log_joint;
        self.log_likelihood = other.log_likelihood;
    }

    fn count(&mut self, numerics: &Numerics) {
        self.clamped += numerics.clamped;
        self.refreshed += numerics.refreshed;
        self.breakdowns += numerics.breakdowns;
        self.relative_jitter = self.relative_jitter.max(numerics.relative_jitter);
    }
}

/// A chain at work.
pub struct Chain<'a> {
    problem: &'a Problem,
    options: FilterOptions,
    seed: u64,
    chain: u32,
    /// Where it is.
    pub state: ChainState,
    /// Whether sweeps leave the states as they are.
    pub narx: bool,
    work: PathDensityWork,
}

impl<'a> Chain<'a> {
    /// Chain number `chain` of the run with this seed, at `state`.
    pub fn new(
        problem: &'a Problem,
        options: FilterOptions,
        seed: u64,
        chain: u32,
        state: ChainState,
    ) -> Self {
        Self { problem, options, seed, chain, state, narx: false, work: PathDensityWork::default() }
    }

    /// Draws theta given x and y, the noise of sensors once more together with the states seen through them, the signs
    /// that the sensor does not see, then x of each sequence given theta, y and the other sequences.
    pub fn sweep(&mut self) -> SweepInfo {
        let mut info = SweepInfo::default();
        self.state.sweep += 1;
        self.update_theta(&mut info);
        if !self.narx {
            self.interweave(&mut info);
            self.update_signs(&mut info);
            self.update_states(&mut info);
        }
        let state = &self.state;
        let mut conditional = Conditional::new(self.problem, &state.paths, &state.theta, &mut self.work);
        (info.log_joint, info.log_likelihood) = conditional.log_joint(&state.theta);
        info
    }

    /// Step a.
    pub fn update_theta(&mut self, info: &mut SweepInfo) {
        let state = &mut self.state;
        let mut rng = stream(self.seed, self.chain, Purpose::Theta, state.sweep, 0);
        let (theta, widths) = (&mut state.theta, &mut state.widths);
        hyper::update(self.problem, theta, &state.paths, widths, &mut self.work, &mut rng, info);
        info.relative_jitter = info.relative_jitter.max(std::mem::take(&mut self.work.relative_jitter));
    }

    /// Sensor noise with its standardised residuals held.
    fn interweave(&mut self, info: &mut SweepInfo) {
        let state = &mut self.state;
        let mut rng = stream(self.seed, self.chain, Purpose::Interweaving, state.sweep, 0);
        interweave::update(self.problem, &mut state.theta, &mut state.paths, &mut self.work, &mut rng, info);
        info.relative_jitter = info.relative_jitter.max(std::mem::take(&mut self.work.relative_jitter));
    }

    /// Signs under the declared symmetries.
    pub fn update_signs(&mut self, info: &mut SweepInfo) {
        let state = &mut self.state;
        let mut rng = stream(self.seed, self.chain, Purpose::Signs, state.sweep, 0);
        signs::update(self.problem, &state.theta, &mut state.paths, &mut rng, info);
    }

    /// Steps b and c.
    pub fn update_states(&mut self, info: &mut SweepInfo) {
        let mut model = self.problem.bind(&self.state.theta);
        let sampled = self.problem.model().dynamics.is_sampled();
        if sampled {
            // Weights given all paths, then each path given the weights: theta moved with them integrated out.
            let mut shared = SharedPairs::none(self.problem.n_x(), self.problem.model().n_u);
            for (path, sequence) in self.state.paths.iter().zip(self.problem.sequences()) {
                shared.add(&model.transition, path, sequence);
            }
            let mut rng = stream(self.seed, self.chain, Purpose::Weights, self.state.sweep, 0);
            match model.transition.with_drawn_weights(&shared.0, &mut rng) {
                Ok(transition) => model.transition = transition,
                Err(_) => {
                    info.filter_failures += self.problem.sequences().len() as u64;
                    return;
                }
            }
        }
        for (s, sequence) in self.problem.sequences().iter().enumerate() {
            let mut rng = stream(self.seed, self.chain, Purpose::States, self.state.sweep, s as u64);
            let mut shared = SharedPairs::none(self.problem.n_x(), sequence.n_u());
            let others = self.state.paths.iter().enumerate().filter(|(other, _)| *other != s && !sampled);
            for (other, path) in others {
                shared.add(&model.transition, path, &self.problem.sequences()[other]);
            }
            let x_ref = &self.state.paths[s];
            match conditional_filter(&model, sequence, &shared, self.options, x_ref, &mut rng) {
                Ok(outcome) => {
                    info.count(&outcome.numerics);
                    self.state.paths[s] = outcome.path;
                }
                Err(_) => info.filter_failures += 1,
            }
        }
    }
}
