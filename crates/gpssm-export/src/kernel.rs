//! Covariance functions as expressions of two points, with the derivative in the first.

use std::f64::consts::{FRAC_2_PI, PI};

use gpssm::Kernel;
use gpssm::formula::{Binary, Unary};
use gpssm::kernel::{
    CONSTANT, Kind, LINEAR, MATERN12, MATERN32, MATERN52, NEURAL_NETWORK, PERIODIC, Part, RATIONAL_QUADRATIC,
    SQUARED_EXPONENTIAL, Side,
};

use crate::error::ExportError;
use crate::expression::{Graph, Id};

/// Scaled distances beyond this give zero all the same; without a limit a polynomial of an overflow times zero is no number.
const FARTHEST: f64 = 1000.0;

/// k(z, u) of a kernel. Variables: the components of z, then those of u.
#[derive(Clone, Debug)]
pub struct KernelExpression {
    /// All expressions.
    pub graph: Graph,
    /// k(z, u).
    pub value: Id,
    /// dk(z, u) / dz_c of each component that the kernel depends on.
    pub gradient: Vec<(usize, Id)>,
    /// k(z, z).
    pub diagonal: Id,
    /// dk(z, z) / dz_c of the same components.
    pub diagonal_gradient: Vec<Id>,
}

/// A value, and its derivative in the first point by component; zero where a component is missing.
struct Slope {
    value: Id,
    gradient: Vec<Id>,
}

impl KernelExpression {
    /// Of a kernel on points with `n_z` components; a user's kernel is refused.
    pub fn new(kernel: &Kernel, n_z: usize) -> Result<Self, ExportError> {
        let mut graph = Graph::default();
        let z: Vec<Id> = (0..n_z).map(|c| graph.variable(c)).collect();
        let u: Vec<Id> = (0..n_z).map(|c| graph.variable(n_z + c)).collect();
        let across = build(&mut graph, kernel, &z, &u)?;
        let own = build(&mut graph, kernel, &z, &z)?;
        let zero = graph.number(0.0);
        let used: Vec<usize> =
            (0..n_z).filter(|&c| across.gradient[c] != zero || own.gradient[c] != zero).collect();
        // k(z, z) changes through both points, in the same way.
        let diagonal_gradient = used.iter().map(|&c| graph.scale(2.0, own.gradient[c])).collect();
        Ok(Self {
            value: across.value,
            gradient: used.iter().map(|&c| (c, across.gradient[c])).collect(),
            diagonal: own.value,
            diagonal_gradient,
            graph,
        })
    }
}

fn build(graph: &mut Graph, kernel: &Kernel, z: &[Id], u: &[Id]) -> Result<Slope, ExportError> {
    let zero = graph.number(0.0);
    match kernel {
        Kernel::Part(part) => build_part(graph, part, z, u),
        Kernel::Sum(parts) => {
            let mut sum = Slope { value: zero, gradient: vec![zero; z.len()] };
            for part in parts {
                let part = build(graph, part, z, u)?;
                sum.value = graph.add(sum.value, part.value);
                for (sum, slope) in sum.gradient.iter_mut().zip(part.gradient) {
                    *sum = graph.add(*sum, slope);
                }
            }
            Ok(sum)
        }
        Kernel::Product(parts) => {
            let mut product = Slope { value: graph.number(1.0), gradient: vec![zero; z.len()] };
            for part in parts {
                let part = build(graph, part, z, u)?;
                for (all, slope) in product.gradient.iter_mut().zip(part.gradient) {
                    let (left, right) =
                        (graph.multiply(*all, part.value), graph.multiply(product.value, slope));
                    *all = graph.add(left, right);
                }
                product.value = graph.multiply(product.value, part.value);
            }
            Ok(product)
        }
        Kernel::Odd(inner) => {
            let opposite: Vec<Id> = u.iter().map(|&u| graph.unary(Unary::Negate, u)).collect();
            let (here, there) = (build(graph, inner, z, u)?, build(graph, inner, z, &opposite)?);
            let mut half = |a: Id, b: Id| {
                let difference = graph.subtract(a, b);
                graph.scale(0.5, difference)
            };
            let value = half(here.value, there.value);
            let gradient = here.gradient.into_iter().zip(there.gradient).map(|(a, b)| half(a, b)).collect();
            Ok(Slope { value, gradient })
        }
    }
}

fn build_part(graph: &mut Graph, part: &Part, z: &[Id], u: &[Id]) -> Result<Slope, ExportError> {
    if let Kind::Gate(side) = part.kind {
        return Ok(gate(graph, side, &part.numbers, part.components[0], z, u));
    }
    let Kind::BuiltIn(descriptor) = &part.kind else {
        let why = "it is a function of the program that made the run; fit with a kernel of the library";
        return Err(ExportError::refused(format!("the kernel '{}'", part.kind.title()), why));
    };
    let name = descriptor.name;
    let (at, numbers) = (&part.components, &part.numbers);
    let built =
        if [&SQUARED_EXPONENTIAL, &MATERN12, &MATERN32, &MATERN52].iter().any(|known| known.name == name) {
            radial(graph, name, &numbers[..], 0.0, at, z, u)
        } else if name == RATIONAL_QUADRATIC.name {
            radial(graph, name, &numbers[1..], numbers[0], at, z, u)
        } else if name == PERIODIC.name {
            periodic(graph, numbers, at, z, u)
        } else if name == NEURAL_NETWORK.name {
            neural_network(graph, numbers, at, z, u)
        } else if name == LINEAR.name {
            linear(graph, numbers, at, z, u)
        } else if name == CONSTANT.name {
            let zero = graph.number(0.0);
            Slope { value: graph.number(numbers[0]), gradient: vec![zero; z.len()] }
        } else {
            let why = "no formula for it is known here";
            return Err(ExportError::refused(format!("the {} kernel", descriptor.title), why));
        };
    Ok(built)
}

/// variance shape(r^2), r^2 = sum_c ((z_c - u_c) / ell_c)^2; `numbers` are the variance and ell.
fn radial(
    graph: &mut Graph,
    name: &str,
    numbers: &[f64],
    alpha: f64,
    at: &[usize],
    z: &[Id],
    u: &[Id],
) -> Slope {
    let (variance, ell) = (numbers[0], &numbers[1..]);
    let scaled: Vec<Id> = at
        .iter()
        .zip(ell)
        .map(|(&c, ell)| {
            let difference = graph.subtract(z[c], u[c]);
            graph.scale(1.0 / ell, difference)
        })
        .collect();
    let squares: Vec<Id> = scaled.iter().map(|&d| graph.square(d)).collect();
    let r2 = graph.sum(squares);
    let (value, slope) = shape(graph, name, r2, alpha);
    // d value / d z_c = slope (z_c - u_c) / ell_c^2 with slope = d value / d (r^2 / 2).
    let mut gradient = vec![graph.number(0.0); z.len()];
    let outer = graph.scale(variance, slope);
    for ((&c, ell), &difference) in at.iter().zip(ell).zip(&scaled) {
        let inner = graph.scale(1.0 / ell, difference);
        gradient[c] = graph.multiply(outer, inner);
    }
    Slope { value: graph.scale(variance, value), gradient }
}

/// Value at r^2, and derivative with respect to r^2 / 2.
fn shape(graph: &mut Graph, name: &str, r2: Id, alpha: f64) -> (Id, Id) {
    if name == SQUARED_EXPONENTIAL.name {
        let exponent = graph.scale(-0.5, r2);
        let value = graph.unary(Unary::Exp, exponent);
        return (value, graph.unary(Unary::Negate, value));
    }
    if name == RATIONAL_QUADRATIC.name {
        let base = graph.scale(0.5 / alpha, r2);
        let log = graph.unary(Unary::Log1p, base);
        let (value, slope) = (graph.scale(-alpha, log), graph.scale(-(alpha + 1.0), log));
        let (value, slope) = (graph.unary(Unary::Exp, value), graph.unary(Unary::Exp, slope));
        return (value, graph.unary(Unary::Negate, slope));
    }
    let nu2 = match name {
        _ if name == MATERN12.name => 1.0,
        _ if name == MATERN32.name => 3.0,
        _ => 5.0,
    };
    let square = graph.scale(nu2, r2);
    let root = graph.unary(Unary::Sqrt, square);
    let farthest = graph.number(FARTHEST);
    let a = graph.binary(Binary::Min, root, farthest);
    let negative = graph.unary(Unary::Negate, a);
    let decay = graph.unary(Unary::Exp, negative);
    if name == MATERN12.name {
        // The kernel has a kink at zero distance; its mean slope there is zero.
        let zero = graph.number(0.0);
        let apart = graph.binary(Binary::Greater, root, zero);
        let ratio = graph.divide(decay, root);
        let slope = graph.unary(Unary::Negate, ratio);
        return (decay, graph.choice(apart, slope, zero));
    }
    let first = graph.shift(a, 1.0);
    if name == MATERN32.name {
        return (graph.multiply(first, decay), graph.scale(-3.0, decay));
    }
    let square = graph.square(a);
    let third = graph.scale(1.0 / 3.0, square);
    let polynomial = graph.add(first, third);
    let product = graph.multiply(first, decay);
    (graph.multiply(polynomial, decay), graph.scale(-5.0 / 3.0, product))
}

/// variance exp(-2 sum_c sin^2(pi (z_c - u_c) / period_c) / ell_c^2).
fn periodic(graph: &mut Graph, numbers: &[f64], at: &[usize], z: &[Id], u: &[Id]) -> Slope {
    let (variance, rest) = (numbers[0], &numbers[1..]);
    let (ell, period) = rest.split_at(rest.len() / 2);
    let (mut squares, mut slopes) = (Vec::new(), Vec::new());
    for ((&c, ell), period) in at.iter().zip(ell).zip(period) {
        let difference = graph.subtract(z[c], u[c]);
        let angle = graph.scale(PI / period, difference);
        let (sine, cosine) = (graph.unary(Unary::Sin, angle), graph.unary(Unary::Cos, angle));
        let square = graph.square(sine);
        squares.push(graph.scale(1.0 / (ell * ell), square));
        let product = graph.multiply(sine, cosine);
        slopes.push((c, graph.scale(-4.0 * PI / (period * ell * ell), product)));
    }
    let sum = graph.sum(squares);
    let exponent = graph.scale(-2.0, sum);
    let shape = graph.unary(Unary::Exp, exponent);
    let value = graph.scale(variance, shape);
    let mut gradient = vec![graph.number(0.0); z.len()];
    for (c, slope) in slopes {
        gradient[c] = graph.multiply(value, slope);
    }
    Slope { value, gradient }
}

/// variance 2/pi asin(2 s(z, u) / sqrt((1 + 2 s(z, z)) (1 + 2 s(u, u)))), s(z, u) = bias^2 + sum_c weight_c^2 z_c u_c.
fn neural_network(graph: &mut Graph, numbers: &[f64], at: &[usize], z: &[Id], u: &[Id]) -> Slope {
    let (variance, bias, weights) = (numbers[0], numbers[1], &numbers[2..]);
    let product = |a: &[Id], b: &[Id], graph: &mut Graph| {
        let terms: Vec<Id> = at
            .iter()
            .zip(weights)
            .map(|(&c, weight)| {
                let term = graph.multiply(a[c], b[c]);
                graph.scale(weight * weight, term)
            })
            .collect();
        let sum = graph.sum(terms);
        graph.shift(sum, bias * bias)
    };
    let across = product(z, u, graph);
    let with_one = |a: &[Id], graph: &mut Graph| {
        let own = product(a, a, graph);
        let double = graph.scale(2.0, own);
        graph.shift(double, 1.0)
    };
    let (own, others) = (with_one(z, graph), with_one(u, graph));
    let both = graph.multiply(own, others);
    let root = graph.unary(Unary::Sqrt, both);
    let double = graph.scale(2.0, across);
    let sine = graph.divide(double, root);
    let angle = graph.unary(Unary::Asin, sine);
    let square = graph.square(sine);
    let one = graph.number(1.0);
    let left = graph.subtract(one, square);
    let cosine = graph.unary(Unary::Sqrt, left);
    let factor = graph.number(variance * FRAC_2_PI);
    let outer = graph.divide(factor, cosine);
    let mut gradient = vec![graph.number(0.0); z.len()];
    for (&c, weight) in at.iter().zip(weights) {
        let (first, second) = (graph.divide(u[c], root), graph.multiply(sine, z[c]));
        let second = graph.divide(second, own);
        let inner = graph.subtract(first, second);
        let inner = graph.scale(2.0 * weight * weight, inner);
        gradient[c] = graph.multiply(outer, inner);
    }
    Slope { value: graph.scale(variance * FRAC_2_PI, angle), gradient }
}

/// s(z) s(u), s(z) = logistic((z_c - location) / width) after a change point, and with the other sign before it.
fn gate(graph: &mut Graph, side: Side, numbers: &[f64], c: usize, z: &[Id], u: &[Id]) -> Slope {
    let slope = if side == Side::Before { -1.0 } else { 1.0 } / numbers[1];
    let open = |at: Id, graph: &mut Graph| {
        let moved = graph.shift(at, -numbers[0]);
        let scaled = graph.scale(slope, moved);
        graph.unary(Unary::Logistic, scaled)
    };
    let (here, there) = (open(z[c], graph), open(u[c], graph));
    let one = graph.number(1.0);
    let closed = graph.subtract(one, here);
    let product = graph.multiply(here, closed);
    let own = graph.scale(slope, product);
    let mut gradient = vec![graph.number(0.0); z.len()];
    gradient[c] = graph.multiply(own, there);
    Slope { value: graph.multiply(here, there), gradient }
}

/// sum_c variance_c z_c u_c.
fn linear(graph: &mut Graph, numbers: &[f64], at: &[usize], z: &[Id], u: &[Id]) -> Slope {
    let mut gradient = vec![graph.number(0.0); z.len()];
    let mut terms = Vec::new();
    for (&c, variance) in at.iter().zip(numbers) {
        gradient[c] = graph.scale(*variance, u[c]);
        terms.push(graph.multiply(gradient[c], z[c]));
    }
    Slope { value: graph.sum(terms), gradient }
}
