//! Checks of sensors, output by output.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::Nonconformity;
use super::statistics::{P_MIN, binned_p_value, chi_square_p_value, integrate_interval, integrate_positive};
use crate::points::Points;
use crate::sensor::BoundSensor;
use crate::sensor::support::OutputSupport;

/// Draws of each output at each point.
const N_DRAWS: usize = 20_000;
/// Bins of the test of continuous draws.
const N_BINS: usize = 40;
/// Step of the quadrature.
const STEP: f64 = 0.01;
/// How far a total may be from one: densities of users may have kinks.
const TOTAL_TOLERANCE: f64 = 1e-3;
/// Most terms of a sum over whole numbers.
const MOST_TERMS: usize = 100_000;

/// Checks a sensor at every point z = (x, u), for outputs that lie in these supports.
///
/// - The density of each output, the others missing, integrates or sums to one.
/// - 20 000 draws of it lie in the support and follow that density (chi-squared test, p >= 1e-4, fixed seeds).
/// - The log density at many points at once is that at single points.
///
/// How outputs depend on each other, given z, is not checked. A sensor that cannot be drawn from is checked as far as
/// its supports are finite.
///
/// ```
/// use std::sync::Arc;
/// use gpssm::sensor::OutputSupport;
/// use gpssm::sensor::{BoundSensor, SensorDensity, UserSensor};
/// use gpssm::{Points, conformance};
/// use rand::{Rng, RngExt};
///
/// /// Laplace noise around the state; its parameter is the scale.
/// struct Laplace;
///
/// impl SensorDensity for Laplace {
///     fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]) {
///         for (out, x) in out.iter_mut().zip(z.column(0)) {
///             *out = -(y[0] - x).abs() / parameters[0] - (2.0 * parameters[0]).ln();
///         }
///     }
///
///     fn sample(&self, z: &[f64], parameters: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
///         let u: f64 = rng.random_range(-1.0..1.0);
///         y[0] = z[0] - parameters[0] * u.signum() * (1.0 - u.abs()).ln();
///     }
/// }
///
/// let sensor = UserSensor { sensor: Arc::new(Laplace), parameters: vec![0.3], scaling: None };
/// let points = Points::from_rows(1, [&[-1.0][..], &[2.0]]);
/// conformance::sensor(&BoundSensor::User(sensor), &points, &[OutputSupport::REAL])?;
/// # Ok::<(), conformance::Nonconformity>(())
/// ```
pub fn sensor(
    sensor: &BoundSensor,
    points: &Points,
    supports: &[OutputSupport],
) -> Result<(), Nonconformity> {
    for i in 0..points.len() {
        let z = points.row(i);
        let draws = draws(sensor, &z, supports.len(), i as u64);
        for (k, &support) in supports.iter().enumerate() {
            let place = format!("point {i}, output {k}");
            let here = Points::from_rows(z.len(), [&z[..]]);
            let log_density = |y: f64| {
                let mut row = vec![f64::NAN; supports.len()];
                row[k] = y;
                let mut out = [0.0];
                sensor.add_log_density(&row, &here, &mut out);
                out[0]
            };
            let column: Option<Vec<f64>> = draws
                .as_ref()
                .ok()
                .map(|draws| draws.iter().skip(k).step_by(supports.len()).copied().collect());
            let output = Output { place: &place, log_density: &log_density, support };
            match (column, output.is_bounded()) {
                (Some(column), _) => {
                    output.total(&column, TOTAL_TOLERANCE)?;
                    output.draws(&column)?;
                }
                (None, true) => output.total(&[], TOTAL_TOLERANCE)?,
                (None, false) => {
                    let why = draws.as_ref().err().cloned().unwrap_or_default();
                    return Err(Nonconformity::CannotCheck(format!("{place}: {why}")));
                }
            }
        }
        if let Ok(draws) = &draws {
            batch(sensor, points, &draws[..supports.len()])?;
        }
    }
    Ok(())
}

/// Draws of all outputs at one point, row-major; or why there are none.
fn draws(sensor: &BoundSensor, z: &[f64], n_y: usize, seed: u64) -> Result<Vec<f64>, String> {
    sensor.can_sample()?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draws = vec![0.0; N_DRAWS * n_y];
    draws.chunks_exact_mut(n_y).for_each(|y| sensor.sample(z, &mut rng, y));
    Ok(draws)
}

/// Points must not know of each other.
fn batch(sensor: &BoundSensor, points: &Points, y: &[f64]) -> Result<(), Nonconformity> {
    let mut together = vec![0.0; points.len()];
    sensor.add_log_density(y, points, &mut together);
    for (i, &found) in together.iter().enumerate() {
        let z = points.row(i);
        let mut alone = [0.0];
        sensor.add_log_density(y, &Points::from_rows(z.len(), [&z[..]]), &mut alone);
        let expected = alone[0];
        let close = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        if found != expected && !close {
            let place = format!("point {i}");
            let what = "the log density at all points at once".to_owned();
            return Err(Nonconformity::Differs { place, what, found, expected });
        }
    }
    Ok(())
}

/// One output at one point.
pub(super) struct Output<'a> {
    pub(super) place: &'a str,
    pub(super) log_density: &'a dyn Fn(f64) -> f64,
    pub(super) support: OutputSupport,
}

impl Output<'_> {
    fn is_bounded(&self) -> bool {
        let (OutputSupport::Interval { low, high } | OutputSupport::Integers { low, high }) = self.support;
        low.is_finite() && high.is_finite()
    }

    fn density(&self, y: f64) -> f64 {
        (self.log_density)(y).exp()
    }

    /// The density integrates or sums to one. Draws say where on an unbounded support to look for it.
    pub(super) fn total(&self, draws: &[f64], tolerance: f64) -> Result<(), Nonconformity> {
        let found = match self.support {
            OutputSupport::Integers { .. } => self.integers().map(|y| self.density(y)).sum(),
            OutputSupport::Interval { low, high } => {
                let sorted = sorted(draws);
                let quantile = |p: f64| sorted.get((p * sorted.len() as f64) as usize).copied();
                let middle = quantile(0.5).unwrap_or(0.5 * (low + high));
                let width = quantile(0.75).unwrap_or(high) - quantile(0.25).unwrap_or(low);
                // Split where densities have kinks most often.
                self.side(middle, width, high) + self.side(middle, -width, low)
            }
        };
        if (found - 1.0).abs() <= tolerance {
            return Ok(());
        }
        Err(Nonconformity::Total { place: self.place.to_owned(), found })
    }

    /// The integral from `from` to an end of the support, in the direction of `width`.
    fn side(&self, from: f64, width: f64, end: f64) -> f64 {
        if end.is_finite() {
            return integrate_interval(STEP, from.min(end), from.max(end), |y| self.density(y));
        }
        width.abs() * integrate_positive(STEP, |t| self.density(from + width * t))
    }

    /// Whole numbers of the support, as many as a sum can have.
    fn integers(&self) -> impl Iterator<Item = f64> {
        let (OutputSupport::Interval { low, high } | OutputSupport::Integers { low, high }) = self.support;
        (0..MOST_TERMS).map(move |i| low + i as f64).take_while(move |y| *y <= high)
    }

    /// Draws lie in the support and follow the density.
    pub(super) fn draws(&self, draws: &[f64]) -> Result<(), Nonconformity> {
        for &y in draws {
            if !self.support.contains(y) {
                let (place, support) = (self.place.to_owned(), self.support);
                return Err(Nonconformity::OutsideSupport { place, y, support });
            }
            let found = (self.log_density)(y);
            if !found.is_finite() {
                return Err(Nonconformity::NoDensity { place: self.place.to_owned(), y, found });
            }
        }
        let p_value = match self.support {
            OutputSupport::Integers { low, .. } => {
                if draws.iter().any(|y| y - low >= MOST_TERMS as f64) {
                    let message =
                        format!("{}: choose points where outputs are below {MOST_TERMS}", self.place);
                    return Err(Nonconformity::CannotCheck(message));
                }
                let counts: Vec<f64> = draws.iter().map(|y| y - low).collect();
                chi_square_p_value(&counts, |y| self.density(low + y))
            }
            OutputSupport::Interval { .. } => self.continuous_p_value(draws),
        };
        if p_value >= P_MIN {
            return Ok(());
        }
        Err(Nonconformity::Draws { place: self.place.to_owned(), n: draws.len(), p_value })
    }

    /// The first half of the draws makes bins, the second half fills them.
    fn continuous_p_value(&self, draws: &[f64]) -> f64 {
        let (first, second) = draws.split_at(draws.len() / 2);
        let first = sorted(first);
        let edges: Vec<f64> = (1..N_BINS).map(|i| first[i * first.len() / N_BINS]).collect();
        let bins = edges.windows(2);
        let (counts, probabilities): (Vec<f64>, Vec<f64>) = bins
            .map(|edge| {
                let inside = second.iter().filter(|y| edge[0] <= **y && **y < edge[1]).count();
                let p = integrate_interval(STEP, edge[0], edge[1], |y| self.density(y));
                (inside as f64, p)
            })
            .unzip();
        binned_p_value(&counts, &probabilities, second.len() as f64)
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests;
