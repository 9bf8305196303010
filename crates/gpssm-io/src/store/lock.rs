//! One writer at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::error::StoreError;

/// Name of the lock's file inside a store; always there, always empty.
pub(super) const LOCK: &str = ".lock";

/// Held as long as a store is open for writing; the system drops it with the process, however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the store in this folder.
    pub(super) fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(LOCK);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(StoreError::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: folder.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(StoreError::io(&path)(error)),
        }
    }
}
