//! A state-space model with numbers, as filters, sweeps and predictions use it.

use crate::dynamics::block::Pairs;
use crate::dynamics::transition::Transition;
pub use crate::initial::BoundInitial;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::BoundSensor;

/// A state-space model with numbers for all its parameters.
#[derive(Clone, Debug)]
pub struct StateSpace {
    /// x_{t+1} | x_{0:t}, u_t.
    pub transition: Transition,
    /// y_t | x_t, u_t.
    pub sensor: BoundSensor,
    /// x_0.
    pub initial: BoundInitial,
}

impl StateSpace {
    /// Adds log p(y_t | x_t) at all points z to `weights`. A state that is not finite gets weight zero.
    pub(crate) fn log_weights(
        &self,
        sequence: &Sequence,
        t: usize,
        z: &Points,
        weights: &mut [f64],
        room: &mut Vec<f64>,
    ) {
        self.sensor.add_log_density_in(sequence.y(t), z, weights, room);
        for d in 0..self.transition.n_x() {
            for (weight, x) in weights.iter_mut().zip(z.column(d)) {
                *weight = if x.is_finite() { *weight } else { f64::NEG_INFINITY };
            }
        }
    }
}

/// The pairs (z_s, x_{s+1}) of other sequences that share f: a filter is run given them.
#[derive(Clone, Debug)]
pub struct SharedPairs(pub(crate) Pairs);

impl SharedPairs {
    /// No other sequence.
    pub fn none(n_x: usize, n_u: usize) -> Self {
        Self(Pairs { n_x, points: Points::new(n_x + n_u), residuals: Vec::new() })
    }

    /// Adds the pairs of a path x_{0:T} (row-major) of another sequence, those that f is learned from.
    pub fn add(&mut self, transition: &Transition, x: &[f64], sequence: &Sequence) {
        let n_x = transition.n_x();
        for counted in sequence.learned_from() {
            // A path may end before its sequence does.
            let rows = (counted.end + 1).min(x.len() / n_x);
            if counted.start < rows {
                let x = &x[counted.start * n_x..rows * n_x];
                transition.append_pairs(x, |s| sequence.u(counted.start + s), &mut self.0);
            }
        }
    }
}
