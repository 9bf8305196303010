//! The joint density of a path with f integrated out (eq. 4 of the paper).

use std::f64::consts::PI;

use super::basis::statistics_cache::StatisticsCache;
use super::block::Pairs;
use super::covariance_cache::CovarianceCache;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::points::Points;

/// K~ = K + I (x) Q over the points, lower triangle, rows ordered (point, dimension).
pub(crate) fn fill_covariance(
    kernels: &[Kernel],
    noise: &[f64],
    points: &Points,
    dense: &mut Dense,
    scratch: &mut Scratch,
) {
    let (p, n) = (kernels.len(), points.len());
    dense.resize(n * p);
    let mut at = vec![0.0; points.n_components()];
    let mut row = vec![0.0; n];
    for s in 0..n {
        points.get(s, &mut at);
        for d in 0..p {
            let kernel = &kernels[d];
            if p == 1 {
                let column = dense.lower_column_mut(s);
                kernel.row(points, s..n, &at, column, scratch);
                column[0] = kernel.diagonal(&at) + noise[0];
                continue;
            }
            kernel.row(points, s..n, &at, &mut row, scratch);
            row[0] = kernel.diagonal(&at);
            let column = dense.lower_column_mut(s * p + d);
            column.fill(0.0);
            for (i, value) in row[..n - s].iter().enumerate() {
                column[i * p] = *value;
            }
            for other in d..p {
                column[other - d] += noise[other * p + d];
            }
        }
    }
}

/// Room for repeated evaluations.
#[derive(Debug, Default)]
pub(crate) struct PathDensityWork {
    dense: Dense,
    residuals: Vec<f64>,
    scratch: Scratch,
    cache: CovarianceCache,
    pub(super) statistics: StatisticsCache,
    /// Whether every evaluation has points of its own, so that nothing need be kept for the next.
    pub(crate) points_move: bool,
    /// Largest relative jitter of a finite basis since it was last set to zero.
    pub(crate) relative_jitter: f64,
}

/// log p(x_{1:T} | x_0) of the dimensions `dims`, all pairs of all sequences together (eq. 4).
pub(crate) fn log_marginal_likelihood(
    dims: &[usize],
    kernels: &[Kernel],
    noise: &[f64],
    pairs: &Pairs,
    work: &mut PathDensityWork,
) -> Result<f64, NotPositiveDefinite> {
    let cached = match (kernels, noise) {
        ([kernel], [noise]) if !work.points_move => {
            work.cache.fill(kernel, *noise, &pairs.points, &mut work.dense, &mut work.scratch)
        }
        _ => false,
    };
    if !cached {
        fill_covariance(kernels, noise, &pairs.points, &mut work.dense, &mut work.scratch);
    }
    work.dense.factor()?;
    work.residuals = pairs.select(dims);
    work.dense.solve_lower(&mut work.residuals, 1);
    let square: f64 = work.residuals.iter().map(|e| e * e).sum();
    let n = work.residuals.len() as f64;
    Ok(-0.5 * (square + n * (2.0 * PI).ln()) - work.dense.log_diagonal())
}
