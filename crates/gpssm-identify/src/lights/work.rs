//! How many draws and rows a verdict may take: it is to cost seconds, whatever the size of the run.

use gpssm::model::{DynamicsSpec, TransitionSpec};
use gpssm::{Error, Problem, Record};

use crate::fitted::FittedModel;

/// Multiplications that a verdict may take, about.
const MOST_WORK: f64 = 1e10;
/// Draws: the most, and the fewest that say anything of their spread.
const DRAWS: (usize, usize) = (100, 25);
/// Rows of all sequences, the same way.
const ROWS: (usize, usize) = (2_000, 60);
/// Sequences that are looked at, and the shortest that can be scored.
const SEQUENCES: usize = 8;
const SHORTEST: usize = 10;
/// The filter of predictions one step ahead.
const FUNCTIONS: usize = 25;
const PARTICLES: usize = 40;
const WAVES: f64 = 256.0;
/// A value of a kernel in multiplications.
const KERNEL: f64 = 12.0;

/// Sizes of a verdict; they depend on the sizes of the run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub draws: usize,
    pub paths: usize,
    pub rows: usize,
    pub functions: usize,
    pub particles: usize,
}

impl Work {
    pub(super) fn new(problem: &Problem, held_out: Option<&Record>) -> Self {
        let model = problem.model();
        let learned =
            |state: &&gpssm::model::StateSpec| matches!(state.transition, TransitionSpec::Gp { .. });
        let n_gp = model.states.iter().filter(learned).count() as f64;
        let n = problem.record().n_transitions() as f64;
        let record = held_out.unwrap_or(problem.record());
        let all: usize = record.sequences().iter().map(gpssm::Sequence::n_rows).sum();
        // Functions of a basis; a factor, a path and a step of the filter for each learned state.
        let basis =
            problem.basis().filter(|_| model.dynamics != DynamicsSpec::Exact).map(|b| b.n_functions() as f64);
        let (factor, step) = match basis {
            None => (n.powi(3) / 3.0, KERNEL * (n + WAVES)),
            Some(m) => (n * m * m, KERNEL * m),
        };
        let path = |rows: f64| match basis {
            None => rows * ((n + rows).powi(2) + KERNEL * (n + rows)),
            Some(m) => rows * (m * m + KERNEL * m),
        };
        let filter = |rows: f64| (FUNCTIONS * PARTICLES) as f64 * rows * step;
        let free = |rows: f64, draws: f64| draws * (factor + path(rows));
        let costs = |rows: usize, draws: usize| {
            n_gp * (filter(rows as f64) + free(rows as f64, draws as f64)) <= MOST_WORK
        };
        let (mut rows, mut draws) = (all.min(ROWS.0), DRAWS.0);
        while !costs(rows, draws) && (rows > ROWS.1 || draws > DRAWS.1) {
            if draws > DRAWS.1 && (rows <= ROWS.1 || draws * 20 > rows) {
                draws = (draws * 4 / 5).max(DRAWS.1);
            } else {
                rows = (rows * 4 / 5).max(ROWS.1);
            }
        }
        Self { draws, paths: 2 * draws, rows, functions: FUNCTIONS.min(draws), particles: PARTICLES }
    }

    /// The first rows of the first sequences, shared evenly.
    pub(super) fn part(&self, record: &Record) -> Result<Record, Error> {
        let usable: Vec<_> =
            record.sequences().iter().filter(|s| s.n_rows() >= SHORTEST).take(SEQUENCES).collect();
        if usable.is_empty() {
            return Err(Error::data(format!("no sequence has the {SHORTEST} rows that a verdict needs")));
        }
        let each = (self.rows / usable.len()).max(SHORTEST);
        Record::new(usable.into_iter().map(|sequence| sequence.head(each.min(sequence.n_rows()))).collect())
    }
}

impl FittedModel {
    /// Rows at which f is looked at, at the most so many of a record, evenly spaced: (sequence, row).
    pub(super) fn spread_rows(record: &Record, most: usize) -> Vec<(usize, usize)> {
        let sequences = record.sequences().iter().enumerate();
        let all: Vec<(usize, usize)> =
            sequences.flat_map(|(s, q)| (0..q.n_rows()).map(move |t| (s, t))).collect();
        let n = all.len().min(most);
        (0..n).map(|i| all[(2 * i + 1) * all.len() / (2 * n)]).collect()
    }
}
