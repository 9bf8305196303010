//! Small dense Gaussians, row-major, one for each particle: n_x is a handful.

use std::f64::consts::PI;

/// Cholesky factor of the leading `n` by `n` block of a row-major matrix, in place; the strict upper
/// triangle is set to zero. False if a pivot is not positive.
pub fn cholesky(a: &mut [f64], n: usize) -> bool {
    for i in 0..n {
        for j in 0..=i {
            let mut sum = a[i * n + j];
            for k in 0..j {
                sum -= a[i * n + k] * a[j * n + k];
            }
            if i == j {
                if !(sum > 0.0 && sum.is_finite()) {
                    return false;
                }
                a[i * n + i] = sum.sqrt();
            } else {
                a[i * n + j] = sum / a[j * n + j];
            }
        }
        for j in i + 1..n {
            a[i * n + j] = 0.0;
        }
    }
    true
}

/// `x <- L^{-1} x`.
pub fn solve_lower(l: &[f64], n: usize, x: &mut [f64]) {
    for i in 0..n {
        let mut sum = x[i];
        for k in 0..i {
            sum -= l[i * n + k] * x[k];
        }
        x[i] = sum / l[i * n + i];
    }
}

/// `x <- L^{-T} x`.
pub(crate) fn solve_lower_transposed(l: &[f64], n: usize, x: &mut [f64]) {
    for i in (0..n).rev() {
        let mut sum = x[i];
        for k in i + 1..n {
            sum -= l[k * n + i] * x[k];
        }
        x[i] = sum / l[i * n + i];
    }
}

/// `y <- L x`.
pub fn multiply_lower(l: &[f64], n: usize, x: &[f64], y: &mut [f64]) {
    for i in 0..n {
        y[i] = (0..=i).map(|k| l[i * n + k] * x[k]).sum();
    }
}

/// Makes `product` that of two lower factors, which is lower.
pub(crate) fn multiply_lowers(a: &[f64], b: &[f64], n: usize, product: &mut Vec<f64>) {
    product.clear();
    product.resize(n * n, 0.0);
    for i in 0..n {
        for j in 0..=i {
            product[i * n + j] = (j..=i).map(|k| a[i * n + k] * b[k * n + j]).sum();
        }
    }
}

/// `L L'`, row-major.
pub fn covariance(l: &[f64], n: usize) -> Vec<f64> {
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] = (0..=i.min(j)).map(|k| l[i * n + k] * l[j * n + k]).sum();
        }
    }
    a
}

/// Sum of the logarithms of the diagonal.
pub(crate) fn log_diagonal(l: &[f64], n: usize) -> f64 {
    (0..n).map(|i| l[i * n + i].ln()).sum()
}

/// log N(x | mean, L L') where `residual` = x - mean is whitened in place.
pub fn log_gaussian(l: &[f64], n: usize, residual: &mut [f64]) -> f64 {
    solve_lower(l, n, residual);
    let square: f64 = residual[..n].iter().map(|e| e * e).sum();
    -0.5 * (square + n as f64 * (2.0 * PI).ln()) - log_diagonal(l, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_solve_and_density_agree() {
        let a = [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0];
        let mut l = a;
        assert!(cholesky(&mut l, 3));
        for (x, y) in covariance(&l, 3).iter().zip(&a) {
            assert!((x - y).abs() < 1e-14);
        }
        let x = [0.3, -1.0, 2.0];
        let mut y = [0.0; 3];
        multiply_lower(&l, 3, &x, &mut y);
        solve_lower(&l, 3, &mut y);
        assert!(x.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-14));
        let mut residual = x;
        let log_density = log_gaussian(&l, 3, &mut residual);
        solve_lower_transposed(&l, 3, &mut residual);
        let quadratic: f64 = residual.iter().zip(&x).map(|(a, b)| a * b).sum();
        let determinant: f64 = 21.29;
        let expected = -0.5 * (quadratic + determinant.ln() + 3.0 * (2.0 * PI).ln());
        assert!((log_density - expected).abs() < 1e-12);
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        assert!(!cholesky(&mut [1.0, 2.0, 2.0, 1.0], 2));
        assert!(!cholesky(&mut [f64::NAN], 1));
    }
}
