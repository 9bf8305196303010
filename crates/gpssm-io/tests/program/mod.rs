//! What the program does with its arguments up to the first sweep.

use std::path::Path;

use gpssm_io::config::{Run, RunFile};
use gpssm_io::table::{Data, read_record};

/// `fit FILE [--model FILE] [--set KEY=VALUE] [--OPTION VALUE] ...` in a folder.
pub fn fit(folder: &Path, args: &[&str]) -> Result<(Run, Data), String> {
    let (first, rest) = args[1..].split_first().expect("a file");
    let model = rest.chunks(2).find(|pair| pair[0] == "--model").map(|pair| pair[1]);
    let run_file = if first.ends_with(".toml") { Some(*first) } else { model };
    let mut file = match run_file {
        Some(name) => RunFile::open(&folder.join(name)).map_err(|error| error.to_string())?,
        None => RunFile::new(),
    };
    for pair in rest.chunks(2) {
        match pair[0] {
            "--model" => Ok(()),
            "--set" => file.set(pair[1]),
            option => file.option(option, pair[1]),
        }
        .map_err(|error| error.to_string())?;
    }
    let config = file.config().map_err(|error| error.to_string())?;
    let given = (!first.ends_with(".toml")).then(|| folder.join(first));
    let path = file.data_path(&config, given.as_deref()).map_err(|error| error.to_string())?;
    let data = read_record(&path, &config.data.columns()).map_err(|error| error.to_string())?;
    let run = file.resolve(&config, &data).map_err(|error| error.to_string())?;
    Ok((run, data))
}
