//! What can be wrong with a model, a record or the settings.

use thiserror::Error;

use crate::formula::FormulaError;
use crate::identity::{Identity, Names};

/// Every error names what is wrong and where.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The record.
    #[error("data: {message}")]
    Data {
        /// What is wrong, with row and column.
        message: String,
    },
    /// The model description.
    #[error("model: {key}: {message}")]
    Model {
        /// Where in the description.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// The prior of an entry of theta.
    #[error("model: {name}: {message}")]
    Parameter {
        /// Which.
        identity: Box<Identity>,
        /// Its name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// A formula in the model description.
    #[error("model: {key}: {error}")]
    Formula {
        /// Where in the description.
        key: String,
        /// What is wrong, with the column; [`FormulaError::pointed`] shows it below the formula.
        error: FormulaError,
    },
    /// The sampler's settings.
    #[error("settings: {key}: {message}")]
    Settings {
        /// Which setting.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// The run would need more memory than allowed.
    #[error("this run needs about {needed_mb} MB but {allowed_mb} MB are allowed: {advice}")]
    Memory {
        /// Estimate, in 10^6 bytes.
        needed_mb: u64,
        /// Limit, in 10^6 bytes.
        allowed_mb: u64,
        /// What to do.
        advice: String,
    },
    /// No start with a finite density could be found.
    #[error("no starting point: {message}")]
    Start {
        /// What was tried.
        message: String,
    },
    /// A covariance is not positive definite to working precision.
    #[error(
        "{0}: the noise is too small beside the function; give process_noise a prior that keeps away from zero"
    )]
    Numerical(#[from] crate::linalg::dense::NotPositiveDefinite),
    /// The sink refused a draw.
    #[error("draws could not be stored: {message}")]
    Sink {
        /// What the sink said.
        message: String,
    },
}

impl Error {
    /// Data that cannot be used.
    pub fn data(message: impl Into<String>) -> Self {
        Self::Data { message: message.into() }
    }

    pub(crate) fn model(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Model { key: key.into(), message: message.into() }
    }

    pub(crate) fn parameter(identity: &Identity, names: &Names, message: impl Into<String>) -> Self {
        let (name, identity) = (identity.name(names), Box::new(identity.clone()));
        Self::Parameter { identity, name, message: message.into() }
    }

    pub(crate) fn formula(key: impl Into<String>, error: FormulaError) -> Self {
        Self::Formula { key: key.into(), error }
    }

    /// A setting that cannot be.
    pub fn settings(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Settings { key: key.into(), message: message.into() }
    }
}
