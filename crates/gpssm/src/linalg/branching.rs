//! Factors that branch: L L' + h h' as a new factor beside the old one, and solves with a few columns.
//!
//! With p = L^{-1} h, L L' + h h' = L (I + p p') L', and the factor C of I + p p' is known in closed form: with
//! s_k^2 = 1 + sum_{j<k} p_j^2,
//!
//! ```text
//! C_kk = s_{k+1} / s_k,   C_ik = p_i g_k (i > k),   g_k = p_k / (s_k s_{k+1}) = (C^{-1} p)_k
//! ```
//!
//! So L C is one pass over L that reads the old factor and writes the new one (method C1 of Gill, Golub, Murray,
//! Saunders 1974, doi 10.1090/S0025-5718-1974-0343558-6), without the chain of square roots of Givens rotations.

use pulp::Simd;

use super::panels::{HEIGHT, TriangularPanels};
use super::simd::{Vectorised, dispatch, multiply_add};

/// C of one rank-one update.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    p: Vec<f64>,
    diagonal: Vec<f64>,
    inverse: Vec<f64>,
    g: Vec<f64>,
}

impl Growth {
    /// For p = L^{-1} h, followed by zeros to whole panels.
    pub(crate) fn set(&mut self, p: &[f64]) {
        let n = p.len();
        self.p.clear();
        self.p.extend_from_slice(p);
        // s_1..s_n, then what is made of them.
        self.diagonal.clear();
        let mut square = 1.0;
        self.diagonal.extend(p.iter().map(|p| {
            square += p * p;
            square
        }));
        self.diagonal.iter_mut().for_each(|s| *s = s.sqrt());
        self.inverse.resize(n, 0.0);
        self.g.resize(n, 0.0);
        let mut before = 1.0;
        for k in 0..n {
            let s = self.diagonal[k];
            self.inverse[k] = before / s;
            self.g[k] = p[k] / (before * s);
            self.diagonal[k] = s / before;
            before = s;
        }
    }

    /// C^{-1} p, followed by zeros.
    pub(crate) fn solved(&self) -> &[f64] {
        &self.g
    }

    /// `v <- C^{-1} v`: entry k is v_k s_k / s_{k+1} - g_k sum_{j<k} p_j v_j.
    pub(crate) fn solve(&self, v: &mut [f64]) {
        let mut sum = 0.0;
        for (k, v) in v.iter_mut().enumerate() {
            let old = *v;
            *v = old * self.inverse[k] - self.g[k] * sum;
            sum += self.p[k] * old;
        }
    }
}

/// Makes `new` the factor of L L' + h h', for the growth of p = L^{-1} h; `h` is padded to whole panels.
pub(crate) fn grow(old: &TriangularPanels, h: &[f64], growth: &Growth, new: &mut TriangularPanels) {
    new.clone_shape(old);
    dispatch(Grow { old, h, growth, new });
}

struct Grow<'a> {
    old: &'a TriangularPanels,
    h: &'a [f64],
    growth: &'a Growth,
    new: &'a mut TriangularPanels,
}

impl Vectorised for Grow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { old, h, growth, new } = self;
        let n = old.n_rows();
        for panel in 0..n.div_ceil(HEIGHT) {
            let first = panel * HEIGHT;
            // h less the columns so far: sum over the later columns of L_ij p_j.
            let mut rest = [0.0; HEIGHT];
            rest.copy_from_slice(&h[first..first + HEIGHT]);
            let (from, _) = old.panel(panel).as_chunks::<HEIGHT>();
            let (to, _) = new.panel_mut(panel).as_chunks_mut::<HEIGHT>();
            let last = first + HEIGHT;
            let (p, d, g) = (&growth.p[..last], &growth.diagonal[..last], &growth.g[..last]);
            for k in 0..first {
                let (column, out) = (&from[k], &mut to[k]);
                for r in 0..HEIGHT {
                    rest[r] = multiply_add::<S>(-p[k], column[r], rest[r]);
                    out[r] = multiply_add::<S>(d[k], column[r], g[k] * rest[r]);
                }
            }
            for lane in 0..HEIGHT {
                let k = first + lane;
                let (column, out) = (&from[k], &mut to[k]);
                for r in 0..HEIGHT {
                    rest[r] = multiply_add::<S>(-p[k], column[r], rest[r]);
                }
                // Nothing is left of row k, and of the rows before it nothing was there.
                rest[lane] = 0.0;
                for r in 0..HEIGHT {
                    out[r] = multiply_add::<S>(d[k], column[r], g[k] * rest[r]);
                }
            }
        }
    }
}

/// Forward substitution with columns that are `stride` apart, for a factor that few columns meet: unlike
/// [`TriangularPanels::solve`] it does not invert the diagonal blocks. Entries of `x` from the order to the end
/// of the last panel must be zero.
pub(crate) fn solve_few(factor: &TriangularPanels, x: &mut [f64], stride: usize) {
    dispatch(SolveFew { factor, x, stride });
}

struct SolveFew<'a> {
    factor: &'a TriangularPanels,
    x: &'a mut [f64],
    stride: usize,
}

impl SolveFew<'_> {
    #[inline(always)]
    fn panel<S: Simd, const C: usize>(&mut self, panel: usize, at: usize, inverse: &[f64; HEIGHT]) {
        let first = panel * HEIGHT;
        let (columns, _) = self.factor.panel(panel).as_chunks::<HEIGHT>();
        let (left, diagonal) = columns.split_at(first);
        let mut sums = [[0.0; HEIGHT]; C];
        let mut solved: [&[f64]; C] = [&[]; C];
        for c in 0..C {
            let from = (at + c) * self.stride;
            solved[c] = &self.x[from..from + first];
            sums[c].copy_from_slice(&self.x[from + first..from + first + HEIGHT]);
        }
        for (k, column) in left.iter().enumerate() {
            for c in 0..C {
                let factor = -solved[c][k];
                for r in 0..HEIGHT {
                    sums[c][r] = multiply_add::<S>(factor, column[r], sums[c][r]);
                }
            }
        }
        for k in 0..HEIGHT {
            for sums in &mut sums {
                sums[k] *= inverse[k];
                for r in k + 1..HEIGHT {
                    sums[r] = multiply_add::<S>(-sums[k], diagonal[k][r], sums[r]);
                }
            }
        }
        for c in 0..C {
            let from = (at + c) * self.stride + first;
            self.x[from..from + HEIGHT].copy_from_slice(&sums[c]);
        }
    }
}

impl Vectorised for SolveFew<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        let n = self.factor.n_rows();
        let n_columns = self.x.len() / self.stride;
        for panel in 0..n.div_ceil(HEIGHT) {
            // Rows beyond the order have no diagonal, and a zero for any number.
            let mut inverse = [0.0; HEIGHT];
            for (r, inverse) in inverse.iter_mut().enumerate().take(n - panel * HEIGHT) {
                *inverse = 1.0 / self.factor.diagonal(panel * HEIGHT + r);
            }
            let mut at = 0;
            while at < n_columns {
                match n_columns - at {
                    1 => self.panel::<S, 1>(panel, at, &inverse),
                    2 => self.panel::<S, 2>(panel, at, &inverse),
                    3 => self.panel::<S, 3>(panel, at, &inverse),
                    _ => self.panel::<S, 4>(panel, at, &inverse),
                }
                at += 4;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::panels::padded;
    use super::super::rotations::{Rotations, rank_one_update};
    use super::*;

    fn wave(i: usize) -> f64 {
        (1.3 * i as f64 + 0.2).sin()
    }

    /// A factor, grown step by step, is the one that Givens rotations make; solves invert it.
    #[test]
    fn growth_is_a_rank_one_update() {
        for n in [1, 5, 8, 13, 24, 30] {
            let stride = padded(n);
            let mut factor = TriangularPanels::with_capacity(n);
            for i in 0..n {
                let mut row: Vec<f64> = (0..=i).map(|j| 0.3 * wave(7 * i + j)).collect();
                row[i] = 1.0 + 0.1 * i as f64;
                factor.push_row(&row);
            }
            let mut rotated = factor.clone();
            let (mut growth, mut rotations) = (Growth::default(), Rotations::default());
            for step in 0..50 {
                let mut h: Vec<f64> = (0..n).map(|i| 3.0 * wave(31 * step + i)).collect();
                h.resize(stride, 0.0);
                let mut p = [h.clone(), h.iter().map(|h| 2.0 * h).collect()].concat();
                solve_few(&factor, &mut p, stride);
                assert!((0..n).all(|i| (p[stride + i] - 2.0 * p[i]).abs() < 1e-12 * (1.0 + p[i].abs())));
                growth.set(&p[..n.next_multiple_of(HEIGHT)]);
                let old = std::mem::take(&mut factor);
                grow(&old, &h, &growth, &mut factor);
                rank_one_update(&mut rotated, &mut h.clone(), &mut rotations);
                for panel in 0..n.div_ceil(HEIGHT) {
                    for (a, b) in factor.panel(panel).iter().zip(rotated.panel(panel)) {
                        assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{n} {step}: {a} {b}");
                    }
                }
                // C^{-1} p is the solution with the new factor.
                solve_few(&factor, &mut h, stride);
                let solved = growth.solved().iter().zip(&h);
                solved.for_each(|(a, b)| assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{a} {b}"));
                let mut again = p[..n].to_vec();
                growth.solve(&mut again);
                let solved = again.iter().zip(&h);
                solved.for_each(|(a, b)| assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{a} {b}"));
            }
        }
    }
}
