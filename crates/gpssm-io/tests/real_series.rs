//! Real series: every table is read, every example model fits its data, every starter file resolves.
//!
//! The series lie beside the project (or where GPSSM_DATA says); without them the tests skip with a message.

mod program;

use std::path::{Path, PathBuf};

use gpssm_io::config::{RunFile, guess_columns, starter};
use gpssm_io::describe::describe;
use gpssm_io::table::{TimeUnit, read_record};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn series() -> Option<PathBuf> {
    let folder = std::env::var_os("GPSSM_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: there is no folder {}", folder.display());
    None
}

const EXAMPLES: [(&str, &str); 7] = [
    ("gas_furnace", "gas_furnace"),
    ("drive", "drive"),
    ("polio", "polio"),
    ("pound_dollar", "pound_dollar_8185"),
    ("blood", "blood"),
    ("co2_weekly", "co2_weekly"),
    ("quarter_drone", "quarter_drone"),
];

#[test]
fn example_models_are_short_and_fit_their_data() {
    for (model, _) in EXAMPLES {
        let text = std::fs::read_to_string(root().join(format!("examples/models/{model}.toml"))).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        assert!(lines <= 10, "{model}: {lines} lines");
        RunFile::parse(&text, model).unwrap().config().unwrap();
    }
    let Some(folder) = series() else { return };
    for (model, data) in EXAMPLES {
        let data = folder.join(format!("{data}.csv"));
        let model = root().join(format!("examples/models/{model}.toml"));
        let args = ["fit", data.to_str().unwrap(), "--model", model.to_str().unwrap()];
        let (run, data) = program::fit(Path::new(""), &args).unwrap_or_else(|error| panic!("{error}"));
        let again = RunFile::parse(&run.to_toml(), "again").unwrap();
        let again = again.resolve(&again.config().unwrap(), &data).unwrap();
        assert_eq!(again.problem.model(), run.problem.model());
        assert_eq!(again.problem.table(), run.problem.table());
        assert_eq!(again.to_toml(), run.to_toml());
        assert!(describe(&run, &data, Some(0.01)).contains("rows"));
    }
}

#[test]
fn what_the_series_hold() {
    let Some(folder) = series() else { return };
    let fit = |args: &[&str]| {
        let path = folder.join(args[0]);
        let args: Vec<&str> = [&["fit", path.to_str().unwrap()], &args[1..]].concat();
        program::fit(Path::new(""), &args).unwrap_or_else(|error| panic!("{error}"))
    };
    let (run, data) = fit(&["co2_weekly.csv", "--y", "y", "--time", "date", "--dynamics", "hilbert(20)"]);
    assert_eq!((data.n_rows, data.n_missing, data.time_unit), (2284, 59, TimeUnit::Seconds));
    assert_eq!(data.dt, Some(604_800.0));
    assert_eq!(run.problem.model().symmetries.len(), 0);
    let (_, data) = fit(&["blood.csv", "--y", "wbc,plt,hct", "--time", "day"]);
    assert_eq!((data.n_rows, data.n_missing), (91, 111));
    let (run, data) = fit(&["gas_furnace.csv", "--y", "y", "--u", "u", "--time", "t", "--states", "2"]);
    assert_eq!(data.dt, Some(9.0));
    assert_eq!(run.problem.model().symmetries.len(), 1);
    let drone = [
        "quarter_drone.csv",
        "--y",
        "y",
        "--u",
        "u",
        "--time",
        "t",
        "--sequence",
        "seq",
        "--every",
        "100",
        "--dynamics",
        "hilbert(30)",
    ];
    let (_, data) = fit(&drone);
    assert_eq!(data.sequence_labels, ["1", "2", "3", "4"]);
    assert_eq!(data.lines.iter().map(Vec::len).collect::<Vec<_>>(), [131, 100, 101, 100]);
    assert!((data.dt.unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn starters_fit_as_they_are() {
    let Some(folder) = series() else { return };
    let mut n = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let (columns, data) = guess_columns(&path, &[], &[]).unwrap_or_else(|error| panic!("{error}"));
        assert!(!columns.y.is_empty() && !data.record.sequences().is_empty());
        let text = starter(&columns, &data);
        let file = RunFile::parse(&text, "starter.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let config = file.config().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(config.data.columns(), columns);
        let data = read_record(&path, &config.data.columns()).unwrap();
        file.resolve(&config, &data).unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        n += 1;
    }
    assert!(n >= 10, "{n} series");
}
