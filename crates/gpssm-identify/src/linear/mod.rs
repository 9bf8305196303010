//! Linear state-space models, identified from a record.
//!
//! x_{t+1} = A x_t + B u_t + K e_t,  y_t = C x_t + D u_t + o + e_t,  e_t ~ N(0, R): the innovations form (Ljung 1999,
//! System Identification, chapter 4). A subspace method finds a start, Gauss-Newton steps refine it, and free runs over
//! held-out rows choose the order. The spectral radius of A is never above one, so that free runs do not run away.
//!
//! - `subspace`: a start for every order, from one regression on past outputs and inputs
//! - `refine`: prediction errors or simulation errors are made smaller
//! - `as_model`: as a model of the engine, or as the mean of one
//! - `filter`: the Kalman filter with missing outputs, free runs, predictions some rows ahead
//! - `select`: order, criterion and dead time by free runs over held-out rows
//! - `units`: standardised rows of a record
//! - `matrix`: small dense matrices

mod as_model;
mod filter;
mod matrix;
mod refine;
mod select;
mod subspace;
#[cfg(test)]
mod tests;
mod units;

use gpssm::{Record, Sequence};

use self::filter::Forecast;
use self::units::Units;
use crate::baseline::{Baseline, Task, error_sd};

pub use self::refine::Criterion;

/// The model with numbers, row-major, in standardised units of outputs and inputs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Innovations {
    n_x: usize,
    n_u: usize,
    n_y: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    d: Vec<f64>,
    offset: Vec<f64>,
    /// The gain K.
    gain: Vec<f64>,
    /// The covariance R of e.
    noise: Vec<f64>,
    /// Second moment of the states of the training record, for the first row of another one.
    spread: Vec<f64>,
}

/// The best linear state-space model of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearStateSpace {
    model: Innovations,
    units: Units,
    criterion: Criterion,
    /// Rows by which inputs are late beyond the one that a state needs.
    shift: usize,
    singular_values: Vec<f64>,
}

impl LinearStateSpace {
    /// Order, criterion and dead time by free runs over held-out rows of both ends of the record, then fitted to all of it;
    /// none if the record is too short.
    pub fn fit(training: &Record) -> Option<Self> {
        select::best(training)
    }

    /// States.
    pub fn order(&self) -> usize {
        self.model.n_x
    }

    /// What its numbers make small.
    pub fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// Dead time in rows beyond the one that a state needs.
    pub fn shift(&self) -> usize {
        self.shift
    }

    /// Of the subspace method, largest first: a model needs about as many states as there are values that stand out.
    pub fn singular_values(&self) -> &[f64] {
        &self.singular_values
    }

    /// Means of all rows, row-major (row, output), in units of the data.
    pub fn predict(&self, sequence: &Sequence, task: Task) -> Vec<f64> {
        self.forecast(sequence, task).mean
    }

    /// Means and standard deviations of all rows.
    pub(crate) fn forecast(&self, sequence: &Sequence, task: Task) -> Forecast {
        let rows = self.units.rows(sequence, self.shift);
        let forecast = match task {
            Task::FreeRun { n_init } => self.model.free_run(&rows, n_init),
            Task::Ahead { k } => self.model.ahead(&rows, k),
        };
        self.units.to_original(forecast)
    }

    /// Predictions for a record, with the errors that they had on the training record.
    pub fn baseline(&self, training: &Record, sequence: &Sequence, task: Task) -> Baseline {
        let n_init = select::n_init(self.order());
        let own = match task {
            Task::FreeRun { .. } => Task::FreeRun { n_init },
            ahead => ahead,
        };
        let sd = error_sd(training, &|sequence| self.predict(sequence, own), n_init);
        let name = "linear state space".into();
        Baseline { name, mean: self.predict(sequence, task), sd, order: Some(self.order()) }
    }
}
