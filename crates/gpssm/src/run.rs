//! Runs: chains that go on until they are good, or for a fixed number of draws.
//!
//! Without a fixed number of draws the chains are looked at when each has 200, 250, 313, ... draws, a quarter more from one
//! look to the next. The run is complete when all that is identified has converged at two looks in a row:
//! R-hat at most [`R_HAT_LIMIT`](crate::convergence::R_HAT_LIMIT), bulk and tail effective sample sizes of at least
//! [`Settings::ess`]. No chain goes on before all have reached a look, so the draws, and how many there are,
//! depend on seed and model alone: not on threads, speed or interruptions.
//!
//! With `Settings::point` a run is one chain with one draw: a point estimate of theta with a path.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::convergence::{Judge, Verdict, Wording};
use crate::error::Error;
use crate::mcmc::chains::{ChainPlan, Fixed, Look, Progress, RunReport, Until, run_chains};
use crate::mcmc::point::estimate;
use crate::mcmc::settings::Settings;
use crate::mcmc::sink::{Draw, Sink};
use crate::mcmc::start::prepare;
use crate::model::compile::Problem;

/// Draws of each chain at the first look.
pub const FIRST_LOOK: u64 = 200;

/// Draws of each chain at the look after the one at `draws`: a quarter more.
pub const fn next_look(draws: u64) -> u64 {
    draws.saturating_add(draws.div_ceil(4))
}

/// Draws from p(x_{0:T}, theta | y): several chains, each from its own cold start.
///
/// `on_progress` is called after every restart and every sweep, from the thread of the chain; if it returns
/// false the run stops after the sweeps that are under way, and keeps all draws. The draws do not depend on
/// the number of threads.
pub fn sample(
    problem: &Problem,
    settings: &Settings,
    sink: &dyn Sink,
    on_progress: &(dyn Fn(&Progress) -> bool + Sync),
) -> Result<RunReport, Error> {
    settings.check(problem)?;
    let problem = prepare(problem, settings)?;
    let plans = (0..settings.chains).map(|chain| ChainPlan { chain, ..ChainPlan::default() }).collect();
    sample_chains(&problem, settings, plans, sink, on_progress)
}

/// Runs some of the chains of a run, or all of them if they are to go on until they are good. A chain that goes on from
/// a state gives the draws that it would have given without the stop.
///
/// A problem with a finite basis must be the one that [`prepare`] returned, or had when the run began.
pub fn sample_chains(
    problem: &Problem,
    settings: &Settings,
    mut plans: Vec<ChainPlan>,
    sink: &dyn Sink,
    on_progress: &(dyn Fn(&Progress) -> bool + Sync),
) -> Result<RunReport, Error> {
    if settings.point {
        return estimate(problem, settings, plans, sink, on_progress);
    }
    if let Some(draws) = settings.draws {
        return run_chains(problem, settings, plans, &Fixed(draws), sink, on_progress);
    }
    settings.check(problem)?;
    plans.sort_by_key(|plan| plan.chain);
    if !plans.iter().map(|plan| plan.chain).eq(0..settings.chains) {
        return Err(Error::settings("draws", "must be given where not all chains are run together"));
    }
    for plan in &plans {
        let made = plan.from.as_ref().map_or(0, |state| state.sweep.saturating_sub(settings.tune));
        if plan.earlier.theta.len() as u64 != made {
            return Err(Error::data(format!("chain {}: its earlier draws are not all there", plan.chain)));
        }
    }
    let chains: Vec<u32> = plans.iter().map(|plan| plan.chain).collect();
    let until = UntilGood { judge: Judge::new(problem, settings, &chains), was_good: AtomicBool::new(false) };
    until.judge.take_all(plans.iter().map(|plan| (plan.chain, &plan.earlier)));
    plans.iter_mut().for_each(|plan| plan.earlier = Default::default());
    run_chains(problem, settings, plans, &until, sink, on_progress)
}

/// Goes on until the verdict was good twice in a row.
struct UntilGood<'a> {
    judge: Judge<'a>,
    was_good: AtomicBool,
}

impl Until for UntilGood<'_> {
    fn take(&self, draw: &Draw) {
        self.judge.take(draw.chain, draw.theta, draw.paths);
    }

    fn first(&self) -> u64 {
        FIRST_LOOK
    }

    fn look(&self, draws: u64) -> (Option<u64>, Option<Look>) {
        let verdict = self.judge.verdict(draws as usize);
        let good = verdict.is_good();
        let again = self.was_good.swap(good, Ordering::Relaxed) && good;
        let next = (!again).then(|| next_look(draws));
        (next, Some(look(&verdict, draws)))
    }
}

fn look(verdict: &Verdict, draws: u64) -> Look {
    let name = |judged: &crate::convergence::Judged| judged.quantity.describe(&Wording::ROWS);
    let ess = verdict.worst_ess().map_or((None, String::new()), |judged| (judged.ess(), name(judged)));
    let r_hat = verdict.worst_r_hat().map_or((None, String::new()), |judged| (judged.r_hat, name(judged)));
    let good = verdict.is_good();
    Look { draws, ess, r_hat, good, expected: expected(verdict, draws) }
}

/// Draws that are needed in the end, beyond what the worst of many effective sample sizes promises: another quantity will be the worst
/// by then, and all must be good at once. Found on fits of records of 100 to 300 rows, whose ends were foretold at half the draws.
const SLACK: f64 = 1.25;

/// Draws of each chain at which the run will be complete, if these draws are typical.
fn expected(verdict: &Verdict, draws: u64) -> Option<u64> {
    let needed = if verdict.is_good() { draws as f64 } else { SLACK * verdict.factor()? * draws as f64 };
    let mut at = draws;
    while (at as f64) < needed && at < u64::MAX / 2 {
        at = next_look(at);
    }
    // It must hold once more.
    Some(next_look(at))
}
