//! What a sensor says of the states of one row, to second order.

use crate::linalg::small;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::BoundSensor;
use crate::sensor::linear_gaussian::LinearGaussian;

/// Step of second differences, relative to the size of a state: large enough that rounding does not show.
const STEP: f64 = 0.03;

/// log p(y | x) is about b'x - x' H x / 2.
pub(super) struct Seen {
    /// H, row-major.
    pub(super) precision: Vec<f64>,
    pub(super) b: Vec<f64>,
}

/// A linear sensor's C, whitened by the factor of R, of the outputs that were seen in some rows.
struct Whitened {
    missing: Vec<bool>,
    chol: Vec<f64>,
    /// L_R^{-1} C by column.
    columns: Vec<Vec<f64>>,
    /// H = C' R^{-1} C.
    precision: Vec<f64>,
}

/// Looks through a sensor at one row after another.
pub(super) struct Sight<'a> {
    sensor: &'a BoundSensor,
    sizes: &'a [f64],
    /// Of the last row; most rows miss the same outputs.
    whitened: Option<Whitened>,
}

impl<'a> Sight<'a> {
    /// Of states of these sizes.
    pub(super) fn new(sensor: &'a BoundSensor, sizes: &'a [f64]) -> Self {
        Self { sensor, sizes, whitened: None }
    }

    /// Row `t`, expanded at `x`; exact where the sensor is linear and Gaussian.
    pub(super) fn at(&mut self, sequence: &Sequence, t: usize, x: &[f64]) -> Seen {
        let n = x.len();
        let nothing = Seen { precision: vec![0.0; n * n], b: vec![0.0; n] };
        if sequence.y(t).iter().all(|y| y.is_nan()) {
            return nothing;
        }
        match self.sensor.as_linear_gaussian() {
            Some(sensor) => self.linear(sensor, sequence.y(t), sequence.u(t), n).unwrap_or(nothing),
            None => Seen::by_differences(self.sensor, sequence, t, x, self.sizes).unwrap_or(nothing),
        }
    }

    /// H and b = C' R^{-1} (y - D u - offset), over the outputs that were seen.
    fn linear(&mut self, sensor: &LinearGaussian, y: &[f64], u: &[f64], n: usize) -> Option<Seen> {
        let same = |known: &Whitened| known.missing.iter().zip(y).all(|(missing, y)| *missing == y.is_nan());
        if !self.whitened.as_ref().is_some_and(same) {
            self.whitened = Whitened::new(sensor, y, n);
        }
        let Whitened { chol, columns, precision, .. } = self.whitened.as_ref()?;
        let n_z = n + u.len();
        let mut target: Vec<f64> = (0..y.len())
            .filter(|&k| !y[k].is_nan())
            .map(|k| {
                let driven: f64 =
                    sensor.weights[k * n_z + n..(k + 1) * n_z].iter().zip(u).map(|(d, u)| d * u).sum();
                y[k] - sensor.offset[k] - driven
            })
            .collect();
        let n_seen = target.len();
        small::solve_lower(chol, n_seen, &mut target);
        let b = |column: &Vec<f64>| column.iter().zip(&target).map(|(c, y)| c * y).sum();
        Some(Seen { precision: precision.clone(), b: columns.iter().map(b).collect() })
    }
}

impl Whitened {
    /// None if the covariance of the noise cannot be factored.
    fn new(sensor: &LinearGaussian, y: &[f64], n: usize) -> Option<Self> {
        let (n_y, n_z) = (y.len(), sensor.weights.len() / y.len());
        let covariance = sensor.covariance();
        let missing: Vec<bool> = y.iter().map(|y| y.is_nan()).collect();
        let seen: Vec<usize> = (0..n_y).filter(|&k| !missing[k]).collect();
        let mut chol: Vec<f64> = seen
            .iter()
            .flat_map(|&a| seen.iter().map(move |&b| (a, b)))
            .map(|(a, b)| covariance[a * n_y + b])
            .collect();
        if !small::cholesky(&mut chol, seen.len()) {
            return None;
        }
        let whitened = |d: usize| {
            let mut column: Vec<f64> = seen.iter().map(|&k| sensor.weights[k * n_z + d]).collect();
            small::solve_lower(&chol, seen.len(), &mut column);
            column
        };
        let columns: Vec<Vec<f64>> = (0..n).map(whitened).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let precision = (0..n * n).map(|k| dot(&columns[k / n], &columns[k % n])).collect();
        Some(Self { missing, chol, columns, precision })
    }
}

impl Seen {
    /// None where a density is not finite.
    fn by_differences(
        sensor: &BoundSensor,
        sequence: &Sequence,
        t: usize,
        x: &[f64],
        sizes: &[f64],
    ) -> Option<Self> {
        let n = x.len();
        let step = |d: usize| STEP * sizes[d];
        let mut z = Points::new(n + sequence.n_u());
        let mut push = |moves: &[(usize, f64)]| {
            let mut x = x.to_vec();
            moves.iter().for_each(|&(d, sign)| x[d] += sign * step(d));
            z.push_parts(&x, sequence.u(t));
        };
        push(&[]);
        for d in 0..n {
            push(&[(d, 1.0)]);
            push(&[(d, -1.0)]);
        }
        for i in 0..n {
            for j in 0..i {
                push(&[(i, 1.0), (j, 1.0)]);
                push(&[(i, -1.0), (j, -1.0)]);
            }
        }
        let mut value = vec![0.0; z.len()];
        sensor.add_log_density(sequence.y(t), &z, &mut value);
        if value.iter().any(|value| !value.is_finite()) {
            return None;
        }
        // Differences in units of the steps.
        let second = |i: usize| value[1 + 2 * i] + value[2 + 2 * i] - 2.0 * value[0];
        let mut precision = vec![0.0; n * n];
        let mut cross = 1 + 2 * n;
        for i in 0..n {
            precision[i * n + i] = (-second(i)).max(0.0);
            for j in 0..i {
                let both = value[cross] + value[cross + 1] - 2.0 * value[0];
                let mixed = -0.5 * (both - second(i) - second(j));
                (precision[i * n + j], precision[j * n + i]) = (mixed, mixed);
                cross += 2;
            }
        }
        let mut factor = precision.clone();
        let largest = (0..n).map(|i| precision[i * n + i]).fold(0.0, f64::max);
        (0..n).for_each(|i| factor[i * n + i] += 1e-6 * largest);
        if largest == 0.0 || !small::cholesky(&mut factor, n) {
            for i in 0..n {
                (0..n).filter(|j| *j != i).for_each(|j| precision[i * n + j] = 0.0);
            }
        }
        for i in 0..n {
            (0..n).for_each(|j| precision[i * n + j] /= step(i) * step(j));
        }
        let b = |i: usize| {
            let slope = (value[1 + 2 * i] - value[2 + 2 * i]) / (2.0 * step(i));
            slope + (0..n).map(|j| precision[i * n + j] * x[j]).sum::<f64>()
        };
        let b = (0..n).map(b).collect();
        Some(Self { precision, b })
    }
}
