//! `gpssm simulate`: free runs under new inputs, with prediction intervals; or data from the model before any fit.

use std::path::{Path, PathBuf};

use clap::Args;
use gpssm::posterior::{OnlineOptions, SimulateOptions, Simulation, simulate_prior};
use gpssm::{Sequence, prepare};
use gpssm_identify::{FreeRunOptions, Start};
use gpssm_io::config::RunFile;
use gpssm_io::table::Clock;

use crate::commands::fit;
use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted, IntervalTable, RecordArgs, check_room, warn};
use crate::output::{Column, Output, check_table};
use crate::progress::steps;

/// Arguments of `gpssm simulate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm simulate run.zarr --inputs new.csv -o intervals.csv            from p(x_0)
  gpssm simulate run.zarr --inputs test.csv --n-init 50            infer the initial state from the first 50 rows
  gpssm simulate run.zarr --steps 100 --paths 5000 --samples paths.csv  a model without inputs
  gpssm simulate --prior model.toml -o prior.csv                   simulate from the priors, before any fit

Each path uses one function drawn from the posterior, so the prediction intervals include uncertainty about the dynamics.
Every row is predicted, also by models of every k-th row. To continue the training record see gpssm forecast.")]
pub struct SimulateArgs {
    /// A posterior store.
    #[arg(required_unless_present = "prior")]
    pub run: Option<PathBuf>,
    /// A model file to simulate from its priors, under the inputs of its data.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "inputs", "steps", "n_init"])]
    pub prior: Option<PathBuf>,
    /// A CSV file with the input columns (and outputs, for --n-init).
    #[arg(long, value_name = "FILE", required_unless_present_any = ["steps", "prior"])]
    pub inputs: Option<PathBuf>,
    /// Number of rows to simulate, for a model without inputs; the first is the initial state.
    #[arg(long, value_name = "N", conflicts_with = "inputs")]
    pub steps: Option<usize>,
    /// Initial state: model (its p(x_0)), last (the end of the training record), or numbers separated by commas [default:
    /// model].
    #[arg(long, allow_hyphen_values = true)]
    pub initial: Option<String>,
    /// Infer the initial state from the outputs of the first N rows.
    #[arg(long, value_name = "N", conflicts_with = "initial")]
    pub n_init: Option<usize>,
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

/// How paths are simulated, and where they are written to.
#[derive(Debug, Args)]
pub struct PathArgs {
    /// Number of simulated paths.
    #[arg(long, default_value_t = 1000)]
    pub paths: usize,
    /// Simulate without process noise.
    #[arg(long)]
    pub no_process_noise: bool,
    /// Simulate without sensor noise.
    #[arg(long)]
    pub no_sensor_noise: bool,
    /// Do not apply the calibration of prediction intervals stored in the run.
    #[arg(long)]
    pub raw: bool,
    /// Table of prediction intervals (.csv, or .parquet if built with it) [default: CSV on standard output].
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Table of all paths (.csv, or .parquet if built with it).
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
}

impl PathArgs {
    /// Refuses tables that cannot be written, before anything is computed.
    pub fn check(&self, read: &[&Path]) -> Result<(), Failure> {
        if self.paths == 0 {
            return Err(Failure::input("--paths 0: at least one path is needed"));
        }
        for path in self.out.iter().chain(&self.samples) {
            check_table(path, read)?;
        }
        if self.samples.is_some() && self.out == self.samples {
            return Err(Failure::input("-o and --samples name the same file; choose two"));
        }
        Ok(())
    }

    /// The same, as the library wants it.
    pub fn options(&self, seed: u64) -> FreeRunOptions {
        FreeRunOptions {
            simulate: SimulateOptions {
                n_paths: self.paths,
                process_noise: !self.no_process_noise,
                sensor_noise: !self.no_sensor_noise,
                seed,
            },
            filter: OnlineOptions { seed, ..OnlineOptions::default() },
            raw: self.raw,
        }
    }
}

/// Runs the command; the exit code.
pub fn run(args: &SimulateArgs) -> Result<u8, Failure> {
    let read: Vec<&Path> =
        [&args.run, &args.prior, &args.inputs].into_iter().flatten().map(PathBuf::as_path).collect();
    args.paths.check(&read)?;
    let options = args.paths.options(args.draws.seed);
    match (&args.prior, &args.run) {
        (Some(model), _) => prior(args, model, &options.simulate),
        (None, Some(run)) => posterior(args, run, &options),
        (None, None) => Err(Failure::input("give a posterior store, or --prior and a run file")),
    }
}

/// Where the paths begin. p(x_0) of the model is wide and may lie far from the data, so it is said where nobody asked for it.
fn start(args: &SimulateArgs, fitted: &Fitted) -> Result<Start, Failure> {
    if let Some(n_init) = args.n_init {
        return Ok(Start::Outputs { n_init });
    }
    if let Some(initial) = &args.initial {
        return Ok(fitted.initial(initial)?.into());
    }
    eprintln!(
        "note: paths begin anywhere in p(x_0) of the model, which is wide; --n-init N infers the initial state from the first \
         N outputs of the file, --initial last begins at the end of the training record"
    );
    Ok(fitted.initial("model")?.into())
}

/// A record to run free over, with its label and times.
pub type Labelled<T> = (String, Vec<f64>, T);

fn posterior(args: &SimulateArgs, run: &Path, options: &FreeRunOptions) -> Result<u8, Failure> {
    let fitted = Fitted::open(run, args.draws)?.for_record(&args.record)?;
    let (records, clock) = records(args, &fitted)?;
    let start = start(args, &fitted)?;
    let mut done = Vec::new();
    for (label, time, sequence) in records {
        let progress = steps("simulate");
        let tell = |done: usize, of: usize| progress.tell(done, of);
        done.push((label, time, fitted.model.free_run(&sequence, &start, options, &tell)?));
    }
    write_fitted(&args.paths, &fitted, done, &clock)
}

/// Writes the runs of a fitted model and says how they were calibrated.
pub fn write_fitted(
    args: &PathArgs,
    fitted: &Fitted,
    done: Vec<Labelled<Simulation>>,
    clock: &Clock,
) -> Result<u8, Failure> {
    if let Some(words) = fitted.model.calibration.describe().filter(|_| !args.raw) {
        eprintln!("{words}");
    }
    let model = fitted.run.problem.model();
    write(args, model.state_names(), model.output_names(), done, clock)
}

/// What is run free over: a record of outputs and inputs, inputs alone, or rows without either.
fn records(args: &SimulateArgs, fitted: &Fitted) -> Result<(Vec<Labelled<Sequence>>, Clock), Failure> {
    let n_u = fitted.model.n_u();
    let values = fitted.run.problem.n_x() + fitted.run.problem.model().n_y;
    match (&args.inputs, args.n_init, args.steps) {
        (Some(path), Some(n_init), _) => {
            let data = fitted.measured(path, &args.record)?;
            check_room("--paths", args.paths.paths, data.n_rows * values)?;
            let sequences = data.record.sequences();
            if let Some(short) = sequences.iter().find(|s| n_init == 0 || n_init > s.n_rows()) {
                let message = format!("--n-init {n_init}: the record has {} rows", short.n_rows());
                return Err(Failure::input(message));
            }
            let labels = data.sequence_labels.iter().cloned().zip(data.time.iter().cloned());
            let records = labels.zip(sequences).map(|((label, time), s)| (label, time, s.clone())).collect();
            Ok((records, data.clock()))
        }
        (None, Some(_), _) => Err(Failure::input("--n-init needs --inputs with a record of outputs")),
        (Some(_), None, _) if n_u == 0 => {
            Err(Failure::input("--inputs: the model has no inputs; give --steps instead"))
        }
        (Some(path), None, _) => {
            let data = fitted.inputs(path, &args.record)?;
            check_room("--paths", args.paths.paths, data.n_rows * values)?;
            let mut records = Vec::new();
            for (s, sequence) in data.record.sequences().iter().enumerate() {
                let u = (0..sequence.n_rows()).map(|t| sequence.y(t).to_vec()).collect();
                let (label, time) = (data.sequence_labels[s].clone(), data.time[s].clone());
                records.push((label, time, fitted.model.inputs(u)?));
            }
            Ok((records, data.clock()))
        }
        (None, None, Some(steps)) if n_u == 0 => {
            check_room("--steps", steps, args.paths.paths.max(1).saturating_mul(values))?;
            let time = (0..steps).map(|t| t as f64).collect();
            let record = ("1".to_owned(), time, fitted.model.inputs(vec![Vec::new(); steps])?);
            Ok((vec![record], Clock::default()))
        }
        (None, None, _) => {
            Err(Failure::input(format!("--inputs: the model has {n_u} inputs, which must be given")))
        }
    }
}

fn prior(args: &SimulateArgs, model: &Path, options: &SimulateOptions) -> Result<u8, Failure> {
    let (run, data) = fit::read(&RunFile::open(model)?, None, true, &|_| Ok(()))?;
    let problem = prepare(&run.problem, &run.settings)?;
    check_room("--paths", args.paths.paths, data.n_rows * (problem.n_x() + problem.model().n_y))?;
    let mut done = Vec::new();
    for (s, sequence) in data.record.sequences().iter().enumerate() {
        let inputs: Vec<Vec<f64>> = (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
        let progress = steps("simulate");
        let found = simulate_prior(&problem, &inputs, options, &|done, of| progress.tell(done, of))?;
        done.push((data.sequence_labels[s].clone(), data.time[s].clone(), found));
    }
    let model = problem.model();
    write(&args.paths, model.state_names(), model.output_names(), done, &data.clock())
}

fn write(
    args: &PathArgs,
    states: Vec<String>,
    outputs: Vec<String>,
    done: Vec<Labelled<Simulation>>,
    clock: &Clock,
) -> Result<u8, Failure> {
    let several = done.len() > 1;
    let names: Vec<String> =
        outputs.iter().cloned().chain(states.iter().map(|x| format!("state_{x}"))).collect();
    let mut table = IntervalTable::new(names);
    let mut samples = Samples::default();
    for (label, time, found) in &done {
        warn(&found.warnings);
        table.add(label, time, &found.y.beside(&found.x));
        if args.samples.is_some() {
            samples.add(label, time, found);
        }
    }
    if let Some(path) = &args.samples {
        samples.into_output(&outputs, &states, several, clock).write(Some(path))?;
    }
    table.into_output(several, clock).write(args.out.as_deref())?;
    Ok(0)
}

/// All paths, one row for each path and time.
#[derive(Default)]
struct Samples {
    sequence: Vec<String>,
    path: Vec<i64>,
    draw: Vec<i64>,
    time: Vec<f64>,
    values: Vec<Vec<f64>>,
}

impl Samples {
    fn add(&mut self, label: &str, time: &[f64], found: &Simulation) {
        let (n_y, n_x) = (found.y.n_channels(), found.x.n_channels());
        self.values.resize(n_y + n_x, Vec::new());
        for i in 0..found.x.n_samples() {
            for t in 0..found.x.n_rows() {
                self.sequence.push(label.to_owned());
                self.path.push(i as i64);
                self.draw.push(found.draws[i] as i64);
                self.time.push(time.get(t).copied().unwrap_or(t as f64));
                for k in 0..n_y {
                    self.values[k].push(found.y.sample(i)[t * n_y + k]);
                }
                for d in 0..n_x {
                    self.values[n_y + d].push(found.x.sample(i)[t * n_x + d]);
                }
            }
        }
    }

    fn into_output(self, outputs: &[String], states: &[String], several: bool, clock: &Clock) -> Output {
        let mut output = Output::default();
        if several {
            output.add("sequence", Column::Texts(self.sequence));
        }
        output.add("path", Column::Integers(self.path));
        output.add("draw", Column::Integers(self.draw));
        output.times(clock, self.time);
        let names = outputs.iter().cloned().chain(states.iter().map(|x| format!("state_{x}")));
        for (name, values) in names.zip(self.values) {
            output.numbers(name, values);
        }
        output
    }
}
