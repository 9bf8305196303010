//! Drawing ancestors.

use std::cell::RefCell;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::weights::index_at;

/// Mean of v (v - 1), v being numbers of children, below which the systematic scheme is left: see
/// [`Resampling::for_weights`]. Of 0, 0.25, 0.5 and 1 the first is slow and mixes worse where sensors are precise; the
/// others differ little.
const FEWEST_MEETINGS: f64 = 0.5;

/// How ancestors are drawn. Both schemes give each particle the ancestor i with probability w_i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resampling {
    /// Independently.
    Multinomial,
    /// At points that are 1/N apart, with a random cyclic shift: less noise. A filter leaves it where lines would hardly
    /// meet.
    #[default]
    Systematic,
}

impl Resampling {
    /// The scheme for given weights: multinomial where systematic resampling would keep nearly every line alive.
    ///
    /// Two particles have the same parent with probability m / (N - 1), where m is the mean of v (v - 1) over the
    /// numbers v of children. With weights that are all but equal (nothing was observed, or the proposal is
    /// fully adapted to a precise sensor) m is near zero for the systematic scheme and 1 for the multinomial one:
    /// lines would hardly meet, and the particle tree, its memory and its cost would grow with the record. The
    /// choice looks at nothing but the weights, and treats all particles alike; so both schemes' exactness
    /// carries over.
    pub(crate) fn for_weights(self, weights: &[f64]) -> Self {
        if meetings(weights) < FEWEST_MEETINGS { Self::Multinomial } else { self }
    }

    /// Ancestors of all particles.
    pub fn draw<R: Rng + ?Sized>(self, weights: &[f64], n: usize, rng: &mut R) -> Vec<usize> {
        let mut ancestors = Vec::with_capacity(n);
        self.draw_into(weights, n, None, rng, &mut ancestors);
        ancestors
    }

    /// Makes `ancestors` those of `n` particles; the last one, the reference, has the ancestor that is `given`.
    ///
    /// The order matters: first the reference's ancestor, then the others given it. With a random cyclic
    /// shift the reference's point is uniform on the part of [0, 1) that belongs to it, and the others lie
    /// 1/n apart from it (Chopin, Singh 2015, doi 10.3150/14-BEJ629).
    pub(crate) fn draw_into<R: Rng + ?Sized>(
        self,
        weights: &[f64],
        n: usize,
        given: Option<usize>,
        rng: &mut R,
        ancestors: &mut Vec<usize>,
    ) {
        ancestors.clear();
        let n_free = n - given.iter().len();
        match (self, given) {
            (Self::Multinomial, _) => multinomial(weights, n_free, rng, ancestors),
            (Self::Systematic, None) => {
                let start = rng.random::<f64>();
                systematic(weights, (0..n).map(|i| start + i as f64 / n as f64), ancestors);
            }
            (Self::Systematic, Some(j)) => {
                let before: f64 = weights[..j].iter().sum();
                let start = before + weights[j] * rng.random::<f64>();
                systematic(weights, (1..n).map(|i| start + i as f64 / n as f64), ancestors);
            }
        }
        ancestors.extend(given);
    }
}

/// Mean of v (v - 1) over the numbers v of children that systematic resampling gives: n w rounded down, or one more.
fn meetings(weights: &[f64]) -> f64 {
    let n = weights.len() as f64;
    let pairs = |w: &f64| {
        let expected = n * w;
        let (least, rest) = (expected.floor(), expected.fract());
        least * (least - 1.0) + 2.0 * rest * least
    };
    weights.iter().map(pairs).sum::<f64>() / n
}

thread_local! {
    /// Cumulative weights, kept because asking for memory would cost as much as a few draws do.
    static CUMULATIVE: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

fn multinomial<R: Rng + ?Sized>(weights: &[f64], n: usize, rng: &mut R, ancestors: &mut Vec<usize>) {
    CUMULATIVE.with_borrow_mut(|cumulative| {
        cumulative.clear();
        let mut sum = 0.0;
        cumulative.extend(weights.iter().map(|w| {
            sum += w;
            sum
        }));
        let last = last_positive(weights);
        ancestors.extend((0..n).map(|_| {
            let point = rng.random::<f64>() * sum;
            // Steps over weights of zero: their cumulative value equals the one before.
            cumulative.partition_point(|&c| c <= point).min(last)
        }));
    });
}

fn last_positive(weights: &[f64]) -> usize {
    weights.iter().rposition(|w| *w > 0.0).unwrap_or(0)
}

/// The ancestors at the given points, each taken modulo 1. The points ascend and span less than two turns.
fn systematic(weights: &[f64], points: impl Iterator<Item = f64>, ancestors: &mut Vec<usize>) {
    let last = last_positive(weights);
    let mut i = 0;
    let mut cumulative = weights[0];
    let mut turn = 0.0;
    ancestors.extend(points.map(|point| {
        if point - turn >= 1.0 {
            turn += 1.0;
            (i, cumulative) = (0, weights[0]);
        }
        while i < last && (point - turn >= cumulative || weights[i] == 0.0) {
            i += 1;
            cumulative += weights[i];
        }
        debug_assert_eq!(i, index_at(weights, point - turn));
        i
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::ChaCha8Rng};

    /// The mean of v (v - 1) that decides on the scheme is that of the systematic scheme. Seen failing with a
    /// quarter of the term for the rest.
    #[test]
    fn lines_that_would_hardly_meet_are_drawn_multinomially() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let n = 20;
        for spread in [0.0, 0.3, 0.6, 1.0, 1.5, 3.0] {
            let mut weights: Vec<f64> = (0..n).map(|i| (spread * (i as f64 / 19.0 - 0.5)).exp()).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
            let repetitions = 2000;
            let mut pairs = 0;
            for _ in 0..repetitions {
                let ancestors = Resampling::Systematic.draw(&weights, n, &mut rng);
                pairs += (0..n)
                    .map(|i| ancestors.iter().filter(|a| **a == i).count())
                    .map(|v| v * v.saturating_sub(1))
                    .sum::<usize>();
            }
            let meeting = pairs as f64 / (n * repetitions) as f64;
            assert!((meeting - meetings(&weights)).abs() < 0.02, "spread {spread}: {meeting}");
            assert!((meeting - FEWEST_MEETINGS).abs() > 0.01, "spread {spread} decides nothing");
            let scheme = Resampling::Systematic.for_weights(&weights);
            assert_eq!(
                scheme == Resampling::Multinomial,
                meeting < FEWEST_MEETINGS,
                "spread {spread}: {meeting}"
            );
            assert_eq!(Resampling::Multinomial.for_weights(&weights), Resampling::Multinomial);
        }
    }

    /// Each particle has ancestor i with probability w_i, also given that the reference's is drawn from w.
    #[test]
    fn marginals_are_the_weights() {
        let weights = [0.0, 0.13, 0.0, 0.5, 0.07, 0.3, 0.0];
        let n = 4;
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for scheme in [Resampling::Multinomial, Resampling::Systematic] {
            let repetitions = 40_000;
            let (mut counts, mut given) = (vec![[0usize; 7]; 2 * n], Vec::new());
            for _ in 0..repetitions {
                for (i, a) in scheme.draw(&weights, n, &mut rng).into_iter().enumerate() {
                    counts[i][a] += 1;
                }
                let j = index_at(&weights, rng.random::<f64>());
                scheme.draw_into(&weights, n, Some(j), &mut rng, &mut given);
                for (i, &a) in given.iter().enumerate() {
                    counts[n + i][a] += 1;
                }
            }
            for row in counts {
                for (count, w) in row.iter().zip(&weights) {
                    let sd = (repetitions as f64 * w * (1.0 - w)).sqrt();
                    let z = (*count as f64 - repetitions as f64 * w) / sd.max(1e-9);
                    assert!(z.abs() < 5.0, "{scheme:?} {count} {w}");
                }
            }
        }
    }

    #[test]
    fn a_single_survivor_takes_all() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for scheme in [Resampling::Multinomial, Resampling::Systematic] {
            assert_eq!(scheme.draw(&[0.0, 1.0, 0.0], 3, &mut rng), [1, 1, 1]);
            // The reference's ancestor may have weight zero where a proposal looks ahead.
            let mut given = Vec::new();
            scheme.draw_into(&[0.0, 1.0, 0.0], 3, Some(2), &mut rng, &mut given);
            assert_eq!(given, [1, 1, 2]);
        }
    }
}
