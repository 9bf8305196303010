//! What a part can get wrong.

use thiserror::Error;

/// What a part gets wrong.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Nonconformity {
    /// A log density that is NaN or infinite upwards, or infinite downwards where y was drawn.
    #[error("{place}: the log density of y = {y} is {found}")]
    NoDensity {
        /// Where.
        place: String,
        /// The output.
        y: f64,
        /// Its log density.
        found: f64,
    },
    /// A density that does not integrate, or sum, to one.
    #[error("{place}: the density integrates (or sums) to {found}, not to 1")]
    Total {
        /// Where.
        place: String,
        /// The integral or sum.
        found: f64,
    },
    /// A draw outside the support.
    #[error("{place}: drew y = {y}, which is outside of the support: it must be {support}")]
    OutsideSupport {
        /// Where.
        place: String,
        /// The draw.
        y: f64,
        /// What it must be.
        support: crate::sensor::support::OutputSupport,
    },
    /// Draws that do not follow the density.
    #[error("{place}: {n} draws do not follow the density (p = {p_value:.1e})")]
    Draws {
        /// Where.
        place: String,
        /// Number of draws.
        n: usize,
        /// p-value of the test.
        p_value: f64,
    },
    /// Two numbers that should be the same.
    #[error("{place}: {what} is {found}, expected {expected}")]
    Differs {
        /// Where.
        place: String,
        /// What was compared.
        what: String,
        /// As the part has it.
        found: f64,
        /// As it should be.
        expected: f64,
    },
    /// A kernel whose matrix has negative eigenvalues.
    #[error("the covariances of {n} random points are not positive semi-definite")]
    Indefinite {
        /// Number of points.
        n: usize,
    },
    /// A part that cannot be checked.
    #[error("{0}")]
    CannotCheck(String),
}
