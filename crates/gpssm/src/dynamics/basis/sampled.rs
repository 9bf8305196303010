//! Filters given one draw of the weights: the transition is Markov, x' = m(z) + phi(z) . w + e.

use super::regression::{Design, Rows};
use crate::dynamics::block::Block;
use crate::dynamics::genealogy::{Birth, Genealogy, Slot};
use crate::dynamics::predictions::Predictions;
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::points::Points;

#[derive(Clone, Debug, Default)]
struct Node {
    mean: Vec<f64>,
    chol: Vec<f64>,
    log_density: f64,
}

pub(crate) struct SampledBlock {
    dims: Vec<usize>,
    design: Design,
    weights: Vec<f64>,
    nodes: Vec<Node>,
    rows: Rows,
    n_clamped: u64,
}

impl SampledBlock {
    pub(crate) fn new(dims: &[usize], design: Design, weights: Vec<f64>) -> Self {
        Self { dims: dims.to_vec(), design, weights, nodes: Vec::new(), rows: Rows::default(), n_clamped: 0 }
    }

    fn log_next(&self, slot: Slot, x: &[f64], residual: &mut Vec<f64>) -> f64 {
        let node = &self.nodes[slot];
        residual.clear();
        residual.extend(self.dims.iter().zip(&node.mean).map(|(&d, mean)| x[d] - mean));
        small::log_gaussian(&node.chol, self.dims.len(), residual)
    }
}

impl Block for SampledBlock {
    fn predict(&self, current: &[Slot], out: &mut Predictions) {
        for (i, &slot) in current.iter().enumerate() {
            out.set_block(i, &self.dims, &self.nodes[slot].mean, &self.nodes[slot].chol);
        }
    }

    fn add_log_futures(&mut self, genealogy: &Genealogy, origins: &[Slot], x_next: &[f64], out: &mut [f64]) {
        let mut residual = Vec::new();
        for ((out, &slot), &origin) in out.iter_mut().zip(genealogy.current()).zip(origins) {
            let since = self.nodes[slot].log_density - self.nodes[origin].log_density;
            *out += since + self.log_next(slot, x_next, &mut residual);
        }
    }

    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize) {
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0);
        self.nodes.resize_with(most.max(self.nodes.len()), Node::default);
        let mut residual = Vec::new();
        for birth in births {
            self.nodes[birth.slot].log_density = birth.parent.map_or(0.0, |parent| {
                let x = &x[birth.particle * n_x..(birth.particle + 1) * n_x];
                self.nodes[parent].log_density + self.log_next(parent, x, &mut residual)
            });
        }
    }

    fn promote(&mut self, _: Slot, _: usize) {}

    fn forget(&mut self, _: &Genealogy) {}

    fn rows(&mut self, _: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        self.n_clamped += u64::from(self.design.rows(z, &mut self.rows).is_err());
        let mut white = vec![0.0; p];
        let mut shift = vec![0.0; p];
        for birth in births {
            let i = birth.particle;
            let chol = &self.rows.chol[i * p * p..(i + 1) * p * p];
            for (white, row) in white.iter_mut().zip(self.rows.rows[i * p * n..].chunks_exact(n)) {
                *white = dot(row, &self.weights);
            }
            small::multiply_lower(chol, p, &white, &mut shift);
            let node = &mut self.nodes[birth.slot];
            node.mean.clear();
            node.mean.extend(self.dims.iter().zip(&shift).map(|(&d, shift)| mean[i * n_x + d] + shift));
            node.chol.clear();
            node.chol.extend_from_slice(chol);
        }
    }

    fn is_markov(&self) -> bool {
        true
    }

    fn n_clamped(&self) -> u64 {
        self.n_clamped
    }
}
