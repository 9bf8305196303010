//! Which models are filtered how.

use std::sync::Arc;

use gpssm::sensor::family::Family;
use gpssm::sensor::{BoundSensor, UserSensor};
use gpssm::smc::Resampling::{Multinomial, Systematic};
use gpssm::smc::{FilterOptions, Resampling};
use gpssm::state_space::{BoundInitial, StateSpace};
use serde_json::json;

use super::models::*;
use super::user::Exponential;
use Proposal::{Adapted, Bootstrap, Shortlist};

/// How states are proposed.
#[derive(Clone, Copy, PartialEq)]
pub enum Proposal {
    Bootstrap,
    Adapted,
    Shortlist,
}

/// A model and how it is filtered.
#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub model: StateSpace,
    pub n_particles: usize,
    pub proposal: Proposal,
    pub resampling: Resampling,
    /// Children on the shortlist of each row; sixteen where there is no number.
    pub children: Vec<u8>,
    /// Transitions of each sequence; all share f.
    pub lengths: Vec<usize>,
    pub n_y: usize,
    pub n_u: usize,
    /// Whether output k of sequence s is missing at time t.
    pub missing: fn(usize, usize, usize) -> bool,
    pub replicates: usize,
}

impl Case {
    /// u_t of sequence s.
    pub fn input(&self, s: usize, t: usize) -> Vec<f64> {
        [1.0, -0.5, 0.8, -1.2, 0.3][(2 * s + t) % 5..][..self.n_u].to_vec()
    }

    /// Whether states are proposed from p(x_t | path, y_t).
    pub fn adapted(&self) -> bool {
        self.proposal == Adapted
    }

    /// The options of the filter, by the names they have in settings.
    pub fn options(&self) -> FilterOptions {
        let proposal = match self.proposal {
            Bootstrap => "bootstrap",
            Adapted => "adapted",
            Shortlist => "shortlist",
        };
        let options = json!({
            "n_particles": self.n_particles, "resampling": self.resampling, "proposal": proposal,
        });
        serde_json::from_value(options).expect("valid options")
    }
}

/// Replicates of the main cases and of all others.
const MAIN: usize = 30_000;
const VARIANT: usize = 10_000;
/// Replicates of the long version.
pub const LONG: usize = 200_000;

fn case(name: &'static str, model: StateSpace, proposal: Proposal, resampling: Resampling) -> Case {
    let n_y = match &model.sensor {
        BoundSensor::LinearGaussian(sensor) => sensor.offset.len(),
        BoundSensor::Gaussian { predictors, .. } | BoundSensor::Family { predictors, .. } => predictors.len(),
        BoundSensor::User(_) => 1,
    };
    let n_u = match &model.sensor {
        BoundSensor::LinearGaussian(sensor) => sensor.weights.len() / n_y - sensor.n_x,
        _ => 0,
    };
    Case {
        name,
        model,
        n_particles: 3,
        proposal,
        resampling,
        children: Vec::new(),
        lengths: vec![4],
        n_y,
        n_u,
        missing: |_, _, _| false,
        replicates: VARIANT,
    }
}

/// The exact GP with every proposal and resampling scheme.
pub fn main_cases() -> Vec<Case> {
    let main =
        |name, proposal, resampling| Case { replicates: MAIN, ..case(name, scalar(), proposal, resampling) };
    vec![
        main("bootstrap, multinomial", Bootstrap, Multinomial),
        main("bootstrap, systematic", Bootstrap, Systematic),
        main("adapted, multinomial", Adapted, Multinomial),
        main("adapted, systematic", Adapted, Systematic),
        case("flat, bootstrap", sloped(0.0, 0.3, 1.0, 1.0), Bootstrap, Systematic),
        Case {
            lengths: vec![10],
            n_particles: 2,
            ..case("T = 10, N = 2, bootstrap", sloped(1.2, 0.03, 0.3, 1.0), Bootstrap, Systematic)
        },
        case("steep, adapted", sloped(2.5, 1.0, 0.3, 0.3), Adapted, Systematic),
    ]
}

/// Two states with an input; known transitions.
pub fn transition_cases() -> Vec<Case> {
    vec![
        case("two states, diagonal Q, bootstrap", planar(diagonal()), Bootstrap, Systematic),
        case("two states, diagonal Q, adapted", planar(diagonal()), Adapted, Systematic),
        case("two states, full Q, bootstrap", planar(full()), Bootstrap, Systematic),
        case("two states, full Q, adapted", planar(full()), Adapted, Systematic),
        case("parametric, bootstrap", parametric(), Bootstrap, Systematic),
        case("parametric, adapted", parametric(), Adapted, Systematic),
        case("GP and known, diagonal Q", mixed(diagonal()), Adapted, Systematic),
        case("GP and known, full Q", mixed(full()), Bootstrap, Systematic),
    ]
}

/// Short sequences, few particles, two sequences, other initial states.
pub fn shape_cases() -> Vec<Case> {
    let of_length =
        |name, length, proposal| Case { lengths: vec![length], ..case(name, scalar(), proposal, Systematic) };
    let mut cases = vec![
        of_length("T = 1, bootstrap", 1, Bootstrap),
        of_length("T = 1, adapted", 1, Adapted),
        of_length("T = 2, bootstrap", 2, Bootstrap),
        of_length("T = 2, adapted", 2, Adapted),
    ];
    let mut pair = |name, proposal, resampling| {
        cases.push(Case { n_particles: 2, ..case(name, scalar(), proposal, resampling) });
    };
    pair("N = 2, bootstrap, multinomial", Bootstrap, Multinomial);
    pair("N = 2, bootstrap, systematic", Bootstrap, Systematic);
    pair("N = 2, adapted", Adapted, Systematic);
    let shared =
        |name, model, proposal| Case { lengths: vec![4, 3], ..case(name, model, proposal, Systematic) };
    cases.push(shared("two sequences, bootstrap", scalar(), Bootstrap));
    cases.push(shared("two sequences, adapted", scalar(), Adapted));
    cases.push(shared("two sequences, two states, full Q", planar(full()), Adapted));
    let fixed = StateSpace { initial: BoundInitial::Fixed(vec![0.4]), ..scalar() };
    cases.push(case("fixed x_0, bootstrap", fixed.clone(), Bootstrap, Systematic));
    cases.push(case("fixed x_0, adapted", fixed, Adapted, Systematic));
    cases.push(case("user's x_0, bootstrap", user_initial(), Bootstrap, Systematic));
    cases.push(case("user's x_0, adapted", user_initial(), Adapted, Systematic));
    cases
}

/// Missing rows and components, other sensors.
pub fn sensor_cases() -> Vec<Case> {
    let rows = |name, proposal, resampling| Case {
        missing: |_, t, _| t == 0 || t == 2 || t == 3,
        ..case(name, scalar(), proposal, resampling)
    };
    let components = |name, proposal| Case {
        missing: |_, t, k| t == 3 || (t + k) % 2 == 1 && t != 4,
        ..case(name, two_outputs(), proposal, Systematic)
    };
    let user = UserSensor { sensor: Arc::new(Exponential), parameters: vec![1.2], scaling: None };
    let student = Family::student_t(0.4, 4.0);
    vec![
        rows("missing rows, bootstrap, multinomial", Bootstrap, Multinomial),
        rows("missing rows, bootstrap, systematic", Bootstrap, Systematic),
        rows("missing rows, adapted", Adapted, Systematic),
        components("missing components, full R, bootstrap", Bootstrap),
        components("missing components, full R, adapted", Adapted),
        case("Poisson", family(Family::poisson(), 0.7, 0.5), Bootstrap, Systematic),
        case("Student-t", family(student, 1.0, 0.2), Bootstrap, Systematic),
        case(
            "stochastic volatility",
            family(Family::stochastic_volatility(), 1.5, -0.5),
            Bootstrap,
            Systematic,
        ),
        case("user's sensor", sensing(BoundSensor::User(user)), Bootstrap, Systematic),
        case("y = x^2 / 2 and y = x, full R", squared(), Bootstrap, Systematic),
    ]
}

/// States that copy other states one step before.
pub fn lag_cases() -> Vec<Case> {
    vec![
        case("lag, bootstrap", lagged(0.0), Bootstrap, Systematic),
        case("lag, adapted", lagged(0.0), Adapted, Systematic),
        case("lag in the sensor, bootstrap", lagged(0.8), Bootstrap, Systematic),
        case("lag in the sensor, adapted", lagged(0.8), Adapted, Systematic),
        Case { lengths: vec![1], ..case("lag in the sensor, T = 1", lagged(0.8), Adapted, Systematic) },
        Case {
            missing: |_, t, _| t == 1 || t == 3,
            ..case("lag in the sensor, missing rows", lagged(0.8), Bootstrap, Systematic)
        },
        case("lag of a lag, full Q, bootstrap", twice_lagged(), Bootstrap, Systematic),
        case("lag of a lag, full Q, adapted", twice_lagged(), Adapted, Systematic),
    ]
}

/// Shortlists, with what makes a difference to them.
pub fn shortlist_cases() -> Vec<Case> {
    let main = |name, resampling| Case { replicates: MAIN, ..case(name, scalar(), Shortlist, resampling) };
    vec![
        main("shortlist, multinomial", Multinomial),
        main("shortlist, systematic", Systematic),
        Case { children: vec![1, 3, 1, 40, 2], ..main("shortlist, lengths by row", Systematic) },
        Case { n_particles: 2, ..case("shortlist, N = 2", scalar(), Shortlist, Systematic) },
        Case {
            missing: |_, t, _| t == 0 || t == 2 || t == 3,
            ..case("shortlist, missing rows", scalar(), Shortlist, Systematic)
        },
        Case { lengths: vec![4, 3], ..case("shortlist, two sequences", scalar(), Shortlist, Systematic) },
        case("shortlist, full Q", planar(full()), Shortlist, Systematic),
        case("shortlist, Poisson", family(Family::poisson(), 0.7, 0.5), Shortlist, Systematic),
        case("shortlist, y = x^2 / 2 and y = x", squared(), Shortlist, Systematic),
        case("shortlist, lag in the sensor", lagged(0.8), Shortlist, Systematic),
    ]
}

/// All of them.
pub fn all_cases() -> Vec<Case> {
    let more = [sensor_cases(), lag_cases(), shortlist_cases()].concat();
    [main_cases(), transition_cases(), shape_cases(), more].concat()
}

/// The case of that name.
pub fn named(name: &str) -> Case {
    all_cases().into_iter().find(|case| case.name == name).expect("a case of that name")
}
