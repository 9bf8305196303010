//! Recorded inputs and outputs.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// One sequence of n rows: outputs y_0..y_{n-1}, inputs u_0..u_{n-1}, T = n - 1 transitions.
///
/// y_0 counts. The last input enters the sensor only. A missing output is NaN.
///
/// ```
/// use gpssm::{Record, Sequence};
///
/// // Two experiments with one output and one input; one output was not measured.
/// let first = Sequence::scalar(&[0.1, 0.4, f64::NAN, 0.9], Some(&[1.0, 1.0, 0.0, 0.0]))?;
/// let second = Sequence::scalar(&[0.0, 0.2], Some(&[1.0, 0.0]))?;
/// let record = Record::new(vec![first, second])?;
/// assert_eq!(record.sequences().len(), 2);
/// assert!(record.has_missing());
/// # Ok::<(), gpssm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    n_y: usize,
    n_u: usize,
    /// Row-major.
    y: Vec<f64>,
    u: Vec<f64>,
    /// First transitions that f is not learned from.
    #[serde(skip)]
    presample: usize,
    /// Past outputs that a transition sees, where f is not learned from transitions with a missing one.
    #[serde(skip)]
    skip_missing: Option<usize>,
}

impl Sequence {
    /// From rows of outputs and rows of inputs; without inputs pass an empty list.
    pub fn new(y: Vec<Vec<f64>>, u: Vec<Vec<f64>>) -> Result<Self, Error> {
        let n_y = y.first().map_or(0, Vec::len);
        let n_u = u.first().map_or(0, Vec::len);
        if n_y == 0 {
            return Err(Error::data("a sequence needs at least one row and one output"));
        }
        if n_u > 0 && u.len() != y.len() {
            return Err(Error::data(format!("{} rows of outputs but {} rows of inputs", y.len(), u.len())));
        }
        if let Some(row) = y.iter().position(|row| row.len() != n_y) {
            return Err(Error::data(format!("output row {row} has {} values, not {n_y}", y[row].len())));
        }
        if let Some(row) = u.iter().position(|row| row.len() != n_u) {
            return Err(Error::data(format!("input row {row} has {} values, not {n_u}", u[row].len())));
        }
        Self::from_flat(y.concat(), n_y, u.concat(), n_u)
    }

    /// From row-major values.
    pub fn from_flat(y: Vec<f64>, n_y: usize, u: Vec<f64>, n_u: usize) -> Result<Self, Error> {
        if n_y == 0 || y.is_empty() || !y.len().is_multiple_of(n_y) {
            return Err(Error::data("outputs must be whole rows, at least one"));
        }
        if u.len() != y.len() / n_y * n_u {
            return Err(Error::data(format!(
                "{} rows of outputs need {} input values, not {}",
                y.len() / n_y,
                y.len() / n_y * n_u,
                u.len()
            )));
        }
        if let Some(i) = y.iter().position(|v| v.is_infinite()) {
            return Err(Error::data(format!("output {} in row {} is infinite", i % n_y + 1, i / n_y)));
        }
        if let Some(i) = u.iter().position(|v| !v.is_finite()) {
            return Err(Error::data(format!(
                "input {} in row {} is not a number: inputs must be known in every row",
                i % n_u + 1,
                i / n_u
            )));
        }
        Ok(Self { n_y, n_u, y, u, presample: 0, skip_missing: None })
    }

    /// One output and at most one input.
    pub fn scalar(y: &[f64], u: Option<&[f64]>) -> Result<Self, Error> {
        let (u, n_u) = u.map_or((Vec::new(), 0), |u| (u.to_vec(), 1));
        Self::from_flat(y.to_vec(), 1, u, n_u)
    }

    /// Rows.
    pub fn n_rows(&self) -> usize {
        self.y.len() / self.n_y
    }

    /// Transitions T = rows - 1.
    pub fn length(&self) -> usize {
        self.n_rows() - 1
    }

    /// The same rows, of which f is not learned from so many first transitions, or half of them if those are fewer.
    pub(crate) fn with_presample(self, transitions: usize) -> Self {
        let presample = transitions.min(self.length() / 2);
        Self { presample, ..self }
    }

    /// The same rows, of which f is not learned from transitions that see or lead to a missing output; `lags` past outputs are
    /// seen beside the present one.
    pub(crate) fn skipping_missing(self, lags: usize) -> Self {
        Self { skip_missing: Some(lags), ..self }
    }

    /// Transitions that f is learned from, as ranges.
    pub(crate) fn learned_from(&self) -> Vec<Range<usize>> {
        let Some(lags) = self.skip_missing else {
            return std::iter::once(self.presample..self.length()).collect();
        };
        let known = |t: usize| !self.y(t).iter().any(|y| y.is_nan());
        let counts = |t: &usize| (t.saturating_sub(lags)..=t + 1).all(known);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for t in (self.presample..self.length()).filter(counts) {
            match ranges.last_mut() {
                Some(last) if last.end == t => last.end = t + 1,
                _ => ranges.push(t..t + 1),
            }
        }
        ranges
    }

    /// First transitions that f is not learned from; none in a record as it was given, see [`crate::Model::presample`].
    pub fn presample(&self) -> usize {
        self.presample
    }

    /// Outputs.
    pub fn n_y(&self) -> usize {
        self.n_y
    }

    /// Inputs.
    pub fn n_u(&self) -> usize {
        self.n_u
    }

    /// y_t; missing components are NaN.
    pub fn y(&self, t: usize) -> &[f64] {
        &self.y[t * self.n_y..(t + 1) * self.n_y]
    }

    /// u_t.
    pub fn u(&self, t: usize) -> &[f64] {
        &self.u[t * self.n_u..(t + 1) * self.n_u]
    }

    /// Output `k` of every row.
    pub fn output(&self, k: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        self.y.iter().skip(k).step_by(self.n_y).copied()
    }

    /// Input `c` of every row.
    pub fn input(&self, c: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        self.u.iter().skip(c).step_by(self.n_u.max(1)).copied()
    }

    /// The first rows, at the most all of them.
    #[must_use]
    pub fn head(&self, n_rows: usize) -> Self {
        let n_rows = n_rows.min(self.n_rows());
        let (y, u) = (self.y[..n_rows * self.n_y].to_vec(), self.u[..n_rows * self.n_u].to_vec());
        Self { y, u, ..*self }.with_presample(self.presample)
    }

    /// These rows, in this order; rows that are not there are left out.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        let (mut y, mut u) = (Vec::new(), Vec::new());
        for t in rows.into_iter().filter(|t| *t < self.n_rows()) {
            y.extend_from_slice(self.y(t));
            u.extend_from_slice(self.u(t));
        }
        Self::from_flat(y, self.n_y, u, self.n_u)
    }

    /// The same rows with these outputs in the first of them.
    pub fn with_first_outputs(mut self, y: &[Vec<f64>]) -> Result<Self, Error> {
        if y.len() > self.n_rows() || y.iter().any(|row| row.len() != self.n_y) {
            let (n, n_y) = (self.n_rows(), self.n_y);
            let message = format!("{} rows of outputs do not fit {n} rows of {n_y} outputs", y.len());
            return Err(Error::data(message));
        }
        self.y.splice(..y.len() * self.n_y, y.concat());
        Ok(self)
    }

    /// The rows of this sequence and then those of another.
    pub fn followed_by(&self, other: &Self) -> Result<Self, Error> {
        let join = |a: &[f64], b: &[f64]| [a, b].concat();
        Self::from_flat(join(&self.y, &other.y), self.n_y, join(&self.u, &other.u), self.n_u)
    }

    /// The rows from `first` on, the outputs of that row left out.
    pub(crate) fn tail(&self, first: usize) -> Self {
        let mut tail =
            Self { y: self.y[first * self.n_y..].to_vec(), u: self.u[first * self.n_u..].to_vec(), ..*self };
        tail.y[..self.n_y].fill(f64::NAN);
        tail.presample = 0;
        tail
    }

    /// The same rows with every value mapped.
    pub(crate) fn mapped(&self, y: impl Fn(usize, f64) -> f64, u: impl Fn(usize, f64) -> f64) -> Self {
        let map = |values: &[f64], n: usize, f: &dyn Fn(usize, f64) -> f64| {
            values.iter().enumerate().map(|(i, v)| f(i % n.max(1), *v)).collect()
        };
        Self { y: map(&self.y, self.n_y, &y), u: map(&self.u, self.n_u, &u), ..*self }
    }
}

/// All sequences that share one transition function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    sequences: Vec<Sequence>,
}

impl Record {
    /// Whether an output is missing.
    pub fn has_missing(&self) -> bool {
        self.sequences().iter().any(|s| (0..s.n_rows()).any(|t| s.y(t).iter().any(|y| y.is_nan())))
    }

    /// Sequences with the same numbers of inputs and outputs.
    pub fn new(sequences: Vec<Sequence>) -> Result<Self, Error> {
        let Some(first) = sequences.first() else {
            return Err(Error::data("a record needs at least one sequence"));
        };
        for (s, sequence) in sequences.iter().enumerate() {
            if (sequence.n_y, sequence.n_u) != (first.n_y, first.n_u) {
                return Err(Error::data(format!(
                    "sequence {s} has {} outputs and {} inputs, the first has {} and {}",
                    sequence.n_y, sequence.n_u, first.n_y, first.n_u
                )));
            }
            if sequence.n_rows() < 2 {
                return Err(Error::data(format!("sequence {s} has one row: a transition needs two")));
            }
        }
        Ok(Self { sequences })
    }

    /// The sequences.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// Outputs.
    pub fn n_y(&self) -> usize {
        self.sequences[0].n_y
    }

    /// Inputs.
    pub fn n_u(&self) -> usize {
        self.sequences[0].n_u
    }

    /// The first transitions, at least one: whole sequences in order, then the beginning of the next.
    pub(crate) fn head(&self, n_transitions: usize) -> Self {
        let mut left = n_transitions.max(1);
        let mut sequences = Vec::new();
        for sequence in &self.sequences {
            let length = sequence.length().min(left);
            left -= length;
            if length > 0 {
                sequences.push(sequence.head(length + 1));
            }
        }
        Self { sequences }
    }

    /// Transitions of all sequences.
    pub fn n_transitions(&self) -> usize {
        self.sequences.iter().map(Sequence::length).sum()
    }
}

impl From<Sequence> for Record {
    /// A record of one sequence; it is checked for its length when a problem is made of it.
    fn from(sequence: Sequence) -> Self {
        Self { sequences: vec![sequence] }
    }
}
