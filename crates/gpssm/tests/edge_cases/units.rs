//! Units: results do not depend on those in which the record is written.

use gpssm::kernel::CONSTANT;
use gpssm::mcmc::ChainDraws;
use gpssm::model::TransitionSpec;
use gpssm::model::{Predictor, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec};
use gpssm::{KernelSpec, Model, Problem, Sequence, Settings};

use crate::{assert_finite, problem, run, short};

const ROWS: usize = 20;

fn input(t: usize, c: usize) -> f64 {
    (0.7 * t as f64 + c as f64).cos()
}

fn output(t: usize, k: usize) -> f64 {
    1.0 + (0.4 * t as f64 + k as f64).sin() * (1.0 + k as f64)
}

/// y is shifted and scaled, u too.
fn written_in(n_y: usize, y: (f64, f64), u: (f64, f64)) -> Sequence {
    let rows = |n: usize, (shift, scale): (f64, f64), f: fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
        (0..ROWS).map(|t| (0..n).map(|k| shift + scale * f(t, k)).collect()).collect()
    };
    Sequence::new(rows(n_y, y, output), rows(1, u, input)).unwrap()
}

fn draws(model: Model, sequence: Sequence) -> (Problem, ChainDraws) {
    let problem = problem(model, sequence).unwrap();
    let draws = run(&problem, &Settings { draws: Some(6), ..short() }).unwrap();
    assert_finite(&draws, "units");
    (problem, draws)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1e-2 + a.abs().max(b.abs()))
}

/// By which factor a parameter grows if outputs and states grow by `y` and inputs by `u`.
fn factor(name: &str, y: f64, u: f64) -> f64 {
    match name {
        _ if name.starts_with("change_point") => u,
        _ if name.starts_with("sensor_coefficient") => 1.0,
        _ if name.starts_with("linear_sigma") => {
            if name.contains(", u") {
                y / u
            } else {
                1.0
            }
        }
        _ if name.starts_with("se_ell") && name.contains(", u") => u,
        _ => y,
    }
}

/// Default priors follow the data: the same seed gives the same draws in other units.
fn assert_equivariant(model: &Model, n_y: usize, y: (f64, f64), u: (f64, f64)) {
    let (problem, plain) = draws(model.clone(), written_in(n_y, (0.0, 1.0), (0.0, 1.0)));
    let (_, other) = draws(model.clone(), written_in(n_y, y, u));
    let what = format!("y {y:?}, u {u:?}");
    for (plain, other) in plain.paths.iter().flatten().flatten().zip(other.paths.iter().flatten().flatten()) {
        let back = other / y.1 - y.0 / y.1;
        assert!(
            (back - plain).abs() < 1e-6 * (1.0 + plain.abs() + (y.0 / y.1).abs()),
            "{what}: {back} {plain}"
        );
    }
    for (k, parameter) in problem.table().parameters.iter().enumerate() {
        let factor = factor(&parameter.name, y.1, u.1);
        for (plain, other) in plain.theta.iter().zip(&other.theta) {
            let back = other[k] / factor;
            assert!(close(back, plain[k]), "{what}: {} is {back}, not {}", parameter.name, plain[k]);
        }
    }
}

#[test]
fn draws_follow_the_units_of_the_record() {
    for (y, u) in [((0.0, 1000.0), (0.0, 0.01)), ((-40.0, 0.02), (300.0, 5.0)), ((7.0, 1.0), (0.0, 1.0))] {
        assert_equivariant(&Model::observed(1, 1), 1, y, u);
    }
    let full = Model {
        process_noise: ProcessNoiseSpec::Full(None),
        sensor: SensorSpec::Gaussian { mean: Predictor::States, noise: SensorNoiseSpec::Full(None) },
        ..Model::observed(2, 1)
    };
    assert_equivariant(&full, 2, (5.0, 30.0), (1.0, 0.1));
    assert_equivariant(&Model::lagged_outputs(1, 1, 1), 1, (5.0, 30.0), (1.0, 0.1));
    let mut changing = Model::observed(1, 1);
    if let TransitionSpec::Gp { kernel, .. } = &mut changing.states[0].transition {
        *kernel = KernelSpec::change_point(kernel.clone(), KernelSpec::new(&CONSTANT)).on(&["u1"]);
    }
    assert_equivariant(&changing, 1, (5.0, 30.0), (0.0, 0.1));
}

#[test]
fn extreme_units_change_nothing() {
    for scale in [1e-150, 1e-20, 1e20, 1e150] {
        assert_equivariant(&Model::observed(1, 1), 1, (0.0, scale), (0.0, 1.0 / scale));
        assert_equivariant(&Model::observed(1, 1), 1, (0.0, scale), (0.0, scale));
    }
}

#[test]
fn extreme_units_change_nothing_for_a_full_r() {
    let sensor = SensorSpec::Gaussian { mean: Predictor::States, noise: SensorNoiseSpec::Full(None) };
    for scale in [1e-150, 1e-20, 1e20, 1e150] {
        let model = Model { sensor: sensor.clone(), ..Model::observed(2, 1) };
        assert_equivariant(&model, 2, (0.0, scale), (0.0, 1.0));
    }
}

/// The slice width of an entry of Q has the unit of a state. (Its smallest value is 1e-150, so that at this
/// scale draws are finite but others.)
#[test]
fn extreme_units_change_nothing_for_a_full_q() {
    let model = || Model { process_noise: ProcessNoiseSpec::Full(None), ..Model::observed(2, 1) };
    for scale in [1e150, 1e20, 1e-20, 1e-140] {
        assert_equivariant(&model(), 2, (0.0, scale), (0.0, 1.0));
    }
    draws(model(), written_in(2, (0.0, 1e-150), (0.0, 1.0)));
}

/// Where only inputs are standardised, states keep their unit.
#[test]
fn counts_see_other_units_of_the_input_only() {
    let model =
        Model { sensor: SensorSpec::Poisson { log_rate: Predictor::States }, ..Model::observed(1, 1) };
    let record = |u: f64| {
        let y: Vec<f64> = (0..ROWS).map(|t| output(t, 0).abs().round()).collect();
        let u: Vec<f64> = (0..ROWS).map(|t| 3.0 + u * input(t, 0)).collect();
        Sequence::scalar(&y, Some(&u)).unwrap()
    };
    let (problem, plain) = draws(model.clone(), record(1.0));
    let (_, other) = draws(model, record(250.0));
    for (plain, other) in plain.paths.iter().flatten().flatten().zip(other.paths.iter().flatten().flatten()) {
        assert!(close(*plain, *other), "{plain} and {other}");
    }
    for (k, parameter) in problem.table().parameters.iter().enumerate() {
        let factor = factor(&parameter.name, 1.0, 250.0);
        assert!(
            plain.theta.iter().zip(&other.theta).all(|(a, b)| close(b[k] / factor, a[k])),
            "{}",
            parameter.name
        );
    }
}

/// An output far from zero: y = 1e9 + wave, seen to 1e-3. A state that differs from it in the ninth digit is
/// a thousand standard deviations away.
#[test]
fn a_large_offset_costs_no_precision() {
    let y: Vec<f64> = (0..ROWS).map(|t| 1e9 + output(t, 0)).collect();
    let model = Model { sensor: crate::sensor_sd(1e-3), ..Model::observed(1, 0) };
    let (_, draws) = draws(model, Sequence::scalar(&y, None).unwrap());
    for x in draws.paths.iter().map(|paths| &paths[0]) {
        for (x, y) in x.iter().zip(&y) {
            assert!((x - y).abs() < 0.01, "x is off by {}", x - y);
        }
    }
}
