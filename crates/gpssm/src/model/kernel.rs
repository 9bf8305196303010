//! Kernels as the user describes them: priors in place of numbers.

use serde::{Deserialize, Serialize};

use super::prior::Prior;

/// A covariance function of z = (x, u). Every state dimension has its own hyper-parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KernelSpec {
    /// sigma_f^2 exp(-r^2 / 2).
    SquaredExponential(StationarySpec),
    /// sigma_f^2 exp(-r).
    Matern12(StationarySpec),
    /// sigma_f^2 (1 + sqrt(3) r) exp(-sqrt(3) r).
    Matern32(StationarySpec),
    /// sigma_f^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r).
    Matern52(StationarySpec),
    /// sigma_f^2 (1 + r^2 / (2 alpha))^(-alpha).
    RationalQuadratic(RationalQuadraticSpec),
    /// sigma_f^2 exp(-2 sum_c sin^2(pi (z_c - z'_c) / period_c) / ell_c^2).
    Periodic(PeriodicSpec),
    /// sum_c sigma_c^2 (z_c - middle) (z'_c - middle), the middle of the data where they are standardised.
    Linear(LinearSpec),
    /// sigma^2: an unknown offset.
    Constant(ConstantSpec),
    /// Sum.
    Sum(Vec<KernelSpec>),
    /// Product; only the first factor has a scale of its own unless others name one.
    Product(Vec<KernelSpec>),
    /// Of the odd part of such a function, f(-z) = -f(z): what happens to the right happens to the left. z is counted
    /// from the middle of the data where they are standardised.
    Odd(Box<KernelSpec>),
}

impl KernelSpec {
    /// Whether there is an odd kernel among its parts.
    pub(crate) fn has_odd(&self) -> bool {
        match self {
            Self::Sum(parts) | Self::Product(parts) => parts.iter().any(Self::has_odd),
            kernel => matches!(kernel, Self::Odd(_)),
        }
    }
}

impl Default for KernelSpec {
    /// Squared exponential + linear.
    fn default() -> Self {
        Self::Sum(vec![
            Self::SquaredExponential(StationarySpec::default()),
            Self::Linear(LinearSpec::default()),
        ])
    }
}

/// Components of z that a kernel acts on: `x`, `u` for all states or inputs, `x1`, `u2` for one; none means
/// all.
pub type Active = Option<Vec<String>>;

/// Hyper-parameters of a stationary kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StationarySpec {
    /// Components it acts on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Active,
    /// Signal standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma_f: Option<Prior>,
    /// Length-scales: one prior for all components, one for each, or none for the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ell: Vec<Prior>,
}

/// Hyper-parameters of the rational quadratic kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RationalQuadraticSpec {
    /// Components it acts on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Active,
    /// Signal standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma_f: Option<Prior>,
    /// Length-scales: one prior for all components, one for each, or none for the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ell: Vec<Prior>,
    /// Weight of the small scales.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Prior>,
}

/// Hyper-parameters of the periodic kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeriodicSpec {
    /// Components it acts on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Active,
    /// Signal standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma_f: Option<Prior>,
    /// Length-scales (no unit): one prior for all components, one for each, or none for the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ell: Vec<Prior>,
    /// Periods: one prior for all components, one for each, or none for the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub period: Vec<Prior>,
}

/// Hyper-parameters of the linear kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinearSpec {
    /// Components it acts on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Active,
    /// Standard deviations of the slopes: one prior for all components, one for each, or none for the
    /// default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sigma: Vec<Prior>,
}

/// Hyper-parameter of the constant kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConstantSpec {
    /// Standard deviation of the offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma: Option<Prior>,
}
