//! Noise levels together with the path: the move leaves the joint distribution invariant for any anchor that does not depend
//! on the state, a dense twin reproduces it, and planted bugs of the twin are seen.

use gpssm::Problem;
use gpssm::mcmc::moves::{Move, PathAndNoise};
use gpssm::mcmc::{Anchor, Chain, SliceLimits, SweepInfo, slice_update};
use gpssm::random::{Purpose, stream};
use gpssm::smc::FilterOptions;
use gpssm_dev::dense::cholesky;

use crate::cases::{self, Case};
use crate::paired::Replicate;
use crate::twin::{Mutant, Twin};
use crate::{ACCEPT, DETECT, State, chain_state, exact_start, paired_test};

const UPDATES: u64 = 2;

/// A path that knows nothing of the replicate's.
fn center(case: &Case, seed: u64) -> Replicate {
    exact_start(case, &case.blank(), seed ^ 0x5eed_0000_0000_0000).unwrap()
}

fn library(case: &Case, problem: &Problem, start: &Replicate, seed: u64) -> State {
    let mut state = chain_state(problem, start, 1.0);
    let other = center(case, seed);
    state.anchor = Some(Anchor::new(problem, &other.theta, &other.paths, &other.paths).unwrap());
    let mut chain = Chain::new(problem, FilterOptions::new(2), seed, 0, state);
    let mut info = SweepInfo::default();
    for _ in 0..UPDATES {
        chain.state.sweep += 1;
        chain.make(&PathAndNoise, &mut info);
    }
    assert_eq!((info.slice_failures, info.density_failures), (0, 0));
    (chain.state.theta, chain.state.paths)
}

fn check(n_replicates: u64) {
    for case in cases::all().into_iter().filter(|case| PathAndNoise.applies(&case.blank())) {
        let update = |problem: &Problem, start: &Replicate, seed: u64| library(&case, problem, start, seed);
        let (name, z) = paired_test(&case, n_replicates, 11, &update).worst();
        println!("{}: {name} has z = {z:.2}", case.name);
        assert!(z.abs() <= ACCEPT, "{}: {name} has z = {z:.2}", case.name);
    }
}

#[test]
fn noise_and_path_together_leave_the_joint_distribution_invariant() {
    check(4_000);
}

#[test]
#[ignore = "minutes; cargo test --release --test full_sweep -- --ignored"]
fn noise_and_path_together_leave_the_joint_distribution_invariant_long() {
    check(60_000);
}

/// s' = a x + c by least squares along a path, with the library's ridge.
fn line(path: &[f64]) -> (f64, f64) {
    let n = (path.len() - 1) as f64;
    let (mut xx, mut x1, mut xy, mut y1) = (0.0, 0.0, 0.0, 0.0);
    for pair in path.windows(2) {
        xx += pair[0] * pair[0];
        x1 += pair[0];
        xy += pair[0] * pair[1];
        y1 += pair[1];
    }
    let ridge = 1e-6;
    let (xx, n) = (xx * (1.0 + ridge) + ridge, n * (1.0 + ridge) + ridge);
    let determinant = xx * n - x1 * x1;
    ((xy * n - x1 * y1) / determinant, (xx * y1 - x1 * xy) / determinant)
}

/// Mean and dense lower factor of the precision of a line seen with noise, x_0 ~ N(0, 1); held states stay.
fn approximation(
    (a, c): (f64, f64),
    q: f64,
    r: f64,
    y: &[Vec<f64>],
    x: &[f64],
    held: &[bool],
) -> (Vec<f64>, Vec<f64>) {
    let n = y.len();
    let (mut lambda, mut b) = (vec![0.0; n * n], vec![0.0; n]);
    lambda[0] = 1.0;
    for t in 0..n {
        if !y[t][0].is_nan() {
            lambda[t * n + t] += 1.0 / (r * r);
            b[t] += y[t][0] / (r * r);
        }
        if t + 1 < n {
            let w = 1.0 / (q * q);
            lambda[(t + 1) * n + t + 1] += w;
            lambda[t * n + t] += a * a * w;
            lambda[(t + 1) * n + t] -= a * w;
            lambda[t * n + t + 1] -= a * w;
            b[t + 1] += c * w;
            b[t] -= a * c * w;
        }
    }
    for i in (0..n).filter(|&i| held[i]) {
        for j in (0..n).filter(|&j| j != i) {
            b[j] -= lambda[j * n + i] * x[i];
            (lambda[i * n + j], lambda[j * n + i]) = (0.0, 0.0);
        }
        (lambda[i * n + i], b[i]) = (1.0, x[i]);
    }
    let l = cholesky(&lambda, n);
    for i in 0..n {
        b[i] = (b[i] - (0..i).map(|j| l[i * n + j] * b[j]).sum::<f64>()) / l[i * n + i];
    }
    (solve_transposed(&l, b), l)
}

fn solve_transposed(l: &[f64], mut x: Vec<f64>) -> Vec<f64> {
    let n = x.len();
    for i in (0..n).rev() {
        x[i] = (x[i] - (i + 1..n).map(|j| l[j * n + i] * x[j]).sum::<f64>()) / l[i * n + i];
    }
    x
}

/// The update of one state that is seen with noise, by dense matrices.
fn twin_update(twin: &Twin, center: &Replicate, state: &mut Replicate, seed: u64, sweep: u64) {
    let mut rng = stream(seed, 0, Purpose::PathAndNoise, sweep, 0);
    let table = twin.problem.table();
    for name in ["process_sd[x1]", "sensor_sd[y1]"] {
        let k = table.index(name).unwrap();
        let (theta, x, y) = (state.theta.clone(), state.paths[0].clone(), state.y[0].clone());
        let fit = line(if twin.is(Mutant::AnchorFollows) { &x } else { &center.paths[0] });
        let held: Vec<bool> = x.iter().map(|x| twin.is(Mutant::HeldByState) && *x > 0.5).collect();
        let frame = |theta: &[f64]| {
            let of = |name: &str| theta[table.index(name).unwrap()];
            approximation(fit, of("process_sd[x1]"), of("sensor_sd[y1]"), &y, &x, &held)
        };
        let (mean, l) = frame(&theta);
        let n = x.len();
        let z: Vec<f64> = (0..n).map(|i| (i..n).map(|j| l[j * n + i] * (x[j] - mean[j])).sum()).collect();
        let start = state.clone();
        let at = |coordinate: f64| {
            let mut moved = start.clone();
            moved.theta[k] = coordinate.exp();
            let (mut new_mean, new_l) = frame(&moved.theta);
            if twin.is(Mutant::StaleFrame) {
                new_mean.clone_from(&mean);
                new_mean[0] += 0.3 * (x[1] - mean[1]);
            }
            let shift = solve_transposed(&new_l, z.clone());
            moved.paths[0] = new_mean.iter().zip(shift).map(|(mean, shift)| mean + shift).collect();
            let volume: f64 = (0..n).map(|i| -new_l[i * n + i].ln()).sum();
            (moved, volume)
        };
        let mut density = |coordinate: f64| {
            let (moved, volume) = at(coordinate);
            let volume = if twin.is(Mutant::NoVolume) { 0.0 } else { volume };
            twin.log_joint(&moved.theta, &theta, &moved) - 0.5 * moved.paths[0][0].powi(2) + volume
        };
        let x0 = theta[k].ln();
        let current = density(x0);
        let outcome = slice_update(x0, current, 0.5, SliceLimits::default(), &mut density, &mut rng);
        if outcome.x != x0 {
            *state = at(outcome.x).0;
        }
    }
}

fn twin_state(case: &Case, problem: &Problem, start: &Replicate, seed: u64, mutant: Option<Mutant>) -> State {
    let twin = Twin { case, problem, mutant };
    let (mut state, center) = (start.clone(), center(case, seed));
    (1..=UPDATES).for_each(|sweep| twin_update(&twin, &center, &mut state, seed, sweep));
    (state.theta, state.paths)
}

#[test]
fn a_dense_twin_reproduces_the_move() {
    for case in [cases::squared_exponential(), cases::inverse_gamma_sensor()] {
        for seed in 0..40 {
            let start = exact_start(&case, &case.blank(), seed).unwrap();
            let problem = case.problem(&start.y);
            let ours = library(&case, &problem, &start, seed);
            let dense = twin_state(&case, &problem, &start, seed, None);
            let pairs = ours.0.iter().zip(&dense.0).chain(ours.1[0].iter().zip(&dense.1[0]));
            for (a, b) in pairs {
                assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{}, seed {seed}: {a} and {b}", case.name);
            }
        }
    }
}

fn assert_seen(mutant: Mutant, n_replicates: u64) {
    let case = cases::squared_exponential();
    let update = |problem: &Problem, start: &Replicate, seed: u64| {
        twin_state(&case, problem, start, seed, Some(mutant))
    };
    let (name, z) = paired_test(&case, n_replicates, 3, &update).worst();
    println!("{mutant:?}: {name} has z = {z:.1} after {n_replicates} replicates");
    assert!(z.abs() > DETECT, "{mutant:?} was not seen: {name} has z = {z:.1}");
}

#[test]
fn a_forgotten_volume_of_the_path_is_seen() {
    assert_seen(Mutant::NoVolume, 1_000);
}

#[test]
fn an_anchor_that_follows_the_state_is_seen() {
    assert_seen(Mutant::AnchorFollows, 8_000);
}

#[test]
fn a_held_set_that_is_chosen_by_the_state_is_seen() {
    assert_seen(Mutant::HeldByState, 8_000);
}

#[test]
fn a_mean_that_knows_the_old_state_is_seen() {
    assert_seen(Mutant::StaleFrame, 4_000);
}
