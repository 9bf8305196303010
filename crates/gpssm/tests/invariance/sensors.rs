//! Sensor densities by their textbook formulas, and what a linear-Gaussian observation says of a state.

use std::f64::consts::PI;

use gpssm::Points;
use gpssm::sensor::family::Family;
use gpssm::sensor::{BoundSensor, LinearGaussian};
use statrs::function::gamma::ln_gamma;

use super::gaussian_process::Gaussian;
use gpssm_dev::dense::{cholesky, log_gaussian, times_transposed, whiten};
use gpssm_dev::reference::function_value;

/// Components that are not missing.
fn observed(y: &[f64]) -> Vec<usize> {
    (0..y.len()).filter(|&k| !y[k].is_nan()).collect()
}

/// Rows and columns of a square matrix.
fn part(a: &[f64], n: usize, of: &[usize]) -> Vec<f64> {
    of.iter().flat_map(|&i| of.iter().map(move |&j| a[i * n + j])).collect()
}

/// log p(y_k | eta).
fn log_family(family: &Family, y: f64, eta: f64) -> f64 {
    match (family.name(), family.numbers()) {
        ("poisson", []) => y * eta - eta.exp() - ln_gamma(y + 1.0),
        ("student_t", &[scale, dof]) => {
            let e = (y - eta) / scale;
            ln_gamma(0.5 * (dof + 1.0))
                - ln_gamma(0.5 * dof)
                - 0.5 * (dof * PI).ln()
                - scale.ln()
                - 0.5 * (dof + 1.0) * (1.0 + e * e / dof).ln()
        }
        ("stochastic_volatility", []) => -0.5 * ((2.0 * PI).ln() + eta + y * y * (-eta).exp()),
        _ => panic!("no case uses {family:?}"),
    }
}

/// Outputs a linear-Gaussian sensor expects at z.
fn means(sensor: &LinearGaussian, z: &[f64]) -> Vec<f64> {
    let rows = sensor.weights.chunks_exact(z.len()).zip(&sensor.offset);
    rows.map(|(row, offset)| offset + row.iter().zip(z).map(|(w, z)| w * z).sum::<f64>()).collect()
}

/// log p(y | z) of the observed components.
pub fn log_density(sensor: &BoundSensor, y: &[f64], z: &[f64]) -> f64 {
    let seen = observed(y);
    if seen.is_empty() {
        return 0.0;
    }
    let gaussian = |means: &[f64], covariance: &[f64]| {
        let residual: Vec<f64> = seen.iter().map(|&k| y[k] - means[k]).collect();
        log_gaussian(&part(covariance, y.len(), &seen), &residual)
    };
    match sensor {
        BoundSensor::LinearGaussian(sensor) => gaussian(&means(sensor, z), &sensor.covariance()),
        BoundSensor::Gaussian { predictors, covariance } => {
            let means: Vec<f64> = predictors.iter().map(|g| function_value(g, z)).collect();
            gaussian(&means, covariance)
        }
        BoundSensor::Family { predictors, families } => {
            seen.iter().map(|&k| log_family(&families[k], y[k], function_value(&predictors[k], z))).sum()
        }
        BoundSensor::User(user) => {
            let mut out = [0.0];
            let point = Points::from_rows(z.len(), [z]);
            user.sensor.log_density(y, &point, &user.parameters, &mut out);
            out[0]
        }
    }
}

/// log p(y) and p(x | y) for x ~ `prior`, by the joint Gaussian of y and x.
pub fn condition(sensor: &LinearGaussian, y: &[f64], u: &[f64], prior: &Gaussian) -> (f64, Gaussian) {
    let n_x = prior.mean.len();
    let seen = observed(y);
    let (m, n) = (seen.len(), seen.len() + n_x);
    let sigma = times_transposed(&prior.chol, &prior.chol, n_x);
    let c: Vec<f64> =
        seen.iter().flat_map(|&k| sensor.weights[k * (n_x + u.len())..][..n_x].to_vec()).collect();
    let expected = means(sensor, &[&prior.mean, u].concat());
    let residual: Vec<f64> = seen.iter().map(|&k| y[k] - expected[k]).collect();
    let cross = times_transposed(&c, &sigma, n_x);
    let r = part(&sensor.covariance(), y.len(), &seen);
    let s: Vec<f64> = times_transposed(&cross, &c, n_x).iter().zip(&r).map(|(a, b)| a + b).collect();
    let mut joint = vec![0.0; n * n];
    for i in 0..m {
        joint[i * n..i * n + m].copy_from_slice(&s[i * m..(i + 1) * m]);
        for d in 0..n_x {
            joint[i * n + m + d] = cross[i * n_x + d];
            joint[(m + d) * n + i] = cross[i * n_x + d];
        }
    }
    for d in 0..n_x {
        joint[(m + d) * n + m..(m + d + 1) * n].copy_from_slice(&sigma[d * n_x..(d + 1) * n_x]);
    }
    let l = cholesky(&joint, n);
    let e = whiten(&l, n, &residual);
    let row = |d: usize| &l[(m + d) * n..(m + d + 1) * n];
    let mean = |d: usize| prior.mean[d] + row(d).iter().zip(&e).map(|(l, e)| l * e).sum::<f64>();
    let posterior = Gaussian {
        mean: (0..n_x).map(mean).collect(),
        chol: (0..n_x).flat_map(|d| row(d)[m..].to_vec()).collect(),
    };
    (log_gaussian(&s, &residual), posterior)
}
