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

/// Axes of theta that are not those of the coordinates.
fn axis_entry(i: usize, j: usize) -> f64 {
    match (i, j) {
        (i, j) if i == j => 0.2,
        (i, j) if i > j => 0.1 / (1 + i - j) as f64,
        _ => 0.0,
    }
}

fn axes(problem: &Problem) -> Vec<f64> {
    let n = (0..problem.table().len()).filter(|&k| !problem.table().is_fixed(k)).count();
    (0..n * n).map(|k| axis_entry(k / n, k % n)).collect()
}

/// A path that knows nothing of the replicate's.
fn center(case: &Case, seed: u64) -> Replicate {
    exact_start(case, &case.blank(), seed ^ 0x5eed_0000_0000_0000).unwrap()
}

fn library(case: &Case, problem: &Problem, start: &Replicate, seed: u64) -> State {
    let mut state = chain_state(problem, start, 1.0);
    let other = center(case, seed);
    state.anchor = Some(Anchor::new(problem, &other.theta, &other.paths, &other.paths).unwrap());
    state.axes = axes(problem);
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

/// Mean of a path, and root mean square distance from it.
fn location_and_size(path: &[f64]) -> (f64, f64) {
    let n = path.len() as f64;
    let mean = path.iter().sum::<f64>() / n;
    (mean, (path.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// x = mean + S z with S = L^{-T} (I + O (J - I) O'), by dense matrices.
struct Coordinates {
    mean: Vec<f64>,
    /// L, lower.
    l: Vec<f64>,
    /// O, (state, weight).
    o: Vec<f64>,
    /// T, lower; J = T^{-T}.
    t: Vec<f64>,
}

/// Weights of the approximation: offset and slope.
const M: usize = 2;

impl Coordinates {
    /// Of x' = x + a + b (x̄ - mean) / size + v, seen with noise, x_0 ~ N(0, 1); a and b are of the state's size; held states stay.
    fn new(center: &[f64], q: f64, r: f64, y: &[Vec<f64>], x: &[f64], held: &[bool]) -> Self {
        let n = y.len();
        let (location, size) = location_and_size(center);
        let phi = |t: usize| [size / q, (center[t] - location) / q];
        let difference = |t: usize, i: usize| f64::from(i8::from(i == t + 1) - i8::from(i == t)) / q;
        let (mut lambda, mut b, mut u) = (vec![0.0; n * n], vec![0.0; n], vec![0.0; n * M]);
        let mut weights = vec![1.0, 0.0, 0.0, 1.0];
        lambda[0] = 1.0;
        for t in 0..n {
            if !y[t][0].is_nan() {
                lambda[t * n + t] += 1.0 / (r * r);
                b[t] += y[t][0] / (r * r);
            }
            if t + 1 == n {
                continue;
            }
            for i in 0..n {
                (0..n).for_each(|j| lambda[i * n + j] += difference(t, i) * difference(t, j));
                (0..M).for_each(|k| u[i * M + k] += difference(t, i) * phi(t)[k]);
            }
            (0..M).for_each(|i| (0..M).for_each(|j| weights[i * M + j] += phi(t)[i] * phi(t)[j]));
        }
        let of_weights = cholesky(&weights, M);
        u.chunks_exact_mut(M).for_each(|row| solve(&of_weights, row));
        for i in (0..n).filter(|&i| held[i]) {
            for j in (0..n).filter(|&j| j != i) {
                let joint = lambda[j * n + i] - (0..M).map(|k| u[j * M + k] * u[i * M + k]).sum::<f64>();
                b[j] -= joint * x[i];
            }
        }
        for i in (0..n).filter(|&i| held[i]) {
            for j in 0..n {
                let unit = f64::from(u8::from(i == j));
                (lambda[i * n + j], lambda[j * n + i]) = (unit, unit);
            }
            b[i] = x[i];
            u[i * M..(i + 1) * M].fill(0.0);
        }
        let l = cholesky(&lambda, n);
        let mut o = u;
        for k in 0..M {
            let mut column: Vec<f64> = (0..n).map(|i| o[i * M + k]).collect();
            solve(&l, &mut column);
            (0..n).for_each(|i| o[i * M + k] = column[i]);
        }
        let gram = |i: usize, j: usize| (0..n).map(|t| o[t * M + i] * o[t * M + j]).sum::<f64>();
        let gram: Vec<f64> = (0..M * M).map(|k| gram(k / M, k % M)).collect();
        let root = cholesky(&gram, M);
        let rest = |i: usize, j: usize| {
            f64::from(u8::from(i == j)) - (0..M).map(|k| root[k * M + i] * root[k * M + j]).sum::<f64>()
        };
        let rest: Vec<f64> = (0..M * M).map(|k| rest(k / M, k % M)).collect();
        o.chunks_exact_mut(M).for_each(|row| solve(&root, row));
        let mut coordinates = Self { mean: vec![0.0; n], l, o, t: cholesky(&rest, M) };
        // mean = S S' b: S' b, column by column of S.
        let columns: Vec<Vec<f64>> = (0..n).map(|i| coordinates.place(&unit(n, i))).collect();
        let projections: Vec<f64> = columns.iter().map(|column| dot(column, &b)).collect();
        coordinates.mean = coordinates.place(&projections);
        coordinates
    }

    fn place(&self, z: &[f64]) -> Vec<f64> {
        let along: Vec<f64> = (0..M).map(|k| (0..z.len()).map(|i| self.o[i * M + k] * z[i]).sum()).collect();
        let stretched = solve_transposed(&self.t, along.clone());
        let more = |i: usize| (0..M).map(|k| self.o[i * M + k] * (stretched[k] - along[k])).sum::<f64>();
        let z = (0..z.len()).map(|i| z[i] + more(i)).collect();
        solve_transposed(&self.l, z).iter().zip(&self.mean).map(|(x, mean)| x + mean).collect()
    }

    /// By elimination on S z = x - mean.
    fn whiten(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        let shift: Vec<f64> = x.iter().zip(&self.mean).map(|(x, mean)| x - mean).collect();
        let columns: Vec<Vec<f64>> = (0..n)
            .map(|i| self.place(&unit(n, i)).iter().zip(&self.mean).map(|(x, mean)| x - mean).collect())
            .collect();
        let (mut rows, mut z) =
            ((0..n).map(|i| columns.iter().map(|c| c[i]).collect()).collect::<Vec<Vec<f64>>>(), shift);
        for i in 0..n {
            let pivot = (i..n).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs())).unwrap();
            rows.swap(i, pivot);
            z.swap(i, pivot);
            for j in (0..n).filter(|&j| j != i) {
                let factor = rows[j][i] / rows[i][i];
                let pivot_row = rows[i].clone();
                rows[j].iter_mut().zip(&pivot_row).for_each(|(a, b)| *a -= factor * b);
                z[j] -= factor * z[i];
            }
        }
        (0..n).map(|i| z[i] / rows[i][i]).collect()
    }

    fn log_volume(&self) -> f64 {
        let diagonal = |l: &[f64], n: usize| (0..n).map(|i| l[i * n + i].ln()).sum::<f64>();
        -diagonal(&self.l, self.mean.len()) - diagonal(&self.t, M)
    }
}

fn unit(n: usize, i: usize) -> Vec<f64> {
    (0..n).map(|j| f64::from(u8::from(i == j))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn solve(l: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        x[i] = (x[i] - (0..i).map(|j| l[i * n + j] * x[j]).sum::<f64>()) / l[i * n + i];
    }
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
    let learned: Vec<usize> = (0..table.len()).filter(|&k| !table.is_fixed(k)).collect();
    let is_noise =
        |j: &usize| ["process_sd[x]", "sensor_sd[y]"].contains(&&*table.parameters[learned[*j]].name);
    let (noise, others): (Vec<usize>, Vec<usize>) = (0..learned.len()).partition(is_noise);
    let turn = others[sweep as usize % others.len()];
    for j in std::iter::once(turn).chain(noise) {
        let (theta, x, y) = (state.theta.clone(), state.paths[0].clone(), state.y[0].clone());
        let around = if twin.is(Mutant::AnchorFollows) { &x } else { &center.paths[0] };
        let held: Vec<bool> = x.iter().map(|x| twin.is(Mutant::HeldByState) && *x > 0.0).collect();
        let coordinates = |theta: &[f64]| {
            let of = |name: &str| theta[table.index(name).unwrap()];
            Coordinates::new(around, of("process_sd[x]"), of("sensor_sd[y]"), &y, &x, &held)
        };
        let now = coordinates(&theta);
        let z = now.whiten(&x);
        let start = state.clone();
        let at = |along: f64| {
            let mut moved = start.clone();
            for i in j..learned.len() {
                moved.theta[learned[i]] *= (along * axis_entry(i, j)).exp();
            }
            let mut new = coordinates(&moved.theta);
            if twin.is(Mutant::StaleFrame) {
                new.mean.clone_from(&now.mean);
                new.mean[0] += 0.3 * (x[1] - now.mean[1]);
            }
            moved.paths[0] = new.place(&z);
            (moved, new.log_volume())
        };
        let mut density = |along: f64| {
            let (moved, volume) = at(along);
            let volume = if twin.is(Mutant::NoVolume) { 0.0 } else { volume };
            twin.log_joint(&moved.theta, &theta, &moved) - 0.5 * moved.paths[0][0].powi(2) + volume
        };
        let current = density(0.0);
        let outcome = slice_update(0.0, current, 3.0, SliceLimits::default(), &mut density, &mut rng);
        if outcome.x != 0.0 {
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
                assert!((a - b).abs() <= 1e-8 * (1.0 + a.abs()), "{}, seed {seed}: {a} and {b}", case.name);
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
    assert_seen(Mutant::HeldByState, 32_000);
}

#[test]
fn a_mean_that_knows_the_old_state_is_seen() {
    assert_seen(Mutant::StaleFrame, 4_000);
}
