//! Gaussian noise.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::descriptor::{Density, Descriptor, FamilyParameter, Link, Numbers, ParameterKind, add_each};
use super::{Family, OutputSupport};
use crate::special::{LN_2_PI, standard_cdf};

/// `y ~ N(eta, sd^2)`.
pub static GAUSSIAN: Descriptor = Descriptor {
    name: "gaussian",
    summary: "Gaussian noise",
    formula: "y ~ N(mean, sd^2)",
    statement: "{y} = {eta} + Gaussian noise",
    figure: "{y}",
    predictor: "mean",
    link: Link::Identity,
    parameters: &[FamilyParameter { name: "sd", key: "noise", kind: ParameterKind::Scale }],
    density: &Gaussian,
};

impl Family {
    /// `p(y) = exp(-(y - eta)^2 / (2 sd^2)) / (sd sqrt(2 pi))`.
    pub const fn gaussian(sd: f64) -> Self {
        Self::bind(&GAUSSIAN, [sd, 0.0])
    }
}

#[derive(Debug)]
struct Gaussian;

impl Density for Gaussian {
    fn support(&self, _: Numbers) -> OutputSupport {
        OutputSupport::REAL
    }

    fn add_log_density(&self, [sd, _]: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        let constant = -0.5 * LN_2_PI - sd.ln();
        add_each(eta, out, |e| {
            let deviate = (y - e) / sd;
            constant - 0.5 * deviate * deviate
        });
    }

    fn d_log_density(&self, [sd, _]: Numbers, y: f64, eta: f64) -> (f64, f64) {
        ((y - eta) / sd / sd, -1.0 / sd / sd)
    }

    fn sample(&self, [sd, _]: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        let z: f64 = rng.sample(StandardNormal);
        eta + sd * z
    }

    fn cdf(&self, [sd, _]: Numbers, y: f64, eta: f64) -> f64 {
        standard_cdf((y - eta) / sd)
    }

    fn mean(&self, _: Numbers, eta: f64) -> f64 {
        eta
    }
}
