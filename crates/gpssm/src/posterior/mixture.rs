//! Mixtures of scalar Gaussians: what the draws together say of one number (eq. 11 of the paper).

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use statrs::function::erf::{erf_inv, erfc};

pub use crate::special::standard_cdf;

/// sum_j w_j N(mean_j, variance_j). The weights sum to one; a variance may be zero.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    /// w_j.
    pub weights: Vec<f64>,
    /// Means.
    pub means: Vec<f64>,
    /// Standard deviations.
    pub sds: Vec<f64>,
}

/// The number that a standard normal stays below with probability `p`.
pub fn standard_quantile(p: f64) -> f64 {
    std::f64::consts::SQRT_2 * erf_inv(2.0 * p - 1.0)
}

fn standard_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// E|X| of X ~ N(mean, sd^2).
fn mean_absolute(mean: f64, sd: f64) -> f64 {
    if sd == 0.0 {
        return mean.abs();
    }
    let z = mean / sd;
    2.0 * sd * standard_density(z) + mean * (1.0 - erfc(z * FRAC_1_SQRT_2))
}

impl GaussianMixture {
    fn components(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        self.weights.iter().zip(&self.means).zip(&self.sds).map(|((w, mean), sd)| (*w, *mean, *sd))
    }

    /// Mean.
    pub fn mean(&self) -> f64 {
        self.components().map(|(w, mean, _)| w * mean).sum()
    }

    /// Variance: the mean of the variances and the variance of the means.
    pub fn variance(&self) -> f64 {
        let center = self.mean();
        self.components().map(|(w, mean, sd)| w * (sd * sd + (mean - center) * (mean - center))).sum()
    }

    /// Standard deviation.
    pub fn sd(&self) -> f64 {
        self.variance().sqrt()
    }

    /// P(X <= x).
    pub fn cdf(&self, x: f64) -> f64 {
        let below = |mean: f64, sd: f64| {
            if sd > 0.0 { standard_cdf((x - mean) / sd) } else { f64::from(u8::from(x >= mean)) }
        };
        self.components().map(|(w, mean, sd)| w * below(mean, sd)).sum::<f64>().clamp(0.0, 1.0)
    }

    /// log p(x), without underflow far in the tails.
    pub fn log_density(&self, x: f64) -> f64 {
        let terms: Vec<f64> = self
            .components()
            .map(|(w, mean, sd)| {
                let z = (x - mean) / sd;
                w.ln() - 0.5 * z * z - sd.ln() - 0.5 * (2.0 * PI).ln()
            })
            .filter(|term| !term.is_nan())
            .collect();
        log_sum_exp(&terms)
    }

    /// p(x).
    pub fn density(&self, x: f64) -> f64 {
        self.log_density(x).exp()
    }

    /// The number that X stays below with probability `p` in (0, 1).
    ///
    /// It lies between the smallest and the largest quantile of the components; within them by bisection,
    /// sped up by Newton steps that stay inside.
    pub fn quantile(&self, p: f64) -> f64 {
        let z = standard_quantile(p);
        let live = || self.components().filter(|(w, _, _)| *w > 0.0);
        let mut low = live().map(|(_, mean, sd)| mean + z * sd).fold(f64::INFINITY, f64::min);
        let mut high = live().map(|(_, mean, sd)| mean + z * sd).fold(f64::NEG_INFINITY, f64::max);
        let mut x = 0.5 * (low + high);
        for i in 0..200 {
            if high - low <= 4.0 * f64::EPSILON * low.abs().max(high.abs()) {
                break;
            }
            let excess = self.cdf(x) - p;
            if excess == 0.0 {
                break;
            }
            if excess > 0.0 {
                high = x
            } else {
                low = x
            }
            let slope: f64 = live()
                .filter(|(_, _, sd)| *sd > 0.0)
                .map(|(w, mean, sd)| w * standard_density((x - mean) / sd) / sd)
                .sum();
            let newton = x - excess / slope;
            // Every third step halves the bracket, whatever Newton says.
            x = if i % 3 < 2 && newton > low && newton < high { newton } else { 0.5 * (low + high) };
        }
        x
    }

    /// Continuous ranked probability score of the outcome `x`, exactly (Grimit et al. 2006,
    /// doi 10.1256/qj.05.235): E|X - x| - E|X - X'| / 2. Smaller is better.
    pub fn crps(&self, x: f64) -> f64 {
        let to_outcome: f64 = self.components().map(|(w, mean, sd)| w * mean_absolute(x - mean, sd)).sum();
        let mut spread = 0.0;
        for (j, (w, mean, sd)) in self.components().enumerate() {
            spread += 0.5 * w * w * mean_absolute(0.0, sd * std::f64::consts::SQRT_2);
            for (other_w, other_mean, other_sd) in self.components().take(j) {
                spread += w * other_w * mean_absolute(mean - other_mean, sd.hypot(other_sd));
            }
        }
        to_outcome - spread
    }
}

/// log sum_i exp(values_i).
pub(crate) fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixture() -> GaussianMixture {
        GaussianMixture {
            weights: vec![0.2, 0.5, 0.3],
            means: vec![-3.0, 0.4, 5.0],
            sds: vec![0.3, 1.2, 0.05],
        }
    }

    /// Sums over a fine grid. Seen failing with the standard deviation in place of the variance, with equal
    /// weights, and with CRPS short of its second half.
    #[test]
    fn moments_quantiles_and_crps_agree_with_brute_force() {
        let mixture = mixture();
        let step = 1e-4;
        let grid: Vec<f64> = (0..300_000).map(|i| -15.0 + step * (i as f64 + 0.5)).collect();
        let density: Vec<f64> = grid.iter().map(|x| mixture.density(*x)).collect();
        let integral = |f: &dyn Fn(f64) -> f64| -> f64 {
            grid.iter().zip(&density).map(|(x, p)| step * p * f(*x)).sum()
        };
        assert!((integral(&|_| 1.0) - 1.0).abs() < 1e-9);
        let mean = integral(&|x| x);
        assert!((mean - mixture.mean()).abs() < 1e-8);
        assert!((integral(&|x| (x - mean).powi(2)) - mixture.variance()).abs() < 1e-7);
        let mut cumulative = 0.0;
        let cdf: Vec<f64> = density
            .iter()
            .map(|p| {
                cumulative += step * p;
                cumulative
            })
            .collect();
        for p in [0.001, 0.05, 0.2, 0.21, 0.5, 0.7, 0.95, 0.9999] {
            let x = mixture.quantile(p);
            assert!((mixture.cdf(x) - p).abs() < 1e-12, "{p}");
            let brute = grid[cdf.partition_point(|c| *c < p).min(grid.len() - 1)];
            assert!((x - brute).abs() < 2e-3, "{p} {x} {brute}");
        }
        for outcome in [-4.0, 0.0, 0.3, 5.0, 9.0] {
            let brute: f64 = grid
                .iter()
                .zip(&cdf)
                .map(|(x, c)| step * (c - f64::from(u8::from(*x >= outcome))).powi(2))
                .sum();
            assert!((mixture.crps(outcome) - brute).abs() < 1e-4, "{outcome}");
        }
    }

    #[test]
    fn far_tails_and_certain_components_stay_finite() {
        let mixture = mixture();
        assert!(mixture.log_density(1e6).is_finite());
        let certain = GaussianMixture { weights: vec![0.5, 0.5], means: vec![1.0, 3.0], sds: vec![0.0, 0.0] };
        assert_eq!(certain.crps(2.0), 0.5);
        assert!((1.0..=3.0).contains(&certain.quantile(0.3)));
        let single = GaussianMixture { weights: vec![1.0], means: vec![2.0], sds: vec![3.0] };
        assert!((single.quantile(0.975) - (2.0 + 3.0 * 1.959_963_984_540_054)).abs() < 1e-9);
    }
}
