//! Where an output can lie.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most values of an output that is a whole number and is drawn by its probabilities.
pub(crate) const MOST_INTEGERS: f64 = 100_000.0;

/// Where an output can lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OutputSupport {
    /// Real numbers from `low` to `high`.
    Interval {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Whole numbers from `low` to `high`.
    Integers {
        /// Least value.
        low: f64,
        /// Greatest value.
        high: f64,
    },
}

impl OutputSupport {
    /// All real numbers.
    pub const REAL: Self = Self::Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
    /// 0, 1, 2, ...
    pub const COUNTS: Self = Self::Integers { low: 0.0, high: f64::INFINITY };

    /// Whether outputs can be drawn numerically: finite bounds, and not too many whole numbers.
    pub(crate) fn validate(self) -> Result<(), String> {
        match self {
            Self::Interval { low, high } if low < high && (high - low).is_finite() => Ok(()),
            Self::Interval { .. } => Err("needs finite bounds, low before high".into()),
            Self::Integers { low, high } => {
                if low.fract() != 0.0 || high.fract() != 0.0 || low > high {
                    Err("needs whole numbers, low before high".into())
                } else if high - low >= MOST_INTEGERS {
                    Err(format!("can have {MOST_INTEGERS} values at most"))
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Whether a measured output is possible. Infinite numbers are not.
    pub fn contains(self, y: f64) -> bool {
        match self {
            Self::Interval { low, high } => y.is_finite() && (low..=high).contains(&y),
            Self::Integers { low, high } => (low..=high).contains(&y) && y.fract() == 0.0,
        }
    }
}

/// What an output must be, such as "a non-negative integer".
impl fmt::Display for OutputSupport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::REAL => formatter.write_str("finite"),
            Self::COUNTS => formatter.write_str("a non-negative integer"),
            Self::Integers { low: 0.0, high: 1.0 } => formatter.write_str("0 or 1"),
            Self::Interval { low, high } => write!(formatter, "a number from {low} to {high}"),
            Self::Integers { low, high } => write!(formatter, "an integer from {low} to {high}"),
        }
    }
}
