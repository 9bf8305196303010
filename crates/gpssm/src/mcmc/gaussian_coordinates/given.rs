//! One draw of f, given which a path is a Markov chain.
//!
//! Weights w of a finite basis are drawn from g(w | x, theta), their posterior given the path in Bayesian linear regression
//! ([`crate::dynamics::basis`]). A move of (x, theta) that holds w leaves p(x, theta | y) g(w | x, theta) as it is, and with it
//! p(x, theta | y), whatever g is. With a finite basis as prior over f, w are its own weights and
//! p(x | theta) g(w | x, theta) = p(w) p(x | w, theta); with an exact Gaussian process they are those of FIC on some
//! inducing inputs, close to it.

use std::sync::Arc;

use rand::Rng;

use crate::dynamics::basis::features::BasisChoice;
use crate::dynamics::basis::regression::{Design, Rows, Statistics};
use crate::dynamics::block::Pairs;
use crate::dynamics::transition::{FunctionPrior, Transition};
use crate::function::evaluate_all;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::small;
use crate::points::Points;

/// A function of the basis at one theta.
#[derive(Clone)]
pub(crate) struct GivenFunction {
    /// Features and noise of each block of state dimensions; none where the transition is known.
    designs: Arc<Vec<Option<Design>>>,
    /// Weights of each block.
    weights: Vec<Vec<f64>>,
}

/// f at some points and the noise at the first of them, block by block.
pub(super) struct BlockValues {
    pub(super) dims: Vec<usize>,
    /// f(z), (point, dimension of the block).
    pub(super) f: Vec<f64>,
    /// Factors of the noise.
    pub(super) chol: Vec<f64>,
}

/// |z|^2 / 2.
pub(crate) fn half_square<'a>(z: impl IntoIterator<Item = &'a f64>) -> f64 {
    0.5 * z.into_iter().map(|z| z * z).sum::<f64>()
}

impl GivenFunction {
    /// w ~ g(w | x, theta).
    pub(crate) fn draw<R: Rng>(
        transition: &Transition,
        choice: &BasisChoice,
        pairs: &Pairs,
        rng: &mut R,
    ) -> Result<Self, NotPositiveDefinite> {
        Self::regress(transition, choice, pairs, &mut |statistics| statistics.draw_weights(rng))
    }

    /// The mean of g(w | x, theta) in place of a draw.
    pub(super) fn mean(
        transition: &Transition,
        choice: &BasisChoice,
        pairs: &Pairs,
    ) -> Result<Self, NotPositiveDefinite> {
        Self::regress(transition, choice, pairs, &mut Statistics::mean_weights)
    }

    fn regress(
        transition: &Transition,
        choice: &BasisChoice,
        pairs: &Pairs,
        weights: &mut dyn FnMut(Statistics) -> Result<Vec<f64>, NotPositiveDefinite>,
    ) -> Result<Self, NotPositiveDefinite> {
        let designs = designs(transition, choice)?;
        let of_block = |(dims, design): (Vec<usize>, &Option<Design>)| match design {
            None => Ok(Vec::new()),
            Some(design) => weights(Statistics::of(design, &dims, pairs)?),
        };
        let weights = transition.blocks().into_iter().zip(&designs).map(of_block);
        Ok(Self { weights: weights.collect::<Result<_, _>>()?, designs: Arc::new(designs) })
    }

    /// The same weights at another theta.
    pub(crate) fn at_theta(
        &self,
        transition: &Transition,
        choice: &BasisChoice,
    ) -> Result<Self, NotPositiveDefinite> {
        Ok(Self { designs: Arc::new(designs(transition, choice)?), weights: self.weights.clone() })
    }

    /// All weights, block by block.
    pub(crate) fn weights(&self) -> Vec<f64> {
        self.weights.concat()
    }

    /// The function with other weights.
    pub(crate) fn with(&self, weights: &[f64]) -> Self {
        let mut from = weights.iter().copied();
        let weights = self.weights.iter().map(|own| from.by_ref().take(own.len()).collect()).collect();
        Self { weights, designs: self.designs.clone() }
    }

    /// Whitened features of block `b` at some points, (point, dimension, weight).
    pub(super) fn rows(&self, b: usize, points: &Points) -> Result<Vec<f64>, NotPositiveDefinite> {
        let mut rows = Rows::default();
        if let Some(design) = &self.designs[b] {
            design.rows(points, &mut rows)?;
        }
        Ok(rows.rows)
    }

    /// log g(w | x, theta), up to a constant.
    pub(crate) fn log_density(
        &self,
        transition: &Transition,
        pairs: &Pairs,
    ) -> Result<f64, NotPositiveDefinite> {
        let mut total = 0.0;
        for (dims, (design, weights)) in self.blocks(transition) {
            if let Some(design) = design {
                total += Statistics::of(design, &dims, pairs)?.log_density_of(weights)?;
            }
        }
        Ok(total)
    }

    /// log p(w) p(x_{1:T} | x_0, w, theta) where f is the finite basis itself, which is
    /// log p(x_{1:T} | x_0, theta) g(w | x, theta) up to a constant; None for an exact Gaussian process.
    pub(crate) fn log_path(
        &self,
        transition: &Transition,
        pairs: &Pairs,
    ) -> Option<Result<f64, NotPositiveDefinite>> {
        if matches!(transition.prior, FunctionPrior::Exact) && transition.is_learned() {
            return None;
        }
        let density = |values: Vec<BlockValues>| {
            let of_block = |block: &BlockValues| {
                let p = block.dims.len();
                let mut residuals = pairs.select(&block.dims);
                residuals.iter_mut().zip(&block.f).for_each(|(residual, f)| *residual -= f);
                let each = residuals.chunks_exact_mut(p).zip(block.chol.chunks_exact(p * p));
                each.map(|(residual, chol)| small::log_gaussian(chol, p, residual)).sum::<f64>()
            };
            values.iter().map(of_block).sum::<f64>() - half_square(self.weights.iter().flatten())
        };
        Some(self.beyond_the_mean(transition, &pairs.points, None).map(density))
    }

    /// f - m and the noise at these points, and f - m at more of them.
    fn beyond_the_mean(
        &self,
        transition: &Transition,
        points: &Points,
        more: Option<&Points>,
    ) -> Result<Vec<BlockValues>, NotPositiveDefinite> {
        let of_block = |(dims, (design, weights)): (Vec<usize>, (&Option<Design>, &Vec<f64>))| {
            let p = dims.len();
            let n_more = more.map_or(0, Points::len);
            let (mut f, mut extra, mut chol) = (Vec::new(), Vec::new(), Vec::new());
            if let Some(design) = design {
                design.values(points, weights, &mut f, &mut extra);
                design.noise_factors(&extra, &mut chol)?;
                if let Some(more) = more {
                    let mut own = Vec::new();
                    design.means(more, weights, &mut own);
                    f.extend(own);
                }
            } else {
                f.resize((points.len() + n_more) * p, 0.0);
                let mut own = transition.noise_of(&dims);
                if !small::cholesky(&mut own, p) {
                    return Err(NotPositiveDefinite { order: p, index: 0 });
                }
                (0..points.len()).for_each(|_| chol.extend_from_slice(&own));
            }
            Ok(BlockValues { dims, f, chol })
        };
        self.blocks(transition).map(of_block).collect()
    }

    /// Dimensions, features and weights of each block.
    fn blocks(
        &self,
        transition: &Transition,
    ) -> impl Iterator<Item = (Vec<usize>, (&Option<Design>, &Vec<f64>))> {
        transition.blocks().into_iter().zip(self.designs.iter().zip(&self.weights))
    }

    /// f and the noise at these points, and f at more of them.
    pub(super) fn at(
        &self,
        transition: &Transition,
        points: &Points,
        more: &Points,
    ) -> Result<Vec<BlockValues>, NotPositiveDefinite> {
        let mut blocks = self.beyond_the_mean(transition, points, Some(more))?;
        let n_x = transition.n_x();
        let (mut means, mut means_of_more) = (Vec::new(), Vec::new());
        evaluate_all(&transition.means, points, &mut means);
        evaluate_all(&transition.means, more, &mut means_of_more);
        means.extend(means_of_more);
        for block in &mut blocks {
            for (f, mean) in block.f.chunks_exact_mut(block.dims.len()).zip(means.chunks_exact(n_x)) {
                f.iter_mut().zip(&block.dims).for_each(|(f, &d)| *f += mean[d]);
            }
        }
        Ok(blocks)
    }
}

fn designs(
    transition: &Transition,
    choice: &BasisChoice,
) -> Result<Vec<Option<Design>>, NotPositiveDefinite> {
    let design = |dims: Vec<usize>| match transition.is_known(&dims) {
        true => Ok(None),
        false => transition.design_of(&dims, choice, transition.noise_of(&dims)).map(Some),
    };
    transition.blocks().into_iter().map(design).collect()
}
