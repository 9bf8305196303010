//! A first run file for given data.

use std::fmt::Write;
use std::path::Path;

use gpssm::kernel::KERNELS;
use gpssm::sensor::family::FAMILIES;

use crate::suggest::one_line;
use crate::table::{Columns, Data, DataError, DataProblem, numeric_columns, read_header, read_record};

/// Beyond so many rows the exact Gaussian process is slow.
const MANY_ROWS: usize = 1_000;

const TIMES: [&str; 14] = [
    "t",
    "time",
    "date",
    "datetime",
    "timestamp",
    "year",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "seconds",
    "time_s",
];
const SEQUENCES: [&str; 9] =
    ["seq", "sequence", "run", "series", "trial", "experiment", "episode", "record", "id"];

/// Guesses which columns are what, from their names and from what can be read.
///
/// Outputs are called y, y1, ..., out, output; without such names they are all other columns of numbers. A
/// column of times that cannot serve as one (repeated years, irregular steps) is left out.
pub fn guess_columns(path: &Path) -> Result<(Columns, Data), DataError> {
    let header = read_header(path)?;
    let numeric = numeric_columns(path)?;
    let named = |wanted: &[&str]| {
        let is = |name: &&String| wanted.iter().any(|wanted| name.eq_ignore_ascii_case(wanted));
        header.columns.iter().find(is).cloned()
    };
    let numbered = |letters: &[&str]| -> Vec<String> {
        let is = |name: &str| {
            let lower = name.to_lowercase();
            let rest = letters.iter().find_map(|letters| lower.strip_prefix(letters).map(str::to_owned));
            rest.is_some_and(|rest| rest.trim_start_matches('_').bytes().all(|b| b.is_ascii_digit()))
        };
        header.columns.iter().filter(|name| is(name)).cloned().collect()
    };
    let mut columns = Columns {
        y: numbered(&["y", "output", "out"]),
        u: numbered(&["u", "input", "in"]),
        time: named(&TIMES),
        sequence: named(&SEQUENCES),
        ..Columns::default()
    };
    if columns.y.is_empty() {
        let taken = |name: &String| {
            columns.u.contains(name)
                || columns.sequence.as_ref() == Some(name)
                || TIMES.iter().any(|time| name.eq_ignore_ascii_case(time))
        };
        columns.y = numeric.into_iter().filter(|name| !name.is_empty() && !taken(name)).collect();
    }
    if columns.y.is_empty() {
        return Err(DataError {
            file: header.file.clone(),
            line: None,
            column: None,
            problem: Box::new(DataProblem::NoOutputs { there: header.columns.clone() }),
        });
    }
    match read_record(path, &columns) {
        Ok(data) => Ok((columns, data)),
        Err(error) if error.column.is_some() && error.column == columns.time => {
            columns.time = None;
            read_record(path, &columns).map(|data| (columns, data))
        }
        Err(error) => Err(error),
    }
}

/// A run file that fits as it is, with all main keys explained.
pub fn starter(columns: &Columns, data: &Data) -> String {
    let text = |value: &str| toml::Value::String(value.to_owned()).to_string();
    let names = |names: &[String]| {
        format!("[{}]", names.iter().map(|name| text(name)).collect::<Vec<_>>().join(", "))
    };
    let optional = |key: &str, value: &Option<String>, example: &str| match value {
        Some(value) => format!("{key} = {}", text(value)),
        None => format!("# {key} = \"{example}\""),
    };
    let families: Vec<&str> = FAMILIES.iter().skip(1).map(|family| family.name).collect();
    let sensors: Vec<String> = families.chunks(4).map(|names| names.join(", ") + ",").collect();
    let kernels = KERNELS.iter().map(|kernel| kernel.short).collect::<Vec<_>>().join(", ") + ", odd(...);";
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut line = |setting: String, comment: &str| lines.push((setting, comment.to_owned()));
    line("[data]".into(), "");
    line(format!("file = {}", text(&data.source)), "relative to this file");
    line(format!("y = {}", names(&columns.y)), "outputs; a blank field is a missing value");
    line(format!("u = {}", names(&columns.u)), "inputs, known in every row");
    line(optional("time", &columns.time, "t"), "times with equal steps, numbers or dates");
    if columns.time.is_none() {
        line("# dt = 1.0".into(), "or the sampling time");
    }
    line(optional("sequence", &columns.sequence, "seq"), "labels independent sequences");
    line("# rows = [1, 100]".into(), "first and last row, from 1");
    line("# every = 2".into(), "use every k-th row");
    line(String::new(), "");
    line("[model]".into(), "");
    line(
        format!("states = {}", columns.y.len()),
        "states beyond the outputs are hidden; \"auto\" chooses the model",
    );
    line("kernel = \"se + linear\"".into(), &kernels);
    line(String::new(), "on some components only: \"matern32(x) + se(u1)\"");
    line("mean = \"identity\"".into(), "or \"zero\", or a formula: \"a*x1/(1 + x1^2)\"");
    line("sensor = \"gaussian\"".into(), sensors.first().map_or("", String::as_str));
    sensors.iter().skip(1).for_each(|names| line(String::new(), names));
    line(String::new(), "or { mean = \"abs(x1)\" }");
    if data.n_rows > MANY_ROWS {
        line("dynamics = \"hilbert(40)\"".into(), "a finite basis; \"exact\" is slow for this many rows");
    } else {
        line(
            "dynamics = \"exact\"".into(),
            "for thousands of rows use a finite basis: \"hilbert(40)\", \"fic(30)\", \"hilbert(40, sampled)\"",
        );
    }
    line("# lags = 2".into(), "number of past output values used as states, instead of hidden states");
    line("# process_noise = \"log_normal(0.1, 1)\"".into(), "prior of the standard deviation; or \"full\"");
    line("# initial = { gaussian = { mean = [0.0], sd = [1.0] } }".into(), "initial state");
    line("# [model.parameters]".into(), "priors of the parameters of formulas");
    line("# a = \"normal(0, 1)\"".into(), "");
    line(String::new(), "");
    line("[sampler]".into(), "");
    line("chains = 4".into(), "");
    line("tune = 300".into(), "warm-up sweeps of each chain");
    line(
        "ess = 400".into(),
        "sample until every effective sample size is this large and R-hat is at most 1.01",
    );
    line("# budget = \"10m\"".into(), "time limit; \"none\" for no limit");
    line("# draws = 500".into(), "or a fixed number of draws of each chain after warm-up");
    line("particles = 20".into(), "more particles improve mixing for long records");
    line("seed = 0".into(), "the same seed gives the same draws");

    let mut file = format!(
        "# {} rows of {}. Check the model first: gpssm fit THIS_FILE --dry-run\n# Priors that are not given are scaled to the data.\n\n",
        data.n_rows,
        one_line(&data.source)
    );
    for (setting, comment) in lines {
        // Writing to a string cannot fail.
        let _ = match (setting.is_empty(), comment.is_empty()) {
            (_, true) => writeln!(file, "{setting}"),
            (true, false) => writeln!(file, "{:34}# {comment}", ""),
            (false, false) => writeln!(file, "{setting:32}  # {comment}"),
        };
    }
    file
}
