//! Rows of covariances of radial kernels, vectorised.

use pulp::Simd;

use super::{Radial, Shape, finite_product};
use crate::kernel::part::Row;
use crate::linalg::exponential::{BLOCK, NEGLIGIBLE, exp_negative_block};
use crate::linalg::simd::Vectorised;
use crate::points::Exponentials;

/// k(z_i, at) of a radial kernel, or of its odd part.
pub(super) struct Rows<'a> {
    pub radial: Radial<'a>,
    pub row: &'a Row<'a>,
    pub odd: bool,
    pub out: &'a mut [f64],
}

impl Vectorised for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        let out = std::mem::take(&mut self.out);
        if self.fill_by_products(out) {
            return;
        }
        let mut opposite = [0.0; BLOCK];
        for (block, first) in out.chunks_mut(BLOCK).zip(self.row.range.clone().step_by(BLOCK)) {
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

impl Radial<'_> {
    /// Rate s of exp(-s |z - z'|), if this is of one component and a polynomial times such an exponential.
    pub(crate) fn rate(&self) -> Option<f64> {
        match (self.shape.rate(), self.ell) {
            (Some(factor), &[ell]) => Some(factor / ell),
            _ => None,
        }
    }
}

impl Rows<'_> {
    /// The whole row by products of exponentials, if they are there.
    #[inline(always)]
    fn fill_by_products(&self, out: &mut [f64]) -> bool {
        let (Some(rate), &[c]) = (self.radial.rate(), self.row.components) else { return false };
        let center = self.row.at[c];
        let Some(known) = self.row.points.exponentials(c, rate) else { return false };
        let Some((rising, falling)) = Exponentials::of(center, rate) else { return false };
        let columns = (
            &self.row.points.column(c)[self.row.range.clone()],
            &known.rising[self.row.range.clone()],
            &known.falling[self.row.range.clone()],
        );
        let variance = self.radial.variance;
        let polynomial = move |a: f64| match self.radial.shape {
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
        let variance = self.radial.variance;
        let matern32 = |a: f64, decay: f64| finite_product(variance * (1.0 + a), decay);
        let matern52 = |a: f64, decay: f64| finite_product(variance * (1.0 + a + a * a / 3.0), decay);
        if let (Some(rate), &[c]) = (self.radial.rate(), self.row.components) {
            // Of one component the distance is known without a root.
            let center = sign * self.row.at[c];
            let z = &self.row.points.column(c)[first..];
            out.iter_mut().zip(z).for_each(|(out, z)| *out = (rate * (z - center)).abs());
            return match self.radial.shape {
                Shape::Matern32 => falling::<S>(out, |a| a, matern32),
                Shape::Matern52 => falling::<S>(out, |a| a, matern52),
                _ => falling::<S>(out, |a| a, |_, decay| variance * decay),
            };
        }
        out.fill(0.0);
        for (&c, ell) in self.row.components.iter().zip(self.radial.ell) {
            let (center, inverse) = (sign * self.row.at[c], 1.0 / ell);
            for (sum, z) in out.iter_mut().zip(&self.row.points.column(c)[first..]) {
                let difference = (z - center) * inverse;
                *sum += difference * difference;
            }
        }
        match self.radial.shape {
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
