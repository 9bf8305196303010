//! Several chains in threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::moves::{self, MoveTotals};
use super::settings::Settings;
use super::sink::{Draw, Phase, Sink};
use super::start::{Start, find_start, prepare};
use super::sweep::{Chain, ChainState, SweepInfo};
use crate::diagnostics::UpdateRate;
use crate::dynamics::basis::features::BasisChoice;
use crate::error::Error;
use crate::model::compile::Problem;
use crate::model::dynamics::DynamicsSpec;
use crate::model::orientation::orient;

/// How far a chain is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Which chain.
    pub chain: u32,
    /// What it does.
    pub phase: Phase,
    /// Filters of the start or sweeps done in this phase.
    pub done: u64,
    /// Filters or sweeps in all of this phase.
    pub total: u64,
}

/// What a chain did, beside its draws.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChainReport {
    /// Which chain.
    pub chain: u32,
    /// Where it stopped; none if it was stopped before it had a start.
    pub state: Option<ChainState>,
    /// Its start; none for a chain that was continued.
    pub start: Option<Start>,
    /// Draws that were kept.
    pub draws: u64,
    /// How often each x_t changed in the sampling phase, by sequence.
    pub update_rates: Vec<UpdateRate>,
    /// Sums over all sweeps; the log densities are those of the last one.
    pub totals: SweepInfo,
    /// How often each move was made, and what it took; not from before a resumption.
    pub moves: Vec<MoveTotals>,
}

/// What a run did, beside its draws.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunReport {
    /// By chain.
    pub chains: Vec<ChainReport>,
    /// Whether the run was stopped before its end.
    pub cancelled: bool,
    /// The finite basis that all chains share, if there is one.
    pub basis: Option<BasisChoice>,
}

/// One chain of a run: from its own cold start, or on from where it stopped.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    /// Which chain; with the seed it determines every draw.
    pub chain: u32,
    /// Where it stopped; none for a cold start.
    pub from: Option<ChainState>,
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
    let plans = (0..settings.chains).map(|chain| ChainPlan { chain, from: None }).collect();
    sample_chains(&problem, settings, plans, sink, on_progress)
}

/// Runs some of the chains of a run, each until it has `settings.draws` draws after `settings.tune` warm-up
/// sweeps. A chain that goes on from a state gives the draws that it would have given without the stop.
///
/// A problem with a finite basis must be the one that [`prepare`] returned, or had when the run began.
pub fn sample_chains(
    problem: &Problem,
    settings: &Settings,
    plans: Vec<ChainPlan>,
    sink: &dyn Sink,
    on_progress: &(dyn Fn(&Progress) -> bool + Sync),
) -> Result<RunReport, Error> {
    settings.check(problem)?;
    if problem.model().dynamics != DynamicsSpec::Exact && problem.basis().is_none() {
        return Err(Error::model("dynamics", "the finite basis has not been chosen yet; call prepare first"));
    }
    for plan in &plans {
        if let Some(state) = &plan.from {
            state.check(problem)?;
        }
    }
    let run = Run { problem, settings, sink, on_progress, stop: AtomicBool::new(false) };
    let n_threads = settings.n_threads().min(plans.len());
    let plans = Mutex::new(plans.into_iter());
    let next = || plans.lock().unwrap_or_else(PoisonError::into_inner).next();
    let reports: Mutex<Vec<ChainReport>> = Mutex::new(Vec::new());
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some(plan) = next() {
                    if run.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    match run.chain(plan) {
                        Ok(report) => reports.lock().unwrap_or_else(PoisonError::into_inner).push(report),
                        Err(error) => {
                            run.stop.store(true, Ordering::Relaxed);
                            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut chains = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    chains.sort_by_key(|report| report.chain);
    Ok(RunReport { chains, cancelled: run.stop.into_inner(), basis: problem.basis().cloned() })
}

struct Run<'a> {
    problem: &'a Problem,
    settings: &'a Settings,
    sink: &'a dyn Sink,
    on_progress: &'a (dyn Fn(&Progress) -> bool + Sync),
    stop: AtomicBool,
}

impl Run<'_> {
    /// Reports progress; false if the run is to stop.
    fn tell(&self, chain: u32, phase: Phase, done: u64, total: u64) -> bool {
        if !(self.on_progress)(&Progress { chain, phase, done, total }) {
            self.stop.store(true, Ordering::Relaxed);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn chain(&self, plan: ChainPlan) -> Result<ChainReport, Error> {
        let number = plan.chain;
        let (problem, settings) = (self.problem, self.settings);
        let sequences = problem.sequences();
        let mut report = ChainReport {
            chain: number,
            state: None,
            start: None,
            draws: 0,
            update_rates: sequences.iter().map(|sequence| UpdateRate::new(sequence.n_rows())).collect(),
            totals: SweepInfo::default(),
            moves: Vec::new(),
        };
        let state = match plan.from {
            Some(state) => state,
            None => {
                let mut keep_going = |done, total| self.tell(number, Phase::Start, done, total);
                let Some(start) = find_start(problem, settings, number, &mut keep_going)? else {
                    return Ok(report);
                };
                report.start.insert(start).state.clone()
            }
        };
        let moves = moves::select(&settings.moves, settings.narx, problem);
        let chain = Chain::new(problem, settings.filter_options(), settings.seed, number, state);
        let mut chain = chain.with_moves(moves);
        for (phase, first, total) in
            [(Phase::Tune, 0, settings.tune), (Phase::Sample, settings.tune, settings.draws)]
        {
            if phase == Phase::Sample && chain.state.sweep >= first {
                chain.freeze();
            }
            for index in chain.state.sweep.saturating_sub(first)..total {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                self.sweep(&mut chain, phase, index, &mut report)?;
                self.tell(number, phase, index + 1, total);
            }
        }
        report.moves = chain.move_totals().to_vec();
        report.state = Some(chain.state);
        Ok(report)
    }

    fn sweep(
        &self,
        chain: &mut Chain,
        phase: Phase,
        index: u64,
        report: &mut ChainReport,
    ) -> Result<(), Error> {
        let problem = self.problem;
        let before = if phase == Phase::Sample { chain.state.paths.clone() } else { Vec::new() };
        let info = chain.sweep();
        if phase == Phase::Tune {
            chain.adapt();
        }
        report.totals.add(&info);
        for ((rate, old), new) in report.update_rates.iter_mut().zip(&before).zip(&chain.state.paths) {
            // Both paths have the shape of their sequence.
            let _ = rate.record(old, new, problem.n_x());
        }
        let mut theta = chain.state.theta.clone();
        let mut paths: Vec<Vec<f64>> =
            chain.state.paths.iter().map(|path| problem.path_to_original(path)).collect();
        orient(problem, &mut theta, &mut paths);
        let draw = Draw {
            chain: report.chain,
            phase,
            index,
            theta: &theta,
            paths: &paths,
            info: &info,
            state: &chain.state,
        };
        self.sink.take(&draw)?;
        report.draws += u64::from(phase == Phase::Sample);
        Ok(())
    }
}
