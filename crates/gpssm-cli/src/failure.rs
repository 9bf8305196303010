//! How the program ends when it cannot go on.

use std::fmt;
use std::path::Path;

use gpssm_io::config::{ConfigError, RunError};
use gpssm_io::fit::FitError;
use gpssm_io::store::StoreError;

/// Exit codes; 0 is success.
pub mod code {
    /// The run could not be finished, through no fault of its input.
    pub const FAILED: u8 = 1;
    /// Bad input.
    pub const BAD_INPUT: u8 = 2;
    /// `--strict` found something to warn about.
    pub const WARNED: u8 = 3;
    /// Stopped by Ctrl-C.
    pub const STOPPED: u8 = 130;
}

/// One line for people, and an exit code for scripts.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong and what to do.
    pub message: String,
    /// Exit code.
    pub code: u8,
}

impl Failure {
    /// Something the user can put right.
    pub fn input(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: code::BAD_INPUT }
    }

    /// Something else.
    pub fn other(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: code::FAILED }
    }

    /// A file that could not be written.
    pub fn writing(path: &Path, error: &std::io::Error) -> Self {
        Self::other(format!("{}: cannot be written: {error}", path.display()))
    }
}

impl From<gpssm::Error> for Failure {
    fn from(error: gpssm::Error) -> Self {
        match error {
            gpssm::Error::Sink { .. } | gpssm::Error::Numerical(_) => Self::other(error),
            _ => Self::input(error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Io { source, .. } if source.kind() != std::io::ErrorKind::NotFound => {
                Self::other(error)
            }
            StoreError::Draw { .. } => Self::other(error),
            _ => Self::input(error),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::input(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::input(error)
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Store(error) => error.into(),
            FitError::Engine(error) => error.into(),
            FitError::Run(_) | FitError::NoSuchChain { .. } => Self::input(error),
        }
    }
}
