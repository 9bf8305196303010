//! What a node of the bush keeps.

use std::f64::consts::PI;

use crate::linalg::small;

/// p rows of equal stride.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    stride: usize,
    data: Vec<f64>,
}

impl Rows {
    pub(super) fn row(&self, d: usize) -> &[f64] {
        &self.data[d * self.stride..(d + 1) * self.stride]
    }

    pub(super) fn row_mut(&mut self, d: usize) -> &mut [f64] {
        &mut self.data[d * self.stride..(d + 1) * self.stride]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.data.chunks_exact_mut(self.stride.max(1))
    }

    /// The first `length` entries of each of the columns that lie `stride` apart in `columns`.
    pub(super) fn set(&mut self, columns: &[f64], stride: usize, length: usize) {
        self.stride = length;
        self.data.clear();
        for column in columns.chunks_exact(stride) {
            self.data.extend_from_slice(&column[..length]);
        }
    }

    /// The same, with the rows of a p by p block at the end.
    pub(super) fn set_with_block(&mut self, columns: &[f64], stride: usize, length: usize, block: &[f64]) {
        let p = columns.len() / stride;
        self.stride = length + p;
        self.data.clear();
        for (column, block) in columns.chunks_exact(stride).zip(block.chunks_exact(p)) {
            self.data.extend_from_slice(&column[..length]);
            self.data.extend_from_slice(block);
        }
    }
}

/// A node's side of the path factor given the reference's future B; kept apart from [`Node`], so that a filter
/// without a reference does not carry it along.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// g = R^{-1} k(B, z), one row for each dimension.
    pub future: Rows,
    /// Rows of the factor; the diagonal block ends them.
    pub rows: Rows,
    /// Whitened residual of the edge from the parent.
    pub edge: Vec<f64>,
    /// Mean and lower factor of the covariance of the next state.
    pub mean: Vec<f64>,
    pub chol: Vec<f64>,
    /// Sum over the path of -|e|^2 / 2 - log diagonal.
    pub log_density: f64,
    /// The residual that is carried on in the current rank-one update.
    pub carry: f64,
}

impl Given {
    /// Reads the diagonal block of the factor again after its rows were rotated.
    pub(super) fn refresh(&mut self) {
        let p = self.mean.len();
        for d in 0..p {
            let row = self.rows.row(d);
            let from = row.len() - p;
            self.chol[d * p..=d * p + d].copy_from_slice(&row[from..=from + d]);
        }
    }

    /// A node of generation 0: no edge leads to it.
    pub(super) fn start(&mut self) {
        self.edge.clear();
        self.log_density = 0.0;
    }

    /// The edge from `parent` to this node, whose state is `x`.
    pub(super) fn descend(&mut self, parent: &Given, x: &[f64]) {
        self.edge.clear();
        self.edge.extend(x.iter().zip(&parent.mean).map(|(x, mean)| x - mean));
        small::solve_lower(&parent.chol, x.len(), &mut self.edge);
    }

    /// log N(x | mean, covariance) without the constant; `residual` is room.
    pub(super) fn log_next(&self, x: &[f64], residual: &mut Vec<f64>) -> f64 {
        let p = x.len();
        residual.clear();
        residual.extend(x.iter().zip(&self.mean).map(|(x, mean)| x - mean));
        small::log_gaussian(&self.chol, p, residual) + 0.5 * p as f64 * (2.0 * PI).ln()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub z: Vec<f64>,
    /// Rows of the factor along the path; the diagonal block ends them.
    pub path: Rows,
    /// Whitened residuals of all edges of the path, the one from the parent last. Copied from the parent:
    /// gathering them along the path would touch every ancestor.
    pub residuals: Vec<f64>,
    /// Mean and lower factor of the covariance of the next state, given the path.
    pub mean: Vec<f64>,
    pub chol: Vec<f64>,
    /// log p(x_{1:s} | x_0), with the constants left out that `Given` leaves out.
    pub log_density: f64,
}

impl Node {
    /// A node of generation 0: no edge leads to it.
    pub(super) fn start(&mut self) {
        self.residuals.clear();
        self.log_density = 0.0;
    }

    /// The edge from `parent` to this node, whose state is `x`.
    pub(super) fn descend(&mut self, parent: &Node, x: &[f64]) {
        let p = x.len();
        self.residuals.clone_from(&parent.residuals);
        self.residuals.extend(x.iter().zip(&parent.mean).map(|(x, mean)| x - mean));
        let edge = &mut self.residuals[parent.residuals.len()..];
        let constant = 0.5 * p as f64 * (2.0 * PI).ln();
        self.log_density = parent.log_density + small::log_gaussian(&parent.chol, p, edge) + constant;
    }
}
