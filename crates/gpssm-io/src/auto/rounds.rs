//! Two rounds of trials, and which candidate is chosen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use gpssm::Record;

use super::{Candidate, Trial, trial};

/// A more complex candidate must be better by this part.
const WORTH: f64 = 0.03;
/// Candidates within this part of the best are tried again with more effort; a first CRPS may be off by 10 % and more.
const CLOSE: f64 = 0.25;
/// Multiply-adds of the second trials.
const BUDGET_AGAIN: f64 = 3e12;

/// All trials, in threads; the result does not depend on their number. Candidates that came close to the best are tried again
/// with more effort.
pub(super) fn run(
    candidates: &[Candidate],
    record: &Record,
    folds: &[trial::Fold],
    n_init: usize,
    on_progress: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Vec<Trial> {
    let done = AtomicUsize::new(0);
    let attempt = |which: &[usize], effort: trial::Effort| -> Vec<Trial> {
        let total = done.load(Ordering::Relaxed) + which.len();
        // Where there are fewer candidates than cores their chains share the cores.
        let effort = trial::Effort { threads: (cores() / which.len().max(1)).max(1), ..effort };
        let trials = each(which, |&i| {
            if !on_progress(done.load(Ordering::Relaxed), total) {
                return None;
            }
            let trial = trial::run(&candidates[i], folds, n_init, effort);
            done.fetch_add(1, Ordering::Relaxed);
            Some(trial)
        });
        trials.into_iter().flatten().collect()
    };
    let costs: Vec<f64> = candidates.iter().map(|candidate| trial::cost(candidate, record)).collect();
    let all: Vec<usize> = (0..candidates.len()).collect();
    let mut trials = attempt(&all, trial::FIRST);
    let close = close(&trials, &costs);
    for (&i, trial) in close.iter().zip(attempt(&close, trial::SECOND)) {
        trials[i] = Trial { again: true, ..trial };
    }
    trials
}

/// The trials that came close to the best, as many as the budget allows with the best first, at least one; in their order.
fn close(trials: &[Trial], costs: &[f64]) -> Vec<usize> {
    let mut ranked: Vec<(f64, usize)> =
        trials.iter().enumerate().filter_map(|(i, trial)| Some((trial.crps?, i))).collect();
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = ranked.first().map_or(0.0, |(crps, _)| *crps);
    let mut left = BUDGET_AGAIN;
    let mut close = Vec::new();
    for (_, i) in ranked.into_iter().filter(|(crps, _)| *crps <= (1.0 + CLOSE) * lowest) {
        // The best is tried whatever it costs.
        let cost = if close.is_empty() { 0.0 } else { f64::from(trial::SECOND.chains) * costs[i] };
        if cost <= left {
            left -= cost;
            close.push(i);
        }
    }
    close.sort_unstable();
    close
}

/// The first, unless a later one is better by [`WORTH`]; linear models stand before all others.
pub(super) fn best(trials: &[Trial]) -> Option<usize> {
    let (linear, others): (Vec<usize>, Vec<usize>) =
        (0..trials.len()).partition(|&i| trials[i].candidate.kernel.is_linear());
    let mut best: Option<(usize, f64)> = None;
    for i in linear.into_iter().chain(others) {
        if trials[i].again
            && let Some(crps) = trials[i].crps
            && best.is_none_or(|(_, lowest)| crps < (1.0 - WORTH) * lowest)
        {
            best = Some((i, crps));
        }
    }
    best.map(|(i, _)| i)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What `work` makes of each item, in threads and in order.
pub(super) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..cores().min(items.len()) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(i) else { break };
                    let made = work(item);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((i, made));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(i, _)| *i);
    found.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Kernel;
    use super::*;
    use crate::free_run::Layout;
    use crate::table::Window;

    /// Seen failing when candidates were taken in the order of the list, and when those far from the best were tried again.
    #[test]
    fn linear_models_must_be_beaten() {
        let layout = Layout { window: Window { lags: 1, delay: 1 }, every: 1 };
        let trial = |kernel: Kernel, crps: f64| Trial {
            candidate: Candidate { lags: 1, layout, kernel },
            crps: Some(crps),
            rmse: 0.0,
            coverage: 0.0,
            scale: None,
            again: true,
        };
        let mut trials = vec![
            trial(Kernel::Linear, 1.08),
            trial(Kernel::Smooth, 0.987),
            trial(Kernel::Linear, 0.966),
            trial(Kernel::Affine, 0.95),
        ];
        assert_eq!(best(&trials), Some(2));
        trials.push(trial(Kernel::Smooth, 0.93));
        assert_eq!(best(&trials), Some(4));
        trials.push(Trial { again: false, ..trial(Kernel::Smooth, 0.5) });
        assert_eq!(best(&trials), Some(4));
        trials.pop();
        trials[4].crps = None;
        assert_eq!(best(&trials[3..]), Some(0));
        assert_eq!(best(&trials[4..]), None);
        // Tried again: those near the best, and of dear ones the best only.
        let cheap = [1.0; 5];
        assert_eq!(close(&trials, &cheap), [0, 1, 2, 3]);
        assert_eq!(close(&trials[..3], &[BUDGET_AGAIN, 0.0, BUDGET_AGAIN]), [1, 2]);
        trials[0].crps = Some(1.5);
        assert_eq!(close(&trials, &cheap), [1, 2, 3]);
        assert!(close(&trials[4..], &cheap).is_empty());
    }
}
