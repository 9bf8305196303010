//! What can be wrong with an observation.

use thiserror::Error;

use super::OutputSupport;

/// An observation that does not belong to a family.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
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
}
