//! The exact Gaussian process with f integrated out: one factor for the whole particle tree.
//!
//! Cholesky rows depend on a node and its ancestors only, so each node keeps its rows and N paths of
//! length t cost little more than one. With B the reference's own future pairs (z~_s, x~_{s+1}), s >= t,
//! the ancestor weight (eq. 8 of the paper) is, up to a constant common to all particles,
//!
//! ```text
//! log p(x~_{t:T} | x_{0:t-1}) = log p(x_{1:t-1}, x~_t | B) - log p(x_{1:t-1})
//! ```
//!
//! Each node j has
//!
//! - a row of the factor of K~ along its path (eq. 3: one-step prediction, and the second term),
//! - g_j = R^{-1} k(B, z_j), where R is the factor of K~ over B in reversed time order,
//! - a row of the factor of its path's covariance given B (the first term).
//!
//! When t advances, B loses the last entry of that order: every node drops the last entry of g_j, and
//! the conditional covariance grows by that rank-one term. So the second factor only ever needs rank-one
//! updates, which are stable. With p coupled dimensions (full Q) a node has p rows, ordered (time,
//! dimension).
//!
//! The pairs of other sequences that share f are a constant context that stands first in both orders.
//!
//! - [`node`]: what a node of the bush keeps
//! - [`rows`]: the rows of a new generation
//! - [`futures`]: the reference's future, ancestor weights and rank-one updates

mod futures;
mod node;
mod rows;

use self::futures::Future;
use self::node::{Given, Node};
use self::rows::Work;
use super::block::{Block, Pairs};
use super::genealogy::{Birth, Genealogy, Slot};
use super::numerics::Numerics;
use super::path_density::fill_covariance;
use super::predictions::Predictions;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::linalg::panels::TriangularPanels;
use crate::linalg::small;
use crate::points::Points;

/// One exact GP block: p state dimensions that are coupled by their process noise (p = 1 if Q is diagonal).
pub(crate) struct ExactBlock {
    dims: Vec<usize>,
    kernels: Vec<Kernel>,
    /// Process noise covariance of these dimensions and its factor, row-major.
    noise: Vec<f64>,
    noise_chol: Vec<f64>,
    n_context: usize,
    /// Transitions of the sequence.
    length: usize,
    /// Factor along context and trunk, its inputs, and the whitened residuals of the context.
    path: TriangularPanels,
    points: Points,
    residuals: Vec<f64>,
    future: Option<Box<Future>>,
    nodes: Vec<Node>,
    work: Work,
    n_clamped: u64,
}

impl ExactBlock {
    /// A block for `length` transitions of one sequence; for the conditional filter with the reference's
    /// pairs. The first `memory` pairs of a future depend on the particle through its lags and are not
    /// conditioned on.
    pub(crate) fn new(
        dims: &[usize],
        kernels: Vec<Kernel>,
        noise: Vec<f64>,
        length: usize,
        memory: usize,
        context: &Pairs,
        reference: Option<&Pairs>,
    ) -> Result<Self, NotPositiveDefinite> {
        let p = dims.len();
        let mut noise_chol = noise.clone();
        if !small::cholesky(&mut noise_chol, p) {
            return Err(NotPositiveDefinite { order: p, index: 0 });
        }
        let mut past = context.points.clone();
        Kernel::precompute(&kernels, &mut past);
        let mut points = past.clone();
        let mut residuals = context.select(dims);
        if let Some(reference) = reference {
            let mut z = vec![0.0; points.n_components()];
            let selected = reference.select(dims);
            for s in (0..length).rev() {
                reference.points.get(s, &mut z);
                points.push(&z);
                residuals.extend_from_slice(&selected[s * p..(s + 1) * p]);
            }
        }
        let mut dense = Dense::default();
        fill_covariance(&kernels, &noise, &points, &mut dense, &mut Scratch::default());
        dense.factor()?;
        dense.solve_lower(&mut residuals, 1);
        let n_context = context.points.len();
        let mut path = TriangularPanels::with_capacity((n_context + length) * p);
        path.extend_from(&dense, n_context * p);
        let future =
            reference.map(|_| Box::new(Future::new(&dense, points, residuals.clone(), n_context, memory, p)));
        residuals.truncate(n_context * p);
        Ok(Self {
            dims: dims.to_vec(),
            work: Work::new(&kernels, context),
            kernels,
            noise,
            noise_chol,
            n_context,
            length,
            path,
            points: past,
            residuals,
            future,
            nodes: Vec::new(),
            n_clamped: 0,
        })
    }

    fn p(&self) -> usize {
        self.dims.len()
    }
}

impl Block for ExactBlock {
    fn predict(&self, current: &[Slot], out: &mut Predictions) {
        for (i, &slot) in current.iter().enumerate() {
            out.set_block(i, &self.dims, &self.nodes[slot].mean, &self.nodes[slot].chol);
        }
    }

    fn add_log_futures(&mut self, genealogy: &Genealogy, origins: &[Slot], x_next: &[f64], out: &mut [f64]) {
        let Some(future) = &mut self.future else { return };
        let target: Vec<f64> = self.dims.iter().map(|&d| x_next[d]).collect();
        future.log_densities(genealogy);
        let mut residual = Vec::with_capacity(target.len());
        for ((out, &slot), &origin) in out.iter_mut().zip(genealogy.current()).zip(origins) {
            let given = &future.nodes[slot];
            *out +=
                given.log_density + given.log_next(&target, &mut residual) - self.nodes[origin].log_density;
        }
    }

    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize) {
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0);
        self.nodes.resize_with(most.max(self.nodes.len()), Node::default);
        if let Some(future) = &mut self.future {
            future.nodes.resize_with(self.nodes.len(), Given::default);
        }
        let mut target = vec![0.0; self.p()];
        for birth in births {
            for (value, &d) in target.iter_mut().zip(&self.dims) {
                *value = x[birth.particle * n_x + d];
            }
            match birth.parent {
                None => self.nodes[birth.slot].start(),
                Some(parent) => {
                    // A child never has its parent's slot.
                    if let Ok([child, parent]) = self.nodes.get_disjoint_mut([birth.slot, parent]) {
                        child.descend(parent, &target);
                    }
                }
            }
            let Some(future) = &mut self.future else { continue };
            match birth.parent {
                None => future.nodes[birth.slot].start(),
                Some(parent) => {
                    if let Ok([child, parent]) = future.nodes.get_disjoint_mut([birth.slot, parent]) {
                        child.descend(parent, &target);
                    }
                }
            }
        }
    }

    fn promote(&mut self, slot: Slot, generation: usize) {
        let p = self.p();
        let node = &self.nodes[slot];
        self.points.push(&node.z);
        for d in 0..p {
            let n = self.path.n_rows();
            self.path.push_row(&node.path.row(d)[..=n]);
        }
        if let Some(future) = &mut self.future {
            future.promote(slot, generation, p);
        }
    }

    fn forget(&mut self, genealogy: &Genealogy) {
        let p = self.p();
        if let Some(future) = &mut self.future {
            future.forget(genealogy, p);
        }
    }

    fn rows(&mut self, genealogy: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize) {
        self.compute_rows(genealogy, births, z, mean, n_x);
    }

    fn numerics(&self) -> Numerics {
        Numerics { clamped: self.n_clamped, ..Numerics::default() }
    }
}
