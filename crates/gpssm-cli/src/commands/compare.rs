//! `gpssm compare`: fitted models ranked by how well they predict the next row.

mod free_runs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use gpssm::posterior::{OnlineOptions, compare as rank};
use gpssm_identify::{LfoOptions, LfoRanked, compare_futures};
use serde_json::json;

use crate::commands::score::single;
use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted, RecordArgs, warn};
use crate::progress::steps;
use crate::table::{Table, number, number_or_dash};

/// How models are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// On a record that the models were not fitted to.
    Record,
    /// Leave-future-out: on the later rows of the training record, each predicted from the rows before it alone.
    Lfo,
}

/// Arguments of `gpssm compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm compare a.zarr b.zarr new.csv                   on a new record
  gpssm compare a.zarr b.zarr new.csv --plot            free runs of all models and linear ones over it, as figures
  gpssm compare a.zarr b.zarr --method lfo              on the training record, its future left out

Models are ranked by the mean of log p(y_t | all rows before t): how well each predicts the next row. A difference below two standard \
errors is not significant.

Leave-future-out fits each model to the first rows (--n-init) and weights its draws by how well they predict the following rows. Where the \
weights become unreliable (Pareto k above 0.7, less for few functions), it fits the model again to all rows before. Priors and sampler are \
those of the runs.")]
pub struct CompareArgs {
    /// A CSV file with outputs and inputs, preferably not used in the fits.
    #[arg(long, value_name = "FILE")]
    pub record_file: Option<PathBuf>,
    /// Posterior stores; a CSV file among them is the record.
    #[arg(required = true, num_args = 1..)]
    pub runs: Vec<PathBuf>,
    /// Compare free runs, and write a page of figures with all models, ARX and the best linear state-space model.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "compare.html", conflicts_with = "method")]
    pub plot: Option<PathBuf>,
    /// With --plot, write each figure into this folder, too, as an SVG file.
    #[arg(long, value_name = "FOLDER", requires = "plot")]
    pub figures: Option<PathBuf>,
    /// Number of simulated paths of a free run.
    #[arg(long, default_value_t = 500)]
    pub paths: usize,
    /// How models are scored [default: record].
    #[arg(long, value_enum)]
    pub method: Option<Method>,
    /// Number of first rows that are not scored: they set the initial state, or with lfo they are fitted first [default: 0, with
    /// lfo half of the rows].
    #[arg(long, value_name = "N")]
    pub n_init: Option<usize>,
    /// Number of draws of each chain of a fit of lfo [default: 500].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub draws_of_fit: Option<u64>,
    /// Number of functions whose weights lfo follows [default: 400].
    #[arg(long, value_name = "N")]
    pub functions: Option<usize>,
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

/// Runs `gpssm compare`; the exit code.
pub fn run(args: &CompareArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    let (files, runs): (Vec<&PathBuf>, Vec<&PathBuf>) = args.runs.iter().partition(|path| path.is_file());
    let record = match (&args.record_file, &files[..]) {
        (given, []) => given.as_deref(),
        (None, [file]) => Some(file.as_path()),
        (_, [first, ..]) => {
            let advice = "give one record, and posterior stores beside it";
            return Err(Failure::input(format!("{}: {advice}", first.display())));
        }
    };
    let fitted: Vec<Fitted> =
        runs.iter().map(|run| Fitted::open(run, args.draws)).collect::<Result<_, _>>()?;
    let names: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
    match (args.method.unwrap_or(Method::Record), &args.plot) {
        (Method::Record, Some(out)) => free_runs::run(args, record, out, &fitted, &names, stop),
        (Method::Record, None) => on_record(args, record, &fitted, &names),
        (Method::Lfo, _) => futures(args, record, &fitted, &names, stop),
    }
}

/// The record, or what to do about it.
fn needed(record: Option<&Path>) -> Result<&Path, Failure> {
    record.ok_or_else(|| Failure::input("no record to compare on: give a CSV file beside the runs"))
}

fn on_record(
    args: &CompareArgs,
    record: Option<&Path>,
    fitted: &[Fitted],
    names: &[String],
) -> Result<u8, Failure> {
    let Some(first) = fitted.first() else { return Err(Failure::input("no run to compare")) };
    for (option, given) in
        [("--draws-of-fit", args.draws_of_fit.is_some()), ("--functions", args.functions.is_some())]
    {
        if given {
            return Err(Failure::input(format!("{option}: only for --method lfo")));
        }
    }
    let file = needed(record)?;
    if let Some(other) = fitted.iter().position(|other| other.model.layout != first.model.layout) {
        return Err(Failure::input(format!(
            "{} and {} see a record in different rows (past inputs, delay or thinning), so their log scores are not of the same \
             numbers; compare their free runs with --plot",
            names[0], names[other]
        )));
    }
    let data = first.record(file, &args.record)?;
    let sequence = single(&data)?;
    let models: Vec<_> =
        names.iter().map(String::as_str).zip(fitted.iter().map(|l| &l.model.posterior)).collect();
    let options = OnlineOptions { seed: args.draws.seed, ..OnlineOptions::default() };
    let progress = steps("compare");
    let n_init = args.n_init.unwrap_or(0);
    let ranked = rank(&models, sequence, n_init, &options, &|done, of| progress.tell(done, of))?;
    drop(progress);
    ranked.iter().for_each(|model| warn(&model.warnings));
    if args.json {
        println!("{:#}", json!({ "ranking": ranked }));
        return Ok(0);
    }
    let mut table = Table::new(&["run", "log score of a row", "less than the best", "standard error"]);
    for model in &ranked {
        let cells = [model.log_score, model.difference, model.standard_error].map(number);
        table.push([vec![model.name.clone()], cells.to_vec()].concat());
    }
    print!("{}", table.render());
    Ok(0)
}

fn futures(
    args: &CompareArgs,
    record: Option<&Path>,
    fitted: &[Fitted],
    names: &[String],
    stop: &Arc<AtomicBool>,
) -> Result<u8, Failure> {
    if let Some(file) = record {
        let message = "--method lfo scores the training record, without --record-file or another CSV file";
        return Err(Failure::input(format!("{}: {message}", file.display())));
    }
    if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
        return Err(Failure::input(format!("{}: the same run twice", names[twice])));
    }
    let models: Vec<_> = names
        .iter()
        .zip(fitted)
        .map(|(name, run)| (name.as_str(), &run.run.problem, &run.run.settings))
        .collect();
    let default = LfoOptions::default();
    let options = LfoOptions {
        n_init: args.n_init,
        draws: args.draws_of_fit.unwrap_or(default.draws),
        functions: args.functions.unwrap_or(default.functions),
        seed: args.draws.seed,
        ..default
    };
    let progress = steps("compare");
    let on_row = |model: usize, done: usize, of: usize, _fits: usize| {
        progress.tell(model * of + done, models.len() * of) && !stop.load(Ordering::Relaxed)
    };
    let ranked = compare_futures(&models, &options, &on_row)?;
    drop(progress);
    let Some(ranked) = ranked else { return Err(Failure::stopped("stopped; nothing was scored")) };
    if args.json {
        println!("{:#}", json!({ "ranking": ranked }));
        return Ok(0);
    }
    print!("{}", lfo_table(&ranked));
    Ok(0)
}

fn lfo_table(ranked: &[LfoRanked]) -> String {
    let head =
        ["run", "log score of a row", "less than the best", "standard error", "rows", "fits", "largest k"];
    let mut table = Table::new(&head);
    for model in ranked {
        let place = &model.place;
        let mut row = vec![place.name.clone()];
        row.extend([place.log_score, place.difference, place.standard_error].map(number));
        row.extend([
            place.rows.len().to_string(),
            model.fits.len().to_string(),
            number_or_dash(model.largest_k),
        ]);
        table.push(row);
    }
    table.render()
}
