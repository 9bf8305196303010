//! The unconditional filter with weights integrated out.
//!
//! I + A of a path depends on the inputs z along it alone, so all children of one particle share its factor: there
//! is one for each *family*, and none for particles that leave no children. Outputs enter L^{-1} b alone, and
//! linearly: for a child with whitened target tau it is b + sum_k tau_k q_k with b and q of the family. A family's
//! factor is formed when the inputs of its children are known, so that it meets them while it is at hand.

use super::regression::{Design, Rows, Statistics, WeightFactor};
use crate::dynamics::block::{Block, Pairs};
use crate::dynamics::genealogy::{Birth, Genealogy, Slot};
use crate::dynamics::numerics::Numerics;
use crate::dynamics::predictions::Predictions;
use crate::linalg::branching::{Growth, grow, solve_few};
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::panels::{HEIGHT, TriangularPanels, padded};
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::points::Points;

/// What the children of one particle share.
#[derive(Clone, Debug, Default)]
struct Family {
    /// The factor of I + A up to and with the parent's input.
    factor: TriangularPanels,
    /// L^{-1} b without the children's own outputs, then q_k; (1 + p, weight).
    b: Vec<f64>,
}

/// What is known of a particle.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Index of its family, and of the family of its children once there is one.
    family: usize,
    children: Option<usize>,
    /// Its state as whitened target of its parent.
    target: Vec<f64>,
    chol_noise: Vec<f64>,
    prior: Vec<f64>,
    mean: Vec<f64>,
    chol: Vec<f64>,
}

pub(crate) struct ForwardBlock {
    dims: Vec<usize>,
    design: Design,
    /// The families of this generation, and those of the one before.
    families: Vec<Family>,
    before: Vec<Family>,
    /// Parents of the families of this generation; none if they stand from the start.
    parents: Vec<Slot>,
    /// By slot, and by slot the whitened rows H and L^{-1} H', (slot, dimension, padded weight).
    nodes: Vec<Node>,
    h: Vec<f64>,
    columns: Vec<f64>,
    work: Work,
    n_clamped: u64,
}

#[derive(Default)]
struct Work {
    rows: Rows,
    growth: Growth,
    factor: TriangularPanels,
    columns: Vec<f64>,
    white: Vec<f64>,
}

impl ForwardBlock {
    pub(crate) fn new(dims: &[usize], design: Design, context: &Pairs) -> Result<Self, NotPositiveDefinite> {
        let mut statistics = Statistics::new(design.n_weights());
        statistics.add(&design, dims, context, 0..context.points.len())?;
        let mut weights = WeightFactor::default();
        weights.set(&mut statistics.gram, &statistics.b)?;
        weights.b.resize((1 + design.p()) * design.n_weights(), 0.0);
        Ok(Self {
            dims: dims.to_vec(),
            design,
            families: vec![Family { factor: weights.factor, b: weights.b }],
            before: Vec::new(),
            parents: Vec::new(),
            nodes: Vec::new(),
            h: Vec::new(),
            columns: Vec::new(),
            work: Work::default(),
            n_clamped: 0,
        })
    }

    /// Length of a padded row, and of all rows of a node.
    fn strides(&self) -> (usize, usize) {
        let stride = padded(self.design.n_weights());
        (stride, self.design.p() * stride)
    }

    /// Forms family `index` from its parent, a node of the generation before.
    fn found(&mut self, index: usize) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        let (stride, size) = self.strides();
        let parent = self.parents[index];
        if self.families.len() == index {
            self.families.push(Family::default());
        }
        let (node, Family { factor, b }) = (&self.nodes[parent], &mut self.families[index]);
        let old = &self.before[node.family];
        let work = &mut self.work;
        b.clear();
        b.extend_from_slice(&old.b[..n]);
        for (target, q) in node.target.iter().zip(old.b[n..].chunks_exact(n)) {
            b.iter_mut().zip(q).for_each(|(b, q)| *b += target * q);
        }
        work.columns.clear();
        work.columns.extend_from_slice(&self.columns[parent * size..(parent + 1) * size]);
        for k in 0..p {
            let h = &self.h[parent * size + k * stride..][..stride];
            work.growth.set(&work.columns[k * stride..k * stride + n.next_multiple_of(HEIGHT)]);
            if k == 0 {
                grow(&old.factor, h, &work.growth, factor);
            } else {
                grow(factor, h, &work.growth, &mut work.factor);
                std::mem::swap(factor, &mut work.factor);
            }
            b.chunks_exact_mut(n).for_each(|vector| work.growth.solve(vector));
            b.extend_from_slice(&work.growth.solved()[..n]);
            let later = work.columns[(k + 1) * stride..].chunks_exact_mut(stride);
            later.for_each(|column| work.growth.solve(&mut column[..n]));
        }
    }

    /// The next state of a node, from its columns.
    fn predict_node(&mut self, slot: Slot) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        let (stride, size) = self.strides();
        let column = |k: usize| &self.columns[slot * size + k * stride..][..n];
        let node = &mut self.nodes[slot];
        let b = &self.families[node.family].b;
        let white = &mut self.work.white;
        white.clear();
        white.resize(p * p + p, 0.0);
        let (covariance, offset) = white.split_at_mut(p * p);
        for a in 0..p {
            for other in 0..=a {
                covariance[a * p + other] = dot(column(a), column(other)) + f64::from(u8::from(a == other));
            }
            offset[a] = dot(column(a), &b[..n]);
            for (target, q) in node.target.iter().zip(b[n..].chunks_exact(n)) {
                offset[a] += target * dot(column(a), q);
            }
        }
        self.n_clamped += u64::from(!small::cholesky(covariance, p));
        node.mean.resize(p, 0.0);
        small::multiply_lower(&node.chol_noise, p, offset, &mut node.mean);
        node.mean.iter_mut().zip(&node.prior).for_each(|(mean, prior)| *mean += prior);
        if p == 1 {
            node.chol.clear();
            node.chol.push(node.chol_noise[0] * covariance[0]);
        } else {
            small::multiply_lowers(&node.chol_noise, covariance, p, &mut node.chol);
        }
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
        let (_, size) = self.strides();
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0).max(self.nodes.len());
        self.nodes.resize_with(most, Node::default);
        self.h.resize(most * size, 0.0);
        self.columns.resize(most * size, 0.0);
        if births.iter().any(|birth| birth.parent.is_some()) {
            std::mem::swap(&mut self.families, &mut self.before);
        }
        self.parents.clear();
        for birth in births {
            let mut child = std::mem::take(&mut self.nodes[birth.slot]);
            child.children = None;
            child.target.clear();
            child.family = 0;
            if let Some(parent) = birth.parent {
                child.family = self.nodes[parent].children.unwrap_or_else(|| {
                    self.parents.push(parent);
                    self.parents.len() - 1
                });
                let parent = &mut self.nodes[parent];
                parent.children = Some(child.family);
                let x = &x[birth.particle * n_x..(birth.particle + 1) * n_x];
                child.target.extend(self.dims.iter().zip(&parent.prior).map(|(&d, prior)| x[d] - prior));
                small::solve_lower(&parent.chol_noise, self.dims.len(), &mut child.target);
            }
            self.nodes[birth.slot] = child;
        }
    }

    fn promote(&mut self, _: Slot, _: usize) {}

    fn forget(&mut self, _: &Genealogy) {}

    fn rows(&mut self, _: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize) {
        let (p, n) = (self.design.p(), self.design.n_weights());
        let (stride, size) = self.strides();
        self.n_clamped += u64::from(self.design.rows(z, &mut self.work.rows).is_err());
        for birth in births {
            let i = birth.particle;
            let node = &mut self.nodes[birth.slot];
            node.prior.clear();
            node.prior.extend(self.dims.iter().map(|&d| mean[i * n_x + d]));
            node.chol_noise.clear();
            node.chol_noise.extend_from_slice(&self.work.rows.chol[i * p * p..(i + 1) * p * p]);
            let range = birth.slot * size..(birth.slot + 1) * size;
            let rows = self.work.rows.rows[i * p * n..(i + 1) * p * n].chunks_exact(n);
            for (h, row) in self.h[range.clone()].chunks_exact_mut(stride).zip(rows) {
                h[..n].copy_from_slice(row);
            }
            self.columns[range.clone()].copy_from_slice(&self.h[range]);
        }
        let mut n_founded = 0;
        let mut at = 0;
        while at < births.len() {
            // Siblings side by side meet their factor together.
            let family = self.nodes[births[at].slot].family;
            let pairs = births[at..].windows(2);
            let together = |pair: &&[Birth]| {
                pair[1].slot == pair[0].slot + 1 && self.nodes[pair[1].slot].family == family
            };
            let count = 1 + pairs.take_while(together).count();
            // Families are numbered in the order in which their first child was born.
            if n_founded < self.parents.len() && family == n_founded {
                self.found(family);
                n_founded += 1;
            }
            let siblings = births[at].slot..births[at].slot + count;
            let columns = &mut self.columns[siblings.start * size..siblings.end * size];
            solve_few(&self.families[family].factor, columns, stride);
            siblings.for_each(|slot| self.predict_node(slot));
            at += count;
        }
    }

    /// All of a path that matters is in its family and its node.
    fn is_markov(&self) -> bool {
        true
    }

    fn numerics(&self) -> Numerics {
        let relative_jitter = self.design.relative_jitter();
        Numerics { clamped: self.n_clamped, relative_jitter, ..Numerics::default() }
    }
}
