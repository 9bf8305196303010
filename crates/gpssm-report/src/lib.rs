//! Reports of gpssm: one HTML file with inline figures, which opens offline and prints well.
//!
//! - [`report`]: the page, from a problem, its draws and what the caller knows of the run
//! - [`content`]: what is shown; [`page`]: how it is put into HTML
//! - [`figures`]: single figures as SVG files, for papers and documentation
//! - [`comparison`]: the page of several models over one record
//! - [`checks`]: the page of checks of a fitted model
//! - [`ranks`]: the page of simulation-based calibration
//! - [`chart`]: axes, marks, panels, on which all of these stand
//!
//! Everything depends on its input alone: the same input gives the same bytes. Names and texts may hold
//! anything; they are escaped. Nothing here reads or writes files.

pub mod chart;
pub mod checks;
pub mod comparison;
pub mod content;
mod error;
pub mod figures;
pub mod page;
pub mod ranks;

pub use content::{Light, Lights, Names, ReportInput};
pub use error::Error;

/// The report as one HTML page.
pub fn report(input: &ReportInput) -> Result<String, Error> {
    Ok(page::page(&content::contents(input)?))
}
