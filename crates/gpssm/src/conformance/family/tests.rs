use rand::Rng;

use super::*;
use crate::sensor::family::descriptor::Density;
use crate::sensor::family::{GAUSSIAN, Numbers, POISSON};

/// What is wrong with a copy of a family.
#[derive(Debug, PartialEq)]
enum Bug {
    None,
    Total,
    Draws,
    Distribution,
    Gradient,
    Curvature,
}

#[derive(Debug)]
struct Planted(&'static Descriptor, Bug);

impl Planted {
    fn if_bug(&self, bug: &Bug, size: f64) -> f64 {
        if self.1 == *bug { size } else { 0.0 }
    }
}

impl Density for Planted {
    fn support(&self, numbers: Numbers) -> OutputSupport {
        self.0.density.support(numbers)
    }

    fn add_log_density(&self, numbers: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        self.0.density.add_log_density(numbers, y, eta, out);
        out.iter_mut().for_each(|out| *out += self.if_bug(&Bug::Total, 1e-6));
    }

    fn d_log_density(&self, numbers: Numbers, y: f64, eta: f64) -> (f64, f64) {
        let (gradient, curvature) = self.0.density.d_log_density(numbers, y, eta);
        // A gradient that is wrong by a constant has the right curvature, and the other way round.
        (gradient + self.if_bug(&Bug::Gradient, 1e-4), curvature + self.if_bug(&Bug::Curvature, 1e-4))
    }

    fn sample(&self, numbers: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        self.0.density.sample(numbers, eta + self.if_bug(&Bug::Draws, 0.08), rng)
    }

    fn cdf(&self, numbers: Numbers, y: f64, eta: f64) -> f64 {
        self.0.density.cdf(numbers, y, eta + self.if_bug(&Bug::Distribution, 1e-3))
    }

    fn mean(&self, numbers: Numbers, eta: f64) -> f64 {
        self.0.density.mean(numbers, eta)
    }
}

fn found(of: &'static Descriptor, bug: Bug) -> Result<(), Nonconformity> {
    // Descriptors live as long as the program; a test may leak a few.
    let density: &'static dyn Density = Box::leak(Box::new(Planted(of, bug)));
    let descriptor: &'static Descriptor = Box::leak(Box::new(Descriptor { density, ..*of }));
    family(&examples(descriptor)[0], 0.8)
}

#[test]
fn planted_bugs_are_found() {
    use Nonconformity::{Differs, Draws, Total};
    for of in [&GAUSSIAN, &POISSON] {
        found(of, Bug::None).unwrap();
        assert!(matches!(found(of, Bug::Total), Err(Total { .. })));
        assert!(matches!(found(of, Bug::Draws), Err(Draws { .. })));
        let differs = |bug, word: &str| {
            let outcome = found(of, bug);
            assert!(matches!(&outcome, Err(Differs { what, .. }) if what.contains(word)), "{outcome:?}");
        };
        differs(Bug::Distribution, "P(");
        differs(Bug::Gradient, "gradient");
        differs(Bug::Curvature, "curvature");
    }
}
