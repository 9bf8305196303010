//! Weights from their logarithms.

use rand::{Rng, RngExt};

/// Replaces log weights by normalised weights and returns the log of the mean weight.
///
/// NaN counts as weight zero. None if no weight is positive: then all particles are dead.
pub(crate) fn normalise(log_weights: &mut [f64]) -> Option<f64> {
    let largest = log_weights.iter().copied().filter(|w| !w.is_nan()).fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return None;
    }
    let mut sum = 0.0;
    for w in log_weights.iter_mut() {
        *w = if w.is_nan() { 0.0 } else { (*w - largest).exp() };
        sum += *w;
    }
    for w in log_weights.iter_mut() {
        *w /= sum;
    }
    Some(largest + (sum / log_weights.len() as f64).ln())
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
        assert_eq!(index_at(&[0.0, 0.5, 0.5, 0.0], 1.0), 2);
        assert_eq!(index_at(&[0.0, 0.5, 0.5, 0.0], 0.0), 1);
    }
}
