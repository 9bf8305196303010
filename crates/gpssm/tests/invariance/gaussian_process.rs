//! The transition prior by dense matrices: every number comes from one joint Gaussian (eq. 4 of the paper).

use gpssm::Sequence;
use gpssm::dynamics::{ProcessNoise, Transition};
use gpssm_dev::dense::{cholesky, log_gaussian, whiten};
use gpssm_dev::reference::{function_value, kernel_value};

/// z_s = (x_s, u_s) and x_{s+1}.
#[derive(Clone)]
pub struct Pair {
    pub z: Vec<f64>,
    pub x_next: Vec<f64>,
}

/// The pairs of a path.
pub fn pairs_of(path: &[Vec<f64>], sequence: &Sequence) -> Vec<Pair> {
    let pair = |s: usize| Pair { z: [&path[s][..], sequence.u(s)].concat(), x_next: path[s + 1].clone() };
    (0..path.len() - 1).map(pair).collect()
}

/// N(mean, L L').
#[derive(Clone)]
pub struct Gaussian {
    pub mean: Vec<f64>,
    pub chol: Vec<f64>,
}

/// Q_{ab}.
pub fn noise(transition: &Transition, a: usize, b: usize) -> f64 {
    match &transition.noise {
        ProcessNoise::Diagonal(variances) if a == b => variances[a],
        ProcessNoise::Diagonal(_) => 0.0,
        ProcessNoise::Full(q) => q[a * transition.n_x() + b],
    }
}

/// States that are not copies.
pub fn moving(transition: &Transition) -> Vec<usize> {
    (0..transition.n_x()).filter(|&d| transition.lags[d].is_none()).collect()
}

/// Covariance of the states that follow the given points, f integrated out; rows ordered (point, dimension).
fn covariance<'a>(transition: &Transition, points: impl Iterator<Item = &'a [f64]>) -> (Vec<f64>, usize) {
    let dims = moving(transition);
    let points: Vec<&[f64]> = points.collect();
    let n = points.len() * dims.len();
    let mut k = vec![0.0; n * n];
    for (s, z) in points.iter().enumerate() {
        for (r, other) in points.iter().enumerate() {
            for (i, &a) in dims.iter().enumerate() {
                for (j, &b) in dims.iter().enumerate() {
                    let of_f = if a == b { kernel_value(&transition.kernels[a], z, other) } else { 0.0 };
                    let of_noise = if s == r { noise(transition, a, b) } else { 0.0 };
                    k[(s * dims.len() + i) * n + r * dims.len() + j] = of_f + of_noise;
                }
            }
        }
    }
    (k, n)
}

/// x_{s+1} - m(z_s) of all pairs, ordered (s, dimension).
fn residuals(transition: &Transition, pairs: &[Pair]) -> Vec<f64> {
    let dims = moving(transition);
    let of_pair = |pair: &Pair| -> Vec<f64> {
        dims.iter().map(|&d| pair.x_next[d] - function_value(&transition.means[d], &pair.z)).collect()
    };
    pairs.iter().flat_map(of_pair).collect()
}

/// log density of the states x_{s+1} of all pairs, jointly.
pub fn log_joint(transition: &Transition, pairs: &[Pair]) -> f64 {
    let (k, _) = covariance(transition, pairs.iter().map(|pair| &pair.z[..]));
    log_gaussian(&k, &residuals(transition, pairs))
}

/// The state that follows z given the pairs, from the joint Gaussian of all of them (eq. 3).
///
/// The last rows of the joint factor hold the conditional mean and factor.
pub fn predict(transition: &Transition, pairs: &[Pair], z: &[f64]) -> Gaussian {
    let n_x = transition.n_x();
    let dims = moving(transition);
    let (k, n) = covariance(transition, pairs.iter().map(|pair| &pair.z[..]).chain([z]));
    let l = cholesky(&k, n);
    let e = whiten(&l, n, &residuals(transition, pairs));
    let mut next = Gaussian { mean: vec![0.0; n_x], chol: vec![0.0; n_x * n_x] };
    for (i, &a) in dims.iter().enumerate() {
        let row = &l[(e.len() + i) * n..(e.len() + i + 1) * n];
        let shift: f64 = row.iter().zip(&e).map(|(l, e)| l * e).sum();
        next.mean[a] = function_value(&transition.means[a], z) + shift;
        for (j, &b) in dims.iter().enumerate() {
            next.chol[a * n_x + b] = row[e.len() + j];
        }
    }
    for (d, of) in transition.lags.iter().enumerate() {
        if let Some(of) = of {
            next.mean[d] = z[*of];
        }
    }
    next
}
