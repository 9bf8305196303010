//! What is compared before and after the sweeps.

use gpssm::Sequence;
use gpssm::state_space::BoundInitial;

use super::cases::Case;
use super::gaussian_process::{log_joint, pairs_of};
use super::sampler::Replicate;
use super::sensors::log_density;

/// log p(x_{0:T}) of all sequences, f integrated out, up to a constant.
fn log_prior(case: &Case, replicate: &Replicate) -> f64 {
    let mut pairs = Vec::new();
    let mut log_initial = 0.0;
    for (s, sequence) in replicate.sequences.iter().enumerate() {
        let path = replicate.path(s, case.model.transition.n_x());
        pairs.extend(pairs_of(&path, sequence));
        log_initial += match &case.model.initial {
            BoundInitial::Fixed(_) => 0.0,
            initial => initial.log_density(&path[0]),
        };
    }
    log_initial + log_joint(&case.model.transition, &pairs)
}

/// Moments of the states of one path: x_t, x_t^2, x_t x_{t+1}, x_0 x_T, and products of two dimensions.
fn state_moments(path: &[f64], n_x: usize, out: &mut Vec<f64>) {
    let rows = path.len() / n_x;
    let x = |t: usize, d: usize| path[t * n_x + d];
    for d in 0..n_x {
        out.extend((0..rows).map(|t| x(t, d)));
        out.extend((0..rows).map(|t| x(t, d) * x(t, d)));
        out.extend((1..rows).map(|t| x(t - 1, d) * x(t, d)));
        out.push(x(0, d) * x(rows - 1, d));
        for e in (0..n_x).filter(|&e| e != d) {
            out.push((1..rows).map(|t| x(t - 1, d) * x(t, e)).sum());
            if e < d {
                out.push((0..rows).map(|t| x(t, d) * x(t, e)).sum());
            }
        }
    }
}

/// Sums over t of x y, (x - y)^2 and log p(y | x); the last is returned.
fn sensor_moments(case: &Case, path: &[f64], sequence: &Sequence, out: &mut Vec<f64>) -> f64 {
    let n_x = case.model.transition.n_x();
    let (x, y) = (|t: usize| path[t * n_x], |t: usize| sequence.y(t)[0]);
    let seen = || (0..sequence.n_rows()).filter(|&t| !y(t).is_nan());
    out.push(seen().map(|t| x(t) * y(t)).sum());
    out.push(seen().map(|t| (x(t) - y(t)).powi(2)).sum());
    let log_likelihood = |t: usize| {
        let z = [&path[t * n_x..(t + 1) * n_x], sequence.u(t)].concat();
        log_density(&case.model.sensor, sequence.y(t), &z)
    };
    let log_likelihood = (0..sequence.n_rows()).map(log_likelihood).sum();
    out.push(log_likelihood);
    log_likelihood
}

/// All functionals; with T = 4 and one state there are 20 of them.
pub fn evaluate(case: &Case, replicate: &Replicate) -> Vec<f64> {
    let mut out = Vec::new();
    let mut log_likelihood = 0.0;
    for (path, sequence) in replicate.paths.iter().zip(&replicate.sequences) {
        state_moments(path, case.model.transition.n_x(), &mut out);
        log_likelihood += sensor_moments(case, path, sequence, &mut out);
    }
    let log_prior = log_prior(case, replicate);
    out.extend([log_prior, log_prior + log_likelihood]);
    if let [one, other] = &replicate.paths[..] {
        out.push(one.iter().sum::<f64>() * other.iter().sum::<f64>());
        out.push(one[0] * other[0]);
    }
    out
}
