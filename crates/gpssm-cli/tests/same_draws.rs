//! The same seed gives the same draws from the Rust library as from the program (whose draws the tests of the
//! Python package compare with Python's).

mod common;

use gpssm::mcmc::StartSettings;
use gpssm::{Functions, MemorySink, Model, Problem, Sequence, Settings};
use gpssm_io::fit::LoadedRun;

use common::{folder_with_run, text};

#[test]
fn the_library_draws_what_the_program_draws() {
    let folder = folder_with_run();
    let program = LoadedRun::open(&folder.path().join("run.zarr")).unwrap();
    let csv = text(&std::fs::read(folder.path().join("data.csv")).unwrap());
    let column = |c: usize| -> Vec<f64> {
        csv.lines().skip(1).map(|line| line.split(',').nth(c).unwrap().parse().unwrap()).collect()
    };
    let sequence = Sequence::scalar(&column(2), Some(&column(1))).unwrap();
    let problem = Problem::new(Model::observed(1, 1), &Functions::new(), sequence.into()).unwrap();
    let settings = Settings {
        chains: 2,
        tune: 6,
        draws: Some(8),
        particles: 5,
        threads: Some(2),
        seed: 3,
        start: StartSettings { restarts: 2, particles: Some(40) },
        ..Settings::default()
    };
    let sink = MemorySink::new();
    gpssm::sample(&problem, &settings, &sink, &|_| true).unwrap();
    let library = sink.into_chains();
    assert_eq!(library.len(), program.chains.len());
    for (ours, theirs) in library.iter().zip(&program.chains) {
        assert_eq!((ours.theta.len(), &ours.theta), (8, &theirs.theta));
        assert_eq!(ours.paths, theirs.paths);
    }
}
