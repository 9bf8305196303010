//! What can be wrong with a data file.

use thiserror::Error;

use crate::suggest::{did_you_mean, list, one_line};

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
        .there.first().map_or("y", String::as_str), list(.there.iter().map(String::as_str)))]
    NoOutputs {
        /// Columns that there are.
        there: Vec<String>,
    },
    /// There is no such column.
    #[error("there is no column '{}'{} (columns: {})",
        one_line(.name), did_you_mean(.name, .there.iter().map(String::as_str)), list(.there.iter().map(String::as_str)))]
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
    #[error("{found} fields, but the header names {expected}{}",
        if found > expected { " (decimal commas? numbers need a decimal point)" } else { "" })]
    Ragged {
        /// Fields in this row.
        found: usize,
        /// Columns of the header.
        expected: usize,
    },
    /// 1,5.
    #[error("'{}' has a decimal comma: write numbers with a decimal point", one_line(.text))]
    DecimalComma {
        /// What stands there.
        text: String,
    },
    /// Text.
    #[error("'{}' is not a number (leave missing outputs blank, or write NA)", one_line(.text))]
    NotANumber {
        /// What stands there.
        text: String,
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
    #[error("'{}' is neither a number nor a date such as 2024-01-31 or 2024-01-31T12:00:00", one_line(.text))]
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
    /// A blank line in a file with one column: a missing value, or a stray line?
    #[error("a blank line: write NA if a value is missing, or take the line out")]
    BlankLine,
    /// A time appears twice.
    #[error("the time {} is the same as in the row before{}", one_line(.time), sequences_advice())]
    TimeRepeats {
        /// The time.
        time: String,
    },
    /// Times are not in order.
    #[error("the time {} comes after {}: sort the rows by time{}", one_line(.time), one_line(.before), sequences_advice())]
    TimeGoesBack {
        /// The time.
        time: String,
        /// The time in the row before.
        before: String,
    },
    /// A step of another length.
    #[error("the time step is {step}, but {usual} elsewhere: {}", step_advice(*.missing_rows))]
    IrregularStep {
        /// This step.
        step: f64,
        /// The usual step.
        usual: f64,
        /// Rows that are missing, if the step is a multiple of the usual one.
        missing_rows: Option<u64>,
    },
    /// Sequences with different steps.
    #[error("the time step of sequence '{}' is {step}, that of the first {first}: all must be the same", one_line(.label))]
    DifferentSteps {
        /// The sequence.
        label: String,
        /// Its step.
        step: f64,
        /// That of the first sequence.
        first: f64,
    },
    /// One sequence has a row a month, another one has not.
    #[error("other sequences step by months, this one does not")]
    NotMonths,
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
    /// Both a column and a sampling time.
    #[error("give either a column of times or the sampling time dt, not both")]
    TimeAndStep,
    /// What the engine says.
    #[error("{0}")]
    Other(String),
}

fn sequences_advice() -> &'static str {
    " (if the file holds several sequences, name the column that tells them apart with --sequence)"
}

fn step_advice(missing_rows: Option<u64>) -> String {
    match missing_rows {
        Some(1) => "one row is missing before this one; put it in, with blank outputs".to_owned(),
        Some(n) => format!("{n} rows are missing before this one; put them in, with blank outputs"),
        None => "the model needs equal steps; resample the data first".to_owned(),
    }
}

/// Errors of one file.
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
