//! A real sampler.

use gpssm::{ChainPlan, MemorySink, sample, sample_chains};

use super::super::StoredRun;
use super::*;

#[test]
fn a_run_is_stored_as_it_is_in_memory_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(1);
    let mut bytes = Vec::new();
    for threads in [1, 3] {
        let settings = Settings { particles: 5, threads: Some(threads), ..settings(3, 4, 10) };
        let path = folder.path().join(format!("run{threads}"));
        let store = create(FaultyDisk::sound(), &path, &Description::new(&problem, &settings)).unwrap();
        sample(&problem, &settings, &store, &|_| true).unwrap();
        let sink = MemorySink::new();
        sample(&problem, &settings, &sink, &|_| true).unwrap();
        let run = StoredRun::open(&path).unwrap();
        for (index, expected) in sink.into_chains().into_iter().enumerate() {
            assert_eq!(run.draws(index, Phase::Sample).unwrap(), expected);
        }
        bytes.push(snapshot(&path));
    }
    assert_eq!(bytes[0], bytes[1]);
}

/// Stopped at some sweep, in warm-up or later, by flush or by death, and resumed.
#[test]
fn a_run_that_was_stopped_and_resumed_leaves_the_bytes_of_an_unbroken_one() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(1);
    let settings = Settings { particles: 5, threads: Some(2), ..settings(3, 6, 12) };
    let reference = folder.path().join("reference");
    let description = Description::new(&problem, &settings);
    let store = create(FaultyDisk::sound(), &reference, &description).unwrap();
    sample(&problem, &settings, &store, &|_| true).unwrap();
    let expected = snapshot(&reference);
    for (round, stop) in [5u64, 17, 31, 52].into_iter().enumerate() {
        let path = folder.path().join(format!("run{stop}"));
        let store = create(FaultyDisk::sound(), &path, &description).unwrap().with_commit_interval(AT_ONCE);
        let seen = AtomicU64::new(0);
        let keep_going = |_: &gpssm::Progress| seen.fetch_add(1, Ordering::SeqCst) < stop;
        sample(&problem, &settings, &store, &keep_going).unwrap();
        if round % 2 == 0 {
            store.flush().unwrap();
        }
        drop(store);
        let resumed = Store::resume_on(Box::new(FaultyDisk::sound()), &path, &description).unwrap();
        let plans = resumed.chains.into_iter().map(|chain| ChainPlan {
            chain: chain.chain,
            from: chain.state,
            ..ChainPlan::default()
        });
        sample_chains(&problem, &settings, plans.collect(), &resumed.store, &|_| true).unwrap();
        assert_same(&path, &expected, &format!("stopped after {stop}"));
    }
}
