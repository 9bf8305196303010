//! The rows of a new generation: four blocks of triangular solves and products with all new particles
//! as columns.

use std::ops::Range;

use super::ExactBlock;

use crate::dynamics::genealogy::{Birth, Genealogy, Slot};
use crate::kernel::{Kernel, Scratch};
use crate::linalg::panels::padded;
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::points::Points;

/// Buffers that live as long as the block.
#[derive(Default)]
pub(super) struct Work {
    scratch: Scratch,
    kernel_row: Vec<f64>,
    /// Columns of the new nodes: along the path, over B, along the path given B.
    path: Vec<f64>,
    future: Vec<f64>,
    given: Vec<f64>,
    chain: Vec<Slot>,
    chain_points: Points,
    chain_values: Vec<f64>,
    tail: Vec<f64>,
}

impl Work {
    pub(super) fn new(n_components: usize) -> Self {
        Self { chain_points: Points::new(n_components), ..Self::default() }
    }
}

/// The p columns of one new node.
struct Columns<'a> {
    path: &'a mut [f64],
    stride: usize,
    future: &'a [f64],
    given: &'a mut [f64],
    given_stride: usize,
}

impl ExactBlock {
    pub(super) fn compute_rows(
        &mut self,
        genealogy: &Genealogy,
        births: &[Birth],
        z: &Points,
        mean: &[f64],
        n_x: usize,
    ) {
        let p = self.p();
        let stride = padded((self.n_context + self.length) * p);
        let given_stride = padded(self.length * p);
        let mut work = std::mem::take(&mut self.work);
        self.solve_trunk(births, z, &mut work, stride, given_stride);
        let mut at = vec![0.0; z.n_components()];
        for (i, birth) in births.iter().enumerate() {
            z.get(birth.particle, &mut at);
            let block = |stride: usize| i * p * stride..(i + 1) * p * stride;
            let conditional = self.future.is_some();
            let mut columns = Columns {
                path: &mut work.path[block(stride)],
                stride,
                future: if conditional { &work.future[block(stride)] } else { &[] },
                given: if conditional { &mut work.given[block(given_stride)] } else { &mut [] },
                given_stride,
            };
            genealogy.chain(birth.slot, &mut work.chain);
            work.chain_points.clear();
            for &slot in &work.chain {
                work.chain_points.push(&self.nodes[slot].z);
            }
            work.chain_values.resize((work.chain.len() * p).max(work.chain_values.len()), 0.0);
            for (kernel, values) in
                self.kernels.iter().zip(work.chain_values.chunks_mut(work.chain.len().max(1)))
            {
                kernel.row(&work.chain_points, 0..work.chain.len(), &at, values, &mut work.scratch);
            }
            self.solve_chain(&work.chain, &work.chain_values, &mut columns);
            let prior: Vec<f64> = self.dims.iter().map(|&d| mean[birth.particle * n_x + d]).collect();
            self.finish(birth.slot, &work.chain, &at, &prior, &columns, &mut work.tail);
        }
        self.work = work;
    }

    /// Everything that the new nodes have in common: context, trunk and the reference's future.
    fn solve_trunk(&self, births: &[Birth], z: &Points, work: &mut Work, stride: usize, given_stride: usize) {
        let p = self.p();
        let n_columns = births.len() * p;
        let n_past = self.path.n_rows();
        work.path.resize(n_columns * stride, 0.0);
        let past = 0..self.points.len();
        self.kernel_columns(
            births,
            z,
            &self.points,
            past,
            &mut work.path,
            stride,
            &mut work.kernel_row,
            &mut work.scratch,
        );
        if let Some(future) = &self.future {
            let n_context = self.n_context * p;
            work.given.resize(n_columns * given_stride, 0.0);
            for (given, path) in work.given.chunks_exact_mut(given_stride).zip(work.path.chunks_exact(stride))
            {
                given[..n_past - n_context].copy_from_slice(&path[n_context..n_past]);
            }
            work.future.resize(n_columns * stride, 0.0);
            let range = 0..future.n_given;
            self.kernel_columns(
                births,
                z,
                &future.points,
                range,
                &mut work.future,
                stride,
                &mut work.kernel_row,
                &mut work.scratch,
            );
            let n_given = future.n_given * p;
            future.factor.solve(n_given, &mut work.future, stride, n_columns);
            let (g, given) = (&work.future, &mut work.given);
            future.trunk.subtract_product(n_given, g, stride, given, given_stride, n_columns);
            future.given.solve(future.given.n_rows(), given, given_stride, n_columns);
        }
        self.path.solve(n_past, &mut work.path, stride, n_columns);
    }

    /// k(points, z) of every new node, spread to rows (point, dimension).
    #[expect(clippy::too_many_arguments, reason = "buffers of one call site")]
    fn kernel_columns(
        &self,
        births: &[Birth],
        z: &Points,
        points: &Points,
        range: Range<usize>,
        columns: &mut [f64],
        stride: usize,
        row: &mut Vec<f64>,
        scratch: &mut Scratch,
    ) {
        let p = self.p();
        let n = range.len();
        let mut at = vec![0.0; z.n_components()];
        row.resize(n.max(row.len()), 0.0);
        for (birth, columns) in births.iter().zip(columns.chunks_exact_mut(p * stride)) {
            z.get(birth.particle, &mut at);
            for (d, (kernel, column)) in self.kernels.iter().zip(columns.chunks_exact_mut(stride)).enumerate()
            {
                if p == 1 {
                    kernel.row(points, range.clone(), &at, column, scratch);
                    continue;
                }
                kernel.row(points, range.clone(), &at, row, scratch);
                column[..n * p].fill(0.0);
                for (s, value) in row[..n].iter().enumerate() {
                    column[s * p + d] = *value;
                }
            }
        }
    }

    /// Continues the columns of a new node through the rows of its bush ancestors.
    fn solve_chain(&self, chain: &[Slot], covariances: &[f64], columns: &mut Columns) {
        let p = self.p();
        let n_past = self.path.n_rows();
        for (link, &slot) in chain.iter().enumerate() {
            let node = &self.nodes[slot];
            for (row, column) in (0..p).flat_map(|row| (0..p).map(move |column| (row, column))) {
                let covariance = if row == column { covariances[row * chain.len() + link] } else { 0.0 };
                let at = n_past + link * p + row;
                let values = &mut columns.path[column * columns.stride..];
                substitute(node.path.row(row), at, covariance, values);
                if let Some(future) = &self.future {
                    let n_given = future.n_given * p;
                    let g = &columns.future[column * columns.stride..][..n_given];
                    let covariance = covariance - dot(node.given.future.row(row), g);
                    let values = &mut columns.given[column * columns.given_stride..];
                    substitute(node.given.rows.row(row), at - self.n_context * p, covariance, values);
                }
            }
        }
    }

    /// Diagonal blocks, means, and the rows as the node keeps them.
    fn finish(
        &mut self,
        slot: Slot,
        chain: &[Slot],
        z: &[f64],
        prior: &[f64],
        columns: &Columns,
        tail: &mut Vec<f64>,
    ) {
        let p = self.p();
        let n = self.path.n_rows() + chain.len() * p;
        let n_trunk = n - self.n_context * p;
        let column = |d: usize| &columns.path[d * columns.stride..][..n];
        let chol = self.predictive_factor(z, |a, b| dot(column(a), column(b)));
        let mean = (0..p).map(|d| {
            self.path_tail(slot, chain, |node| &node.edge, tail);
            prior[d] + whitened_sum(column(d), &self.residuals, tail)
        });
        let mean: Vec<f64> = mean.collect();
        let mut node = std::mem::take(&mut self.nodes[slot]);
        node.z.clear();
        node.z.extend_from_slice(z);
        node.path.set_with_block(columns.path, columns.stride, n, &chol.0);
        node.mean = mean;
        node.chol = chol.0;
        self.n_clamped += u64::from(chol.1);
        self.nodes[slot] = node;
        let Some(future) = &self.future else { return };
        let n_given = future.n_given * p;
        let g = |d: usize| &columns.future[d * columns.stride..][..n_given];
        let row = |d: usize| &columns.given[d * columns.given_stride..][..n_trunk];
        let (chol, clamped) = self.predictive_factor(z, |a, b| dot(g(a), g(b)) + dot(row(a), row(b)));
        self.path_tail(slot, chain, |node| &node.given.edge, tail);
        let mean: Vec<f64> = (0..p)
            .map(|d| {
                prior[d] + dot(g(d), &future.residuals) + whitened_sum(row(d), &future.given_residuals, tail)
            })
            .collect();
        let given = &mut self.nodes[slot].given;
        given.future.set(columns.future, columns.stride, n_given);
        given.rows.set_with_block(columns.given, columns.given_stride, n_trunk, &chol);
        given.mean = mean;
        self.n_clamped += u64::from(clamped);
    }

    /// Residuals of the rows beyond the known ones of the trunk: the edges along the chain and the node's.
    fn path_tail<'a>(
        &'a self,
        slot: Slot,
        chain: &[Slot],
        edge: impl Fn(&'a super::Node) -> &'a Vec<f64>,
        tail: &mut Vec<f64>,
    ) {
        tail.clear();
        for &slot in chain.iter().chain([&slot]) {
            tail.extend_from_slice(edge(&self.nodes[slot]));
        }
    }

    /// Lower factor of K~(z, z) - explained, and whether rounding had to be undone: in exact arithmetic
    /// the covariance is at least the process noise.
    fn predictive_factor(&self, z: &[f64], explained: impl Fn(usize, usize) -> f64) -> (Vec<f64>, bool) {
        let p = self.p();
        let mut s = vec![0.0; p * p];
        for d in 0..p {
            for other in 0..=d {
                let prior = if d == other { self.kernels[d].diagonal(z) } else { 0.0 };
                s[d * p + other] = prior + self.noise[d * p + other] - explained(d, other);
            }
        }
        let below = (0..p).any(|d| s[d * p + d] < self.noise[d * p + d]);
        if below || !small::cholesky(&mut s, p) {
            return (self.noise_chol.clone(), true);
        }
        (s, false)
    }
}

/// One step of forward substitution: entry `at` of `values` from the factor's row.
fn substitute(row: &[f64], at: usize, right_hand_side: f64, values: &mut [f64]) {
    values[at] = (right_hand_side - dot(&row[..at], &values[..at])) / row[at];
}

/// row . (known, tail).
fn whitened_sum(row: &[f64], known: &[f64], tail: &[f64]) -> f64 {
    let n = known.len();
    dot(&row[..n], known) + dot(&row[n..], tail)
}
