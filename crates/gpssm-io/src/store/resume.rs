//! Going on with a run.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use gpssm::Phase;
use gpssm::mcmc::ChainState;

use super::chain::{Buffer, Writer, encode_padded};
use super::codec::PADDING;
use super::description::Description;
use super::disk::{Disk, RealDisk, TEMPORARY};
use super::error::StoreError;
use super::files::{ROOT, STATES, chunk_path, read_block, read_root, read_state, rows_in_block};
use super::layout::{Column, Committed, Layout, chunk_name, draw_coordinates};
use super::lock::Lock;
use super::writer::{Root, Store};

/// A run that goes on.
pub struct Resumed {
    /// Where its draws go.
    pub store: Store,
    /// Where its chains are.
    pub chains: Vec<ResumedChain>,
    /// What may make further draws differ from those of an unbroken run, in words.
    pub warnings: Vec<String>,
}

/// A chain that goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumedChain {
    /// Its number.
    pub chain: u32,
    /// Warm-up sweeps that it has made.
    pub warmup: u64,
    /// Draws that it has.
    pub draws: u64,
    /// Where it is; none if it has not yet begun.
    pub state: Option<ChainState>,
}

impl Store {
    /// Opens a store to go on with its run: for the rest of its draws or for more of them.
    ///
    /// The description must be that of the run, but for the number of draws and the text of the configuration. Every
    /// committed draw is read and checked; what was written after the last commit is removed.
    pub fn resume(path: &Path, description: &Description) -> Result<Resumed, StoreError> {
        Self::resume_on(Box::new(RealDisk), path, description)
    }

    pub(super) fn resume_on(
        disk: Box<dyn Disk>,
        path: &Path,
        description: &Description,
    ) -> Result<Resumed, StoreError> {
        if !path.join(ROOT).is_file() {
            return Err(StoreError::foreign(path, "there is no zarr.json in it"));
        }
        let lock = Lock::take(path)?;
        let (stored, committed) = read_root(path)?;
        let (layout, warnings) = agree(path, stored, description)?;
        if let Some(most) = committed.iter().map(|chain| chain.draws).max()
            && let Some(draws) = description.settings.draws.filter(|draws| most > *draws)
        {
            let message = format!("it has {most} draws, more than {draws}: ask for {most} or more");
            return Err(StoreError::different(path, message));
        }
        let states = layout.chains.iter().zip(&committed).map(|(id, chain)| read_state(path, *id, chain));
        let states: Vec<_> = states.collect::<Result<_, _>>()?;
        let mut writers = Vec::new();
        for (index, chain) in committed.iter().enumerate() {
            writers.push(load(path, &layout, index, chain, disk.as_ref())?);
        }
        clean(path, &layout, &committed, disk.as_ref())?;
        heal(path, &layout, &committed, disk.as_ref())?;
        let chains = writers.iter_mut().zip(states).map(|(writer, state)| {
            writer.state.clone_from(&state);
            ResumedChain { chain: writer.id, warmup: writer.warmup, draws: writer.draws, state }
        });
        let chains = chains.collect();
        let numbered = [Phase::Tune, Phase::Sample].map(|phase| n_numbered(&layout, &committed, phase));
        let store = Self {
            folder: path.to_path_buf(),
            layout,
            disk,
            interval: super::writer::INTERVAL,
            draws: description.settings.draws,
            chains: writers.into_iter().map(Mutex::new).collect(),
            root: Mutex::new(Root { committed, numbered, durable: false }),
            _lock: lock,
        };
        Ok(Resumed { store, chains, warnings })
    }
}

/// The stored layout with the new configuration, if the run is the same otherwise.
fn agree(
    path: &Path,
    mut stored: Layout,
    description: &Description,
) -> Result<(Layout, Vec<String>), StoreError> {
    let mut expected = description.layout_with(stored.blocks)?;
    let mut warnings = Vec::new();
    for (name, what) in [("inference_library_version", "version"), ("instruction_set", "the instruction set")]
    {
        if stored.attribute(name) != expected.attribute(name) {
            let (then, now) = (stored.text(name), expected.text(name));
            warnings.push(format!(
                "{what} is \"{now}\", but the run began with \"{then}\": further draws are as good, but not the \
                 same bits as those of an unbroken run"
            ));
        }
        expected.attributes.insert(name.to_owned(), stored.attribute(name).clone());
    }
    stored.attributes.insert("configuration".into(), expected.attribute("configuration").clone());
    if stored == expected {
        return Ok((stored, warnings));
    }
    Err(StoreError::different(path, difference(&stored, &expected)))
}

/// What distinguishes two layouts, in words.
pub(super) fn difference(stored: &Layout, expected: &Layout) -> String {
    if stored.chains != expected.chains {
        return format!("it holds chains {:?}, not {:?}", stored.chains, expected.chains);
    }
    for (name, value) in &expected.attributes {
        if stored.attributes.get(name) != Some(value) {
            return format!("its {name} is {}, not {value}", stored.attribute(name));
        }
    }
    let differing = expected.fixed.iter().find(|fixed| !stored.fixed.contains(fixed));
    match differing {
        Some(fixed) => format!("its {} is different", fixed.path),
        None => "its arrays are different".into(),
    }
}

/// Blocks of draw numbers that these commits need.
pub(super) fn n_numbered(layout: &Layout, committed: &[Committed], phase: Phase) -> u64 {
    committed.iter().map(|chain| chain.count(phase)).max().unwrap_or(0).div_ceil(layout.blocks.scalars)
}

/// Reads and checks all draws of a chain, and keeps the block that is to be filled further.
fn load(
    folder: &Path,
    layout: &Layout,
    index: usize,
    committed: &Committed,
    disk: &dyn Disk,
) -> Result<Writer, StoreError> {
    let tune = layout.attribute("tuning_steps").as_u64().unwrap_or(0);
    let phase = if committed.warmup < tune { Phase::Tune } else { Phase::Sample };
    let mut writer = Writer::new(index, layout.chains[index], phase, layout.columns.len());
    (writer.warmup, writer.draws) = (committed.warmup, committed.draws);
    for &stored_phase in layout.phases() {
        let count = committed.count(stored_phase);
        for (column, buffer) in layout.columns.iter().zip(&mut writer.buffers) {
            let mut tail = Buffer { block: count / column.block, ..Buffer::default() };
            for block in 0..count.div_ceil(column.block) {
                let rows = rows_in_block(column, block, count);
                let mut raw = read_block(folder, column, stored_phase, index, block, rows)?;
                if rows < column.block {
                    let beyond = raw.split_off(rows as usize * column.row_bytes());
                    if beyond.as_chunks::<8>().0.iter().any(|element| *element != PADDING) {
                        let path = chunk_path(folder, column, stored_phase, index, block);
                        disk.replace(&path, &encode_padded(&path, column, &raw)?, true)?;
                    }
                    tail.on_disk = raw.len();
                    tail.raw = raw;
                }
            }
            if stored_phase == phase {
                *buffer = tail;
            }
        }
    }
    Ok(writer)
}

/// Removes our own files that no commit speaks of.
fn clean(folder: &Path, layout: &Layout, committed: &[Committed], disk: &dyn Disk) -> Result<(), StoreError> {
    let named = |name: &str| committed.iter().any(|chain| chain.state == name);
    remove_where(disk, &folder.join(STATES), |name| name.starts_with("chain-") && !named(name))?;
    remove_where(disk, folder, |_| false)?;
    for (path, _) in &layout.tree(committed).nodes {
        remove_where(disk, &folder.join(path), |_| false)?;
    }
    for &phase in layout.phases() {
        let beyond = |column: &Column, name: &str| {
            let place = column.place(name);
            place.is_some_and(|(chain, block)| {
                committed
                    .get(chain)
                    .is_some_and(|chain| rows_in_block(column, block, chain.count(phase)) == 0)
            })
        };
        for column in &layout.columns {
            remove_where(disk, &folder.join(column.path(phase)), |name| beyond(column, name))?;
        }
        let n = n_numbered(layout, committed, phase);
        let number = |name: &str| name.strip_prefix("c.")?.parse().ok();
        for array in draw_coordinates(phase) {
            let unused = |name: &str| {
                number(name).is_some_and(|block: u64| block >= n && chunk_name(&[block]) == name)
            };
            remove_where(disk, &folder.join(array), unused)?;
        }
    }
    Ok(())
}

/// Removes temporary files, and others whose name is not wanted.
fn remove_where(disk: &dyn Disk, folder: &Path, unwanted: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(StoreError::io(folder))? {
        let path = entry.map_err(StoreError::io(folder))?.path();
        let temporary = path.extension().is_some_and(|ending| ending == TEMPORARY);
        let name = path.file_name().and_then(|name| name.to_str());
        if path.is_file() && (temporary || name.is_some_and(&unwanted)) {
            disk.remove(&path).map_err(StoreError::io(&path))?;
        }
    }
    Ok(())
}

/// Writes metadata that differ from what they should be: the root first, for it is the authority.
fn heal(folder: &Path, layout: &Layout, committed: &[Committed], disk: &dyn Disk) -> Result<(), StoreError> {
    let tree = layout.tree(committed);
    let put = |path: &Path, bytes: &[u8], durable: bool| {
        if fs::read(path).is_ok_and(|found| found == bytes) {
            return Ok(());
        }
        disk.replace(path, bytes, durable)
    };
    put(&folder.join(ROOT), &tree.to_bytes(), true)?;
    for (path, node) in &tree.nodes {
        put(&folder.join(path).join(ROOT), &node.to_bytes(), false)?;
    }
    for &phase in layout.phases() {
        for block in 0..n_numbered(layout, committed, phase) {
            // They follow from their place, so they are written again rather than checked.
            super::writer::write_draw_numbers(disk, folder, layout, phase, block)?;
        }
    }
    Ok(())
}
