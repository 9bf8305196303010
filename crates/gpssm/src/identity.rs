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

impl fmt::Display for Identity {
    /// Its name in every text: `f1.se.ell[x1]`, `process_sd[x2]`, `sensor_chol[y2,y1]`, `sensor.y1.offset`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = self.role.symbol();
        let coefficient = self.role == Role::Coefficient;
        match &self.owner {
            Owner::Kernel { state, part } => write!(formatter, "f{}.{part}.{symbol}", state + 1),
            Owner::Mean { state } if coefficient => write!(formatter, "f{}.mean", state + 1),
            Owner::Mean { state } => write!(formatter, "f{}.mean.{symbol}", state + 1),
            Owner::ProcessNoise => write!(formatter, "process_{symbol}"),
            Owner::Sensor => write!(formatter, "sensor_{symbol}"),
            Owner::SensorMean { output } if coefficient => write!(formatter, "sensor.y{}", output + 1),
            Owner::SensorMean { output } => write!(formatter, "sensor.y{}.{symbol}", output + 1),
            Owner::User => formatter.write_str(symbol),
        }?;
        match self.index {
            Index::Whole => Ok(()),
            Index::At(quantity) => write!(formatter, "[{quantity}]"),
            Index::Entry(row, column) => write!(formatter, "[{row},{column}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_from_meaning() {
        let se = |number| Owner::Kernel { state: 0, part: KernelPart { kind: "se".into(), number } };
        let (x2, u1) = (Quantity::State(1), Quantity::component(3, 3));
        let none = Unit::NONE;
        let chol = Identity { index: Index::Entry(x2, x2), ..Identity::user("") };
        for (identity, name) in [
            (Identity::whole(se(1), Role::Amplitude, none), "f1.se.sigma_f"),
            (Identity::at(se(2), Role::LengthScale, u1, none), "f1.se2.ell[u1]"),
            (Identity::at(Owner::Mean { state: 1 }, Role::Coefficient, x2, none), "f2.mean[x2]"),
            (Identity::whole(Owner::Mean { state: 1 }, Role::Offset, none), "f2.mean.offset"),
            (Identity::at(Owner::ProcessNoise, Role::NoiseSd, x2, none), "process_sd[x2]"),
            (Identity { owner: Owner::Sensor, role: Role::Cholesky, ..chol }, "sensor_chol[x2,x2]"),
            (Identity::at(Owner::SensorMean { output: 0 }, Role::Coefficient, u1, none), "sensor.y1[u1]"),
            (Identity::whole(Owner::Sensor, Role::Named("dof".into()), none), "sensor_dof"),
            (Identity::user("gain"), "gain"),
        ] {
            assert_eq!(identity.to_string(), name);
        }
    }
}
