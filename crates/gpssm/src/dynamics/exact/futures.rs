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
    /// Cosine and sine of the nodes' own rows in the current rank-one update, p for each slot.
    turns: Vec<(f64, f64)>,
    links: Vec<Slot>,
}

/// Rows of the bush that are turned at one time: each turn waits for the one before.
const SIDE_BY_SIDE: usize = 4;

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
            turns: Vec::new(),
            links: Vec::new(),
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
            self.drop_entry(self.n_given * p + d, genealogy, p);
        }
    }

    /// Removes entry `q` of the reversed order from the conditioning set.
    fn drop_entry(&mut self, q: usize, genealogy: &Genealogy, p: usize) {
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
        self.turns.resize(self.nodes.len() * p, (1.0, 0.0));
        let known = self.given_residuals.len();
        let mut next_w = 0;
        let n_levels = genealogy.levels().count();
        for (level, slots) in genealogy.levels().enumerate() {
            for &slot in slots {
                let node = &mut self.nodes[slot];
                node.carry = carry;
                match genealogy.parent(slot) {
                    Some(parent) => {
                        let turns = &self.turns[parent * p..(parent + 1) * p];
                        self.nodes[slot].carry = self.nodes[parent].carry;
                        rotate_edge(&mut self.nodes[slot], turns.iter().copied());
                    }
                    None => {
                        let (cosine, sine) = (&self.rotations.cosine[known..], &self.rotations.sine[known..]);
                        rotate_edge(node, cosine.iter().copied().zip(sine.iter().copied()));
                    }
                }
            }
            // The newest generation has an edge but no rows yet.
            if level + 1 < n_levels {
                self.rotate_level(slots, level, genealogy, n_trunk, next_w);
                next_w += slots.len() * p;
            }
        }
    }

    /// Turns the rows of one level by the rotations of their bush ancestors, some rows side by side, and then by their own;
    /// level `level` has as many bush ancestors.
    fn rotate_level(
        &mut self,
        slots: &[Slot],
        level: usize,
        genealogy: &Genealogy,
        n_trunk: usize,
        mut next_w: usize,
    ) {
        let Self { nodes, turns, w_bush, links, .. } = self;
        for slots in slots.chunks(SIDE_BY_SIDE) {
            let Some(p) = slots.first().map(|&slot| nodes[slot].mean.len()) else { continue };
            links.clear();
            for &slot in slots {
                let from = links.len();
                links.extend(std::iter::successors(genealogy.parent(slot), |&slot| genealogy.parent(slot)));
                links[from..].reverse();
            }
            let w = &mut w_bush[next_w..next_w + slots.len() * p];
            next_w += slots.len() * p;
            if let (&[a, b, c, d], 1) = (slots, p) {
                let mut rows = [a, b, c, d].map(|slot| std::mem::take(&mut nodes[slot].rows));
                let tails = rows.each_mut().map(|rows| &mut rows.row_mut(0)[n_trunk..n_trunk + level]);
                let mut lanes = [w[0], w[1], w[2], w[3]];
                for link in 0..level {
                    for lane in 0..SIDE_BY_SIDE {
                        let (c, s) = turns[links[lane * level + link]];
                        (tails[lane][link], lanes[lane]) = rotate(c, s, tails[lane][link], lanes[lane]);
                    }
                }
                w.copy_from_slice(&lanes);
                slots.iter().zip(rows).for_each(|(&slot, rows)| nodes[slot].rows = rows);
            } else {
                for (i, &slot) in slots.iter().enumerate() {
                    let links = &links[i * level..(i + 1) * level];
                    for (row, w) in nodes[slot].rows.iter_mut().zip(&mut w[i * p..]) {
                        let places = links.iter().flat_map(|link| link * p..(link + 1) * p);
                        for (a, place) in row[n_trunk..].iter_mut().zip(places) {
                            let (c, s) = turns[place];
                            (*a, *w) = rotate(c, s, *a, *w);
                        }
                    }
                }
            }
            let at = n_trunk + level * p;
            for (&slot, w) in slots.iter().zip(w.chunks_exact_mut(p)) {
                let own = &mut turns[slot * p..(slot + 1) * p];
                for (d, (row, w)) in nodes[slot].rows.iter_mut().zip(w).enumerate() {
                    for (a, &(c, s)) in row[at..].iter_mut().zip(&own[..d]) {
                        (*a, *w) = rotate(c, s, *a, *w);
                    }
                    let (c, s, diagonal) = rotation(row[at + d], *w);
                    row[at + d] = diagonal;
                    own[d] = (c, s);
                }
                nodes[slot].refresh();
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
fn rotate_edge(node: &mut Given, turns: impl Iterator<Item = (f64, f64)>) {
    let mut carry = node.carry;
    for (e, (c, s)) in node.edge.iter_mut().zip(turns) {
        (*e, carry) = rotate(c, s, *e, carry);
    }
    node.carry = carry;
}
