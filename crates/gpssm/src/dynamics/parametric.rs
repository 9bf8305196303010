//! A parametric transition x' = h(x, u; phi) + v: the Markov special case.

use super::block::Block;
use super::genealogy::{Birth, Genealogy, Slot};
use super::predictions::Predictions;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::small;
use crate::points::Points;

/// Dimensions without a GP; their mean function is the transition.
pub(crate) struct ParametricBlock {
    dims: Vec<usize>,
    chol: Vec<f64>,
    /// h(z) of each node, and log p(x_{1:s} | x_0) of its path.
    mean: Vec<f64>,
    log_density: Vec<f64>,
}

impl ParametricBlock {
    pub(crate) fn new(dims: &[usize], noise: &[f64]) -> Result<Self, NotPositiveDefinite> {
        let mut chol = noise.to_vec();
        if !small::cholesky(&mut chol, dims.len()) {
            return Err(NotPositiveDefinite { order: dims.len(), index: 0 });
        }
        Ok(Self { dims: dims.to_vec(), chol, mean: Vec::new(), log_density: Vec::new() })
    }

    fn mean(&self, slot: Slot) -> &[f64] {
        &self.mean[slot * self.dims.len()..(slot + 1) * self.dims.len()]
    }

    fn log_next(&self, slot: Slot, x: &[f64], residual: &mut Vec<f64>) -> f64 {
        residual.clear();
        residual.extend(self.dims.iter().zip(self.mean(slot)).map(|(&d, mean)| x[d] - mean));
        small::log_gaussian(&self.chol, self.dims.len(), residual)
    }
}

impl Block for ParametricBlock {
    fn predict(&self, current: &[Slot], out: &mut Predictions) {
        for (i, &slot) in current.iter().enumerate() {
            out.set_block(i, &self.dims, self.mean(slot), &self.chol);
        }
    }

    fn add_log_futures(&mut self, genealogy: &Genealogy, origins: &[Slot], x_next: &[f64], out: &mut [f64]) {
        let mut residual = Vec::new();
        for ((out, &slot), &origin) in out.iter_mut().zip(genealogy.current()).zip(origins) {
            let since = self.log_density[slot] - self.log_density[origin];
            *out += since + self.log_next(slot, x_next, &mut residual);
        }
    }

    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize) {
        let mut residual = Vec::new();
        for birth in births {
            if self.log_density.len() <= birth.slot {
                self.log_density.resize(birth.slot + 1, 0.0);
                self.mean.resize((birth.slot + 1) * self.dims.len(), 0.0);
            }
            self.log_density[birth.slot] = birth.parent.map_or(0.0, |parent| {
                let x = &x[birth.particle * n_x..(birth.particle + 1) * n_x];
                self.log_density[parent] + self.log_next(parent, x, &mut residual)
            });
        }
    }

    fn promote(&mut self, _slot: Slot, _generation: usize) {}

    fn forget(&mut self, _genealogy: &Genealogy) {}

    fn rows(&mut self, _genealogy: &Genealogy, births: &[Birth], _z: &Points, mean: &[f64], n_x: usize) {
        let p = self.dims.len();
        for birth in births {
            for (a, &d) in self.dims.iter().enumerate() {
                self.mean[birth.slot * p + a] = mean[birth.particle * n_x + d];
            }
        }
    }

    fn is_markov(&self) -> bool {
        true
    }

    fn n_clamped(&self) -> u64 {
        0
    }
}
