//! What a store says about its run.

use gpssm::dynamics::basis::features::BasisChoice;
use gpssm::mcmc::sink::Phase;
use gpssm::model::parameters::{ParameterPrior, ParameterTable};
use gpssm::{Points, Problem, Settings};
use serde_json::Value;

use super::codec::{integers, numbers, texts};
use super::error::StoreError;
use super::layout::{Blocks, Column, Fixed, Layout, group, sequence_coordinate};
use super::tree::{Attributes, DataType};

/// Version of the layout of files.
pub(super) const FORMAT: &str = "gpssm run, version 1";

/// A run that is to be stored.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    /// The problem, with its finite basis chosen if it has one (see [`gpssm::mcmc::start::prepare`]).
    pub problem: &'a Problem,
    /// How it is sampled.
    pub settings: &'a Settings,
    /// Model file and settings in canonical form: enough to make the problem again from the data.
    pub configuration: String,
    /// Fingerprint of the data file.
    pub data_sha256: String,
    /// Names of states, one for each.
    pub states: Vec<String>,
    /// Names of outputs.
    pub outputs: Vec<String>,
    /// Names of inputs.
    pub inputs: Vec<String>,
    /// Labels of sequences.
    pub sequences: Vec<String>,
    /// Time of every row, by sequence.
    pub time: Vec<Vec<f64>>,
    /// Chains that this store holds; all of the run's, or some of them.
    pub chains: Vec<u32>,
}

impl<'a> Description<'a> {
    /// All chains, rows numbered from 0, and names x1, y1, u1, ...
    pub fn new(problem: &'a Problem, settings: &'a Settings) -> Self {
        let names = |letter: &str, n: usize| (1..=n).map(|i| format!("{letter}{i}")).collect();
        let record = problem.record();
        let rows = record.sequences().iter().map(|sequence| sequence.n_rows());
        Self {
            problem,
            settings,
            configuration: String::new(),
            data_sha256: String::new(),
            states: names("x", problem.n_x()),
            outputs: names("y", record.n_y()),
            inputs: names("u", record.n_u()),
            sequences: names("", record.sequences().len()),
            time: rows.map(|n| (0..n).map(|t| t as f64).collect()).collect(),
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
        let names = || table.parameters.iter().map(|parameter| parameter.name.clone());
        let learned: Vec<_> = names().enumerate().filter(|(k, _)| !table.is_fixed(*k)).collect();
        let n_rows = self.n_rows();
        let columns = Column::all(&learned, n_rows as u64, self.problem.n_x() as u64, blocks);
        let attributes: [(&str, Value); 9] = [
            ("format", FORMAT.into()),
            ("inference_library", "gpssm".into()),
            ("inference_library_version", env!("CARGO_PKG_VERSION").into()),
            ("instruction_set", gpssm::linalg::instruction_set().into()),
            ("seed", self.settings.seed.into()),
            ("tuning_steps", self.settings.tune.into()),
            ("data_sha256", self.data_sha256.clone().into()),
            ("parameters", names().collect()),
            ("configuration", self.configuration.clone().into()),
        ];
        let mut layout = Layout {
            attributes: attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
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
                self.time_of(&posterior),
                self.sequence_of(&posterior),
                coordinate(&posterior, "state", &self.states),
                chain_coordinate(&group(phase, "sample_stats"), &self.chains),
            ]);
        }
        self.add_data(&mut layout, n_rows);
        self.add_scaling(&mut layout);
        self.add_basis(&mut layout);
        self.add_known_parameters(&mut layout, table)?;
        Ok(layout)
    }

    fn check(&self) -> Result<(), StoreError> {
        let refuse = |message: String| Err(StoreError::Description { message });
        let record = self.problem.record();
        for (what, given, expected) in [
            ("names of states", self.states.len(), self.problem.n_x()),
            ("names of outputs", self.outputs.len(), record.n_y()),
            ("names of inputs", self.inputs.len(), record.n_u()),
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
        self.problem.table().parameters.iter().try_for_each(|parameter| check_name(&parameter.name))
    }

    fn time_of(&self, group: &str) -> Fixed {
        let time = self.time.concat();
        Fixed::new(format!("{group}/time"), DataType::Float64, &[("time", time.len())], numbers(time))
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
            fixed.array.attributes = sequence_coordinate();
            fixed
        };
        let observed = "observed_data";
        layout.fixed.extend([
            self.time_of(observed),
            self.sequence_of(observed),
            coordinate(observed, "output", &self.outputs),
            rows_of("observed_data/y", "output", self.outputs.len(), numbers(y)),
        ]);
        let constant = "constant_data";
        layout.fixed.extend([
            self.time_of(constant),
            self.sequence_of(constant),
            coordinate(constant, "state", &self.states),
            coordinate(constant, "output", &self.outputs),
        ]);
        if !self.inputs.is_empty() {
            layout.fixed.push(coordinate(constant, "input", &self.inputs));
            layout.fixed.push(rows_of("constant_data/u", "input", self.inputs.len(), numbers(u)));
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
        let components: Vec<String> = self.states.iter().chain(&self.inputs).cloned().collect();
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

    /// Parameters that are not learned are data.
    fn add_known_parameters(&self, layout: &mut Layout, table: &ParameterTable) -> Result<(), StoreError> {
        for parameter in &table.parameters {
            let value = match &parameter.prior {
                ParameterPrior::Scalar(prior) => prior.fixed_value(),
                ParameterPrior::Scale(prior) => prior.fixed_sd(),
                ParameterPrior::Matrix { .. } => None,
            };
            let Some(value) = value else { continue };
            let fixed = constant(&parameter.name, &[], &[value]);
            if layout.fixed.iter().any(|other| other.path == fixed.path) {
                let message = "this name is taken by a constant of the store";
                return Err(StoreError::Name { name: parameter.name.clone(), message });
            }
            layout.fixed.push(fixed);
        }
        Ok(())
    }
}

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

/// A parameter's name is the name of a folder and of a variable beside the states and the coordinates.
pub(super) fn check_name(name: &str) -> Result<(), StoreError> {
    let refuse = |message| Err(StoreError::Name { name: name.to_owned(), message });
    if ["x", "chain", "draw", "time", "state", "sequence"].contains(&name) {
        return refuse("this name is taken in the store");
    }
    let strange = |c: char| c.is_control() || "/\\:*?\"<>|".contains(c);
    if name.chars().any(strange) {
        return refuse("names must not contain any of / \\ : * ? \" < > |");
    }
    if name.trim() != name || name.is_empty() || name.starts_with("__") || name.ends_with('.') {
        return refuse("names must not be empty, begin with __ or a space, or end with a dot or a space");
    }
    if name.len() > 200 {
        return refuse("names must be shorter than 200 bytes");
    }
    Ok(())
}

/// Phases in words.
pub(super) fn in_words(phase: Phase) -> &'static str {
    if phase == Phase::Sample { "draw" } else { "warm-up sweep" }
}
