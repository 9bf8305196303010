//! Reading a run, also while another process writes it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpssm::dynamics::{BasisChoice, FourierChoice, HilbertChoice};
use gpssm::mcmc::{ChainDraws, ChainState, SweepInfo};
use gpssm::scaling::{Affine, Scaling};
use gpssm::{Phase, Points, Record, Sequence};

use super::codec::to_numbers;
use super::error::StoreError;
use super::files::{ROOT, read_block, read_root, read_state, rows_in_block};
use super::layout::{Column, Committed, Layout, Source};
use super::statistics::FIELDS;
use crate::table::Dates;

/// A run as it was at the last commit before it was opened.
///
/// Whatever is read is checked; a chunk that is missing or damaged is an error that names its file.
#[derive(Clone, Debug)]
pub struct StoredRun {
    pub(super) folder: PathBuf,
    pub(super) layout: Layout,
    pub(super) committed: Vec<Committed>,
    pub(super) record: Record,
}

/// How much of a chain there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLength {
    /// Its number.
    pub chain: u32,
    /// Warm-up sweeps.
    pub warmup: u64,
    /// Draws.
    pub draws: u64,
}

impl StoredRun {
    /// Opens a run; draws are read later.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (layout, committed) = read_root(path)?;
        let record = record(&layout)
            .ok_or_else(|| StoreError::damaged(&path.join(ROOT), "the record does not fit together"))?;
        if layout.integers("constant_data/measured_rows").is_some() && measured(&layout).is_none() {
            let message = "the measured record does not fit together";
            return Err(StoreError::damaged(&path.join(ROOT), message));
        }
        let run = Self { folder: path.to_path_buf(), layout, committed, record };
        // Constants that make no sense are found here rather than later.
        run.known_theta().zip(run.find_scaling()).zip(run.find_basis()).map(|_| ()).ok_or_else(|| {
            StoreError::damaged(&path.join(ROOT), "constants of the run do not fit together")
        })?;
        Ok(run)
    }

    /// Opens a run and keeps of each chain as much as is whole: the longest run of draws from the first one on
    /// that are all there. Says for each cut what is wrong and what is left.
    pub fn open_prefix(path: &Path) -> Result<(Self, Vec<String>), StoreError> {
        let mut run = Self::open(path)?;
        let mut cuts = Vec::new();
        for (index, id) in run.layout.chains.clone().into_iter().enumerate() {
            for &phase in run.layout.phases() {
                let count = run.committed[index].count(phase);
                let Some((whole, error)) = run.first_damage(index, phase) else { continue };
                let what = if phase == Phase::Sample { "draws" } else { "warm-up sweeps" };
                cuts.push(format!("{error}; of chain {id} the first {whole} of {count} {what} are whole"));
                match phase {
                    Phase::Sample => run.committed[index].draws = whole,
                    _ => run.committed[index].warmup = whole,
                }
            }
        }
        Ok((run, cuts))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Model file and settings in canonical form.
    pub fn configuration(&self) -> &str {
        self.layout.text("configuration")
    }

    /// Fingerprint of the data file.
    pub fn data_sha256(&self) -> &str {
        self.layout.text("data_sha256")
    }

    /// Version of gpssm that began the run.
    pub fn version(&self) -> &str {
        self.layout.text("inference_library_version")
    }

    /// Instruction set of the machine that began the run.
    pub fn instruction_set(&self) -> &str {
        self.layout.text("instruction_set")
    }

    /// Seed of the run.
    pub fn seed(&self) -> u64 {
        self.layout.attribute("seed").as_u64().unwrap_or(0)
    }

    /// Warm-up sweeps of each chain of the run.
    pub fn tune(&self) -> u64 {
        self.layout.attribute("tuning_steps").as_u64().unwrap_or(0)
    }

    /// Names of the hyper-parameters, in the order of theta.
    pub fn parameters(&self) -> Vec<&str> {
        let names = self.layout.attribute("parameters").as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str()).collect()
    }

    /// Names of states.
    pub fn states(&self) -> Vec<String> {
        self.layout.texts("constant_data/state").unwrap_or_default()
    }

    /// Names of outputs.
    pub fn outputs(&self) -> Vec<String> {
        self.layout.texts("constant_data/output").unwrap_or_default()
    }

    /// Names of inputs.
    pub fn inputs(&self) -> Vec<String> {
        self.layout.texts("constant_data/input").unwrap_or_default()
    }

    /// Labels of sequences.
    pub fn sequences(&self) -> Vec<String> {
        let labels = self.layout.texts("constant_data/sequence").unwrap_or_default();
        self.rows().into_iter().filter_map(|rows| labels.get(rows.start).cloned()).collect()
    }

    /// Time of every row, by sequence.
    pub fn time(&self) -> Vec<Vec<f64>> {
        let time = self.layout.numbers("constant_data/time_value").unwrap_or_default();
        self.rows().into_iter().filter_map(|rows| time.get(rows).map(<[f64]>::to_vec)).collect()
    }

    /// Dates behind the times, where they count seconds since one.
    pub fn dates(&self) -> Option<Dates> {
        serde_json::from_value(self.layout.attribute("dates").clone()).ok()
    }

    /// The record as the model sees it.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// What was measured, where the model sees another record: lagged inputs, or not every row.
    pub fn measured(&self) -> Option<Record> {
        measured(&self.layout)
    }

    /// Internal and original units.
    pub fn scaling(&self) -> Scaling {
        self.find_scaling().unwrap_or_else(|| Scaling::identity(0, 0, 0))
    }

    /// The finite basis, if the run has one.
    pub fn basis(&self) -> Option<BasisChoice> {
        self.find_basis().flatten()
    }

    /// The chains and how long they are.
    pub fn chains(&self) -> Vec<ChainLength> {
        let chains = self.layout.chains.iter().zip(&self.committed);
        chains.map(|(&chain, c)| ChainLength { chain, warmup: c.warmup, draws: c.draws }).collect()
    }

    /// State of the chain at place `index` at the last commit; none if it has not begun. A process that writes at
    /// the same time may have replaced it: then open the run again.
    pub fn state(&self, index: usize) -> Result<Option<ChainState>, StoreError> {
        read_state(&self.folder, self.layout.chains[index], &self.committed[index])
    }

    /// Draws of the chain at place `index`, or its warm-up.
    pub fn draws(&self, index: usize, phase: Phase) -> Result<ChainDraws, StoreError> {
        self.draws_in(index, phase, 0..self.committed[index].count(phase))
    }

    /// Some draws of the chain at place `index`: only what is needed is read.
    pub fn draws_in(&self, index: usize, phase: Phase, range: Range<u64>) -> Result<ChainDraws, StoreError> {
        let (theta, info) = self.theta_in(index, phase, range.clone())?;
        let x = self.layout.columns.iter().find(|column| column.source == Source::Paths);
        let mut paths = Vec::with_capacity(theta.len());
        if let Some(column) = x {
            let n_x = self.states().len();
            let rows = self.rows();
            self.each_row(column, phase, index, range, |bytes| {
                let x = to_numbers(bytes);
                paths.push(rows.iter().map(|rows| x[rows.start * n_x..rows.end * n_x].to_vec()).collect());
            })?;
        }
        Ok(ChainDraws { theta, paths, info })
    }

    /// Hyper-parameters and statistics of some draws, without the states.
    pub fn theta_in(
        &self,
        index: usize,
        phase: Phase,
        range: Range<u64>,
    ) -> Result<(Vec<Vec<f64>>, Vec<SweepInfo>), StoreError> {
        let range = range.start..range.end.min(self.committed[index].count(phase));
        let known = self.known_theta().unwrap_or_default();
        let (mut theta, mut info) = (Vec::new(), Vec::new());
        for column in self.layout.columns.iter().filter(|column| column.source != Source::Paths) {
            let mut row = 0;
            self.each_row(column, phase, index, range.clone(), |bytes| {
                if theta.len() == row {
                    theta.push(known.clone());
                    info.push(SweepInfo::default());
                }
                for (i, value) in bytes.as_chunks::<8>().0.iter().enumerate() {
                    match &column.source {
                        Source::Theta(places) => theta[row][places[i]] = f64::from_le_bytes(*value),
                        Source::Info(field) => (FIELDS[*field].set)(&mut info[row], *value),
                        Source::LogJoint | Source::Paths => {}
                    }
                }
                row += 1;
            })?;
        }
        Ok((theta, info))
    }

    /// Calls `f` with the bytes of each draw of an array.
    fn each_row(
        &self,
        column: &Column,
        phase: Phase,
        index: usize,
        range: Range<u64>,
        mut f: impl FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let count = self.committed[index].count(phase).min(range.end);
        if range.start >= count {
            return Ok(());
        }
        for block in range.start / column.block..count.div_ceil(column.block) {
            let rows = rows_in_block(column, block, count);
            let raw = read_block(&self.folder, column, phase, index, block, rows)?;
            let skip = range.start.saturating_sub(block * column.block);
            let bytes = column.row_bytes();
            raw[skip as usize * bytes..rows as usize * bytes].chunks_exact(bytes).for_each(&mut f);
        }
        Ok(())
    }

    /// Draws of a chain before its first damage, and the damage.
    fn first_damage(&self, index: usize, phase: Phase) -> Option<(u64, StoreError)> {
        let count = self.committed[index].count(phase);
        let mut first: Option<(u64, StoreError)> = None;
        for column in &self.layout.columns {
            for block in 0..count.div_ceil(column.block) {
                let rows = rows_in_block(column, block, count);
                if let Err(error) = read_block(&self.folder, column, phase, index, block, rows) {
                    let whole = block * column.block;
                    if first.as_ref().is_none_or(|(least, _)| whole < *least) {
                        first = Some((whole, error));
                    }
                    break;
                }
            }
        }
        first
    }

    /// Rows of each sequence.
    fn rows(&self) -> Vec<Range<usize>> {
        rows(&self.layout).unwrap_or_default()
    }

    /// Theta with the entries that are not learned; zero for the others.
    fn known_theta(&self) -> Option<Vec<f64>> {
        let mut theta = vec![0.0; self.parameters().len()];
        for (k, value) in self.layout.known()? {
            *theta.get_mut(k)? = value;
        }
        Some(theta)
    }

    fn find_scaling(&self) -> Option<Scaling> {
        let affine = |letter: &str, n: usize| {
            let part = |name: &str| {
                let values = self.layout.numbers(&format!("constant_data/{letter}_{name}"));
                values.or((n == 0).then(Vec::new)).filter(|values| values.len() == n)
            };
            Some(Affine { shift: part("shift")?, scale: part("scale")? })
        };
        Some(Scaling {
            x: affine("x", self.states().len())?,
            u: affine("u", self.inputs().len())?,
            y: affine("y", self.outputs().len())?,
        })
    }

    /// None if there is something wrong with it.
    fn find_basis(&self) -> Option<Option<BasisChoice>> {
        let n_z = self.states().len() + self.inputs().len();
        let numbers = |name: &str| self.layout.numbers(&format!("constant_data/{name}"));
        let points = || {
            let values = numbers("inducing_inputs_internal")?;
            let whole = !values.is_empty() && values.len().is_multiple_of(n_z);
            whole.then(|| Arc::new(Points::from_rows(n_z, values.chunks_exact(n_z))))
        };
        Some(match self.layout.constants.get("basis")?.as_str()? {
            "none" => None,
            "fic" => Some(BasisChoice::Fic(points()?)),
            "dtc" => Some(BasisChoice::Dtc(points()?)),
            "hilbert" => {
                let (center, half_width) =
                    (numbers("box_center_internal")?, numbers("box_half_width_internal")?);
                let count = self.layout.integers("constant_data/basis_functions")?;
                let n_functions = usize::try_from(*count.first()?).ok()?;
                if [center.len(), half_width.len()] != [n_z; 2] {
                    return None;
                }
                Some(BasisChoice::Hilbert(Arc::new(HilbertChoice::new(center, half_width, n_functions))))
            }
            "fourier" => {
                let (directions, radii) = (numbers("frequency_directions")?, numbers("frequency_radii")?);
                let (radii, rest) = radii.as_chunks::<5>();
                if !rest.is_empty() || directions.len() != radii.len() * n_z {
                    return None;
                }
                let radii = radii.to_vec();
                Some(BasisChoice::Fourier(Arc::new(FourierChoice { directions, radii, n_components: n_z })))
            }
            _ => return None,
        })
    }
}

/// Rows of each sequence, if they fit together.
fn rows(layout: &Layout) -> Option<Vec<Range<usize>>> {
    let n_rows = layout.numbers("constant_data/time_value")?.len();
    let starts = layout.integers("constant_data/sequence_first_row")?;
    let mut starts: Vec<usize> =
        starts.into_iter().map(|start| usize::try_from(start).ok()).collect::<Option<_>>()?;
    starts.push(n_rows);
    let fit = starts.first() == Some(&0) && starts.windows(2).all(|pair| pair[0] < pair[1]);
    fit.then(|| starts.windows(2).map(|pair| pair[0]..pair[1]).collect())
}

/// The record, if it fits together.
fn record(layout: &Layout) -> Option<Record> {
    let n_y = layout.texts("constant_data/output")?.len();
    let n_x = layout.texts("constant_data/state")?.len();
    let n_u = layout.texts("constant_data/input").unwrap_or_default().len();
    let y = layout.numbers("observed_data/y")?;
    let u = layout.numbers("constant_data/u").unwrap_or_default();
    let rows = rows(layout)?;
    let x = layout.columns.iter().find(|column| column.source == Source::Paths)?;
    let n_rows = rows.last()?.end;
    if x.row_bytes() != 8 * n_rows * n_x || layout.texts("constant_data/sequence")?.len() != n_rows {
        return None;
    }
    let sequence = |rows: &Range<usize>| {
        let y = y.get(rows.start * n_y..rows.end * n_y)?.to_vec();
        let u = u.get(rows.start * n_u..rows.end * n_u)?.to_vec();
        Sequence::from_flat(y, n_y, u, n_u).ok()
    };
    Record::new(rows.iter().map(sequence).collect::<Option<_>>()?).ok()
}

/// The record as it was measured, if it is there and fits together.
fn measured(layout: &Layout) -> Option<Record> {
    let lengths = layout.integers("constant_data/measured_rows")?;
    let y = layout.numbers("constant_data/measured_y")?;
    let u = layout.numbers("constant_data/measured_u").unwrap_or_default();
    let n_y = layout.texts("constant_data/output")?.len();
    let n_rows = y.len() / n_y.max(1);
    let n_u = u.len() / n_rows.max(1);
    let mut from = 0;
    let mut sequences = Vec::new();
    for length in lengths {
        let to = from + usize::try_from(length).ok()?;
        let (y, u) = (y.get(from * n_y..to * n_y)?, u.get(from * n_u..to * n_u)?);
        sequences.push(Sequence::from_flat(y.to_vec(), n_y, u.to_vec(), n_u).ok()?);
        from = to;
    }
    Record::new(sequences).ok().filter(|_| from == n_rows)
}
