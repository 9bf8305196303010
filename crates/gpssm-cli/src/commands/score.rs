//! `gpssm score`: scores of a fitted model on a record, compared with baselines.

use std::path::{Path, PathBuf};

use clap::Args;
use gpssm::Sequence;
use gpssm::posterior::OnlineOptions;
use gpssm_identify::score::Scores;
use gpssm_identify::{Calibration, ScoreOptions, ScoreReport, ScoreTask};
use gpssm_io::table::Data;
use serde_json::json;

use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted, RecordArgs, check_room, warn};
use crate::progress::steps;
use crate::table::{Table, number, number_or_dash};

/// Arguments of `gpssm score`.
#[derive(Debug, Args)]
#[command(
    after_help = "The baselines are fitted to the training record of the run: its mean, linear ARX models with order \
selected by BIC and by simulation, the best linear state-space model (order by simulation), and the mean function of f alone. Every row is predicted, also by models of every k-th row. RMSE, NRMSE, fit %, R2 and MAE are those of the nonlinear_benchmarks package. Log score (larger \
is better) and CRPS (smaller is better) score the whole predictive distribution, \
which for sensors of whole numbers is one of whole numbers in every row of the table; 'in 90 %' is the coverage of the 90 % \
prediction interval."
)]
pub struct ScoreArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// A CSV file with outputs and inputs not used in the fit.
    pub file: PathBuf,
    /// Another run of the same outputs, such as the full posterior beside a point estimate: its row in the table.
    #[arg(long, value_name = "RUN", conflicts_with = "after_training")]
    pub against: Option<PathBuf>,
    /// Number of first rows used to infer the initial state; they are not scored. With 0 a free run starts from p(x_0)
    /// [default: the longest lag of the model, at least 5].
    #[arg(long, value_name = "N", conflicts_with = "after_training")]
    pub n_init: Option<usize>,
    /// Start at the end of the training record, which this record continues.
    #[arg(long, conflicts_with = "horizon")]
    pub after_training: bool,
    /// Score predictions K steps ahead instead of a free run.
    #[arg(long, value_name = "K")]
    pub horizon: Option<usize>,
    /// Number of simulated paths.
    #[arg(long, default_value_t = 1000)]
    pub paths: usize,
    /// Do not apply the calibration of prediction intervals stored in the run.
    #[arg(long)]
    pub raw: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// Columns of the record.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// Runs `gpssm score`; the exit code.
pub fn score(args: &ScoreArgs) -> Result<u8, Failure> {
    let fitted = Fitted::open(&args.run, args.draws)?.for_record(&args.record)?;
    let data = fitted.measured(&args.file, &args.record)?;
    check_room("--paths", args.paths, data.n_rows * data.outputs.len())?;
    let after = args.after_training.then(|| fitted.run.problem.sequences().len() - 1);
    if after.is_some() {
        single(&data)?;
    }
    let options = ScoreOptions {
        task: args.horizon.map_or(ScoreTask::Simulation, ScoreTask::Ahead),
        n_init: args.n_init,
        after_training: after,
        n_paths: args.paths,
        filter: OnlineOptions { seed: args.draws.seed, ..OnlineOptions::default() },
        raw: args.raw,
        ..ScoreOptions::default()
    };
    let other = args.against.as_ref().map(|run| Fitted::open(run, args.draws)?.for_record(&args.record));
    let other = other.transpose()?;
    let options = same_rows(options, &fitted, other.as_ref(), &data);
    let progress = steps("score");
    let sequences = data.record.sequences();
    let n_init: Vec<usize> = sequences.iter().map(|s| fitted.model.n_init(&options, s.n_rows())).collect();
    let mut reports = Vec::new();
    for (i, sequence) in sequences.iter().enumerate() {
        let tell = |done: usize, of: usize| progress.tell(i * of + done, sequences.len() * of);
        reports.push(fitted.model.score(sequence, &options, &tell)?);
    }
    drop(progress);
    let mut report = fitted.model.together(&options, &reports, sequences);
    if let (Some(other), Some(run)) = (&other, &args.against) {
        add_other(&mut report, other, run, args, &options)?;
    }
    warn(&report.warnings);
    let calibration = if args.raw { Calibration::default() } else { fitted.model.calibration };
    if args.json {
        let by_sequence: Vec<_> = data.sequence_labels.iter().zip(&reports).collect();
        let mut json = json!({ "n_init": n_init[0], "horizon": args.horizon, "calibration": calibration, "report": report });
        if sequences.len() > 1 {
            json["sequences"] = json!(by_sequence);
        }
        println!("{json:#}");
        return Ok(0);
    }
    let rows = match n_init.iter().all(|n| *n == n_init[0]) {
        true => n_init[0].to_string(),
        false => format!("{} or more", n_init.iter().min().copied().unwrap_or(0)),
    };
    let what = match options.task {
        ScoreTask::Ahead(k) => format!("{k}-step-ahead predictions"),
        ScoreTask::Simulation if after.is_some() => "free run from the end of the training record".into(),
        ScoreTask::Simulation if n_init.iter().all(|n| *n == 0) => "free run from p(x_0)".into(),
        ScoreTask::Simulation => format!("free run from the state after {rows} rows"),
    };
    let n_scored: usize = sequences.iter().zip(&n_init).map(|(s, n)| s.n_rows() - n).sum();
    let each =
        if sequences.len() > 1 { format!(" in {} sequences, each", sequences.len()) } else { String::new() };
    println!("{what}{each}, {n_scored} rows of {}", data.source);
    if let Some(words) = calibration.describe().filter(|_| options.task == ScoreTask::Simulation) {
        println!("{words}; the log score is that of a Gaussian as wide as they are");
    }
    println!();
    print!("{}", table(&report, &data.outputs));
    print!("{}", by_sequence(&data.sequence_labels, &reports, &data.outputs));
    Ok(0)
}

/// Options by which two runs score the same rows.
fn same_rows(options: ScoreOptions, fitted: &Fitted, other: Option<&Fitted>, data: &Data) -> ScoreOptions {
    let (Some(other), Some(first)) = (other, data.record.sequences().first()) else { return options };
    let own = |fitted: &Fitted| fitted.model.n_init(&options, first.n_rows());
    ScoreOptions { n_init: Some(own(fitted).max(own(other))), ..options }
}

/// Scores of another run behind those of the model.
fn add_other(
    report: &mut ScoreReport,
    other: &Fitted,
    run: &Path,
    args: &ScoreArgs,
    options: &ScoreOptions,
) -> Result<(), Failure> {
    let data = other.measured(&args.file, &args.record)?;
    let refuse = |message: &str| Failure::input(format!("--against {}: {message}", run.display()));
    if data.outputs.len() != report.scores[0].outputs.len() {
        return Err(refuse("it has other outputs"));
    }
    let sequences = data.record.sequences();
    let score = |sequence| other.model.score(sequence, options, &|_, _| true);
    let reports = sequences.iter().map(score).collect::<Result<Vec<_>, _>>()?;
    let found = other.model.together(options, &reports, sequences);
    if let Some(mut scores) = found.scores.into_iter().next() {
        scores.name = run.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        report.scores.insert(1, scores);
    }
    Ok(())
}

/// The model on each sequence, where there are several.
pub fn by_sequence(labels: &[String], reports: &[ScoreReport], outputs: &[String]) -> String {
    if reports.len() < 2 {
        return String::new();
    }
    let mut text = String::from("\n");
    for (k, output) in outputs.iter().enumerate() {
        let head = format!("{output}, the model by sequence");
        let mut table = Table::new(&[&head, "RMSE", "fit %", "CRPS", "in 90 %"]);
        for (label, report) in labels.iter().zip(reports) {
            let found = &report.scores[0].outputs[k];
            let inside = found.coverage.iter().find(|coverage| coverage.level == 0.9);
            table.push(vec![
                label.clone(),
                number(found.rmse),
                found.fit.map_or_else(|| "-".into(), |fit| format!("{fit:.1}")),
                number(found.crps),
                inside.map_or_else(|| "-".into(), |coverage| format!("{:.0} %", 100.0 * coverage.share)),
            ]);
        }
        text += &table.render();
    }
    text
}

/// The only sequence of a record.
pub fn single(data: &Data) -> Result<&Sequence, Failure> {
    match data.record.sequences() {
        [sequence] => Ok(sequence),
        several => Err(Failure::input(format!(
            "{}: {} sequences; choose one of them with --rows",
            data.source,
            several.len()
        ))),
    }
}

/// The model beside its baselines.
pub fn table(report: &ScoreReport, outputs: &[String]) -> String {
    let mut text = String::new();
    for (k, output) in outputs.iter().enumerate() {
        let head = [
            output,
            "RMSE",
            "NRMSE",
            "fit %",
            "R2",
            "MAE",
            "CRPS",
            "in 50 %",
            "in 90 %",
            "in 95 %",
            "log score",
        ];
        let mut table = Table::new(&head);
        for scores in &report.scores {
            table.push(row(scores, k));
        }
        text += &table.render();
    }
    text
}

fn row(scores: &Scores, k: usize) -> Vec<String> {
    let found = &scores.outputs[k];
    let name = match scores.order {
        Some(order) => format!("{} (order {order})", scores.name),
        None => scores.name.clone(),
    };
    let percent = |value: f64| format!("{:.0} %", 100.0 * value);
    let mut row = vec![
        name,
        number(found.rmse),
        number_or_dash(found.nrmse),
        found.fit.map_or_else(|| "-".into(), |fit| format!("{fit:.1}")),
        number_or_dash(found.r2),
        number(found.mae),
        number(found.crps),
    ];
    row.extend([0.5, 0.9, 0.95].map(|level| {
        let coverage = found.coverage.iter().find(|coverage| coverage.level == level);
        coverage.map_or_else(|| "-".into(), |coverage| percent(coverage.share))
    }));
    row.push(number_or_dash(scores.log_score));
    row
}
