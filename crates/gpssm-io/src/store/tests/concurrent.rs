//! Chains in threads, and readers beside a writer.

use std::sync::atomic::AtomicBool;

use super::super::StoredRun;
use super::*;

/// Feeds every chain from a thread of its own.
fn feed_in_threads(
    store: &Store,
    problem: &Problem,
    settings: &Settings,
    done: &[ResumedChain],
) -> Result<(), gpssm::Error> {
    std::thread::scope(|scope| {
        let rest = |chain: &ResumedChain| {
            let first = chain.warmup + chain.draws + 1;
            let mut sweeps = first..=settings.tune + settings.draws.unwrap();
            sweeps.try_for_each(|sweep| feed(store, problem, settings, chain.chain, sweep))
        };
        let threads: Vec<_> = done.iter().map(|chain| scope.spawn(move || rest(chain))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    Ok(store.flush()?)
}

#[test]
fn threads_and_deaths_leave_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, settings) = (problem(1), settings(4, 5, 21));
    let reference = folder.path().join("reference");
    unbroken(&reference, &problem, &settings);
    let expected = snapshot(&reference);
    let description = Description::new(&problem, &settings);
    for round in 0..8u64 {
        let path = folder.path().join("run");
        let breaks_at = (noise(2, round, 0).abs() * 6000.0) as u64;
        let interval = if round % 2 == 0 { AT_ONCE } else { Duration::from_micros(300) };
        let attempt = || -> Result<(), gpssm::Error> {
            let store = create(FaultyDisk::new(breaks_at, true), &path, &description)?;
            feed_in_threads(&store.with_commit_interval(interval), &problem, &settings, &fresh(&[0, 1, 2, 3]))
        };
        if attempt().is_err() {
            if path.exists() {
                let resumed = Store::resume_on(Box::new(FaultyDisk::sound()), &path, &description).unwrap();
                feed_in_threads(&resumed.store, &problem, &settings, &resumed.chains).unwrap();
            } else {
                continue;
            }
        }
        assert_same(&path, &expected, &format!("round {round}, broken at change {breaks_at}"));
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn readers_see_whole_draws_while_a_run_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(2, 5, 40));
    let description = Description::new(&problem, &settings);
    let store = create(FaultyDisk::sound(), &path, &description).unwrap().with_commit_interval(AT_ONCE);
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            feed_in_threads(&store, &problem, &settings, &fresh(&[0, 1])).unwrap();
            finished.store(true, Ordering::SeqCst);
        });
        let mut last = 0;
        loop {
            let done = finished.load(Ordering::SeqCst);
            let run = StoredRun::open(&path).unwrap();
            let lengths = run.chains();
            assert!(lengths[0].draws >= last);
            last = lengths[0].draws;
            for (index, length) in lengths.iter().enumerate() {
                let draws = run.draws(index, Phase::Sample).unwrap();
                assert_eq!(draws.theta.len() as u64, length.draws);
            }
            if done {
                assert_eq!(last, 40);
                break;
            }
        }
    });
}
