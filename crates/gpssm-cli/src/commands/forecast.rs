//! `gpssm forecast`: the rows after the end of the training record, with prediction intervals.

use std::path::{Path, PathBuf};

use clap::Args;
use gpssm_identify::Start;
use gpssm_io::table::{Clock, TimeUnit};

use super::simulate::{PathArgs, write_fitted};
use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted, RecordArgs, check_room};
use crate::progress::steps;

/// Arguments of `gpssm forecast`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm forecast run.zarr --steps 12 -o forecast.csv              the 12 rows after the training record
  gpssm forecast run.zarr --inputs next.csv                       a model with inputs: one row for each row of the file
  gpssm forecast run.zarr --steps 12 --after north                continue the sequence 'north'

The first row of the table is the row after the last row of the training record, and times go on from there. Each path uses
one function drawn from the posterior, so the prediction intervals include uncertainty about the dynamics.")]
pub struct ForecastArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// Number of rows after the training record, for a model without inputs.
    #[arg(long, value_name = "N", conflicts_with = "inputs", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub steps: Option<u64>,
    /// A CSV file with the input columns, from the row after the training record on.
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// Label of the training sequence to continue [default: the last].
    #[arg(long, value_name = "LABEL")]
    pub after: Option<String>,
    /// Paths and tables.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Columns of the file.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// Runs the command; the exit code.
pub fn run(args: &ForecastArgs) -> Result<u8, Failure> {
    let read: Vec<&Path> =
        [Some(&args.run), args.inputs.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    args.paths.check(&read)?;
    let fitted = Fitted::open(&args.run, args.draws)?.for_record(&args.record)?;
    let sequence = number(&fitted.run.sequence_labels, args.after.as_deref())?;
    let time = Times::new(&fitted, sequence);
    let inputs = inputs(args, &fitted, &time)?;
    let values = fitted.run.problem.n_x() + fitted.run.problem.model().n_y;
    check_room("--paths", args.paths.paths, inputs.len() * values)?;
    let times = (0..inputs.len()).map(|t| time.after(t)).collect();
    let progress = steps("forecast");
    let tell = |done: usize, of: usize| progress.tell(done, of);
    let options = args.paths.options(args.draws.seed);
    let found = fitted.model.simulate(inputs, &Start::Last { sequence }, &options, &tell)?;
    drop(progress);
    let done = vec![(fitted.run.sequence_labels[sequence].clone(), times, found)];
    write_fitted(&args.paths, &fitted, done, &fitted.run.clock())
}

/// The number of a training sequence; the last one if none is named.
fn number(labels: &[String], wanted: Option<&str>) -> Result<usize, Failure> {
    let Some(wanted) = wanted else { return Ok(labels.len() - 1) };
    let found = labels.iter().position(|label| label == wanted);
    found.ok_or_else(|| {
        let shown: Vec<&str> = labels.iter().take(10).map(String::as_str).collect();
        let message = format!("--after {wanted}: the run has the sequences {}", shown.join(", "));
        Failure::input(if labels.len() > 10 { message + ", ..." } else { message })
    })
}

/// Times of the rows after a training sequence.
struct Times {
    clock: Clock,
    /// Times of the model's rows.
    times: Vec<f64>,
    every: f64,
    /// Rows of the sequence as it was measured.
    n_rows: usize,
}

impl Times {
    fn new(fitted: &Fitted, sequence: usize) -> Self {
        let times = fitted.run.time[sequence].clone();
        let every = fitted.run.data.every.unwrap_or(1) as f64;
        let n_rows = fitted.model.training.sequences()[sequence].n_rows();
        Self { clock: fitted.run.clock(), times, every, n_rows }
    }

    /// The time of row `t`, from 0, after the end.
    fn after(&self, t: usize) -> f64 {
        self.clock.after(&self.times, (self.n_rows + t) as f64 / self.every)
    }

    fn step(&self) -> f64 {
        self.after(1) - self.after(0)
    }
}

/// Inputs of the rows after the record; rows without values for a model without inputs.
fn inputs(args: &ForecastArgs, fitted: &Fitted, time: &Times) -> Result<Vec<Vec<f64>>, Failure> {
    let n_u = fitted.model.n_u();
    match (&args.inputs, args.steps) {
        (Some(_), _) if n_u == 0 => {
            Err(Failure::input("--inputs: the model has no inputs; give --steps instead"))
        }
        (None, Some(steps)) if n_u == 0 => Ok(vec![Vec::new(); steps as usize]),
        (None, None) if n_u == 0 => {
            Err(Failure::input("--steps: say how many rows after the record are wanted"))
        }
        (None, _) => Err(Failure::input(format!(
            "--inputs: the model has {n_u} inputs; give a file with their values after the training record"
        ))),
        (Some(path), _) => {
            let data = fitted.inputs(path, &args.record)?;
            let [rows] = data.record.sequences() else {
                let message = format!(
                    "{}: {} sequences; choose one with --rows",
                    data.source,
                    data.record.sequences().len()
                );
                return Err(Failure::input(message));
            };
            let timed = fitted.run.data.time.is_some() && data.time_unit != TimeUnit::Rows;
            let (found, expected) = (data.clock().text(data.time[0][0]), time.clock.text(time.after(0)));
            let is_off = match (time.clock.seconds(time.after(0)), data.clock().seconds(data.time[0][0])) {
                (Some(expected), Some(found)) => (found - expected).abs() > 0.25 * time.step(),
                (None, None) => (data.time[0][0] - time.after(0)).abs() > 0.25 * time.step(),
                _ => true,
            };
            if timed && is_off {
                return Err(Failure::input(format!(
                    "{}: the first time is {found}, but the row after the training record has the time {expected}; \
                     choose rows with --rows",
                    path.display()
                )));
            }
            Ok((0..rows.n_rows()).map(|t| rows.y(t).to_vec()).collect())
        }
    }
}
