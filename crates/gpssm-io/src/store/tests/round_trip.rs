//! What is written is read.

use gpssm::mcmc::ChainDraws;
use gpssm::model::{DynamicsSpec, InducingSpec, Mode, Names};
use gpssm::{Functions, MemorySink, Model, Phase};

use super::super::{Description, Store, StoreError, StoredRun};
use super::*;

/// The draws as a sink in memory has them.
fn in_memory(problem: &Problem, settings: &Settings) -> Vec<ChainDraws> {
    let sink = MemorySink::new();
    for chain in 0..settings.chains {
        for sweep in 1..=settings.tune + settings.draws.unwrap() {
            feed(&sink, problem, settings, chain, sweep).unwrap();
        }
    }
    sink.into_chains()
}

#[test]
fn draws_data_and_attributes_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(2), settings(3, 5, 11));
    let description = Description {
        configuration: "seed = 7\n".into(),
        data_sha256: "abc".into(),
        sequences: vec!["morning".into(), "évening".into()],
        time: vec![vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5], vec![9.0, 9.5, 10.0, 10.5]],
        ..Description::new(&problem, &settings)
    };
    let store = Store::create(&path, &description).unwrap();
    feed_rest(&store, &problem, &settings, &fresh(&[0, 1, 2])).unwrap();
    let run = StoredRun::open(&path).unwrap();
    assert_eq!(run.configuration(), "seed = 7\n");
    assert_eq!(run.data_sha256(), "abc");
    assert_eq!((run.seed(), run.tune(), run.version()), (7, 5, env!("CARGO_PKG_VERSION")));
    assert_eq!(run.sequences(), description.sequences);
    assert_eq!(run.time(), description.time);
    let names = Names { states: run.states(), outputs: run.outputs(), inputs: run.inputs() };
    assert_eq!(names, problem.model().all_names());
    assert_eq!(run.scaling(), *problem.scaling());
    assert_eq!(run.basis(), None);
    // NaN is not equal to itself, but prints the same.
    assert_eq!(format!("{:?}", run.record()), format!("{:?}", problem.record()));
    let entries: Vec<_> =
        problem.table().parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(run.parameters(), entries);
    let expected = in_memory(&problem, &settings);
    for (index, length) in run.chains().iter().enumerate() {
        assert_eq!((length.warmup, length.draws), (5, 11));
        assert_eq!(run.draws(index, Phase::Sample).unwrap(), expected[index]);
        assert_eq!(run.draws(index, Phase::Tune).unwrap().theta.len(), 5);
        assert_eq!(run.draws_in(index, Phase::Sample, 3..7).unwrap().paths, expected[index].paths[3..7]);
        assert_eq!(run.state(index).unwrap().unwrap().sweep, 16);
    }
}

#[test]
fn every_basis_comes_back_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { particles: 3, ..settings(1, 0, 2) };
    let inducing = || InducingSpec::KMeans(4);
    let specs = [
        DynamicsSpec::Fic { inducing: inducing(), mode: Mode::default() },
        DynamicsSpec::Dtc { inducing: inducing(), mode: Mode::default() },
        DynamicsSpec::Hilbert { functions: 6, half_width: Vec::new(), mode: Mode::default() },
        DynamicsSpec::Fourier { frequencies: 3, mode: Mode::default() },
    ];
    for (i, dynamics) in specs.into_iter().enumerate() {
        let model = Model { dynamics, ..Model::observed(1, 1) };
        let record = problem(1).record().clone();
        let problem = Problem::new(model, &Functions::new(), record).unwrap();
        let problem = gpssm::prepare(&problem, &settings).unwrap();
        let path = folder.path().join(format!("run{i}"));
        Store::create(&path, &Description::new(&problem, &settings)).unwrap();
        let run = StoredRun::open(&path).unwrap();
        assert!(run.basis().is_some());
        assert_eq!(format!("{:?}", run.basis()), format!("{:?}", problem.basis().cloned()));
        // Without warm-up there is no place for it.
        assert!(!path.join("warmup_posterior").exists());
    }
}

#[test]
fn large_paths_get_chunks_of_their_own_size() {
    assert_eq!(Blocks::new(10, 1), Blocks { scalars: 1024, paths: 1024 });
    assert_eq!(Blocks::new(1000, 2), Blocks { scalars: 1024, paths: 64 });
    assert_eq!(Blocks::new(100_000, 2), Blocks { scalars: 1024, paths: 1 });
}

#[test]
fn a_second_writer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(1, 1, 2));
    let description = Description::new(&problem, &settings);
    let store = Store::create(&path, &description).unwrap();
    let again = Store::resume(&path, &description);
    assert!(matches!(again, Err(StoreError::Locked { .. })));
    assert!(matches!(Store::create(&path, &description), Err(StoreError::Exists { .. })));
    drop(store);
    assert!(Store::resume(&path, &description).is_ok());
}

#[test]
fn draws_that_do_not_belong_here_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, settings) = (problem(1), settings(2, 1, 5));
    let description = Description { chains: vec![1], ..Description::new(&problem, &settings) };
    let store = create(FaultyDisk::sound(), &folder.path().join("run"), &description).unwrap();
    assert!(feed(&store, &problem, &settings, 0, 1).is_err());
    assert!(feed(&store, &problem, &settings, 1, 2).is_err());
    feed(&store, &problem, &settings, 1, 1).unwrap();
    let error = feed(&store, &problem, &settings, 1, 1).unwrap_err().to_string();
    assert!(
        error.contains("chain 1: warm-up sweep 0 after sweep 1 came where draw 0 was expected"),
        "{error}"
    );
}

#[test]
fn another_run_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(2, 2, 4));
    unbroken(&path, &problem, &settings);
    let message = |problem: &Problem, settings: &Settings, change: &dyn Fn(&mut Description)| {
        let mut description = Description::new(problem, settings);
        change(&mut description);
        Store::resume(&path, &description).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let seed = Settings { seed: 8, ..settings.clone() };
    assert!(message(&problem, &seed, &|_| {}).ends_with("another run: its seed is 7, not 8"));
    let tune = Settings { tune: 3, ..settings.clone() };
    assert!(message(&problem, &tune, &|_| {}).ends_with("its tuning_steps is 2, not 3"));
    let fewer = Settings { draws: Some(3), ..settings.clone() };
    assert!(message(&problem, &fewer, &|_| {}).contains("it has 4 draws, more than 3"));
    assert!(
        message(&problem, &settings, &|d| d.time[1][2] = 7.0)
            .ends_with("observed_data/time_value is different")
    );
    assert!(
        message(&problem, &settings, &|d| d.chains = vec![1]).contains("it holds chains [0, 1], not [1]")
    );
    assert_eq!(message(&problem, &settings, &|_| {}), "");
}
