//! Which arrays a run has, and how long they are.

use std::path::Path;

use gpssm::Phase;
use serde_json::Value;

use super::codec;
use super::description::FORMAT;
use super::error::StoreError;
use super::parameters::{self, ParameterArray};
use super::statistics::FIELDS;
use super::tree::{Array, Attributes, DataType, Node, Tree, texts};

/// Draws in a chunk of an array with one number for each draw.
const BLOCK: u64 = 1024;
/// Size of a chunk of paths before compression, as long as a single path is not larger.
const CHUNK_BYTES: u64 = 1 << 20;
/// Attributes of the root that change with every commit.
const COMMIT: [&str; 3] = ["committed_warmup", "committed_draws", "chain_states"];

/// Groups with draws.
const GROUPS: [&str; 2] = ["posterior", "sample_stats"];

/// What an array of draws holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Hyper-parameters, by their places in theta.
    Theta(Vec<usize>),
    /// The states.
    Paths,
    /// A field of [`FIELDS`].
    Info(usize),
    /// The log density under the name that ArviZ has for it.
    LogJoint,
}

impl Source {
    fn n_places(&self) -> Option<usize> {
        match self {
            Self::Theta(places) => Some(places.len()),
            _ => None,
        }
    }
}

/// An array with dimensions (chain, draw, ...), once for warm-up and once for kept draws.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    group: &'static str,
    name: String,
    data_type: DataType,
    /// Dimensions beyond chain and draw.
    rest: Vec<(String, u64)>,
    /// Draws in a chunk.
    pub block: u64,
    pub source: Source,
    attributes: Attributes,
}

/// An array that is written once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fixed {
    pub path: String,
    pub array: Array,
    /// Bytes of its elements, all in one chunk.
    pub raw: Vec<u8>,
}

/// Everything about a run that does not grow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    /// Attributes of the run.
    pub attributes: Attributes,
    /// Chains in this store, in order.
    pub chains: Vec<u32>,
    /// Attributes of the group of constants.
    pub constants: Attributes,
    pub fixed: Vec<Fixed>,
    pub columns: Vec<Column>,
    pub blocks: Blocks,
}

/// How much of a chain is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Committed {
    pub warmup: u64,
    pub draws: u64,
    /// File of the chain's state; empty before the first sweep.
    pub state: String,
}

impl Committed {
    pub(super) fn count(&self, phase: Phase) -> u64 {
        if phase == Phase::Sample { self.draws } else { self.warmup }
    }
}

/// The group of a phase.
pub(super) fn group(phase: Phase, name: &str) -> String {
    if phase == Phase::Sample { name.to_owned() } else { format!("warmup_{name}") }
}

/// Arrays of draw numbers; one for each group with draws.
pub(super) fn draw_coordinates(phase: Phase) -> [String; 2] {
    GROUPS.map(|name| format!("{}/draw", group(phase, name)))
}

/// Name of a chunk's file.
pub(super) fn chunk_name(indices: &[u64]) -> String {
    indices.iter().fold("c".to_owned(), |name, i| format!("{name}.{i}"))
}

/// Draws in a chunk. They depend on the size of a path only, not on how many draws are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// Of an array with one number for each draw.
    pub scalars: u64,
    /// Of the array of paths.
    pub paths: u64,
}

impl Blocks {
    /// As many paths as fit in a chunk, as a power of two.
    pub(super) fn new(n_rows: usize, n_x: usize) -> Self {
        let fit = CHUNK_BYTES / (8 * n_rows * n_x).max(1) as u64;
        let paths = fit.clamp(1, BLOCK).checked_ilog2().map_or(1, |power| 1 << power);
        Self { scalars: BLOCK, paths }
    }
}

impl Column {
    fn new(group: &'static str, name: &str, data_type: DataType, block: u64, source: Source) -> Self {
        let (name, rest, attributes) = (name.to_owned(), Vec::new(), Attributes::new());
        Self { group, name, data_type, rest, block, source, attributes }
    }

    /// All arrays of draws: learned parameters, states, statistics.
    pub(super) fn all(learned: &[ParameterArray], n_rows: u64, n_x: u64, blocks: Blocks) -> Vec<Self> {
        let theta = learned.iter().map(|array| {
            let rest = array.dims.iter().map(|dim| (dim.name.clone(), dim.labels.len() as u64));
            Self::theta(&array.name, rest.collect(), array.places.clone(), array.attributes(), blocks)
        });
        theta.chain(Self::others(n_rows, n_x, blocks)).collect()
    }

    fn theta(
        name: &str,
        rest: Vec<(String, u64)>,
        places: Vec<usize>,
        attributes: Attributes,
        blocks: Blocks,
    ) -> Self {
        let column = Self::new("posterior", name, DataType::Float64, blocks.scalars, Source::Theta(places));
        Self { rest, attributes, ..column }
    }

    /// Arrays that every run has.
    fn others(n_rows: u64, n_x: u64, blocks: Blocks) -> impl Iterator<Item = Self> {
        let number = DataType::Float64;
        let x = Self {
            rest: vec![("time".to_owned(), n_rows), ("state".to_owned(), n_x)],
            ..Self::new("posterior", "x", number, blocks.paths, Source::Paths)
        };
        let statistic =
            move |name, data_type, source| Self::new("sample_stats", name, data_type, blocks.scalars, source);
        let fields = FIELDS.iter().enumerate();
        let fields = fields.map(move |(i, field)| statistic(field.name, field.data_type, Source::Info(i)));
        [x, statistic("lp", number, Source::LogJoint)].into_iter().chain(fields)
    }

    /// The array of parameters at this node of a stored hierarchy; none if it is something else.
    fn stored(path: &str, array: &Array, blocks: Blocks) -> Option<Self> {
        let name = path.strip_prefix("posterior/")?;
        let places = parameters::places(&array.attributes)?;
        let rest = array.dimensions.iter().cloned().zip(array.shape.iter().copied()).skip(2).collect();
        Some(Self::theta(name, rest, places, array.attributes.clone(), blocks))
            .filter(|column| column.n_elements() == column.source.n_places())
    }

    /// Numbers of one draw, if they can be counted.
    fn n_elements(&self) -> Option<usize> {
        self.rest.iter().try_fold(1usize, |n, (_, m)| n.checked_mul(usize::try_from(*m).ok()?))
    }

    /// Path of the array in the hierarchy.
    pub(super) fn path(&self, phase: Phase) -> String {
        format!("{}/{}", group(phase, self.group), self.name)
    }

    /// Bytes of one draw.
    pub(super) fn row_bytes(&self) -> usize {
        8 * self.rest.iter().map(|(_, n)| *n as usize).product::<usize>()
    }

    /// Bytes of a chunk before compression.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.block as usize * self.row_bytes()
    }

    /// Name of the chunk's file.
    pub(super) fn chunk(&self, chain: usize, block: u64) -> String {
        let mut indices = vec![chain as u64, block];
        indices.extend(self.rest.iter().map(|_| 0));
        chunk_name(&indices)
    }

    /// Chain and block of a chunk's file, if the name is one of this array.
    pub(super) fn place(&self, name: &str) -> Option<(usize, u64)> {
        let mut parts = name.strip_prefix("c.")?.split('.');
        let (chain, block) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (self.chunk(chain, block) == name).then_some((chain, block))
    }

    fn array(&self, n_chains: u64, n_draws: u64) -> Array {
        let rest = || self.rest.iter().map(|(_, n)| *n);
        Array {
            data_type: self.data_type,
            shape: [n_chains, n_draws].into_iter().chain(rest()).collect(),
            chunk: [1, self.block].into_iter().chain(rest()).collect(),
            dimensions: ["chain", "draw"]
                .into_iter()
                .chain(self.rest.iter().map(|(name, _)| name.as_str()))
                .map(str::to_owned)
                .collect(),
            attributes: self.attributes.clone(),
        }
    }
}

/// Shape of an array's chunks.
fn chunk_of<const N: usize>(tree: &Tree, path: &str) -> Option<[u64; N]> {
    tree.array(path).and_then(|array| array.chunk.clone().try_into().ok())
}

/// Attribute by which xarray finds the label and the time of a row.
pub(super) fn row_coordinates() -> Attributes {
    Attributes::from_iter([("coordinates".to_owned(), Value::from("sequence time_value"))])
}

impl Fixed {
    pub(super) fn new(path: String, data_type: DataType, dims: &[(&str, usize)], raw: Vec<u8>) -> Self {
        let shape: Vec<u64> = dims.iter().map(|(_, n)| *n as u64).collect();
        let array = Array {
            data_type,
            chunk: shape.clone(),
            shape,
            dimensions: dims.iter().map(|(name, _)| (*name).to_owned()).collect(),
            attributes: Attributes::new(),
        };
        Self { path, array, raw }
    }

    pub(super) fn chunk(&self) -> String {
        chunk_name(&vec![0; self.array.shape.len()])
    }
}

impl Layout {
    /// Phases whose draws are stored.
    pub(super) fn phases(&self) -> &'static [Phase] {
        if self.attribute("tuning_steps").as_u64() == Some(0) {
            &[Phase::Sample]
        } else {
            &[Phase::Tune, Phase::Sample]
        }
    }

    pub(super) fn attribute(&self, name: &str) -> &Value {
        self.attributes.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.attribute(name).as_str().unwrap_or_default()
    }

    /// The hierarchy as it is when so much is committed. Arrays show what all chains have.
    pub(super) fn tree(&self, committed: &[Committed]) -> Tree {
        let mut tree = Tree { attributes: self.attributes.clone(), nodes: Vec::new() };
        tree.attributes.insert("chains".into(), self.chains.clone().into());
        let lists: [Value; 3] = [
            committed.iter().map(|chain| chain.warmup).collect(),
            committed.iter().map(|chain| chain.draws).collect(),
            committed.iter().map(|chain| chain.state.clone()).collect(),
        ];
        tree.attributes.extend(COMMIT.into_iter().map(str::to_owned).zip(lists));
        for &phase in self.phases() {
            let n_draws = committed.iter().map(|chain| chain.count(phase)).min().unwrap_or(0);
            for name in GROUPS {
                let attributes =
                    if name == "posterior" { self.attributes.clone() } else { Attributes::new() };
                self.add_group(&mut tree, group(phase, name), attributes);
                let draw = Array {
                    data_type: DataType::Int64,
                    shape: vec![n_draws],
                    chunk: vec![self.blocks.scalars],
                    dimensions: vec!["draw".into()],
                    attributes: Attributes::new(),
                };
                tree.nodes.push((format!("{}/draw", group(phase, name)), Node::Array(draw)));
                for column in self.columns.iter().filter(|column| column.group == name) {
                    let array = column.array(self.chains.len() as u64, n_draws);
                    tree.nodes.push((column.path(phase), Node::Array(array)));
                }
            }
        }
        self.add_group(&mut tree, "observed_data".into(), Attributes::new());
        self.add_group(&mut tree, "constant_data".into(), self.constants.clone());
        tree
    }

    /// A group and its arrays that do not grow.
    fn add_group(&self, tree: &mut Tree, name: String, attributes: Attributes) {
        let inside = |path: &str| path.strip_prefix(&name).is_some_and(|rest| rest.starts_with('/'));
        let arrays = self.fixed.iter().filter(|fixed| inside(&fixed.path));
        let arrays: Vec<_> =
            arrays.map(|fixed| (fixed.path.clone(), Node::Array(fixed.array.clone()))).collect();
        tree.nodes.push((name, Node::Group(attributes)));
        tree.nodes.extend(arrays);
    }

    /// The layout and the commits that a root file stands for; `raw` reads the elements of an array that was
    /// written once. Says what is wrong otherwise.
    pub(super) fn from_tree(
        root: &Path,
        tree: &Tree,
        mut raw: impl FnMut(&str, &Array) -> Result<Vec<u8>, StoreError>,
    ) -> Result<(Self, Vec<Committed>), StoreError> {
        let refuse = |message: &str| Err(StoreError::foreign(root, message));
        let mut attributes = tree.attributes.clone();
        let format = attributes.get("format").and_then(Value::as_str).unwrap_or_default();
        if format != FORMAT {
            return refuse(&format!(
                "its layout is \"{format}\", this program reads \"{FORMAT}\": fit again"
            ));
        }
        let mut take = |name: &str| attributes.shift_remove(name).unwrap_or(Value::Null);
        let counts = |value: &Value| value.as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
        let chains = counts(&take("chains"))
            .and_then(|ids| ids.into_iter().map(|id| u32::try_from(id).ok()).collect::<Option<Vec<_>>>());
        let [warmup, draws, states] = COMMIT.map(&mut take);
        let (Some(chains), Some(warmup), Some(draws), Some(states)) =
            (chains, counts(&warmup), counts(&draws), texts(&states))
        else {
            return refuse("attributes of the run are missing");
        };
        let n = chains.len();
        if n == 0 || !chains.is_sorted() || [warmup.len(), draws.len(), states.len()] != [n; 3] {
            return refuse("the lists of chains do not fit together");
        }
        let committed = warmup.into_iter().zip(draws).zip(states);
        let committed: Vec<Committed> =
            committed.map(|((warmup, draws), state)| Committed { warmup, draws, state }).collect();
        let mut fixed = Vec::new();
        let mut constants = Attributes::new();
        for (path, node) in &tree.nodes {
            match node {
                Node::Array(array) if !array.dimensions.iter().any(|name| name == "draw") => {
                    let (path, array) = (path.clone(), array.clone());
                    fixed.push(Fixed { raw: raw(&path, &array)?, path, array });
                }
                Node::Group(attributes) if path == "constant_data" => constants = attributes.clone(),
                _ => {}
            }
        }
        let (Some([scalars]), Some([1, paths, n_rows, n_x])) =
            (chunk_of::<1>(tree, "posterior/draw"), chunk_of::<4>(tree, "posterior/x"))
        else {
            return refuse("the array of states is missing");
        };
        // Chunks must fit in memory, or they were never written.
        let size = [paths.max(scalars), n_rows, n_x].into_iter().try_fold(1u64, u64::checked_mul);
        if scalars == 0 || paths == 0 || size.is_none_or(|size| size == 0 || size > 1 << 48) {
            return refuse("the array of states has an impossible size");
        }
        let blocks = Blocks { scalars, paths };
        let theta = tree.nodes.iter().filter_map(|(path, node)| match node {
            Node::Array(array) => Column::stored(path, array, blocks),
            Node::Group(_) => None,
        });
        let columns = theta.chain(Column::others(n_rows, n_x, blocks)).collect();
        let layout = Self { attributes, chains, constants, fixed, columns, blocks };
        // What was understood must be all that there is.
        if layout.tree(&committed) != *tree || !layout.has_every_parameter() {
            return refuse("arrays and attributes do not fit together");
        }
        Ok((layout, committed))
    }

    /// Places in theta of parameters that are not learned, and their values.
    pub(super) fn known(&self) -> Option<Vec<(usize, f64)>> {
        let mut known = Vec::new();
        for fixed in &self.fixed {
            if let Some(places) = parameters::places(&fixed.array.attributes) {
                let values = codec::to_numbers(&fixed.raw);
                if fixed.array.data_type != DataType::Float64 || values.len() != places.len() {
                    return None;
                }
                known.extend(places.into_iter().zip(values));
            }
        }
        Some(known)
    }

    /// Whether every entry of theta is in one array, learned or not.
    fn has_every_parameter(&self) -> bool {
        let n_theta = self.attribute("parameters").as_array().map(Vec::len);
        let mut places: Vec<usize> = self.known().into_iter().flatten().map(|(k, _)| k).collect();
        for column in &self.columns {
            if let Source::Theta(learned) = &column.source {
                places.extend(learned);
            }
        }
        places.sort_unstable();
        n_theta == Some(places.len()) && places.into_iter().eq(0..n_theta.unwrap_or(0))
    }

    /// The elements of an array that was written once.
    pub(super) fn raw(&self, path: &str) -> Option<&[u8]> {
        self.fixed.iter().find(|fixed| fixed.path == path).map(|fixed| fixed.raw.as_slice())
    }

    pub(super) fn numbers(&self, path: &str) -> Option<Vec<f64>> {
        self.raw(path).map(codec::to_numbers)
    }

    pub(super) fn integers(&self, path: &str) -> Option<Vec<i64>> {
        self.raw(path).map(codec::to_integers)
    }

    pub(super) fn texts(&self, path: &str) -> Option<Vec<String>> {
        self.raw(path).and_then(codec::to_texts)
    }
}
