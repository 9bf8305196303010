//! Models that cannot be started, or fail in the middle.

use gpssm::model::{
    FunctionRef, FunctionSpec, InitialSpec, Predictor, SensorSpec, StateSpec, TransitionSpec,
};
use gpssm::{
    Error, Functions, InitialDensity, Model, Points, Problem, SensorDensity, Sequence, Settings,
    StateFunction,
};
use rand::Rng;

use crate::{assert_finite, assert_no_nan, record, run, sensor_sd, short};

fn named(name: &str) -> FunctionRef {
    FunctionRef { name: name.into(), parameters: Vec::new() }
}

fn of_x(f: impl Fn(f64) -> f64 + Send + Sync) -> impl StateFunction {
    move |z: &Points, _: &[f64], out: &mut [f64]| {
        for (out, x) in out.iter_mut().zip(z.column(0)) {
            *out = f(*x);
        }
    }
}

/// A sensor whose log density is this number everywhere.
struct Constant(f64);

impl SensorDensity for Constant {
    fn log_density(&self, _: &[f64], _: &Points, _: &[f64], out: &mut [f64]) {
        out.fill(self.0);
    }

    fn sample(&self, _: &[f64], _: &[f64], _: &mut dyn Rng, y: &mut [f64]) {
        y.fill(0.0);
    }
}

#[test]
fn a_sensor_that_excludes_everything_is_named() {
    for value in [f64::NEG_INFINITY, f64::NAN, f64::INFINITY] {
        let model = Model { sensor: SensorSpec::User(named("never")), ..Model::observed(1, 1) };
        let functions = Functions::new().with_sensor("never", Constant(value));
        let problem = Problem::new(model, &functions, record(8).into()).unwrap();
        let error = run(&problem, &short()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no starting point: 22 filters with hyper-parameters from the prior all failed (the last: all 30 \
             particles have weight zero at t = 0); check that priors and sensor fit the scale of the data"
        );
        assert!(matches!(error, Error::Start { .. }));
    }
}

fn parametric(name: &str) -> Model {
    let transition = TransitionSpec::Parametric { function: FunctionSpec::User(named(name)) };
    Model { states: vec![StateSpec { transition, scale: None }], ..Model::observed(1, 0) }
}

fn outputs(y: &[f64]) -> Sequence {
    Sequence::scalar(y, None).unwrap()
}

#[test]
fn a_function_that_is_never_a_number_is_named() {
    let functions = Functions::new().with("nowhere", of_x(|_| f64::NAN));
    let mean = FunctionSpec::User(named("nowhere"));
    let gp = TransitionSpec::Gp { kernel: Default::default(), mean };
    let as_mean = Model { states: vec![StateSpec { transition: gp, scale: None }], ..Model::observed(1, 0) };
    let predictor = Predictor::Functions(vec![named("nowhere")]);
    let gaussian = SensorSpec::Gaussian { mean: predictor, noise: Default::default() };
    let as_sensor = Model { sensor: gaussian, ..Model::observed(1, 0) };
    for (model, t) in [(parametric("nowhere"), 1), (as_mean, 1), (as_sensor, 0)] {
        let problem = Problem::new(model, &functions, outputs(&[0.1, 0.5, 0.2, 0.7]).into()).unwrap();
        let message = run(&problem, &short()).unwrap_err().to_string();
        let cause = format!("(the last: all 30 particles have weight zero at t = {t})");
        assert!(message.contains(&cause), "{message}");
    }
}

/// A function that fails here and there costs particles, nothing else.
#[test]
fn a_function_that_is_sometimes_not_a_number_runs() {
    let functions = Functions::new().with("root", of_x(|x| (x + 0.5).sqrt()));
    let problem =
        Problem::new(parametric("root"), &functions, outputs(&[1.0, 1.2, 1.3, 1.3, 1.4, 1.3]).into())
            .unwrap();
    assert_finite(&run(&problem, &short()).unwrap(), "root");
}

/// A transition that leaves the numbers, in a record of gaps: no weight tells a particle that left.
fn assert_gap_is_crossed(f: fn(f64) -> f64, sensor: SensorSpec, y: &[f64]) {
    let functions = Functions::new().with("leaving", of_x(f));
    let initial = InitialSpec::Gaussian { mean: vec![0.0], sd: vec![2.0] };
    let model = Model { sensor, initial, standardise: false, ..parametric("leaving") };
    let problem = Problem::new(model, &functions, outputs(y).into()).unwrap();
    let settings = Settings { tune: 30, ..short() };
    assert_no_nan(&run(&problem, &settings).unwrap(), "a gap");
}

/// Not a number below -1/2.
fn root(x: f64) -> f64 {
    (x + 0.5).sqrt()
}

/// Beyond the range of f64 in ten steps from |x_0| > 1.
fn cube(x: f64) -> f64 {
    x * x * x
}

fn student() -> SensorSpec {
    SensorSpec::StudentT { mean: Predictor::States, scale: vec![], dof: None }
}

#[test]
fn diverging_states_run() {
    let y: Vec<f64> = (0..15).map(|t| 0.1 * (f64::from(t)).sin()).collect();
    assert_gap_is_crossed(cube, sensor_sd(0.1), &y);
    assert_gap_is_crossed(cube, student(), &y);
}

#[test]
fn states_that_leave_the_numbers_unseen_are_not_drawn() {
    assert_gap_is_crossed(cube, student(), &[f64::NAN; 15]);
    assert_gap_is_crossed(root, student(), &[f64::NAN; 8]);
}

#[test]
fn states_that_leave_the_numbers_unseen_are_not_drawn_by_the_adapted_filter() {
    assert_gap_is_crossed(cube, sensor_sd(0.1), &[f64::NAN; 15]);
    assert_gap_is_crossed(root, sensor_sd(0.5), &[f64::NAN; 8]);
}

/// A density of x_0 that draws what it says is impossible.
struct Contradiction;

impl InitialDensity for Contradiction {
    fn log_density(&self, _: &[f64]) -> f64 {
        f64::NAN
    }

    fn sample(&self, _: &mut dyn Rng, x: &mut [f64]) {
        x.fill(f64::NAN);
    }
}

#[test]
fn an_initial_density_without_numbers_is_an_error() {
    let model = Model { initial: InitialSpec::User("x0".into()), ..Model::observed(1, 1) };
    let functions = Functions::new().with_initial("x0", Contradiction);
    let problem = Problem::new(model, &functions, record(6).into()).unwrap();
    let message = run(&problem, &short()).unwrap_err().to_string();
    assert!(message.starts_with("no starting point: "), "{message}");
}
