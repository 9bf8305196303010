//! The program `gpssm` inside the extension module, so that one package brings both.

use std::ffi::OsString;
use std::io::Write;

use pyo3::prelude::*;

/// Runs the program with these words, the first of which is its name; its exit code. Signals belong to the program from here
/// on, so nothing but the end of the process may follow.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| {
        let code = gpssm_cli::run(words);
        // Python knows nothing of this buffer, and nobody is left to be told of an error.
        let _ = std::io::stdout().flush();
        code
    })
}
