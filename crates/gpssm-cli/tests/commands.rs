//! Every command does on a tiny fit what it promises.

mod common;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use common::{TINY, copy, differences, folder_with_data, folder_with_run, run, succeed, text, words};
use serde_json::Value;
use tempfile::TempDir;

/// The tiny fit, in a place that the next run of these tests uses again: statics are never dropped.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands");
    if place.exists() {
        std::fs::remove_dir_all(&place).expect("what was left is ours");
    }
    copy(folder_with_run().path(), &place);
    place
});

/// A copy of the tiny fit, with a new record in `new.csv`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&RUN, folder.path());
    let rows = (0..12).map(|i| {
        let t = f64::from(i);
        format!("{},{},{}\n", 0.1 * t, (0.5 * t).cos(), 0.2 + 0.1 * t)
    });
    std::fs::write(folder.path().join("new.csv"), rows.fold("t,u,y\n".to_owned(), |all, row| all + &row))
        .expect("a record");
    folder
}

fn gpssm(folder: &Path, line: &str) -> String {
    let words = words(line);
    succeed(folder, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Header and numbers of a CSV table in which nothing is missing.
fn csv(content: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut lines = content.lines();
    let header = lines.next().expect("a header").split(',').map(str::to_owned).collect();
    let number =
        |cell: &str| cell.parse::<f64>().ok().filter(|value| value.is_finite()).expect("a finite number");
    (header, lines.map(|line| line.split(',').map(number).collect()).collect())
}

/// The same of a Parquet table.
#[cfg(feature = "parquet")]
fn parquet(path: &Path) -> (Vec<String>, Vec<Vec<f64>>) {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let reader =
        SerializedFileReader::new(std::fs::File::open(path).expect("a file")).expect("a Parquet file");
    let rows = reader.get_row_iter(None).expect("rows");
    let mut header = Vec::new();
    let mut numbers = Vec::new();
    for row in rows {
        let row = row.expect("a row");
        header = row.get_column_iter().map(|(name, _)| name.clone()).collect();
        let number = |field: &Field| match field {
            Field::Double(value) => *value,
            Field::Long(value) => *value as f64,
            other => panic!("{other} is no number"),
        };
        numbers.push(row.get_column_iter().map(|(_, field)| number(field)).collect());
    }
    (header, numbers)
}

const BANDS: [&str; 7] = ["mean", "sd", "q05", "q25", "q50", "q75", "q95"];

fn bands(names: &[&str]) -> Vec<String> {
    names.iter().flat_map(|name| BANDS.iter().map(move |band| format!("{name}_{band}"))).collect()
}

fn header(first: &[&str], channels: &[&str], last: &[&str]) -> Vec<String> {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    [own(first), bands(channels), own(last)].concat()
}

/// Prints a table, and writes it as CSV and, where it is built in, Parquet: all are the same.
fn table(line: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let folder = folder();
    let printed = gpssm(folder.path(), line);
    gpssm(folder.path(), &format!("{line} -o out.csv"));
    assert_eq!(std::fs::read_to_string(folder.path().join("out.csv")).expect("a table"), printed);
    let found = csv(&printed);
    #[cfg(feature = "parquet")]
    {
        gpssm(folder.path(), &format!("{line} -o out.parquet"));
        assert_eq!(parquet(&folder.path().join("out.parquet")), found);
    }
    found
}

#[test]
fn a_starter_file_is_fitted_as_it_is() {
    let folder = folder_with_data(30);
    let path = folder.path();
    let printed = gpssm(path, "init data.csv");
    gpssm(path, "init data.csv -o model.toml");
    assert_eq!(std::fs::read_to_string(path.join("model.toml")).expect("a file"), printed);
    succeed(path, &[&["fit", "model.toml"][..], &TINY].concat());
    assert!(path.join("model.zarr/zarr.json").is_file());
    // Times and durations stand in the log, not in the store.
    assert!(std::fs::read_to_string(path.join("model.zarr.log")).expect("a log").contains("begins"));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let folder = folder_with_data(30);
    let said = gpssm(folder.path(), "fit data.csv --y y --u u --time t --states 2 --dry-run");
    for part in ["30 rows", "state", "MB", "chains"] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    assert_eq!(common::bytes_of(folder.path()).len(), 1);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_does_not() {
    let folder = folder_with_data(30);
    let path = folder.path();
    let fit = ["fit", "data.csv", "--y", "y", "--u", "u", "--time", "t", "--states", "1"];
    for (out, seed) in [("a.zarr", "3"), ("b.zarr", "3"), ("c.zarr", "4")] {
        succeed(path, &[&fit[..], &TINY[..15], &["--seed", seed, "-o", out]].concat());
    }
    assert!(differences(&path.join("a.zarr"), &path.join("b.zarr")).is_empty());
    assert!(!differences(&path.join("a.zarr"), &path.join("c.zarr")).is_empty());
    let again = "simulate a.zarr --inputs data.csv --paths 20 --seed 5";
    assert_eq!(gpssm(path, again), gpssm(path, again));
}

#[test]
fn a_fit_prints_json_and_is_replaced_only_when_asked() {
    let folder = folder();
    let path = folder.path();
    let fit = [
        "fit",
        "data.csv",
        "--y",
        "y",
        "--u",
        "u",
        "--time",
        "t",
        "--states",
        "1",
        "-o",
        "run.zarr",
        "--overwrite",
        "--json",
    ];
    let said = succeed(path, &[&fit[..], &TINY[1..]].concat());
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["chains"], serde_json::json!([0, 1]));
    assert!(differences(&RUN.join("run.zarr"), &path.join("run.zarr")).is_empty());
}

#[test]
fn a_summary_is_a_table_or_json_and_can_be_strict() {
    let folder = folder();
    let path = folder.path();
    let said = gpssm(path, "summary run.zarr --level 0.8");
    for part in ["2 chains of 8 draws", "80 % from", "process_sd", "R-hat", "changed in"] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    assert!(!said.contains(" 0 failed"), "what did not happen is not said: {said}");
    let json: Value = serde_json::from_str(&gpssm(path, "summary run.zarr --json")).expect("JSON");
    assert_eq!(json["lights"]["lights"][0]["state"], "bad");
    let parameters = json["parameters"].as_array().expect("a list");
    assert!(parameters.iter().all(|parameter| parameter["mean"].is_f64()));
    // Eight draws after six sweeps of warm-up are something to warn about.
    assert!(!json["warnings"].as_array().expect("a list").is_empty());
    assert_eq!(run(path, &["summary", "run.zarr", "--strict"]).status.code(), Some(3));
}

/// The verdict stands first, and its commands are lines that can be typed.
#[test]
fn a_summary_begins_with_a_verdict_and_commands() {
    let folder = folder();
    let path = folder.path();
    let said = gpssm(path, "summary run.zarr");
    let place = |part: &str| said.find(part).unwrap_or_else(|| panic!("no {part} in: {said}"));
    let parts = [
        "The chains have not converged",
        "[bad] Have the chains",
        "] Is the model good?",
        "] Are its predictions",
    ];
    let places = parts.map(place);
    assert!(places.is_sorted() && places[3] < place("process_sd"), "{said}");
    assert!(said.contains("-> Continue with: gpssm fit --resume run.zarr --ess"), "{said}");
    for model in ["model ", "constant", "ARX by BIC", "linear state space"] {
        assert!(said.lines().any(|line| line.starts_with(model)), "no {model} in: {said}");
    }
    assert!(said.contains("Predictions of all 30 training rows"), "{said}");
    let said = gpssm(path, "summary run.zarr new.csv");
    assert!(said.contains("Predictions of all 12 rows of new.csv"), "{said}");
    // The model and the data of a run are fitted again, as the verdict may recommend.
    gpssm(path, "fit run.zarr --set sampler.start.restarts=2 --chains 1 -o again.zarr -q");
    assert!(gpssm(path, "summary again.zarr").contains("[unknown] Have the chains converged?"));
}

/// The exit code says whether all tests passed.
#[test]
fn checks_are_a_table_a_page_and_an_exit_code() {
    let folder = folder();
    let path = folder.path();
    let line =
        ["check", "run.zarr", "--paths", "100", "--horizons", "1,2", "--statistics", "mean,sd", "--json"];
    let output = run(path, &line);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let passed = json["passed"].as_bool().expect("a flag");
    assert_eq!(output.status.code(), Some(if passed { 0 } else { 3 }), "{}", text(&output.stderr));
    let check = &json["check"];
    let length = |key: &str| check[key].as_array().expect("a list").len();
    // White, calibrated, one input; two statistics.
    assert_eq!(
        (length("tests"), length("residuals"), length("replicated"), length("horizons")),
        (5, 1, 2, 2)
    );
    assert!(length("informed") > 3 && length("influence") + length("left_out") > 0);
    let html = std::fs::read_to_string(path.join("run.check.html")).expect("a page");
    assert!(html.matches("<figure>").count() == 3 && !html.contains("NaN"));
    let said = run(path, &["check", "run.zarr", "new.csv", "--paths", "100", "-o", "new.html"]);
    let words = text(&said.stdout);
    assert!(words.contains("residuals are white") && words.contains("What the data said"), "{words}");
    assert!(!words.contains("Rows that the estimates hang on"), "only the training record has them: {words}");
}

/// Every model and the linear ones, in a table and on a page.
#[test]
fn free_runs_of_several_models_are_compared() {
    let folder = folder();
    let path = folder.path();
    copy(&path.join("run.zarr"), &path.join("twin.zarr"));
    let said = gpssm(path, "compare run.zarr twin.zarr new.csv --plot --paths 40");
    let first = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().skip(1).collect::<Vec<_>>())
    };
    assert!(
        first("run.zarr").is_some_and(|row| row.len() == 4) && first("run.zarr") == first("twin.zarr"),
        "{said}"
    );
    assert!(first("linear state space").is_some() && first("ARX by free runs").is_some(), "{said}");
    let html = std::fs::read_to_string(path.join("compare.html")).expect("a page");
    assert!(html.contains("90 % of run.zarr") && html.contains("twin.zarr:") && !html.contains("NaN"));
    // Both see the record in the same rows, so their densities are of the same numbers, too.
    assert!(gpssm(path, "compare run.zarr twin.zarr new.csv").contains("log score of a row"));
}

/// A store that stopped in the warm-up has nothing to predict with, and no command pretends that it has.
#[test]
fn a_run_without_draws_is_refused_in_one_line_and_summarised_as_unknown() {
    let folder = folder_with_data(30);
    let path = folder.path();
    let fit = ["fit", "data.csv", "--y", "y", "--u", "u", "--time", "t", "--states", "1", "-o", "run.zarr"];
    let budget = ["--budget", "0.001s", "--chains", "2", "--tune", "5000"];
    assert_ne!(run(path, &[&fit[..], &budget].concat()).status.code(), Some(0));
    for line in ["score run.zarr data.csv", "check run.zarr", "forecast run.zarr --inputs data.csv"] {
        let output = run(path, &words(line).iter().map(String::as_str).collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{line}: {said}");
        assert!(said.contains("no draws yet") && said.contains("gpssm fit --resume run.zarr"), "{said}");
        assert!(output.stdout.is_empty());
    }
    let said = gpssm(path, "summary run.zarr");
    assert!(said.contains("This run has no draws yet") && said.matches("[unknown]").count() == 3, "{said}");
}

#[test]
fn a_report_is_one_html_file() {
    let folder = folder();
    gpssm(folder.path(), "report run.zarr -o report.html");
    let html = std::fs::read_to_string(folder.path().join("report.html")).expect("a report");
    assert!(html.trim_start().to_lowercase().starts_with("<!doctype html>"));
    assert!(html.contains("<svg") && html.trim_end().ends_with("</html>"));
    let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("no {part}"));
    assert!(place("class=\"verdict\"") < place("Have the chains converged?"));
    assert!(place("Have the chains converged?") < place("<nav"));
    // Opens offline.
    for reference in ["src=\"http", "href=\"http", "@import"] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(!html.contains("NaN"));
}

#[test]
fn predictions_of_the_function_and_the_next_state() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("points.csv"), "x,u\n0,0\n0.5,1\n-0.5,-1\n").expect("points");
    let (names, rows) = csv(&gpssm(path, "predict run.zarr points.csv"));
    assert_eq!(names, header(&["x", "u"], &["f_x"], &[]));
    assert_eq!(rows.len(), 3);
    let (next_names, next) = csv(&gpssm(path, "predict run.zarr points.csv --next-state"));
    assert_eq!(next_names, header(&["x", "u"], &["next_x"], &[]));
    for (f, next) in rows.iter().zip(&next) {
        assert!(f[2] == next[2] && f[3] < next[3], "process noise widens, and does not move: {f:?} {next:?}");
        assert!(f[4..].is_sorted(), "quantiles are in order: {f:?}");
    }
}

#[test]
fn predictions_ahead() {
    let (names, rows) = table("predict run.zarr new.csv --horizon 2 --samples 40");
    assert_eq!(names, header(&["time"], &["y"], &["log_score"]));
    assert!(!rows.is_empty() && rows.len() <= 12);
}

#[test]
fn free_runs() {
    let (names, rows) = table("simulate run.zarr --inputs new.csv --paths 30");
    assert_eq!(names, header(&["time"], &["y", "state_x"], &[]));
    assert_eq!(rows.len(), 12);
    let (_, rows) = table("simulate run.zarr --inputs new.csv --paths 30 --n-init 4");
    assert_eq!(rows.len(), 12);
    let (_, given) = table("simulate run.zarr --inputs new.csv --paths 30 --initial -0.7");
    assert!((given[0][8] + 0.7).abs() < 1e-9, "the first state is the one that was given: {:?}", given[0]);
    let folder = folder();
    gpssm(folder.path(), "simulate run.zarr --inputs new.csv --initial last --paths 7 --samples s.csv");
    let (names, rows) = csv(&std::fs::read_to_string(folder.path().join("s.csv")).expect("a table"));
    assert_eq!(names, ["path", "draw", "time", "y", "state_x"]);
    assert_eq!(rows.len() % 7, 0);
    assert!(rows.iter().flatten().all(|value| value.is_finite()));
}

/// The first row is the one after the training record, which ends at 2.9.
#[test]
fn forecasts_go_on_after_the_training_record() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("next.csv"), "t,u\n3.0,0.5\n3.1,0.4\n3.2,0.3\n").expect("inputs");
    let (names, rows) = csv(&gpssm(path, "forecast run.zarr --inputs next.csv --paths 30"));
    assert_eq!(names, header(&["time"], &["y", "state_x"], &[]));
    let expected = csv(&gpssm(path, "simulate run.zarr --inputs next.csv --initial last --paths 30")).1;
    assert_eq!(rows.len(), 3);
    for (row, simulated) in rows.iter().zip(&expected) {
        assert!((row[0] - simulated[0]).abs() < 1e-9, "time {} and not {}", row[0], simulated[0]);
        assert_eq!(row[1..], simulated[1..]);
    }
    let fit = ["fit", "data.csv", "--y", "y", "--time", "t", "--states", "1", "-o", "free.zarr"];
    succeed(path, &[&fit[..], &TINY].concat());
    let (_, rows) = csv(&gpssm(path, "forecast free.zarr --steps 5 --after 1 --paths 30"));
    let times: Vec<f64> = rows.iter().map(|row| (10.0 * row[0]).round()).collect();
    assert_eq!(times, [30.0, 31.0, 32.0, 33.0, 34.0]);
}

#[test]
fn simulations_before_any_fit() {
    let folder = folder();
    gpssm(folder.path(), "init data.csv -o model.toml");
    let (names, rows) = csv(&gpssm(folder.path(), "simulate --prior model.toml --paths 20"));
    assert_eq!(names[0], "time");
    assert_eq!(rows.len(), 30);
}

#[test]
fn filters_and_smoothers() {
    let (names, rows) = table("filter run.zarr new.csv --functions 5 --particles 10");
    assert_eq!(names, ["time", "x_mean", "x_sd", "log_marginal_likelihood"]);
    assert_eq!(rows.len(), 12);
    let (names, rows) = table("smooth run.zarr new.csv --functions 5 --particles 10 --paths 30");
    assert_eq!(names, header(&["time"], &["x"], &[]));
    assert_eq!(rows.len(), 12);
}

#[test]
fn scores_beside_baselines_and_models_in_order() {
    let folder = folder();
    let path = folder.path();
    let said = gpssm(path, "score run.zarr new.csv --n-init 3 --paths 40");
    assert!(said.contains("RMSE") && said.contains("free run"), "{said}");
    let json = gpssm(path, "score run.zarr new.csv --n-init 3 --horizon 1 --paths 40 --json");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["report"]["scores"].as_array().is_some_and(|scores| scores.len() > 1), "{json}");
    copy(&path.join("run.zarr"), &path.join("twin.zarr"));
    let line = "compare run.zarr twin.zarr --record-file new.csv --json";
    let json: Value = serde_json::from_str(&gpssm(path, line)).expect("JSON");
    let ranking = json["ranking"].as_array().expect("a list");
    assert_eq!(ranking.len(), 2);
    assert_eq!(ranking[0]["log_score"], ranking[1]["log_score"], "the same draws, the same score");
    let line = "compare run.zarr twin.zarr --method lfo --draws-of-fit 15 --functions 30";
    let json: Value = serde_json::from_str(&gpssm(path, &format!("{line} --json"))).expect("JSON");
    let ranking = json["ranking"].as_array().expect("a list");
    assert_eq!(ranking[0]["rows"], ranking[1]["rows"], "the same model, the same scores");
    assert!(ranking[0]["fits"][0].as_u64().is_some_and(|row| row > 1), "{json}");
    assert!(gpssm(path, line).contains("largest k"));
}

#[test]
fn smaller_posteriors() {
    let folder = folder();
    let path = folder.path();
    let json: Value = serde_json::from_str(&gpssm(path, "thin run.zarr --keep 4")).expect("JSON");
    assert_eq!(json["loss"]["kept"].as_array().map(Vec::len), Some(4));
    gpssm(path, "distil run.zarr -o small.json --size 6 --max-loss 1000");
    let small = std::fs::read_to_string(path.join("small.json")).expect("a file");
    let small: Value = serde_json::from_str(&small).expect("JSON");
    assert!(small["loss"]["mean_rmse"][0].as_f64().is_some_and(f64::is_finite), "{}", small["loss"]);
    assert!(small["loss"]["free_run"]["distilled_fit"][0].as_f64().is_some(), "{}", small["loss"]);
    assert_eq!((&small["version"], &small["output_names"][0]), (&Value::from(2), &Value::from("y")));
}

/// A model that states everything, and runs that are over in a moment.
const STATED: &str = "[data]\ny = 'y'\n[model]\nstandardise = false\nmean = 'identity'
kernel = { squared_exponential = { sigma_f = 'log_normal(1, 0.4)', ell = ['log_normal(1, 0.4)'] } }
process_noise = 'log_normal(0.4, 0.4)'\nsensor = { noise = 'log_normal(0.3, 0.4)' }
initial = { gaussian = { mean = [0.0], sd = [1.0] } }\n[[model.state]]\nscale = 1.0
[sampler]\ntune = 4\nparticles = 5\nstart = { restarts = 2, particles = 5 }\n";

#[test]
fn calibration_by_simulation_continues_to_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("m.toml"), STATED).expect("a model file");
    let sbc = |more: &str| gpssm(path, &format!("sbc m.toml --steps 4 --draws 7 --thin 2 {more}"));
    let said = sbc("--runs 4 --threads 1 -o whole");
    assert!(said.contains("process_sd[x]") && said.contains("log joint"), "{said}");
    sbc("--runs 2 -o parts");
    // As after a kill: one run is missing, one is cut, and a file was about to be written.
    let runs = path.join("parts/runs");
    std::fs::remove_file(runs.join("000000.json")).expect("a finished run");
    std::fs::write(runs.join("000001.json"), "{\"ranks\":[1").expect("a cut run");
    std::fs::write(runs.join("000002.partial"), "{").expect("a partial file");
    let json: Value = serde_json::from_str(&sbc("--runs 4 --threads 2 -o parts --json")).expect("JSON");
    assert_eq!(json["quantities"].as_array().map(Vec::len), Some(12));
    assert_eq!(differences(&path.join("whole"), &path.join("parts")), Vec::<PathBuf>::new());
    let html = std::fs::read_to_string(path.join("whole/report.html")).expect("a report");
    assert!(html.contains("<svg") && html.contains("process_sd[x]"));
    let ranks = std::fs::read_to_string(path.join("whole/ranks.csv")).expect("ranks");
    assert_eq!(ranks.lines().count(), 5);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    for line in ["--help", "--version", "fit --help", "predict --help"] {
        assert!(!gpssm(folder.path(), line).is_empty(), "{line}");
    }
    let alone = run(folder.path(), &[]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("First steps"));
}

/// A point estimate is a store that all commands take, marked for what it is; the command that it recommends draws from the posterior.
#[test]
fn a_point_estimate_is_a_run_of_one_draw() {
    let folder = folder();
    let path = folder.path();
    let quick = "--set sampler.start.restarts=2 --quiet";
    gpssm(path, &format!("fit data.csv --y y --u u --states 1 --point --tune 40 {quick} -o point.zarr"));
    let said = gpssm(path, "summary point.zarr");
    for part in ["This is a point estimate", "[fair]", "--set sampler.point=false", "and one path"] {
        assert!(said.contains(part), "no {part} in:\n{said}");
    }
    let said = gpssm(path, "score point.zarr data.csv --against run.zarr");
    let row = |name: &str| said.lines().any(|line| line.starts_with(name) && line.contains('%'));
    assert!(row("model") && row("run "), "{said}");
    gpssm(path, "export point.zarr --to c -o out --scenarios 3 --size 6 --max-loss 1000");
    assert!(
        std::fs::read_to_string(path.join("out/point.h"))
            .is_ok_and(|text| text.contains("#define POINT_SCENARIOS 3"))
    );
    let more = "--set sampler.point=false --chains 2 --draws 4 --tune 2";
    gpssm(path, &format!("fit point.zarr {more} {quick} -o again.zarr"));
    assert!(!gpssm(path, "summary again.zarr").contains("point estimate"));
    let done = gpssm(path, "fit --resume point.zarr --quiet");
    assert!(done.is_empty(), "{done}");
}

/// A run becomes sources that a compiler takes, with scenarios, and so does a distilled file; it becomes an ONNX model and a unit.
#[test]
fn a_run_is_exported() {
    let folder = folder();
    let path = folder.path();
    let losses = "--max-loss 1000 --size 5";
    gpssm(path, &format!("export run.zarr --to c -o out --name plant --scenarios 3 {losses}"));
    let header = std::fs::read_to_string(path.join("out/plant.h")).expect("a header");
    for part in ["#define PLANT_SCENARIOS 3", "x[0]  x, training data from", "A step is 0.1", "Free run of y"]
    {
        assert!(header.contains(part), "no {part} in:\n{header}");
    }
    gpssm(path, &format!("distil run.zarr -o small.json {losses}"));
    gpssm(path, "export small.json --to c -o again --precision float --filter particles --particles 30");
    let header = std::fs::read_to_string(path.join("again/small.h")).expect("a header");
    assert!(header.contains("typedef float small_real;") && header.contains("#define SMALL_PARTICLES 30"));
    gpssm(path, "export small.json --to onnx -o other");
    gpssm(path, "export small.json --to fmu -o other");
    let unit = std::fs::read(path.join("other/small.fmu")).expect("a unit");
    assert!(unit.starts_with(b"PK\x03\x04") && text(&unit).contains("modelName=\"small\""));
    assert!(std::fs::read(path.join("other/small.onnx")).is_ok_and(|bytes| bytes.len() > 1000));
    let refused = run(path, &["export", "small.json", "--to", "c", "-o", "again"]);
    assert!(text(&refused.stderr).contains("exists"), "{}", text(&refused.stderr));
    let compiler = std::process::Command::new("make").arg("-C").arg(path.join("out")).arg("-s").output();
    match compiler {
        Ok(made) if made.status.success() => {
            let said = std::process::Command::new(path.join("out/example")).output().expect("it runs");
            assert!(
                said.status.success() && text(&said.stdout).contains("f[0]: mean"),
                "{}",
                text(&said.stdout)
            );
        }
        _ => println!("make or a compiler is not installed: the example was not compiled"),
    }
}

/// Linear models in words, JSON and CSV agree; without states they stand at the equilibrium.
#[test]
fn a_model_is_linearized() {
    let folder = folder();
    let path = folder.path();
    let words = gpssm(path, "linearize run.zarr --at x=0.4,u=0.2 --steps 4");
    for part in ["at x = 0.4000, u = 0.2000", "A[x, x] =", "B[x, u] =", "pole", "stable in"] {
        assert!(words.contains(part), "no {part} in {words}");
    }
    let found = gpssm(path, "linearize run.zarr --at x=0.4,u=0.2 --steps 4 --json -o linear.csv");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let a = found["A"][0][0].as_f64().expect("a number");
    assert!(found["A_low"][0][0].as_f64() < Some(a) && Some(a) < found["A_high"][0][0].as_f64());
    assert!((found["dt"].as_f64().expect("a sampling time") - 0.1).abs() < 1e-12);
    assert_eq!(found["step_responses"][0]["rows"].as_array().map(Vec::len), Some(4));
    let table = std::fs::read_to_string(path.join("linear.csv")).expect("a table");
    assert!(table.starts_with("quantity,row,column,index,mean,low,high\n"), "{table}");
    assert!(table.contains(&format!("A,x,x,0,{a},")), "{table}");
    let rest = gpssm(path, "equilibrium run.zarr --at u=0.2 --json");
    let rest: Value = serde_json::from_str(&rest).expect("JSON");
    let x = rest["equilibrium"]["x"]["mean"].as_f64().expect("a number");
    let there = gpssm(path, "linearize run.zarr --at u=0.2 --json");
    let there: Value = serde_json::from_str(&there).expect("JSON");
    assert!((there["x"][0].as_f64().expect("a number") - x).abs() < 1e-12);
}
