//! Counts out of a known number of trials.

use rand::Rng;
use rand_distr::{Binomial as BinomialVariate, Distribution};
use statrs::function::beta::checked_beta_reg;

use super::descriptor::{Density, Descriptor, FamilyParameter, Link, Numbers, ParameterKind, add_each};
use super::{Family, OutputSupport};
use crate::special::{logistic, neg_ln_beta, softplus};

/// Successes in `trials` trials with log odds `eta`.
pub static BINOMIAL: Descriptor = Descriptor {
    name: "binomial",
    summary: "binomial counts",
    formula: "successes in n = trials trials, each with probability 1 / (1 + exp(-logit))",
    statement: "{y} ~ binomial, log odds = {eta}",
    figure: "{y}: counts and mean",
    predictor: "logit",
    link: Link::Logit,
    parameters: &[FamilyParameter { name: "trials", key: "trials", kind: ParameterKind::Count }],
    density: &Binomial,
};

impl Family {
    /// With `n = trials` and `p = 1 / (1 + exp(-eta))`, `p(y) = n! / (y! (n - y)!) p^y (1 - p)^(n - y)`.
    pub const fn binomial(trials: u32) -> Self {
        Self::bind(&BINOMIAL, [trials as f64, 0.0])
    }
}

#[derive(Debug)]
struct Binomial;

impl Density for Binomial {
    fn support(&self, [n, _]: Numbers) -> OutputSupport {
        OutputSupport::Integers { low: 0.0, high: n }
    }

    fn add_log_density(&self, [n, _]: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        // ln p = -softplus(-eta) and ln (1 - p) = -softplus(eta); what did not happen adds nothing, even at infinity.
        let times = |count: f64, log_p: f64| if count == 0.0 { 0.0 } else { count * log_p };
        let one_way = y == 0.0 || y == n;
        let constant = if one_way { 0.0 } else { neg_ln_beta(y + 1.0, n - y + 1.0) - n.ln_1p() };
        add_each(eta, out, |e| constant - times(y, softplus(-e)) - times(n - y, softplus(e)));
    }

    fn d_log_density(&self, [n, _]: Numbers, y: f64, eta: f64) -> (f64, f64) {
        let (p, q) = (logistic(eta), logistic(-eta));
        (y * q - (n - y) * p, -n * p * q)
    }

    fn sample(&self, [n, _]: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        // A probability is never refused.
        BinomialVariate::new(n as u64, logistic(eta)).map_or(0.0, |binomial| binomial.sample(rng) as f64)
    }

    fn cdf(&self, [n, _]: Numbers, y: f64, eta: f64) -> f64 {
        if y >= n { 1.0 } else { checked_beta_reg(n - y, y + 1.0, logistic(-eta)).unwrap_or(f64::NAN) }
    }

    fn mean(&self, [n, _]: Numbers, eta: f64) -> f64 {
        n * logistic(eta)
    }
}
