//! The rows of a new generation: four blocks of triangular solves and products with all new particles
//! as columns.

use std::ops::Range;

use super::ExactBlock;

use crate::dynamics::block::Pairs;
use crate::dynamics::genealogy::{Birth, Genealogy, Slot};
use crate::kernel::{Cross, Kernel, Scratch};
use crate::linalg::panels::padded;
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::linalg::tiles::{self, TILE};
use crate::points::Points;

/// New nodes whose columns are formed at one time: few enough to stay in the cache.
const TOGETHER: usize = 64;

/// Buffers that live as long as the block.
#[derive(Default)]
pub(super) struct Work {
    /// The kernels as sums of what depends on the state and what depends on inputs only.
    split: Vec<(Kernel, Kernel)>,
    scratch: Scratch,
    kernel_row: Vec<f64>,
    /// Columns of the new nodes: along the path, over B, along the path given B.
    path: Vec<f64>,
    future: Vec<f64>,
    given: Vec<f64>,
    members: Vec<Member>,
    chain: Vec<Slot>,
    chain_points: Points,
    /// Covariances of the inputs along the chain with those of the new nodes, by dimension.
    of_inputs: Vec<f64>,
    tail: Vec<f64>,
}

/// A new node on its way through the bush.
#[derive(Default)]
struct Member {
    chain: Vec<Slot>,
    /// k_d(z_ancestor, z), by dimension and link of the chain.
    covariances: Vec<f64>,
}

impl Work {
    pub(super) fn new(kernels: &[Kernel], context: &Pairs) -> Self {
        let split = kernels.iter().map(|kernel| kernel.split_at(context.n_x)).collect();
        let members = std::iter::repeat_with(Member::default).take(TILE).collect();
        let mut chain_points = Points::new(context.points.n_components());
        Kernel::precompute(kernels, &mut chain_points);
        Self { split, chain_points, members, ..Self::default() }
    }
}

/// The columns of some new nodes, p for each, one node after another.
struct Columns<'a> {
    path: &'a mut [f64],
    stride: usize,
    future: &'a [f64],
    given: &'a mut [f64],
    given_stride: usize,
}

impl Columns<'_> {
    /// The columns of node `i` of `p` dimensions.
    fn node(&mut self, i: usize, p: usize) -> Columns<'_> {
        let block = |stride: usize| i * p * stride..(i + 1) * p * stride;
        let conditional = !self.future.is_empty();
        Columns {
            path: &mut self.path[block(self.stride)],
            stride: self.stride,
            future: if conditional { &self.future[block(self.stride)] } else { &[] },
            given: if conditional { &mut self.given[block(self.given_stride)] } else { &mut [] },
            given_stride: self.given_stride,
        }
    }
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
        for births in births.chunks(TOGETHER) {
            self.compute_rows_of(genealogy, births, z, mean, n_x);
        }
    }

    fn compute_rows_of(
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
        work.chain.clear();
        work.of_inputs.clear();
        let mut at = vec![0.0; z.n_components()];
        let conditional = self.future.is_some();
        let mut start = 0;
        for group in self.families(genealogy, births, &mut work.chain) {
            let common = self.gather(genealogy, group, z, &mut work);
            let block = |stride: usize| start * p * stride..(start + group.len()) * p * stride;
            let mut columns = Columns {
                path: &mut work.path[block(stride)],
                stride,
                future: if conditional { &work.future[block(stride)] } else { &[] },
                given: if conditional { &mut work.given[block(given_stride)] } else { &mut [] },
                given_stride,
            };
            let members = &work.members[..group.len()];
            self.solve_links(members, 0..common, &mut columns);
            for (i, birth) in group.iter().enumerate() {
                let member = &members[i];
                let mut columns = columns.node(i, p);
                self.solve_links(std::slice::from_ref(member), common..member.chain.len(), &mut columns);
                z.get(birth.particle, &mut at);
                let prior: Vec<f64> = self.dims.iter().map(|&d| mean[birth.particle * n_x + d]).collect();
                self.finish(birth.slot, &member.chain, &at, &prior, &columns, &mut work.tail);
            }
            start += group.len();
        }
        self.work = work;
    }

    /// Splits the births into groups of relatives that share most of their ancestors in the bush and go through
    /// them together.
    fn families<'b>(
        &self,
        genealogy: &Genealogy,
        births: &'b [Birth],
        chain: &mut Vec<Slot>,
    ) -> Vec<&'b [Birth]> {
        let most = (TILE / self.p()).max(1);
        let mut families = Vec::new();
        let mut from = 0;
        chain.clear();
        for (i, birth) in births.iter().enumerate() {
            let common = genealogy.chain(birth.slot, chain);
            if i > from && (i - from == most || 2 * common < chain.len()) {
                families.push(&births[from..i]);
                from = i;
            }
        }
        families.push(&births[from..]);
        chain.clear();
        families
    }

    /// Chains and kernel values of a group of relatives; returns how many links they all share.
    fn gather(&self, genealogy: &Genealogy, group: &[Birth], z: &Points, work: &mut Work) -> usize {
        let p = self.p();
        let mut common = usize::MAX;
        let mut at = vec![0.0; z.n_components()];
        for (i, (birth, member)) in group.iter().zip(&mut work.members).enumerate() {
            let known = genealogy.chain(birth.slot, &mut work.chain);
            let n = work.chain.len();
            common = if i == 0 { n } else { common.min(known) };
            work.chain_points.truncate(known);
            for &slot in &work.chain[known..] {
                work.chain_points.push(&self.nodes[slot].z);
            }
            member.chain.clear();
            member.chain.extend_from_slice(&work.chain);
            member.covariances.resize(n * p, 0.0);
            z.get(birth.particle, &mut at);
            // Chains of one generation pass through the same times, so they have the same inputs.
            let by_dimension = work.split.iter().zip(member.covariances.chunks_mut(n.max(1)));
            for (d, ((of_state, of_inputs), values)) in by_dimension.enumerate() {
                of_state.row(&work.chain_points, 0..n, &at, values, &mut work.scratch);
                if of_inputs.is_zero() {
                    continue;
                }
                if work.of_inputs.len() < (d + 1) * n {
                    work.of_inputs.resize((d + 1) * n, 0.0);
                    let row = &mut work.of_inputs[d * n..];
                    of_inputs.row(&work.chain_points, 0..n, &at, row, &mut work.scratch);
                }
                values.iter_mut().zip(&work.of_inputs[d * n..]).for_each(|(sum, value)| *sum += value);
            }
        }
        common
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
        let particles: Vec<usize> = births.iter().map(|birth| birth.particle).collect();
        if let [kernel] = self.kernels.as_slice() {
            let cross = Cross { points, range, at: z, which: &particles };
            return kernel.rows(&cross, columns, stride, scratch);
        }
        row.resize((n * births.len()).max(row.len()), 0.0);
        for (d, kernel) in self.kernels.iter().enumerate() {
            let cross = Cross { points, range: range.clone(), at: z, which: &particles };
            kernel.rows(&cross, row, n.max(1), scratch);
            for (columns, row) in columns.chunks_exact_mut(p * stride).zip(row.chunks(n.max(1))) {
                let column = &mut columns[d * stride..];
                column[..n * p].fill(0.0);
                for (s, value) in row[..n].iter().enumerate() {
                    column[s * p + d] = *value;
                }
            }
        }
    }

    /// Continues the columns of new nodes through the rows of bush ancestors that they share.
    fn solve_links(&self, members: &[Member], links: Range<usize>, columns: &mut Columns) {
        let p = self.p();
        let Some(chain) = members.first().map(|member| &member.chain) else { return };
        let rows = chain[links.clone()].iter().flat_map(|&slot| (0..p).map(move |d| (slot, d)));
        let mut rows = rows.zip(links.start * p..).peekable();
        let mut tile: [(Slot, usize); TILE] = [(0, 0); TILE];
        while let Some(&(_, first)) = rows.peek() {
            let mut n_rows = 0;
            for (place, (row, _)) in tile.iter_mut().zip(rows.by_ref().take(TILE)) {
                *place = row;
                n_rows += 1;
            }
            let mut from = 0;
            while from < members.len() * p {
                let n = TILE.min(members.len() * p - from);
                self.solve_tile(members, &tile[..n_rows], first, from, n, columns);
                from += n;
            }
        }
    }

    /// The same for up to four rows, of which the first is number `first` of the chain, and the columns
    /// `from..from + n`.
    fn solve_tile(
        &self,
        members: &[Member],
        tile: &[(Slot, usize)],
        first: usize,
        from: usize,
        n: usize,
        columns: &mut Columns,
    ) {
        let p = self.p();
        let mut right = [[0.0; TILE]; TILE];
        for c in 0..n {
            let (member, d) = if p == 1 { (from + c, 0) } else { ((from + c) / p, (from + c) % p) };
            let covariances = &members[member].covariances[d * members[member].chain.len()..];
            for (r, &(_, row)) in tile.iter().enumerate() {
                if row == d {
                    right[r][c] = covariances[if p == 1 { first + r } else { (first + r) / p }];
                }
            }
        }
        let mut rows: [&[f64]; TILE] = [&[]; TILE];
        for (row, &(slot, d)) in rows.iter_mut().zip(tile) {
            *row = self.nodes[slot].path.row(d);
        }
        let (n_rows, at) = (tile.len(), self.path.n_rows() + first);
        let values = &mut columns.path[from * columns.stride..];
        tiles::substitute(&rows[..n_rows], at, &right, values, columns.stride, n);
        let Some(future) = &self.future else { return };
        for (row, &(slot, d)) in rows.iter_mut().zip(tile) {
            *row = future.nodes[slot].future.row(d);
        }
        let g = &columns.future[from * columns.stride..];
        let explained = tiles::products(&rows[..n_rows], g, columns.stride, future.n_given * p);
        for (right, explained) in right.iter_mut().zip(&explained) {
            right.iter_mut().zip(explained).for_each(|(right, explained)| *right -= explained);
        }
        for (row, &(slot, d)) in rows.iter_mut().zip(tile) {
            *row = future.nodes[slot].rows.row(d);
        }
        let values = &mut columns.given[from * columns.given_stride..];
        tiles::substitute(&rows[..n_rows], at - self.n_context * p, &right, values, columns.given_stride, n);
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
        let column = |d: usize| &columns.path[d * columns.stride..][..n];
        let mut chol = std::mem::take(&mut self.nodes[slot].chol);
        let mut mean = std::mem::take(&mut self.nodes[slot].mean);
        self.predictive_factor(z, |a, b| dot(column(a), column(b)), &mut chol);
        let residuals = &self.nodes[slot].residuals;
        mean.clear();
        mean.extend((0..p).map(|d| prior[d] + whitened_sum(column(d), &self.residuals, residuals)));
        let node = &mut self.nodes[slot];
        node.z.clear();
        node.z.extend_from_slice(z);
        node.path.set_with_block(columns.path, columns.stride, n, &chol);
        node.mean = mean;
        node.chol = chol;
        self.finish_given(slot, chain, z, prior, columns, tail);
    }

    /// The same given the reference's future.
    fn finish_given(
        &mut self,
        slot: Slot,
        chain: &[Slot],
        z: &[f64],
        prior: &[f64],
        columns: &Columns,
        tail: &mut Vec<f64>,
    ) {
        // Taken out for the time being: its nodes are written while the rest is read.
        let Some(mut future) = self.future.take() else { return };
        let p = self.p();
        let n_given = future.n_given * p;
        let n = self.path.n_rows() + chain.len() * p - self.n_context * p;
        let g = |d: usize| &columns.future[d * columns.stride..][..n_given];
        let row = |d: usize| &columns.given[d * columns.given_stride..][..n];
        tail.clear();
        for &slot in chain.iter().chain([&slot]) {
            tail.extend_from_slice(&future.nodes[slot].edge);
        }
        let given = &mut future.nodes[slot];
        self.predictive_factor(z, |a, b| dot(g(a), g(b)) + dot(row(a), row(b)), &mut given.chol);
        given.mean.clear();
        given.mean.extend((0..p).map(|d| {
            let from_future = dot(g(d), &future.residuals);
            prior[d] + from_future + whitened_sum(row(d), &future.given_residuals, tail)
        }));
        given.future.set(columns.future, columns.stride, n_given);
        given.rows.set_with_block(columns.given, columns.given_stride, n, &given.chol);
        self.future = Some(future);
    }

    /// Lower factor of K~(z, z) - explained. In exact arithmetic this is at least the process noise; where
    /// rounding brought it below, it is set to that and counted.
    fn predictive_factor(&mut self, z: &[f64], explained: impl Fn(usize, usize) -> f64, chol: &mut Vec<f64>) {
        let p = self.p();
        chol.clear();
        chol.resize(p * p, 0.0);
        for d in 0..p {
            for other in 0..=d {
                let prior = if d == other { self.kernels[d].diagonal(z) } else { 0.0 };
                chol[d * p + other] = prior + self.noise[d * p + other] - explained(d, other);
            }
        }
        let mut clamped = false;
        for d in 0..p {
            let (entry, bound) = (&mut chol[d * p + d], self.noise[d * p + d]);
            // A comparison that NaN fails: it is left to the factorisation.
            if *entry < bound {
                *entry = bound;
                clamped = true;
            }
        }
        if !small::cholesky(chol, p) {
            chol.copy_from_slice(&self.noise_chol);
            clamped = true;
        }
        self.n_clamped += u64::from(clamped);
    }
}

/// row . (known, tail).
fn whitened_sum(row: &[f64], known: &[f64], tail: &[f64]) -> f64 {
    let n = known.len();
    dot(&row[..n], known) + dot(&row[n..], tail)
}
