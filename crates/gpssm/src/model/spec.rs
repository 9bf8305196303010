//! The model as plain data: what a model file holds and what a user builds in code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::covariance_prior::CovariancePrior;
use super::dynamics::DynamicsSpec;
use super::kernel::KernelSpec;
use super::names::Names;
use super::prior::Prior;
use super::scale_prior::ScalePrior;
pub(crate) use super::sensor::{Predictor, SensorNoiseSpec, SensorSpec};
use super::symmetry::Symmetry;

/// A Gaussian process state-space model (eq. 2 of the paper), with priors in place of numbers.
///
/// Everything that is left out gets a sensible default that is scaled to the data. Priors are in original
/// units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The states, one entry for each dimension.
    pub states: Vec<StateSpec>,
    /// Number of known inputs.
    #[serde(default)]
    pub n_u: usize,
    /// Number of outputs.
    pub n_y: usize,
    /// The prior over f: the Gaussian process itself, or a finite basis in its place.
    #[serde(default)]
    pub dynamics: DynamicsSpec,
    /// Process noise Q of the states that are not lags.
    #[serde(default)]
    pub process_noise: ProcessNoiseSpec,
    /// How the states are seen.
    #[serde(default)]
    pub sensor: SensorSpec,
    /// p(x_0), the same for every sequence.
    #[serde(default)]
    pub initial: InitialSpec,
    /// Parameters of user functions and formulas, by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, Prior>,
    /// Names of states, inputs and outputs.
    #[serde(default, skip_serializing_if = "Names::is_default")]
    pub names: Names,
    /// Whether inputs, and outputs of linear-Gaussian sensors, are standardised inside. Results are in
    /// original units either way.
    #[serde(default = "yes")]
    pub standardise: bool,
    /// Sign changes of states that the data cannot see, each with a rule that picks one sign.
    #[serde(default)]
    pub symmetries: Vec<Symmetry>,
    /// Transitions at the beginning of each sequence that f is not learned from, at most half of them: what the model sees of
    /// the past lies before the record there. Needs states that are held on the outputs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub presample: usize,
    /// Whether f is not learned from transitions that see, or lead to, a missing output. Needs states that are held on the
    /// outputs: where states are drawn, missing outputs need nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_missing: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn yes() -> bool {
    true
}

/// One state dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSpec {
    /// How it evolves.
    pub transition: TransitionSpec,
    /// Its typical size, for default priors; by default the size of the outputs that show it, else 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// How a state dimension evolves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TransitionSpec {
    /// x' = f(x, u) + v with f ~ GP(mean, kernel).
    Gp {
        /// Covariance function.
        #[serde(default)]
        kernel: KernelSpec,
        /// Mean function.
        #[serde(default)]
        mean: FunctionSpec,
    },
    /// x' = h(x, u; phi) + v with a known form h, whose parameters may be learned.
    Parametric {
        /// h.
        function: FunctionSpec,
    },
    /// A copy of another state one step before, without noise: states that are lagged outputs.
    Lag {
        /// Index of that state, from 0.
        of: usize,
    },
}

/// A number that is known, or learned under a prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Known.
    Known(f64),
    /// Learned.
    Learned(Prior),
}

impl Value {
    pub(crate) fn prior(&self) -> Prior {
        match self {
            Self::Known(value) => Prior::Fixed { value: *value },
            Self::Learned(prior) => prior.clone(),
        }
    }
}

/// A scalar function of state and input, in original units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FunctionSpec {
    /// Zero (the middle of the data where they are standardised).
    Zero,
    /// The state itself, m(x) = x: the paper's generic choice.
    #[default]
    Identity,
    /// a . x + b . u + offset.
    Linear {
        /// One coefficient for each state.
        a: Vec<Value>,
        /// One coefficient for each input.
        #[serde(default)]
        b: Vec<Value>,
        /// Constant term.
        #[serde(default = "zero")]
        offset: Value,
    },
    /// A formula in states, inputs and parameters, such as `a*x/(1 + x^2) + cos(u)`; see [`crate::formula`].
    Formula(String),
    /// A user function that is registered under this name.
    User(FunctionRef),
}

fn zero() -> Value {
    Value::Known(0.0)
}

/// A registered function and the names of the parameters it is called with, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionRef {
    /// Name in the registry.
    pub name: String,
    /// Names in [`Model::parameters`].
    #[serde(default)]
    pub parameters: Vec<String>,
}

/// Prior of the process noise covariance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProcessNoiseSpec {
    /// Independent components: one prior for all, one for each, or none for the default.
    Diagonal(Vec<ScalePrior>),
    /// A full matrix; without a prior LKJ(2) with default scales.
    Full(Option<CovariancePrior>),
}

impl Default for ProcessNoiseSpec {
    fn default() -> Self {
        Self::Diagonal(Vec::new())
    }
}

/// p(x_0).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InitialSpec {
    /// Gaussian around the middle of the data, twice as wide as they are.
    #[default]
    Default,
    /// N(mean, diag(sd^2)).
    Gaussian {
        /// Mean of each state.
        mean: Vec<f64>,
        /// Standard deviation of each state.
        sd: Vec<f64>,
    },
    /// N(mean, covariance).
    GaussianFull {
        /// Mean of each state.
        mean: Vec<f64>,
        /// Covariance matrix.
        covariance: Vec<Vec<f64>>,
    },
    /// Known exactly.
    Fixed(Vec<f64>),
    /// A user density that is registered under this name.
    User(String),
}
