//! What a linear-Gaussian observation says of a Gaussian state: p(y | path) and p(x | path, y).

use std::f64::consts::PI;

use super::linear_gaussian::LinearGaussian;
use crate::linalg::small;

/// One observation, ready to condition many Gaussians.
pub(crate) struct Adapter {
    n_x: usize,
    /// Rows of C and y - D u - offset of the observed components, whitened by the factor of R.
    c: Vec<f64>,
    y: Vec<f64>,
    /// log |R|/2 + (m/2) log 2 pi over the observed components.
    constant: f64,
    /// V = L' C' in whitened outputs, (n_x, m); then the residual and the precision of xi.
    v: Vec<f64>,
    residual: Vec<f64>,
    precision: Vec<f64>,
    inverse: Vec<f64>,
    /// Factor of I + V' V, and xi, the posterior mean in whitened states.
    s: Vec<f64>,
    xi: Vec<f64>,
}

/// A conditioned Gaussian.
#[derive(Clone, Debug, Default)]
pub(crate) struct Adapted {
    /// log p(y | path).
    pub log_marginal_likelihood: f64,
    /// Mean and lower factor of the covariance of p(x | path, y).
    pub mean: Vec<f64>,
    pub chol: Vec<f64>,
}

impl Adapter {
    /// For the observed components of `y` at input `u`; none if R is not positive definite.
    pub(crate) fn new(sensor: &LinearGaussian, y: &[f64], u: &[f64]) -> Option<Self> {
        let (n_y, n_x) = (y.len(), sensor.n_x);
        let n_z = sensor.weights.len() / n_y;
        let observed: Vec<usize> = (0..n_y).filter(|&k| !y[k].is_nan()).collect();
        let m = observed.len();
        let r = sensor.covariance();
        let mut chol_r: Vec<f64> = observed
            .iter()
            .flat_map(|&a| observed.iter().map(|&b| r[a * n_y + b]).collect::<Vec<_>>())
            .collect();
        if !small::cholesky(&mut chol_r, m) {
            return None;
        }
        let row = |k: usize| &sensor.weights[k * n_z..(k + 1) * n_z];
        let mut residual: Vec<f64> = observed
            .iter()
            .map(|&k| {
                let from_input: f64 = row(k)[n_x..].iter().zip(u).map(|(d, u)| d * u).sum();
                y[k] - sensor.offset[k] - from_input
            })
            .collect();
        small::solve_lower(&chol_r, m, &mut residual);
        let mut c = vec![0.0; n_x * m];
        for j in 0..n_x {
            let column = &mut c[j * m..(j + 1) * m];
            column.iter_mut().zip(&observed).for_each(|(value, &k)| *value = row(k)[j]);
            small::solve_lower(&chol_r, m, column);
        }
        Some(Self {
            n_x,
            c,
            y: residual,
            constant: small::log_diagonal(&chol_r, m) + 0.5 * m as f64 * (2.0 * PI).ln(),
            v: vec![0.0; n_x * m],
            residual: vec![0.0; m],
            precision: vec![0.0; n_x * n_x],
            xi: vec![0.0; n_x],
            inverse: vec![0.0; n_x * n_x],
            s: vec![0.0; m * m],
        })
    }

    /// Conditions N(mean, L L'). False if the numbers are not finite.
    ///
    /// With x = mean + L xi and outputs whitened by R, the posterior precision of xi is P = I + V V': at
    /// least the identity, so nothing cancels however precise the sensor is. P is factored in reversed
    /// order, P = U U' with U upper, because U^{-T} is then the lower factor of its inverse.
    pub(crate) fn condition(&mut self, mean: &[f64], chol: &[f64], out: &mut Adapted) -> bool {
        let (n, m) = (self.n_x, self.y.len());
        self.residual.copy_from_slice(&self.y);
        for d in 0..n {
            for (residual, c) in self.residual.iter_mut().zip(&self.c[d * m..(d + 1) * m]) {
                *residual -= c * mean[d];
            }
        }
        for j in 0..n {
            for a in 0..m {
                self.v[j * m + a] = (j..n).map(|d| chol[d * n + j] * self.c[d * m + a]).sum();
            }
        }
        let v = |j: usize| &self.v[j * m..(j + 1) * m];
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for i in 0..n {
            for j in 0..=i {
                let (a, b) = (n - 1 - i, n - 1 - j);
                self.precision[i * n + j] = product(v(a), v(b)) + if a == b { 1.0 } else { 0.0 };
            }
        }
        if !small::cholesky(&mut self.precision, n) {
            return false;
        }
        let upper = |a: usize, b: usize| self.precision[(n - 1 - a) * n + (n - 1 - b)];
        // Column d of U^{-T} solves a lower system with U'.
        self.inverse.fill(0.0);
        for d in 0..n {
            for i in d..n {
                let mut sum = if i == d { 1.0 } else { 0.0 };
                for k in d..i {
                    sum -= upper(k, i) * self.inverse[k * n + d];
                }
                self.inverse[i * n + d] = sum / upper(i, i);
            }
        }
        // S = I + V' V is the covariance of the whitened output; xi = V S^{-1} r.
        for a in 0..m {
            for b in 0..=a {
                let sum: f64 = (0..n).map(|j| self.v[j * m + a] * self.v[j * m + b]).sum();
                self.s[a * m + b] = sum + if a == b { 1.0 } else { 0.0 };
            }
        }
        if !small::cholesky(&mut self.s, m) {
            return false;
        }
        small::solve_lower(&self.s, m, &mut self.residual);
        let square: f64 = product(&self.residual, &self.residual);
        out.log_marginal_likelihood = -0.5 * square - self.constant - small::log_diagonal(&self.s, m);
        small::solve_lower_transposed(&self.s, m, &mut self.residual);
        for j in 0..n {
            self.xi[j] = product(v(j), &self.residual);
        }
        out.mean.clear();
        out.mean.extend((0..n).map(|d| mean[d] + (0..=d).map(|j| chol[d * n + j] * self.xi[j]).sum::<f64>()));
        out.chol.clear();
        out.chol.resize(n * n, 0.0);
        for d in 0..n {
            for j in 0..=d {
                out.chol[d * n + j] = (j..=d).map(|k| chol[d * n + k] * self.inverse[k * n + j]).sum();
            }
        }
        out.log_marginal_likelihood.is_finite() && out.mean.iter().all(|mean| mean.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Points;
    use crate::sensor::linear_gaussian::SensorNoise;

    /// p(x) p(y | x) = p(y) p(x | y) at arbitrary points, also for precise sensors and missing outputs.
    #[test]
    fn adapting_is_bayes_rule() {
        for (r, y1) in [(0.3, 0.9), (1e-10, 0.9), (0.3, f64::NAN)] {
            let sensor = LinearGaussian {
                weights: vec![1.0, 0.5, -0.2, 0.7, 0.1, -1.0, 0.4, 0.0],
                offset: vec![0.1, -0.3],
                noise: SensorNoise::Full(vec![r, 0.1 * r, 0.1 * r, 2.0 * r]),
                n_x: 3,
            };
            let (mean, u, y) = ([0.2, -0.5, 1.0], [0.6], [0.4, y1]);
            let chol = [0.8, 0.0, 0.0, 0.3, 1.1, 0.0, -0.2, 0.4, 0.5];
            let mut adapted = Adapted::default();
            let mut adapter = Adapter::new(&sensor, &y, &u).unwrap();
            assert!(adapter.condition(&mean, &chol, &mut adapted));
            for scale in [0.0, 0.01, 0.7] {
                let x: Vec<f64> = adapted.mean.iter().map(|m| m + scale * f64::sqrt(r)).collect();
                let mut prior: Vec<f64> = x.iter().zip(&mean).map(|(a, b)| a - b).collect();
                let mut posterior: Vec<f64> = x.iter().zip(&adapted.mean).map(|(a, b)| a - b).collect();
                let z = [&x[..], &u].concat();
                let mut likelihood = [0.0];
                sensor.add_log_density(&y, &Points::from_rows(4, [&z[..]]), &mut likelihood, &mut Vec::new());
                let left = small::log_gaussian(&chol, 3, &mut prior) + likelihood[0];
                let right =
                    adapted.log_marginal_likelihood + small::log_gaussian(&adapted.chol, 3, &mut posterior);
                assert!((left - right).abs() < 1e-6, "{r} {left} {right}");
            }
        }
    }
}
