//! One sparse Gaussian process in place of the mixture (end of section 5 of the paper).
//!
//! The cloud {z_t, f_t} of all draws says where f matters. Inducing inputs U are chosen greedily among its points, under the
//! kernel at the mean of theta. With whitened features phi(z) = L_UU^{-1} k(U, z) the distilled function is
//!
//! ```text
//! f_d(z) = a . z + c + phi(z) . w,  w ~ N(w_bar, S),  and k(z, z) - |phi(z)|^2 beside it
//! ```
//!
//! a, c and w_bar are least-squares fits to the mixture mean over the cloud (with the prior w ~ N(0, I) as a weak
//! regulariser), S is what the mixture says of f(U): covariance within the draws and between them. Losses are measured on
//! points of the cloud that were not used in the fit.

use serde::{Deserialize, Serialize};

use super::distilled::{DISTILLED_VERSION, Distilled, DistilledFunction, DistilledState, SparseFunction};
use super::function::Moments;
use super::{Posterior, to_internal};
use crate::dynamics::basis::selection::{Regression, by_variance};
use crate::dynamics::path_density::fill_covariance;
use crate::error::Error;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::Dense;
use crate::linalg::least_squares::least_squares;
use crate::points::Points;
use crate::scaling::mean_and_sd;

/// How a posterior is distilled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DistilOptions {
    /// Inducing inputs; none to take the smallest size whose held-out error of the mean is below `tolerance`.
    pub size: Option<usize>,
    /// Largest size that is tried.
    pub max_size: usize,
    /// Wanted error of the mean, relative to the standard deviation of f over the cloud.
    pub tolerance: f64,
    /// Points of the cloud that are fitted; a quarter as many are held out.
    pub cloud: usize,
}

impl Default for DistilOptions {
    fn default() -> Self {
        Self { size: None, max_size: 200, tolerance: 0.02, cloud: 2000 }
    }
}

/// What distilling loses against the full mixture, on held-out points of the cloud; by state, zero for lags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DistilLoss {
    /// RMSE of the mean, original units.
    pub mean_rmse: Vec<f64>,
    /// The same, relative to the standard deviation of the mixture mean over the points.
    pub mean_error: Vec<f64>,
    /// RMSE of the standard deviation of f, original units.
    pub sd_rmse: Vec<f64>,
    /// The same, relative to the mean of the mixture's standard deviation of f.
    pub sd_error: Vec<f64>,
    /// Points they were measured at.
    pub n_points: usize,
}

/// Mixture mean and variance at points, internal units, (point, dimension).
struct Target {
    z: Points,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

/// Noise of the fit relative to the spread of its target: how close it follows the mixture mean.
const FIT_NOISE: f64 = 1e-3;

/// Length-scale factors that are tried, smallest held-out error kept.
const STRETCHES: [f64; 3] = [1.0, 0.5, 2.0];

impl Posterior {
    fn target(&self, z: Points) -> Result<Target, Error> {
        let n_x = self.n_x();
        let internal = to_internal(self.problem().scaling(), &z);
        let n = z.len() * n_x;
        let (mut mean, mut square, mut variance) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut moments = Moments::default();
        for (j, w) in self.weights().into_iter().enumerate() {
            self.function(j)?.evaluate(&internal, false, &mut moments);
            for i in 0..n {
                mean[i] += w * moments.mean[i];
                square[i] += w * moments.mean[i] * moments.mean[i];
                variance[i] += w * moments.covariance[i * n_x + i % n_x];
            }
        }
        for i in 0..n {
            variance[i] += (square[i] - mean[i] * mean[i]).max(0.0);
        }
        Ok(Target { z: internal, mean, variance })
    }

    /// A single sparse Gaussian process with the losses it brings.
    pub fn distil(&self, options: &DistilOptions) -> Result<Distilled, Error> {
        if options.size == Some(0) || options.max_size == 0 || options.cloud < 10 {
            return Err(Error::settings(
                "size",
                "at least one inducing input and ten points of the cloud are needed",
            ));
        }
        // Every fifth point is held out.
        let all = self.visited_points(options.cloud + options.cloud / 4);
        let (mut fitted, mut held_out) = (Points::new(all.n_components()), Points::new(all.n_components()));
        for i in 0..all.len() {
            if i % 5 == 4 { held_out.push(&all.row(i)) } else { fitted.push(&all.row(i)) }
        }
        if held_out.is_empty() {
            held_out = fitted.clone();
        }
        let (fitted, held_out) = (self.target(fitted)?, self.target(held_out)?);
        let sizes: Vec<usize> = match options.size {
            Some(size) => vec![size],
            None => [10, 20, 35, 50, 75, 100, 150, 200, 300, 500]
                .into_iter()
                .filter(|size| *size < options.max_size)
                .chain([options.max_size])
                .collect(),
        };
        let theta = self.mean_theta();
        let transition = self.problem().bind_transition(&theta);
        let n_x = self.n_x();
        let mut states = Vec::new();
        for d in 0..n_x {
            if let Some(of) = transition.lags[d] {
                states.push(DistilledState::Lag { of });
                continue;
            }
            let mut best: Option<(f64, SparseFunction)> = None;
            for &size in &sizes {
                for stretch in STRETCHES {
                    let kernel = distilling_kernel(&transition.kernels[d], &fitted, d, n_x, stretch);
                    let Ok(candidate) = self.fit_state(&kernel, size, d, &fitted) else { continue };
                    let error = held_out_error(&candidate, &held_out, d, n_x);
                    if best.as_ref().is_none_or(|(lowest, _)| error < *lowest) {
                        best = Some((error, candidate));
                    }
                }
                if best.as_ref().is_some_and(|(error, _)| *error <= options.tolerance) {
                    break;
                }
            }
            let Some((_, state)) = best else {
                return Err(Error::data(format!("state {}: no sparse fit succeeded", d + 1)));
            };
            states.push(DistilledState::Sparse(Box::new(state)));
        }
        let scaling = self.problem().scaling();
        let mut noise = vec![0.0; n_x * n_x];
        for draw in self.draws() {
            let q = self.problem().bind_transition(&draw.theta).noise_covariance();
            for (i, (sum, q)) in noise.iter_mut().zip(q).enumerate() {
                *sum += draw.weight * q * scaling.x.scale[i / n_x] * scaling.x.scale[i % n_x];
            }
        }
        let mut distilled = Distilled {
            version: DISTILLED_VERSION,
            n_x,
            n_u: self.n_u(),
            x_units: scaling.x.clone(),
            u_units: scaling.u.clone(),
            states,
            process_noise: noise,
            theta,
            loss: DistilLoss {
                mean_rmse: vec![0.0; n_x],
                mean_error: vec![0.0; n_x],
                sd_rmse: vec![0.0; n_x],
                sd_error: vec![0.0; n_x],
                n_points: held_out.z.len(),
            },
        };
        distilled.loss = self.distil_loss(&distilled, &held_out)?;
        Ok(distilled)
    }

    /// Fits one state with inducing inputs chosen greedily from the cloud.
    fn fit_state(
        &self,
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
        let variance_factor = self.whitened_covariance(&inducing, &chol, d)?;
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
    fn whitened_covariance(&self, inducing: &Points, chol: &Dense, d: usize) -> Result<Dense, Error> {
        let m = inducing.len();
        let mut covariance = vec![0.0; m * m];
        let mut means = Vec::new();
        for (j, w) in self.weights().into_iter().enumerate() {
            let (mean, own) = self.function(j)?.joint(inducing, d);
            covariance.iter_mut().zip(&own).for_each(|(sum, c)| *sum += w * c);
            means.push((w, mean));
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

    fn distil_loss(&self, distilled: &Distilled, held_out: &Target) -> Result<DistilLoss, Error> {
        let (n_x, n) = (self.n_x(), held_out.z.len());
        let scale = &self.problem().scaling().x.scale;
        let mut function = DistilledFunction::new(distilled)?;
        let mut loss = distilled.loss.clone();
        let (mut mean_square, mut sd_square, mut sds) = (vec![0.0; n_x], vec![0.0; n_x], vec![0.0; n_x]);
        let (mut mean, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
        for i in 0..n {
            function.evaluate_internal(&held_out.z.row(i), &mut mean, &mut variance);
            for d in 0..n_x {
                let (m, v) = (held_out.mean[i * n_x + d], held_out.variance[i * n_x + d]);
                mean_square[d] += (mean[d] - m).powi(2) / n as f64;
                sd_square[d] += (variance[d].sqrt() - v.sqrt()).powi(2) / n as f64;
                sds[d] += v.sqrt() / n as f64;
            }
        }
        for d in 0..n_x {
            let column = (0..n).map(|i| held_out.mean[i * n_x + d]);
            let spread = mean_and_sd(column).and_then(|(_, sd)| sd).unwrap_or(1.0);
            loss.mean_rmse[d] = mean_square[d].sqrt() * scale[d];
            loss.mean_error[d] = mean_square[d].sqrt() / spread;
            loss.sd_rmse[d] = sd_square[d].sqrt() * scale[d];
            loss.sd_error[d] = if sds[d] > 0.0 { sd_square[d].sqrt() / sds[d] } else { 0.0 };
        }
        Ok(loss)
    }
}

/// The kernel of a state, its length-scales multiplied by `stretch`; where there is none (a known transition) or where its
/// signal is too weak for what the mean function leaves after a linear fit, a squared exponential as wide as the cloud stands in.
fn distilling_kernel(kernel: &Kernel, cloud: &Target, d: usize, n_x: usize, stretch: f64) -> Kernel {
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

fn held_out_error(function: &SparseFunction, held_out: &Target, d: usize, n_x: usize) -> f64 {
    let n = held_out.z.len();
    let mut evaluator = super::distilled::SparseEvaluator::new(function);
    let mut square = 0.0;
    for i in 0..n {
        let (mean, _) = evaluator.evaluate(&held_out.z.row(i));
        square += (mean - held_out.mean[i * n_x + d]).powi(2);
    }
    let spread =
        mean_and_sd((0..n).map(|i| held_out.mean[i * n_x + d])).and_then(|(_, sd)| sd).unwrap_or(1.0);
    (square / n as f64).sqrt() / spread
}
