//! Processes that die and disks that fail at every single change: the rest of the run leaves the bytes of an
//! unbroken one.

use super::super::StoredRun;
use super::*;

/// Runs on a disk that breaks, then resumes on a sound one until the end; false if it did not break.
fn broken_and_resumed(
    path: &Path,
    disk: FaultyDisk,
    interval: Duration,
    problem: &Problem,
    settings: &Settings,
) -> bool {
    let description = Description::new(problem, settings);
    let attempt = || -> Result<(), gpssm::Error> {
        let store = create(disk.clone(), path, &description)?.with_commit_interval(interval);
        feed_rest(&store, problem, settings, &fresh(&description.chains))
    };
    let broke = attempt().is_err();
    // A disk that fails to remove an old file is no reason to stop; the file is removed when the run is resumed.
    let broke = broke || disk.breaks_at < disk.changes.load(Ordering::SeqCst);
    if broke && path.exists() {
        // What is there can be read, and is right.
        let run = StoredRun::open(path).unwrap();
        for (index, length) in run.chains().iter().enumerate() {
            let draws = run.draws(index, Phase::Sample).unwrap();
            assert_eq!(draws.theta.len() as u64, length.draws);
        }
        let resumed = Store::resume_on(Box::new(FaultyDisk::sound()), path, &description).unwrap();
        feed_rest(&resumed.store, problem, settings, &resumed.chains).unwrap();
    } else if broke {
        let store = create(FaultyDisk::sound(), path, &description).unwrap();
        feed_rest(&store, problem, settings, &fresh(&description.chains)).unwrap();
    }
    broke
}

fn every_change(step: u64, for_good: bool, interval: Duration, settings: &Settings) {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(1);
    let reference = folder.path().join("reference");
    unbroken(&reference, &problem, settings);
    let expected = snapshot(&reference);
    let mut n = 0;
    loop {
        let path = folder.path().join("run");
        let disk = FaultyDisk::new(n, for_good);
        let broke = broken_and_resumed(&path, disk.clone(), interval, &problem, settings);
        assert_same(&path, &expected, &format!("change {n}"));
        fs::remove_dir_all(&path).unwrap();
        if !broke {
            break;
        }
        n += step;
    }
    assert!(n > 300, "the run made only {n} changes");
}

#[test]
fn death_at_any_change() {
    every_change(67, true, AT_ONCE, &settings(2, 2, 5));
    every_change(31, true, Duration::MAX, &settings(2, 2, 5));
}

#[test]
fn a_disk_that_is_full_for_a_moment() {
    every_change(71, false, AT_ONCE, &settings(2, 2, 5));
}

#[test]
#[ignore = "minutes; cargo test --release -p gpssm-io store -- --ignored"]
fn death_at_every_single_change() {
    every_change(1, true, AT_ONCE, &settings(2, 2, 5));
    every_change(1, false, AT_ONCE, &settings(2, 2, 5));
}

/// Dying again and again while resuming.
#[test]
fn deaths_in_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, settings) = (problem(1), settings(3, 4, 13));
    let reference = folder.path().join("reference");
    unbroken(&reference, &problem, &settings);
    let expected = snapshot(&reference);
    for round in 0..4u64 {
        let path = folder.path().join("run");
        let description = Description::new(&problem, &settings);
        let mut deaths = 0;
        loop {
            let breaks_at = 100 + (noise(1, round, deaths).abs() * 1500.0) as u64;
            let disk = FaultyDisk::new(breaks_at, true);
            let attempt = || -> Result<(), gpssm::Error> {
                let (store, chains) = if path.exists() {
                    let resumed = Store::resume_on(Box::new(disk), &path, &description)?;
                    (resumed.store, resumed.chains)
                } else {
                    (create(disk, &path, &description)?, fresh(&description.chains))
                };
                let store = store.with_commit_interval(AT_ONCE);
                feed_rest(&store, &problem, &settings, &chains)
            };
            if attempt().is_ok() {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 1);
        assert_same(&path, &expected, &format!("round {round} with {deaths} deaths"));
        fs::remove_dir_all(&path).unwrap();
    }
}

/// More draws later are the same as more draws from the start.
#[test]
fn a_longer_run_in_two_parts() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(2);
    let (short, long) = (settings(2, 3, 6), settings(2, 3, 15));
    fn configured<'a>(problem: &'a Problem, settings: &'a Settings) -> Description<'a> {
        let configuration = format!("draws = {}", settings.draws.unwrap());
        Description { configuration, ..Description::new(problem, settings) }
    }
    let (parts, whole) = (folder.path().join("parts"), folder.path().join("whole"));
    let store = create(FaultyDisk::sound(), &parts, &configured(&problem, &short)).unwrap();
    feed_rest(&store, &problem, &short, &fresh(&[0, 1])).unwrap();
    drop(store);
    let resumed = Store::resume(&parts, &configured(&problem, &long)).unwrap();
    assert!(resumed.warnings.is_empty());
    feed_rest(&resumed.store, &problem, &long, &resumed.chains).unwrap();
    let store = create(FaultyDisk::sound(), &whole, &configured(&problem, &long)).unwrap();
    feed_rest(&store, &problem, &long, &fresh(&[0, 1])).unwrap();
    assert_same(&parts, &snapshot(&whole), "two parts");
}
