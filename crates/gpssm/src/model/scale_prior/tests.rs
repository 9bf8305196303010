use super::*;
use crate::numeric_checks::{P_MIN, assert_close, integrate_positive, ks_p_value, rng};
use statrs::function::gamma::checked_gamma_ur;

const INVERSE_GAMMA: Prior = Prior::InverseGamma { shape: 3.0, scale: 0.4 };

fn examples() -> Vec<ScalePrior> {
    let priors = [
        Prior::LogNormal { median: 0.7, sigma: 0.5 },
        Prior::Gamma { shape: 2.5, rate: 3.0 },
        INVERSE_GAMMA,
        Prior::HalfNormal { sd: 0.6 },
        Prior::HalfCauchy { scale: 2.5 },
    ];
    priors
        .iter()
        .flat_map(|prior| [ScalePrior::on_sd(prior.clone()), ScalePrior::on_variance(prior.clone())])
        .collect()
}

#[test]
fn density_of_the_sd_integrates_to_one() {
    for prior in examples() {
        prior.validate().unwrap();
        let total = integrate_positive(0.01, |sd| prior.log_density_of_sd(sd).exp());
        assert_close(total, 1.0, 1e-10);
    }
}

#[test]
fn density_on_the_variance_has_the_jacobian() {
    let prior = ScalePrior::on_variance(INVERSE_GAMMA);
    let sd: f64 = 0.35;
    let expected = INVERSE_GAMMA.log_density(sd * sd) + (2.0 * sd).ln();
    assert_close(prior.log_density_of_sd(sd), expected, 1e-14);
    for bad in [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        assert_eq!(prior.log_density_of_sd(bad), f64::NEG_INFINITY);
    }
    for prior in examples() {
        for sd in [5e-324, 1e-170, 1e170, f64::MAX] {
            assert!(!prior.log_density_of_sd(sd).is_nan());
        }
    }
}

#[test]
fn samples_and_median_of_the_sd() {
    let prior = ScalePrior::on_variance(INVERSE_GAMMA);
    let mut rng = rng(5);
    let samples: Vec<f64> = (0..20_000).map(|_| prior.sample_sd(&mut rng)).collect();
    let cdf = |sd: f64, scale: f64| checked_gamma_ur(3.0, scale / (sd * sd)).unwrap();
    assert!(ks_p_value(&samples, |sd| cdf(sd, 0.4)) >= P_MIN);
    // A standard deviation wrong by 5 %.
    assert!(ks_p_value(&samples, |sd| cdf(1.05 * sd, 0.4)) < P_MIN);
    assert_close(cdf(prior.median_sd(), 0.4), 0.5, 1e-12);
    assert_close(ScalePrior::on_sd(INVERSE_GAMMA).median_sd(), INVERSE_GAMMA.median(), 0.0);
}

#[test]
fn only_positive_scales_are_valid() {
    let normal = Prior::Normal { mean: 5.0, sd: 0.1 };
    let expected = PriorError::NotAScale { prior: "normal" };
    assert_eq!(ScalePrior::on_sd(normal).validate(), Err(expected));
    let uniform = |low| Prior::Uniform { low, high: 1.0 };
    ScalePrior::on_sd(uniform(0.0)).validate().unwrap();
    let error = ScalePrior::on_variance(uniform(-0.1)).validate();
    assert!(matches!(error, Err(PriorError::OutOfRange { field: "low", value, .. }) if value == -0.1));
    for value in [0.0, -1.0, f64::NAN] {
        let fixed = ScalePrior::on_sd(Prior::Fixed { value });
        assert!(fixed.validate().is_err());
    }
    let bad = ScalePrior::on_sd(Prior::HalfNormal { sd: -1.0 });
    assert!(bad.validate().is_err());
}

#[test]
fn fixed_scales() {
    let fixed = ScalePrior::on_variance(Prior::Fixed { value: 0.1 });
    fixed.validate().unwrap();
    let sd = 0.1_f64.sqrt();
    assert!(fixed.is_fixed());
    assert_eq!(fixed.fixed_sd(), Some(sd));
    assert_eq!(fixed.sample_sd(&mut rng(0)), sd);
    assert_eq!(fixed.log_density_of_sd(sd), 0.0);
    assert_eq!(fixed.log_density_of_sd(0.1), f64::NEG_INFINITY);
    assert!(examples().iter().all(|prior| !prior.is_fixed()));
}

#[test]
fn conjugate_case_is_only_the_inverse_gamma_variance() {
    for prior in examples() {
        let conjugate = prior.as_inverse_gamma_variance();
        if prior == ScalePrior::on_variance(INVERSE_GAMMA) {
            assert_eq!(conjugate, Some((3.0, 0.4)));
        } else {
            assert_eq!(conjugate, None);
        }
    }
}

#[test]
fn toml_round_trip_and_refusals() {
    for prior in examples() {
        let text = toml::to_string(&prior).unwrap();
        assert_eq!(toml::from_str::<ScalePrior>(&text).unwrap(), prior);
    }
    let text = "on = \"variance\"\nprior = { inverse_gamma = { shape = 3.0, scale = 0.4 } }";
    let prior: ScalePrior = toml::from_str(text).unwrap();
    assert_eq!(prior, ScalePrior::on_variance(INVERSE_GAMMA));
    for text in [
        "on = \"precision\"\nprior = { half_normal = { sd = 1.0 } }",
        "prior = { half_normal = { sd = 1.0 } }",
        "on = \"sd\"\nprior = { half_normal = { sd = 1.0 } }\nextra = 1",
    ] {
        assert!(toml::from_str::<ScalePrior>(text).is_err(), "{text}");
    }
}
