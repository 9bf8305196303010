//! Every error says what is wrong and where.

use gpssm::kernel::{LINEAR, SQUARED_EXPONENTIAL};
use gpssm::linalg::NotPositiveDefinite;
use gpssm::model::{
    CovariancePrior, FunctionRef, FunctionSpec, InitialSpec, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec, Value,
};
use gpssm::{Error, KernelSpec, Model, Prior, Sequence};

use crate::{assert_refused, fixed, problem, record};

#[test]
fn every_kind_of_error_has_a_message() {
    let text = || "text".to_owned();
    for (error, expected) in [
        (Error::Data { message: text() }, "data: text"),
        (Error::Model { key: "states".into(), message: text() }, "model: states: text"),
        (Error::Settings { key: "chains".into(), message: text() }, "settings: chains: text"),
        (
            Error::Memory { needed_mb: 9, allowed_mb: 8, advice: text() },
            "this run needs about 9 MB but 8 MB are allowed: text",
        ),
        (Error::Start { message: text() }, "no starting point: text"),
        (
            Error::from(NotPositiveDefinite { order: 7, index: 3 }),
            "matrix of order 7 is not positive definite to working precision (row 3): the noise is too small beside the \
             function; give process_noise a prior that keeps away from zero",
        ),
        (Error::Sink { message: text() }, "draws could not be stored: text"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

fn one_state(transition: TransitionSpec) -> Vec<StateSpec> {
    vec![StateSpec { transition, scale: None }]
}

fn gp(kernel: KernelSpec, mean: FunctionSpec) -> Vec<StateSpec> {
    one_state(TransitionSpec::Gp { kernel, mean })
}

fn refused(change: impl Fn(&mut Model), expected: &str) {
    let mut model = Model::observed(1, 1);
    change(&mut model);
    assert_refused(problem(model, record(5)), expected);
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    refused(|m| m.states.clear(), "model: states: a model needs at least one state");
    refused(|m| m.n_y = 2, "model: n_y: 2 outputs in the model, 1 in the record");
    refused(|m| m.n_u = 0, "model: n_u: 0 inputs in the model, 1 in the record");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(|m| m.states[0].scale = Some(bad), "model: states[0].scale: must be positive and finite");
    }
    let two = Sequence::new(vec![vec![1.0, 2.0]; 3], vec![vec![0.0]; 3]).unwrap();
    let model = Model { n_y: 2, ..Model::observed(1, 1) };
    assert_refused(
        problem(model, two),
        "model: sensor: 2 outputs but only 1 states to show: give c, formulas or functions",
    );
    refused(
        |m| m.states.push(StateSpec { transition: TransitionSpec::Lag { of: 4 }, scale: None }),
        "model: states[1].lag: state 4 does not lead to a state that moves",
    );
    refused(
        |m| m.states = one_state(TransitionSpec::Lag { of: 0 }),
        "model: states[0].lag: state 0 does not lead to a state that moves",
    );
    let sd = ScalePrior::on_sd(fixed(1.0));
    refused(
        |m| m.process_noise = ProcessNoiseSpec::Diagonal(vec![sd.clone(); 3]),
        "model: process_noise: 3 priors where none, one or 1 are expected",
    );
}

#[test]
fn kernels_that_do_not_fit_are_named() {
    let stationary = || KernelSpec::new(&SQUARED_EXPONENTIAL);
    for name in ["x2", "u0", "v", "x1.5", ""] {
        refused(
            |m| m.states = gp(stationary().on(&[name]), FunctionSpec::Identity),
            &format!(
                "model: states[0].kernel.active: there is no component \"{name}\": name x, u, x1..x1 or u1..u1"
            ),
        );
    }
    refused(
        |m| m.states = gp(stationary().on(&[]), FunctionSpec::Identity),
        "model: states[0].kernel.active: names no component",
    );
    refused(
        |m| m.states = gp(stationary().with("ell", vec![fixed(1.0); 3]), FunctionSpec::Identity),
        "model: se_ell[x]: 3 priors where none, one or 2 are expected",
    );
    let positive = "must be positive: give it a prior on positive numbers";
    refused(
        |m| {
            let prior = Prior::Normal { mean: 1.0, sd: 1.0 };
            m.states = gp(stationary().with("ell", prior), FunctionSpec::Identity);
        },
        &format!("model: se_ell[x, x]: {positive}"),
    );
    refused(
        |m| {
            let sigma = vec![Prior::Uniform { low: -1.0, high: 1.0 }];
            m.states = gp(KernelSpec::new(&LINEAR).with("sigma", sigma), FunctionSpec::Identity);
        },
        &format!("model: linear_sigma[x, x]: {positive}"),
    );
    refused(
        |m| m.states = gp(KernelSpec::Sum(vec![]), FunctionSpec::Identity),
        "model: states[0].kernel.sum: needs at least one part",
    );
    refused(
        |m| m.states = gp(KernelSpec::Product(vec![]), FunctionSpec::Identity),
        "model: states[0].kernel.product: needs at least one part",
    );
}

#[test]
fn functions_and_parameters_that_do_not_fit_are_named() {
    let user = |name: &str, parameters: &[&str]| FunctionRef {
        name: name.into(),
        parameters: parameters.iter().map(|p| p.to_string()).collect(),
    };
    refused(
        |m| m.states = gp(KernelSpec::default(), FunctionSpec::User(user("f", &[]))),
        "model: states[0].mean: there is no function named \"f\"",
    );
    refused(|m| m.sensor = SensorSpec::User(user("g", &[])), "model: sensor: there is no sensor named \"g\"");
    refused(
        |m| m.initial = InitialSpec::User("p".into()),
        "model: initial.user: there is no initial density named \"p\"",
    );
    refused(
        |m| {
            m.parameters.insert("a".into(), fixed(1.0));
        },
        "model: parameters.a: is not used by any function or formula: use it or take it out",
    );
    let linear = |a: usize, b: usize| FunctionSpec::Linear {
        a: vec![Value::Known(1.0); a],
        b: vec![Value::Known(1.0); b],
        offset: Value::Known(0.0),
    };
    refused(
        |m| m.states = gp(KernelSpec::default(), linear(2, 0)),
        "model: states[0].mean: 2 coefficients for 1 states",
    );
    refused(
        |m| m.states = gp(KernelSpec::default(), linear(1, 3)),
        "model: states[0].mean: 3 coefficients for 1 inputs",
    );
    let gaussian = |mean| SensorSpec::Gaussian { mean, noise: SensorNoiseSpec::default() };
    refused(
        |m| m.sensor = gaussian(Predictor::Linear { c: vec![], d: vec![], offset: vec![] }),
        "model: sensor.c: 0 rows for 1 outputs",
    );
    refused(
        |m| m.sensor = gaussian(Predictor::Functions(vec![])),
        "model: sensor: 0 functions for 1 outputs",
    );
}

#[test]
fn initial_states_that_do_not_fit_are_named() {
    refused(
        |m| m.initial = InitialSpec::Gaussian { mean: vec![0.0; 2], sd: vec![1.0] },
        "model: initial.mean: 2 numbers for 1 states",
    );
    refused(|m| m.initial = InitialSpec::Fixed(vec![]), "model: initial.fixed: 0 numbers for 1 states");
    refused(|m| m.initial = InitialSpec::Fixed(vec![f64::NAN]), "model: initial.fixed: must be finite");
    let not_definite = "model: initial: needs finite means and a positive definite covariance";
    for (mean, sd) in [(0.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
        refused(|m| m.initial = InitialSpec::Gaussian { mean: vec![mean], sd: vec![sd] }, not_definite);
    }
    refused(
        |m| m.initial = InitialSpec::GaussianFull { mean: vec![0.0], covariance: vec![vec![-1.0]] },
        not_definite,
    );
}

#[test]
fn priors_that_are_wrong_are_named() {
    refused(
        |m| {
            let prior = ScalePrior::on_sd(Prior::LogNormal { median: -1.0, sigma: 1.0 });
            m.process_noise = ProcessNoiseSpec::Diagonal(vec![prior]);
        },
        "model: process_sd[x]: log_normal prior: median = -1, but it must be positive",
    );
    refused(
        |m| {
            let prior = CovariancePrior::InverseWishart { dof: 0.0, scale: vec![vec![1.0]] };
            m.process_noise = ProcessNoiseSpec::Full(Some(prior));
        },
        "model: process_chol: inverse_wishart prior: dof = 0, but it must be greater than the dimension minus one",
    );
}
