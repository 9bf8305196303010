//! Standardisation is invisible where every prior is given: the same seed gives the same draws, in original
//! units, with and without it. (The linear kernel and the zero mean are excepted: they are about the middle of the data.)

use gpssm::kernel::{CONSTANT, MATERN32, PERIODIC, RATIONAL_QUADRATIC, SQUARED_EXPONENTIAL};
use gpssm::mcmc::ChainDraws;
use gpssm::model::{
    CovariancePrior, FunctionRef, FunctionSpec, InitialSpec, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec, Value,
};
use gpssm::{Functions, KernelSpec, Model, Points, Prior, Problem, Sequence};

use crate::{assert_finite, run, short};

fn around(median: f64) -> Prior {
    Prior::LogNormal { median, sigma: 0.3 }
}

fn learned(mean: f64, sd: f64) -> Value {
    Value::Learned(Prior::Normal { mean, sd })
}

fn states() -> Vec<StateSpec> {
    let smooth =
        |kind, name, sigma_f: f64| KernelSpec::new(kind).on(&[name]).with("sigma_f", around(sigma_f));
    let periodic = KernelSpec::new(&PERIODIC).on(&["x1"]);
    let first = KernelSpec::Sum(vec![
        smooth(&MATERN32, "x", 3.0).with("ell", vec![around(5.0), around(20.0)]),
        KernelSpec::Product(vec![
            smooth(&SQUARED_EXPONENTIAL, "u1", 2.0).with("ell", around(10.0)),
            periodic.with("ell", around(1.0)).with("period", around(12.0)),
        ]),
        KernelSpec::new(&CONSTANT).with("sigma", around(1.0)),
    ]);
    let second = KernelSpec::new(&RATIONAL_QUADRATIC)
        .with("sigma_f", around(30.0))
        .with("ell", vec![around(5.0), around(60.0), around(20.0)])
        .with("alpha", around(1.0));
    let linear = FunctionSpec::Linear {
        a: vec![learned(0.8, 0.2); 2],
        b: vec![learned(0.1, 0.1)],
        offset: learned(2.0, 1.0),
    };
    let user = FunctionSpec::User(FunctionRef { name: "decay".into(), parameters: vec!["rate".into()] });
    let state = |kernel, mean| StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: None };
    vec![state(first, linear), state(second, user)]
}

fn model(sensor: SensorSpec, process_noise: ProcessNoiseSpec) -> Model {
    Model {
        states: states(),
        sensor,
        process_noise,
        initial: InitialSpec::GaussianFull {
            mean: vec![10.0, -60.0],
            covariance: vec![vec![4.0, 3.0], vec![3.0, 90.0]],
        },
        parameters: [("rate".to_owned(), around(0.9))].into(),
        ..Model::observed(2, 1)
    }
}

fn draws(model: &Model, standardise: bool) -> (Problem, ChainDraws) {
    let wave = |t: usize, frequency: f64| (frequency * t as f64).sin();
    let y = (0..12)
        .map(|t| {
            let seen = if t == 4 { f64::NAN } else { -60.0 + 15.0 * wave(t, 0.7) };
            vec![10.0 + 4.0 * wave(t, 0.5), seen]
        })
        .collect();
    let u = (0..12).map(|t| vec![100.0 + 8.0 * wave(t, 1.1)]).collect();
    let functions = Functions::new().with("decay", |z: &Points, parameters: &[f64], out: &mut [f64]| {
        for (i, out) in out.iter_mut().enumerate() {
            *out = parameters[0] * z.column(1)[i] + 0.01 * z.column(2)[i];
        }
    });
    let model = Model { standardise, ..model.clone() };
    let problem = Problem::new(model, &functions, Sequence::new(y, u).unwrap().into()).unwrap();
    let draws = run(&problem, &short()).unwrap();
    assert_finite(&draws, "standardised");
    (problem, draws)
}

#[track_caller]
fn assert_same(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-6 * (1.0 + a.abs()), "{what}: {a} without, {b} with standardisation");
}

fn assert_invisible(model: &Model, name: &str) {
    let (problem, plain) = draws(model, false);
    let (standardised_problem, standardised) = draws(model, true);
    assert!(standardised_problem.scaling().x.scale.iter().all(|scale| *scale != 1.0));
    for (a, b) in plain.theta.iter().zip(&standardised.theta) {
        for (k, parameter) in problem.table().parameters.iter().enumerate() {
            assert_same(a[k], b[k], &format!("{name}: {}", parameter.name));
        }
    }
    let paths = |draws: &ChainDraws| draws.paths.concat().concat();
    for (a, b) in paths(&plain).iter().zip(&paths(&standardised)) {
        assert_same(*a, *b, &format!("{name}: x"));
    }
    for (a, b) in plain.info.iter().zip(&standardised.info) {
        assert_same(a.log_likelihood_total, b.log_likelihood_total, &format!("{name}: log p(y | x, theta)"));
    }
}

fn models() -> [(&'static str, Model); 2] {
    let linear = Predictor::Linear {
        c: vec![vec![learned(1.0, 0.1), Value::Known(0.0)], vec![Value::Known(0.1), learned(1.0, 0.1)]],
        d: vec![vec![Value::Known(0.0)], vec![learned(0.0, 0.05)]],
        offset: vec![Value::Known(0.0), learned(0.0, 1.0)],
    };
    let wishart = CovariancePrior::InverseWishart { dof: 6.0, scale: vec![vec![1.0, 0.5], vec![0.5, 9.0]] };
    let lkj = CovariancePrior::Lkj {
        eta: 2.0,
        sd: vec![ScalePrior::on_sd(around(1.0)), ScalePrior::on_variance(around(16.0))],
    };
    let full = SensorSpec::Gaussian { mean: linear.clone(), noise: SensorNoiseSpec::Full(Some(wishart)) };
    let conjugate = ScalePrior::on_variance(Prior::InverseGamma { shape: 3.0, scale: 2.0 });
    let noise = SensorNoiseSpec::Diagonal(vec![conjugate, ScalePrior::on_sd(around(2.0))]);
    let diagonal = SensorSpec::Gaussian { mean: linear, noise };
    let process = vec![ScalePrior::on_sd(around(1.0)), ScalePrior::on_sd(around(4.0))];
    [
        ("full", model(full, ProcessNoiseSpec::Full(Some(lkj)))),
        ("diagonal", model(diagonal, ProcessNoiseSpec::Diagonal(process))),
    ]
}

#[test]
fn standardisation_is_invisible() {
    models().iter().for_each(|(name, model)| assert_invisible(model, name));
}

/// log p(theta, x, y) is in original units too, the initial state included.
#[test]
fn the_log_joint_is_in_original_units() {
    for (name, model) in &models() {
        let ((_, plain), (_, standardised)) = (draws(model, false), draws(model, true));
        for (a, b) in plain.info.iter().zip(&standardised.info) {
            assert_same(a.log_joint, b.log_joint, &format!("{name}: log p(theta, x, y)"));
        }
    }
}
