//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Every error names the file it is about.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// There is something at this place already.
    #[error("{}: exists already: resume it, or give another name", path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// Another process writes to this store.
    #[error("{}: in use by another process: wait for it, or stop it first", path.display())]
    Locked {
        /// Which store.
        path: PathBuf,
    },
    /// Not a store, or one of a kind that this version cannot read.
    #[error("{}: not a gpssm run: {message}", path.display())]
    NotAStore {
        /// Which file.
        path: PathBuf,
        /// Why not.
        message: String,
    },
    /// A file of the store is missing or not as it was written.
    #[error("{}: damaged: {message}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The store belongs to another run.
    #[error("{}: another run: {message}", path.display())]
    Different {
        /// Which store.
        path: PathBuf,
        /// What differs.
        message: String,
    },
    /// A description that contradicts itself.
    #[error("run: {message}")]
    Description {
        /// What is wrong.
        message: String,
    },
    /// A draw that does not belong here.
    #[error("chain {chain}: {message}")]
    Draw {
        /// Its chain.
        chain: u32,
        /// What is wrong.
        message: String,
    },
}

impl StoreError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }

    pub(super) fn damaged(path: &Path, message: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), message: message.into() }
    }

    pub(super) fn foreign(path: &Path, message: impl Into<String>) -> Self {
        Self::NotAStore { path: path.to_path_buf(), message: message.into() }
    }

    pub(super) fn different(path: &Path, message: impl Into<String>) -> Self {
        Self::Different { path: path.to_path_buf(), message: message.into() }
    }
}

impl From<StoreError> for gpssm::Error {
    fn from(error: StoreError) -> Self {
        Self::Sink { message: error.to_string() }
    }
}
