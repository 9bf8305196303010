//! Pareto smoothed importance weights.
//!
//! Vehtari, Simpson, Gelman, Yao and Gabry (2024), "Pareto smoothed importance sampling", Journal of Machine Learning Research
//! 25(72), 1-58; the generalised Pareto distribution is fitted as by Zhang and Stephens (2009), "A new and efficient estimation
//! method for the generalized Pareto distribution", Technometrics 51(3), 316-325, with a weak prior of its shape at 1/2.

/// Fewest weights in the tail to which a distribution is fitted.
const FEWEST: usize = 5;
/// Weight of the prior of the shape, in observations, and its mean.
const PRIOR: (f64, f64) = (10.0, 0.5);

/// Importance weights with a smoothed tail.
#[derive(Clone, Debug, PartialEq)]
pub struct ParetoSmoothed {
    /// Log weights; the weights sum to one.
    pub log_weights: Vec<f64>,
    /// Shape k of the tail: estimates are dependable below [`pareto_k_threshold`]. Minus infinity where all weights are equal,
    /// infinity where the tail holds too few different weights to fit.
    pub k: f64,
}

/// Smooths the largest of some importance weights, given by their logarithms: the tail of min(S/5, 3 sqrt(S)) weights becomes the
/// expected order statistics of the generalised Pareto distribution fitted to it. A weight may be zero (minus infinity).
pub fn pareto_smooth(log_weights: &[f64]) -> ParetoSmoothed {
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        let equal = -(log_weights.len() as f64).ln();
        return ParetoSmoothed { log_weights: vec![equal; log_weights.len()], k: f64::INFINITY };
    }
    let mut x: Vec<f64> = log_weights.iter().map(|w| w - largest).collect();
    let k = if x.iter().all(|w| *w == 0.0) { f64::NEG_INFINITY } else { smooth_tail(&mut x) };
    let total = x.iter().map(|w| w.exp()).sum::<f64>().ln();
    x.iter_mut().for_each(|w| *w -= total);
    ParetoSmoothed { log_weights: x, k }
}

/// Largest shape k for which estimates from so many weights are dependable: min(1 - 1 / log10(S), 0.7).
pub fn pareto_k_threshold(n: usize) -> f64 {
    (1.0 - 1.0 / (n.max(2) as f64).log10()).min(0.7)
}

/// Smooths the tail of log weights whose largest is zero; its shape.
fn smooth_tail(x: &mut [f64]) -> f64 {
    let n = x.len();
    let n_tail = (n as f64 / 5.0).min(3.0 * (n as f64).sqrt()).ceil() as usize;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
    if n_tail >= n {
        return f64::INFINITY;
    }
    let cutoff = x[order[n - n_tail - 1]].max(f64::MIN_POSITIVE.ln());
    // Weights that equal the cutoff belong to the body.
    let tail: Vec<usize> = order.into_iter().filter(|&i| x[i] > cutoff).collect();
    if tail.len() < FEWEST {
        return f64::INFINITY;
    }
    let excess: Vec<f64> = tail.iter().map(|&i| x[i].exp() - cutoff.exp()).collect();
    let (k, sigma) = fit(&excess);
    if k.is_finite() && sigma > 0.0 {
        for (i, &place) in tail.iter().enumerate() {
            let p = (i as f64 + 0.5) / tail.len() as f64;
            x[place] = (quantile(p, k, sigma) + cutoff.exp()).ln().min(0.0);
        }
    }
    k
}

/// Shape and scale of the generalised Pareto distribution of excesses in ascending order.
fn fit(excess: &[f64]) -> (f64, f64) {
    let n = excess.len();
    let n_grid = 30 + (n as f64).sqrt() as usize;
    let quartile = excess[((n as f64 / 4.0 + 0.5) as usize).max(1) - 1];
    // theta = k / sigma on the grid of Zhang and Stephens, and its profile log likelihood.
    let grid: Vec<f64> = (1..=n_grid)
        .map(|j| {
            let spread = 1.0 - (n_grid as f64 / (j as f64 - 0.5)).sqrt();
            1.0 / excess[n - 1] + spread / (3.0 * quartile)
        })
        .collect();
    let shape = |theta: f64| excess.iter().map(|e| (-theta * e).ln_1p()).sum::<f64>() / n as f64;
    let profile: Vec<f64> = grid
        .iter()
        .map(|&theta| {
            let k = shape(theta);
            n as f64 * ((-theta / k).ln() - k - 1.0)
        })
        .collect();
    let weight = |own: f64| 1.0 / profile.iter().map(|other| (other - own).exp()).sum::<f64>();
    let weights: Vec<f64> = profile.iter().map(|&own| weight(own)).collect();
    let counted = |w: &&f64| **w >= 10.0 * f64::EPSILON;
    let total: f64 = weights.iter().filter(counted).sum();
    let theta: f64 = grid.iter().zip(&weights).filter(|(_, w)| counted(w)).map(|(t, w)| t * w / total).sum();
    let k = shape(theta);
    let (size, mean) = PRIOR;
    ((n as f64 * k + size * mean) / (n as f64 + size), -k / theta)
}

/// The excess that is not reached with probability `p`.
fn quantile(p: f64, k: f64, sigma: f64) -> f64 {
    let log = (-p).ln_1p();
    if k.abs() < f64::EPSILON { -sigma * log } else { sigma * (-k * log).exp_m1() / k }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Pareto weights of known shape: the estimate is the shape, drawn to 1/2 by ten observations' worth.
    #[test]
    fn the_shape_of_pareto_weights_is_found() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for shape in [0.2, 0.5, 0.9] {
            let n = 20_000;
            let logs: Vec<f64> = (0..n).map(|_| -shape * rng.random::<f64>().ln()).collect();
            let found = pareto_smooth(&logs);
            // The tail has 425 weights: the standard error of the shape is (1 + k) / sqrt(425).
            let expected = (425.0 * shape + 5.0) / 435.0;
            let error = (1.0 + shape) / 425f64.sqrt();
            assert!((found.k - expected).abs() < 4.0 * error, "{shape}: {}", found.k);
            let total: f64 = found.log_weights.iter().map(|w| w.exp()).sum();
            assert!((total - 1.0).abs() < 1e-12);
        }
    }

    /// Only the tail changes, it keeps its order, and no weight exceeds the largest one.
    #[test]
    fn the_body_stays_and_the_order_too() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let logs: Vec<f64> = (0..300).map(|_| -0.8 * rng.random::<f64>().ln()).collect();
        let found = pareto_smooth(&logs).log_weights;
        let mut order: Vec<usize> = (0..300).collect();
        order.sort_by(|&a, &b| logs[a].total_cmp(&logs[b]));
        let differences: Vec<f64> = order.iter().map(|&i| found[i] - logs[i]).collect();
        let n_body = 300 - 52;
        assert!(differences[..n_body].iter().all(|d| (d - differences[0]).abs() < 1e-12));
        assert!(order.windows(2).all(|pair| found[pair[0]] <= found[pair[1]]));
    }

    #[test]
    fn weights_that_cannot_be_smoothed() {
        let equal = pareto_smooth(&[-3.0; 50]);
        assert_eq!(equal.k, f64::NEG_INFINITY);
        assert!(equal.log_weights.iter().all(|w| (w + 50f64.ln()).abs() < 1e-12));
        assert_eq!(pareto_smooth(&[0.0, -1.0, -2.0]).k, f64::INFINITY);
        assert_eq!(pareto_smooth(&[f64::NEG_INFINITY; 4]).k, f64::INFINITY);
        let mut some = vec![f64::NEG_INFINITY; 95];
        some.extend([0.0, -0.1, -0.2, -0.3, -0.4]);
        let found = pareto_smooth(&some);
        assert!(found.k.is_finite());
        assert!(found.log_weights.iter().all(|w| !w.is_nan()));
    }
}
