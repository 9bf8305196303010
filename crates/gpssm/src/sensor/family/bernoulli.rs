//! Zeros and ones.

use rand::{Rng, RngExt};
use rand_distr::Open01;

use super::descriptor::{Density, Descriptor, Link, Numbers, add_each};
use super::{Family, OutputSupport};
use crate::special::{logistic, softplus};

/// 0 or 1 with log odds `eta`.
pub static BERNOULLI: Descriptor = Descriptor {
    name: "bernoulli",
    summary: "zeros and ones (Bernoulli)",
    formula: "p(1) = 1 / (1 + exp(-logit))",
    statement: "{y} ~ Bernoulli, log odds = {eta}",
    figure: "{y}: probability of 1",
    predictor: "logit",
    link: Link::Logit,
    parameters: &[],
    density: &Bernoulli,
};

impl Family {
    /// `p(1) = 1 / (1 + exp(-eta))`.
    pub const fn bernoulli() -> Self {
        Self::bind(&BERNOULLI, [0.0; 2])
    }
}

#[derive(Debug)]
struct Bernoulli;

impl Density for Bernoulli {
    fn support(&self, _: Numbers) -> OutputSupport {
        OutputSupport::Integers { low: 0.0, high: 1.0 }
    }

    fn add_log_density(&self, _: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        let sign = if y == 0.0 { 1.0 } else { -1.0 };
        add_each(eta, out, |e| -softplus(sign * e));
    }

    fn d_log_density(&self, _: Numbers, y: f64, eta: f64) -> (f64, f64) {
        let (p, q) = (logistic(eta), logistic(-eta));
        (if y == 0.0 { -p } else { q }, -p * q)
    }

    fn sample(&self, _: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        let uniform: f64 = rng.sample(Open01);
        f64::from(uniform < (-softplus(-eta)).exp())
    }

    fn cdf(&self, _: Numbers, y: f64, eta: f64) -> f64 {
        if y < 1.0 { logistic(-eta) } else { 1.0 }
    }

    fn mean(&self, _: Numbers, eta: f64) -> f64 {
        logistic(eta)
    }
}
