//! `gpssm thin` and `gpssm distil`: a posterior made smaller, with what it costs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gpssm::posterior::{DistilOptions, Distilled, DistilledRows, ThinMethod};
use serde_json::json;

use crate::commands::fit::make_way_for_file;
use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted};
use crate::output::check_file;
use crate::table::number;

/// How draws are chosen.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Method {
    /// Kernel herding: each next draw brings the chosen ones closest to all.
    Herding,
    /// At random.
    Random,
}

/// Arguments of `gpssm thin`.
#[derive(Debug, Args)]
pub struct ThinArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// Number of draws to keep.
    #[arg(short, long, value_name = "N")]
    pub keep: usize,
    /// How they are chosen.
    #[arg(long, value_enum, default_value_t = Method::Herding)]
    pub method: Method,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// Runs `gpssm thin`; the exit code.
pub fn thin(args: &ThinArgs) -> Result<u8, Failure> {
    let fitted = Fitted::open(&args.run, args.draws)?;
    let of = |method| fitted.model.posterior.thin(args.keep, method, args.draws.seed);
    let (chosen, other) = match args.method {
        Method::Herding => (of(ThinMethod::Herding)?.1, of(ThinMethod::Random)?.1),
        Method::Random => (of(ThinMethod::Random)?.1, of(ThinMethod::Herding)?.1),
    };
    eprintln!(
        "{} of {} draws: mean of f off by {:.2} % of its sd over the data, sd off by {:.2} %, {} nats of log score lost \
         (the other method: {:.2} %, {:.2} %, {})",
        chosen.kept.len(),
        fitted.model.posterior.len(),
        100.0 * chosen.mean_error,
        100.0 * chosen.sd_error,
        number(chosen.divergence),
        100.0 * other.mean_error,
        100.0 * other.sd_error,
        number(other.divergence)
    );
    println!("{:#}", json!({ "loss": chosen }));
    Ok(0)
}

/// Arguments of `gpssm distil`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file holds a sparse Gaussian process for each state: mean, variance and Jacobian in microseconds, from Rust \
(gpssm::posterior::distilled) or Python (gpssm.Distilled). Sensor, sampling time, names, units and losses are part of it. The \
model is judged on the training record beside the full posterior, in a free run and one step ahead; a model that loses more than \
--max-loss is not written."
)]
pub struct DistilArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// Output file (.json).
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// How large the model is.
    #[command(flatten)]
    pub size: SizeArgs,
    /// Overwrite existing files.
    #[arg(long)]
    pub overwrite: bool,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// How large a distilled model is, and what it may lose.
#[derive(Clone, Debug, Args)]
pub struct SizeArgs {
    /// Number of inducing inputs [default: the smallest up to 50 with an error of the mean below --tolerance].
    #[arg(long, value_name = "M")]
    pub size: Option<usize>,
    /// Wanted error of the mean, relative to the standard deviation of f.
    #[arg(long, default_value_t = 0.02)]
    pub tolerance: f64,
    /// Largest loss of fit on the training record, in percentage points.
    #[arg(long, value_name = "POINTS", default_value_t = 3.0)]
    pub max_loss: f64,
}

impl SizeArgs {
    /// Refuses numbers that mean nothing, before any work is done.
    pub fn check(&self) -> Result<(), Failure> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Failure::input(format!("--tolerance {}: must be a positive number", self.tolerance)));
        }
        if self.max_loss.is_nan() || self.max_loss < 0.0 {
            return Err(Failure::input(format!("--max-loss {}: must be a number from 0 on", self.max_loss)));
        }
        Ok(())
    }

    /// Distils a run.
    pub fn distil(&self, fitted: &Fitted) -> Result<Distilled, Failure> {
        let options = DistilOptions {
            size: self.size,
            tolerance: self.tolerance,
            max_loss: Some(self.max_loss),
            rows: sampling(fitted),
            ..DistilOptions::default()
        };
        Ok(fitted.model.distil(&options)?)
    }
}

/// Runs `gpssm distil`; the exit code.
pub fn distil(args: &DistilArgs) -> Result<u8, Failure> {
    if args.out.extension().is_none_or(|ending| ending != "json") {
        let message = format!("{}: distilled models are .json files", args.out.display());
        return Err(Failure::input(message));
    }
    args.size.check()?;
    check_file(&args.out, &[])?;
    make_way_for_file(&args.out, args.overwrite)?;
    let fitted = Fitted::open(&args.run, args.draws)?;
    let distilled = args.size.distil(&fitted)?;
    let text = serde_json::to_string(&distilled).map_err(Failure::other)?;
    std::fs::write(&args.out, text).map_err(|error| Failure::writing(&args.out, &error))?;
    say_losses(&distilled, &args.size);
    let loss = &distilled.loss;
    eprintln!(
        "{} written: {} inducing inputs for each state; errors of f are against the full mixture at {} held-out points",
        args.out.display(),
        distilled.largest_size(),
        loss.n_points
    );
    Ok(0)
}

/// What a distilled model lost, on standard error.
pub fn say_losses(distilled: &Distilled, size: &SizeArgs) {
    let loss = &distilled.loss;
    if loss.n_mapped + loss.n_left_out > 0 {
        eprintln!(
            "{} of {} draws: {} brought to the same coordinates of the hidden states, {} of other solutions left out",
            loss.n_draws,
            loss.n_draws + loss.n_left_out,
            loss.n_mapped,
            loss.n_left_out
        );
    }
    for (d, name) in distilled.state_names.iter().enumerate() {
        eprintln!(
            "{name}: mean off by {} ({:.1} % of the sd of f over the data), sd off by {:.1} %",
            number(loss.mean_rmse[d]),
            100.0 * loss.mean_error[d],
            100.0 * loss.sd_error[d]
        );
        if size.size.is_none() && loss.mean_error[d] > size.tolerance {
            eprintln!(
                "warning: {name}: {} inducing inputs do not reach the tolerance of {} %; try a larger --size",
                distilled.largest_size(),
                100.0 * size.tolerance
            );
        }
    }
    for (task, found) in [("free run", &loss.free_run), ("one step ahead", &loss.one_step)] {
        let Some(found) = found else {
            eprintln!("{task}: the training record is too short to compare it");
            continue;
        };
        for (k, output) in distilled.output_names.iter().enumerate() {
            let fit = |fit: Option<f64>| fit.map_or_else(|| "-".into(), |fit| format!("{fit:.1} %"));
            eprintln!(
                "{task} of {output}, {} training rows: fit {}, all draws {}",
                found.n_rows,
                fit(found.distilled_fit[k]),
                fit(found.posterior_fit[k])
            );
        }
    }
}

/// The time between rows of the model, where the record tells.
pub fn sampling(fitted: &Fitted) -> DistilledRows {
    let run = &fitted.run;
    let timed = run.data.time.is_some() || run.data.dt.is_some();
    let steps = run.time.iter().filter(|times| timed && times.len() > 1);
    let mut steps = steps.map(|times| (times[times.len() - 1] - times[0]) / (times.len() - 1) as f64);
    let time_unit = run.dates.as_ref().map(|_| "s".to_owned());
    DistilledRows { sampling_time: steps.next(), time_unit, ..DistilledRows::default() }
}
