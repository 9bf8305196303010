//! Paths that are simulated together, each with ONE function that it keeps.
//!
//! An exact Gaussian process is drawn along the path: each step is conditioned on the training pairs of the draw and
//! on the values drawn before on the same path. The training factor L is shared by all paths; a path keeps, for
//! each of its own rows, g = L^{-1} k(Z, z) and its row of the factor of what the training pairs leave open,
//!
//! ```text
//! C_ij = k(z_i, z_j) - g_i . g_j  (+ Q within one step)
//! ```
//!
//! With process noise the rows are the noisy states, f integrated out; without it they are values of f itself. A value
//! whose variance is below 1e-10 of its prior variance is determined by those before it (a path that comes to
//! rest meets the same input again and again): it is set to its mean and adds no row. A finite basis has one draw of
//! the weights for each path; what FIC leaves unexplained is drawn afresh at each step.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::function::{BlockPosterior, FunctionPosterior, Kind, cross_columns, solve_transposed};
use crate::error::Error;
use crate::function::evaluate_all;
use crate::kernel::Scratch;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::simd::{Vectorised, dispatch, dot, dot_inline};
use crate::linalg::small;
use crate::points::Points;

/// Below this fraction of the prior variance a value is taken as determined.
const DETERMINED: f64 = 1e-10;

/// Paths given one draw; internal units.
pub(crate) struct PathBatch<'a> {
    posterior: &'a FunctionPosterior,
    n_paths: usize,
    blocks: Vec<BlockPaths>,
    means: Vec<f64>,
}

enum BlockPaths {
    Known,
    /// One set of weights for each path.
    Weights(Vec<Vec<f64>>),
    Exact(Vec<OwnRows>),
}

/// What a path adds to the training pairs.
#[derive(Default)]
struct OwnRows {
    points: Points,
    /// Dimension and point of each row.
    rows: Vec<(usize, usize)>,
    /// g of each row.
    g: Vec<f64>,
    /// Lower factor, packed by rows.
    factor: Vec<f64>,
    /// Whitened residuals.
    whitened: Vec<f64>,
}

impl<'a> PathBatch<'a> {
    /// `rngs` has one stream for each path; weights of finite bases are drawn from them.
    pub(crate) fn new<R: Rng>(posterior: &'a FunctionPosterior, rngs: &mut [R]) -> Self {
        let n_paths = rngs.len();
        let blocks = posterior.blocks.iter().map(|block| match &block.kind {
            Kind::Known => BlockPaths::Known,
            Kind::Exact { .. } => BlockPaths::Exact(
                (0..n_paths)
                    .map(|_| OwnRows {
                        points: Points::new(posterior.pairs.points.n_components()),
                        ..OwnRows::default()
                    })
                    .collect(),
            ),
            Kind::Basis { .. } => {
                BlockPaths::Weights(rngs.iter_mut().map(|rng| block.draw_weights(rng)).collect())
            }
        });
        let blocks = blocks.collect();
        Self { posterior, n_paths, blocks, means: Vec::new() }
    }

    /// Gives path `i` the weights of all finite-basis blocks that it has elsewhere.
    pub(crate) fn set_weights(&mut self, i: usize, weights: &[Vec<f64>]) {
        for (block, weights) in self.blocks.iter_mut().zip(weights) {
            if let BlockPaths::Weights(all) = block {
                all[i].clone_from(weights);
            }
        }
    }

    /// Moves every path one step on from `x` (path, dimension) under the input `u`; with process noise or
    /// without. Where `given` holds the next states they are taken, and conditioned on as noisy states.
    pub(crate) fn step<R: Rng>(
        &mut self,
        x: &[f64],
        u: &[f64],
        noise: bool,
        given: Option<&[f64]>,
        rngs: &mut [R],
        next: &mut [f64],
    ) -> Result<(), Error> {
        let transition = &self.posterior.space.transition;
        let n_x = transition.n_x();
        let mut z = Points::new(n_x + u.len());
        x.chunks_exact(n_x).for_each(|x| z.push_parts(x, u));
        evaluate_all(&transition.means, &z, &mut self.means);
        for (block, paths) in self.posterior.blocks.iter().zip(&mut self.blocks) {
            step_block(self.posterior, block, paths, &z, &self.means, noise, given, rngs, next)?;
        }
        for (d, of) in transition.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
            (0..self.n_paths).for_each(|i| next[i * n_x + d] = x[i * n_x + of]);
        }
        if let Some(given) = given {
            next.copy_from_slice(given);
        }
        Ok(())
    }
}

#[allow(clippy::too_many_arguments)]
fn step_block<R: Rng>(
    posterior: &FunctionPosterior,
    block: &BlockPosterior,
    paths: &mut BlockPaths,
    z: &Points,
    means: &[f64],
    noise: bool,
    given: Option<&[f64]>,
    rngs: &mut [R],
    next: &mut [f64],
) -> Result<(), Error> {
    let (n_x, p, dims) = (posterior.n_x(), block.dims.len(), &block.dims);
    match (&block.kind, paths) {
        (Kind::Exact { kernels, factor, whitened }, BlockPaths::Exact(paths)) => {
            let order = whitened.len();
            let (mut columns, mut scratch) = (Vec::new(), Scratch::default());
            let points = &posterior.pairs.points;
            let stride = cross_columns(kernels, points, z, 0..z.len(), &mut columns, &mut scratch);
            factor.solve(order, &mut columns, stride, p * z.len());
            let mut at = vec![0.0; z.n_components()];
            let mut own = Vec::new();
            for (i, path) in paths.iter_mut().enumerate() {
                z.get(i, &mut at);
                path.points.push(&at);
                let here = path.points.len() - 1;
                for a in 0..p {
                    let g = &columns[(i * p + a) * stride..][..order];
                    let kernel = &kernels[a];
                    own.resize(here + 1, 0.0);
                    kernel.row(&path.points, 0..here + 1, &at, &mut own, &mut scratch);
                    let noisy = noise || given.is_some();
                    let row =
                        path.row(a, here, g, &own, |b| if noisy { block.noise[a * p + b] } else { 0.0 });
                    let prior = kernel.diagonal(&at) + if noisy { block.noise[a * p + a] } else { 0.0 };
                    let variance = prior - dot(g, g) - dot(&row, &row);
                    let mean = means[i * n_x + dims[a]] + dot(g, whitened) + dot(&row, &path.whitened);
                    let at_next = i * n_x + dims[a];
                    if variance.is_nan() || variance <= DETERMINED * prior {
                        next[at_next] = mean;
                        continue;
                    }
                    let sd = variance.sqrt();
                    let deviate = match given {
                        Some(given) => (given[at_next] - mean) / sd,
                        None => rngs[i].sample::<f64, _>(StandardNormal),
                    };
                    next[at_next] = mean + sd * deviate;
                    path.rows.push((a, here));
                    path.g.extend_from_slice(g);
                    path.factor.extend_from_slice(&row);
                    path.factor.push(sd);
                    path.whitened.push(deviate);
                }
            }
        }
        (Kind::Basis { design, .. }, BlockPaths::Weights(weights)) => {
            let w = design.n_weights();
            let (mut rows, mut extra) = (Vec::new(), Vec::new());
            design.features(z, &mut rows, &mut extra);
            let chol = chol_noise(block)?;
            for (i, weights) in weights.iter().enumerate() {
                let own = add_noise(&chol, p, noise, &mut rngs[i]);
                for a in 0..p {
                    let unexplained: f64 = extra[i * p + a].sqrt() * rngs[i].sample::<f64, _>(StandardNormal);
                    let f = dot(&rows[(i * p + a) * w..][..w], weights) + unexplained;
                    next[i * n_x + dims[a]] = means[i * n_x + dims[a]] + f + own[a];
                }
            }
        }
        _ => {
            let chol = chol_noise(block)?;
            for (i, rng) in rngs.iter_mut().enumerate() {
                let own = add_noise(&chol, p, noise, rng);
                (0..p).for_each(|a| next[i * n_x + dims[a]] = means[i * n_x + dims[a]] + own[a]);
            }
        }
    }
    Ok(())
}

fn chol_noise(block: &BlockPosterior) -> Result<Vec<f64>, NotPositiveDefinite> {
    let p = block.dims.len();
    let mut chol = block.noise.clone();
    if small::cholesky(&mut chol, p) { Ok(chol) } else { Err(NotPositiveDefinite { order: p, index: 0 }) }
}

fn add_noise<R: Rng>(chol: &[f64], p: usize, noise: bool, rng: &mut R) -> Vec<f64> {
    let mut out = vec![0.0; p];
    if noise {
        let white: Vec<f64> = (0..p).map(|_| rng.sample(StandardNormal)).collect();
        small::multiply_lower(chol, p, &white, &mut out);
    }
    out
}

impl OwnRows {
    /// The row of the own factor that belongs to dimension `a` of the newest point: forward substitution.
    fn row(&self, a: usize, here: usize, g: &[f64], own: &[f64], noise: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut row: Vec<f64> = self
            .rows
            .iter()
            .map(|&(b, point)| {
                let same = if b == a { own[point] } else { 0.0 };
                same + if point == here { noise(b) } else { 0.0 }
            })
            .collect();
        dispatch(Substitute { g_rows: &self.g, g, factor: &self.factor, row: &mut row });
        row
    }
}

struct Substitute<'a> {
    g_rows: &'a [f64],
    g: &'a [f64],
    factor: &'a [f64],
    row: &'a mut [f64],
}

impl Vectorised for Substitute<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: pulp::Simd>(self, simd: S) {
        let order = self.g.len();
        let mut from = 0;
        for r in 0..self.row.len() {
            let shared = dot_inline(simd, &self.g_rows[r * order..(r + 1) * order], self.g);
            let before = &self.factor[from..from + r];
            let sum = self.row[r] - shared - dot_inline(simd, before, &self.row[..r]);
            self.row[r] = sum / self.factor[from + r];
            from += r + 1;
        }
    }
}

impl BlockPosterior {
    /// One draw of the weights given the pairs; empty without a finite basis.
    pub(crate) fn draw_weights<R: Rng + ?Sized>(&self, rng: &mut R) -> Vec<f64> {
        let Kind::Basis { factor, whitened, .. } = &self.kind else { return Vec::new() };
        let mut weights: Vec<f64> =
            whitened.iter().map(|b| b + rng.sample::<f64, _>(StandardNormal)).collect();
        solve_transposed(factor, &mut weights);
        weights
    }
}
