//! Direct draws of the sensor noise: the posterior is the right one, and the draws follow it.
//!
//! The posterior's parameters are derived here; that prior times likelihood is proportional to it is checked
//! to rounding, and that the draws follow it by exact starts: R from its prior, residuals given R with some
//! of them blanked, then the update. R must follow its prior again. Planted bugs are in `twin`.

mod covariance;
mod twin;
mod variance;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

const REPLICATES: u64 = 20_000;
/// A correct update exceeds this in one of 1.7 million tests.
const ACCEPT: f64 = 5.0;
/// A planted bug must exceed this.
const DETECT: f64 = 6.0;

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Paired z of each functional over independent replicates of (before, after).
fn z_values(n: u64, replicate: impl Fn(u64) -> (Vec<f64>, Vec<f64>)) -> Vec<f64> {
    let (mut sum, mut square) = (Vec::new(), Vec::new());
    for seed in 0..n {
        let (before, after) = replicate(seed);
        sum.resize(before.len(), 0.0);
        square.resize(before.len(), 0.0);
        for (i, (a, b)) in before.iter().zip(&after).enumerate() {
            let difference = b - a;
            assert!(difference.is_finite());
            sum[i] += difference;
            square[i] += difference * difference;
        }
    }
    let n = n as f64;
    let z = |(sum, square): (&f64, &f64)| sum / n / ((square / n - (sum / n).powi(2)) / n).sqrt();
    sum.iter().zip(&square).map(z).collect()
}

fn largest(z: &[f64]) -> f64 {
    z.iter().fold(0.0, |largest: f64, z| largest.max(z.abs()))
}

/// Largest minus smallest, over the size of the largest term that was added.
fn relative_spread(values: &[f64], terms: f64) -> f64 {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    (high - low) / terms.max(1.0)
}
