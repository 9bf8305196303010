//! Negative binomial counts: Poisson counts whose rate varies.

use rand::Rng;
use statrs::function::beta::checked_beta_reg;

use super::descriptor::{
    DefaultPrior, Density, Descriptor, FamilyParameter, Link, Numbers, ParameterKind, add_each,
};
use super::poisson::sample_poisson;
use super::{Family, OutputSupport};
use crate::special::{logistic, neg_ln_beta, sample_ln_gamma_variate, softplus};

/// Counts with mean `m = exp(eta)` and variance `m + m^2 / size`.
pub static NEGATIVE_BINOMIAL: Descriptor = Descriptor {
    name: "negative_binomial",
    summary: "negative binomial counts",
    formula: "counts with mean m = exp(log_mean) and variance m + m^2 / size",
    statement: "{y} ~ negative binomial, log of the mean = {eta}",
    figure: "{y}: counts and mean",
    predictor: "log_mean",
    link: Link::Log,
    parameters: &[FamilyParameter {
        name: "size",
        key: "size",
        kind: ParameterKind::Shape { default: DefaultPrior::LogNormal { median: 10.0, sigma: 1.5 } },
    }],
    density: &NegativeBinomial,
};

impl Family {
    /// With `m = exp(eta)`,
    /// `p(y) = Gamma(y + size) / (Gamma(size) y!) (size / (size + m))^size (m / (size + m))^y`; a large `size`
    /// approaches the Poisson family.
    pub const fn negative_binomial(size: f64) -> Self {
        Self::bind(&NEGATIVE_BINOMIAL, [size, 0.0])
    }
}

#[derive(Debug)]
struct NegativeBinomial;

/// With z = eta - ln size, the two probabilities have the logarithms -softplus(z) and -softplus(-z).
impl Density for NegativeBinomial {
    fn support(&self, _: Numbers) -> OutputSupport {
        OutputSupport::COUNTS
    }

    fn add_log_density(&self, [size, _]: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        let ln_size = size.ln();
        if y == 0.0 {
            return add_each(eta, out, |e| -size * softplus(e - ln_size));
        }
        let constant = neg_ln_beta(size, y) - y.ln();
        add_each(eta, out, |e| {
            let z = e - ln_size;
            constant - y * softplus(-z) - size * softplus(z)
        });
    }

    fn d_log_density(&self, [size, _]: Numbers, y: f64, eta: f64) -> (f64, f64) {
        let z = eta - size.ln();
        let (p, q) = (logistic(z), logistic(-z));
        (y * q - size * p, -(y + size) * p * q)
    }

    fn sample(&self, [size, _]: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        // A Poisson whose rate is a gamma variate with mean exp(eta).
        let ln_gamma_variate = sample_ln_gamma_variate(size, rng);
        sample_poisson(eta + ln_gamma_variate - size.ln(), rng)
    }

    fn cdf(&self, [size, _]: Numbers, y: f64, eta: f64) -> f64 {
        let p = size / (size + eta.exp());
        checked_beta_reg(size, y + 1.0, p).unwrap_or(if p > 0.5 { 1.0 } else { 0.0 })
    }

    fn mean(&self, _: Numbers, eta: f64) -> f64 {
        eta.exp()
    }
}
