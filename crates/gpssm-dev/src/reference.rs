//! Kernels and mean functions at single points, from their formulas and independent of the library's rows and blocks.

use std::f64::consts::PI;

use gpssm::function::ScalarFunction;
use gpssm::kernel::{Kind, Part, Shape, Side};
use gpssm::{Kernel, Points};

/// The short name of a kernel, its components and its numbers.
pub fn named(part: &Part) -> (&str, &[usize], &[f64]) {
    let Kind::BuiltIn(kind) = &part.kind else { panic!("no twin of a user's kernel") };
    (kind.short, &part.components, &part.numbers)
}

/// Shape, variance and length-scales of a kernel that falls with distance.
pub fn radial(part: &Part) -> Option<(Shape, f64, &[f64])> {
    let (name, _, numbers) = named(part);
    let shape = match name {
        "se" => Shape::SquaredExponential,
        "matern12" => Shape::Matern12,
        "matern32" => Shape::Matern32,
        "matern52" => Shape::Matern52,
        "rq" => return Some((Shape::RationalQuadratic { alpha: numbers[0] }, numbers[1], &numbers[2..])),
        _ => return None,
    };
    Some((shape, numbers[0], &numbers[1..]))
}

fn part_value(part: &Part, a: &[f64], b: &[f64]) -> f64 {
    if let Kind::Gate(side) = &part.kind {
        let (c, location, width) = (part.components[0], part.numbers[0], part.numbers[1]);
        let after = |z: &[f64]| 0.5 * (1.0 + (0.5 * (z[c] - location) / width).tanh());
        return match side {
            Side::Before => (1.0 - after(a)) * (1.0 - after(b)),
            Side::After => after(a) * after(b),
        };
    }
    let (name, components, numbers) = named(part);
    if let Some((shape, variance, ell)) = radial(part) {
        let square: f64 = components.iter().zip(ell).map(|(&c, ell)| ((a[c] - b[c]) / ell).powi(2)).sum();
        let r = square.sqrt();
        let (r3, r5) = (3f64.sqrt() * r, 5f64.sqrt() * r);
        let value = match shape {
            Shape::SquaredExponential => (-0.5 * square).exp(),
            Shape::Matern12 => (-r).exp(),
            Shape::Matern32 => (1.0 + r3) * (-r3).exp(),
            Shape::Matern52 => (1.0 + r5 + 5.0 / 3.0 * square) * (-r5).exp(),
            Shape::RationalQuadratic { alpha } => (1.0 + square / (2.0 * alpha)).powf(-alpha),
        };
        return variance * value;
    }
    let n = components.len();
    let over = |term: &dyn Fn(usize, usize) -> f64| (0..n).map(|i| term(i, components[i])).sum::<f64>();
    match name {
        "periodic" => {
            let (ell, period) = numbers[1..].split_at(n);
            let term = |i: usize, c: usize| ((PI * (a[c] - b[c]) / period[i]).sin() / ell[i]).powi(2);
            numbers[0] * (-2.0 * over(&term)).exp()
        }
        "linear" => over(&|i, c| numbers[i] * a[c] * b[c]),
        "constant" => numbers[0],
        other => panic!("no twin of the {other} kernel"),
    }
}

/// k(a, b).
pub fn kernel_value(kernel: &Kernel, a: &[f64], b: &[f64]) -> f64 {
    match kernel {
        Kernel::Part(part) => part_value(part, a, b),
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
