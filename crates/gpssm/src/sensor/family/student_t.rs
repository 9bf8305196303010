//! Student's t: noise with outliers.

use std::f64::consts::{LN_2, PI};

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use statrs::function::beta::checked_beta_reg;

use super::descriptor::{
    DefaultPrior, Density, Descriptor, FamilyParameter, Link, Numbers, ParameterKind, add_each,
};
use super::{Family, OutputSupport};
use crate::special::{ln_1p_square, ln_gamma_half_step, sample_ln_gamma_variate};

/// `y = eta + scale t`.
pub static STUDENT_T: Descriptor = Descriptor {
    name: "student_t",
    summary: "heavy-tailed (Student's t) noise",
    formula: "y = mean + scale t, t Student's t with dof degrees of freedom",
    statement: "{y} = {eta} + Student-t noise, robust against outliers",
    figure: "{y}",
    predictor: "mean",
    link: Link::Identity,
    parameters: &[
        FamilyParameter { name: "scale", key: "scale", kind: ParameterKind::Scale },
        FamilyParameter {
            name: "dof",
            key: "dof",
            kind: ParameterKind::Shape { default: DefaultPrior::Gamma { shape: 2.0, rate: 0.1 } },
        },
    ],
    density: &StudentT,
};

impl Family {
    /// With `v = dof`, `p(y) = Gamma((v+1)/2) / (Gamma(v/2) sqrt(v pi) scale) (1 + ((y - eta)/scale)^2 / v)^(-(v+1)/2)`.
    /// The standard deviation is `scale sqrt(v / (v - 2))`, where it exists.
    pub const fn student_t(scale: f64, dof: f64) -> Self {
        Self::bind(&STUDENT_T, [scale, dof])
    }
}

#[derive(Debug)]
struct StudentT;

impl Density for StudentT {
    fn support(&self, _: Numbers) -> OutputSupport {
        OutputSupport::REAL
    }

    fn add_log_density(&self, [scale, dof]: Numbers, y: f64, eta: &[f64], out: &mut [f64]) {
        let constant = ln_gamma_half_step(0.5 * dof) - 0.5 * (dof.ln() + PI.ln()) - scale.ln();
        let width = scale * dof.sqrt();
        let power = 0.5 * (dof + 1.0);
        add_each(eta, out, |e| constant - power * ln_1p_square((y - e) / width));
    }

    fn d_log_density(&self, [scale, dof]: Numbers, y: f64, eta: f64) -> (f64, f64) {
        let width = scale * dof.sqrt();
        let t = (y - eta) / width;
        // In terms of q = 1 / (1 + t^2) nothing overflows for outliers.
        let q = 1.0 / (1.0 + t * t);
        let factor = (dof + 1.0) / width;
        (factor * t * q, factor / width * q * (1.0 - 2.0 * q))
    }

    fn sample(&self, [scale, dof]: Numbers, eta: f64, rng: &mut dyn Rng) -> f64 {
        let z: f64 = rng.sample(StandardNormal);
        // t = z / sqrt(chi^2 / dof), chi^2 twice a gamma variate.
        let ln_gamma_variate = sample_ln_gamma_variate(0.5 * dof, rng);
        eta + scale * z * (0.5 * (dof.ln() - LN_2 - ln_gamma_variate)).exp()
    }

    fn cdf(&self, [scale, dof]: Numbers, y: f64, eta: f64) -> f64 {
        let t = (y - eta) / scale;
        let tail = 0.5 * checked_beta_reg(0.5 * dof, 0.5, dof / (dof + t * t)).unwrap_or(0.0);
        if t > 0.0 { 1.0 - tail } else { tail }
    }

    fn mean(&self, _: Numbers, eta: f64) -> f64 {
        eta
    }
}
