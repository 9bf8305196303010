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
//! - `candidates`: what is tried
//! - `screen`: dead time and sampling, by linear least squares
//! - `trial`: one candidate on held-out parts
//! - `rounds`: all candidates, the best of them twice, and which of them is chosen
//! - `calibrate`: how wide the bands of the chosen one must be

mod calibrate;
mod candidates;
mod rounds;
mod screen;
mod trial;

use crate::config::{RunConfig, States};
use crate::free_run::Layout;
use crate::table::{Data, Window};
use gpssm::model::dynamics::{DynamicsSpec, InducingSpec, Mode};
use gpssm::model::kernel::{ConstantSpec, LinearSpec, StationarySpec};
use gpssm::model::scale_prior::ScalePrior;
use gpssm::model::spec::{Predictor, SensorNoiseSpec, SensorSpec};
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

    /// Whether free runs are those of a linear model.
    fn is_linear(&self) -> bool {
        matches!(self, Self::Linear | Self::Affine)
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

    /// First transitions that look back to before the record, in rows of the model: nothing is learned from them.
    fn presample(&self) -> usize {
        let Window { lags, delay } = self.layout.window;
        self.lags.max((lags + delay).saturating_sub(1))
    }

    /// Rows of the file that a state and its inputs reach back over.
    pub fn memory(&self) -> usize {
        self.layout.memory(self.lags)
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
    /// Came close to the best, and was tried with all the effort; one of these is chosen.
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
/// Rows of a single sequence that are looked at; more of them would cost more than they tell.
const MOST_ROWS: usize = 3000;
/// Rows of a record that is long enough to hold some out.
const FEWEST_ROWS: usize = 30;
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
    let longest = data.record.sequences().iter().map(Sequence::n_rows).max().unwrap_or(0);
    let plain =
        config.model.state.is_empty() && config.model.function.is_none() && config.model.mean.is_none();
    let reason = if !sensor {
        Some("the sensor is not Gaussian")
    } else if data.record.has_missing() {
        Some("outputs are missing")
    } else if !plain {
        Some("states, mean or function are given")
    } else if longest < FEWEST_ROWS {
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
    let candidates = candidates::candidates(config, data, &mut choice.notes);
    let n_init = candidates.iter().map(Candidate::memory).max().unwrap_or(1);
    let folds = trial::folds(&data.record, n_init);
    choice.constant_crps = trial::constant_crps(&folds, n_init);
    choice.trials = rounds::run(&candidates, &data.record, &folds, n_init, on_progress);
    choice.chosen = rounds::best(&choice.trials, &data.record);
    let Some(winner) = choice.winner().cloned() else {
        choice.notes.push("no candidate could be fitted: one state for each output, as without auto".into());
        return (chosen, choice);
    };
    settle(&mut chosen, &winner.candidate, data, given);
    if chosen.calibration.is_none() {
        chosen.calibration = calibrate::calibration(&winner, choice.constant_crps, &data.record);
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
    if !given("sampler.start_at") && !given("sampler.narx") {
        config.sampler.narx = true;
        if config.model.sensor.is_none() {
            config.model.sensor = Some(exact_sensor(&data.record));
        }
    }
    if config.sampler.narx {
        config.model.presample.get_or_insert(candidate.presample());
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
        let size = screen::sd_of_output(record, k);
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

/// Whether a configuration leaves the model open.
pub fn is_asked_for(config: &RunConfig) -> bool {
    config.model.states == Some(States::Auto)
}
