//! Draws from the observation families.

use rand::Rng;
use rand_distr::{Distribution, Open01, Poisson, StandardNormal};
use std::f64::consts::LN_2;

use super::Family;
use crate::special::{sample_ln_gamma_variate, softplus};

/// Poisson draws with a greater rate are rounded normals.
pub const POISSON_NORMAL_FROM: f64 = 1e12;

impl Family {
    /// Draws an observation.
    ///
    /// Never panics, and is a finite value that [`Self::check`] accepts for
    /// every predictor but NaN, which gives NaN. Poisson draws whose rate
    /// exceeds [`POISSON_NORMAL_FROM`] are normals with the same mean and
    /// variance, rounded (their skewness, the greatest difference, is below
    /// 1e-6); values that overflow become the greatest finite number.
    pub fn sample<R: Rng + ?Sized>(&self, eta: f64, rng: &mut R) -> f64 {
        if eta.is_nan() {
            return f64::NAN;
        }
        let mut standard_normal = || -> f64 { StandardNormal.sample(rng) };
        // A finite predictor keeps an infinite deviation from cancelling it to NaN.
        let eta = eta.clamp(f64::MIN, f64::MAX);
        let value = match *self {
            Family::Gaussian { sd } => eta + sd * standard_normal(),
            Family::StudentT { scale, dof } => {
                let z = standard_normal();
                // t = z / sqrt(chi^2 / dof), chi^2 twice a gamma variate.
                let ln_gamma_variate = sample_ln_gamma_variate(0.5 * dof, rng);
                eta + scale * z * (0.5 * (dof.ln() - LN_2 - ln_gamma_variate)).exp()
            }
            Family::Poisson => sample_poisson(eta, rng),
            Family::NegativeBinomial { size } => {
                // A Poisson whose rate is a gamma variate with mean exp(eta).
                let ln_gamma_variate = sample_ln_gamma_variate(size, rng);
                sample_poisson(eta + ln_gamma_variate - size.ln(), rng)
            }
            Family::Bernoulli => {
                let uniform: f64 = Open01.sample(rng);
                f64::from(uniform < (-softplus(-eta)).exp())
            }
            Family::StochasticVolatility => (0.5 * eta).exp().min(f64::MAX) * standard_normal(),
        };
        value.clamp(f64::MIN, f64::MAX)
    }
}

/// A Poisson variate with the rate `exp(ln_rate)`; NaN for a NaN.
fn sample_poisson<R: Rng + ?Sized>(ln_rate: f64, rng: &mut R) -> f64 {
    if ln_rate.is_nan() {
        return f64::NAN;
    }
    let rate = ln_rate.exp().min(f64::MAX);
    if rate > POISSON_NORMAL_FROM {
        let z: f64 = StandardNormal.sample(rng);
        return (rate + rate.sqrt() * z).round().max(0.0);
    }
    // The only rate refused here is zero, an underflow of the exponential.
    Poisson::new(rate).map_or(0.0, |poisson| poisson.sample(rng))
}
