//! `states = "auto"`: the model is chosen from the training record alone.
//!
//! Candidates are models whose states are the outputs and some of their past values, with past values of the inputs as
//! further inputs: output lags, input lags, thinning, and a kernel that is linear or smooth and linear. Each is
//! fitted to a part of the training record (a Gaussian process regression on past outputs, hyper-parameters drawn) and runs
//! free over the rest; twice, with the two ends of the record in turn. The smallest CRPS of the free runs wins, the
//! simpler of two that are about equal. What is chosen is an ordinary run.
//!
//! The work is bounded by counting it, not by the clock, and random numbers are the same whatever the seed of the run: the
//! choice depends on the record alone. Candidates that come close are tried again with more effort.
//!
//! - `screen`: dead time and sampling, by linear least squares
//! - `trial`: one candidate on held-out parts
//! - `calibrate`: how wide the bands of the chosen one must be

mod calibrate;
mod screen;
mod trial;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::config::{RunConfig, States};
use crate::free_run::Layout;
use crate::table::{Data, Window};
use gpssm::mcmc::settings::StartAt;
use gpssm::model::dynamics::{DynamicsSpec, InducingSpec, Mode};
use gpssm::model::kernel::{ConstantSpec, LinearSpec, StationarySpec};
use gpssm::model::scale_prior::ScalePrior;
use gpssm::model::spec::{Predictor, SensorNoiseSpec, SensorSpec};
use gpssm::posterior::baseline::Arx;
use gpssm::{KernelSpec, Prior, Record, Sequence};

/// A model that may be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Past outputs that are states, beside the present ones.
    pub lags: usize,
    /// How rows are made.
    pub layout: Layout,
    /// Covariance function.
    pub kernel: Kernel,
}

/// Covariance functions of candidates.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// Linear: as it is in the middle of the data, so it stays.
    Linear,
    /// Linear and constant.
    Affine,
    /// Squared exponential, linear and constant.
    Smooth,
    /// As asked for.
    Given(KernelSpec),
}

impl Kernel {
    fn spec(&self) -> KernelSpec {
        let linear = KernelSpec::Linear(LinearSpec::default());
        // An error of the offset adds up in a free run, until the gain of the system balances it: a constant is worth
        // its hyper-parameter. Where nothing balances it (an integrator) it is better left out.
        let constant = KernelSpec::Constant(ConstantSpec::default());
        match self {
            Self::Linear => linear,
            Self::Affine => KernelSpec::Sum(vec![linear, constant]),
            Self::Smooth => {
                let smooth = KernelSpec::SquaredExponential(StationarySpec::default());
                KernelSpec::Sum(vec![smooth, linear, constant])
            }
            Self::Given(spec) => spec.clone(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Affine => "linear + constant",
            Self::Smooth => "se + linear + constant",
            Self::Given(_) => "as given",
        }
    }
}

impl Candidate {
    /// In words.
    pub fn describe(&self) -> String {
        let Window { lags, delay } = self.layout.window;
        format!(
            "{} past outputs, {} past inputs, delay {delay}, every {}, {}",
            self.lags,
            lags,
            self.layout.every,
            self.kernel.name()
        )
    }

    /// States and inputs, for a record as it stands in the file.
    fn n_regressors(&self, record: &Record) -> usize {
        (self.lags + 1) * record.n_y() + self.layout.window.n_values() * record.n_u()
    }

    /// Rows of the file that a state and its inputs reach back over.
    pub fn memory(&self) -> usize {
        let window = self.layout.window;
        (self.lags + 1).max(window.lags + window.delay) * self.layout.every
    }
}

/// A candidate and how its free runs went.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Which.
    pub candidate: Candidate,
    /// CRPS over the held-out rows, relative to the spread of each output; none if it could not be fitted.
    pub crps: Option<f64>,
    /// The same for the root mean square error of the median.
    pub rmse: f64,
    /// Share of the outputs in the 90 % bands.
    pub coverage: f64,
    /// Factor with which these bands would have held nine tenths.
    pub scale: Option<f64>,
    /// Tried with more effort, having come close to the best with less; one of these is chosen.
    pub again: bool,
}

/// What was chosen, and from what.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// All that were tried, in order.
    pub trials: Vec<Trial>,
    /// The one that was chosen; none if nothing could be tried.
    pub chosen: Option<usize>,
    /// CRPS of a constant over the same rows.
    pub constant_crps: Option<f64>,
    /// What to know, in words.
    pub notes: Vec<String>,
}

impl Choice {
    /// The trial that won.
    pub fn winner(&self) -> Option<&Trial> {
        self.chosen.map(|chosen| &self.trials[chosen])
    }
}

/// Records with more transitions than this get a finite basis.
const MOST_EXACT: usize = 600;
/// Inducing inputs of a long record.
const INDUCING: usize = 80;
/// A more complex candidate must be better by this part.
const WORTH: f64 = 0.03;
/// Candidates within this part of the best are tried again with more effort; a first CRPS may be off by 10 % and more.
const CLOSE: f64 = 0.25;
/// Rows of a single sequence that are looked at; more of them would cost more than they tell.
const MOST_ROWS: usize = 4000;
/// Rows of a record that is long enough to hold some out.
const FEWEST_ROWS: usize = 30;
/// Multiply-adds of all trials: a few minutes on two cores.
const BUDGET: f64 = 6e12;
/// The same for the second trials.
const BUDGET_AGAIN: f64 = 3e12;
/// Noise of a sensor that is taken as exact, relative to the spread of its output.
const SENSOR_NOISE: f64 = 1e-3;
/// Sweeps of a run whose states are held, where nothing else is asked for.
const TUNE: u64 = 60;
const DRAWS: u64 = 60;

/// Settles everything that `auto` leaves open. `data` is the record as it stands in the file: without lags of inputs. What the
/// configuration gives (lags, input lags, delay, every, kernel, dynamics) stays as it is. `given` says
/// whether a key of the sampler was set by the user.
pub fn choose(
    config: &RunConfig,
    data: &Data,
    given: &dyn Fn(&str) -> bool,
    on_progress: &(dyn Fn(usize, usize) -> bool + Sync),
) -> (RunConfig, Choice) {
    let mut chosen = config.clone();
    chosen.model.states = None;
    let mut choice = Choice { trials: Vec::new(), chosen: None, constant_crps: None, notes: Vec::new() };
    let sensor = config.model.sensor.as_ref().is_none_or(|sensor| sensor.is_linear_gaussian());
    let shortest = data.record.sequences().iter().map(Sequence::n_rows).max().unwrap_or(0);
    let plain =
        config.model.state.is_empty() && config.model.function.is_none() && config.model.mean.is_none();
    let reason = if !sensor {
        Some("the sensor is not Gaussian")
    } else if data.record.has_missing() {
        Some("outputs are missing")
    } else if !plain {
        Some("states, mean or function are given")
    } else if shortest < FEWEST_ROWS {
        Some("the record is too short to hold a part of it out")
    } else {
        None
    };
    if let Some(reason) = reason {
        choice.notes.push(format!("{reason}: one state for each output, as without auto"));
        return (chosen, choice);
    }
    let (head, cut) = head(&data.record);
    if cut {
        choice.notes.push(format!("a long record: chosen and learned from its first {MOST_ROWS} rows"));
        if config.data.sequence.is_none() {
            let first = config.data.rows.map_or(1, |(first, _)| first);
            chosen.data.rows = Some((first, first + MOST_ROWS * config.data.every.unwrap_or(1) - 1));
        }
    }
    let data = &Data { record: head, ..data.clone() };
    let candidates = candidates(config, data, &mut choice.notes);
    let n_init = candidates.iter().map(Candidate::memory).max().unwrap_or(1);
    let folds = trial::folds(&data.record, n_init);
    choice.constant_crps = trial::constant_crps(&folds, n_init);
    choice.trials = run(&candidates, &data.record, &folds, n_init, on_progress);
    choice.chosen = best(&choice.trials);
    let Some(winner) = choice.winner().cloned() else {
        choice.notes.push("no candidate could be fitted: one state for each output, as without auto".into());
        return (chosen, choice);
    };
    settle(&mut chosen, &winner.candidate, data, given);
    if chosen.bands.is_none() {
        chosen.bands = calibrate::bands(&winner, &data.record);
    }
    if let (Some(crps), Some(constant)) = (winner.crps, choice.constant_crps)
        && crps > constant
    {
        choice.notes.push(format!(
            "no free run over held-out rows was as good as a constant (CRPS {crps:.3}, constant {constant:.3}): do not trust \
             free runs of this model far from where they start"
        ));
    }
    if winner.candidate.layout.every > 1 {
        choice.notes.push(format!(
            "the record is sampled fast: free runs are better with every {}th row, each row from those so far before it",
            winner.candidate.layout.every
        ));
    }
    (chosen, choice)
}

/// The first, unless a later one is better by [`WORTH`]; linear models stand before all others.
fn best(trials: &[Trial]) -> Option<usize> {
    let is_linear = |trial: &Trial| matches!(trial.candidate.kernel, Kernel::Linear | Kernel::Affine);
    let (linear, others): (Vec<usize>, Vec<usize>) = (0..trials.len()).partition(|&i| is_linear(&trials[i]));
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

/// The first rows of a long record.
fn head(record: &Record) -> (Record, bool) {
    match record.sequences() {
        [one] if one.n_rows() > MOST_ROWS => (one.head(MOST_ROWS).into(), true),
        _ => (record.clone(), false),
    }
}

/// Writes a candidate into the configuration.
fn settle(config: &mut RunConfig, candidate: &Candidate, data: &Data, given: &dyn Fn(&str) -> bool) {
    let Layout { window, every } = candidate.layout;
    config.model.lags = Some(candidate.lags);
    config.model.kernel = Some(candidate.kernel.spec());
    if !data.inputs.is_empty() {
        config.data.input_lags = Some(window.lags);
        config.data.delay = Some(window.delay);
    }
    // What the record was read with stays a part of it.
    let every = every * config.data.every.unwrap_or(1);
    config.data.every = (every > 1).then_some(every);
    if config.model.dynamics.is_none() {
        let rows: usize = data.record.sequences().iter().map(|s| s.n_rows() / candidate.layout.every).sum();
        config.model.dynamics =
            Some(dynamics(&candidate.kernel, candidate.n_regressors(&data.record), rows, INDUCING));
    }
    if !given("sampler.start_at") && !given("sampler.hold_states") {
        config.sampler.start_at = StartAt::Outputs;
        config.sampler.hold_states = true;
        if config.model.sensor.is_none() {
            config.model.sensor = Some(exact_sensor(&data.record));
        }
    }
    if !given("sampler.tune") {
        config.sampler.tune = TUNE;
    }
    if !given("sampler.draws") {
        config.sampler.draws = DRAWS;
    }
}

/// A sensor whose noise is a thousandth of the spread of each output: states that are held on the outputs leave nothing to
/// learn it from.
fn exact_sensor(record: &Record) -> SensorSpec {
    let noise = |k: usize| {
        let size = screen::spread(record, k);
        let value = SENSOR_NOISE * if size > 0.0 { size } else { 1.0 };
        ScalePrior::on_sd(Prior::Fixed { value })
    };
    let noise = SensorNoiseSpec::Diagonal((0..record.n_y()).map(noise).collect());
    SensorSpec::Gaussian { mean: Predictor::default(), noise }
}

/// The process itself, or inducing inputs for long records and for linear kernels: of these, as many inducing inputs as there
/// are coefficients tell everything, at a small part of the cost.
fn dynamics(kernel: &Kernel, n_z: usize, n_rows: usize, inducing: usize) -> DynamicsSpec {
    let coefficients = match kernel {
        Kernel::Linear => Some(n_z),
        Kernel::Affine => Some(n_z + 1),
        Kernel::Smooth | Kernel::Given(_) => None,
    };
    let fic = |n: usize| DynamicsSpec::Fic { inducing: InducingSpec::Greedy(n), mode: Mode::Collapsed };
    match coefficients {
        Some(coefficients) if 3 * coefficients < n_rows => fic(coefficients),
        _ if n_rows > MOST_EXACT => fic(inducing),
        _ => DynamicsSpec::Exact,
    }
}

/// Output and input lags of candidates beside those of linear models, the simpler first.
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 3), (2, 4), (4, 5), (9, 9)];
/// As many of them are tried on every row of a record that is sampled fast.
const FAST_SHAPES: usize = 3;
/// The same for thinned records.
const THINNED: [(usize, usize); 3] = [(1, 2), (2, 3), (3, 3)];

/// Largest order of a linear model.
const MOST_ORDER: usize = 10;

fn candidates(config: &RunConfig, data: &Data, notes: &mut Vec<String>) -> Vec<Candidate> {
    let record = &data.record;
    let has_inputs = !data.inputs.is_empty();
    let delay = match (config.data.delay, has_inputs) {
        (Some(delay), _) => delay,
        (None, true) => {
            let delay = screen::delay(record);
            notes.push(match delay {
                0 => "an input acts on the output of its own row (delay 0)".into(),
                1 => "inputs act one row later (delay 1)".into(),
                _ => format!("inputs act {delay} rows later (delay {delay})"),
            });
            delay
        }
        (None, false) => 1,
    };
    let thinnings = match config.data.every {
        Some(_) => Vec::new(),
        None => screen::thinnings(record),
    };
    if let Some(last) = thinnings.last() {
        notes.push(format!(
            "outputs change little from row to row: thinning is tried, up to every {last}th row"
        ));
    }
    let kernels = match &config.model.kernel {
        Some(kernel) => vec![Kernel::Given(kernel.clone())],
        None => vec![Kernel::Linear, Kernel::Affine, Kernel::Smooth],
    };
    let rows: usize = record.sequences().iter().map(Sequence::n_rows).sum();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut add = |(lags, input_lags): (usize, usize), every: usize, delay: usize| {
        let lags = config.model.lags.unwrap_or(lags);
        let input_lags = config.data.input_lags.unwrap_or(if has_inputs { input_lags } else { 0 });
        // Enough rows for each coefficient of the linear part, with a part of them held out.
        let regressors = (lags + 1) * data.outputs.len() + (input_lags + 1) * data.inputs.len();
        if config.model.lags.is_none() && rows / every < 5 * regressors {
            return;
        }
        for kernel in &kernels {
            let layout = Layout { window: Window { lags: input_lags, delay }, every };
            let candidate = Candidate { lags, layout, kernel: kernel.clone() };
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
    };
    // Where rows are alike, many of them in a row tell little.
    let n_shapes = if thinnings.is_empty() { SHAPES.len() } else { FAST_SHAPES };
    // The linear models that one would compare with come first: anything else must be better than those.
    let arx = [Arx::fit_for_free_runs(record, MOST_ORDER), Arx::fit(record, MOST_ORDER)];
    for order in arx.into_iter().flatten().map(|arx| arx.order()) {
        let delay = config.data.delay.unwrap_or(delay.min(1));
        add((order - 1, order.saturating_sub(delay)), 1, delay);
    }
    SHAPES[..n_shapes].iter().for_each(|shape| add(*shape, 1, delay));
    for &every in &thinnings {
        // A dead time in rows of the file is shorter in thinned rows; the first of them covers it.
        THINNED.iter().for_each(|shape| add(*shape, every, delay));
    }
    for candidate in candidates.iter_mut().filter(|candidate| candidate.layout.every > 1) {
        let window = &mut candidate.layout.window;
        window.delay = window.delay.div_ceil(candidate.layout.every).min(window.delay);
    }
    if candidates.is_empty() {
        let layout = Layout { window: Window { lags: 0, delay }, every: 1 };
        candidates.extend(kernels.iter().map(|kernel| Candidate { lags: 0, layout, kernel: kernel.clone() }));
    }
    within_budget(candidates, record)
}

/// As many of the candidates as the budget allows, at least one.
fn within_budget(candidates: Vec<Candidate>, record: &Record) -> Vec<Candidate> {
    let mut left = BUDGET;
    let mut kept = Vec::new();
    for candidate in candidates {
        let cost = trial::cost(&candidate, record);
        if kept.is_empty() || cost <= left {
            left -= cost;
            kept.push(candidate);
        }
    }
    kept
}

/// All trials, in threads; the result does not depend on their number. Candidates that came close to the best are tried again
/// with more effort.
fn run(
    candidates: &[Candidate],
    record: &Record,
    folds: &[trial::Fold],
    n_init: usize,
    on_progress: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Vec<Trial> {
    let done = AtomicUsize::new(0);
    let attempt = |which: &[usize], effort: trial::Effort| -> Vec<Trial> {
        let total = done.load(Ordering::Relaxed) + which.len();
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

/// What `work` makes of each item, in threads and in order.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
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

/// Whether a configuration leaves the model open.
pub fn is_asked_for(config: &RunConfig) -> bool {
    config.model.states == Some(States::Auto)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen failing when candidates were taken in the order of the list.
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
