//! Columns that nobody named, but which say that the rows are not one run with equal steps; and numbers that look like
//! marks of missing values.

use std::collections::HashSet;

use gpssm::Record;

use super::error::DataProblem;
use super::open::TableHeader;
use super::rows::Row;
use super::stamp::Order;
use super::style::Style;
use super::times::TimeReader;
use super::{Columns, grid};

const TIMES: [&str; 15] = [
    "t",
    "time",
    "date",
    "datetime",
    "date_time",
    "date time",
    "timestamp",
    "time_stamp",
    "time stamp",
    "stamp",
    "year",
    "seconds",
    "zeit",
    "datum",
    "zeitstempel",
];
const SEQUENCES: [&str; 11] =
    ["seq", "sequence", "run", "series", "trial", "experiment", "episode", "record", "id", "batch", "test"];

/// Whether a column of this name holds times that go on: `t`, `time [s]`, `Time_s`, but not `hour`.
pub(crate) fn is_time_name(name: &str) -> bool {
    TIMES.contains(&stem(name).as_str())
}

/// Whether a column of this name labels runs.
pub(crate) fn is_sequence_name(name: &str) -> bool {
    let stem = stem(name);
    SEQUENCES.contains(&stem.as_str())
        || stem.strip_suffix("_id").is_some_and(|stem| SEQUENCES.contains(&stem))
}

/// A name without its unit, in small letters.
fn stem(name: &str) -> String {
    let name = name.split(['[', '(', '/']).next().unwrap_or_default().trim().to_lowercase();
    let unit = ["_s", "_ms", "_min", "_h", " s"].iter().find_map(|unit| name.strip_suffix(unit));
    unit.map_or_else(|| name.clone(), str::to_owned)
}

/// Follows such columns while rows are read.
pub(super) struct Watch {
    time: Option<(usize, String, TimeReader)>,
    times: Vec<f64>,
    lines: Vec<u64>,
    sequence: Option<(usize, String)>,
    /// Labels in order, with the line where each begins and its number of rows.
    labels: Vec<(String, u64, usize)>,
}

/// More labels than this are no labels.
const MOST_LABELS: usize = 10_000;

impl Watch {
    pub(super) fn new(header: &TableHeader, columns: &Columns) -> Self {
        let named = columns.names();
        let find = |is: &dyn Fn(&str) -> bool| {
            let free = |name: &&String| !named.contains(&name.as_str()) && is(name);
            let name = header.columns.iter().find(free)?;
            Some((header.index(name).ok()?, name.clone()))
        };
        let time = if columns.time.is_none() { find(&is_time_name) } else { None };
        let sequence = if columns.sequence.is_none() { find(&is_sequence_name) } else { None };
        let reader = TimeReader::new(Order::Day, Style::PLAIN);
        let time = time.map(|(place, name)| (place, name, reader));
        Self { time, times: Vec::new(), lines: Vec::new(), sequence, labels: Vec::new() }
    }

    pub(super) fn row(&mut self, row: &Row) {
        if let Some((place, _, reader)) = &mut self.time {
            let field = row.get(*place).unwrap_or_default();
            let ambiguous = std::str::from_utf8(field).is_ok_and(super::stamp::is_ambiguous);
            match reader.read(field, row.line) {
                Ok(time) if !ambiguous => {
                    self.times.push(time);
                    self.lines.push(row.line);
                }
                // It holds no times: there is nothing to watch.
                _ => self.time = None,
            }
        }
        if let Some((place, _)) = &self.sequence {
            let label = String::from_utf8_lossy(row.get(*place).unwrap_or_default()).trim().to_owned();
            let n = self.labels.len();
            match self.labels.last_mut() {
                Some((last, _, rows)) if *last == label => *rows += 1,
                _ if n >= MOST_LABELS => self.sequence = None,
                _ => self.labels.push((label, row.line, 1)),
            }
        }
    }

    /// Notes; or the line and column which show that runs would be joined.
    pub(super) fn finish(self, columns: &Columns) -> Result<Vec<String>, (u64, String, DataProblem)> {
        let mut notes = Vec::new();
        if let Some((_, name)) = self.sequence {
            let distinct: HashSet<&String> = self.labels.iter().map(|(label, ..)| label).collect();
            let are_labels =
                distinct.len() == self.labels.len() && self.labels.iter().all(|(_, _, rows)| *rows > 1);
            if let (true, Some((_, line, _))) = (are_labels, self.labels.get(1)) {
                return Err((
                    *line,
                    name.clone(),
                    DataProblem::JoinedRuns { runs: self.labels.len(), column: name },
                ));
            }
        }
        let Some((_, name, _)) = self.time else { return Ok(notes) };
        let back = self.times.windows(2).position(|pair| pair[1] < pair[0]);
        if columns.sequence.is_some() {
            return Ok(notes);
        }
        match back {
            Some(at) if columns.dt.is_none() => {
                return Err((self.lines[at + 1], name, DataProblem::TimeRestarts));
            }
            Some(at) => notes.push(format!(
                "column '{name}' goes back in line {}, but --dt says that rows are equally spaced: if runs begin there, name \
                 the column that labels them with --sequence",
                self.lines[at + 1]
            )),
            None if self.times.len() > 2 && columns.dt.is_none() => {
                let grid = grid::find(std::slice::from_ref(&self.times), &|| None, None);
                if grid.is_ok_and(|grid| !grid.is_finer && grid.n_rows() > self.times.len()) {
                    notes.push(format!(
                        "rows are missing between the times of column '{name}', but rows count as equally spaced: with --time \
                         '{name}' the gaps become rows with missing outputs"
                    ));
                }
            }
            None => {}
        }
        Ok(notes)
    }
}

/// Numbers that programs write for missing values.
const MARKS: [f64; 12] =
    [-99.0, -999.0, -9999.0, -99_999.0, 999.0, 9999.0, 99_999.0, 999_999.0, 1e20, -1e20, 1e30, -1e30];

/// Columns in which such a number comes again and again, far from all others.
pub(super) fn marks_of_missing(record: &Record, outputs: &[String], inputs: &[String]) -> Vec<String> {
    let of_output = |k: usize| record.sequences().iter().flat_map(|s| s.output(k)).collect();
    let of_input = |c: usize| record.sequences().iter().flat_map(|s| s.input(c)).collect();
    let outputs =
        outputs.iter().enumerate().filter_map(|(k, name)| mark_of_missing(name, of_output(k), true));
    let inputs = inputs.iter().enumerate().filter_map(|(c, name)| mark_of_missing(name, of_input(c), false));
    outputs.chain(inputs).collect()
}

fn mark_of_missing(name: &str, values: Vec<f64>, may_be_missing: bool) -> Option<String> {
    MARKS.iter().find_map(|&mark| {
        let n = values.iter().filter(|value| **value == mark).count();
        if n < 2 {
            return None;
        }
        let others = values.iter().copied().filter(|value| value.is_finite() && *value != mark);
        let (low, high) = others
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let far = mark < low - 3.0 * (high - low) || mark > high + 3.0 * (high - low);
        let advice = match may_be_missing {
            true => "leave those fields blank",
            false => "fill them in, as inputs must be known in every row",
        };
        let shown = if mark.abs() >= 1e10 { format!("{mark:e}") } else { mark.to_string() };
        (low < high && far).then(|| {
            format!(
                "column '{name}' is {shown} in {n} rows, far from all other values: if this marks missing values, {advice}"
            )
        })
    })
}
