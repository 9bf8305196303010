//! Warnings about predictions, simulations and scores, as data.

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
                "{n_points} points (the first is point {first}) have {component} outside the training range {} .. {}; \
                 predictions there rely on the prior.",
                four_digits(*low),
                four_digits(*high)
            ),
            Self::OutsideBox { component, n_points, first } => write!(
                formatter,
                "{n_points} points (the first is point {first}) have {component} outside the box of the Hilbert-space \
                 basis; f is its prior mean there, without uncertainty. Use a larger half_width."
            ),
            Self::Diverged { n_paths, of } => write!(
                formatter,
                "{n_paths} of {of} simulated paths overflowed and were left out of the prediction intervals."
            ),
            Self::Restarted { n } => write!(
                formatter,
                "All particles of one function had weight zero {n} times, and its filter was restarted. The record does \
                 not fit the model there, or more particles are needed."
            ),
            Self::FewDraws { effective, of } => write!(
                formatter,
                "Only {effective:.0} of {of} sampled models {} this record, so the uncertainty is understated; try {} \
                 functions.",
                if effective.round() > 1.0 { "explain" } else { "explains" },
                10 * of
            ),
            Self::BaselineDiverged { name } => {
                write!(formatter, "The baseline \"{name}\" overflows in a free run and has no scores.")
            }
        }
    }
}

/// A number with four significant digits.
fn four_digits(value: f64) -> f64 {
    // A text that was made from a number can be read as one.
    format!("{value:.3e}").parse().unwrap_or(value)
}
