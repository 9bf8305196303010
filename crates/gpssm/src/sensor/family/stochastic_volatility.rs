//! A variance that changes in time.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::descriptor::{Density, Descriptor, Link, Numbers, add_each};
use super::{Family, OutputSupport};
use crate::special::{LN_2_PI, standard_cdf};

/// `y ~ N(0, exp(eta))`.
pub static STOCHASTIC_VOLATILITY: Descriptor = Descriptor {
    name: "stochastic_volatility",
    summary: "a volatility that changes in time",
    formula: "y ~ N(0, exp(log_variance))",
    statement: "{y} ~ Gaussian around zero, log of the variance = {eta}",
    figure: "|{y}| and its standard deviation",
    predictor: "log_variance",
    link: Link::LogVariance,
    parameters: &[],
    density: &StochasticVolatility,
};

impl Family {
    /// `p(y) = exp(-eta / 2 - y^2 exp(-eta) / 2) / sqrt(2 pi)`.
    pub const fn stochastic_volatility() -> Self {
        Self::bind(&STOCHASTIC_VOLATILITY, [0.0; 2])
    }
}

#[derive(Debug)]
struct StochasticVolatility;

impl Density for StochasticVolatility {
    fn support(&self, _: Numbers) -> OutputSupport {
        OutputSupport::REAL
    }

    fn add_log_density(&self, _: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        // y^2 exp(-eta) through logarithms: neither factor may overflow.
        let ln_square = 2.0 * y.abs().ln();
        add_each(eta, out, |e| -0.5 * (LN_2_PI + e + (ln_square - e).exp()));
    }

    fn d_log_density(&self, _: Numbers, y: f64, eta: f64) -> (f64, f64) {
        let half_square = 0.5 * (2.0 * y.abs().ln() - eta).exp();
        (half_square - 0.5, -half_square)
    }

    fn sample(&self, _: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        let z: f64 = rng.sample(StandardNormal);
        (0.5 * eta).exp().min(f64::MAX) * z
    }

    fn cdf(&self, _: Numbers, y: f64, eta: f64) -> f64 {
        standard_cdf(y * (-0.5 * eta).exp())
    }

    fn mean(&self, _: Numbers, _: f64) -> f64 {
        0.0
    }
}
