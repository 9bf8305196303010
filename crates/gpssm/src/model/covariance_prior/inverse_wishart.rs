//! Density and draws of the inverse Wishart distribution, on Cholesky factors.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::{LN_2, PI};

use super::super::small_matrix::{solve_right, squared_norm_of_solve};
use crate::linalg::small::log_diagonal;
use crate::special::{clamp_positive, sample_ln_gamma_variate};

/// Log density of `Q = L L^T` for the scale matrix `S = C C^T`.
pub(super) fn log_density(dof: f64, scale_chol: &[f64], chol: &[f64], n: usize) -> f64 {
    let size = n as f64;
    let ln_det_scale = 2.0 * log_diagonal(scale_chol, n);
    let ln_det = 2.0 * log_diagonal(chol, n);
    let trace = squared_norm_of_solve(chol, scale_chol, n);
    0.5 * dof * (ln_det_scale - size * LN_2)
        - ln_multivariate_gamma(0.5 * dof, n)
        - 0.5 * (dof + size + 1.0) * ln_det
        - 0.5 * trace
}

/// `ln Gamma_n(a) = n (n - 1) / 4 ln pi + sum_{j < n} ln Gamma(a - j / 2)`.
fn ln_multivariate_gamma(a: f64, n: usize) -> f64 {
    let size = n as f64;
    let sum: f64 = (0..n).map(|j| ln_gamma(a - 0.5 * j as f64)).sum();
    0.25 * size * (size - 1.0) * PI.ln() + sum
}

/// Cholesky factor of a draw, by Bartlett's decomposition.
///
/// `Q^-1 = C^-T W C^-1` with `W ~ Wishart(dof, I)`. Bartlett's factor is taken
/// upper triangular, `W = A A^T` (the usual one with the order of the
/// coordinates reversed), because then `Q = (C A^-T)(C A^-T)^T` with `C A^-T`
/// lower triangular: the Cholesky factor of `Q` without an inversion of `Q^-1`.
pub(super) fn sample<R: Rng + ?Sized>(dof: f64, scale_chol: &[f64], rng: &mut R, n: usize) -> Vec<f64> {
    let mut a_transposed = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..i {
            a_transposed[i * n + j] = StandardNormal.sample(rng);
        }
        // Squared diagonal: chi squared with dof - (n - 1 - i) degrees of freedom.
        let shape = 0.5 * (dof - (n - 1 - i) as f64);
        let ln_square = LN_2 + sample_ln_gamma_variate(shape, rng);
        a_transposed[i * n + i] = clamp_positive((0.5 * ln_square).exp());
    }
    solve_right(&a_transposed, scale_chol, n)
}
