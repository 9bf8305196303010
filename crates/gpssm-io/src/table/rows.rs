//! Rows of a delimited text file, each with its line in the file.
//!
//! Quotes follow the usual rules: a field that starts with `"` ends at the next lone `"`, `""` stands for one,
//! and line breaks inside belong to the field. Lines end in LF or CR LF.

use std::io::{self, BufRead, BufReader, Read};

use super::error::DataProblem;

/// More than this is no row of numbers; it bounds the memory that a hostile file can ask for.
const LONGEST_ROW: u64 = 1 << 24;

pub(super) struct Rows<R> {
    reader: BufReader<R>,
    delimiter: u8,
    /// Lines read so far.
    line: u64,
    /// The row as it stands, where its fields are, and the same without quotes where it has some.
    text: Vec<u8>,
    fields: Vec<(usize, usize)>,
    unquoted: Vec<u8>,
}

/// A row and where it starts.
pub(super) struct Row<'a> {
    /// Line in the file, from 1.
    pub(super) line: u64,
    /// Blank lines before it.
    pub(super) blank_lines: u64,
    bytes: &'a [u8],
    fields: &'a [(usize, usize)],
}

impl<'a> Row<'a> {
    /// A row of these fields.
    pub(super) fn of(line: u64, bytes: &'a [u8], fields: &'a [(usize, usize)]) -> Self {
        Self { line, blank_lines: 0, bytes, fields }
    }

    pub(super) fn get(&self, index: usize) -> Option<&'a [u8]> {
        (index < self.fields.len()).then(|| self.field(index))
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn field(&self, index: usize) -> &'a [u8] {
        let (from, to) = self.fields[index];
        &self.bytes[from..to]
    }

    /// Whether there is nothing between the separators.
    pub(super) fn is_blank(&self) -> bool {
        self.iter().all(|field| field.trim_ascii().is_empty())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().map(|&(from, to)| &self.bytes[from..to])
    }
}

/// What is wrong in which line.
pub(super) type RowError = (u64, DataProblem);

impl<R: Read> Rows<R> {
    /// Rows after so many lines.
    pub(super) fn new(reader: BufReader<R>, delimiter: u8, line: u64) -> Self {
        let (text, fields, unquoted) = (Vec::new(), Vec::new(), Vec::new());
        Self { reader, delimiter, line, text, fields, unquoted }
    }

    /// The next row; none at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>, RowError> {
        let mut blank_lines = 0;
        loop {
            self.text.clear();
            if !self.append_line()? {
                return Ok(None);
            }
            if !self.text.is_empty() {
                break;
            }
            blank_lines += 1;
        }
        let line = self.line;
        self.fields.clear();
        if self.text.contains(&b'"') {
            self.split_quoted(line)?;
            return Ok(Some(Row { line, blank_lines, bytes: &self.unquoted, fields: &self.fields }));
        }
        let mut from = 0;
        for (at, &byte) in self.text.iter().enumerate() {
            if byte == self.delimiter {
                self.fields.push((from, at));
                from = at + 1;
            }
        }
        self.fields.push((from, self.text.len()));
        Ok(Some(Row { line, blank_lines, bytes: &self.text, fields: &self.fields }))
    }

    /// Appends one line without its end; false at the end of the file.
    fn append_line(&mut self) -> Result<bool, RowError> {
        let before = self.text.len();
        let mut limited = Read::by_ref(&mut self.reader).take(LONGEST_ROW - before as u64);
        let read =
            limited.read_until(b'\n', &mut self.text).map_err(|error| (self.line, unreadable(&error)))?;
        if read == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        } else if self.text.len() as u64 >= LONGEST_ROW {
            return Err((self.line, DataProblem::LongRow(LONGEST_ROW)));
        }
        if self.text.len() > before && self.text.last() == Some(&b'\r') {
            self.text.pop();
        }
        Ok(true)
    }

    /// Splits a row that has quotes, reading on where a line break is quoted.
    fn split_quoted(&mut self, line: u64) -> Result<(), RowError> {
        self.unquoted.clear();
        let mut at = 0;
        loop {
            let from = self.unquoted.len();
            let quoted = self.text.get(at) == Some(&b'"');
            at += usize::from(quoted);
            let mut inside = quoted;
            loop {
                match self.text.get(at) {
                    Some(b'"') if inside && self.text.get(at + 1) == Some(&b'"') => {
                        self.unquoted.push(b'"');
                        at += 2;
                    }
                    Some(b'"') if inside => {
                        inside = false;
                        at += 1;
                    }
                    Some(&byte) if inside || byte != self.delimiter => {
                        self.unquoted.push(byte);
                        at += 1;
                    }
                    None if inside => {
                        self.unquoted.push(b'\n');
                        if !self.append_line()? {
                            return Err((line, DataProblem::OpenQuote));
                        }
                    }
                    _ => break,
                }
            }
            self.fields.push((from, self.unquoted.len()));
            if at >= self.text.len() {
                return Ok(());
            }
            // The delimiter.
            at += 1;
        }
    }
}

pub(super) fn unreadable(error: &io::Error) -> DataProblem {
    match error.kind() {
        io::ErrorKind::NotFound => DataProblem::NotFound,
        io::ErrorKind::IsADirectory => DataProblem::Directory,
        _ => DataProblem::Unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(u64, Vec<String>)>, RowError> {
        let mut rows = Rows::new(BufReader::new(text.as_bytes()), b',', 0);
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push((row.line, row.iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect()));
        }
        Ok(all)
    }

    fn row(line: u64, fields: &[&str]) -> (u64, Vec<String>) {
        (line, fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn lines_are_counted_as_an_editor_does() {
        for text in ["a,b\n1,2\n\n\n3,\n", "a,b\r\n1,2\r\n\r\n\r\n3,", "a,b\n1,2\r\n\r\n\n3,\n\n\n"] {
            assert_eq!(rows(text), Ok(vec![row(1, &["a", "b"]), row(2, &["1", "2"]), row(5, &["3", ""])]));
        }
        assert_eq!(rows(""), Ok(vec![]));
    }

    #[test]
    fn quotes() {
        assert_eq!(
            rows("\"a,\"\"b\"\"\",c\n\"x\ny\",2\n3,4 \"in\"\n\"\",\"\"\n"),
            Ok(vec![
                row(1, &["a,\"b\"", "c"]),
                row(2, &["x\ny", "2"]),
                row(4, &["3", "4 \"in\""]),
                row(5, &["", ""])
            ])
        );
        assert_eq!(rows("a,\"\"\n"), Ok(vec![row(1, &["a", ""])]));
        assert_eq!(rows("a\n1,\"2\n3\n"), Err((2, DataProblem::OpenQuote)));
    }
}
