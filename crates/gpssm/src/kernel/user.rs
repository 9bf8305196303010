//! Kernels of the user's own.

use std::sync::Arc;

use super::part::{Covariance, Pair, Row};
use crate::points::Points;
use crate::scaling::Scaling;

/// A covariance function with parameters, supplied by the user.
///
/// It must be symmetric and positive semi-definite for all values of its parameters; [`crate::conformance::kernel`] checks
/// this at random points. It sees the components it acts on, in original units, and its value has the unit of the state
/// squared.
///
/// ```
/// use gpssm::Points;
/// use gpssm::kernel::KernelFunction;
///
/// /// a^2 (z z')^2 of one component.
/// struct Quadratic;
///
/// impl KernelFunction for Quadratic {
///     fn row(&self, z: &Points, other: &[f64], parameters: &[f64], out: &mut [f64]) {
///         for (out, z) in out.iter_mut().zip(z.column(0)) {
///             *out = (parameters[0] * z * other[0]).powi(2);
///         }
///     }
/// }
/// ```
pub trait KernelFunction: Send + Sync {
    /// Writes k(z_i, z') of every point z_i with z' into `out`.
    fn row(&self, z: &Points, other: &[f64], parameters: &[f64], out: &mut [f64]);
}

impl<F: Fn(&Points, &[f64], &[f64], &mut [f64]) + Send + Sync> KernelFunction for F {
    fn row(&self, z: &Points, other: &[f64], parameters: &[f64], out: &mut [f64]) {
        self(z, other, parameters, out);
    }
}

/// A user's kernel with its name. Two are the same if they share their values.
#[derive(Clone)]
pub struct UserKernel {
    pub(crate) name: Arc<str>,
    pub(crate) covariance: Arc<dyn Covariance>,
}

/// A user's function, and the units it is written in.
pub(crate) struct InUnits {
    /// The kernel.
    pub(crate) function: Arc<dyn KernelFunction>,
    /// From internal to original units of z; none if they are the same.
    pub(crate) scaling: Option<Arc<Scaling>>,
    /// Its values are divided by this.
    pub(crate) variance_unit: f64,
}

impl InUnits {
    fn to_original(&self, c: usize, value: f64) -> f64 {
        match &self.scaling {
            Some(scaling) => scaling.z_shift(c) + scaling.z_scale(c) * value,
            None => value,
        }
    }
}

impl Covariance for InUnits {
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64 {
        let place = |value: fn((f64, f64)) -> f64| -> Vec<f64> {
            let values = pair.components.iter().zip(pair.iter());
            values.map(|(&c, both)| self.to_original(c, value(both))).collect()
        };
        let (z, other, mut out) = (place(|both| both.0), place(|both| both.1), [0.0]);
        self.function.row(&Points::from_rows(z.len(), [&z[..]]), &other, numbers, &mut out);
        out[0] / self.variance_unit
    }

    fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
        let columns = row.components.iter().map(|&c| {
            let column = &row.points.column(c)[row.range.clone()];
            column.iter().map(|&value| self.to_original(c, value)).collect()
        });
        let z = Points::from_columns(columns.collect());
        let other: Vec<f64> = row.components.iter().map(|&c| self.to_original(c, row.at[c])).collect();
        self.function.row(&z, &other, numbers, out);
        out.iter_mut().for_each(|value| *value /= self.variance_unit);
    }
}
