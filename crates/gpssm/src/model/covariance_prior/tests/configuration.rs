//! Validation, serialised form and refusals of the matrix priors.

use super::*;

#[test]
fn toml_round_trip_and_unknown_keys() {
    for prior in [inverse_wishart_2(), inverse_wishart_3(), lkj(2.0, 3)] {
        let text = toml::to_string(&prior).unwrap();
        assert_eq!(toml::from_str::<CovariancePrior>(&text).unwrap(), prior);
    }
    let text = "[inverse_wishart]\ndof = 5.5\nscale = [[2.0, 0.3], [0.3, 1.0]]";
    let prior: CovariancePrior = toml::from_str(text).unwrap();
    assert_eq!(prior, inverse_wishart_2());
    for text in [
        "[inverse_wishart]\ndof = 5.5\nscale = [[2.0]]\nmean = 1.0",
        "[lkj]\neta = 1.0",
        "[lkj]\neta = 1.0\nsd = [{ on = \"sd\", prior = { half_normal = { sd = 1.0 } }, x = 1 }]",
    ] {
        assert!(toml::from_str::<CovariancePrior>(text).is_err(), "{text}");
    }
}

#[test]
fn inverse_wishart_validation() {
    let with = |dof: f64, scale: &[&[f64]]| CovariancePrior::InverseWishart {
        dof,
        scale: scale.iter().map(|row| row.to_vec()).collect(),
    };
    inverse_wishart_3().validate(3).unwrap();
    let unit: [&[f64]; 2] = [&[1.0, 0.0], &[0.0, 1.0]];
    with(1.01, &unit).validate(2).unwrap();
    let error = with(1.0, &unit).validate(2).unwrap_err();
    assert!(matches!(error, PriorError::OutOfRange { field: "dof", value: 1.0, .. }));
    let error = with(f64::NAN, &unit).validate(2).unwrap_err();
    assert!(matches!(error, PriorError::NotFinite { field: "dof", .. }));
    let error = with(9.0, &unit).validate(3).unwrap_err();
    let expected =
        PriorError::WrongLength { prior: "inverse_wishart", field: "scale", found: 2, expected: 3 };
    assert_eq!(error, expected);
    let error = with(9.0, &[&[1.0, 0.0], &[0.0]]).validate(2).unwrap_err();
    assert!(matches!(error, PriorError::WrongLength { found: 1, .. }));
    let error = with(9.0, &[&[1.0, 0.1], &[0.2, 1.0]]).validate(2).unwrap_err();
    assert!(matches!(error, PriorError::NotSymmetric { row: 1, column: 0, .. }));
    let error = with(9.0, &[&[1.0, 2.0], &[2.0, 1.0]]).validate(2).unwrap_err();
    assert!(matches!(error, PriorError::NotPositiveDefinite { order: 2, .. }));
    let infinite = with(9.0, &[&[f64::INFINITY, 0.0], &[0.0, 1.0]]);
    assert!(infinite.validate(2).is_err());
}

#[test]
fn lkj_validation() {
    lkj(0.5, 3).validate(3).unwrap();
    for eta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(lkj(eta, 2).validate(2).is_err());
    }
    let error = lkj(1.0, 2).validate(3).unwrap_err();
    assert!(matches!(error, PriorError::WrongLength { found: 2, expected: 3, .. }));
    let half_normal = ScalePrior::on_sd(Prior::HalfNormal { sd: 1.0 });
    let with = |second: Prior| CovariancePrior::Lkj {
        eta: 1.0,
        sd: vec![half_normal.clone(), ScalePrior::on_sd(second)],
    };
    let error = with(Prior::Normal { mean: 1.0, sd: 0.1 }).validate(2).unwrap_err();
    let PriorError::Entry { field, index, source } = error else { panic!("{error}") };
    assert_eq!((field, index), ("sd", 1));
    assert_eq!(*source, PriorError::NotAScale { prior: "normal" });
    let error = with(Prior::Fixed { value: 0.5 }).validate(2).unwrap_err();
    assert!(error.to_string().starts_with("sd[1]: "), "{error}");
    assert!(error.to_string().contains("fixed at 0.5"), "{error}");
}

#[test]
fn what_is_not_a_cholesky_factor_has_no_density() {
    for prior in [inverse_wishart_2(), lkj(2.0, 2)] {
        for chol in [
            &[1.0, 0.0, 0.2][..],
            &[1.0, 0.0, 0.2, 0.0],
            &[-1.0, 0.0, 0.2, 1.0],
            &[1.0, 0.0, f64::NAN, 1.0],
            &[1.0, 0.0, 0.2, f64::INFINITY],
        ] {
            assert_eq!(prior.log_density(chol, 2), f64::NEG_INFINITY);
            let ln_jacobian = CovariancePrior::log_jacobian_log_cholesky(chol, 2);
            assert_eq!(ln_jacobian, f64::NEG_INFINITY);
        }
        // Extreme but allowed factors give a number.
        for size in [1e-200, 1e-20, 1e20, 1e200] {
            assert!(!prior.log_density(&[size, 0.0, 1.0, size], 2).is_nan());
        }
        // A prior of another dimension has no density and no draws here.
        assert_eq!(prior.log_density(&CHOL_3, 3), f64::NEG_INFINITY);
        let mut rng = crate::numeric_checks::rng(0);
        assert!(prior.sample(&mut rng, 3).is_err());
    }
}
