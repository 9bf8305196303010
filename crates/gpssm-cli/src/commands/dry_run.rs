//! `gpssm fit --dry-run`: the model in words, the memory and the expected time, from sizes alone.

use gpssm_io::auto;
use gpssm_io::config::{Run, RunFile};
use gpssm_io::describe;
use gpssm_io::speed::seconds_per_sweep;
use gpssm_io::table::{Data, read_record};

use super::fit::check_learnable;
use crate::args::FitArgs;
use crate::failure::Failure;

/// Says what would be run; the exit code.
pub fn run(file: &RunFile, args: &FitArgs) -> Result<u8, Failure> {
    let config = file.config()?;
    let path = file.data_path(&config, args.data_file())?;
    if auto::is_asked_for(&config) {
        let measured = read_record(&path, &config.data.columns().as_measured()).map_err(Failure::input)?;
        check_learnable(&measured)?;
        print!("{}", describe::describe_open(&config, &measured, &|key| file.is_given(key)));
        return Ok(0);
    }
    let data = read_record(&path, &config.data.columns()).map_err(Failure::input)?;
    check_learnable(&data)?;
    settled(&file.resolve(&config, &data)?, &data);
    Ok(0)
}

fn settled(run: &Run, data: &Data) {
    let seconds = seconds_per_sweep(&run.problem, run.settings.particles);
    print!("{}", describe::describe(run, data, Some(seconds)));
}
