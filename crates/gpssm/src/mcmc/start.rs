//! The cold start: large filters with hyper-parameters from the prior, best evidence kept.

use super::settings::Settings;
use super::sweep::ChainState;
use crate::error::Error;
use crate::model::choose::{choose, needs_path, provisional};
use crate::model::compile::Problem;
use crate::model::dynamics::DynamicsSpec;
use crate::random::{Purpose, stream};
use crate::smc::filter::{FilterError, FilterOptions, SharedPairs, particle_filter};

/// Restarts that are tried beyond the wanted ones when none of them succeeded.
const EXTRA: u32 = 20;

/// A start and its evidence.
#[derive(Clone, Debug)]
pub struct Start {
    /// Where the chain begins.
    pub state: ChainState,
    /// Estimate of log p(y | theta) of the filter that found it.
    pub log_evidence: f64,
}

/// The best of several restarts. `keep_going` is asked before each of them.
pub fn find_start(
    problem: &Problem,
    settings: &Settings,
    chain: u32,
    keep_going: &mut dyn FnMut(u32) -> bool,
) -> Result<Option<Start>, Error> {
    let mut best: Option<Start> = None;
    let mut last_failure = None;
    for restart in 0..settings.start.restarts.saturating_add(EXTRA) {
        if restart >= settings.start.restarts && best.is_some() {
            break;
        }
        if !keep_going(restart) {
            return Ok(best);
        }
        match attempt(problem, settings, chain, restart) {
            Ok(start) if start.log_evidence.is_finite() => {
                if best.as_ref().is_none_or(|best| start.log_evidence > best.log_evidence) {
                    best = Some(start);
                }
            }
            Ok(_) => {}
            Err(Attempt::Filter(error)) => last_failure = Some(error),
            Err(Attempt::Fatal(error)) => return Err(error),
        }
    }
    match best {
        Some(best) => Ok(Some(best)),
        None => Err(Error::Start {
            message: format!(
                "{} filters with hyper-parameters from the prior all failed{}; check that priors and sensor fit \
                 the scale of the data",
                settings.start.restarts.saturating_add(EXTRA),
                last_failure.map_or(String::new(), |error| format!(" (the last: {error})"))
            ),
        }),
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
        // A number of its own, that no chain has.
        if let Some(start) = find_start(&warm_up, settings, u32::MAX, &mut |_| true)? {
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

enum Attempt {
    Filter(FilterError),
    Fatal(Error),
}

fn attempt(problem: &Problem, settings: &Settings, chain: u32, restart: u32) -> Result<Start, Attempt> {
    let mut rng = stream(settings.seed, chain, Purpose::StartTheta, 0, u64::from(restart));
    let theta = problem.table().sample(&mut rng).map_err(Attempt::Fatal)?;
    let model = problem.bind(&theta);
    let options =
        FilterOptions { n_particles: settings.start_particles(problem), ..settings.filter_options() };
    let mut shared = SharedPairs::none(problem.n_x(), problem.model().n_u);
    let mut log_evidence = 0.0;
    let mut paths = Vec::new();
    // Each sequence is filtered given the paths of those before it.
    for (s, sequence) in problem.sequences().iter().enumerate() {
        let index = u64::from(restart) << 32 | s as u64;
        let mut rng = stream(settings.seed, chain, Purpose::StartStates, 0, index);
        let outcome =
            particle_filter(&model, sequence, &shared, options, &mut rng).map_err(Attempt::Filter)?;
        log_evidence += outcome.log_evidence;
        shared.add(&model.transition, &outcome.path, sequence);
        paths.push(outcome.path);
    }
    Ok(Start { state: ChainState::new(problem, theta, paths), log_evidence })
}
