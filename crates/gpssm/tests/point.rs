//! Point estimates: the mode of p(theta | y), the same for the same seed, and nothing where they were stopped.

use std::f64::consts::TAU;

use gpssm::convergence::{Warning, assess};
use gpssm::mcmc::StartSettings;
use gpssm::model::{
    FunctionSpec, InitialSpec, Predictor, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec,
    StateSpec, TransitionSpec,
};
use gpssm::{Ended, Functions, MemorySink, Model, Phase, Prior, Problem, Sequence, Settings, sample};

/// Medians and spreads of the priors of a, the standard deviation of the process and that of the sensor.
const PRIORS: [(f64, f64); 3] = [(0.6, 0.1), (0.4, 0.3), (0.2, 0.2)];

fn record() -> Vec<f64> {
    let mut x: f64 = 0.5;
    let noise =
        |t: usize, k: f64| (12.9898 * k * (t + 1) as f64).sin() + (7.31 * k * (t * t + 3) as f64).cos();
    (0..60)
        .map(|t| {
            x = 0.85 * x + 0.5 * noise(t, 1.0);
            x + 0.3 * noise(t, 2.7)
        })
        .collect()
}

/// x' = a x + v, y = x + e, everything learned.
fn problem() -> Problem {
    let mut model = Model::observed(1, 0);
    let function = FunctionSpec::Formula("a*x1".into());
    model.states[0] = StateSpec { transition: TransitionSpec::Parametric { function }, scale: None };
    let scale = |k: usize| {
        let (median, sigma) = PRIORS[k];
        ScalePrior::on_sd(Prior::LogNormal { median, sigma })
    };
    model.parameters.insert("a".into(), Prior::Normal { mean: PRIORS[0].0, sd: PRIORS[0].1 });
    model.process_noise = ProcessNoiseSpec::Diagonal(vec![scale(1)]);
    model.sensor =
        SensorSpec::Gaussian { mean: Predictor::States, noise: SensorNoiseSpec::Diagonal(vec![scale(2)]) };
    model.initial = InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] };
    model.standardise = false;
    model.symmetries = Vec::new();
    Problem::new(model, &Functions::new(), Sequence::scalar(&record(), None).unwrap().into()).unwrap()
}

fn settings() -> Settings {
    Settings {
        seed: 4,
        tune: 600,
        start: StartSettings { restarts: 4, particles: Some(30) },
        ..Settings::point()
    }
}

/// log p(y, theta) in the coordinates (a, log sd, log sd), by the Kalman filter.
fn log_posterior(at: &[f64; 3], y: &[f64]) -> f64 {
    let (a, q, r) = (at[0], (2.0 * at[1]).exp(), (2.0 * at[2]).exp());
    let (mut mean, mut variance, mut total) = (0.0, 1.0, 0.0);
    for y in y {
        let s = variance + r;
        total -= 0.5 * ((y - mean).powi(2) / s + (TAU * s).ln());
        let gain = variance / s;
        (mean, variance) = (mean + gain * (y - mean), (1.0 - gain) * variance);
        (mean, variance) = (a * mean, a * a * variance + q);
    }
    let place = |k: usize| if k == 0 { PRIORS[k].0 } else { PRIORS[k].0.ln() };
    (0..3).for_each(|k| total -= 0.5 * ((at[k] - place(k)) / PRIORS[k].1).powi(2));
    total
}

/// Its mode, and the curvature there as standard deviations.
fn mode(y: &[f64]) -> ([f64; 3], [f64; 3]) {
    let mut at = [0.7, -1.0, -1.5];
    let curvature = |at: &[f64; 3], k: usize, h: f64| {
        let (mut up, mut down) = (*at, *at);
        (up[k], down[k]) = (at[k] + h, at[k] - h);
        let (up, here, down) = (log_posterior(&up, y), log_posterior(at, y), log_posterior(&down, y));
        ((up - down) / (2.0 * h), (up + down - 2.0 * here) / (h * h))
    };
    for _ in 0..400 {
        for k in 0..3 {
            let (slope, bend) = curvature(&at, k, 1e-3);
            at[k] += (slope / bend.abs().max(1.0)).clamp(-0.1, 0.1);
        }
    }
    (at, std::array::from_fn(|k| 1.0 / curvature(&at, k, 1e-3).1.abs().sqrt()))
}

/// Within a third of a standard deviation of the mode that the Kalman filter gives.
#[test]
fn it_is_the_mode_of_the_posterior() {
    let problem = problem();
    let sink = MemorySink::new();
    let report = sample(&problem, &settings(), &sink, &|_| true).unwrap();
    assert_eq!(report.ended, Ended::Complete);
    let chains = sink.into_chains();
    assert_eq!((chains.len(), chains[0].theta.len()), (1, 1));
    let (expected, sd) = mode(&record());
    for (name, k) in [("a", 0), ("process_sd[x]", 1), ("sensor_sd[y]", 2)] {
        let place = problem.table().index(name).unwrap_or_else(|| panic!("{:?}", problem.table().parameters));
        let value = chains[0].theta[0][place];
        let found = if k == 0 { value } else { value.ln() };
        assert!((found - expected[k]).abs() < sd[k] / 3.0, "{name}: {found}, {} +- {}", expected[k], sd[k]);
    }
    let found = assess(&problem, &settings(), &chains, 0.9);
    assert_eq!(found.warnings, [Warning::Point]);
}

#[test]
fn the_same_seed_gives_the_same_estimate_and_a_stop_gives_none() {
    let (problem, settings) = (problem(), Settings { tune: 20, ..settings() });
    let run = |stop_at: Option<u64>| {
        let sink = MemorySink::new();
        let go_on = |phase: Phase, done: u64| phase != Phase::Tune || stop_at.is_none_or(|at| done < at);
        let report = sample(&problem, &settings, &sink, &|p| go_on(p.phase, p.done)).unwrap();
        (report.ended, sink.into_chains())
    };
    let (ended, first) = run(None);
    assert_eq!(ended, Ended::Complete);
    assert_eq!(run(None).1, first);
    for at in [3, 15] {
        assert_eq!(run(Some(at)), (Ended::Cancelled, Vec::new()));
    }
}

#[test]
fn several_draws_or_chains_are_refused() {
    let problem = problem();
    let refused = |settings: Settings| settings.check(&problem).unwrap_err().to_string();
    let chains = refused(Settings { chains: 2, ..settings() });
    assert!(chains.contains("chains") && chains.contains("one chain"), "{chains}");
    let draws = refused(Settings { draws: None, ..settings() });
    assert!(draws.contains("draws") && draws.contains("one draw"), "{draws}");
}
