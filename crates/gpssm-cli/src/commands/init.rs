//! `gpssm init`: a commented model file for a data file.

use gpssm_io::config::{guess_columns, starter};

use crate::args::InitArgs;
use crate::commands::fit::make_way_for_file;
use crate::failure::Failure;
use crate::fitted::say_notes;
use crate::output::check_file;

/// Runs the command; the exit code.
pub fn run(args: &InitArgs) -> Result<u8, Failure> {
    if let Some(out) = &args.out {
        check_file(out, &[&args.data])?;
        make_way_for_file(out, args.overwrite)?;
    }
    let (columns, data) = guess_columns(&args.data, &args.y, &args.u).map_err(Failure::input)?;
    say_notes(&data);
    let text = starter(&columns, &data);
    match &args.out {
        None => print!("{text}"),
        Some(out) => {
            std::fs::write(out, text).map_err(|error| Failure::writing(out, &error))?;
            eprintln!("{} written. Check it, then run: gpssm fit {0}", out.display());
        }
    }
    Ok(0)
}
