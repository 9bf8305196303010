//! The model is chosen from the training record alone.
//!
//! Candidates are models whose states are the outputs and some of their past values, with past values of the inputs as
//! further inputs: output lags, input lags, thinning, and a kernel that is linear or smooth and linear. States are held on the
//! outputs (a Gaussian process regression on past outputs) or drawn, with noise of the sensor: lagged noise-free outputs are
//! coordinates that leave no freedom to rotate, scale or flip. Each candidate is fitted to a part of the training record,
//! hyper-parameters drawn, and runs free over the rest; twice, with the two ends of the record in turn. The smallest CRPS of the
//! free runs wins, the simpler of two that are about equal. What is chosen is an ordinary run.
//!
//! The work is bounded by counting it, not by the clock, and random numbers are the same whatever the seed of the run: the
//! choice depends on the record alone. Candidates that come close are tried again with more effort.
//!
//! - `candidates`: what is tried
//! - `sensors`: other sensors that a record asks for
//! - `screen`: dead time and sampling, by linear least squares
//! - `trial`: one candidate on held-out parts
//! - `rounds`: all candidates, the best of them twice, and which of them is chosen
//! - `calibrate`: how wide the intervals of the chosen one must be

mod calibrate;
mod candidates;
mod rounds;
pub(crate) mod screen;
mod sensors;
mod trial;

pub(crate) use rounds::each;
pub use sensors::Sensor;

use crate::calibration::Calibration;
use crate::layout::Layout;
use crate::linear::LinearStateSpace;
use gpssm::kernel::{CONSTANT, LINEAR, SQUARED_EXPONENTIAL};
use gpssm::model::{
    DynamicsSpec, InducingSpec, Mode, Predictor, ScalePrior, SensorNoiseSpec, SensorSpec, TransitionSpec,
};
use gpssm::{KernelSpec, Model, Prior, Record, Sequence};

/// A model that may be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Past outputs that are states, beside the present ones.
    pub lags: usize,
    /// How rows are made.
    pub layout: Layout,
    /// Covariance function.
    pub kernel: Kernel,
    /// What is done about the states.
    pub states: States,
    /// How they are seen.
    pub sensor: Sensor,
}

/// How a candidate treats its states, the outputs and their past values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum States {
    /// Held on the outputs, without sensor noise: GP-NARX.
    Held,
    /// Drawn, with sensor noise: y = s + e, s' = f(s, past values, u) + v.
    Drawn,
    /// Those of the best linear state-space model, which is taken as it is; noise levels are learned.
    Linear {
        /// States.
        order: usize,
    },
    /// The same, with an unknown function beside the linear one in each of them.
    Corrected {
        /// States.
        order: usize,
    },
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
        let linear = KernelSpec::new(&LINEAR);
        // An error of the offset adds up in a free run, until the gain of the system balances it: a constant is worth
        // its hyper-parameter. Where nothing balances it (an integrator) it is better left out.
        let constant = KernelSpec::new(&CONSTANT);
        match self {
            Self::Linear => linear,
            Self::Affine => KernelSpec::Sum(vec![linear, constant]),
            Self::Smooth => {
                let smooth = KernelSpec::new(&SQUARED_EXPONENTIAL);
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
        let Layout { input_lags, delay, every } = self.layout;
        let (lags, kernel) = (self.lags, self.kernel.name());
        let states = match self.states {
            States::Held => "outputs as states",
            States::Drawn => "states drawn",
            States::Linear { order } => {
                return format!("linear state-space model of order {order}, delay {delay}");
            }
            States::Corrected { order } => {
                return format!(
                    "linear state-space model of order {order} and a correction (se), delay {delay}"
                );
            }
        };
        let sensor = self.sensor.describe().map_or_else(String::new, |sensor| format!(", {sensor}"));
        format!(
            "{lags} past outputs, {input_lags} past inputs, delay {delay}, every {every}, {kernel}, {states}{sensor}"
        )
    }

    /// Whether states are drawn and stand for past outputs.
    fn is_drawn(&self) -> bool {
        self.states == States::Drawn
    }

    /// Whether its states are outputs and their past values, held or drawn.
    fn is_of_outputs(&self) -> bool {
        matches!(self.states, States::Held | States::Drawn)
    }

    /// Whether it is the best linear state-space model, without a correction.
    fn is_state_space(&self) -> bool {
        matches!(self.states, States::Linear { .. })
    }

    /// States and inputs, for a record as it stands in the file.
    fn n_regressors(&self, record: &Record) -> usize {
        if let States::Linear { order } | States::Corrected { order } = self.states {
            return order + record.n_u();
        }
        (self.lags + 1) * record.n_y() + self.layout.n_values() * record.n_u()
    }

    /// First transitions that look back to before the record, in rows of the model: nothing is learned from them.
    fn presample(&self) -> usize {
        match self.states {
            States::Held => self.lags.max((self.layout.input_lags + self.layout.delay).saturating_sub(1)),
            States::Drawn | States::Linear { .. } | States::Corrected { .. } => 0,
        }
    }

    /// The covariance function, for a record that has been laid out. Of many past values few matter, and these need length-scales
    /// far below the others, which the default prior makes unlikely. It does so because short ones turn f into a second noise,
    /// and where states are held there is no such ridge: the noise is what the outputs leave.
    fn kernel_spec(&self, record: &Record) -> KernelSpec {
        let (Kernel::Smooth, States::Held) = (&self.kernel, self.states) else { return self.kernel.spec() };
        let outputs =
            (0..=self.lags).flat_map(|_| (0..record.n_y()).map(|k| screen::sd_of_output(record, k)));
        let inputs = (0..record.n_u()).map(|c| screen::sd_of_input(record, c));
        let sds: Vec<f64> = outputs.chain(inputs).map(|sd| if sd > 0.0 { sd } else { 1.0 }).collect();
        let root = (sds.len() as f64).sqrt();
        let ell = sds.iter().map(|sd| Prior::LogNormal { median: 2.0 * root * sd, sigma: 1.0 });
        let smooth = KernelSpec::new(&SQUARED_EXPONENTIAL).with("ell", ell.collect::<Vec<_>>());
        KernelSpec::Sum(vec![smooth, KernelSpec::new(&LINEAR), KernelSpec::new(&CONSTANT)])
    }

    /// The model without its sensor, for a record that has been laid out.
    fn model(&self, record: &Record, inducing: usize) -> Model {
        let mut model = Model::lagged_outputs(record.n_y(), record.n_u(), self.lags);
        let n_z = model.states.len() + record.n_u();
        for state in &mut model.states {
            if let TransitionSpec::Gp { kernel, .. } = &mut state.transition {
                *kernel = self.kernel_spec(record);
            }
        }
        model.dynamics = dynamics(self, n_z, record.n_transitions(), inducing);
        model.presample = self.presample();
        model.skip_missing = self.states == States::Held;
        self.sensor.install(&mut model, record);
        model
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
    /// Share of the outputs in the 90 % intervals.
    pub coverage: f64,
    /// Factor with which these intervals would have held nine tenths.
    pub scale: Option<f64>,
    /// The CRPS by what was held out: the end, and the beginning.
    pub by_fold: Vec<f64>,
    /// Came close to the best, and was tried with all the effort; one of these is chosen.
    pub again: bool,
    /// Time that it took, the second trial included.
    pub elapsed: Elapsed,
}

/// Seconds; all are equal, as what is chosen does not depend on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elapsed(
    /// How many.
    pub f64,
);

impl PartialEq for Elapsed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What the user fixed; the rest is chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Past outputs that are states.
    pub lags: Option<usize>,
    /// Past values of each input.
    pub input_lags: Option<usize>,
    /// Rows from an input to the first output that sees it.
    pub delay: Option<usize>,
    /// Whether the record is thinned already.
    pub thinned: bool,
    /// Covariance function.
    pub kernel: Option<KernelSpec>,
    /// Whether states are held on the outputs or drawn.
    pub states: Option<States>,
    /// Whether the prediction intervals are calibrated already.
    pub calibrated: bool,
    /// Whether the sensor is another than a linear Gaussian one.
    pub other_sensor: bool,
    /// Whether states, mean or function are given: nothing can be chosen then.
    pub own_states: bool,
}

/// The chosen model, as plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Past outputs that are states.
    pub lags: usize,
    /// How the rows of the record become rows of the model.
    pub layout: Layout,
    /// Covariance function.
    pub kernel: KernelSpec,
    /// The prior over f.
    pub dynamics: DynamicsSpec,
    /// Whether states are held on the outputs or drawn.
    pub states: States,
    /// A sensor that is nearly exact, for states that are held on the outputs.
    pub sensor: Option<SensorSpec>,
    /// The whole model, where its states are not simply the outputs and their past values.
    pub model: Option<Model>,
    /// First transitions that f is not learned from, where states are held on the outputs.
    pub presample: usize,
    /// Warm-up sweeps of a run whose states are held on the outputs; none for the default.
    pub tune: Option<u64>,
    /// Of the prediction intervals, where no other is given and some part of the record tells.
    pub calibration: Option<Calibration>,
}

/// What was chosen, and from what.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// All that were tried, in order.
    pub trials: Vec<Trial>,
    /// The one that was chosen; none if nothing could be tried.
    pub chosen: Option<usize>,
    /// The same as a model.
    pub structure: Option<Structure>,
    /// Of a long sequence, the first rows that are to be learned from.
    pub first_rows: Option<usize>,
    /// CRPS of a constant over the same rows.
    pub constant_crps: Option<f64>,
    /// CRPS of the better of the best ARX and the best linear state-space model over the same rows.
    pub linear_crps: Option<f64>,
    /// What to know, in words.
    pub notes: Vec<String>,
}

impl Choice {
    /// The trial that won.
    pub fn winner(&self) -> Option<&Trial> {
        self.chosen.map(|chosen| &self.trials[chosen])
    }
}

/// Records with more transitions than this, for each inducing input, get a finite basis.
const EXACT_FOR_EACH: usize = 5;
/// Inducing inputs of a long record.
const INDUCING: usize = 80;
/// Inducing inputs where states are drawn.
const MOST_DRAWN: usize = 40;
/// Rows of a single sequence that are looked at; more of them would cost more than they tell.
const MOST_ROWS: usize = 3000;
/// Rows of a record that is long enough to hold some out.
const FEWEST_ROWS: usize = 30;
/// Noise of a sensor that is taken as exact, relative to the spread of its output.
const SENSOR_NOISE: f64 = 1e-3;
/// Warm-up sweeps of a run whose states are held, where nothing else is asked for.
const TUNE: u64 = 60;

/// Chooses what is not given. `record` is as it was measured: without lags of inputs.
pub fn choose(given: &Given, record: &Record, on_progress: &(dyn Fn(usize, usize) -> bool + Sync)) -> Choice {
    let mut choice = Choice {
        trials: Vec::new(),
        chosen: None,
        structure: None,
        first_rows: None,
        constant_crps: None,
        linear_crps: None,
        notes: Vec::new(),
    };
    if let Some(reason) = obstacle(given, record) {
        choice.notes.push(format!("{reason}: using the default model with one state for each output"));
        return choice;
    }
    let (measured, (record, cut)) = (record, head(record));
    if cut {
        choice.notes.push(format!("long record: only its first {MOST_ROWS} rows are used"));
        choice.first_rows = Some(MOST_ROWS);
    }
    let (candidates, linear) = candidates::candidates(given, &record, &mut choice.notes);
    let n_init = candidates.iter().map(Candidate::memory).max().unwrap_or(1);
    let folds = trial::folds(&record, n_init);
    choice.constant_crps = trial::constant_crps(&folds, n_init);
    choice.linear_crps = trial::linear_crps(&folds, n_init);
    choice.trials = rounds::run(&candidates, &record, &folds, n_init, on_progress);
    choice.chosen = rounds::best(&choice.trials, &record);
    if let Some((chosen, note)) = rounds::or_linear(&choice, &record, linear.as_ref(), n_init) {
        choice.chosen = Some(chosen);
        choice.notes.extend(note);
    }
    let Some(winner) = choice.winner().cloned() else {
        choice.notes.push(
            "no candidate could be fitted: using the default model with one state for each output".into(),
        );
        return choice;
    };
    let calibration = match given.calibrated {
        true => None,
        false => calibrate::calibration(&winner, choice.constant_crps, &record),
    };
    // What was tried has been laid out before.
    let laid_out = winner.candidate.layout.apply_to(&record).unwrap_or_else(|_| record.clone());
    // A linear model of all rows costs little.
    let linear = if cut { LinearStateSpace::fit(measured).or(linear) } else { linear };
    choice.structure = Some(structure(&winner.candidate, linear.as_ref(), &record, &laid_out, calibration));
    if let (Some(crps), Some(constant)) = (winner.crps, choice.constant_crps)
        && crps > constant
    {
        choice.notes.push(format!(
            "on held-out rows, free runs were worse than a constant (CRPS {crps:.3}, constant {constant:.3}): do not rely on long \
             free runs of this model"
        ));
    }
    if let (Some(crps), Some(linear)) = (winner.crps, choice.linear_crps)
        && crps > linear
    {
        choice.notes.push(format!(
            "on held-out rows, free runs of the best linear model were better (CRPS {linear:.3}, this model {crps:.3}): compare them \
             on a record of your own with gpssm score"
        ));
    }
    if winner.candidate.layout.every > 1 {
        choice.notes.push(format!(
            "the record is sampled fast: the model uses one row in {}, which gave better free runs",
            winner.candidate.layout.every
        ));
    }
    choice
}

/// What would be tried, and the multiply-adds of it; nothing where the default model is taken, which the note says.
pub fn plan(given: &Given, record: &Record) -> Result<(Vec<Candidate>, f64), &'static str> {
    if let Some(reason) = obstacle(given, record) {
        return Err(reason);
    }
    let (record, _) = head(record);
    let (candidates, _) = candidates::candidates(given, &record, &mut Vec::new());
    let cost = candidates.iter().map(|candidate| trial::cost(candidate, &record)).sum::<f64>();
    Ok((candidates, cost))
}

/// Why nothing can be tried.
fn obstacle(given: &Given, record: &Record) -> Option<&'static str> {
    let longest = record.sequences().iter().map(Sequence::n_rows).max().unwrap_or(0);
    [
        (given.other_sensor, "the sensor is not Gaussian"),
        (given.own_states, "states, mean or function are given"),
        (longest < FEWEST_ROWS, "the record is too short to hold a part of it out"),
    ]
    .into_iter()
    .find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// The first rows of a long record.
fn head(record: &Record) -> (Record, bool) {
    match record.sequences() {
        [one] if one.n_rows() > MOST_ROWS => (one.head(MOST_ROWS).into(), true),
        _ => (record.clone(), false),
    }
}

/// A candidate as a model.
fn structure(
    candidate: &Candidate,
    linear: Option<&LinearStateSpace>,
    record: &Record,
    laid_out: &Record,
    calibration: Option<Calibration>,
) -> Structure {
    let rows: usize = record.sequences().iter().map(|s| s.n_rows() / candidate.layout.every).sum();
    let held = candidate.states == States::Held;
    let (model, layout) = match (candidate.states, linear) {
        (States::Linear { .. }, Some(linear)) => (Some(linear.model(false)), linear.layout()),
        (States::Corrected { .. }, Some(linear)) => (Some(linear.model(true)), linear.layout()),
        _ if candidate.sensor != Sensor::Gaussian => {
            let mut model = candidate.model(laid_out, INDUCING);
            model.dynamics = dynamics(candidate, candidate.n_regressors(record), rows, INDUCING);
            (Some(model), candidate.layout)
        }
        _ => (None, candidate.layout),
    };
    let own = dynamics(candidate, candidate.n_regressors(record), rows, INDUCING);
    Structure {
        lags: candidate.lags,
        layout,
        kernel: candidate.kernel_spec(laid_out),
        dynamics: model.as_ref().map_or(own, |model| model.dynamics.clone()),
        states: candidate.states,
        sensor: held.then(|| exact_sensor(record)),
        presample: candidate.presample(),
        tune: (held || candidate.is_state_space()).then_some(TUNE),
        model,
        calibration,
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

/// The process itself, or inducing inputs for long records, for linear kernels and where states are drawn. Of linear kernels as
/// many inducing inputs as there are coefficients tell everything, at a small part of the cost. Where states are drawn, so are
/// the weights: a particle then costs no more with lags than without.
fn dynamics(candidate: &Candidate, n_z: usize, n_rows: usize, inducing: usize) -> DynamicsSpec {
    let coefficients = match candidate.kernel {
        Kernel::Linear => Some(n_z),
        Kernel::Affine => Some(n_z + 1),
        Kernel::Smooth | Kernel::Given(_) => None,
    };
    let mode = if candidate.is_drawn() { Mode::Sampled } else { Mode::Collapsed };
    let fic = |n: usize| DynamicsSpec::Fic { inducing: InducingSpec::Greedy(n), mode };
    match coefficients {
        Some(coefficients) if candidate.is_drawn() || 3 * coefficients < n_rows => fic(coefficients),
        _ if candidate.is_drawn() => fic(MOST_DRAWN.min(n_rows / 4).max(1)),
        _ if n_rows > EXACT_FOR_EACH * inducing => fic(inducing),
        _ => DynamicsSpec::Exact,
    }
}
