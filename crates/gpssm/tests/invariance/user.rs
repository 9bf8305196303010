//! A sensor and an initial state as users supply them.

use gpssm::{InitialDensity, Points, SensorDensity};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

/// y ~ exponential with rate exp(a x).
pub struct Exponential;

impl SensorDensity for Exponential {
    fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]) {
        for (out, x) in out.iter_mut().zip(z.column(0)) {
            let rate = (parameters[0] * x).exp();
            *out = if y[0] >= 0.0 { rate.ln() - rate * y[0] } else { f64::NEG_INFINITY };
        }
    }

    fn sample(&self, z: &[f64], parameters: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        y[0] = -(1.0 - rng.random::<f64>()).ln() * (-parameters[0] * z[0]).exp();
    }
}

/// x_0 ~ N(1, 2^2) in original units.
pub struct Wide;

impl InitialDensity for Wide {
    fn log_density(&self, x: &[f64]) -> f64 {
        -0.5 * ((x[0] - 1.0) / 2.0).powi(2)
    }

    fn sample(&self, rng: &mut dyn Rng, x: &mut [f64]) {
        x[0] = 1.0 + 2.0 * rng.sample::<f64, _>(StandardNormal);
    }
}
