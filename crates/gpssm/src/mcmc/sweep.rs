//! One sweep of a chain (Algorithm 1 of the paper).

use serde::{Deserialize, Deserializer, Serialize};

use super::conditional::Conditional;
use super::gaussian_coordinates::Anchor;
use super::moves::{self, Move, MoveTotals, Sweep};
use super::slice::WidthAdaptation;
use crate::dynamics::numerics::Numerics;
use crate::dynamics::path_density::PathDensityWork;
use crate::dynamics::transition::Transition;
use crate::error::Error;
use crate::linalg::small;
use crate::model::compile::Problem;
use crate::model::parameters::{Coordinate, ParameterPrior, ParameterTable};
use crate::smc::children::{Children, Scarcity};
use crate::smc::filter::FilterOptions;

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
    /// What Gaussian approximations are expanded around, and the mean path since it was last set; frozen after warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    /// Axes along which the learned entries of theta, and then the coefficients of f, move with the path: columns of a lower
    /// triangle, row-major; frozen after warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<f64>,
    /// Coefficients of linear and constant parts of f, as they were last drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coefficients: Vec<f64>,
    /// What was visited since they were last set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visited: Option<Visited>,
    /// Children on the shortlists of each sequence; frozen after warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Children>,
    /// What is known of their numbers since they were last set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scarcity: Vec<Scarcity>,
}

/// Sums over sweeps of warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visited {
    n: u64,
    paths: Vec<Vec<f64>>,
    /// Mean of the coordinates of the learned entries of theta and of the coefficients of f, and the sum of products of distances
    /// from it.
    theta: Vec<f64>,
    products: Vec<f64>,
}

impl Visited {
    fn nothing(state: &ChainState, n: usize) -> Self {
        let paths = state.paths.iter().map(|path| vec![0.0; path.len()]).collect();
        Self { n: 0, paths, theta: vec![0.0; n], products: vec![0.0; n * n] }
    }

    fn add(&mut self, problem: &Problem, state: &ChainState) {
        let mut at = problem.table().learned_coordinates(&state.theta);
        at.extend(&state.coefficients);
        if at.len() != self.theta.len() {
            *self = Self::nothing(state, at.len());
        }
        let size = |x: &f64| if Anchor::is_signed(problem) { x.abs() } else { *x };
        for (sum, path) in self.paths.iter_mut().zip(&state.paths) {
            sum.iter_mut().zip(path).for_each(|(sum, x)| *sum += size(x));
        }
        let n = at.len();
        self.n += 1;
        let before: Vec<f64> = at.iter().zip(&self.theta).map(|(x, mean)| x - mean).collect();
        self.theta.iter_mut().zip(&before).for_each(|(mean, before)| *mean += before / self.n as f64);
        for i in 0..n {
            (0..n).for_each(|j| self.products[i * n + j] += before[i] * (at[j] - self.theta[j]));
        }
    }

    fn mean_paths(&self) -> Vec<Vec<f64>> {
        self.paths.iter().map(|sum| sum.iter().map(|x| x / self.n as f64).collect()).collect()
    }

    /// Cholesky factor of the covariance of theta and the coefficients of f, drawn towards independence; logarithms also towards a spread of a fifth.
    fn axes(&self, table: &ParameterTable) -> Vec<f64> {
        let (m, n) = (self.theta.len(), self.n as f64);
        let prior = PRIOR_DRAWS / (n + PRIOR_DRAWS);
        let mut covariance: Vec<f64> = self.products.iter().map(|sum| (1.0 - prior) * sum / n).collect();
        for (i, k) in table.learned().enumerate() {
            let least = if table.parameters[k].coordinate == Coordinate::Log { 0.04 } else { 0.0 };
            covariance[i * m + i] = covariance[i * m + i] / (1.0 - prior) + prior * least;
        }
        if small::cholesky(&mut covariance, m) { covariance } else { Vec::new() }
    }
}

/// Draws that independence counts for in the covariance of theta.
const PRIOR_DRAWS: f64 = 5.0;

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
        Self {
            sweep: 0,
            theta,
            paths,
            widths,
            anchor: None,
            axes: Vec::new(),
            coefficients: Vec::new(),
            visited: None,
            children: Vec::new(),
            scarcity: Vec::new(),
        }
    }

    /// log p(theta, x, y) and log p(y | x, theta), as [`SweepInfo`] has them; f is integrated out.
    pub fn log_densities(&self, problem: &Problem) -> (f64, f64) {
        let mut work = PathDensityWork::default();
        Conditional::new(problem, &self.paths, &self.theta, &mut work).log_joint(&self.theta)
    }

    /// Refuses a state that does not belong to this problem.
    pub fn check(&self, problem: &Problem) -> Result<(), Error> {
        let fits = self.theta.len() == problem.table().len()
            && self.widths.len() == problem.table().len()
            && self.paths.len() == problem.sequences().len()
            && self.paths.iter().zip(problem.sequences()).all(|(p, s)| p.len() == s.n_rows() * problem.n_x())
            && self.children.iter().zip(problem.sequences()).all(|(c, s)| c.fits(s.n_rows()))
            && self.anchor.as_ref().is_none_or(|anchor| anchor.fits(problem))
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
    #[serde(deserialize_with = "null_is_nan")]
    pub log_joint: f64,
    /// log p(y | x, theta).
    #[serde(deserialize_with = "null_is_nan")]
    pub log_likelihood_total: f64,
}

/// JSON has no number for what is not one.
fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
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
        self.log_likelihood_total = other.log_likelihood_total;
    }

    pub(super) fn count(&mut self, numerics: &Numerics) {
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
    moves: Vec<&'a dyn Move>,
    totals: Vec<MoveTotals>,
    work: PathDensityWork,
    drawn: Option<Transition>,
    /// Children for one effective draw in the last sweep, by sequence and row.
    scarcity: Vec<Vec<f64>>,
}

impl<'a> Chain<'a> {
    /// Chain number `chain` of the run with this seed, at `state`, with all moves that apply.
    pub fn new(
        problem: &'a Problem,
        options: FilterOptions,
        seed: u64,
        chain: u32,
        state: ChainState,
    ) -> Self {
        let moves = moves::select(&[], false, problem);
        let totals = Vec::new();
        let work = PathDensityWork::default();
        let (drawn, scarcity) = (None, vec![Vec::new(); problem.sequences().len()]);
        Self { problem, options, seed, chain, state, moves: Vec::new(), totals, work, drawn, scarcity }
            .with_moves(moves)
    }

    /// The same chain with these moves in a sweep, in this order.
    #[must_use]
    pub fn with_moves(mut self, moves: Vec<&'a dyn Move>) -> Self {
        self.totals = moves.iter().map(|step| MoveTotals::new(*step)).collect();
        self.moves = moves;
        self
    }

    /// How often each move of a sweep was made, and what it took.
    pub fn move_totals(&self) -> &[MoveTotals] {
        &self.totals
    }

    /// Makes all moves once.
    pub fn sweep(&mut self) -> SweepInfo {
        let mut info = SweepInfo::default();
        self.state.sweep += 1;
        self.drawn = None;
        let (moves, mut totals) = (self.moves.clone(), std::mem::take(&mut self.totals));
        for (step, total) in moves.into_iter().zip(&mut totals) {
            total.make(step, &mut self.context(&mut info));
        }
        self.totals = totals;
        let state = &self.state;
        let mut conditional = Conditional::new(self.problem, &state.paths, &state.theta, &mut self.work);
        (info.log_joint, info.log_likelihood_total) = conditional.log_joint(&state.theta);
        info
    }

    /// Adapts what moves are tuned by, after a sweep of warm-up: the mean path and what sensors tell are followed, and the
    /// anchor of Gaussian approximations and the lengths of shortlists set anew after 10, 20, 40, ... sweeps.
    pub fn adapt(&mut self) {
        let state = &mut self.state;
        if self.scarcity.iter().any(|sweep| !sweep.is_empty()) {
            state.scarcity.resize(self.scarcity.len(), Scarcity::default());
            state.scarcity.iter_mut().zip(&self.scarcity).for_each(|(all, sweep)| all.add(sweep));
        }
        let is_time = state.sweep.is_multiple_of(10) && (state.sweep / 10).is_power_of_two();
        if is_time {
            self.set_children();
        }
        let state = &mut self.state;
        if !self.moves.iter().any(|step| step.needs_anchor()) {
            return;
        }
        let mut visited = state.visited.take().unwrap_or_else(|| Visited::nothing(state, 0));
        visited.add(self.problem, state);
        state.visited = Some(visited);
        if is_time {
            self.set_anchor();
        }
    }

    /// Ends the adaptation.
    pub fn freeze(&mut self) {
        self.state.widths.iter_mut().for_each(WidthAdaptation::freeze);
        self.set_anchor();
        self.set_children();
        self.state.scarcity.clear();
    }

    /// Sets the lengths of shortlists by what was seen since they were last set, if that is enough.
    fn set_children(&mut self) {
        let state = &mut self.state;
        if let Some(children) = state.scarcity.iter().map(Scarcity::children).collect::<Option<Vec<_>>>()
            && !children.is_empty()
        {
            state.children = children;
            state.scarcity.clear();
        }
    }

    /// Sets the anchor around the mean path since it was last set; keeps the old one if that fails.
    fn set_anchor(&mut self) {
        let state = &mut self.state;
        let Some(visited) = state.visited.take() else { return };
        if let Ok(anchor) = Anchor::new(self.problem, &state.theta, &state.paths, &visited.mean_paths()) {
            state.anchor = Some(anchor);
        }
        state.axes = visited.axes(self.problem.table());
    }

    /// Makes one move, as a part of the sweep with the number that the state has.
    pub fn make(&mut self, step: &dyn Move, info: &mut SweepInfo) {
        step.update(&mut self.context(info));
    }

    fn context<'b>(&'b mut self, info: &'b mut SweepInfo) -> Sweep<'b> {
        Sweep {
            problem: self.problem,
            options: self.options,
            seed: self.seed,
            chain: self.chain,
            state: &mut self.state,
            work: &mut self.work,
            drawn: &mut self.drawn,
            scarcity: &mut self.scarcity,
            info,
        }
    }
}
