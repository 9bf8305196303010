//! What can be wrong with a run file or an option.

use std::fmt;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere in particular: a default.
    #[default]
    Default,
    /// A line of the run file, from 1.
    Line(usize),
    /// An option of the command line, as it was written.
    Option(Arc<str>),
}

/// What is wrong with a run file or an option, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// The run file, if there is one.
    pub file: Option<String>,
    /// The key, such as `model.kernel`; empty if the file is no TOML at all.
    pub key: String,
    /// Where its value comes from.
    pub origin: Origin,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, &self.file) {
            (Origin::Option(option), _) => write!(formatter, "{option}: ")?,
            (_, Some(file)) => write!(formatter, "{file}: ")?,
            (_, None) => {}
        }
        if !self.key.is_empty() {
            write!(formatter, "{}: ", self.key)?;
        }
        // Messages of parsers may have several lines.
        write!(formatter, "{}", self.message.trim().replace('\n', "; "))?;
        match self.origin {
            Origin::Line(line) => write!(formatter, " (line {line})"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}
