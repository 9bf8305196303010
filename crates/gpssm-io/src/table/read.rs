//! A file as a record.

use std::collections::HashSet;
use std::path::Path;

use gpssm::{Record, Sequence};

use super::encoding::decode;
use super::error::{Blame, DataError, DataProblem};
use super::number::number;
use super::open::{Table, TableHeader};
use super::order::find_order;
use super::rows::Row;
use super::sequences::{Builder, Finished};
use super::stamp::Order;
use super::style::{Evidence, Style};
use super::tally::Tally;
use super::times::TimeReader;
use super::watch::Watch;
use super::{Columns, Data, count_missing, fingerprint};

/// Reads the record.
pub fn read_record(path: &Path, columns: &Columns) -> Result<Data, DataError> {
    let mut order = None;
    let mut style = Style::PLAIN;
    loop {
        let found = read_as(path, columns, order, style);
        let Err(error) = &found else { return found };
        // Only a second look at the whole file tells how numbers and dates are written.
        match *error.problem {
            DataProblem::Marks { .. } if style.is_plain() => style = find_style(path, columns, error)?,
            DataProblem::DayOrMonth { .. } if order.is_none() => order = Some(find_order(path, columns)?),
            _ => return found,
        }
    }
}

/// Rows of units and descriptions; more of them are data that are no numbers.
const MOST_UNITS: usize = 3;

fn read_as(path: &Path, columns: &Columns, order: Option<Order>, style: Style) -> Result<Data, DataError> {
    let mut table = Table::open(path, &columns.names())?;
    let header = table.header.clone();
    let blame = Blame { file: &header.file };
    let places = Places::find(&header, columns).map_err(|problem| blame.file(problem))?;
    let (from, to) = columns.rows.unwrap_or((1, usize::MAX));
    let times = TimeReader::new(order.unwrap_or(Order::Day), style);
    let mut reader = Reader {
        columns,
        places,
        style,
        order,
        tally: Tally::default(),
        builder: Builder::new(columns, &header.file, times),
        watch: Watch::new(&header, columns),
        blame,
    };
    let mut notes = table.notes.clone();
    notes.extend(style.describe());
    let (mut n_read, mut n_units) = (0, 0);
    let mut blank = Vec::new();
    while n_read < to {
        let Some(row) = table.next()? else { break };
        reader.tally.line = row.line;
        if row.is_blank() && row.len() > 1 {
            blank.push((row.line, row.len()));
            continue;
        }
        if row.iter().map(<[u8]>::trim_ascii).eq(header.columns.iter().map(|name| name.trim().as_bytes())) {
            reader.tally.header();
            continue;
        }
        if row.len() != header.columns.len() && row.field(0).trim_ascii_start().starts_with(b"#") {
            reader.tally.comment();
            continue;
        }
        if n_read == 0 && n_units < MOST_UNITS && reader.is_units(&row) {
            n_units += 1;
            notes.push(format!("line {} holds units or descriptions and was skipped", row.line));
            continue;
        }
        for (line, n) in blank.drain(..) {
            if columns.time.is_some() {
                reader.tally.blank_row(line);
                continue;
            }
            // Without times a row counts as one.
            n_read += 1;
            if (from..=to).contains(&n_read) {
                reader.blank_row(line, n.max(header.columns.len()))?;
            }
        }
        n_read += 1;
        if row.blank_lines > 0 && header.columns.len() == 1 {
            return Err(blame.line(row.line - row.blank_lines, DataProblem::BlankLine));
        }
        if (from..=to).contains(&n_read) {
            reader.check_fields(&row, header.columns.len())?;
            reader.row(&row)?;
        }
    }
    blank.iter().for_each(|(line, _)| reader.tally.blank_row(*line));
    if n_read == 0 {
        return Err(blame.file(DataProblem::NoRows));
    }
    if n_read < from || (columns.rows.is_some() && n_read < to) {
        return Err(blame.file(DataProblem::BadRows { from, to, there: Some(n_read) }));
    }
    let Reader { tally, builder, watch, .. } = reader;
    notes.extend(tally.notes());
    notes
        .extend(watch.finish(columns).map_err(|(line, column, problem)| blame.cell(line, &column, problem))?);
    finish(path, columns, builder.finish()?, notes, &blame)
}

/// The record of the rows that were read.
fn finish(
    path: &Path,
    columns: &Columns,
    rows: Finished,
    mut notes: Vec<String>,
    blame: &Blame,
) -> Result<Data, DataError> {
    let Finished { sequences, time, measured_time, time_unit, dates, dt, labels, lines, notes: more } = rows;
    notes.extend(more);
    let (n_y, n_u) = (columns.y.len(), columns.u.len());
    let other = |error: gpssm::Error| blame.file(DataProblem::Other(error.to_string()));
    let sequences = sequences.into_iter().map(|s| Sequence::from_flat(s.y, n_y, s.u, n_u));
    let measured = Record::new(sequences.collect::<Result<_, _>>().map_err(other)?).map_err(other)?;
    let layout = columns.layout();
    let record = layout.apply_to(&measured).map_err(other)?;
    notes.extend(super::watch::marks_of_missing(&measured, &columns.y, &columns.u));
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
        dates: dates.map(|dates| super::Dates { measured: measured_time, ..dates }),
        notes,
    })
}

/// Rows on their way into sequences.
struct Reader<'a> {
    columns: &'a Columns,
    places: Places,
    style: Style,
    order: Option<Order>,
    tally: Tally,
    builder: Builder<'a>,
    watch: Watch,
    blame: Blame<'a>,
}

impl Reader<'_> {
    fn check_fields(&mut self, row: &Row, expected: usize) -> Result<(), DataError> {
        let found = row.len();
        if found > expected && row.iter().skip(expected).all(|field| field.trim_ascii().is_empty()) {
            self.tally.extra_field();
            return Ok(());
        }
        match found == expected {
            true => Ok(()),
            false => {
                let advice = advice_on_fields(row, expected);
                Err(self.blame.line(row.line, DataProblem::Ragged { found, expected, advice }))
            }
        }
    }

    /// Whether the first row below the header has texts where numbers are asked for, and no number.
    fn is_units(&mut self, row: &Row) -> bool {
        let mut scratch = Tally::default();
        let mut texts = 0;
        for place in self.places.numeric() {
            let Some(field) = row.get(place) else { return false };
            match number(field, self.style, &mut scratch) {
                Ok(Some(_)) | Err(DataProblem::Marks { .. } | DataProblem::NotFinite { .. }) => return false,
                Ok(None) => {}
                // 12.5 bar is a number with a unit.
                Err(DataProblem::NotANumber { has_unit: true, .. }) => return false,
                Err(_) => texts += 1,
            }
        }
        let time = self.places.time.and_then(|place| row.get(place));
        let is_time = time.is_some_and(|field| {
            TimeReader::new(Order::Day, self.style).read(field, row.line).is_ok()
                || TimeReader::new(Order::Month, self.style).read(field, row.line).is_ok()
        });
        texts > 0 && !is_time
    }

    fn row(&mut self, row: &Row) -> Result<(), DataError> {
        self.watch.row(row);
        let (columns, line, blame) = (self.columns, row.line, &self.blame);
        let at = |name: &String| {
            let name = name.clone();
            move |problem| blame.cell(line, &name, problem)
        };
        if let Some(place) = self.places.sequence {
            self.builder.label(decode(row.field(place)).trim(), line)?;
        }
        if let (Some(place), Some(name)) = (self.places.time, &columns.time) {
            let field = row.field(place);
            if self.order.is_none() && std::str::from_utf8(field).is_ok_and(super::stamp::is_ambiguous) {
                let text = String::from_utf8_lossy(field).into_owned();
                return Err(at(name)(DataProblem::DayOrMonth { text }));
            }
            self.builder.time(field, line).map_err(at(name))?;
        }
        let Some(values) = self.builder.row(line) else { return Ok(()) };
        for (&place, name) in self.places.y.iter().zip(&columns.y) {
            let value = number(row.field(place), self.style, &mut self.tally).map_err(at(name))?;
            values.y.push(value.unwrap_or(f64::NAN));
        }
        for (&place, name) in self.places.u.iter().zip(&columns.u) {
            let value = number(row.field(place), self.style, &mut self.tally).map_err(at(name))?;
            values.u.push(value.ok_or_else(|| at(name)(DataProblem::MissingInput))?);
        }
        Ok(())
    }

    /// A row with nothing between its separators.
    fn blank_row(&mut self, line: u64, n: usize) -> Result<(), DataError> {
        let fields = vec![(0, 0); n];
        self.row(&Row::of(line, &[], &fields))
    }
}

/// What may have happened to a row with too few or too many fields.
fn advice_on_fields(row: &Row, expected: usize) -> &'static str {
    let has = |mark: u8| row.iter().any(|field| field.contains(&mark));
    match row.len() {
        1 if has(b',') || has(b';') || has(b'\t') => {
            " (are its columns separated by another mark than those of the header?)"
        }
        found if found <= expected => "",
        found if found == expected + 1 && has(b'.') => {
            " (row names that the header leaves out? name their column, too)"
        }
        _ if has(b'.') => "",
        _ => " (decimal commas? separate columns with semicolons, or write decimal points)",
    }
}

/// Where the columns are.
pub(super) struct Places {
    y: Vec<usize>,
    u: Vec<usize>,
    pub(super) time: Option<usize>,
    sequence: Option<usize>,
}

impl Places {
    pub(super) fn find(header: &TableHeader, columns: &Columns) -> Result<Self, DataProblem> {
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

    /// Columns that must hold numbers.
    fn numeric(&self) -> impl Iterator<Item = usize> + '_ {
        self.y.iter().chain(&self.u).copied()
    }
}

/// How the numbers of the file are written, where they are not plain.
fn find_style(path: &Path, columns: &Columns, error: &DataError) -> Result<Style, DataError> {
    let mut table = Table::open(path, &columns.names())?;
    let header = table.header.clone();
    let blame = Blame { file: &header.file };
    let places = Places::find(&header, columns).map_err(|problem| blame.file(problem))?;
    let mut evidence = Evidence::default();
    while let Some(row) = table.next()? {
        let fields = places.numeric().chain(places.time).filter_map(|place| row.get(place));
        fields.filter_map(|field| std::str::from_utf8(field).ok()).for_each(|text| evidence.add(text));
    }
    evidence.style(header.delimiter == b';').map_err(|(text, other)| {
        let problem = Box::new(match other {
            Some(other) => DataProblem::CommaAndPoint { comma: text, point: other },
            None => DataProblem::ThousandOrDecimal { text },
        });
        DataError { problem, ..error.clone() }
    })
}

/// A column that holds numbers, in the first rows.
pub(crate) struct NumericColumn {
    pub(crate) name: String,
    /// Numbers.
    pub(crate) n: usize,
    pub(crate) missing: usize,
    /// Different numbers.
    pub(crate) levels: usize,
}

/// The columns that hold numbers (or blanks, but not blanks alone) in the first rows.
pub(crate) fn numeric_columns(path: &Path) -> Result<Vec<NumericColumn>, DataError> {
    const ROWS: usize = 500;
    let mut table = Table::open(path, &[])?;
    let names = table.header.columns.clone();
    let mut tally = Tally::default();
    let mut columns = vec![(HashSet::new(), 0, 0, false); names.len()];
    for n in 0..ROWS {
        let Some(row) = table.next()? else { break };
        for (field, (levels, numbers, missing, is_text)) in row.iter().zip(&mut columns) {
            match number(field, Style::PLAIN, &mut tally) {
                Ok(Some(_)) | Err(DataProblem::Marks { .. }) => {
                    *numbers += 1;
                    levels.insert(field.to_vec());
                }
                Ok(None) => *missing += 1,
                // A row of units may come first.
                Err(_) => *is_text |= n > 0,
            }
        }
    }
    let found = names.into_iter().zip(columns).filter(|(_, (_, n, _, is_text))| *n > 0 && !is_text);
    Ok(found
        .map(|(name, (levels, n, missing, _))| NumericColumn { name, n, missing, levels: levels.len() })
        .collect())
}
