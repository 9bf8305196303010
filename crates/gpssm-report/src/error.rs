//! Why there is no report.

/// Every error says what is wrong and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The draws do not belong to the problem.
    #[error("draws: {message}")]
    Draws {
        /// What does not fit, with chain and draw.
        message: String,
    },
    /// The posterior of f could not be computed.
    #[error(transparent)]
    Posterior(#[from] gpssm::Error),
}
