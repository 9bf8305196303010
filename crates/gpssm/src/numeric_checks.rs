//! What the unit tests of the priors and the observation families share.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub(crate) use crate::conformance::statistics::{
    P_MIN, chi_square_p_value, integrate_interval, integrate_positive, integrate_real, ks_p_value,
};
pub(crate) use crate::special::standard_cdf as normal_cdf;

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

#[track_caller]
pub(crate) fn assert_close(found: f64, expected: f64, relative: f64) {
    assert!(
        (found - expected).abs() <= relative * expected.abs().max(1e-300),
        "found {found:e}, expected {expected:e}"
    );
}

#[test]
fn quadrature_and_goodness_of_fit_tests_agree_with_known_values() {
    let positive = integrate_positive(0.02, |x| x * (-x).exp());
    assert_close(positive, 1.0, 1e-13);
    let real = integrate_real(0.02, |x| (-0.5 * x * x).exp());
    assert_close(real, std::f64::consts::TAU.sqrt(), 1e-13);
    let interval = integrate_interval(0.02, 1.0, 3.0, |x| x * x);
    assert_close(interval, 26.0 / 3.0, 1e-13);
    // A perfect grid fits; a shifted one at lambda = 1.36 has p close to 0.05.
    let grid: Vec<f64> = (0..10_000).map(|i| (f64::from(i) + 0.5) / 1e4).collect();
    assert!(ks_p_value(&grid, |x| x) > 0.999);
    let shift = 1.358_1 / 100.0;
    let p = ks_p_value(&grid, |x| (x + shift).min(1.0));
    assert!((p - 0.05).abs() < 0.002, "{p}");
}
