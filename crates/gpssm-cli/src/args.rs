//! Commands and their options.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{Args, Parser, Subcommand};
use gpssm::sensor::family::FAMILIES;

use crate::commands::check::CheckArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::distil::{DistilArgs, ThinArgs};
use crate::commands::evaluate::EvaluateArgs;
use crate::commands::export::ExportArgs;
use crate::commands::filter::FilterArgs;
use crate::commands::forecast::ForecastArgs;
use crate::commands::linearize::{EquilibriumArgs, LinearizeArgs};
use crate::commands::predict::PredictArgs;
use crate::commands::reproduce::Reproduce;
use crate::commands::sbc::SbcArgs;
use crate::commands::score::ScoreArgs;
use crate::commands::shell::{CompletionsArgs, ManArgs};
use crate::commands::simulate::SimulateArgs;
use crate::failure::Failure;
use crate::fitted::RecordArgs;

/// Learn nonlinear dynamics from recorded inputs and outputs, with calibrated uncertainty.
///
/// gpssm fits state-space models with an unknown transition function. The function has a Gaussian process prior and is
/// integrated out; states and hyper-parameters are sampled by particle Gibbs with ancestor sampling.
#[derive(Debug, Parser)]
#[command(name = "gpssm", version = version(), propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "First steps:
  gpssm demo                                  the paper's benchmark, from data to report
  gpssm init data.csv > model.toml            a commented model file for your data
  gpssm fit data.csv --y y --u u --dry-run    describe the default model
  gpssm fit data.csv --y y --u u -o run.zarr  sample the posterior
  gpssm summary run.zarr                      estimates and convergence diagnostics
  gpssm report run.zarr -o report.html        figures

Run 'gpssm <COMMAND> --help' for the options of a command. Bad input ends with exit code 2 and a one-line message.")]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The version, and the vector instructions in use: draws are the same where these are.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| format!("{} ({})", env!("CARGO_PKG_VERSION"), gpssm::linalg::instruction_set()))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sample the posterior of states, hyper-parameters and transition function.
    Fit(Box<FitArgs>),
    /// Write a commented model file for a data file.
    Init(InitArgs),
    /// Simulate the paper's benchmark, fit it, and compare with the truth.
    Demo(DemoArgs),
    /// Print estimates and convergence diagnostics of a run.
    Summary(SummaryArgs),
    /// Write a report with figures as one HTML file.
    Report(ReportArgs),
    /// Merge runs of single chains into one run.
    Merge(MergeArgs),
    /// Predict the transition function at given points, or outputs k steps ahead.
    Predict(PredictArgs),
    /// Predict the rows after the end of the training record, with prediction intervals.
    Forecast(ForecastArgs),
    /// Simulate the fitted model under new inputs, with prediction intervals.
    Simulate(SimulateArgs),
    /// Estimate the states of a new record online, with the log likelihood of each row.
    Filter(FilterArgs),
    /// Estimate the states of a new record given all of its rows.
    Smooth(FilterArgs),
    /// Score free runs or predictions on a new record and compare with baselines.
    Score(ScoreArgs),
    /// Fit one record, simulate another, and compare the scores with baselines.
    Evaluate(Box<EvaluateArgs>),
    /// Test residuals and free runs of a fitted model: whiteness, inputs, calibration, look of the record.
    Check(CheckArgs),
    /// Rank several fitted models by how well they predict a record.
    Compare(CompareArgs),
    /// Choose a few representative draws and report the loss.
    Thin(ThinArgs),
    /// Distil all draws into one small sparse Gaussian process, for real-time use.
    Distil(DistilArgs),
    /// Write a model for controllers and simulators: C sources with symbols for CasADi, ONNX, FMI 3.0.
    Export(ExportArgs),
    /// Linearize a model at a point: matrices, poles, gains and step responses with intervals.
    Linearize(LinearizeArgs),
    /// Find the state that stays where it is under an input.
    Equilibrium(EquilibriumArgs),
    /// Check the sampler on a model by simulation-based calibration.
    Sbc(SbcArgs),
    /// Reproduce results of the paper and compare with the published figures.
    Reproduce {
        /// The experiment.
        #[command(subcommand)]
        what: Reproduce,
    },
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Print the man page, or write one for each command.
    Man(ManArgs),
}

/// How much the program prints.
#[derive(Clone, Copy, Debug, Args)]
pub struct Verbosity {
    /// Print errors only.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `gpssm fit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm fit gas.csv --y co2 --u gas --dt 9 -o gas.zarr
  gpssm fit gas.csv --y co2 --u gas --states 1             one state for each output
  gpssm fit gas.csv --y co2 --u gas --states 2 --kernel 'matern52 + linear' --dry-run
  gpssm fit model.toml --set sampler.draws=1000 --seed 7
  gpssm fit polio.csv --model polio.toml
  gpssm fit gas.csv --y co2 --u gas --states 1 --point     a point estimate, fast
  gpssm fit --resume gas.zarr                 continue after a crash or Ctrl-C
  gpssm fit --resume gas.zarr --budget 1h     more time for a run that has not converged
  gpssm fit --resume gas.zarr --ess 2000      more effective draws
  gpssm fit model.toml --draws 500 --chain-id 3 -o c3.zarr; gpssm merge c*.zarr -o run.zarr   a chain on each machine

A fit ends when it has converged (--ess), when its time is up (--budget), or after a fixed number of draws (--draws).
Ctrl-C ends the run after the current sweep and keeps every draw. A resumed run gives exactly the draws of an
uninterrupted one.")]
pub struct FitArgs {
    /// A CSV file with a header, a model file (.toml) that names one, or a run (.zarr) whose model and data are fitted again.
    #[arg(required_unless_present = "resume")]
    pub input: Option<PathBuf>,
    /// A model file for the CSV file.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Output columns, comma separated; an empty field is a missing value.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    pub y: Vec<String>,
    /// Input columns, comma separated.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    pub u: Vec<String>,
    /// Column with the time of each row, numbers or dates; gaps become rows with missing outputs.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub time: Option<String>,
    /// Sampling time, if there is no column for it; beside --time the step of the grid that times are put on (of dates in
    /// seconds).
    #[arg(long, value_name = "SECONDS", help_heading = "Data")]
    pub dt: Option<String>,
    /// Column that labels independent sequences.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub sequence: Option<String>,
    /// Rows to use, counted from 1, such as 1:148.
    #[arg(long, value_name = "FIRST:LAST", allow_hyphen_values = true, help_heading = "Data")]
    pub rows: Option<String>,
    /// Use every k-th row of each sequence.
    #[arg(long, value_name = "K", help_heading = "Data")]
    pub every: Option<String>,
    /// Number of past input values used as regressors [default: 0].
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub input_lags: Option<String>,
    /// Rows from an input to the first output it acts on [default: 1].
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub delay: Option<String>,
    /// Number of states, or auto to choose past values, delay, thinning, kernel and basis from the data. Each output measures
    /// one state; further states are hidden [default: auto, or one for each output if another option of the model is given].
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub states: Option<String>,
    /// Number of past output values used as states [default: 0].
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub lags: Option<String>,
    /// Kernel, such as 'se + linear', 'matern32(x) + se(u) + linear' [default: se + linear].
    #[arg(long, value_name = "KERNEL", help_heading = "Model")]
    pub kernel: Option<String>,
    /// Mean of f: identity, zero, or a formula such as '0.3*x + u' [default: identity].
    #[arg(long, value_name = "MEAN", help_heading = "Model")]
    pub mean: Option<String>,
    // The help is made from the descriptors of the families.
    #[arg(long, value_name = "SENSOR", help_heading = "Model", help = sensor_help())]
    pub sensor: Option<String>,
    /// Prior over f: exact, or a finite basis such as 'fic(40)', 'hilbert(60)', 'hilbert(60, sampled)' [default: exact].
    #[arg(long, value_name = "DYNAMICS", help_heading = "Model")]
    pub dynamics: Option<String>,
    /// Sample until every identified hyper-parameter, f at visited points and the states have this effective sample size
    /// and R-hat 1.01 [default: 400].
    #[arg(long, value_name = "N", help_heading = "Sampler", conflicts_with = "draws", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub ess: Option<u64>,
    /// Time limit of the sampling, such as 90s, 10m, 1h30m or none; draws are kept and the run can be resumed [default: 10m,
    /// none with --draws].
    #[arg(long, value_name = "TIME", help_heading = "Sampler")]
    pub budget: Option<String>,
    /// Fixed number of draws of each chain after warm-up, in place of --ess.
    #[arg(long, value_name = "N", help_heading = "Sampler", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub draws: Option<u64>,
    /// Find a point estimate in place of draws from the posterior, by stochastic-approximation EM: theta, a path and with them one
    /// Gaussian process, in seconds to a minute. What is not known of theta and the path is left out of all intervals.
    #[arg(long, help_heading = "Sampler", conflicts_with_all = ["draws", "ess", "chains", "chain_id", "resume"])]
    pub point: bool,
    /// Warm-up sweeps of each chain; iterations of --point [default: 300].
    #[arg(long, value_name = "N", help_heading = "Sampler")]
    pub tune: Option<String>,
    /// Number of chains, each with its own start [default: 4].
    #[arg(long, value_name = "N", help_heading = "Sampler")]
    pub chains: Option<String>,
    /// Number of particles of the conditional filter [default: 20].
    #[arg(long, value_name = "N", help_heading = "Sampler")]
    pub particles: Option<String>,
    /// Seed of all random numbers [default: 0].
    #[arg(long, value_name = "SEED", help_heading = "Sampler")]
    pub seed: Option<String>,
    /// Number of threads; the draws do not depend on it [default: one for each core].
    #[arg(long, value_name = "N", help_heading = "Sampler")]
    pub threads: Option<usize>,
    /// Run only this chain, counted from 0; needs --draws.
    #[arg(long, value_name = "K", help_heading = "Sampler")]
    pub chain_id: Option<u32>,
    /// Any key of the model file, such as sampler.start.restarts=8; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for the posterior [default: the name of the input with .zarr].
    #[arg(long, short, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Overwrite existing files.
    #[arg(long)]
    pub overwrite: bool,
    /// Describe the model, its memory and expected time, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// Continue this run, after a crash or for more draws (--ess, --budget, --draws).
    #[arg(long, value_name = "RUN", conflicts_with_all = ["input", "model", "out", "overwrite", "set", "chain_id",
        "y", "u", "time", "dt", "sequence", "rows", "every", "input_lags", "delay", "states", "lags", "kernel", "mean", "sensor", "dynamics",
        "tune", "chains", "particles", "seed", "dry_run"])]
    pub resume: Option<PathBuf>,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

impl FitArgs {
    /// The data file, if one was named.
    pub fn data_file(&self) -> Option<&Path> {
        self.input.as_deref().filter(|input| !is_run_file(input))
    }

    /// The run file, if one was named.
    pub fn model_file(&self) -> Result<Option<&Path>, Failure> {
        let input = self.input.as_deref().filter(|input| is_run_file(input));
        match (input, self.model.as_deref()) {
            (Some(_), Some(model)) => {
                let message = "two run files: give a CSV file beside --model";
                Err(Failure::input(format!("--model {}: {message}", model.display())))
            }
            (input, model) => Ok(input.or(model)),
        }
    }

    /// Options that set keys of the run file.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let names = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
        let given = [
            ("--y", names(&self.y)),
            ("--u", names(&self.u)),
            ("--time", self.time.clone()),
            ("--dt", self.dt.clone()),
            ("--sequence", self.sequence.clone()),
            ("--rows", self.rows.clone()),
            ("--every", self.every.clone()),
            ("--input-lags", self.input_lags.clone()),
            ("--delay", self.delay.clone()),
            ("--states", self.states.clone()),
            ("--lags", self.lags.clone()),
            ("--kernel", self.kernel.clone()),
            ("--mean", self.mean.clone()),
            ("--sensor", self.sensor.clone()),
            ("--dynamics", self.dynamics.clone()),
            ("--draws", self.draws.map(|n| n.to_string())),
            ("--ess", self.ess.map(|n| n.to_string())),
            ("--budget", self.budget.clone()),
            ("--tune", self.tune.clone()),
            ("--chains", self.chains.clone()),
            ("--particles", self.particles.clone()),
            ("--point", self.point.then(|| "true".to_owned())),
            ("--seed", self.seed.clone()),
            ("--threads", self.threads.map(|n| n.to_string())),
        ];
        given.into_iter().filter_map(|(option, text)| Some((option, text?))).collect()
    }
}

fn sensor_help() -> String {
    let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
    format!("Sensor: {} [default: gaussian]", names.join(", "))
}

/// Whether this is a posterior store, whose configuration is a model file, too.
pub fn is_store(path: &Path) -> bool {
    path.join("zarr.json").is_file()
}

fn is_run_file(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) || is_store(path)
}

/// Arguments of `gpssm init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// A CSV file with a header.
    pub data: PathBuf,
    /// Output columns, comma separated [default: guessed from names and values].
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub y: Vec<String>,
    /// Input columns, comma separated [default: guessed from names and values].
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub u: Vec<String>,
    /// Output file [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite existing files.
    #[arg(long)]
    pub overwrite: bool,
}

/// Arguments of `gpssm demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Output folder for data, model, posterior and report.
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-demo")]
    pub out: PathBuf,
    /// Seed of data and sampler.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Overwrite existing files.
    #[arg(long)]
    pub overwrite: bool,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// Arguments of `gpssm summary`.
#[derive(Debug, Args)]
#[command(
    after_help = "The verdict comes first: have the chains converged, is the model good (beside a constant and the best linear models), \
are its predictions inside the data. It is made from the training record, or from the rows of a FILE that were not used in the \
fit. Draws and rows are thinned so that it takes seconds; gpssm score uses all of them.

Intervals are equal-tailed. R-hat is close to 1 when the chains agree. ESS is the effective sample size, for the bulk of the \
distribution and for its tails."
)]
pub struct SummaryArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// A CSV file with rows that were not used in the fit, to judge the model by.
    pub file: Option<PathBuf>,
    /// Probability of the intervals.
    #[arg(long, default_value_t = 0.9)]
    pub level: f64,
    /// Exit with code 3 if there are warnings.
    #[arg(long)]
    pub strict: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// Columns of the file.
    #[command(flatten)]
    pub record: RecordArgs,
}

/// Arguments of `gpssm report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// Output file [default: the name of the run with .html].
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write each figure into this folder, too, as an SVG file.
    #[arg(long, value_name = "FOLDER")]
    pub figures: Option<PathBuf>,
}

/// Arguments of `gpssm merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Runs of single chains (gpssm fit --chain-id) with the same data and configuration.
    #[arg(required = true, num_args = 1..)]
    pub runs: Vec<PathBuf>,
    /// Folder for the merged run.
    #[arg(long, short, value_name = "RUN")]
    pub out: PathBuf,
}
