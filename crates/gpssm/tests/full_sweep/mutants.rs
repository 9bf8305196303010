//! The twin reproduces the library, and its planted bugs are seen.

use gpssm::Problem;

use crate::cases::{self, Case};
use crate::paired::Replicate;
use crate::twin::{Mutant, Twin};
use crate::{DETECT, SWEEPS, exact_start, paired_test, production};

/// The same random numbers give the same theta and the same path, up to rounding. Signs, which a twin of its own enumerates, are left
/// out.
#[test]
fn the_twin_reproduces_the_library() {
    for case in cases::all().into_iter().filter(|case| case.blank().model().symmetries.is_empty()) {
        let blank = case.blank();
        for seed in 0..40 {
            let start = exact_start(&case, &blank, seed).unwrap();
            let problem = case.problem(&start.y);
            let (theta, paths) = production(&problem, &start, seed);
            let mut state = start.clone();
            let twin = Twin { case: &case, problem: &problem, mutant: None };
            (1..=SWEEPS).for_each(|sweep| twin.sweep(&mut state, 1.0, seed, sweep as u64));
            let close = |a: &f64, b: &f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs());
            let name = case.name;
            assert!(theta.iter().zip(&state.theta).all(|(a, b)| close(a, b)), "{name}, seed {seed}: theta");
            let both = paths.concat().into_iter().zip(state.paths.concat());
            assert!(both.into_iter().all(|(a, b)| close(&a, &b)), "{name}, seed {seed}: paths");
        }
    }
}

fn z_of(case: &Case, mutant: Option<Mutant>, n_replicates: u64) -> (String, f64) {
    let update = |problem: &Problem, start: &Replicate, seed: u64| {
        let twin = Twin { case, problem, mutant };
        let mut state = start.clone();
        (1..=SWEEPS).for_each(|sweep| twin.sweep(&mut state, 1.0, seed, sweep as u64));
        (state.theta, state.paths)
    };
    paired_test(case, n_replicates, 3, &update).worst()
}

fn assert_seen(case: &Case, mutant: Mutant, n_replicates: u64) {
    let (name, z) = z_of(case, Some(mutant), n_replicates);
    println!("{mutant:?} in {}: {name} has z = {z:.1} after {n_replicates} replicates", case.name);
    assert!(z.abs() > DETECT, "{mutant:?} in {} was not seen: {name} has z = {z:.1}", case.name);
}

// Figures: the largest |z| found. DETECT is below all of them, so that another seed still sees the bug.

/// |z| = 9.0, log p(x | theta).
#[test]
fn a_stale_factor_is_seen() {
    assert_seen(&cases::squared_exponential(), Mutant::StaleFactor, 4_000);
}

/// |z| = 9.9, the length-scale.
#[test]
fn a_missing_jacobian_is_seen() {
    assert_seen(&cases::squared_exponential(), Mutant::NoJacobian, 1_000);
}

/// |z| = 20 for a variance, 13 for a matrix.
#[test]
fn counting_missing_outputs_is_seen() {
    assert_seen(&cases::inverse_gamma_sensor(), Mutant::CountsMissing, 4_000);
    assert_seen(&cases::full_r(), Mutant::CountsMissing, 4_000);
}

/// |z| = 27, the process noise.
#[test]
fn a_prior_of_the_wrong_quantity_is_seen() {
    assert_seen(&cases::squared_exponential(), Mutant::SdPrior, 1_000);
}

/// |z| = 34, log p(x | theta).
#[test]
fn stale_residuals_are_seen() {
    assert_seen(&cases::linear_mean(), Mutant::StaleResiduals, 2_000);
}

/// |z| = 28, log p(y | x, theta).
#[test]
fn a_forgotten_sensor_is_seen() {
    assert_seen(&cases::shared_parameter(), Mutant::SensorForgotten, 2_000);
}

/// |z| = 39, the sensor noise.
#[test]
fn a_forgotten_volume_is_seen() {
    assert_seen(&cases::lagged(), Mutant::NoVolume, 1_000);
}
