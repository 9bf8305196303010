//! `gpssm predict`: the transition function at given points, or outputs k steps ahead along a record.

use std::path::{Path, PathBuf};

use clap::Args;
use gpssm::Points;
use gpssm::posterior::{OnlineOptions, Target};
use gpssm_io::table::{Columns, read_record};

use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted, IntervalTable, QUANTILES, RecordArgs, check_room, warn};
use crate::output::{Output, check_table};
use crate::progress::steps;

/// Arguments of `gpssm predict`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm predict run.zarr points.csv -o f.csv              f at points with columns such as x1, x2, u
  gpssm predict run.zarr points.csv --next-state          the next state: f plus process noise
  gpssm predict run.zarr record.csv --horizon 5           y five steps ahead, for every row of a record")]
pub struct PredictArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// A CSV file: points with a column for each state and input, or a record of outputs and inputs.
    pub file: PathBuf,
    /// Predict outputs K steps ahead along the record.
    #[arg(long, value_name = "K")]
    pub horizon: Option<usize>,
    /// Predict the next state, with process noise, instead of f.
    #[arg(long, conflicts_with = "horizon")]
    pub next_state: bool,
    /// Number of samples for each row of a prediction ahead.
    #[arg(long, default_value_t = 500)]
    pub samples: usize,
    /// Initial state: model (its p(x_0)), last (the end of the training record), or numbers separated by commas.
    #[arg(long, default_value = "model", allow_hyphen_values = true)]
    pub initial: String,
    /// Table (.csv, or .parquet if built with it) [default: CSV on standard output].
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Columns of the record.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// Runs the command; the exit code.
pub fn run(args: &PredictArgs) -> Result<u8, Failure> {
    args.out.as_deref().map_or(Ok(()), |out| check_table(out, &[&args.run, &args.file]))?;
    let fitted = Fitted::open(&args.run, args.draws)?;
    let output = match args.horizon {
        Some(k) => ahead(args, &fitted, k)?,
        None => at_points(
            &fitted,
            &args.file,
            if args.next_state { Target::NextState } else { Target::Function },
        )?,
    };
    output.write(args.out.as_deref())?;
    Ok(0)
}

fn at_points(fitted: &Fitted, file: &Path, target: Target) -> Result<Output, Failure> {
    let model = fitted.run.problem.model();
    let names: Vec<String> = model.state_names().into_iter().chain(model.input_names()).collect();
    // Points are no series: their order says nothing.
    let columns = Columns { y: names.clone(), dt: Some(1.0), ..Columns::default() };
    let data = read_record(file, &columns).map_err(Failure::input)?;
    let mut z = Points::new(names.len());
    for sequence in data.record.sequences() {
        for t in 0..sequence.n_rows() {
            if let Some(c) = sequence.y(t).iter().position(|value| value.is_nan()) {
                let message = format!(
                    "{}: column '{}' is empty in row {} below the header",
                    file.display(),
                    names[c],
                    t + 1
                );
                return Err(Failure::input(message));
            }
            z.push(sequence.y(t));
        }
    }
    let found = fitted.model.posterior.predict_at(&z, target)?;
    warn(&found.warnings);
    let mut output = Output::default();
    for (c, name) in names.iter().enumerate() {
        output.numbers(name.clone(), z.column(c).to_vec());
    }
    let points = 0..found.n_points();
    for (d, name) in model.state_names().iter().enumerate() {
        let kind = if target == Target::Function { "f" } else { "next" };
        let column = |value: &dyn Fn(usize) -> f64| points.clone().map(value).collect::<Vec<f64>>();
        output.numbers(format!("{kind}_{name}_mean"), column(&|i| found.mean(i)[d]));
        output.numbers(format!("{kind}_{name}_sd"), column(&|i| found.sd(i, d)));
        for p in QUANTILES {
            let label = format!("{kind}_{name}_q{:02.0}", 100.0 * p);
            output.numbers(label, column(&|i| found.quantile(i, d, p)));
        }
    }
    Ok(output)
}

fn ahead(args: &PredictArgs, fitted: &Fitted, k: usize) -> Result<Output, Failure> {
    let data = fitted.record(&args.file, &args.record)?;
    check_room("--samples", args.samples, data.n_rows * data.outputs.len())?;
    let initial = fitted.initial(&args.initial)?;
    let options = OnlineOptions { seed: args.draws.seed, ..OnlineOptions::default() };
    let mut table = IntervalTable::new(fitted.run.problem.model().output_names());
    let mut scores = Vec::new();
    for (s, sequence) in data.record.sequences().iter().enumerate() {
        let progress = steps("predict");
        let found = fitted.model.posterior.predict_ahead(
            sequence,
            k,
            args.samples,
            &initial,
            &options,
            &|done, of| progress.tell(done, of),
        )?;
        warn(&found.warnings);
        table.add(&data.sequence_labels[s], &data.time[s][found.first_row..], &found.y);
        scores.extend(found.log_score);
    }
    let mut output = table.into_output(data.record.sequences().len() > 1, &data.clock());
    output.numbers("log_score", scores);
    Ok(output)
}
