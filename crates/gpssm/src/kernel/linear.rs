//! Kernels of finitely many features: linear functions and constants. Their numbers are the variances of slopes and offset.

use super::descriptor::{Descriptor, KernelParameter, Median, Role, Unit};
use super::part::{Covariance, Feature, Pair, Row};

/// A linear function with independent zero-mean slopes.
pub static LINEAR: Descriptor = Descriptor {
    name: "linear",
    short: "linear",
    aliases: &[],
    title: "linear",
    formula: "sum_c sigma_c^2 z_c z'_c, z counted from the middle of the data where they are standardised",
    parameters: &[KernelParameter {
        name: "sigma",
        role: Role::Slope,
        unit: Unit::StatePerComponent,
        each: true,
        median: Median::Units(1.0),
        help: "Standard deviations of the slopes.",
    }],
    covariance: &Linear,
};

/// An unknown offset.
pub static CONSTANT: Descriptor = Descriptor {
    name: "constant",
    short: "constant",
    aliases: &[],
    title: "constant",
    formula: "sigma^2",
    parameters: &[KernelParameter {
        name: "sigma",
        role: Role::Level,
        help: "Standard deviation of the offset.",
        ..KernelParameter::SIGMA_F
    }],
    covariance: &Constant,
};

struct Linear;

impl Covariance for Linear {
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64 {
        pair.iter().zip(numbers).map(|((z, other), variance)| variance * z * other).sum()
    }

    fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
        for ((&c, (_, other)), variance) in pair.components.iter().zip(pair.iter()).zip(numbers) {
            gradient[c] += factor * variance * other;
        }
        true
    }

    fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
        out.fill(0.0);
        for (&c, variance) in row.components.iter().zip(numbers) {
            let slope = variance * row.at[c];
            for (sum, z) in out.iter_mut().zip(&row.points.column(c)[row.range.clone()]) {
                *sum += slope * z;
            }
        }
    }

    fn features(&self, numbers: &[f64], components: &[usize]) -> Option<Vec<Feature>> {
        let feature = |(&c, &variance): (&usize, &f64)| Feature { component: Some(c), variance };
        Some(components.iter().zip(numbers).map(feature).collect())
    }
}

struct Constant;

impl Covariance for Constant {
    fn value(&self, numbers: &[f64], _: &Pair<'_>) -> f64 {
        numbers[0]
    }

    fn add_gradient(&self, _: &[f64], _: &Pair<'_>, _: f64, _: &mut [f64]) -> bool {
        true
    }

    fn row(&self, numbers: &[f64], _: &Row<'_>, out: &mut [f64]) {
        out.fill(numbers[0]);
    }

    fn features(&self, numbers: &[f64], _: &[usize]) -> Option<Vec<Feature>> {
        Some(vec![Feature { component: None, variance: numbers[0] }])
    }
}
