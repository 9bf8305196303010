//! Tables that other programs read: CSV or Parquet, by the ending of the file name. Parquet is there if the program was built
//! with the feature of this name.

#[cfg(feature = "parquet")]
mod parquet;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use gpssm_io::table::Clock;
use gpssm_report::content::Contents;
use gpssm_report::page::{figure_files, page};

use crate::failure::Failure;

/// Ends the program without a word where standard output was closed, as `head` does: who reads has seen enough.
pub fn forgive_closed_pipes() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The standard library says so and has no other way to tell.
        let said = panic.payload().downcast_ref::<String>();
        if said
            .is_some_and(|said| said.starts_with("failed printing to stdout") && said.contains("roken pipe"))
        {
            std::process::exit(0);
        }
        usual(panic);
    }));
}

/// Values of one column.
pub enum Column {
    /// Numbers; what is not finite is written as missing.
    Numbers(Vec<f64>),
    /// Counts and indices.
    Integers(Vec<i64>),
    /// Names.
    Texts(Vec<String>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    fn cell(&self, row: usize) -> String {
        match self {
            Self::Numbers(values) if values[row].is_finite() => values[row].to_string(),
            Self::Numbers(_) => String::new(),
            Self::Integers(values) => values[row].to_string(),
            Self::Texts(values) => values[row].clone(),
        }
    }
}

/// Named columns of equal length.
#[derive(Default)]
pub struct Output {
    columns: Vec<(String, Column)>,
}

impl Output {
    /// Adds a column.
    pub fn add(&mut self, name: impl Into<String>, column: Column) {
        self.columns.push((name.into(), column));
    }

    /// Adds a column of numbers.
    pub fn numbers(&mut self, name: impl Into<String>, values: Vec<f64>) {
        self.add(name, Column::Numbers(values));
    }

    /// Adds a column of times, as the data file writes them.
    pub fn times(&mut self, clock: &Clock, values: Vec<f64>) {
        match clock.has_dates() {
            true => self.add("time", Column::Texts(clock.texts(&values))),
            false => self.numbers("time", values),
        }
    }

    fn n_rows(&self) -> usize {
        self.columns.iter().map(|(_, column)| column.len()).min().unwrap_or(0)
    }

    /// Writes CSV to standard output, or a file of the kind its name says. An existing file is replaced only when
    /// the new one is complete.
    pub fn write(&self, path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = path else {
            return match self.csv(std::io::stdout().lock()) {
                // Whoever reads has seen enough.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                written => written
                    .map_err(|error| Failure::other(format!("standard output cannot be written: {error}"))),
            };
        };
        let partial = path.with_extension("partial");
        let written = File::create(&partial).and_then(|file| {
            #[cfg(feature = "parquet")]
            if is_parquet(path) {
                return parquet::write(&self.columns, file);
            }
            self.csv(std::io::BufWriter::new(file))
        });
        let renamed = written.and_then(|()| std::fs::rename(&partial, path));
        renamed.map_err(|error| {
            // The partial file is of no use to anyone; its own failure to go away says nothing new.
            let _ = std::fs::remove_file(&partial);
            Failure::writing(path, &error)
        })
    }

    fn csv(&self, to: impl Write) -> std::io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(self.columns.iter().map(|(name, _)| name)).map_err(cause)?;
        for row in 0..self.n_rows() {
            writer.write_record(self.columns.iter().map(|(_, column)| column.cell(row))).map_err(cause)?;
        }
        writer.flush()
    }
}

/// What went wrong with the file or the pipe: an error of the writer hides its kind.
fn cause(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "parquet")
}

/// Writes a page or a figure, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    let partial = path.with_extension("partial");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        // As with tables, nothing new is said if it cannot be taken away.
        let _ = std::fs::remove_file(&partial);
        Failure::writing(path, &error)
    })
}

/// Writes a page, and its figures into a folder if one is named.
pub fn write_page(contents: &Contents, out: &Path, figures: Option<&Path>) -> Result<(), Failure> {
    if let Some(folder) = figures {
        std::fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
        for (name, svg) in figure_files(contents) {
            write_text(&folder.join(name), &svg)?;
        }
    }
    write_text(out, &page(contents))
}

/// Refuses, before any work is done, tables of unknown kind and places where they cannot go.
pub fn check_table(path: &Path, read: &[&Path]) -> Result<(), Failure> {
    if !is_parquet(path) && path.extension().is_none_or(|ending| ending != "csv") {
        let advice = "tables are written as .csv or .parquet; choose one of them";
        return Err(Failure::input(format!("{}: {advice}", path.display())));
    }
    if is_parquet(path) && !cfg!(feature = "parquet") {
        let advice = "this gpssm was built without Parquet; write .csv, or build it with --features parquet";
        return Err(Failure::input(format!("{}: {advice}", path.display())));
    }
    check_file(path, read)
}

/// Refuses a place where no file can be written, or where one of the files lies that are read.
pub fn check_file(path: &Path, read: &[&Path]) -> Result<(), Failure> {
    check_folder(path)?;
    if path.is_dir() {
        return Err(Failure::input(format!("{}: this is a folder; give the name of a file", path.display())));
    }
    let same =
        |other: &&Path| matches!((path.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if read.iter().any(same) {
        let advice = "this command reads it; choose another name for what is written";
        return Err(Failure::input(format!("{}: {advice}", path.display())));
    }
    Ok(())
}

/// Refuses a place whose folder is not there.
pub fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(Failure::input(format!(
            "{}: there is no folder {}; make it first",
            path.display(),
            folder.display()
        ))),
        None => Ok(()),
    }
}
