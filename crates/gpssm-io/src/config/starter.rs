//! A first run file for given data.

use std::fmt::Write;
use std::path::Path;

use gpssm::kernel::KERNELS;
use gpssm::sensor::family::FAMILIES;

use crate::table::{
    Columns, Data, DataError, DataProblem, NumericColumn, is_sequence_name, is_time_name, numeric_columns,
    read_header, read_record,
};
use crate::wording::one_line;

/// Beyond so many rows the exact Gaussian process is slow.
const MANY_ROWS: usize = 1_000;

/// Words in the names of inputs: what a person or a controller sets.
const SET: [&str; 24] = [
    "input",
    "valve",
    "pump",
    "voltage",
    "volt",
    "heater",
    "heating",
    "power",
    "command",
    "cmd",
    "control",
    "setpoint",
    "actuator",
    "drive",
    "throttle",
    "pwm",
    "duty",
    "force",
    "torque",
    "dose",
    "feed",
    "gas",
    "reference",
    "steering",
];
/// An input often moves between few levels.
const FEW_LEVELS: usize = 12;

/// Guesses which columns are what, from their names and from what can be read; outputs and inputs that are given stay.
///
/// Outputs are called y, y1, ..., out, output, and inputs u, u1, ..., in, input. Without such names, inputs are columns named
/// after what people set (valve, voltage, ...) or with few levels and no missing value, and outputs are all others. A column
/// of times that cannot serve as one is left out.
pub fn guess_columns(path: &Path, y: &[String], u: &[String]) -> Result<(Columns, Data), DataError> {
    let header = read_header(path)?;
    let numeric = numeric_columns(path)?;
    let free = |name: &&String| !name.is_empty() && !y.contains(name) && !u.contains(name);
    let find = |is: &dyn Fn(&str) -> bool| header.columns.iter().filter(free).find(|name| is(name)).cloned();
    let time = find(&is_time_name);
    let sequence = find(&is_sequence_name);
    let others: Vec<&NumericColumn> = numeric
        .iter()
        .filter(|column| free(&&column.name) && Some(&column.name) != time.as_ref())
        .filter(|column| Some(&column.name) != sequence.as_ref() && !is_calendar(&column.name))
        .collect();
    let (own_y, own_u) = guess_roles(&others, y.is_empty(), u.is_empty());
    let or = |given: &[String], guessed: Vec<String>| if given.is_empty() { guessed } else { given.to_vec() };
    let mut columns = Columns { y: or(y, own_y), u: or(u, own_u), time, sequence, ..Columns::default() };
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
            // Rows are taken as equally spaced; the file says so to whoever reads it.
            columns.dt = Some(1.0);
            read_record(path, &columns).map(|data| (columns, data))
        }
        Err(error) => Err(error),
    }
}

/// Parts of a date or clock, which come again and again.
fn is_calendar(name: &str) -> bool {
    ["month", "week", "day", "hour", "minute", "second"].iter().any(|part| name.eq_ignore_ascii_case(part))
}

/// Names of outputs and inputs among the columns that nobody has named.
fn guess_roles(columns: &[&NumericColumn], guess_y: bool, guess_u: bool) -> (Vec<String>, Vec<String>) {
    let numbered = |name: &str, letters: &[&str]| {
        let lower = name.split(['[', '(']).next().unwrap_or_default().trim().to_lowercase();
        let rest = letters.iter().find_map(|letters| lower.strip_prefix(letters).map(str::to_owned));
        rest.is_some_and(|rest| rest.trim_start_matches('_').bytes().all(|b| b.is_ascii_digit()))
    };
    let named = |letters: &[&str]| -> Vec<String> {
        columns
            .iter()
            .filter(|column| numbered(&column.name, letters))
            .map(|column| column.name.clone())
            .collect()
    };
    let (mut y, mut u) = (named(&["y", "output", "out"]), named(&["u", "input", "in"]));
    let is_set = |column: &NumericColumn| {
        let name = column.name.to_lowercase();
        let mut words = name.split(|c: char| !c.is_alphabetic());
        let named = words.any(|word| SET.contains(&word));
        named || (column.levels <= FEW_LEVELS && column.n >= 5 * column.levels && column.missing == 0)
    };
    if y.is_empty() && guess_y {
        let rest = columns.iter().filter(|column| !u.contains(&column.name));
        let (set, free): (Vec<_>, Vec<_>) =
            rest.partition(|column| u.is_empty() && guess_u && is_set(column));
        let name = |column: &&&NumericColumn| column.name.clone();
        // Something must be an output.
        let (free, set) = if free.is_empty() { (set, free) } else { (free, set) };
        y = free.iter().map(name).collect();
        u.extend(set.iter().map(name));
    } else if u.is_empty() && guess_u && !guess_y {
        // Outputs are given: the other columns are what may act on them.
        u = columns.iter().filter(|column| is_set(column)).map(|column| column.name.clone()).collect();
    }
    (y, u)
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
    line(format!("y = {}", names(&columns.y)), "outputs: check this guess; a blank field is a missing value");
    line(format!("u = {}", names(&columns.u)), "inputs, known in every row: check this guess, too");
    line(
        optional("time", &columns.time, "t"),
        "times, numbers or dates; gaps become rows with missing outputs",
    );
    match (&columns.time, columns.dt) {
        (Some(_), _) => {}
        (None, Some(dt)) => line(format!("dt = {dt:?}"), "sampling time: rows are taken as equally spaced"),
        (None, None) => line("# dt = 1.0".into(), "or the sampling time"),
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
    line("# process_noise = \"log_normal(0.3, 1)\"".into(), "prior of the standard deviation; or \"full\"");
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
