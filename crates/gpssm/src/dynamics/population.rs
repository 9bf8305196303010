//! All particles of one filter, with their common past.

use super::block::{Block, Pairs};
use super::genealogy::{Birth, Genealogy};
use super::predictions::Predictions;
use super::transition::Transition;
use crate::function::evaluate_all;
use crate::linalg::dense::NotPositiveDefinite;
use crate::points::Points;

/// The particles of one filter over one sequence: their paths, and the transition prior given them.
///
/// The filter asks the population, never single particles, so that a prior can work on all of them at
/// once and share what they share.
pub(crate) struct Population<'a> {
    transition: &'a Transition,
    /// u_t, t = 0..T.
    inputs: &'a [Vec<f64>],
    blocks: Vec<Box<dyn Block>>,
    genealogy: Genealogy,
    /// Generation of the current particles.
    t: usize,
    length: usize,
    predictions: Predictions,
    log_futures: Vec<f64>,
    means: Vec<f64>,
}

impl<'a> Population<'a> {
    /// With a reference (its pairs), the population can tell ancestor weights. `context` are the pairs of
    /// the other sequences.
    pub(crate) fn new(
        transition: &'a Transition,
        inputs: &'a [Vec<f64>],
        context: &Pairs,
        reference: Option<&Pairs>,
    ) -> Result<Self, NotPositiveDefinite> {
        let length = inputs.len() - 1;
        Ok(Self {
            transition,
            inputs,
            blocks: transition.populate(length, context, reference)?,
            genealogy: Genealogy::default(),
            t: 0,
            length,
            predictions: Predictions::default(),
            log_futures: Vec::new(),
            means: Vec::new(),
        })
    }

    fn n_x(&self) -> usize {
        self.transition.n_x()
    }

    /// Generation 0; `x` is row-major by particle.
    pub(crate) fn start(&mut self, x: &[f64]) {
        let births = self.genealogy.start(x.len() / self.n_x());
        self.t = 0;
        for block in &mut self.blocks {
            block.edges(&births, x, self.transition.n_x());
        }
        self.rows(&births, x);
    }

    /// p(x_t | path_i) of the next state, all particles (eq. 3).
    pub(crate) fn predict(&mut self) -> &Predictions {
        let current = self.genealogy.current();
        self.predictions.reset(current.len(), self.transition.n_x());
        for block in &self.blocks {
            block.predict(current, &mut self.predictions);
        }
        &self.predictions
    }

    /// log p(x~_{t:T} | path_i) + const, all particles; `x_next` is x~_t (eq. 8).
    pub(crate) fn log_futures(&mut self, x_next: &[f64]) -> &[f64] {
        self.log_futures.clear();
        self.log_futures.resize(self.genealogy.current().len(), 0.0);
        for block in &mut self.blocks {
            block.add_log_futures(&self.genealogy, x_next, &mut self.log_futures);
        }
        &self.log_futures
    }

    /// Particle i of the next generation has state x_i and descends from particle `ancestors[i]`.
    pub(crate) fn advance(&mut self, ancestors: &[usize], x: &[f64]) {
        let n_x = self.n_x();
        let births = self.genealogy.branch(ancestors);
        self.t += 1;
        for block in &mut self.blocks {
            block.edges(&births, x, n_x);
        }
        if self.t == self.length {
            return;
        }
        self.genealogy.prune();
        while let Some(slot) = self.genealogy.promote() {
            for block in &mut self.blocks {
                block.promote(slot, self.genealogy.trunk() - 1);
            }
        }
        for block in &mut self.blocks {
            block.forget(&self.genealogy);
        }
        self.rows(&births, x);
    }

    fn rows(&mut self, births: &[Birth], x: &[f64]) {
        let n_x = self.n_x();
        let u = &self.inputs[self.t];
        let mut z = Points::new(n_x + u.len());
        for x in x.chunks_exact(n_x) {
            z.push_parts(x, u);
        }
        evaluate_all(&self.transition.means, &z, &mut self.means);
        for block in &mut self.blocks {
            block.rows(&self.genealogy, births, &z, &self.means, n_x);
        }
    }

    /// log p(x_{1:t} | x_0) of a particle's path, up to a constant.
    pub(crate) fn log_density(&self, particle: usize) -> f64 {
        let slot = self.genealogy.current()[particle];
        self.blocks.iter().map(|block| block.log_density(slot)).sum()
    }

    /// Predictive covariances that rounding pushed below the process noise.
    pub(crate) fn n_clamped(&self) -> u64 {
        self.blocks.iter().map(|block| block.n_clamped()).sum()
    }
}
