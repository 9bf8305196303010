//! Validation and serialised form of the scalar priors.

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Holder {
    prior: Prior,
}

#[test]
fn toml_round_trip() {
    for prior in all().chain([Prior::Fixed { value: -2.5 }]) {
        let holder = Holder { prior: prior.clone() };
        let text = toml::to_string(&holder).unwrap();
        assert!(text.contains(prior.name()), "{text}");
        assert_eq!(toml::from_str::<Holder>(&text).unwrap(), holder);
    }
    let text = "prior = { log_normal = { median = 1.5, sigma = 0.8 } }";
    let holder: Holder = toml::from_str(text).unwrap();
    assert_eq!(holder.prior, LOG_NORMAL);
    // Whole numbers may be written without a point.
    let holder: Holder = toml::from_str("prior = { fixed = { value = 2 } }").unwrap();
    assert_eq!(holder.prior, Prior::Fixed { value: 2.0 });
}

#[test]
fn unknown_and_missing_keys_are_refused() {
    for text in [
        "prior = { log_normal = { median = 1.0, sigma = 1.0, mean = 0.0 } }",
        "prior = { log_normal = { median = 1.0 } }",
        "prior = { lognormal = { median = 1.0, sigma = 1.0 } }",
        "prior = { half_normal = { sd = 1.0 }, fixed = { value = 1.0 } }",
        "prior = { half_normal = { sd = \"one\" } }",
        "prior = 1.0",
    ] {
        assert!(toml::from_str::<Holder>(text).is_err(), "{text}");
    }
}

#[test]
fn validate_names_the_field_and_the_value() {
    let bad = Prior::Gamma { shape: 2.0, rate: -1.0 };
    let expected = PriorError::OutOfRange { prior: "gamma", field: "rate", value: -1.0, allowed: "positive" };
    assert_eq!(bad.validate(), Err(expected.clone()));
    let message = "gamma prior: rate = -1, but it must be positive";
    assert_eq!(expected.to_string(), message);
    let bad = Prior::LogNormal { median: f64::INFINITY, sigma: 1.0 };
    let expected = PriorError::NotFinite { prior: "log_normal", field: "median", value: f64::INFINITY };
    assert_eq!(bad.validate(), Err(expected));
    for (low, high) in [(1.0, 1.0), (2.0, 1.0), (-1e308, 1e308)] {
        let bad = Prior::Uniform { low, high };
        let expected = PriorError::BadInterval { low, high };
        assert_eq!(bad.validate(), Err(expected));
    }
}

#[test]
fn validate_refuses_each_bad_parameter() {
    // The last parameter of every family, set to values that are never allowed.
    let with = |bad: f64| {
        [
            Prior::Fixed { value: bad },
            Prior::LogNormal { median: 1.0, sigma: bad },
            Prior::Normal { mean: 0.0, sd: bad },
            Prior::Normal { mean: bad, sd: 1.0 },
            Prior::Gamma { shape: bad, rate: 1.0 },
            Prior::InverseGamma { shape: 1.0, scale: bad },
            Prior::InverseGamma { shape: bad, scale: 1.0 },
            Prior::HalfNormal { sd: bad },
            Prior::HalfCauchy { scale: bad },
            Prior::Uniform { low: 0.0, high: bad },
            Prior::Uniform { low: bad, high: 1.0 },
        ]
    };
    for prior in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().flat_map(with) {
        assert!(prior.validate().is_err(), "{prior:?}");
    }
    let location = |prior: &Prior| match prior {
        Prior::Fixed { .. } => true,
        Prior::Normal { mean, .. } => *mean != 0.0,
        Prior::Uniform { low, .. } => *low < 0.0,
        _ => false,
    };
    for prior in with(-1.0) {
        assert_eq!(prior.validate().is_ok(), location(&prior), "{prior:?}");
    }
}

#[test]
fn fixed_values_are_seen() {
    let fixed = Prior::Fixed { value: 0.1 };
    assert!(fixed.is_fixed());
    assert_eq!(fixed.fixed_value(), Some(0.1));
    assert_eq!(fixed.log_density(0.1), 0.0);
    assert_eq!(fixed.log_density(0.2), f64::NEG_INFINITY);
    assert_eq!(fixed.sample(&mut rng(0)), 0.1);
    assert_eq!(fixed.support(), Support::Interval(0.1, 0.1));
    assert!(all().all(|prior| !prior.is_fixed() && prior.fixed_value().is_none()));
}
