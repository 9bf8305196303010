//! `gpssm merge`: runs of single chains become one.

use crate::args::MergeArgs;
use crate::failure::Failure;

/// Runs the command; the exit code.
pub fn run(args: &MergeArgs) -> Result<u8, Failure> {
    gpssm_io::store::merge(&args.runs, &args.out)?;
    eprintln!("{} joined into {}", args.runs.len(), args.out.display());
    Ok(0)
}
