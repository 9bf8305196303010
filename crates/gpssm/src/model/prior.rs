//! Prior distributions of scalar parameters.

mod density;
mod distribution;
mod table;

use serde::{Deserialize, Serialize};

use super::functions::Functions;
use super::prior_error::{PriorError, require_finite, require_positive};

pub use density::{LogDensity, PriorDensity};

/// The prior distribution of one real parameter.
///
/// In TOML the variant is the key:
/// `prior = { log_normal = { median = 1.0, sigma = 1.0 } }`.
/// Parameters are checked by the compiler of a model; the other methods never
/// panic, but for parameters it refuses their results have no meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Prior {
    /// A point mass: `x = value` with probability one.
    Fixed {
        /// The value.
        value: f64,
    },
    /// `ln x ~ N(ln median, sigma^2)`:
    /// `p(x) = exp(-(ln x - ln median)^2 / (2 sigma^2)) / (x sigma sqrt(2 pi))`, `x > 0`.
    LogNormal {
        /// Median of `x` (not of `ln x`).
        median: f64,
        /// Standard deviation of `ln x`.
        sigma: f64,
    },
    /// `p(x) = exp(-(x - mean)^2 / (2 sd^2)) / (sd sqrt(2 pi))`.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// `p(x) = rate^shape / Gamma(shape) x^(shape - 1) exp(-rate x)`, `x > 0`;
    /// mean `shape / rate`.
    Gamma {
        /// Shape.
        shape: f64,
        /// Rate (inverse of the scale).
        rate: f64,
    },
    /// `p(x) = scale^shape / Gamma(shape) x^(-shape - 1) exp(-scale / x)`, `x > 0`;
    /// `1/x` has the gamma prior with this shape and `rate = scale`.
    InverseGamma {
        /// Shape.
        shape: f64,
        /// Scale.
        scale: f64,
    },
    /// `p(x) = sqrt(2 / pi) / sd exp(-x^2 / (2 sd^2))`, `x > 0`.
    HalfNormal {
        /// Standard deviation of the normal before its absolute value is taken.
        sd: f64,
    },
    /// `p(x) = 2 / (pi scale (1 + (x / scale)^2))`, `x > 0`.
    HalfCauchy {
        /// Scale, also the median.
        scale: f64,
    },
    /// `p(x) = 1 / (high - low)`, `low <= x <= high`.
    Uniform {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// A log density of the user's own, a formula in `v` or a function, normalised numerically.
    LogDensity(Box<LogDensity>),
}

/// The set of values to which a prior gives density.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Support {
    /// All real numbers.
    Real,
    /// The numbers greater than zero.
    Positive,
    /// The closed interval from the first to the second number; either may be infinite.
    Interval(f64, f64),
}

impl Support {
    /// Whether the finite number `x` lies in the set.
    pub fn contains(&self, x: f64) -> bool {
        x.is_finite()
            && match *self {
                Support::Real => true,
                Support::Positive => x > 0.0,
                Support::Interval(low, high) => low <= x && x <= high,
            }
    }
}

impl From<LogDensity> for Prior {
    fn from(density: LogDensity) -> Self {
        Self::LogDensity(Box::new(density))
    }
}

impl From<Prior> for Vec<Prior> {
    fn from(prior: Prior) -> Self {
        vec![prior]
    }
}

impl Prior {
    /// The name of the family as written in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Prior::Fixed { .. } => "fixed",
            Prior::LogNormal { .. } => "log_normal",
            Prior::Normal { .. } => "normal",
            Prior::Gamma { .. } => "gamma",
            Prior::InverseGamma { .. } => "inverse_gamma",
            Prior::HalfNormal { .. } => "half_normal",
            Prior::HalfCauchy { .. } => "half_cauchy",
            Prior::Uniform { .. } => "uniform",
            Prior::LogDensity(_) => density::NAME,
        }
    }

    /// Checks that all parameters are finite and in their ranges.
    pub(crate) fn validate(&self) -> Result<(), PriorError> {
        let finite = |field, value| require_finite(self.name(), field, value);
        let positive = |field, value| require_positive(self.name(), field, value);
        match *self {
            Prior::Fixed { value } => finite("value", value),
            Prior::LogNormal { median, sigma } => {
                positive("median", median)?;
                positive("sigma", sigma)
            }
            Prior::Normal { mean, sd } => {
                finite("mean", mean)?;
                positive("sd", sd)
            }
            Prior::Gamma { shape, rate } => {
                positive("shape", shape)?;
                positive("rate", rate)
            }
            Prior::InverseGamma { shape, scale } => {
                positive("shape", shape)?;
                positive("scale", scale)
            }
            Prior::HalfNormal { sd } => positive("sd", sd),
            Prior::HalfCauchy { scale } => positive("scale", scale),
            Prior::Uniform { low, high } => {
                finite("low", low)?;
                finite("high", high)?;
                if low < high && (high - low).is_finite() {
                    Ok(())
                } else {
                    Err(PriorError::BadInterval { low, high })
                }
            }
            Prior::LogDensity(ref density) => density.validate(),
        }
    }

    /// The set of values to which the prior gives density (for a fixed value
    /// the interval of length zero at it).
    pub fn support(&self) -> Support {
        match *self {
            Prior::Fixed { value } => Support::Interval(value, value),
            Prior::Normal { .. } => Support::Real,
            Prior::Uniform { low, high } => Support::Interval(low, high),
            Prior::LogDensity(ref density) => density.support(),
            Prior::LogNormal { .. }
            | Prior::Gamma { .. }
            | Prior::InverseGamma { .. }
            | Prior::HalfNormal { .. }
            | Prior::HalfCauchy { .. } => Support::Positive,
        }
    }

    /// Whether the parameter is fixed.
    pub fn is_fixed(&self) -> bool {
        self.fixed_value().is_some()
    }

    /// The value at which the parameter is fixed, if it is.
    pub fn fixed_value(&self) -> Option<f64> {
        match *self {
            Prior::Fixed { value } => Some(value),
            _ => None,
        }
    }

    /// Gives the name of a user's density its meaning and checks it; other priors stay as they are.
    pub(crate) fn attach(&mut self, functions: &Functions) -> Result<(), PriorError> {
        match self {
            Prior::LogDensity(density) => density.attach(|name| functions.priors.get(name).cloned()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
