//! Priors of noise scales, given on the standard deviation or on the variance.

use rand::Rng;
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;

use super::prior::Prior;
use super::prior_error::{PriorError, require_positive};

/// The quantity that a [`ScalePrior`] is a prior of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleKind {
    /// The standard deviation.
    Sd,
    /// The variance, the square of the standard deviation.
    Variance,
}

/// A prior of a noise scale.
///
/// The parameter that the program stores is always the standard deviation;
/// `on` says which quantity the prior is written for. In TOML:
/// `{ on = "variance", prior = { inverse_gamma = { shape = 2.0, scale = 0.1 } } }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalePrior {
    /// The quantity that `prior` is written for.
    pub on: ScaleKind,
    /// The prior of that quantity.
    pub prior: Prior,
}

impl ScalePrior {
    /// A prior written for the standard deviation.
    pub fn on_sd(prior: Prior) -> Self {
        let on = ScaleKind::Sd;
        ScalePrior { on, prior }
    }

    /// A prior written for the variance.
    pub fn on_variance(prior: Prior) -> Self {
        let on = ScaleKind::Variance;
        ScalePrior { on, prior }
    }

    /// Checks the prior's parameters and that it gives no mass to negative
    /// numbers: a normal prior is refused, a fixed value must be positive and
    /// a uniform prior needs `low >= 0`.
    pub(crate) fn validate(&self) -> Result<(), PriorError> {
        self.prior.validate()?;
        let name = self.prior.name();
        match &self.prior {
            Prior::LogDensity(density) if density.low.is_none_or(|low| low < 0.0) => {
                Err(PriorError::Density {
                    message: "a standard deviation or variance is positive: give low = 0".into(),
                })
            }
            Prior::Normal { .. } => Err(PriorError::NotAScale { prior: name }),
            Prior::Fixed { value } => require_positive(name, "value", *value),
            Prior::Uniform { low, .. } if *low < 0.0 => Err(PriorError::OutOfRange {
                prior: name,
                field: "low",
                value: *low,
                allowed: "at least 0 for a standard deviation or variance",
            }),
            _ => Ok(()),
        }
    }

    /// Normalised log density of the standard deviation, `-inf` where `sd <= 0`.
    ///
    /// With a prior `p` on the variance this is `ln p(sd^2) + ln(2 sd)`. For a
    /// fixed scale it is the log probability: 0 at exactly that scale.
    pub fn log_density_of_sd(&self, sd: f64) -> f64 {
        if !sd.is_finite() || sd <= 0.0 {
            return f64::NEG_INFINITY;
        }
        if let Some(fixed_sd) = self.fixed_sd() {
            // Compared on the sd: the square of a rounded root may miss the variance.
            return if sd == fixed_sd { 0.0 } else { f64::NEG_INFINITY };
        }
        match self.on {
            ScaleKind::Sd => self.prior.log_density(sd),
            ScaleKind::Variance => self.prior.log_density(sd * sd) + LN_2 + sd.ln(),
        }
    }

    /// Draws a standard deviation.
    pub(crate) fn sample_sd<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.sd_of(self.prior.sample(rng))
    }

    /// The median of the standard deviation. (The root is monotone, so it is
    /// the root of the median variance.)
    pub fn median_sd(&self) -> f64 {
        self.sd_of(self.prior.median())
    }

    /// Whether the scale is fixed.
    pub fn is_fixed(&self) -> bool {
        self.prior.is_fixed()
    }

    /// The standard deviation at which the scale is fixed, if it is.
    pub(crate) fn fixed_sd(&self) -> Option<f64> {
        self.prior.fixed_value().map(|value| self.sd_of(value))
    }

    /// `(shape, scale)` if the variance has an inverse gamma prior, the
    /// conjugate case of Gaussian noise.
    pub fn as_inverse_gamma_variance(&self) -> Option<(f64, f64)> {
        match (self.on, &self.prior) {
            (ScaleKind::Variance, Prior::InverseGamma { shape, scale }) => Some((*shape, *scale)),
            _ => None,
        }
    }

    /// The standard deviation that belongs to a value of the quantity.
    fn sd_of(&self, quantity: f64) -> f64 {
        match self.on {
            ScaleKind::Sd => quantity,
            ScaleKind::Variance => quantity.sqrt(),
        }
    }
}

#[cfg(test)]
mod tests;
