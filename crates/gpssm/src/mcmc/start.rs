//! The cold start: a population grows along the record.
//!
//! A filter finds the right path only if its hyper-parameters suit the data, and hyper-parameters are learned only
//! from a path that is about right. So neither is looked for over the whole record at once. Candidates (theta, x)
//! begin with many draws of theta from the prior and a filter over the first rows, which is cheap (the cost grows with
//! T^3). Every stage
//!
//! 1. leads the candidates on to more rows, by a filter given the path they have (f integrated out),
//! 2. resamples them by their evidence so far,
//! 3. moves them by sweeps over the rows seen so far.
//!
//! This is a sequential Monte Carlo sampler of p(theta, x | y) (Chopin 2002, doi 10.1093/biomet/89.3.539, with
//! particle Gibbs moves), made for a few dozen candidates: weights are tempered, as their logarithms are off by a few
//! units; the last states of a path are drawn anew when it is led on, as one path has one state to go on from; and
//! evidences are summed over all stages, not reset by resampling. Nothing of the start needs to be exact: the
//! sweeps that follow are.
//!
//! One population may have gone wrong as a whole, so there are two, and their candidates meet in the last stage. Where
//! every function has a known form, filters cost little: populations are larger, and their survivors are
//! judged by a filter over the whole record.
//!
//! In the first filter every unknown function has a linear part in addition to its kernel: a trend is learned from
//! a few steps, long before the kernel alone could tell one path from another. A linear-Gaussian sensor shows the path
//! by itself and needs no such help.

mod mean;
pub(crate) mod outputs;
pub(super) mod plan;
mod unfold;

pub use self::unfold::unfolded;

use std::borrow::Cow;

use rand::Rng;

use self::plan::{Stage, plan};
use super::conditional::Conditional;
use super::settings::{Settings, StartAt, StartSettings};
use super::sweep::{Chain, ChainState};
use crate::dynamics::path_density::PathDensityWork;
use crate::dynamics::transition::Transition;
use crate::error::Error;
use crate::initial::BoundInitial;
use crate::kernel::Kernel;
use crate::model::choose::{choose, needs_path, provisional};
use crate::model::compile::Problem;
use crate::model::dynamics::DynamicsSpec;
use crate::random::{Purpose, stream};
use crate::record::Sequence;
use crate::smc::filter::{FilterError, FilterOptions, particle_filter};
use crate::state_space::SharedPairs;

/// Populations that know nothing of each other until the last stage: one that went wrong shows by its evidence only
/// beside another.
const ISLANDS: u64 = 2;
/// Draws from the prior that are tried when all candidates of a stage failed or have no density.
const EXTRA: u32 = 20;

/// Candidates that are remembered of the first stage.
const REMEMBERED: usize = 64;
/// States at the end of a path that are drawn anew when it is led on.
const REDRAWN: usize = 10;
/// Power of the evidence by which candidates are resampled.
const TEMPER: f64 = 0.25;

/// A start and its evidence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Start {
    /// Where the chain begins.
    pub state: ChainState,
    /// Estimate of log p(y) along the way to it; good for comparisons between the starts of one problem.
    pub log_marginal_likelihood: f64,
}

/// Finds a start. `keep_going` is asked before each filter, and told how many were made and how many there will
/// be.
pub fn find_start(
    problem: &Problem,
    settings: &Settings,
    chain: u32,
    keep_going: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Start>, Error> {
    if settings.starts_on_outputs() {
        return outputs::find(problem, settings, chain, keep_going);
    }
    if settings.start_at == StartAt::Mean {
        return mean::find(problem, settings, chain, keep_going);
    }
    settings.check_presample(problem)?;
    let stages = plan(problem, settings);
    let Some((last, early)) = stages.split_last() else { return Ok(None) };
    let n_islands = if early.is_empty() { 1 } else { ISLANDS };
    let cost = |stages: &[Stage]| stages.iter().map(|stage| u64::from(stage.candidates)).sum::<u64>();
    let total = n_islands * cost(early) + u64::from(last.candidates);
    let mut done = 0;
    let mut tick = || {
        let go_on = keep_going(done, total);
        done = (done + 1).min(total);
        go_on
    };
    let mut all: Vec<Start> = Vec::new();
    for island in 0..n_islands {
        let mut population = Vec::new();
        for (number, stage) in early.iter().enumerate() {
            let head = problem.head(stage.transitions, stage.exact);
            let n_kept = stages[number + 1].candidates as usize;
            let number = island << 16 | number as u64;
            let round = Round { settings, chain, number, stage, problem: &head };
            match round.advance(population, n_kept, &mut tick)? {
                Some(next) => population = next,
                None => return Ok(None),
            }
        }
        all.extend(population);
    }
    if n_islands > 1 {
        all.sort_by(|a, b| b.log_marginal_likelihood.total_cmp(&a.log_marginal_likelihood));
        all = resample(&all, last.candidates as usize);
    }
    let head = problem.head(last.transitions, last.exact);
    let round = Round { settings, chain, number: early.len() as u64, stage: last, problem: &head };
    let n_kept = if last.judged { last.candidates as usize } else { 1 };
    let Some(mut found) = round.advance(all, n_kept, &mut tick)? else { return Ok(None) };
    if last.judged {
        round.judge(&mut found);
    }
    Ok(found.into_iter().next().map(|mut start| {
        start.state.sweep = 0;
        start
    }))
}

fn failed(problem: &Problem, n_candidates: u32, last: Option<FilterError>) -> Error {
    let own = |(_, name): (usize, &str)| format!(", and that the kernel {name} is positive semi-definite");
    Error::Start {
        message: format!(
            "{} filters with hyper-parameters from the prior all failed{}; check that priors and sensor fit the \
             scale of the data{}",
            n_candidates.saturating_add(EXTRA),
            last.map_or(String::new(), |error| format!(" (the last: {error})")),
            problem.model().user_kernel().map_or(String::new(), own)
        ),
    }
}

/// Some of the candidates, the good ones several times. They come and go with the best first.
fn resample(candidates: &[Start], n: usize) -> Vec<Start> {
    let best = candidates.first().map_or(0.0, |best| best.log_marginal_likelihood);
    let weights: Vec<f64> =
        candidates.iter().map(|c| (TEMPER * (c.log_marginal_likelihood - best)).exp()).collect();
    let unit = weights.iter().sum::<f64>() / n as f64;
    let mut resampled = Vec::new();
    let mut sum = 0.0;
    for (candidate, weight) in candidates.iter().zip(weights) {
        sum += weight / unit;
        // The best is always among them; a little less than its share, for rounding.
        while (resampled.len() as f64) < sum - 1e-9 && resampled.len() < n {
            resampled.push(candidate.clone());
        }
    }
    resampled
}

/// One stage at work.
struct Round<'a> {
    settings: &'a Settings,
    chain: u32,
    number: u64,
    stage: &'a Stage,
    /// What the stage sees of the record.
    problem: &'a Problem,
}

impl Round<'_> {
    /// A candidate that has seen nothing yet.
    fn newcomer(&self, index: u32) -> Result<Start, Error> {
        let index = self.number << 32 | u64::from(index);
        let mut rng = stream(self.settings.seed, self.chain, Purpose::StartTheta, 0, index);
        let theta = self.problem.table().sample(&mut rng)?;
        Ok(Start { state: ChainState::new(self.problem, theta, Vec::new()), log_marginal_likelihood: 0.0 })
    }

    /// Leads the candidates on to the rows of this stage, keeps some and moves them, the best first; none if it was
    /// stopped. Without candidates it begins with newcomers.
    fn advance(
        &self,
        candidates: Vec<Start>,
        n_kept: usize,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Start>>, Error> {
        let n_candidates =
            if candidates.is_empty() { self.stage.candidates } else { candidates.len() as u32 };
        let mut kept: Vec<Start> = Vec::new();
        let mut doubtful: Vec<Start> = Vec::new();
        let mut last_failure = None;
        for index in 0..n_candidates.saturating_add(EXTRA) {
            if index >= n_candidates && !kept.is_empty() {
                break;
            }
            if !keep_going() {
                return Ok(None);
            }
            let candidate = match candidates.get(index as usize) {
                Some(candidate) => candidate.clone(),
                None => self.newcomer(index)?,
            };
            match self.lead_on(index, candidate) {
                Ok(candidate) if candidate.log_marginal_likelihood.is_finite() => {
                    let list = if self.has_density(&candidate.state) { &mut kept } else { &mut doubtful };
                    let place = list.partition_point(|other| {
                        other.log_marginal_likelihood >= candidate.log_marginal_likelihood
                    });
                    list.insert(place, candidate);
                    list.truncate(REMEMBERED);
                }
                Ok(_) => {}
                Err(error) => last_failure = Some(error),
            }
        }
        if kept.is_empty() {
            kept = doubtful;
        }
        if kept.is_empty() {
            return Err(failed(self.problem, n_candidates, last_failure));
        }
        let mut moved = resample(&kept, n_kept);
        moved.iter_mut().enumerate().for_each(|(i, candidate)| self.sweep(i as u64, candidate));
        Ok(Some(moved))
    }

    /// The candidate with its paths led on to the rows of this stage, each sequence given all that is there of
    /// the others.
    fn lead_on(&self, index: u32, mut candidate: Start) -> Result<Start, FilterError> {
        let (problem, n_x) = (self.problem, self.problem.n_x());
        let mut model = problem.bind(&candidate.state.theta);
        if candidate.state.paths.is_empty() && model.sensor.as_linear_gaussian().is_none() {
            add_linear_parts(&mut model.transition, problem.model().n_u);
        }
        let initial = model.initial.clone();
        let options = FilterOptions { n_particles: self.stage.particles, ..self.settings.filter_options() };
        let paths = &mut candidate.state.paths;
        paths.resize(problem.sequences().len(), Vec::new());
        for (s, sequence) in problem.sequences().iter().enumerate() {
            let n_seen = paths[s].len() / n_x;
            if n_seen == sequence.n_rows() {
                continue;
            }
            let from = n_seen.saturating_sub(1 + REDRAWN);
            let mut shared = SharedPairs::none(n_x, sequence.n_u());
            for (other, (path, sequence)) in paths.iter().zip(problem.sequences()).enumerate() {
                let n_rows = if other == s { from + 1 } else { path.len() / n_x };
                if n_rows > 1 {
                    shared.add(&model.transition, &path[..n_rows * n_x], sequence);
                }
            }
            let mut ahead = Cow::Borrowed(sequence);
            model.initial = initial.clone();
            if from > 0 {
                ahead = Cow::Owned(sequence.tail(from));
                model.initial = BoundInitial::Fixed(paths[s][from * n_x..(from + 1) * n_x].to_vec());
            }
            let index = u64::from(index) << 32 | s as u64;
            let filter = |sequence: &Sequence| {
                let mut rng =
                    stream(self.settings.seed, self.chain, Purpose::StartStates, self.number, index);
                particle_filter(&model, sequence, &shared, options, &mut rng)
            };
            let outcome = filter(&ahead)?;
            candidate.log_marginal_likelihood += outcome.log_marginal_likelihood;
            if n_seen > 0 {
                // The evidence of rows that were counted before: the same filter, the same random numbers.
                candidate.log_marginal_likelihood -=
                    filter(&ahead.head(n_seen - from))?.log_marginal_likelihood;
            }
            paths[s].truncate(from * n_x);
            paths[s].extend(outcome.path);
        }
        Ok(candidate)
    }

    /// Moves a candidate over the rows that it has seen.
    fn sweep(&self, index: u64, candidate: &mut Start) {
        // The sweeps of a start must not share random numbers with those of the chain.
        let mut rng = stream(self.settings.seed, self.chain, Purpose::StartSweeps, self.number, index);
        let (seed, options) = (rng.next_u64(), self.settings.filter_options());
        let mut chain = Chain::new(self.problem, options, seed, self.chain, candidate.state.clone());
        for _ in 0..self.stage.sweeps {
            if chain.sweep().log_joint.is_finite() {
                candidate.state.clone_from(&chain.state);
            }
        }
    }

    /// Sorts the candidates, the best first, by the evidence of the whole record under their own theta. The evidence
    /// so far is that of a theta which moved along the way.
    fn judge(&self, candidates: &mut [Start]) {
        let options = FilterOptions { n_particles: self.stage.particles, ..self.settings.filter_options() };
        for (i, candidate) in candidates.iter_mut().enumerate() {
            let mut rng =
                stream(self.settings.seed, self.chain, Purpose::StartStates, self.number + 1, i as u64);
            let model = self.problem.bind(&candidate.state.theta);
            let evidence = self.problem.sequences().iter().map(|sequence| {
                let shared = SharedPairs::none(self.problem.n_x(), sequence.n_u());
                particle_filter(&model, sequence, &shared, options, &mut rng)
                    .map_or(f64::NEG_INFINITY, |outcome| outcome.log_marginal_likelihood)
            });
            candidate.log_marginal_likelihood = evidence.sum();
        }
        candidates.sort_by(|a, b| b.log_marginal_likelihood.total_cmp(&a.log_marginal_likelihood));
    }

    /// Whether the density of the candidate can be computed: states that run away may be beyond rounding, and a chain
    /// would not find back from there.
    fn has_density(&self, state: &ChainState) -> bool {
        let mut work = PathDensityWork::default();
        let mut conditional = Conditional::new(self.problem, &state.paths, &state.theta, &mut work);
        conditional.log_joint(&state.theta).0.is_finite()
    }
}

/// Adds a linear function to every unknown one: in internal units, where a typical input makes a typical state.
fn add_linear_parts(transition: &mut Transition, n_u: usize) {
    let n_x = transition.n_x();
    let variance: Vec<f64> = (0..n_x + n_u).map(|c| if c < n_x { 1.0 / n_x as f64 } else { 1.0 }).collect();
    for kernel in transition.kernels.iter_mut().filter(|kernel| !kernel.is_zero()) {
        let linear = Kernel::linear((0..n_x + n_u).collect(), variance.clone());
        *kernel = Kernel::Sum(vec![std::mem::replace(kernel, Kernel::zero()), linear]);
    }
}

/// The problem with its finite basis chosen, if its description asks for one: from a warm-up path that depends on
/// seed, data and description only, so that all chains share it.
pub fn prepare(problem: &Problem, settings: &Settings) -> Result<Problem, Error> {
    let spec = &problem.model().dynamics;
    if *spec == DynamicsSpec::Exact || problem.basis().is_some() {
        return Ok(problem.clone());
    }
    let mut paths = Vec::new();
    let mut theta = problem.table().sample(&mut stream(settings.seed, 0, Purpose::Basis, 0, 2))?;
    if needs_path(spec) {
        let warm_up = problem.with_basis(provisional(problem, settings.seed, PROVISIONAL));
        // Where the path goes matters here, less so whether each of its signs is right.
        let restarts = settings.start.restarts.div_ceil(8);
        let settings =
            Settings { start: StartSettings { restarts, ..settings.start.clone() }, ..settings.clone() };
        // A number of its own, that no chain has.
        if let Some(start) = find_start(&warm_up, &settings, u32::MAX, &mut |_, _| true)? {
            (theta, paths) = (start.state.theta, start.state.paths);
        }
    }
    match choose(problem, settings.seed, &theta, &paths)? {
        Some(basis) => Ok(problem.with_basis(basis)),
        None => Ok(problem.clone()),
    }
}

/// Inducing inputs of the warm-up path.
const PROVISIONAL: usize = 30;
