//! Data tables: a CSV file and the names of its columns become a record.
//!
//! A line names the columns; fields are separated by commas, semicolons, tabs or bars, as in that line. A blank output,
//! `NA` or `NaN` is missing. Times are numbers or dates on a grid of equal steps; places without a row become rows with
//! missing outputs. Only the columns that are asked for are read. What is unusual but clear (decimal commas, a row of units,
//! lines above the header) is read as it is meant and told in a note; what is not clear is refused.
//!
//! - `open`, `rows`, `encoding`: from bytes to fields, each with its line in the file
//! - `number`, `style`, `tally`: from fields to numbers, however they are written
//! - `stamp`, `order`, `calendar`, `times`, `dates`: from fields to times, and back to the words of the file
//! - `sequences`, `grid`: rows of one label, in one piece, on a grid of equal steps
//! - `watch`: columns that nobody named, but which say that there are several runs
//! - `read`: a file as a record
//! - `error`: what can be wrong, with file, line and column

mod calendar;
mod dates;
mod encoding;
mod error;
mod fingerprint;
mod grid;
mod number;
mod open;
mod order;
mod read;
mod rows;
mod sequences;
mod stamp;
mod style;
mod tally;
mod times;
mod watch;

use gpssm::{Record, Sequence};
use gpssm_identify::Layout;
use serde::{Deserialize, Serialize};

pub use self::dates::{Clock, Dates};
pub use self::error::{DataError, DataProblem};
pub use self::open::{TableHeader, read_header};
pub use self::read::read_record;
pub(crate) use self::read::{NumericColumn, numeric_columns};
pub(crate) use self::sequences::describe_step;
pub use self::times::TimeUnit;
pub(crate) use self::watch::{is_sequence_name, is_time_name};

/// Which columns and rows of a file make the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// Outputs.
    pub y: Vec<String>,
    /// Inputs.
    pub u: Vec<String>,
    /// Times; they must lie on a grid of equal steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Sampling time; beside a column of times the step of the grid they lie on, for dates in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dt: Option<f64>,
    /// Label of the sequence that a row belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// First and last row to read, counted from 1 below the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<(usize, usize)>,
    /// Keep one row of so many, in each sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<usize>,
    /// Number of past values of each input used as further inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_lags: Option<usize>,
    /// Rows from an input to the first output that sees it; by default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<usize>,
}

impl Columns {
    /// How the rows that are read become the rows of the model.
    pub fn layout(&self) -> Layout {
        let plain = Layout::default();
        Layout {
            input_lags: self.input_lags.unwrap_or(plain.input_lags),
            delay: self.delay.unwrap_or(plain.delay),
            every: self.every.unwrap_or(plain.every),
        }
    }

    /// The same columns, every row as it was measured.
    #[must_use]
    pub fn as_measured(&self) -> Self {
        Self { input_lags: None, delay: None, every: None, ..self.clone() }
    }

    /// Names of all columns that are asked for.
    fn names(&self) -> Vec<&str> {
        let one = self.time.iter().chain(&self.sequence);
        self.y.iter().chain(&self.u).chain(one).map(String::as_str).collect()
    }

    /// What is wrong with the layout that is asked for.
    fn refused(&self) -> Option<DataProblem> {
        let Layout { input_lags, delay, every } = self.layout();
        // Inputs alone may be read as outputs, see the commands on new inputs.
        if (input_lags, delay) != (0, 1) && self.u.is_empty() {
            return Some(DataProblem::NoInputsToLag);
        }
        if input_lags.max(delay) > MOST_LAGS {
            return Some(DataProblem::TooManyLags { asked: input_lags.max(delay), most: MOST_LAGS });
        }
        (every == 0).then_some(DataProblem::BadEvery)
    }
}

/// More past values than this are a mistake.
const MOST_LAGS: usize = 1000;

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The sequences as the model sees them.
    pub record: Record,
    /// The sequences as they were measured, where the model sees others: lagged inputs, or not every row.
    pub measured: Option<Record>,
    /// Names of the outputs.
    pub outputs: Vec<String>,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Times of the rows of each sequence.
    pub time: Vec<Vec<f64>>,
    /// What they count.
    pub time_unit: TimeUnit,
    /// The step between rows, if it is known.
    pub dt: Option<f64>,
    /// Labels of the sequences.
    pub sequence_labels: Vec<String>,
    /// Line in the file of each row of each sequence.
    pub lines: Vec<Vec<u64>>,
    /// Fingerprint of the names and values that are used (not of the bytes of the file), in hexadecimal.
    pub sha256: String,
    /// Name of the file, without its folder.
    pub source: String,
    /// Rows of all sequences.
    pub n_rows: usize,
    /// Missing outputs.
    pub n_missing: usize,
    /// Dates behind the times, where they count seconds since one.
    pub dates: Option<Dates>,
    /// What a user should know of how the file was read.
    pub notes: Vec<String>,
}

impl Data {
    /// A record that comes from no file; rows are counted from 0, and lines as in a file that holds just these rows.
    pub fn from_record(record: Record, outputs: Vec<String>, inputs: Vec<String>, source: &str) -> Self {
        let rows: Vec<usize> = record.sequences().iter().map(Sequence::n_rows).collect();
        let columns = Columns { y: outputs.clone(), u: inputs.clone(), ..Columns::default() };
        let labels: Vec<String> = (1..=rows.len()).map(|s| s.to_string()).collect();
        let time: Vec<Vec<f64>> = rows.iter().map(|n| (0..*n).map(|t| t as f64).collect()).collect();
        Self {
            n_missing: count_missing(&record),
            sha256: fingerprint::fingerprint(&record, &columns, &labels, &time),
            lines: rows.iter().map(|n| (2..2 + *n as u64).collect()).collect(),
            n_rows: rows.iter().sum(),
            record,
            measured: None,
            outputs,
            inputs,
            time,
            time_unit: TimeUnit::Rows,
            dt: None,
            sequence_labels: labels,
            source: source.to_owned(),
            dates: None,
            notes: Vec::new(),
        }
    }

    /// Turns times of rows into the words of the file.
    pub fn clock(&self) -> Clock {
        Clock::new(self.dates.as_ref())
    }

    /// What keeps a model from learning anything: an output without values, or with one value only.
    pub fn nothing_to_learn(&self) -> Option<String> {
        (0..self.outputs.len()).find_map(|k| {
            let values = self.record.sequences().iter().flat_map(|sequence| sequence.output(k));
            let mut values = values.filter(|value| !value.is_nan());
            let name = &self.outputs[k];
            let Some(first) = values.next() else {
                return Some(format!("column '{name}' has no value in any of the {} rows", self.n_rows));
            };
            values.all(|value| value == first).then(|| {
                format!("column '{name}' is {first} wherever it has a value: a constant output has no dynamics to learn")
            })
        })
    }

    /// The same record with times of its rows and labels of its sequences.
    #[must_use]
    pub fn with_labels(self, time: Vec<Vec<f64>>, sequence_labels: Vec<String>) -> Self {
        let columns = Columns { y: self.outputs.clone(), u: self.inputs.clone(), ..Columns::default() };
        let sha256 = fingerprint::fingerprint(&self.record, &columns, &sequence_labels, &time);
        Self { time, time_unit: TimeUnit::Given, sequence_labels, sha256, ..self }
    }
}

fn count_missing(record: &Record) -> usize {
    let values = record.sequences().iter().flat_map(|s| (0..s.n_rows()).flat_map(|t| s.y(t)));
    values.filter(|y| y.is_nan()).count()
}
