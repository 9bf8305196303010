//! What there is to know about a kernel, in one place: model files, the compiler, reports, help and Python read it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::part::Covariance;

/// A kernel of the table [`super::KERNELS`].
#[non_exhaustive]
pub struct Descriptor {
    /// Name in model files; the Python class has the same one in capitals (`SquaredExponential`).
    pub name: &'static str,
    /// Name in kernel texts and in the names of parameters, such as `se`.
    pub short: &'static str,
    /// Further names that kernel texts understand.
    pub aliases: &'static [&'static str],
    /// Name in sentences and reports.
    pub title: &'static str,
    /// k(z, z') as text.
    pub formula: &'static str,
    /// Hyper-parameters, in the order of theta.
    pub parameters: &'static [KernelParameter],
    /// Its values.
    pub(crate) covariance: &'static dyn Covariance,
}

/// A hyper-parameter of a kernel. All of them are positive.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelParameter {
    /// Its name in model files, theta and Python.
    pub name: &'static str,
    /// What it does.
    pub role: Role,
    /// Its unit.
    pub unit: Unit,
    /// Whether every component has one of its own.
    pub each: bool,
    /// Median of the default prior: inverse-gamma of shape four for a length-scale, otherwise log-normal within a factor of
    /// about seven either way.
    pub median: Median,
    /// One line for help.
    pub help: &'static str,
}

/// What a hyper-parameter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Standard deviation of the function.
    Amplitude,
    /// Standard deviation of an offset.
    Level,
    /// Distance over which the function changes.
    LengthScale,
    /// Distance after which the function repeats itself.
    Period,
    /// Standard deviation of a slope or weight.
    Slope,
    /// Anything else that changes the form of the kernel.
    Shape,
}

/// Unit of a hyper-parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// That of the state.
    State,
    /// That of the component of z.
    Component,
    /// That of the state over that of the component.
    StatePerComponent,
    /// One over that of the component.
    PerComponent,
    /// None.
    None,
}

impl Unit {
    /// Whether it contains the unit of the state; such a hyper-parameter enters the kernel squared.
    pub(crate) fn has_state(self) -> bool {
        matches!(self, Self::State | Self::StatePerComponent)
    }

    /// Its size where the state's unit is `state` and the component's is `component`.
    pub(crate) fn size(self, state: f64, component: f64) -> f64 {
        match self {
            Self::State => state,
            Self::Component => component,
            Self::StatePerComponent => state / component,
            Self::PerComponent => 1.0 / component,
            Self::None => 1.0,
        }
    }

    /// The number that the kernel works with, in internal units, for a value in original units.
    pub(crate) fn to_internal(self, value: f64, state: f64, component: f64) -> f64 {
        match self {
            Self::State => (value / state) * (value / state),
            Self::Component => value / component,
            Self::StatePerComponent => (value / state) * (value / state) * component.powi(2),
            Self::PerComponent => value * component,
            Self::None => value,
        }
    }
}

/// Median of a default prior.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Median {
    /// So many units.
    Units(f64),
    /// So many units times the root of the number of components: typical points are so much further apart where there are
    /// more of them (Hvarfner, Hellsten, Nardi 2024, arXiv 2402.02229).
    UnitsTimesRoot(f64),
}

impl Median {
    /// In units, for a kernel of `n` components.
    pub(crate) fn in_units(self, n: usize) -> f64 {
        match self {
            Self::Units(factor) => factor,
            Self::UnitsTimesRoot(factor) => factor * (n as f64).sqrt(),
        }
    }
}

impl KernelParameter {
    /// Signal standard deviation, by default the size of the state.
    pub(super) const SIGMA_F: Self = Self {
        name: "sigma_f",
        role: Role::Amplitude,
        unit: Unit::State,
        each: false,
        median: Median::Units(1.0),
        help: "Signal standard deviation.",
    };

    /// Length-scales. With half of this median short records of several outputs are learned by heart (decision 11).
    pub(super) const ELL: Self = Self {
        name: "ell",
        role: Role::LengthScale,
        unit: Unit::Component,
        each: true,
        median: Median::UnitsTimesRoot(2.0),
        help: "Length-scales.",
    };
}

impl Descriptor {
    /// The kernel of a name in a model file.
    pub fn named(name: &str) -> Option<&'static Self> {
        super::KERNELS.iter().copied().find(|kernel| kernel.name == name)
    }

    /// The kernel of a name in a kernel text.
    pub fn in_text(name: &str) -> Option<&'static Self> {
        super::KERNELS.iter().copied().find(|kernel| kernel.names().any(|known| known == name))
    }

    /// All names that kernel texts understand, the short one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.short, self.name].into_iter().chain(self.aliases.iter().copied())
    }

    /// Whether it acts on components of z; a constant does not.
    pub fn has_components(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.each)
    }

    /// Whether Hilbert-space functions and Fourier features can stand for it.
    pub fn has_spectral_density(&self) -> bool {
        let ones = vec![1.0; self.n_numbers(1)];
        self.covariance.radial(&ones).is_some_and(|radial| radial.log_spectral_density(&[1.0]).is_some())
    }

    /// Numbers that it takes on `n` components.
    pub(crate) fn n_numbers(&self, n: usize) -> usize {
        self.parameters.iter().map(|parameter| if parameter.each { n } else { 1 }).sum()
    }

    /// Each of its numbers: the hyper-parameter, and the place of the component among its components.
    pub(crate) fn numbers(&self, n: usize) -> impl Iterator<Item = (&'static KernelParameter, usize)> {
        self.parameters.iter().flat_map(move |parameter| {
            (0..if parameter.each { n } else { 1 }).map(move |component| (parameter, component))
        })
    }
}

impl PartialEq for Descriptor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Serialize for Descriptor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static Descriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Descriptor::named(&name).ok_or_else(|| de::Error::custom(format!("there is no kernel '{name}'")))
    }
}
