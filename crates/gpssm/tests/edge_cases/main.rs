//! Numerical edge cases and bad input: no panic, no NaN in any draw, and messages that name the cause.

mod data;
mod declared_scale;
mod every_kind;
mod extremes;
mod failures;
mod messages;
mod settings;
mod standardised;
mod symmetries;
mod units;

use gpssm::mcmc::{ChainDraws, StartSettings};
use gpssm::model::{Predictor, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec};
use gpssm::{Error, Functions, MemorySink, Model, Prior, Problem, Record, Sequence, Settings, sample};

/// A short run.
fn short() -> Settings {
    Settings {
        seed: 1,
        chains: 1,
        tune: 4,
        draws: Some(6),
        particles: 5,
        threads: Some(1),
        start: StartSettings { restarts: 2, particles: Some(30) },
        ..Settings::default()
    }
}

fn problem(model: Model, record: impl Into<Record>) -> Result<Problem, Error> {
    Problem::new(model, &Functions::new(), record.into())
}

/// The draws of the only chain.
fn run(problem: &Problem, settings: &Settings) -> Result<ChainDraws, Error> {
    let sink = MemorySink::new();
    sample(problem, settings, &sink, &|_| true)?;
    Ok(sink.into_chains().remove(0))
}

/// Theta and paths are finite, log densities are numbers or minus infinity.
#[track_caller]
fn assert_no_nan(draws: &ChainDraws, what: &str) {
    let theta = draws.theta.iter().flatten().all(|v| v.is_finite());
    let paths = draws.paths.iter().flatten().flatten().all(|v| v.is_finite());
    let number = |v: f64| v.is_finite() || v == f64::NEG_INFINITY;
    let info = draws.info.iter().all(|i| number(i.log_joint) && number(i.log_likelihood_total));
    assert!(theta && paths && info, "{what}: theta {theta}, paths {paths}, log densities {info}");
    assert_eq!(draws.theta.len(), 6, "{what}");
}

/// Log densities are finite too.
#[track_caller]
fn assert_finite(draws: &ChainDraws, what: &str) {
    assert_no_nan(draws, what);
    let info = draws.info.iter().all(|i| i.log_joint.is_finite() && i.log_likelihood_total.is_finite());
    assert!(info, "{what}: a log density is minus infinity");
}

/// Runs a model and insists on finite draws.
#[track_caller]
fn assert_runs(model: Model, record: impl Into<Record>, settings: &Settings, what: &str) -> ChainDraws {
    let problem = problem(model, record).unwrap_or_else(|error| panic!("{what}: {error}"));
    let draws = run(&problem, settings).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_finite(&draws, what);
    draws
}

#[track_caller]
fn assert_refused(result: Result<Problem, Error>, expected: &str) {
    match result {
        Ok(_) => panic!("accepted, although \"{expected}\""),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

/// A smooth record of `rows` rows with one input.
fn record(rows: usize) -> Sequence {
    let u: Vec<f64> = (0..rows).map(|t| (0.9 * t as f64).cos()).collect();
    let y: Vec<f64> = (0..rows).map(|t| 2.0 + (0.5 * t as f64).sin() + 0.3 * u[t]).collect();
    Sequence::scalar(&y, Some(&u)).unwrap()
}

fn fixed(value: f64) -> Prior {
    Prior::Fixed { value }
}

fn process_sd(sd: f64) -> ProcessNoiseSpec {
    ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(fixed(sd))])
}

fn sensor_sd(sd: f64) -> SensorSpec {
    let noise = SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(fixed(sd))]);
    SensorSpec::Gaussian { mean: Predictor::States, noise }
}
