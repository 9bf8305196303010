//! The next state given one draw of the transition function at some points.
//!
//! With numbers for f at these points, a path that visits them is a Markov chain. A Gaussian process is drawn with half of
//! the process noise already added: v = f + e, e ~ N(0, Q / 2) at every point, and x' ~ N(v, Q / 2). As a path visits a
//! point once, that is the same model, and the covariance of v is never singular.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::block::Pairs;
use super::path_density::fill_covariance;
use super::transition::{FunctionPrior, Transition};
use crate::function::evaluate_all;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::linalg::small;
use crate::points::Points;

/// Means and noise of the next state from each point.
pub(crate) struct FunctionDraw {
    blocks: Vec<Drawn>,
}

struct Drawn {
    dims: Vec<usize>,
    /// (point, dimension).
    means: Vec<f64>,
    /// Factors of the noise: one for all points, or one for each.
    chol: Vec<f64>,
}

impl FunctionDraw {
    /// A draw of f given the pairs, at `points`, of which the first are those of the pairs.
    pub(crate) fn new<R: Rng + ?Sized>(
        transition: &Transition,
        pairs: &Pairs,
        points: &Points,
        rng: &mut R,
    ) -> Result<Self, NotPositiveDefinite> {
        let n_x = transition.n_x();
        let mut prior_means = Vec::new();
        evaluate_all(&transition.means, points, &mut prior_means);
        let mut blocks = Vec::new();
        for dims in transition.blocks() {
            let noise = transition.noise_of(&dims);
            let (values, chol) = if transition.is_known(&dims) {
                (vec![0.0; points.len() * dims.len()], factor(noise, dims.len())?)
            } else {
                match &transition.prior {
                    FunctionPrior::Exact => {
                        let kernels = transition.kernels_of(&dims);
                        let half: Vec<f64> = noise.iter().map(|q| 0.5 * q).collect();
                        let targets = pairs.select(&dims);
                        let values = draw_process(&kernels, &noise, &half, &targets, points, rng)?;
                        (values, factor(half, dims.len())?)
                    }
                    FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) => {
                        let (design, statistics) = transition.statistics(&dims, choice, noise, pairs)?;
                        let weights = statistics.draw_weights(rng)?;
                        let (mut values, mut extra, mut chol) = (Vec::new(), Vec::new(), Vec::new());
                        design.values(points, &weights, &mut values, &mut extra);
                        design.noise_factors(&extra, &mut chol)?;
                        (values, chol)
                    }
                }
            };
            let prior = prior_means.chunks_exact(n_x).flat_map(|row| dims.iter().map(|&d| row[d]));
            let means = prior.zip(values).map(|(mean, value)| mean + value).collect();
            blocks.push(Drawn { dims, means, chol });
        }
        Ok(Self { blocks })
    }

    /// log p(x | point `i`).
    pub(crate) fn log_next(&self, i: usize, x: &[f64]) -> f64 {
        let of_block = |block: &Drawn| {
            let p = block.dims.len();
            let means = &block.means[i * p..(i + 1) * p];
            let mut residual: Vec<f64> = block.dims.iter().zip(means).map(|(&d, mean)| x[d] - mean).collect();
            let from = if block.chol.len() == p * p { 0 } else { i * p * p };
            small::log_gaussian(&block.chol[from..from + p * p], p, &mut residual)
        };
        self.blocks.iter().map(of_block).sum()
    }
}

fn factor(mut covariance: Vec<f64>, p: usize) -> Result<Vec<f64>, NotPositiveDefinite> {
    match small::cholesky(&mut covariance, p) {
        true => Ok(covariance),
        false => Err(NotPositiveDefinite { order: p, index: 0 }),
    }
}

/// f + e at all points given targets = f + e + e' at the first ones, e and e' with half of the noise each, (point,
/// dimension).
///
/// With L L' the covariance of f + e, a draw from the prior is L z. Adding Cov(all, first) S^{-1} (targets - L z - e') makes it
/// one from the posterior, S = K + I (x) Q over the first points, and Cov(all, first) = L L_1'.
fn draw_process<R: Rng + ?Sized>(
    kernels: &[Kernel],
    noise: &[f64],
    half: &[f64],
    targets: &[f64],
    points: &Points,
    rng: &mut R,
) -> Result<Vec<f64>, NotPositiveDefinite> {
    let p = kernels.len();
    let n_first = targets.len();
    let mut points = points.clone();
    Kernel::precompute(kernels, &mut points);
    let (mut all, mut first, mut scratch) = (Dense::default(), Dense::default(), Scratch::default());
    fill_covariance(kernels, half, &points, &mut all, &mut scratch);
    all.factor()?;
    points.truncate(n_first / p);
    fill_covariance(kernels, noise, &points, &mut first, &mut scratch);
    first.factor()?;
    let mut white: Vec<f64> = (0..all.order()).map(|_| rng.sample(StandardNormal)).collect();
    let prior = all.multiply_lower(&white);
    let half_chol = factor(half.to_vec(), p)?;
    let mut missing = Vec::with_capacity(n_first);
    let mut error = vec![0.0; p];
    for (targets, prior) in targets.chunks_exact(p).zip(prior.chunks_exact(p)) {
        let normal: Vec<f64> = (0..p).map(|_| rng.sample(StandardNormal)).collect();
        small::multiply_lower(&half_chol, p, &normal, &mut error);
        missing.extend(targets.iter().zip(prior).zip(&error).map(|((target, prior), e)| target - prior - e));
    }
    first.solve_lower(&mut missing, 1);
    first.solve_lower_transposed(&mut missing);
    for (j, white) in white.iter_mut().enumerate().take(n_first) {
        let column = &all.lower_column(j)[..n_first - j];
        *white += column.iter().zip(&missing[j..]).map(|(l, m)| l * m).sum::<f64>();
    }
    Ok(all.multiply_lower(&white))
}
