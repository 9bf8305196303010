//! Numbers at the ends of the range.

use gpssm::kernel::{Descriptor, MATERN12, MATERN52, SQUARED_EXPONENTIAL};
use gpssm::model::{
    FunctionSpec, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec,
};
use gpssm::{KernelSpec, Model};

use crate::{
    assert_no_nan, assert_refused, assert_runs, fixed, problem, process_sd, record, run, sensor_sd, short,
};

#[test]
fn noise_of_zero_is_refused() {
    let zero = |on_variance: bool| {
        if on_variance { ScalePrior::on_variance(fixed(0.0)) } else { ScalePrior::on_sd(fixed(0.0)) }
    };
    for on_variance in [false, true] {
        let noise = ProcessNoiseSpec::Diagonal(vec![zero(on_variance)]);
        let model = Model { process_noise: noise, ..Model::observed(1, 1) };
        let message = problem(model, record(5)).unwrap_err().to_string();
        assert!(message.starts_with("model: process_sd[x]: "), "{message}");
        assert!(message.contains("must be positive"), "{message}");
        let noise = SensorNoiseSpec::Diagonal(vec![zero(on_variance)]);
        let sensor = SensorSpec::Gaussian { mean: Default::default(), noise };
        let message = problem(Model { sensor, ..Model::observed(1, 1) }, record(5)).unwrap_err().to_string();
        assert!(message.starts_with("model: sensor_sd[y]: "), "{message}");
        assert!(message.contains("must be positive"), "{message}");
    }
}

#[test]
fn tiny_noise_runs() {
    let model = |q, r| Model { process_noise: process_sd(q), sensor: sensor_sd(r), ..Model::observed(1, 1) };
    for (q, r) in [(1e-12, 0.1), (0.1, 1e-12), (1e-12, 1e-12), (1e12, 0.1)] {
        assert_runs(model(q, r), record(15), &short(), &format!("q = {q}, r = {r}"));
    }
    // A sensor that tells nothing: draws of the prior, whose states may run away until no density can be computed.
    let problem = problem(model(0.1, 1e12), record(15)).unwrap();
    assert_no_nan(&run(&problem, &short()).unwrap(), "r = 1e12");
}

fn stationary(kind: &'static Descriptor, sigma_f: f64, ell: f64) -> KernelSpec {
    KernelSpec::new(kind).with("sigma_f", fixed(sigma_f)).with("ell", fixed(ell))
}

fn with_kernel(kernel: KernelSpec) -> Model {
    let transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    Model { states: vec![StateSpec { transition, scale: None }], ..Model::observed(1, 1) }
}

#[test]
fn extreme_length_scales_run() {
    for ell in [1e-8, 1e-4, 1e4, 1e8] {
        for kernel in [&SQUARED_EXPONENTIAL, &MATERN12, &MATERN52] {
            assert_runs(
                with_kernel(stationary(kernel, 1.0, ell)),
                record(15),
                &short(),
                &format!("ell = {ell}"),
            );
        }
    }
}

#[test]
fn extreme_signals_run() {
    for sigma_f in [1e-12, 1e-6, 1e6, 1e12] {
        let kernel = stationary(&SQUARED_EXPONENTIAL, sigma_f, 1.0);
        assert_runs(with_kernel(kernel), record(15), &short(), &format!("sigma_f = {sigma_f}"));
    }
}

/// The worst of both: a smooth function of large amplitude and next to no noise.
#[test]
fn singular_covariances_end_in_finite_draws_or_a_clear_error() {
    for (sigma_f, ell, q) in [(1e6, 1e4, 1e-9), (1e8, 1e8, 1e-8)] {
        let mut model = with_kernel(stationary(&SQUARED_EXPONENTIAL, sigma_f, ell));
        model.process_noise = process_sd(q);
        let problem = problem(model, record(15)).unwrap();
        match crate::run(&problem, &short()) {
            Ok(draws) => crate::assert_no_nan(&draws, "singular"),
            Err(error) => assert!(matches!(error, gpssm::Error::Start { .. }), "{error}"),
        }
    }
}

#[test]
fn kernel_scales_must_be_positive() {
    let refused = |sigma_f: f64, ell: f64, expected: &str| {
        let model = with_kernel(stationary(&SQUARED_EXPONENTIAL, sigma_f, ell));
        assert_refused(problem(model, record(5)), expected);
    };
    let positive = "must be positive: give it a prior on positive numbers";
    refused(0.0, 1.0, &format!("model: se_sigma_f[x]: {positive}"));
    refused(1.0, -2.0, &format!("model: se_ell[x, x]: {positive}"));
}
