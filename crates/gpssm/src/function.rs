//! Functions of z = (x, u): mean functions, parametric transitions, sensor means.

use std::fmt;
use std::sync::Arc;

use crate::points::Points;
use crate::scaling::Scaling;

/// A function of state and input with parameters, supplied by the user.
///
/// It is called with many points at once (all particles of a step, or a whole path) and always sees
/// original units. Values that are not finite give the particle weight zero.
///
/// ```
/// use gpssm::{Points, StateFunction};
///
/// /// a x / (1 + x^2)
/// struct Saturating;
///
/// impl StateFunction for Saturating {
///     fn evaluate(&self, z: &Points, parameters: &[f64], out: &mut [f64]) {
///         for (out, x) in out.iter_mut().zip(z.column(0)) {
///             *out = parameters[0] * x / (1.0 + x * x);
///         }
///     }
/// }
/// ```
pub trait StateFunction: Send + Sync {
    /// Writes the value at every point into `out`; states come first among the components of `z`, then
    /// inputs.
    fn evaluate(&self, z: &Points, parameters: &[f64], out: &mut [f64]);
}

impl<F: Fn(&Points, &[f64], &mut [f64]) + Send + Sync> StateFunction for F {
    fn evaluate(&self, z: &Points, parameters: &[f64], out: &mut [f64]) {
        self(z, parameters, out);
    }
}

/// A user's function with numbers for its parameters, and the units in which it thinks.
#[derive(Clone)]
pub struct UserFunction {
    /// The function.
    pub function: Arc<dyn StateFunction>,
    /// Its parameters.
    pub parameters: Vec<f64>,
    /// From internal to original units of z; none if they are the same.
    pub scaling: Option<Arc<Scaling>>,
}

impl fmt::Debug for UserFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UserFunction").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

/// A scalar function of z, with numbers.
#[derive(Clone, Debug)]
pub enum ScalarFunction {
    /// Zero everywhere.
    Zero,
    /// One component of z: the identity mean m(x) = x takes component d for state d.
    Component(usize),
    /// offset + sum_c weights_c z_c.
    Linear {
        /// One weight for each component of z.
        weights: Vec<f64>,
        /// Constant term.
        offset: f64,
    },
    /// A user's function, as (value - shift) / scale.
    User {
        /// The function.
        function: UserFunction,
        /// Subtracted from its value.
        shift: f64,
        /// Divides the difference.
        scale: f64,
    },
}

impl ScalarFunction {
    /// Values at all points.
    pub fn evaluate(&self, z: &Points, out: &mut [f64]) {
        let out = &mut out[..z.len()];
        match self {
            Self::Zero => out.fill(0.0),
            Self::Component(c) => out.copy_from_slice(z.column(*c)),
            Self::Linear { weights, offset } => {
                out.fill(*offset);
                for (c, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                    for (sum, z) in out.iter_mut().zip(z.column(c)) {
                        *sum += weight * z;
                    }
                }
            }
            Self::User { function, shift, scale } => {
                match &function.scaling {
                    Some(scaling) => {
                        function.function.evaluate(&scaling.points_to_original(z), &function.parameters, out);
                    }
                    None => function.function.evaluate(z, &function.parameters, out),
                }
                for value in out {
                    *value = (*value - shift) / scale;
                }
            }
        }
    }
}

/// Evaluates one function for each state dimension; row-major (point, dimension).
pub(crate) fn evaluate_all(functions: &[ScalarFunction], z: &Points, out: &mut Vec<f64>) {
    let n = functions.len();
    out.clear();
    out.resize(z.len() * n, 0.0);
    if let [function] = functions {
        return function.evaluate(z, out);
    }
    let mut column = vec![0.0; z.len()];
    for (d, function) in functions.iter().enumerate() {
        function.evaluate(z, &mut column);
        for (i, value) in column.iter().enumerate() {
            out[i * n + d] = *value;
        }
    }
}
