//! The unconditional filter with weights integrated out: each particle carries the factor of I + A of its
//! path, which grows by one rank-one update a step.

use super::regression::{Design, Rows, Statistics, WeightFactor};
use crate::dynamics::block::{Block, Pairs};
use crate::dynamics::genealogy::{Birth, Genealogy, Slot};
use crate::dynamics::predictions::Predictions;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::panels::padded;
use crate::linalg::rotations::Rotations;
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::points::Points;

#[derive(Clone, Debug, Default)]
struct Node {
    weights: WeightFactor,
    rows: Vec<f64>,
    chol_noise: Vec<f64>,
    prior: Vec<f64>,
    mean: Vec<f64>,
    chol: Vec<f64>,
}

pub(crate) struct ForwardBlock {
    dims: Vec<usize>,
    design: Design,
    context: WeightFactor,
    nodes: Vec<Node>,
    rows: Rows,
    w: Vec<f64>,
    rotations: Rotations,
    n_clamped: u64,
}

impl ForwardBlock {
    pub(crate) fn new(dims: &[usize], design: Design, context: &Pairs) -> Result<Self, NotPositiveDefinite> {
        let mut statistics = Statistics::new(design.n_weights());
        statistics.add(&design, dims, context, 0..context.points.len())?;
        let mut factor = WeightFactor::default();
        factor.set(&mut statistics.gram, &statistics.b)?;
        Ok(Self {
            dims: dims.to_vec(),
            design,
            context: factor,
            nodes: Vec::new(),
            rows: Rows::default(),
            w: Vec::new(),
            rotations: Rotations::default(),
            n_clamped: 0,
        })
    }
}

impl Block for ForwardBlock {
    fn predict(&self, current: &[Slot], out: &mut Predictions) {
        for (i, &slot) in current.iter().enumerate() {
            out.set_block(i, &self.dims, &self.nodes[slot].mean, &self.nodes[slot].chol);
        }
    }

    /// There is no reference.
    fn add_log_futures(&mut self, _: &Genealogy, _: &[Slot], _: &[f64], _: &mut [f64]) {}

    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize) {
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0);
        self.nodes.resize_with(most.max(self.nodes.len()), Node::default);
        let (p, n) = (self.design.p(), self.design.n_weights());
        for birth in births {
            let Some(parent) = birth.parent else {
                self.nodes[birth.slot].weights.clone_from(&self.context);
                continue;
            };
            // A child never has its parent's slot.
            let Ok([child, parent]) = self.nodes.get_disjoint_mut([birth.slot, parent]) else { continue };
            child.weights.clone_from(&parent.weights);
            let mut target: Vec<f64> = self
                .dims
                .iter()
                .zip(&parent.prior)
                .map(|(&d, prior)| x[birth.particle * n_x + d] - prior)
                .collect();
            small::solve_lower(&parent.chol_noise, p, &mut target);
            for (row, target) in parent.rows.chunks_exact(n).zip(target) {
                child.weights.add(row, target, &mut self.w, &mut self.rotations);
            }
        }
    }

    fn promote(&mut self, _: Slot, _: usize) {}

    fn forget(&mut self, _: &Genealogy) {}

    fn rows(&mut self, _: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        let finite = self.design.rows(z, &mut self.rows).is_ok();
        let stride = padded(n);
        let mut columns = vec![0.0; p * stride];
        for birth in births {
            let node = &mut self.nodes[birth.slot];
            let i = birth.particle;
            node.prior = self.dims.iter().map(|&d| mean[i * n_x + d]).collect();
            node.rows.clear();
            node.rows.extend_from_slice(&self.rows.rows[i * p * n..(i + 1) * p * n]);
            node.chol_noise.clear();
            node.chol_noise.extend_from_slice(&self.rows.chol[i * p * p..(i + 1) * p * p]);
            for (column, row) in columns.chunks_exact_mut(stride).zip(node.rows.chunks_exact(n)) {
                column[..n].copy_from_slice(row);
            }
            node.weights.factor.solve(n, &mut columns, stride, p);
            let column = |k: usize| &columns[k * stride..k * stride + n];
            let mut white = vec![0.0; p * p];
            for a in 0..p {
                for b in 0..=a {
                    white[a * p + b] = dot(column(a), column(b)) + f64::from(u8::from(a == b));
                }
            }
            self.n_clamped += u64::from(!(finite && small::cholesky(&mut white, p)));
            let offset: Vec<f64> = (0..p).map(|k| dot(column(k), &node.weights.b)).collect();
            let mut shift = vec![0.0; p];
            small::multiply_lower(&node.chol_noise, p, &offset, &mut shift);
            node.mean = node.prior.iter().zip(&shift).map(|(prior, shift)| prior + shift).collect();
            node.chol = small::multiply_lowers(&node.chol_noise, &white, p);
        }
    }

    /// All of a path that matters is in the factor that its last node carries.
    fn is_markov(&self) -> bool {
        true
    }

    fn n_clamped(&self) -> u64 {
        self.n_clamped
    }
}
