//! The run file: data, model and sampler in one TOML file, overridden by options.
//!
//! ```toml
//! [data]
//! file = "gas_furnace.csv"     # relative to this file; or given on the command line
//! y = "y"                      # outputs
//! u = "u"                      # inputs
//! time = "t"                   # or dt = 9.0
//! input_lags = 2               # u, u[-1] and u[-2] are inputs
//! delay = 1                    # rows from an input to the first output it acts on
//!
//! [model]
//! states = 2                   # or "auto", or a [[model.state]] table for each
//! kernel = "se + linear"       # with components: "matern32(x) + se(u1) + linear"
//! mean = "identity"            # or "zero", or a formula such as "a*x1 + cos(u1)"
//! sensor = "gaussian"          # or "poisson", ..., or { mean = "abs(x1)", noise = "log_normal(0.1, 1)" }
//! dynamics = "exact"           # or "hilbert(40)", "fic(30)", ...
//! presample = 3                # first transitions that are excluded from the likelihood of f (GP-NARX)
//!
//! [model.parameters]
//! a = "normal(0, 1)"
//!
//! [sampler]
//! ess = 400                    # sample until it is good, or for a fixed number of draws: draws = 500
//!
//! [calibration]                # of prediction intervals; written by states = "auto"
//! scale = 1.2                  # times as wide as those of the model
//!
//! [choice]                     # what states = "auto" tried; for the report alone
//! trials = []
//! ```
//!
//! Options go through the same schema: [`RunFile::option`] and [`RunFile::set`] change the tree of values before
//! it is read. Whatever has a short form can be written as the engine's own table, too, at any depth. Priors are
//! in the units of the data.
//!
//! - `tree`: values with their lines, overridden by options; `options`: which option sets which key
//! - `read`, `shorthand`, `kernel_text`: from values to plain data
//! - `resolve`, `fill`: from plain data and a record to a problem, with all defaults filled in
//! - `choice`: what was tried before the model was chosen
//! - `write`: the same run as a file that leaves nothing open; `starter`: a first file for given data

mod choice;
mod error;
mod kernel_text;
mod options;
mod read;
mod resolve;
mod shorthand;
mod starter;
mod tree;
mod write;

use std::collections::BTreeMap;
use std::fmt;

use gpssm::model::{DynamicsSpec, FunctionSpec, InitialSpec, ProcessNoiseSpec, SensorSpec, Symmetry};
use gpssm::{KernelSpec, Prior, Settings};
use gpssm_identify::Calibration;
use serde::{Deserialize, Deserializer, de};

use crate::table::Columns;

pub use self::choice::{ChoiceConfig, TrialConfig};
pub use self::error::{ConfigError, Origin};
pub use self::options::OPTIONS;
pub use self::resolve::{Run, RunError};
pub use self::starter::{guess_columns, starter};
pub use self::tree::RunFile;

/// All that a run file can say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Which columns of which file.
    pub data: DataConfig,
    /// What is assumed.
    pub model: ModelConfig,
    /// How the run is made.
    pub sampler: Settings,
    /// Calibration of the prediction intervals of free runs, by default none.
    pub calibration: Option<Calibration>,
    /// How the model was chosen, if it was; nothing depends on it.
    pub choice: Option<ChoiceConfig>,
}

/// Which columns of which file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// The file, relative to the run file.
    pub file: Option<String>,
    /// Outputs.
    pub y: Vec<String>,
    /// Inputs.
    pub u: Vec<String>,
    /// Times.
    pub time: Option<String>,
    /// Sampling time.
    pub dt: Option<f64>,
    /// Label of the sequence.
    pub sequence: Option<String>,
    /// First and last row, counted from 1.
    pub rows: Option<(usize, usize)>,
    /// Use every k-th row.
    pub every: Option<usize>,
    /// Number of past input values used as regressors.
    pub input_lags: Option<usize>,
    /// Rows from an input to the first output it acts on, by default one.
    pub delay: Option<usize>,
}

impl DataConfig {
    /// What to read.
    pub fn columns(&self) -> Columns {
        let Self { y, u, time, dt, sequence, rows, every, input_lags, delay, .. } = self.clone();
        Columns { y, u, time, dt, sequence, rows, every, input_lags, delay }
    }
}

/// What is assumed; everything has a default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Number of states, or `auto`; by default `auto` if no other key of the model is given, else one for each output.
    pub states: Option<States>,
    /// The states one by one, where they differ.
    pub state: Vec<StateConfig>,
    /// Number of past output values used as states.
    pub lags: Option<usize>,
    /// Covariance function of f, by default `se + linear`.
    pub kernel: Option<KernelSpec>,
    /// Mean function of f, by default `identity`.
    pub mean: Option<FunctionSpec>,
    /// A known form of the transition in place of a Gaussian process.
    pub function: Option<FunctionSpec>,
    /// The prior over f, by default `exact`.
    pub dynamics: Option<DynamicsSpec>,
    /// Process noise.
    pub process_noise: Option<ProcessNoiseSpec>,
    /// How the states are seen, by default the first ones with Gaussian noise.
    pub sensor: Option<SensorSpec>,
    /// p(x_0).
    pub initial: Option<InitialSpec>,
    /// Parameters of formulas.
    pub parameters: BTreeMap<String, Prior>,
    /// Whether data are standardised inside, by default yes.
    pub standardise: Option<bool>,
    /// Sign changes that the data cannot see, by default those of the states that no output shows.
    pub symmetries: Option<Vec<Symmetry>>,
    /// Transitions at the beginning of each sequence that are excluded from the likelihood of f (GP-NARX).
    pub presample: Option<usize>,
}

/// One state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateConfig {
    /// Its name in formulas and outputs.
    pub name: Option<String>,
    /// Covariance function, by default that of the model.
    pub kernel: Option<KernelSpec>,
    /// Mean function, by default that of the model.
    pub mean: Option<FunctionSpec>,
    /// A known form of its transition in place of a Gaussian process.
    pub function: Option<FunctionSpec>,
    /// It is this state one step before.
    pub lag_of: Option<StateNumber>,
    /// Its typical size, for default priors.
    pub scale: Option<f64>,
}

/// How many states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum States {
    /// So many.
    Number(usize),
    /// Chosen from the data, together with lags, delay, kernel and prior, see [`crate::auto`].
    Auto,
}

impl<'de> Deserialize<'de> for States {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = States;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a whole number, zero or more, or \"auto\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<States, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                usize::try_from(number).map(States::Number).map_err(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<States, E> {
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                (text == "auto").then_some(States::Auto).ok_or_else(wrong)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// A state, as `x2` or by its number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateNumber(
    /// From 0.
    pub usize,
);

impl<'de> Deserialize<'de> for StateNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = StateNumber;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a state, such as \"x1\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<StateNumber, E> {
                let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let wrong = || E::invalid_value(de::Unexpected::Signed(number), &self);
                index.map(StateNumber).ok_or_else(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StateNumber, E> {
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                shorthand::index(text, 'x').map(StateNumber).ok_or_else(wrong)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
