//! A new store: made under another name, then put in place in one step.

use std::fs;
use std::path::{Path, PathBuf};

use super::codec;
use super::disk::{Disk, TEMPORARY};
use super::error::StoreError;
use super::files::{ROOT, STATES};
use super::layout::{Committed, Layout};
use super::lock::{LOCK, Lock};

/// A store that is not yet in its place.
pub(super) struct Building {
    pub folder: PathBuf,
    target: PathBuf,
    lock: Lock,
}

impl Building {
    /// All folders, metadata, and what is written once.
    pub(super) fn new(
        target: &Path,
        layout: &Layout,
        committed: &[Committed],
        disk: &dyn Disk,
    ) -> Result<Self, StoreError> {
        if target.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: target.to_path_buf() });
        }
        let Some(name) = target.file_name() else {
            return Err(StoreError::Description {
                message: format!("{} is no name for a folder", target.display()),
            });
        };
        let folder = target.with_file_name(format!(".{}.{TEMPORARY}", name.to_string_lossy()));
        remove_stale(&folder)?;
        let create = |path: &Path| disk.create_dir(path).map_err(StoreError::io(path));
        let write = |path: &Path, bytes: &[u8]| disk.write(path, bytes, false).map_err(StoreError::io(path));
        create(&folder)?;
        write(&folder.join(LOCK), &[])?;
        let lock = Lock::take(&folder)?;
        create(&folder.join(STATES))?;
        let tree = layout.tree(committed);
        for (path, node) in &tree.nodes {
            create(&folder.join(path))?;
            write(&folder.join(path).join(ROOT), &node.to_bytes())?;
        }
        for fixed in &layout.fixed {
            let path = folder.join(&fixed.path).join(fixed.chunk());
            write(&path, &codec::encode(&fixed.raw).map_err(StoreError::io(&path))?)?;
        }
        write(&folder.join(ROOT), &tree.to_bytes())?;
        Ok(Self { folder, target: target.to_path_buf(), lock })
    }

    /// Puts the store in its place.
    pub(super) fn finish(self, disk: &dyn Disk) -> Result<Lock, StoreError> {
        let rename = || disk.rename(&self.folder, &self.target).map_err(StoreError::io(&self.target));
        if cfg!(windows) {
            // A folder with an open file cannot be renamed there.
            drop(self.lock);
            rename()?;
            return Lock::take(&self.target);
        }
        rename()?;
        Ok(self.lock)
    }
}

/// Removes what a crash left behind, unless its maker is still at it.
fn remove_stale(folder: &Path) -> Result<(), StoreError> {
    if !folder.is_dir() {
        return Ok(());
    }
    let _lock = Lock::take(folder)?;
    fs::remove_dir_all(folder).map_err(StoreError::io(folder))
}
