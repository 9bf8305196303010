//! Greedy forward selection of inducing inputs among the points of a path, O(n M^2) time and O(n M) memory.
//!
//! [`by_information`] is the criterion of Seeger, Williams, Lawrence (2003, AISTATS 9). Given the inputs chosen so
//! far, f at point i is m_i, its projection on them, plus an independent rest of variance l_i^2; all outputs see
//! the projections, r_j = m_j + e. A candidate is scored as if its own output alone saw f itself, r_i = f_i + e:
//! the score is the divergence D[N(mu', v') || N(mu, v + l^2)] of the marginals of f_i after and before, where
//! N(mu, v) is the posterior of m_i. With the output of i taken out of it,
//!
//! ```text
//! v_c = v q / (q - v),   mu_c = (mu q - r v) / (q - v),   t = v_c + l^2,
//! v'  = t q / (t + q),   mu'  = (mu_c q + r t) / (t + q)
//! ```
//!
//! with the noise variance q: O(1) for each candidate. [`by_variance`] takes the largest l_i^2 and looks at no
//! output.

use super::features::without_exact_parts;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::simd::dot;
use crate::points::Points;

/// One state dimension: its prior, and what a path says of it.
pub(crate) struct Regression {
    /// k; linear and constant parts are exact features whatever is chosen.
    pub kernel: Kernel,
    /// x_{s+1} - m(z_s) of each point.
    pub residuals: Vec<f64>,
    /// Variance of the process noise.
    pub noise: f64,
}

/// What is known of all points given the inputs chosen so far.
struct Projection<'a> {
    points: &'a Points,
    kernel: Kernel,
    residuals: &'a [f64],
    noise: f64,
    /// Rows of the factor of k(U, U), extended to all points.
    rows: Vec<Vec<f64>>,
    /// l^2, and what counts as zero of it.
    rest: Vec<f64>,
    negligible: Vec<f64>,
    /// Features whitened by their posterior, and with them mean and variance of m.
    white: Vec<Vec<f64>>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    scratch: Scratch,
}

/// Part of k(z, z) below which nothing is left to explain.
const NEGLIGIBLE: f64 = 1e-10;

impl<'a> Projection<'a> {
    fn new(points: &'a Points, regression: &'a Regression) -> Self {
        let (exact, kernel) = without_exact_parts(&regression.kernel);
        let n = points.len();
        let rest: Vec<f64> = (0..n).map(|i| kernel.diagonal(&points.row(i))).collect();
        let mut projection = Self {
            points,
            kernel,
            residuals: &regression.residuals,
            noise: regression.noise,
            rows: Vec::new(),
            negligible: rest.iter().map(|k| NEGLIGIBLE * k).collect(),
            rest,
            white: Vec::new(),
            mean: vec![0.0; n],
            variance: vec![0.0; n],
            scratch: Scratch::default(),
        };
        let (mut phi, mut extra) = (Vec::new(), Vec::new());
        exact.evaluate(points, &mut phi, &mut extra);
        for j in 0..exact.len() {
            let feature: Vec<f64> = phi.iter().skip(j).step_by(exact.len()).copied().collect();
            projection.add_feature(&feature);
        }
        projection
    }

    /// The posterior of m with one more feature, by its own value at all points.
    fn add_feature(&mut self, feature: &[f64]) {
        let mut white = feature.to_vec();
        let mut square = 1.0 + dot(feature, feature) / self.noise;
        for other in &self.white {
            let lambda = dot(other, feature) / self.noise;
            square -= lambda * lambda;
            white.iter_mut().zip(other).for_each(|(value, other)| *value -= lambda * other);
        }
        // At least one but for rounding: the prior precision of the weight.
        let inverse = 1.0 / square.max(1.0).sqrt();
        white.iter_mut().for_each(|value| *value *= inverse);
        let weight = dot(&white, self.residuals) / self.noise;
        for ((mean, variance), white) in self.mean.iter_mut().zip(&mut self.variance).zip(&white) {
            *mean += white * weight;
            *variance += white * white;
        }
        self.white.push(white);
    }

    /// Chooses point `i`. Where nothing is left to explain it adds nothing.
    fn include(&mut self, i: usize) {
        if !self.is_new(i) {
            return;
        }
        let n = self.points.len();
        let pivot = self.rest[i].sqrt();
        let mut row = vec![0.0; n];
        self.kernel.row(self.points, 0..n, &self.points.row(i), &mut row, &mut self.scratch);
        for before in &self.rows {
            let factor = before[i];
            row.iter_mut().zip(before).for_each(|(value, before)| *value -= factor * before);
        }
        for (value, rest) in row.iter_mut().zip(&mut self.rest) {
            *value /= pivot;
            *rest -= *value * *value;
        }
        self.rest[i] = 0.0;
        self.add_feature(&row);
        self.rows.push(row);
    }

    fn is_new(&self, i: usize) -> bool {
        self.rest[i] > self.negligible[i]
    }

    /// The divergence of the marginals of f_i after and before i is included.
    fn information(&self, i: usize) -> f64 {
        if !self.is_new(i) {
            return 0.0;
        }
        let (q, r, rest) = (self.noise, self.residuals[i], self.rest[i]);
        // The output of i is one of those that m was learned from, so v < q but for rounding.
        let (mean, v) = (self.mean[i], self.variance[i].min(q * (1.0 - 1e-12)));
        let cavity = (v * q / (q - v), (mean * q - r * v) / (q - v));
        let t = cavity.0 + rest;
        let (variance_new, mean_new) = (t * q / (t + q), (cavity.1 * q + r * t) / (t + q));
        let old = v + rest;
        let ratio = variance_new / old;
        0.5 * (ratio - 1.0 - ratio.ln() + (mean_new - mean).powi(2) / old)
    }
}

/// Index of the largest value, the first of equals; none if it is not positive.
fn largest(values: impl Iterator<Item = f64>) -> Option<usize> {
    let mut best = (0.0, None);
    for (i, value) in values.enumerate() {
        if value > best.0 {
            best = (value, Some(i));
        }
    }
    best.1
}

/// Up to `k` points, each the one of largest score given those before it, summed over the state dimensions.
fn forward(
    points: &Points,
    regressions: &[Regression],
    k: usize,
    score: impl Fn(&Projection, usize) -> f64,
) -> Vec<usize> {
    let mut projections: Vec<Projection> =
        regressions.iter().map(|regression| Projection::new(points, regression)).collect();
    let mut chosen = Vec::new();
    while chosen.len() < k {
        let total = |i: usize| projections.iter().map(|projection| score(projection, i)).sum();
        let Some(best) = largest((0..points.len()).map(total)) else { break };
        projections.iter_mut().for_each(|projection| projection.include(best));
        chosen.push(best);
    }
    chosen
}

/// Up to `k` points, each the one that tells most given those before it.
pub(crate) fn by_information(points: &Points, regressions: &[Regression], k: usize) -> Vec<usize> {
    forward(points, regressions, k, |projection, i| projection.information(i))
}

/// Up to `k` points, each the one whose f is least known given f at those before it, as part of its prior
/// variance.
pub(crate) fn by_variance(points: &Points, regressions: &[Regression], k: usize) -> Vec<usize> {
    by_variance_above(0.0, points, regressions, k)
}

/// The same, without points of which less than a part `least` is unknown.
pub(crate) fn by_variance_above(
    least: f64,
    points: &Points,
    regressions: &[Regression],
    k: usize,
) -> Vec<usize> {
    forward(points, regressions, k, |projection, i| {
        let unknown = NEGLIGIBLE * projection.rest[i] / projection.negligible[i];
        if projection.is_new(i) && unknown >= least { unknown } else { 0.0 }
    })
}

#[cfg(test)]
mod tests;
