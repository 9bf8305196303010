//! What a user should know of a result, as data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A request that could be met, with a reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// Points outside what the paths of the draws visited: the answer there is mostly the prior.
    Extrapolation {
        /// Component of (x, u).
        component: String,
        /// How many points.
        n_points: usize,
        /// The first of them, from 0.
        first: usize,
        /// Smallest value that was visited.
        low: f64,
        /// Largest value that was visited.
        high: f64,
    },
    /// Points outside the box of a Hilbert-space basis: f is its mean there, without uncertainty.
    OutsideBox {
        /// Component of (x, u).
        component: String,
        /// How many points.
        n_points: usize,
        /// The first of them, from 0.
        first: usize,
    },
    /// Simulated paths whose numbers overflowed; they are left out.
    Diverged {
        /// How many.
        n_paths: usize,
        /// Out of how many.
        of: usize,
    },
    /// Filters of single functions in which all particles died and that were started again.
    Restarted {
        /// How often.
        n: u64,
    },
    /// Few draws carry most of the weight.
    FewDraws {
        /// Effective number of draws.
        effective: f64,
        /// Out of how many.
        of: usize,
    },
    /// A baseline whose free run overflows; it has no scores.
    BaselineDiverged {
        /// Which.
        name: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extrapolation { component, n_points, first, low, high } => write!(
                formatter,
                "{n_points} points (the first is point {first}) have {component} outside {low} .. {high}, where the \
                 training paths went: f is mostly its prior there"
            ),
            Self::OutsideBox { component, n_points, first } => write!(
                formatter,
                "{n_points} points (the first is point {first}) have {component} outside the box of the Hilbert-space \
                 basis: f is its mean there, without uncertainty; a larger half_width would cover them"
            ),
            Self::Diverged { n_paths, of } => write!(
                formatter,
                "{n_paths} of {of} simulated paths overflowed and were left out: bands describe the others"
            ),
            Self::Restarted { n } => write!(
                formatter,
                "{n} times all particles of one function had weight zero, and its filter was started again: the record \
                 does not fit the model there, or more particles are needed"
            ),
            Self::FewDraws { effective, of } => write!(
                formatter,
                "the record leaves {effective:.1} of {of} functions with weight: uncertainty about f is understated"
            ),
            Self::BaselineDiverged { name } => {
                write!(formatter, "the baseline \"{name}\" overflows in a free run and has no scores")
            }
        }
    }
}
