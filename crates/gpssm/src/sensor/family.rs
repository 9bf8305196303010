//! Observation families: the distribution of one scalar observation `y` given
//! its predictor `eta`.

mod error;
mod sampling;

pub use error::FamilyError;
pub use sampling::POISSON_NORMAL_FROM;

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

use crate::special::{
    LN_2_PI, gamma_log_kernel, ln_1p_square, ln_gamma_centred, ln_gamma_half_step, neg_ln_beta, softplus,
};

/// The distribution of a scalar observation `y` given the predictor `eta`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Family {
    /// `y ~ N(eta, sd^2)`:
    /// `p(y) = exp(-(y - eta)^2 / (2 sd^2)) / (sd sqrt(2 pi))`.
    Gaussian {
        /// Standard deviation.
        sd: f64,
    },
    /// `y = eta + scale t`, `t` Student's t with `v = dof`: `p(y) =
    /// Gamma((v+1)/2) / (Gamma(v/2) sqrt(v pi) scale)
    /// (1 + ((y - eta)/scale)^2 / v)^(-(v+1)/2)`.
    StudentT {
        /// Scale; the standard deviation is `scale sqrt(dof / (dof - 2))`, where it exists.
        scale: f64,
        /// Degrees of freedom.
        dof: f64,
    },
    /// Counts with log link, `rate = exp(eta)`: `p(y) = rate^y exp(-rate) / y!`.
    Poisson,
    /// Counts with log link, mean `m = exp(eta)` and variance `m + m^2 / size`:
    /// `p(y) = Gamma(y + size) / (Gamma(size) y!) (size / (size + m))^size
    /// (m / (size + m))^y`.
    NegativeBinomial {
        /// Size; large values approach the Poisson family.
        size: f64,
    },
    /// 0 or 1 with logit link: `p(1) = 1 / (1 + exp(-eta))`.
    Bernoulli,
    /// `y ~ N(0, exp(eta))`, `eta` the log variance:
    /// `p(y) = exp(-eta / 2 - y^2 exp(-eta) / 2) / sqrt(2 pi)`.
    StochasticVolatility,
}

impl Family {
    /// The name of the family as written in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Family::Gaussian { .. } => "gaussian",
            Family::StudentT { .. } => "student_t",
            Family::Poisson => "poisson",
            Family::NegativeBinomial { .. } => "negative_binomial",
            Family::Bernoulli => "bernoulli",
            Family::StochasticVolatility => "stochastic_volatility",
        }
    }

    /// Checks that the parameters are positive and finite.
    pub fn validate(&self) -> Result<(), FamilyError> {
        let positive = |field, value: f64| {
            if value > 0.0 && value.is_finite() {
                return Ok(());
            }
            Err(FamilyError::BadParameter { family: self.name(), field, value })
        };
        match *self {
            Family::Gaussian { sd } => positive("sd", sd),
            Family::StudentT { scale, dof } => {
                positive("scale", scale)?;
                positive("dof", dof)
            }
            Family::NegativeBinomial { size } => positive("size", size),
            Family::Poisson | Family::Bernoulli | Family::StochasticVolatility => Ok(()),
        }
    }

    /// Checks that `y` can be an observation of this family. NaN stands for a
    /// missing observation and is allowed.
    pub fn check(&self, y: f64) -> Result<(), FamilyError> {
        let family = self.name();
        if y.is_nan() {
            return Ok(());
        }
        if y.is_infinite() {
            return Err(FamilyError::Infinite { family, value: y });
        }
        if self.allows(y) {
            return Ok(());
        }
        Err(match self {
            Family::Bernoulli => FamilyError::NotBinary { family, value: y },
            _ => FamilyError::NotACount { family, value: y },
        })
    }

    /// Whether the finite number `y` is a possible value.
    fn allows(&self, y: f64) -> bool {
        match self {
            Family::Gaussian { .. } | Family::StudentT { .. } | Family::StochasticVolatility => true,
            Family::Poisson | Family::NegativeBinomial { .. } => y >= 0.0 && y.fract() == 0.0,
            Family::Bernoulli => y == 0.0 || y == 1.0,
        }
    }

    /// Adds `ln p(y | eta[i])` to `out[i]` for every `i` (up to the shorter of
    /// the two slices).
    ///
    /// A missing observation (`y` NaN) adds nothing, an impossible one adds
    /// `-inf`. Never adds NaN or `+inf`: rates that overflow, and predictors
    /// that are NaN (a diverged particle), add `-inf`.
    pub fn log_density(&self, y: f64, eta: &[f64], out: &mut [f64]) {
        if y.is_nan() {
            return;
        }
        if y.is_infinite() || !self.allows(y) {
            return add_each(eta, out, |_| f64::NEG_INFINITY);
        }
        match *self {
            Family::Gaussian { sd } => {
                let constant = -0.5 * LN_2_PI - sd.ln();
                add_each(eta, out, |e| {
                    let deviate = (y - e) / sd;
                    constant - 0.5 * deviate * deviate
                });
            }
            Family::StudentT { scale, dof } => {
                let constant = ln_gamma_half_step(0.5 * dof) - 0.5 * (dof.ln() + PI.ln()) - scale.ln();
                let width = scale * dof.sqrt();
                let power = 0.5 * (dof + 1.0);
                add_each(eta, out, |e| constant - power * ln_1p_square((y - e) / width));
            }
            Family::Poisson if y == 0.0 => add_each(eta, out, |e| -e.exp()),
            Family::Poisson => {
                // As a density of the rate this is a gamma with shape y (times
                // 1 / y), in the form that does not cancel for large counts.
                let ln_y = y.ln();
                let constant = -ln_gamma_centred(y) - ln_y;
                add_each(eta, out, |e| constant + gamma_log_kernel(y, e - ln_y));
            }
            Family::NegativeBinomial { size } => {
                // With z = eta - ln size, the two probabilities have the
                // logarithms -softplus(z) and -softplus(-z).
                let ln_size = size.ln();
                if y == 0.0 {
                    add_each(eta, out, |e| -size * softplus(e - ln_size));
                } else {
                    let constant = neg_ln_beta(size, y) - y.ln();
                    add_each(eta, out, |e| {
                        let z = e - ln_size;
                        constant - y * softplus(-z) - size * softplus(z)
                    });
                }
            }
            Family::Bernoulli if y == 0.0 => add_each(eta, out, |e| -softplus(e)),
            Family::Bernoulli => add_each(eta, out, |e| -softplus(-e)),
            Family::StochasticVolatility => {
                // y^2 exp(-eta) through logarithms: neither factor may overflow.
                let ln_square = 2.0 * y.abs().ln();
                add_each(eta, out, |e| -0.5 * (LN_2_PI + e + (ln_square - e).exp()));
            }
        }
    }
}

/// Adds a function of every predictor to the corresponding sum.
#[inline]
fn add_each(eta: &[f64], out: &mut [f64], log_density: impl Fn(f64) -> f64) {
    for (o, &e) in out.iter_mut().zip(eta) {
        let value = log_density(e);
        // One comparison sorts out both NaN and +inf.
        *o += if value < f64::INFINITY { value } else { f64::NEG_INFINITY };
    }
}

#[cfg(test)]
mod tests;
