//! Declared sign changes: refused where they do not hold, oriented where they do.

use gpssm::kernel::{CONSTANT, MATERN12};
use gpssm::model::{
    CovariancePrior, FunctionRef, FunctionSpec, InitialSpec, Orientation, Predictor, ProcessNoiseSpec,
    ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec, Symmetry, TransitionSpec, Value,
};
use gpssm::{Error, Functions, KernelSpec, Model, Points, Prior, Problem, Sequence, Settings};

use crate::{assert_finite, record, run, short};

fn functions() -> Functions {
    let of_x = |f: fn(f64, &[f64]) -> f64| {
        move |z: &Points, parameters: &[f64], out: &mut [f64]| {
            for (out, x) in out.iter_mut().zip(z.column(0)) {
                *out = f(*x, parameters);
            }
        }
    };
    Functions::new()
        .with("square", of_x(|x, _| 0.5 * x * x))
        .with("gain", of_x(|x, parameters| parameters[0] * x))
        .with("odd", of_x(|x, _| 0.8 * x / (1.0 + x * x)))
        .with("even", of_x(|x, _| x.abs()))
}

fn named(name: &str, parameters: &[&str]) -> FunctionRef {
    FunctionRef { name: name.into(), parameters: parameters.iter().map(|p| p.to_string()).collect() }
}

fn sees(function: FunctionRef) -> SensorSpec {
    SensorSpec::Gaussian {
        mean: Predictor::Functions(vec![function]),
        noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(Prior::Fixed { value: 0.3 })]),
    }
}

fn flip(flip: &[usize], orientation: Orientation) -> Symmetry {
    Symmetry { flip: flip.to_vec(), flip_parameters: Vec::new(), orientation }
}

const BY_INPUT: Orientation = Orientation::InputRaisesState { input: 0, state: 0 };
const BY_MEAN: Orientation = Orientation::PositiveMean { state: 0 };

/// y = x^2 / 2 + e, so that the sign of x is unseen.
fn squared() -> Model {
    Model {
        sensor: sees(named("square", &[])),
        symmetries: vec![flip(&[0], BY_INPUT)],
        standardise: false,
        ..Model::observed(1, 1)
    }
}

fn make(model: Model) -> Result<Problem, Error> {
    Problem::new(model, &functions(), record(15).into())
}

#[track_caller]
fn refused(change: impl Fn(&mut Model), expected: &str) {
    let mut model = squared();
    change(&mut model);
    assert_eq!(make(model).unwrap_err().to_string(), format!("model: symmetries[0]: {expected}"));
}

#[test]
fn symmetries_that_do_not_hold_are_refused() {
    refused(|m| m.sensor = sees(named("odd", &[])), "the sensor tells the two signs apart");
    refused(|m| m.sensor = SensorSpec::default(), "the sensor tells the two signs apart");
    refused(
        |m| (m.sensor, m.standardise) = (SensorSpec::default(), true),
        "a flipped state is shown by the sensor",
    );
    let gp = |kernel, mean| vec![StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: None }];
    refused(
        |m| m.states = gp(KernelSpec::default(), FunctionSpec::User(named("even", &[]))),
        "the mean function of state 0 is not mirrored",
    );
    let offset = Value::Known(0.5);
    refused(
        |m| {
            let mean = FunctionSpec::Linear { a: vec![Value::Known(0.9)], b: vec![], offset: offset.clone() };
            m.states = gp(KernelSpec::default(), mean);
        },
        "the mean function of state 0 is not mirrored",
    );
    refused(
        |m| m.initial = InitialSpec::Gaussian { mean: vec![1.0], sd: vec![1.0] },
        "the initial density tells the two signs apart",
    );
    refused(|m| m.initial = InitialSpec::Fixed(vec![2.0]), "the fixed initial state has a sign");
    refused(|m| m.symmetries[0].flip.clear(), "flip must name states 0..0");
    refused(|m| m.symmetries[0].flip = vec![3], "flip must name states 0..0");
    let no_sign = "the orientation does not change sign with the flipped states";
    for orientation in [
        Orientation::InputRaisesState { input: 1, state: 0 },
        Orientation::InputRaisesState { input: 0, state: 5 },
        Orientation::StateRaisesState { from: 0, to: 0 },
        Orientation::StateRaisesState { from: 4, to: 0 },
        Orientation::PositiveMean { state: 1 },
    ] {
        refused(|m| m.symmetries[0].orientation = orientation, no_sign);
    }
    refused(
        |m| {
            m.parameters.insert("b".into(), Prior::Normal { mean: 1.0, sd: 1.0 });
            m.sensor = sees(named("gain", &["b"]));
            m.symmetries[0].flip_parameters = vec!["b".into()];
        },
        "parameter \"b\" needs a prior that is symmetric about zero",
    );
    refused(
        |m| m.symmetries[0].flip_parameters = vec!["unknown".into()],
        "parameter \"unknown\" needs a prior that is symmetric about zero",
    );
}

/// A covariance prior that leans to one sign of a correlation is not symmetric.
#[test]
fn a_leaning_prior_of_q_is_refused() {
    let prior =
        |off: f64| CovariancePrior::InverseWishart { dof: 6.0, scale: vec![vec![1.0, off], vec![off, 1.0]] };
    let model = |off: f64| {
        let mut model = Model::with_hidden_states(2, 1, 1);
        model.process_noise = ProcessNoiseSpec::Full(Some(prior(off)));
        model
    };
    assert!(make(model(0.0)).is_ok());
    assert_eq!(
        make(model(0.5)).unwrap_err().to_string(),
        "model: symmetries[0]: the prior of the parameters is not symmetric"
    );
}

/// The slope of x_{t+1} on (x_t, u_t, 1), from its own normal equations.
fn slope_of_input(x: &[f64], u: &[f64]) -> f64 {
    let rows: Vec<[f64; 4]> = (0..x.len() - 1).map(|t| [x[t], u[t], 1.0, x[t + 1]]).collect();
    let mut a = [[0.0; 4]; 3];
    for (i, j) in (0..3).flat_map(|i| (0..4).map(move |j| (i, j))) {
        a[i][j] = rows.iter().map(|row| row[i] * row[j]).sum();
    }
    for i in 0..3 {
        for k in (0..3).filter(|&k| k != i) {
            let ratio = a[k][i] / a[i][i];
            (0..4).for_each(|j| a[k][j] -= ratio * a[i][j]);
        }
    }
    a[1][3] / a[1][1]
}

#[test]
fn draws_are_oriented() {
    let u: Vec<f64> = (0..15).map(|t| record(15).u(t)[0]).collect();
    let mut both_signs = [false; 2];
    for seed in 0..6 {
        let settings = Settings { seed, ..short() };
        let problem = make(squared()).unwrap();
        let draws = run(&problem, &settings).unwrap();
        assert_finite(&draws, "oriented");
        assert!(draws.paths.iter().all(|paths| slope_of_input(&paths[0], &u) > 0.0));
        let model = Model { symmetries: vec![flip(&[0], BY_MEAN)], ..squared() };
        let draws = run(&make(model).unwrap(), &settings).unwrap();
        assert!(draws.paths.iter().all(|paths| paths[0].iter().sum::<f64>() > 0.0));
        // Without the declaration some chains are on the other branch.
        let free = run(&make(Model { symmetries: vec![], ..squared() }).unwrap(), &settings).unwrap();
        both_signs[usize::from(slope_of_input(&free.paths[0][0], &u) > 0.0)] = true;
    }
    assert_eq!(both_signs, [true; 2], "otherwise there was nothing to orient");
}

/// Parameters change sign along: y = b x with b ~ N(0, 1).
#[test]
fn parameters_are_oriented_along() {
    let mut model = squared();
    model.sensor = sees(named("gain", &["b"]));
    model.parameters.insert("b".into(), Prior::Normal { mean: 0.0, sd: 1.0 });
    model.symmetries[0].flip_parameters = vec!["b".into()];
    model.symmetries[0].orientation = BY_MEAN;
    let problem = make(model).unwrap();
    let b = problem.table().index("b").unwrap();
    for seed in 0..4 {
        let draws = run(&problem, &Settings { seed, ..short() }).unwrap();
        for (theta, paths) in draws.theta.iter().zip(&draws.paths) {
            assert!(paths[0].iter().sum::<f64>() > 0.0);
            // The outputs are positive (about 2), so b x must be.
            assert!(theta[b] > 0.0, "b = {}", theta[b]);
        }
    }
}

/// Hidden states are oriented by how they drive the first one; a full Q follows.
#[test]
fn hidden_states_are_accepted() {
    let mut model = Model::with_hidden_states(3, 1, 1);
    assert_finite(&run(&make(model.clone()).unwrap(), &short()).unwrap(), "hidden states");
    model.process_noise = ProcessNoiseSpec::Full(None);
    assert_finite(&run(&make(model).unwrap(), &short()).unwrap(), "hidden states with full Q");
}

/// Kernels with an offset are even in x at fixed u; all of ours are.
#[test]
fn even_kernels_are_accepted() {
    let kernel = KernelSpec::Sum(vec![KernelSpec::new(&MATERN12), KernelSpec::new(&CONSTANT)]);
    let mean = FunctionSpec::User(named("odd", &[]));
    let states = vec![StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: None }];
    assert!(make(Model { states, ..squared() }).is_ok());
}

/// A record whose first rows are missing must not hide a sensor that sees the sign.
#[test]
fn a_gap_at_the_start_does_not_hide_the_sensor() {
    let mut y = vec![f64::NAN; 6];
    y.extend([1.0, 2.0, -1.0, 0.5]);
    let model = Model {
        sensor: sees(named("odd", &[])),
        n_u: 0,
        symmetries: vec![flip(&[0], BY_MEAN)],
        standardise: false,
        ..Model::observed(1, 0)
    };
    let result = Problem::new(model, &functions(), Sequence::scalar(&y, None).unwrap().into());
    assert_eq!(result.unwrap_err().to_string(), "model: symmetries[0]: the sensor tells the two signs apart");
}
