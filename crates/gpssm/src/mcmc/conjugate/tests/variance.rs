//! A variance with an inverse-gamma prior.

use crate::mcmc::conjugate::draw_variance;
use crate::model::Prior;
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::checked_gamma_ur;
use std::f64::consts::PI;

use super::{ACCEPT, DETECT, REPLICATES, largest, relative_spread, rng, z_values};
use gpssm_dev::normal;

const SHAPE: f64 = 4.0;
const SCALE: f64 = 0.6;
const RESIDUALS: [f64; 6] = [0.3, f64::NAN, -0.8, 0.05, f64::NAN, 1.2];

/// IG(shape + n/2, scale + sum e^2 / 2) over the residuals that are there.
fn posterior(shape: f64, scale: f64, residuals: &[f64]) -> (f64, f64) {
    let seen: Vec<f64> = residuals.iter().copied().filter(|e| !e.is_nan()).collect();
    (shape + 0.5 * seen.len() as f64, scale + 0.5 * seen.iter().map(|e| e * e).sum::<f64>())
}

#[test]
fn posterior_is_prior_times_likelihood() {
    let (shape, scale) = posterior(SHAPE, SCALE, &RESIDUALS);
    let ratio = |variance: f64| {
        let seen = RESIDUALS.iter().filter(|e| !e.is_nan());
        let likelihood: f64 = seen.map(|e| -0.5 * ((2.0 * PI * variance).ln() + e * e / variance)).sum();
        Prior::InverseGamma { shape, scale }.log_density(variance)
            - Prior::InverseGamma { shape: SHAPE, scale: SCALE }.log_density(variance)
            - likelihood
    };
    let ratios: Vec<f64> = (-20..=20).map(|i| ratio(1.3f64.powi(i))).collect();
    let terms = RESIDUALS.iter().filter(|e| !e.is_nan()).map(|e| e * e / 1.3f64.powi(-20)).sum();
    assert!(relative_spread(&ratios, terms) < 1e-9, "{ratios:?}");
    // A count that is off by one is no rounding error.
    let wrong: Vec<f64> = (-20..=20).map(|i| ratio(1.3f64.powi(i)) - 0.5 * 1.3f64.powi(i).ln()).collect();
    assert!(relative_spread(&wrong, terms) > 1e-3);
}

/// Probability that an IG(shape, scale) variate is below x: that of a gamma variate above scale / x.
fn distribution(shape: f64, scale: f64, x: f64) -> f64 {
    checked_gamma_ur(shape, scale / x).unwrap()
}

fn ks_lambda(mut p: Vec<f64>) -> f64 {
    p.sort_by(f64::total_cmp);
    let n = p.len() as f64;
    let distance = p.iter().enumerate().map(|(i, p)| (p - i as f64 / n).max((i + 1) as f64 / n - p));
    n.sqrt() * distance.fold(0.0, f64::max)
}

/// Kolmogorov's lambda of 2.23 has p = 1e-4, 2.7 has p = 1e-6.
#[test]
fn draws_follow_the_posterior() {
    let (shape, scale) = posterior(SHAPE, SCALE, &RESIDUALS);
    let mut random = rng(1);
    let draws: Vec<f64> = (0..REPLICATES)
        .map(|_| draw_variance(SHAPE, SCALE, RESIDUALS.into_iter(), &mut random).unwrap())
        .collect();
    let lambda = |shape: f64, scale: f64| {
        ks_lambda(draws.iter().map(|draw| distribution(shape, scale, *draw)).collect())
    };
    assert!(lambda(shape, scale) < 2.23);
    // Against the wrong targets: 2 missing entries counted (lambda = 23), half the squares (51).
    assert!(lambda(shape + 1.0, scale) > 2.7);
    assert!(lambda(shape, 0.5 * (scale + SCALE)) > 2.7);
}

/// Exact start with half of ten residuals missing; `draw` is the update.
fn z_of(draw: impl Fn(&[f64], u64) -> f64) -> f64 {
    let functionals = |variance: f64| vec![variance.ln(), variance.ln().powi(2), variance.sqrt()];
    largest(&z_values(REPLICATES, |seed| {
        let mut random = rng(seed);
        let variance = Prior::InverseGamma { shape: SHAPE, scale: SCALE }.sample(&mut random);
        let residuals: Vec<f64> = (0..10)
            .map(|i| if i % 2 == 0 { f64::NAN } else { variance.sqrt() * normal(&mut random) })
            .collect();
        (functionals(variance), functionals(draw(&residuals, seed + (1 << 40))))
    }))
}

#[test]
fn the_update_leaves_the_prior_invariant() {
    let z = z_of(|e, seed| draw_variance(SHAPE, SCALE, e.iter().copied(), &mut rng(seed)).unwrap());
    println!("z = {z:.2}");
    assert!(z <= ACCEPT, "z = {z:.2}");
}

/// |z| = 92 with all entries counted, 20 with one too many, 76 with the sum not halved.
#[test]
fn planted_bugs_are_seen() {
    type Wrong = fn(f64, f64) -> (f64, f64);
    let mutants: [(&str, Wrong); 3] = [
        ("all entries counted", |shape, scale| (shape + 2.5, scale)),
        ("one too many", |shape, scale| (shape + 0.5, scale)),
        ("sum not halved", |shape, scale| (shape, 2.0 * scale - SCALE)),
    ];
    for (name, mutant) in mutants {
        let z = z_of(|e, seed| {
            let (shape, scale) = posterior(SHAPE, SCALE, e);
            let (shape, scale) = mutant(shape, scale);
            scale / Gamma::new(shape, 1.0).unwrap().sample(&mut rng(seed))
        });
        println!("{name}: z = {z:.1}");
        assert!(z > DETECT, "{name}: z = {z:.1}");
    }
}

#[test]
fn impossible_numbers_give_no_draw() {
    let mut random = rng(3);
    for bad in [f64::INFINITY, 1e300] {
        assert_eq!(draw_variance(SHAPE, SCALE, [bad].into_iter(), &mut random), None);
    }
    assert!(draw_variance(SHAPE, SCALE, std::iter::empty(), &mut random).is_some());
    assert!(draw_variance(SHAPE, SCALE, [f64::NAN; 3].into_iter(), &mut random).is_some());
}
