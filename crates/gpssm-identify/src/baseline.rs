//! Simple predictors fitted on the training record, to see what the model adds.

use gpssm::linalg::least_squares;
use gpssm::{Record, Sequence};

use crate::linear::LinearStateSpace;

/// What a baseline predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// All rows from the outputs of the first `n_init` rows.
    FreeRun {
        /// Rows whose outputs are seen.
        n_init: usize,
    },
    /// Each row from all outputs up to k rows before it.
    Ahead {
        /// Steps.
        k: usize,
    },
}

/// Predictions with Gaussian errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// Row-major (row, output).
    pub mean: Vec<f64>,
    /// Standard deviation of the error of each output, from the training record.
    pub sd: Vec<f64>,
    /// Order of an ARX or state-space model.
    pub order: Option<usize>,
}

fn observed(record: &Record, k: usize) -> Vec<f64> {
    record.sequences().iter().flat_map(|s| s.output(k)).filter(|y| !y.is_nan()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Root mean square of the errors of predictions of all sequences, by output.
pub(crate) fn error_sd(record: &Record, predict: &dyn Fn(&Sequence) -> Vec<f64>, skip: usize) -> Vec<f64> {
    let n_y = record.n_y();
    let mut sums = vec![(0.0, 0usize); n_y];
    for sequence in record.sequences() {
        let predicted = predict(sequence);
        for t in skip..sequence.n_rows() {
            for (k, y) in sequence.y(t).iter().enumerate().filter(|(_, y)| !y.is_nan()) {
                sums[k].0 += (y - predicted[t * n_y + k]).powi(2);
                sums[k].1 += 1;
            }
        }
    }
    // A perfect fit still has a density.
    sums.iter().map(|(sum, n)| (sum / (*n).max(1) as f64).sqrt().max(1e-12)).collect()
}

/// Largest order of ARX models.
pub const MOST_ORDER: usize = 10;

/// What a model is compared with, fitted on its training record: a constant, ARX models whose order is chosen by BIC and,
/// for free runs, by free runs within the training record, and the best linear state-space model.
pub fn baselines(training: &Record, sequence: &Sequence, task: Task) -> Vec<Baseline> {
    let mut baselines = vec![Baseline::constant(training, sequence)];
    let by_bic = Arx::fit(training, MOST_ORDER);
    baselines.extend(by_bic.map(|arx| arx.baseline("ARX by BIC", training, sequence, task)));
    if let (Task::FreeRun { .. }, Some(arx)) = (task, Arx::fit_for_free_runs(training, MOST_ORDER)) {
        baselines.push(arx.baseline("ARX by free runs", training, sequence, task));
    }
    baselines.extend(LinearStateSpace::fit(training).map(|linear| linear.baseline(training, sequence, task)));
    baselines
}

impl Baseline {
    /// The mean of the training outputs.
    pub fn constant(training: &Record, sequence: &Sequence) -> Self {
        let center: Vec<f64> = (0..training.n_y()).map(|k| mean(&observed(training, k))).collect();
        let repeat = |sequence: &Sequence| center.repeat(sequence.n_rows());
        let sd = error_sd(training, &repeat, 0);
        Self { name: "constant".into(), mean: repeat(sequence), sd, order: None }
    }
}

/// y_t = c + sum_{i=1..p} A_i y_{t-i} + sum_{i=0..p} B_i u_{t-i}, least squares; one order for all outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Arx {
    order: usize,
    /// By output: constant, then outputs and inputs by lag.
    coefficients: Vec<Vec<f64>>,
    center: Vec<f64>,
}

/// Regressors of row t; outputs before row 0, and missing ones, are `None`.
fn regressors(
    order: usize,
    n_u: usize,
    t: usize,
    y: &dyn Fn(usize, usize) -> Option<f64>,
    u: &dyn Fn(usize, usize) -> f64,
    n_y: usize,
) -> Option<Vec<f64>> {
    let mut row = vec![1.0];
    for lag in 1..=order {
        for k in 0..n_y {
            row.push(y(t.checked_sub(lag)?, k)?);
        }
    }
    for lag in 0..=order {
        row.extend((0..n_u).map(|c| u(t.saturating_sub(lag), c)));
    }
    Some(row)
}

impl Arx {
    /// The order with the smallest BIC among 1 .. `max_order`, all compared on the same rows; none if the record is too
    /// short for order one.
    pub fn fit(training: &Record, max_order: usize) -> Option<Self> {
        let (n_y, n_u) = (training.n_y(), training.n_u());
        let longest = training.sequences().iter().map(Sequence::n_rows).max().unwrap_or(0);
        // At least three rows for each coefficient.
        let most = (1..=max_order).take_while(|p| 3 * (1 + p * n_y + (p + 1) * n_u) + p <= longest).last()?;
        let center = (0..n_y).map(|k| mean(&observed(training, k))).collect::<Vec<_>>();
        let mut best: Option<(f64, Self)> = None;
        for order in 1..=most {
            let Some((bic, arx)) = Self::of_order(training, order, most, &center) else { break };
            if best.as_ref().is_none_or(|(lowest, _)| bic < *lowest) {
                best = Some((bic, arx));
            }
        }
        best.map(|(_, arx)| arx)
    }

    /// One order, fitted on the rows from `first` on, and its BIC; none if there are too few of them.
    fn of_order(training: &Record, order: usize, first: usize, center: &[f64]) -> Option<(f64, Self)> {
        let (n_y, n_u) = (training.n_y(), training.n_u());
        let (mut bic, mut coefficients) = (0.0, Vec::new());
        for k in 0..n_y {
            let (mut rows, mut targets) = (Vec::new(), Vec::new());
            for sequence in training.sequences() {
                for t in first..sequence.n_rows() {
                    let y = |s: usize, k: usize| Some(sequence.y(s)[k]).filter(|y| !y.is_nan());
                    let u = |s: usize, c: usize| sequence.u(s)[c];
                    let row = regressors(order, n_u, t, &y, &u, n_y).filter(|_| !sequence.y(t)[k].is_nan());
                    if let Some(row) = row {
                        rows.push(row);
                        targets.push(sequence.y(t)[k]);
                    }
                }
            }
            let (found, square, rank) = least_squares(&rows, &targets);
            if rows.len() <= rank {
                return None;
            }
            let n = rows.len() as f64;
            bic += n * (square / n).max(1e-300).ln() + rank as f64 * n.ln();
            coefficients.push(found);
        }
        Some((bic, Self { order, coefficients, center: center.to_vec() }))
    }

    /// The order among 1 .. `max_order` whose free run over the last two fifths of each training sequence is best when
    /// fitted to the rest, fitted again to everything. BIC judges one step ahead, and may choose a model that runs away.
    pub fn fit_for_free_runs(training: &Record, max_order: usize) -> Option<Self> {
        let center: Vec<f64> = (0..training.n_y()).map(|k| mean(&observed(training, k))).collect();
        let heads = training.sequences().iter().map(|s| s.head((3 * s.n_rows() / 5).max(1)));
        let fitted = Record::new(heads.collect()).ok()?;
        let mut best: Option<(f64, usize)> = None;
        for order in 1..=max_order {
            if 3 * (1 + order * training.n_y() + (order + 1) * training.n_u()) > fitted.n_transitions() {
                break;
            }
            let Some((_, arx)) = Self::of_order(&fitted, order, order, &center) else { break };
            let mut square = 0.0;
            for (sequence, head) in training.sequences().iter().zip(fitted.sequences()) {
                let from = head.n_rows();
                let predicted = arx.predict(sequence, Task::FreeRun { n_init: from });
                for t in from..sequence.n_rows() {
                    let errors = sequence.y(t).iter().zip(&predicted[t * training.n_y()..]);
                    square += errors.filter(|(y, _)| !y.is_nan()).map(|(y, p)| (y - p).powi(2)).sum::<f64>();
                }
            }
            if square.is_finite() && best.is_none_or(|(lowest, _)| square < lowest) {
                best = Some((square, order));
            }
        }
        let (_, order) = best?;
        Self::of_order(training, order, order, &center).map(|(_, arx)| arx)
    }

    /// Order p.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Predictions of all rows. A lag before the first row, and a missing output, is the training mean; in a free run outputs
    /// from row n_init on are the predictions themselves.
    pub fn predict(&self, sequence: &Sequence, task: Task) -> Vec<f64> {
        let (n, n_y) = (sequence.n_rows(), sequence.n_y());
        let seen = |t: usize, k: usize| {
            let y = sequence.y(t)[k];
            if y.is_nan() { self.center[k] } else { y }
        };
        let next = |known: &[f64], t: usize| -> Vec<f64> {
            let y = |lag: usize, k: usize| if lag <= t { known[(t - lag) * n_y + k] } else { self.center[k] };
            let mut row = vec![1.0];
            (1..=self.order).for_each(|lag| row.extend((0..n_y).map(|k| y(lag, k))));
            (0..=self.order).for_each(|lag| row.extend_from_slice(sequence.u(t.saturating_sub(lag))));
            self.coefficients.iter().map(|c| c.iter().zip(&row).map(|(c, r)| c * r).sum()).collect()
        };
        match task {
            Task::FreeRun { n_init } => {
                let mut known: Vec<f64> = Vec::with_capacity(n * n_y);
                let mut out = Vec::with_capacity(n * n_y);
                for t in 0..n {
                    let predicted = next(&known, t);
                    out.extend_from_slice(&predicted);
                    (0..n_y).for_each(|k| known.push(if t < n_init { seen(t, k) } else { predicted[k] }));
                }
                out
            }
            Task::Ahead { k: steps } => {
                let all: Vec<f64> =
                    (0..n).flat_map(|t| (0..n_y).map(move |k| (t, k))).map(|(t, k)| seen(t, k)).collect();
                let mut out = Vec::with_capacity(n * n_y);
                for t in 0..n {
                    let from = (t + 1).saturating_sub(steps);
                    let mut known = all[..from * n_y].to_vec();
                    for s in from..=t {
                        let predicted = next(&known, s);
                        known.extend(predicted);
                    }
                    out.extend_from_slice(&known[t * n_y..]);
                }
                out
            }
        }
    }

    /// Predictions for a record, with the errors that they had on the training record.
    pub fn baseline(&self, name: &str, training: &Record, sequence: &Sequence, task: Task) -> Baseline {
        // On its own training record a free run starts from as many outputs as the order asks for.
        let own = match task {
            Task::FreeRun { .. } => Task::FreeRun { n_init: self.order },
            ahead => ahead,
        };
        let sd = error_sd(training, &|sequence| self.predict(sequence, own), self.order);
        Baseline { name: name.into(), mean: self.predict(sequence, task), sd, order: Some(self.order) }
    }
}
