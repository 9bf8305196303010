//! One function from the posterior of f, for as many evaluations as one likes.
//!
//! With a finite basis: one draw of the weights, exactly. For an exact Gaussian process by Matheron's rule (Wilson et al.
//! 2020, arXiv 2002.09309): a prior draw g as a sum of waves, corrected at the training pairs,
//!
//! ```text
//! f(z) = m(z) + g(z) + k(z, Z) (K + Q)^{-1} (r - g(Z) - e),  e ~ N(0, Q)
//! ```
//!
//! If g were an exact draw, f would be one too. The correction is exact; g has a finite number of waves, which is the one
//! approximation. Memory is constant; an evaluation costs O(n + waves) for n training pairs, or O(M) for
//! M weights (O(M^2) for inducing inputs).

use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::features::PriorDraw;
use super::function::{FunctionPosterior, Kind, solve_transposed};
use crate::dynamics::predictions::Predictions;
use crate::error::Error;
use crate::function::evaluate_all;
use crate::kernel::Scratch;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::panels::padded;
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::points::Points;

/// A transition of which the next states' Gaussians are known: what a particle filter needs.
pub(crate) trait TransitionFunction: Send {
    /// N(mean, L L') of the next state at every point z, process noise included; internal units.
    fn predict(&mut self, z: &Points, out: &mut Predictions);
}

/// One function given one draw.
pub(crate) struct FunctionDraw {
    posterior: Arc<FunctionPosterior>,
    blocks: Vec<DrawnBlock>,
    means: Vec<f64>,
    scratch: Scratch,
    row: Vec<f64>,
}

enum DrawnBlock {
    Known {
        chol: Vec<f64>,
    },
    Weights {
        weights: Vec<f64>,
    },
    Matheron {
        chol: Vec<f64>,
        priors: Vec<PriorDraw>,
        /// For each dimension the coefficients of k(z, z_s).
        coefficients: Vec<Vec<f64>>,
    },
}

impl FunctionDraw {
    /// Draws a function; `n_waves` for each stationary part of an exact Gaussian process.
    pub(crate) fn new<R: Rng>(
        posterior: &Arc<FunctionPosterior>,
        n_waves: usize,
        rng: &mut R,
    ) -> Result<Self, Error> {
        let points = &posterior.pairs.points;
        let block = |block: &super::function::BlockPosterior| -> Result<DrawnBlock, Error> {
            let p = block.dims.len();
            let mut chol = block.noise.clone();
            if !small::cholesky(&mut chol, p) {
                return Err(NotPositiveDefinite { order: p, index: 0 }.into());
            }
            Ok(match &block.kind {
                Kind::Known => DrawnBlock::Known { chol },
                Kind::Basis { .. } => DrawnBlock::Weights { weights: block.draw_weights(rng) },
                Kind::Exact { kernels, factor, whitened } => {
                    let n_z = points.n_components();
                    let draw = |kernel| PriorDraw::new(kernel, n_z, n_waves, rng);
                    let mut priors: Vec<PriorDraw> = kernels.iter().map(draw).collect::<Result<_, _>>()?;
                    // g(Z) + e, ordered (pair, dimension).
                    let order = whitened.len();
                    let mut v = vec![0.0; padded(order)];
                    for (a, prior) in priors.iter_mut().enumerate() {
                        prior.add(points, p, a, &mut v);
                    }
                    let mut e = vec![0.0; p];
                    for v in v[..order].chunks_exact_mut(p) {
                        let white: Vec<f64> = (0..p).map(|_| rng.sample(StandardNormal)).collect();
                        small::multiply_lower(&chol, p, &white, &mut e);
                        v.iter_mut().zip(&e).for_each(|(v, e)| *v += e);
                    }
                    let stride = v.len();
                    factor.solve(order, &mut v, stride, 1);
                    v.truncate(order);
                    v.iter_mut().zip(whitened).for_each(|(v, r)| *v = r - *v);
                    solve_transposed(factor, &mut v);
                    let coefficients =
                        (0..p).map(|a| v.iter().skip(a).step_by(p).copied().collect()).collect();
                    DrawnBlock::Matheron { chol, priors, coefficients }
                }
            })
        };
        let mut block = block;
        let blocks = posterior.blocks.iter().map(&mut block).collect::<Result<Vec<_>, _>>()?;
        let row = vec![0.0; points.len()];
        Ok(Self {
            posterior: Arc::clone(posterior),
            blocks,
            means: Vec::new(),
            scratch: Scratch::default(),
            row,
        })
    }

    /// Weights of the finite-basis blocks; empty for others.
    pub(crate) fn weights(&self) -> Vec<Vec<f64>> {
        let of = |block: &DrawnBlock| match block {
            DrawnBlock::Weights { weights } => weights.clone(),
            _ => Vec::new(),
        };
        self.blocks.iter().map(of).collect()
    }
}

impl TransitionFunction for FunctionDraw {
    fn predict(&mut self, z: &Points, out: &mut Predictions) {
        let posterior = &*self.posterior;
        let transition = &posterior.space.transition;
        let (n_x, n) = (transition.n_x(), z.len());
        evaluate_all(&transition.means, z, &mut self.means);
        out.reset(n, n_x);
        let mut at = vec![0.0; z.n_components()];
        for (block, drawn) in posterior.blocks.iter().zip(&mut self.blocks) {
            let (p, dims) = (block.dims.len(), &block.dims);
            let mut mean = vec![0.0; n * p];
            for (i, mean) in mean.chunks_exact_mut(p).enumerate() {
                mean.iter_mut().zip(dims).for_each(|(mean, &d)| *mean = self.means[i * n_x + d]);
            }
            match (drawn, &block.kind) {
                (DrawnBlock::Matheron { chol, priors, coefficients }, Kind::Exact { kernels, .. }) => {
                    let points = &posterior.pairs.points;
                    for (a, prior) in priors.iter_mut().enumerate() {
                        prior.add(z, p, a, &mut mean);
                        for i in 0..n {
                            z.get(i, &mut at);
                            kernels[a].row(points, 0..points.len(), &at, &mut self.row, &mut self.scratch);
                            mean[i * p + a] += dot(&self.row, &coefficients[a]);
                        }
                    }
                    for (i, mean) in mean.chunks_exact(p).enumerate() {
                        out.set_block(i, dims, mean, chol);
                    }
                }
                (DrawnBlock::Weights { weights }, Kind::Basis { design, .. }) => {
                    let (mut rows, mut extra) = (Vec::new(), Vec::new());
                    design.features(z, &mut rows, &mut extra);
                    let w = design.n_weights();
                    for (i, mean) in mean.chunks_exact_mut(p).enumerate() {
                        let mut chol = block.noise.clone();
                        for a in 0..p {
                            mean[a] += dot(&rows[(i * p + a) * w..][..w], weights);
                            chol[a * p + a] += extra[i * p + a];
                        }
                        if !small::cholesky(&mut chol, p) {
                            // A state that is not finite: its particle gets weight zero.
                            mean.fill(f64::NAN);
                        }
                        out.set_block(i, dims, mean, &chol);
                    }
                }
                (DrawnBlock::Known { chol }, _) => {
                    for (i, mean) in mean.chunks_exact(p).enumerate() {
                        out.set_block(i, dims, mean, chol);
                    }
                }
                // Blocks are drawn by their kind.
                (DrawnBlock::Matheron { .. } | DrawnBlock::Weights { .. }, _) => {}
            }
        }
        for (d, of) in transition.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
            (0..n).for_each(|i| out.set_known(i, d, z.column(of)[i]));
        }
    }
}
