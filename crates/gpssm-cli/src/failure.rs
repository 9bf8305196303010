//! How the program ends when it cannot go on.

use std::fmt;
use std::io::ErrorKind;
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

    /// Ctrl-C, before there was a result.
    pub fn stopped(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: code::STOPPED }
    }

    /// A file that could not be written.
    pub fn writing(path: &Path, error: &std::io::Error) -> Self {
        let message = format!("{}: cannot be written: {error}", path.display());
        if is_of_the_path(error.kind()) { Self::input(message) } else { Self::other(message) }
    }

    /// The message in one line, whatever file names and parsers put into it.
    pub fn line(&self) -> String {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        self.message.chars().map(plain).collect::<String>().trim().to_owned()
    }
}

/// The option that sets what the engine calls by this name.
fn option(key: &str) -> String {
    let name = match key {
        "k" => "keep",
        "n_paths" => "paths",
        "n_samples" => "samples",
        // These have a key of the run file, and no option.
        "narx" | "start_at" => return format!("sampler.{key}"),
        other => other,
    };
    format!("--{}", name.replace('_', "-"))
}

/// Whether another path or other rights would do: that is the user's to change. A full disk is not.
fn is_of_the_path(kind: ErrorKind) -> bool {
    use ErrorKind::{
        AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem,
    };
    let kinds = [
        AlreadyExists,
        InvalidFilename,
        IsADirectory,
        NotADirectory,
        NotFound,
        PermissionDenied,
        ReadOnlyFilesystem,
    ];
    kinds.contains(&kind)
}

impl From<gpssm::Error> for Failure {
    fn from(error: gpssm::Error) -> Self {
        match error {
            gpssm::Error::Sink { .. } | gpssm::Error::Numerical(_) => Self::other(error),
            gpssm::Error::Settings { key, message } => Self::input(format!("{}: {message}", option(&key))),
            _ => Self::input(error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Io { source, .. } if !is_of_the_path(source.kind()) => Self::other(error),
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
            FitError::Run(_) | FitError::NoSuchChain { .. } | FitError::NeedsDraws { .. } => {
                Self::input(error)
            }
        }
    }
}
