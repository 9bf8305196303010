//! Dense matrices of a handful of rows, row-major, in plain loops: the slow twin of [`gpssm::linalg`].

use std::f64::consts::PI;

/// A pivot below this part of its diagonal entry counts as zero: that value is known given the ones before.
const SINGULAR: f64 = 1e-12;

/// a . b.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Lower factor L of A = L L'. A pivot that is zero gives a column of zeros.
pub fn cholesky(a: &[f64], n: usize) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    for j in 0..n {
        let pivot = a[j * n + j] - (0..j).map(|k| l[j * n + k] * l[j * n + k]).sum::<f64>();
        if pivot <= SINGULAR * a[j * n + j] {
            continue;
        }
        l[j * n + j] = pivot.sqrt();
        for i in j + 1..n {
            let product: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            l[i * n + j] = (a[i * n + j] - product) / l[j * n + j];
        }
    }
    l
}

/// L^{-1} b for the leading rows of an n by n factor; entries of known values are zero.
pub fn whiten(l: &[f64], n: usize, b: &[f64]) -> Vec<f64> {
    let mut e: Vec<f64> = Vec::with_capacity(b.len());
    for i in 0..b.len() {
        let product: f64 = (0..i).map(|k| l[i * n + k] * e[k]).sum();
        let pivot = l[i * n + i];
        e.push(if pivot > 0.0 { (b[i] - product) / pivot } else { 0.0 });
    }
    e
}

/// L v for a lower n by n factor.
pub fn lower_times(l: &[f64], n: usize, v: &[f64]) -> Vec<f64> {
    (0..n).map(|i| dot(&l[i * n..=i * n + i], v)).collect()
}

/// log |L L'|.
pub fn log_determinant(l: &[f64], n: usize) -> f64 {
    (0..n).map(|i| 2.0 * l[i * n + i].ln()).sum()
}

/// log N(residual | 0, A).
pub fn log_gaussian(a: &[f64], residual: &[f64]) -> f64 {
    log_gaussian_factored(&cholesky(a, residual.len()), residual)
}

/// log N(residual | 0, L L').
pub fn log_gaussian_factored(l: &[f64], residual: &[f64]) -> f64 {
    let n = residual.len();
    let e = whiten(l, n, residual);
    -0.5 * (dot(&e, &e) + log_determinant(l, n) + n as f64 * (2.0 * PI).ln())
}

/// A B' of row-major matrices with `n` columns each.
pub fn times_transposed(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    a.chunks_exact(n).flat_map(|row| b.chunks_exact(n).map(move |other| dot(row, other))).collect()
}
