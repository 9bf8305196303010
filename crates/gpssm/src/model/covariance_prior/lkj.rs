//! Density and draws of a covariance matrix with an LKJ correlation matrix and
//! independent standard deviations, on Cholesky factors.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::LN_2;

use super::super::scale_prior::ScalePrior;
use crate::special::{clamp_positive, neg_ln_beta, sample_ln_gamma_variate};

/// Log density of `Q = L L^T`.
pub(super) fn log_density(eta: f64, priors: &[ScalePrior], chol: &[f64], n: usize) -> f64 {
    let size = n as f64;
    let mut ln_prior_of_sds = 0.0;
    let mut sum_ln_sd = 0.0;
    let mut half_ln_det_correlation = 0.0;
    for (i, prior) in priors.iter().enumerate().take(n) {
        // The sd of component i is the norm of row i of the factor.
        let sd = chol[i * n..=i * n + i].iter().fold(0.0, |norm: f64, &entry| norm.hypot(entry));
        ln_prior_of_sds += prior.log_density_of_sd(sd);
        sum_ln_sd += sd.ln();
        half_ln_det_correlation += (chol[i * n + i] / sd).ln();
    }
    // |dQ / d(sds, correlations)| = prod_i 2 s_i prod_{i<j} s_i s_j.
    let ln_jacobian = size * (LN_2 + sum_ln_sd);
    ln_prior_of_sds + 2.0 * (eta - 1.0) * half_ln_det_correlation - ln_normaliser(eta, n) - ln_jacobian
}

/// Logarithm of the integral of `|R|^(eta - 1)` over correlation matrices:
/// with `m = n - k` for `k = 1 .. n - 1` it is the product over `m` of
/// `(2^(2 b - 1) B(b, b))^m`, `b = eta + (m - 1) / 2`.
///
/// (This is the product over the partial correlations of the vine, of which
/// `m` have the density proportional to `(1 - r^2)^(b - 1)`.)
pub(super) fn ln_normaliser(eta: f64, n: usize) -> f64 {
    (1..n)
        .map(|m| {
            let b = eta + 0.5 * (m as f64 - 1.0);
            m as f64 * ((2.0 * b - 1.0) * LN_2 - neg_ln_beta(b, b))
        })
        .sum()
}

/// Cholesky factor of a draw, by the onion method.
///
/// Row `k` of the correlation matrix's factor (from 0) is a unit vector whose
/// first `k` entries have squared norm `y ~ Beta(k / 2, b)`,
/// `b = eta + (n - 1 - k) / 2`, and a uniform direction. `k` normals and the
/// root of twice a `Gamma(b)` variate, normalised together, are just that.
pub(super) fn sample<R: Rng + ?Sized>(eta: f64, priors: &[ScalePrior], rng: &mut R, n: usize) -> Vec<f64> {
    let mut chol = vec![0.0; n * n];
    for (k, prior) in priors.iter().enumerate().take(n) {
        let row = &mut chol[k * n..=k * n + k];
        for entry in row.iter_mut().take(k) {
            *entry = StandardNormal.sample(rng);
        }
        let b = eta + 0.5 * (n - 1 - k) as f64;
        let ln_square = LN_2 + sample_ln_gamma_variate(b, rng);
        // A small eta can make it underflow; zero could not be normalised.
        row[k] = clamp_positive((0.5 * ln_square).exp());
        let norm = row.iter().fold(0.0, |norm: f64, &entry| norm.hypot(entry));
        let sd = prior.sample_sd(rng);
        for entry in row.iter_mut() {
            *entry = *entry / norm * sd;
        }
        row[k] = clamp_positive(row[k]);
    }
    chol
}
