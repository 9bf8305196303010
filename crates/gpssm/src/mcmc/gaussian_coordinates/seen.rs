//! What a sensor says of the states of one row, to second order.

use crate::linalg::small;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::BoundSensor;
use crate::sensor::linear_gaussian::LinearGaussian;

/// Step of finite differences, relative to the size of a state.
pub(super) const STEP: f64 = 1e-3;

/// log p(y | x) is about b'x - x' H x / 2.
pub(super) struct Seen {
    /// H, row-major.
    pub(super) precision: Vec<f64>,
    pub(super) b: Vec<f64>,
}

impl Seen {
    /// Expanded at `x`, whose states are of these sizes; exact where the sensor is linear and Gaussian.
    pub(super) fn new(sensor: &BoundSensor, sequence: &Sequence, t: usize, x: &[f64], sizes: &[f64]) -> Self {
        let n = x.len();
        let nothing = Self { precision: vec![0.0; n * n], b: vec![0.0; n] };
        if sequence.y(t).iter().all(|y| y.is_nan()) {
            return nothing;
        }
        match sensor.as_linear_gaussian() {
            Some(sensor) => Self::linear(sensor, sequence.y(t), sequence.u(t), n),
            None => Self::by_differences(sensor, sequence, t, x, sizes).unwrap_or(nothing),
        }
    }

    /// H = C' R^{-1} C and b = C' R^{-1} (y - D u - offset), over the outputs that were seen.
    fn linear(sensor: &LinearGaussian, y: &[f64], u: &[f64], n: usize) -> Self {
        let (n_y, n_z) = (y.len(), n + u.len());
        let covariance = sensor.covariance();
        let seen: Vec<usize> = (0..n_y).filter(|&k| !y[k].is_nan()).collect();
        let mut chol: Vec<f64> = seen
            .iter()
            .flat_map(|&a| seen.iter().map(move |&b| (a, b)))
            .map(|(a, b)| covariance[a * n_y + b])
            .collect();
        let mut out = Self { precision: vec![0.0; n * n], b: vec![0.0; n] };
        if !small::cholesky(&mut chol, seen.len()) {
            return out;
        }
        let whitened = |of: &dyn Fn(usize) -> f64| {
            let mut column: Vec<f64> = seen.iter().map(|&k| of(k)).collect();
            small::solve_lower(&chol, seen.len(), &mut column);
            column
        };
        let driven = |k: usize| -> f64 {
            sensor.weights[k * n_z + n..(k + 1) * n_z].iter().zip(u).map(|(d, u)| d * u).sum()
        };
        let target = whitened(&|k| y[k] - sensor.offset[k] - driven(k));
        let columns: Vec<Vec<f64>> = (0..n).map(|d| whitened(&|k| sensor.weights[k * n_z + d])).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for i in 0..n {
            out.b[i] = dot(&columns[i], &target);
            (0..n).for_each(|j| out.precision[i * n + j] = dot(&columns[i], &columns[j]));
        }
        out
    }

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
