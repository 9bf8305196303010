//! Checks of families of sensors.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::Nonconformity;
use super::sensor::Output;
use super::statistics::{P_MIN, integrate_interval, ks_p_value};
use crate::sensor::family::{Descriptor, Family, ParameterKind};
use crate::sensor::support::OutputSupport;

/// Draws at each predictor.
const N_DRAWS: usize = 20_000;
/// How far a total may be from one.
const TOTAL_TOLERANCE: f64 = 1e-8;
/// How far distribution function, mean and derivatives may be from what the density says, relative to their size.
const TOLERANCE: f64 = 1e-6;
/// Step of finite differences.
const STEP: f64 = 1e-4;

/// The family with several values of its parameters: what the conformance of a descriptor is checked on.
pub fn examples(descriptor: &'static Descriptor) -> Vec<Family> {
    let value = |kind: ParameterKind, i: usize| match kind {
        ParameterKind::Scale => [0.7, 2.5][i],
        ParameterKind::Shape { .. } => [3.5, 0.8][i],
        ParameterKind::Count => [12.0, 1.0][i],
    };
    let example = |i: usize| {
        let mut numbers = [0.0; 2];
        let parameters = numbers.iter_mut().zip(descriptor.parameters);
        parameters.for_each(|(number, parameter)| *number = value(parameter.kind, i));
        Family::bind(descriptor, numbers)
    };
    (0..2).map(example).collect()
}

/// Checks a family with numbers at a predictor.
///
/// - The density integrates or sums to one, and is zero outside the support.
/// - Draws lie in the support and follow density and distribution function (p >= 1e-4, fixed seeds).
/// - The distribution function is the sum or integral of the density.
/// - Gradient and curvature in eta are the derivatives of the log density.
/// - A missing observation says nothing.
///
/// ```
/// use gpssm::conformance;
/// use gpssm::sensor::family::Family;
///
/// conformance::family(&Family::negative_binomial(2.5), 0.8)?;
/// # Ok::<(), conformance::Nonconformity>(())
/// ```
pub fn family(family: &Family, eta: f64) -> Result<(), Nonconformity> {
    let place = format!("{} {:?} at eta = {eta}", family.name(), family.numbers());
    let check = Check { family, eta, place: &place };
    let log_density = |y: f64| check.log_density(y, eta);
    let support = family.support();
    let output = Output { place: &place, log_density: &log_density, support };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let draws: Vec<f64> = (0..N_DRAWS).map(|_| family.sample(eta, &mut rng)).collect();
    output.total(&draws, TOTAL_TOLERANCE)?;
    output.draws(&draws)?;
    check.distribution(&draws)?;
    check.edges()?;
    for &y in &draws[..20] {
        check.derivatives(y)?;
    }
    Ok(())
}

struct Check<'a> {
    family: &'a Family,
    eta: f64,
    place: &'a str,
}

impl Check<'_> {
    fn log_density(&self, y: f64, eta: f64) -> f64 {
        let mut out = [0.0];
        self.family.log_density(y, &[eta], &mut out);
        out[0]
    }

    fn same(&self, what: String, found: f64, expected: f64) -> Result<(), Nonconformity> {
        // Infinities of the same sign are the same.
        if found == expected || (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0) {
            return Ok(());
        }
        Err(Nonconformity::Differs { place: self.place.to_owned(), what, found, expected })
    }

    /// The distribution function belongs to the density, and the draws to it.
    fn distribution(&self, draws: &[f64]) -> Result<(), Nonconformity> {
        let cdf = |y: f64| self.family.distribution(y, self.eta);
        let density = |y: f64| self.log_density(y, self.eta).exp();
        if let OutputSupport::Integers { low, .. } = self.family.support() {
            let greatest = draws.iter().copied().fold(low, f64::max);
            let mut below = 0.0;
            for y in (0..=(greatest - low) as usize).map(|i| low + i as f64) {
                self.same(format!("P(Y < {y})"), cdf(y).0, below)?;
                below += density(y);
                self.same(format!("P(Y <= {y})"), cdf(y).1, below)?;
            }
            return Ok(());
        }
        let p_value = ks_p_value(draws, |y| cdf(y).1);
        if p_value < P_MIN {
            return Err(Nonconformity::Draws { place: self.place.to_owned(), n: draws.len(), p_value });
        }
        for pair in draws[..20].windows(2) {
            let (a, b) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            let found = cdf(b).1 - cdf(a).1;
            let expected = integrate_interval(0.01, a, b, density);
            self.same(format!("P({a} < Y <= {b})"), found, expected)?;
        }
        Ok(())
    }

    /// Missing, infinite and impossible observations.
    fn edges(&self) -> Result<(), Nonconformity> {
        self.same("the log density of a missing output".into(), self.log_density(f64::NAN, self.eta), 0.0)?;
        let (gradient, curvature) = self.family.d_log_density(f64::NAN, self.eta);
        self.same("the gradient of a missing output".into(), gradient, 0.0)?;
        self.same("the curvature of a missing output".into(), curvature, 0.0)?;
        for y in [f64::INFINITY, -1.0, 0.5] {
            if !self.family.support().contains(y) {
                let found = self.log_density(y, self.eta);
                self.same(format!("the log density of y = {y}"), found, f64::NEG_INFINITY)?;
            }
        }
        Ok(())
    }

    /// Gradient against differences of the log density, curvature against differences of the gradient.
    fn derivatives(&self, y: f64) -> Result<(), Nonconformity> {
        let (low, high) = (self.eta - STEP, self.eta + STEP);
        let slope = |f: &dyn Fn(f64) -> f64| (f(high) - f(low)) / (high - low);
        let (gradient, curvature) = self.family.d_log_density(y, self.eta);
        let expected = slope(&|eta| self.log_density(y, eta));
        self.same(format!("the gradient at y = {y}"), gradient, expected)?;
        let expected = slope(&|eta| self.family.d_log_density(y, eta).0);
        self.same(format!("the curvature at y = {y}"), curvature, expected)
    }
}

#[cfg(test)]
mod tests;
