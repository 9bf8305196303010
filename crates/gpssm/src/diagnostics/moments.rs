//! Mean, variance and quantile of a slice of finite numbers.

/// Arithmetic mean; zero for an empty slice, which no caller uses.
///
/// The plain mean is corrected by the mean distance from it. This removes most
/// of its rounding error when the level is large against the spread, and makes
/// the mean of equal values exact, so that their variance is exactly zero.
pub(super) fn mean(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let rough = values.iter().sum::<f64>() / count;
    let correction = values.iter().map(|value| value - rough).sum::<f64>() / count;
    rough + correction
}

/// Unbiased sample variance, `sum (x - mean)^2 / (n - 1)`; `None` if `n < 2`.
pub(super) fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// Quantile by linear interpolation between order statistics: Hyndman and Fan's
/// type 7 (<https://doi.org/10.1080/00031305.1996.10473566>), NumPy's default.
///
/// With `h = (n - 1) * probability`, it lies the fraction `h - floor(h)` of the
/// way from `sorted[floor(h)]` to the next value. `None` for an empty slice or a
/// probability outside `[0, 1]`.
pub(super) fn quantile(sorted: &[f64], probability: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&probability) {
        return None;
    }
    let position = sorted.len().checked_sub(1)? as f64 * probability;
    // Between 0 and n - 1, so that the conversion is exact.
    let below = position.floor() as usize;
    let fraction = position - position.floor();
    let lower = *sorted.get(below)?;
    // The last value has no successor, and needs none: its fraction is zero.
    let upper = sorted.get(below + 1).copied().unwrap_or(lower);
    // Starting from the nearer end gives a value that equals the draws exactly
    // where they are tied; tail ESS compares draws with it by `<=`.
    Some(if fraction < 0.5 {
        lower + (upper - lower) * fraction
    } else {
        upper - (upper - lower) * (1.0 - fraction)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_exactly_no_variance() {
        for value in [0.1, -1e9 / 3.0, 7e-300] {
            let values = [value; 1037];
            assert_eq!(mean(&values), value);
            assert_eq!(variance(&values), Some(0.0));
        }
        let values = [0.1];
        assert_eq!(variance(&values[..1]), None);
        assert_eq!(mean(&[]), 0.0);
    }

    #[test]
    fn quantile_interpolates_and_respects_ties() {
        let sorted = [0.0, 1.0, 2.0, 4.0];
        assert_eq!(quantile(&sorted, 0.0), Some(0.0));
        assert_eq!(quantile(&sorted, 1.0), Some(4.0));
        assert_eq!(quantile(&sorted, 0.5), Some(1.5));
        assert_eq!(quantile(&[0.1; 38], 0.05), Some(0.1));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&sorted, 1.5), None);
        assert_eq!(quantile(&sorted, f64::NAN), None);
    }
}
