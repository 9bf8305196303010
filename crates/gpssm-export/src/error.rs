//! What cannot be exported.

/// Why a model cannot be exported.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A part of the model has no counterpart outside the library.
    #[error("{what} cannot be exported: {why}")]
    Refused {
        /// Which part.
        what: String,
        /// The reason, and what to do.
        why: String,
    },
    /// An option that does not fit.
    #[error("{option}: {message}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The distilled model is broken or of another version.
    #[error(transparent)]
    Model(#[from] gpssm::Error),
}

impl ExportError {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), why: why.into() }
    }

    pub(crate) fn option(option: &'static str, message: impl Into<String>) -> Self {
        Self::Option { option, message: message.into() }
    }
}
