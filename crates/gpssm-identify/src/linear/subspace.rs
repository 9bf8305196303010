//! Subspace identification: a start for every order.
//!
//! One regression of outputs on a long past of outputs and inputs gives the predictor's Markov parameters Psi_i = C (A - K C)^{i-1}
//! [B - K D, K]. What they say of the next outputs, given the past alone, is the observability matrix times the
//! state; its largest principal components are the state, and two more regressions give A, B, C, D and K. This is the
//! predictor-based method of Chiuso (2007, doi 10.1016/j.automatica.2006.12.020), which holds under feedback too.

use gpssm::linalg::least_squares;

use super::Innovations;
use super::matrix::{eigen, spectral_radius};
use super::units::Rows;

/// Rows of the past that the regression looks back over, at the most.
const LONGEST_PAST: usize = 24;
/// Rows for each coefficient of the regression, at the least.
const ROWS_EACH: usize = 4;
/// A start is made stable with this spectral radius.
const STABLE: f64 = 0.995;

/// What is common to all orders.
pub(super) struct Subspace {
    past: usize,
    /// Singular values, largest first, and the principal directions of the predicted futures.
    pub singular_values: Vec<f64>,
    directions: Vec<Vec<f64>>,
    /// By block row and row of the past: the map from the past to predicted futures.
    psi: Vec<Vec<f64>>,
    n_z: usize,
}

/// Missing outputs on the line between their neighbours: good enough for a start.
pub(super) fn filled(rows: &Rows) -> Rows {
    let mut y = rows.y.clone();
    for k in 0..rows.n_y {
        let seen: Vec<usize> = (0..rows.n).filter(|t| !rows.y(*t)[k].is_nan()).collect();
        for t in 0..rows.n {
            let next = seen.partition_point(|s| *s < t);
            let value = |s: usize| rows.y(s)[k];
            let before = next.checked_sub(1).map(|i| seen[i]);
            y[t * rows.n_y + k] = match (before, seen.get(next)) {
                (_, Some(&b)) if b == t => value(b),
                (Some(a), Some(&b)) => value(a) + (value(b) - value(a)) * (t - a) as f64 / (b - a) as f64,
                (Some(a), None) => value(a),
                (None, Some(&b)) => value(b),
                (None, None) => 0.0,
            };
        }
    }
    Rows { y, u: rows.u.clone(), ..*rows }
}

/// (u, y) of a row, for the past.
fn z(rows: &Rows, t: usize) -> impl Iterator<Item = f64> + '_ {
    rows.u(t).iter().chain(rows.y(t)).copied()
}

impl Subspace {
    /// From complete rows of all sequences; none if they are too few.
    pub fn new(sequences: &[Rows]) -> Option<Self> {
        let (n_y, n_u) = (sequences.first()?.n_y, sequences.first()?.n_u);
        let n_z = n_y + n_u;
        let total: usize = sequences.iter().map(|rows| rows.n).sum();
        let past = (total / (ROWS_EACH * n_z)).min(LONGEST_PAST).min(total / 4);
        if past < 2 {
            return None;
        }
        let mut regressors = Vec::new();
        for rows in sequences {
            for t in past..rows.n {
                let mut row: Vec<f64> = (1..=past).flat_map(|lag| z(rows, t - lag)).collect();
                row.extend_from_slice(rows.u(t));
                row.push(1.0);
                regressors.push(row);
            }
        }
        if regressors.len() < 2 * (past * n_z + n_u + 1) {
            return None;
        }
        let psi: Vec<Vec<f64>> = (0..n_y)
            .map(|k| {
                let targets = sequences.iter().flat_map(|rows| (past..rows.n).map(move |t| rows.y(t)[k]));
                least_squares(&regressors, &targets.collect::<Vec<f64>>()).0
            })
            .collect();
        let mut subspace = Self { past, singular_values: Vec::new(), directions: Vec::new(), psi, n_z };
        let size = past * n_y;
        let (mut moments, mut count) = (vec![0.0; size * size], 0.0);
        for rows in sequences {
            for t in past..=rows.n {
                let future = subspace.future(rows, t);
                for i in 0..size {
                    (0..size).for_each(|j| moments[i * size + j] += future[i] * future[j]);
                }
                count += 1.0;
            }
        }
        moments.iter_mut().for_each(|value| *value /= count);
        let (values, vectors) = eigen(&moments, size)?;
        subspace.singular_values = values.iter().map(|value| value.max(0.0).sqrt()).collect();
        subspace.directions = vectors;
        Some(subspace)
    }

    /// Outputs of rows t, t + 1, ... as the past before row t predicts them, later inputs and errors left out.
    fn future(&self, rows: &Rows, t: usize) -> Vec<f64> {
        let (past, n_z) = (self.past, self.n_z);
        let before: Vec<f64> = (1..=past).flat_map(|lag| z(rows, t - lag)).collect();
        let block = |step: usize, psi: &Vec<f64>| -> f64 {
            psi[step * n_z..past * n_z].iter().zip(&before).map(|(psi, z)| psi * z).sum()
        };
        (0..past).flat_map(|step| self.psi.iter().map(move |psi| block(step, psi))).collect()
    }

    /// Orders that singular values leave room for.
    pub fn most_order(&self) -> usize {
        let largest = self.singular_values.first().copied().unwrap_or(0.0);
        self.singular_values.iter().take_while(|value| **value > 1e-6 * largest).count()
    }

    /// A model with `n_x` states of about unit size; none if the regressions fail.
    pub fn model(&self, sequences: &[Rows], n_x: usize) -> Option<Innovations> {
        let (n_y, n_u, past) = (sequences[0].n_y, sequences[0].n_u, self.past);
        let state = |rows: &Rows, t: usize| -> Vec<f64> {
            let future = self.future(rows, t);
            let part = |d: usize| {
                let direction = &self.directions[d];
                direction.iter().zip(&future).map(|(a, b)| a * b).sum::<f64>()
                    / self.singular_values[d].max(1e-12)
            };
            (0..n_x).map(part).collect()
        };
        let states: Vec<Vec<Vec<f64>>> = sequences
            .iter()
            .map(|rows| (past..=rows.n.max(past)).filter(|t| *t <= rows.n).map(|t| state(rows, t)).collect())
            .collect();
        let mut inputs = Vec::new();
        for (rows, states) in sequences.iter().zip(&states) {
            for t in past..rows.n {
                let mut row = states[t - past].clone();
                row.extend_from_slice(rows.u(t));
                row.push(1.0);
                inputs.push(row);
            }
        }
        let mut model = Innovations::zero(n_x, n_u, n_y);
        let mut errors = vec![Vec::new(); n_y];
        for k in 0..n_y {
            let targets: Vec<f64> =
                sequences.iter().flat_map(|rows| (past..rows.n).map(move |t| rows.y(t)[k])).collect();
            let found = least_squares(&inputs, &targets).0;
            model.c[k * n_x..(k + 1) * n_x].copy_from_slice(&found[..n_x]);
            model.d[k * n_u..(k + 1) * n_u].copy_from_slice(&found[n_x..n_x + n_u]);
            model.offset[k] = found[n_x + n_u];
            let fitted = |row: &Vec<f64>| row.iter().zip(&found).map(|(a, b)| a * b).sum::<f64>();
            errors[k] = inputs.iter().zip(&targets).map(|(row, y)| y - fitted(row)).collect();
        }
        for (i, row) in inputs.iter_mut().enumerate() {
            row.extend(errors.iter().map(|errors| errors[i]));
        }
        for d in 0..n_x {
            let next = states.iter().flat_map(|states| states.iter().skip(1).map(move |x| x[d]));
            let found = least_squares(&inputs, &next.collect::<Vec<f64>>()).0;
            model.a[d * n_x..(d + 1) * n_x].copy_from_slice(&found[..n_x]);
            model.b[d * n_u..(d + 1) * n_u].copy_from_slice(&found[n_x..n_x + n_u]);
            model.gain[d * n_y..(d + 1) * n_y].copy_from_slice(&found[n_x + n_u + 1..]);
        }
        let radius = spectral_radius(&model.a, n_x);
        if !radius.is_finite() {
            return None;
        }
        if radius > STABLE {
            model.a.iter_mut().for_each(|value| *value *= STABLE / radius);
        }
        model.is_finite().then_some(model)
    }
}
