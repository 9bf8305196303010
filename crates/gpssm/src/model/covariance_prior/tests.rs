use super::super::prior::Prior;
use super::*;
use crate::numeric_checks::{assert_close, integrate_interval, integrate_positive, integrate_real};
use std::f64::consts::PI;

mod configuration;
mod sampling;

fn inverse_wishart_2() -> CovariancePrior {
    CovariancePrior::InverseWishart { dof: 5.5, scale: vec![vec![2.0, 0.3], vec![0.3, 1.0]] }
}

fn inverse_wishart_3() -> CovariancePrior {
    CovariancePrior::InverseWishart {
        dof: 4.2,
        scale: vec![vec![2.0, 0.3, -0.5], vec![0.3, 1.0, 0.1], vec![-0.5, 0.1, 0.8]],
    }
}

/// LKJ prior with different kinds of standard deviation priors.
fn lkj(eta: f64, n: usize) -> CovariancePrior {
    let kinds = [
        ScalePrior::on_sd(Prior::LogNormal { median: 0.8, sigma: 0.5 }),
        ScalePrior::on_variance(Prior::InverseGamma { shape: 3.0, scale: 2.0 }),
        ScalePrior::on_sd(Prior::HalfNormal { sd: 1.5 }),
    ];
    CovariancePrior::Lkj { eta, sd: kinds.into_iter().cycle().take(n).collect() }
}

const CHOL_3: [f64; 9] = [1.1, 0.0, 0.0, -0.4, 0.6, 0.0, 0.2, 0.5, 0.9];

fn chol_n(n: usize) -> Vec<f64> {
    let entry = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5 + 0.3 * i as f64,
        std::cmp::Ordering::Greater => 0.2 * (i as f64 - 1.7 * j as f64),
    };
    (0..n * n).map(|k| entry(k / n, k % n)).collect()
}

#[test]
fn inverse_wishart_agrees_with_scipy() {
    // scipy.stats.invwishart.logpdf, scipy 1.17.1.
    let found = inverse_wishart_2().log_density(&[1.1, 0.0, -0.4, 0.6], 2);
    assert_close(found, -2.55902055960607, 1e-12);
    let found = inverse_wishart_3().log_density(&CHOL_3, 3);
    assert_close(found, -5.70884483103186, 1e-12);
    let single = CovariancePrior::InverseWishart { dof: 4.0, scale: vec![vec![1.6]] };
    let found = single.log_density(&[0.7], 1);
    assert_close(found, 0.06110949977948499, 1e-12);
    // In one dimension it is the inverse gamma prior of the variance.
    let conjugate = Prior::InverseGamma { shape: 2.0, scale: 0.8 };
    assert_close(found, conjugate.log_density(0.49), 1e-12);
}

#[test]
fn lkj_normaliser_is_the_volume_of_the_correlation_matrices() {
    // Known volumes for eta = 1: 2, pi^2 / 2, 32 pi^2 / 27.
    let volumes = [1.0, 2.0, PI * PI / 2.0, 32.0 * PI * PI / 27.0];
    for (n, volume) in (1..).zip(volumes) {
        assert_close(lkj::ln_normaliser(1.0, n).exp(), volume, 1e-13);
    }
    // n = 3, other eta: integral of |R|^(eta - 1) over two correlations and the
    // partial one, r_23 = r_12 r_13 + q sqrt((1 - r_12^2)(1 - r_13^2)).
    for eta in [0.7_f64, 2.5] {
        // With r = tanh u, (1 - r^2)^power dr = cosh(u)^(-2 power - 2) du.
        let one = |power: f64| integrate_real(0.02, |u: f64| u.cosh().powf(-2.0 * power - 2.0));
        let total = one(eta - 0.5).powi(2) * one(eta - 1.0);
        assert_close(lkj::ln_normaliser(eta, 3).exp(), total, 1e-12);
    }
}

#[test]
fn lkj_in_one_dimension_is_the_prior_of_the_variance() {
    let sd: f64 = 0.9;
    let prior = lkj(3.0, 1);
    let CovariancePrior::Lkj { sd: priors, .. } = &prior else { unreachable!() };
    let expected = priors[0].log_density_of_sd(sd) - (2.0 * sd).ln();
    assert_close(prior.log_density(&[sd], 1), expected, 1e-13);
}

/// Integral of the density over the three free entries of a 2 x 2 covariance.
fn total_2(prior: &CovariancePrior) -> f64 {
    let step = 0.08;
    integrate_positive(step, |q_11| {
        integrate_positive(step, |q_22| {
            // Beyond these the mass is below 1e-15, and entries would overflow.
            if !(1e-8..1e12).contains(&q_11) || !(1e-8..1e12).contains(&q_22) {
                return 0.0;
            }
            let bound = (q_11 * q_22).sqrt();
            integrate_interval(step, -bound, bound, |q_12| {
                let first = q_11.sqrt();
                let rest = q_22 - q_12 * q_12 / q_11;
                if rest <= 0.0 {
                    return 0.0;
                }
                let chol = [first, 0.0, q_12 / first, rest.sqrt()];
                prior.log_density(&chol, 2).exp()
            })
        })
    })
}

#[test]
fn densities_of_the_covariance_integrate_to_one() {
    let lkj = |eta| CovariancePrior::Lkj {
        eta,
        sd: vec![
            ScalePrior::on_sd(Prior::LogNormal { median: 0.8, sigma: 0.5 }),
            ScalePrior::on_variance(Prior::InverseGamma { shape: 3.0, scale: 2.0 }),
        ],
    };
    for prior in [lkj(1.0), lkj(2.5), inverse_wishart_2()] {
        assert_close(total_2(&prior), 1.0, 1e-6);
    }
}

#[test]
fn jacobian_agrees_with_finite_differences() {
    for n in 1..=4 {
        let chol = chol_n(n);
        let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        // Free entries of Q when one coordinate is moved.
        let moved = |(a, b): (usize, usize), step: f64| -> Vec<f64> {
            let mut l = chol.clone();
            if a == b {
                l[a * n + a] *= step.exp();
            } else {
                l[a * n + b] += step;
            }
            let entry =
                |&(i, j): &(usize, usize)| -> f64 { (0..n).map(|k| l[i * n + k] * l[j * n + k]).sum() };
            pairs.iter().map(entry).collect()
        };
        let h = 1e-5;
        let columns: Vec<Vec<f64>> = pairs
            .iter()
            .map(|&pair| {
                let (up, down) = (moved(pair, h), moved(pair, -h));
                up.iter().zip(down).map(|(u, d)| (u - d) / (2.0 * h)).collect()
            })
            .collect();
        let expected = determinant(columns).abs().ln();
        let found = CovariancePrior::log_jacobian_log_cholesky(&chol, n);
        assert!((found - expected).abs() < 1e-7, "{n}: {found} {expected}");
    }
}

/// Determinant by elimination with pivoting.
fn determinant(mut rows: Vec<Vec<f64>>) -> f64 {
    let n = rows.len();
    let mut product = 1.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs())).unwrap();
        if pivot != k {
            rows.swap(k, pivot);
            product = -product;
        }
        product *= rows[k][k];
        let top = rows[k].clone();
        for row in rows.iter_mut().skip(k + 1) {
            let ratio = row[k] / top[k];
            row.iter_mut().zip(&top).for_each(|(x, t)| *x -= ratio * t);
        }
    }
    product
}
