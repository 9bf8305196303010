//! Rank-one updates L L' + w w' of a panel factor by Givens rotations.

use pulp::Simd;

use super::panels::{HEIGHT, TriangularPanels};
use super::simd::{Vectorised, dispatch, multiply_add};

/// The rotations of one rank-one update, one for each row of the factor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotations {
    pub(crate) cosine: Vec<f64>,
    pub(crate) sine: Vec<f64>,
}

/// The rotation that turns (diagonal, w) into (r, 0), and r.
#[inline(always)]
pub(crate) fn rotation(diagonal: f64, w: f64) -> (f64, f64, f64) {
    let r = (diagonal * diagonal + w * w).sqrt();
    (diagonal / r, w / r, r)
}

/// Replaces the factor L by that of L L' + w w'. `w` is padded to whole panels and is consumed; the
/// rotations are kept for rows that hang on this factor.
pub(crate) fn rank_one_update(factor: &mut TriangularPanels, w: &mut [f64], rotations: &mut Rotations) {
    let n = factor.n_rows();
    rotations.cosine.resize(n, 1.0);
    rotations.sine.resize(n, 0.0);
    dispatch(Update { factor, w, rotations });
}

struct Update<'a> {
    factor: &'a mut TriangularPanels,
    w: &'a mut [f64],
    rotations: &'a mut Rotations,
}

impl Vectorised for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { factor, w, rotations } = self;
        let n = factor.n_rows();
        for p in 0..n.div_ceil(HEIGHT) {
            let first = p * HEIGHT;
            let mut lanes = [0.0; HEIGHT];
            lanes.copy_from_slice(&w[first..first + HEIGHT]);
            let (columns, _) = factor.panel_mut(p).as_chunks_mut::<HEIGHT>();
            let (left, diagonal) = columns.split_at_mut(first);
            let pairs = rotations.cosine[..first].iter().zip(&rotations.sine[..first]);
            for (column, (&c, &s)) in left.iter_mut().zip(pairs) {
                for r in 0..HEIGHT {
                    let a = column[r];
                    column[r] = multiply_add::<S>(c, a, s * lanes[r]);
                    lanes[r] = multiply_add::<S>(c, lanes[r], -(s * a));
                }
            }
            for r in 0..HEIGHT.min(n - first) {
                let (c, s, diagonal_new) = rotation(diagonal[r][r], lanes[r]);
                rotations.cosine[first + r] = c;
                rotations.sine[first + r] = s;
                diagonal[r][r] = diagonal_new;
                for below in r + 1..HEIGHT {
                    let a = diagonal[r][below];
                    diagonal[r][below] = c * a + s * lanes[below];
                    lanes[below] = c * lanes[below] - s * a;
                }
            }
        }
    }
}

/// Rows that are rotated together: enough to hide the latency of the recurrence in w.
const TOGETHER: usize = 8;

/// Applies the first `n` rotations to single rows of a factor, each with its own `w`.
pub(crate) fn rotate_rows(rotations: &Rotations, n: usize, rows: &mut [&mut [f64]], w: &mut [f64]) {
    for (rows, w) in rows.chunks_mut(TOGETHER).zip(w.chunks_mut(TOGETHER)) {
        if let Ok(rows) = <&mut [&mut [f64]; TOGETHER]>::try_from(&mut *rows) {
            let mut lanes = [0.0; TOGETHER];
            lanes.copy_from_slice(w);
            dispatch(Together { rotations, n, rows, w: &mut lanes });
            w.copy_from_slice(&lanes);
        } else {
            for (row, w) in rows.iter_mut().zip(w) {
                for (a, (&c, &s)) in row[..n].iter_mut().zip(rotations.cosine.iter().zip(&rotations.sine)) {
                    let old = *a;
                    *a = c * old + s * *w;
                    *w = c * *w - s * old;
                }
            }
        }
    }
}

struct Together<'a, 'b> {
    rotations: &'a Rotations,
    n: usize,
    rows: &'a mut [&'b mut [f64]; TOGETHER],
    w: &'a mut [f64; TOGETHER],
}

impl Vectorised for Together<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let n = self.n;
        let (cosine, sine) = (&self.rotations.cosine[..n], &self.rotations.sine[..n]);
        let rows = self.rows.each_mut().map(|row| &mut row[..n]);
        let mut lanes = *self.w;
        for k in 0..n {
            let (c, s) = (cosine[k], sine[k]);
            for r in 0..TOGETHER {
                let a = rows[r][k];
                // Not fused, so that a row gets the same numbers alone and in company.
                rows[r][k] = c * a + s * lanes[r];
                lanes[r] = c * lanes[r] - s * a;
            }
        }
        *self.w = lanes;
    }
}
