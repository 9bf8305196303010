//! The only place that changes files, so that tests can make every single change fail.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::StoreError;

/// Ending of files that are not yet under their own name; a crash may leave some behind.
pub(super) const TEMPORARY: &str = "gpssm-tmp";

/// Files that are waited for at the same time.
const WAITING: usize = 4;

/// A file and what is to be in it.
pub(super) type File = (PathBuf, Vec<u8>);

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
        let mut file = fs::File::create(path)?;
        file.write_all(bytes)?;
        if durable { file.sync_all() } else { Ok(()) }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        // Only Unix opens folders as files; elsewhere the names are in the hands of the system.
        if cfg!(unix) || path.is_file() { fs::File::open(path)?.sync_all() } else { Ok(()) }
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

    /// The same for several files, durable; each of them is replaced in one step, not all together.
    pub(super) fn replace_all(&self, files: &[File]) -> Result<(), StoreError> {
        in_parallel(files, |(path, bytes)| {
            let temporary = temporary(path);
            self.write(&temporary, bytes, true).map_err(StoreError::io(&temporary))
        })?;
        for (path, _) in files {
            self.rename(&temporary(path), path).map_err(StoreError::io(path))?;
        }
        let mut folders: Vec<&Path> = files.iter().filter_map(|(path, _)| path.parent()).collect();
        folders.dedup();
        self.sync_all(&folders)
    }

    /// Makes files and folders survive the loss of power.
    pub(super) fn sync_all(&self, paths: &[impl AsRef<Path> + Sync]) -> Result<(), StoreError> {
        in_parallel(paths, |path| self.sync(path.as_ref()).map_err(StoreError::io(path.as_ref())))
    }
}

/// Runs `f` on all items, some at a time: a disk that is waited for by several takes the changes of all of them to
/// safety at once.
fn in_parallel<T: Sync>(
    items: &[T],
    f: impl Fn(&T) -> Result<(), StoreError> + Sync,
) -> Result<(), StoreError> {
    let share = items.len().div_ceil(WAITING).max(1);
    std::thread::scope(|scope| {
        let mut results = Vec::new();
        let mut threads = Vec::new();
        for part in items.chunks(share) {
            let work = || part.iter().try_for_each(&f);
            if part.len() == items.len() {
                results.push(work());
            } else {
                // Without a thread it takes longer.
                match std::thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(_) => results.push(part.iter().try_for_each(&f)),
                }
            }
        }
        results.extend(threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        results.into_iter().collect()
    })
}

/// Where a file is written before it gets its name.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(TEMPORARY);
    name.into()
}
