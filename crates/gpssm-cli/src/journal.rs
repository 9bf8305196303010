//! The log beside a store: clock times and durations, which the store itself must not hold.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// `run.zarr` has its log in `run.zarr.log`.
pub struct Journal {
    path: PathBuf,
    is_new: bool,
}

impl Journal {
    /// Of this store.
    pub fn beside(store: &Path) -> Self {
        let mut name = store.as_os_str().to_owned();
        name.push(".log");
        let path = PathBuf::from(name);
        Self { is_new: !path.exists(), path }
    }

    /// Takes it back, if it was begun for this run.
    pub fn forget(&self) {
        if self.is_new {
            // Like adding a line, this is not worth an error.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Adds a line with the time. A log that cannot be written does not end a run.
    pub fn add(&self, text: &str) {
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let _ = file.and_then(|mut file| writeln!(file, "{now} {text}"));
    }
}
