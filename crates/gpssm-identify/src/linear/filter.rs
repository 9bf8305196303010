//! The Kalman filter of an innovations model, with missing outputs.

use super::Innovations;
use super::matrix::{multiply, multiply_transposed, solve};
use super::units::Rows;

/// Gaussian predictions of outputs, row-major (row, output).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forecast {
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
}

/// Mean and covariance of a state given outputs before its row.
#[derive(Clone)]
pub(super) struct Belief {
    pub x: Vec<f64>,
    p: Vec<f64>,
}

impl Innovations {
    /// Before anything was seen: as the states of the training record were.
    pub(super) fn prior(&self) -> Belief {
        Belief { x: vec![0.0; self.n_x], p: self.spread.clone() }
    }

    /// C x + D u + o.
    pub(super) fn output(&self, x: &[f64], u: &[f64]) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (n_x, n_u) = (self.n_x, self.n_u);
        let of = |k: usize| {
            dot(&self.c[k * n_x..(k + 1) * n_x], x) + dot(&self.d[k * n_u..(k + 1) * n_u], u) + self.offset[k]
        };
        (0..self.n_y).map(of).collect()
    }

    /// From the belief about row t to that about row t + 1, with the outputs of row t that are not missing.
    ///
    /// e is noise of state and output at once, so the state's covariance with the observed outputs is A P C' + K R.
    pub(super) fn step(&self, belief: &Belief, y: &[f64], u: &[f64]) -> Belief {
        let (n_x, n_y) = (self.n_x, self.n_y);
        let seen: Vec<usize> = (0..n_y).filter(|&k| !y[k].is_nan()).collect();
        let m = seen.len();
        let mut x = multiply(&self.a, &belief.x, n_x, n_x, 1);
        x.iter_mut().zip(multiply(&self.b, u, n_x, self.n_u, 1)).for_each(|(x, bu)| *x += bu);
        let ap = multiply(&self.a, &belief.p, n_x, n_x, n_x);
        let kr = multiply(&self.gain, &self.noise, n_x, n_y, n_y);
        let mut p = multiply_transposed(&ap, &self.a, n_x, n_x, n_x);
        p.iter_mut().zip(multiply_transposed(&kr, &self.gain, n_x, n_y, n_x)).for_each(|(p, q)| *p += q);
        if m > 0 {
            let c: Vec<f64> = seen.iter().flat_map(|k| self.c[k * n_x..(k + 1) * n_x].to_vec()).collect();
            let mut cross = multiply_transposed(&ap, &c, n_x, n_x, m);
            for (i, row) in cross.chunks_mut(m).enumerate() {
                row.iter_mut().zip(&seen).for_each(|(cross, k)| *cross += kr[i * n_y + k]);
            }
            let cp = multiply(&c, &belief.p, m, n_x, n_x);
            let mut s = multiply_transposed(&cp, &c, m, n_x, m);
            for (i, k) in seen.iter().enumerate() {
                seen.iter().enumerate().for_each(|(j, l)| s[i * m + j] += self.noise[k * n_y + l]);
            }
            let expected = self.output(&belief.x, u);
            let error: Vec<f64> = seen.iter().map(|&k| y[k] - expected[k]).collect();
            let turned: Vec<f64> =
                (0..m).flat_map(|j| (0..n_x).map(move |i| (i, j))).map(|(i, j)| cross[i * m + j]).collect();
            // A covariance that is not positive definite tells nothing: the row counts as missing.
            if let Some(gain) = solve(&s, &turned, m, n_x) {
                for i in 0..n_x {
                    x[i] += (0..m).map(|j| gain[j * n_x + i] * error[j]).sum::<f64>();
                    for l in 0..n_x {
                        p[i * n_x + l] -= (0..m).map(|j| gain[j * n_x + i] * cross[l * m + j]).sum::<f64>();
                    }
                }
            }
        }
        for i in 0..n_x {
            for l in 0..i {
                let middle = 0.5 * (p[i * n_x + l] + p[l * n_x + i]);
                (p[i * n_x + l], p[l * n_x + i]) = (middle, middle);
            }
            p[i * n_x + i] = p[i * n_x + i].max(0.0);
        }
        Belief { x, p }
    }

    fn add_to(&self, forecast: &mut Forecast, belief: &Belief, u: &[f64]) {
        forecast.mean.extend(self.output(&belief.x, u));
        let cp = multiply(&self.c, &belief.p, self.n_y, self.n_x, self.n_x);
        let s = multiply_transposed(&cp, &self.c, self.n_y, self.n_x, self.n_y);
        let variance = |k: usize| s[k * self.n_y + k] + self.noise[k * self.n_y + k];
        forecast.sd.extend((0..self.n_y).map(|k| variance(k).max(0.0).sqrt()));
    }

    /// All rows; outputs of the first `n_init` are seen.
    pub(super) fn free_run(&self, rows: &Rows, n_init: usize) -> Forecast {
        let mut forecast = Forecast { mean: Vec::new(), sd: Vec::new() };
        let (mut belief, missing) = (self.prior(), vec![f64::NAN; self.n_y]);
        for t in 0..rows.n {
            self.add_to(&mut forecast, &belief, rows.u(t));
            belief = self.step(&belief, if t < n_init { rows.y(t) } else { &missing }, rows.u(t));
        }
        forecast
    }

    /// Each row from the outputs up to k rows before it.
    pub(super) fn ahead(&self, rows: &Rows, k: usize) -> Forecast {
        let mut forecast = Forecast { mean: Vec::new(), sd: Vec::new() };
        let (mut belief, missing) = (self.prior(), vec![f64::NAN; self.n_y]);
        for t in 0..rows.n {
            let from = (t + 1).saturating_sub(k);
            if from > 0 {
                belief = self.step(&belief, rows.y(from - 1), rows.u(from - 1));
            }
            let mut later = belief.clone();
            for s in from..t {
                later = self.step(&later, &missing, rows.u(s));
            }
            self.add_to(&mut forecast, &later, rows.u(t));
        }
        forecast
    }
}
