//! `gpssm filter` and `gpssm smooth`: states of a new record under the fitted model.

use std::path::PathBuf;

use clap::Args;
use gpssm::posterior::OnlineOptions;

use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted, IntervalTable, RecordArgs, check_room, warn};
use crate::output::{Column, Output, check_table};
use crate::progress::steps;

/// Arguments of `gpssm filter`.
#[derive(Debug, Args)]
#[command(
    after_help = "A particle filter with --particles particles runs for each of --functions functions drawn from the posterior; \
functions are weighted by their likelihood. Memory does not grow with the length of the record, and a row costs functions x \
particles evaluations. Low values of log_marginal_likelihood mark rows that the model did not expect."
)]
pub struct FilterArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// A CSV file with outputs and inputs.
    pub file: PathBuf,
    /// Initial state: model (its p(x_0)), last (the end of the training record), or numbers separated by commas.
    #[arg(long, default_value = "model", allow_hyphen_values = true)]
    pub initial: String,
    /// Number of functions drawn from the posterior.
    #[arg(long, default_value_t = 50)]
    pub functions: usize,
    /// Number of particles of each function.
    #[arg(long, default_value_t = 50)]
    pub particles: usize,
    /// Forgetting factor of the weights of functions, for very long records.
    #[arg(long, default_value_t = 1.0)]
    pub forgetting: f64,
    /// Number of sampled paths (smooth only).
    #[arg(long, default_value_t = 500)]
    pub paths: usize,
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

impl FilterArgs {
    fn options(&self) -> OnlineOptions {
        OnlineOptions {
            functions: self.functions,
            particles: self.particles,
            forgetting: self.forgetting,
            seed: self.draws.seed,
            ..OnlineOptions::default()
        }
    }
}

/// Runs `gpssm filter`; the exit code.
pub fn filter(args: &FilterArgs) -> Result<u8, Failure> {
    args.out.as_deref().map_or(Ok(()), |out| check_table(out, &[&args.run, &args.file]))?;
    let fitted = Fitted::open(&args.run, args.draws)?;
    let data = fitted.record(&args.file, &args.record)?;
    let initial = fitted.initial(&args.initial)?;
    let n_x = fitted.run.problem.n_x();
    check_room("--functions", args.functions, args.particles.saturating_mul(n_x))?;
    let (mut labels, mut times, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
    let mut columns = vec![[Vec::new(), Vec::new()]; n_x];
    for (s, sequence) in data.record.sequences().iter().enumerate() {
        let progress = steps("filter");
        let found = fitted
            .model
            .posterior
            .filter(sequence, &initial, &args.options(), &|done, of| progress.tell(done, of))?;
        warn(&found.warnings);
        labels.extend(std::iter::repeat_n(data.sequence_labels[s].clone(), sequence.n_rows()));
        times.extend_from_slice(&data.time[s]);
        evidence.extend(found.log_marginal_likelihood);
        for (d, [mean, sd]) in columns.iter_mut().enumerate() {
            mean.extend(found.mean.iter().skip(d).step_by(n_x));
            sd.extend(found.sd.iter().skip(d).step_by(n_x));
        }
    }
    eprintln!("log marginal likelihood of the record: {:.2}", evidence.iter().sum::<f64>());
    let mut output = Output::default();
    if data.record.sequences().len() > 1 {
        output.add("sequence", Column::Texts(labels));
    }
    output.times(&data.clock(), times);
    for (name, [mean, sd]) in fitted.run.problem.model().state_names().iter().zip(columns) {
        output.numbers(format!("{name}_mean"), mean);
        output.numbers(format!("{name}_sd"), sd);
    }
    output.numbers("log_marginal_likelihood", evidence);
    output.write(args.out.as_deref())?;
    Ok(0)
}

/// Runs `gpssm smooth`; the exit code.
pub fn smooth(args: &FilterArgs) -> Result<u8, Failure> {
    args.out.as_deref().map_or(Ok(()), |out| check_table(out, &[&args.run, &args.file]))?;
    let fitted = Fitted::open(&args.run, args.draws)?;
    let data = fitted.record(&args.file, &args.record)?;
    if args.initial != "model" {
        let message = format!("--initial {}: smoothing starts from p(x_0) of the model", args.initial);
        return Err(Failure::input(message));
    }
    // All particles of all rows are kept.
    let values = data.n_rows * fitted.run.problem.n_x();
    check_room("--functions", args.functions, args.particles.saturating_mul(values))?;
    check_room("--paths", args.paths, values)?;
    let mut table = IntervalTable::new(fitted.run.problem.model().state_names());
    for (s, sequence) in data.record.sequences().iter().enumerate() {
        let found = fitted.model.posterior.smooth(sequence, args.paths, &args.options())?;
        warn(&found.warnings);
        eprintln!(
            "log marginal likelihood of sequence {}: {:.2}",
            data.sequence_labels[s], found.log_marginal_likelihood
        );
        table.add(&data.sequence_labels[s], &data.time[s], &found.x);
    }
    table.into_output(data.record.sequences().len() > 1, &data.clock()).write(args.out.as_deref())?;
    Ok(0)
}
