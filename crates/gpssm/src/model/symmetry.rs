//! Sign changes that the sensor cannot see.

use serde::{Deserialize, Serialize};

/// The posterior does not change under x_d -> -x_d for the states d in `flip`, with f changed along. Draws
/// are reported on the branch that the rule picks.
///
/// This is exact only if sensor, p(x_0), mean functions, kernels and priors are unchanged by the flip; a model
/// for which that does not hold is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symmetry {
    /// States that change sign together, from 0.
    pub flip: Vec<usize>,
    /// Parameters of user functions that change sign along (their priors must be symmetric about zero).
    #[serde(default)]
    pub flip_parameters: Vec<String>,
    /// Which branch is reported.
    pub orientation: Orientation,
}

/// The sign of an odd function of the path; the branch on which it is positive is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Orientation {
    /// "Raising u raises x": the coefficient of the input in the least-squares fit of x_{t+1} on (x_t, u_t).
    InputRaisesState {
        /// Input, from 0.
        input: usize,
        /// State, from 0; one of the flipped.
        state: usize,
    },
    /// The coefficient of one state in the same fit for another; exactly one of the two is flipped.
    StateRaisesState {
        /// State on the right-hand side, from 0.
        from: usize,
        /// State on the left-hand side, from 0.
        to: usize,
    },
    /// The state's mean over time is positive.
    PositiveMean {
        /// State, from 0; one of the flipped.
        state: usize,
    },
}
