use super::*;
use crate::numeric_checks::{assert_close, integrate_real};
use crate::special::LN_2_PI;

mod sampling;

const GAUSSIAN: Family = Family::gaussian(0.7);
const STUDENT_T: Family = Family::student_t(0.7, 3.5);

const fn negative_binomial(size: f64) -> Family {
    Family::negative_binomial(size)
}

const ALL: [Family; 7] = [
    GAUSSIAN,
    STUDENT_T,
    Family::poisson(),
    negative_binomial(2.5),
    Family::bernoulli(),
    Family::binomial(12),
    Family::stochastic_volatility(),
];

fn log_density(family: Family, y: f64, eta: f64) -> f64 {
    let mut out = [0.0];
    family.log_density(y, &[eta], &mut out);
    out[0]
}

/// From scipy.stats 1.17.1; where its own rounding exceeds 1e-13 (large counts
/// and sizes) from mpmath with 40 digits; binomial from 50-digit arithmetic.
const LITERALS: [(Family, f64, f64, f64); 27] = [
    (GAUSSIAN, 0.3, -1.2, -2.8581819566128788),
    (GAUSSIAN, 5.0, 4.9, -0.5724676708985932),
    (GAUSSIAN, -80.0, 2.0, -6861.786753385186),
    (STUDENT_T, 0.3, -1.2, -2.518507389875812),
    (STUDENT_T, 5.0, 4.9, -0.645880079517964),
    (STUDENT_T, -800000.0, 2.0, -60.58478199584774),
    (Family::poisson(), 0.0, -1.2, -0.30119421191220214),
    (Family::poisson(), 7.0, 1.5, -2.506850431403479),
    (Family::poisson(), 7.0, -40.0, -288.52516136106544),
    (Family::poisson(), 3.0, 6.0, -387.22055296196316),
    (Family::poisson(), 1000.0, 6.9, -4.402894093189223),
    (negative_binomial(2.5), 0.0, -1.2, -0.28438774658568633),
    (negative_binomial(2.5), 7.0, 1.5, -2.7910472902740238),
    (negative_binomial(0.3), 4.0, 3.0, -3.4177730228351),
    (negative_binomial(1e8), 4.0, 1.0, -1.8963356705929835),
    (negative_binomial(50.0), 300.0, 5.0, -17.22666107026116),
    (Family::bernoulli(), 0.0, 0.7, -1.1031860488854581),
    (Family::bernoulli(), 1.0, 0.7, -0.40318604888545784),
    (Family::bernoulli(), 1.0, -30.0, -30.000000000000092),
    (Family::binomial(12), 3.0, 0.7, -5.744605040273133),
    (Family::binomial(12), 0.0, -1.3, -2.8921014459959062),
    (Family::binomial(1), 1.0, 0.7, -0.4031860488854579),
    (Family::binomial(5000), 2600.0, 0.1, -4.732102332553616),
    (Family::binomial(12), 12.0, -30.0, -360.00000000000114),
    (Family::stochastic_volatility(), 0.0, 0.7, -1.2689385332046725),
    (Family::stochastic_volatility(), 0.4, -2.0, -0.5100630211191248),
    (Family::stochastic_volatility(), -3.0, 1.1, -2.96685840984603),
];

#[test]
fn log_densities_agree_with_scipy() {
    for (family, y, eta, expected) in LITERALS {
        assert_close(log_density(family, y, eta), expected, 1e-12);
    }
}

#[test]
fn densities_integrate_or_sum_to_one() {
    for family in [GAUSSIAN, STUDENT_T, Family::stochastic_volatility()] {
        for eta in [-1.3, 0.0, 2.0] {
            let total = integrate_real(0.005, |y| log_density(family, y, eta).exp());
            assert_close(total, 1.0, 1e-10);
        }
    }
    for family in [Family::poisson(), negative_binomial(2.5), negative_binomial(1e6)] {
        for eta in [-3.0, 0.0, 3.0] {
            let total: f64 = (0..3_000).map(|y| log_density(family, f64::from(y), eta).exp()).sum();
            assert_close(total, 1.0, 1e-12);
        }
    }
    for eta in [-900.0, -3.0, 0.0, 3.0, 900.0] {
        let total = log_density(Family::bernoulli(), 0.0, eta).exp()
            + log_density(Family::bernoulli(), 1.0, eta).exp();
        assert_close(total, 1.0, 1e-14);
    }
}

#[test]
fn negative_binomial_has_the_documented_moments() {
    let (size, eta) = (2.5, 1.2_f64);
    let p = |y: f64| log_density(negative_binomial(size), y, eta).exp();
    let counts = || (0..3_000).map(f64::from);
    let mean: f64 = counts().map(|y| y * p(y)).sum();
    let variance: f64 = counts().map(|y| (y - mean).powi(2) * p(y)).sum();
    let expected = eta.exp();
    assert_close(mean, expected, 1e-11);
    assert_close(variance, expected + expected * expected / size, 1e-11);
}

#[test]
fn adds_to_every_entry() {
    let eta = [-0.5, 0.1, 2.0];
    for family in ALL {
        let mut out = [1.0, 2.0, 3.0];
        family.log_density(1.0, &eta, &mut out);
        for i in 0..3 {
            let expected = (i + 1) as f64 + log_density(family, 1.0, eta[i]);
            assert_close(out[i], expected, 1e-14);
        }
        // A missing observation says nothing.
        let before = out;
        family.log_density(f64::NAN, &eta, &mut out);
        assert_eq!(out, before);
        family.log_density(f64::INFINITY, &eta, &mut out);
        assert_eq!(out, [f64::NEG_INFINITY; 3]);
    }
    let mut out = [0.0; 3];
    Family::poisson().log_density(1.5, &eta, &mut out);
    assert_eq!(out, [f64::NEG_INFINITY; 3]);
}

#[test]
fn never_nan_nor_plus_infinity() {
    let eta = [
        f64::NEG_INFINITY,
        f64::MIN,
        -1e3,
        -745.0,
        -1.0,
        0.0,
        1.0,
        709.0,
        1e3,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    let observations = [0.0, 1.0, -1.0, 7.0, 1e6, 1e200, -1e200, 5e-324, f64::MAX];
    let more = [
        negative_binomial(1e-300),
        negative_binomial(1e300),
        Family::student_t(1e-200, 1e-3),
        Family::student_t(1.0, 1e12),
        Family::gaussian(1e-200),
    ];
    for family in ALL.into_iter().chain(more) {
        for y in observations {
            let mut out = [0.0; 12];
            family.log_density(y, &eta, &mut out);
            assert!(out.iter().all(|&v| v < f64::INFINITY), "{family:?} {y} {out:?}");
            assert_eq!(out[11], f64::NEG_INFINITY);
        }
    }
}

#[test]
fn extreme_predictors_have_the_right_limits() {
    let poisson = |y, eta| log_density(Family::poisson(), y, eta);
    assert_eq!(poisson(3.0, 1e3), f64::NEG_INFINITY);
    assert_eq!(poisson(0.0, -1e3), 0.0);
    assert_eq!(poisson(0.0, f64::NEG_INFINITY), 0.0);
    assert_close(poisson(3.0, -1e3), -3e3 - 6f64.ln(), 1e-14);
    let binomial = |y, eta| log_density(negative_binomial(2.0), y, eta);
    // p(y) -> (y + 1) (size / m)^size for size = 2 and a large mean m.
    assert_close(binomial(3.0, 1e3), 4f64.ln() + 2.0 * (2f64.ln() - 1e3), 1e-14);
    assert_eq!(binomial(0.0, -1e3), 0.0);
    assert_eq!(log_density(Family::bernoulli(), 0.0, 1e3), -1e3);
    assert_eq!(log_density(Family::bernoulli(), 1.0, 1e3), 0.0);
    assert_eq!(log_density(Family::binomial(9), 9.0, f64::INFINITY), 0.0);
    assert_eq!(log_density(Family::binomial(9), 8.0, f64::INFINITY), f64::NEG_INFINITY);
    let volatility = |y, eta| log_density(Family::stochastic_volatility(), y, eta);
    assert_close(volatility(0.0, -1e3), 500.0 - 0.5 * LN_2_PI, 1e-14);
    assert_eq!(volatility(0.1, -1e3), f64::NEG_INFINITY);
    assert_close(volatility(2.0, 1e3), -500.0 - 0.5 * LN_2_PI, 1e-14);
    // Student's t with many degrees of freedom is the Gaussian.
    let wide = Family::student_t(0.7, 1e14);
    assert_close(log_density(wide, 0.3, 1.2), log_density(GAUSSIAN, 0.3, 1.2), 1e-12);
}
