//! A sensor given by a formula for its log density.

use rand::{Rng, RngExt};

use super::SensorDensity;
use super::support::OutputSupport;
use crate::formula::Program;
use crate::points::Points;

/// Points of the grid on which a density is inverted.
const GRID: usize = 1025;
/// Values whose log density is this far below the greatest are left out when the grid is narrowed.
const NEGLIGIBLE: f64 = 50.0;
/// Halvings of a cell of the grid in search of the edge of a density.
const BISECTIONS: usize = 30;

/// p(y | x, u) from a formula for its logarithm.
///
/// Such a density can be evaluated but not drawn from as it stands. With a single output whose support is known
/// it is drawn from numerically: whole numbers by their probabilities, real numbers by inverting the integral of
/// the density, taken as linear between the 1025 points of a grid. The grid is first narrowed to where the
/// density is not negligible, so a narrow peak is resolved, and an edge beyond which the density is zero is
/// found; a jump between two densities above zero is blurred over one cell, and of several narrow peaks far apart
/// some can be missed. Without a support, drawing is refused.
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

    fn supports(&self) -> Option<Vec<OutputSupport>> {
        self.drawing.as_ref().map(|drawing| vec![drawing.support])
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
                let probability = relative(&self.log_densities(&values, scalars))?;
                let mut left = uniform * probability.iter().sum::<f64>();
                let found = probability.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                // Rounding can leave a rest: the last value that is possible.
                let last = || probability.iter().rposition(|p| *p > 0.0);
                found.or_else(last).map(|i| values[i])
            }
            OutputSupport::Interval { low, high } => self.draw_between(low, high, scalars, uniform),
        }
    }

    /// Log density of each value; whatever is no log density counts as impossible.
    fn log_densities(&self, values: &[f64], scalars: &[f64]) -> Vec<f64> {
        let mut density = vec![0.0; values.len()];
        let column = Points::from_rows(1, values.iter().map(std::slice::from_ref));
        self.density.evaluate(&column, scalars, &mut density);
        density.iter().map(|p| if p.is_finite() { *p } else { f64::NEG_INFINITY }).collect()
    }

    fn draw_between(&self, low: f64, high: f64, scalars: &[f64], uniform: f64) -> Option<f64> {
        let (values, log_density) = self.narrowed(low, high, scalars)?;
        let density = relative(&log_density)?;
        let mut pieces: Vec<Piece> = Vec::with_capacity(GRID);
        for i in 0..GRID - 1 {
            let (from, to) = ((values[i], density[i]), (values[i + 1], density[i + 1]));
            match (log_density[i].is_finite(), log_density[i + 1].is_finite()) {
                (true, true) => pieces.push(Piece { from, to }),
                (true, false) => pieces.push(Piece { from, to: (self.edge(from.0, to.0, scalars), from.1) }),
                (false, true) => pieces.push(Piece { from: (self.edge(to.0, from.0, scalars), to.1), to }),
                (false, false) => {}
            }
        }
        let mut left = uniform * pieces.iter().map(Piece::mass).sum::<f64>();
        for piece in &pieces {
            if left < piece.mass() {
                return Some(piece.at(left));
            }
            left -= piece.mass();
        }
        pieces.last().map(|piece| piece.to.0)
    }

    /// A grid over the values that are not negligible, and their log densities.
    fn narrowed(&self, low: f64, high: f64, scalars: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        let grid = |low: f64, high: f64| -> Vec<f64> {
            let step = (high - low) / (GRID - 1) as f64;
            (0..GRID).map(|i| (low + i as f64 * step).min(high)).collect()
        };
        let mut values = grid(low, high);
        loop {
            let density = self.log_densities(&values, scalars);
            let least = density.iter().copied().fold(f64::NEG_INFINITY, f64::max) - NEGLIGIBLE;
            let first = density.iter().position(|p| *p > least)?.saturating_sub(1);
            let last = (density.iter().rposition(|p| *p > least)? + 1).min(GRID - 1);
            // A finer grid would repeat its points.
            let finest = f64::EPSILON * GRID as f64 * values[first].abs().max(values[last].abs());
            if 2 * (last - first) > GRID || values[last] - values[first] <= finest {
                return Some((values, density));
            }
            // At least twice as fine as before, so this ends.
            values = grid(values[first], values[last]);
        }
    }

    /// Where the density becomes zero between a possible and an impossible value.
    fn edge(&self, mut possible: f64, mut impossible: f64, scalars: &[f64]) -> f64 {
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (possible + impossible);
            if self.log_densities(&[middle], scalars)[0].is_finite() {
                possible = middle;
            } else {
                impossible = middle;
            }
        }
        possible
    }
}

/// exp(log density - greatest log density); none if the density is zero everywhere.
fn relative(log_density: &[f64]) -> Option<Vec<f64>> {
    let greatest = log_density.iter().copied().reduce(f64::max).filter(|p| p.is_finite())?;
    Some(log_density.iter().map(|p| (p - greatest).exp()).collect())
}

/// A linear piece of a density, from one value and density to another.
struct Piece {
    from: (f64, f64),
    to: (f64, f64),
}

impl Piece {
    fn mass(&self) -> f64 {
        0.5 * (self.from.1 + self.to.1) * (self.to.0 - self.from.0)
    }

    /// The value with this mass before it.
    fn at(&self, mass: f64) -> f64 {
        let ((y0, p0), (y1, p1)) = (self.from, self.to);
        // The root of p0 s + (p1 - p0) s^2 / 2 = m, in a form that does not cancel.
        let m = mass / (y1 - y0);
        let root = (p0 * p0 + 2.0 * (p1 - p0) * m).max(0.0).sqrt();
        let s = if m > 0.0 { (2.0 * m / (p0 + root)).min(1.0) } else { 0.0 };
        y0 + s * (y1 - y0)
    }
}
