//! What the filters need of a prior over the transition function.

use super::genealogy::{Birth, Genealogy, Slot};
use super::numerics::Numerics;
use super::predictions::Predictions;
use crate::points::Points;

/// Pairs (z_s, x_{s+1}) of other sequences that share f, as inputs and residuals x_{s+1} - m(z_s).
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    pub n_x: usize,
    pub points: Points,
    /// Row-major (s, d).
    pub residuals: Vec<f64>,
}

impl Pairs {
    /// Residual of pair `s` in some dimensions.
    pub(crate) fn residual(&self, s: usize, dims: &[usize], out: &mut Vec<f64>) {
        out.clear();
        out.extend(dims.iter().map(|&d| self.residuals[s * self.n_x + d]));
    }

    /// Residuals of some dimensions, row-major (s, dimension).
    pub(crate) fn select(&self, dims: &[usize]) -> Vec<f64> {
        let rows = self.residuals.chunks_exact(self.n_x);
        rows.flat_map(|row| dims.iter().map(|&d| row[d])).collect()
    }
}

/// The transition prior of some state dimensions, for all particles of one filter at once.
///
/// One step of the filter is `edges`, `promote` for every node that joins the trunk, `forget`, `rows`.
pub(crate) trait Block {
    /// Mean and covariance of the next state of each particle, given its path (eq. 3).
    fn predict(&self, current: &[Slot], out: &mut Predictions);

    /// Adds log p(x_next, B | path) - log p(path of origin) up to a common constant, where B is the part of
    /// the reference's future that is the same for all particles (eq. 8). The origins are the particles
    /// themselves, or their ancestors if the particles were led on along the reference.
    fn add_log_futures(&mut self, genealogy: &Genealogy, origins: &[Slot], x_next: &[f64], out: &mut [f64]);

    /// The new states of the births (row-major, by particle) become outputs of their parents.
    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize);

    /// A node joins the trunk.
    fn promote(&mut self, slot: Slot, generation: usize);

    /// The reference's transition out of the current time leaves the future that is conditioned on.
    fn forget(&mut self, genealogy: &Genealogy);

    /// Inputs z and prior means (row-major, by particle) of the births become known.
    fn rows(&mut self, genealogy: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize);

    /// Whether a node knows all that its children need: then no older nodes are kept.
    fn is_markov(&self) -> bool {
        false
    }

    /// What happened so far.
    fn numerics(&self) -> Numerics;
}
