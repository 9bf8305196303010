//! Chains from several places.

use super::super::StoredRun;
use super::super::merge::merge_on;
use super::*;

/// A store of some chains of a run, begun at `path`.
fn part(path: &Path, problem: &Problem, settings: &Settings, chains: &[u32]) {
    let description = Description { chains: chains.to_vec(), ..Description::new(problem, settings) };
    let store = create(FaultyDisk::sound(), path, &description).unwrap();
    feed_rest(&store, problem, settings, &fresh(chains)).unwrap();
}

#[test]
fn joined_chains_have_the_bytes_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, settings) = (problem(2), settings(3, 3, 9));
    let reference = folder.path().join("reference");
    unbroken(&reference, &problem, &settings);
    let [a, b, joined] = ["a", "b", "joined"].map(|name| folder.path().join(name));
    part(&a, &problem, &settings, &[1]);
    part(&b, &problem, &settings, &[0, 2]);
    merge_on(&FaultyDisk::sound(), &[a.clone(), b.clone()], &joined).unwrap();
    assert_same(&joined, &snapshot(&reference), "joined");
    // The run can go on from there.
    let longer = Settings { draws: Some(12), ..settings.clone() };
    let description = Description::new(&problem, &longer);
    let resumed = Store::resume_on(Box::new(FaultyDisk::sound()), &joined, &description).unwrap();
    feed_rest(&resumed.store, &problem, &longer, &resumed.chains).unwrap();
    drop(resumed);
    assert!(
        merge_on(&FaultyDisk::sound(), &[a, b], &joined).unwrap_err().to_string().contains("exists already")
    );
    assert_eq!(StoredRun::open(&joined).unwrap().chains()[2].draws, 12);
}

#[test]
fn what_does_not_belong_together_is_not_joined() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, settings) = (problem(1), settings(3, 1, 2));
    let [a, b, c, joined] = ["a", "b", "c", "joined"].map(|name| folder.path().join(name));
    part(&a, &problem, &settings, &[0, 1]);
    part(&b, &problem, &settings, &[1]);
    part(&c, &problem, &Settings { seed: 1, ..settings.clone() }, &[2]);
    let refused = |sources: &[&PathBuf]| {
        let sources: Vec<PathBuf> = sources.iter().map(|path| path.to_path_buf()).collect();
        merge_on(&FaultyDisk::sound(), &sources, &joined).unwrap_err().to_string()
    };
    assert!(refused(&[&a, &b]).contains("another run: chain 1 is also in"));
    assert!(refused(&[&a, &c]).contains("another run: its seed is 1, not 7"));
    assert!(refused(&[]).contains("nothing to merge"));
    assert!(!joined.exists());
}
