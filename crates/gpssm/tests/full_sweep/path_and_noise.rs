//! Noise levels together with the path: the move leaves the joint distribution invariant for any anchor that does not depend
//! on the state, a dense twin reproduces it, and planted bugs of the twin are seen.

use gpssm::Problem;
use gpssm::mcmc::moves::{Move, PathAndNoise};
use gpssm::mcmc::{Anchor, Chain, SliceLimits, SweepInfo, slice_update};
use gpssm::random::{Purpose, stream};
use gpssm::smc::FilterOptions;
use gpssm_dev::dense::cholesky;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand_distr::StandardNormal;
use std::f64::consts::PI;

use crate::cases::{self, Case};
use crate::dense::Numbers;
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

/// Coefficients of the linear part of f, of one state.
fn n_coefficients(problem: &Problem) -> usize {
    problem.table().parameters.iter().filter(|parameter| parameter.name.starts_with("linear_sigma")).count()
}

fn axes(problem: &Problem) -> Vec<f64> {
    let learned = (0..problem.table().len()).filter(|&k| !problem.table().is_fixed(k)).count();
    let n = learned + n_coefficients(problem);
    (0..n * n).map(|k| axis_entry(k / n, k % n)).collect()
}

/// A path that knows nothing of the replicate's.
fn center(case: &Case, seed: u64) -> Replicate {
    exact_start(case, &case.blank(), seed ^ 0x5eed_0000_0000_0000).unwrap()
}

fn anchor(problem: &Problem, center: &Replicate) -> Anchor {
    Anchor::new(problem, &center.theta, &center.paths, &center.paths).unwrap()
}

/// Inducing inputs of an anchor, of one state without inputs.
fn inducing(anchor: &Anchor) -> Vec<f64> {
    let fields = serde_json::to_value(anchor).unwrap();
    fields["inducing"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn library(case: &Case, problem: &Problem, start: &Replicate, seed: u64) -> State {
    let mut state = chain_state(problem, start, 1.0);
    state.anchor = Some(anchor(problem, &center(case, seed)));
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
    check(1_500);
}

#[test]
#[ignore = "minutes; cargo test --release --test full_sweep -- --ignored"]
fn noise_and_path_together_leave_the_joint_distribution_invariant_long() {
    check(20_000);
}

/// Root mean square distance of a path from its mean.
fn size(path: &[f64]) -> f64 {
    let n = path.len() as f64;
    let mean = path.iter().sum::<f64>() / n;
    (path.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// Lower factor; with the library's jitter, relative to the diagonal, where it takes some.
fn factor(matrix: &[f64], n: usize) -> Vec<f64> {
    let mut jitter = 0.0f64;
    loop {
        let mut jittered = matrix.to_vec();
        (0..n).for_each(|i| jittered[i * n + i] *= 1.0 + jitter);
        let mut l = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let sum: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
                let rest = jittered[i * n + j] - sum;
                l[i * n + j] = if i == j { rest.sqrt() } else { rest / l[j * n + j] };
            }
        }
        if l.iter().all(|value| value.is_finite()) {
            return l;
        }
        jitter = (100.0 * jitter).max(1e-10);
    }
}

/// FIC on some inducing inputs, one state, mean function x. The first feature is that of the linear part, if there is one.
struct Fic<'a> {
    numbers: &'a Numbers,
    inducing: &'a [f64],
    l: Vec<f64>,
}

impl<'a> Fic<'a> {
    fn new(numbers: &'a Numbers, inducing: &'a [f64]) -> Self {
        let n = inducing.len();
        let k: Vec<f64> = (0..n * n).map(|i| kernel(numbers, inducing[i / n], inducing[i % n])).collect();
        Self { numbers, inducing, l: factor(&k, n) }
    }

    fn smooth(&self, x: f64) -> Vec<f64> {
        let mut phi: Vec<f64> = self.inducing.iter().map(|u| kernel(self.numbers, *u, x)).collect();
        solve(&self.l, &mut phi);
        phi
    }

    fn linear(&self) -> Option<f64> {
        self.numbers.kernel[0].as_ref().unwrap().linear
    }

    fn phi(&self, x: f64) -> Vec<f64> {
        self.linear().map(|sigma| sigma * x).into_iter().chain(self.smooth(x)).collect()
    }

    /// Variance of the next state given w.
    fn noise(&self, x: f64) -> f64 {
        let phi = self.smooth(x);
        self.numbers.q[0] + (kernel(self.numbers, x, x) - dot(&phi, &phi)).max(0.0)
    }

    fn mean(&self, w: &[f64], x: f64) -> f64 {
        x + dot(&self.phi(x), w)
    }

    /// Factor of the precision of w given a path, and L^{-1} b.
    fn posterior(&self, path: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let m = self.phi(0.0).len();
        let mut gram: Vec<f64> = (0..m * m).map(|i| f64::from(u8::from(i / m == i % m))).collect();
        let mut b = vec![0.0; m];
        for step in path.windows(2) {
            let (phi, noise) = (self.phi(step[0]), self.noise(step[0]));
            (0..m * m).for_each(|i| gram[i] += phi[i / m] * phi[i % m] / noise);
            (0..m).for_each(|i| b[i] += phi[i] * (step[1] - step[0]) / noise);
        }
        let l = factor(&gram, m);
        solve(&l, &mut b);
        (l, b)
    }

    fn draw(&self, path: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
        let (l, mut w) = self.posterior(path);
        w.iter_mut().for_each(|w| *w += rng.sample::<f64, _>(StandardNormal));
        solve_transposed(&l, w)
    }

    /// log g(w | x, theta).
    fn log_density(&self, path: &[f64], w: &[f64]) -> f64 {
        let (l, b) = self.posterior(path);
        let m = w.len();
        let white = |j: usize| (j..m).map(|i| l[i * m + j] * w[i]).sum::<f64>() - b[j];
        (0..m).map(|j| l[j * m + j].ln() - 0.5 * white(j).powi(2)).sum()
    }
}

fn kernel(numbers: &Numbers, a: f64, b: f64) -> f64 {
    numbers.kernel[0].as_ref().unwrap().smooth(&[a], &[b])
}

/// x = mean + L^{-T} z, by dense matrices.
struct Coordinates {
    mean: Vec<f64>,
    /// L, lower.
    l: Vec<f64>,
}

impl Coordinates {
    /// Of x' = f(x) + v given w, seen with noise, x_0 ~ N(0, 1), expanded around `center` and then around the mean; held states stay.
    fn new(fic: &Fic, w: &[f64], center: &[f64], r: f64, y: &[Vec<f64>], x: &[f64], held: &[bool]) -> Self {
        let size = size(center);
        let mut around = center.to_vec();
        for expansion in 1.. {
            let coordinates = Self::expanded(fic, w, &around, 1e-3 * size, r, y, x, held);
            let next = coordinates.mean.iter().zip(center);
            let next: Vec<f64> = next.map(|(m, c)| m.clamp(c - 10.0 * size, c + 10.0 * size)).collect();
            let furthest = next.iter().zip(&around).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            if expansion == 4 || furthest < 0.01 * size {
                return coordinates;
            }
            around = next;
        }
        unreachable!("the fourth expansion is the last")
    }

    #[allow(clippy::too_many_arguments)]
    fn expanded(
        fic: &Fic,
        w: &[f64],
        around: &[f64],
        step: f64,
        r: f64,
        y: &[Vec<f64>],
        x: &[f64],
        held: &[bool],
    ) -> Self {
        let n = y.len();
        let (mut lambda, mut b) = (vec![0.0; n * n], vec![0.0; n]);
        lambda[0] = 1.0;
        for t in 0..n {
            if !y[t][0].is_nan() {
                lambda[t * n + t] += 1.0 / (r * r);
                b[t] += y[t][0] / (r * r);
            }
            if t + 1 == n {
                continue;
            }
            let at = around[t];
            let slope = (fic.mean(w, at + step) - fic.mean(w, at - step)) / (2.0 * step);
            let (offset, noise) = (fic.mean(w, at) - slope * at, fic.noise(at));
            for (i, a) in [(t, -slope), (t + 1, 1.0)] {
                b[i] += a * offset / noise;
                for (j, c) in [(t, -slope), (t + 1, 1.0)] {
                    lambda[i * n + j] += a * c / noise;
                }
            }
        }
        for i in (0..n).filter(|&i| held[i]) {
            for j in 0..n {
                if j != i {
                    b[j] -= lambda[j * n + i] * x[i];
                }
                let unit = f64::from(u8::from(i == j));
                (lambda[i * n + j], lambda[j * n + i]) = (unit, unit);
            }
            b[i] = x[i];
        }
        let l = cholesky(&lambda, n);
        solve(&l, &mut b);
        Self { mean: solve_transposed(&l, b), l }
    }

    fn place(&self, z: &[f64]) -> Vec<f64> {
        solve_transposed(&self.l, z.to_vec()).iter().zip(&self.mean).map(|(x, mean)| x + mean).collect()
    }

    fn whiten(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        (0..n).map(|j| (j..n).map(|i| self.l[i * n + j] * (x[i] - self.mean[i])).sum()).collect()
    }

    fn log_volume(&self) -> f64 {
        let n = self.mean.len();
        -(0..n).map(|i| self.l[i * n + i].ln()).sum::<f64>()
    }
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

/// Where the twin is while w is given.
#[derive(Clone)]
struct Given<'a> {
    twin: &'a Twin<'a>,
    inducing: &'a [f64],
    w: Vec<f64>,
}

impl Given<'_> {
    /// Amplitude of the linear part.
    fn sigma(&self, theta: &[f64]) -> Option<f64> {
        self.twin.numbers(theta).kernel[0].as_ref().unwrap().linear
    }

    /// The same f under another theta, its slope moved by a step.
    fn moved(&self, from: &[f64], to: &[f64], step: f64) -> Self {
        let mut moved = self.clone();
        if let (Some(from), Some(to)) = (self.sigma(from), self.sigma(to)) {
            moved.w[0] = (self.w[0] * from + step) / to;
        }
        moved
    }

    fn coordinates(&self, theta: &[f64], center: &[f64], y: &[Vec<f64>], x: &[f64]) -> Coordinates {
        let numbers = self.twin.numbers(theta);
        let r = theta[self.twin.problem.table().index("sensor_sd[y]").unwrap()];
        let (fic, held) = (Fic::new(&numbers, self.inducing), self.held(x));
        if self.twin.is(Mutant::AnchorFollows) {
            return Coordinates::expanded(&fic, &self.w, x, 1e-3 * size(center), r, y, x, &held);
        }
        Coordinates::new(&fic, &self.w, center, r, y, x, &held)
    }

    fn held(&self, x: &[f64]) -> Vec<bool> {
        x.iter().map(|x| self.twin.is(Mutant::HeldByState) && *x > 0.0).collect()
    }

    /// log p(theta, x, y) g(w | x, theta), for the coordinate of theta.
    fn log_density(&self, state: &Replicate, before: &[f64]) -> f64 {
        let numbers = self.twin.numbers(&state.theta);
        let of_w = match self.twin.is(Mutant::FunctionForgotten) {
            true => 0.0,
            false => Fic::new(&numbers, self.inducing).log_density(&state.paths[0], &self.w),
        };
        let of_slope = match self.sigma(&state.theta) {
            Some(sigma) if !self.twin.is(Mutant::AmplitudeForgotten) => -sigma.ln(),
            _ => 0.0,
        };
        self.twin.log_joint(&state.theta, before, state) - 0.5 * state.paths[0][0].powi(2) + of_w + of_slope
    }
}

/// The update of one state that is seen with noise, by dense matrices.
fn twin_update(
    twin: &Twin,
    center: &Replicate,
    inducing: &[f64],
    state: &mut Replicate,
    seed: u64,
    sweep: u64,
) {
    let mut rng = stream(seed, 0, Purpose::PathAndNoise, sweep, 0);
    let table = twin.problem.table();
    let learned: Vec<usize> = (0..table.len()).filter(|&k| !table.is_fixed(k)).collect();
    let name = |j: usize| learned.get(j).map_or("slope", |&k| &table.parameters[k].name);
    let is_noise = |j: &usize| ["process_sd[x]", "sensor_sd[y]"].contains(&name(*j));
    let n = learned.len() + n_coefficients(twin.problem);
    let (noise, others): (Vec<usize>, Vec<usize>) = (0..n).partition(is_noise);
    let turn = others[sweep as usize % others.len()];
    let center = &center.paths[0];
    for j in std::iter::once(turn).chain(noise) {
        let (theta, x, y) = (state.theta.clone(), state.paths[0].clone(), state.y[0].clone());
        let w = Fic::new(&twin.numbers(&theta), inducing).draw(&x, &mut rng);
        let given = Given { twin, inducing, w };
        let now = given.coordinates(&theta, center, &y, &x);
        let z = now.whiten(&x);
        let start = state.clone();
        let at = |along: f64| {
            let mut moved = start.clone();
            for i in j..learned.len() {
                moved.theta[learned[i]] *= (along * axis_entry(i, j)).exp();
            }
            let given = given.moved(&theta, &moved.theta, along * axis_entry(learned.len(), j));
            let mut new = given.coordinates(&moved.theta, center, &y, &x);
            if twin.is(Mutant::StaleFrame) {
                new.mean.clone_from(&now.mean);
                new.mean[0] += 0.3 * (x[1] - now.mean[1]);
            }
            moved.paths[0] = new.place(&z);
            (moved, new, given)
        };
        let mut density = |along: f64| {
            let (moved, new, given) = at(along);
            let volume = if twin.is(Mutant::NoVolume) { 0.0 } else { new.log_volume() };
            given.log_density(&moved, &theta) + volume
        };
        let current = density(0.0);
        let outcome = slice_update(0.0, current, 3.0, SliceLimits::default(), &mut density, &mut rng);
        let (coordinates, given) = if outcome.x == 0.0 {
            (now, given.clone())
        } else {
            let (moved, new, given) = at(outcome.x);
            *state = moved;
            (new, given)
        };
        turn_path(&given, &coordinates, state, &z, &mut rng);
    }
}

/// Elliptical slice sampling of z.
fn turn_path(
    given: &Given,
    coordinates: &Coordinates,
    state: &mut Replicate,
    z: &[f64],
    rng: &mut ChaCha8Rng,
) {
    let held = given.held(&state.paths[0]);
    let excess = |state: &Replicate, z: &[f64]| given.log_density(state, &state.theta) + 0.5 * dot(z, z);
    let level = excess(state, z) + (1.0 - rng.random::<f64>()).ln();
    let other: Vec<f64> = held
        .iter()
        .map(|held| (rng.sample(StandardNormal), held))
        .map(|(normal, held): (f64, _)| if *held { 0.0 } else { normal })
        .collect();
    let mut angle = rng.random::<f64>() * 2.0 * PI;
    let (mut low, mut high) = (angle - 2.0 * PI, angle);
    loop {
        let turned: Vec<f64> = z.iter().zip(&other).map(|(a, b)| angle.cos() * a + angle.sin() * b).collect();
        let mut moved = state.clone();
        moved.paths[0] = coordinates.place(&turned);
        if excess(&moved, &turned) >= level || given.twin.is(Mutant::EveryAngle) {
            *state = moved;
            return;
        }
        if angle < 0.0 {
            low = angle
        } else {
            high = angle
        }
        angle = low + (high - low) * rng.random::<f64>();
    }
}

fn twin_state(case: &Case, problem: &Problem, start: &Replicate, seed: u64, mutant: Option<Mutant>) -> State {
    let twin = Twin { case, problem, mutant };
    let (mut state, center) = (start.clone(), center(case, seed));
    let inducing = inducing(&anchor(problem, &center));
    (1..=UPDATES).for_each(|sweep| twin_update(&twin, &center, &inducing, &mut state, seed, sweep));
    (state.theta, state.paths)
}

#[test]
fn a_dense_twin_reproduces_the_move() {
    // In the second the inducing inputs lie close together for their length-scale, and K_UU loses digits.
    let cases = [
        (cases::squared_exponential(), 1e-8),
        (cases::inverse_gamma_sensor(), 1e-4),
        (cases::with_linear_part(), 1e-6),
    ];
    for (case, tolerance) in cases {
        for seed in 0..40 {
            let start = exact_start(&case, &case.blank(), seed).unwrap();
            let problem = case.problem(&start.y);
            let ours = library(&case, &problem, &start, seed);
            let dense = twin_state(&case, &problem, &start, seed, None);
            let pairs = ours.0.iter().zip(&dense.0).chain(ours.1[0].iter().zip(&dense.1[0]));
            for (a, b) in pairs {
                assert!(
                    (a - b).abs() <= tolerance * (1.0 + a.abs()),
                    "{}, seed {seed}: {a} and {b}",
                    case.name
                );
            }
        }
    }
}

fn assert_seen(mutant: Mutant, n_replicates: u64) {
    assert_seen_in(&cases::squared_exponential(), mutant, n_replicates);
}

fn assert_seen_in(case: &Case, mutant: Mutant, n_replicates: u64) {
    let update = |problem: &Problem, start: &Replicate, seed: u64| {
        twin_state(case, problem, start, seed, Some(mutant))
    };
    let (name, z) = paired_test(case, n_replicates, 3, &update).worst();
    println!("{mutant:?}: {name} has z = {z:.1} after {n_replicates} replicates");
    assert!(z.abs() > DETECT, "{mutant:?} was not seen: {name} has z = {z:.1}");
}

#[test]
fn a_forgotten_volume_of_the_path_is_seen() {
    assert_seen(Mutant::NoVolume, 1_000);
}

#[test]
fn an_anchor_that_follows_the_state_is_seen() {
    assert_seen(Mutant::AnchorFollows, 40_000);
}

#[test]
fn a_held_set_that_is_chosen_by_the_state_is_seen() {
    assert_seen(Mutant::HeldByState, 2_000);
}

#[test]
fn a_mean_that_knows_the_old_state_is_seen() {
    assert_seen(Mutant::StaleFrame, 4_000);
}

#[test]
fn a_forgotten_density_of_the_drawn_function_is_seen() {
    assert_seen(Mutant::FunctionForgotten, 4_000);
}

#[test]
fn a_path_that_turns_by_any_angle_is_seen() {
    assert_seen(Mutant::EveryAngle, 4_000);
}

#[test]
fn a_forgotten_amplitude_of_the_slope_is_seen() {
    assert_seen_in(&cases::with_linear_part(), Mutant::AmplitudeForgotten, 4_000);
}
