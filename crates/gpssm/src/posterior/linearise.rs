//! The model near a point: slopes of f and of the outputs, and states that stay where they are, one of each for every draw.
//!
//! Draws are brought to the same coordinates first, as in distillation. A draw is a Gaussian process posterior of f; a value and
//! slopes are drawn from it together, so that spreads over draws hold everything that is not known of f. Slopes are central
//! differences over a thousandth of the typical size of each component: for a kernel with a kink (Matérn-1/2) they are slopes
//! over that distance.

use rand::RngExt;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use super::distil::alignment::Aligned;
use super::observe::sensor_mean;
use super::{Posterior, Stream, stream_for};
use crate::error::Error;
use crate::linalg::small;
use crate::points::Points;

/// x' = f + A (x - x*) + B (u - u*), y = h + C (x - x*) + D (u - u*) around a point (x*, u*), original units, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinearDraw {
    /// Share of the draw.
    pub weight: f64,
    /// f(x*, u*).
    pub f: Vec<f64>,
    /// df / dx.
    pub a: Vec<f64>,
    /// df / du.
    pub b: Vec<f64>,
    /// Outputs at the point; empty for a user's sensor, whose mean is not known.
    pub h: Vec<f64>,
    /// dh / dx.
    pub c: Vec<f64>,
    /// dh / du.
    pub d: Vec<f64>,
}

impl LinearDraw {
    /// From f, A, B and h, C, D.
    pub fn of(weight: f64, [f, a, b]: [Vec<f64>; 3], [h, c, d]: [Vec<f64>; 3]) -> Self {
        Self { weight, f, a, b, h, c, d }
    }
}

/// A state that f leaves where it is, for one draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Equilibrium {
    /// Share of the draw.
    pub weight: f64,
    /// The state, original units; none where Newton's method found none.
    pub x: Option<Vec<f64>>,
    /// Outputs there; empty for a user's sensor.
    pub y: Vec<f64>,
}

/// Half the distance of differences, in internal units.
const STEP: f64 = 1e-3;
/// Steps of Newton's method, and the change in internal units that ends it.
const NEWTON: usize = 100;
const CLOSE: f64 = 1e-9;
/// Longest step in internal units, and how far out a state is given up.
const LONGEST: f64 = 1.0;
const FAR: f64 = 1e3;

/// A point and its neighbours along each component.
fn neighbours(z: &[f64], step: f64) -> Points {
    let mut points = Points::new(z.len());
    points.push(z);
    for c in 0..z.len() {
        for sign in [1.0, -1.0] {
            let mut at = z.to_vec();
            at[c] += sign * step;
            points.push(&at);
        }
    }
    points
}

impl Posterior {
    fn check_point(&self, x: &[f64], u: &[f64]) -> Result<(), Error> {
        if x.len() != self.n_x() || u.len() != self.n_u() {
            return Err(Error::data(format!(
                "a point has {} states and {} inputs, {} and {} are given",
                self.n_x(),
                self.n_u(),
                x.len(),
                u.len()
            )));
        }
        match x.iter().chain(u).all(|value| value.is_finite()) {
            true => Ok(()),
            false => Err(Error::data("a point must be made of finite numbers")),
        }
    }

    fn point_to_internal(&self, x: &[f64], u: &[f64]) -> Vec<f64> {
        let scaling = self.problem().scaling();
        let x = x.iter().enumerate().map(|(d, x)| scaling.x.to_internal(d, *x));
        x.chain(u.iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u))).collect()
    }

    /// The model near (x, u), once for each draw.
    pub fn linearise(&self, x: &[f64], u: &[f64], seed: u64) -> Result<Vec<LinearDraw>, Error> {
        self.check_point(x, u)?;
        let z = self.point_to_internal(x, u);
        let (draws, _) = self.aligned()?;
        draws.iter().map(|aligned| self.linear_draw(aligned, &z, seed)).collect()
    }

    fn linear_draw(&self, aligned: &Aligned, z: &[f64], seed: u64) -> Result<LinearDraw, Error> {
        let (n_x, n_z) = (self.n_x(), z.len());
        let scaling = self.problem().scaling();
        let points = neighbours(z, STEP);
        let f = self.drawn_at(aligned, &points, seed)?;
        let mut found = LinearDraw {
            weight: aligned.weight,
            f: (0..n_x).map(|d| scaling.x.to_original(d, f[d])).collect(),
            a: Vec::new(),
            b: Vec::new(),
            h: Vec::new(),
            c: Vec::new(),
            d: Vec::new(),
        };
        for d in 0..n_x {
            for c in 0..n_z {
                // Values of f are followed by slopes.
                let slope = f[(1 + c) * n_x + d] * scaling.x.scale[d] / scaling.z_scale(c);
                if c < n_x { found.a.push(slope) } else { found.b.push(slope) }
            }
        }
        let n_y = self.n_y();
        if let Some(y) = self.outputs_at(aligned, &points) {
            found.h = (0..n_y).map(|k| scaling.y.to_original(k, y[k])).collect();
            for k in 0..n_y {
                for c in 0..n_z {
                    let difference = y[(1 + 2 * c) * n_y + k] - y[(2 + 2 * c) * n_y + k];
                    let slope = difference / (2.0 * STEP) * scaling.y.scale[k] / scaling.z_scale(c);
                    if c < n_x { found.c.push(slope) } else { found.d.push(slope) }
                }
            }
        }
        Ok(found)
    }

    /// Means of the outputs at points in the coordinates of the reference, internal units; none for a user's sensor.
    fn outputs_at(&self, aligned: &Aligned, points: &Points) -> Option<Vec<f64>> {
        let sensor = self.problem().bind(&self.draws()[aligned.draw].theta).sensor;
        sensor_mean(&sensor, &aligned.coordinates.points_to_draw(points))
    }

    /// f and its slopes at a point with its neighbours, drawn from the posterior of one draw, in the coordinates of the reference:
    /// (value, then slope along each component; state), internal units.
    fn drawn_at(&self, aligned: &Aligned, points: &Points, seed: u64) -> Result<Vec<f64>, Error> {
        let (n_x, n_z) = (self.n_x(), points.n_components());
        let n = 1 + n_z;
        let function = self.function(aligned.draw)?;
        let lags = &function.space.transition.lags;
        let own = aligned.coordinates.points_to_draw(points);
        let mut rng = stream_for(seed, Stream::Linear, aligned.draw as u64);
        // Value and slopes of each state of the draw, along the components of the reference.
        let mut of_draw = Vec::with_capacity(n_x);
        for e in 0..n_x {
            let (mean, covariance) = match lags[e] {
                Some(of) => (own.column(of).to_vec(), vec![0.0; own.len() * own.len()]),
                None => function.joint(&own, e),
            };
            let mut combined = vec![0.0; n * own.len()];
            combined[0] = 1.0;
            for c in 0..n_z {
                combined[(1 + c) * own.len() + 1 + 2 * c] = 0.5 / STEP;
                combined[(1 + c) * own.len() + 2 + 2 * c] = -0.5 / STEP;
            }
            let row = |i: usize| &combined[i * own.len()..(i + 1) * own.len()];
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let mut values: Vec<f64> = (0..n).map(|i| dot(row(i), &mean)).collect();
            let half: Vec<Vec<f64>> = (0..n)
                .map(|i| {
                    (0..own.len()).map(|k| dot(row(i), &covariance[k * own.len()..][..own.len()])).collect()
                })
                .collect();
            let spread: Vec<f64> = (0..n * n).map(|i| dot(&half[i / n], row(i % n))).collect();
            let noise: Vec<f64> = (0..n).map(|_| rng.sample(StandardNormal)).collect();
            let factor = semidefinite_factor(spread, n);
            for i in 0..n {
                values[i] += dot(&factor[i * n..=i * n + i], &noise[..=i]);
            }
            of_draw.push(values);
        }
        let mut found = vec![0.0; n * n_x];
        for d in 0..n_x {
            found[d] += aligned.coordinates.shift(d);
            for (e, values) in of_draw.iter().enumerate() {
                let factor = aligned.coordinates.factor(d, e);
                (0..n).for_each(|i| found[i * n_x + d] += factor * values[i]);
            }
        }
        Ok(found)
    }

    /// The state that stays where it is under the input `u`, near `x`, once for each draw. What is not known of f there moves
    /// it to first order.
    pub fn equilibria(&self, x: &[f64], u: &[f64], seed: u64) -> Result<Vec<Equilibrium>, Error> {
        self.check_point(x, u)?;
        let z = self.point_to_internal(x, u);
        let (draws, _) = self.aligned()?;
        draws.iter().map(|aligned| self.equilibrium(aligned, &z, seed)).collect()
    }

    fn equilibrium(&self, aligned: &Aligned, z: &[f64], seed: u64) -> Result<Equilibrium, Error> {
        let (n_x, scaling) = (self.n_x(), self.problem().scaling());
        let mut found = Equilibrium { weight: aligned.weight, x: None, y: Vec::new() };
        let Some(mut z) = self.newton(aligned, z)? else { return Ok(found) };
        // x* = f(x*) with f drawn: one more step from the mean's.
        let drawn = self.drawn_at(aligned, &neighbours(&z, STEP), seed)?;
        let Some(step) = newton_step(&drawn, &z, n_x) else { return Ok(found) };
        z.iter_mut().zip(&step).for_each(|(z, step)| *z += step);
        if !z.iter().all(|z| z.abs() < FAR) {
            return Ok(found);
        }
        let mut point = Points::new(z.len());
        point.push(&z);
        if let Some(y) = self.outputs_at(aligned, &point) {
            found.y = y.iter().enumerate().map(|(k, y)| scaling.y.to_original(k, *y)).collect();
        }
        found.x = Some((0..n_x).map(|d| scaling.x.to_original(d, z[d])).collect());
        Ok(found)
    }

    /// Newton's method on the mean of f.
    fn newton(&self, aligned: &Aligned, z: &[f64]) -> Result<Option<Vec<f64>>, Error> {
        let n_x = self.n_x();
        let mut z = z.to_vec();
        for _ in 0..NEWTON {
            let f = self.mean_at(aligned, &neighbours(&z, STEP))?;
            let Some(mut step) = newton_step(&f, &z, n_x) else { return Ok(None) };
            let longest = step.iter().fold(0.0f64, |longest, step| longest.max(step.abs()));
            if longest > LONGEST {
                step.iter_mut().for_each(|step| *step *= LONGEST / longest);
            }
            z.iter_mut().zip(&step).for_each(|(z, step)| *z += step);
            if !z.iter().all(|z| z.abs() < FAR) {
                return Ok(None);
            }
            if longest < CLOSE {
                return Ok(Some(z));
            }
        }
        Ok(None)
    }

    /// The same as [`Posterior::drawn_at`] with the mean in place of a draw.
    fn mean_at(&self, aligned: &Aligned, points: &Points) -> Result<Vec<f64>, Error> {
        let (n_x, n_z) = (self.n_x(), points.n_components());
        let own = aligned.coordinates.points_to_draw(points);
        let f = aligned.coordinates.path(&self.function(aligned.draw)?.means(&own));
        let mut found = f[..n_x].to_vec();
        for c in 0..n_z {
            let (up, down) = ((1 + 2 * c) * n_x, (2 + 2 * c) * n_x);
            found.extend((0..n_x).map(|d| (f[up + d] - f[down + d]) / (2.0 * STEP)));
        }
        Ok(found)
    }
}

/// (I - A)^{-1} (f - x), from values and slopes (value, then slope along each component; state).
fn newton_step(f: &[f64], z: &[f64], n_x: usize) -> Option<Vec<f64>> {
    let mut matrix = vec![0.0; n_x * n_x];
    for d in 0..n_x {
        for c in 0..n_x {
            matrix[d * n_x + c] = f64::from(d == c) - f[(1 + c) * n_x + d];
        }
    }
    let right = (0..n_x).map(|d| f[d] - z[d]).collect();
    solve(matrix, right)
}

/// Gauss with pivots; none for a singular matrix.
pub(crate) fn solve(mut a: Vec<f64>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&k, &l| a[k * n + i].abs().total_cmp(&a[l * n + i].abs()))?;
        (0..n).for_each(|j| a.swap(i * n + j, pivot * n + j));
        b.swap(i, pivot);
        if a[i * n + i].is_nan() || a[i * n + i].abs() <= 1e-300 {
            return None;
        }
        for k in i + 1..n {
            let factor = a[k * n + i] / a[i * n + i];
            (i..n).for_each(|j| a[k * n + j] -= factor * a[i * n + j]);
            b[k] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| a[i * n + j] * b[j]).sum();
        b[i] = (b[i] - sum) / a[i * n + i];
    }
    b.iter().all(|b| b.is_finite()).then_some(b)
}

/// Lower factor of a covariance that may be singular: directions without variance get zeros.
fn semidefinite_factor(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    if small::cholesky(&mut a.clone(), n) {
        small::cholesky(&mut a, n);
        return a;
    }
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let left = a[i * n + j] - sum;
            l[i * n + j] = match i == j {
                // What rounding leaves of a direction without variance.
                true if left > 1e-12 * a[i * n + i] => left.sqrt(),
                true => 0.0,
                false if l[j * n + j] > 0.0 => left / l[j * n + j],
                false => 0.0,
            };
        }
    }
    l
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_solved_and_singular_ones_refused() {
        let found = solve(vec![0.0, 2.0, 3.0, 1.0], vec![4.0, 5.0]).unwrap();
        assert!((found[0] - 1.0).abs() < 1e-15 && (found[1] - 2.0).abs() < 1e-15, "{found:?}");
        assert_eq!(solve(vec![1.0, 2.0, 2.0, 4.0], vec![1.0, 1.0]), None);
    }

    #[test]
    fn singular_covariances_have_factors() {
        let l = semidefinite_factor(vec![4.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0], 3);
        assert_eq!(l, [2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
