//! The steps of a sweep. Each leaves p(x_{0:T}, theta | y_{0:T}) invariant by itself, so any list of them does.
//!
//! A move has a name, says whether it has anything to do for a problem, and updates a chain with random streams and
//! counters of its own. A sweep makes the moves of its list in order:
//!
//! - [`HyperParameters`]: theta given x and y (Algorithm 1, step a)
//! - [`Interweave`]: sensor noise together with the states seen through it
//! - [`Signs`]: the signs that a sensor does not see, at all times at once
//! - [`PathAndNoise`]: theta, noise levels above all, together with the path
//! - [`Weights`]: the weights of a finite basis given theta and x, where they are drawn
//! - [`States`]: the path of each sequence given theta and y (Algorithm 1, steps b and c)

pub(crate) mod hyper_parameters;
pub(crate) mod interweave;
pub(crate) mod path_and_noise;
pub(crate) mod signs;
pub(crate) mod states;
pub(crate) mod weights;

use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;

use super::sweep::{ChainState, SweepInfo};
use crate::dynamics::path_density::PathDensityWork;
use crate::dynamics::transition::Transition;
use crate::error::Error;
use crate::formula::did_you_mean;
use crate::model::compile::Problem;
use crate::random::{Purpose, stream};
use crate::smc::filter::FilterOptions;

pub use hyper_parameters::HyperParameters;
pub use interweave::Interweave;
pub use path_and_noise::PathAndNoise;
pub use signs::Signs;
pub use states::States;
pub use weights::Weights;

/// One step of a sweep.
pub trait Move: Sync {
    /// Its name in settings, reports and the log.
    fn name(&self) -> &'static str;

    /// Whether it has anything to do for this problem; asked once for each chain.
    fn applies(&self, problem: &Problem) -> bool;

    /// Whether it changes states. A GP-NARX model has none to change.
    fn changes_states(&self) -> bool;

    /// Whether it needs the anchor of Gaussian approximations, which the warm-up then finds.
    fn needs_anchor(&self) -> bool {
        false
    }

    /// Updates the chain.
    fn update(&self, sweep: &mut Sweep);
}

/// All moves, in the order in which a sweep makes them.
pub const ALL: [&dyn Move; 6] = [&HyperParameters, &Interweave, &Signs, &PathAndNoise, &Weights, &States];

/// The moves of these names that apply to a problem, in the order of [`ALL`]; all of them if no name is given.
pub fn select(names: &[String], narx: bool, problem: &Problem) -> Vec<&'static dyn Move> {
    let chosen = |step: &&&dyn Move| {
        (names.is_empty() || names.iter().any(|name| name == step.name()))
            && !(narx && step.changes_states())
            && step.applies(problem)
    };
    ALL.iter().filter(chosen).copied().collect()
}

/// Refuses names that no move has, and lists from which states could not be drawn.
pub(crate) fn check(names: &[String], problem: &Problem) -> Result<(), Error> {
    let known = || ALL.iter().map(|step| step.name());
    if let Some(name) = names.iter().find(|name| known().all(|known| known != name.as_str())) {
        let all: Vec<&str> = known().collect();
        let hint = did_you_mean(name, known());
        return Err(Error::settings(
            "moves",
            format!("there is no move '{name}'{hint} (moves: {})", all.join(", ")),
        ));
    }
    let has = |step: &dyn Move| names.is_empty() || names.iter().any(|name| name == step.name());
    if has(&States) && Weights.applies(problem) && !has(&Weights) {
        return Err(Error::settings(
            "moves",
            "drawing states given drawn weights needs the move 'weights', too",
        ));
    }
    Ok(())
}

/// What a move sees of a chain, and may change.
pub struct Sweep<'a> {
    /// What is sampled.
    pub problem: &'a Problem,
    /// How filters are run.
    pub options: FilterOptions,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the chain.
    pub chain: u32,
    /// Where the chain is.
    pub state: &'a mut ChainState,
    /// Matrices that evaluations of p(x_{1:T} | x_0, theta) keep.
    pub(crate) work: &'a mut PathDensityWork,
    /// The transition with the weights drawn in this sweep, if there are any. A move that changes theta or the
    /// paths with weights integrated out must come before they are drawn.
    pub drawn: &'a mut Option<Transition>,
    /// Children for one effective draw in this sweep, by sequence and row; empty without shortlists.
    pub(crate) scarcity: &'a mut [Vec<f64>],
    /// What happened in the sweep so far.
    pub info: &'a mut SweepInfo,
}

impl Sweep<'_> {
    /// The random stream of this sweep for one purpose.
    pub fn stream(&self, purpose: Purpose, index: u64) -> ChaCha8Rng {
        stream(self.seed, self.chain, purpose, self.state.sweep, index)
    }

    /// Takes the jitter that evaluations needed over into the counters.
    pub(crate) fn count_jitter(&mut self) {
        let jitter = std::mem::take(&mut self.work.relative_jitter);
        self.info.relative_jitter = self.info.relative_jitter.max(jitter);
    }
}

/// How often a move was made in a run, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveTotals {
    /// Its name.
    pub name: &'static str,
    /// Updates made.
    pub updates: u64,
    /// Path densities p(x_{1:T} | x_0, theta) evaluated.
    pub density_evaluations: u64,
    /// Time on the clock.
    pub time: Duration,
}

impl MoveTotals {
    pub(crate) fn new(step: &dyn Move) -> Self {
        Self { name: step.name(), updates: 0, density_evaluations: 0, time: Duration::ZERO }
    }

    /// Makes the move, and counts it.
    pub(crate) fn make(&mut self, step: &dyn Move, sweep: &mut Sweep) {
        let (began, evaluations) = (Instant::now(), sweep.info.density_evaluations);
        step.update(sweep);
        self.updates += 1;
        self.density_evaluations += sweep.info.density_evaluations - evaluations;
        self.time += began.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcmc::sweep::Chain;
    use crate::{Functions, Model, Sequence, Settings};

    fn problem() -> Problem {
        let y: Vec<f64> = (0..12).map(|t| f64::from(t).sin()).collect();
        let record = Sequence::scalar(&y, None).expect("a sequence").into();
        Problem::new(Model::observed(1, 0), &Functions::new(), record).expect("a problem")
    }

    fn names(moves: &[&dyn Move]) -> Vec<&'static str> {
        moves.iter().map(|step| step.name()).collect()
    }

    #[test]
    fn moves_are_selected_by_name_and_by_what_applies() {
        let problem = problem();
        assert_eq!(
            names(&select(&[], false, &problem)),
            ["hyper_parameters", "interweave", "path_and_noise", "states"]
        );
        assert_eq!(names(&select(&[], true, &problem)), ["hyper_parameters"]);
        let given = ["states".to_owned(), "signs".to_owned()];
        assert_eq!(names(&select(&given, false, &problem)), ["states"]);
        let settings = Settings { moves: vec!["state".into()], ..Settings::default() };
        let message = settings.check(&problem).unwrap_err().to_string();
        assert!(message.contains("no move 'state'; did you mean 'states'?"), "{message}");
    }

    #[test]
    fn a_move_that_is_switched_off_leaves_its_part_alone_and_every_move_is_counted() {
        let problem = problem();
        let state = ChainState::new(&problem, vec![1.0; problem.table().len()], vec![vec![0.1; 12]]);
        let only_states = select(&["states".to_owned()], false, &problem);
        let mut chain =
            Chain::new(&problem, FilterOptions::new(5), 1, 0, state.clone()).with_moves(only_states);
        chain.sweep();
        chain.sweep();
        assert_eq!(chain.state.theta, state.theta);
        assert_ne!(chain.state.paths, state.paths);
        assert_eq!((chain.move_totals()[0].name, chain.move_totals()[0].updates), ("states", 2));
        let mut narx = Chain::new(&problem, FilterOptions::new(5), 1, 0, state.clone()).with_moves(select(
            &[],
            true,
            &problem,
        ));
        narx.sweep();
        assert_eq!(narx.state.paths, state.paths);
        assert_ne!(narx.state.theta, state.theta);
        assert!(narx.move_totals()[0].density_evaluations > 0);
    }
}
