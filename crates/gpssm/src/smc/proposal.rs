//! How the next states are proposed, and what weights that leaves.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use crate::dynamics::predictions::Predictions;
use crate::sensor::adapter::{Adapted, Adapter};

/// Which proposal the filter uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proposal {
    /// Fully adapted if the sensor is linear and Gaussian; else a shortlist where a function is learned, and bootstrap where
    /// all are known.
    #[default]
    Auto,
    /// From the one-step prediction; weights p(y_t | x_t).
    Bootstrap,
    /// From p(x_t | path, y_t); ancestors by w_{t-1} p(y_t | path), weights uniform. With precise sensors the
    /// difference between working and not. Needs a linear-Gaussian sensor.
    Adapted,
    /// Several states for each particle from the one-step prediction, of which one for each is taken by p(y_t | x_t). As good
    /// as several times the particles, at the price of few where f is unknown: what costs is the prediction from a
    /// path, not a look at the sensor. A chain finds out in warm-up how many each row needs, see [`Children`](super::Children).
    Shortlist,
}

/// p(x_t | path_i, y_t) and p(y_t | path_i) of all particles.
#[derive(Default)]
pub(crate) struct Lookahead {
    adapted: Vec<Adapted>,
}

impl Lookahead {
    /// Of `n` predictions.
    pub(crate) fn new(adapter: &mut Adapter, predictions: &Predictions, n: usize) -> Self {
        let mut lookahead = Self::default();
        lookahead.condition(adapter, predictions, n);
        lookahead
    }

    /// Conditions `n` predictions; a particle whose numbers are not finite gets evidence zero.
    pub(crate) fn condition(&mut self, adapter: &mut Adapter, predictions: &Predictions, n: usize) {
        self.adapted.resize_with(n, Adapted::default);
        for (i, adapted) in self.adapted.iter_mut().enumerate() {
            if !adapter.condition(predictions.mean(i), predictions.chol(i), adapted) {
                adapted.log_marginal_likelihood = f64::NEG_INFINITY;
            }
        }
    }

    pub(crate) fn log_marginal_likelihood(&self, i: usize) -> f64 {
        self.adapted[i].log_marginal_likelihood
    }

    pub(crate) fn sample<R: Rng + ?Sized>(&self, i: usize, rng: &mut R, x: &mut [f64]) {
        sample_gaussian(&self.adapted[i].mean, &self.adapted[i].chol, rng, x);
    }
}

/// Draws from N(mean, L L').
pub(crate) fn sample_gaussian<R: Rng + ?Sized>(mean: &[f64], chol: &[f64], rng: &mut R, x: &mut [f64]) {
    let n = mean.len();
    if n == 1 {
        let noise: f64 = rng.sample(StandardNormal);
        x[0] = mean[0] + chol[0] * noise;
        return;
    }
    x.fill_with(|| rng.sample(StandardNormal));
    // From the last row up: each needs the noise of those before it.
    for i in (0..n).rev() {
        let row = &chol[i * n..=i * n + i];
        x[i] = row.iter().zip(&*x).map(|(a, noise)| a * noise).sum::<f64>() + mean[i];
    }
}
