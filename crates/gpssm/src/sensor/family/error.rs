//! What can be wrong with an observation or with a family's parameters.

use thiserror::Error;

/// An observation or a parameter that does not belong to a family.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FamilyError {
    /// An infinite observation.
    #[error("an observation of the {family} family is {value}, but it must be finite (or NaN where missing)")]
    Infinite {
        /// Name of the family as written in a configuration.
        family: &'static str,
        /// The observation.
        value: f64,
    },
    /// An observation that is not a count.
    #[error(
        "an observation of the {family} family is {value}, but it must be a non-negative integer (or NaN where missing)"
    )]
    NotACount {
        /// Name of the family as written in a configuration.
        family: &'static str,
        /// The observation.
        value: f64,
    },
    /// An observation that is neither 0 nor 1.
    #[error("an observation of the {family} family is {value}, but it must be 0 or 1 (or NaN where missing)")]
    NotBinary {
        /// Name of the family as written in a configuration.
        family: &'static str,
        /// The observation.
        value: f64,
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
