//! Cholesky factor of one dense symmetric matrix.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

/// A matrix of order n, column-major, of which the lower triangle counts; and the room to factor it.
///
/// Kept between evaluations so that a density costs no allocation.
pub(crate) struct Dense {
    n: usize,
    data: Vec<f64>,
    scratch: MemBuffer,
    scratch_order: usize,
}

impl std::fmt::Debug for Dense {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Dense").field("order", &self.n).finish_non_exhaustive()
    }
}

impl Default for Dense {
    fn default() -> Self {
        Self { n: 0, data: Vec::new(), scratch: Self::scratch_for(0), scratch_order: 0 }
    }
}

/// A pivot was not positive: the matrix is not positive definite to working precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matrix of order {order} is not positive definite to working precision (row {index})")]
pub struct NotPositiveDefinite {
    /// Order of the matrix.
    pub order: usize,
    /// Row of the pivot.
    pub index: usize,
}

impl Dense {
    fn scratch_for(n: usize) -> MemBuffer {
        MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, Default::default()))
    }

    /// Makes the order `n`; the entries are left as they happen to be.
    pub(crate) fn resize(&mut self, n: usize) {
        self.n = n;
        self.data.resize(n * n, 0.0);
        if n > self.scratch_order {
            self.scratch = Self::scratch_for(n);
            self.scratch_order = n;
        }
    }

    /// The order.
    pub(crate) fn order(&self) -> usize {
        self.n
    }

    /// Entries from the diagonal of column `j` downwards.
    pub(crate) fn lower_column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.n + j..(j + 1) * self.n]
    }

    /// The same, to be read.
    pub(crate) fn lower_column(&self, j: usize) -> &[f64] {
        &self.data[j * self.n + j..(j + 1) * self.n]
    }

    /// L x.
    pub(crate) fn multiply_lower(&self, x: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.n];
        for (j, x) in x.iter().enumerate() {
            product[j..].iter_mut().zip(self.lower_column(j)).for_each(|(sum, l)| *sum += l * x);
        }
        product
    }

    /// Entry (i, j) of the lower triangle.
    pub(crate) fn get(&self, i: usize, j: usize) -> f64 {
        self.data[j * self.n + i]
    }

    /// Entry (i, j), to be set.
    pub(crate) fn get_mut(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.data[j * self.n + i]
    }

    /// Replaces the lower triangle by its Cholesky factor, with faer on one thread.
    pub(crate) fn factor(&mut self) -> Result<(), NotPositiveDefinite> {
        let n = self.n;
        if n == 0 {
            return Ok(());
        }
        let a = MatMut::from_column_major_slice_mut(&mut self.data, n, n);
        let stack = MemStack::new(&mut self.scratch);
        cholesky_in_place(a, Default::default(), Par::Seq, stack, Default::default()).map_err(|error| {
            let faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index } = error;
            NotPositiveDefinite { order: n, index }
        })?;
        // A matrix that holds NaN or infinity can pass the pivot test.
        match (0..n).find(|&i| !self.get(i, i).is_finite()) {
            Some(index) => Err(NotPositiveDefinite { order: n, index }),
            None => Ok(()),
        }
    }

    /// Adds R' R to the lower triangle, for `n_rows` rows R that lie one after another.
    pub(crate) fn add_gram(&mut self, rows: &[f64], n_rows: usize) {
        let n = self.n;
        if n == 0 || n_rows == 0 {
            return;
        }
        let rows = MatRef::from_row_major_slice(&rows[..n_rows * n], n_rows, n);
        let gram = MatMut::from_column_major_slice_mut(&mut self.data, n, n);
        matmul(
            gram,
            BlockStructure::TriangularLower,
            Accum::Add,
            rows.transpose(),
            BlockStructure::Rectangular,
            rows,
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
    }

    /// Takes over order and entries of another matrix.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.resize(other.n);
        self.data.copy_from_slice(&other.data);
    }

    /// A matrix with the same entries.
    pub(crate) fn duplicate(&self) -> Self {
        let mut copy = Self::default();
        copy.copy_from(self);
        copy
    }

    /// Becomes the sum of two matrices of its order.
    pub(crate) fn set_sum(&mut self, a: &Self, b: &Self) {
        for (value, (a, b)) in self.data.iter_mut().zip(a.data.iter().zip(&b.data)) {
            *value = a + b;
        }
    }

    /// `b <- L^{-T} b`.
    pub(crate) fn solve_lower_transposed(&self, b: &mut [f64]) {
        let n = self.n;
        if n == 0 {
            return;
        }
        let l = MatRef::from_column_major_slice(&self.data, n, n);
        let b = MatMut::from_column_major_slice_mut(&mut b[..n], n, 1);
        solve_upper_triangular_in_place(l.transpose(), b, Par::Seq);
    }

    /// `b <- L^{-1} b` for `n_columns` columns that lie one after another.
    pub(crate) fn solve_lower(&self, b: &mut [f64], n_columns: usize) {
        let n = self.n;
        if n == 0 || n_columns == 0 {
            return;
        }
        let l = MatRef::from_column_major_slice(&self.data, n, n);
        let b = MatMut::from_column_major_slice_mut(&mut b[..n * n_columns], n, n_columns);
        solve_lower_triangular_in_place(l, b, Par::Seq);
    }

    /// Sum of the logarithms of the diagonal of the factor.
    pub(crate) fn log_diagonal(&self) -> f64 {
        (0..self.n).map(|i| self.get(i, i).ln()).sum()
    }
}
