//! The slow version of the inverse-Wishart update, with its planted bugs.

use crate::model::CovariancePrior;
use gpssm_dev::dense::{cholesky, lower_times};
use gpssm_dev::normal;
use rand::rngs::ChaCha8Rng;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mutant {
    /// Missing components are drawn from their marginal.
    MarginalImputation,
    /// Missing components are set to their conditional mean.
    MeanImputation,
    /// Missing components are set to zero.
    ZeroImputation,
    /// One row too many is counted.
    CountOffByOne,
    /// Rows without any output are counted.
    CountsEmptyRows,
    /// Only complete rows are used, although the others say something of R. This is exact, but not the
    /// same update: a check that the test does not cry wolf.
    CompleteRowsOnly,
}

/// The matrix with rows and columns `order`.
fn reorder(a: &[f64], n: usize, order: &[usize]) -> Vec<f64> {
    order.iter().flat_map(|&i| order.iter().map(move |&j| a[i * n + j])).collect()
}

/// Draws R's factor given residuals (row-major, NaN for missing) and the current R.
pub(super) fn draw(
    dof: f64,
    psi: &[Vec<f64>],
    residuals: &[f64],
    current: &[f64],
    mutant: Option<Mutant>,
    rng: &mut ChaCha8Rng,
) -> Vec<f64> {
    let n = psi.len();
    let is = |other: Mutant| mutant == Some(other);
    let mut scale = psi.to_vec();
    let mut count = f64::from(is(Mutant::CountOffByOne));
    for row in residuals.chunks_exact(n) {
        let (missing, seen): (Vec<usize>, Vec<usize>) = (0..n).partition(|&k| row[k].is_nan());
        if seen.is_empty() {
            count += f64::from(is(Mutant::CountsEmptyRows));
            continue;
        }
        if is(Mutant::CompleteRowsOnly) && !missing.is_empty() {
            continue;
        }
        let mut e = row.to_vec();
        // A joint draw of all components, moved to the observed ones: e_m + C_mo C_oo^{-1} (e_o - draw_o).
        let order: Vec<usize> = seen.iter().chain(&missing).copied().collect();
        let l = cholesky(&reorder(current, n, &order), n);
        let mut white: Vec<f64> =
            (0..seen.len()).map(|_| 0.0).chain((0..missing.len()).map(|_| normal(rng))).collect();
        for i in 0..seen.len() {
            let dot: f64 = (0..i).map(|k| l[i * n + k] * white[k]).sum();
            white[i] = (row[order[i]] - dot) / l[i * n + i];
        }
        if is(Mutant::MarginalImputation) {
            (0..seen.len()).for_each(|i| white[i] = normal(rng));
        }
        if is(Mutant::MeanImputation) {
            white[seen.len()..].fill(0.0);
        }
        let joint = lower_times(&l, n, &white);
        for (i, &k) in order.iter().enumerate().skip(seen.len()) {
            e[k] = if is(Mutant::ZeroImputation) { 0.0 } else { joint[i] };
        }
        count += 1.0;
        for i in 0..n {
            for j in 0..n {
                scale[i][j] += e[i] * e[j];
            }
        }
    }
    CovariancePrior::InverseWishart { dof: dof + count, scale }.sample(rng, n).unwrap()
}
