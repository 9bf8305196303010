//! The model as plain data: what a model file holds and what a user builds in code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::covariance_prior::CovariancePrior;
use super::dynamics::DynamicsSpec;
use super::kernel::KernelSpec;
use super::names::Names;
use super::prior::Prior;
use super::scale_prior::ScalePrior;
use super::symmetry::Symmetry;
use crate::sensor::formula::OutputSupport;

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

/// Prior of the sensor noise covariance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SensorNoiseSpec {
    /// Independent components: one prior for all, one for each, or none for the default.
    Diagonal(Vec<ScalePrior>),
    /// A full matrix; without a prior inverse Wishart with default scales.
    Full(Option<CovariancePrior>),
}

impl Default for SensorNoiseSpec {
    fn default() -> Self {
        Self::Diagonal(Vec::new())
    }
}

/// What each output's distribution is centred on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Predictor {
    /// Output k shows state k.
    #[default]
    States,
    /// C x + D u + offset.
    Linear {
        /// One row for each output, one column for each state.
        c: Vec<Vec<Value>>,
        /// One row for each output, one column for each input; empty for zero.
        #[serde(default)]
        d: Vec<Vec<Value>>,
        /// One for each output; empty for zero.
        #[serde(default)]
        offset: Vec<Value>,
    },
    /// One formula in states, inputs and parameters for each output; see [`crate::formula`]. A mean that is
    /// linear is better given as `linear`: the filter can then use it to guide its particles.
    Formulas(Vec<String>),
    /// One user function for each output.
    Functions(Vec<FunctionRef>),
}

/// p(y | x, u): families with a predictor, or the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SensorSpec {
    /// y ~ N(mean, R).
    Gaussian {
        /// Mean of each output.
        #[serde(default)]
        mean: Predictor,
        /// R.
        #[serde(default)]
        noise: SensorNoiseSpec,
    },
    /// y = mean + scale * t, t Student's t: robust against outliers.
    StudentT {
        /// Location of each output.
        #[serde(default)]
        mean: Predictor,
        /// Scales: one prior for all, one for each output, or none for the default.
        #[serde(default)]
        scale: Vec<ScalePrior>,
        /// Degrees of freedom, shared by all outputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dof: Option<Prior>,
    },
    /// Counts with rate exp(log_rate).
    Poisson {
        /// Log of the rate of each output.
        #[serde(default)]
        log_rate: Predictor,
    },
    /// Counts with mean exp(log_mean) and variance mean + mean^2 / size.
    NegativeBinomial {
        /// Log of the mean of each output.
        #[serde(default)]
        log_mean: Predictor,
        /// Size, shared by all outputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Prior>,
    },
    /// 0 or 1 with log odds `logit`.
    Bernoulli {
        /// Log odds of each output.
        #[serde(default)]
        logit: Predictor,
    },
    /// y ~ N(0, exp(log_variance)).
    StochasticVolatility {
        /// Log variance of each output.
        #[serde(default)]
        log_variance: Predictor,
    },
    /// A formula for log p(y | x, u).
    Formula {
        /// In outputs, states, inputs and parameters; see [`crate::formula`]. Terms that depend neither on
        /// states nor on parameters can be left out. Rows must have all outputs or none.
        log_density: String,
        /// Where the output can lie. Needed only to draw outputs in simulations, and possible only with a
        /// single output; see [`FormulaSensor`](crate::sensor::formula::FormulaSensor).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        support: Option<OutputSupport>,
    },
    /// A user sensor that is registered under this name.
    User(FunctionRef),
}

impl Default for SensorSpec {
    fn default() -> Self {
        Self::Gaussian { mean: Predictor::default(), noise: SensorNoiseSpec::default() }
    }
}

impl SensorSpec {
    /// What the outputs are centred on, unless the sensor is the user's own.
    pub fn predictor(&self) -> Option<&Predictor> {
        match self {
            Self::Gaussian { mean, .. } | Self::StudentT { mean, .. } => Some(mean),
            Self::Poisson { log_rate: predictor }
            | Self::NegativeBinomial { log_mean: predictor, .. }
            | Self::Bernoulli { logit: predictor }
            | Self::StochasticVolatility { log_variance: predictor } => Some(predictor),
            Self::Formula { .. } | Self::User(_) => None,
        }
    }

    /// Whether y = C x + D u + offset + e with Gaussian e.
    pub fn is_linear_gaussian(&self) -> bool {
        matches!(self, Self::Gaussian { mean: Predictor::States | Predictor::Linear { .. }, .. })
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
