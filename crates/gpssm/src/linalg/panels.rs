//! Rows of growing matrices in panels of eight, so that eight rows meet many columns at once.
//!
//! Within a panel the eight entries of one column lie side by side: a product with a column vector
//! broadcasts one number against eight rows, and a Givens rotation acts on eight rows in one go.
//! Rows can be appended, never removed.

use super::dense::Dense;
use super::simd::{Vectorised, dispatch, multiply_add};

/// Rows in a panel.
pub(crate) const HEIGHT: usize = 8;

/// Columns that one pass over a panel takes; 6 x 8 partial sums fill the registers of AVX2.
const PASS: usize = 6;

/// Length to which a column must be padded so that the last panel can be written whole.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(HEIGHT) + HEIGHT
}

/// A lower-triangular factor, row by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct TriangularPanels {
    n_rows: usize,
    /// Panel p holds columns 0..8(p+1) of rows 8p..8p+8.
    data: Vec<f64>,
}

impl TriangularPanels {
    pub(crate) fn with_capacity(n_rows: usize) -> Self {
        Self { n_rows: 0, data: Vec::with_capacity(Self::offset(n_rows.div_ceil(HEIGHT))) }
    }

    pub(crate) fn clear(&mut self) {
        self.n_rows = 0;
        self.data.clear();
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Bytes that a factor of `n_rows` rows takes.
    pub(crate) fn bytes(n_rows: usize) -> usize {
        Self::offset(n_rows.div_ceil(HEIGHT)) * size_of::<f64>()
    }

    fn offset(panel: usize) -> usize {
        HEIGHT * HEIGHT * (panel * (panel + 1) / 2)
    }

    /// Columns 0..8(p+1) of panel `p`.
    pub(crate) fn panel(&self, p: usize) -> &[f64] {
        &self.data[Self::offset(p)..Self::offset(p + 1)]
    }

    pub(crate) fn panel_mut(&mut self, p: usize) -> &mut [f64] {
        &mut self.data[Self::offset(p)..Self::offset(p + 1)]
    }

    /// Appends a row; its last entry is the diagonal.
    pub(crate) fn push_row(&mut self, row: &[f64]) {
        debug_assert_eq!(row.len(), self.n_rows + 1);
        let (p, lane) = (self.n_rows / HEIGHT, self.n_rows % HEIGHT);
        if lane == 0 {
            self.data.resize(Self::offset(p + 1), 0.0);
        }
        for (column, value) in self.panel_mut(p).chunks_exact_mut(HEIGHT).zip(row) {
            column[lane] = *value;
        }
        self.n_rows += 1;
    }

    /// Appends rows `n_rows()..n` of a dense factor.
    pub(crate) fn extend_from(&mut self, dense: &Dense, n: usize) {
        let mut row = Vec::with_capacity(n);
        for i in self.n_rows..n {
            row.clear();
            row.extend((0..=i).map(|j| dense.get(i, j)));
            self.push_row(&row);
        }
    }

    /// The diagonal entry of row `r`.
    pub(crate) fn diagonal(&self, r: usize) -> f64 {
        self.panel(r / HEIGHT)[r * HEIGHT + r % HEIGHT]
    }

    /// Forward substitution with the leading `n` rows: each column of `x` (they are `stride` apart)
    /// holds a right-hand side and receives the solution. Entries from `n` to the end of the last
    /// panel are overwritten.
    pub(crate) fn solve(&self, n: usize, x: &mut [f64], stride: usize, n_columns: usize) {
        if n > 0 && n_columns > 0 {
            dispatch(Solve { factor: self, n, x, stride, n_columns });
        }
    }
}

/// A rectangular matrix, row by row, all rows of the same largest width.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowPanels {
    n_rows: usize,
    width: usize,
    data: Vec<f64>,
}

impl RowPanels {
    pub(crate) fn reset(&mut self, width: usize) {
        self.n_rows = 0;
        self.width = width;
        self.data.clear();
    }

    /// Appends a row; it may be shorter than the width.
    pub(crate) fn push_row(&mut self, row: &[f64]) {
        let (p, lane) = (self.n_rows / HEIGHT, self.n_rows % HEIGHT);
        let size = self.width * HEIGHT;
        if lane == 0 {
            self.data.resize((p + 1) * size, 0.0);
        }
        for (column, value) in self.data[p * size..].chunks_exact_mut(HEIGHT).zip(row) {
            column[lane] = *value;
        }
        self.n_rows += 1;
    }

    /// Entry `column` of every row, into `out`.
    pub(crate) fn column(&self, column: usize, out: &mut [f64]) {
        let size = self.width * HEIGHT;
        for (r, value) in out.iter_mut().enumerate().take(self.n_rows) {
            *value = self.data[(r / HEIGHT) * size + column * HEIGHT + r % HEIGHT];
        }
    }

    /// `x -= G b` for each of `n_columns` columns, using the first `width` entries of each row.
    pub(crate) fn subtract_product(
        &self,
        width: usize,
        b: &[f64],
        b_stride: usize,
        x: &mut [f64],
        x_stride: usize,
        n_columns: usize,
    ) {
        if width > 0 && self.n_rows > 0 && n_columns > 0 {
            dispatch(SubtractProduct { matrix: self, width, b, b_stride, x, x_stride, n_columns });
        }
    }
}

/// Splits `n` columns into passes of at most [`PASS`], as even as possible.
fn passes(n: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = n.div_ceil(PASS);
    (0..count).map(move |i| (i * n / count, (i + 1) * n / count))
}

/// Sums over k of panel\[k\] * column\[k\], for `C` columns and the eight rows of a panel.
#[inline(always)]
fn products<const C: usize, const FMA: bool>(panel: &[f64], b: &[f64], stride: usize) -> [[f64; HEIGHT]; C] {
    let (panel, _) = panel.as_chunks::<HEIGHT>();
    let mut sums = [[0.0; HEIGHT]; C];
    let mut columns: [&[f64]; C] = [&[]; C];
    for (c, column) in columns.iter_mut().enumerate() {
        *column = &b[c * stride..c * stride + panel.len()];
    }
    for (k, rows) in panel.iter().enumerate() {
        for c in 0..C {
            let factor = columns[c][k];
            for r in 0..HEIGHT {
                sums[c][r] = multiply_add::<FMA>(rows[r], factor, sums[c][r]);
            }
        }
    }
    sums
}

struct Solve<'a> {
    factor: &'a TriangularPanels,
    n: usize,
    x: &'a mut [f64],
    stride: usize,
    n_columns: usize,
}

impl Solve<'_> {
    #[inline(always)]
    fn pass<const C: usize, const FMA: bool>(panel: &[f64], first: usize, x: &mut [f64], stride: usize) {
        let (left, diagonal) = panel.split_at(first * HEIGHT);
        let (diagonal, _) = diagonal.as_chunks::<HEIGHT>();
        let sums = products::<C, FMA>(left, x, stride);
        let mut reciprocals = [0.0; HEIGHT];
        for r in 0..HEIGHT {
            // Rows that were never pushed have a zero diagonal; their lanes are ignored.
            let d = diagonal[r][r];
            reciprocals[r] = if d == 0.0 { 0.0 } else { 1.0 / d };
        }
        for c in 0..C {
            let at = c * stride + first;
            let mut lanes = [0.0; HEIGHT];
            lanes.copy_from_slice(&x[at..at + HEIGHT]);
            for r in 0..HEIGHT {
                lanes[r] -= sums[c][r];
            }
            for r in 0..HEIGHT {
                let value = lanes[r] * reciprocals[r];
                lanes[r] = value;
                for below in r + 1..HEIGHT {
                    lanes[below] = multiply_add::<FMA>(-diagonal[r][below], value, lanes[below]);
                }
            }
            x[at..at + HEIGHT].copy_from_slice(&lanes);
        }
    }
}

impl Vectorised for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { factor, n, x, stride, n_columns } = self;
        for p in 0..n.div_ceil(HEIGHT) {
            let (panel, first) = (factor.panel(p), p * HEIGHT);
            for (from, to) in passes(n_columns) {
                let x = &mut x[from * stride..];
                match to - from {
                    1 => Self::pass::<1, FMA>(panel, first, x, stride),
                    2 => Self::pass::<2, FMA>(panel, first, x, stride),
                    3 => Self::pass::<3, FMA>(panel, first, x, stride),
                    4 => Self::pass::<4, FMA>(panel, first, x, stride),
                    5 => Self::pass::<5, FMA>(panel, first, x, stride),
                    _ => Self::pass::<6, FMA>(panel, first, x, stride),
                }
            }
        }
    }
}

struct SubtractProduct<'a> {
    matrix: &'a RowPanels,
    width: usize,
    b: &'a [f64],
    b_stride: usize,
    x: &'a mut [f64],
    x_stride: usize,
    n_columns: usize,
}

impl SubtractProduct<'_> {
    #[inline(always)]
    fn pass<const C: usize, const FMA: bool>(
        panel: &[f64],
        b: &[f64],
        b_stride: usize,
        x: &mut [f64],
        x_stride: usize,
    ) {
        let sums = products::<C, FMA>(panel, b, b_stride);
        for c in 0..C {
            for (value, sum) in x[c * x_stride..c * x_stride + HEIGHT].iter_mut().zip(&sums[c]) {
                *value -= sum;
            }
        }
    }
}

impl Vectorised for SubtractProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { matrix, width, b, b_stride, x, x_stride, n_columns } = self;
        let size = matrix.width * HEIGHT;
        for p in 0..matrix.n_rows.div_ceil(HEIGHT) {
            let panel = &matrix.data[p * size..p * size + width * HEIGHT];
            for (from, to) in passes(n_columns) {
                let b = &b[from * b_stride..];
                let x = &mut x[from * x_stride + p * HEIGHT..];
                match to - from {
                    1 => Self::pass::<1, FMA>(panel, b, b_stride, x, x_stride),
                    2 => Self::pass::<2, FMA>(panel, b, b_stride, x, x_stride),
                    3 => Self::pass::<3, FMA>(panel, b, b_stride, x, x_stride),
                    4 => Self::pass::<4, FMA>(panel, b, b_stride, x, x_stride),
                    5 => Self::pass::<5, FMA>(panel, b, b_stride, x, x_stride),
                    _ => Self::pass::<6, FMA>(panel, b, b_stride, x, x_stride),
                }
            }
        }
    }
}
