//! The steps of one pass of a filter, all particles at once.

use std::ops::Range;

use rand::Rng;

use super::children::{Children, draws_for_one};
use super::filter::{FilterError, FilterOptions, FilterOutcome};
use super::proposal::{Lookahead, Proposal, sample_gaussian};
use super::shortlist::Shortlist;
use super::weights::{draw_index, normalise};
use crate::dynamics::population::Population;
use crate::dynamics::predictions::Predictions;
use crate::initial::BoundInitial;
use crate::linalg::dense::NotPositiveDefinite;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::adapter::{Adapted, Adapter};
use crate::state_space::StateSpace;

/// One pass over a sequence, at some step.
pub(super) struct Pass<'a> {
    model: &'a StateSpace,
    sequence: &'a Sequence,
    options: FilterOptions,
    x_ref: Option<&'a [f64]>,
    adapted: bool,
    listed: bool,
    children: &'a Children,
    /// Children for one effective draw at each row, where there are lists.
    scarcity: Vec<f64>,
    n_x: usize,
    population: Population<'a>,
    /// Normalised w_t, and their logarithms.
    weights: Vec<f64>,
    log_weights: Vec<f64>,
    log_marginal_likelihood: f64,
    /// States (t, particle, dimension) and ancestors (t - 1, particle).
    states: Vec<f64>,
    ancestors: Vec<usize>,
    /// Room for one step.
    predictions: Predictions,
    lookahead: Lookahead,
    list: Shortlist,
    z: Points,
    parents: Vec<usize>,
    ancestor_weights: Vec<f64>,
    own: Vec<f64>,
    room: Vec<f64>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        model: &'a StateSpace,
        sequence: &'a Sequence,
        options: FilterOptions,
        children: &'a Children,
        x_ref: Option<&'a [f64]>,
        population: Population<'a>,
    ) -> Self {
        let (n, n_x, n_u) = (options.n_particles, model.transition.n_x(), sequence.n_u());
        let linear = model.sensor.as_linear_gaussian().is_some();
        let listed = match options.proposal {
            Proposal::Shortlist => true,
            Proposal::Auto => !linear && model.transition.is_learned(),
            Proposal::Bootstrap | Proposal::Adapted => false,
        };
        Self {
            model,
            sequence,
            options,
            x_ref,
            adapted: linear && matches!(options.proposal, Proposal::Auto | Proposal::Adapted),
            listed,
            children,
            scarcity: if listed { vec![0.0; sequence.n_rows()] } else { Vec::new() },
            n_x,
            population,
            weights: vec![1.0 / n as f64; n],
            log_weights: vec![-(n as f64).ln(); n],
            log_marginal_likelihood: 0.0,
            states: vec![0.0; sequence.n_rows() * n * n_x],
            ancestors: vec![0; sequence.length() * n],
            predictions: Predictions::default(),
            lookahead: Lookahead::default(),
            list: Shortlist::new(n_x, n_u),
            z: Points::new(n_x + n_u),
            parents: Vec::new(),
            ancestor_weights: Vec::new(),
            own: Vec::new(),
            room: Vec::new(),
        }
    }

    /// Normalised weights of the last generation.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What the pass leads to if the new path ends in particle `last`.
    pub(super) fn finish(self, last: usize) -> FilterOutcome {
        FilterOutcome {
            path: self.trace(last),
            log_marginal_likelihood: self.log_marginal_likelihood,
            numerics: self.population.numerics(),
            scarcity: self.scarcity,
        }
    }

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
    pub(super) fn start<R: Rng>(&mut self, rng: &mut R) -> Result<(), FilterError> {
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
        let generation = self.generation(t);
        self.z.set_states(&self.states[generation], self.n_x, self.sequence.u(t));
        self.log_weights.fill(0.0);
        self.model.log_weights(self.sequence, t, &self.z, &mut self.log_weights, &mut self.room);
        self.weights.copy_from_slice(&self.log_weights);
        let log_mean = normalise(&mut self.weights).ok_or_else(|| self.dead(t))?;
        if let Some(scarcity) = self.scarcity.get_mut(t) {
            *scarcity = draws_for_one(&self.weights);
        }
        let log_sum = log_mean + (self.options.n_particles as f64).ln();
        self.log_weights.iter_mut().for_each(|w| *w -= log_sum);
        self.log_marginal_likelihood += log_mean;
        Ok(())
    }

    fn weigh_all_alike(&mut self) {
        let n = self.options.n_particles as f64;
        self.weights.fill(1.0 / n);
        self.log_weights.fill(-n.ln());
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
        self.ancestor_weights.extend(self.log_weights.iter().zip(futures).map(|(w, future)| w + future));
        normalise(&mut self.ancestor_weights).ok_or_else(|| self.dead(t))?;
        Ok(draw_index(&self.ancestor_weights, rng))
    }

    pub(super) fn step<R: Rng>(&mut self, t: usize, rng: &mut R) -> Result<(), FilterError> {
        let n = self.options.n_particles;
        self.population.predict(&mut self.predictions);
        let adapter = self.adapter(t)?;
        let j = match self.x_ref {
            Some(x_ref) => Some(self.reference_ancestor(t, x_ref, rng)?),
            None => None,
        };
        if let (Some(j), Some(x_ref)) = (j, self.x_ref) {
            self.set_reference_state(t, j, x_ref);
        }
        let is_seen = self.sequence.y(t).iter().any(|y| !y.is_nan());
        let n_children = if self.listed && is_seen { self.children.at(t) } else { 1 };
        if n_children > 1 {
            self.take_from_list(t, n_children, j, rng)?;
        } else if let Some(mut adapter) = adapter {
            self.look_ahead(t, &mut adapter)?;
            self.draw_parents(j, rng);
            self.draw_states(t, |pass, parent, rng, x| pass.lookahead.sample(parent, rng, x), rng);
            self.weigh_all_alike();
        } else {
            self.draw_parents(j, rng);
            self.draw_states(
                t,
                |pass, parent, rng, x| {
                    sample_gaussian(pass.predictions.mean(parent), pass.predictions.chol(parent), rng, x);
                },
                rng,
            );
            self.weigh(t)?;
        }
        let generation = self.generation(t);
        self.population.advance(&self.parents, &self.states[generation]);
        self.ancestors[(t - 1) * n..t * n].copy_from_slice(&self.parents);
        Ok(())
    }

    /// Makes the weights those of ancestors, v = w_{t-1} p(y_t | path), normalised.
    fn look_ahead(&mut self, t: usize, adapter: &mut Adapter) -> Result<(), FilterError> {
        let n = self.options.n_particles;
        self.lookahead.condition(adapter, &self.predictions, n);
        for (i, (v, w)) in self.weights.iter_mut().zip(&self.log_weights).enumerate() {
            *v = w + self.lookahead.log_marginal_likelihood(i);
        }
        let log_mean = normalise(&mut self.weights).ok_or_else(|| self.dead(t))?;
        self.log_marginal_likelihood += log_mean + (n as f64).ln();
        Ok(())
    }

    /// Draws the parents of the next generation by the weights, that of the reference given.
    fn draw_parents<R: Rng>(&mut self, j: Option<usize>, rng: &mut R) {
        let scheme = self.options.resampling.for_weights(&self.weights);
        scheme.draw_into(&self.weights, self.options.n_particles, j, rng, &mut self.parents);
    }

    /// Draws the states of generation `t` given their parents; the reference's is known.
    fn draw_states<R: Rng>(
        &mut self,
        t: usize,
        draw: impl Fn(&Self, usize, &mut R, &mut [f64]),
        rng: &mut R,
    ) {
        let generation = self.generation(t);
        let mut states = std::mem::take(&mut self.states);
        let new = states[generation.clone()].chunks_exact_mut(self.n_x);
        for (x, &parent) in new.take(self.n_free()).zip(&self.parents) {
            draw(self, parent, rng, x);
        }
        if self.x_ref.is_some() {
            states[generation.end - self.n_x..generation.end].copy_from_slice(&self.own);
        }
        self.states = states;
    }

    /// Makes `own` the reference's state as a child of particle `j`: its lags copy the past of its new ancestor.
    fn set_reference_state(&mut self, t: usize, j: usize, x_ref: &[f64]) {
        let before = &self.states[self.generation(t - 1).start + j * self.n_x..][..self.n_x];
        let own = &x_ref[t * self.n_x..(t + 1) * self.n_x];
        let lags = self.model.transition.lags.iter();
        self.own.clear();
        self.own.extend(lags.zip(own).map(|(lag, own)| lag.map_or(*own, |of| before[of])));
    }

    /// Many children of the particles, and from them by their weights the next generation, the reference among both.
    fn take_from_list<R: Rng>(
        &mut self,
        t: usize,
        n_children: usize,
        j: Option<usize>,
        rng: &mut R,
    ) -> Result<(), FilterError> {
        let (n, scheme) = (self.options.n_particles, self.options.resampling);
        let reference = j.map(|j| (j, &self.own[..]));
        let (u, n_listed) = (self.sequence.u(t), n_children * n);
        self.list.draw(n_listed, scheme, &self.weights, &self.predictions, u, reference, rng);
        let log_mean = self.list.weigh(self.model, self.sequence, t, &mut self.room);
        self.log_marginal_likelihood += log_mean.ok_or_else(|| self.dead(t))?;
        self.scarcity[t] = self.list.draws_for_one();
        let generation = self.generation(t);
        self.list.take(n, scheme, j.is_some(), rng, &mut self.states[generation], &mut self.parents);
        self.weigh_all_alike();
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
