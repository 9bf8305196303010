//! Settings that cannot be run.

use gpssm::mcmc::StartSettings;
use gpssm::model::{FunctionSpec, Predictor, SensorSpec, StateSpec, TransitionSpec};
use gpssm::smc::Proposal;
use gpssm::{Ended, Error, MemorySink, Model, Phase, Progress, Settings, sample};

use crate::{assert_finite, problem, record, run, short};

#[track_caller]
fn refused(settings: Settings, expected: &str) {
    let problem = problem(Model::observed(1, 1), record(6)).unwrap();
    assert_eq!(run(&problem, &settings).unwrap_err().to_string(), expected);
}

#[test]
fn numbers_that_make_no_run_are_refused() {
    refused(Settings { chains: 0, ..short() }, "settings: chains: must be at least one");
    refused(Settings { draws: Some(0), ..short() }, "settings: draws: must be at least one");
    refused(Settings { ess: 0, ..short() }, "settings: ess: must be at least one");
    refused(
        Settings { chains: 1, draws: None, ..short() },
        "settings: chains: one chain cannot be judged; use at least two, or set draws",
    );
    refused(Settings { threads: Some(0), ..short() }, "settings: threads: must be at least one");
    for particles in [0, 1] {
        refused(
            Settings { particles, ..short() },
            "settings: particles: the conditional filter needs at least two",
        );
    }
    let start = StartSettings { restarts: 0, particles: None };
    refused(Settings { start, ..short() }, "settings: start.restarts: must be at least one");
}

#[test]
fn the_adapted_proposal_needs_its_sensor() {
    let sensor = SensorSpec::StudentT { mean: Predictor::States, scale: vec![], dof: None };
    let problem = problem(Model { sensor, ..Model::observed(1, 1) }, record(6)).unwrap();
    let settings = Settings { proposal: Proposal::Adapted, ..short() };
    assert_eq!(
        run(&problem, &settings).unwrap_err().to_string(),
        "settings: proposal: the adapted proposal needs a linear-Gaussian sensor"
    );
    let automatic = Settings { proposal: Proposal::Auto, ..short() };
    assert_finite(&run(&problem, &automatic).unwrap(), "automatic");
}

#[test]
fn no_warm_up_and_few_particles_run() {
    let problem = problem(Model::observed(1, 1), record(6)).unwrap();
    let start = StartSettings { restarts: 1, particles: Some(0) };
    let settings = Settings { tune: 0, particles: 2, start, ..short() };
    assert_finite(&run(&problem, &settings).unwrap(), "two particles");
}

/// The factor of a path of n transitions has n (n + 1) / 2 numbers.
#[test]
fn a_run_that_does_not_fit_is_refused_with_the_figures() {
    let n: u64 = 20_000;
    let long = problem(Model::observed(1, 1), record(n as usize + 1)).unwrap();
    let began = std::time::Instant::now();
    let error = run(&long, &Settings { max_memory_mb: 100, ..short() }).unwrap_err();
    assert!(began.elapsed().as_secs() < 5, "refused before it starts");
    let Error::Memory { needed_mb, allowed_mb, .. } = error.clone() else { panic!("{error}") };
    assert_eq!(allowed_mb, 100);
    // At least one factor, at most a few squares for one thread.
    assert!(needed_mb > 4 * n * n / 1_000_000 && needed_mb < 80 * n * n / 1_000_000, "{needed_mb} MB");
    let message = error.to_string();
    assert!(message.starts_with(&format!("this run needs about {needed_mb} MB but 100 MB are allowed: ")));
    assert!(message.ends_with("use fewer threads (now 1), a shorter record, or raise max_memory_mb"));
    // A short record fits into the same memory.
    let problem = problem(Model::observed(1, 1), record(10)).unwrap();
    assert_finite(&run(&problem, &Settings { max_memory_mb: 100, ..short() }).unwrap(), "short");
}

#[test]
fn particles_without_number_are_refused() {
    let problem = problem(Model::observed(1, 1), record(6)).unwrap();
    let error = Settings { particles: 1 << 50, ..short() }.check(&problem).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}

/// The particles of a known transition need memory too: states and ancestors of every generation.
#[test]
fn particles_of_a_known_transition_are_counted() {
    let transition = TransitionSpec::Parametric { function: FunctionSpec::Identity };
    let states = vec![StateSpec { transition, scale: None }];
    let problem = problem(Model { states, ..Model::observed(1, 1) }, record(6)).unwrap();
    let settings = Settings { particles: 1 << 50, ..short() };
    let needed = settings.memory_bytes(&problem);
    assert!(needed > 6 << 53, "2^50 particles over 6 rows are said to need {needed} bytes");
}

/// As many restarts as are asked for, also if that is the largest number there is.
#[test]
fn restarts_do_not_overflow() {
    let problem = problem(Model::observed(1, 1), record(6)).unwrap();
    let start = StartSettings { restarts: u32::MAX, particles: Some(2) };
    let sink = MemorySink::new();
    let go_on = |progress: &Progress| !(progress.phase == Phase::Start && progress.done == 30);
    let report = sample(&problem, &Settings { start, ..short() }, &sink, &go_on).unwrap();
    assert!(report.ended == Ended::Cancelled, "the chain started before its 30th restart");
}
