//! One kernel with numbers: what sums, products and odd parts are made of.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::descriptor::{Descriptor, Role, Unit};
use super::gate::Side;
use super::radial::Radial;
use super::user::UserKernel;
use crate::points::Points;

/// Values of a kernel. `numbers` are its hyper-parameters in internal units, in the order of its descriptor, amplitudes and
/// slopes as variances.
pub(crate) trait Covariance: Send + Sync {
    /// k(z, z').
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64;

    /// k(z, z).
    fn diagonal(&self, numbers: &[f64], components: &[usize], z: &[f64]) -> f64 {
        self.value(numbers, &Pair { components, z, other: z, sign: 1.0 })
    }

    /// Adds factor * dk(z, z') / dz to `gradient`, which has an entry for every component of z. False if it has no
    /// derivative to offer.
    fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
        let _ = (numbers, pair, factor, gradient);
        false
    }

    /// k(z_i, z') of many points with one.
    fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
        let mut z = vec![0.0; row.points.n_components()];
        for (i, out) in row.range.clone().zip(out) {
            row.points.get(i, &mut z);
            *out = self.value(numbers, &Pair { components: row.components, z: &z, other: row.at, sign: 1.0 });
        }
    }

    /// The kernel as a function of the scaled distance alone, if it is one.
    fn radial<'a>(&self, numbers: &'a [f64]) -> Option<Radial<'a>> {
        let _ = numbers;
        None
    }

    /// Features of which it is the sum exactly, if there are finitely many.
    fn features(&self, numbers: &[f64], components: &[usize]) -> Option<Vec<Feature>> {
        let _ = (numbers, components);
        None
    }

    /// Adds a frequency from its spectral distribution to `omega`, which has an entry for every component of z. False if it
    /// is not stationary.
    fn add_frequency(
        &self,
        numbers: &[f64],
        components: &[usize],
        rng: &mut dyn Rng,
        omega: &mut [f64],
    ) -> bool {
        let _ = (numbers, components, rng, omega);
        false
    }
}

/// Two points z and sign z', and the components that matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    /// Components of z that the kernel acts on.
    pub components: &'a [usize],
    /// z.
    pub z: &'a [f64],
    /// z'.
    pub other: &'a [f64],
    /// 1, or -1 for the odd part of a function.
    pub sign: f64,
}

impl Pair<'_> {
    /// (z_c, z'_c) of each component that the kernel acts on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.components.iter().map(|&c| (self.z[c], self.sign * self.other[c]))
    }
}

/// Some points and another one.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    /// Components of z that the kernel acts on.
    pub components: &'a [usize],
    /// Points z,
    pub points: &'a Points,
    /// and those of them that are meant.
    pub range: Range<usize>,
    /// z'.
    pub at: &'a [f64],
}

/// z_c or 1, with an independent weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Feature {
    /// c; none for a constant.
    pub component: Option<usize>,
    /// Variance of its weight.
    pub variance: f64,
}

/// Whose kernel it is.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// One of the table.
    #[serde(rename = "name")]
    BuiltIn(&'static Descriptor),
    /// A factor of a change point kernel.
    Gate(Side),
    /// A user's.
    #[serde(skip)]
    User(UserKernel),
}

impl Kind {
    fn covariance(&self) -> &dyn Covariance {
        match self {
            Self::BuiltIn(descriptor) => descriptor.covariance,
            Self::Gate(side) => side.covariance(),
            Self::User(kernel) => &*kernel.covariance,
        }
    }

    /// The name in sentences.
    pub fn title(&self) -> &str {
        match self {
            Self::BuiltIn(descriptor) => descriptor.title,
            Self::Gate(_) => "change point",
            Self::User(kernel) => &kernel.name,
        }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(a), Self::BuiltIn(b)) => a == b,
            (Self::Gate(a), Self::Gate(b)) => a == b,
            (Self::User(a), Self::User(b)) => Arc::ptr_eq(&a.covariance, &b.covariance),
            _ => false,
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.title())
    }
}

/// A kernel with numbers on some components of z.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Which kernel.
    pub kind: Kind,
    /// Components of z it acts on.
    pub components: Vec<usize>,
    /// Its hyper-parameters, see the kernel's descriptor.
    pub numbers: Vec<f64>,
}

impl Part {
    pub(super) fn pair<'a>(&'a self, z: &'a [f64], other: &'a [f64], sign: f64) -> Pair<'a> {
        Pair { components: &self.components, z, other, sign }
    }

    pub(super) fn scalar(&self, z: &[f64], other: &[f64], sign: f64) -> f64 {
        self.kind.covariance().value(&self.numbers, &self.pair(z, other, sign))
    }

    pub(super) fn diagonal(&self, z: &[f64]) -> f64 {
        self.kind.covariance().diagonal(&self.numbers, &self.components, z)
    }

    pub(super) fn add_gradient(
        &self,
        z: &[f64],
        other: &[f64],
        sign: f64,
        factor: f64,
        gradient: &mut [f64],
    ) -> bool {
        self.kind.covariance().add_gradient(&self.numbers, &self.pair(z, other, sign), factor, gradient)
    }

    pub(super) fn row(&self, points: &Points, range: Range<usize>, at: &[f64], out: &mut [f64]) {
        let row = Row { components: &self.components, points, range, at };
        self.kind.covariance().row(&self.numbers, &row, out);
    }

    /// As a function of the scaled distance alone, if it is one.
    pub(crate) fn radial(&self) -> Option<Radial<'_>> {
        self.kind.covariance().radial(&self.numbers)
    }

    /// Features of which it is the sum exactly, if there are finitely many.
    pub(crate) fn features(&self) -> Option<Vec<Feature>> {
        self.kind.covariance().features(&self.numbers, &self.components)
    }

    /// Adds a frequency to `omega`; false if it is not stationary.
    pub(crate) fn add_frequency(&self, rng: &mut dyn Rng, omega: &mut [f64]) -> bool {
        self.kind.covariance().add_frequency(&self.numbers, &self.components, rng, omega)
    }

    /// Place of the signal variance among its numbers.
    fn variance_place(&self) -> Option<usize> {
        let Kind::BuiltIn(descriptor) = self.kind else { return None };
        descriptor.numbers(self.components.len()).position(|(parameter, _)| parameter.unit == Unit::State)
    }

    /// Signal variance; one if it has none of its own.
    pub(crate) fn variance(&self) -> f64 {
        self.variance_place().map_or(1.0, |place| self.numbers[place])
    }

    /// Multiplies the length-scales that have the unit of their component.
    pub(crate) fn stretch(&mut self, factor: f64) {
        let Kind::BuiltIn(descriptor) = self.kind else { return };
        for (number, (parameter, _)) in self.numbers.iter_mut().zip(descriptor.numbers(self.components.len()))
        {
            if parameter.role == Role::LengthScale && parameter.unit == Unit::Component {
                *number *= factor;
            }
        }
    }

    /// What is wrong with its components and numbers where z has `n_z` components.
    pub(crate) fn check(&self, n_z: usize) -> Result<(), String> {
        if let Some(c) = self.components.iter().find(|c| **c >= n_z) {
            return Err(format!("component {c}, but z has only {n_z}"));
        }
        if let Kind::Gate(_) = self.kind {
            return match (&self.components[..], &self.numbers[..]) {
                ([_], [location, width]) if location.is_finite() && *width > 0.0 && width.is_finite() => {
                    Ok(())
                }
                _ => Err("a change point needs one component, a location and a positive width".into()),
            };
        }
        let Kind::BuiltIn(descriptor) = self.kind else { return Ok(()) };
        let n = descriptor.n_numbers(self.components.len());
        if self.numbers.len() != n {
            return Err(format!(
                "{} numbers of the {} kernel where {n} are needed",
                self.numbers.len(),
                descriptor.title
            ));
        }
        for (number, (parameter, _)) in self.numbers.iter().zip(descriptor.numbers(self.components.len())) {
            let name = parameter.name;
            match parameter.unit.has_state() {
                true if !(*number >= 0.0 && number.is_finite()) => {
                    return Err(format!("{name}^2 is {number}"));
                }
                false if !(*number > 0.0 && number.is_finite()) => return Err(format!("{name} is {number}")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets the signal variance to one; what it was.
    pub(super) fn take_variance(&mut self) -> f64 {
        let place = self.variance_place();
        place.map_or(1.0, |place| std::mem::replace(&mut self.numbers[place], 1.0))
    }

    /// Multiplies the kernel by a number.
    pub(super) fn scale(&mut self, factor: f64) -> bool {
        let Kind::BuiltIn(descriptor) = self.kind else { return false };
        let numbers = descriptor.numbers(self.components.len());
        let of_state = numbers.map(|(parameter, _)| parameter.unit.has_state());
        self.numbers
            .iter_mut()
            .zip(of_state)
            .filter(|(_, of_state)| *of_state)
            .for_each(|(number, _)| *number *= factor);
        true
    }
}
