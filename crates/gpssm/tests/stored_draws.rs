//! The draws of fixed seeds do not change by accident: the first three sweeps of one model for each engine and kind of
//! sensor, against stored values.
//!
//! A change that is meant to keep the draws keeps these to 1e-8, and to the last bit on the platform that stored them.
//! A change that is meant to draw differently stores them anew, and says so:
//!
//! ```text
//! GPSSM_STORE_DRAWS=1 cargo test --release -p gpssm --test stored_draws
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use gpssm::linalg::instruction_set;
use gpssm::mcmc::StartSettings;
use gpssm::model::{
    DynamicsSpec, FunctionSpec, InducingSpec, Mode, Orientation, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, StateSpec, Symmetry, TransitionSpec, Value,
};
use gpssm::{Draw, Error, Functions, Model, Prior, Problem, Record, Sequence, Settings, Sink, sample};
use serde::{Deserialize, Serialize};

const ROWS: usize = 14;

/// What is kept of a sweep: theta by position, the first, middle and last state of every sequence, log p(theta, x, y).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredSweep {
    theta: Vec<f64>,
    states: Vec<f64>,
    log_joint: f64,
}

impl StoredSweep {
    fn new(draw: &Draw, n_x: usize) -> Self {
        let some = |path: &Vec<f64>| {
            let rows: Vec<&[f64]> = path.chunks(n_x).collect();
            [rows[0], rows[rows.len() / 2], rows[rows.len() - 1]].concat()
        };
        let states = draw.paths.iter().flat_map(some).collect();
        Self { theta: draw.theta.to_vec(), states, log_joint: draw.info.log_joint }
    }

    fn numbers(&self) -> Vec<f64> {
        [&self.theta[..], &self.states[..], &[self.log_joint]].concat()
    }
}

/// The fixture: three sweeps by case, and the platform whose bits they are.
#[derive(Debug, Serialize, Deserialize)]
struct StoredDraws {
    platform: String,
    cases: BTreeMap<String, Vec<StoredSweep>>,
}

/// What the bits of a draw depend on, beside the code: the instruction set, and the system's exponentials and logarithms.
fn platform() -> String {
    format!("{}, {}", std::env::consts::OS, instruction_set())
}

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stored_draws.json")
}

/// Keeps every sweep of the warm-up and after it.
struct EverySweep(usize, Mutex<Vec<StoredSweep>>);

impl Sink for EverySweep {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        self.1.lock().unwrap().push(StoredSweep::new(draw, self.0));
        Ok(())
    }
}

/// The first three sweeps after a cheap start: two that adapt, and one that does not.
fn three_sweeps(model: Model, record: Record, narx: bool) -> Vec<StoredSweep> {
    let settings = Settings {
        seed: 7,
        chains: 1,
        tune: 2,
        draws: Some(1),
        particles: 6,
        threads: Some(1),
        narx,
        start: StartSettings { restarts: 2, particles: Some(20) },
        ..Settings::default()
    };
    let sink = EverySweep(model.states.len(), Mutex::default());
    let problem = Problem::new(model, &Functions::new(), record).unwrap();
    sample(&problem, &settings, &sink, &|_| true).unwrap();
    sink.1.into_inner().unwrap()
}

fn inputs(rows: usize) -> Vec<f64> {
    (0..rows).map(|t| (0.9 * t as f64).cos()).collect()
}

/// A smooth record with one input, seen through `y`.
fn seen(rows: usize, y: impl Fn(f64) -> f64) -> Sequence {
    let u = inputs(rows);
    let y: Vec<f64> = (0..rows).map(|t| y((0.5 * t as f64).sin() + 0.3 * u[t])).collect();
    Sequence::scalar(&y, Some(&u)).unwrap()
}

fn plain() -> Record {
    seen(ROWS, |x| 2.0 + x).into()
}

fn two_outputs() -> Record {
    let y = |t: usize| vec![(0.5 * t as f64).sin(), 3.0 * (0.5 * t as f64 + 1.0).cos()];
    let u = inputs(ROWS).into_iter().map(|u| vec![u]).collect();
    Sequence::new((0..ROWS).map(y).collect(), u).unwrap().into()
}

/// Two sequences, the first with a missing output.
fn with_gap() -> Record {
    let u = inputs(9);
    let mut y: Vec<f64> = (0..9).map(|t| (0.7 * t as f64).cos()).collect();
    y[3] = f64::NAN;
    Record::new(vec![Sequence::scalar(&y, Some(&u)).unwrap(), seen(6, |x| x)]).unwrap()
}

fn with_dynamics(dynamics: DynamicsSpec) -> Model {
    Model { dynamics, ..Model::observed(1, 1) }
}

fn hilbert(mode: Mode) -> Model {
    with_dynamics(DynamicsSpec::Hilbert { functions: 12, half_width: vec![], mode })
}

fn fic() -> Model {
    with_dynamics(DynamicsSpec::Fic { inducing: InducingSpec::Greedy(6), mode: Mode::Collapsed })
}

fn with_sensor(sensor: SensorSpec) -> Model {
    Model { sensor, ..Model::observed(1, 1) }
}

/// y = x^2 / 2 + e: the sensor does not see the sign of x.
fn squared() -> Model {
    let symmetry = Symmetry {
        flip: vec![0],
        flip_parameters: vec![],
        orientation: Orientation::InputRaisesState { input: 0, state: 0 },
    };
    let sensor = SensorSpec::Gaussian {
        mean: Predictor::Formulas(vec!["x^2 / 2".into()]),
        noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(Prior::HalfNormal { sd: 0.5 })]),
    };
    Model { symmetries: vec![symmetry], standardise: false, ..with_sensor(sensor) }
}

fn parametric() -> Model {
    let learned = |mean| Value::Learned(Prior::Normal { mean, sd: 0.3 });
    let function =
        FunctionSpec::Linear { a: vec![learned(0.8)], b: vec![learned(0.2)], offset: learned(0.0) };
    let transition = TransitionSpec::Parametric { function };
    Model { states: vec![StateSpec { transition, scale: None }], ..Model::observed(1, 1) }
}

fn run_all() -> BTreeMap<String, Vec<StoredSweep>> {
    let student = SensorSpec::StudentT { mean: Predictor::States, scale: vec![], dof: None };
    let poisson = SensorSpec::Poisson { log_rate: Predictor::States };
    let counts = || seen(ROWS, |x| (2.0 + 2.0 * x).max(0.0).round()).into();
    let full_q = Model { process_noise: ProcessNoiseSpec::Full(None), ..Model::observed(2, 1) };
    let cases = [
        ("exact, linear-Gaussian sensor, input", Model::observed(1, 1), plain()),
        ("exact, Student's t", with_sensor(student), plain()),
        ("exact, Poisson", with_sensor(poisson), counts()),
        ("exact, two states, full Q", full_q, two_outputs()),
        (
            "exact, hidden state, two sequences, missing output",
            Model::with_hidden_states(2, 1, 1),
            with_gap(),
        ),
        ("exact, lags", Model::lagged_outputs(1, 1, 2), plain()),
        ("exact, declared symmetry", squared(), seen(ROWS, |x| x * x / 2.0).into()),
        ("FIC", fic(), plain()),
        ("Hilbert, collapsed", hilbert(Mode::Collapsed), plain()),
        ("Hilbert, sampled, two sequences, missing output", hilbert(Mode::Sampled), with_gap()),
        ("parametric", parametric(), plain()),
    ];
    let narx = ("GP-NARX".to_string(), three_sweeps(Model::lagged_outputs(1, 1, 2), plain(), true));
    let sampled =
        cases.into_iter().map(|(name, model, record)| (name.into(), three_sweeps(model, record, false)));
    sampled.chain([narx]).collect()
}

/// The draws of this build, once for all tests.
static FOUND: LazyLock<StoredDraws> = LazyLock::new(|| {
    let found = StoredDraws { platform: platform(), cases: run_all() };
    if std::env::var_os("GPSSM_STORE_DRAWS").is_some() {
        std::fs::write(fixture(), serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
    }
    found
});

/// Where, what was found, what is stored.
type Pair = (String, Vec<f64>, Vec<f64>);

/// The draws found and stored, by case and sweep.
fn pairs() -> (StoredDraws, Vec<Pair>) {
    let found = &*FOUND;
    let stored: StoredDraws = serde_json::from_str(&std::fs::read_to_string(fixture()).unwrap()).unwrap();
    assert!(found.cases.keys().eq(stored.cases.keys()), "other cases than those stored");
    let mut pairs = Vec::new();
    for ((case, found), stored) in found.cases.iter().zip(stored.cases.values()) {
        assert_eq!((found.len(), stored.len()), (3, 3), "{case}");
        for (sweep, (found, stored)) in found.iter().zip(stored).enumerate() {
            assert_eq!(found.theta.len(), stored.theta.len(), "{case}: number of parameters");
            assert_eq!(found.states.len(), stored.states.len(), "{case}: number of states");
            pairs.push((format!("{case}, sweep {}", sweep + 1), found.numbers(), stored.numbers()));
        }
    }
    (stored, pairs)
}

#[test]
fn draws_are_the_stored_ones() {
    for (place, found, stored) in pairs().1 {
        for (found, stored) in found.iter().zip(&stored) {
            assert!((found - stored).abs() <= 1e-8 * stored.abs(), "{place}: {found} instead of {stored}");
        }
    }
}

#[test]
fn draws_have_the_stored_bits_on_the_platform_that_stored_them() {
    let (stored, pairs) = pairs();
    if stored.platform != platform() {
        println!("skipped: bits were stored on {}, this is {}", stored.platform, platform());
        return;
    }
    for (place, found, stored) in pairs {
        for (found, stored) in found.iter().zip(&stored) {
            assert_eq!(found.to_bits(), stored.to_bits(), "{place}: {found} instead of {stored}");
        }
    }
}
