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

use std::ops::Range;

use rand::Rng;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::proposal::{LISTED, Lookahead, Proposal, sample_gaussian};
use super::resampling::Resampling;
use super::weights::{draw_index, normalise};
use crate::dynamics::numerics::Numerics;
use crate::dynamics::population::Population;
use crate::dynamics::predictions::Predictions;
use crate::initial::BoundInitial;
use crate::linalg::dense::NotPositiveDefinite;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::adapter::{Adapted, Adapter};
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
}

/// The particle filter, f integrated out.
pub fn particle_filter<R: Rng>(
    model: &StateSpace,
    sequence: &Sequence,
    shared: &SharedPairs,
    options: FilterOptions,
    rng: &mut R,
) -> Result<FilterOutcome, FilterError> {
    run(model, sequence, shared, options, None, rng)
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
    run(model, sequence, shared, options, Some(x_ref), rng)
}

fn run<R: Rng>(
    model: &StateSpace,
    sequence: &Sequence,
    shared: &SharedPairs,
    options: FilterOptions,
    x_ref: Option<&[f64]>,
    rng: &mut R,
) -> Result<FilterOutcome, FilterError> {
    let n_x = model.transition.n_x();
    let inputs: Vec<Vec<f64>> = (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
    let reference = x_ref.map(|x| model.transition.pairs(x, |s| sequence.u(s), sequence.n_u()));
    let population = Population::new(&model.transition, &inputs, &shared.0, reference.as_ref())?;
    let linear = model.sensor.as_linear_gaussian().is_some();
    let adapted = linear && matches!(options.proposal, Proposal::Auto | Proposal::Adapted);
    let listed = match options.proposal {
        Proposal::Shortlist => true,
        Proposal::Auto => !linear && model.transition.is_learned(),
        Proposal::Bootstrap | Proposal::Adapted => false,
    };
    let mut pass = Pass {
        model,
        sequence,
        options,
        x_ref,
        adapted,
        listed,
        n_x,
        population,
        weights: vec![1.0 / options.n_particles as f64; options.n_particles],
        log_marginal_likelihood: 0.0,
        states: vec![0.0; sequence.n_rows() * options.n_particles * n_x],
        ancestors: vec![0; sequence.length() * options.n_particles],
        predictions: Predictions::default(),
        z: Points::new(n_x + sequence.n_u()),
        ancestor_weights: Vec::new(),
        list: Vec::new(),
        list_weights: Vec::new(),
    };
    pass.start(rng)?;
    for t in 1..sequence.n_rows() {
        pass.step(t, rng)?;
    }
    let last = draw_index(&pass.weights, rng);
    Ok(FilterOutcome {
        path: pass.trace(last),
        log_marginal_likelihood: pass.log_marginal_likelihood,
        numerics: pass.population.numerics(),
    })
}

/// Makes `weights` p(y_t | x_t) of the states `x`, normalised, and returns the log of their mean; none if all are zero. A state
/// that is not finite gets weight zero.
fn weights_of(
    model: &StateSpace,
    sequence: &Sequence,
    t: usize,
    x: &[f64],
    z: &mut Points,
    weights: &mut [f64],
) -> Option<f64> {
    let n_x = model.transition.n_x();
    z.set_states(x, n_x, sequence.u(t));
    weights.fill(0.0);
    model.sensor.add_log_density(sequence.y(t), z, weights);
    for (weight, x) in weights.iter_mut().zip(x.chunks_exact(n_x)) {
        if x.iter().any(|x| !x.is_finite()) {
            *weight = f64::NEG_INFINITY;
        }
    }
    normalise(weights)
}

struct Pass<'a> {
    model: &'a StateSpace,
    sequence: &'a Sequence,
    options: FilterOptions,
    x_ref: Option<&'a [f64]>,
    adapted: bool,
    listed: bool,
    n_x: usize,
    population: Population<'a>,
    /// Normalised w_t.
    weights: Vec<f64>,
    log_marginal_likelihood: f64,
    /// States (t, particle, dimension) and ancestors (t - 1, particle).
    states: Vec<f64>,
    ancestors: Vec<usize>,
    /// Room for one step.
    predictions: Predictions,
    z: Points,
    ancestor_weights: Vec<f64>,
    list: Vec<f64>,
    list_weights: Vec<f64>,
}

impl Pass<'_> {
    /// Particles whose states are drawn; the reference comes last.
    fn n_free(&self) -> usize {
        self.options.n_particles - usize::from(self.x_ref.is_some())
    }

    fn adapter(&self, t: usize) -> Result<Option<Adapter>, FilterError> {
        let sensor = self.model.sensor.as_linear_gaussian().filter(|_| self.adapted);
        match sensor.map(|sensor| Adapter::new(sensor, self.sequence.y(t), self.sequence.u(t))) {
            Some(None) => Err(NotPositiveDefinite { order: self.sequence.n_y(), index: 0 }.into()),
            adapter => Ok(adapter.flatten()),
        }
    }

    /// Where the states of generation `t` stand.
    fn generation(&self, t: usize) -> Range<usize> {
        let size = self.options.n_particles * self.n_x;
        t * size..(t + 1) * size
    }

    fn pin_reference(&mut self, t: usize) {
        if let Some(x_ref) = self.x_ref {
            let at = self.generation(t).end - self.n_x;
            self.states[at..at + self.n_x].copy_from_slice(&x_ref[t * self.n_x..(t + 1) * self.n_x]);
        }
    }

    fn dead(&self, t: usize) -> FilterError {
        FilterError::AllWeightsZero { t, n_particles: self.options.n_particles }
    }

    /// Generation 0: from p(x_0 | y_0) where that is Gaussian, otherwise from p(x_0) with w_0 = p(y_0 | x_0).
    fn start<R: Rng>(&mut self, rng: &mut R) -> Result<(), FilterError> {
        let generation = self.generation(0);
        let mut conditioned = None;
        if let (Some(mut adapter), BoundInitial::Gaussian { mean, chol }) =
            (self.adapter(0)?, &self.model.initial)
        {
            let mut posterior = Adapted::default();
            if !adapter.condition(mean, chol, &mut posterior) {
                return Err(self.dead(0));
            }
            conditioned = Some(posterior);
        }
        let (n_free, n_x) = (self.n_free(), self.n_x);
        for x in self.states[generation.clone()].chunks_exact_mut(n_x).take(n_free) {
            match &conditioned {
                Some(posterior) => sample_gaussian(&posterior.mean, &posterior.chol, rng, x),
                None => self.model.initial.sample(rng, x),
            }
        }
        self.pin_reference(0);
        match conditioned {
            Some(posterior) => self.log_marginal_likelihood += posterior.log_marginal_likelihood,
            None => self.weigh(0)?,
        }
        self.population.start(&self.states[generation]);
        Ok(())
    }

    /// w_t = p(y_t | x_t), normalised.
    fn weigh(&mut self, t: usize) -> Result<(), FilterError> {
        let mut weights = std::mem::take(&mut self.weights);
        let generation = self.generation(t);
        let log_mean =
            weights_of(self.model, self.sequence, t, &self.states[generation], &mut self.z, &mut weights);
        self.weights = weights;
        self.log_marginal_likelihood += log_mean.ok_or_else(|| self.dead(t))?;
        Ok(())
    }

    /// The reference's ancestor, with probabilities w_{t-1} p(x~_{t:T} | path) (eq. 8).
    fn reference_ancestor<R: Rng>(
        &mut self,
        t: usize,
        x_ref: &[f64],
        rng: &mut R,
    ) -> Result<usize, FilterError> {
        let (sensor, sequence, n_x, z) = (&self.model.sensor, self.sequence, self.n_x, &mut self.z);
        let futures = self.population.log_future_density(x_ref, &mut |s, x, out| {
            z.set_states(x, n_x, sequence.u(s));
            sensor.add_log_density(sequence.y(s), z, out);
        });
        self.ancestor_weights.clear();
        self.ancestor_weights.extend(self.weights.iter().zip(futures).map(|(w, future)| w.ln() + future));
        normalise(&mut self.ancestor_weights).ok_or_else(|| self.dead(t))?;
        Ok(draw_index(&self.ancestor_weights, rng))
    }

    fn step<R: Rng>(&mut self, t: usize, rng: &mut R) -> Result<(), FilterError> {
        let (n, n_x) = (self.options.n_particles, self.n_x);
        let mut adapter = self.adapter(t)?;
        self.population.predict(&mut self.predictions);
        let lookahead = adapter.as_mut().map(|adapter| Lookahead::new(adapter, &self.predictions, n));
        let j = match self.x_ref {
            Some(x_ref) => Some(self.reference_ancestor(t, x_ref, rng)?),
            None => None,
        };
        if let Some(lookahead) = &lookahead {
            // Ancestors by v = w_{t-1} p(y_t | path).
            for (i, w) in self.weights.iter_mut().enumerate() {
                *w = w.ln() + lookahead.log_marginal_likelihood(i);
            }
            let log_mean = normalise(&mut self.weights).ok_or_else(|| self.dead(t))?;
            self.log_marginal_likelihood += log_mean + (n as f64).ln();
        }
        if self.listed && self.sequence.y(t).iter().any(|y| !y.is_nan()) {
            return self.take_from_list(t, j, rng);
        }
        let scheme = self.options.resampling.for_weights(&self.weights);
        let mut ancestors = match j {
            Some(j) => scheme.draw_given(&self.weights, n, j, rng),
            None => scheme.draw(&self.weights, n, rng),
        };
        let generation = self.generation(t);
        let predictions = &self.predictions;
        for (x, &a) in self.states[generation.clone()].chunks_exact_mut(n_x).zip(&ancestors) {
            match &lookahead {
                Some(lookahead) => lookahead.sample(a, rng, x),
                None => sample_gaussian(predictions.mean(a), predictions.chol(a), rng, x),
            }
        }
        if let (Some(j), Some(x_ref)) = (j, self.x_ref) {
            let own = self.reference_state(t, j, x_ref);
            self.states[generation.end - n_x..generation.end].copy_from_slice(&own);
        }
        ancestors.extend(j);
        if lookahead.is_some() {
            self.weights.fill(1.0 / n as f64);
        } else {
            self.weigh(t)?;
        }
        self.population.advance(&ancestors, &self.states[generation]);
        self.ancestors[(t - 1) * n..t * n].copy_from_slice(&ancestors);
        Ok(())
    }

    /// The reference's state as a child of particle `j`: its lags copy the past of its new ancestor.
    fn reference_state(&self, t: usize, j: usize, x_ref: &[f64]) -> Vec<f64> {
        let before = &self.states[self.generation(t - 1).start + j * self.n_x..][..self.n_x];
        let own = &x_ref[t * self.n_x..(t + 1) * self.n_x];
        let lags = self.model.transition.lags.iter();
        lags.zip(own).map(|(lag, own)| lag.map_or(*own, |of| before[of])).collect()
    }

    /// Many children of the particles, and from them by their weights the next generation, the reference among both.
    fn take_from_list<R: Rng>(&mut self, t: usize, j: Option<usize>, rng: &mut R) -> Result<(), FilterError> {
        let (n, n_x, resampling) = (self.options.n_particles, self.n_x, self.options.resampling);
        let n_listed = LISTED * n;
        let mut parents = match j {
            Some(j) => resampling.draw_given(&self.weights, n_listed, j, rng),
            None => resampling.draw(&self.weights, n_listed, rng),
        };
        let mut list = std::mem::take(&mut self.list);
        list.resize(n_listed * n_x, 0.0);
        for (x, &parent) in list.chunks_exact_mut(n_x).zip(&parents) {
            sample_gaussian(self.predictions.mean(parent), self.predictions.chol(parent), rng, x);
        }
        if let (Some(j), Some(x_ref)) = (j, self.x_ref) {
            list[(n_listed - 1) * n_x..].copy_from_slice(&self.reference_state(t, j, x_ref));
        }
        parents.extend(j);
        let mut weights = std::mem::take(&mut self.list_weights);
        weights.resize(n_listed, 0.0);
        let log_mean = weights_of(self.model, self.sequence, t, &list, &mut self.z, &mut weights);
        self.log_marginal_likelihood += log_mean.ok_or_else(|| self.dead(t))?;
        // Whether lines meet is a matter of parents.
        self.ancestor_weights.clear();
        self.ancestor_weights.resize(n, 0.0);
        parents.iter().zip(&weights).for_each(|(&parent, weight)| self.ancestor_weights[parent] += weight);
        let scheme = resampling.for_weights(&self.ancestor_weights);
        let mut taken = match j {
            Some(_) => scheme.draw_given(&weights, n, n_listed - 1, rng),
            None => scheme.draw(&weights, n, rng),
        };
        taken.extend(j.map(|_| n_listed - 1));
        let generation = self.generation(t);
        for (x, &i) in self.states[generation.clone()].chunks_exact_mut(n_x).zip(&taken) {
            x.copy_from_slice(&list[i * n_x..(i + 1) * n_x]);
        }
        let ancestors: Vec<usize> = taken.iter().map(|&i| parents[i]).collect();
        self.weights.fill(1.0 / n as f64);
        self.population.advance(&ancestors, &self.states[generation]);
        self.ancestors[(t - 1) * n..t * n].copy_from_slice(&ancestors);
        (self.list, self.list_weights) = (list, weights);
        Ok(())
    }

    /// The path that ends in particle `last`.
    fn trace(&self, last: usize) -> Vec<f64> {
        let (n, n_x) = (self.options.n_particles, self.n_x);
        let mut path = vec![0.0; self.states.len() / n];
        let mut i = last;
        for t in (0..path.len() / n_x).rev() {
            let from = self.generation(t).start + i * n_x;
            path[t * n_x..(t + 1) * n_x].copy_from_slice(&self.states[from..from + n_x]);
            if t > 0 {
                i = self.ancestors[(t - 1) * n + i];
            }
        }
        path
    }
}
