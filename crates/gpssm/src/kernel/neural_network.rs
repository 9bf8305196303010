//! The neural-network kernel (Williams 1998, doi 10.1162/089976698300017412): of a network with infinitely many hidden units
//! erf(w . (1, z)), w ~ N(0, S). Its numbers are the signal variance, and the standard deviations of bias and weights.

use std::f64::consts::FRAC_2_PI;

use super::descriptor::{Descriptor, KernelParameter, Median, Role, Unit};
use super::part::{Covariance, Pair};

/// Functions that change in one region and level off away from it.
pub static NEURAL_NETWORK: Descriptor = Descriptor {
    name: "neural_network",
    short: "nn",
    aliases: &["arcsine"],
    title: "neural network",
    formula: "sigma_f^2 2/pi asin(2 s(z, z') / sqrt((1 + 2 s(z, z)) (1 + 2 s(z', z')))), s(z, z') = bias^2 + sum_c weight_c^2 z_c z'_c",
    parameters: &[
        KernelParameter::SIGMA_F,
        KernelParameter {
            name: "bias",
            role: Role::Shape,
            unit: Unit::None,
            each: false,
            median: Median::Units(1.0),
            help: "Standard deviation of the biases of hidden units.",
        },
        KernelParameter {
            name: "weight",
            role: Role::Slope,
            unit: Unit::PerComponent,
            each: true,
            median: Median::Units(1.0),
            help: "Standard deviations of the weights of hidden units.",
        },
    ],
    covariance: &NeuralNetwork,
};

struct NeuralNetwork;

/// s(z, z'), 1 + 2 s(z, z) and 1 + 2 s(z', z').
fn products(numbers: &[f64], pair: &Pair<'_>) -> (f64, f64, f64) {
    let bias = numbers[1] * numbers[1];
    let (mut across, mut own, mut others) = (bias, 1.0 + 2.0 * bias, 1.0 + 2.0 * bias);
    for ((z, other), weight) in pair.iter().zip(&numbers[2..]) {
        let square = weight * weight;
        across += square * z * other;
        own += 2.0 * square * z * z;
        others += 2.0 * square * other * other;
    }
    (across, own, others)
}

impl Covariance for NeuralNetwork {
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64 {
        let (across, own, others) = products(numbers, pair);
        numbers[0] * FRAC_2_PI * (2.0 * across / (own * others).sqrt()).asin()
    }

    fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
        let (across, own, others) = products(numbers, pair);
        let root = (own * others).sqrt();
        let sine = 2.0 * across / root;
        let outer = factor * numbers[0] * FRAC_2_PI / (1.0 - sine * sine).sqrt();
        for ((&c, (z, other)), weight) in pair.components.iter().zip(pair.iter()).zip(&numbers[2..]) {
            gradient[c] += outer * 2.0 * weight * weight * (other / root - sine * z / own);
        }
        true
    }
}
