//! What an entry of theta is: whose number, which of its numbers, where, and in what unit. Its name is made from this.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A state, an input or an output, by its place in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Quantity {
    /// x_d.
    State(usize),
    /// u_c.
    Input(usize),
    /// y_k.
    Output(usize),
}

impl Quantity {
    /// Component `c` of z = (x, u).
    pub fn component(c: usize, n_x: usize) -> Self {
        if c < n_x { Self::State(c) } else { Self::Input(c - n_x) }
    }

    /// The state, if it is one.
    pub fn state(&self) -> Option<usize> {
        match self {
            Self::State(d) => Some(*d),
            _ => None,
        }
    }
}

impl fmt::Display for Quantity {
    /// `x1`, `u2`, `y1`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(d) => write!(formatter, "x{}", d + 1),
            Self::Input(c) => write!(formatter, "u{}", c + 1),
            Self::Output(k) => write!(formatter, "y{}", k + 1),
        }
    }
}

/// One kernel among those that a state's kernel is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KernelPart {
    /// Its kind as it is written in a run file: `se`, `linear`.
    pub kind: String,
    /// Which of this kind, from 1, in the order in which they stand.
    pub number: usize,
}

impl fmt::Display for KernelPart {
    /// `se`, `se2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 | 1 => formatter.write_str(&self.kind),
            number => write!(formatter, "{}{number}", self.kind),
        }
    }
}

/// Numbers the kernels of each kind in the order in which they stand.
#[derive(Clone, Debug, Default)]
pub struct KernelNumbers(HashMap<String, usize>);

impl KernelNumbers {
    /// The next kernel of a kind.
    pub fn next(&mut self, kind: &str) -> KernelPart {
        let number = self.0.entry(kind.to_owned()).and_modify(|number| *number += 1).or_insert(1);
        KernelPart { kind: kind.to_owned(), number: *number }
    }
}

/// The part of the model that a number belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// A part of the kernel of a state.
    Kernel {
        /// The state.
        state: usize,
        /// The part.
        part: KernelPart,
    },
    /// The linear mean function or linear transition of a state.
    Mean {
        /// The state.
        state: usize,
    },
    /// Process noise Q.
    ProcessNoise,
    /// The sensor: its noise, or the shape of its density.
    Sensor,
    /// The linear mean of an output.
    SensorMean {
        /// The output.
        output: usize,
    },
    /// The user's functions and formulas.
    User,
}

/// What a number does for its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Signal standard deviation sigma_f of a kernel.
    Amplitude,
    /// Length-scale ell along a component of z.
    LengthScale,
    /// Period along a component of z.
    Period,
    /// Shape alpha of a kernel.
    Shape,
    /// Standard deviation of the slope along a component of z, of a linear kernel.
    SlopeSd,
    /// Standard deviation of a constant kernel.
    LevelSd,
    /// Standard deviation of Gaussian noise.
    NoiseSd,
    /// Entry of the Cholesky factor of a covariance matrix.
    Cholesky,
    /// Coefficient of a component of z in a linear function.
    Coefficient,
    /// Constant term of a linear function.
    Offset,
    /// A number with a name of its own: the user's, or a parameter of a sensor's family.
    Named(String),
}

impl Role {
    /// Its symbol in names.
    pub fn symbol(&self) -> &str {
        match self {
            Self::Amplitude => "sigma_f",
            Self::LengthScale => "ell",
            Self::Period => "period",
            Self::Shape => "alpha",
            Self::SlopeSd | Self::LevelSd => "sigma",
            Self::NoiseSd => "sd",
            Self::Cholesky => "chol",
            Self::Coefficient => "coefficient",
            Self::Offset => "offset",
            Self::Named(name) => name,
        }
    }
}

/// Which of several numbers of one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Index {
    /// There is one only.
    Whole,
    /// The one for this state, output or component of z.
    At(Quantity),
    /// Row and column of a matrix.
    Entry(Quantity, Quantity),
}

/// The unit of a number: that of a quantity, or a ratio of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unit {
    /// Numerator.
    pub of: Option<Quantity>,
    /// Denominator.
    pub per: Option<Quantity>,
}

impl Unit {
    /// A plain number, or one whose unit only the user knows.
    pub const NONE: Self = Self { of: None, per: None };

    /// That of a quantity.
    pub const fn of(quantity: Quantity) -> Self {
        Self { of: Some(quantity), per: None }
    }

    /// That of this one divided by that of a quantity.
    pub const fn per(self, quantity: Quantity) -> Self {
        Self { per: Some(quantity), ..self }
    }
}

/// What an entry of theta is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The part of the model it belongs to.
    pub owner: Owner,
    /// What it does there.
    pub role: Role,
    /// Which of several.
    pub index: Index,
    /// Its unit.
    pub unit: Unit,
}

impl Identity {
    /// The only number of its role, or all of them.
    pub fn whole(owner: Owner, role: Role, unit: Unit) -> Self {
        Self { owner, role, index: Index::Whole, unit }
    }

    /// The number for one state, output or component of z.
    pub fn at(owner: Owner, role: Role, quantity: Quantity, unit: Unit) -> Self {
        Self { owner, role, index: Index::At(quantity), unit }
    }

    /// A number that the user has named.
    pub fn user(name: &str) -> Self {
        Self::whole(Owner::User, Role::Named(name.to_owned()), Unit::NONE)
    }
}

/// What a dimension of an array of hyper-parameters runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// States.
    State,
    /// Outputs.
    Output,
    /// Components of z = (x, u).
    Component,
}

impl Identity {
    /// Name of the array that it is an element of: `se_ell`, `mean_offset`, `process_sd`, `sensor_coefficient`, or the
    /// user's own name.
    pub fn array(&self) -> String {
        let symbol = self.role.symbol();
        match &self.owner {
            Owner::Kernel { part, .. } => format!("{part}_{symbol}"),
            Owner::Mean { .. } => format!("mean_{symbol}"),
            Owner::ProcessNoise => format!("process_{symbol}"),
            Owner::Sensor | Owner::SensorMean { .. } => format!("sensor_{symbol}"),
            Owner::User => symbol.to_owned(),
        }
    }

    /// Where it stands in its array, by dimension.
    pub fn coordinates(&self) -> Vec<(Axis, Quantity)> {
        let first = match self.owner {
            Owner::Kernel { state, .. } | Owner::Mean { state } => {
                Some((Axis::State, Quantity::State(state)))
            }
            Owner::SensorMean { output } => Some((Axis::Output, Quantity::Output(output))),
            Owner::ProcessNoise | Owner::Sensor | Owner::User => None,
        };
        let axis = |quantity| match quantity {
            Quantity::Output(_) => Axis::Output,
            Quantity::State(_) if first.is_none() => Axis::State,
            _ => Axis::Component,
        };
        let rest = match self.index {
            Index::Whole => Vec::new(),
            Index::At(quantity) => vec![(axis(quantity), quantity)],
            Index::Entry(row, column) => vec![(axis(row), row), (axis(column), column)],
        };
        first.into_iter().chain(rest).collect()
    }

    /// Its name in every text, which is also ArviZ's: `se_ell[x, u]`, `process_sd[x2]`, `sensor_chol[y2, y1]`.
    pub fn name(&self, names: &Names) -> String {
        let labels: Vec<String> =
            self.coordinates().into_iter().map(|(axis, quantity)| names.label(axis, quantity)).collect();
        if labels.is_empty() { self.array() } else { format!("{}[{}]", self.array(), labels.join(", ")) }
    }
}

/// Names of states, inputs and outputs.
///
/// In a model an empty list stands for the default names: `x1`, `x2`, ... for states, `u1`, ... for inputs and `y1`, ... for
/// outputs; a single one is also called `x`, `u` or `y`. They can be used in formulas in any case, except where another name
/// of the user's is the same. A name that no formula can hold, such as "flow (m3/s)", is allowed; formulas then
/// use the default name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// States.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// Inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
}

impl Names {
    /// Whether all names are the default ones.
    pub fn is_default(&self) -> bool {
        self.states.is_empty() && self.inputs.is_empty() && self.outputs.is_empty()
    }

    /// Names of the components of z = (x, u).
    pub fn components(&self) -> Vec<String> {
        let n_x = self.states.len();
        (0..n_x + self.inputs.len())
            .map(|c| self.label(Axis::Component, Quantity::component(c, n_x)))
            .collect()
    }

    /// The name of a quantity along a dimension; its default name if there is no other.
    pub fn label(&self, axis: Axis, quantity: Quantity) -> String {
        let given = match quantity {
            Quantity::State(d) => self.states.get(d),
            Quantity::Input(c) => self.inputs.get(c),
            Quantity::Output(k) => self.outputs.get(k),
        };
        // A state and an input of one name would be one component.
        let clash = axis == Axis::Component && self.states.iter().any(|state| self.inputs.contains(state));
        given.filter(|_| !clash).cloned().unwrap_or_else(|| quantity.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_and_an_input_of_one_name_are_two_components() {
        let names = Names { states: vec!["h".into()], inputs: vec!["h".into()], outputs: vec!["h".into()] };
        assert_eq!(names.components(), ["x1", "u1"]);
        assert_eq!(names.label(Axis::State, Quantity::State(0)), "h");
    }

    #[test]
    fn names_are_made_from_meaning() {
        let se = |number| Owner::Kernel { state: 0, part: KernelPart { kind: "se".into(), number } };
        let (x2, u1) = (Quantity::State(1), Quantity::component(3, 3));
        let names = Names { inputs: vec!["rain".into()], ..Names::default() };
        let none = Unit::NONE;
        let chol = Identity { index: Index::Entry(x2, x2), ..Identity::user("") };
        for (identity, name) in [
            (Identity::whole(se(1), Role::Amplitude, none), "se_sigma_f[x1]"),
            (Identity::at(se(2), Role::LengthScale, u1, none), "se2_ell[x1, rain]"),
            (Identity::at(Owner::Mean { state: 1 }, Role::Coefficient, x2, none), "mean_coefficient[x2, x2]"),
            (Identity::whole(Owner::Mean { state: 1 }, Role::Offset, none), "mean_offset[x2]"),
            (Identity::at(Owner::ProcessNoise, Role::NoiseSd, x2, none), "process_sd[x2]"),
            (Identity { owner: Owner::Sensor, role: Role::Cholesky, ..chol }, "sensor_chol[x2, x2]"),
            (
                Identity::at(Owner::SensorMean { output: 0 }, Role::Coefficient, u1, none),
                "sensor_coefficient[y1, rain]",
            ),
            (Identity::whole(Owner::Sensor, Role::Named("dof".into()), none), "sensor_dof"),
            (Identity::user("gain"), "gain"),
        ] {
            assert_eq!(identity.name(&names), name);
        }
    }
}
