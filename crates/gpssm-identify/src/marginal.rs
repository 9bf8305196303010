//! Predictive distribution of one output by a baseline: a Gaussian for real outputs, and for whole numbers a distribution of
//! whole numbers, so that log scores of masses stand beside masses and densities beside densities.

use gpssm::posterior::{GaussianMixture, standard_quantile};
use gpssm::sensor::OutputSupport;
use gpssm::sensor::family::Family;

/// Errors of a baseline: how outputs spread around their predicted means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Errors {
    /// Gaussian with this standard deviation.
    Gaussian {
        /// Standard deviation.
        sd: f64,
    },
    /// Counts: Poisson, or negative binomial of this size where the errors are larger than those of a Poisson.
    Counts {
        /// Size of the negative binomial.
        size: Option<f64>,
    },
    /// Binomial in this many trials; Bernoulli with one.
    Trials {
        /// Number of trials.
        n: u32,
    },
}

impl Errors {
    /// Errors with a standard deviation `sd`, of an output with this support whose training values have this mean.
    ///
    /// The size of a negative binomial is that of moments: sd^2 = m + m^2 / size.
    pub fn new(support: OutputSupport, sd: f64, mean: f64) -> Self {
        match support {
            OutputSupport::Integers { low: 0.0, high: f64::INFINITY } => {
                let more = (sd * sd - mean) / (mean * mean).max(f64::MIN_POSITIVE);
                Self::Counts { size: (more > 1e-6).then(|| 1.0 / more) }
            }
            OutputSupport::Integers { low: 0.0, high } if high <= f64::from(u32::MAX) => {
                Self::Trials { n: high as u32 }
            }
            OutputSupport::Integers { .. } | OutputSupport::Interval { .. } => Self::Gaussian { sd },
        }
    }

    /// The distribution around a predicted mean. Means that the output cannot have are moved to the nearest that it can.
    pub fn around(self, mean: f64) -> Marginal {
        match self {
            Self::Gaussian { sd } => Marginal::Gaussian { mean, sd },
            Self::Counts { size } => {
                let rate = mean.max(LEAST);
                let variance = rate + size.map_or(0.0, |size| rate * rate / size);
                let family = size.map_or_else(Family::poisson, Family::negative_binomial);
                Marginal::Whole { family, eta: rate.ln(), mean: rate, sd: variance.sqrt() }
            }
            Self::Trials { n } => {
                let trials = f64::from(n);
                let p = (mean / trials).clamp(LEAST, 1.0 - LEAST);
                let family = if n == 1 { Family::bernoulli() } else { Family::binomial(n) };
                let sd = (trials * p * (1.0 - p)).sqrt();
                Marginal::Whole { family, eta: (p / (1.0 - p)).ln(), mean: trials * p, sd }
            }
        }
    }
}

/// A linear model may predict rates below zero: they are taken as this.
const LEAST: f64 = 1e-3;

/// Whole numbers that a CRPS sums over; beyond this it takes every k-th.
const MOST_TERMS: f64 = 2000.0;

/// Predictive distribution of one output.
#[derive(Clone, Copy, Debug)]
pub enum Marginal {
    /// A density.
    Gaussian {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// Masses on whole numbers from 0 on.
    Whole {
        /// The family.
        family: Family,
        /// Its predictor.
        eta: f64,
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
}

impl Marginal {
    fn gaussian(mean: f64, sd: f64) -> GaussianMixture {
        GaussianMixture { weights: vec![1.0], means: vec![mean], sds: vec![sd] }
    }

    /// Log density or log mass of an outcome.
    pub fn log_density(&self, y: f64) -> f64 {
        match self {
            Self::Gaussian { mean, sd } => Self::gaussian(*mean, *sd).log_density(y),
            Self::Whole { family, eta, .. } => {
                let mut out = [0.0];
                family.log_density(y, &[*eta], &mut out);
                out[0]
            }
        }
    }

    /// Probability integral transform; half of the mass at y counts.
    pub fn pit(&self, y: f64) -> f64 {
        match self {
            Self::Gaussian { mean, sd } => Self::gaussian(*mean, *sd).cdf(y),
            Self::Whole { family, eta, .. } => {
                let (below, up_to) = family.distribution(y, *eta);
                0.5 * (below + up_to)
            }
        }
    }

    /// Whether an outcome lies in the central interval of a level.
    pub fn contains(&self, y: f64, level: f64) -> bool {
        match self {
            Self::Gaussian { mean, sd } => (y - mean).abs() <= sd * standard_quantile(0.5 + 0.5 * level),
            Self::Whole { family, eta, .. } => {
                let (below, up_to) = family.distribution(y, *eta);
                up_to >= 0.5 - 0.5 * level && below < 0.5 + 0.5 * level
            }
        }
    }

    /// CRPS: the sum of (F(k) - 1[k >= y])^2 over whole numbers k, or the integral of the same.
    pub fn crps(&self, y: f64) -> f64 {
        let Self::Whole { family, eta, mean, sd } = self else {
            let Self::Gaussian { mean, sd } = self else { return f64::NAN };
            return Self::gaussian(*mean, *sd).crps(y);
        };
        // Beyond these bounds F is 0 or 1.
        let (low, high) = ((mean - 12.0 * sd - 12.0).max(0.0).floor(), (mean + 12.0 * sd + 12.0).ceil());
        let stride = ((high - low) / MOST_TERMS).ceil().max(1.0);
        let outside = (low - y).max(0.0) + (y - high).max(0.0);
        let n = ((high - low) / stride) as usize;
        let term = |i: usize| {
            let k = low + stride * i as f64;
            let passed = f64::from(u8::from(k >= y));
            (family.distribution(k, *eta).1 - passed).powi(2)
        };
        outside + stride * (0..n).map(term).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masses sum to one, and counts with more variance than a Poisson are negative binomial with this variance.
    #[test]
    fn counts_have_masses() {
        let errors = Errors::new(OutputSupport::COUNTS, 3.0, 2.0);
        let marginal = errors.around(2.0);
        let masses: Vec<f64> = (0..400).map(|k| marginal.log_density(f64::from(k)).exp()).collect();
        let moment = |p: i32| masses.iter().enumerate().map(|(k, m)| m * (k as f64).powi(p)).sum::<f64>();
        assert!((moment(0) - 1.0).abs() < 1e-9);
        assert!((moment(1) - 2.0).abs() < 1e-6, "{}", moment(1));
        assert!((moment(2) - moment(1).powi(2) - 9.0).abs() < 1e-3);
        assert_eq!(Errors::new(OutputSupport::COUNTS, 1.0, 2.0), Errors::Counts { size: None });
        let coin = Errors::new(OutputSupport::Integers { low: 0.0, high: 1.0 }, 0.4, 0.2).around(0.2);
        assert!((coin.log_density(1.0) - 0.2_f64.ln()).abs() < 1e-12);
        assert!((coin.pit(0.0) - 0.4).abs() < 1e-12 && coin.contains(0.0, 0.5) && !coin.contains(1.0, 0.5));
    }

    /// E|Y - y| - E|Y - Y'| / 2 by brute force.
    #[test]
    fn crps_of_counts() {
        for (mean, sd, y) in [(2.0, 3.0, 0.0), (2.0, 3.0, 9.0), (0.3, 0.5, 1.0), (7.0, 2.0, 300.0)] {
            let marginal = Errors::new(OutputSupport::COUNTS, sd, mean).around(mean);
            let mass: Vec<f64> = (0..300).map(|k| marginal.log_density(f64::from(k)).exp()).collect();
            let mut expected = 0.0;
            for (i, p) in mass.iter().enumerate() {
                expected += p * (i as f64 - y).abs();
                let spread =
                    mass.iter().enumerate().map(|(j, q)| q * (i as f64 - j as f64).abs()).sum::<f64>();
                expected -= 0.5 * p * spread;
            }
            assert!((marginal.crps(y) - expected).abs() < 1e-6, "{} {expected}", marginal.crps(y));
        }
    }
}
