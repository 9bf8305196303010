//! `gpssm evaluate`: fit one record, run free over another, and score it beside simple models.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::{Args, ValueEnum};
use gpssm::posterior::Simulation;
use gpssm::{Ended, Record, Sequence};
use gpssm_identify::{Calibration, ScoreOptions, ScoreReport};
use gpssm_io::auto;
use gpssm_io::config::{RunConfig, RunFile};
use gpssm_io::fit::Fit;
use gpssm_io::table::{Columns, Data, read_record};
use gpssm_report::figures::{self, Series, figure_free_run};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::Verbosity;
use crate::commands::{fit, score};
use crate::failure::{Failure, code};
use crate::fitted::{DrawArgs, Fitted, IntervalTable, parse_rows, warn};
use crate::output::check_folder;
use crate::progress::steps;

/// Arguments of `gpssm evaluate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm evaluate --train est.csv --test val.csv --y y --u u
  gpssm evaluate --train drive.csv --split 0.5 --y y --u u -o drive-evaluation

The initial state of the test part is inferred from its first rows (--n-init), or with --initial last from the end of the
training part. By default the model is chosen from the training part (--states auto). The baselines are fitted to the same
rows: the mean, linear ARX models with order selected by BIC and by simulation within the training part, the best linear
state-space model (order by simulation, too), and the mean function of f alone. Point forecasts are medians. The output folder holds the run (run.zarr), the prediction intervals (intervals.csv) and a figure (free_run.svg).")]
pub struct EvaluateArgs {
    /// A CSV file to fit.
    #[arg(long, value_name = "FILE")]
    pub train: PathBuf,
    /// A CSV file to simulate.
    #[arg(long, value_name = "FILE", required_unless_present = "split", conflicts_with = "split")]
    pub test: Option<PathBuf>,
    /// Rows of --test, counted from 1.
    #[arg(long, value_name = "FIRST:LAST", requires = "test")]
    pub test_rows: Option<String>,
    /// Fraction of the rows of --train used to fit; the rest is simulated.
    #[arg(long, value_name = "FRACTION")]
    pub split: Option<f64>,
    /// Output columns, comma separated.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', required = true)]
    pub y: Vec<String>,
    /// Input columns, comma separated.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub u: Vec<String>,
    /// Column of times with equal steps.
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Sampling time, if there is no column of times.
    #[arg(long, value_name = "DT", conflicts_with = "time")]
    pub dt: Option<f64>,
    /// Number of states, or auto.
    #[arg(long, value_name = "N", default_value = "auto")]
    pub states: String,
    /// Rows from which the initial state is inferred. With last the test part must follow the training part without a gap.
    #[arg(long, value_enum, default_value_t)]
    pub initial: From,
    /// Number of first rows used to infer the initial state; they are not scored [default: the longest lag of the model, at
    /// least 5].
    #[arg(long, value_name = "N", conflicts_with = "initial")]
    pub n_init: Option<usize>,
    /// Any key of the model file; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Number of simulated paths.
    #[arg(long, default_value_t = 400)]
    pub paths: usize,
    /// Do not calibrate the prediction intervals on held-out parts of the training record.
    #[arg(long)]
    pub raw: bool,
    /// Output folder [default: the name of --train with .evaluation].
    #[arg(long, short, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Overwrite an existing run.
    #[arg(long)]
    pub overwrite: bool,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// Rows that set the state of the free run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// The first rows of the test part, which are not scored.
    #[default]
    First,
    /// The last rows of the training part; every row of the test part is scored.
    Last,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// The model, then its baselines.
    pub report: ScoreReport,
    /// Outputs.
    pub outputs: Vec<String>,
    /// The model in words.
    pub model: String,
    /// Where the state of the test part is from.
    pub initial: String,
    /// Of the prediction intervals.
    pub calibration: Calibration,
    /// What is to be known of the model.
    pub notes: Vec<String>,
    /// Rows that were scored.
    pub n_scored: usize,
    /// Time of everything.
    pub seconds: f64,
}

/// Runs the command; the exit code.
pub fn run(args: &EvaluateArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    let out = args.out.clone().unwrap_or_else(|| {
        let stem = args.train.file_stem().unwrap_or_else(|| "run".as_ref());
        Path::new(stem).with_extension("evaluation")
    });
    let Some(found) = evaluate(args, &out, stop)? else { return Ok(code::STOPPED) };
    if args.verbosity.json {
        println!("{:#}", json!(found));
    } else {
        println!("model: {}", found.model);
        found.notes.iter().for_each(|note| println!("  {note}"));
        println!("{}, {} rows scored", found.initial, found.n_scored);
        if let Some(words) = found.calibration.describe() {
            println!("{words}");
        }
        println!();
        print!("{}", score::table(&found.report, &found.outputs));
        println!("\n{} (run.zarr, intervals.csv, free_run.svg), {:.0} s", out.display(), found.seconds);
    }
    Ok(0)
}

/// Fits, runs free and scores; none if it was stopped.
pub fn evaluate(
    args: &EvaluateArgs,
    out: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Evaluation>, Failure> {
    let began = Instant::now();
    if args.paths == 0 {
        return Err(Failure::input("--paths 0: at least one path is needed"));
    }
    let quiet = args.verbosity.quiet || args.verbosity.json;
    let mut file = RunFile::new();
    file.option("--y", &args.y.join(","))?;
    if !args.u.is_empty() {
        file.option("--u", &args.u.join(","))?;
    }
    if let Some(time) = &args.time {
        file.option("--time", time)?;
    }
    if let Some(dt) = args.dt {
        file.option("--dt", &dt.to_string())?;
    }
    file.option("--states", &args.states)?;
    file.option("--seed", &args.seed.to_string())?;
    for assignment in &args.set {
        file.set(assignment)?;
    }
    let mut config = file.config()?;
    let (training, test) = parts(args, &mut config)?;
    if test.n_rows() < 10 {
        return Err(Failure::input(format!(
            "{} rows to run free over: at least 10 are needed",
            test.n_rows()
        )));
    }
    check_folder(out)?;
    let store = out.join("run.zarr");
    fit::make_way(&store, args.overwrite, "choose another folder with -o, or --overwrite it")?;
    std::fs::create_dir_all(out).map_err(|error| Failure::writing(out, &error))?;

    let mut notes = Vec::new();
    let mut model = format!("{} states, as asked for", args.states);
    if auto::is_asked_for(&config) {
        let (chosen, choice) = fit::choose(&file, &config, &args.train, quiet)?;
        config = chosen;
        model = choice.winner().map_or_else(|| choice.notes.join("; "), |trial| trial.candidate.describe());
        notes = choice.notes;
    }
    let data = read_record(&args.train, &config.data.columns()).map_err(Failure::input)?;
    let resolved = file.resolve(&config, &data)?;
    let began_fit = Fit::begin(&store, &resolved, &data, None)?;
    let spoken = Verbosity { quiet, json: false };
    if fit::sample(began_fit, spoken, stop)? == Ended::Cancelled {
        return Ok(None);
    }

    let mut fitted = Fitted::open(&store, DrawArgs { max_draws: 200, seed: 1 })?;
    warn_of_chains(&fitted);
    // All rows before the test part, also where a long record was learned from its beginning.
    fitted.model.training = training;
    let last = fitted.model.training.sequences().len() - 1;
    let options = ScoreOptions {
        n_init: args.n_init,
        after_training: (args.initial == From::Last).then_some(last),
        n_paths: args.paths,
        raw: args.raw,
        ..ScoreOptions::default()
    };
    let n_init = fitted.model.n_init(&options, test.n_rows());
    let initial = match args.initial {
        From::First => format!("free run from the state after the first {n_init} rows of the test part"),
        From::Last => "free run from the last state of the training part".into(),
    };
    let progress = (!quiet).then(|| steps("free run"));
    let tell = |done: usize, of: usize| progress.as_ref().is_none_or(|progress| progress.tell(done, of));
    let (report, run) = fitted.model.score_free_run(&test, &options, &tell)?;
    drop(progress);
    if !quiet {
        warn(&report.warnings);
    }
    write_intervals(out, &run, &test, &args.y)?;
    Ok(Some(Evaluation {
        report,
        outputs: args.y.clone(),
        model,
        initial,
        calibration: if args.raw { Calibration::default() } else { fitted.model.calibration },
        notes,
        n_scored: test.n_rows() - n_init,
        seconds: began.elapsed().as_secs_f64(),
    }))
}

/// The training record and the test sequence as they stand in the files; rows of the training part go into the
/// configuration.
fn parts(args: &EvaluateArgs, config: &mut RunConfig) -> Result<(Record, Sequence), Failure> {
    let plain = config.data.columns().as_measured();
    let read = |path: &Path, columns: &Columns| read_record(path, columns).map_err(Failure::input);
    if let Some(path) = &args.test {
        let training = read(&args.train, &plain)?;
        let rows = args.test_rows.as_deref().map(parse_rows).transpose()?;
        let test = read(path, &Columns { rows, ..plain })?;
        return Ok((training.record, single(&test)?.clone()));
    }
    let split = args.split.unwrap_or(0.5);
    if !(split > 0.0 && split < 1.0) {
        return Err(Failure::input(format!("--split {split}: give a part between 0 and 1, such as 0.5")));
    }
    let all = read(&args.train, &plain)?;
    let rows = single(&all)?.n_rows();
    let from = config.data.rows.map_or(1, |(from, _)| from);
    let cut = (split * rows as f64).round() as usize;
    if cut < 2 || rows - cut < 2 {
        return Err(Failure::input(format!("--split {split}: {rows} rows are too few to cut there")));
    }
    config.data.rows = Some((from, from + cut - 1));
    let training = read(&args.train, &Columns { rows: config.data.rows, ..plain.clone() })?;
    let test = read(&args.train, &Columns { rows: Some((from + cut, from + rows - 1)), ..plain })?;
    Ok((training.record, single(&test)?.clone()))
}

fn single(data: &Data) -> Result<&Sequence, Failure> {
    match data.record.sequences() {
        [sequence] => Ok(sequence),
        several => {
            let message = format!("{}: {} sequences, but one is evaluated", data.source, several.len());
            Err(Failure::input(message))
        }
    }
}

fn warn_of_chains(fitted: &Fitted) {
    let found =
        gpssm::convergence::assess(&fitted.run.problem, &fitted.run.settings, &fitted.run.chains, 0.9);
    for warning in &found.warnings {
        if matches!(warning, gpssm::convergence::Warning::Apart(_) | gpssm::convergence::Warning::OneChain) {
            eprintln!("warning: {warning}");
        }
    }
}

fn write_intervals(out: &Path, run: &Simulation, test: &Sequence, outputs: &[String]) -> Result<(), Failure> {
    let time: Vec<f64> = (0..test.n_rows()).map(|t| t as f64).collect();
    let mut table = IntervalTable::new(outputs.to_vec());
    table.add("1", &time, &run.y);
    table.into_output(false).write(Some(&out.join("intervals.csv")))?;
    let series: Vec<Series> = outputs
        .iter()
        .enumerate()
        .map(|(k, name)| {
            let line = |p: f64| (0..test.n_rows()).map(|t| run.y.quantile(t, k, p)).collect::<Vec<f64>>();
            Series {
                title: name.clone(),
                t: time.clone(),
                data: test.output(k).collect(),
                bands: Some(figures::Intervals {
                    low: line(0.05),
                    inner_low: line(0.25),
                    middle: line(0.5),
                    inner_high: line(0.75),
                    high: line(0.95),
                }),
                ..Series::default()
            }
        })
        .collect();
    let path = out.join("free_run.svg");
    let figure = figure_free_run("Free run over the test part", "row", &series);
    std::fs::write(&path, figure).map_err(|error| Failure::writing(&path, &error))
}
