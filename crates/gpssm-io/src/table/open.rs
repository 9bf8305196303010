//! Opens a data file and reads its header.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use super::error::{Blame, DataError, DataProblem};
use super::number::is_number;
use super::rows::{Row, Rows, unreadable};

/// The header of a data file.
#[derive(Clone, Debug, PartialEq)]
pub struct TableHeader {
    /// The file, as it was named.
    pub file: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// `,`, `;` or a tab.
    pub delimiter: u8,
}

/// A file that was opened and whose header was read.
pub(super) struct Table {
    pub(super) header: TableHeader,
    rows: Rows<std::io::Chain<Cursor<Vec<u8>>, File>>,
}

const BUFFER: usize = 1 << 17;

/// Reads the names of the columns.
pub fn read_header(path: &Path) -> Result<TableHeader, DataError> {
    Table::open(path).map(|table| table.header)
}

impl Table {
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let file_name = path.display().to_string();
        let blame = Blame { file: &file_name };
        let mut file = File::open(path).map_err(|error| blame.file(unreadable(&error)))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(blame.file(DataProblem::Directory));
        }
        let mut start = Vec::with_capacity(BUFFER);
        let beginning = Read::by_ref(&mut file).take(BUFFER as u64).read_to_end(&mut start);
        beginning.map_err(|error| blame.file(unreadable(&error)))?;
        check_text(&start).map_err(|problem| blame.file(problem))?;
        if start.starts_with(b"\xef\xbb\xbf") {
            start.drain(..3);
        }
        let delimiter = delimiter(&start);
        let reader = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(file));
        let mut rows = Rows::new(reader, delimiter);
        let columns = match rows.next() {
            Ok(Some(first)) => names(&first).map_err(|problem| blame.line(first.line, problem))?,
            Ok(None) => return Err(blame.file(DataProblem::Empty)),
            Err((line, problem)) => return Err(blame.line(line, problem)),
        };
        Ok(Self { header: TableHeader { file: file_name, columns, delimiter }, rows })
    }

    /// The next row below the header.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>, DataError> {
        let blame = Blame { file: &self.header.file };
        self.rows.next().map_err(|(line, problem)| blame.line(line, problem))
    }
}

fn names(first: &Row) -> Result<Vec<String>, DataProblem> {
    let name = |field: &[u8]| match std::str::from_utf8(field) {
        Ok(name) => Ok(name.trim().to_owned()),
        Err(_) => Err(DataProblem::Encoding),
    };
    let columns = first.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    if columns.iter().any(|name| name.contains('\r')) {
        return Err(DataProblem::LineEnds);
    }
    if columns.iter().all(String::is_empty) { Err(DataProblem::Empty) } else { Ok(columns) }
}

impl TableHeader {
    /// Where a column is.
    pub(super) fn index(&self, name: &str) -> Result<usize, DataProblem> {
        let mut found = self.columns.iter().enumerate().filter(|(_, column)| *column == name);
        match (found.next(), found.count()) {
            (Some((index, _)), 0) => Ok(index),
            (Some(_), more) => Err(DataProblem::AmbiguousColumn { name: name.to_owned(), count: more + 1 }),
            (None, _) if self.columns.iter().all(|column| is_number(column)) => Err(DataProblem::NoHeader),
            (None, _) => {
                Err(DataProblem::UnknownColumn { name: name.to_owned(), there: self.columns.clone() })
            }
        }
    }
}

/// Tells the usual suspects by their first bytes.
fn check_text(start: &[u8]) -> Result<(), DataProblem> {
    let signatures: [(&[u8], &str); 6] = [
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
        (b"PK\x03\x04", "a spreadsheet or zip archive"),
        (b"\xd0\xcf\x11\xe0", "a spreadsheet"),
        (b"\x1f\x8b", "a compressed file"),
        (b"PAR1", "a Parquet file"),
    ];
    if let Some((_, what)) = signatures.iter().find(|(signature, _)| start.starts_with(signature)) {
        return Err(DataProblem::NotText(what));
    }
    if start.contains(&0) {
        return Err(DataProblem::NotText("a binary file"));
    }
    Ok(())
}

/// The separator that the header uses most; a comma if it uses none.
fn delimiter(start: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    for &byte in start {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if quoted => {}
            _ => counts.iter_mut().filter(|(mark, _)| *mark == byte).for_each(|(_, count)| *count += 1),
        }
    }
    // Of equals the last wins, so the comma comes last.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(mark, _)| *mark)
}
