//! Poisson counts.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Poisson as PoissonVariate, StandardNormal};
use statrs::function::gamma::checked_gamma_ur;

use super::descriptor::{Density, Descriptor, Link, Numbers, add_each};
use super::{Family, OutputSupport};
use crate::special::{gamma_log_kernel, ln_gamma_centred};

/// Poisson draws with a greater rate are rounded normals.
pub const POISSON_NORMAL_FROM: f64 = 1e12;

/// Counts with rate `exp(eta)`.
pub static POISSON: Descriptor = Descriptor {
    name: "poisson",
    summary: "Poisson counts",
    formula: "p(y) = rate^y exp(-rate) / y!, rate = exp(log_rate)",
    statement: "{y} ~ Poisson, log of the rate = {eta}",
    figure: "{y}: counts and rate",
    predictor: "log_rate",
    link: Link::Log,
    parameters: &[],
    density: &Poisson,
};

impl Family {
    /// `p(y) = rate^y exp(-rate) / y!` with `rate = exp(eta)`.
    ///
    /// Draws whose rate exceeds [`POISSON_NORMAL_FROM`] are normals with the same mean and variance, rounded (their
    /// skewness, the greatest difference, is below 1e-6).
    pub const fn poisson() -> Self {
        Self::bind(&POISSON, [0.0; 2])
    }
}

#[derive(Debug)]
struct Poisson;

impl Density for Poisson {
    fn support(&self, _: Numbers) -> OutputSupport {
        OutputSupport::COUNTS
    }

    fn add_log_density(&self, _: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        if y == 0.0 {
            return add_each(eta, out, |e| -e.exp());
        }
        // As a density of the rate this is a gamma with shape y (times 1 / y), in the form that does not cancel for
        // large counts.
        let ln_y = y.ln();
        let constant = -ln_gamma_centred(y) - ln_y;
        add_each(eta, out, |e| constant + gamma_log_kernel(y, e - ln_y));
    }

    fn d_log_density(&self, _: Numbers, y: f64, eta: f64) -> (f64, f64) {
        (y - eta.exp(), -eta.exp())
    }

    fn sample(&self, _: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        sample_poisson(eta, rng)
    }

    fn cdf(&self, _: Numbers, y: f64, eta: f64) -> f64 {
        let rate = eta.exp();
        checked_gamma_ur(y + 1.0, rate).unwrap_or(if rate > y { 0.0 } else { 1.0 })
    }

    fn mean(&self, _: Numbers, eta: f64) -> f64 {
        eta.exp()
    }
}

/// A Poisson variate with the rate `exp(ln_rate)`; NaN for a NaN.
pub(super) fn sample_poisson(ln_rate: f64, rng: &mut dyn Rng) -> f64 {
    if ln_rate.is_nan() {
        return f64::NAN;
    }
    let rate = ln_rate.exp().min(f64::MAX);
    if rate > POISSON_NORMAL_FROM {
        let z: f64 = rng.sample(StandardNormal);
        return (rate + rate.sqrt() * z).round().max(0.0);
    }
    // The only rate refused here is zero, an underflow of the exponential.
    PoissonVariate::new(rate).map_or(0.0, |poisson| poisson.sample(rng))
}
