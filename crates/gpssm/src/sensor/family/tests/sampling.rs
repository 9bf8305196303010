//! Draws, checks of observations and the serialised form.

use super::*;
use crate::numeric_checks::{P_MIN, chi_square_p_value, integrate_interval, ks_p_value, normal_cdf, rng};
use statrs::function::beta::checked_beta_reg;

/// A scale wrong by 5 % moves the cdf of a symmetric law by only 0.012, so
/// that more draws are needed to see it than for the other laws.
const SYMMETRIC_COUNT: usize = 100_000;
const COUNT: usize = 20_000;

fn draws(family: Family, eta: f64, count: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    let samples: Vec<f64> = (0..count).map(|_| family.sample(eta, &mut rng)).collect();
    assert!(samples.iter().all(|&y| family.check(y).is_ok() && y.is_finite()));
    samples
}

fn student_cdf(dof: f64, t: f64) -> f64 {
    let tail = 0.5 * checked_beta_reg(0.5 * dof, 0.5, dof / (dof + t * t)).unwrap();
    if t > 0.0 { 1.0 - tail } else { tail }
}

#[test]
fn continuous_draws_follow_the_cdf_and_a_wrong_scale_is_seen() {
    let eta = 1.3;
    type Cdf = Box<dyn Fn(f64, f64) -> f64>;
    let cases: [(Family, Cdf); 3] = [
        (GAUSSIAN, Box::new(move |y, f| normal_cdf((y - eta) / (0.7 * f)))),
        (STUDENT_T, Box::new(move |y, f| student_cdf(3.5, (y - eta) / (0.7 * f)))),
        (Family::stochastic_volatility(), Box::new(move |y, f| normal_cdf(y / (f * f64::exp(0.5 * eta))))),
    ];
    for (seed, (family, cdf)) in (61..).zip(cases) {
        let samples = draws(family, eta, SYMMETRIC_COUNT, seed);
        let p = ks_p_value(&samples[..COUNT], |y| cdf(y, 1.0));
        assert!(p >= P_MIN, "{family:?}: {p}");
        let p = ks_p_value(&samples, |y| cdf(y, 1.0));
        assert!(p >= P_MIN, "{family:?}: {p}");
        let p = ks_p_value(&samples, |y| cdf(y, 1.05));
        assert!(p < P_MIN, "{family:?}, wrong scale: {p}");
    }
}

#[test]
fn discrete_draws_follow_the_probabilities_and_a_wrong_rate_is_seen() {
    // More draws where 5 % are little compared with the spread.
    let cases = [
        (Family::poisson(), -0.5, 5 * COUNT),
        (Family::poisson(), 1.4, COUNT),
        (Family::poisson(), 5.0, COUNT),
        (negative_binomial(2.5), 1.4, COUNT),
        (negative_binomial(0.4), 1.4, 10 * COUNT),
        (Family::bernoulli(), -0.4, COUNT),
    ];
    for (seed, (family, eta, count)) in (71..).zip(cases) {
        let samples = draws(family, eta, count, seed);
        let p_value = |e: f64| chi_square_p_value(&samples, |y| log_density(family, y, e).exp());
        assert!(p_value(eta) >= P_MIN, "{family:?}: {}", p_value(eta));
        let wrong_eta = if family == Family::bernoulli() {
            let p = 1.05 / (1.0 + (-eta).exp());
            (p / (1.0 - p)).ln()
        } else {
            eta + 1.05_f64.ln()
        };
        let wrong = p_value(wrong_eta);
        assert!(wrong < P_MIN, "{family:?}: {wrong}");
    }
}

#[test]
fn poisson_draws_are_continuous_over_the_change_of_method() {
    // Standardised draws below and above the change to a rounded normal.
    for (seed, rate) in [(81, 0.9 * POISSON_NORMAL_FROM), (82, 1.1 * POISSON_NORMAL_FROM)] {
        let eta = rate.ln();
        let scaled: Vec<f64> = draws(Family::poisson(), eta, COUNT, seed)
            .iter()
            .map(|y| (y - eta.exp()) / rate.sqrt())
            .collect();
        assert!(ks_p_value(&scaled, normal_cdf) >= P_MIN);
        assert!(ks_p_value(&scaled, |z| normal_cdf(z + 0.05)) < P_MIN);
    }
}

#[test]
fn draws_at_extreme_predictors_are_finite_and_valid() {
    let more = [negative_binomial(1e-4), negative_binomial(1e12), Family::student_t(1e3, 1e-3)];
    let mut rng = rng(91);
    for family in ALL.into_iter().chain(more) {
        for eta in [f64::NEG_INFINITY, f64::MIN, -1e3, 0.0, 40.0, 1e3, f64::MAX, f64::INFINITY] {
            for _ in 0..200 {
                let y = family.sample(eta, &mut rng);
                assert!(y.is_finite() && family.check(y).is_ok(), "{family:?} {eta}: {y}");
            }
        }
        assert!(family.sample(f64::NAN, &mut rng).is_nan());
    }
    assert_eq!(Family::poisson().sample(-1e3, &mut rng), 0.0);
    assert_eq!(Family::bernoulli().sample(1e3, &mut rng), 1.0);
    assert_eq!(Family::bernoulli().sample(-1e3, &mut rng), 0.0);
}

#[test]
fn student_cdf_of_the_test_is_the_integral_of_the_density() {
    let part = integrate_interval(0.01, -2.0, 1.5, |t| log_density(STUDENT_T, 0.7 * t, 0.0).exp());
    assert_close(0.7 * part, student_cdf(3.5, 1.5) - student_cdf(3.5, -2.0), 1e-10);
}

#[test]
fn observations_are_checked() {
    for family in ALL {
        family.check(f64::NAN).unwrap();
        family.check(0.0).unwrap();
        family.check(1.0).unwrap();
        for value in [f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(family.check(value), Err(FamilyError::Impossible { .. })));
        }
    }
    for family in [Family::poisson(), negative_binomial(1.0)] {
        family.check(1e9).unwrap();
        for value in [-1.0, 0.5, 1e9 + 0.5] {
            let error = family.check(value).unwrap_err();
            assert!(error.to_string().contains("non-negative integer"), "{error}");
        }
    }
    for value in [2.0, -1.0, 0.5] {
        let error = Family::bernoulli().check(value).unwrap_err();
        assert!(error.to_string().contains("must be 0 or 1"), "{error}");
    }
    GAUSSIAN.check(-1.5).unwrap();
}

#[test]
fn bad_parameters_do_not_panic() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for family in [
            Family::gaussian(bad),
            Family::student_t(bad, 4.0),
            Family::student_t(1.0, bad),
            negative_binomial(bad),
        ] {
            family.sample(0.5, &mut rng(0));
            log_density(family, 1.0, 0.5);
        }
    }
}
