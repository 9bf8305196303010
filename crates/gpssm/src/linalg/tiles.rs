//! Forward substitution through single rows: four rows meet up to four columns at once.

use pulp::Simd;

use super::simd::{Vectorised, dispatch, dot_inline};

/// Rows and columns of a tile.
pub(crate) const TILE: usize = 4;

/// The products of up to four rows with up to four columns, each over the first `length` entries.
pub(crate) fn products(
    rows: &[&[f64]],
    columns: &[f64],
    stride: usize,
    length: usize,
) -> [[f64; TILE]; TILE] {
    let n_columns = if columns.len() < length { 0 } else { (columns.len() - length) / stride.max(1) + 1 };
    dispatch(Tile { rows, columns, stride, length, n_columns: n_columns.min(TILE) })
}

struct Tile<'a> {
    rows: &'a [&'a [f64]],
    columns: &'a [f64],
    stride: usize,
    length: usize,
    n_columns: usize,
}

impl Vectorised for Tile<'_> {
    type Output = [[f64; TILE]; TILE];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut out = [[0.0; TILE]; TILE];
        let column = |c: usize| &self.columns[c * self.stride..][..self.length];
        if let (&[a, b, c, d], TILE) = (self.rows, self.n_columns) {
            // Two halves, so that the sums of each stay in registers with sixteen of them.
            let rows = [a, b, c, d].map(|row| &row[..self.length]);
            for half in 0..2 {
                let columns = [column(2 * half), column(2 * half + 1)];
                let sums = block::<S, 4, 2>(simd, &rows, &columns);
                for r in 0..TILE {
                    out[r][2 * half] = sums[r][0];
                    out[r][2 * half + 1] = sums[r][1];
                }
            }
        } else if let &[a, b, c, d] = self.rows {
            let rows = [a, b, c, d].map(|row| &row[..self.length]);
            for c in 0..self.n_columns {
                let sums = block::<S, 4, 1>(simd, &rows, &[column(c)]);
                for r in 0..TILE {
                    out[r][c] = sums[r][0];
                }
            }
        } else {
            for (r, row) in self.rows.iter().enumerate() {
                for c in 0..self.n_columns {
                    out[r][c] = dot_inline(simd, &row[..self.length], column(c));
                }
            }
        }
        out
    }
}

#[inline(always)]
fn block<S: Simd, const R: usize, const C: usize>(
    simd: S,
    rows: &[&[f64]; R],
    columns: &[&[f64]; C],
) -> [[f64; C]; R] {
    let length = rows[0].len();
    let n_vectors = length / S::F64_LANES;
    let mut row_vectors: [&[S::f64s]; R] = [&[]; R];
    let mut column_vectors: [&[S::f64s]; C] = [&[]; C];
    for r in 0..R {
        row_vectors[r] = &S::as_simd_f64s(rows[r]).0[..n_vectors];
    }
    for c in 0..C {
        column_vectors[c] = &S::as_simd_f64s(columns[c]).0[..n_vectors];
    }
    let mut sums = [[simd.splat_f64s(0.0); C]; R];
    for k in 0..n_vectors {
        for r in 0..R {
            for c in 0..C {
                sums[r][c] = simd.mul_add_e_f64s(row_vectors[r][k], column_vectors[c][k], sums[r][c]);
            }
        }
    }
    let mut out = [[0.0; C]; R];
    for r in 0..R {
        for c in 0..C {
            let mut sum = simd.reduce_sum_f64s(sums[r][c]);
            for k in n_vectors * S::F64_LANES..length {
                sum += rows[r][k] * columns[c][k];
            }
            out[r][c] = sum;
        }
    }
    out
}

/// Entries `at..at + rows.len()` of every column by forward substitution; `right_hand_side[r][c]` belongs
/// to row r and column c, and the diagonal of row r is its entry `at + r`.
pub(crate) fn substitute(
    rows: &[&[f64]],
    at: usize,
    right_hand_side: &[[f64; TILE]; TILE],
    columns: &mut [f64],
    stride: usize,
    n_columns: usize,
) {
    let sums = products(rows, columns, stride, at);
    for c in 0..n_columns {
        let column = &mut columns[c * stride..];
        for (r, row) in rows.iter().enumerate() {
            let mut value = right_hand_side[r][c] - sums[r][c];
            for k in 0..r {
                value -= row[at + k] * column[at + k];
            }
            column[at + r] = value / row[at + r];
        }
    }
}
