//! Density, draws and median of the scalar priors.

use rand::Rng;
use rand_distr::{Distribution, Open01, StandardNormal};
use std::f64::consts::{FRAC_PI_2, LN_2};

use super::Prior;
use crate::special::{
    LN_2_PI, clamp_positive, gamma_log_kernel, ln_1p_square, ln_gamma_centred, ln_gamma_median,
    sample_ln_gamma_variate,
};

/// Upper quartile of the standard normal, the median of its absolute value.
const NORMAL_UPPER_QUARTILE: f64 = 0.674_489_750_196_081_7;

impl Prior {
    /// Normalised log density at `x`; `-inf` outside the support (zero is
    /// outside of [`Support::Positive`](super::Support::Positive)), at infinities and for NaN.
    ///
    /// A fixed value has no density: there the result is the log probability,
    /// 0 at exactly that value and `-inf` elsewhere.
    pub fn log_density(&self, x: f64) -> f64 {
        if !self.support().contains(x) {
            return f64::NEG_INFINITY;
        }
        let normal = |deviate: f64, sd: f64| -0.5 * (LN_2_PI + deviate * deviate) - sd.ln();
        match *self {
            Prior::Fixed { .. } => 0.0,
            Prior::LogNormal { median, sigma } => normal((x.ln() - median.ln()) / sigma, sigma) - x.ln(),
            Prior::Normal { mean, sd } => normal((x - mean) / sd, sd),
            Prior::Gamma { shape, rate } => {
                let d = rate.ln() + x.ln() - shape.ln();
                gamma_log_kernel(shape, d) - ln_gamma_centred(shape) - x.ln()
            }
            Prior::InverseGamma { shape, scale } => {
                // Density of 1/x under the gamma prior; d ln(1/x) = -d ln x, so
                // the Jacobian is again one over x.
                let d = scale.ln() - x.ln() - shape.ln();
                gamma_log_kernel(shape, d) - ln_gamma_centred(shape) - x.ln()
            }
            Prior::HalfNormal { sd } => LN_2 + normal(x / sd, sd),
            Prior::HalfCauchy { scale } => -FRAC_PI_2.ln() - scale.ln() - ln_1p_square(x / scale),
            Prior::Uniform { low, high } => -(high - low).ln(),
            Prior::LogDensity(ref density) => density.log_density(x),
        }
    }

    /// Draws a value; always finite and in the support for valid parameters
    /// (positive draws that under- or overflow are moved to the nearest
    /// positive finite number).
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let standard_normal = |rng: &mut R| -> f64 { StandardNormal.sample(rng) };
        let uniform = |rng: &mut R| -> f64 { Open01.sample(rng) };
        match *self {
            Prior::Fixed { value } => value,
            Prior::LogNormal { median, sigma } => {
                clamp_positive((median.ln() + sigma * standard_normal(rng)).exp())
            }
            Prior::Normal { mean, sd } => (mean + sd * standard_normal(rng)).clamp(f64::MIN, f64::MAX),
            Prior::Gamma { shape, rate } => {
                clamp_positive((sample_ln_gamma_variate(shape, rng) - rate.ln()).exp())
            }
            Prior::InverseGamma { shape, scale } => {
                clamp_positive((scale.ln() - sample_ln_gamma_variate(shape, rng)).exp())
            }
            Prior::HalfNormal { sd } => clamp_positive(sd * standard_normal(rng).abs()),
            Prior::HalfCauchy { scale } => clamp_positive(scale * (FRAC_PI_2 * uniform(rng)).tan()),
            // The minimum keeps rounding from passing the upper bound.
            Prior::Uniform { low, high } => (low + (high - low) * uniform(rng)).min(high),
            Prior::LogDensity(ref density) => density.quantile(uniform(rng)),
        }
    }

    /// The median of the prior.
    pub fn median(&self) -> f64 {
        match *self {
            Prior::Fixed { value } => value,
            Prior::LogNormal { median, .. } => median,
            Prior::Normal { mean, .. } => mean,
            Prior::Gamma { shape, rate } => clamp_positive((ln_gamma_median(shape) - rate.ln()).exp()),
            Prior::InverseGamma { shape, scale } => {
                clamp_positive((scale.ln() - ln_gamma_median(shape)).exp())
            }
            Prior::HalfNormal { sd } => NORMAL_UPPER_QUARTILE * sd,
            Prior::HalfCauchy { scale } => scale,
            Prior::Uniform { low, high } => low + 0.5 * (high - low),
            Prior::LogDensity(ref density) => density.quantile(0.5),
        }
    }
}
