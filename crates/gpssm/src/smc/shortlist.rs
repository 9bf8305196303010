//! Children that are weighed before they get a place in the particle tree.
//!
//! Their states are columns of numbers and nothing else: what a place costs, rows along a path, is paid for those that are taken
//! alone.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::children::draws_for_one;
use super::resampling::Resampling;
use super::weights::normalise;
use crate::dynamics::predictions::Predictions;
use crate::points::Points;
use crate::record::Sequence;
use crate::state_space::StateSpace;

/// The children of one step.
pub(super) struct Shortlist {
    /// Particles they descend from.
    parents: Vec<usize>,
    /// Their states, and the input.
    z: Points,
    /// p(y_t | x_t), normalised.
    weights: Vec<f64>,
    by_parent: Vec<f64>,
    taken: Vec<usize>,
    noise: Vec<f64>,
}

impl Shortlist {
    /// Room for one step with states of `n_x` components and `n_u` inputs.
    pub(super) fn new(n_x: usize, n_u: usize) -> Self {
        Self {
            parents: Vec::new(),
            z: Points::new(n_x + n_u),
            weights: Vec::new(),
            by_parent: Vec::new(),
            taken: Vec::new(),
            noise: vec![0.0; n_x],
        }
    }

    /// Draws `n` children of particles with these weights. The last one is the reference with its ancestor, if there is one.
    #[expect(clippy::too_many_arguments, reason = "a step as it is")]
    pub(super) fn draw<R: Rng>(
        &mut self,
        n: usize,
        scheme: Resampling,
        weights: &[f64],
        predictions: &Predictions,
        u: &[f64],
        reference: Option<(usize, &[f64])>,
        rng: &mut R,
    ) {
        let n_x = self.noise.len();
        scheme.draw_into(weights, n, reference.map(|(ancestor, _)| ancestor), rng, &mut self.parents);
        let states = self.z.reset(n, n_x, u);
        let n_free = n - reference.iter().len();
        let free = self.parents[..n_free].iter().enumerate();
        if let [states] = &mut *states {
            for (i, &parent) in free {
                let noise: f64 = rng.sample(StandardNormal);
                states[i] = predictions.mean(parent)[0] + predictions.chol(parent)[0] * noise;
            }
        } else {
            for (i, &parent) in free {
                self.noise.fill_with(|| rng.sample(StandardNormal));
                let (mean, chol) = (predictions.mean(parent), predictions.chol(parent));
                for (d, column) in states.iter_mut().enumerate() {
                    let row = &chol[d * n_x..=d * n_x + d];
                    let shift: f64 = row.iter().zip(&self.noise).map(|(a, noise)| a * noise).sum();
                    column[i] = shift + mean[d];
                }
            }
        }
        if let Some((_, own)) = reference {
            states.iter_mut().zip(own).for_each(|(column, own)| column[n_free] = *own);
        }
    }

    /// Weighs the children by p(y_t | x_t); the log of the mean weight, or none if all are zero.
    pub(super) fn weigh(
        &mut self,
        model: &StateSpace,
        sequence: &Sequence,
        t: usize,
        room: &mut Vec<f64>,
    ) -> Option<f64> {
        self.weights.clear();
        self.weights.resize(self.z.len(), 0.0);
        model.log_weights(sequence, t, &self.z, &mut self.weights, room);
        normalise(&mut self.weights)
    }

    /// Children that come to one effective draw.
    pub(super) fn draws_for_one(&self) -> f64 {
        draws_for_one(&self.weights)
    }

    /// Takes `n` children by their weights, the reference last if there is one: their states (row-major) and their ancestors.
    pub(super) fn take<R: Rng>(
        &mut self,
        n: usize,
        scheme: Resampling,
        conditional: bool,
        rng: &mut R,
        x: &mut [f64],
        ancestors: &mut Vec<usize>,
    ) {
        // Whether lines meet is a matter of parents.
        self.by_parent.clear();
        self.by_parent.resize(n, 0.0);
        for (&parent, weight) in self.parents.iter().zip(&self.weights) {
            self.by_parent[parent] += weight;
        }
        let scheme = scheme.for_weights(&self.by_parent);
        let reference = conditional.then(|| self.parents.len() - 1);
        scheme.draw_into(&self.weights, n, reference, rng, &mut self.taken);
        let n_x = self.noise.len();
        for d in 0..n_x {
            let column = self.z.column(d);
            x.iter_mut().skip(d).step_by(n_x).zip(&self.taken).for_each(|(x, &i)| *x = column[i]);
        }
        ancestors.clear();
        ancestors.extend(self.taken.iter().map(|&i| self.parents[i]));
    }
}
