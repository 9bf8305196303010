//! What was read in an unusual way, counted and told once.

use std::collections::BTreeMap;

use crate::wording::one_line;

/// Counts of unusual fields.
#[derive(Default)]
pub(super) struct Tally {
    /// Line of the row under way.
    pub(super) line: u64,
    /// Words that stand for missing values: how often, and the first line.
    words: BTreeMap<String, (usize, u64)>,
    /// First line with TRUE or FALSE.
    booleans: Option<u64>,
    /// First row with blank fields beyond the header's, and how many there are.
    extra: Option<(u64, usize)>,
    /// First row that is blank between its separators, and how many there are.
    blank: Option<(u64, usize)>,
    /// First comment below the header, and how many there are.
    comments: Option<(u64, usize)>,
    /// First line that repeats the header, and how many there are.
    headers: Option<(u64, usize)>,
}

fn count(place: &mut Option<(u64, usize)>, line: u64) {
    place.get_or_insert((line, 0)).1 += 1;
}

impl Tally {
    pub(super) fn missing(&mut self, word: &str) {
        self.words.entry(word.to_owned()).or_insert((0, self.line)).0 += 1;
    }

    pub(super) fn booleans(&mut self) {
        self.booleans.get_or_insert(self.line);
    }

    pub(super) fn extra_field(&mut self) {
        count(&mut self.extra, self.line);
    }

    pub(super) fn blank_row(&mut self, line: u64) {
        count(&mut self.blank, line);
    }

    pub(super) fn comment(&mut self) {
        count(&mut self.comments, self.line);
    }

    pub(super) fn header(&mut self) {
        count(&mut self.headers, self.line);
    }

    /// Sentences, without a stop.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let words: Vec<String> = self
            .words
            .iter()
            .map(|(word, (n, line))| match n {
                1 => format!("'{}' (line {line})", one_line(word)),
                2 => format!("'{}' (twice, first in line {line})", one_line(word)),
                n => format!("'{}' ({n} times, first in line {line})", one_line(word)),
            })
            .collect();
        if !words.is_empty() {
            let are = if words.len() == 1 { "is" } else { "are" };
            notes.push(format!("{} {are} read as missing", words.join(" and ")));
        }
        if let Some(line) = self.booleans {
            notes.push(format!("TRUE and FALSE are read as 1 and 0 (first in line {line})"));
        }
        for (place, what) in [
            (&self.extra, "rows end in blank fields that the header does not name, which were skipped"),
            (&self.blank, "blank rows were skipped"),
            (&self.comments, "comments were skipped"),
            (
                &self.headers,
                "lines repeat the header and were skipped; if files were joined here, check that they are one run",
            ),
        ] {
            if let Some((line, n)) = place {
                notes.push(format!("{n} {what} (first in line {line})"));
            }
        }
        notes
    }
}
