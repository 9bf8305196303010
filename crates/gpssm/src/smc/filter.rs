//! One pass of a particle filter over one sequence.
//!
//! Without a reference: the particle filter of section 3.2 of the paper, with its evidence estimate. With
//! a reference path: the conditional particle filter with ancestor sampling (CPF-AS), whose new path leaves
//! p(x_{0:T} | theta, y_{0:T}) invariant for any number of particles from two on (section 3.3, Algorithm 1,
//! steps b and c).
//!
//! With a shortlist every step is two of such a filter: from N particles to many by the transition, and by their weights from
//! these to N, each a copy of one of them. The number of particles may differ from step to step, and the reference
//! can only be a copy of itself. So everything said of the filter and of CPF-AS holds.

use rand::Rng;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::children::Children;
use super::pass::Pass;
use super::proposal::Proposal;
use super::resampling::Resampling;
use super::weights::draw_index;
use crate::dynamics::numerics::Numerics;
use crate::dynamics::population::Population;
use crate::linalg::dense::NotPositiveDefinite;
use crate::record::Sequence;
use crate::state_space::{SharedPairs, StateSpace};

/// How a filter is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterOptions {
    /// Particles, the reference included; at least two.
    pub n_particles: usize,
    /// How ancestors are drawn.
    pub resampling: Resampling,
    /// How states are proposed.
    pub proposal: Proposal,
}

impl FilterOptions {
    /// `n_particles` particles, everything else by default.
    pub fn new(n_particles: usize) -> Self {
        Self { n_particles, resampling: Resampling::default(), proposal: Proposal::default() }
    }
}

/// Why a filter could not finish. A sweep that fails keeps its old path and is counted.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// Every particle has weight zero.
    #[error("all {n_particles} particles have weight zero at t = {t}")]
    AllWeightsZero {
        /// When.
        t: usize,
        /// How many.
        n_particles: usize,
    },
    /// A covariance is not positive definite.
    #[error("{0}")]
    Numerical(#[from] NotPositiveDefinite),
}

/// The path that was drawn, and what the pass says of the data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilterOutcome {
    /// One path x_{0:T}, row-major (t, d), drawn with the final weights.
    pub path: Vec<f64>,
    /// Estimate of log p(y_{0:T}); its exponential is unbiased without a reference.
    pub log_marginal_likelihood: f64,
    /// Where the arithmetic met its limits.
    pub numerics: Numerics,
    /// Children for one effective draw at each row; empty without shortlists.
    pub(crate) scarcity: Vec<f64>,
}

/// The particle filter, f integrated out.
pub fn particle_filter<R: Rng>(
    model: &StateSpace,
    sequence: &Sequence,
    shared: &SharedPairs,
    options: FilterOptions,
    rng: &mut R,
) -> Result<FilterOutcome, FilterError> {
    run(model, sequence, shared, options, &Children::default(), None, rng)
}

/// The conditional particle filter with ancestor sampling: one update of the path given the old one.
///
/// Random numbers are used in this order: the states of generation 0 (the reference's excepted); then for
/// each t the reference's ancestor, the other ancestors, the other states; last the index of the new path.
pub fn conditional_filter<R: Rng>(
    model: &StateSpace,
    sequence: &Sequence,
    shared: &SharedPairs,
    options: FilterOptions,
    x_ref: &[f64],
    rng: &mut R,
) -> Result<FilterOutcome, FilterError> {
    conditional_filter_with(model, sequence, shared, options, &Children::default(), x_ref, rng)
}

/// The same with a number of children for each row, where there are shortlists. Exact for any numbers that do not depend
/// on the path.
pub fn conditional_filter_with<R: Rng>(
    model: &StateSpace,
    sequence: &Sequence,
    shared: &SharedPairs,
    options: FilterOptions,
    children: &Children,
    x_ref: &[f64],
    rng: &mut R,
) -> Result<FilterOutcome, FilterError> {
    run(model, sequence, shared, options, children, Some(x_ref), rng)
}

fn run<R: Rng>(
    model: &StateSpace,
    sequence: &Sequence,
    shared: &SharedPairs,
    options: FilterOptions,
    children: &Children,
    x_ref: Option<&[f64]>,
    rng: &mut R,
) -> Result<FilterOutcome, FilterError> {
    let inputs: Vec<Vec<f64>> = (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
    let reference = x_ref.map(|x| model.transition.pairs(x, |s| sequence.u(s), sequence.n_u()));
    let population = Population::new(&model.transition, &inputs, &shared.0, reference.as_ref())?;
    let mut pass = Pass::new(model, sequence, options, children, x_ref, population);
    pass.start(rng)?;
    for t in 1..sequence.n_rows() {
        pass.step(t, rng)?;
    }
    let last = draw_index(pass.weights(), rng);
    Ok(pass.finish(last))
}
