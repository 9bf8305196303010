//! Quantiles, densities and splits of draws.

/// Quantile of sorted values, linear between them.
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = p.clamp(0.0, 1.0) * last as f64;
    let (below, rest) = (at.floor() as usize, at.fract());
    let upper = sorted[(below + 1).min(last)];
    sorted[below] + rest * (upper - sorted[below])
}

/// Five numbers of a band: 5, 25, 50, 75 and 95 %.
pub(crate) const LEVELS: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

pub(crate) fn sort(values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(crate) fn sd(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}

/// Whether sorted draws fall into two groups with a gap between them, and how far apart the groups are.
///
/// The best split into two groups (least variance within them) leaves the groups' means D pooled standard
/// deviations apart. D is 2.65 for a Gaussian and 3.46 for a uniform distribution; beyond 5 there are two
/// groups. Each must hold a twentieth of the draws, or what is seen is a tail. A value counts once, however often
/// a slow chain repeats it.
pub(crate) fn split(sorted: &[f64]) -> Option<f64> {
    let mut distinct = sorted.to_vec();
    distinct.dedup();
    let n = distinct.len();
    let spread = distinct.last()? - distinct.first()?;
    if n < 20 || spread <= 0.0 {
        return None;
    }
    let center = distinct[n / 2];
    let scaled = |i: usize| (distinct[i] - center) / spread;
    let (mut sum, mut squares) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for i in 0..n {
        sum[i + 1] = sum[i] + scaled(i);
        squares[i + 1] = squares[i] + scaled(i).powi(2);
    }
    let within = |from: usize, to: usize| {
        let m = (to - from) as f64;
        (squares[to] - squares[from] - (sum[to] - sum[from]).powi(2) / m).max(0.0)
    };
    let least = (n / 20).max(2);
    let cost = |k: usize| within(0, k) + within(k, n);
    let k = (least..=n - least).min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
    let apart = (sum[n] - sum[k]) / (n - k) as f64 - sum[k] / k as f64;
    let pooled = 0.5 * (within(0, k) / k as f64 + within(k, n) / (n - k) as f64);
    (apart * apart > 25.0 * pooled).then_some(apart * spread)
}

/// Gaussian kernel density of values at given places, bandwidth after Silverman.
pub(crate) fn density(values: &[f64], at: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sort(&mut sorted);
    let quartiles = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / 1.34;
    let spread = if quartiles > 0.0 { sd(values).min(quartiles) } else { sd(values) };
    let bandwidth = 0.9 * spread * (values.len() as f64).powf(-0.2);
    if !(bandwidth > 0.0 && bandwidth.is_finite()) {
        return vec![0.0; at.len()];
    }
    let norm = 1.0 / (values.len() as f64 * bandwidth * (2.0 * std::f64::consts::PI).sqrt());
    let near = |x: f64| {
        let from = sorted.partition_point(|v| *v < x - 6.0 * bandwidth);
        let to = sorted.partition_point(|v| *v <= x + 6.0 * bandwidth);
        sorted[from..to].iter().map(|v| (-0.5 * ((x - v) / bandwidth).powi(2)).exp()).sum::<f64>()
    };
    at.iter().map(|x| norm * near(*x)).collect()
}

/// Equally spaced numbers, both ends included.
pub(crate) fn spaced(low: f64, high: f64, n: usize) -> Vec<f64> {
    (0..n).map(|i| low + (high - low) * i as f64 / (n - 1).max(1) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpssm::posterior::standard_quantile;

    fn is_split(sorted: &[f64]) -> bool {
        split(sorted).is_some()
    }

    /// n evenly spaced quantiles of a standard normal.
    fn normal(n: usize) -> Vec<f64> {
        (0..n).map(|i| standard_quantile((i as f64 + 0.5) / n as f64)).collect()
    }

    #[test]
    fn only_two_groups_are_two_groups() {
        for n in [40, 200, 1000] {
            let one = normal(n);
            assert!(!is_split(&one));
            let uniform: Vec<f64> = (0..n).map(|i| i as f64).collect();
            assert!(!is_split(&uniform));
            let skew: Vec<f64> = uniform.iter().map(|i| -(1.0 - (i + 0.5) / n as f64).ln()).collect();
            assert!(!is_split(&skew));
            let mut two: Vec<f64> =
                one.iter().map(|v| v - 4.0).chain(one[..n / 4].iter().map(|v| v + 6.0)).collect();
            sort(&mut two);
            assert!(is_split(&two));
        }
        assert!(!is_split(&[1.0; 50]));
        // Few values, each many times: a slow chain, not two modes.
        let slow: Vec<f64> = [0.0, 0.1, 5.0, 5.1].iter().flat_map(|v| [*v; 30]).collect();
        assert!(!is_split(&slow));
        // One stray draw is no mode.
        let mut stray = normal(100);
        stray.push(50.0);
        assert!(!is_split(&stray));
    }

    #[test]
    fn density_is_that_of_the_values() {
        let values = normal(2000);
        let at = spaced(-4.0, 4.0, 81);
        let found = density(&values, &at);
        for (x, p) in at.iter().zip(&found) {
            let exact = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
            assert!((p - exact).abs() < 0.02, "{x}: {p} {exact}");
        }
        assert!((found.iter().sum::<f64>() * 0.1 - 1.0).abs() < 1e-3);
        assert_eq!(density(&[2.0; 9], &[2.0]), [0.0]);
    }
}
