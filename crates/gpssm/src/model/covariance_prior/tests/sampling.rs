//! Draws of the matrix priors against known marginal laws.

use super::*;
use crate::numeric_checks::{P_MIN, ks_p_value, normal_cdf, rng};
use statrs::function::beta::checked_beta_reg;
use statrs::function::gamma::checked_gamma_ur;

const COUNT: usize = 20_000;

fn draws(prior: &CovariancePrior, n: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = rng(seed);
    let draws: Vec<Vec<f64>> = (0..COUNT).map(|_| prior.sample(&mut rng, n).unwrap()).collect();
    assert!(draws.iter().all(|chol| is_cholesky_factor(chol, n)));
    let above = |chol: &Vec<f64>| (0..n * n).all(|k| k / n >= k % n || chol[k] == 0.0);
    assert!(draws.iter().all(above));
    draws
}

fn inverse_gamma_cdf(shape: f64, scale: f64, x: f64) -> f64 {
    checked_gamma_ur(shape, scale / x).unwrap()
}

#[track_caller]
fn assert_fits(samples: &[f64], cdf: impl Fn(f64) -> f64) {
    let p = ks_p_value(samples, cdf);
    assert!(p >= P_MIN, "p = {p}");
}

#[test]
fn inverse_wishart_draws_follow_the_known_conditional_laws() {
    // For n = 2 these three independent laws determine the distribution.
    let (dof, s_11, s_21, s_22) = (5.5, 2.0, 0.3, 1.0);
    let chols = draws(&inverse_wishart_2(), 2, 11);
    let first: Vec<f64> = chols.iter().map(|l| l[0] * l[0]).collect();
    let rest: Vec<f64> = chols.iter().map(|l| l[3] * l[3]).collect();
    let slope: Vec<f64> =
        chols.iter().map(|l| (l[2] / l[0] - s_21 / s_11) * f64::sqrt(s_11) / l[3]).collect();
    let shape = 0.5 * (dof - 1.0);
    assert_fits(&first, |q| inverse_gamma_cdf(shape, 0.5 * s_11, q));
    let schur = s_22 - s_21 * s_21 / s_11;
    assert_fits(&rest, |q| inverse_gamma_cdf(0.5 * dof, 0.5 * schur, q));
    assert_fits(&slope, normal_cdf);
    let wrong = ks_p_value(&first, |q| inverse_gamma_cdf(shape, 0.5 * 1.05 * s_11, q));
    assert!(wrong < P_MIN, "p = {wrong}");
}

#[test]
fn inverse_wishart_quadratic_forms_are_inverse_gamma() {
    // a^T Q a ~ InverseGamma((dof - n + 1) / 2, a^T S a / 2).
    let prior = inverse_wishart_3();
    let CovariancePrior::InverseWishart { dof, scale } = &prior else { unreachable!() };
    let chols = draws(&prior, 3, 12);
    for a in [[1.0, -2.0, 0.5], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]] {
        let samples: Vec<f64> = chols
            .iter()
            .map(|l| {
                let dot = |j: usize| (0..3).map(|i| a[i] * l[i * 3 + j]).sum::<f64>();
                (0..3).map(|j| dot(j) * dot(j)).sum()
            })
            .collect();
        let form: f64 = (0..9).map(|k| a[k / 3] * a[k % 3] * scale[k / 3][k % 3]).sum();
        let shape = 0.5 * (dof - 2.0);
        assert_fits(&samples, |q| inverse_gamma_cdf(shape, 0.5 * form, q));
        let wrong = |q| inverse_gamma_cdf(shape, 0.5 * 1.05 * form, q);
        assert!(ks_p_value(&samples, wrong) < P_MIN);
    }
}

/// Standard deviation of component `i` and correlation of `i` and `j`.
fn sd_of(chol: &[f64], n: usize, i: usize) -> f64 {
    chol[i * n..(i + 1) * n].iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn correlation(chol: &[f64], n: usize, i: usize, j: usize) -> f64 {
    let dot: f64 = (0..n).map(|k| chol[i * n + k] * chol[j * n + k]).sum();
    dot / (sd_of(chol, n, i) * sd_of(chol, n, j))
}

/// Cdf of the density proportional to `(1 - r^2)^(b - 1)`.
fn correlation_cdf(b: f64, r: f64) -> f64 {
    checked_beta_reg(b, b, (0.5 * (1.0 + r)).clamp(0.0, 1.0)).unwrap()
}

#[test]
fn lkj_correlations_have_the_beta_marginals() {
    for (seed, eta, n) in [(21, 1.0, 2), (22, 3.0, 2), (23, 0.6, 2), (24, 2.0, 4)] {
        let chols = draws(&lkj(eta, n), n, seed);
        let b = eta + 0.5 * (n as f64 - 2.0);
        for i in 0..n {
            for j in 0..i {
                let samples: Vec<f64> = chols.iter().map(|l| correlation(l, n, i, j)).collect();
                assert_fits(&samples, |r| correlation_cdf(b, r));
                let wrong = ks_p_value(&samples, |r| correlation_cdf(1.5 * b, r));
                assert!(wrong < P_MIN, "p = {wrong}");
            }
        }
    }
}

#[test]
fn lkj_standard_deviations_follow_their_priors() {
    let chols = draws(&lkj(2.0, 3), 3, 31);
    let sds = |i| -> Vec<f64> { chols.iter().map(|l| sd_of(l, 3, i)).collect() };
    assert_fits(&sds(0), |s| normal_cdf((s / 0.8).ln() / 0.5));
    assert_fits(&sds(1), |s| inverse_gamma_cdf(3.0, 2.0, s * s));
    assert_fits(&sds(2), |s| 2.0 * normal_cdf(s / 1.5) - 1.0);
    let wrong = |s: f64| normal_cdf((s / (1.05 * 0.8)).ln() / 0.5);
    assert!(ks_p_value(&sds(0), wrong) < P_MIN);
}

#[test]
fn lkj_draws_agree_with_the_normaliser() {
    // E ln|R| is the derivative of the log normaliser in eta.
    let (eta, n, h) = (1.7, 4, 1e-4);
    let chols = draws(&lkj(eta, n), n, 41);
    let ln_dets: Vec<f64> =
        chols.iter().map(|l| (0..n).map(|i| 2.0 * (l[i * n + i] / sd_of(l, n, i)).ln()).sum()).collect();
    let count = COUNT as f64;
    let mean = ln_dets.iter().sum::<f64>() / count;
    let variance = ln_dets.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let difference =
        super::super::lkj::ln_normaliser(eta + h, n) - super::super::lkj::ln_normaliser(eta - h, n);
    let error = (mean - difference / (2.0 * h)) / (variance / count).sqrt();
    assert!(error.abs() < 4.0, "{error} standard errors");
}

#[test]
fn lkj_draws_with_a_tiny_eta_are_still_factors() {
    draws(&lkj(1e-4, 3), 3, 51);
    draws(&lkj(1e-4, 1), 1, 52);
}
