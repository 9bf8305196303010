//! A store that a run writes to.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpssm::{Draw, Phase, Sink};

use super::build::Building;
use super::chain::Writer;
use super::codec;
use super::description::Description;
use super::disk::{Disk, RealDisk};
use super::error::StoreError;
use super::files::{ROOT, STATES, state_name};
use super::layout::{Committed, Layout, chunk_name, draw_coordinates};
use super::lock::Lock;
use super::tree::Tree;

/// Draws that were taken longer ago than this are committed with the next one.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// A commit is followed by at least so many times its own duration without one, if the disk is slow, but not by
/// more than so many intervals.
const REST: u32 = 20;
const MOST: u32 = 12;

/// A run on the disk, open for writing: a [`Sink`] for its draws.
///
/// Draws are committed every few seconds, at the end of warm-up, and when the last draw has come. [`Store::flush`]
/// commits the rest of a run that was stopped. What the folder holds in the end does not depend on when
/// commits were made.
pub struct Store {
    pub(super) folder: PathBuf,
    pub(super) layout: Layout,
    pub(super) disk: Box<dyn Disk>,
    pub(super) interval: Duration,
    /// Draws after which a chain is complete, if that is known.
    pub(super) draws: Option<u64>,
    pub(super) chains: Vec<Mutex<Writer>>,
    pub(super) root: Mutex<Root>,
    pub(super) _lock: Lock,
}

/// The commit record.
#[derive(Debug)]
pub(super) struct Root {
    pub committed: Vec<Committed>,
    /// Chunks of draw numbers that are on the disk, of warm-up and kept draws.
    pub numbered: [u64; 2],
    /// Whether what was written once would survive the loss of power.
    pub durable: bool,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// A new store at `path`, where nothing may be yet.
    pub fn create(path: &Path, description: &Description) -> Result<Self, StoreError> {
        Self::create_on(Box::new(RealDisk), path, description.layout()?, description.settings.draws)
    }

    pub(super) fn create_on(
        disk: Box<dyn Disk>,
        path: &Path,
        layout: Layout,
        draws: Option<u64>,
    ) -> Result<Self, StoreError> {
        let committed = vec![Committed::default(); layout.chains.len()];
        let lock = Building::new(path, &layout, &committed, disk.as_ref())?.finish(disk.as_ref())?;
        let phase = layout.phases()[0];
        let writer = |(index, id): (usize, &u32)| Writer::new(index, *id, phase, layout.columns.len());
        Ok(Self {
            folder: path.to_path_buf(),
            disk,
            interval: INTERVAL,
            draws,
            chains: layout.chains.iter().enumerate().map(writer).map(Mutex::new).collect(),
            root: Mutex::new(Root { committed, numbered: [0; 2], durable: false }),
            layout,
            _lock: lock,
        })
    }

    /// Commits at other intervals.
    #[must_use]
    pub fn with_commit_interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Commits every draw that was taken.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.chains.iter().try_for_each(|chain| self.commit(&mut lock(chain)))
    }

    fn take_draw(&self, draw: &Draw) -> Result<(), StoreError> {
        let Ok(index) = self.layout.chains.binary_search(&draw.chain) else {
            let message = "this store does not hold the chain".into();
            return Err(StoreError::Draw { chain: draw.chain, message });
        };
        let columns = &self.layout.columns;
        let writer = &mut *lock(&self.chains[index]);
        let n_theta = self.layout.attribute("parameters").as_array().map_or(0, Vec::len);
        let tune = self.layout.attribute("tuning_steps").as_u64().unwrap_or(0);
        writer.check(draw, n_theta, tune)?;
        if draw.phase != writer.phase {
            self.commit(writer)?;
            writer.phase = draw.phase;
            writer.buffers.iter_mut().for_each(|buffer| *buffer = Default::default());
        }
        writer.make_room(self.disk.as_ref(), &self.folder, columns)?;
        writer.push(draw, columns)?;
        let ends = if draw.phase == Phase::Sample { self.draws } else { Some(tune) };
        let slow = writer.cost.saturating_mul(REST).min(self.interval.saturating_mul(MOST));
        let wait = self.interval.max(slow);
        if Some(writer.count()) == ends || writer.last_commit.elapsed() >= wait {
            self.commit(writer)?;
        }
        Ok(())
    }

    /// Writes what a chain has, then the root file that says so.
    fn commit(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let begin = Instant::now();
        let old = lock(&self.root).committed[writer.index].clone();
        let Some(state) = writer.state.as_ref().filter(|_| old.warmup + old.draws < writer.sweeps()) else {
            return Ok(());
        };
        let bytes = state_bytes(writer.id, state)?;
        let name = state_name(writer.id, writer.sweeps(), &bytes);
        let states = self.folder.join(STATES);
        let mut files = writer.files(&self.folder, &self.layout.columns, |_, _| true)?;
        files.push((states.join(&name), bytes));
        self.disk.replace_all(&files)?;
        writer.buffers.iter_mut().for_each(|buffer| buffer.on_disk = buffer.raw.len());
        let committed = Committed { warmup: writer.warmup, draws: writer.draws, state: name };
        self.commit_root(writer, committed)?;
        if !old.state.is_empty() {
            // One that stays behind is removed when the run is resumed.
            let _ = self.disk.remove(&states.join(&old.state));
        }
        writer.last_commit = Instant::now();
        writer.cost = begin.elapsed();
        Ok(())
    }

    /// The commit itself: one rename of the root file.
    fn commit_root(&self, writer: &Writer, chain: Committed) -> Result<(), StoreError> {
        let root = &mut *lock(&self.root);
        if !root.durable {
            self.make_durable()?;
            root.durable = true;
        }
        let numbered = &mut root.numbered[usize::from(writer.phase == Phase::Sample)];
        while *numbered * self.layout.blocks.scalars < writer.count() {
            write_draw_numbers(self.disk.as_ref(), &self.folder, &self.layout, writer.phase, *numbered)?;
            *numbered += 1;
        }
        let before = self.layout.tree(&root.committed);
        let mut committed = root.committed.clone();
        committed[writer.index] = chain;
        let after = self.layout.tree(&committed);
        self.disk.replace(&self.folder.join(ROOT), &after.to_bytes(), true)?;
        root.committed = committed;
        self.align(&before, &after)
    }

    /// Brings the arrays' own metadata in line with the root, which is the authority.
    fn align(&self, before: &Tree, after: &Tree) -> Result<(), StoreError> {
        for ((_, old), (path, new)) in before.nodes.iter().zip(&after.nodes) {
            if old != new {
                self.disk.replace(&self.folder.join(path).join(ROOT), &new.to_bytes(), false)?;
            }
        }
        Ok(())
    }

    /// What was written once need not be durable before the first draw is.
    fn make_durable(&self) -> Result<(), StoreError> {
        let fixed = self.layout.fixed.iter().map(|fixed| self.folder.join(&fixed.path).join(fixed.chunk()));
        self.disk.sync_all(&fixed.collect::<Vec<_>>())?;
        let nodes = self.layout.tree(&[]).nodes;
        let mut folders: Vec<PathBuf> = nodes.iter().map(|(path, _)| self.folder.join(path)).collect();
        folders.push(self.folder.clone());
        folders.extend(self.folder.parent().filter(|parent| parent.is_dir()).map(Path::to_path_buf));
        self.disk.sync_all(&folders)
    }
}

/// A chain's state; every number comes back to the last bit.
pub(super) fn state_bytes(chain: u32, state: &gpssm::mcmc::ChainState) -> Result<Vec<u8>, StoreError> {
    let refuse = |message: String| StoreError::Draw { chain, message };
    let bytes = serde_json::to_vec(state).map_err(|error| refuse(error.to_string()))?;
    // JSON has no other way to write a number that is not finite.
    if bytes.windows(4).any(|word| word == b"null") {
        return Err(refuse("its state holds a number that is not finite".into()));
    }
    Ok(bytes)
}

/// A chunk of the numbers 0, 1, 2, ...; complete from the start, so that it never changes.
pub(super) fn write_draw_numbers(
    disk: &dyn Disk,
    folder: &Path,
    layout: &Layout,
    phase: Phase,
    block: u64,
) -> Result<(), StoreError> {
    let n = layout.blocks.scalars as i64;
    let first = block as i64 * n;
    let raw = codec::integers(first..first + n);
    let bytes = codec::encode(&raw).map_err(StoreError::io(folder))?;
    disk.replace_all(
        &draw_coordinates(phase).map(|array| (folder.join(array).join(chunk_name(&[block])), bytes.clone())),
    )
}

impl Sink for Store {
    fn take(&self, draw: &Draw) -> Result<(), gpssm::Error> {
        self.take_draw(draw).map_err(Into::into)
    }
}
