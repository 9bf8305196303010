//! Observation families: the distribution of one scalar observation `y` given its predictor `eta`.
//!
//! One file for each family holds its [`Descriptor`]: names, parameters, words and mathematics. [`FAMILIES`] lists
//! them, and [`Family`] is one of them with numbers.

mod bernoulli;
mod binomial;
pub(crate) mod descriptor;
mod error;
mod gaussian;
mod negative_binomial;
mod poisson;
mod stochastic_volatility;
mod student_t;

pub use bernoulli::BERNOULLI;
pub use binomial::BINOMIAL;
pub use descriptor::{DefaultPrior, Descriptor, FamilyParameter, Link, Numbers, ParameterKind};
pub use error::FamilyError;
pub use gaussian::GAUSSIAN;
pub use negative_binomial::NEGATIVE_BINOMIAL;
pub use poisson::{POISSON, POISSON_NORMAL_FROM};
pub use stochastic_volatility::STOCHASTIC_VOLATILITY;
pub use student_t::STUDENT_T;

use rand::Rng;

use super::support::OutputSupport;

/// Every family, in the order of help and documentation.
pub static FAMILIES: [&Descriptor; 7] =
    [&GAUSSIAN, &STUDENT_T, &POISSON, &NEGATIVE_BINOMIAL, &BERNOULLI, &BINOMIAL, &STOCHASTIC_VOLATILITY];

/// The family of this name.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// The distribution of a scalar observation `y` given the predictor `eta`: a family with numbers.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    descriptor: &'static Descriptor,
    numbers: Numbers,
}

impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.numbers == other.numbers
    }
}

impl Family {
    /// The family with these values of its parameters, which must be positive and finite.
    pub const fn bind(descriptor: &'static Descriptor, numbers: Numbers) -> Self {
        Self { descriptor, numbers }
    }

    /// What the program knows of the family.
    pub const fn descriptor(&self) -> &'static Descriptor {
        self.descriptor
    }

    /// Values of its parameters.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers[..self.descriptor.parameters.len()]
    }

    /// The name of the family as written in a configuration.
    pub fn name(&self) -> &'static str {
        self.descriptor.name
    }

    /// Where observations can lie.
    pub fn support(&self) -> OutputSupport {
        self.descriptor.density.support(self.numbers)
    }

    /// Checks that `y` can be an observation of this family. NaN stands for a missing observation and is allowed.
    pub fn check(&self, y: f64) -> Result<(), FamilyError> {
        let support = self.support();
        if y.is_nan() || support.contains(y) {
            return Ok(());
        }
        Err(FamilyError::Impossible { family: self.name(), value: y, support })
    }

    /// Adds `ln p(y | eta[i])` to `out[i]` for every `i` (up to the shorter of the two slices).
    ///
    /// A missing observation (`y` NaN) adds nothing, an impossible one adds `-inf`. Never adds NaN or `+inf`: rates
    /// that overflow, and predictors that are NaN (a diverged particle), add `-inf`.
    pub fn log_density(&self, y: f64, eta: &[f64], out: &mut [f64]) {
        if y.is_nan() {
            return;
        }
        if !self.support().contains(y) {
            return descriptor::add_each(eta, out, |_| f64::NEG_INFINITY);
        }
        self.descriptor.density.add_log_density(self.numbers, y, eta, out);
    }

    /// Gradient and curvature: first and second derivative of `ln p(y | eta)` in `eta`.
    ///
    /// Both are zero for a missing observation, and NaN for an impossible one.
    pub fn d_log_density(&self, y: f64, eta: f64) -> (f64, f64) {
        if y.is_nan() {
            return (0.0, 0.0);
        }
        if !self.support().contains(y) {
            return (f64::NAN, f64::NAN);
        }
        self.descriptor.density.d_log_density(self.numbers, y, eta)
    }

    /// Draws an observation.
    ///
    /// Never panics, and is a finite value that [`Self::check`] accepts for every predictor but NaN, which gives NaN.
    /// Values that overflow become the greatest finite number.
    pub fn sample(&self, eta: f64, rng: &mut dyn Rng) -> f64 {
        if eta.is_nan() {
            return f64::NAN;
        }
        // A finite predictor keeps an infinite deviation from cancelling it to NaN.
        let eta = eta.clamp(f64::MIN, f64::MAX);
        self.descriptor.density.sample(self.numbers, eta, rng).clamp(f64::MIN, f64::MAX)
    }

    /// P(Y < y) and P(Y <= y); 1/2 where the predictor is NaN.
    pub fn distribution(&self, y: f64, eta: f64) -> (f64, f64) {
        let at = |y: f64| {
            let p = self.descriptor.density.cdf(self.numbers, y, eta);
            if p.is_nan() { 0.5 } else { p.clamp(0.0, 1.0) }
        };
        match self.support() {
            OutputSupport::Interval { .. } => (at(y), at(y)),
            OutputSupport::Integers { low, .. } => (if y > low { at(y - 1.0) } else { 0.0 }, at(y)),
        }
    }

    /// E(Y); the centre of y where there is no mean.
    pub fn mean(&self, eta: f64) -> f64 {
        self.descriptor.density.mean(self.numbers, eta)
    }

    /// What the predictor says of y without noise: its mean, or its standard deviation where that is all it says.
    pub fn signal(&self, eta: f64) -> f64 {
        match self.descriptor.link {
            Link::LogVariance => (0.5 * eta).exp(),
            Link::Identity | Link::Log | Link::Logit => self.mean(eta),
        }
    }
}

#[cfg(test)]
mod tests;
