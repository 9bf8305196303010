//! Kernels as the user describes them: priors in place of numbers.

mod serde;

use std::collections::BTreeMap;
use std::fmt;

use ::serde::{Deserialize, Serialize};

use super::prior::Prior;
use super::spec::{Model, TransitionSpec};
use crate::kernel::{Descriptor, LINEAR, SQUARED_EXPONENTIAL};

/// A covariance function of z = (x, u). Every state dimension has its own hyper-parameters.
///
/// ```
/// use gpssm::kernel::{LINEAR, MATERN32};
/// use gpssm::{KernelSpec, Prior};
///
/// let smooth = KernelSpec::new(&MATERN32).on(&["x"]).with("ell", Prior::LogNormal { median: 2.0, sigma: 0.5 });
/// let kernel = KernelSpec::Sum(vec![smooth, KernelSpec::new(&LINEAR)]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum KernelSpec {
    /// A kernel of the table [`crate::kernel::KERNELS`].
    Part(PartSpec),
    /// A user's kernel.
    User(UserKernelSpec),
    /// Sum.
    Sum(Vec<KernelSpec>),
    /// Product; only the first factor has a scale of its own unless others name one.
    Product(Vec<KernelSpec>),
    /// A kernel times a positive number.
    Scaled(ScaledSpec),
    /// A kernel times itself, with the same hyper-parameters.
    Power(PowerSpec),
    /// One kernel before and another after a change along a component of z.
    ChangePoint(ChangePointSpec),
    /// Of the odd part of such a function, f(-z) = -f(z): what happens to the right happens to the left. z is counted
    /// from the middle of the data where they are standardised.
    Odd(Box<KernelSpec>),
}

impl KernelSpec {
    /// A kernel of the table, on all components and with default priors.
    pub fn new(kind: &'static Descriptor) -> Self {
        Self::Part(PartSpec { kind, active: None, parameters: BTreeMap::new() })
    }

    /// One kernel before and another after a change along a component, which [`Self::on`] names, with default priors.
    pub fn change_point(before: Self, after: Self) -> Self {
        let kernels = Box::new([before, after]);
        Self::ChangePoint(ChangePointSpec { active: None, location: None, width: None, kernels })
    }

    /// The same kernel with a prior for a hyper-parameter: one for all components, or one for each. Composed kernels stay
    /// as they are.
    #[must_use]
    pub fn with(mut self, name: &str, priors: impl Into<Vec<Prior>>) -> Self {
        if let Self::Part(part) = &mut self {
            part.parameters.insert(name.to_owned(), priors.into());
        }
        self
    }

    /// The same kernel on some components: `x`, `u` for all states or inputs, `x1`, `u2` for one. Composed kernels stay as
    /// they are.
    #[must_use]
    pub fn on(mut self, components: &[&str]) -> Self {
        let names = components.iter().map(|&name| name.to_owned()).collect();
        match &mut self {
            Self::Part(part) => part.active = Some(names),
            Self::User(kernel) => kernel.active = Some(names),
            Self::ChangePoint(change) => change.active = Some(names),
            _ => {}
        }
        self
    }

    /// The kernels that it is composed of; none for a single one.
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Part(_) | Self::User(_) => &[],
            Self::Sum(parts) | Self::Product(parts) => parts,
            Self::ChangePoint(change) => &*change.kernels,
            Self::Scaled(ScaledSpec { kernel, .. })
            | Self::Power(PowerSpec { kernel, .. })
            | Self::Odd(kernel) => std::slice::from_ref(&**kernel),
        }
    }

    /// The kernels that it is composed of, to be changed.
    pub fn children_mut(&mut self) -> &mut [Self] {
        match self {
            Self::Part(_) | Self::User(_) => &mut [],
            Self::Sum(parts) | Self::Product(parts) => parts,
            Self::ChangePoint(change) => &mut *change.kernels,
            Self::Scaled(ScaledSpec { kernel, .. })
            | Self::Power(PowerSpec { kernel, .. })
            | Self::Odd(kernel) => std::slice::from_mut(&mut **kernel),
        }
    }

    /// The components it acts on, or along which it changes; none for other composed kernels.
    pub fn active_mut(&mut self) -> Option<&mut Active> {
        match self {
            Self::Part(part) => Some(&mut part.active),
            Self::User(kernel) => Some(&mut kernel.active),
            Self::ChangePoint(change) => Some(&mut change.active),
            _ => None,
        }
    }

    /// Whether there is an odd kernel among its parts.
    pub(crate) fn has_odd(&self) -> bool {
        matches!(self, Self::Odd(_)) || self.children().iter().any(Self::has_odd)
    }

    /// Whether there is a change point among its parts.
    pub(crate) fn has_change_point(&self) -> bool {
        matches!(self, Self::ChangePoint(_)) || self.children().iter().any(Self::has_change_point)
    }

    /// The name of the first user's kernel among its parts.
    pub(crate) fn user(&self) -> Option<&str> {
        match self {
            Self::User(kernel) => Some(&kernel.name),
            _ => self.children().iter().find_map(Self::user),
        }
    }
}

impl Model {
    /// The first kernel of the user's own: its state and its name.
    pub(crate) fn user_kernel(&self) -> Option<(usize, &str)> {
        self.states.iter().enumerate().find_map(|(d, state)| match &state.transition {
            TransitionSpec::Gp { kernel, .. } => Some((d, kernel.user()?)),
            _ => None,
        })
    }
}

impl fmt::Display for KernelSpec {
    /// As it is written in a run file: `2 * se(x) + linear^2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |name: &str, active: &Active| match active {
            Some(names) => format!("{name}({})", names.join(", ")),
            None => name.to_owned(),
        };
        let bracketed = |kernel: &Self, apart: fn(&Self) -> bool| match apart(kernel) {
            true => format!("({kernel})"),
            false => kernel.to_string(),
        };
        let join = |parts: Vec<String>, sign: &str| parts.join(sign);
        let text = match self {
            Self::Part(part) => on(part.kind.short, &part.active),
            Self::User(kernel) => on(&kernel.name, &kernel.active),
            Self::Sum(parts) => join(parts.iter().map(Self::to_string).collect(), " + "),
            Self::Product(parts) => {
                let factor = |part| {
                    bracketed(part, |k| matches!(k, Self::Sum(_) | Self::Scaled(_) | Self::Product(_)))
                };
                join(parts.iter().map(factor).collect(), " * ")
            }
            Self::Scaled(ScaledSpec { factor, kernel }) => {
                format!("{factor} * {}", bracketed(kernel, |k| matches!(k, Self::Sum(_) | Self::Scaled(_))))
            }
            Self::Power(PowerSpec { kernel, exponent }) => {
                let composed = |k: &Self| {
                    matches!(k, Self::Sum(_) | Self::Product(_) | Self::Scaled(_) | Self::Power(_))
                };
                format!("{}^{exponent}", bracketed(kernel, composed))
            }
            Self::ChangePoint(change) => {
                let [before, after] = &*change.kernels;
                let along = change.active.iter().flatten().map(|name| format!("{name}, "));
                format!("{CHANGE_POINT}({}{before}, {after})", along.collect::<String>())
            }
            Self::Odd(kernel) => format!("odd({kernel})"),
        };
        formatter.write_str(&text)
    }
}

impl Default for KernelSpec {
    /// Squared exponential + linear.
    fn default() -> Self {
        Self::Sum(vec![Self::new(&SQUARED_EXPONENTIAL), Self::new(&LINEAR)])
    }
}

/// Components of z that a kernel acts on: `x`, `u` for all states or inputs, `x1`, `u2` for one; none means
/// all.
pub type Active = Option<Vec<String>>;

/// A kernel of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSpec {
    /// Which.
    pub kind: &'static Descriptor,
    /// Components it acts on.
    pub active: Active,
    /// Priors of its hyper-parameters by name: one for all components or one for each; those left out have the default.
    pub parameters: BTreeMap<String, Vec<Prior>>,
}

/// A user's kernel, see [`crate::Functions::with_kernel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserKernelSpec {
    /// The name under which it is registered.
    pub name: String,
    /// Components it acts on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Active,
    /// Priors of its hyper-parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Prior>,
}

/// One kernel before and another after a change: (1 - s) (1 - s') k_before + s s' k_after with
/// s(z) = 1 / (1 + exp(-(z_c - location) / width)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangePointSpec {
    /// The component of z along which it changes; none where z has one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Active,
    /// Prior of the place of the change; by default normal, around the middle of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Prior>,
    /// Prior of how gradual it is; by default log-normal around a tenth of the component's standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Prior>,
    /// The kernels before and after it.
    pub kernels: Box<[KernelSpec; 2]>,
}

/// Name of a change point in run files, kernel texts and names of parameters.
pub const CHANGE_POINT: &str = "change_point";

/// A kernel times a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledSpec {
    /// The number.
    pub factor: f64,
    /// The kernel.
    pub kernel: Box<KernelSpec>,
}

/// A kernel times itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerSpec {
    /// The kernel.
    pub kernel: Box<KernelSpec>,
    /// How often, at least once.
    pub exponent: u32,
}
