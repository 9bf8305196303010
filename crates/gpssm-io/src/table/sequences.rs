//! Gathers rows into sequences, and puts them on a grid of equal steps.

use std::collections::HashSet;

use super::Columns;
use super::dates::{Clock, Dates};
use super::error::{Blame, DataError, DataProblem};
use super::grid::{self, Grid, Irregular};
use super::times::{TimeReader, TimeUnit, clocks_change};

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
    reader: TimeReader,
}

/// All rows of the sequences, with times and lines of those that the model sees.
pub(super) struct Finished {
    pub(super) sequences: Vec<Values>,
    pub(super) time: Vec<Vec<f64>>,
    /// Times of all rows, if the model does not see all.
    pub(super) measured_time: Option<Vec<Vec<f64>>>,
    pub(super) time_unit: TimeUnit,
    pub(super) dates: Option<Dates>,
    pub(super) dt: Option<f64>,
    pub(super) labels: Vec<String>,
    pub(super) lines: Vec<Vec<u64>>,
    pub(super) notes: Vec<String>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(columns: &'a Columns, file: &'a str, reader: TimeReader) -> Self {
        let parts = match columns.sequence {
            Some(_) => Vec::new(),
            None => vec![Part { label: "1".to_owned(), ..Part::default() }],
        };
        let every = columns.every.unwrap_or(1).max(1);
        Self { columns, blame: Blame { file }, every, parts, seen: HashSet::new(), reader }
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
    pub(super) fn time(&mut self, field: &[u8], line: u64) -> Result<(), DataProblem> {
        let time = self.reader.read(field, line)?;
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

    /// Checks lengths and times, and puts in the rows that are missing between the times.
    pub(super) fn finish(mut self) -> Result<Finished, DataError> {
        let every = self.every;
        let dt = self.columns.dt;
        let mut finished = Finished {
            sequences: Vec::new(),
            time: Vec::new(),
            measured_time: None,
            time_unit: if dt.is_some() { TimeUnit::Given } else { TimeUnit::Rows },
            dates: None,
            dt: dt.map(|dt| dt * every as f64),
            labels: Vec::new(),
            lines: Vec::new(),
            notes: Vec::new(),
        };
        self.check_lengths(2)?;
        if let Some(column) = &self.columns.time {
            let grid = self.grid(column)?;
            finished.time_unit = self.reader.unit();
            finished.dt = Some(grid.step * every as f64);
            finished.dates = self.reader.dates().map(|dates| with_months(dates, grid.months, &self.parts));
            self.say(&grid, column, finished.dates.as_ref(), &mut finished.notes);
            for (part, places) in self.parts.iter_mut().zip(&grid.places) {
                part.fill(places, self.columns);
            }
        }
        self.check_lengths(every + 1)?;
        let is_timed = self.columns.time.is_some() && !self.columns.layout().is_plain();
        finished.measured_time = is_timed.then(|| self.parts.iter().map(|part| part.times.clone()).collect());
        let step = finished.dt.unwrap_or(1.0);
        for part in self.parts {
            let n = part.lines.len().div_ceil(every);
            finished.time.push(match part.times.is_empty() {
                true => (0..n).map(|i| i as f64 * step).collect(),
                false => part.times.into_iter().step_by(every).collect(),
            });
            finished.labels.push(part.label);
            finished.sequences.push(part.values);
            finished.lines.push(part.lines.into_iter().step_by(every).collect());
        }
        Ok(finished)
    }

    fn check_lengths(&self, least: usize) -> Result<(), DataError> {
        let labelled = self.columns.sequence.is_some();
        let Some(part) = self.parts.iter().find(|part| part.lines.len() < least) else { return Ok(()) };
        let problem = DataProblem::OneRow { label: labelled.then(|| part.label.clone()) };
        Err(match part.lines.first() {
            Some(&line) => self.blame.line(line, problem),
            None => self.blame.file(problem),
        })
    }

    fn clock(&self) -> Clock {
        Clock::new(self.reader.dates().as_ref())
    }

    fn cell(&self, (part, row): (usize, usize), column: &str, problem: DataProblem) -> DataError {
        self.blame.cell(self.parts[part].lines[row], column, problem)
    }

    fn grid(&self, column: &str) -> Result<Grid, DataError> {
        for (p, part) in self.parts.iter().enumerate() {
            if let Some((row, problem)) = self.unordered(&part.times) {
                return Err(self.cell((p, row), column, problem));
            }
        }
        let times: Vec<Vec<f64>> = self.parts.iter().map(|part| part.times.clone()).collect();
        let grid = grid::find(&times, &|| self.days(), self.columns.dt)
            .map_err(|irregular| self.irregular(column, irregular))?;
        self.check_clocks(column, &grid)?;
        Ok(grid)
    }

    /// The first row whose time is not after the one before.
    fn unordered(&self, times: &[f64]) -> Option<(usize, DataProblem)> {
        let row = (1..times.len()).find(|&i| times[i] <= times[i - 1])?;
        let clock = self.clock();
        let time = clock.text(times[row]);
        let change = self.reader.is_wall_clock()
            && times[row - 1] - times[row] <= 3600.0
            && self.reader.local(times[row]).is_some_and(clocks_change);
        Some((
            row,
            match (change, times[row] == times[row - 1]) {
                (true, _) => DataProblem::ClocksBack { time },
                (false, true) => DataProblem::TimeRepeats { time },
                (false, false) => DataProblem::TimeGoesBack { time, before: clock.text(times[row - 1]) },
            },
        ))
    }

    /// Refuses gaps of one hour where clocks go forward: nobody can say whether rows are missing.
    fn check_clocks(&self, column: &str, grid: &Grid) -> Result<(), DataError> {
        if !self.reader.is_wall_clock() || grid.step >= 86_400.0 {
            return Ok(());
        }
        for (p, part) in self.parts.iter().enumerate() {
            for (i, pair) in part.times.windows(2).enumerate() {
                let beyond = pair[1] - pair[0] - grid.step;
                if (beyond - 3600.0).abs() < 0.25 * grid.step.min(3600.0)
                    && self.reader.local(pair[1]).is_some_and(clocks_change)
                {
                    let time = self.clock().text(pair[1]);
                    return Err(self.cell((p, i + 1), column, DataProblem::ClocksForward { time }));
                }
            }
        }
        Ok(())
    }

    /// Days of the stamps, if all have the same clock.
    fn days(&self) -> Option<Vec<Vec<i64>>> {
        let first = self.reader.local(*self.parts.first()?.times.first()?)?;
        let clock = first.rem_euclid(86_400.0);
        let day = |time: &f64| {
            let local = self.reader.local(*time)?;
            ((local.rem_euclid(86_400.0) - clock).abs() < 1e-3).then(|| (local / 86_400.0).floor() as i64)
        };
        self.parts.iter().map(|part| part.times.iter().map(day).collect()).collect()
    }

    fn irregular(&self, column: &str, irregular: Irregular) -> DataError {
        let step_text = |step: f64| describe_step(step, self.reader.unit());
        let stamps: usize = self.parts.iter().map(|part| part.times.len()).sum();
        match irregular {
            Irregular::Step { at, step, usual, finest } => {
                let (step, usual) = (step_text(step), step_text(usual));
                let finest = finest.map(|(step, rows)| (step_text(step), rows));
                self.cell(at, column, DataProblem::IrregularStep { step, usual, finest, stamps })
            }
            Irregular::Gap { at, rows } => self.cell(at, column, DataProblem::LongGap { rows, stamps }),
            Irregular::Off { at, step } => {
                let time = self.clock().text(self.parts[at.0].times[at.1]);
                self.cell(at, column, DataProblem::OffGrid { time, step: step_text(step) })
            }
            Irregular::Other { sequence, step, first } => {
                let label = self.parts[sequence].label.clone();
                let (step, first) = (step_text(step), step_text(first));
                self.cell((sequence, 0), column, DataProblem::DifferentSteps { label, step, first })
            }
        }
    }

    /// What the user should know of the grid.
    fn say(&self, grid: &Grid, column: &str, dates: Option<&Dates>, notes: &mut Vec<String>) {
        let stamps: usize = self.parts.iter().map(|part| part.times.len()).sum();
        let (rows, unit) = (grid.n_rows(), self.reader.unit());
        let clock = Clock::new(dates);
        if let Some(line) = self.reader.other_zone {
            notes.push(format!(
                "the offset of column '{column}' changes in line {line}; times are compared in UTC and shown with the first offset"
            ));
        }
        if let Some((share, p, row)) = grid.jitter {
            notes.push(format!(
                "steps of column '{column}' vary by up to {:.0} % (line {}); rows are taken as {} apart",
                100.0 * share,
                self.parts[p].lines[row],
                describe_step(grid.step, unit)
            ));
        }
        let missing = rows - stamps;
        if missing == 0 {
            return;
        }
        let held = if self.columns.u.is_empty() { "" } else { ", inputs keep their last value" };
        let what = format!("outputs are missing there{held}");
        if grid.is_finer || self.columns.dt.is_some() {
            let times = rows as f64 / stamps as f64;
            notes.push(format!(
                "the {stamps} time stamps are put on a grid with steps of {} and {rows} rows; {what}. A sweep costs about {} times as \
                 much as with {stamps} rows ({} times with the exact Gaussian process); --dt chooses another step, or resample \
                 the data first",
                describe_step(grid.step, unit),
                short(times),
                short(times.powi(3))
            ));
            return;
        }
        let gaps = grid.places.iter().enumerate().flat_map(|(p, places)| {
            (1..places.len()).filter(move |&i| places[i] > places[i - 1] + 1).map(move |i| (p, i))
        });
        let gaps: Vec<(usize, usize)> = gaps.collect();
        let Some(&(p, row)) = gaps.first() else { return };
        let (first, line) = (clock.text(self.parts[p].times[row - 1]), self.parts[p].lines[row - 1]);
        notes.push(match (missing, gaps.len()) {
            (1, _) => format!("a row is missing after {first} (line {line}) and was put in; {what}"),
            (n, 1) => format!("{n} rows are missing after {first} (line {line}) and were put in; {what}"),
            (n, gaps) => format!(
                "{n} rows are missing in {gaps} gaps, the first after {first} (line {line}), and were put in; {what}"
            ),
        });
    }
}

fn with_months(dates: Dates, months: Option<(u32, bool)>, parts: &[Part]) -> Dates {
    let Some((months, is_last)) = months else { return dates };
    let number = if months == 1 { String::new() } else { months.to_string() };
    let is_first = parts.iter().all(|_| dates.origin[8..10] == *"01");
    let frequency = (is_last || is_first).then(|| format!("{number}{}", if is_last { "ME" } else { "MS" }));
    Dates { months: Some(months), frequency, ..dates }
}

impl Part {
    /// Puts in rows without outputs at the places that have no stamp; inputs keep their value.
    fn fill(&mut self, places: &[usize], columns: &Columns) {
        let n = places.last().map_or(0, |last| last + 1);
        if n == self.lines.len() {
            return;
        }
        let (n_y, n_u) = (columns.y.len(), columns.u.len());
        let before = std::mem::take(self);
        *self = Self {
            label: before.label,
            values: Values { y: vec![f64::NAN; n * n_y], u: Vec::with_capacity(n * n_u) },
            lines: Vec::with_capacity(n),
            times: Vec::with_capacity(n),
        };
        for (i, &place) in places.iter().enumerate() {
            let next = places.get(i + 1).copied().unwrap_or(place + 1);
            self.values.y[place * n_y..(place + 1) * n_y]
                .copy_from_slice(&before.values.y[i * n_y..(i + 1) * n_y]);
            let from = before.times[i];
            let step = before.times.get(i + 1).map_or(0.0, |to| (to - from) / (next - place) as f64);
            for k in 0..next - place {
                self.values.u.extend_from_slice(&before.values.u[i * n_u..(i + 1) * n_u]);
                self.lines.push(before.lines[i]);
                self.times.push(from + k as f64 * step);
            }
        }
    }
}

/// A step in words: of dates in seconds, minutes, hours or days.
pub(crate) fn describe_step(step: f64, unit: TimeUnit) -> String {
    if unit != TimeUnit::Seconds {
        return short(step);
    }
    match step {
        s if s < 90.0 => format!("{} s", short(s)),
        s if s < 5_400.0 => format!("{} min", short(s / 60.0)),
        s if s < 86_400.0 => format!("{} h", short(s / 3_600.0)),
        s => format!("{} d", short(s / 86_400.0)),
    }
}

/// At most four digits that matter.
fn short(value: f64) -> String {
    let digits = (3.0 - value.abs().max(1e-300).log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
