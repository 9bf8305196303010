//! Weights from their logarithms.

use pulp::Simd;
use rand::{Rng, RngExt};

use crate::linalg::exponential::{BLOCK, exp_negative_block};
use crate::linalg::simd::{Vectorised, dispatch};

/// Replaces log weights by normalised weights and returns the log of the mean weight.
///
/// NaN counts as weight zero, and so does what is below 1e-100 of the largest. None if no weight is positive: then all
/// particles are dead.
pub(crate) fn normalise(log_weights: &mut [f64]) -> Option<f64> {
    dispatch(Normalise(log_weights))
}

struct Normalise<'a>(&'a mut [f64]);

/// Sums and maxima that are formed side by side, on every instruction set.
const LANES: usize = 8;

impl Vectorised for Normalise<'_> {
    type Output = Option<f64>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Option<f64> {
        let weights = self.0;
        // A comparison that NaN fails.
        let larger = |a: f64, b: f64| if b > a { b } else { a };
        let largest = by_lanes(weights, f64::NEG_INFINITY, larger);
        if !largest.is_finite() {
            return None;
        }
        for weights in weights.chunks_mut(BLOCK) {
            let mut below = [0.0; BLOCK];
            let below = &mut below[..weights.len()];
            below.iter_mut().zip(&*weights).for_each(|(below, w)| *below = largest - w);
            exp_negative_block::<S>(below, weights);
            weights.iter_mut().for_each(|w| *w = if w.is_nan() { 0.0 } else { *w });
        }
        let sum = by_lanes(weights, 0.0, |a, b| a + b);
        weights.iter_mut().for_each(|w| *w /= sum);
        Some(largest + (sum / weights.len() as f64).ln())
    }
}

/// All values taken together by `f`, eight at a time.
#[inline(always)]
fn by_lanes(values: &[f64], neutral: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [neutral; LANES];
    let (eights, rest) = values.as_chunks::<LANES>();
    for eight in eights {
        for lane in 0..LANES {
            lanes[lane] = f(lanes[lane], eight[lane]);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = f(*lane, *value);
    }
    lanes.into_iter().fold(neutral, f)
}

/// An index drawn with the given probabilities.
pub(crate) fn draw_index<R: Rng + ?Sized>(weights: &[f64], rng: &mut R) -> usize {
    index_at(weights, rng.random::<f64>())
}

/// The index whose part of the cumulative weights holds `point` in [0, 1); never one of weight zero.
pub(crate) fn index_at(weights: &[f64], point: f64) -> usize {
    let mut cumulative = 0.0;
    let mut last = 0;
    for (i, w) in weights.iter().enumerate() {
        if *w > 0.0 {
            cumulative += w;
            last = i;
            if point < cumulative {
                return i;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_particles_and_nan() {
        let mut w = [f64::NEG_INFINITY, f64::NAN, 700.0, 700.0 + 3f64.ln()];
        let log_mean = normalise(&mut w).unwrap();
        assert_eq!(&w[..2], &[0.0, 0.0]);
        assert!((w[2] - 0.25).abs() < 1e-12 && (w[3] - 0.75).abs() < 1e-12);
        assert!((log_mean - 700.0).abs() < 1e-12);
        assert_eq!(normalise(&mut [f64::NEG_INFINITY, f64::NAN]), None);
        assert_eq!(normalise(&mut [0.0, f64::INFINITY]), None);
        assert_eq!(normalise(&mut []), None);
        assert_eq!(index_at(&[0.0, 0.5, 0.5, 0.0], 1.0), 2);
        assert_eq!(index_at(&[0.0, 0.5, 0.5, 0.0], 0.0), 1);
    }

    /// Whatever the length, weights are what one exponential at a time makes them. Seen failing with the rest of the last
    /// eight left out of the sum.
    #[test]
    fn weights_are_normalised_exponentials() {
        for n in 1..200 {
            let log: Vec<f64> = (0..n).map(|i| 30.0 * (1.7 * f64::from(i)).sin() - 400.0).collect();
            let sum: f64 = log.iter().map(|w| (w + 400.0).exp()).sum();
            let mut weights = log.clone();
            let log_mean = normalise(&mut weights).unwrap();
            assert!((log_mean - ((sum / f64::from(n)).ln() - 400.0)).abs() < 1e-12, "{n}");
            for (weight, log) in weights.iter().zip(&log) {
                let expected = (log + 400.0).exp() / sum;
                assert!((weight - expected).abs() <= 1e-13 * expected, "{n}: {weight} {expected}");
            }
        }
    }
}
