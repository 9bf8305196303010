//! A free run means one thing: `evaluate`, `score`, `simulate` and the library give the same numbers to the last digit
//! (the tests of the Python package compare Python's with the program's).

mod common;

use std::path::Path;

use gpssm_identify::evaluation::ScoreReport;
use gpssm_identify::{FittedModel, ScoreOptions};
use gpssm_io::fit::LoadedRun;
use gpssm_io::table::read_record;

use common::{folder_with_data, succeed, words};

const ROWS: usize = 160;
/// Rows of the training part.
const CUT: usize = 96;
const FIT: &str = "evaluate --train data.csv --y y --u u --split 0.6 --paths 60 --json \
    --set model.lags=1 --set data.input_lags=2 --set data.delay=2 --set sampler.draws=20 --set sampler.tune=20 \
    --set 'model.kernel=\"linear + constant\"'";

fn program(folder: &Path, line: &str) -> String {
    let line = words(line);
    succeed(folder, &line.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Scores in a JSON text, at `report` of the table.
fn report(text: &str) -> ScoreReport {
    let found: serde_json::Value = serde_json::from_str(text).unwrap();
    serde_json::from_value(found["report"].clone()).unwrap()
}

/// The columns of a table whose names begin with `y_`.
fn outputs(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let kept: Vec<usize> = (0..names.len()).filter(|&c| names[c].starts_with("y_")).collect();
    std::iter::once(names.clone())
        .chain(lines)
        .map(|row| kept.iter().map(|&c| row[c].clone()).collect())
        .collect()
}

fn library(folder: &Path) -> (FittedModel, gpssm::Sequence) {
    let run = LoadedRun::open(&folder.join("found/run.zarr")).unwrap();
    let columns =
        gpssm_io::table::Columns { rows: Some((CUT + 1, ROWS)), ..run.data.columns().as_measured() };
    let test = read_record(&folder.join("data.csv"), &columns).unwrap();
    (run.fitted(200).unwrap(), test.record.sequences()[0].clone())
}

/// Seen failing with all draws in the library where the program takes 200 of them.
#[test]
fn evaluate_score_simulate_and_the_library_agree() {
    let folder = folder_with_data(ROWS);
    let here = folder.path();
    for (every, raw) in [(1, ""), (2, ""), (1, " --raw")] {
        for last in [false, true] {
            let initial = if last { " --initial last" } else { " --n-init 12" };
            let fit = format!("{FIT} --set data.every={every}{initial}{raw} --overwrite -o found");
            let evaluated = report(&program(here, &fit));
            let run = "found/run.zarr";
            let rows = format!("--rows {}:{ROWS} --paths 60{raw}", CUT + 1);
            let start = if last { "--after-training" } else { "--n-init 12" };
            let scored = report(&program(here, &format!("score {run} data.csv {rows} {start} --json")));
            assert_eq!(evaluated, scored, "every {every}{initial}{raw}");
            let simulate = format!("simulate {run} --inputs data.csv {rows}{initial} -o simulated.csv");
            program(here, &simulate);
            let intervals = outputs(&here.join("found/intervals.csv"));
            assert_eq!(intervals.len(), ROWS - CUT + 1);
            assert_eq!(intervals, outputs(&here.join("simulated.csv")), "every {every}{initial}{raw}");
            let (model, test) = library(here);
            assert!(!model.calibration.is_identity() && model.layout.every == every);
            let options = ScoreOptions {
                n_init: (!last).then_some(12),
                after_training: last.then_some(0),
                n_paths: 60,
                raw: !raw.is_empty(),
                ..ScoreOptions::default()
            };
            assert_eq!(model.score(&test, &options, &|_, _| true).unwrap(), evaluated);
        }
    }
}

/// Resumed and merged runs keep their calibration and the rows as they were measured.
#[test]
fn calibration_is_kept() {
    let folder = folder_with_data(ROWS);
    let here = folder.path();
    program(here, &format!("{FIT} --set data.every=2 --set sampler.chains=1 -o found"));
    let before = LoadedRun::open(&here.join("found/run.zarr")).unwrap();
    program(here, "fit --resume found/run.zarr --draws 70 --quiet");
    program(here, "merge found/run.zarr -o merged.zarr");
    let after = LoadedRun::open(&here.join("merged.zarr")).unwrap();
    assert_eq!(after.chains[0].theta.len(), 70);
    assert_eq!((&after.calibration, &after.measured), (&before.calibration, &before.measured));
    assert!(after.measured.is_some() && after.calibration != gpssm_identify::Calibration::default());
}
