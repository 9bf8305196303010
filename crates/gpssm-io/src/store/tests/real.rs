//! A real sampler.

use gpssm::{MemorySink, sample};

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
        let store = Store::create(&path, &Description::new(&problem, &settings)).unwrap();
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
