//! `gpssm evaluate`: fit one record, run free over another, and score it beside simple models.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum};
use gpssm::posterior::Simulation;
use gpssm::{Ended, Record, Sequence};
use gpssm_identify::{Calibration, ScoreOptions, ScoreReport};
use gpssm_io::auto;
use gpssm_io::config::{RunConfig, RunFile};
use gpssm_io::fit::Fit;
use gpssm_io::table::{Columns, Data, TimeUnit, read_record};
use gpssm_report::figures::{self, Series, figure_free_run};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::Verbosity;
use crate::commands::report::{time_label, time_ticks};
use crate::commands::{fit, score};
use crate::failure::{Failure, code};
use crate::fitted::{DrawArgs, Fitted, IntervalTable, parse_rows, say_notes, warn};
use crate::output::check_folder;
use crate::progress::steps;

/// Arguments of `gpssm evaluate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm evaluate --train est.csv --test val.csv --y y --u u
  gpssm evaluate --train drive.csv --split 0.5 --y y --u u -o drive-evaluation
  gpssm evaluate --train a.csv --test b.csv --test c.csv --y y --u u --windows 50

The initial state of the test part is inferred from its first rows (--n-init), or with --initial last from the end of the
training part. By default the model is chosen from the training part (--states auto). The baselines are fitted to the same
rows: the mean, linear ARX models with order selected by BIC and by simulation within the training part, the best linear
state-space model (order by simulation, too), and the mean function of f alone. Point forecasts are medians. The output folder holds the run (run.zarr), the prediction intervals (intervals.csv) and a figure (free_run.svg);
with several test files the last two are in folders test_1, test_2, ...")]
pub struct EvaluateArgs {
    /// A CSV file to fit.
    #[arg(long, value_name = "FILE")]
    pub train: PathBuf,
    /// A CSV file to simulate; may be given several times.
    #[arg(long, value_name = "FILE", required_unless_present = "split", conflicts_with = "split")]
    pub test: Vec<PathBuf>,
    /// Rows of --test, counted from 1; once for all files or once for each, in their order.
    #[arg(long, value_name = "FIRST:LAST", requires = "test")]
    pub test_rows: Vec<String>,
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
    /// Sampling time, if there is no column of times; beside one, the step of the grid they are put on.
    #[arg(long, value_name = "DT")]
    pub dt: Option<f64>,
    /// Column with labels of independent sequences; with --split the last sequences are simulated.
    #[arg(long, value_name = "COLUMN")]
    pub sequence: Option<String>,
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
    /// Also score free runs of this many rows, one after the other, each from the state after the rows before it (--n-init).
    #[arg(long, value_name = "ROWS")]
    pub windows: Option<usize>,
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
    /// The model, then its baselines, over the first test record.
    pub report: ScoreReport,
    /// The same for each test record.
    pub tests: Vec<Tested>,
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
    /// Rows of the first test record that were scored.
    pub n_scored: usize,
    /// Candidates that were tried, and the seconds that each took.
    pub candidates: Vec<(String, f64)>,
    /// Time of everything.
    pub seconds: f64,
}

/// One test record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tested {
    /// Its file and rows.
    pub name: String,
    /// The model, then its baselines.
    pub report: ScoreReport,
    /// The same for free runs of so many rows.
    pub windows: Option<ScoreReport>,
    /// Where its states are from.
    pub initial: String,
    /// Rows that were scored.
    pub n_scored: usize,
    /// The model on each sequence as text, where there are several.
    #[serde(skip)]
    pub by_sequence: String,
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
        if let Some(words) = found.calibration.describe() {
            println!("{words}");
        }
        for test in &found.tests {
            let name = if found.tests.len() > 1 { format!("{}: ", test.name) } else { String::new() };
            println!("\n{name}{}, {} rows scored", test.initial, test.n_scored);
            print!("{}{}", score::table(&test.report, &found.outputs), test.by_sequence);
            if let (Some(windows), Some(rows)) = (&test.windows, args.windows) {
                println!("\n{name}free runs of {rows} rows each");
                print!("{}", score::table(windows, &found.outputs));
            }
        }
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
    if let Some(sequence) = &args.sequence {
        file.option("--sequence", sequence)?;
    }
    file.option("--states", &args.states)?;
    file.option("--seed", &args.seed.to_string())?;
    for assignment in &args.set {
        file.set(assignment)?;
    }
    let mut config = file.config()?;
    let (training, tests) = parts(args, &mut config)?;
    for (_, test) in &tests {
        if let Some(short) = test.record.sequences().iter().find(|sequence| sequence.n_rows() < 10) {
            let n = short.n_rows();
            return Err(Failure::input(format!("{n} rows to run free over: at least 10 are needed")));
        }
        if args.initial == From::Last && (tests.len() > 1 || test.record.sequences().len() > 1) {
            return Err(Failure::input(
                "--initial last: several sequences cannot all continue the training part",
            ));
        }
    }
    if args.windows == Some(0) {
        return Err(Failure::input("--windows 0: at least one row is needed"));
    }
    check_folder(out)?;
    let store = out.join("run.zarr");
    fit::make_way(&store, args.overwrite, "choose another folder with -o, or --overwrite it")?;
    std::fs::create_dir_all(out).map_err(|error| Failure::writing(out, &error))?;

    let (mut notes, mut candidates) = (Vec::new(), Vec::new());
    let mut model = format!("{} states, as asked for", args.states);
    if auto::is_asked_for(&config) {
        let (chosen, choice) = fit::choose(&file, &config, &args.train, quiet)?;
        config = chosen;
        model = choice.winner().map_or_else(|| choice.notes.join("; "), |trial| trial.candidate.describe());
        candidates =
            choice.trials.iter().map(|trial| (trial.candidate.describe(), trial.elapsed.0)).collect();
        notes = choice.notes;
    }
    let data = read_record(&args.train, &config.data.columns()).map_err(Failure::input)?;
    fit::check_learnable(&data)?;
    if !quiet {
        say_notes(&data);
    }
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
    let run = Runs { args, fitted: &fitted, options: &options, quiet, stop };
    let several = tests.len() > 1;
    let mut tested = Vec::new();
    for (i, (name, test)) in tests.iter().enumerate() {
        let place = if several { out.join(format!("test_{}", i + 1)) } else { out.to_path_buf() };
        std::fs::create_dir_all(&place).map_err(|error| Failure::writing(&place, &error))?;
        match run.over(name, test, &place)? {
            Some(found) => tested.push(found),
            None => return Ok(None),
        }
    }
    let Some(first) = tested.first().cloned() else { return Err(Failure::input("--test: no file is given")) };
    Ok(Some(Evaluation {
        report: first.report,
        outputs: args.y.clone(),
        model,
        initial: first.initial,
        calibration: if args.raw { Calibration::default() } else { fitted.model.calibration.clone() },
        notes,
        n_scored: first.n_scored,
        tests: tested,
        candidates,
        seconds: began.elapsed().as_secs_f64(),
    }))
}

/// All sequences together, each of them, and the runs themselves.
type Scored = (ScoreReport, Vec<ScoreReport>, Vec<Simulation>);

/// Free runs of a fitted model.
struct Runs<'a> {
    args: &'a EvaluateArgs,
    fitted: &'a Fitted,
    options: &'a ScoreOptions,
    quiet: bool,
    stop: &'a AtomicBool,
}

impl Runs<'_> {
    /// Over one test record, with its files; none if it was stopped.
    fn over(&self, name: &str, test: &Data, out: &Path) -> Result<Option<Tested>, Failure> {
        let sequences = test.record.sequences();
        let model = &self.fitted.model;
        let n_init: Vec<usize> = sequences.iter().map(|s| model.n_init(self.options, s.n_rows())).collect();
        let initial = match self.args.initial {
            From::First => {
                let least = n_init.iter().min().copied().unwrap_or(0);
                let part = if sequences.len() > 1 { "each sequence" } else { "the test part" };
                format!("free run from the state after the first {least} rows of {part}")
            }
            From::Last => "free run from the last state of the training part".into(),
        };
        let Some((report, reports, runs)) = self.score(sequences)? else { return Ok(None) };
        if !self.quiet {
            warn(&report.warnings);
        }
        write_intervals(out, &runs, test, &self.args.y)?;
        let windows = match self.args.windows {
            Some(rows) => match self.windows(sequences, rows)? {
                Some(report) => Some(report),
                None => return Ok(None),
            },
            None => None,
        };
        Ok(Some(Tested {
            name: name.to_owned(),
            by_sequence: score::by_sequence(&test.sequence_labels, &reports, &self.args.y),
            report,
            windows,
            initial,
            n_scored: sequences.iter().zip(&n_init).map(|(s, n)| s.n_rows() - n).sum(),
        }))
    }

    /// Free runs over sequences, together and each; none if it was stopped.
    fn score(&self, sequences: &[Sequence]) -> Result<Option<Scored>, Failure> {
        let progress = (!self.quiet).then(|| steps("free run"));
        let (mut reports, mut runs) = (Vec::new(), Vec::new());
        for (i, sequence) in sequences.iter().enumerate() {
            let n = sequences.len();
            let tell = |done: usize, of: usize| {
                let go_on = progress.as_ref().is_none_or(|progress| progress.tell(i * of + done, n * of));
                go_on && !self.stop.load(Ordering::Relaxed)
            };
            match self.fitted.model.score_free_run(sequence, self.options, &tell) {
                Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(None),
                found => {
                    let (report, run) = found?;
                    reports.push(report);
                    runs.push(run);
                }
            }
        }
        Ok(Some((self.fitted.model.together(self.options, &reports, sequences), reports, runs)))
    }

    /// Free runs of so many rows one after the other, each with the rows before it that set its state.
    fn windows(&self, sequences: &[Sequence], rows: usize) -> Result<Option<ScoreReport>, Failure> {
        let mut windows = Vec::new();
        for sequence in sequences {
            let n_init = self.fitted.model.n_init(self.options, sequence.n_rows());
            let mut from = 0;
            while from + n_init + rows <= sequence.n_rows() {
                windows.push(sequence.select(from..from + n_init + rows)?);
                from += rows;
            }
        }
        if windows.is_empty() {
            return Err(Failure::input(format!("--windows {rows}: no test sequence is so long")));
        }
        let n_init = self.fitted.model.n_init(self.options, sequences[0].n_rows());
        let options = ScoreOptions { n_init: Some(n_init), ..self.options.clone() };
        let run = Runs { options: &options, ..*self };
        Ok(run.score(&windows)?.map(|(report, ..)| report))
    }
}

/// The training record and the test sequences as they stand in the files; rows of the training part go into the
/// configuration.
fn parts(args: &EvaluateArgs, config: &mut RunConfig) -> Result<(Record, Vec<(String, Data)>), Failure> {
    let plain = config.data.columns().as_measured();
    let read = |path: &Path, columns: &Columns| read_record(path, columns).map_err(Failure::input);
    if !args.test.is_empty() {
        let training = read(&args.train, &plain)?;
        if args.test_rows.len() > 1 && args.test_rows.len() != args.test.len() {
            let (rows, files) = (args.test_rows.len(), args.test.len());
            return Err(Failure::input(format!(
                "--test-rows: {rows} for {files} files; give it once, or once for each --test"
            )));
        }
        let test = |(i, path): (usize, &PathBuf)| {
            let text = args.test_rows.get(i).or(args.test_rows.first());
            let rows = text.map(|text| parse_rows(text)).transpose()?;
            let test = read(path, &Columns { rows, ..plain.clone() })?;
            say_notes(&test);
            let rows = text.map_or_else(String::new, |text| format!(" rows {text}"));
            Ok((format!("{}{rows}", path.display()), test))
        };
        let tests = args.test.iter().enumerate().map(test).collect::<Result<_, Failure>>()?;
        return Ok((training.record, tests));
    }
    let split = args.split.unwrap_or(0.5);
    if !(split > 0.0 && split < 1.0) {
        return Err(Failure::input(format!("--split {split}: give a part between 0 and 1, such as 0.5")));
    }
    let all = read(&args.train, &plain)?;
    // Rows of the file: those that were put in have none of their own.
    let in_file = |lines: &[u64]| 1 + lines.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let (cut, rows) = match &all.lines[..] {
        [lines] => {
            let cut = (split * lines.len() as f64).round() as usize;
            if cut < 2 || lines.len() - cut < 2 {
                let message = format!("--split {split}: {} rows are too few to cut there", lines.len());
                return Err(Failure::input(message));
            }
            (in_file(&lines[..cut]), in_file(lines))
        }
        several => {
            let n = several.len();
            let first = ((split * n as f64).round() as usize).clamp(1, n - 1);
            let count = |lines: &[Vec<u64>]| lines.iter().map(|lines| in_file(lines)).sum();
            (count(&several[..first]), count(several))
        }
    };
    let from = config.data.rows.map_or(1, |(from, _)| from);
    config.data.rows = Some((from, from + cut - 1));
    let training = read(&args.train, &Columns { rows: config.data.rows, ..plain.clone() })?;
    let test = read(&args.train, &Columns { rows: Some((from + cut, from + rows - 1)), ..plain })?;
    Ok((training.record, vec![(args.train.display().to_string(), test)]))
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

fn write_intervals(out: &Path, runs: &[Simulation], test: &Data, outputs: &[String]) -> Result<(), Failure> {
    let clock = test.clock();
    let mut table = IntervalTable::new(outputs.to_vec());
    let several = runs.len() > 1;
    for (i, run) in runs.iter().enumerate() {
        let (label, time, sequence) = (&test.sequence_labels[i], &test.time[i], &test.record.sequences()[i]);
        table.add(label, time, &run.y);
        let name = if several { format!("free_run_{}.svg", i + 1) } else { "free_run.svg".to_owned() };
        let title = match several {
            true => format!("Free run over the test sequence {label}"),
            false => "Free run over the test part".to_owned(),
        };
        let axis = match test.time_unit {
            TimeUnit::Rows => "row".to_owned(),
            _ => time_label(&clock, std::slice::from_ref(time)),
        };
        let figure =
            figure_free_run(&title, &axis, &time_ticks(&clock), &series(run, sequence, time, outputs));
        let path = out.join(name);
        std::fs::write(&path, figure).map_err(|error| Failure::writing(&path, &error))?;
    }
    table.into_output(several, &clock).write(Some(&out.join("intervals.csv")))
}

/// What the figure of a free run shows.
fn series(run: &Simulation, sequence: &Sequence, time: &[f64], outputs: &[String]) -> Vec<Series> {
    let series = |(k, name): (usize, &String)| {
        let line = |p: f64| (0..sequence.n_rows()).map(|t| run.y.quantile(t, k, p)).collect::<Vec<f64>>();
        Series {
            title: name.clone(),
            t: time.to_vec(),
            data: sequence.output(k).collect(),
            bands: Some(figures::Intervals {
                low: line(0.05),
                inner_low: line(0.25),
                middle: line(0.5),
                inner_high: line(0.75),
                high: line(0.95),
            }),
            ..Series::default()
        }
    };
    outputs.iter().enumerate().map(series).collect()
}
