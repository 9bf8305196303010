//! Users' log densities: each built-in prior written as a formula is the same prior.

use super::*;

/// A built-in prior as a formula without its constant.
fn as_formula(prior: &Prior) -> Option<LogDensity> {
    let (text, low, high) = match *prior {
        Prior::LogNormal { median, sigma } => {
            (format!("-0.5*((log(v) - log({median}))/{sigma})^2 - log(v)"), Some(0.0), None)
        }
        Prior::Normal { mean, sd } => (format!("-0.5*((v - {mean})/{sd})^2"), None, None),
        Prior::Gamma { shape, rate } => (format!("({shape} - 1)*log(v) - {rate}*v"), Some(0.0), None),
        Prior::InverseGamma { shape, scale } => {
            (format!("-({shape} + 1)*log(v) - {scale}/v"), Some(0.0), None)
        }
        Prior::HalfNormal { sd } => (format!("-0.5*(v/{sd})^2"), Some(0.0), None),
        Prior::HalfCauchy { scale } => (format!("-log1p((v/{scale})^2)"), Some(0.0), None),
        Prior::Uniform { low, high } => ("0".to_owned(), Some(low), Some(high)),
        Prior::Fixed { .. } | Prior::LogDensity(_) => return None,
    };
    Some(LogDensity::formula(&text, low, high))
}

/// Density to 1e-7, quantiles by the cdf of the built-in prior to 1e-6, support, draws.
#[test]
fn formulas_are_the_priors_they_repeat() {
    for (seed, (prior, median, points)) in LITERALS.into_iter().enumerate() {
        let density = Prior::from(as_formula(&prior).unwrap());
        density.validate().unwrap();
        assert_eq!(density.support(), prior.support());
        for &(x, expected) in points {
            let found = density.log_density(x);
            assert!((found - expected).abs() < 1e-7, "{prior:?} at {x}: {found} {expected}");
        }
        assert!((density.median() / median - 1.0).abs() < 1e-5, "{prior:?}: {}", density.median());
        let Prior::LogDensity(of) = &density else { unreachable!() };
        for p in [1e-6, 0.01, 0.3, 0.77, 0.999] {
            let found = cdf(&prior, of.quantile(p));
            assert!((found - p).abs() < 1e-6, "{prior:?}: {p} {found}");
        }
        let mut rng = rng(seed as u64);
        let samples: Vec<f64> = (0..20_000).map(|_| density.sample(&mut rng)).collect();
        assert!(samples.iter().all(|x| density.support().contains(*x)));
        assert!(ks_p_value(&samples, |x| cdf(&prior, x)) >= P_MIN, "{prior:?}");
    }
}

/// Far from zero and narrow, two peaks, half-lines that end elsewhere than at zero, jumps.
#[test]
fn unusual_densities() {
    let median = |text: &str, low: Option<f64>, high: Option<f64>| {
        let prior = Prior::from(LogDensity::formula(text, low, high));
        prior.validate().unwrap_or_else(|error| panic!("{text}: {error}"));
        (prior.median(), prior.log_density(prior.median()))
    };
    let (m, p) = median("-0.5*((v - 1e6)/1e-3)^2", None, None);
    assert!(
        (m - 1e6).abs() < 1e-6
            && (p - (-0.5 * (2.0 * std::f64::consts::PI).ln() - 1e-3f64.ln())).abs() < 1e-5
    );
    let (m, _) = median("log(exp(-0.5*(v - 5)^2) + 3*exp(-0.5*(v + 5)^2))", None, None);
    // Two thirds of the lower peak.
    assert!((m - (-5.0 + 0.430_727_3)).abs() < 1e-4, "{m}");
    let (m, p) = median("-(v - 3)", Some(3.0), None);
    assert!((m - 3.0 - std::f64::consts::LN_2).abs() < 1e-5 && (p + std::f64::consts::LN_2).abs() < 1e-5);
    let (m, _) = median("v", None, Some(-2.0));
    assert!((m + 2.0 + std::f64::consts::LN_2).abs() < 1e-5);
    // Seen failing with fractions counted from the wrong end.
    let falling = LogDensity::formula("v", None, Some(-2.0));
    for p in [0.1, 0.8] {
        assert!((falling.quantile(p) - (-2.0 + f64::ln(p))).abs() < 1e-5);
    }
    let (m, p) = median("if(v < 2, -inf, 0)", Some(0.0), Some(6.0));
    assert!((m - 4.0).abs() < 1e-5 && (p + 4f64.ln()).abs() < 1e-5, "{m} {p}");
    let sum = integrate_real(0.01, |v| {
        let density = LogDensity::formula("-v^4 + v", None, None);
        Prior::from(density).log_density(v).exp()
    });
    assert!((sum - 1.0).abs() < 1e-7, "{sum}");
}

#[test]
fn what_is_no_density_is_refused_in_one_line() {
    for (text, low, high, fragment) in [
        ("-log(v)", Some(0.0), None, "does not fall off towards"),
        ("0", None, None, "does not fall off towards minus infinity"),
        ("v", None, None, "cannot be normalised"),
        ("-log(v)^2", None, None, "not a number at v = -"),
        ("-inf", None, None, "zero everywhere"),
        ("-1/(v - v)", Some(0.0), Some(1.0), "zero everywhere"),
        ("-x^2", None, None, "there is no 'x' here: 'v' is the value"),
        ("-v^2 +", None, None, "log_density prior"),
        ("-v^2", Some(2.0), Some(1.0), "2"),
        ("-v^2", Some(f64::NAN), None, "low"),
    ] {
        let error = Prior::from(LogDensity::formula(text, low, high)).validate().unwrap_err().to_string();
        assert!(error.contains(fragment) && !error.contains('\n'), "{text}: {error}");
    }
    let unknown = Prior::from(LogDensity::function("f", None, None));
    assert!(unknown.validate().is_ok() && unknown.log_density(0.0) == f64::NEG_INFINITY);
    let mut missing = unknown.clone();
    assert!(missing.attach(&Functions::new()).unwrap_err().to_string().contains("no function \"f\""));
}

#[test]
fn a_function_is_the_formula_to_the_last_bit() {
    let formula = Prior::from(LogDensity::formula("-0.5*(v/0.3)^2", Some(0.0), None));
    let mut function = Prior::from(LogDensity::function("mine", Some(0.0), None));
    let functions = Functions::new().with_prior("mine", |v: f64| -0.5 * ((v / 0.3) * (v / 0.3)));
    function.attach(&functions).unwrap();
    let (mut a, mut b) = (rng(3), rng(3));
    for _ in 0..1000 {
        let x = formula.sample(&mut a);
        assert_eq!(x.to_bits(), function.sample(&mut b).to_bits());
        assert_eq!(formula.log_density(x).to_bits(), function.log_density(x).to_bits());
    }
}

#[test]
fn configurations_round_trip() {
    let text = r#"{"log_density":{"formula":"-v^2","low":0.0}}"#;
    let prior: Prior = serde_json::from_str(text).unwrap();
    assert_eq!(prior, Prior::from(LogDensity::formula("-v^2", Some(0.0), None)));
    assert_eq!(serde_json::to_string(&prior).unwrap(), text);
    assert!(serde_json::from_str::<Prior>(r#"{"log_density":{"formula":"-v^2","lo":0.0}}"#).is_err());
}
