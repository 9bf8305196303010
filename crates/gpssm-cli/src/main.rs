//! The program: words in, an exit code out. All of it is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gpssm_cli::run(std::env::args_os()))
}
