//! Results that are already there: one small JSON file for each, so that an interrupted table goes on.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A folder of results.
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// At this place, made if it is not there.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// The result of this name, or a new one.
    pub fn get<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = self.folder.join(format!("{name}.json"));
        // A file that cannot be read is made again.
        if let Some(found) = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(found);
        }
        let made = make()?;
        let text = serde_json::to_string_pretty(&made).map_err(Failure::other)?;
        let partial = path.with_extension("partial");
        let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path));
        written.map_err(|error| Failure::writing(&path, &error))?;
        Ok(made)
    }
}
