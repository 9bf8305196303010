//! Damaged files: refusal or what is whole, never wrong numbers.

use proptest::prelude::*;

use super::super::StoredRun;
use super::super::tree::seal;
use super::*;

/// Everything a reader can ask for, as text.
fn contents(run: &StoredRun) -> Result<Vec<String>, StoreError> {
    let mut all = vec![format!(
        "{:?}",
        (
            run.configuration(),
            run.seed(),
            run.tune(),
            run.version(),
            run.parameters(),
            (run.states(), run.outputs(), run.inputs(), run.sequences()),
            (run.time(), run.record(), run.scaling(), run.basis()),
        )
    )];
    for index in 0..run.chains().len() {
        for phase in [Phase::Tune, Phase::Sample] {
            all.push(format!("{:?}", run.draws(index, phase)?));
        }
        all.push(format!("{:?}", run.state(index)?));
    }
    Ok(all)
}

/// The file as it was, with one thing wrong.
fn damages(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut all = vec![None];
    if bytes.is_empty() {
        return all;
    }
    let n = bytes.len();
    for (i, bit) in [(0, 0), (n / 3, 3), (n / 2, 0), (n - 5.min(n), 7), (n - 1, 1)] {
        let mut flipped = bytes.to_vec();
        flipped[i] ^= 1 << bit;
        all.push(Some(flipped));
    }
    all.extend([0, n / 2, n - 1].map(|len| Some(bytes[..len].to_vec())));
    all.push(Some([bytes, &[0]].concat()));
    all
}

#[test]
fn flips_and_cuts_in_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(1, 3, 5));
    unbroken(&path, &problem, &settings);
    let files = snapshot(&path);
    let whole = contents(&StoredRun::open(&path).unwrap()).unwrap();
    let description = Description::new(&problem, &settings);
    let mut refused = 0;
    for (i, (name, bytes)) in files.iter().enumerate() {
        let file = path.join(name);
        // Metadata of single arrays are only copies.
        let copy = name.ends_with("zarr.json") && name.components().count() > 1;
        for (j, damaged) in damages(bytes).into_iter().enumerate() {
            if copy && j != i % 10 {
                continue;
            }
            match &damaged {
                Some(damaged) => fs::write(&file, damaged).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            match StoredRun::open(&path).and_then(|run| contents(&run)) {
                Ok(found) => assert_eq!(found, whole, "{name:?}"),
                Err(error) => {
                    refused += 1;
                    let words = error.to_string();
                    let named = words.contains(name.to_str().unwrap()) || name.ends_with("zarr.json");
                    assert!(named, "{name:?}: {words}");
                }
            }
            // What can be put right is, the rest is refused; one damage of each file will do.
            if j == i % 10 && Store::resume_on(Box::new(FaultyDisk::sound()), &path, &description).is_ok() {
                assert_same(&path, &files, &format!("resumed after {name:?}"));
            }
            fs::write(&file, bytes).unwrap();
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn the_whole_part_of_a_damaged_run_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(2, 3, 11));
    unbroken(&path, &problem, &settings);
    let whole = StoredRun::open(&path).unwrap().draws(1, Phase::Sample).unwrap();
    let (run, cuts) = StoredRun::open_prefix(&path).unwrap();
    assert_eq!((cuts.len(), run.chains()[1].draws), (0, 11));
    // Chunk of draws 6 and 7 of the second chain.
    fs::remove_file(path.join("posterior/x/c.1.3.0.0")).unwrap();
    let error = StoredRun::open(&path).unwrap().draws(1, Phase::Sample).unwrap_err().to_string();
    assert!(error.ends_with("posterior/x/c.1.3.0.0: damaged: the file is missing"), "{error}");
    let (run, cuts) = StoredRun::open_prefix(&path).unwrap();
    assert!(cuts[0].ends_with("of chain 1 the first 6 of 11 draws are whole"), "{cuts:?}");
    assert_eq!(run.draws(0, Phase::Sample).unwrap().theta.len(), 11);
    let left = run.draws(1, Phase::Sample).unwrap();
    assert_eq!((left.theta.len(), &left.paths[..]), (6, &whole.paths[..6]));
}

/// A chunk that was replaced by an older one of its own: its checksum fits, but rows are missing.
#[test]
fn a_chunk_from_an_earlier_commit_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(1, 1, 7));
    let description = Description::new(&problem, &settings);
    let store = create(FaultyDisk::sound(), &path, &description).unwrap().with_commit_interval(AT_ONCE);
    (1..=6).for_each(|sweep| feed(&store, &problem, &settings, 0, sweep).unwrap());
    let chunk = path.join("sample_stats/clamped/c.0.1");
    let old = fs::read(&chunk).unwrap();
    (7..=8).for_each(|sweep| feed(&store, &problem, &settings, 0, sweep).unwrap());
    fs::write(&chunk, old).unwrap();
    let error = StoredRun::open(&path).unwrap().draws(0, Phase::Sample).unwrap_err().to_string();
    assert!(error.contains("clamped/c.0.1: damaged: draw 5 is missing"), "{error}");
}

#[test]
fn folders_that_are_no_runs_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, settings) = (problem(1), settings(1, 1, 2));
    let description = Description::new(&problem, &settings);
    for error in [StoredRun::open(folder.path()).err(), Store::resume(folder.path(), &description).err()] {
        assert!(error.unwrap().to_string().ends_with("not a gpssm run: there is no zarr.json in it"));
    }
    assert_eq!(snapshot(folder.path()).len(), 0);
}

/// Opens a run with this root file; whatever happens, it must not panic.
fn try_root(path: &Path, root: &[u8]) {
    fs::write(path.join("zarr.json"), root).unwrap();
    if let Ok(run) = StoredRun::open(path) {
        let _ = contents(&run);
    }
}

thread_local! {
    /// A run whose root file is replaced, and that file.
    static RUN: (tempfile::TempDir, Vec<u8>) = {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        unbroken(&path, &problem(1), &settings(2, 2, 3));
        let root = fs::read(path.join("zarr.json")).unwrap();
        (folder, root)
    };
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_root_file_is_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-z\\[\\]{},:\"-]"), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        RUN.with(|(folder, root)| {
            let path = folder.path().join("run");
            try_root(&path, &bytes);
            // Changed, with and without a checksum that fits.
            let mut changed = root.clone();
            for (place, text) in &changes {
                let i = place.index(changed.len());
                changed[i] = text.as_bytes()[0];
            }
            try_root(&path, &changed);
            try_root(&path, &seal(changed));
            try_root(&path, &seal(root[..cut.index(root.len())].to_vec()));
        });
    }

    /// Numbers in the right places, of any size.
    #[test]
    fn counts_of_any_size_are_read_or_refused(old in 0usize..6, new in any::<u64>()) {
        let (path, root) = RUN.with(|(folder, root)| (folder.path().join("run"), root.clone()));
        let root = String::from_utf8(root).unwrap();
        let words = ["[3,3]", "[2,3]", "[2,3,10,1]", "[1,2,10,1]", "[4]", "[10]"];
        let word = words[old];
        prop_assert!(root.contains(word));
        let changed = root.replace(word, &word.replacen(|c: char| c.is_ascii_digit(), &new.to_string(), 1));
        try_root(&path, &seal(changed.into_bytes()));
    }
}
