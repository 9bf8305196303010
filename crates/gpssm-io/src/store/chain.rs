//! Draws of one chain on their way to the disk: at most one block of each array is in memory.

use std::path::Path;
use std::time::{Duration, Instant};

use gpssm::mcmc::ChainState;
use gpssm::{Draw, Phase};

use super::codec::{self, PADDING};
use super::description::describe;
use super::disk::{Disk, File};
use super::error::StoreError;
use super::files::chunk_path;
use super::layout::{Column, Source};
use super::statistics::FIELDS;

/// The block of an array that is being filled.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// Number of the block.
    pub block: u64,
    /// Its elements so far.
    pub raw: Vec<u8>,
    /// How much of it is on the disk.
    pub on_disk: usize,
}

impl Buffer {
    /// The block's file, padded, if it is not on the disk as it is now; it only ever gets longer in what it
    /// holds.
    fn file(
        &self,
        folder: &Path,
        column: &Column,
        phase: Phase,
        chain: usize,
    ) -> Result<Option<File>, StoreError> {
        if self.on_disk == self.raw.len() {
            return Ok(None);
        }
        let path = chunk_path(folder, column, phase, chain, self.block);
        let bytes = encode_padded(&path, column, &self.raw)?;
        Ok(Some((path, bytes)))
    }
}

/// A chunk with these rows.
pub(super) fn encode_padded(path: &Path, column: &Column, rows: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut padded = Vec::with_capacity(column.chunk_bytes());
    padded.extend_from_slice(rows);
    while padded.len() < column.chunk_bytes() {
        padded.extend_from_slice(&PADDING);
    }
    codec::encode(&padded).map_err(StoreError::io(path))
}

/// A chain that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    /// Place of the chain in the store.
    pub index: usize,
    pub id: u32,
    pub phase: Phase,
    /// Warm-up sweeps and draws that were taken.
    pub warmup: u64,
    pub draws: u64,
    /// By column.
    pub buffers: Vec<Buffer>,
    /// After the last draw.
    pub state: Option<ChainState>,
    /// When the last commit was, and how long it took.
    pub last_commit: Instant,
    pub cost: Duration,
}

impl Writer {
    pub(super) fn new(index: usize, id: u32, phase: Phase, n_columns: usize) -> Self {
        Self {
            index,
            id,
            phase,
            warmup: 0,
            draws: 0,
            buffers: (0..n_columns).map(|_| Buffer::default()).collect(),
            state: None,
            last_commit: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    pub(super) fn sweeps(&self) -> u64 {
        self.warmup + self.draws
    }

    /// Draws of the present phase.
    pub(super) fn count(&self) -> u64 {
        if self.phase == Phase::Sample { self.draws } else { self.warmup }
    }

    /// Whether this is the draw that comes next.
    pub(super) fn check(&self, draw: &Draw, n_theta: usize, tune: u64) -> Result<(), StoreError> {
        let refuse = |message: String| Err(StoreError::Draw { chain: self.id, message });
        let expected =
            if self.warmup < tune { (Phase::Tune, self.warmup) } else { (Phase::Sample, self.draws) };
        let word = describe(draw.phase);
        if (draw.phase, draw.index) != expected || draw.state.sweep != self.sweeps() + 1 {
            return refuse(format!(
                "{word} {} after sweep {} came where {} {} was expected",
                draw.index,
                draw.state.sweep,
                describe(expected.0),
                expected.1
            ));
        }
        if draw.theta.len() != n_theta {
            return refuse(format!(
                "{word} {} has {} parameters, not {n_theta}",
                draw.index,
                draw.theta.len()
            ));
        }
        if !draw.theta.iter().chain(draw.paths.iter().flatten()).all(|value| value.is_finite()) {
            return refuse(format!("{word} {} holds a number that is not finite", draw.index));
        }
        Ok(())
    }

    /// Makes room for one more draw.
    pub(super) fn make_room(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
        columns: &[Column],
    ) -> Result<(), StoreError> {
        let is_full = |buffer: &Buffer, column: &Column| buffer.raw.len() == column.chunk_bytes();
        let files = self.files(folder, columns, is_full)?;
        disk.replace_all(&files)?;
        for (buffer, column) in self.buffers.iter_mut().zip(columns) {
            if is_full(buffer, column) {
                *buffer = Buffer { block: buffer.block + 1, ..Buffer::default() };
            }
        }
        Ok(())
    }

    /// Files of the blocks that are wanted and have changed.
    pub(super) fn files(
        &self,
        folder: &Path,
        columns: &[Column],
        wanted: impl Fn(&Buffer, &Column) -> bool,
    ) -> Result<Vec<File>, StoreError> {
        let blocks = self.buffers.iter().zip(columns).filter(|(buffer, column)| wanted(buffer, column));
        let files = blocks.map(|(buffer, column)| buffer.file(folder, column, self.phase, self.index));
        Ok(files.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Takes a draw that was checked, into buffers that have room.
    pub(super) fn push(&mut self, draw: &Draw, columns: &[Column]) -> Result<(), StoreError> {
        let length: usize = draw.paths.iter().map(|path| 8 * path.len()).sum();
        let expected = columns.iter().find(|column| column.source == Source::Paths).map(Column::row_bytes);
        if expected != Some(length) {
            let message = format!("{} {} has paths of another length", describe(draw.phase), draw.index);
            return Err(StoreError::Draw { chain: self.id, message });
        }
        for (buffer, column) in self.buffers.iter_mut().zip(columns) {
            match &column.source {
                Source::Theta(places) => {
                    buffer.raw.extend(places.iter().flat_map(|&k| draw.theta[k].to_le_bytes()));
                }
                Source::LogJoint => buffer.raw.extend_from_slice(&draw.info.log_joint.to_le_bytes()),
                Source::Info(i) => buffer.raw.extend_from_slice(&(FIELDS[*i].get)(draw.info)),
                Source::Paths => {
                    let numbers = draw.paths.iter().flatten();
                    buffer.raw.extend(numbers.flat_map(|value| value.to_le_bytes()));
                }
            }
        }
        match draw.phase {
            Phase::Sample => self.draws += 1,
            _ => self.warmup += 1,
        }
        match &mut self.state {
            Some(state) => state.clone_from(draw.state),
            None => self.state = Some(draw.state.clone()),
        }
        Ok(())
    }
}
