//! Gathers rows into sequences.

use std::collections::HashSet;

use super::Columns;
use super::error::{Blame, DataError, DataProblem};
use super::steps::{self, TimeUnit};

/// Values of all rows, row by row.
#[derive(Default)]
pub(super) struct Values {
    pub(super) y: Vec<f64>,
    pub(super) u: Vec<f64>,
}

/// One sequence on its way.
#[derive(Default)]
struct Part {
    label: String,
    values: Values,
    lines: Vec<u64>,
    times: Vec<f64>,
}

pub(super) struct Builder<'a> {
    columns: &'a Columns,
    blame: Blame<'a>,
    every: usize,
    parts: Vec<Part>,
    seen: HashSet<String>,
    unit: Option<TimeUnit>,
}

/// All rows of the sequences, with times and lines of those that the model sees.
pub(super) struct Finished {
    pub(super) sequences: Vec<Values>,
    pub(super) time: Vec<Vec<f64>>,
    pub(super) time_unit: TimeUnit,
    pub(super) dt: Option<f64>,
    pub(super) labels: Vec<String>,
    pub(super) lines: Vec<Vec<u64>>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(columns: &'a Columns, file: &'a str) -> Self {
        let parts = match columns.sequence {
            Some(_) => Vec::new(),
            None => vec![Part { label: "1".to_owned(), ..Part::default() }],
        };
        let every = columns.every.unwrap_or(1).max(1);
        Self { columns, blame: Blame { file }, every, parts, seen: HashSet::new(), unit: None }
    }

    /// The label of the row that comes.
    pub(super) fn label(&mut self, label: &str, line: u64) -> Result<(), DataError> {
        if self.parts.last().is_some_and(|part| part.label == label) {
            return Ok(());
        }
        let column = self.columns.sequence.as_deref().unwrap_or_default();
        if label.is_empty() || label.eq_ignore_ascii_case("na") {
            return Err(self.blame.cell(line, column, DataProblem::MissingLabel));
        }
        if !self.seen.insert(label.to_owned()) {
            let problem = DataProblem::SplitSequence { label: label.to_owned() };
            return Err(self.blame.cell(line, column, problem));
        }
        self.parts.push(Part { label: label.to_owned(), ..Part::default() });
        Ok(())
    }

    /// The time of the row that comes.
    pub(super) fn time(&mut self, field: &[u8]) -> Result<(), DataProblem> {
        let (time, unit) = steps::parse(field, self.unit)?;
        self.unit = Some(unit);
        if let Some(part) = self.parts.last_mut() {
            part.times.push(time);
        }
        Ok(())
    }

    /// Where the row's values go.
    pub(super) fn row(&mut self, line: u64) -> Option<&mut Values> {
        let part = self.parts.last_mut()?;
        part.lines.push(line);
        Some(&mut part.values)
    }

    /// Checks lengths and times.
    pub(super) fn finish(self) -> Result<Finished, DataError> {
        let every = self.every;
        let labelled = self.columns.sequence.is_some();
        let mut finished = Finished {
            sequences: Vec::new(),
            time: Vec::new(),
            time_unit: if self.columns.dt.is_some() { TimeUnit::Given } else { TimeUnit::Rows },
            dt: self.columns.dt.map(|dt| dt * every as f64),
            labels: Vec::new(),
            lines: Vec::new(),
        };
        let short = self.parts.iter().find(|part| part.lines.len() <= every);
        if let Some(part) = short {
            let problem = DataProblem::OneRow { label: labelled.then(|| part.label.clone()) };
            return Err(match part.lines.first() {
                Some(&line) => self.blame.line(line, problem),
                None => self.blame.file(problem),
            });
        }
        let times = match (&self.columns.time, self.unit) {
            (Some(column), Some(unit)) => Some(self.times(column, unit)?),
            _ => None,
        };
        if let Some((times, unit, step)) = times {
            finished.time =
                times.iter().map(|times| times.iter().step_by(every).copied().collect()).collect();
            finished.time_unit = unit;
            finished.dt = Some(step * every as f64);
        } else {
            let step = finished.dt.unwrap_or(1.0);
            let rows = |part: &Part| (0..part.lines.len().div_ceil(every)).map(|i| i as f64 * step).collect();
            finished.time = self.parts.iter().map(rows).collect();
        }
        for part in self.parts {
            finished.labels.push(part.label);
            finished.sequences.push(part.values);
            finished.lines.push(part.lines.into_iter().step_by(every).collect());
        }
        Ok(finished)
    }

    /// Times of all rows of all sequences in one unit, and their common step.
    fn times(&self, column: &str, unit: TimeUnit) -> Result<(Vec<Vec<f64>>, TimeUnit, f64), DataError> {
        let mut all = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let checked = steps::check(&part.times, unit);
            all.push(checked.map_err(|(row, problem)| self.blame.cell(part.lines[row], column, problem))?);
        }
        // A short sequence may be regular in days by chance; months count if any needs them.
        if all.iter().any(|(_, unit, _)| *unit == TimeUnit::Months) {
            for (i, part) in self.parts.iter().enumerate() {
                let months = steps::check_months(&part.times);
                all[i] = months.map_err(|problem| self.blame.cell(part.lines[0], column, problem))?;
            }
        }
        let (_, unit, first) = all[0];
        let other = all.iter().zip(&self.parts).find(|((_, _, step), _)| !steps::same_step(*step, first));
        if let Some(((_, _, step), part)) = other {
            let problem = DataProblem::DifferentSteps { label: part.label.clone(), step: *step, first };
            return Err(self.blame.cell(part.lines[0], column, problem));
        }
        Ok((all.into_iter().map(|(times, _, _)| times).collect(), unit, first))
    }
}
