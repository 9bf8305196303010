//! The transition with numbers for all its parameters.

use rand::Rng;

use super::basis::collapsed::CollapsedBlock;
use super::basis::features::{BasisChoice, BasisError};
use super::basis::forward::ForwardBlock;
use super::basis::regression::{Design, Statistics};
use super::block::{Block, Pairs};
use super::exact::ExactBlock;
use super::markov::MarkovBlock;
use super::path_density::{PathDensityWork, log_marginal_likelihood};
use crate::function::{ScalarFunction, evaluate_all};
use crate::kernel::Kernel;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::small;
use crate::points::Points;

/// Process noise v ~ N(0, Q).
#[derive(Clone, Debug, PartialEq)]
pub enum ProcessNoise {
    /// Variances of independent components.
    Diagonal(Vec<f64>),
    /// Covariance matrix, row-major.
    Full(Vec<f64>),
}

/// x_{t+1} = f(x_t, u_t) + v_t with f_d ~ GP(m_d, k_d), independent over the state dimensions d (eq. 2).
///
/// A dimension whose kernel is [`Kernel::zero`] has the known transition m_d. If all have, this is the
/// parametric model x' = h(x, u) + v.
#[derive(Clone, Debug)]
pub struct Transition {
    /// k_d.
    pub kernels: Vec<Kernel>,
    /// m_d.
    pub means: Vec<ScalarFunction>,
    /// Q; rows of lags are not used.
    pub noise: ProcessNoise,
    /// For a state that copies another one step before: that other state.
    pub lags: Vec<Option<usize>>,
    /// The prior over f that the kernels stand for.
    pub prior: FunctionPrior,
}

/// Which prior over functions a kernel stands for.
#[derive(Clone, Debug, Default)]
pub enum FunctionPrior {
    /// The Gaussian process itself.
    #[default]
    Exact,
    /// A finite basis in its place, weights integrated out.
    Collapsed(BasisChoice),
    /// A finite basis with one draw of the weights of each block, in the order of the blocks.
    Sampled(BasisChoice, Vec<Vec<f64>>),
}

impl Kernel {
    /// Whether this is the kernel of a known function.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Sum(parts) if parts.is_empty())
    }
}

impl Transition {
    /// Number of states.
    pub fn n_x(&self) -> usize {
        self.kernels.len()
    }

    /// Process noise covariance of some dimensions, row-major.
    pub(crate) fn noise_of(&self, dims: &[usize]) -> Vec<f64> {
        let n_x = self.n_x();
        let entry = |a: usize, b: usize| match &self.noise {
            ProcessNoise::Diagonal(variances) => {
                if a == b {
                    variances[a]
                } else {
                    0.0
                }
            }
            ProcessNoise::Full(covariance) => covariance[a * n_x + b],
        };
        dims.iter().flat_map(|&a| dims.iter().map(move |&b| entry(a, b))).collect()
    }

    /// The whole matrix Q, row-major.
    pub fn noise_covariance(&self) -> Vec<f64> {
        self.noise_of(&(0..self.n_x()).collect::<Vec<_>>())
    }

    /// State dimensions that are not lags.
    pub(crate) fn moving(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.n_x()).filter(|&d| self.lags[d].is_none())
    }

    /// How many steps back the oldest lag looks.
    pub fn memory(&self) -> usize {
        let depth = |d: usize| std::iter::successors(self.lags[d], |&of| self.lags[of]).count();
        (0..self.n_x()).map(depth).max().unwrap_or(0)
    }

    /// State dimensions that share one factor: each on its own if Q is diagonal, all together otherwise.
    pub(crate) fn blocks(&self) -> Vec<Vec<usize>> {
        match self.noise {
            ProcessNoise::Full(_) => vec![self.moving().collect()],
            ProcessNoise::Diagonal(_) => {
                let (known, unknown): (Vec<_>, Vec<_>) =
                    self.moving().partition(|&d| self.kernels[d].is_zero());
                let known = (!known.is_empty()).then_some(known);
                unknown.into_iter().map(|d| vec![d]).chain(known).collect()
            }
        }
    }

    pub(crate) fn kernels_of(&self, dims: &[usize]) -> Vec<Kernel> {
        dims.iter().map(|&d| self.kernels[d].clone()).collect()
    }

    pub(crate) fn is_known(&self, dims: &[usize]) -> bool {
        dims.iter().all(|&d| self.kernels[d].is_zero())
    }

    /// Whether a function is unknown, so that a particle costs more than its state.
    pub(crate) fn is_learned(&self) -> bool {
        self.kernels.iter().any(|kernel| !kernel.is_zero())
    }

    /// The priors of all dimensions, ready for one filter over a sequence of `length` transitions.
    pub(crate) fn populate(
        &self,
        length: usize,
        context: &Pairs,
        reference: Option<&Pairs>,
    ) -> Result<Vec<Box<dyn Block>>, NotPositiveDefinite> {
        let block = |(b, dims): (usize, Vec<usize>)| -> Result<Box<dyn Block>, NotPositiveDefinite> {
            let noise = self.noise_of(&dims);
            let memory = self.memory();
            if self.is_known(&dims) {
                return Ok(Box::new(MarkovBlock::known(&dims, &noise, memory)?));
            }
            let kernels = self.kernels_of(&dims);
            Ok(match (&self.prior, reference) {
                (FunctionPrior::Exact, _) => {
                    Box::new(ExactBlock::new(&dims, kernels, noise, length, memory, context, reference)?)
                }
                (FunctionPrior::Collapsed(choice), Some(reference)) => {
                    let design = design(&kernels, choice, noise)?;
                    Box::new(CollapsedBlock::new(&dims, design, memory, context, reference)?)
                }
                (FunctionPrior::Collapsed(choice), None) => {
                    Box::new(ForwardBlock::new(&dims, design(&kernels, choice, noise)?, context)?)
                }
                (FunctionPrior::Sampled(choice, weights), _) => {
                    let design = design(&kernels, choice, noise)?;
                    Box::new(MarkovBlock::drawn(&dims, design, weights[b].clone(), memory))
                }
            })
        };
        self.blocks().into_iter().enumerate().map(block).collect()
    }

    /// Pairs (z_s, x_{s+1} - m(z_s)) of a path; `x` is row-major with T + 1 rows, `u` gives u_s.
    pub(crate) fn pairs<'a>(&self, x: &[f64], u: impl Fn(usize) -> &'a [f64], n_u: usize) -> Pairs {
        let n_x = self.n_x();
        let mut pairs = Pairs { n_x, points: Points::new(n_x + n_u), residuals: Vec::new() };
        self.append_pairs(x, u, &mut pairs);
        pairs
    }

    /// Appends the pairs of another path.
    pub(crate) fn append_pairs<'a>(&self, x: &[f64], u: impl Fn(usize) -> &'a [f64], pairs: &mut Pairs) {
        let n_x = self.n_x();
        let from = pairs.points.len();
        let length = x.len() / n_x - 1;
        for s in 0..length {
            pairs.points.push_parts(&x[s * n_x..(s + 1) * n_x], u(s));
        }
        let own = pairs.points.tail(from);
        let mut means = Vec::new();
        evaluate_all(&self.means, &own, &mut means);
        pairs.residuals.extend(x[n_x..].iter().zip(&means).map(|(x, mean)| x - mean));
    }

    /// log p(x_{1:T} | x_0) of the dimensions `dims` (one of [`Self::blocks`]), eq. 4.
    pub(crate) fn log_density_of(
        &self,
        dims: &[usize],
        pairs: &Pairs,
        work: &mut PathDensityWork,
    ) -> Result<f64, NotPositiveDefinite> {
        let noise = self.noise_of(dims);
        if !self.is_known(dims) {
            return match &self.prior {
                FunctionPrior::Exact => {
                    log_marginal_likelihood(dims, &self.kernels_of(dims), &noise, pairs, work)
                }
                FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) => {
                    let design = design(&self.kernels_of(dims), choice, noise)?;
                    work.relative_jitter = work.relative_jitter.max(design.relative_jitter());
                    work.statistics.statistics(design, dims, pairs)?.log_marginal_likelihood()
                }
            };
        }
        let p = dims.len();
        let mut chol = noise;
        if !small::cholesky(&mut chol, p) {
            return Err(NotPositiveDefinite { order: p, index: 0 });
        }
        let mut residuals = pairs.select(dims);
        Ok(residuals.chunks_exact_mut(p).map(|residual| small::log_gaussian(&chol, p, residual)).sum())
    }

    /// The features of a block of dimensions.
    pub(crate) fn design_of(
        &self,
        dims: &[usize],
        choice: &BasisChoice,
        noise: Vec<f64>,
    ) -> Result<Design, NotPositiveDefinite> {
        design(&self.kernels_of(dims), choice, noise)
    }

    /// Features and statistics of a block over all pairs.
    pub(crate) fn statistics(
        &self,
        dims: &[usize],
        choice: &BasisChoice,
        noise: Vec<f64>,
        pairs: &Pairs,
    ) -> Result<(Design, Statistics), NotPositiveDefinite> {
        let design = design(&self.kernels_of(dims), choice, noise)?;
        let mut statistics = Statistics::new(design.n_weights());
        statistics.add(&design, dims, pairs, 0..pairs.points.len())?;
        Ok((design, statistics))
    }

    /// The same transition with the weights of a finite basis drawn given the pairs of all sequences; an
    /// exact Gaussian process stays as it is.
    pub(crate) fn with_drawn_weights<R: Rng + ?Sized>(
        &self,
        pairs: &Pairs,
        rng: &mut R,
    ) -> Result<Self, NotPositiveDefinite> {
        let mut drawn = self.clone();
        if let FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) = &self.prior {
            let weights = self.blocks().into_iter().map(|dims| {
                if self.is_known(&dims) {
                    return Ok(Vec::new());
                }
                self.statistics(&dims, choice, self.noise_of(&dims), pairs)?.1.draw_weights(rng)
            });
            drawn.prior = FunctionPrior::Sampled(choice.clone(), weights.collect::<Result<_, _>>()?);
        }
        Ok(drawn)
    }
}

/// The features of a block. A kernel that has none was refused with the model; what remains is numerical.
fn design(kernels: &[Kernel], choice: &BasisChoice, noise: Vec<f64>) -> Result<Design, NotPositiveDefinite> {
    Design::new(kernels, choice, noise).map_err(|error| match error {
        BasisError::Numerical(error) => error,
        BasisError::NoSpectralDensity { .. } => NotPositiveDefinite { order: 0, index: 0 },
    })
}
