//! Tests and correlations of series with gaps.

use gpssm::posterior::standard_cdf;
use statrs::function::gamma::gamma_ur;

/// Mean and standard deviation (divisor n) of what is there.
pub(super) fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let known = values.filter(|value| value.is_finite());
    let n = known.clone().count().max(1) as f64;
    let mean = known.clone().sum::<f64>() / n;
    (mean, (known.map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// Correlation of a_{t+lag} with b_t over all sequences, and the number of pairs; gaps are left out.
pub(super) fn correlation(a: &[Vec<f64>], b: &[Vec<f64>], lag: i64) -> (f64, usize) {
    let (mean_a, sd_a) = moments(a.iter().flatten().copied());
    let (mean_b, sd_b) = moments(b.iter().flatten().copied());
    let (mut sum, mut n) = (0.0, 0);
    for (a, b) in a.iter().zip(b) {
        for (t, b) in b.iter().enumerate() {
            let Some(a) = usize::try_from(t as i64 + lag).ok().and_then(|i| a.get(i)) else { continue };
            let product = (a - mean_a) * (b - mean_b);
            if product.is_finite() {
                (sum, n) = (sum + product, n + 1);
            }
        }
    }
    let scale = sd_a * sd_b;
    (if n == 0 || scale <= 0.0 { f64::NAN } else { sum / n as f64 / scale }, n)
}

/// p-value of Ljung and Box (1978) for autocorrelations at lags 1, 2, ... with so many pairs each.
pub(super) fn ljung_box(correlations: &[(f64, usize)], n: usize) -> Option<f64> {
    let n = n as f64;
    let terms = correlations.iter().map(|(r, pairs)| r * r / (*pairs).max(1) as f64);
    let statistic = n * (n + 2.0) * terms.sum::<f64>();
    match (correlations.is_empty(), statistic > 0.0) {
        (true, _) => None,
        (false, true) if statistic.is_finite() => {
            Some(gamma_ur(0.5 * correlations.len() as f64, 0.5 * statistic))
        }
        (false, false) if statistic == 0.0 => Some(1.0),
        _ => None,
    }
}

/// p-value of the largest of several correlations of independent series, one of them white, by Bonferroni.
pub(super) fn largest_correlation(correlations: &[(f64, usize)]) -> Option<f64> {
    let scores = correlations.iter().map(|(r, pairs)| r.abs() * (*pairs as f64).sqrt());
    let largest = scores.reduce(f64::max).filter(|score| score.is_finite())?;
    Some((2.0 * correlations.len() as f64 * (1.0 - standard_cdf(largest))).min(1.0))
}

/// p-value of the Kolmogorov-Smirnov test that these are uniform on (0, 1).
pub(super) fn uniform(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let distance = sorted.iter().enumerate().map(|(i, value)| {
        let (below, above) = (i as f64 / n as f64, (i + 1) as f64 / n as f64);
        (value - below).max(above - value)
    });
    distance.reduce(f64::max).map(|distance| crate::sbc::kolmogorov_p(distance, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Q = 100 * 102 * (0.04 / 99 + 0.01 / 98) = 5.162 with 2 degrees of freedom: p = exp(-Q / 2).
    #[test]
    fn ljung_box_of_a_known_case() {
        let q = 100.0 * 102.0 * (0.04 / 99.0 + 0.01 / 98.0);
        let p = ljung_box(&[(0.2, 99), (0.1, 98)], 100).unwrap();
        assert!((p - f64::exp(-0.5 * q)).abs() < 1e-12);
        assert_eq!(ljung_box(&[], 100), None);
        assert_eq!(ljung_box(&[(f64::NAN, 0)], 100), None);
    }

    /// a follows b by two rows, and a gap takes its pairs with it. Seen failing with the sign of the lag turned.
    #[test]
    fn correlations_know_which_series_leads() {
        let b: Vec<f64> = (0..200).map(|i| (1.7 * f64::from(i * i)).sin()).collect();
        let mut a: Vec<f64> = [0.0, 0.0].into_iter().chain(b[..198].iter().copied()).collect();
        let at = |a: &[f64], lag| correlation(&[a.to_vec()], std::slice::from_ref(&b), lag);
        assert!(at(&a, 2).0 > 0.95 && at(&a, -2).0.abs() < 0.3);
        assert_eq!((at(&a, 2).1, at(&a, -2).1), (198, 198));
        a[50] = f64::NAN;
        assert_eq!(at(&a, 2).1, 197);
        assert!(correlation(&[vec![1.0; 9]], &[vec![1.0; 9]], 0).0.is_nan());
    }

    #[test]
    fn uniform_numbers_pass_and_others_do_not() {
        let even: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
        assert!(uniform(&even).unwrap() > 0.99);
        let narrow: Vec<f64> = even.iter().map(|p| 0.35 + 0.3 * p).collect();
        assert!(uniform(&narrow).unwrap() < 1e-6);
        assert_eq!(uniform(&[]), None);
    }
}
