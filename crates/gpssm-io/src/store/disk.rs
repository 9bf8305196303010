//! The only place that changes files, so that tests can make every single change fail.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::StoreError;

/// Ending of files that are not yet under their own name; a crash may leave some behind.
pub(super) const TEMPORARY: &str = "gpssm-tmp";

/// What the store does to a file system.
pub(super) trait Disk: Send + Sync {
    /// A file with this content; `durable` if it must survive the loss of power from here on.
    fn write(&self, path: &Path, bytes: &[u8], durable: bool) -> io::Result<()>;
    /// Another name for a file or folder, in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder, or the content of a file, survive the loss of power.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// A new folder.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The real one.
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn write(&self, path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        if durable { file.sync_all() } else { Ok(()) }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        // Only Unix opens folders as files; elsewhere the names are in the hands of the system.
        if cfg!(unix) || path.is_file() { File::open(path)?.sync_all() } else { Ok(()) }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

impl dyn Disk + '_ {
    /// Puts a file in place in one step: readers see the old content or the new one. Durable content is on the
    /// disk before its name is.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8], durable: bool) -> Result<(), StoreError> {
        let temporary = temporary(path);
        self.write(&temporary, bytes, durable).map_err(StoreError::io(&temporary))?;
        self.rename(&temporary, path).map_err(StoreError::io(path))?;
        match path.parent() {
            Some(folder) if durable => self.sync(folder).map_err(StoreError::io(folder)),
            _ => Ok(()),
        }
    }
}

/// Where a file is written before it gets its name.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(TEMPORARY);
    name.into()
}
