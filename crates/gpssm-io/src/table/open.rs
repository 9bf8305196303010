//! Opens a data file and reads its header.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use super::encoding::decode;
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
    /// `,`, `;`, `|` or a tab.
    pub delimiter: u8,
    /// Whether the names are written in UTF-8.
    pub is_utf8: bool,
}

/// A file that was opened and whose header was read.
pub(super) struct Table {
    pub(super) header: TableHeader,
    /// What was unusual about the beginning.
    pub(super) notes: Vec<String>,
    rows: Rows<std::io::Chain<Cursor<Vec<u8>>, File>>,
}

const BUFFER: usize = 1 << 17;
/// Lines among which the header is looked for.
const MOST_LINES: usize = 100;

/// Reads the names of the columns.
pub fn read_header(path: &Path) -> Result<TableHeader, DataError> {
    Table::open(path, &[]).map(|table| table.header)
}

impl Table {
    /// Opens a file. The header is the first line, or the first that has all the names that are wanted.
    pub(super) fn open(path: &Path, wanted: &[&str]) -> Result<Self, DataError> {
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
        let place = find_header(&start, wanted);
        start.drain(..place.from);
        let start_of_header: Vec<u8> = start.iter().copied().take_while(|byte| *byte != b'\n').collect();
        let reader = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(file));
        let mut rows = Rows::new(reader, place.delimiter, place.lines);
        let columns = match rows.next() {
            Ok(Some(first)) => names(&first).map_err(|problem| blame.line(first.line, problem))?,
            Ok(None) => return Err(blame.file(DataProblem::Empty)),
            Err((line, problem)) => return Err(blame.line(line, problem)),
        };
        let notes = place.skipped.then(|| {
            format!("the header was found in line {}; the lines above it were skipped", place.lines + 1)
        });
        // Only names in the header matter: numbers and dates are the same in all encodings.
        let is_utf8 = std::str::from_utf8(&start_of_header).is_ok();
        let notes = notes.into_iter().chain((!is_utf8).then(|| {
            "the text is not UTF-8; names are read as Windows-1252, as spreadsheets write them".to_owned()
        }));
        let header = TableHeader { file: file_name, columns, delimiter: place.delimiter, is_utf8 };
        Ok(Self { header, notes: notes.collect(), rows })
    }

    /// The next row below the header.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>, DataError> {
        let blame = Blame { file: &self.header.file };
        self.rows.next().map_err(|(line, problem)| blame.line(line, problem))
    }
}

/// Where the header begins.
struct Place {
    from: usize,
    /// Lines before it.
    lines: u64,
    delimiter: u8,
    /// Whether these lines hold anything that is worth saying.
    skipped: bool,
}

/// Looks for the header: the first line, or the first that has all wanted names.
fn find_header(start: &[u8], wanted: &[&str]) -> Place {
    let (mut at, mut lines, mut forced) = (0, 0, None);
    let mut first: Option<Place> = None;
    for line in start.split_inclusive(|byte| *byte == b'\n').take(MOST_LINES) {
        let text = line.trim_ascii();
        let place = |skipped| Place {
            from: at,
            lines,
            delimiter: forced.unwrap_or_else(|| delimiter(&start[at..])),
            skipped,
        };
        // Spreadsheets write their separator so.
        let separator = text.strip_prefix(b"sep=").and_then(|rest| rest.first().copied());
        if let (Some(separator), None) = (separator, &first) {
            forced = Some(separator);
        } else if !text.is_empty() {
            let own = place(first.as_ref().is_some_and(|first| first.lines < lines));
            if has_all(line, own.delimiter, wanted) {
                return own;
            }
            let is_comment = text.starts_with(b"#") && !wanted.is_empty();
            if first.is_none() && !is_comment {
                first = Some(place(false));
            }
        }
        at += line.len();
        lines += 1;
    }
    first.unwrap_or(Place { from: 0, lines: 0, delimiter: delimiter(start), skipped: false })
}

/// Whether a line names all wanted columns, and there are some.
fn has_all(line: &[u8], delimiter: u8, wanted: &[&str]) -> bool {
    let mut rows = Rows::new(BufReader::new(line), delimiter, 0);
    let Ok(Some(row)) = rows.next() else { return false };
    let Ok(names) = names(&row) else { return false };
    !wanted.is_empty() && wanted.iter().all(|wanted| names.iter().any(|name| name == wanted))
}

fn names(first: &Row) -> Result<Vec<String>, DataProblem> {
    let mut columns: Vec<String> = first.iter().map(|name| decode(name).trim().to_owned()).collect();
    // Programs write headers as comments.
    if let Some(name) = columns[0].strip_prefix('#').map(|name| name.trim().to_owned()) {
        columns[0] = name;
    }
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
            (None, _) if !self.is_utf8 && !name.is_ascii() => Err(DataProblem::Encoding),
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
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
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
