//! Dead time and sampling of a record, by linear least squares.

use gpssm::linalg::least_squares;
use gpssm::{Record, Sequence};

/// Longest dead time that is looked for.
const LONGEST_DELAY: usize = 10;
/// Past outputs and inputs of the linear models that are compared.
const OUTPUTS: usize = 2;
const INPUTS: usize = 3;
/// The same where inputs that act at once are looked for: their part may be small, so dynamics must not pass for them.
const MANY: usize = 8;

/// Rows from an input to the first output that sees it, by linear models with two past outputs and three past inputs. A
/// model that begins at the dead time is as good as any, one that begins a row later is clearly worse. Where no row
/// makes such a difference inputs act one row later.
pub(crate) fn delay(record: &Record) -> usize {
    let error = |delay: usize| {
        squared_errors(record, OUTPUTS, delay..delay + INPUTS)
            .map_or(f64::INFINITY, |errors| errors.iter().sum())
    };
    let errors: Vec<f64> = (0..=LONGEST_DELAY + 1).map(error).collect();
    let least = errors[1..].iter().copied().fold(f64::INFINITY, f64::min);
    if errors[0] < least / CLEAR {
        return 0;
    }
    let clear = |d: &usize| errors[*d] <= EQUAL * least && errors[d + 1] > CLEAR * errors[*d];
    (1..=LONGEST_DELAY).rev().find(clear).unwrap_or(1)
}

/// Squared errors that are told apart clearly, and not at all.
const CLEAR: f64 = 1.25;
const EQUAL: f64 = 1.05;
/// How much the BIC of a model that sees the inputs of the same row must be better, and its squared error.
const EVIDENCE: f64 = 6.0;
const WORTH: f64 = 1.02;

/// Whether the inputs of its own row say something about an output that past outputs and inputs do not.
pub(super) fn acts_at_once(record: &Record) -> bool {
    let errors = [0, 1].map(|first| squared_errors(record, MANY, first..MANY + 1));
    let [Some(with), Some(without)] = errors else { return false };
    let n = n_compared(record) as f64;
    let acts = |(with, without): (&f64, &f64)| {
        let gain = n * (without / with).ln() - record.n_u() as f64 * n.ln();
        *with > 0.0 && gain > EVIDENCE && *without > WORTH * with
    };
    with.iter().zip(&without).any(acts)
}

/// First row that no value before the record enters, whatever is compared.
const FIRST: usize = LONGEST_DELAY + 1 + INPUTS;

fn n_compared(record: &Record) -> usize {
    record.sequences().iter().map(|sequence| sequence.n_rows().saturating_sub(FIRST)).sum()
}

/// Of linear models with so many past outputs and the inputs these numbers of rows before; relative to the sd of each
/// output.
fn squared_errors(record: &Record, outputs: usize, inputs: std::ops::Range<usize>) -> Option<Vec<f64>> {
    let error = |k: usize| -> Option<f64> {
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        for sequence in record.sequences() {
            for t in FIRST..sequence.n_rows() {
                let mut row = vec![1.0];
                (1..=outputs).for_each(|lag| row.extend_from_slice(sequence.y(t - lag)));
                inputs.clone().for_each(|lag| row.extend_from_slice(sequence.u(t - lag)));
                let target = sequence.y(t)[k];
                if row.iter().all(|value| !value.is_nan()) && !target.is_nan() {
                    rows.push(row);
                    targets.push(target);
                }
            }
        }
        if rows.len() < 3 * rows.first()?.len() {
            return None;
        }
        let (_, square, _) = least_squares(&rows, &targets);
        let sd = variance(targets.iter().copied()) * targets.len() as f64;
        Some(if sd > 0.0 { square / sd } else { 0.0 })
    };
    (0..record.n_y()).map(error).collect()
}

/// A record whose steps are smaller than this part of its sd is sampled fast,
const FAST: f64 = 0.2;
/// and thinned to steps of at most this part,
const SLOW: f64 = 0.8;
/// with at least so many rows left.
const FEWEST_ROWS: usize = 80;

/// Thinnings that are worth a trial.
pub(super) fn thinnings(record: &Record) -> Vec<usize> {
    let rows = record.sequences().iter().map(Sequence::n_rows).max().unwrap_or(0);
    let mut largest = 0.0f64;
    for k in 0..record.n_y() {
        let sd = sd_of_output(record, k);
        let steps = record.sequences().iter().flat_map(|s| {
            let y: Vec<f64> = s.output(k).collect();
            (1..y.len()).map(|t| y[t] - y[t - 1]).collect::<Vec<f64>>()
        });
        let step = variance(steps).sqrt();
        if sd > 0.0 {
            largest = largest.max(step / sd);
        }
    }
    if largest == 0.0 || largest > FAST {
        return Vec::new();
    }
    [2, 4, 8, 16].into_iter().filter(|k| *k as f64 * largest <= SLOW && rows / k >= FEWEST_ROWS).collect()
}

/// Standard deviation of an output.
pub(super) fn sd_of_output(record: &Record, k: usize) -> f64 {
    variance(record.sequences().iter().flat_map(|s| s.output(k))).sqrt()
}

/// Standard deviation of an input.
pub(super) fn sd_of_input(record: &Record, c: usize) -> f64 {
    variance(record.sequences().iter().flat_map(|s| s.input(c))).sqrt()
}

/// The range of each output in these sequences, and as much again below and above: where paths are told apart.
pub(super) fn range(sequences: &[Sequence]) -> Vec<(f64, f64)> {
    let n_y = sequences.first().map_or(0, Sequence::n_y);
    let range = |k: usize| {
        let values = sequences.iter().flat_map(|s| s.output(k));
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
        (low - (high - low), high + (high - low))
    };
    (0..n_y).map(range).collect()
}

fn variance(values: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    let mut shift = None;
    for value in values.filter(|value| !value.is_nan()) {
        let value = value - *shift.get_or_insert(value);
        n += 1.0;
        sum += value;
        squares += value * value;
    }
    if n > 0.0 { (squares / n - (sum / n).powi(2)).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs that jump about, and an output that follows them `delay` rows later.
    fn record(delay: usize, pole: f64) -> Record {
        let mut state = 1u64;
        let mut jump = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let u: Vec<f64> = (0..300).map(|_| jump()).collect();
        let mut y = vec![0.0; u.len()];
        for t in 1..u.len() {
            y[t] = pole * y[t - 1] + t.checked_sub(delay).map_or(0.0, |s| u[s]) + 0.01 * jump();
        }
        Sequence::scalar(&y, Some(&u)).unwrap().into()
    }

    #[test]
    fn the_delay_is_found() {
        for expected in [0, 1, 2, 5] {
            assert_eq!(delay(&record(expected, 0.7)), expected);
        }
    }

    /// Most of the effect comes a row later, a small part at once; also in one of two outputs, the other of which is noise.
    /// Seen failing with the errors of both outputs added up.
    #[test]
    fn a_small_part_that_acts_at_once_is_found() {
        let one = record(1, 0.7);
        let sequence = &one.sequences()[0];
        let u: Vec<f64> = sequence.input(0).collect();
        let y: Vec<f64> = sequence.output(0).zip(&u).map(|(y, u)| y + 0.004 * u).collect();
        assert!(delay(&one) == 1 && !acts_at_once(&one));
        let both: Record = Sequence::scalar(&y, Some(&u)).unwrap().into();
        assert!(delay(&both) == 1 && acts_at_once(&both));
        let noise = |t: usize| (12.9898 * (t * t) as f64).sin();
        let rows = |y: &[f64]| y.iter().enumerate().map(|(t, y)| vec![*y, noise(t)]).collect::<Vec<_>>();
        let beside = |y: &[f64]| -> Record {
            Sequence::new(rows(y), u.iter().map(|u| vec![*u]).collect()).unwrap().into()
        };
        assert!(acts_at_once(&beside(&y)));
        assert!(!acts_at_once(&beside(&sequence.output(0).collect::<Vec<f64>>())));
    }

    #[test]
    fn only_slow_records_are_thinned() {
        assert!(thinnings(&record(1, 0.5)).is_empty());
        let slow: Vec<f64> = (0..1000).map(|t| (t as f64 / 60.0).sin()).collect();
        let found = thinnings(&Sequence::scalar(&slow, None).unwrap().into());
        assert_eq!(found, [2, 4, 8]);
        assert!(thinnings(&Sequence::scalar(&[1.0; 100], None).unwrap().into()).is_empty());
    }
}
