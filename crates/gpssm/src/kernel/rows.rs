//! Rows of covariances, many at a time.

use std::ops::Range;

use pulp::Simd;

use super::Kernel;
use super::part::Row;
use crate::linalg::simd::{Vectorised, dispatch};
use crate::points::Points;

/// Room for intermediate values of composed kernels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch(Vec<Vec<f64>>);

impl Kernel {
    /// k(z_i, at_j) for all points i and j of `cross`; the values of the m-th j begin at `out[m * stride]`. A part of the
    /// kernel whose components are the same as for the j before, as inputs are for all particles of a step, is not evaluated
    /// again.
    pub(crate) fn rows(&self, cross: &Cross, out: &mut [f64], stride: usize, scratch: &mut Scratch) {
        if cross.range.is_empty() {
            return;
        }
        // A few rows at a time stay in the cache.
        for (which, out) in cross.which.chunks(ROWS).zip(out.chunks_mut(ROWS * stride)) {
            let few = Cross { range: cross.range.clone(), which, ..*cross };
            self.rows_at(&few, out, stride, &mut scratch.0, 0);
        }
    }

    fn rows_at(
        &self,
        cross: &Cross,
        out: &mut [f64],
        stride: usize,
        scratch: &mut Vec<Vec<f64>>,
        depth: usize,
    ) {
        let n = cross.range.len();
        if let Self::Sum(parts) | Self::Product(parts) = self
            && let Some((first, others)) = parts.split_first()
        {
            let is_sum = matches!(self, Self::Sum(_));
            first.rows_at(cross, out, stride, scratch, depth);
            let mut values = take(scratch, depth, n * cross.which.len());
            for part in others {
                part.rows_at(cross, &mut values, n, scratch, depth + 1);
                for (total, values) in out.chunks_mut(stride).zip(values.chunks(n)).take(cross.which.len()) {
                    dispatch(Combine { total: &mut total[..n], values, is_sum });
                }
            }
            scratch[depth] = values;
            return;
        }
        let mut at = take(scratch, depth, cross.at.n_components());
        for (m, &j) in cross.which.iter().enumerate() {
            if m > 0 && self.sees_no_difference(cross.at, cross.which[m - 1], j) {
                out.copy_within((m - 1) * stride..(m - 1) * stride + n, m * stride);
                continue;
            }
            let at = &mut at[..cross.at.n_components()];
            cross.at.get(j, at);
            self.row_at(cross.points, cross.range.clone(), at, &mut out[m * stride..], scratch, depth + 1);
        }
        scratch[depth] = at;
    }

    /// Whether two points are equal in all components that the kernel acts on.
    fn sees_no_difference(&self, points: &Points, i: usize, j: usize) -> bool {
        match self {
            Self::Part(part) => part.components.iter().all(|&c| points.column(c)[i] == points.column(c)[j]),
            Self::Sum(parts) | Self::Product(parts) => {
                parts.iter().all(|part| part.sees_no_difference(points, i, j))
            }
            Self::Odd(kernel) => kernel.sees_no_difference(points, i, j),
        }
    }

    /// Makes rows over these points cheap where the kernel allows it: 1e-14 of the variance is lost, as in a factorisation.
    pub(crate) fn precompute(kernels: &[Self], points: &mut Points) {
        let mut wanted = Vec::new();
        for part in kernels.iter().flat_map(Self::parts) {
            if let (Some(rate), &[c]) = (part.radial().and_then(|radial| radial.rate()), &part.components[..])
            {
                wanted.push((c, rate));
            }
        }
        points.keep_exponentials(&wanted);
    }

    /// k(z_i, at) for the points i in `range`.
    pub(crate) fn row(
        &self,
        points: &Points,
        range: Range<usize>,
        at: &[f64],
        out: &mut [f64],
        scratch: &mut Scratch,
    ) {
        self.row_at(points, range, at, out, &mut scratch.0, 0);
    }

    fn row_at(
        &self,
        points: &Points,
        range: Range<usize>,
        at: &[f64],
        out: &mut [f64],
        scratch: &mut Vec<Vec<f64>>,
        depth: usize,
    ) {
        let out = &mut out[..range.len()];
        match self {
            Self::Part(part) => part.row(points, range, at, out),
            Self::Sum(parts) | Self::Product(parts) => {
                let is_sum = matches!(self, Self::Sum(_));
                let Some((first, others)) = parts.split_first() else {
                    out.fill(if is_sum { 0.0 } else { 1.0 });
                    return;
                };
                first.row_at(points, range.clone(), at, out, scratch, depth);
                let mut values = take(scratch, depth, range.len());
                for part in others {
                    part.row_at(points, range.clone(), at, &mut values, scratch, depth + 1);
                    dispatch(Combine { total: out, values: &values, is_sum });
                }
                scratch[depth] = values;
            }
            Self::Odd(kernel) => {
                if let Self::Part(part) = &**kernel
                    && let Some(radial) = part.radial()
                {
                    return radial.row(&Row { components: &part.components, points, range, at }, true, out);
                }
                let mut values = take(scratch, depth, range.len());
                let mut opposite = take(scratch, depth + 1, 0);
                opposite.clear();
                opposite.extend(at.iter().map(|z| -z));
                kernel.row_at(points, range.clone(), at, out, scratch, depth + 2);
                kernel.row_at(points, range, &opposite, &mut values, scratch, depth + 2);
                dispatch(HalfDifference(out, &values));
                scratch[depth] = values;
                scratch[depth + 1] = opposite;
            }
        }
    }
}

/// Rows of [`Kernel::rows`] that are worked on together.
const ROWS: usize = 32;

/// A block of covariances: of the points in a range with some of other points.
#[derive(Clone)]
pub(crate) struct Cross<'a> {
    /// z.
    pub points: &'a Points,
    /// Those of them that are meant.
    pub range: Range<usize>,
    /// The other points,
    pub at: &'a Points,
    /// and those of them that are meant.
    pub which: &'a [usize],
}

/// Room for `n` numbers at a depth of a composed kernel, taken out for the time being.
fn take(scratch: &mut Vec<Vec<f64>>, depth: usize, n: usize) -> Vec<f64> {
    if scratch.len() <= depth {
        scratch.resize(depth + 1, Vec::new());
    }
    let mut values = std::mem::take(&mut scratch[depth]);
    values.resize(n.max(values.len()), 0.0);
    values
}

/// Adds to the total or multiplies it.
struct Combine<'a> {
    total: &'a mut [f64],
    values: &'a [f64],
    is_sum: bool,
}

impl Vectorised for Combine<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        if self.is_sum {
            self.total.iter_mut().zip(self.values).for_each(|(total, value)| *total += value);
        } else {
            self.total.iter_mut().zip(self.values).for_each(|(total, value)| *total *= value);
        }
    }
}

/// (a - b) / 2 in place of a.
struct HalfDifference<'a>(&'a mut [f64], &'a [f64]);

impl Vectorised for HalfDifference<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.0.iter_mut().zip(self.1).for_each(|(a, b)| *a = 0.5 * (*a - b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Shape;
    use crate::kernel::tests::every_kind;

    /// Rows of many points against rows of one and single values, inputs equal for runs of points. Seen failing when a
    /// row was copied wherever the first component was equal.
    #[test]
    fn rows_of_many_points_are_those_of_each() {
        let column = |i: i32, c: f64| (f64::from(i) * c).sin();
        let rows: Vec<[f64; 2]> = (0..70).map(|i| [column(i / 2, 0.7), column(i / 13, 1.3)]).collect();
        let new = Points::from_rows(2, rows.iter().map(|row| &row[..]));
        let old = new.tail(9);
        let (which, stride) = ((0..70).rev().collect::<Vec<_>>(), 21);
        let parts = every_kind();
        let odd = parts.iter().map(|part| Kernel::Odd(Box::new(part.clone())));
        let all = Kernel::Sum(parts.iter().cloned().chain(odd).collect());
        for kernel in parts.iter().cloned().chain([Kernel::Product(parts.clone()), all]) {
            let (mut many, mut one, mut scratch) =
                (vec![0.0; 70 * stride], vec![0.0; 19], Scratch::default());
            let (mut quick, mut fast) = (old.clone(), vec![0.0; 19]);
            quick.truncate(11);
            Kernel::precompute(std::slice::from_ref(&kernel), &mut quick);
            (11..old.len()).for_each(|i| quick.push(&old.row(i)));
            let cross = Cross { points: &old, range: 3..22, at: &new, which: &which };
            kernel.rows(&cross, &mut many, stride, &mut scratch);
            for (m, &j) in which.iter().enumerate() {
                kernel.row(&old, 3..22, &rows[j], &mut one, &mut scratch);
                assert_eq!(many[m * stride..m * stride + 19], one, "{kernel:?}");
                kernel.row(&quick, 3..22, &rows[j], &mut fast, &mut scratch);
                for (i, value) in one.iter().enumerate() {
                    let exact = kernel.value(&old.row(3 + i), &rows[j]);
                    assert!((value - exact).abs() < 1e-13 && (fast[i] - exact).abs() < 1e-12, "{kernel:?}");
                }
            }
        }
    }

    /// Points so far out that products of exponentials would overflow, on either side of a pair: rows are those of single
    /// values all the same, whether the far ones were there when the kernel was sped up or came later. Seen failing without
    /// the bound on points.
    #[test]
    fn far_points_are_not_multiplied() {
        let rows = [[0.3], [-2.0], [900.0], [-900.0], [899.6]];
        for shape in [Shape::Matern12, Shape::Matern32, Shape::Matern52] {
            for kernel in
                [Kernel::stationary(shape, 1.3, &[0.8]), Kernel::stationary(shape, 1.3, &[0.8]).odd()]
            {
                for n_before in [0, 2, 5] {
                    let mut points = Points::from_rows(1, rows[..n_before].iter().map(|row| &row[..]));
                    Kernel::precompute(std::slice::from_ref(&kernel), &mut points);
                    rows[n_before..].iter().for_each(|row| points.push(row));
                    for near_only in [true, false] {
                        let mut points = points.clone();
                        if near_only {
                            points.truncate(2);
                        }
                        let mut out = vec![0.0; points.len()];
                        for at in &rows {
                            kernel.row(&points, 0..points.len(), at, &mut out, &mut Scratch::default());
                            for (row, value) in rows.iter().zip(&out) {
                                let exact = kernel.value(row, at);
                                assert!((value - exact).abs() < 1e-13, "{kernel:?} {row:?} {at:?} {value}");
                            }
                        }
                    }
                }
            }
        }
    }
}
