//! The reference's future: ancestor weights, and the rank-one updates when it shrinks.

use super::node::Given;
use crate::dynamics::genealogy::{Genealogy, Slot};
use crate::linalg::dense::Dense;
use crate::linalg::panels::{RowPanels, TriangularPanels, padded};
use crate::linalg::rotations::{Rotations, rank_one_update, rotate_rows, rotation};
use crate::points::Points;

pub(super) struct Future {
    /// R: the factor of K~ over context and reference in reversed time order, its inputs and whitened
    /// residuals.
    pub factor: TriangularPanels,
    pub points: Points,
    pub residuals: Vec<f64>,
    /// Points of context and B, and of context alone.
    pub n_given: usize,
    n_context: usize,
    /// Rows of g of the trunk.
    pub trunk: RowPanels,
    /// Factor of the trunk given B and its whitened residuals, without that of the last trunk node.
    pub given: TriangularPanels,
    pub given_residuals: Vec<f64>,
    /// Nodes of the bush, by slot.
    pub nodes: Vec<Given>,
    rotations: Rotations,
    w: Vec<f64>,
    w_bush: Vec<f64>,
    chain: Vec<Slot>,
}

impl Future {
    pub(super) fn new(
        dense: &Dense,
        points: Points,
        residuals: Vec<f64>,
        n_context: usize,
        memory: usize,
        p: usize,
    ) -> Self {
        let n = dense.order();
        let mut factor = TriangularPanels::with_capacity(n);
        factor.extend_from(dense, n);
        let mut trunk = RowPanels::default();
        trunk.reset(n);
        Self {
            factor,
            // The first transition is never part of a future: B starts at s = 1, or later with lags.
            n_given: (points.len() - n_context).saturating_sub(1 + memory) + n_context,
            n_context,
            residuals,
            trunk,
            given: TriangularPanels::with_capacity((points.len() - n_context) * p),
            given_residuals: Vec::with_capacity((points.len() - n_context) * p),
            points,
            nodes: Vec::new(),
            rotations: Rotations::default(),
            w: Vec::new(),
            w_bush: Vec::new(),
            chain: Vec::new(),
        }
    }

    pub(super) fn promote(&mut self, slot: Slot, generation: usize, p: usize) {
        let node = &self.nodes[slot];
        if generation > 0 {
            self.given_residuals.extend_from_slice(&node.edge);
        }
        for d in 0..p {
            let n = self.given.n_rows();
            self.given.push_row(&node.rows.row(d)[..=n]);
            self.trunk.push_row(node.future.row(d));
        }
    }

    /// Sums -|e|^2 / 2 - log diagonal along the path to every living node.
    pub(super) fn log_densities(&mut self, genealogy: &Genealogy) {
        let nodes = &mut self.nodes;
        let known = self.given_residuals.len();
        let mut trunk = 0.0;
        for (r, e) in self.given_residuals.iter().enumerate() {
            trunk -= 0.5 * e * e + self.given.diagonal(r).ln();
        }
        let last: f64 = (known..self.given.n_rows()).map(|r| self.given.diagonal(r).ln()).sum();
        for level in genealogy.levels() {
            for &slot in level {
                let before = match genealogy.parent(slot) {
                    Some(parent) => {
                        let parent = &nodes[parent];
                        parent.log_density
                            - crate::linalg::small::log_diagonal(&parent.chol, parent.mean.len())
                    }
                    None => trunk - last,
                };
                let edge: f64 = nodes[slot].edge.iter().map(|e| e * e).sum();
                nodes[slot].log_density = before - 0.5 * edge;
            }
        }
    }

    /// B loses the reference's pair of the current time: p rank-one updates of the factor given B.
    pub(super) fn forget(&mut self, genealogy: &Genealogy, p: usize) {
        if self.n_given == self.n_context {
            return;
        }
        self.n_given -= 1;
        for d in (0..p).rev() {
            self.drop_entry(self.n_given * p + d, genealogy);
        }
    }

    /// Removes entry `q` of the reversed order from the conditioning set.
    fn drop_entry(&mut self, q: usize, genealogy: &Genealogy) {
        let n_trunk = self.given.n_rows();
        self.w.resize(padded(n_trunk).max(self.w.len()), 0.0);
        self.trunk.column(q, &mut self.w[..n_trunk]);
        self.w[n_trunk..].fill(0.0);
        rank_one_update(&mut self.given, &mut self.w, &mut self.rotations);
        let mut carry = self.residuals[q];
        for (r, e) in self.given_residuals.iter_mut().enumerate() {
            (*e, carry) = rotate(self.rotations.cosine[r], self.rotations.sine[r], *e, carry);
        }
        self.rotate_bush_through_trunk(q, genealogy, n_trunk);
        let nodes = &mut self.nodes;
        let mut next_w = 0;
        self.chain.clear();
        let last_generation = genealogy.levels().count() - 1;
        for (level, slots) in genealogy.levels().enumerate() {
            for &slot in slots {
                match genealogy.parent(slot) {
                    Some(parent) => {
                        // A child never has its parent's slot.
                        let Ok([node, parent]) = nodes.get_disjoint_mut([slot, parent]) else { continue };
                        node.carry = parent.carry;
                        rotate_edge(node, &parent.cosine, &parent.sine);
                    }
                    None => {
                        let known = self.given_residuals.len();
                        nodes[slot].carry = carry;
                        let (cosine, sine) = (&self.rotations.cosine[known..], &self.rotations.sine[known..]);
                        rotate_edge(&mut nodes[slot], cosine, sine);
                    }
                }
                // The newest generation has an edge but no rows yet.
                if level < last_generation {
                    genealogy.chain(slot, &mut self.chain);
                    let w = &mut self.w_bush[next_w..];
                    next_w += rotate_rows_of(slot, &self.chain, nodes, n_trunk, w);
                }
            }
        }
    }

    /// Applies the trunk's rotations to the rows of the bush, all rows together.
    fn rotate_bush_through_trunk(&mut self, q: usize, genealogy: &Genealogy, n_trunk: usize) {
        let nodes = &mut self.nodes;
        self.w_bush.clear();
        let mut taken: Vec<(Slot, super::node::Rows)> = Vec::new();
        let n_levels = genealogy.levels().count();
        for slot in genealogy.levels().take(n_levels - 1).flatten().copied() {
            let given = &mut nodes[slot];
            for d in 0..given.mean.len() {
                self.w_bush.push(given.future.row(d)[q]);
            }
            taken.push((slot, std::mem::take(&mut given.rows)));
        }
        let mut rows: Vec<&mut [f64]> = taken.iter_mut().flat_map(|(_, rows)| rows.iter_mut()).collect();
        rotate_rows(&self.rotations, n_trunk, &mut rows, &mut self.w_bush);
        for (slot, rows) in taken {
            nodes[slot].rows = rows;
        }
    }
}

/// (a, w) turned by a rotation.
fn rotate(c: f64, s: f64, a: f64, w: f64) -> (f64, f64) {
    (c * a + s * w, c * w - s * a)
}

/// The edge's residuals belong to the parent's rows.
fn rotate_edge(node: &mut Given, cosine: &[f64], sine: &[f64]) {
    let mut carry = node.carry;
    for ((e, &c), &s) in node.edge.iter_mut().zip(cosine).zip(sine) {
        (*e, carry) = rotate(c, s, *e, carry);
    }
    node.carry = carry;
}

/// The rotations of the bush ancestors, then the node's own; returns the number of rows.
fn rotate_rows_of(slot: Slot, chain: &[Slot], nodes: &mut [Given], n_trunk: usize, w: &mut [f64]) -> usize {
    let mut rows = std::mem::take(&mut nodes[slot].rows);
    let mut cosine = std::mem::take(&mut nodes[slot].cosine);
    let mut sine = std::mem::take(&mut nodes[slot].sine);
    cosine.clear();
    sine.clear();
    for (row, w) in rows.iter_mut().zip(w) {
        let mut at = n_trunk;
        let ancestors = chain.iter().map(|&ancestor| &nodes[ancestor]);
        let own = (&cosine, &sine);
        for (cosine, sine) in ancestors.map(|given| (&given.cosine, &given.sine)).chain([own]) {
            for (&c, &s) in cosine.iter().zip(sine) {
                (row[at], *w) = rotate(c, s, row[at], *w);
                at += 1;
            }
        }
        let (c, s, diagonal) = rotation(row[at], *w);
        row[at] = diagonal;
        cosine.push(c);
        sine.push(s);
    }
    let given = &mut nodes[slot];
    given.rows = rows;
    given.cosine = cosine;
    given.sine = sine;
    given.refresh();
    given.mean.len()
}
