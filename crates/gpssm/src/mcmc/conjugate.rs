//! Direct draws of the noise of Gaussian sensors, given the residuals y - g(x, u).

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma, StandardNormal};

use crate::linalg::small;
use crate::model::covariance_prior::CovariancePrior;

/// r ~ IG(shape + n/2, scale + sum e^2 / 2): a variance whose prior is inverse-gamma. Missing residuals are
/// NaN and do not count. None if the numbers admit no draw.
pub(crate) fn draw_variance<R: Rng + ?Sized>(
    shape: f64,
    scale: f64,
    residuals: impl Iterator<Item = f64>,
    rng: &mut R,
) -> Option<f64> {
    let (mut n, mut square) = (0.0, 0.0);
    for e in residuals.filter(|e| !e.is_nan()) {
        n += 1.0;
        square += e * e;
    }
    let gamma = Gamma::new(shape + 0.5 * n, 1.0).ok()?;
    let variance = (scale + 0.5 * square) / gamma.sample(rng);
    (variance > 0.0 && variance.is_finite()).then_some(variance)
}

/// R ~ IW(dof + n, Psi + sum e e') after the missing components of each residual were drawn given the
/// observed ones and the current R. Residuals are row-major with NaN for missing; rows without any observed
/// component do not count. Returns the lower Cholesky factor of R.
pub(crate) fn draw_covariance<R: Rng + ?Sized>(
    dof: f64,
    psi: &[Vec<f64>],
    residuals: &mut [f64],
    current: &[f64],
    rng: &mut R,
) -> Option<Vec<f64>> {
    let n = psi.len();
    let mut scale: Vec<Vec<f64>> = psi.to_vec();
    let mut count = 0.0;
    for row in residuals.chunks_exact_mut(n) {
        if row.iter().all(|e| e.is_nan()) {
            continue;
        }
        impute(row, current, rng)?;
        count += 1.0;
        for i in 0..n {
            for j in 0..n {
                scale[i][j] += row[i] * row[j];
            }
        }
    }
    CovariancePrior::InverseWishart { dof: dof + count, scale }.sample(rng, n).ok()
}

/// Draws the missing components of e ~ N(0, R) given the observed ones.
fn impute<R: Rng + ?Sized>(row: &mut [f64], covariance: &[f64], rng: &mut R) -> Option<()> {
    let n = row.len();
    let (missing, observed): (Vec<usize>, Vec<usize>) = (0..n).partition(|&k| row[k].is_nan());
    if missing.is_empty() {
        return Some(());
    }
    // Factor R with the observed components first: the last rows then give the conditional.
    let order: Vec<usize> = observed.iter().chain(&missing).copied().collect();
    let mut chol: Vec<f64> =
        order.iter().flat_map(|&a| order.iter().map(move |&b| covariance[a * n + b])).collect();
    if !small::cholesky(&mut chol, n) {
        return None;
    }
    let mut white: Vec<f64> = order.iter().map(|&k| row[k]).collect();
    for i in 0..n {
        let explained: f64 = (0..i).map(|j| chol[i * n + j] * white[j]).sum();
        if i < observed.len() {
            white[i] = (white[i] - explained) / chol[i * n + i];
        } else {
            white[i] = rng.sample(StandardNormal);
            row[order[i]] = explained + chol[i * n + i] * white[i];
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
