//! Exact answers for a scalar state whose transition function is a random line.
//!
//! With the kernel k(z, z') = s_a^2 x x' + s_b^2 u u' the function is f(x, u) = a x + b u, with slopes
//! a ~ N(a_0, s_a^2) and b ~ N(b_0, s_b^2) if the mean function is a_0 x + b_0 u. Given the slopes the model
//! is linear and Gaussian, so that evidence and smoothed moments are integrals over (a, b) of what the Kalman
//! filter and the Rauch-Tung-Striebel smoother say.

use std::f64::consts::PI;

/// x' = a x + b u + v, y = c x + d u + e.
#[derive(Clone)]
pub struct RandomLine {
    /// Mean and variance of a.
    pub slope: (f64, f64),
    /// Mean and variance of b.
    pub gain: (f64, f64),
    /// Variance of v.
    pub q: f64,
    /// c and d.
    pub sensor: (f64, f64),
    /// Variance of e.
    pub r: f64,
    /// Mean and variance of x_0.
    pub initial: (f64, f64),
    /// Missing values are NaN.
    pub y: Vec<f64>,
    pub u: Vec<f64>,
}

/// Evidence, and mean and variance of every x_t given all y.
pub struct Smoothed {
    pub log_marginal_likelihood: f64,
    pub mean: Vec<f64>,
    pub variance: Vec<f64>,
}

/// Integration reaches this many prior standard deviations to either side of the prior mean.
const REACH: f64 = 7.0;

impl RandomLine {
    /// The Kalman filter and the Rauch-Tung-Striebel smoother for known slopes.
    fn smooth_given(&self, a: f64, b: f64) -> Smoothed {
        let (c, d) = self.sensor;
        let n = self.y.len();
        let (mut m, mut p) = self.initial;
        let mut predicted = Vec::with_capacity(n);
        let mut smoothed =
            Smoothed { log_marginal_likelihood: 0.0, mean: vec![0.0; n], variance: vec![0.0; n] };
        for t in 0..n {
            if t > 0 {
                m = a * m + b * self.u[t - 1];
                p = a * a * p + self.q;
            }
            predicted.push((m, p));
            if !self.y[t].is_nan() {
                let innovation = self.y[t] - c * m - d * self.u[t];
                let variance = c * c * p + self.r;
                let gain = p * c / variance;
                smoothed.log_marginal_likelihood -=
                    0.5 * (innovation * innovation / variance + (2.0 * PI * variance).ln());
                m += gain * innovation;
                p *= self.r / variance;
            }
            (smoothed.mean[t], smoothed.variance[t]) = (m, p);
        }
        for t in (0..n - 1).rev() {
            let (m_next, p_next) = predicted[t + 1];
            let back = smoothed.variance[t] * a / p_next;
            smoothed.mean[t] += back * (smoothed.mean[t + 1] - m_next);
            smoothed.variance[t] += back * back * (smoothed.variance[t + 1] - p_next);
        }
        smoothed
    }

    /// The integral over the slopes by the trapezoidal rule, `n` points in each direction.
    pub fn smooth(&self, n: usize) -> Smoothed {
        let mut parts = Vec::new();
        for (a, log_prior_a) in points(self.slope, n) {
            for (b, log_prior_b) in points(self.gain, n) {
                let mut part = self.smooth_given(a, b);
                part.log_marginal_likelihood += log_prior_a + log_prior_b;
                parts.push(part);
            }
        }
        let largest = parts.iter().map(|part| part.log_marginal_likelihood).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> =
            parts.iter().map(|part| (part.log_marginal_likelihood - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let moment = |of: &dyn Fn(&Smoothed) -> f64| {
            let relevant = parts.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0);
            relevant.map(|(part, weight)| weight * of(part)).sum::<f64>() / total
        };
        let mean: Vec<f64> = (0..self.y.len()).map(|t| moment(&|part| part.mean[t])).collect();
        let variance = (0..self.y.len())
            .map(|t| moment(&|part| part.variance[t] + (part.mean[t] - mean[t]).powi(2)))
            .collect();
        Smoothed { log_marginal_likelihood: largest + total.ln(), mean, variance }
    }
}

/// Equally spaced points with the logarithms of their probabilities under N(mean, variance).
fn points((mean, variance): (f64, f64), n: usize) -> Vec<(f64, f64)> {
    if variance == 0.0 {
        return vec![(mean, 0.0)];
    }
    let step = 2.0 * REACH / (n - 1) as f64;
    let standard = (0..n).map(|i| i as f64 * step - REACH);
    standard.map(|e| (mean + variance.sqrt() * e, (step / (2.0 * PI).sqrt()).ln() - 0.5 * e * e)).collect()
}
