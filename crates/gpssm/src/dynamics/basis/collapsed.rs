//! The conditional filter with weights integrated out.
//!
//! All particles share the trunk and the reference's future B, so the posterior of the weights given those is
//! shared too: N((I + A)^{-1} b, (I + A)^{-1}) with A over trunk and B (*given*), or over the trunk alone
//! (*path*). Given such a base, the few rows of a particle's own bush form a small Gaussian process with
//! covariance h h' + I, h = L^{-1} H, which is factored row by row along the tree. The ancestor weight (eq. 8)
//! is the density of bush and next state under the base with B, over that of the bush under the base
//! without.
//!
//! When t advances, trunk pairs are added to both bases and the reference's pair is taken from the one with B.
//! That one is a sum over all of the sequence at all times, so taking a pair away cancels nothing: it is
//! factored anew at each step, and summed anew on a schedule and whenever it cannot be factored.

use pulp::Simd;

use super::regression::{Design, Rows, Statistics, WeightFactor};
use crate::dynamics::block::{Block, Pairs};
use crate::dynamics::genealogy::{Birth, Genealogy, Slot};
use crate::dynamics::numerics::Numerics;
use crate::dynamics::predictions::Predictions;
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::linalg::panels::padded;
use crate::linalg::rotations::Rotations;
use crate::linalg::simd::{Vectorised, dispatch, dot, dot_inline};
use crate::linalg::small;
use crate::points::Points;

/// A node's side of one of the two bases.
#[derive(Clone, Debug, Default)]
struct Side {
    /// L^{-1} H, (dimension, weight).
    h: Vec<f64>,
    /// Rows of the factor of h h' + I along the bush, (dimension, row), without the diagonal block.
    rows: Vec<f64>,
    /// Diagonal block, and mean of the next whitened output.
    chol: Vec<f64>,
    mean: Vec<f64>,
    /// Whitened residuals along the bush, the edge from the parent last.
    residuals: Vec<f64>,
    /// log density of the bush up to here, constants left out.
    log_density: f64,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Whitened rows H, the factor of N(z), and the prior mean.
    rows: Vec<f64>,
    chol_noise: Vec<f64>,
    prior: Vec<f64>,
    /// The state, as whitened target of the parent.
    target: Vec<f64>,
    /// Under the base without and with B.
    sides: [Side; 2],
    /// Mean and factor of the next state, given the path.
    mean: Vec<f64>,
    chol: Vec<f64>,
}

/// The base over the trunk, and that over trunk and B.
const PATH: usize = 0;
const GIVEN: usize = 1;

/// Sums that change by one pair at a time.
struct Sums {
    gram: Dense,
    b: Vec<f64>,
}

impl Sums {
    /// Adds (or takes away, with sign -1) the outer products of whitened rows.
    fn add(&mut self, rows: &[f64], target: &[f64], sign: f64) {
        let n = self.b.len();
        for (row, target) in rows.chunks_exact(n).zip(target) {
            for j in 0..n {
                let factor = sign * row[j];
                self.b[j] += factor * target;
                let column = self.gram.lower_column_mut(j);
                column.iter_mut().zip(&row[j..]).for_each(|(value, other)| *value += factor * other);
            }
        }
    }
}

/// Steps between two fresh sums.
const REFRESH: usize = 512;

pub(crate) struct CollapsedBlock {
    dims: Vec<usize>,
    design: Design,
    reference: Pairs,
    /// The pair that leaves B next.
    next: usize,
    bases: [WeightFactor; 2],
    /// Sums over context and trunk, and over these and B.
    trunk_sums: Sums,
    given_sums: Sums,
    /// Sums over the reference's pairs from some times on, earliest last.
    checkpoints: Vec<(usize, Sums)>,
    /// The end of the trunk: its row belongs to every particle, its output differs.
    pending: Option<Node>,
    nodes: Vec<Node>,
    work: Work,
    numerics: Numerics,
}

#[derive(Default)]
struct Work {
    rows: Rows,
    target: Vec<f64>,
    columns: Vec<f64>,
    dense: Dense,
    w: Vec<f64>,
    rotations: Rotations,
    chain: Vec<Slot>,
}

impl CollapsedBlock {
    pub(crate) fn new(
        dims: &[usize],
        design: Design,
        memory: usize,
        context: &Pairs,
        reference: &Pairs,
    ) -> Result<Self, NotPositiveDefinite> {
        let n = design.n_weights();
        let length = reference.points.len();
        let mut trunk = Statistics::new(n);
        trunk.add(&design, dims, context, 0..context.points.len())?;
        // Suffix sums of the reference, kept at some times.
        let first = (1 + memory).min(length);
        let mut checkpoints = Vec::new();
        let mut suffix = Statistics::new(n);
        (0..n).for_each(|j| *suffix.gram.get_mut(j, j) = 0.0);
        let mut to = length;
        while to > first {
            let from = to.saturating_sub(REFRESH).max(first);
            suffix.add(&design, dims, reference, from..to)?;
            let sums = Sums { gram: suffix.gram.duplicate(), b: suffix.b.clone() };
            checkpoints.push((from, sums));
            to = from;
        }
        let mut block = Self {
            dims: dims.to_vec(),
            design,
            reference: reference.clone(),
            next: first,
            bases: Default::default(),
            given_sums: Sums { gram: trunk.gram.duplicate(), b: trunk.b.clone() },
            trunk_sums: Sums { gram: trunk.gram.duplicate(), b: trunk.b.clone() },
            checkpoints,
            pending: None,
            nodes: Vec::new(),
            work: Work::default(),
            numerics: Numerics::default(),
        };
        block.numerics.relative_jitter = block.design.relative_jitter();
        block.bases[PATH].set(&mut trunk.gram, &trunk.b)?;
        block.sum_anew();
        Ok(block)
    }

    /// Sums the base with B anew: context and trunk, the reference from the next checkpoint on, and its pairs
    /// before that.
    fn sum_anew(&mut self) {
        let length = self.reference.points.len();
        let from = match self.checkpoints.last() {
            Some((from, sums)) => {
                self.given_sums.gram.set_sum(&self.trunk_sums.gram, &sums.gram);
                self.given_sums.b = self.trunk_sums.b.iter().zip(&sums.b).map(|(a, b)| a + b).collect();
                *from
            }
            None => {
                self.given_sums.gram.copy_from(&self.trunk_sums.gram);
                self.given_sums.b.clone_from(&self.trunk_sums.b);
                length
            }
        };
        (self.next..from).for_each(|s| self.add_reference(s, 1.0));
        self.checkpoints.pop_if(|(from, _)| *from == self.next);
    }

    /// Adds the reference's pair `s` to the base with B, or takes it away with sign -1.
    fn add_reference(&mut self, s: usize, sign: f64) {
        let points = &self.reference.points;
        let point = Points::from_rows(points.n_components(), [&points.row(s)[..]]);
        let Work { rows, target, .. } = &mut self.work;
        if self.design.rows(&point, rows).is_ok() {
            self.reference.residual(s, &self.dims, target);
            small::solve_lower(&rows.chol, target.len(), target);
            self.given_sums.add(&rows.rows, target, sign);
        }
    }

    /// Factors the base with B.
    fn factor_given(&mut self) -> Result<(), NotPositiveDefinite> {
        self.work.dense.copy_from(&self.given_sums.gram);
        self.bases[GIVEN].set(&mut self.work.dense, &self.given_sums.b)
    }

    /// The whitened residual of a state as output of a node.
    fn target(&self, node: &Node, x: &[f64]) -> Vec<f64> {
        let mut target: Vec<f64> =
            self.dims.iter().zip(&node.prior).map(|(&d, prior)| x[d] - prior).collect();
        small::solve_lower(&node.chol_noise, target.len(), &mut target);
        target
    }

    /// Both sides of all living nodes under the bases of the moment.
    fn rebuild(&mut self, genealogy: &Genealogy) {
        if self.factor_given().is_err() {
            self.numerics.breakdowns += 1;
            self.sum_anew();
            self.numerics.clamped += u64::from(self.factor_given().is_err());
        }
        let mut work = std::mem::take(&mut self.work);
        self.solve_sides(genealogy, &mut work);
        let p = self.design.p();
        if let Some(pending) = &mut self.pending {
            for (side, base) in pending.sides.iter_mut().zip(&self.bases) {
                side.rows.clear();
                side.residuals.clear();
                side.log_density = 0.0;
                self.numerics.clamped += u64::from(!finish(side, base, p));
            }
        }
        work.chain.clear();
        for slot in genealogy.levels().flatten().copied() {
            genealogy.chain(slot, &mut work.chain);
            let mut node = std::mem::take(&mut self.nodes[slot]);
            // A new list for each node: it borrows the nodes. One allocation among thousands of multiplications.
            let ancestors: Vec<&Node> =
                self.pending.iter().chain(work.chain.iter().map(|&slot| &self.nodes[slot])).collect();
            for (which, (side, base)) in node.sides.iter_mut().zip(&self.bases).enumerate() {
                descend(side, ancestors.last().copied(), which, &node.target);
                along(side, &ancestors, which, p);
                self.numerics.clamped += u64::from(!finish(side, base, p));
            }
            node.mean.resize(p, 0.0);
            small::multiply_lower(&node.chol_noise, p, &node.sides[PATH].mean, &mut node.mean);
            node.mean.iter_mut().zip(&node.prior).for_each(|(mean, prior)| *mean += prior);
            small::multiply_lowers(&node.chol_noise, &node.sides[PATH].chol, p, &mut node.chol);
            self.nodes[slot] = node;
        }
        self.work = work;
    }

    /// h = L^{-1} H of all living nodes, for both bases.
    fn solve_sides(&mut self, genealogy: &Genealogy, work: &mut Work) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        let stride = padded(n);
        let slots: Vec<Slot> = genealogy.levels().flatten().copied().collect();
        let count = slots.len() + usize::from(self.pending.is_some());
        work.columns.resize(count * p * stride, 0.0);
        for which in [PATH, GIVEN] {
            let nodes = self.pending.iter().chain(slots.iter().map(|&slot| &self.nodes[slot]));
            for (columns, node) in work.columns.chunks_exact_mut(p * stride).zip(nodes) {
                for (column, row) in columns.chunks_exact_mut(stride).zip(node.rows.chunks_exact(n)) {
                    column[..n].copy_from_slice(row);
                }
            }
            self.bases[which].factor.solve(n, &mut work.columns, stride, count * p);
            let mut columns = work.columns.chunks_exact(p * stride);
            let store = |node: &mut Node, columns: &[f64]| {
                let side = &mut node.sides[which];
                side.h.clear();
                for column in columns.chunks_exact(stride) {
                    side.h.extend_from_slice(&column[..n]);
                }
            };
            // The end of the trunk stands first.
            if let Some((pending, columns)) =
                self.pending.as_mut().and_then(|pending| Some((pending, columns.next()?)))
            {
                store(pending, columns);
            }
            for (&slot, columns) in slots.iter().zip(columns) {
                store(&mut self.nodes[slot], columns);
            }
        }
    }
}

/// The edge from the parent: whitened residual and density.
fn descend(side: &mut Side, parent: Option<&Node>, which: usize, target: &[f64]) {
    side.residuals.clear();
    side.log_density = 0.0;
    let Some(Node { sides, chol_noise, .. }) = parent else { return };
    let (parent, p) = (&sides[which], target.len());
    side.residuals.extend_from_slice(&parent.residuals);
    side.residuals.extend(target.iter().zip(&parent.mean).map(|(target, mean)| target - mean));
    let edge = &mut side.residuals[parent.residuals.len()..];
    small::solve_lower(&parent.chol, p, edge);
    let square: f64 = edge.iter().map(|e| e * e).sum();
    let log_scale = small::log_diagonal(&parent.chol, p) + small::log_diagonal(chol_noise, p);
    side.log_density = parent.log_density - 0.5 * square - log_scale;
}

/// Rows of the factor along the ancestors in the bush.
fn along(side: &mut Side, ancestors: &[&Node], which: usize, p: usize) {
    dispatch(Along { side, ancestors, which, p });
}

struct Along<'a> {
    side: &'a mut Side,
    ancestors: &'a [&'a Node],
    which: usize,
    p: usize,
}

impl Vectorised for Along<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { side, ancestors, which, p } = self;
        let length = ancestors.len() * p;
        let n = side.h.len() / p;
        side.rows.clear();
        side.rows.resize(p * length, 0.0);
        for d in 0..p {
            let h = &side.h[d * n..(d + 1) * n];
            let row = &mut side.rows[d * length..(d + 1) * length];
            for (link, ancestor) in ancestors.iter().enumerate() {
                let ancestor = &ancestor.sides[which];
                let before = link * p;
                for k in 0..p {
                    let mut value = dot_inline(simd, h, &ancestor.h[k * n..(k + 1) * n]);
                    value -= dot_inline(simd, &ancestor.rows[k * before..(k + 1) * before], &row[..before]);
                    for j in 0..k {
                        value -= ancestor.chol[k * p + j] * row[before + j];
                    }
                    row[before + k] = value / ancestor.chol[k * p + k];
                }
            }
        }
    }
}

/// Diagonal block and mean; false if the block had to be set to its bound, the identity.
fn finish(side: &mut Side, base: &WeightFactor, p: usize) -> bool {
    let (n, length) = (side.h.len() / p, side.rows.len() / p);
    let h = |d: usize| &side.h[d * n..(d + 1) * n];
    let row = |d: usize| &side.rows[d * length..(d + 1) * length];
    let mut chol = std::mem::take(&mut side.chol);
    chol.clear();
    chol.resize(p * p, 0.0);
    for a in 0..p {
        for b in 0..=a {
            let gain = dot(h(a), h(b)) - dot(row(a), row(b));
            // Rounding must not take a variance below that of the noise.
            chol[a * p + b] = if a == b { 1.0 + if gain < 0.0 { 0.0 } else { gain } } else { gain };
        }
    }
    let sound = small::cholesky(&mut chol, p);
    if !sound {
        chol.fill(0.0);
        (0..p).for_each(|a| chol[a * p + a] = 1.0);
    }
    let mut mean = std::mem::take(&mut side.mean);
    mean.clear();
    mean.extend((0..p).map(|d| dot(h(d), &base.b) + dot(row(d), &side.residuals)));
    side.chol = chol;
    side.mean = mean;
    sound
}

impl Block for CollapsedBlock {
    fn predict(&self, current: &[Slot], out: &mut Predictions) {
        for (i, &slot) in current.iter().enumerate() {
            out.set_block(i, &self.dims, &self.nodes[slot].mean, &self.nodes[slot].chol);
        }
    }

    fn add_log_futures(&mut self, genealogy: &Genealogy, origins: &[Slot], x_next: &[f64], out: &mut [f64]) {
        for ((out, &slot), &origin) in out.iter_mut().zip(genealogy.current()).zip(origins) {
            let node = &self.nodes[slot];
            let target = self.target(node, x_next);
            let mut next = Side::default();
            descend(&mut next, Some(node), GIVEN, &target);
            *out += next.log_density - self.nodes[origin].sides[PATH].log_density;
        }
    }

    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize) {
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0);
        self.nodes.resize_with(most.max(self.nodes.len()), Node::default);
        for birth in births {
            let x = &x[birth.particle * n_x..(birth.particle + 1) * n_x];
            self.nodes[birth.slot].target =
                birth.parent.map_or(Vec::new(), |parent| self.target(&self.nodes[parent], x));
        }
    }

    fn promote(&mut self, slot: Slot, _: usize) {
        let node = std::mem::take(&mut self.nodes[slot]);
        if let Some(pending) = self.pending.take() {
            let n = self.design.n_weights();
            self.trunk_sums.add(&pending.rows, &node.target, 1.0);
            self.given_sums.add(&pending.rows, &node.target, 1.0);
            for (row, target) in pending.rows.chunks_exact(n).zip(&node.target) {
                self.bases[PATH].add(row, *target, &mut self.work.w, &mut self.work.rotations);
            }
        }
        self.pending = Some(node);
    }

    fn forget(&mut self, _: &Genealogy) {
        if self.next >= self.reference.points.len() {
            return;
        }
        let s = self.next;
        self.next += 1;
        if self.checkpoints.last().is_some_and(|(from, _)| *from == self.next) {
            self.numerics.refreshed += 1;
            self.sum_anew();
        } else {
            self.add_reference(s, -1.0);
        }
    }

    fn rows(&mut self, genealogy: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        let mut rows = std::mem::take(&mut self.work.rows);
        self.numerics.clamped += u64::from(self.design.rows(z, &mut rows).is_err());
        for birth in births {
            let i = birth.particle;
            let node = &mut self.nodes[birth.slot];
            node.rows.clear();
            node.rows.extend_from_slice(&rows.rows[i * p * n..(i + 1) * p * n]);
            node.chol_noise.clear();
            node.chol_noise.extend_from_slice(&rows.chol[i * p * p..(i + 1) * p * p]);
            node.prior.clear();
            node.prior.extend(self.dims.iter().map(|&d| mean[i * n_x + d]));
        }
        self.work.rows = rows;
        self.rebuild(genealogy);
    }

    fn numerics(&self) -> Numerics {
        self.numerics
    }
}

#[cfg(test)]
mod tests;
