//! Formulas in a model: the same draws as user functions, names, messages, and draws of outputs.

use gpssm::mcmc::{ChainDraws, StartSettings};
use gpssm::model::{
    FunctionRef, FunctionSpec, Names, Orientation, Predictor, SensorNoiseSpec, SensorSpec, StateSpec,
    Symmetry, TransitionSpec,
};
use gpssm::sensor::OutputSupport;
use gpssm::{
    Error, Functions, KernelSpec, MemorySink, Model, Points, Prior, Problem, SensorDensity, Sequence,
    Settings, sample,
};
use rand::{Rng, SeedableRng, rngs::ChaCha8Rng};

fn record() -> Sequence {
    let u: Vec<f64> = (0..12).map(|t| (0.9 * f64::from(t)).cos()).collect();
    let y: Vec<f64> = (0..12).map(|t| 2.0 + (0.5 * f64::from(t)).sin() + 0.3 * u[t as usize]).collect();
    Sequence::scalar(&y, Some(&u)).unwrap()
}

fn draws(problem: &Problem) -> ChainDraws {
    let settings = Settings {
        seed: 1,
        chains: 1,
        tune: 3,
        draws: Some(5),
        particles: 8,
        threads: Some(1),
        start: StartSettings { restarts: 2, particles: Some(30) },
        ..Settings::default()
    };
    let sink = MemorySink::new();
    sample(problem, &settings, &sink, &|_| true).unwrap();
    sink.into_chains().remove(0)
}

fn make(model: Model) -> Result<Problem, Error> {
    Problem::new(model, &functions(), record().into())
}

fn user(name: &str, parameters: &[&str]) -> FunctionRef {
    FunctionRef { name: name.into(), parameters: parameters.iter().map(|p| (*p).into()).collect() }
}

struct Laplace;

impl SensorDensity for Laplace {
    fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]) {
        for (out, x) in out.iter_mut().zip(z.column(0)) {
            *out = -(y[0] - x).abs() / parameters[0] - parameters[0].ln();
        }
    }

    fn sample(&self, _: &[f64], _: &[f64], _: &mut dyn Rng, _: &mut [f64]) {}
}

fn functions() -> Functions {
    Functions::new()
        .with("decay", |z: &Points, p: &[f64], out: &mut [f64]| {
            for ((out, x), u) in out.iter_mut().zip(z.column(0)).zip(z.column(1)) {
                *out = p[0] * x / (1.0 + x * x) + p[1] * u.cos();
            }
        })
        .with("square", |z: &Points, p: &[f64], out: &mut [f64]| {
            out.iter_mut().zip(z.column(0)).for_each(|(out, x)| *out = p[0] * (x * x));
        })
        .with_sensor("laplace", Laplace)
}

fn with_parameters(parameters: &[&str]) -> Model {
    let prior = Prior::LogNormal { median: 0.8, sigma: 0.3 };
    Model {
        parameters: parameters.iter().map(|name| ((*name).into(), prior.clone())).collect(),
        ..Model::observed(1, 1)
    }
}

fn state(transition: TransitionSpec) -> Vec<StateSpec> {
    vec![StateSpec { transition, scale: None }]
}

fn gp(mean: FunctionSpec) -> Vec<StateSpec> {
    state(TransitionSpec::Gp { kernel: KernelSpec::default(), mean })
}

fn mean(predictor: Predictor) -> SensorSpec {
    SensorSpec::Gaussian { mean: predictor, noise: SensorNoiseSpec::default() }
}

fn density(text: &str, support: Option<OutputSupport>) -> SensorSpec {
    SensorSpec::Formula { log_density: text.into(), support }
}

/// Both models have the same draws to the last bit; the arithmetic of the formulas is that of the functions.
#[track_caller]
fn assert_same(a: Model, b: Model) {
    let (a, b) = (make(a).unwrap(), make(b).unwrap());
    assert_eq!(a.table(), b.table());
    let (a, b) = (draws(&a), draws(&b));
    assert_eq!(a.theta, b.theta);
    assert_eq!(a.paths, b.paths);
}

#[test]
fn formulas_draw_what_functions_draw() {
    let model = || with_parameters(&["rate", "gain"]);
    let formula = FunctionSpec::Formula("rate*x/(1 + x^2) + gain*cos(u)".into());
    let function = FunctionSpec::User(user("decay", &["rate", "gain"]));
    assert_same(
        Model { states: gp(formula.clone()), ..model() },
        Model { states: gp(function.clone()), ..model() },
    );
    assert_same(
        Model { states: state(TransitionSpec::Parametric { function: formula }), ..model() },
        Model { states: state(TransitionSpec::Parametric { function }), ..model() },
    );
    let model = || with_parameters(&["gain"]);
    assert_same(
        Model { sensor: mean(Predictor::Formulas(vec!["gain*x1^2".into()])), ..model() },
        Model { sensor: mean(Predictor::Functions(vec![user("square", &["gain"])])), ..model() },
    );
    assert_same(
        Model { sensor: density("-abs(y - x)/gain - log(gain)", None), ..model() },
        Model { sensor: SensorSpec::User(user("laplace", &["gain"])), ..model() },
    );
}

#[test]
fn names_of_the_user_can_be_used_beside_the_default_ones() {
    let names = Names {
        states: vec!["level".into()],
        inputs: vec!["pump flow (m3/s)".into()],
        outputs: vec!["height".into()],
    };
    let text = |x: &str, u: &str| FunctionSpec::Formula(format!("rate*{x}/(1 + {x}^2) + gain*cos({u})"));
    let named = Model { names, ..with_parameters(&["gain", "rate"]) };
    let plain = Model { states: gp(text("x", "u")), ..named.clone() };
    let named = Model { states: gp(text("level", "u1")), ..named };
    assert_same(named, plain);
}

#[test]
fn a_model_with_formulas_survives_toml() {
    let written = r#"
n_u = 1
n_y = 1

[[states]]
transition = { gp = { mean = { formula = "0.3*x1 + 7.5*x1/(1 + x1^2)" } } }

[[states]]
transition = { parametric = { function = { formula = "a*speed + cos(u)" } } }

[sensor.gaussian]
mean = { formulas = ["0.05*x1^2"] }

[parameters]
a = { normal = { mean = 0.0, sd = 1.0 } }

[names]
states = ["place", "speed"]
"#;
    let model: Model = toml::from_str(written).unwrap();
    assert!(make(model.clone()).is_ok());
    let again: Model = toml::from_str(&toml::to_string(&model).unwrap()).unwrap();
    assert_eq!(model, again);
    let sensor =
        "formula = { log_density = \"-(y - x)^2\", support = { interval = { low = -1.0, high = 9.0 } } }";
    let sensor: SensorSpec = toml::from_str(sensor).unwrap();
    assert_eq!(sensor, density("-(y - x)^2", Some(OutputSupport::Interval { low: -1.0, high: 9.0 })));
    assert_eq!(sensor, toml::from_str(&toml::to_string(&sensor).unwrap()).unwrap());
    // Without names nothing is written of them.
    assert!(!toml::to_string(&Model::observed(1, 1)).unwrap().contains("names"));
}

#[track_caller]
fn refused(model: Model, expected: &str) {
    assert_eq!(make(model).unwrap_err().to_string(), expected);
}

#[test]
fn refusals_name_the_place() {
    let formula = |text: &str| FunctionSpec::Formula(text.into());
    let model = || with_parameters(&["rate"]);
    refused(
        Model { states: gp(formula("rate*x + cso(u)")), ..model() },
        "model: states[0].mean: formula \"rate*x + cso(u)\", column 10: unknown function 'cso'; did you mean 'cos'?",
    );
    refused(
        Model { states: gp(formula("raet*x")), ..model() },
        "model: states[0].mean: formula \"raet*x\", column 1: unknown name 'raet': it is not a state, an input or \
         one of the parameters; did you mean 'rate'?",
    );
    refused(
        Model { states: [gp(formula("x")), gp(formula("x"))].concat(), ..Model::observed(1, 1) },
        "model: states[0].mean: formula \"x\", column 1: unknown name 'x': it is not a state, an input or one of the \
         parameters; did you mean 'x1'?",
    );
    refused(
        Model { states: state(TransitionSpec::Parametric { function: formula("rate*x + y") }), ..model() },
        "model: states[0].function: formula \"rate*x + y\", column 10: 'y' is an output: only the log density of a \
         sensor can use outputs",
    );
    refused(
        Model { sensor: mean(Predictor::Formulas(vec!["x^".into()])), ..model() },
        "model: sensor.formulas[0]: formula \"x^\", column 3: the formula ends where a value is missing",
    );
    refused(
        Model { sensor: mean(Predictor::Formulas(vec![])), ..model() },
        "model: sensor: 0 formulas for 1 outputs",
    );
    refused(
        Model { states: gp(formula("0.5*x")), ..model() },
        "model: parameters.rate: is not used by any function or formula: use it or take it out",
    );
    refused(
        Model { states: gp(formula("0.5*x")), ..with_parameters(&["exp"]) },
        "model: parameters.exp: this is the name of a function in formulas: choose another",
    );
    refused(
        Model { sensor: density("-x^2", None), ..Model::observed(1, 1) },
        "model: sensor.log_density: does not depend on output y1: it is no density of the outputs",
    );
    let integers = Some(OutputSupport::Integers { low: 0.0, high: 9.0 });
    refused(
        Model { sensor: density("-abs(x - y)", integers), ..Model::observed(1, 1) },
        "data: sequence 0, row 0: output 2.3 is outside of the sensor's support",
    );
    let interval = Some(OutputSupport::Interval { low: 1.0, high: 1.0 });
    refused(
        Model { sensor: density("-abs(x - y)", interval), ..Model::observed(1, 1) },
        "model: sensor.support: needs finite bounds, low before high",
    );
    // The error carries the formula, so that a program can point at it.
    let error = make(Model { states: gp(formula("2x")), ..Model::observed(1, 1) }).unwrap_err();
    let Error::Formula { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.pointed(), "2x\n ^\n'*' is missing between '2' and 'x'");
}

#[test]
fn rows_with_some_outputs_only_are_refused() {
    let model = Model { sensor: density("-(y1 - x1)^2 - (y2 - x2)^2", None), ..Model::observed(2, 0) };
    let row = |t: usize| match t {
        3 => vec![f64::NAN, f64::NAN],
        t => vec![(t as f64).sin(), 0.1 * t as f64],
    };
    let mut rows: Vec<Vec<f64>> = (0..10).map(row).collect();
    let problem = |rows: &[Vec<f64>]| {
        let record = Sequence::new(rows.to_vec(), Vec::new()).unwrap();
        Problem::new(model.clone(), &Functions::new(), record.into())
    };
    let kept = draws(&problem(&rows).unwrap());
    assert!(kept.paths.iter().flatten().flatten().all(|x| x.is_finite()));
    rows[5][1] = f64::NAN;
    assert_eq!(
        problem(&rows).unwrap_err().to_string(),
        "data: sequence 0, row 5: output 2 is missing and others are not: a sensor given by a log density needs all \
         outputs of a row or none"
    );
}

#[test]
fn symmetries_of_formulas_are_checked() {
    let model = |sensor: &str, transition: &str| Model {
        states: gp(FunctionSpec::Formula(transition.into())),
        sensor: mean(Predictor::Formulas(vec![sensor.into()])),
        symmetries: vec![Symmetry {
            flip: vec![0],
            flip_parameters: Vec::new(),
            orientation: Orientation::PositiveMean { state: 0 },
        }],
        standardise: false,
        ..Model::observed(1, 1)
    };
    assert!(make(model("0.05*x^2", "0.5*x + x/(1 + x^2)")).is_ok());
    let refused = |sensor, transition| make(model(sensor, transition)).unwrap_err().to_string();
    assert_eq!(refused("0.05*x^3", "0.5*x"), "model: symmetries[0]: the sensor tells the two signs apart");
    assert_eq!(refused("x^2", "x^2"), "model: symmetries[0]: the mean function of state 0 is not mirrored");
}

/// The greatest distance between the cumulative distribution of draws at (x, u) = (1.5, 0) and `cdf`.
fn distance(log_density: &str, support: OutputSupport, cdf: impl Fn(f64) -> f64) -> f64 {
    let y = match support {
        OutputSupport::Interval { low, high } => 0.5 * (low + high),
        OutputSupport::Integers { low, .. } => low,
    };
    let model = Model { sensor: density(log_density, Some(support)), ..Model::observed(1, 1) };
    let record = Sequence::scalar(&[y; 3], Some(&[0.0; 3])).unwrap();
    let problem = Problem::new(model, &Functions::new(), record.into()).unwrap();
    let theta = problem.table().sample(&mut ChaCha8Rng::seed_from_u64(3)).unwrap();
    let sensor = problem.bind(&theta).sensor;
    sensor.can_sample().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut values: Vec<f64> = (0..4000)
        .map(|_| {
            let mut y = [0.0];
            sensor.sample(&[1.5, 0.0], &mut rng, &mut y);
            y[0]
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    // The last of equal values counts: the distributions of whole numbers have steps.
    let last = |i: &usize| values.get(i + 1).is_none_or(|next| *next > values[*i]);
    let indices = (0..values.len()).filter(last);
    indices.map(|i| ((i + 1) as f64 / n - cdf(values[i])).abs()).fold(0.0, f64::max)
}

/// The bound is the Kolmogorov-Smirnov one at p = 1e-4. Seen failing with a grid that was not narrowed at the end
/// of the support (the narrowest peak) and with an edge blurred over a cell (the exponential).
#[test]
fn outputs_are_drawn_from_the_density() {
    let bound = 2.23 / 4000f64.sqrt();
    let interval = |low, high| OutputSupport::Interval { low, high };
    let logistic = |s: f64| move |y: f64| 1.0 / (1.0 + (-(y - 1.5) / s).exp());
    let density = |s: f64| format!("-(y - x)/{s:e} - 2*softplus(-(y - x)/{s:e})");
    for (s, low, high) in [(1.0, -50.0, 60.0), (1e-3, -1e4, 1e4), (1e-9, -3.0, 1e6)] {
        let found = distance(&density(s), interval(low, high), logistic(s));
        assert!(found < bound, "scale {s}: {found}");
    }
    let found = distance("if(y < 0, -inf, log(x) - x*y)", interval(-5.0, 40.0), |y| 1.0 - (-1.5 * y).exp());
    assert!(found < bound, "exponential: {found}");
    let found = distance("log(y)", interval(0.0, 2.0), |y| 0.25 * y * y);
    assert!(found < bound, "triangle: {found}");
    let poisson = |y: f64| {
        let mut term = (-1.5f64).exp();
        (0..=y as i32)
            .map(|k| {
                if k == 0 {
                    term
                } else {
                    term *= 1.5 / f64::from(k);
                    term
                }
            })
            .sum()
    };
    let integers = OutputSupport::Integers { low: 0.0, high: 200.0 };
    let found = distance("y*log(x) - x - lgamma(y + 1)", integers, poisson);
    assert!(found < bound, "Poisson: {found}");
}

#[test]
fn without_a_support_draws_are_refused_and_missing() {
    let problem = make(Model { sensor: density("-abs(y - x)", None), ..Model::observed(1, 1) }).unwrap();
    let sensor = problem.bind(&problem.table().sample(&mut ChaCha8Rng::seed_from_u64(1)).unwrap()).sensor;
    assert!(sensor.can_sample().unwrap_err().starts_with("outputs cannot be drawn from a log density alone"));
    let mut y = [0.0];
    sensor.sample(&[1.0, 0.0], &mut ChaCha8Rng::seed_from_u64(2), &mut y);
    assert!(y[0].is_nan());
    let known = make(Model::observed(1, 1)).unwrap();
    let theta = known.table().sample(&mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    assert_eq!(known.bind(&theta).sensor.can_sample(), Ok(()));
}
