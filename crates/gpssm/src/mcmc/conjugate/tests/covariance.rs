//! A full covariance with an inverse-Wishart prior, and missing components.

use crate::mcmc::conjugate::draw_covariance;
use crate::model::CovariancePrior;
use gpssm_dev::dense::{log_determinant, log_gaussian_factored, lower_times, times_transposed};
use gpssm_dev::normal;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::twin::{self, Mutant};
use super::{ACCEPT, DETECT, REPLICATES, largest, relative_spread, rng, z_values};

const N: usize = 3;
const DOF: f64 = 8.0;
const ROWS: usize = 6;

fn psi() -> Vec<Vec<f64>> {
    vec![vec![2.0, 1.2, -0.4], vec![1.2, 3.0, 0.5], vec![-0.4, 0.5, 1.5]]
}

fn prior() -> CovariancePrior {
    CovariancePrior::InverseWishart { dof: DOF, scale: psi() }
}

fn square(l: &[f64]) -> Vec<f64> {
    times_transposed(l, l, N)
}

#[test]
fn posterior_is_prior_times_likelihood() {
    let rows = [[0.3, -0.8, 1.1], [0.9, 0.2, -0.5], [-1.4, -0.3, 0.7], [0.1, 0.6, 0.2]];
    let mut scale = psi();
    for (i, j) in (0..N).flat_map(|i| (0..N).map(move |j| (i, j))) {
        scale[i][j] += rows.iter().map(|e| e[i] * e[j]).sum::<f64>();
    }
    let posterior = |dof: f64| CovariancePrior::InverseWishart { dof, scale: scale.clone() };
    let ratios = |dof: f64| -> Vec<f64> {
        let mut random = rng(7);
        let one = |_| {
            let l = prior().sample(&mut random, N).unwrap();
            let likelihood: f64 = rows.iter().map(|e| log_gaussian_factored(&l, e)).sum();
            posterior(dof).log_density(&l, N) - prior().log_density(&l, N) - likelihood
        };
        (0..200).map(one).collect()
    };
    let spread = relative_spread(&ratios(DOF + rows.len() as f64), 1.0);
    assert!(spread < 1e-9, "{spread:e}");
    // A count that is off by one is no rounding error.
    assert!(relative_spread(&ratios(DOF + rows.len() as f64 + 1.0), 1.0) > 0.1);
}

/// Every entry of R, of its factor, their squares, and the log determinant.
fn functionals(l: &[f64]) -> Vec<f64> {
    let r = square(l);
    let entries = (0..N).flat_map(|i| (0..=i).map(move |j| i * N + j));
    let mut out: Vec<f64> = entries.clone().flat_map(|i| [r[i], l[i]]).collect();
    // Correlations, which are bounded: squares of R have heavy tails.
    for (i, j) in [(1, 0), (2, 0), (2, 1)] {
        let correlation = r[i * N + j] / (r[i * N + i] * r[j * N + j]).sqrt();
        out.extend([correlation, correlation * correlation]);
    }
    out.extend(entries.map(|i| (r[i] * r[i]).ln_1p()));
    out.extend((0..N).map(|i| r[i * N + i].ln()));
    out.push(log_determinant(l, N));
    out
}

/// Residuals given R; each is missing with probability 0.4.
fn residuals(l: &[f64], random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut all = Vec::new();
    for _ in 0..ROWS {
        let white: Vec<f64> = (0..N).map(|_| normal(random)).collect();
        all.extend(lower_times(l, N, &white));
    }
    let mut blank = |e: f64| if random.random::<f64>() < 0.4 { f64::NAN } else { e };
    all.into_iter().map(&mut blank).collect()
}

fn z_of(n: u64, draw: impl Fn(&[f64], &[f64], u64) -> Vec<f64>) -> Vec<f64> {
    z_values(n, |seed| {
        let mut random = rng(seed);
        let l = prior().sample(&mut random, N).unwrap();
        let e = residuals(&l, &mut random);
        (functionals(&l), functionals(&draw(&e, &square(&l), seed + (1 << 40))))
    })
}

#[test]
fn the_update_leaves_the_prior_invariant() {
    let z = z_of(REPLICATES, |e, current, seed| {
        draw_covariance(DOF, &psi(), &mut e.to_vec(), current, &mut rng(seed)).unwrap()
    });
    println!("largest of {} is z = {:.2}", z.len(), largest(&z));
    assert!(largest(&z) <= ACCEPT, "{z:.2?}");
}

#[test]
fn the_twin_reproduces_the_library() {
    for seed in 0..500 {
        let mut random = rng(seed);
        let l = prior().sample(&mut random, N).unwrap();
        let e = residuals(&l, &mut random);
        let current = square(&l);
        let library = draw_covariance(DOF, &psi(), &mut e.clone(), &current, &mut rng(seed)).unwrap();
        let twin = twin::draw(DOF, &psi(), &e, &current, None, &mut rng(seed));
        assert!(library.iter().zip(&twin).all(|(a, b)| (a - b).abs() < 1e-10), "{library:?} {twin:?}");
    }
}

fn twin_z(mutant: Mutant) -> f64 {
    let draw =
        |e: &[f64], current: &[f64], seed| twin::draw(DOF, &psi(), e, current, Some(mutant), &mut rng(seed));
    largest(&z_of(REPLICATES, draw))
}

/// |z| found: marginal imputation 43, mean imputation 62, zeros 46, one row too many 35, empty rows 13.
#[test]
fn planted_bugs_are_seen() {
    for mutant in [
        Mutant::MarginalImputation,
        Mutant::MeanImputation,
        Mutant::ZeroImputation,
        Mutant::CountOffByOne,
        Mutant::CountsEmptyRows,
    ] {
        let z = twin_z(mutant);
        println!("{mutant:?}: z = {z:.1}");
        assert!(z > DETECT, "{mutant:?}: z = {z:.1}");
    }
}

#[test]
fn an_exact_update_of_another_kind_passes() {
    let z = twin_z(Mutant::CompleteRowsOnly);
    assert!(z <= ACCEPT, "z = {z:.1}");
}

#[test]
fn impossible_numbers_give_no_draw() {
    let mut random = rng(3);
    let identity = vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let mut infinite = [f64::INFINITY, 0.0, 0.0];
    assert_eq!(draw_covariance(DOF, &psi(), &mut infinite, &identity, &mut random), None);
    let singular = vec![1.0; N * N];
    let mut partial = [0.3, f64::NAN, f64::NAN];
    assert_eq!(draw_covariance(DOF, &psi(), &mut partial, &singular, &mut random), None);
    assert!(draw_covariance(DOF, &psi(), &mut [f64::NAN; 6], &singular, &mut random).is_some());
}
