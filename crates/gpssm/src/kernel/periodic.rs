//! The periodic kernel. Its numbers are the signal variance, length-scales and periods.

use std::f64::consts::PI;

use rand::Rng;
use rand_distr::{Distribution, Poisson};

use super::descriptor::{Descriptor, KernelParameter, Median, Role, Unit};
use super::part::{Covariance, Pair, Row};

/// A function that repeats itself along each component.
pub static PERIODIC: Descriptor = Descriptor {
    name: "periodic",
    short: "periodic",
    aliases: &[],
    title: "periodic",
    formula: "sigma_f^2 exp(-2 sum_c sin^2(pi (z_c - z'_c) / period_c) / ell_c^2)",
    parameters: &[
        KernelParameter::SIGMA_F,
        KernelParameter {
            unit: Unit::None,
            median: Median::Units(1.0),
            help: "Length-scales, relative to the period.",
            ..KernelParameter::ELL
        },
        KernelParameter {
            name: "period",
            role: Role::Period,
            unit: Unit::Component,
            each: true,
            median: Median::Units(1.0),
            help: "Periods.",
        },
    ],
    covariance: &Periodic,
};

struct Periodic;

/// Variance, and (ell, period) of each component.
fn split(numbers: &[f64]) -> (f64, impl Iterator<Item = (f64, f64)>) {
    let (variance, rest) = numbers.split_first().map_or((1.0, numbers), |(variance, rest)| (*variance, rest));
    let (ell, period) = rest.split_at(rest.len() / 2);
    (variance, ell.iter().copied().zip(period.iter().copied()))
}

impl Covariance for Periodic {
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64 {
        let (variance, scales) = split(numbers);
        let sum: f64 = pair
            .iter()
            .zip(scales)
            .map(|((z, other), (ell, period))| ((PI * (z - other) / period).sin() / ell).powi(2))
            .sum();
        variance * (-2.0 * sum).exp()
    }

    fn diagonal(&self, numbers: &[f64], _: &[usize], _: &[f64]) -> f64 {
        split(numbers).0
    }

    fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
        let value = self.value(numbers, pair);
        for ((&c, (z, other)), (ell, period)) in pair.components.iter().zip(pair.iter()).zip(split(numbers).1)
        {
            let angle = 2.0 * PI * (z - other) / period;
            gradient[c] -= factor * value * 2.0 * PI / period * angle.sin() / (ell * ell);
        }
        true
    }

    fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
        let (variance, scales) = split(numbers);
        out.fill(0.0);
        for (&c, (ell, period)) in row.components.iter().zip(scales) {
            for (sum, z) in out.iter_mut().zip(&row.points.column(c)[row.range.clone()]) {
                let sine = (PI * (z - row.at[c]) / period).sin() / ell;
                *sum += 2.0 * sine * sine;
            }
        }
        crate::linalg::exponential::scaled_exp_negative(variance, out);
    }

    /// exp((cos a - 1) / ell^2) = sum_k P(k) cos(k a), P the difference of two Poisson variates.
    fn add_frequency(
        &self,
        numbers: &[f64],
        components: &[usize],
        rng: &mut dyn Rng,
        omega: &mut [f64],
    ) -> bool {
        for (&c, (ell, period)) in components.iter().zip(split(numbers).1) {
            let rate = (0.5 / (ell * ell)).min(1e12);
            let mut count = || Poisson::new(rate).map_or(0.0, |poisson: Poisson<f64>| poisson.sample(rng));
            omega[c] += 2.0 * PI * (count() - count()) / period;
        }
        true
    }
}
