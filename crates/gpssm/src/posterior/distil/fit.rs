//! One state: inducing inputs, weights and their covariance.

use super::alignment::Aligned;
use super::target::Target;
use crate::dynamics::basis::selection::{Regression, by_variance};
use crate::dynamics::path_density::fill_covariance;
use crate::error::Error;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::Dense;
use crate::linalg::least_squares::least_squares;
use crate::points::Points;
use crate::posterior::Posterior;
use crate::posterior::distilled::{SparseEvaluator, SparseFunction};
use crate::scaling::mean_and_sd;

/// Noise of the fit relative to the spread of its target: how close it follows the mixture mean.
pub(super) const FIT_NOISE: f64 = 1e-3;

impl Posterior {
    /// Fits one state with inducing inputs chosen greedily from the cloud.
    pub(super) fn fit_state(
        &self,
        draws: &[Aligned],
        kernel: &Kernel,
        size: usize,
        d: usize,
        cloud: &Target,
    ) -> Result<SparseFunction, Error> {
        let (n_x, n_z, n) = (self.n_x(), cloud.z.n_components(), cloud.z.len());
        // Inputs alone are looked at: the outputs of the cloud are the same function everywhere.
        let regression = Regression { kernel: kernel.clone(), residuals: vec![0.0; n], noise: 1.0 };
        let mut inducing = Points::new(n_z);
        by_variance(&cloud.z, &[regression], size.min(n))
            .iter()
            .for_each(|&i| inducing.push(&cloud.z.row(i)));
        let m = inducing.len();
        let target: Vec<f64> = (0..n).map(|i| cloud.mean[i * n_x + d]).collect();
        let rows: Vec<Vec<f64>> = (0..n).map(|i| [&[1.0][..], &cloud.z.row(i)].concat()).collect();
        let (linear, square, _) = least_squares(&rows, &target);
        let predict = |row: &[f64]| linear.iter().zip(row).map(|(c, z)| c * z).sum::<f64>();
        let residual: Vec<f64> = rows.iter().zip(&target).map(|(row, f)| f - predict(row)).collect();
        let chol = chol_of(kernel, &inducing)?;
        // Features of the cloud, and ridge regression on them.
        let mut phi = vec![0.0; n * m];
        let mut scratch = Scratch::default();
        for (i, phi) in phi.chunks_exact_mut(m.max(1)).enumerate() {
            kernel.row(&inducing, 0..m, &cloud.z.row(i), phi, &mut scratch);
        }
        chol.solve_lower(&mut phi, n);
        let noise = (FIT_NOISE * (square / n as f64).sqrt()).max(1e-12);
        let mut gram = Dense::default();
        gram.resize(m);
        for j in 0..m {
            gram.lower_column_mut(j).fill(0.0);
        }
        gram.add_gram(&phi, n);
        for j in 0..m {
            *gram.get_mut(j, j) += noise * noise;
        }
        gram.factor()?;
        let mut weights = vec![0.0; m];
        for (phi, r) in phi.chunks_exact(m.max(1)).zip(&residual) {
            weights.iter_mut().zip(phi).for_each(|(w, phi)| *w += phi * r);
        }
        gram.solve_lower(&mut weights, 1);
        gram.solve_lower_transposed(&mut weights);
        let variance_factor = self.whitened_covariance(draws, &inducing, &chol, d)?;
        let packed = |dense: &Dense| -> Vec<f64> {
            (0..m).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| dense.get(i, j)).collect()
        };
        let mut coefficients = weights.clone();
        chol.solve_lower_transposed(&mut coefficients);
        Ok(SparseFunction {
            offset: linear[0],
            slopes: linear[1..].to_vec(),
            kernel: kernel.clone(),
            inducing: (0..m).flat_map(|j| inducing.row(j)).collect(),
            n_inducing: m,
            n_components: n_z,
            chol: packed(&chol),
            weights,
            coefficients,
            variance_factor: packed(&variance_factor),
        })
    }

    /// Factor of S = L_UU^{-1} Cov[f(U)] L_UU^{-T}, mixed over the draws.
    fn whitened_covariance(
        &self,
        draws: &[Aligned],
        inducing: &Points,
        chol: &Dense,
        d: usize,
    ) -> Result<Dense, Error> {
        let m = inducing.len();
        let mut covariance = vec![0.0; m * m];
        let mut means = Vec::new();
        for aligned in draws {
            let (function, z) = (self.function(aligned.draw)?, aligned.coordinates.points_to_draw(inducing));
            let (mut sum, w) = (vec![aligned.coordinates.shift(d); m], aligned.weight);
            // States of a draw are independent given its theta, or taken as such.
            for e in (0..self.n_x()).filter(|&e| aligned.coordinates.factor(d, e) != 0.0) {
                let (factor, (mean, own)) = (aligned.coordinates.factor(d, e), function.joint(&z, e));
                sum.iter_mut().zip(&mean).for_each(|(sum, mean)| *sum += factor * mean);
                covariance.iter_mut().zip(&own).for_each(|(sum, c)| *sum += w * factor * factor * c);
            }
            means.push((w, sum));
        }
        let center: Vec<f64> = (0..m).map(|i| means.iter().map(|(w, mean)| w * mean[i]).sum()).collect();
        for (w, mean) in &means {
            for i in 0..m {
                for k in 0..m {
                    covariance[i * m + k] += w * (mean[i] - center[i]) * (mean[k] - center[k]);
                }
            }
        }
        // Rows, then columns.
        chol.solve_lower(&mut covariance, m);
        for i in 0..m {
            for k in 0..i {
                covariance.swap(i * m + k, k * m + i);
            }
        }
        chol.solve_lower(&mut covariance, m);
        let mut dense = Dense::default();
        dense.resize(m);
        for i in 0..m {
            for k in 0..=i {
                *dense.get_mut(i, k) = 0.5 * (covariance[i * m + k] + covariance[k * m + i]);
            }
            // f(U) may be known exactly in some direction; the loss tells if this matters.
            *dense.get_mut(i, i) += 1e-9;
        }
        dense.factor()?;
        Ok(dense)
    }
}

/// The kernel of a state, its length-scales multiplied by `stretch`; where there is none (a known transition) or where its
/// signal is too weak for what the mean function leaves after a linear fit, a squared exponential as wide as the cloud stands in.
pub(super) fn distilling_kernel(
    kernel: &Kernel,
    cloud: &Target,
    d: usize,
    n_x: usize,
    stretch: f64,
) -> Kernel {
    if !kernel.is_zero() {
        return stretched(kernel, stretch);
    }
    let sd = |values: &[f64]| mean_and_sd(values.iter().copied()).and_then(|(_, sd)| sd).unwrap_or(1.0);
    let ell: Vec<f64> = (0..cloud.z.n_components()).map(|c| stretch * sd(cloud.z.column(c))).collect();
    let f: Vec<f64> = cloud.mean.iter().skip(d).step_by(n_x).copied().collect();
    Kernel::squared_exponential(sd(&f).powi(2), &ell)
}

fn stretched(kernel: &Kernel, stretch: f64) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.for_each_part(&mut |part| part.stretch(stretch));
    kernel
}

/// Factor of K_UU; the greedy choice keeps its inputs apart, and what rounding needs is added in the open: a part in 1e10.
fn chol_of(kernel: &Kernel, inducing: &Points) -> Result<Dense, Error> {
    let mut dense = Dense::default();
    fill_covariance(std::slice::from_ref(kernel), &[0.0], inducing, &mut dense, &mut Scratch::default());
    for i in 0..inducing.len() {
        *dense.get_mut(i, i) *= 1.0 + 1e-10;
    }
    dense.factor()?;
    Ok(dense)
}

pub(super) fn held_out_error(function: &SparseFunction, held_out: &Target, d: usize, n_x: usize) -> f64 {
    let n = held_out.z.len();
    let mut evaluator = SparseEvaluator::new(function);
    let mut square = 0.0;
    for i in 0..n {
        let (mean, _) = evaluator.evaluate(&held_out.z.row(i));
        square += (mean - held_out.mean[i * n_x + d]).powi(2);
    }
    let spread =
        mean_and_sd((0..n).map(|i| held_out.mean[i * n_x + d])).and_then(|(_, sd)| sd).unwrap_or(1.0);
    (square / n as f64).sqrt() / spread
}
