//! The declared size of a state sets default priors and the units inside, never the model: with every prior
//! given, the draws are the same with and without it.

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::mcmc::ChainDraws;
use gpssm::model::{
    FunctionSpec, InitialSpec, Predictor, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec,
    StateSpec, TransitionSpec, Value,
};
use gpssm::{KernelSpec, Model, Prior, Sequence};

use crate::{assert_finite, problem, run, sensor_sd, short};

fn around(median: f64) -> Prior {
    Prior::LogNormal { median, sigma: 0.3 }
}

fn model(sensor: SensorSpec, scale: Option<f64>, standardise: bool) -> Model {
    let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL).on(&["x"]);
    let kernel = kernel.with("sigma_f", around(1.0)).with("ell", around(1.0));
    let transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    Model {
        states: vec![StateSpec { transition, scale }],
        process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(0.3))]),
        sensor,
        initial: InitialSpec::Gaussian { mean: vec![0.5], sd: vec![1.0] },
        standardise,
        ..Model::observed(1, 0)
    }
}

fn draws(sensor: &SensorSpec, y: &[f64], scale: Option<f64>, standardise: bool) -> ChainDraws {
    let model = model(sensor.clone(), scale, standardise);
    let problem = problem(model, Sequence::scalar(y, None).unwrap()).unwrap();
    let draws = run(&problem, &short()).unwrap();
    assert_finite(&draws, "declared scale");
    draws
}

#[track_caller]
fn assert_no_effect(sensor: SensorSpec, y: &[f64], standardise: bool) {
    let plain = draws(&sensor, y, None, standardise);
    let declared = draws(&sensor, y, Some(7.0), standardise);
    let numbers = |draws: &ChainDraws| [draws.paths.concat().concat(), draws.theta.concat()].concat();
    for (a, b) in numbers(&plain).iter().zip(&numbers(&declared)) {
        assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{a} without, {b} with a declared scale");
    }
}

const SMOOTH: [f64; 10] = [0.1, 0.6, 0.9, 1.1, 0.7, 0.3, 0.0, 0.2, 0.5, 0.9];
const COUNTS: [f64; 10] = [1.0, 2.0, 4.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0];

#[test]
fn the_declared_scale_does_not_change_a_gaussian_sensor() {
    assert_no_effect(sensor_sd(0.3), &SMOOTH, false);
}

#[test]
fn the_declared_scale_does_not_change_a_standardised_gaussian_sensor() {
    assert_no_effect(sensor_sd(0.3), &SMOOTH, true);
}

#[test]
fn the_declared_scale_does_not_change_a_robust_sensor() {
    let scale = vec![ScalePrior::on_sd(around(0.3))];
    assert_no_effect(SensorSpec::StudentT { mean: Predictor::States, scale, dof: None }, &SMOOTH, false);
}

#[test]
fn the_declared_scale_does_not_change_counts() {
    assert_no_effect(SensorSpec::Poisson { log_rate: Predictor::States }, &COUNTS, false);
}

/// Written as a matrix, the same sensor.
#[test]
fn the_declared_scale_does_not_change_a_sensor_given_by_its_matrix() {
    let mean = Predictor::Linear { c: vec![vec![Value::Known(1.0)]], d: vec![], offset: vec![] };
    let noise = SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(0.3))]);
    for standardise in [false, true] {
        assert_no_effect(
            SensorSpec::Gaussian { mean: mean.clone(), noise: noise.clone() },
            &SMOOTH,
            standardise,
        );
    }
    assert_no_effect(SensorSpec::Poisson { log_rate: mean }, &COUNTS, false);
}
