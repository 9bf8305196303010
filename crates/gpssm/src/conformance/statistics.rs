//! Quadrature and goodness-of-fit tests.

use std::f64::consts::FRAC_PI_2;

use statrs::function::gamma::checked_gamma_ur;

/// Samples of a goodness-of-fit test are accepted at this p-value, refused below.
pub(crate) const P_MIN: f64 = 1e-4;

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
#[cfg(test)]
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

/// p-value of the Kolmogorov-Smirnov test of samples against a cdf.
pub(crate) fn ks_p_value(samples: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distance = sorted
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            // What is no probability fails the test.
            let p = Some(cdf(x)).filter(|p| (0.0..=1.0).contains(p)).unwrap_or(f64::INFINITY);
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
    chi_square_tail(statistic, bins)
}

/// p-value of the chi-squared test of the numbers of samples in bins with these probabilities, the last bin holding
/// the rest of both.
pub(crate) fn binned_p_value(counts: &[f64], probabilities: &[f64], n: f64) -> f64 {
    let terms = counts.iter().zip(probabilities).map(|(count, p)| (count - n * p).powi(2) / (n * p));
    let (rest, p_rest) = (n - counts.iter().sum::<f64>(), 1.0 - probabilities.iter().sum::<f64>());
    let statistic = terms.sum::<f64>() + (rest - n * p_rest).powi(2) / (n * p_rest);
    // A bin that should not hold anything, but does, or a negative rest.
    let possible = p_rest > 0.0 && probabilities.iter().all(|p| *p > 0.0);
    if possible { chi_square_tail(statistic, counts.len() as f64) } else { 0.0 }
}

/// P(X > statistic), X chi-squared; 0 for a statistic that is not finite.
fn chi_square_tail(statistic: f64, dof: f64) -> f64 {
    checked_gamma_ur(0.5 * dof, 0.5 * statistic).unwrap_or(0.0)
}
