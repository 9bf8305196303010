//! `gpssm merge`: runs of single chains become one.

use crate::args::MergeArgs;
use crate::failure::Failure;
use crate::output::check_folder;

/// Runs the command; the exit code.
pub fn run(args: &MergeArgs) -> Result<u8, Failure> {
    check_folder(&args.out)?;
    gpssm_io::store::merge(&args.runs, &args.out)?;
    eprintln!("{} runs merged into {}", args.runs.len(), args.out.display());
    Ok(0)
}
