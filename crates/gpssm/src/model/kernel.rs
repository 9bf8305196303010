//! Kernels as the user describes them: priors in place of numbers.

mod serde;

use std::collections::BTreeMap;
use std::fmt;

use ::serde::{Deserialize, Serialize};

use super::prior::Prior;
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
    /// Of the odd part of such a function, f(-z) = -f(z): what happens to the right happens to the left. z is counted
    /// from the middle of the data where they are standardised.
    Odd(Box<KernelSpec>),
}

impl KernelSpec {
    /// A kernel of the table, on all components and with default priors.
    pub fn new(kind: &'static Descriptor) -> Self {
        Self::Part(PartSpec { kind, active: None, parameters: BTreeMap::new() })
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
            _ => {}
        }
        self
    }

    /// The kernels that it is composed of; none for a single one.
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Part(_) | Self::User(_) => &[],
            Self::Sum(parts) | Self::Product(parts) => parts,
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
            Self::Scaled(ScaledSpec { kernel, .. })
            | Self::Power(PowerSpec { kernel, .. })
            | Self::Odd(kernel) => std::slice::from_mut(&mut **kernel),
        }
    }

    /// The components it acts on; none for a composed kernel.
    pub fn active_mut(&mut self) -> Option<&mut Active> {
        match self {
            Self::Part(part) => Some(&mut part.active),
            Self::User(kernel) => Some(&mut kernel.active),
            _ => None,
        }
    }

    /// Whether there is an odd kernel among its parts.
    pub(crate) fn has_odd(&self) -> bool {
        matches!(self, Self::Odd(_)) || self.children().iter().any(Self::has_odd)
    }

    /// Whether there is a user's kernel among its parts.
    pub(crate) fn has_user(&self) -> bool {
        matches!(self, Self::User(_)) || self.children().iter().any(Self::has_user)
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
                let single = |k: &Self| matches!(k, Self::Part(_) | Self::User(_) | Self::Odd(_));
                let text = if single(kernel) { kernel.to_string() } else { format!("({kernel})") };
                format!("{text}^{exponent}")
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
