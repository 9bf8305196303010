//! What can be wrong with the parameters of a prior.

use thiserror::Error;

/// A prior that cannot be used, with the facts that say why.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A parameter is NaN or infinite.
    #[error("{prior} prior: {field} = {value} is not a finite number")]
    NotFinite {
        /// Name of the prior as written in a configuration.
        prior: &'static str,
        /// Name of the parameter.
        field: &'static str,
        /// The value found.
        value: f64,
    },
    /// A parameter is finite but not allowed.
    #[error("{prior} prior: {field} = {value}, but it must be {allowed}")]
    OutOfRange {
        /// Name of the prior as written in a configuration.
        prior: &'static str,
        /// Name of the parameter.
        field: &'static str,
        /// The value found.
        value: f64,
        /// The values allowed.
        allowed: &'static str,
    },
    /// The bounds of a uniform prior leave no interval of finite width.
    #[error(
        "uniform prior: low = {low} and high = {high}, but low < high with a finite difference is needed"
    )]
    BadInterval {
        /// Lower bound found.
        low: f64,
        /// Upper bound found.
        high: f64,
    },
    /// The prior gives mass to negative numbers and cannot be one of a scale.
    #[error(
        "a {prior} prior reaches negative values and cannot be a prior of a standard deviation or variance"
    )]
    NotAScale {
        /// Name of the prior as written in a configuration.
        prior: &'static str,
    },
    /// A point mass where a density is needed.
    #[error(
        "a {prior} prior of a covariance needs standard deviations with a density, but one is fixed at {value}"
    )]
    NoDensity {
        /// Name of the matrix prior as written in a configuration.
        prior: &'static str,
        /// The fixed standard deviation found.
        value: f64,
    },
    /// A list has a length that does not fit the dimension.
    #[error("{prior} prior: {field} has length {found}, expected {expected}")]
    WrongLength {
        /// Name of the prior as written in a configuration.
        prior: &'static str,
        /// Name of the list.
        field: &'static str,
        /// Length found.
        found: usize,
        /// Length needed.
        expected: usize,
    },
    /// A scale matrix is not symmetric.
    #[error(
        "{prior} prior: scale[{row}][{column}] = {value}, but scale[{column}][{row}] = {mirrored}; the matrix must be symmetric"
    )]
    NotSymmetric {
        /// Name of the prior as written in a configuration.
        prior: &'static str,
        /// Row of the entry, from 0.
        row: usize,
        /// Column of the entry, from 0.
        column: usize,
        /// The entry.
        value: f64,
        /// The entry on the other side of the diagonal.
        mirrored: f64,
    },
    /// A scale matrix is not positive definite.
    #[error(
        "{prior} prior: the scale matrix is not positive definite (its leading block of size {order} is not)"
    )]
    NotPositiveDefinite {
        /// Name of the prior as written in a configuration.
        prior: &'static str,
        /// Size of the smallest leading block that fails.
        order: usize,
    },
    /// A user's log density is not one.
    #[error("log_density prior: {message}")]
    Density {
        /// What is wrong, and what to do.
        message: String,
    },
    /// The prior of one entry of a list is wrong.
    #[error("{field}[{index}]: {source}")]
    Entry {
        /// Name of the list.
        field: &'static str,
        /// Position in the list, from 0.
        index: usize,
        /// What is wrong with it.
        source: Box<PriorError>,
    },
}

/// Refuses NaN and infinities.
pub(crate) fn require_finite(prior: &'static str, field: &'static str, value: f64) -> Result<(), PriorError> {
    if value.is_finite() { Ok(()) } else { Err(PriorError::NotFinite { prior, field, value }) }
}

/// Refuses everything but positive finite numbers.
pub(crate) fn require_positive(
    prior: &'static str,
    field: &'static str,
    value: f64,
) -> Result<(), PriorError> {
    require_finite(prior, field, value)?;
    if value > 0.0 {
        Ok(())
    } else {
        Err(PriorError::OutOfRange { prior, field, value, allowed: "positive" })
    }
}
