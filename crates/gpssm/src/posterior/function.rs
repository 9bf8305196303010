//! The posterior of f given one draw (theta, x_{0:T}): standard GP regression, eq. 12 of the paper.
//!
//! For an exact Gaussian process the posterior is the factor of K~ over the path's pairs; for a finite basis it is
//! the factor of I + A of the weights. Both are made once and evaluated at many points at matrix speed.

use crate::dynamics::basis::regression::Design;
use crate::dynamics::block::Pairs;
use crate::dynamics::path_density::fill_covariance;
use crate::dynamics::transition::FunctionPrior;
use crate::error::Error;
use crate::function::evaluate_all;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::Dense;
use crate::linalg::panels::{HEIGHT, TriangularPanels, padded};
use crate::linalg::simd::dot;
use crate::model::compile::Problem;
use crate::points::Points;
use crate::state_space::{SharedPairs, StateSpace};

/// Points that are solved for at one time: their columns stay in the cache beside the factor.
const CHUNK: usize = 96;

/// f given one draw. Everything here is in internal units.
#[derive(Clone, Debug)]
pub(crate) struct FunctionPosterior {
    pub space: StateSpace,
    /// Pairs (z_s, x_{s+1} - m(z_s)) of all sequences.
    pub pairs: Pairs,
    pub blocks: Vec<BlockPosterior>,
}

/// State dimensions whose functions are learned together.
#[derive(Clone, Debug)]
pub(crate) struct BlockPosterior {
    pub dims: Vec<usize>,
    /// Process noise covariance of these dimensions, row-major.
    pub noise: Vec<f64>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// f = m.
    Known,
    /// The Gaussian process itself.
    Exact {
        kernels: Vec<Kernel>,
        /// L of K~ = L L', rows ordered (pair, dimension).
        factor: TriangularPanels,
        /// L^{-1} r.
        whitened: Vec<f64>,
    },
    /// A finite basis.
    Basis {
        design: Design,
        /// L of I + A = L L'.
        factor: TriangularPanels,
        /// L^{-1} b.
        whitened: Vec<f64>,
    },
}

/// Means (point, dimension) and covariances (point, dimension, dimension), of f or of the next state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    pub mean: Vec<f64>,
    pub covariance: Vec<f64>,
}

fn panels(dense: &Dense) -> TriangularPanels {
    let mut factor = TriangularPanels::with_capacity(dense.order());
    factor.extend_from(dense, dense.order());
    factor
}

/// `x <- L^{-T} x`.
pub(crate) fn solve_transposed(factor: &TriangularPanels, x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        let panel = factor.panel(i / HEIGHT);
        let lane = i % HEIGHT;
        let value = x[i] / factor.diagonal(i);
        x[i] = value;
        for (x, column) in x[..i].iter_mut().zip(panel.chunks_exact(HEIGHT)) {
            *x -= column[lane] * value;
        }
    }
}

impl FunctionPosterior {
    /// From theta and the paths of all sequences, both in original units.
    pub(crate) fn new(problem: &Problem, theta: &[f64], paths: &[Vec<f64>]) -> Result<Self, Error> {
        let space = problem.bind(theta);
        let transition = &space.transition;
        let mut shared = SharedPairs::none(problem.n_x(), problem.model().n_u);
        for (path, sequence) in paths.iter().zip(problem.sequences()) {
            shared.add(transition, &problem.path_to_internal(path), sequence);
        }
        Self::from_pairs(space, shared.0)
    }

    /// Given pairs; without any this is the prior of f.
    pub(crate) fn from_pairs(space: StateSpace, mut pairs: Pairs) -> Result<Self, Error> {
        let transition = &space.transition;
        if matches!(transition.prior, FunctionPrior::Exact) {
            Kernel::precompute(&transition.kernels, &mut pairs.points);
        }
        let (q, n_x) = (transition.noise_covariance(), transition.n_x());
        let block = |dims: Vec<usize>| -> Result<BlockPosterior, Error> {
            let noise: Vec<f64> = dims
                .iter()
                .flat_map(|&a| dims.iter().map(move |&b| (a, b)))
                .map(|(a, b)| q[a * n_x + b])
                .collect();
            let kernels: Vec<Kernel> = dims.iter().map(|&d| transition.kernels[d].clone()).collect();
            let kind = if kernels.iter().all(Kernel::is_zero) {
                Kind::Known
            } else {
                match &transition.prior {
                    FunctionPrior::Exact => exact(kernels, &noise, &dims, &pairs)?,
                    FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) => {
                        let (design, mut statistics) =
                            transition.statistics(&dims, choice, noise.clone(), &pairs)?;
                        statistics.gram.factor()?;
                        statistics.gram.solve_lower(&mut statistics.b, 1);
                        Kind::Basis { design, factor: panels(&statistics.gram), whitened: statistics.b }
                    }
                }
            };
            Ok(BlockPosterior { dims, noise, kind })
        };
        let blocks = transition.blocks().into_iter().map(block).collect::<Result<_, _>>()?;
        Ok(Self { space, pairs, blocks })
    }

    pub(crate) fn n_x(&self) -> usize {
        self.space.transition.n_x()
    }

    /// p(f(z)) at every point, or p(x' | z) = p(f(z)) + Q with `with_noise`.
    pub(crate) fn evaluate(&self, z: &Points, with_noise: bool, out: &mut Moments) {
        let (n_x, n) = (self.n_x(), z.len());
        let transition = &self.space.transition;
        evaluate_all(&transition.means, z, &mut out.mean);
        for (d, of) in transition.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
            (0..n).for_each(|i| out.mean[i * n_x + d] = z.column(of)[i]);
        }
        out.covariance.clear();
        out.covariance.resize(n * n_x * n_x, 0.0);
        for block in &self.blocks {
            block.add(&self.pairs, z, n_x, with_noise, out);
        }
    }
}

impl FunctionPosterior {
    /// E[f(z)] at every point, (point, dimension): O(n) each, where [`FunctionPosterior::evaluate`] needs O(n^2).
    pub(crate) fn means(&self, z: &Points) -> Vec<f64> {
        let (n_x, n) = (self.n_x(), z.len());
        let transition = &self.space.transition;
        let mut means = Vec::new();
        evaluate_all(&transition.means, z, &mut means);
        for (d, of) in transition.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
            (0..n).for_each(|i| means[i * n_x + d] = z.column(of)[i]);
        }
        for block in &self.blocks {
            let p = block.dims.len();
            match &block.kind {
                Kind::Known => {}
                Kind::Exact { kernels, factor, whitened } => {
                    let mut coefficients = whitened.clone();
                    solve_transposed(factor, &mut coefficients);
                    let own: Vec<Vec<f64>> =
                        (0..p).map(|a| coefficients.iter().skip(a).step_by(p).copied().collect()).collect();
                    let (mut row, mut scratch) = (vec![0.0; self.pairs.points.len()], Scratch::default());
                    let mut at = vec![0.0; z.n_components()];
                    for i in 0..n {
                        z.get(i, &mut at);
                        for (a, &d) in block.dims.iter().enumerate() {
                            kernels[a].row(&self.pairs.points, 0..row.len(), &at, &mut row, &mut scratch);
                            means[i * n_x + d] += dot(&row, &own[a]);
                        }
                    }
                }
                Kind::Basis { design, factor, whitened } => {
                    let mut weights = whitened.clone();
                    solve_transposed(factor, &mut weights);
                    let w = design.n_weights();
                    let (mut rows, mut extra) = (Vec::new(), Vec::new());
                    design.features(z, &mut rows, &mut extra);
                    for i in 0..n {
                        for (a, &d) in block.dims.iter().enumerate() {
                            means[i * n_x + d] += dot(&rows[(i * p + a) * w..][..w], &weights);
                        }
                    }
                }
            }
        }
        means
    }

    /// Mean and covariance of f_d at all points together, row-major. What FIC draws afresh at each point is left out.
    pub(crate) fn joint(&self, z: &Points, d: usize) -> (Vec<f64>, Vec<f64>) {
        let (n_x, n) = (self.n_x(), z.len());
        let mut means = Vec::new();
        evaluate_all(&self.space.transition.means, z, &mut means);
        let mut mean: Vec<f64> = means.iter().skip(d).step_by(n_x).copied().collect();
        let mut covariance = vec![0.0; n * n];
        let Some((block, a)) =
            self.blocks.iter().find_map(|b| Some((b, b.dims.iter().position(|&e| e == d)?)))
        else {
            return (mean, covariance);
        };
        let p = block.dims.len();
        let (columns, stride, whitened, prior) = match &block.kind {
            Kind::Known => return (mean, covariance),
            Kind::Exact { kernels, factor, whitened } => {
                let mut columns = Vec::new();
                let mut scratch = Scratch::default();
                let stride = cross_columns(kernels, &self.pairs.points, z, 0..n, &mut columns, &mut scratch);
                factor.solve(whitened.len(), &mut columns, stride, p * n);
                (columns, stride, whitened, Some(kernels[a].matrix(z, z)))
            }
            Kind::Basis { design, factor, whitened } => {
                let (w, stride) = (design.n_weights(), padded(design.n_weights()));
                let (mut rows, mut extra) = (Vec::new(), Vec::new());
                design.features(z, &mut rows, &mut extra);
                let mut columns = vec![0.0; stride * p * n];
                for (column, row) in columns.chunks_exact_mut(stride).zip(rows.chunks_exact(w.max(1))) {
                    column[..w].copy_from_slice(row);
                }
                factor.solve(w, &mut columns, stride, p * n);
                (columns, stride, whitened, None)
            }
        };
        let column = |i: usize| &columns[(i * p + a) * stride..][..whitened.len()];
        for i in 0..n {
            mean[i] += dot(column(i), whitened);
            for k in 0..n {
                let product = dot(column(i), column(k));
                covariance[i * n + k] = prior.as_ref().map_or(product, |prior| prior[i * n + k] - product);
            }
        }
        (mean, covariance)
    }
}

fn exact(kernels: Vec<Kernel>, noise: &[f64], dims: &[usize], pairs: &Pairs) -> Result<Kind, Error> {
    let mut dense = Dense::default();
    fill_covariance(&kernels, noise, &pairs.points, &mut dense, &mut Scratch::default());
    dense.factor()?;
    let mut whitened = pairs.select(dims);
    dense.solve_lower(&mut whitened, 1);
    Ok(Kind::Exact { kernels, factor: panels(&dense), whitened })
}

/// Columns K(Z, z) of points `range` of `z`, one for each dimension of the block, `stride` apart.
pub(crate) fn cross_columns(
    kernels: &[Kernel],
    training: &Points,
    z: &Points,
    range: std::ops::Range<usize>,
    columns: &mut Vec<f64>,
    scratch: &mut Scratch,
) -> usize {
    let (p, n) = (kernels.len(), training.len());
    let stride = padded(n * p);
    // A single dimension fills its columns; several leave zeros between their numbers.
    if p > 1 {
        columns.clear();
    }
    columns.resize(stride * p * range.len(), 0.0);
    let mut at = vec![0.0; z.n_components()];
    let mut row = vec![0.0; n];
    for (i, point) in range.enumerate() {
        z.get(point, &mut at);
        for (a, kernel) in kernels.iter().enumerate() {
            let column = &mut columns[(i * p + a) * stride..][..stride];
            if p == 1 {
                kernel.row(training, 0..n, &at, column, scratch);
            } else {
                kernel.row(training, 0..n, &at, &mut row, scratch);
                row.iter().enumerate().for_each(|(s, value)| column[s * p + a] = *value);
            }
        }
    }
    stride
}

impl BlockPosterior {
    fn add(&self, pairs: &Pairs, z: &Points, n_x: usize, with_noise: bool, out: &mut Moments) {
        let p = self.dims.len();
        let mut set = |i: usize, a: usize, b: usize, value: f64| {
            let noise = if with_noise { self.noise[a * p + b] } else { 0.0 };
            let (row, column) = (self.dims[a], self.dims[b]);
            out.covariance[(i * n_x + row) * n_x + column] = value + noise;
            out.covariance[(i * n_x + column) * n_x + row] = value + noise;
        };
        let (mut columns, mut extra) = (Vec::new(), Vec::new());
        let mut scratch = Scratch::default();
        let mut at = vec![0.0; z.n_components()];
        for from in (0..z.len()).step_by(CHUNK) {
            let to = z.len().min(from + CHUNK);
            match &self.kind {
                Kind::Known => {
                    for i in from..to {
                        (0..p).for_each(|a| (0..=a).for_each(|b| set(i, a, b, 0.0)));
                    }
                }
                Kind::Exact { kernels, factor, whitened } => {
                    let order = whitened.len();
                    let stride =
                        cross_columns(kernels, &pairs.points, z, from..to, &mut columns, &mut scratch);
                    factor.solve(order, &mut columns, stride, p * (to - from));
                    for i in from..to {
                        let column = |a: usize| &columns[((i - from) * p + a) * stride..][..order];
                        z.get(i, &mut at);
                        for a in 0..p {
                            out.mean[i * n_x + self.dims[a]] += dot(column(a), whitened);
                            for b in 0..a {
                                set(i, a, b, -dot(column(a), column(b)));
                            }
                            let left = kernels[a].diagonal(&at) - dot(column(a), column(a));
                            set(i, a, a, left.max(0.0));
                        }
                    }
                }
                Kind::Basis { design, factor, whitened } => {
                    let w = design.n_weights();
                    let mut part = Points::new(z.n_components());
                    for i in from..to {
                        z.get(i, &mut at);
                        part.push(&at);
                    }
                    let mut rows = Vec::new();
                    design.features(&part, &mut rows, &mut extra);
                    let stride = padded(w);
                    columns.clear();
                    columns.resize(stride * p * (to - from), 0.0);
                    for (column, row) in columns.chunks_exact_mut(stride).zip(rows.chunks_exact(w.max(1))) {
                        column[..w].copy_from_slice(row);
                    }
                    factor.solve(w, &mut columns, stride, p * (to - from));
                    for i in from..to {
                        let column = |a: usize| &columns[((i - from) * p + a) * stride..][..w];
                        for a in 0..p {
                            out.mean[i * n_x + self.dims[a]] += dot(column(a), whitened);
                            for b in 0..a {
                                set(i, a, b, dot(column(a), column(b)));
                            }
                            set(i, a, a, dot(column(a), column(a)) + extra[(i - from) * p + a]);
                        }
                    }
                }
            }
        }
    }
}
