//! Kernels and mean functions at single points, from their formulas and independent of the library's rows and blocks.

use std::f64::consts::PI;

use gpssm::Points;
use gpssm::function::ScalarFunction;
use gpssm::kernel::{Kernel, Shape};

/// k(a, b).
pub fn kernel_value(kernel: &Kernel, a: &[f64], b: &[f64]) -> f64 {
    match kernel {
        Kernel::Stationary { shape, variance, components, ell } => {
            let square: f64 = components.iter().zip(ell).map(|(&c, ell)| ((a[c] - b[c]) / ell).powi(2)).sum();
            let r = square.sqrt();
            let (r3, r5) = (3f64.sqrt() * r, 5f64.sqrt() * r);
            variance
                * match shape {
                    Shape::SquaredExponential => (-0.5 * square).exp(),
                    Shape::Matern12 => (-r).exp(),
                    Shape::Matern32 => (1.0 + r3) * (-r3).exp(),
                    Shape::Matern52 => (1.0 + r5 + 5.0 / 3.0 * square) * (-r5).exp(),
                    Shape::RationalQuadratic { alpha } => (1.0 + square / (2.0 * alpha)).powf(-alpha),
                }
        }
        Kernel::Periodic { variance, components, ell, period } => {
            let term = |i: usize| {
                let c = components[i];
                ((PI * (a[c] - b[c]) / period[i]).sin() / ell[i]).powi(2)
            };
            variance * (-2.0 * (0..ell.len()).map(term).sum::<f64>()).exp()
        }
        Kernel::Linear { components, variance } => {
            components.iter().zip(variance).map(|(&c, variance)| variance * a[c] * b[c]).sum()
        }
        Kernel::Constant { variance } => *variance,
        Kernel::Sum(parts) => parts.iter().map(|part| kernel_value(part, a, b)).sum(),
        Kernel::Product(parts) => parts.iter().map(|part| kernel_value(part, a, b)).product(),
        Kernel::Odd(kernel) => {
            let opposite = |z: &[f64]| z.iter().map(|z| -z).collect::<Vec<_>>();
            let (far_a, far_b) = (opposite(a), opposite(b));
            // The covariance of g(a) - g(-a) and g(b) - g(-b), halved twice.
            let crossed = kernel_value(kernel, a, &far_b) + kernel_value(kernel, &far_a, b);
            0.25 * (kernel_value(kernel, a, b) + kernel_value(kernel, &far_a, &far_b) - crossed)
        }
    }
}

/// A function at one point.
pub fn function_value(function: &ScalarFunction, z: &[f64]) -> f64 {
    match function {
        ScalarFunction::Zero => 0.0,
        ScalarFunction::Component(c) => z[*c],
        ScalarFunction::Linear { weights, offset } => {
            offset + weights.iter().zip(z).map(|(w, z)| w * z).sum::<f64>()
        }
        ScalarFunction::User { function, shift, scale } => {
            let mut value = [0.0];
            function.function.evaluate(&Points::from_rows(z.len(), [z]), &function.parameters, &mut value);
            (value[0] - shift) / scale
        }
    }
}
