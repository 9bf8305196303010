//! Simulation-based calibration of the whole sampler, cold start included (T = 20, 10 particles, 63 draws).
//!
//! `wrong_prior_of_the_process_noise` and `sensor_noise_drawn_too_large` plant bugs in what the data are made from, which is the
//! same as planting the opposite in the sampler, and have seen them.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::mcmc::StartSettings;
use gpssm::model::{
    DynamicsSpec, FunctionSpec, InducingSpec, InitialSpec, Mode, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, TransitionSpec,
};
use gpssm::posterior::PriorSample;
use gpssm::{Functions, KernelSpec, Model, Prior, Problem, Sequence, Settings};
use gpssm_identify::sbc::{Sbc, SbcOptions, SbcRun, Uniformity, check_stated};

/// A right sampler falls below in one of 10,000 tests.
const UNEVEN: f64 = 1e-4;

fn log_normal(median: f64, sigma: f64) -> Prior {
    Prior::LogNormal { median, sigma }
}

/// One state, one output, everything learned and everything stated; the prior of q around `q`.
fn model(dynamics: DynamicsSpec, q: f64) -> Model {
    let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL)
        .with("sigma_f", log_normal(1.0, 0.4))
        .with("ell", log_normal(1.0, 0.4));
    let noise = SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(log_normal(0.3, 0.4))]);
    let mut model = Model {
        dynamics,
        standardise: false,
        process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(log_normal(q, Q_SIGMA))]),
        sensor: SensorSpec::Gaussian { mean: Predictor::States, noise },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] },
        ..Model::observed(1, 0)
    };
    model.states[0].transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    model.states[0].scale = Some(1.0);
    model
}

const Q: f64 = 0.4;
const Q_SIGMA: f64 = 0.6;

fn sbc(model: &Model, n_rows: usize, tune: u64, options: SbcOptions) -> Sbc {
    let y: Vec<f64> = (0..n_rows).map(|t| (t % 2) as f64).collect();
    let record = Sequence::scalar(&y, None).unwrap().into();
    let problem = Problem::new(model.clone(), &Functions::new(), record).unwrap();
    check_stated(model, problem.model()).unwrap();
    let start = StartSettings { restarts: 8, particles: Some(20) };
    let settings = Settings { tune, particles: 10, start, ..Settings::default() };
    Sbc::new(&problem, &Functions::new(), &settings, options).unwrap()
}

fn long(model: &Model) -> Sbc {
    sbc(model, 21, 100, SbcOptions { draws: 63, thin: 10, seed: 1 })
}

const RUNS: u64 = 320;

/// Ranks of the truths of `data` among draws of `fit`.
fn judge(fit: &Sbc, data: &(dyn Fn(u64) -> PriorSample + Sync)) -> Vec<Uniformity> {
    let runs: Mutex<Vec<SbcRun>> = Mutex::new(Vec::new());
    let part = |indices: std::ops::Range<u64>| {
        for index in indices {
            let run = fit.rank(index, data(index), &AtomicBool::new(false)).unwrap().unwrap();
            runs.lock().unwrap().push(run);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| part(0..RUNS / 2));
        part(RUNS / 2..RUNS);
    });
    let judged = fit.judge(&runs.into_inner().unwrap());
    for found in &judged {
        println!(
            "{:16} chi-square p {:.2e}, KS p {:.2e}, {:.0} effective draws",
            found.name,
            found.chi_square_p.unwrap(),
            found.ks_p,
            found.ess
        );
    }
    judged
}

fn even(dynamics: DynamicsSpec) {
    let fit = long(&model(dynamics, Q));
    let worst = judge(&fit, &|index| fit.truth(index).unwrap()).into_iter();
    let worst = worst.min_by(|a, b| a.smallest_p().total_cmp(&b.smallest_p())).unwrap();
    assert!(worst.smallest_p() >= UNEVEN, "{}: p = {:.1e}", worst.name, worst.smallest_p());
}

#[test]
#[ignore = "long"]
fn ranks_are_even_for_the_exact_process() {
    even(DynamicsSpec::Exact);
}

#[test]
#[ignore = "long"]
fn ranks_are_even_for_inducing_inputs() {
    let inducing = InducingSpec::Given((-2..=2).map(|i| vec![f64::from(i)]).collect());
    even(DynamicsSpec::Fic { inducing, mode: Mode::Collapsed });
}

#[test]
#[ignore = "long"]
fn ranks_are_even_for_drawn_weights() {
    even(DynamicsSpec::Hilbert { functions: 12, half_width: vec![8.0], mode: Mode::Sampled });
}

fn of<'a>(judged: &'a [Uniformity], name: &str) -> &'a Uniformity {
    judged.iter().find(|found| found.name == name).unwrap()
}

/// A density of q that has one factor q too many: a log-normal prior stays one, its median exp(sigma^2) times as large.
#[test]
#[ignore = "long"]
fn wrong_prior_of_the_process_noise() {
    let right = long(&model(DynamicsSpec::Exact, Q));
    let fit = long(&model(DynamicsSpec::Exact, Q * (Q_SIGMA * Q_SIGMA).exp()));
    let judged = judge(&fit, &|index| right.truth(index).unwrap());
    let p = of(&judged, "process_sd[x]").smallest_p();
    assert!(p < UNEVEN, "p = {p:.1e}");
}

/// Residuals of the sensor are half as large again as r says.
#[test]
#[ignore = "long"]
fn sensor_noise_drawn_too_large() {
    let fit = long(&model(DynamicsSpec::Exact, Q));
    let data = |index: u64| {
        let mut truth = fit.truth(index).unwrap();
        for (y, x) in truth.outputs.iter_mut().zip(&truth.paths) {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1.5 * (*y - x));
        }
        truth
    };
    let p = of(&judge(&fit, &data), "sensor_sd[y]").smallest_p();
    assert!(p < UNEVEN, "p = {p:.1e}");
}

#[test]
fn runs_depend_on_their_number_alone() {
    let fit = sbc(&model(DynamicsSpec::Exact, Q), 5, 5, SbcOptions { draws: 7, thin: 2, seed: 3 });
    let names = ["se_sigma_f[x]", "se_ell[x, x]", "process_sd[x]", "sensor_sd[y]", "x[0]", "x[2]", "x[4]"];
    assert_eq!(fit.names()[..7], names);
    assert_eq!(fit.names()[7..], ["f1[point 1]", "f1[point 2]", "f1[point 3]", "log p(y | x)", "log joint"]);
    let all = |indices: &[u64], threads: usize| {
        let runs = Mutex::new(Vec::new());
        let keep = |index: u64, run: SbcRun| {
            runs.lock().unwrap().push((index, run));
            Ok(())
        };
        assert!(fit.run_all(indices, threads, &AtomicBool::new(false), &keep).unwrap());
        let mut runs = runs.into_inner().unwrap();
        runs.sort_by_key(|(index, _)| *index);
        runs
    };
    let together = all(&[0, 1, 2], 2);
    assert_eq!(together, [all(&[1, 0], 1), all(&[2], 1)].concat());
    assert!(together.iter().all(|(_, run)| run.ranks.len() == 12 && run.ranks.iter().all(|rank| *rank <= 7)));
    let stopped = AtomicBool::new(true);
    assert!(!fit.run_all(&[0], 1, &stopped, &|_, _| unreachable!()).unwrap());
}

/// The first key that is left open is named.
#[test]
fn models_that_leave_something_open_are_refused() {
    let whole = model(DynamicsSpec::Exact, Q);
    let refused = |change: &dyn Fn(&mut Model)| {
        let mut given = whole.clone();
        change(&mut given);
        let message = check_stated(&given, &whole).unwrap_err().to_string();
        message.split(": ").nth(1).unwrap().to_owned()
    };
    check_stated(&whole, &whole).unwrap();
    assert_eq!(refused(&|model| model.standardise = true), "standardise");
    assert_eq!(refused(&|model| model.states[0].scale = None), "states[0].scale");
    assert_eq!(refused(&|model| model.process_noise = ProcessNoiseSpec::default()), "process_noise");
    assert_eq!(refused(&|model| model.sensor = SensorSpec::default()), "sensor");
    assert_eq!(refused(&|model| model.initial = InitialSpec::Default), "initial");
    let basis = |dynamics: DynamicsSpec| refused(&|model| model.dynamics = dynamics.clone());
    let mode = Mode::Collapsed;
    assert_eq!(basis(DynamicsSpec::Hilbert { functions: 5, half_width: Vec::new(), mode }), "dynamics");
    assert_eq!(basis(DynamicsSpec::Fic { inducing: InducingSpec::Greedy(5), mode }), "dynamics");
    let open_kernel = |model: &mut Model| {
        let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL).with("sigma_f", log_normal(1.0, 0.4));
        model.states[0].transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    };
    assert_eq!(refused(&open_kernel), "states[0].kernel");
}
