//! Signs for outputs that are moduli: where the curve that was folded at zero goes on through it.
//!
//! Between two rows near zero the sign is constant. Whether it changes at such a place, and which sign comes first, is found by
//! least squares: the unfolded outputs should follow from their past values and the inputs by a linear model. Changes are
//! switched one after the other as long as the squared error falls, from two beginnings: none, and all.

use crate::linalg::small;

/// A local minimum below this part of the largest value may be a place where the sign changed.
const NEAR_ZERO: f64 = 0.25;
/// Past outputs and inputs of the linear model.
const PAST: usize = 3;
/// Rounds over all places.
const ROUNDS: usize = 6;
/// Rows that are looked at for each place; more would cost more than they tell.
const MOST_ROWS: usize = 2_000;

/// Signed outputs, and the squared error of the linear model relative to that of the outputs as they are: well below one where
/// the outputs are moduli. `inputs` has a row for each output; no output may be missing.
pub fn unfolded(y: &[f64], inputs: &[Vec<f64>]) -> (Vec<f64>, f64) {
    let places = places(y);
    let n = y.len().min(MOST_ROWS);
    let error = |changes: &[bool]| squared_error(&signed(&y[..n], &places, changes), inputs);
    let folded = error(&vec![false; places.len()]);
    let mut best = (folded, vec![false; places.len()]);
    for first in [true, false] {
        let mut changes = vec![first; places.len()];
        let mut lowest = error(&changes);
        for _ in 0..ROUNDS {
            let mut switched = false;
            // One change turns all that follows over, two turn what lies between them.
            for i in (0..places.len()).filter(|&i| places[i] < n) {
                for other in [None, Some(i + 1), Some(i + 2)] {
                    if other.is_some_and(|other| other >= places.len()) {
                        continue;
                    }
                    let switch = |changes: &mut [bool]| {
                        changes[i] = !changes[i];
                        other.into_iter().for_each(|other| changes[other] = !changes[other]);
                    };
                    switch(&mut changes);
                    let found = error(&changes);
                    if found < lowest {
                        (lowest, switched) = (found, true);
                    } else {
                        switch(&mut changes);
                    }
                }
            }
            if !switched {
                break;
            }
        }
        if lowest < best.0 {
            best = (lowest, changes);
        }
    }
    let ratio = if folded > 0.0 { best.0 / folded } else { 1.0 };
    (signed(y, &places, &best.1), ratio)
}

/// First rows after places where the sign may have changed.
fn places(y: &[f64]) -> Vec<usize> {
    let limit = NEAR_ZERO * y.iter().copied().fold(0.0, f64::max);
    let mut found = Vec::new();
    for t in 1..y.len().saturating_sub(1) {
        if y[t] <= y[t - 1] && y[t] < y[t + 1] && y[t] < limit {
            // The lowest row goes with the side that goes on more evenly when the other is turned over.
            let bend = |turned: [f64; 4]| {
                (turned[0] - 2.0 * turned[1] + turned[2]).abs()
                    + (turned[1] - 2.0 * turned[2] + turned[3]).abs()
            };
            let before = y[t.saturating_sub(2)];
            let after = y[(t + 2).min(y.len() - 1)];
            let here = bend([-before, -y[t - 1], y[t], y[t + 1]]);
            let next = bend([-y[t - 1], -y[t], y[t + 1], after]);
            found.push(if here <= next { t } else { t + 1 });
        }
    }
    found
}

/// The outputs with the signs that begin positive and change at some of the places.
fn signed(y: &[f64], places: &[usize], changes: &[bool]) -> Vec<f64> {
    let mut sign = 1.0;
    let mut ahead = places.iter().zip(changes).peekable();
    let mut out = Vec::with_capacity(y.len());
    for (t, y) in y.iter().enumerate() {
        while let Some((_, changes)) = ahead.next_if(|(place, _)| **place <= t) {
            if *changes {
                sign = -sign;
            }
        }
        out.push(sign * y);
    }
    out
}

/// Of a linear model one row ahead; a curve and its mirror image have the same, as inputs may act either way.
fn squared_error(s: &[f64], inputs: &[Vec<f64>]) -> f64 {
    let n_u = inputs.first().map_or(0, Vec::len);
    let p = PAST + (PAST + 1) * n_u + 1;
    if s.len() < PAST + 3 * p {
        return f64::INFINITY;
    }
    let (mut gram, mut right, mut square) = (vec![0.0; p * p], vec![0.0; p], 0.0);
    let mut row = vec![1.0; p];
    for t in PAST..s.len() {
        (0..PAST).for_each(|lag| row[lag] = s[t - 1 - lag]);
        for lag in 0..=PAST {
            row[PAST + lag * n_u..PAST + (lag + 1) * n_u].copy_from_slice(&inputs[t - lag]);
        }
        for i in 0..p {
            (0..=i).for_each(|j| gram[i * p + j] += row[i] * row[j]);
            right[i] += row[i] * s[t];
        }
        square += s[t] * s[t];
    }
    // Columns that say the same are kept apart.
    (0..p).for_each(|i| gram[i * p + i] += 1e-10 * gram[i * p + i] + f64::MIN_POSITIVE);
    if !small::cholesky(&mut gram, p) {
        return f64::INFINITY;
    }
    small::solve_lower(&gram, p, &mut right);
    (square - right.iter().map(|b| b * b).sum::<f64>()).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driven oscillator whose modulus is seen. Seen failing with the effect of the inputs left out, and with places five rows
    /// late (244 of 400 signs each).
    #[test]
    fn signs_are_found_again() {
        let mut state = 3u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let (mut s, mut inputs, mut u) = (vec![0.0, 0.0], Vec::new(), 0.0);
        for t in 0..400 {
            if t % 12 == 0 {
                u = 2.0 * noise();
            }
            inputs.push(vec![u]);
            if t > 1 {
                s.push(1.7 * s[t - 1] - 0.8 * s[t - 2] + 0.2 * u + 0.01 * noise());
            }
        }
        let y: Vec<f64> = s.iter().map(|s: &f64| s.abs()).collect();
        let (found, ratio) = unfolded(&y, &inputs);
        let same = found.iter().zip(&s).filter(|(a, b)| (**a > 0.0) == (**b > 0.0)).count();
        let right = same.max(400 - same);
        assert!(right > 385, "{right} of 400 signs");
        assert!(ratio < 0.3, "{ratio}");
        let level: Vec<f64> = s.iter().map(|s| s + 9.0).collect();
        assert_eq!(unfolded(&level, &inputs), (level.clone(), 1.0));
    }
}
