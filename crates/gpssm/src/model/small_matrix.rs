//! Lower triangular matrices of a few rows, stored row-major as `n * n` numbers.

/// Cholesky factor of a symmetric matrix, of which only the lower triangle is
/// read. The error is the size of the first leading block that is not positive
/// definite.
pub(crate) fn cholesky(matrix: &[f64], n: usize) -> Result<Vec<f64>, usize> {
    let mut factor = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
            let rest = matrix[i * n + j] - dot;
            if i == j {
                // Written so that NaN is refused too.
                if rest > 0.0 && rest.is_finite() {
                    factor[i * n + i] = rest.sqrt();
                } else {
                    return Err(i + 1);
                }
            } else {
                factor[i * n + j] = rest / factor[j * n + j];
            }
        }
    }
    Ok(factor)
}

/// `|L^-1 C|^2` (sum of squared entries) for lower triangular `L` and `C`;
/// this is `tr(C C^T (L L^T)^-1)`.
pub(crate) fn squared_norm_of_solve(lower: &[f64], right: &[f64], n: usize) -> f64 {
    let mut sum = 0.0;
    let mut column = vec![0.0; n];
    for j in 0..n {
        for i in j..n {
            let dot: f64 = (j..i).map(|k| lower[i * n + k] * column[k]).sum();
            column[i] = (right[i * n + j] - dot) / lower[i * n + i];
            sum += column[i] * column[i];
        }
    }
    sum
}

/// The lower triangular `L` with `L B = C` for lower triangular `B` and `C`.
pub(crate) fn solve_right(b: &[f64], c: &[f64], n: usize) -> Vec<f64> {
    let mut solution = vec![0.0; n * n];
    for i in 0..n {
        for j in (0..=i).rev() {
            let dot: f64 = (j + 1..=i).map(|k| solution[i * n + k] * b[k * n + j]).sum();
            solution[i * n + j] = (c[i * n + j] - dot) / b[j * n + j];
        }
    }
    solution
}

/// Whether the numbers are a Cholesky factor: right length, lower triangle
/// finite, diagonal positive. (Entries above the diagonal are never read.)
pub(crate) fn is_cholesky_factor(chol: &[f64], n: usize) -> bool {
    chol.len() == n * n
        && (0..n).all(|i| chol[i * n + i] > 0.0 && chol[i * n..=i * n + i].iter().all(|x| x.is_finite()))
}
