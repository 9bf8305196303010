//! Rows of covariances, many at a time.

use std::f64::consts::PI;
use std::ops::Range;

use pulp::Simd;

use super::{Kernel, Shape, finite_product};
use crate::linalg::exponential::{BLOCK, NEGLIGIBLE, exp_negative_block};
use crate::linalg::simd::{Vectorised, dispatch};
use crate::points::{Exponentials, Points};

/// Room for intermediate values of composed kernels.
#[derive(Clone, Debug, Default)]
pub struct Scratch(Vec<Vec<f64>>);

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
            Self::Stationary { components, .. }
            | Self::Periodic { components, .. }
            | Self::Linear { components, .. } => {
                components.iter().all(|&c| points.column(c)[i] == points.column(c)[j])
            }
            Self::Constant { .. } => true,
            Self::Sum(parts) | Self::Product(parts) => {
                parts.iter().all(|part| part.sees_no_difference(points, i, j))
            }
            Self::Odd(kernel) => kernel.sees_no_difference(points, i, j),
        }
    }

    /// Makes rows over these points cheap where the kernel allows it: 1e-14 of the variance is lost, as in a factorisation.
    pub(crate) fn precompute(kernels: &[Self], points: &mut Points) {
        let mut wanted = Vec::new();
        kernels.iter().for_each(|kernel| kernel.exponentials(&mut wanted));
        points.keep_exponentials(&wanted);
    }

    /// Components and rates of the parts that are products of exponentials.
    fn exponentials(&self, wanted: &mut Vec<(usize, f64)>) {
        match self {
            Self::Stationary { shape, components, ell, .. } => {
                if let (Some(factor), &[c], &[ell]) = (shape.rate(), &components[..], &ell[..]) {
                    wanted.push((c, factor / ell));
                }
            }
            Self::Sum(parts) | Self::Product(parts) => {
                parts.iter().for_each(|part| part.exponentials(wanted));
            }
            Self::Odd(kernel) => kernel.exponentials(wanted),
            Self::Periodic { .. } | Self::Linear { .. } | Self::Constant { .. } => {}
        }
    }

    /// k(z_i, at) for the points i in `range`.
    pub fn row(
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
            Self::Stationary { shape, variance, components, ell } => {
                let (shape, variance, odd) = (*shape, *variance, false);
                dispatch(Stationary { shape, variance, components, ell, odd, points, range, at, out });
            }
            Self::Periodic { variance, components, ell, period } => {
                out.fill(0.0);
                for ((&c, ell), period) in components.iter().zip(ell).zip(period) {
                    for (sum, z) in out.iter_mut().zip(&points.column(c)[range.clone()]) {
                        let sine = (PI * (z - at[c]) / period).sin() / ell;
                        *sum += 2.0 * sine * sine;
                    }
                }
                crate::linalg::exponential::scaled_exp_negative(*variance, out);
            }
            Self::Linear { components, variance } => {
                out.fill(0.0);
                for (&c, variance) in components.iter().zip(variance) {
                    let slope = variance * at[c];
                    for (sum, z) in out.iter_mut().zip(&points.column(c)[range.clone()]) {
                        *sum += slope * z;
                    }
                }
            }
            Self::Constant { variance } => out.fill(*variance),
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
                if let Self::Stationary { shape, variance, components, ell } = &**kernel {
                    let (shape, variance, odd) = (*shape, *variance, true);
                    return dispatch(Stationary {
                        shape,
                        variance,
                        components,
                        ell,
                        odd,
                        points,
                        range,
                        at,
                        out,
                    });
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

/// k(z_i, at) of a stationary kernel, or of its odd part.
struct Stationary<'a> {
    shape: Shape,
    variance: f64,
    components: &'a [usize],
    ell: &'a [f64],
    odd: bool,
    points: &'a Points,
    range: Range<usize>,
    at: &'a [f64],
    out: &'a mut [f64],
}

impl Vectorised for Stationary<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        let out = std::mem::take(&mut self.out);
        if self.fill_by_products(out) {
            return;
        }
        let mut opposite = [0.0; BLOCK];
        for (block, first) in out.chunks_mut(BLOCK).zip(self.range.clone().step_by(BLOCK)) {
            self.values::<S>(first, 1.0, block);
            if self.odd {
                let opposite = &mut opposite[..block.len()];
                self.values::<S>(first, -1.0, opposite);
                block.iter_mut().zip(opposite).for_each(|(a, b)| *a = 0.5 * (*a - *b));
            }
        }
    }
}

impl Shape {
    /// The factor a = rate * r of a polynomial in a times exp(-a).
    fn rate(self) -> Option<f64> {
        match self {
            Self::Matern12 => Some(1.0),
            Self::Matern32 => Some(3f64.sqrt()),
            Self::Matern52 => Some(5f64.sqrt()),
            Self::SquaredExponential | Self::RationalQuadratic { .. } => None,
        }
    }
}

impl Stationary<'_> {
    /// The whole row by products of exponentials, if they are there.
    #[inline(always)]
    fn fill_by_products(&self, out: &mut [f64]) -> bool {
        let (Some(factor), &[c], &[ell]) = (self.shape.rate(), self.components, self.ell) else {
            return false;
        };
        let (rate, center) = (factor / ell, self.at[c]);
        let Some(known) = self.points.exponentials(c, rate) else { return false };
        let Some((rising, falling)) = Exponentials::of(center, rate) else { return false };
        let columns = (
            &self.points.column(c)[self.range.clone()],
            &known.rising[self.range.clone()],
            &known.falling[self.range.clone()],
        );
        let variance = self.variance;
        let polynomial = move |a: f64| match self.shape {
            Shape::Matern32 => variance * (1.0 + a),
            Shape::Matern52 => variance * (1.0 + a + a * a / 3.0),
            _ => variance,
        };
        let value = |z: f64, plus: f64, minus: f64, center: f64, rising: f64, falling: f64| {
            polynomial((rate * (z - center)).abs()) * (plus * falling).min(minus * rising)
        };
        let entries = out.iter_mut().zip(columns.0).zip(columns.1.iter().zip(columns.2));
        if self.odd {
            for ((out, &z), (&plus, &minus)) in entries {
                let same = value(z, plus, minus, center, rising, falling);
                *out = 0.5 * (same - value(z, plus, minus, -center, falling, rising));
            }
        } else {
            for ((out, &z), (&plus, &minus)) in entries {
                *out = value(z, plus, minus, center, rising, falling);
            }
        }
        true
    }

    /// k(z_i, sign at) for the points from `first`.
    #[inline(always)]
    fn values<S: Simd>(&self, first: usize, sign: f64, out: &mut [f64]) {
        let variance = self.variance;
        let matern32 = |a: f64, decay: f64| finite_product(variance * (1.0 + a), decay);
        let matern52 = |a: f64, decay: f64| finite_product(variance * (1.0 + a + a * a / 3.0), decay);
        if let (Some(factor), &[c], &[ell]) = (self.shape.rate(), self.components, self.ell) {
            // Of one component the distance is known without a root.
            let (center, rate) = (sign * self.at[c], factor / ell);
            let z = &self.points.column(c)[first..];
            out.iter_mut().zip(z).for_each(|(out, z)| *out = (rate * (z - center)).abs());
            return match self.shape {
                Shape::Matern32 => falling::<S>(out, |a| a, matern32),
                Shape::Matern52 => falling::<S>(out, |a| a, matern52),
                _ => falling::<S>(out, |a| a, |_, decay| variance * decay),
            };
        }
        out.fill(0.0);
        for (&c, ell) in self.components.iter().zip(self.ell) {
            let (center, inverse) = (sign * self.at[c], 1.0 / ell);
            for (sum, z) in out.iter_mut().zip(&self.points.column(c)[first..]) {
                let difference = (z - center) * inverse;
                *sum += difference * difference;
            }
        }
        match self.shape {
            Shape::SquaredExponential => falling::<S>(out, |r2| 0.5 * r2, |_, decay| variance * decay),
            Shape::Matern12 => falling::<S>(out, f64::sqrt, |_, decay| variance * decay),
            Shape::Matern32 => falling::<S>(out, |r2| (3.0 * r2).sqrt(), matern32),
            Shape::Matern52 => falling::<S>(out, |r2| (5.0 * r2).sqrt(), matern52),
            Shape::RationalQuadratic { alpha } => {
                for r2 in out.iter_mut() {
                    let value = (-alpha * (*r2 / (2.0 * alpha)).ln_1p()).exp();
                    *r2 = if value < NEGLIGIBLE { 0.0 } else { variance * value };
                }
            }
        }
    }
}

/// Replaces each number of a block by `value(a, exp(-a))` with a = `exponent` of it.
#[inline(always)]
fn falling<S: Simd>(block: &mut [f64], exponent: impl Fn(f64) -> f64, value: impl Fn(f64, f64) -> f64) {
    let (mut a, mut decay) = ([0.0; BLOCK], [0.0; BLOCK]);
    let n = block.len();
    let (a, decay) = (&mut a[..n], &mut decay[..n]);
    for i in 0..n {
        a[i] = exponent(block[i]);
    }
    exp_negative_block::<S>(a, decay);
    for i in 0..n {
        block[i] = value(a[i], decay[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
