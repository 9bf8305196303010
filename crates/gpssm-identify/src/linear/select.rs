//! Order, criterion and dead time, by free runs over held-out rows.

use gpssm::{Record, Sequence};

use super::refine::refine;
use super::subspace::{Subspace, filled};
use super::units::{Rows, Units};
use super::{Criterion, Innovations, LinearStateSpace};
use crate::auto::{each, screen};

/// Largest order.
const MOST_ORDER: usize = 8;
/// Rows that are looked at; more of them would cost more than they tell.
const MOST_ROWS: usize = 20_000;
/// Part of a sequence that is fitted when the rest is held out.
const FITTED: f64 = 0.6;
/// Fewest rows of a sequence that is cut in two.
const FEWEST_ROWS: usize = 30;
/// A larger order must make the squared error smaller by this part.
const WORTH: f64 = 0.02;
const CRITERIA: [Criterion; 2] = [Criterion::Prediction, Criterion::Simulation];

/// Rows whose outputs set the state of a free run.
pub(super) fn n_init(order: usize) -> usize {
    (2 * order).max(10)
}

struct Fold {
    fitted: Vec<Sequence>,
    held_out: Vec<Sequence>,
}

/// The two ends of every sequence in turn.
fn folds(record: &Record) -> Vec<Fold> {
    let mut folds = vec![
        Fold { fitted: Vec::new(), held_out: Vec::new() },
        Fold { fitted: Vec::new(), held_out: Vec::new() },
    ];
    for sequence in record.sequences() {
        let n = sequence.n_rows();
        let head = (FITTED * n as f64) as usize;
        if n < FEWEST_ROWS {
            folds.iter_mut().for_each(|fold| fold.fitted.push(sequence.clone()));
            continue;
        }
        for (fold, (fitted, held_out)) in
            folds.iter_mut().zip([(0..head, head..n), (n - head..n, 0..n - head)])
        {
            fold.fitted.extend(sequence.select(fitted));
            fold.held_out.extend(sequence.select(held_out));
        }
    }
    folds.retain(|fold| !fold.held_out.is_empty());
    folds
}

/// The first rows of a long record, sequence by sequence.
fn head(record: &Record) -> Option<Record> {
    let mut left = MOST_ROWS;
    let mut sequences = Vec::new();
    for sequence in record.sequences() {
        let rows = sequence.n_rows().min(left);
        left -= rows;
        if rows > 1 {
            sequences.push(sequence.head(rows));
        }
    }
    Record::new(sequences).ok()
}

/// Starts of all orders, for one set of rows.
struct Fitter {
    rows: Vec<Rows>,
    complete: Vec<Rows>,
    subspace: Subspace,
}

impl Fitter {
    fn new(sequences: &[Sequence], units: &Units, shift: usize) -> Option<Self> {
        let rows: Vec<Rows> = sequences.iter().map(|sequence| units.rows(sequence, shift)).collect();
        let complete: Vec<Rows> = rows.iter().map(filled).collect();
        let subspace = Subspace::new(&complete)?;
        Some(Self { rows, complete, subspace })
    }

    fn model(&self, order: usize, criterion: Criterion) -> Option<Innovations> {
        if order > self.subspace.most_order() {
            return None;
        }
        refine(&self.subspace.model(&self.complete, order)?, &self.rows, criterion)
    }
}

/// Squared errors of free runs over the held-out rows, in standardised units.
fn error(model: &Innovations, held_out: &[Rows], order: usize) -> f64 {
    let mut square = 0.0;
    for rows in held_out {
        let from = n_init(order.max(MOST_ORDER)).min(rows.n / 2);
        let mean = model.free_run(rows, from).mean;
        let errors = rows.y.iter().zip(mean).skip(from * rows.n_y).filter(|(y, _)| !y.is_nan());
        square += errors.map(|(y, mean)| (y - mean).powi(2)).sum::<f64>();
    }
    square
}

/// The best of all; the simplest one where there is nothing to hold out.
pub(super) fn best(training: &Record) -> Option<LinearStateSpace> {
    let record = head(training)?;
    let units = Units::of(&record);
    let folds = folds(&record);
    let dead_time = if record.n_u() > 0 { screen::delay(&record).saturating_sub(1) } else { 0 };
    let shifts = if dead_time > 1 { vec![0, dead_time] } else { vec![0] };
    let n_z = record.n_y() + record.n_u();
    let rows: usize = record.sequences().iter().map(Sequence::n_rows).sum();
    // At least three rows for each free number of a canonical form.
    let most = (1..=MOST_ORDER).take_while(|order| 3 * (order + 1) * n_z * 2 <= rows).last()?;
    let mut found: Vec<(f64, usize, Criterion, usize)> = Vec::new();
    for &shift in &shifts {
        let fitters: Option<Vec<Fitter>> =
            folds.iter().map(|fold| Fitter::new(&fold.fitted, &units, shift)).collect();
        let Some(fitters) = fitters.filter(|fitters| !fitters.is_empty()) else { continue };
        let held_out: Vec<Vec<Rows>> =
            folds.iter().map(|fold| fold.held_out.iter().map(|s| units.rows(s, shift)).collect()).collect();
        let tries: Vec<(usize, Criterion)> =
            (1..=most).flat_map(|order| CRITERIA.map(|criterion| (order, criterion))).collect();
        let squares = each(&tries, |&(order, criterion)| -> Option<f64> {
            let errors = fitters
                .iter()
                .zip(&held_out)
                .map(|(fitter, held_out)| Some(error(&fitter.model(order, criterion)?, held_out, most)));
            errors.sum::<Option<f64>>().filter(|square| square.is_finite())
        });
        for ((order, criterion), square) in tries.into_iter().zip(squares) {
            found.extend(square.map(|square| (square, order, criterion, shift)));
        }
    }
    found.sort_by_key(|(_, order, ..)| *order);
    let mut best: Option<(f64, usize, Criterion, usize)> = None;
    for candidate in found {
        let worth =
            |best: &(f64, usize, Criterion, usize)| if candidate.1 > best.1 { 1.0 - WORTH } else { 1.0 };
        if best.as_ref().is_none_or(|best| candidate.0 < worth(best) * best.0) {
            best = Some(candidate);
        }
    }
    let (_, order, criterion, shift) = best.unwrap_or((0.0, 1, Criterion::Prediction, 0));
    let fitter = Fitter::new(record.sequences(), &units, shift)?;
    let model = fitter.model(order, criterion)?;
    let singular_values = fitter.subspace.singular_values.iter().take(MOST_ORDER + 2).copied().collect();
    Some(LinearStateSpace { model, units, criterion, shift, singular_values })
}
