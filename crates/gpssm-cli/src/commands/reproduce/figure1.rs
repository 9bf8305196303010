//! Figure 1 of the paper: smoothing samples with the alternative of opposite sign, and the transition surface.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use gpssm::Sequence;
use gpssm_report::figures::{Series, SurfaceData, figure_states, figure_surface};

use super::fitted::Task;
use super::rows::ROWS;
use crate::args::Verbosity;
use crate::failure::Failure;
use crate::monitor::ProgressMode;
use gpssm_dev::benchmark;

/// Arguments of `gpssm reproduce figure1`.
#[derive(Debug, Args)]
pub struct Figure1Args {
    /// Seed of data and sampler.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Quick check with fewer draws.
    #[arg(long)]
    pub quick: bool,
    /// Output folder.
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-figure1")]
    pub out: PathBuf,
    /// Verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// Times that are shown.
const SHOWN: usize = 60;
/// Paths that are shown.
const PATHS: usize = 40;
/// Points of the function that are shown.
const POINTS: usize = 400;

/// Runs the command; the exit code.
pub fn run(args: &Figure1Args, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    std::fs::create_dir_all(&args.out).map_err(|error| Failure::writing(&args.out, &error))?;
    let simulated = benchmark::simulate(args.seed, benchmark::T);
    let Some(row) = ROWS.iter().find(|row| row.name == "gp-ssm") else {
        return Err(Failure::other("the table has no row gp-ssm"));
    };
    let draws = if args.quick { 60 } else { 300 };
    let fitted = Task {
        run_file: &row.run_file(),
        name: "figure1",
        set: vec![
            format!("sampler.seed={}", args.seed),
            format!("sampler.draws={draws}"),
            format!("sampler.tune={}", draws.min(200)),
            "sampler.chains=2".into(),
        ],
        record: Sequence::scalar(&simulated.y, Some(&simulated.u))?.into(),
        outputs: vec!["y".into()],
        inputs: vec!["u".into()],
        progress_mode: ProgressMode::choose(args.verbosity.quiet || args.verbosity.json),
        stop: stop.clone(),
    }
    .fit()?;
    let paths: Vec<&[f64]> =
        fitted.chains.iter().flat_map(|chain| &chain.paths).map(|paths| paths[0].as_slice()).collect();
    let every = (paths.len() / PATHS).max(1);
    let series = Series {
        title: "x: draws, truth, and the states of opposite sign".into(),
        t: (0..SHOWN).map(|t| t as f64).collect(),
        truth: simulated.x[..SHOWN].to_vec(),
        alternative: simulated.x[..SHOWN].iter().map(|x| -x).collect(),
        samples: paths.iter().step_by(every).map(|path| path[..SHOWN].to_vec()).collect(),
        ..Series::default()
    };
    let seen = Series {
        title: "y: all that was seen".into(),
        t: series.t.clone(),
        data: simulated.y[..SHOWN].to_vec(),
        ..Series::default()
    };
    let states = figure_states("Smoothing: the sensor does not see the sign of x", "t", &[series, seen]);
    write(args, "states.svg", &states)?;

    let grid = |from: f64, to: f64, n: usize| -> Vec<f64> {
        (0..n).map(|i| from + (to - from) * i as f64 / (n - 1) as f64).collect()
    };
    let (x, u) = (grid(-20.0, 20.0, 41), grid(-1.0, 1.0, 17));
    let over = |value: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        u.iter().flat_map(|u| x.iter().map(move |x| (*x, *u))).map(|(x, u)| value(x, u)).collect()
    };
    // A number without common factors with T, so that every time is shown.
    let every = (paths.len() * benchmark::T / POINTS).max(1) | 1;
    let every = if every.is_multiple_of(5) { every + 2 } else { every };
    let points = paths
        .iter()
        .flat_map(|path| (0..benchmark::T).map(|t| [path[t], simulated.u[t], path[t + 1]]))
        .step_by(every)
        .collect();
    let data = SurfaceData {
        labels: ["x".into(), "u".into(), "next x".into()],
        truth: over(&benchmark::truth),
        truth_name: "true f".into(),
        mean_function: over(&|x, _| 0.3 * x + 7.5 * x / (1.0 + x * x)),
        x,
        y: u,
        points,
    };
    write(
        args,
        "surface.svg",
        &figure_surface("The transition: truth, mean function and sampled points", &data),
    )?;
    if !args.verbosity.quiet {
        eprintln!("{} and surface.svg written", args.out.join("states.svg").display());
    }
    Ok(0)
}

fn write(args: &Figure1Args, name: &str, svg: &str) -> Result<(), Failure> {
    let path = args.out.join(name);
    std::fs::write(&path, svg).map_err(|error| Failure::writing(&path, &error))
}
