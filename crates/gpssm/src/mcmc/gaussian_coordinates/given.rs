//! One draw of f, given which a path is a Markov chain.
//!
//! Weights w of a finite basis are drawn from g(w | x, theta), their posterior given the path in Bayesian linear regression
//! ([`crate::dynamics::basis`]). A move of (x, theta) that holds w leaves p(x, theta | y) g(w | x, theta) as it is, and with it
//! p(x, theta | y), whatever g is. With a finite basis as prior over f, w are its own weights and
//! p(x | theta) g(w | x, theta) = p(w) p(x | w, theta); with an exact Gaussian process they are those of FIC on some
//! inducing inputs, close to it.
//!
//! Linear and constant parts of a kernel have features of their own. Of these the coefficients are held, not the weights: a
//! coefficient is the weight times the feature's amplitude, which is an entry of theta. Coefficients may also move together with
//! theta: where outputs cannot tell noise of the process from that of the sensor, both move with the slope of f.

use std::sync::Arc;

use rand::Rng;

use crate::dynamics::basis::features::{BasisChoice, without_exact_parts};
use crate::dynamics::basis::regression::Design;
use crate::dynamics::block::Pairs;
use crate::dynamics::transition::{FunctionPrior, Transition};
use crate::function::evaluate_all;
use crate::kernel::Kernel;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::small;
use crate::points::Points;

/// Weights of each block of state dimensions; none where the transition is known.
#[derive(Clone)]
pub(crate) struct GivenFunction {
    choice: BasisChoice,
    weights: Vec<Vec<f64>>,
    /// Which of them belong to linear and constant parts, by block.
    exact: Vec<Vec<usize>>,
}

/// f at some points and the noise at the first of them, block by block.
pub(super) struct BlockValues {
    pub(super) dims: Vec<usize>,
    /// f(z), (point, dimension of the block).
    pub(super) f: Vec<f64>,
    /// Factors of the noise.
    pub(super) chol: Vec<f64>,
}

impl GivenFunction {
    /// f = m: every unknown function is its mean.
    pub(crate) fn mean(transition: &Transition) -> Self {
        let n = transition.blocks().len();
        let choice = BasisChoice::Fic(Arc::new(Points::default()));
        Self { choice, weights: vec![Vec::new(); n], exact: vec![Vec::new(); n] }
    }

    /// w ~ g(w | x, theta).
    pub(crate) fn draw<R: Rng>(
        transition: &Transition,
        choice: &BasisChoice,
        pairs: &Pairs,
        rng: &mut R,
    ) -> Result<Self, NotPositiveDefinite> {
        let mut drawn = Self { choice: choice.clone(), weights: Vec::new(), exact: Vec::new() };
        for dims in transition.blocks() {
            let (mut weights, mut exact) = (Vec::new(), Vec::new());
            if !transition.is_known(&dims) {
                let noise = transition.noise_of(&dims);
                let (design, statistics) = transition.statistics(&dims, choice, noise, pairs)?;
                weights = statistics.draw_weights(rng)?;
                exact = design.exact_features().into_iter().map(|(at, _)| at).collect();
            }
            drawn.weights.push(weights);
            drawn.exact.push(exact);
        }
        Ok(drawn)
    }

    /// Coefficients of linear and constant parts, block by block.
    pub(crate) fn coefficients(&self, transition: &Transition) -> Vec<f64> {
        let mut amplitudes = amplitudes(transition).into_iter();
        let blocks = self.weights.iter().zip(&self.exact);
        let weights = blocks.flat_map(|(weights, exact)| exact.iter().map(|&at| weights[at]));
        weights.map(|weight| weight * amplitudes.next().unwrap_or(1.0)).collect()
    }

    /// The same function with these coefficients, under another theta.
    pub(crate) fn with_coefficients(&self, transition: &Transition, coefficients: &[f64]) -> Self {
        let mut moved = self.clone();
        let mut weights = coefficients.iter().zip(amplitudes(transition)).map(|(value, sigma)| value / sigma);
        for (own, exact) in moved.weights.iter_mut().zip(&self.exact) {
            exact.iter().zip(&mut weights).for_each(|(&at, weight)| own[at] = weight);
        }
        moved
    }

    /// log |dw / d coefficients|.
    pub(crate) fn log_volume(&self, transition: &Transition) -> f64 {
        -amplitudes(transition).iter().map(|sigma| sigma.ln()).sum::<f64>()
    }

    /// log g(w | x, theta), up to a constant.
    pub(crate) fn log_density(
        &self,
        transition: &Transition,
        pairs: &Pairs,
    ) -> Result<f64, NotPositiveDefinite> {
        let mut total = 0.0;
        for (dims, weights) in transition.blocks().iter().zip(&self.weights) {
            if !weights.is_empty() {
                let (_, statistics) =
                    transition.statistics(dims, &self.choice, transition.noise_of(dims), pairs)?;
                total += statistics.log_density_of(weights)?;
            }
        }
        Ok(total)
    }

    /// log p(w) p(x_{1:T} | x_0, w, theta) where f is the finite basis itself, which is
    /// log p(x_{1:T} | x_0, theta) + log g(w | x, theta) up to a constant; None for an exact Gaussian process.
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
            values.iter().map(of_block).sum()
        };
        let of_weights = -0.5 * self.weights.iter().flatten().map(|w| w * w).sum::<f64>();
        let of_path = self.beyond_the_mean(transition, &pairs.points, None).map(density);
        Some(of_path.map(|of_path: f64| of_weights + of_path))
    }

    /// f - m and the noise at these points, and f - m at more of them.
    fn beyond_the_mean(
        &self,
        transition: &Transition,
        points: &Points,
        more: Option<&Points>,
    ) -> Result<Vec<BlockValues>, NotPositiveDefinite> {
        let of_block = |(dims, weights): (Vec<usize>, &Vec<f64>)| {
            let (p, noise) = (dims.len(), transition.noise_of(&dims));
            let n_more = more.map_or(0, Points::len);
            let (mut f, mut extra, mut chol) = (Vec::new(), Vec::new(), Vec::new());
            if weights.is_empty() {
                f.resize((points.len() + n_more) * p, 0.0);
                let mut own = noise;
                if !small::cholesky(&mut own, p) {
                    return Err(NotPositiveDefinite { order: p, index: 0 });
                }
                (0..points.len()).for_each(|_| chol.extend_from_slice(&own));
            } else {
                let design: Design = transition.design_of(&dims, &self.choice, noise)?;
                design.values(points, weights, &mut f, &mut extra);
                design.noise_factors(&extra, &mut chol)?;
                if let Some(more) = more {
                    let mut own = Vec::new();
                    design.means(more, weights, &mut own);
                    f.extend(own);
                }
            }
            Ok(BlockValues { dims, f, chol })
        };
        transition.blocks().into_iter().zip(&self.weights).map(of_block).collect()
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

/// Amplitudes of the linear and constant parts of what is learned, block by block.
fn amplitudes(transition: &Transition) -> Vec<f64> {
    let learned = transition.blocks().into_iter().filter(|dims| !transition.is_known(dims));
    let of_kernel = |kernel: &Kernel| {
        let exact = without_exact_parts(kernel).0;
        exact.exact_features().map(|(_, sigma)| sigma).collect::<Vec<_>>()
    };
    learned.flat_map(|dims| transition.kernels_of(&dims)).flat_map(|kernel| of_kernel(&kernel)).collect()
}
