//! Covariance functions k(z, z') with numbers for their hyper-parameters.
//!
//! [`Kernel`] is what the algorithms evaluate; [`crate::KernelSpec`] is what a user describes, with
//! priors in place of numbers.

use std::ops::Range;

use pulp::Simd;
use serde::{Deserialize, Serialize};

use crate::linalg::exponential::{BLOCK, NEGLIGIBLE, exp_negative_block};
use crate::linalg::simd::{Vectorised, dispatch};
use crate::points::Points;

/// How a stationary kernel falls with the scaled distance r, r^2 = sum_c ((z_c - z'_c) / ell_c)^2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// exp(-r^2 / 2).
    SquaredExponential,
    /// exp(-r).
    Matern12,
    /// (1 + sqrt(3) r) exp(-sqrt(3) r).
    Matern32,
    /// (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r).
    Matern52,
    /// (1 + r^2 / (2 alpha))^(-alpha).
    RationalQuadratic {
        /// Weight of the small scales; the squared exponential is its limit for large alpha.
        alpha: f64,
    },
}

/// A covariance function. `components` are indices into z = (x, u).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// variance * shape(r), with one length-scale for each component (ARD).
    Stationary {
        /// How it falls with distance.
        shape: Shape,
        /// Signal variance sigma_f^2.
        variance: f64,
        /// Components of z it acts on.
        components: Vec<usize>,
        /// Length-scales, one for each component.
        ell: Vec<f64>,
    },
    /// variance * exp(-2 sum_c sin^2(pi (z_c - z'_c) / period_c) / ell_c^2).
    Periodic {
        /// Signal variance.
        variance: f64,
        /// Components of z it acts on.
        components: Vec<usize>,
        /// Length-scales.
        ell: Vec<f64>,
        /// Periods.
        period: Vec<f64>,
    },
    /// sum_c variance_c z_c z'_c: a linear function with independent zero-mean slopes.
    Linear {
        /// Components of z it acts on.
        components: Vec<usize>,
        /// Prior variances of the slopes.
        variance: Vec<f64>,
    },
    /// A constant: an unknown offset.
    Constant {
        /// Prior variance of the offset.
        variance: f64,
    },
    /// Sum of kernels; the empty sum is zero (no function beside the mean).
    Sum(Vec<Kernel>),
    /// Product of kernels.
    Product(Vec<Kernel>),
}

/// Room for intermediate values of composed kernels.
#[derive(Clone, Debug, Default)]
pub struct Scratch(Vec<Vec<f64>>);

impl Kernel {
    /// sigma_f^2 exp(-r^2 / 2) on all components, in order.
    pub fn squared_exponential(variance: f64, ell: &[f64]) -> Self {
        Self::stationary(Shape::SquaredExponential, variance, ell)
    }

    /// A stationary kernel on all components, in order.
    pub fn stationary(shape: Shape, variance: f64, ell: &[f64]) -> Self {
        Self::Stationary { shape, variance, components: (0..ell.len()).collect(), ell: ell.to_vec() }
    }

    /// The kernel of a function that is zero everywhere.
    pub fn zero() -> Self {
        Self::Sum(Vec::new())
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
                dispatch(Stationary {
                    shape: *shape,
                    variance: *variance,
                    components,
                    ell,
                    points,
                    range,
                    at,
                    out,
                });
            }
            Self::Periodic { variance, components, ell, period } => {
                out.fill(0.0);
                for ((&c, ell), period) in components.iter().zip(ell).zip(period) {
                    for (sum, z) in out.iter_mut().zip(&points.column(c)[range.clone()]) {
                        let sine = (std::f64::consts::PI * (z - at[c]) / period).sin() / ell;
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
                for part in others {
                    if scratch.len() <= depth {
                        scratch.resize(depth + 1, Vec::new());
                    }
                    let mut values = std::mem::take(&mut scratch[depth]);
                    values.resize(range.len().max(values.len()), 0.0);
                    part.row_at(points, range.clone(), at, &mut values, scratch, depth + 1);
                    for (total, value) in out.iter_mut().zip(&values) {
                        if is_sum { *total += value } else { *total *= value }
                    }
                    scratch[depth] = values;
                }
            }
        }
    }

    /// k(z, z).
    pub fn diagonal(&self, z: &[f64]) -> f64 {
        match self {
            Self::Stationary { variance, .. }
            | Self::Periodic { variance, .. }
            | Self::Constant { variance } => *variance,
            Self::Linear { components, variance } => {
                components.iter().zip(variance).map(|(&c, variance)| variance * z[c] * z[c]).sum()
            }
            Self::Sum(parts) => parts.iter().map(|part| part.diagonal(z)).sum(),
            Self::Product(parts) => parts.iter().map(|part| part.diagonal(z)).product(),
        }
    }

    /// k(z, z') of two single points.
    pub fn value(&self, z: &[f64], other: &[f64]) -> f64 {
        let points = Points::from_rows(z.len(), [z]);
        let mut out = [0.0];
        self.row(&points, 0..1, other, &mut out, &mut Scratch::default());
        out[0]
    }

    /// The matrix k(Z, Z'), row-major.
    pub fn matrix(&self, rows: &Points, columns: &Points) -> Vec<f64> {
        let mut scratch = Scratch::default();
        let mut out = vec![0.0; rows.len() * columns.len()];
        for i in 0..rows.len() {
            let at = rows.row(i);
            let out = &mut out[i * columns.len()..(i + 1) * columns.len()];
            self.row(columns, 0..columns.len(), &at, out, &mut scratch);
        }
        out
    }
}

struct Stationary<'a> {
    shape: Shape,
    variance: f64,
    components: &'a [usize],
    ell: &'a [f64],
    points: &'a Points,
    range: Range<usize>,
    at: &'a [f64],
    out: &'a mut [f64],
}

impl Vectorised for Stationary<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { shape, variance, components, ell, points, range, at, out } = self;
        out.fill(0.0);
        for (&c, ell) in components.iter().zip(ell) {
            let (center, inverse) = (at[c], 1.0 / ell);
            for (sum, z) in out.iter_mut().zip(&points.column(c)[range.clone()]) {
                let difference = (z - center) * inverse;
                *sum += difference * difference;
            }
        }
        match shape {
            Shape::SquaredExponential => falling::<S>(out, |r2| 0.5 * r2, |_, decay| variance * decay),
            Shape::Matern12 => falling::<S>(out, f64::sqrt, |_, decay| variance * decay),
            Shape::Matern32 => falling::<S>(
                out,
                |r2| (3.0 * r2).sqrt(),
                |a, decay| finite_product(variance * (1.0 + a), decay),
            ),
            Shape::Matern52 => falling::<S>(
                out,
                |r2| (5.0 * r2).sqrt(),
                |a, decay| finite_product(variance * (1.0 + a + a * a / 3.0), decay),
            ),
            Shape::RationalQuadratic { alpha } => {
                for r2 in out.iter_mut() {
                    let value = (-alpha * (*r2 / (2.0 * alpha)).ln_1p()).exp();
                    *r2 = if value < NEGLIGIBLE { 0.0 } else { variance * value };
                }
            }
        }
    }
}

/// Replaces each r^2 by `value(a, exp(-a))` with a = `exponent(r^2)`.
#[inline(always)]
fn falling<S: Simd>(out: &mut [f64], exponent: impl Fn(f64) -> f64, value: impl Fn(f64, f64) -> f64) {
    let (mut a, mut decay) = ([0.0; BLOCK], [0.0; BLOCK]);
    for block in out.chunks_mut(BLOCK) {
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
}

/// `polynomial * decay`, where no decay wins over an infinite polynomial.
#[inline(always)]
fn finite_product(polynomial: f64, decay: f64) -> f64 {
    if decay == 0.0 { 0.0 } else { polynomial * decay }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(shape: Shape, r: f64) -> f64 {
        match shape {
            Shape::SquaredExponential => (-0.5 * r * r).exp(),
            Shape::Matern12 => (-r).exp(),
            Shape::Matern32 => (1.0 + 3f64.sqrt() * r) * (-(3f64.sqrt()) * r).exp(),
            Shape::Matern52 => (1.0 + 5f64.sqrt() * r + 5.0 * r * r / 3.0) * (-(5f64.sqrt()) * r).exp(),
            Shape::RationalQuadratic { alpha } => (1.0 + r * r / (2.0 * alpha)).powf(-alpha),
        }
    }

    #[test]
    fn every_shape_follows_its_documented_formula() {
        let shapes = [
            Shape::SquaredExponential,
            Shape::Matern12,
            Shape::Matern32,
            Shape::Matern52,
            Shape::RationalQuadratic { alpha: 0.7 },
        ];
        let (a, b) = ([0.3, -1.0, 5.0], [1.1, 0.4, -2.0]);
        let r2: f64 = (0.8f64 / 0.5).powi(2) + (1.4f64 / 2.0).powi(2);
        for shape in shapes {
            let kernel =
                Kernel::Stationary { shape, variance: 1.7, components: vec![0, 1], ell: vec![0.5, 2.0] };
            let expected = 1.7 * plain(shape, r2.sqrt());
            assert!((kernel.value(&a, &b) / expected - 1.0).abs() < 1e-13, "{shape:?}");
            assert!((kernel.value(&a, &a) - kernel.diagonal(&a)).abs() < 1e-13);
        }
        let periodic =
            Kernel::Periodic { variance: 2.0, components: vec![1], ell: vec![0.9], period: vec![3.0] };
        let sine = (std::f64::consts::PI * 1.4 / 3.0).sin();
        assert!((periodic.value(&a, &b) - 2.0 * (-2.0 * sine * sine / 0.81).exp()).abs() < 1e-14);
        let linear = Kernel::Linear { components: vec![0, 2], variance: vec![2.0, 0.5] };
        assert!((linear.value(&a, &b) - (2.0 * 0.3 * 1.1 - 0.5 * 10.0)).abs() < 1e-14);
        let sum =
            Kernel::Sum(vec![periodic.clone(), Kernel::Product(vec![linear.clone(), periodic.clone()])]);
        let expected = periodic.value(&a, &b) * (1.0 + linear.value(&a, &b));
        assert!((sum.value(&a, &b) - expected).abs() < 1e-13);
        assert!((sum.diagonal(&b) - sum.value(&b, &b)).abs() < 1e-13);
        assert_eq!(Kernel::zero().value(&a, &b), 0.0);
    }

    #[test]
    fn far_points_give_zero_not_nan() {
        for shape in [Shape::SquaredExponential, Shape::Matern12, Shape::Matern32, Shape::Matern52] {
            let kernel = Kernel::stationary(shape, 1.0, &[1e-8]);
            for far in [1e3, 1e150, 1e300] {
                assert_eq!(kernel.value(&[0.0], &[far]), 0.0);
            }
        }
    }
}
