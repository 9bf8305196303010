//! Reading files of a store, with all checks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gpssm::Phase;
use gpssm::mcmc::ChainState;

use super::codec::{self, PADDING};
use super::description::describe;
use super::error::StoreError;
use super::layout::{Column, Committed, Layout, chunk_name};
use super::tree::{Array, DataType, Tree};

/// The commit record.
pub(super) const ROOT: &str = "zarr.json";
/// Folder of chain states; not part of the Zarr hierarchy.
pub(super) const STATES: &str = "state";
/// Longest list of texts.
const TEXT_LIMIT: u64 = 1 << 32;

/// Reads the root file and everything that was written once.
pub(super) fn read_root(folder: &Path) -> Result<(Layout, Vec<Committed>), StoreError> {
    let root = folder.join(ROOT);
    let bytes = match fs::read(&root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message =
                if folder.exists() { "there is no zarr.json in it" } else { "there is no such folder" };
            return Err(StoreError::foreign(folder, message));
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(StoreError::foreign(folder, "a run is a folder, this is a file"));
        }
        bytes => bytes.map_err(StoreError::io(&root))?,
    };
    let tree = Tree::from_bytes(&root, &bytes)?;
    let (layout, committed) =
        Layout::from_tree(&root, &tree, |path, array| read_fixed(&folder.join(path), array))?;
    for (id, chain) in layout.chains.iter().zip(&committed) {
        let sweeps = chain.warmup.checked_add(chain.draws);
        let named = if sweeps == Some(0) { chain.state.is_empty() } else { crc_of(*id, chain).is_some() };
        if !named {
            return Err(StoreError::foreign(&root, format!("chain {id} has no state that fits its counts")));
        }
    }
    Ok((layout, committed))
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(StoreError::damaged(path, "the file is missing"))
        }
        bytes => bytes.map_err(StoreError::io(path)),
    }
}

/// The elements of an array of one chunk.
fn read_fixed(folder: &Path, array: &Array) -> Result<Vec<u8>, StoreError> {
    let path = folder.join(chunk_name(&vec![0; array.shape.len()]));
    let expected = array.chunk_len().filter(|_| array.chunk == array.shape);
    let wrong = || StoreError::damaged(&path, "its size is not that of its array");
    let expected = expected.ok_or_else(wrong)?;
    let text = array.data_type == DataType::Text;
    let limit = if text { TEXT_LIMIT } else { expected.saturating_mul(8) };
    let raw = codec::decode(&path, &read(&path)?, limit)?;
    let found = if text {
        codec::to_texts(&raw).map(|texts| texts.len() as u64)
    } else {
        raw.len().is_multiple_of(8).then_some(raw.len() as u64 / 8)
    };
    if found == Some(expected) { Ok(raw) } else { Err(wrong()) }
}

/// Where a chunk of draws is.
pub(super) fn chunk_path(folder: &Path, column: &Column, phase: Phase, chain: usize, block: u64) -> PathBuf {
    folder.join(column.path(phase)).join(column.chunk(chain, block))
}

/// Elements of a chunk of draws, padding included, whose first `rows` rows must be there.
pub(super) fn read_block(
    folder: &Path,
    column: &Column,
    phase: Phase,
    chain: usize,
    block: u64,
    rows: u64,
) -> Result<Vec<u8>, StoreError> {
    let path = chunk_path(folder, column, phase, chain, block);
    let raw = codec::decode(&path, &read(&path)?, column.chunk_bytes() as u64)?;
    if raw.len() != column.chunk_bytes() {
        return Err(StoreError::damaged(&path, "its size is not that of a chunk"));
    }
    let committed = &raw[..rows.min(column.block) as usize * column.row_bytes()];
    match committed.as_chunks::<8>().0.iter().position(|element| *element == PADDING) {
        Some(i) => {
            let row = block * column.block + (i * 8 / column.row_bytes()) as u64;
            Err(StoreError::damaged(&path, format!("{} {row} is missing", describe(phase))))
        }
        None => Ok(raw),
    }
}

/// Rows of a block among the first `count` draws.
pub(super) fn rows_in_block(column: &Column, block: u64, count: u64) -> u64 {
    count.saturating_sub(block.saturating_mul(column.block)).min(column.block)
}

/// Name of the file of a chain's state; the last part is its checksum.
pub(super) fn state_name(id: u32, sweep: u64, bytes: &[u8]) -> String {
    format!("chain-{id}-{sweep}-{:08x}.json", crc32c::crc32c(bytes))
}

/// Checksum in the name of a state's file, if that is the name of this chain's state.
fn crc_of(id: u32, committed: &Committed) -> Option<u32> {
    let sweep = committed.warmup.checked_add(committed.draws)?;
    let crc = committed.state.strip_prefix(&format!("chain-{id}-{sweep}-"))?.strip_suffix(".json")?;
    let value = u32::from_str_radix(crc, 16).ok()?;
    (format!("{value:08x}") == crc).then_some(value)
}

/// The state of a chain at its last commit.
pub(super) fn read_state(
    folder: &Path,
    id: u32,
    committed: &Committed,
) -> Result<Option<ChainState>, StoreError> {
    if committed.state.is_empty() {
        return Ok(None);
    }
    let path = folder.join(STATES).join(&committed.state);
    let bytes = read(&path)?;
    if crc_of(id, committed) != Some(crc32c::crc32c(&bytes)) {
        return Err(StoreError::damaged(&path, "the checksum does not fit"));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| StoreError::damaged(&path, format!("not the state of a chain: {error}")))
}
