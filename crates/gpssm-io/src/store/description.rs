//! What a store says about its run.

use gpssm::dynamics::BasisChoice;
use gpssm::model::{Names, ParameterTable};
use gpssm::{Phase, Points, Problem, Record, Settings};
use serde_json::Value;

use super::codec::{integers, numbers, texts};
use super::error::StoreError;
use super::layout::{Blocks, Column, Fixed, Layout, group, row_coordinates};
use super::parameters::{Dimension, ParameterArray};
use super::tree::{Attributes, DataType};
use crate::table::Dates;

/// Version of the layout of files.
pub(super) const FORMAT: &str = "gpssm run, version 2";

/// A run that is to be stored.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    /// The problem, with its finite basis chosen if it has one (see [`gpssm::prepare`]).
    pub problem: &'a Problem,
    /// How it is sampled.
    pub settings: &'a Settings,
    /// Model file and settings in canonical form: enough to make the problem again from the data.
    pub configuration: String,
    /// Fingerprint of the data file.
    pub data_sha256: String,
    /// Labels of sequences.
    pub sequences: Vec<String>,
    /// Time of every row, by sequence.
    pub time: Vec<Vec<f64>>,
    /// The record as it was measured, where the model sees another: lagged inputs, or not every row.
    pub measured: Option<&'a Record>,
    /// Dates behind the times, where they count seconds since one.
    pub dates: Option<Dates>,
    /// Chains that this store holds; all of the run's, or some of them.
    pub chains: Vec<u32>,
}

impl<'a> Description<'a> {
    /// All chains, rows and sequences numbered, and the model's names.
    pub fn new(problem: &'a Problem, settings: &'a Settings) -> Self {
        let record = problem.record();
        let rows = record.sequences().iter().map(|sequence| sequence.n_rows());
        Self {
            problem,
            settings,
            configuration: String::new(),
            data_sha256: String::new(),
            sequences: (1..=record.sequences().len()).map(|s| s.to_string()).collect(),
            time: rows.map(|n| (0..n).map(|t| t as f64).collect()).collect(),
            measured: None,
            dates: None,
            chains: (0..settings.chains).collect(),
        }
    }

    pub(super) fn layout(&self) -> Result<Layout, StoreError> {
        self.layout_with(Blocks::new(self.n_rows(), self.problem.n_x()))
    }

    fn n_rows(&self) -> usize {
        self.time.iter().map(Vec::len).sum()
    }

    pub(super) fn layout_with(&self, blocks: Blocks) -> Result<Layout, StoreError> {
        self.check()?;
        let table = self.problem.table();
        let names = table.parameters.iter().map(|parameter| parameter.name.clone());
        let learned = ParameterArray::all(table, true);
        let n_rows = self.n_rows();
        let columns = Column::all(&learned, n_rows as u64, self.problem.n_x() as u64, blocks);
        let attributes: [(&str, Value); 9] = [
            ("format", FORMAT.into()),
            ("inference_library", "gpssm".into()),
            ("inference_library_version", env!("CARGO_PKG_VERSION").into()),
            ("instruction_set", gpssm::linalg::instruction_set().into()),
            ("seed", self.settings.seed.into()),
            // The iterations of a point estimate are no draws.
            ("tuning_steps", if self.settings.point { 0 } else { self.settings.tune }.into()),
            ("data_sha256", self.data_sha256.clone().into()),
            ("parameters", names.collect()),
            ("configuration", self.configuration.clone().into()),
        ];
        let mut attributes: Attributes =
            attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        if let Some(Ok(dates)) = self.dates.as_ref().map(serde_json::to_value) {
            attributes.insert("dates".to_owned(), dates);
        }
        let mut layout = Layout {
            attributes,
            chains: self.chains.clone(),
            constants: Attributes::new(),
            fixed: Vec::new(),
            columns,
            blocks,
        };
        for &phase in layout.phases() {
            let posterior = group(phase, "posterior");
            layout.fixed.extend([
                chain_coordinate(&posterior, &self.chains),
                self.index_of(&posterior),
                coordinate(&posterior, "state", &self.names().states),
            ]);
            layout.add_coordinates(&posterior, &learned);
            layout.fixed.push(chain_coordinate(&group(phase, "sample_stats"), &self.chains));
        }
        self.add_data(&mut layout, n_rows);
        self.measured.iter().for_each(|record| add_measured(&mut layout, record));
        self.add_scaling(&mut layout);
        self.add_basis(&mut layout);
        self.add_known_parameters(&mut layout, table);
        Ok(layout)
    }

    /// Names of states, inputs and outputs.
    fn names(&self) -> &Names {
        &self.problem.table().names
    }

    /// Parameters that are not learned are data.
    fn add_known_parameters(&self, layout: &mut Layout, table: &ParameterTable) {
        let known = ParameterArray::all(table, false);
        layout.add_coordinates("constant_data", &known);
        for array in known {
            let values: Vec<f64> = array.places.iter().filter_map(|&k| table.fixed_value(k)).collect();
            let dims: Vec<_> = array.dims.iter().map(|dim| (dim.name.as_str(), dim.labels.len())).collect();
            let mut fixed = constant(&array.name, &dims, &values);
            fixed.array.attributes = array.attributes();
            layout.fixed.push(fixed);
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        let refuse = |message: String| Err(StoreError::Description { message });
        let record = self.problem.record();
        for (what, given, expected) in [
            ("labels of sequences", self.sequences.len(), record.sequences().len()),
            ("sequences of times", self.time.len(), record.sequences().len()),
        ] {
            if given != expected {
                return refuse(format!("{given} {what} where {expected} are needed"));
            }
        }
        for (s, (time, sequence)) in self.time.iter().zip(record.sequences()).enumerate() {
            if time.len() != sequence.n_rows() {
                let label = &self.sequences[s];
                return refuse(format!(
                    "sequence {label}: {} times for {} rows",
                    time.len(),
                    sequence.n_rows()
                ));
            }
        }
        let increasing = self.chains.windows(2).all(|pair| pair[0] < pair[1]);
        if self.chains.is_empty() || !increasing || self.chains.iter().any(|id| *id >= self.settings.chains) {
            return refuse(format!(
                "chains {:?} are not an increasing list of numbers below {}",
                self.chains, self.settings.chains
            ));
        }
        Ok(())
    }

    /// The time of every row where that tells rows apart, else their numbers: ArviZ needs an index without
    /// repetitions.
    fn index_of(&self, group: &str) -> Fixed {
        let time = self.time.concat();
        let mut sorted = time.clone();
        sorted.sort_by(f64::total_cmp);
        let tells = sorted.windows(2).all(|pair| pair[0] < pair[1]);
        let index = if tells { time } else { (0..time.len()).map(|row| row as f64).collect() };
        let dims = [("time", index.len())];
        let mut fixed = Fixed::new(format!("{group}/time"), DataType::Float64, &dims, numbers(index));
        if tells {
            fixed.array.attributes = self.unit_of_time();
        }
        fixed
    }

    fn time_of(&self, group: &str) -> Fixed {
        let time = self.time.concat();
        let dims = [("time", time.len())];
        let mut fixed = Fixed::new(format!("{group}/time_value"), DataType::Float64, &dims, numbers(time));
        fixed.array.attributes = self.unit_of_time();
        fixed
    }

    /// Attributes by which xarray makes dates of times (CF conventions).
    fn unit_of_time(&self) -> Attributes {
        let words = self.dates.iter().flat_map(|dates| {
            let unit = format!("seconds since {}", dates.origin.replace('T', " "));
            [("units", unit), ("calendar", "proleptic_gregorian".to_owned())]
        });
        words.map(|(name, word)| (name.to_owned(), Value::from(word))).collect()
    }

    fn sequence_of(&self, group: &str) -> Fixed {
        let labels = self.sequences.iter().zip(&self.time);
        let labels: Vec<&str> =
            labels.flat_map(|(label, time)| std::iter::repeat_n(label.as_str(), time.len())).collect();
        let dims = [("time", labels.len())];
        Fixed::new(format!("{group}/sequence"), DataType::Text, &dims, texts(labels))
    }

    fn add_data(&self, layout: &mut Layout, n_rows: usize) {
        let sequences = || self.problem.record().sequences().iter();
        let y = sequences().flat_map(|sequence| (0..sequence.n_rows()).flat_map(|t| sequence.y(t).to_vec()));
        let u = sequences().flat_map(|sequence| (0..sequence.n_rows()).flat_map(|t| sequence.u(t).to_vec()));
        let rows_of = |path: &str, name, n: usize, values: Vec<u8>| {
            let mut fixed =
                Fixed::new(path.to_owned(), DataType::Float64, &[("time", n_rows), (name, n)], values);
            fixed.array.attributes = row_coordinates();
            fixed
        };
        let observed = "observed_data";
        layout.fixed.extend([
            self.index_of(observed),
            self.time_of(observed),
            self.sequence_of(observed),
            coordinate(observed, "output", &self.names().outputs),
            rows_of("observed_data/y", "output", self.names().outputs.len(), numbers(y)),
        ]);
        let constant = "constant_data";
        layout.fixed.extend([
            self.index_of(constant),
            self.time_of(constant),
            self.sequence_of(constant),
            coordinate(constant, "state", &self.names().states),
            coordinate(constant, "output", &self.names().outputs),
        ]);
        if !self.names().inputs.is_empty() {
            layout.fixed.push(coordinate(constant, "input", &self.names().inputs));
            layout.fixed.push(rows_of("constant_data/u", "input", self.names().inputs.len(), numbers(u)));
        }
        let starts = self.time.iter().scan(0, |at, time| {
            *at += time.len();
            Some((*at - time.len()) as i64)
        });
        let dims = [("sequence_index", self.time.len())];
        let path = "constant_data/sequence_first_row".to_owned();
        layout.fixed.push(Fixed::new(path, DataType::Int64, &dims, integers(starts)));
    }

    /// original = shift + scale * internal.
    fn add_scaling(&self, layout: &mut Layout) {
        let scaling = self.problem.scaling();
        for (letter, dim, affine) in
            [("x", "state", &scaling.x), ("y", "output", &scaling.y), ("u", "input", &scaling.u)]
        {
            for (name, values) in [("shift", &affine.shift), ("scale", &affine.scale)] {
                if !values.is_empty() {
                    layout.fixed.push(constant(&format!("{letter}_{name}"), &[(dim, values.len())], values));
                }
            }
        }
    }

    /// The finite basis: in internal units to the last bit, inducing inputs in original units as well.
    fn add_basis(&self, layout: &mut Layout) {
        let components = self.names().components();
        let n_z = components.len();
        let rows = |points: &Points| -> Vec<f64> { (0..points.len()).flat_map(|i| points.row(i)).collect() };
        let kind = match self.problem.basis() {
            None => "none",
            Some(BasisChoice::Fic(points) | BasisChoice::Dtc(points)) => {
                let dims = [("inducing", points.len()), ("component", n_z)];
                let original = self.problem.scaling().points_to_original(points);
                layout.fixed.push(constant("inducing_inputs", &dims, &rows(&original)));
                layout.fixed.push(constant("inducing_inputs_internal", &dims, &rows(points)));
                if matches!(self.problem.basis(), Some(BasisChoice::Fic(_))) { "fic" } else { "dtc" }
            }
            Some(BasisChoice::Hilbert(choice)) => {
                let dims = [("component", n_z)];
                layout.fixed.push(constant("box_center_internal", &dims, &choice.center));
                layout.fixed.push(constant("box_half_width_internal", &dims, &choice.half_width));
                let count = integers([choice.n_functions as i64]);
                let path = "constant_data/basis_functions".to_owned();
                layout.fixed.push(Fixed::new(path, DataType::Int64, &[], count));
                "hilbert"
            }
            Some(BasisChoice::Fourier(choice)) => {
                let n = choice.radii.len();
                let dims = [("frequency", n), ("component", choice.n_components)];
                layout.fixed.push(constant("frequency_directions", &dims, &choice.directions));
                let dims = [("frequency", n), ("radius", 5)];
                layout.fixed.push(constant("frequency_radii", &dims, choice.radii.as_flattened()));
                "fourier"
            }
        };
        if kind != "none" {
            layout.fixed.push(coordinate("constant_data", "component", &components));
        }
        layout.constants.insert("basis".into(), kind.into());
    }
}

/// Every row as it was measured, for free runs that go on from the end of the record, and for baselines.
fn add_measured(layout: &mut Layout, record: &Record) {
    let rows = || record.sequences().iter().flat_map(|s| (0..s.n_rows()).map(move |t| (s, t)));
    let n_rows = rows().count();
    let y: Vec<f64> = rows().flat_map(|(s, t)| s.y(t).to_vec()).collect();
    let u: Vec<f64> = rows().flat_map(|(s, t)| s.u(t).to_vec()).collect();
    layout.fixed.push(constant("measured_y", &[("measured_row", n_rows), ("output", record.n_y())], &y));
    if record.n_u() > 0 {
        let dims = [("measured_row", n_rows), ("measured_input", record.n_u())];
        layout.fixed.push(constant("measured_u", &dims, &u));
    }
    let lengths = record.sequences().iter().map(|s| s.n_rows() as i64);
    let dims = [("sequence_index", record.sequences().len())];
    let path = "constant_data/measured_rows".to_owned();
    layout.fixed.push(Fixed::new(path, DataType::Int64, &dims, integers(lengths)));
}

/// An array that names what its only dimension runs over.
fn coordinate(group: &str, name: &str, values: &[String]) -> Fixed {
    let raw = texts(values.iter().map(String::as_str));
    Fixed::new(format!("{group}/{name}"), DataType::Text, &[(name, values.len())], raw)
}

pub(super) fn chain_coordinate(group: &str, chains: &[u32]) -> Fixed {
    let raw = integers(chains.iter().map(|id| i64::from(*id)));
    Fixed::new(format!("{group}/chain"), DataType::Int64, &[("chain", chains.len())], raw)
}

fn constant(name: &str, dims: &[(&str, usize)], values: &[f64]) -> Fixed {
    Fixed::new(format!("constant_data/{name}"), DataType::Float64, dims, numbers(values.iter().copied()))
}

impl Layout {
    /// Coordinates of a group that these arrays need and that are not there yet.
    fn add_coordinates(&mut self, group: &str, arrays: &[ParameterArray]) {
        for Dimension { name, labels } in arrays.iter().flat_map(|array| &array.dims) {
            if self.raw(&format!("{group}/{name}")).is_none() {
                self.fixed.push(coordinate(group, name, labels));
            }
        }
    }
}

/// Phases in words.
pub(super) fn describe(phase: Phase) -> &'static str {
    if phase == Phase::Sample { "draw" } else { "warm-up sweep" }
}
