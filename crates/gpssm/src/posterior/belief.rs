//! What is known of the state where transition and sensor are linear and Gaussian: a Kalman filter, exact where particles would need
//! to be very many (several states, and noise that drives few of them).

use super::drawn::TransitionFunction;
use crate::dynamics::predictions::Predictions;
use crate::initial::BoundInitial;
use crate::linalg::small;
use crate::points::Points;
use crate::sensor::adapter::{Adapted, Adapter};
use crate::state_space::StateSpace;

/// Mean and lower factor of the covariance of p(x_t | y_{0:t}).
pub(crate) struct Belief {
    pub mean: Vec<f64>,
    pub chol: Vec<f64>,
}

impl Belief {
    /// p(x_0 | y_0), and log p(y_0); none if p(x_0) or the sensor is of another kind.
    pub(crate) fn start(space: &StateSpace, y: &[f64], u: &[f64]) -> Option<(Self, f64)> {
        let BoundInitial::Gaussian { mean, chol } = &space.initial else { return None };
        Self { mean: mean.clone(), chol: chol.clone() }.seen(space, y, u)
    }

    /// p(x_0 | y_0) where x_0 is known, and log p(y_0).
    pub(crate) fn at(x: &[f64], space: &StateSpace, y: &[f64], u: &[f64]) -> Option<(Self, f64)> {
        Self { mean: x.to_vec(), chol: vec![0.0; x.len() * x.len()] }.seen(space, y, u)
    }

    /// p(x_{t+1} | y_{0:t+1}), and log p(y_{t+1} | y_{0:t}); `u_before` drives the transition.
    pub(crate) fn next(
        &self,
        function: &mut dyn TransitionFunction,
        space: &StateSpace,
        u_before: &[f64],
        y: &[f64],
        u: &[f64],
    ) -> Option<(Self, f64)> {
        let n = self.mean.len();
        // x' = A x + b + v: b is where zero goes, columns of A say where the axes go.
        let mut z = Points::new(n + u_before.len());
        let mut x = vec![0.0; n];
        z.push_parts(&x, u_before);
        for d in 0..n {
            x[d] = 1.0;
            z.push_parts(&x, u_before);
            x[d] = 0.0;
        }
        let mut predictions = Predictions::default();
        function.predict(&z, &mut predictions);
        let b = predictions.mean(0).to_vec();
        let a = |i: usize, d: usize| predictions.mean(1 + d)[i] - b[i];
        let mean = (0..n).map(|i| b[i] + (0..n).map(|d| a(i, d) * self.mean[d]).sum::<f64>()).collect();
        let mut covariance = small::covariance(predictions.chol(0), n);
        let spread: Vec<f64> =
            (0..n * n).map(|k| (0..n).map(|d| a(k / n, d) * self.chol[d * n + k % n]).sum()).collect();
        for i in 0..n {
            for j in 0..n {
                covariance[i * n + j] += (0..n).map(|k| spread[i * n + k] * spread[j * n + k]).sum::<f64>();
            }
        }
        small::cholesky(&mut covariance, n).then_some(())?;
        Self { mean, chol: covariance }.seen(space, y, u)
    }

    /// The same, given the outputs of its row.
    fn seen(self, space: &StateSpace, y: &[f64], u: &[f64]) -> Option<(Self, f64)> {
        let mut posterior = Adapted::default();
        let mut adapter = Adapter::new(space.sensor.as_linear_gaussian()?, y, u)?;
        adapter.condition(&self.mean, &self.chol, &mut posterior).then_some(())?;
        let Adapted { mean, chol, log_marginal_likelihood } = posterior;
        Some((Self { mean, chol }, log_marginal_likelihood))
    }
}
