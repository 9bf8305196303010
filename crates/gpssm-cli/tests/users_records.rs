//! Records as users have them: time stamps, units in names, several runs, missing values.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{TINY, gpssm, run, succeed, text};
use tempfile::TempDir;

/// Two runs of a plant, a row a minute, with a gap of two rows in the first and missing outputs.
fn folder_with_runs() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut csv = String::from("time;run;pump [V];level2 [cm]\n");
    let mut x = 4.0f64;
    for (label, rows) in [("first", 40), ("second", 30)] {
        for t in 0..rows {
            let u = if t / 5 % 2 == 0 { 2.0 } else { 5.0 };
            let y = x + 0.1 * (12.9898 * f64::from(t)).sin();
            x += 0.3 * u - 0.4 * x.sqrt();
            if label == "first" && (10..12).contains(&t) {
                continue;
            }
            let y = if t == 20 { "#N/A".to_owned() } else { format!("{y:.3}").replace('.', ",") };
            csv += &format!("2024-03-05T{:02}:{:02}:00+01:00;{label};{};{y}\n", 8 + t / 60, t % 60, u);
        }
    }
    std::fs::write(folder.path().join("plant.csv"), csv).expect("a data file");
    folder
}

const FIT: [&str; 14] = [
    "fit",
    "plant.csv",
    "--y",
    "level2 [cm]",
    "--u",
    "pump [V]",
    "--time",
    "time",
    "--sequence",
    "run",
    "--states",
    "1",
    "-o",
    "run.zarr",
];

fn fitted() -> TempDir {
    let folder = folder_with_runs();
    let output = run(folder.path(), &[&FIT[..], &TINY].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    for part in [
        "numbers have decimal commas",
        "'#N/A'",
        "2 rows are missing after 2024-03-05T08:09:00+01:00 (line 11)",
    ] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    folder
}

/// Cells of a column of a table.
fn column(table: &str, name: &str) -> Vec<String> {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let place =
        header.iter().position(|column| *column == name).unwrap_or_else(|| panic!("no {name}: {header:?}"));
    lines.map(|line| line.split(',').nth(place).expect("a cell").to_owned()).collect()
}

#[test]
fn every_table_has_the_stamps_of_the_file_and_all_runs() {
    let folder = fitted();
    let path = folder.path();
    for words in [
        &["filter", "run.zarr", "plant.csv", "--functions", "4", "--particles", "10"][..],
        &["predict", "run.zarr", "plant.csv", "--horizon", "1", "--samples", "10"],
        &["simulate", "run.zarr", "--inputs", "plant.csv", "--paths", "10"],
        &["simulate", "run.zarr", "--inputs", "plant.csv", "--n-init", "5", "--paths", "10"],
    ] {
        let table = succeed(path, words);
        let (times, runs) = (column(&table, "time"), column(&table, "sequence"));
        let first: Vec<&String> =
            times.iter().zip(&runs).filter(|(_, run)| *run == "first").map(|(t, _)| t).collect();
        // Rows that are missing in the file have their times, too; the first row is predicted by nobody.
        let n = if words[0] == "predict" { 39 } else { 40 };
        assert_eq!(first.len(), n, "{words:?}");
        assert_eq!(*first[n - 30], "2024-03-05T08:10:00+01:00", "{words:?}");
        assert_eq!(times.last().expect("rows"), "2024-03-05T08:29:00+01:00", "{words:?}");
        assert!(runs.iter().any(|run| run == "second"));
    }
    let scored = succeed(path, &["score", "run.zarr", "plant.csv", "--paths", "10"]);
    assert!(scored.contains("in 2 sequences, each") && scored.contains("the model by sequence"), "{scored}");
    // A file without the column of labels is one sequence.
    let inputs = "time;pump [V]\n2024-03-06T08:00:00+01:00;2\n2024-03-06T08:01:00+01:00;3\n2024-03-06T08:02:00+01:00;3\n";
    std::fs::write(path.join("new.csv"), inputs).expect("a file");
    let table =
        succeed(path, &["simulate", "run.zarr", "--inputs", "new.csv", "--initial", "last", "--paths", "5"]);
    assert_eq!(column(&table, "time")[1], "2024-03-06T08:01:00+01:00");
    let inputs = inputs.replace("06T", "05T").replace("08:0", "08:3");
    std::fs::write(path.join("next.csv"), inputs).expect("a file");
    let table = succeed(path, &["forecast", "run.zarr", "--inputs", "next.csv", "--paths", "5"]);
    assert_eq!(
        column(&table, "time"),
        ["2024-03-05T08:30:00+01:00", "2024-03-05T08:31:00+01:00", "2024-03-05T08:32:00+01:00"]
    );
    succeed(path, &["report", "run.zarr"]);
    let report = std::fs::read_to_string(path.join("run.html")).expect("a report");
    assert!(report.contains("time, 2024-03-05") && report.contains(">08:10<"));
}

#[test]
fn evaluate_knows_runs() {
    let folder = folder_with_runs();
    let path = folder.path();
    let words = [
        "evaluate",
        "--train",
        "plant.csv",
        "--split",
        "0.5",
        "--y",
        "level2 [cm]",
        "--u",
        "pump [V]",
        "--time",
        "time",
        "--sequence",
        "run",
        "--states",
        "1",
        "--paths",
        "10",
        "-o",
        "out",
        "--quiet",
        "--set",
        "sampler.chains=1",
        "--set",
        "sampler.tune=5",
        "--set",
        "sampler.draws=5",
        "--set",
        "sampler.start.restarts=2",
        "--set",
        "sampler.start.particles=40",
        "--set",
        "sampler.particles=5",
    ];
    let said = succeed(path, &words);
    assert!(said.contains("25 rows scored"), "{said}");
    let table = std::fs::read_to_string(path.join("out/intervals.csv")).expect("intervals");
    assert_eq!(column(&table, "time")[0], "2024-03-05T08:00:00+01:00");
    assert_eq!(table.lines().count(), 31);
}

#[test]
fn nothing_to_learn_is_refused() {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("flat.csv"), "y\n3\n3\n3\n3\n").expect("a file");
    let output = run(folder.path(), &["fit", "flat.csv", "--y", "y"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("column 'y' is 3 wherever it has a value"),
        "{}",
        text(&output.stderr)
    );
    assert!(!folder.path().join("flat.zarr").exists());
}

#[test]
fn a_dry_run_reads_long_records_and_samples_nothing() {
    let folder = TempDir::new().expect("a folder");
    let rows = (0..100_000).map(|t| format!("{t},{:.4},{}\n", (0.01 * f64::from(t)).sin(), t % 7));
    std::fs::write(folder.path().join("long.csv"), rows.fold("t,y,u\n".to_owned(), |all, row| all + &row))
        .expect("a file");
    let words =
        ["fit", "long.csv", "--y", "y", "--u", "u", "--time", "t", "--dynamics", "hilbert(40)", "--dry-run"];
    let said = succeed(folder.path(), &words);
    assert!(said.contains("100000 rows") && said.contains("estimated from the sizes"), "{said}");
}

/// The end of a pipe that was closed early is no error.
#[cfg(unix)]
#[test]
fn whoever_reads_may_stop_reading() {
    let folder = fitted();
    for words in [
        &["simulate", "run.zarr", "--inputs", "plant.csv", "--paths", "5"][..],
        &["summary", "run.zarr"],
        &["man"],
        &["completions", "bash"],
    ] {
        let mut command = gpssm(folder.path());
        let mut child =
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("error"), "{}", text(&output.stderr));
    }
}

/// Where no draws are made the first signal ends the program at once: these paths would take minutes.
#[cfg(unix)]
#[test]
fn the_first_signal_ends_what_makes_no_draws() {
    let folder = fitted();
    for signal in ["-TERM", "-INT"] {
        let mut command = gpssm(folder.path());
        command.args([
            "simulate",
            "run.zarr",
            "--inputs",
            "plant.csv",
            "--paths",
            "1500000",
            "-o",
            "out.csv",
        ]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        // Said when signals are heard already, and before the paths begin.
        let begun = said.by_ref().map_while(Result::ok).any(|line| line.contains("paths begin anywhere"));
        assert!(begun);
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        if !sent.is_ok_and(|status| status.success()) {
            child.kill().expect("a signal");
            child.wait().expect("an end");
            println!("skipped: no way to send a signal here");
            return;
        }
        assert_eq!(child.wait().expect("an end").code(), Some(130));
        assert!(!Path::new(&folder.path().join("out.csv")).exists());
    }
}

#[test]
fn init_takes_names_and_tells_inputs_from_outputs() {
    let folder = folder_with_runs();
    let said = succeed(folder.path(), &["init", "plant.csv"]);
    for part in ["y = [\"level2 [cm]\"]", "u = [\"pump [V]\"]", "time = \"time\"", "sequence = \"run\""] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    let rows: String = (0..20).map(|t| format!("{},{}\n", t % 7, t % 5)).collect();
    std::fs::write(folder.path().join("two.csv"), format!("a,b\n{rows}")).expect("a file");
    for (y, u) in [("a", "b"), ("b", "a")] {
        let said = succeed(folder.path(), &["init", "two.csv", "--y", y, "--u", u]);
        let names = [format!("y = [\"{y}\"]"), format!("u = [\"{u}\"]")];
        assert!(names.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let folder = TempDir::new().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(folder.path(), &["completions", shell]);
        assert!(script.contains("evaluate") && script.contains("dry-run"), "{shell}");
    }
    assert!(succeed(folder.path(), &["man"]).contains(".TH GPSSM"));
    succeed(folder.path(), &["man", "-o", "."]);
    let page = std::fs::read_to_string(folder.path().join("gpssm-fit.1")).expect("a page");
    assert!(page.contains("dry\\-run"), "{page}");
    assert!(succeed(folder.path(), &["--version"]).contains(std::env::consts::ARCH));
}
