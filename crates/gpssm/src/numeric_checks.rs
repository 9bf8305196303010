//! Quadrature and goodness-of-fit tests that the unit tests of the priors and
//! the observation families share.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use statrs::function::erf::erfc;
use statrs::function::gamma::checked_gamma_ur;
use std::f64::consts::FRAC_PI_2;

/// Samples of a goodness-of-fit test accepted at this p-value, refused below.
pub(crate) const P_MIN: f64 = 1e-4;

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

#[track_caller]
pub(crate) fn assert_close(found: f64, expected: f64, relative: f64) {
    assert!(
        (found - expected).abs() <= relative * expected.abs().max(1e-300),
        "found {found:e}, expected {expected:e}"
    );
}

/// Nodes and weights of double exponential quadrature over `t` in `(-5, 5)`.
fn double_exponential(step: f64) -> impl Iterator<Item = (f64, f64)> {
    let count = (5.0 / step).round() as i32;
    (-count..=count).map(move |k| {
        let t = f64::from(k) * step;
        (FRAC_PI_2 * t.sinh(), FRAC_PI_2 * t.cosh() * step)
    })
}

/// Integral over the positive numbers; nodes are spaced around 1.
pub(crate) fn integrate_positive(step: f64, f: impl Fn(f64) -> f64) -> f64 {
    double_exponential(step).map(|(u, w)| f(u.exp()) * u.exp() * w).sum()
}

/// Integral over the real numbers; nodes are spaced around 0.
pub(crate) fn integrate_real(step: f64, f: impl Fn(f64) -> f64) -> f64 {
    double_exponential(step).map(|(u, w)| f(u.sinh()) * u.cosh() * w).sum()
}

/// Integral over an interval.
pub(crate) fn integrate_interval(step: f64, low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    double_exponential(step)
        .filter(|(u, _)| u.abs() < 18.0)
        .map(|(u, w)| f(middle + half * u.tanh()) * half * w / u.cosh().powi(2))
        .sum()
}

pub(crate) fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// p-value of the Kolmogorov-Smirnov test of samples against a cdf.
pub(crate) fn ks_p_value(samples: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distance = sorted
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let p = cdf(x);
            assert!((0.0..=1.0).contains(&p), "cdf({x}) = {p}");
            (p - i as f64 / n).max((i + 1) as f64 / n - p)
        })
        .fold(0.0, f64::max);
    let lambda = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance;
    if lambda < 0.3 {
        return 1.0;
    }
    let sum: f64 = (1..=100)
        .map(|k| {
            let k = f64::from(k);
            let sign = if k % 2.0 == 0.0 { -1.0 } else { 1.0 };
            sign * (-2.0 * k * k * lambda * lambda).exp()
        })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// p-value of the chi-squared test of counts against probabilities of
/// `0, 1, ..`; values with an expectation below 10 are merged.
pub(crate) fn chi_square_p_value(samples: &[f64], probability: impl Fn(f64) -> f64) -> f64 {
    let n = samples.len() as f64;
    let greatest = samples.iter().fold(0.0, |m: f64, &x| m.max(x)) as usize;
    let mut counts = vec![0.0; greatest + 1];
    samples.iter().for_each(|&x| counts[x as usize] += 1.0);
    let (mut statistic, mut bins) = (0.0, 0.0);
    let (mut seen, mut expected, mut used_seen, mut used_expected) = (0.0, 0.0, 0.0, 0.0);
    for (y, count) in counts.iter().enumerate() {
        seen += count;
        expected += n * probability(y as f64);
        if expected >= 10.0 && n - used_expected - expected >= 10.0 {
            statistic += (seen - expected) * (seen - expected) / expected;
            bins += 1.0;
            used_seen += seen;
            used_expected += expected;
            (seen, expected) = (0.0, 0.0);
        }
    }
    // The rest, including values greater than every sample.
    let (rest_seen, rest_expected) = (n - used_seen, n - used_expected);
    statistic += (rest_seen - rest_expected).powi(2) / rest_expected;
    checked_gamma_ur(0.5 * bins, 0.5 * statistic).unwrap()
}

#[test]
fn quadrature_and_goodness_of_fit_tests_agree_with_known_values() {
    let positive = integrate_positive(0.02, |x| x * (-x).exp());
    assert_close(positive, 1.0, 1e-13);
    let real = integrate_real(0.02, |x| (-0.5 * x * x).exp());
    assert_close(real, std::f64::consts::TAU.sqrt(), 1e-13);
    let interval = integrate_interval(0.02, 1.0, 3.0, |x| x * x);
    assert_close(interval, 26.0 / 3.0, 1e-13);
    // A perfect grid fits; a shifted one at lambda = 1.36 has p close to 0.05.
    let grid: Vec<f64> = (0..10_000).map(|i| (f64::from(i) + 0.5) / 1e4).collect();
    assert!(ks_p_value(&grid, |x| x) > 0.999);
    let shift = 1.358_1 / 100.0;
    let p = ks_p_value(&grid, |x| (x + shift).min(1.0));
    assert!((p - 0.05).abs() < 0.002, "{p}");
}
