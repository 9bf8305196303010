//! What can be wrong with an observation or with a family's parameters.

use thiserror::Error;

use super::OutputSupport;

/// An observation or a parameter that does not belong to a family.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FamilyError {
    /// An observation outside the support.
    #[error(
        "an observation of the {family} family is {value}, but it must be {support} (or NaN where missing)"
    )]
    Impossible {
        /// Name of the family as written in a configuration.
        family: &'static str,
        /// The observation.
        value: f64,
        /// What it must be.
        support: OutputSupport,
    },
    /// A parameter that is not a positive finite number.
    #[error("{family} family: {field} = {value}, but it must be positive and finite")]
    BadParameter {
        /// Name of the family as written in a configuration.
        family: &'static str,
        /// Name of the parameter.
        field: &'static str,
        /// The value found.
        value: f64,
    },
}
