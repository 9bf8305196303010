//! Rows of growing matrices in panels of eight, so that eight rows meet many columns at once.
//!
//! Within a panel the eight entries of one column lie side by side: a product with a column vector
//! broadcasts one number against eight rows, and a Givens rotation acts on eight rows in one go.
//! Rows can be appended, never removed.

use pulp::Simd;

use super::dense::Dense;
use super::simd::{Vectorised, dispatch};

/// Rows in a panel.
pub(crate) const HEIGHT: usize = 8;

/// Columns that one pass over a panel takes: 6 x 8 partial sums fill the registers of AVX2, and with vectors of eight twice as
/// many columns hide the latency of a sum.
const fn columns_of_pass<S: Simd>() -> usize {
    if S::F64_LANES == 8 { 12 } else { 6 }
}

/// Columns that go through all panels together: with one panel they fit into the first-level cache, and the factor
/// passes by as one long stream.
const fn columns_of_group<S: Simd>() -> usize {
    2 * columns_of_pass::<S>()
}

/// An 8 by 8 lower triangle, column by column.
type Block = [f64; HEIGHT * HEIGHT];

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
    /// Inverses of the diagonal blocks of all panels, as long as rows are only appended.
    inverses: Vec<Block>,
}

impl TriangularPanels {
    pub(crate) fn with_capacity(n_rows: usize) -> Self {
        let n_panels = n_rows.div_ceil(HEIGHT);
        let data = Vec::with_capacity(Self::offset(n_panels));
        Self { n_rows: 0, data, inverses: Vec::with_capacity(n_panels) }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Takes over the order of another factor; the entries are left as they happen to be.
    pub(crate) fn clone_shape(&mut self, other: &Self) {
        self.n_rows = other.n_rows;
        self.inverses.clear();
        self.data.resize(other.data.len(), 0.0);
    }

    fn offset(panel: usize) -> usize {
        HEIGHT * HEIGHT * (panel * (panel + 1) / 2)
    }

    /// Columns 0..8(p+1) of panel `p`.
    pub(crate) fn panel(&self, p: usize) -> &[f64] {
        &self.data[Self::offset(p)..Self::offset(p + 1)]
    }

    pub(crate) fn panel_mut(&mut self, p: usize) -> &mut [f64] {
        self.inverses.clear();
        &mut self.data[Self::offset(p)..Self::offset(p + 1)]
    }

    /// Appends a row; its last entry is the diagonal.
    pub(crate) fn push_row(&mut self, row: &[f64]) {
        debug_assert_eq!(row.len(), self.n_rows + 1);
        let (p, lane) = (self.n_rows / HEIGHT, self.n_rows % HEIGHT);
        let knows_inverses = self.inverses.len() == self.n_rows.div_ceil(HEIGHT);
        if lane == 0 {
            self.data.resize(Self::offset(p + 1), 0.0);
        }
        let panel = &mut self.data[Self::offset(p)..];
        for (column, value) in panel.chunks_exact_mut(HEIGHT).zip(row) {
            column[lane] = *value;
        }
        self.n_rows += 1;
        if knows_inverses {
            self.inverses.resize(p + 1, [0.0; HEIGHT * HEIGHT]);
            let block = &self.data[Self::offset(p) + p * HEIGHT * HEIGHT..];
            invert_row(block, lane, &mut self.inverses[p]);
        }
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

    /// x becomes L^{-T} x.
    pub(crate) fn solve_transposed(&self, x: &mut [f64]) {
        for r in (0..self.n_rows).rev() {
            x[r] /= self.diagonal(r);
            let (value, panel, lane) = (x[r], self.panel(r / HEIGHT), r % HEIGHT);
            for (x, l) in x[..r].iter_mut().zip(panel.chunks_exact(HEIGHT)) {
                *x -= l[lane] * value;
            }
        }
    }

    /// Forward substitution with the leading `n` rows: each column of `x` (they are `stride` apart)
    /// holds a right-hand side and receives the solution. Entries from `n` to the end of the last
    /// panel are overwritten.
    pub(crate) fn solve(&self, n: usize, x: &mut [f64], stride: usize, n_columns: usize) {
        if n == 0 || n_columns == 0 {
            return;
        }
        dispatch(Solve { factor: self, n, x, stride, n_columns });
    }

    /// Inverse of the diagonal block of panel `p`.
    fn inverse_of_block(&self, p: usize) -> Block {
        let (block, mut inverse) = (&self.panel(p)[p * HEIGHT * HEIGHT..], [0.0; HEIGHT * HEIGHT]);
        (0..HEIGHT).for_each(|lane| invert_row(block, lane, &mut inverse));
        inverse
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

/// Splits `n` columns into passes of at most `most`, as even as possible.
fn passes(n: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = n.div_ceil(most);
    (0..count).map(move |i| (i * n / count, (i + 1) * n / count))
}

/// Sums over k of panel\[k\] * column\[k\], for `C` columns and the eight rows of a panel in `W` vectors.
#[inline(always)]
fn products<S: Simd, const C: usize, const W: usize>(
    simd: S,
    panel: &[f64],
    b: &[f64],
    stride: usize,
) -> [[S::f64s; W]; C] {
    let (vectors, _) = S::as_simd_f64s(panel);
    let (rows, _) = vectors.as_chunks::<W>();
    let mut columns: [&[f64]; C] = [&[]; C];
    for (c, column) in columns.iter_mut().enumerate() {
        *column = &b[c * stride..][..rows.len()];
    }
    let mut sums = [[simd.splat_f64s(0.0); W]; C];
    for (k, rows) in rows.iter().enumerate() {
        for c in 0..C {
            let factor = simd.splat_f64s(columns[c][k]);
            for w in 0..W {
                sums[c][w] = simd.mul_add_e_f64s(rows[w], factor, sums[c][w]);
            }
        }
    }
    sums
}

/// The eight numbers of a panel column, as vectors.
#[inline(always)]
fn vectors_mut<S: Simd, const W: usize>(values: &mut [f64]) -> &mut [S::f64s] {
    &mut S::as_mut_simd_f64s(&mut values[..HEIGHT]).0[..W]
}

/// Row `row` of the inverse of the 8 by 8 lower triangle at the end of a panel, from the rows before it. Rows that were
/// never pushed have a zero diagonal and give zeros.
#[inline(always)]
fn invert_row(block: &[f64], row: usize, inverse: &mut Block) {
    let diagonal = block[row * HEIGHT + row];
    for column in 0..=row {
        let mut sum = if row == column { 1.0 } else { 0.0 };
        for k in column..row {
            sum -= block[k * HEIGHT + row] * inverse[column * HEIGHT + k];
        }
        inverse[column * HEIGHT + row] = if diagonal == 0.0 { 0.0 } else { sum / diagonal };
    }
}

/// What is done with the columns of one pass over a panel.
trait Pass: Sized {
    fn pass<S: Simd, const C: usize, const W: usize>(&mut self, simd: S, p: usize, from: usize);

    /// All passes over panels `0..n_panels` and columns `0..n_columns`.
    #[inline(always)]
    fn run_all<S: Simd>(mut self, simd: S, n_panels: usize, n_columns: usize) {
        for p in 0..n_panels {
            for (from, to) in passes(n_columns, columns_of_pass::<S>()) {
                match S::F64_LANES {
                    8 => self.pass_of::<S, 1>(simd, p, from, to),
                    4 => self.pass_of::<S, 2>(simd, p, from, to),
                    2 => self.pass_of::<S, 4>(simd, p, from, to),
                    _ => self.pass_of::<S, 8>(simd, p, from, to),
                }
            }
        }
    }

    #[inline(always)]
    fn pass_of<S: Simd, const W: usize>(&mut self, simd: S, p: usize, from: usize, to: usize) {
        match to - from {
            1 => self.pass::<S, 1, W>(simd, p, from),
            2 => self.pass::<S, 2, W>(simd, p, from),
            3 => self.pass::<S, 3, W>(simd, p, from),
            4 => self.pass::<S, 4, W>(simd, p, from),
            5 => self.pass::<S, 5, W>(simd, p, from),
            7 if W == 1 => self.pass::<S, 7, 1>(simd, p, from),
            8 if W == 1 => self.pass::<S, 8, 1>(simd, p, from),
            9 if W == 1 => self.pass::<S, 9, 1>(simd, p, from),
            10 if W == 1 => self.pass::<S, 10, 1>(simd, p, from),
            11 if W == 1 => self.pass::<S, 11, 1>(simd, p, from),
            12 if W == 1 => self.pass::<S, 12, 1>(simd, p, from),
            _ => self.pass::<S, 6, W>(simd, p, from),
        }
    }
}

struct Solve<'a> {
    factor: &'a TriangularPanels,
    n: usize,
    x: &'a mut [f64],
    stride: usize,
    n_columns: usize,
}

/// Columns that go through all panels together.
struct SolveGroup<'a> {
    factor: &'a TriangularPanels,
    x: &'a mut [f64],
    stride: usize,
    /// Inverses of the diagonal blocks of all panels, where they are known.
    inverses: Option<&'a [Block]>,
    /// That of the panel at hand, where they are not.
    inverse: Block,
}

impl Pass for SolveGroup<'_> {
    #[inline(always)]
    fn pass<S: Simd, const C: usize, const W: usize>(&mut self, simd: S, p: usize, from: usize) {
        let first = p * HEIGHT;
        let (left, diagonal) = self.factor.panel(p).split_at(first * HEIGHT);
        if from == 0 && self.inverses.is_none() {
            (0..HEIGHT).for_each(|lane| invert_row(diagonal, lane, &mut self.inverse));
        }
        let x = &mut self.x[from * self.stride..];
        let sums = products::<S, C, W>(simd, left, x, self.stride);
        for c in 0..C {
            let rows = vectors_mut::<S, W>(&mut x[c * self.stride + first..]);
            for w in 0..W {
                rows[w] = simd.sub_f64s(rows[w], sums[c][w]);
            }
        }
        let inverse = self.inverses.map_or(&self.inverse, |inverses| &inverses[p]);
        let solved = products::<S, C, W>(simd, inverse, &x[first..], self.stride);
        for c in 0..C {
            vectors_mut::<S, W>(&mut x[c * self.stride + first..]).copy_from_slice(&solved[c]);
        }
    }
}

impl Vectorised for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { factor, n, x, stride, n_columns } = self;
        let (n_panels, most) = (n.div_ceil(HEIGHT), columns_of_group::<S>());
        let mut own = Vec::new();
        let inverses = if factor.inverses.len() >= n_panels {
            Some(&factor.inverses[..])
        } else if n_columns > most {
            own.extend((0..n_panels).map(|p| factor.inverse_of_block(p)));
            Some(&own[..])
        } else {
            None
        };
        for from in (0..n_columns).step_by(most) {
            let x = &mut x[from * stride..];
            let group = SolveGroup { factor, x, stride, inverses, inverse: [0.0; HEIGHT * HEIGHT] };
            group.run_all(simd, n_panels, most.min(n_columns - from));
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

impl Pass for SubtractProduct<'_> {
    #[inline(always)]
    fn pass<S: Simd, const C: usize, const W: usize>(&mut self, simd: S, p: usize, from: usize) {
        let size = self.matrix.width * HEIGHT;
        let panel = &self.matrix.data[p * size..][..self.width * HEIGHT];
        let sums = products::<S, C, W>(simd, panel, &self.b[from * self.b_stride..], self.b_stride);
        for c in 0..C {
            let rows = vectors_mut::<S, W>(&mut self.x[(from + c) * self.x_stride + p * HEIGHT..]);
            for w in 0..W {
                rows[w] = simd.sub_f64s(rows[w], sums[c][w]);
            }
        }
    }
}

impl Vectorised for SubtractProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (n_panels, n_columns) = (self.matrix.n_rows.div_ceil(HEIGHT), self.n_columns);
        self.run_all(simd, n_panels, n_columns);
    }
}
