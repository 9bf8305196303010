//! What can be wrong with a data file.

use gpssm::formula::did_you_mean;
use thiserror::Error;

use super::watch::{is_sequence_name, is_time_name};
use crate::wording::{list, one_line};

/// What is wrong with a data file, and where.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{file}{}{}: {problem}", at_line(.line), at_column(.column))]
pub struct DataError {
    /// The file, as it was named.
    pub file: String,
    /// Line in the file, from 1.
    pub line: Option<u64>,
    /// Name of the column.
    pub column: Option<String>,
    /// What is wrong.
    pub problem: Box<DataProblem>,
}

fn at_line(line: &Option<u64>) -> String {
    line.map_or(String::new(), |line| format!(", line {line}"))
}

fn at_column(column: &Option<String>) -> String {
    column.as_ref().map_or(String::new(), |name| format!(", column '{}'", one_line(name)))
}

/// What is wrong with a data file.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DataProblem {
    /// There is no such file.
    #[error("there is no such file")]
    NotFound,
    /// It is a folder.
    #[error("this is a folder, not a CSV file")]
    Directory,
    /// The system refused.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Nothing in it.
    #[error("the file is empty: a header line and rows of numbers are expected")]
    Empty,
    /// Not text.
    #[error("this is {0}, not a CSV file: save it as CSV (text, UTF-8)")]
    NotText(&'static str),
    /// Not UTF-8.
    #[error("the text is not UTF-8: save the file with the encoding UTF-8")]
    Encoding,
    /// The first line holds numbers.
    #[error("there is no header: the first line must name the columns, but it holds numbers")]
    NoHeader,
    /// Only a header.
    #[error("there are no rows below the header")]
    NoRows,
    /// Carriage returns only.
    #[error("lines end in a carriage return alone: save the file with ordinary line ends")]
    LineEnds,
    /// A quoted field that never ends.
    #[error("a quote is opened here and never closed")]
    OpenQuote,
    /// A row that cannot be one.
    #[error("a row of more than {0} bytes: this is not a table of numbers")]
    LongRow(u64),
    /// No output was asked for.
    #[error("no output is named: say which columns are outputs, such as --y {}; there are: {}",
        likely_output(.there), list(.there.iter().map(String::as_str)))]
    NoOutputs {
        /// Columns that there are.
        there: Vec<String>,
    },
    /// There is no such column.
    #[error("there is no column '{}'{} (columns: {})",
        one_line(.name), meant(.name, .there), list(.there.iter().map(String::as_str)))]
    UnknownColumn {
        /// The name asked for.
        name: String,
        /// Columns that there are.
        there: Vec<String>,
    },
    /// Two columns have the name asked for.
    #[error("{count} columns have the name '{}': rename all but one", one_line(.name))]
    AmbiguousColumn {
        /// The name.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// The same column is to be two things.
    #[error("column '{}' is named twice, as {first} and as {second}", one_line(.name))]
    AskedTwice {
        /// The name.
        name: String,
        /// Its first role.
        first: &'static str,
        /// Its second role.
        second: &'static str,
    },
    /// A row has too few or too many fields.
    #[error("{found} {}, but the header names {expected}{advice}", if *.found == 1 { "field" } else { "fields" })]
    Ragged {
        /// Fields in this row.
        found: usize,
        /// Columns of the header.
        expected: usize,
        /// What may have happened.
        advice: &'static str,
    },
    /// 1,5: a number only in another style than that of programs.
    #[error("'{}' is not written like the other numbers of the file", one_line(.text))]
    Marks {
        /// What stands there.
        text: String,
    },
    /// 1,234.
    #[error("'{}' may be a decimal number or one in thousands: write numbers with a decimal point and without separators of thousands", one_line(.text))]
    ThousandOrDecimal {
        /// What stands there.
        text: String,
    },
    /// 1,5 and 1.5 in one file.
    #[error("'{}' has a decimal comma, but '{}' a decimal point: write all numbers with a decimal point", one_line(.comma), one_line(.point))]
    CommaAndPoint {
        /// A number with a comma.
        comma: String,
        /// One with a point.
        point: String,
    },
    /// 03/04/2024.
    #[error("'{}' may have the day or the month first: write dates such as 2024-01-31", one_line(.text))]
    DayOrMonth {
        /// What stands there.
        text: String,
    },
    /// Text.
    #[error("'{}' is not a number ({})", one_line(.text),
        if *.has_unit || .text.chars().any(char::is_numeric) { "write the number alone, and its unit in the header" } else { "leave missing outputs blank or write NA, and write words as numbers, such as 0 and 1" })]
    NotANumber {
        /// What stands there.
        text: String,
        /// Whether a number stands before the text.
        has_unit: bool,
    },
    /// Infinite, or beyond the range of 64-bit floats.
    #[error("'{}' is not a finite number", one_line(.text))]
    NotFinite {
        /// What stands there.
        text: String,
    },
    /// Inputs must be known.
    #[error(
        "the input is missing: inputs must be known in every row (fill the gap, or choose rows without it)"
    )]
    MissingInput,
    /// No time in this row.
    #[error("the time is missing")]
    MissingTime,
    /// No label in this row.
    #[error("the label of the sequence is missing")]
    MissingLabel,
    /// Neither a number nor a date.
    #[error("'{}' is neither a number nor a date such as 2024-01-31, 2024-01-31T12:00:00 or 2024-01-31T12:00:00+01:00", one_line(.text))]
    BadTime {
        /// What stands there.
        text: String,
    },
    /// Numbers and dates in one column.
    #[error("'{}' is a {found}, but the times before it are {before}s", one_line(.text))]
    MixedTimes {
        /// What stands there.
        text: String,
        /// number or date.
        found: &'static str,
        /// number or date.
        before: &'static str,
    },
    /// Time zones in some rows only.
    #[error("'{}': some time stamps have a time zone and some have none: write all with the zone, or all without", one_line(.text))]
    MixedZones {
        /// What stands there.
        text: String,
    },
    /// Clocks go back.
    #[error("the time {} is not after the one before, as where daylight saving ends: write times in UTC, or with their offset (such as 2024-10-27T02:00:00+01:00)", one_line(.time))]
    ClocksBack {
        /// The time.
        time: String,
    },
    /// Clocks go forward.
    #[error("an hour is missing before {}, as where daylight saving begins: write times in UTC, or with their offset (such as 2024-03-31T03:00:00+02:00)", one_line(.time))]
    ClocksForward {
        /// The time.
        time: String,
    },
    /// Labels of runs that nobody named.
    #[error("this column labels {runs} runs, which must not be joined: add --sequence {} (or choose one with --rows)", quoted(.column))]
    JoinedRuns {
        /// How many.
        runs: usize,
        /// The column.
        column: String,
    },
    /// Times that nobody named begin again.
    #[error(
        "the time goes back here: if a new run begins, name the column that labels the runs with --sequence (or choose one with --rows); if rows are equally spaced all the same, say so with --dt"
    )]
    TimeRestarts,
    /// A blank line in a file with one column: a missing value, or a stray line?
    #[error("a blank line: write NA if a value is missing, or take the line out")]
    BlankLine,
    /// A time appears twice.
    #[error("the time {} is the same as in the row before{}", one_line(.time), repeated_advice(.time))]
    TimeRepeats {
        /// The time.
        time: String,
    },
    /// Times are not in order.
    #[error("the time {} comes after {}: {}", one_line(.time), one_line(.before), back_advice(.time))]
    TimeGoesBack {
        /// The time.
        time: String,
        /// The time in the row before.
        before: String,
    },
    /// Stamps that are on no grid.
    #[error("the time step is {step}, but {usual} elsewhere: {}", grid_advice(.finest, *.stamps))]
    IrregularStep {
        /// This step.
        step: String,
        /// The usual step.
        usual: String,
        /// The finest common grid, if there is one, and its rows.
        finest: Option<(String, usize)>,
        /// Stamps that there are.
        stamps: usize,
    },
    /// A gap of more rows than are made up.
    #[error(
        "{rows} rows are missing before this one, beside {stamps} rows with a time: make two runs of it (--sequence), or choose one with --rows"
    )]
    LongGap {
        /// Missing rows.
        rows: usize,
        /// Stamps that there are.
        stamps: usize,
    },
    /// A stamp beside the grid that was asked for.
    #[error(
        "the time {time} is not on the grid with steps of {step} (--dt) that begins with the first row: give a finer --dt, or resample the data"
    )]
    OffGrid {
        /// The time.
        time: String,
        /// The step.
        step: String,
    },
    /// Sequences with different steps.
    #[error("the time step of sequence '{}' is {step}, that of the first is {first}: all must be the same", one_line(.label))]
    DifferentSteps {
        /// The sequence.
        label: String,
        /// Its step.
        step: String,
        /// That of the first sequence.
        first: String,
    },
    /// A sequence that is in pieces.
    #[error("sequence '{}' goes on here after another one: rows of one sequence must stand together", one_line(.label))]
    SplitSequence {
        /// The sequence.
        label: String,
    },
    /// A sequence without a transition.
    #[error("{} one row: a transition needs two", .label.as_ref().map_or("there is only".to_owned(),
        |label| format!("sequence '{}' has only", one_line(label))))]
    OneRow {
        /// The sequence, if they have labels.
        label: Option<String>,
    },
    /// The choice of rows makes no sense.
    #[error("rows {from} to {to} are asked for, but {}", match .there { Some(n) => format!("there are {n}"),
        None => "rows count from 1 and the first must not come after the last".to_owned() })]
    BadRows {
        /// First row asked for.
        from: usize,
        /// Last row asked for.
        to: usize,
        /// Rows that there are, if that is the problem.
        there: Option<usize>,
    },
    /// Lags of inputs without inputs.
    #[error("input_lags and delay need inputs: name their columns (u)")]
    NoInputsToLag,
    /// More lags than make sense.
    #[error("input_lags or delay of {asked}: at most {most}")]
    TooManyLags {
        /// Asked for.
        asked: usize,
        /// Allowed.
        most: usize,
    },
    /// Thinning by zero.
    #[error("every = 0 keeps no row: it must be at least 1")]
    BadEvery,
    /// A sampling time that is none.
    #[error("the sampling time dt = {0} must be a positive number")]
    BadStep(f64),
    /// What the engine says.
    #[error("{0}")]
    Other(String),
}

fn sequences_advice() -> &'static str {
    " (if the file holds several sequences, name the column that tells them apart with --sequence)"
}

/// A date that comes again may have its clock elsewhere.
fn repeated_advice(time: &str) -> &'static str {
    match time.contains(':') || time.parse::<f64>().is_ok() {
        true => sequences_advice(),
        false => {
            " (if a second column holds the clock, join both into one; if the file holds several sequences, name the column that \
                  tells them apart with --sequence)"
        }
    }
}

/// A clock alone goes back at midnight.
fn back_advice(time: &str) -> String {
    match time.contains(':') && !time.contains(['-', '/', 'T', ' ']) {
        true => "write the date before the clock if midnight is between them; if not, sort the rows by time"
            .to_owned(),
        false => format!("sort the rows by time{}", sequences_advice()),
    }
}

fn grid_advice(finest: &Option<(String, usize)>, stamps: usize) -> String {
    match finest {
        Some((step, rows)) => format!(
            "the finest common grid, with steps of {step}, would have {rows} rows for {stamps} stamps; resample the data, or give a grid with --dt"
        ),
        None => {
            "there is no common grid; resample the data to equal steps, or give a grid with --dt".to_owned()
        }
    }
}

/// A column that may be an output, as a word of a command line: the last that is neither time nor label.
fn likely_output(there: &[String]) -> String {
    let may_be = |name: &&String| !is_time_name(name) && !is_sequence_name(name) && !name.is_empty();
    there.iter().rev().find(may_be).map_or_else(|| "y".to_owned(), |name| quoted(name))
}

/// What was meant by a name that is not there.
fn meant(name: &str, there: &[String]) -> String {
    if let [only] = there
        && only.contains(' ')
    {
        return "; columns seem to be separated by blanks: separate them with commas".to_owned();
    }
    // A name without its unit.
    let mut longer = there.iter().filter(|other| {
        let rest = other.strip_prefix(name).unwrap_or_default().trim_start();
        rest.starts_with(['[', '(', '/', '_', ','])
    });
    match (longer.next(), longer.next()) {
        (Some(only), None) if only.contains(',') => format!(
            "; did you mean '{}'? Names with a comma are given in a model file: y = [{:?}]",
            one_line(only),
            one_line(only)
        ),
        (Some(only), None) => format!("; did you mean '{}'?", one_line(only)),
        _ => did_you_mean(name, there.iter().map(String::as_str)),
    }
}

/// A word of a command line.
fn quoted(word: &str) -> String {
    let plain = word.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    if plain { one_line(word) } else { format!("'{}'", one_line(word)) }
}

/// Errors of one file.
#[derive(Clone, Copy)]
pub(super) struct Blame<'a> {
    pub(super) file: &'a str,
}

impl Blame<'_> {
    pub(super) fn file(&self, problem: DataProblem) -> DataError {
        DataError { file: self.file.to_owned(), line: None, column: None, problem: Box::new(problem) }
    }

    pub(super) fn line(&self, line: u64, problem: DataProblem) -> DataError {
        DataError { line: Some(line), ..self.file(problem) }
    }

    pub(super) fn cell(&self, line: u64, column: &str, problem: DataProblem) -> DataError {
        DataError { column: Some(column.to_owned()), ..self.line(line, problem) }
    }
}
