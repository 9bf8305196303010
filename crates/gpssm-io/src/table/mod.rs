//! Data tables: a CSV file and the names of its columns become a record.
//!
//! The first line names the columns; fields are separated by commas (or semicolons or tabs, if the header is);
//! numbers have a decimal point. A blank output, `NA` or `NaN` is missing. Times are numbers or ISO 8601 dates
//! with equal steps. Only the columns that are asked for are read.
//!
//! - `open`, `rows`: from bytes to fields, each with its line in the file
//! - `number`, `calendar`, `steps`: from fields to numbers and times
//! - `sequences`: rows of one label, in one piece
//! - `error`: what can be wrong, with file, line and column

mod calendar;
mod error;
mod fingerprint;
mod number;
mod open;
mod rows;
mod sequences;
mod steps;

use std::path::Path;

use gpssm::{Record, Sequence};
use gpssm_identify::Layout;
use serde::{Deserialize, Serialize};

use self::error::Blame;
use self::open::Table;
use self::rows::Row;
use self::sequences::{Builder, Finished};

pub use self::error::{DataError, DataProblem};
pub use self::open::{TableHeader, read_header};
pub use self::steps::TimeUnit;

/// Which columns and rows of a file make the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// Outputs.
    pub y: Vec<String>,
    /// Inputs.
    pub u: Vec<String>,
    /// Times; equal steps are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Sampling time, if there is no column of times.
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
}

/// Dates of a record whose times count seconds; Python's records have them.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dates {
    /// The date from which seconds are counted, such as `2020-01-01T00:00:00`; UTC.
    pub origin: String,
    /// Time zone in which the dates are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Frequency in the words of pandas, such as `MS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency: Option<String>,
    /// Times of the rows as they were measured, where the model sees others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Vec<Vec<f64>>>,
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
        }
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

/// Reads the record.
pub fn read_record(path: &Path, columns: &Columns) -> Result<Data, DataError> {
    let mut table = Table::open(path)?;
    let header = table.header.clone();
    let blame = Blame { file: &header.file };
    let places = Places::find(&header, columns).map_err(|problem| blame.file(problem))?;
    let (from, to) = columns.rows.unwrap_or((1, usize::MAX));
    let mut builder = Builder::new(columns, &header.file);
    let mut n_read = 0;
    while n_read < to {
        let Some(row) = table.next()? else { break };
        n_read += 1;
        if row.blank_lines > 0 && header.columns.len() == 1 {
            return Err(blame.line(row.line - row.blank_lines, DataProblem::BlankLine));
        }
        if n_read >= from {
            if row.len() != header.columns.len() {
                let problem = DataProblem::Ragged { found: row.len(), expected: header.columns.len() };
                return Err(blame.line(row.line, problem));
            }
            read_row(&row, &places, &mut builder, &blame, columns)?;
        }
    }
    if n_read == 0 {
        return Err(blame.file(DataProblem::NoRows));
    }
    if n_read < from || (columns.rows.is_some() && n_read < to) {
        return Err(blame.file(DataProblem::BadRows { from, to, there: Some(n_read) }));
    }
    let Finished { sequences, time, time_unit, dt, labels, lines } = builder.finish()?;
    let (n_y, n_u) = (columns.y.len(), columns.u.len());
    let other = |error: gpssm::Error| blame.file(DataProblem::Other(error.to_string()));
    let sequences = sequences.into_iter().map(|s| Sequence::from_flat(s.y, n_y, s.u, n_u));
    let measured = Record::new(sequences.collect::<Result<_, _>>().map_err(other)?).map_err(other)?;
    let layout = columns.layout();
    let record = layout.apply_to(&measured).map_err(other)?;
    let sha256 = fingerprint::fingerprint(&record, columns, &labels, &time);
    let n_rows = lines.iter().map(Vec::len).sum();
    let n_missing = count_missing(&record);
    Ok(Data {
        record,
        measured: (!layout.is_plain()).then_some(measured),
        outputs: columns.y.clone(),
        inputs: layout.names(&columns.u),
        time,
        time_unit,
        dt,
        sequence_labels: labels,
        lines,
        sha256,
        source: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        n_rows,
        n_missing,
        dates: None,
    })
}

/// Where the columns are.
struct Places {
    y: Vec<usize>,
    u: Vec<usize>,
    time: Option<usize>,
    sequence: Option<usize>,
}

impl Places {
    fn find(header: &TableHeader, columns: &Columns) -> Result<Self, DataProblem> {
        if columns.y.is_empty() {
            return Err(DataProblem::NoOutputs { there: header.columns.clone() });
        }
        let outputs = columns.y.iter().map(|name| (name, "output"));
        let inputs = columns.u.iter().map(|name| (name, "input"));
        let time = columns.time.iter().map(|name| (name, "time"));
        let sequence = columns.sequence.iter().map(|name| (name, "sequence"));
        let roles: Vec<(&String, &'static str)> = outputs.chain(inputs).chain(time).chain(sequence).collect();
        for (i, (name, second)) in roles.iter().enumerate() {
            if let Some((_, first)) = roles[..i].iter().find(|(other, _)| other == name) {
                return Err(DataProblem::AskedTwice { name: (*name).clone(), first, second });
            }
        }
        if columns.time.is_some() && columns.dt.is_some() {
            return Err(DataProblem::TimeAndStep);
        }
        if let Some(dt) = columns.dt.filter(|dt| !(dt.is_finite() && *dt > 0.0)) {
            return Err(DataProblem::BadStep(dt));
        }
        if let Some(problem) = columns.refused() {
            return Err(problem);
        }
        if let Some((from, to)) = columns.rows.filter(|(from, to)| *from == 0 || from > to) {
            return Err(DataProblem::BadRows { from, to, there: None });
        }
        let all = |names: &[String]| names.iter().map(|name| header.index(name)).collect::<Result<_, _>>();
        Ok(Self {
            y: all(&columns.y)?,
            u: all(&columns.u)?,
            time: columns.time.as_ref().map(|name| header.index(name)).transpose()?,
            sequence: columns.sequence.as_ref().map(|name| header.index(name)).transpose()?,
        })
    }
}

fn read_row(
    row: &Row,
    places: &Places,
    builder: &mut Builder,
    blame: &Blame,
    columns: &Columns,
) -> Result<(), DataError> {
    let at = |name: &String| {
        let (line, name) = (row.line, name.clone());
        move |problem| blame.cell(line, &name, problem)
    };
    if let (Some(place), Some(name)) = (places.sequence, &columns.sequence) {
        let label = std::str::from_utf8(row.field(place)).map_err(|_| at(name)(DataProblem::Encoding))?;
        builder.label(label.trim(), row.line)?;
    }
    if let (Some(place), Some(name)) = (places.time, &columns.time) {
        builder.time(row.field(place)).map_err(at(name))?;
    }
    let Some(values) = builder.row(row.line) else { return Ok(()) };
    for (&place, name) in places.y.iter().zip(&columns.y) {
        values.y.push(number::number(row.field(place)).map_err(at(name))?.unwrap_or(f64::NAN));
    }
    for (&place, name) in places.u.iter().zip(&columns.u) {
        let value = number::number(row.field(place)).map_err(at(name))?;
        values.u.push(value.ok_or_else(|| at(name)(DataProblem::MissingInput))?);
    }
    Ok(())
}

/// Names of the columns that hold numbers (or blanks, but not blanks alone) in the first rows.
pub(crate) fn numeric_columns(path: &Path) -> Result<Vec<String>, DataError> {
    const ROWS: usize = 200;
    let mut table = Table::open(path)?;
    let columns = table.header.columns.clone();
    let mut numbers = vec![0; columns.len()];
    let mut texts = vec![0; columns.len()];
    for _ in 0..ROWS {
        let Some(row) = table.next()? else { break };
        for (c, field) in row.iter().enumerate().take(columns.len()) {
            match number::number(field) {
                Ok(Some(_)) => numbers[c] += 1,
                Ok(None) => {}
                Err(_) => texts[c] += 1,
            }
        }
    }
    let numeric = |c: &usize| numbers[*c] > 0 && texts[*c] == 0;
    Ok((0..columns.len()).filter(numeric).map(|c| columns[c].clone()).collect())
}
