//! Tests with made-up draws: cheap, and the same for every chain and sweep however they are asked for.

mod arrays;
mod concurrent;
mod damage;
mod faults;
mod joined;
mod real;
mod round_trip;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpssm::mcmc::{ChainState, SweepInfo};
use gpssm::model::{ProcessNoiseSpec, ScalePrior};
use gpssm::{Draw, Functions, Model, Phase, Prior, Problem, Record, Sequence, Settings, Sink};

use super::disk::{Disk, RealDisk};
use super::layout::Blocks;
use super::{Description, ResumedChain, Store, StoreError};

/// Blocks so small that short runs fill several.
const BLOCKS: Blocks = Blocks { scalars: 4, paths: 2 };

/// Two sequences, a missing value, an input; one noise is known.
fn problem(n_x: usize) -> Problem {
    let value = |t: usize, k: usize| ((3 * t + k) as f64).sin();
    let sequence = |n: usize, shift: usize| {
        let y = (0..n).map(|t| (0..n_x).map(|k| value(t + shift, k)).collect()).collect();
        let u = (0..n).map(|t| vec![value(t, 9)]).collect();
        (y, u)
    };
    let (mut y, u): (Vec<Vec<f64>>, _) = sequence(6, 0);
    y[2][0] = f64::NAN;
    let first = Sequence::new(y, u).unwrap();
    let (y, u) = sequence(4, 5);
    let record = Record::new(vec![first, Sequence::new(y, u).unwrap()]).unwrap();
    let mut model = Model::observed(n_x, 1);
    let mut noise = vec![ScalePrior::on_sd(Prior::LogNormal { median: 0.1, sigma: 1.0 }); n_x];
    noise[0] = ScalePrior::on_sd(Prior::Fixed { value: 0.25 });
    model.process_noise = ProcessNoiseSpec::Diagonal(noise);
    Problem::new(model, &Functions::new(), record).unwrap()
}

fn settings(chains: u32, tune: u64, draws: u64) -> Settings {
    Settings { chains, tune, draws: Some(draws), seed: 7, ..Settings::default() }
}

/// Numbers in (-1, 1) that depend on all of these.
fn noise(chain: u32, sweep: u64, i: usize) -> f64 {
    let mut h = u64::from(chain) << 40 ^ sweep << 20 ^ i as u64;
    for _ in 0..3 {
        h = (h ^ h >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (h >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Feeds a made-up draw of sweep `sweep` (from 1) to a sink.
fn feed(
    sink: &dyn Sink,
    problem: &Problem,
    settings: &Settings,
    chain: u32,
    sweep: u64,
) -> Result<(), gpssm::Error> {
    let mut i = 0;
    let mut next = || {
        i += 1;
        noise(chain, sweep, i)
    };
    let table = problem.table();
    let theta: Vec<f64> = (0..table.len()).map(|k| if table.is_fixed(k) { 0.25 } else { next() }).collect();
    let internal: Vec<Vec<f64>> = problem
        .record()
        .sequences()
        .iter()
        .map(|sequence| (0..sequence.n_rows() * problem.n_x()).map(|_| next()).collect())
        .collect();
    let paths: Vec<Vec<f64>> = internal.iter().map(|path| problem.path_to_original(path)).collect();
    let info = SweepInfo {
        density_evaluations: sweep,
        clamped: u64::from(chain),
        log_joint: next() * 1e3,
        log_likelihood_total: if sweep.is_multiple_of(5) { f64::NEG_INFINITY } else { next() },
        ..SweepInfo::default()
    };
    let mut state = ChainState::new(problem, theta.clone(), internal);
    state.sweep = sweep;
    let warm = sweep <= settings.tune;
    let draw = Draw {
        chain,
        phase: if warm { Phase::Tune } else { Phase::Sample },
        index: if warm { sweep - 1 } else { sweep - 1 - settings.tune },
        theta: &theta,
        paths: &paths,
        info: &info,
        state: &state,
    };
    sink.take(&draw)
}

/// The rest of a run, chains in turn.
fn feed_rest(
    store: &Store,
    problem: &Problem,
    settings: &Settings,
    done: &[ResumedChain],
) -> Result<(), gpssm::Error> {
    let total = settings.tune + settings.draws.unwrap();
    for sweep in 1..=total {
        for chain in done {
            if sweep > chain.warmup + chain.draws {
                feed(store, problem, settings, chain.chain, sweep)?;
            }
        }
    }
    Ok(store.flush()?)
}

/// Chains from the beginning.
fn fresh(chains: &[u32]) -> Vec<ResumedChain> {
    chains.iter().map(|&chain| ResumedChain { chain, warmup: 0, draws: 0, state: None }).collect()
}

fn create(disk: FaultyDisk, path: &Path, description: &Description) -> Result<Store, StoreError> {
    let layout = description.layout_with(BLOCKS)?;
    Store::create_on(Box::new(disk), path, layout, description.settings.draws)
}

/// A complete run in one go.
fn unbroken(path: &Path, problem: &Problem, settings: &Settings) {
    let description = Description::new(problem, settings);
    let store = create(FaultyDisk::sound(), path, &description).unwrap();
    feed_rest(&store, problem, settings, &fresh(&description.chains)).unwrap();
}

/// All files of a folder by name.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Fails with a message that names the files, not their bytes.
fn assert_same(found: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>, context: &str) {
    let found = snapshot(found);
    let names: Vec<_> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<_> =
        names.into_iter().filter(|name| found.get(*name) != expected.get(*name)).collect();
    assert!(differing.is_empty(), "{context}: {differing:?}");
}

/// A disk that breaks at its n-th change: for good, as if the process had died there, or only once.
#[derive(Clone)]
struct FaultyDisk {
    changes: Arc<AtomicU64>,
    breaks_at: u64,
    for_good: bool,
}

impl FaultyDisk {
    fn sound() -> Self {
        Self::new(u64::MAX, true)
    }

    fn new(breaks_at: u64, for_good: bool) -> Self {
        Self { changes: Arc::default(), breaks_at, for_good }
    }

    fn check(&self) -> io::Result<()> {
        let n = self.changes.fetch_add(1, Ordering::SeqCst);
        let broken = if self.for_good { n >= self.breaks_at } else { n == self.breaks_at };
        if broken { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

impl Disk for FaultyDisk {
    fn write(&self, path: &Path, bytes: &[u8], _: bool) -> io::Result<()> {
        // The change that fails is half done; those after it do not happen.
        let n = self.changes.load(Ordering::SeqCst);
        let result = self.check();
        if result.is_ok() || n == self.breaks_at {
            let n = if result.is_ok() { bytes.len() } else { bytes.len() / 2 };
            fs::File::create(path)?.write_all(&bytes[..n])?;
        }
        result
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check()?;
        RealDisk.rename(from, to)
    }

    fn sync(&self, _: &Path) -> io::Result<()> {
        self.check()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        RealDisk.create_dir(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        RealDisk.remove(path)
    }
}

/// Every draw is committed at once.
const AT_ONCE: Duration = Duration::ZERO;
