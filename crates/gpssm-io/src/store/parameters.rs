//! Theta as arrays with named dimensions, as ArviZ users expect them: `process_sd` (state), `se_ell` (state, component).

use gpssm::model::{Axis, Identity, Index, Names, Owner, Parameter, ParameterTable, Quantity, Unit};
use serde_json::Value;

use super::tree::Attributes;

/// A dimension of an array and the names along it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Names of states, outputs or inputs; of pairs of them where entries form no rectangle.
    pub labels: Vec<String>,
}

/// All entries of theta that do the same for different states, outputs or components of z.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterArray {
    /// A name that a folder and a NetCDF variable can have.
    pub name: String,
    /// The name itself, where that is another one.
    pub long_name: Option<String>,
    /// Dimensions.
    pub dims: Vec<Dimension>,
    /// Places in theta of its elements, in row-major order.
    pub places: Vec<usize>,
}

/// Attribute of an array of parameters: places of its elements in theta.
const THETA: &str = "theta";

/// Names that the store needs itself.
const TAKEN: [&str; 36] = [
    "x",
    "u",
    "y",
    "chain",
    "draw",
    "time",
    "time_value",
    "state",
    "moving_state",
    "output",
    "input",
    "sequence",
    "sequence_index",
    "sequence_first_row",
    "component",
    "inducing",
    "frequency",
    "radius",
    "x_shift",
    "x_scale",
    "u_shift",
    "u_scale",
    "y_shift",
    "y_scale",
    "inducing_inputs",
    "inducing_inputs_internal",
    "basis_functions",
    "box_center_internal",
    "box_half_width_internal",
    "frequency_directions",
    "frequency_radii",
    "measured_y",
    "measured_u",
    "measured_row",
    "measured_rows",
    "measured_input",
];

impl ParameterArray {
    /// Arrays of the entries that are learned, or of those that are known, in the order of theta.
    pub fn all(table: &ParameterTable, learned: bool) -> Vec<Self> {
        let mut groups: Vec<(Identity, Vec<(usize, &Parameter)>)> = Vec::new();
        for (k, parameter) in table.parameters.iter().enumerate() {
            let kind = kind(&parameter.identity);
            match groups.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, entries)) => entries.push((k, parameter)),
                None => groups.push((kind, vec![(k, parameter)])),
            }
        }
        // Names do not depend on which entries are learned.
        let mut names: Vec<String> = Vec::new();
        for (i, (kind, _)) in groups.iter().enumerate() {
            names.push(unique(&kind.array(), i, &names));
        }
        let dimensions = Dimensions { names: &table.names, moving: moving(table), arrays: &names };
        let arrays = groups.iter().zip(&names).filter_map(|((kind, entries), name)| {
            let entries: Vec<_> =
                entries.iter().filter(|(k, _)| table.is_fixed(*k) != learned).copied().collect();
            let given = kind.array();
            let long_name = (given != *name).then_some(given);
            (!entries.is_empty()).then(|| dimensions.array(name, long_name, &entries))
        });
        arrays.collect()
    }

    /// Places in theta, and the name where it is another one.
    pub(super) fn attributes(&self) -> Attributes {
        let places = (THETA.to_owned(), self.places.iter().map(|k| Value::from(*k)).collect());
        let name = self.long_name.as_ref().map(|name| ("long_name".to_owned(), Value::from(name.as_str())));
        [places].into_iter().chain(name).collect()
    }
}

/// Places in theta from the attributes of an array; none if it is no array of parameters.
pub(super) fn places(attributes: &Attributes) -> Option<Vec<usize>> {
    let places = attributes.get(THETA)?.as_array()?;
    places.iter().map(|k| usize::try_from(k.as_u64()?).ok()).collect()
}

/// What entries of one array have in common.
fn kind(identity: &Identity) -> Identity {
    let owner = match &identity.owner {
        Owner::Kernel { part, .. } => Owner::Kernel { state: 0, part: part.clone() },
        Owner::Mean { .. } => Owner::Mean { state: 0 },
        Owner::SensorMean { .. } => Owner::SensorMean { output: 0 },
        owner => owner.clone(),
    };
    Identity::whole(owner, identity.role.clone(), Unit::NONE)
}

/// `_` for what folders cannot hold, and one more `_` where a name is taken.
pub(super) fn unique(given: &str, i: usize, others: &[String]) -> String {
    let strange = |c: char| c.is_control() || "/\\:*?\"<>|".contains(c);
    let mut name: String = given.trim().chars().map(|c| if strange(c) { '_' } else { c }).collect();
    if name.is_empty() || name.ends_with('.') || name.len() > 200 {
        name = format!("parameter_{i}");
    }
    if name.starts_with("__") {
        name.insert(0, 'p');
    }
    while TAKEN.contains(&name.as_str()) || others.contains(&name) {
        name.push('_');
    }
    name
}

/// States that are not lags: those with noise.
fn moving(table: &ParameterTable) -> Vec<Quantity> {
    let noise = table.parameters.iter().filter(|parameter| parameter.identity.owner == Owner::ProcessNoise);
    let mut states: Vec<Quantity> = noise
        .filter_map(|parameter| match parameter.identity.index {
            Index::At(state) | Index::Entry(state, _) => Some(state),
            Index::Whole => None,
        })
        .collect();
    states.sort_unstable();
    states.dedup();
    states
}

/// What dimensions are named after.
struct Dimensions<'a> {
    names: &'a Names,
    moving: Vec<Quantity>,
    /// Names that no dimension may have.
    arrays: &'a [String],
}

impl Dimensions<'_> {
    fn array(
        &self,
        name: &str,
        long_name: Option<String>,
        entries: &[(usize, &Parameter)],
    ) -> ParameterArray {
        let at: Vec<_> = entries.iter().map(|(_, entry)| entry.identity.coordinates()).collect();
        let n_axes = at.iter().map(Vec::len).max().unwrap_or(0);
        let axes: Vec<(Axis, Vec<Quantity>)> = (0..n_axes).filter_map(|a| axis(&at, a)).collect();
        let size: usize = axes.iter().map(|(_, along)| along.len()).product();
        let places: Vec<usize> = entries.iter().map(|(k, _)| *k).collect();
        // Entries come in row-major order, by state or output first.
        let triangle = entries.iter().any(|(_, entry)| matches!(entry.identity.index, Index::Entry(..)));
        let dims = if size == places.len() && !triangle {
            axes.iter().map(|(axis, along)| self.dimension(name, *axis, along)).collect()
        } else {
            let label = |at: &Vec<(Axis, Quantity)>| {
                at.iter().map(|(axis, q)| self.names.label(*axis, *q)).collect::<Vec<_>>().join(", ")
            };
            vec![Dimension {
                name: self.free(format!("{name}_entry")),
                labels: at.iter().map(label).collect(),
            }]
        };
        ParameterArray { name: name.to_owned(), long_name, dims, places }
    }

    /// `state`, `moving_state`, `output` or `component` where all of them are there, else a dimension of the array's own.
    fn dimension(&self, array: &str, axis: Axis, along: &[Quantity]) -> Dimension {
        let Names { states, outputs, inputs } = self.names;
        let (own, whole) = match axis {
            Axis::State if along == self.moving && along.len() < states.len() => ("moving_state", true),
            Axis::State => ("state", along.len() == states.len()),
            Axis::Output => ("output", along.len() == outputs.len()),
            Axis::Component => ("component", along.len() == states.len() + inputs.len()),
        };
        let name = if whole { own.to_owned() } else { self.free(format!("{array}_{own}")) };
        Dimension { name, labels: along.iter().map(|quantity| self.names.label(axis, *quantity)).collect() }
    }

    fn free(&self, mut name: String) -> String {
        while self.arrays.contains(&name) {
            name.push('_');
        }
        name
    }
}

/// What axis `a` runs over; nothing where entries disagree about it.
fn axis(at: &[Vec<(Axis, Quantity)>], a: usize) -> Option<(Axis, Vec<Quantity>)> {
    let axis = at.first()?.get(a)?.0;
    let mut along: Vec<Quantity> = at.iter().filter_map(|place| place.get(a)).map(|(_, q)| *q).collect();
    along.sort_unstable();
    along.dedup();
    Some((axis, along))
}
