//! A sensor given by a formula for its log density.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::SensorDensity;
use crate::formula::Program;
use crate::points::Points;

/// Points of the grid on which a density is inverted.
const GRID: usize = 1025;
/// Values whose log density is this far below the greatest are left out when the grid is narrowed.
const NEGLIGIBLE: f64 = 50.0;
/// Most values of an output that is a whole number.
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

    /// Whether a seen output is possible.
    pub(crate) fn contains(self, y: f64) -> bool {
        match self {
            Self::Interval { low, high } => (low..=high).contains(&y),
            Self::Integers { low, high } => (low..=high).contains(&y) && y.fract() == 0.0,
        }
    }
}

/// p(y | x, u) from a formula for its logarithm.
///
/// Such a density can be evaluated but not drawn from as it stands. With a single output whose support is known
/// it is drawn from numerically: whole numbers by their probabilities, real numbers by inverting the integral of
/// the density, taken as linear between the 1025 points of a grid. The grid is first narrowed to where the
/// density is not negligible, so a narrow peak is resolved; of several narrow peaks, far apart on the scale of the
/// whole support, some can be missed. Without a support, drawing is refused.
#[derive(Clone, Debug)]
pub struct FormulaSensor {
    /// Columns are z, scalars are y and the parameters.
    density: Program,
    drawing: Option<Drawing>,
}

#[derive(Clone, Debug)]
struct Drawing {
    /// The same density of a single output: its only column is y, scalars are z and the parameters.
    density: Program,
    support: OutputSupport,
}

impl FormulaSensor {
    pub(crate) fn new(density: Program, drawing: Option<(Program, OutputSupport)>) -> Self {
        let drawing = drawing.map(|(density, support)| Drawing { density, support });
        Self { density, drawing }
    }
}

impl SensorDensity for FormulaSensor {
    fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]) {
        self.density.evaluate(z, &[y, parameters].concat(), out);
    }

    /// A point at which the density is zero everywhere, or not a number, has no output: it is left missing.
    fn sample(&self, z: &[f64], parameters: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        y.fill(f64::NAN);
        if let (Some(drawing), [y]) = (&self.drawing, y) {
            *y = drawing.draw(&[z, parameters].concat(), rng).unwrap_or(f64::NAN);
        }
    }

    fn can_sample(&self) -> Result<(), String> {
        match self.drawing {
            Some(_) => Ok(()),
            None => Err("outputs cannot be drawn from a log density alone: give the sensor a support \
                         (possible with a single output), or use a sensor with a known distribution"
                .into()),
        }
    }
}

impl Drawing {
    fn draw(&self, scalars: &[f64], rng: &mut dyn Rng) -> Option<f64> {
        let uniform: f64 = rng.random();
        match self.support {
            OutputSupport::Integers { low, high } => {
                let values: Vec<f64> = (0..=(high - low) as usize).map(|i| low + i as f64).collect();
                let density = self.relative_density(&values, scalars)?;
                let mut left = uniform * density.iter().sum::<f64>();
                let found = density.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                // Rounding can leave a rest: the last value that is possible.
                let last = || density.iter().rposition(|p| *p > 0.0);
                found.or_else(last).map(|i| values[i])
            }
            OutputSupport::Interval { low, high } => self.draw_between(low, high, scalars, uniform),
        }
    }

    /// exp(log density - greatest log density); none if the density is zero everywhere.
    fn relative_density(&self, values: &[f64], scalars: &[f64]) -> Option<Vec<f64>> {
        let mut density = vec![0.0; values.len()];
        let column = Points::from_rows(1, values.iter().map(std::slice::from_ref));
        self.density.evaluate(&column, scalars, &mut density);
        let greatest = density.iter().copied().filter(|p| p.is_finite()).reduce(f64::max)?;
        for p in &mut density {
            *p = if p.is_finite() { (*p - greatest).exp() } else { 0.0 };
        }
        Some(density)
    }

    fn draw_between(&self, mut low: f64, mut high: f64, scalars: &[f64], uniform: f64) -> Option<f64> {
        let grid = |low: f64, high: f64| -> Vec<f64> {
            let step = (high - low) / (GRID - 1) as f64;
            (0..GRID).map(|i| (low + i as f64 * step).min(high)).collect()
        };
        let mut values = grid(low, high);
        let mut density = self.relative_density(&values, scalars)?;
        let least = (-NEGLIGIBLE).exp();
        loop {
            let first = density.iter().position(|p| *p > least)?.saturating_sub(1);
            let last = (density.iter().rposition(|p| *p > least)? + 1).min(GRID - 1);
            // A finer grid would repeat its points.
            let finest = f64::EPSILON * GRID as f64 * values[first].abs().max(values[last].abs());
            if 2 * (last - first) > GRID || values[last] - values[first] <= finest {
                break;
            }
            // At least twice as fine as before, so this ends.
            (low, high) = (values[first], values[last]);
            values = grid(low, high);
            density = self.relative_density(&values, scalars)?;
        }
        let pieces = || density.windows(2).map(|p| 0.5 * (p[0] + p[1]));
        let mut left = uniform * pieces().sum::<f64>();
        for (i, piece) in pieces().enumerate() {
            if left < piece {
                // The root of p0 s + (p1 - p0) s^2 / 2 = left, in a form that does not cancel.
                let (p0, p1) = (density[i], density[i + 1]);
                let root = (p0 * p0 + 2.0 * (p1 - p0) * left).max(0.0).sqrt();
                let s = if left > 0.0 { (2.0 * left / (p0 + root)).min(1.0) } else { 0.0 };
                return Some(values[i] + s * (values[i + 1] - values[i]));
            }
            left -= piece;
        }
        density.iter().rposition(|p| *p > 0.0).map(|i| values[i])
    }
}
