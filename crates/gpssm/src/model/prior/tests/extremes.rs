//! Extreme arguments and parameters of the scalar priors.

use super::*;

#[test]
fn log_density_is_never_nan() {
    let extremes = [
        f64::NEG_INFINITY,
        f64::MIN,
        -1.0,
        -0.0,
        0.0,
        5e-324,
        1e-308,
        1e-160,
        1.0,
        1e160,
        f64::MAX,
        f64::INFINITY,
    ];
    let scales = [1e-300, 1e-10, 1.0, 1e10, 1e300];
    for prior in all().chain([Prior::Fixed { value: 1.0 }]) {
        for prior in scales.map(|scale| rescaled(&prior, scale)) {
            for x in extremes {
                let value = prior.log_density(x);
                assert!(!value.is_nan(), "{prior:?} at {x}");
                let inside = prior.support().contains(x);
                assert!(inside || value == f64::NEG_INFINITY, "{prior:?} at {x}");
            }
            assert_eq!(prior.log_density(f64::NAN), f64::NEG_INFINITY);
        }
    }
}

#[test]
fn samples_stay_in_the_support_for_extreme_parameters() {
    let mut rng = rng(3);
    let extreme = [
        Prior::LogNormal { median: 1.0, sigma: 1e4 },
        Prior::Gamma { shape: 1e-4, rate: 1e3 },
        Prior::InverseGamma { shape: 1e-4, scale: 1e3 },
        Prior::HalfCauchy { scale: 1e300 },
        Prior::Uniform { low: 1.0, high: 1.0 + f64::EPSILON },
    ];
    for prior in extreme {
        prior.validate().unwrap();
        for _ in 0..2_000 {
            let x = prior.sample(&mut rng);
            assert!(prior.support().contains(x), "{prior:?} gave {x}");
        }
        assert!(prior.median().is_finite() && prior.median() > 0.0);
    }
}
