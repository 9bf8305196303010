//! What the tests of the program share.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The program, in a folder of its own, silent about progress.
pub fn gpssm(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpssm"));
    command.current_dir(folder);
    command
}

/// Runs it with these words.
pub fn run(folder: &Path, words: &[&str]) -> Output {
    gpssm(folder).args(words).output().expect("the program starts")
}

/// Runs it and expects success.
pub fn succeed(folder: &Path, words: &[&str]) -> String {
    let output = run(folder, words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with a record of a driven nonlinear system in `data.csv`: columns t, u, y.
pub fn folder_with_data(rows: usize) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let mut csv = String::from("t,u,y\n");
    let mut x = 0.3f64;
    for t in 0..rows {
        let u = (0.7 * t as f64).sin();
        // A small disturbance that no recurrence of the model explains.
        let noise = 0.1 * (12.9898 * t as f64).sin();
        csv += &format!("{},{u},{}\n", 0.1 * t as f64, x + noise);
        x = 0.8 * x + (x).sin() * 0.3 + 0.5 * u;
    }
    std::fs::write(folder.path().join("data.csv"), csv).expect("a data file");
    folder
}

/// Every file below a folder with its bytes.
pub fn bytes_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below the folder").to_path_buf();
                found.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// Names of files that are not the same in both.
pub fn differences(a: &Path, b: &Path) -> Vec<PathBuf> {
    let (a, b) = (bytes_of(a), bytes_of(b));
    let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).cloned().collect();
    names.into_iter().filter(|name| a.get(name) != b.get(name)).collect()
}

/// Words of a command line; single quotes keep spaces together.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Options of a fit that is over in a moment.
pub const TINY: [&str; 17] = [
    "--quiet",
    "--chains",
    "2",
    "--tune",
    "6",
    "--draws",
    "8",
    "--particles",
    "5",
    "--threads",
    "1",
    "--set",
    "sampler.start.restarts=2",
    "--set",
    "sampler.start.particles=40",
    "--seed",
    "3",
];

/// A folder with 30 rows in `data.csv` and a tiny fit of it in `run.zarr`.
pub fn folder_with_run() -> TempDir {
    let folder = folder_with_data(30);
    let fit = ["fit", "data.csv", "--y", "y", "--u", "u", "--time", "t", "--states", "1", "-o", "run.zarr"];
    succeed(folder.path(), &[&fit[..], &TINY].concat());
    folder
}

/// Copies a folder and all below it.
pub fn copy(from: &Path, to: &Path) {
    for (name, bytes) in bytes_of(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
}
