//! Several chains in threads.
//!
//! Chains advance together: a thread takes the chain that is furthest behind, for about a second, and no chain goes on
//! before all have reached the draws that the rule ([`Until`]) asks for. So a run that is stopped has chains of nearly
//! equal length, and what a rule sees does not depend on speed or threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::moves::{self, MoveTotals};
use super::settings::Settings;
use super::sink::{ChainDraws, Draw, Phase, Sink};
use super::start::{Start, find_start};
use super::sweep::{Chain, ChainState, SweepInfo};
use crate::diagnostics::UpdateRate;
use crate::dynamics::basis::features::BasisChoice;
use crate::error::Error;
use crate::model::compile::Problem;
use crate::model::dynamics::DynamicsSpec;
use crate::model::orientation::orient;

/// Time after which a thread looks for a chain that is further behind.
const PIECE: Duration = Duration::from_secs(1);

/// How far a chain is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Which chain.
    pub chain: u32,
    /// What it does.
    pub phase: Phase,
    /// Filters of the start or sweeps done in this phase.
    pub done: u64,
    /// Filters or sweeps in all of this phase; draws at the next look for a run that goes on until it is good.
    pub total: u64,
    /// What the last look at all chains found, for a run that goes on until it is good.
    pub look: Option<Arc<Look>>,
}

/// What a look at all chains found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Look {
    /// Draws of each chain.
    pub draws: u64,
    /// Smallest effective sample size, bulk or tail, and the quantity that has it; none where it is not defined.
    pub ess: (Option<f64>, String),
    /// Largest R-hat, the same way.
    pub r_hat: (Option<f64>, String),
    /// Whether all that is judged was good.
    pub good: bool,
    /// Draws of each chain at which the run is expected to be complete, if that can be said.
    pub expected: Option<u64>,
}

/// When chains are long enough.
pub(crate) trait Until: Sync {
    /// Takes note of a draw of the sampling phase.
    fn take(&self, draw: &Draw);
    /// Draws that every chain must have before the first look.
    fn first(&self) -> u64;
    /// All chains have so many draws: how many they must have before the next look, or none if these are enough.
    fn look(&self, draws: u64) -> (Option<u64>, Option<Look>);
}

/// A fixed number of draws.
pub(crate) struct Fixed(pub u64);

impl Until for Fixed {
    fn take(&self, _: &Draw) {}

    fn first(&self) -> u64 {
        self.0
    }

    fn look(&self, _: u64) -> (Option<u64>, Option<Look>) {
        (None, None)
    }
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

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It has all of its draws.
    Complete,
    /// It was told to stop.
    Cancelled,
    /// Its time was up.
    Budget,
}

/// What a run did, beside its draws.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunReport {
    /// By chain.
    pub chains: Vec<ChainReport>,
    /// How it ended.
    pub ended: Ended,
    /// The finite basis that all chains share, if there is one.
    pub basis: Option<BasisChoice>,
}

/// One chain of a run: from its own cold start, or on from where it stopped.
#[derive(Clone, Debug, Default)]
pub struct ChainPlan {
    /// Which chain; with the seed it determines every draw.
    pub chain: u32,
    /// Where it stopped; none for a cold start.
    pub from: Option<ChainState>,
    /// The draws that it has already; needed by a run that goes on until it is good.
    pub earlier: ChainDraws,
}

/// Runs some of the chains of a run, after `settings.tune` warm-up sweeps each, until the rule has enough draws. A chain
/// that goes on from a state gives the draws that it would have given without the stop.
///
/// A problem with a finite basis must be the one that [`prepare`](super::start::prepare) returned, or had when the run
/// began.
pub(crate) fn run_chains(
    problem: &Problem,
    settings: &Settings,
    plans: Vec<ChainPlan>,
    until: &dyn Until,
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
    let n_threads = settings.n_threads().min(plans.len());
    let waiting = plans.into_iter().map(|plan| Task::new(problem, plan)).collect();
    let pool = Pool { waiting, running: 0, target: until.first(), complete: false, failure: None };
    let run = Run {
        problem,
        settings,
        until,
        sink,
        on_progress,
        deadline: settings.time_limit().and_then(|limit| Instant::now().checked_add(limit)),
        stop: AtomicBool::new(false),
        out_of_time: AtomicBool::new(false),
        look: Mutex::new(None),
        pool: Mutex::new(pool),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| run.work());
        }
    });
    let pool = run.pool.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = pool.failure {
        return Err(error);
    }
    let mut chains: Vec<ChainReport> = pool.waiting.into_iter().map(|task| task.report).collect();
    chains.sort_by_key(|report| report.chain);
    let ended = match run.out_of_time.into_inner() {
        _ if pool.complete => Ended::Complete,
        true => Ended::Budget,
        false => Ended::Cancelled,
    };
    Ok(RunReport { chains, ended, basis: problem.basis().cloned() })
}

/// A chain between two pieces of its run; its state is in its report.
struct Task {
    report: ChainReport,
}

impl Task {
    fn new(problem: &Problem, plan: ChainPlan) -> Self {
        let rates = problem.sequences().iter().map(|sequence| UpdateRate::new(sequence.n_rows()));
        let report = ChainReport {
            chain: plan.chain,
            state: plan.from,
            start: None,
            draws: 0,
            update_rates: rates.collect(),
            totals: SweepInfo::default(),
            moves: Vec::new(),
        };
        Self { report }
    }

    /// Sweeps made; none before the start.
    fn sweeps(&self) -> Option<u64> {
        self.report.state.as_ref().map(|state| state.sweep)
    }
}

/// Chains that no thread is at, and how far all are to go.
struct Pool {
    waiting: Vec<Task>,
    running: usize,
    /// Draws that every chain is to have.
    target: u64,
    complete: bool,
    failure: Option<Error>,
}

impl Pool {
    /// Takes the chain that is furthest behind, if any is to go on.
    fn next(&mut self, tune: u64) -> Option<Task> {
        let end = tune.saturating_add(self.target);
        let open = self.waiting.iter().enumerate().filter(|(_, task)| task.sweeps() < Some(end));
        let (place, _) = open.min_by_key(|(_, task)| (task.sweeps(), task.report.chain))?;
        Some(self.waiting.swap_remove(place))
    }
}

struct Run<'a> {
    problem: &'a Problem,
    settings: &'a Settings,
    until: &'a dyn Until,
    sink: &'a dyn Sink,
    on_progress: &'a (dyn Fn(&Progress) -> bool + Sync),
    deadline: Option<Instant>,
    stop: AtomicBool,
    out_of_time: AtomicBool,
    look: Mutex<Option<Arc<Look>>>,
    pool: Mutex<Pool>,
    /// A chain came back, or there is another end to go to.
    changed: Condvar,
}

/// Wakes the other threads, should this one panic.
struct Alarm<'a>(&'a Run<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            self.0.changed.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports progress; false if the run is to stop.
    fn tell(&self, chain: u32, phase: Phase, done: u64, total: u64) -> bool {
        let look = lock(&self.look).clone();
        if !(self.on_progress)(&Progress { chain, phase, done, total, look }) {
            self.stop.store(true, Ordering::Relaxed);
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            // Whoever stopped the run first is to blame.
            if !self.stop.swap(true, Ordering::Relaxed) {
                self.out_of_time.store(true, Ordering::Relaxed);
            }
        }
        !self.is_stopped()
    }

    /// What a thread does: pieces of chains until all are complete or the run is stopped.
    fn work(&self) {
        let _alarm = Alarm(self);
        let mut pool = lock(&self.pool);
        while !pool.complete && !self.is_stopped() {
            if let Some(mut task) = pool.next(self.settings.tune) {
                let target = pool.target;
                pool.running += 1;
                drop(pool);
                let made = self.piece(&mut task, target);
                pool = lock(&self.pool);
                pool.running -= 1;
                pool.waiting.push(task);
                if let Err(error) = made {
                    self.stop.store(true, Ordering::Relaxed);
                    pool.failure.get_or_insert(error);
                }
                self.changed.notify_all();
            } else if pool.running == 0 {
                let (next, look) = self.until.look(pool.target);
                *lock(&self.look) = look.map(Arc::new);
                match next {
                    Some(target) => pool.target = target,
                    None => pool.complete = true,
                }
                self.changed.notify_all();
            } else {
                pool = self.changed.wait(pool).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(pool);
        self.changed.notify_all();
    }

    /// Takes a chain on for a while: its start, or some sweeps.
    fn piece(&self, task: &mut Task, target: u64) -> Result<(), Error> {
        let (problem, settings) = (self.problem, self.settings);
        let report = &mut task.report;
        let number = report.chain;
        let Some(state) = report.state.take() else {
            let mut keep_going = |done, total| self.tell(number, Phase::Start, done, total);
            if let Some(start) = find_start(problem, settings, number, &mut keep_going)? {
                report.state = Some(report.start.insert(start).state.clone());
            }
            return Ok(());
        };
        let began = Instant::now();
        let moves = moves::select(&settings.moves, settings.narx, problem);
        let chain = Chain::new(problem, settings.filter_options(), settings.seed, number, state);
        let mut chain = chain.with_moves(moves);
        let tune = settings.tune;
        if chain.state.sweep > tune {
            chain.freeze();
        }
        let mut made = Ok(());
        while made.is_ok() && chain.state.sweep < tune.saturating_add(target) && began.elapsed() < PIECE {
            if self.is_stopped() {
                break;
            }
            let (phase, first, total) = match chain.state.sweep < tune {
                true => (Phase::Tune, 0, tune),
                false => (Phase::Sample, tune, target),
            };
            if chain.state.sweep == tune {
                chain.freeze();
            }
            let index = chain.state.sweep - first;
            made = self.sweep(&mut chain, phase, index, report);
            self.tell(number, phase, index + 1, total);
        }
        add_totals(&mut report.moves, chain.move_totals());
        report.state = Some(chain.state);
        made
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
        if !info.log_joint.is_finite() {
            refuse_indefinite_kernel(problem)?;
        }
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
        if phase == Phase::Sample {
            self.until.take(&draw);
            report.draws += 1;
        }
        Ok(())
    }
}

/// An error if the model has a kernel of the user's, to which a path without a density is due.
fn refuse_indefinite_kernel(problem: &Problem) -> Result<(), Error> {
    let Some((d, name)) = problem.model().user_kernel() else { return Ok(()) };
    let message = format!(
        "the covariances of {name} along a path are not positive definite: a kernel must be symmetric and positive \
         semi-definite for all values of its parameters; check it at random points (gpssm.testing.check_kernel in \
         Python, gpssm::conformance::kernel in Rust)"
    );
    Err(Error::model(format!("states[{d}].kernel"), message))
}

/// Adds what the moves of a piece took.
fn add_totals(all: &mut Vec<MoveTotals>, piece: &[MoveTotals]) {
    if all.is_empty() {
        all.extend_from_slice(piece);
        return;
    }
    for (total, more) in all.iter_mut().zip(piece) {
        total.updates += more.updates;
        total.density_evaluations += more.density_evaluations;
        total.time += more.time;
    }
}
