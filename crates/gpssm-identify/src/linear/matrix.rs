//! Small dense matrices, row-major.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

/// A B, with A of m x k and B of k x n.
pub(super) fn multiply(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut product = vec![0.0; m * n];
    for i in 0..m {
        for l in 0..k {
            let factor = a[i * k + l];
            for j in 0..n {
                product[i * n + j] += factor * b[l * n + j];
            }
        }
    }
    product
}

/// A B', with A of m x k and B of n x k.
pub(super) fn multiply_transposed(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let entry = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect()
}

/// The solution X of S X = B for a symmetric positive definite S of n x n and B of n x m; none if S is not.
pub(super) fn solve(s: &[f64], b: &[f64], n: usize, m: usize) -> Option<Vec<f64>> {
    let factor = Mat::from_fn(n, n, |i, j| s[i * n + j]).llt(Side::Lower).ok()?;
    let x = factor.solve(Mat::from_fn(n, m, |i, j| b[i * m + j]));
    let x: Vec<f64> = (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).map(|(i, j)| x[(i, j)]).collect();
    x.iter().all(|value| value.is_finite()).then_some(x)
}

/// Eigenvalues of a symmetric matrix, largest first, and its eigenvectors as rows.
pub(super) fn eigen(s: &[f64], n: usize) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let found = Mat::from_fn(n, n, |i, j| s[i * n + j]).self_adjoint_eigen(Side::Lower).ok()?;
    let (values, vectors) = (found.S(), found.U());
    let order = (0..n).rev();
    let columns = order.clone().map(|j| (0..n).map(|i| vectors[(i, j)]).collect());
    Some((order.map(|j| values[j]).collect(), columns.collect()))
}

/// Squarings of the matrix in [`spectral_radius`].
const SQUARINGS: u32 = 24;

/// The largest modulus of the eigenvalues: the limit of |A^m|^(1/m), taken at m = 2^24.
pub(super) fn spectral_radius(a: &[f64], n: usize) -> f64 {
    let (mut power, mut log_size) = (a.to_vec(), 0.0);
    for _ in 0..SQUARINGS {
        let size = power.iter().map(|value| value * value).sum::<f64>().sqrt();
        if size == 0.0 || !size.is_finite() {
            return if size == 0.0 { 0.0 } else { f64::INFINITY };
        }
        power.iter_mut().for_each(|value| *value /= size);
        log_size = 2.0 * (log_size + size.ln());
        power = multiply(&power, &power, n, n, n);
    }
    let size = power.iter().map(|value| value * value).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    ((log_size + size.ln()) / f64::from(1u32 << SQUARINGS)).exp()
}
