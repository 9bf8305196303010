//! y = C x + D u + offset + e with e ~ N(0, R).

use std::f64::consts::PI;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::linalg::small;
use crate::points::Points;

/// Sensor noise covariance R.
#[derive(Clone, Debug, PartialEq)]
pub enum SensorNoise {
    /// Variances of independent components.
    Diagonal(Vec<f64>),
    /// Covariance matrix, row-major.
    Full(Vec<f64>),
}

/// The linear-Gaussian sensor.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearGaussian {
    /// (C D), row-major n_y by (n_x + n_u).
    pub weights: Vec<f64>,
    /// Constant term of each output.
    pub offset: Vec<f64>,
    /// R.
    pub noise: SensorNoise,
    /// Number of states.
    pub n_x: usize,
}

impl LinearGaussian {
    fn n_y(&self) -> usize {
        self.offset.len()
    }

    fn n_z(&self) -> usize {
        self.weights.len() / self.n_y()
    }

    /// R, row-major.
    pub fn covariance(&self) -> Vec<f64> {
        let n = self.n_y();
        match &self.noise {
            SensorNoise::Full(r) => r.clone(),
            SensorNoise::Diagonal(variances) => {
                let mut r = vec![0.0; n * n];
                (0..n).for_each(|k| r[k * n + k] = variances[k]);
                r
            }
        }
    }

    fn mean(&self, k: usize, z: &Points, out: &mut [f64]) {
        out.fill(self.offset[k]);
        for c in 0..self.n_z() {
            let weight = self.weights[k * self.n_z() + c];
            if weight != 0.0 {
                for (sum, z) in out.iter_mut().zip(z.column(c)) {
                    *sum += weight * z;
                }
            }
        }
    }

    /// C x + D u + offset at all points, row-major (point, output).
    pub(crate) fn means(&self, z: &Points) -> Vec<f64> {
        let n_y = self.n_y();
        let mut mean = vec![0.0; z.len()];
        let mut means = vec![0.0; z.len() * n_y];
        for k in 0..n_y {
            self.mean(k, z, &mut mean);
            mean.iter().enumerate().for_each(|(i, mean)| means[i * n_y + k] = *mean);
        }
        means
    }

    pub(crate) fn add_log_density(&self, y: &[f64], z: &Points, out: &mut [f64], mean: &mut Vec<f64>) {
        let n_y = self.n_y();
        mean.resize(z.len(), 0.0);
        match &self.noise {
            SensorNoise::Diagonal(variances) => {
                for k in (0..n_y).filter(|&k| !y[k].is_nan()) {
                    self.mean(k, z, mean);
                    let constant = -0.5 * (2.0 * PI * variances[k]).ln();
                    let precision = 0.5 / variances[k];
                    for (out, mean) in out.iter_mut().zip(&*mean) {
                        *out += constant - precision * (y[k] - mean) * (y[k] - mean);
                    }
                }
            }
            SensorNoise::Full(covariance) => {
                add_full_gaussian(y, &self.means(z), covariance, out);
            }
        }
    }

    pub(crate) fn sample(&self, z: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        let point = Points::from_rows(z.len(), [z]);
        let mut means = vec![0.0; self.n_y()];
        for (k, mean) in means.iter_mut().enumerate() {
            self.mean(k, &point, std::slice::from_mut(mean));
        }
        sample_full_gaussian(&means, &self.covariance(), rng, y);
    }
}

/// Adds log N(y | mean_i, R), over the observed components of `y`, to `out[i]`.
pub(crate) fn add_full_gaussian(y: &[f64], means: &[f64], covariance: &[f64], out: &mut [f64]) {
    let n_y = y.len();
    let observed: Vec<usize> = (0..n_y).filter(|&k| !y[k].is_nan()).collect();
    let m = observed.len();
    let mut chol: Vec<f64> =
        observed.iter().flat_map(|&a| observed.iter().map(move |&b| covariance[a * n_y + b])).collect();
    if !small::cholesky(&mut chol, m) {
        out.fill(f64::NEG_INFINITY);
        return;
    }
    let mut residual = vec![0.0; m];
    for (out, mean) in out.iter_mut().zip(means.chunks_exact(n_y)) {
        for (residual, &k) in residual.iter_mut().zip(&observed) {
            *residual = y[k] - mean[k];
        }
        *out += small::log_gaussian(&chol, m, &mut residual);
    }
}

/// Draws from N(mean, R).
pub(crate) fn sample_full_gaussian(mean: &[f64], covariance: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
    let n = mean.len();
    let mut chol = covariance.to_vec();
    small::cholesky(&mut chol, n);
    let noise: Vec<f64> = (0..n).map(|_| rng.sample(StandardNormal)).collect();
    small::multiply_lower(&chol, n, &noise, y);
    for (y, mean) in y.iter_mut().zip(mean) {
        *y += mean;
    }
}
