//! One store of several that hold different chains of one run.

use std::path::{Path, PathBuf};

use gpssm::Phase;

use super::build::Building;
use super::chain::encode_padded;
use super::description::chain_coordinate;
use super::disk::{Disk, RealDisk};
use super::error::StoreError;
use super::files::{STATES, chunk_path, read_block, rows_in_block};
use super::layout::{Committed, Layout};
use super::reader::StoredRun;
use super::resume::{difference, n_numbered};
use super::writer::{state_bytes, write_draw_numbers};

/// Joins stores of single chains at a new place: the same bytes as if the chains had been run together.
///
/// Configuration, data, seed and version must agree, and no chain may be in two of them. The sources are left as
/// they are.
pub fn merge(sources: &[PathBuf], target: &Path) -> Result<(), StoreError> {
    merge_on(&RealDisk, sources, target)
}

pub(super) fn merge_on(disk: &dyn Disk, sources: &[PathBuf], target: &Path) -> Result<(), StoreError> {
    let runs: Vec<StoredRun> = sources.iter().map(|path| StoredRun::open(path)).collect::<Result<_, _>>()?;
    let mut chains: Vec<(u32, &StoredRun, usize)> = Vec::new();
    for run in &runs {
        chains.extend(run.layout.chains.iter().enumerate().map(|(index, id)| (*id, run, index)));
    }
    chains.sort_by_key(|(id, ..)| *id);
    if let Some(pair) = chains.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let message = format!("chain {} is also in {}", pair[1].0, pair[0].1.path().display());
        return Err(StoreError::different(pair[1].1.path(), message));
    }
    let layout = common(&runs, chains.iter().map(|(id, ..)| *id).collect())?;
    let committed: Vec<Committed> =
        chains.iter().map(|(_, run, index)| run.committed[*index].clone()).collect();
    let building = Building::new(target, &layout, &committed, disk)?;
    let fill = || -> Result<(), StoreError> {
        for (place, (_, run, index)) in chains.iter().enumerate() {
            copy(run, *index, &building.folder, place, disk)?;
        }
        for phase in [Phase::Tune, Phase::Sample] {
            for block in 0..n_numbered(&layout, &committed, phase) {
                write_draw_numbers(disk, &building.folder, &layout, phase, block)?;
            }
        }
        Ok(())
    };
    if let Err(error) = fill() {
        // Nothing is left of a store that cannot be made; what cannot be removed is removed by the next attempt.
        let _ = std::fs::remove_dir_all(&building.folder);
        return Err(error);
    }
    building.finish(disk)?;
    Ok(())
}

/// What the runs have in common, for all chains.
fn common(runs: &[StoredRun], chains: Vec<u32>) -> Result<Layout, StoreError> {
    let mut layouts = runs.iter().map(|run| (run.path(), for_chains(&run.layout, &chains)));
    let Some((_, mut first)) = layouts.next() else {
        return Err(StoreError::Description { message: "nothing to merge".into() });
    };
    let mut sets = vec![first.text("instruction_set").to_owned()];
    for (path, mut layout) in layouts {
        let set = layout.text("instruction_set").to_owned();
        layout.attributes.insert("instruction_set".into(), first.attribute("instruction_set").clone());
        if layout != first {
            return Err(StoreError::different(path, difference(&layout, &first)));
        }
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    first.attributes.insert("instruction_set".into(), sets.join("; ").into());
    Ok(first)
}

/// The layout of the same run with these chains.
fn for_chains(layout: &Layout, chains: &[u32]) -> Layout {
    let mut layout = layout.clone();
    layout.chains = chains.to_vec();
    for fixed in &mut layout.fixed {
        if let Some(group) = fixed.path.strip_suffix("/chain") {
            *fixed = chain_coordinate(group, chains);
        }
    }
    layout
}

/// Draws and state of one chain; what was written after the last commit stays behind.
fn copy(
    run: &StoredRun,
    index: usize,
    target: &Path,
    place: usize,
    disk: &dyn Disk,
) -> Result<(), StoreError> {
    for &phase in run.layout.phases() {
        let count = run.committed[index].count(phase);
        for column in &run.layout.columns {
            for block in 0..count.div_ceil(column.block) {
                let rows = rows_in_block(column, block, count);
                let raw = read_block(run.path(), column, phase, index, block, rows)?;
                let path = chunk_path(target, column, phase, place, block);
                let rows = &raw[..rows as usize * column.row_bytes()];
                let bytes = encode_padded(&path, column, rows)?;
                disk.write(&path, &bytes, true).map_err(StoreError::io(&path))?;
            }
        }
    }
    if let Some(state) = run.state(index)? {
        let bytes = state_bytes(run.layout.chains[index], &state)?;
        let path = target.join(STATES).join(&run.committed[index].state);
        disk.write(&path, &bytes, true).map_err(StoreError::io(&path))?;
    }
    Ok(())
}
