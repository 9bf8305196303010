//! `gpssm demo`: the paper's benchmark, from data to report.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpssm::Posterior;
use gpssm_io::config::RunFile;
use gpssm_io::fit::{Fit, LoadedRun};

use crate::args::{DemoArgs, Verbosity};
use crate::commands::{fit, report};
use crate::failure::{Failure, code};
use crate::output::Output;
use gpssm_dev::benchmark::{self, Simulated};

/// What is assumed about the benchmark: the paper's wrong "model B" as the mean of f.
const MODEL: &str = include_str!("demo.toml");

/// Runs the command; the exit code.
pub fn run(args: &DemoArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    let store = args.out.join("run.zarr");
    std::fs::create_dir_all(&args.out).map_err(|error| Failure::writing(&args.out, &error))?;
    fit::make_way(&store, args.overwrite, "choose another folder with -o, or --overwrite it")?;
    let simulated = benchmark::simulate(args.seed, benchmark::T);
    write_data(&simulated, &args.out.join("data.csv"))?;
    let model = args.out.join("model.toml");
    std::fs::write(&model, MODEL).map_err(|error| Failure::writing(&model, &error))?;

    let say = |text: &str| {
        if !args.verbosity.quiet && !args.verbosity.json {
            println!("{text}");
        }
    };
    say("The benchmark of Frigola, Lindsten, Schoen and Rasmussen (2013):\n\
         \x20 x' = 0.5 x + 25 x / (1 + x^2) + 8 u + v,  v ~ N(0, 10)\n\
         \x20 y  = 0.05 x^2 + e,                        e ~ N(0, 1)\n\
         The sensor does not measure the sign of x. The model has a wrong mean function and does not know the equations.\n");
    let mut file = RunFile::open(&model)?;
    file.option("--seed", &args.seed.to_string())?;
    let (run, data) = fit::read(&file, None, true, &|_| Ok(()))?;
    let begun = Fit::begin(&store, &run, &data, None)?;
    let verbosity = Verbosity { quiet: args.verbosity.quiet || args.verbosity.json, json: false };
    let ended = fit::go(begun, verbosity, stop)?;
    if ended == code::STOPPED {
        return Ok(ended);
    }

    let run = LoadedRun::open(&store)?;
    let posterior = Posterior::new(&run.problem, &run.chains)?;
    let paths = run.chains.iter().flat_map(|chain| &chain.paths).map(|paths| paths[0].as_slice());
    let smoothing = benchmark::smoothing_rmse(paths, &simulated.x);
    let prediction = benchmark::prediction_rmse(&posterior, &benchmark::test_points(args.seed))?;
    let page = args.out.join("report.html");
    report::write(&run, &page, None)?;
    if args.verbosity.json {
        println!(
            "{:#}",
            serde_json::json!({ "smoothing_rmse": smoothing, "prediction_rmse": prediction, "seed": args.seed })
        );
    }
    say(&format!(
        "\nComparison with the true system:\n\
         \x20 states   RMSE {smoothing:.2} of the sampled paths          (paper: 3.2 +- 0.5; with the true model: 2.7 +- 0.5)\n\
         \x20 function RMSE {prediction:.2} at {} new points       (paper: 1.7 +- 0.2; mean function alone: 7.1)\n\n\
         Report: {}. Posterior: {} (opens in xarray and ArviZ).",
        benchmark::N_TEST,
        page.display(),
        store.display()
    ));
    Ok(0)
}

fn write_data(simulated: &Simulated, path: &Path) -> Result<(), Failure> {
    let mut output = Output::default();
    output.numbers("u", simulated.u.clone());
    output.numbers("y", simulated.y.clone());
    output.write(Some(path))
}
