//! Small numeric functions shared by the priors and the observation families,
//! each written so that it stays accurate where the textbook form cancels.

use std::f64::consts::FRAC_1_SQRT_2;

use rand::Rng;
use rand_distr::{Distribution, Gamma, Open01};
use statrs::function::erf::erfc;
use statrs::function::gamma::{checked_gamma_lr, ln_gamma};

/// `ln(2 pi)`.
pub(crate) const LN_2_PI: f64 = 1.837_877_066_409_345_3;

/// From this argument on the Stirling series below is exact to rounding.
const STIRLING_FROM: f64 = 10.0;

/// `ln(1 + exp(z))` without overflow for large `z` or loss for very negative `z`.
#[inline]
pub(crate) fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// `1 / (1 + exp(-z))`.
#[inline]
pub(crate) fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// P(Z <= z) of a standard normal.
pub fn standard_cdf(z: f64) -> f64 {
    0.5 * erfc(-z * FRAC_1_SQRT_2)
}

/// `ln(1 + t^2)` without overflow of the square.
#[inline]
pub(crate) fn ln_1p_square(t: f64) -> f64 {
    let size = t.abs();
    if size > 1e100 { 2.0 * size.ln() } else { (size * size).ln_1p() }
}

/// `ln Gamma(a) - (a ln a - a)` for `a > 0`.
///
/// What is left of `ln Gamma` after its fast growing part grows only like
/// `ln a`, so log densities built from it keep their digits for large `a`.
pub(crate) fn ln_gamma_centred(a: f64) -> f64 {
    if a < STIRLING_FROM {
        return ln_gamma(a) - a * a.ln() + a;
    }
    let inverse = 1.0 / a;
    let square = inverse * inverse;
    let coefficients =
        [-691.0 / 360_360.0, 1.0 / 1_188.0, -1.0 / 1_680.0, 1.0 / 1_260.0, -1.0 / 360.0, 1.0 / 12.0];
    let series = coefficients.iter().fold(0.0, |sum, c| sum * square + c);
    0.5 * (LN_2_PI - a.ln()) + series * inverse
}

/// `-ln B(a, b) = ln Gamma(a + b) - ln Gamma(a) - ln Gamma(b)` for `a, b > 0`.
pub(crate) fn neg_ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    let total = small + large;
    // The growing parts of the three ln Gamma combine into two positive terms.
    let growing = large * (small / large).ln_1p() + small * (total.ln() - small.ln());
    growing + ln_gamma_centred(total) - ln_gamma_centred(small) - ln_gamma_centred(large)
}

/// `ln Gamma(a + 1/2) - ln Gamma(a)` for `a > 0`, accurate for large `a`.
pub(crate) fn ln_gamma_half_step(a: f64) -> f64 {
    a * (0.5 / a).ln_1p() + 0.5 * (a + 0.5).ln() - 0.5 + ln_gamma_centred(a + 0.5) - ln_gamma_centred(a)
}

/// `shape (d - (e^d - 1))`: with `d = ln(rate x / shape)`, the log density of
/// `ln x` for a gamma variable `x`, up to the constant
/// `-ln_gamma_centred(shape)`.
///
/// Poisson, gamma and inverse gamma all reduce to this one expression, which
/// is flat at the mode, so that rounding of `d` is harmless however large the
/// shape is.
#[inline]
pub(crate) fn gamma_log_kernel(shape: f64, d: f64) -> f64 {
    shape * (d - d.exp_m1())
}

/// The logarithm of a `Gamma(shape, 1)` variate; NaN if the shape is not positive.
///
/// The logarithm is drawn because a small shape puts much mass below the
/// smallest positive number, where the variate itself would be zero.
pub(crate) fn sample_ln_gamma_variate<R: Rng + ?Sized>(shape: f64, rng: &mut R) -> f64 {
    if !shape.is_finite() || shape <= 0.0 {
        return f64::NAN;
    }
    let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
    let Ok(gamma) = Gamma::new(boosted, 1.0) else {
        return f64::NAN;
    };
    let ln_variate = gamma.sample(rng).ln();
    if shape < 1.0 {
        // G(shape) = G(shape + 1) U^(1/shape) in distribution.
        let uniform: f64 = Open01.sample(rng);
        ln_variate + uniform.ln() / shape
    } else {
        ln_variate
    }
}

/// Logarithm of the median of `Gamma(shape, 1)`; NaN if the shape is not positive.
pub(crate) fn ln_gamma_median(shape: f64) -> f64 {
    if !shape.is_finite() || shape <= 0.0 {
        return f64::NAN;
    }
    if shape >= 1e3 {
        // The expansion of the median in 1/shape is exact to rounding here.
        let correction = 1.0 / 3.0 - (8.0 / 405.0 + 184.0 / 25_515.0 / shape) / shape;
        return (shape - correction).ln();
    }
    // P(shape, x) <= x^shape / Gamma(shape + 1) gives a lower bound, the mean an
    // upper bound.
    let mut low = (ln_gamma(shape + 1.0) - std::f64::consts::LN_2) / shape;
    if low < -600.0 {
        // The bound's relative error is of the order of the median itself.
        return low;
    }
    let mut high = shape.ln();
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        match checked_gamma_lr(shape, middle.exp()) {
            Ok(p) if p < 0.5 => low = middle,
            Ok(_) => high = middle,
            Err(_) => return f64::NAN,
        }
    }
    0.5 * (low + high)
}

/// Brings a positive variate that underflowed or overflowed back into the
/// open interval of positive finite numbers; NaN stays NaN.
pub(crate) fn clamp_positive(x: f64) -> f64 {
    x.clamp(f64::MIN_POSITIVE, f64::MAX)
}

#[cfg(test)]
mod tests;
