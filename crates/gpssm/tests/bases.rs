//! Identities of finite bases, and runs with each of them.
//!
//! Expected values come from plain loops: dense covariances s(z, z') + delta (k - s) + Q, kernels and features as
//! written in their definitions.

#[path = "finite_basis/plain.rs"]
mod plain;

use std::sync::Arc;

use gpssm::dynamics::{Basis, BasisChoice, FourierChoice, FunctionPrior, Gaussian, ProcessNoise, Transition};
use gpssm::function::ScalarFunction;
use gpssm::kernel::{MATERN32, PERIODIC, RATIONAL_QUADRATIC, SQUARED_EXPONENTIAL, Shape};
use gpssm::mcmc::{Chain, ChainDraws, ChainState, StartSettings};
use gpssm::model::{DynamicsSpec, InducingSpec, Mode, Predictor, TransitionSpec};
use gpssm::random::{Purpose, stream};
use gpssm::smc::FilterOptions;
use gpssm::{
    Functions, Kernel, KernelSpec, MemorySink, Model, Points, Problem, RunReport, Sequence, Settings,
    prepare, sample,
};
use gpssm_dev::dense::{cholesky, dot, log_gaussian, whiten};
use gpssm_dev::normal;
use gpssm_dev::reference::kernel_value;
use plain::{Plain, covariance, log_joint, points, residuals};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

type Rows = Vec<Vec<f64>>;

const SHAPES: [Shape; 4] = [Shape::SquaredExponential, Shape::Matern52, Shape::Matern32, Shape::Matern12];

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} and {b} differ by {:e}", a - b);
}

fn transition(kernels: Vec<Kernel>, noise: ProcessNoise, choice: Option<&BasisChoice>) -> Transition {
    let n_x = kernels.len();
    Transition {
        means: (0..n_x).map(ScalarFunction::Component).collect(),
        lags: vec![None; n_x],
        prior: choice.cloned().map_or(FunctionPrior::Exact, FunctionPrior::Collapsed),
        kernels,
        noise,
    }
}

fn scalar(kernel: Kernel, choice: Option<&BasisChoice>) -> Transition {
    transition(vec![kernel], ProcessNoise::Diagonal(vec![0.1]), choice)
}

/// Two states and one input: SE and Matern-3/2 + linear + constant.
fn planar(full: bool, choice: Option<&BasisChoice>) -> Transition {
    let kernels = vec![
        Kernel::squared_exponential(1.5, &[1.0, 2.0, 1.5]),
        Kernel::Sum(vec![
            Kernel::stationary(Shape::Matern32, 1.0, &[1.5, 1.0, 2.0]),
            Kernel::linear(vec![0, 2], vec![0.3, 0.2]),
            Kernel::constant(0.4),
        ]),
    ];
    let noise = if full {
        ProcessNoise::Full(vec![0.2, 0.14, 0.14, 0.2])
    } else {
        ProcessNoise::Diagonal(vec![0.1, 0.2])
    };
    transition(kernels, noise, choice)
}

/// x_{0:10}; x_3 and x_7 are equal, and with inputs so are z_3 and z_7.
fn path(n_x: usize) -> (Rows, Rows) {
    let wave = |t: usize, d: usize| 1.6 * (0.9 * t as f64 + 1.7 * d as f64).sin() + 0.1 * t as f64;
    let mut x: Rows = (0..11).map(|t| (0..n_x).map(|d| wave(t, d)).collect()).collect();
    x[7] = x[3].clone();
    let u = (0..11).map(|t| vec![[0.5, -0.8, 1.0, 0.2][t % 4]]).collect();
    (x, if n_x == 1 { Vec::new() } else { u })
}

fn cloud() -> Rows {
    [[-1.0, 0.2, 0.5], [0.9, -0.8, -0.7], [0.1, 1.1, 0.9], [1.8, 0.3, 0.0]].map(|z| z.to_vec()).to_vec()
}

fn fourier(n: usize, n_components: usize, seed: u64) -> BasisChoice {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let directions = (0..n * n_components).map(|_| rng.random_range(1e-12..1.0)).collect();
    let radii = (0..n).map(|_| std::array::from_fn(|_| normal(&mut rng))).collect();
    BasisChoice::Fourier(Arc::new(FourierChoice { directions, radii, n_components }))
}

/// phi(z), and what FIC adds.
fn features(kernel: &Kernel, choice: &BasisChoice, z: &[f64]) -> (Vec<f64>, f64) {
    let basis = Basis::new(kernel, choice).expect("a basis");
    let (mut phi, mut extra) = (Vec::new(), Vec::new());
    basis.evaluate(&Points::from_rows(z.len(), [z]), &mut phi, &mut extra);
    assert_eq!(phi.len(), basis.len());
    (phi, extra[0])
}

fn every_basis(n_z: usize) -> Vec<BasisChoice> {
    let rows: Rows = cloud().into_iter().map(|z| z[..n_z].to_vec()).collect();
    let hilbert = Plain::hilbert(&[4.0, 4.5, 2.5][..n_z], 9);
    vec![Plain::Fic(rows.clone()).choice(), Plain::Dtc(rows).choice(), hilbert.choice(), fourier(7, n_z, 1)]
}

fn log_density(gaussian: &Gaussian, x: &[f64]) -> f64 {
    let residual: Vec<f64> = x.iter().zip(&gaussian.mean).map(|(x, mean)| x - mean).collect();
    log_gaussian(&gaussian.covariance, &residual)
}

#[test]
fn joint_is_the_dense_gaussian() {
    let line: Rows = [-1.2, 0.1, 1.5].map(|x| vec![x]).to_vec();
    let (x, _) = path(1);
    for basis in [Plain::Fic(line.clone()), Plain::Dtc(line), Plain::hilbert(&[3.5], 8)] {
        for shape in SHAPES {
            let kernel = Kernel::stationary(shape, 2.0, &[0.8]);
            let transition = scalar(kernel, Some(&basis.choice()));
            let expected = log_joint(&transition, Some(&basis), &x, &[]);
            close(transition.log_joint(&x, &[]).unwrap(), expected, 1e-9);
        }
    }
    let (x, u) = path(2);
    for basis in [Plain::Fic(cloud()), Plain::Dtc(cloud()), Plain::hilbert(&[4.0, 4.5, 2.5], 12)] {
        for full in [false, true] {
            let transition = planar(full, Some(&basis.choice()));
            let expected = log_joint(&transition, Some(&basis), &x, &u);
            close(transition.log_joint(&x, &u).unwrap(), expected, 1e-9);
        }
    }
}

/// The correction belongs to a time, not to a place: at equal inputs f differs by it.
#[test]
fn equal_inputs_do_not_share_the_correction() {
    let basis = Plain::Fic(vec![vec![-2.0], vec![2.5]]);
    let kernel = Kernel::squared_exponential(2.0, &[0.6]);
    let transition = scalar(kernel.clone(), Some(&basis.choice()));
    let x: Rows = [0.3, 0.3, 0.3, 1.0].map(|x| vec![x]).to_vec();
    let z = points(&x, &[]);
    let own = covariance(&transition, Some(&basis), &z);
    let (phi, extra) = basis.features(&kernel, &[0.3]);
    assert!(extra > 1.0);
    close(own[1], dot(&phi, &phi), 1e-14);
    let e = residuals(&transition, &x, &z);
    let joint = transition.log_joint(&x, &[]).unwrap();
    close(joint, log_gaussian(&own, &e), 1e-10);
    let mut shared = own.clone();
    (0..9).filter(|i| i % 4 != 0).for_each(|i| shared[i] += extra);
    assert!((joint - log_gaussian(&shared, &e)).abs() > 0.1);
}

#[test]
fn inducing_inputs_at_the_data_make_fic_exact() {
    let x: Rows = (0..9).map(|t| vec![1.7 * (1.3 * t as f64).sin() + 0.05 * t as f64]).collect();
    let basis = Plain::Fic(x[..8].to_vec());
    for shape in SHAPES {
        let kernel = Kernel::stationary(shape, 2.0, &[0.8]);
        let (fic, exact) = (scalar(kernel.clone(), Some(&basis.choice())), scalar(kernel, None));
        close(fic.log_joint(&x, &[]).unwrap(), exact.log_joint(&x, &[]).unwrap(), 1e-8);
        for t in 1..9 {
            let [a, b] = [&fic, &exact].map(|prior| prior.one_step(&x[..t], &[]).unwrap());
            close(a.mean[0], b.mean[0], 1e-8);
            close(a.covariance[0], b.covariance[0], 1e-8);
        }
    }
    let (mut x, u) = path(2);
    x[7][0] += 0.3;
    let basis = Plain::Fic(points(&x, &u));
    for full in [false, true] {
        let (fic, exact) = (planar(full, Some(&basis.choice())), planar(full, None));
        close(fic.log_joint(&x, &u).unwrap(), exact.log_joint(&x, &u).unwrap(), 1e-8);
    }
}

#[test]
fn many_eigenfunctions_converge_to_the_exact_prior() {
    let (x, _) = path(1);
    for shape in SHAPES {
        let kernel = Kernel::stationary(shape, 2.0, &[1.0]);
        let exact = log_joint(&scalar(kernel.clone(), None), None, &x, &[]);
        let error = |n: usize| {
            let choice = Plain::hilbert(&[12.0], n).choice();
            (scalar(kernel.clone(), Some(&choice)).log_joint(&x, &[]).unwrap() - exact).abs()
        };
        let errors = [20, 60, 180, 540].map(error);
        println!("{shape:?}: {errors:?}");
        match shape {
            Shape::SquaredExponential => assert!(errors[1] < 1e-6 && errors[1] < errors[0]),
            _ => assert!(errors.windows(2).all(|pair| pair[1] < 0.7 * pair[0]), "{shape:?}: {errors:?}"),
        }
    }
}

/// Seen failing with even functions in the place of odd ones.
#[test]
fn eigenfunctions_reproduce_the_kernels() {
    let product = |kernel: &Kernel, choice: &BasisChoice, a: &[f64], b: &[f64]| {
        dot(&features(kernel, choice, a).0, &features(kernel, choice, b).0)
    };
    let pairs = [[0.0, 0.0], [0.3, -0.4], [1.5, 1.1], [-1.0, 0.9], [2.0, -1.5]];
    for (shape, tolerance) in SHAPES.into_iter().zip([1e-9, 1e-6, 1e-4, 2e-2]) {
        let kernel = Kernel::stationary(shape, 1.7, &[0.9]);
        let choice = Plain::hilbert(&[14.0], 1500).choice();
        for (kernel, [a, b]) in
            [kernel.clone(), kernel.odd()].iter().flat_map(|k| pairs.map(|pair| (k, pair)))
        {
            let expected = kernel_value(kernel, &[a], &[b]);
            let got = product(kernel, &choice, &[a], &[b]);
            assert!((got - expected).abs() < tolerance, "{kernel:?} at {a}, {b}: {got}, not {expected}");
        }
    }
    let kernel = Kernel::squared_exponential(1.7, &[1.2, 0.9]);
    let choice = Plain::hilbert(&[7.0, 6.0], 900).choice();
    for (kernel, [a, b]) in [kernel.clone(), kernel.odd()].iter().flat_map(|k| pairs.map(|pair| (k, pair))) {
        let (a, b) = ([a, 0.5 - b], [b, a - 0.7]);
        close(product(kernel, &choice, &a, &b), kernel_value(kernel, &a, &b), 1e-6);
    }
}

/// Seen failing with cosines for odd functions.
#[test]
fn fourier_features_reproduce_the_kernels() {
    // 40,000 frequencies: a standard deviation of 1.7 / sqrt(40,000) at the most, and five of them.
    let choice = fourier(40_000, 2, 3);
    let kernels = SHAPES.map(|shape| Kernel::stationary(shape, 1.7, &[0.9, 1.4]));
    for kernel in kernels.iter().flat_map(|kernel| [kernel.clone(), kernel.clone().odd()]) {
        let at: Vec<([f64; 2], Vec<f64>)> = [[0.0, 0.0], [0.4, -0.3], [1.5, 0.8], [-0.6, 2.0]]
            .map(|z| (z, features(&kernel, &choice, &z).0))
            .to_vec();
        for (a, phi_a) in &at {
            for (b, phi_b) in &at {
                let (got, expected) = (dot(phi_a, phi_b), kernel_value(&kernel, a, b));
                assert!((got - expected).abs() < 0.043, "{kernel:?} at {a:?}, {b:?}: {got}, not {expected}");
            }
        }
    }
}

#[test]
fn linear_and_constant_parts_are_exact_in_every_basis() {
    let (x, u) = path(2);
    let kernel = Kernel::Sum(vec![Kernel::linear(vec![0, 1, 2], vec![0.5, 0.2, 1.0]), Kernel::constant(0.7)]);
    for choice in every_basis(3) {
        for noise in [ProcessNoise::Diagonal(vec![0.1, 0.2]), ProcessNoise::Full(vec![0.2, 0.1, 0.1, 0.3])] {
            let kernels = vec![kernel.clone(); 2];
            let expected = log_joint(&transition(kernels.clone(), noise.clone(), None), None, &x, &u);
            let basis = transition(kernels, noise, Some(&choice));
            close(basis.log_joint(&x, &u).unwrap(), expected, 1e-9);
        }
    }
}

/// For sums too, and with many functions they come to the exact prior.
#[test]
fn one_steps_multiply_to_the_joint_and_sum_to_ancestor_weights() {
    let (x, u) = path(2);
    for choice in every_basis(3) {
        for full in [false, true] {
            let transition = planar(full, Some(&choice));
            let steps = |x: &[Vec<f64>], from: usize| -> f64 {
                let step = |t: usize| log_density(&transition.one_step(&x[..t], &u).unwrap(), &x[t]);
                (from..x.len()).map(step).sum()
            };
            close(steps(&x, 1), transition.log_joint(&x, &u).unwrap(), 1e-9);
            for t in [1, 2, 5, 10] {
                let shifted = |by: f64| -> Rows {
                    x[..t].iter().map(|x| x.iter().map(|x| 0.9 * x + by).collect()).collect()
                };
                let prefixes = vec![x[..t].to_vec(), shifted(0.3), shifted(-0.5)];
                let log_w = transition.ancestor_log_weights(&prefixes, &x[t..], &u).unwrap();
                for (prefix, log_w) in prefixes.iter().zip(log_w) {
                    close(log_w, steps(&[&prefix[..], &x[t..]].concat(), t), 1e-8);
                }
            }
        }
    }
    let (x, _) = path(1);
    let kernel =
        Kernel::Sum(vec![Kernel::squared_exponential(1.0, &[1.0]), Kernel::linear(vec![0], vec![0.5])]);
    let choice = Plain::hilbert(&[12.0], 70).choice();
    let exact = log_joint(&scalar(kernel.clone(), None), None, &x, &[]);
    close(scalar(kernel, Some(&choice)).log_joint(&x, &[]).unwrap(), exact, 1e-6);
}

/// f given the path by the joint Gaussian of residuals and f*.
#[test]
fn posterior_of_f_is_dense_regression() {
    let (x, _) = path(1);
    let kernel = Kernel::squared_exponential(2.0, &[0.8]);
    for basis in [Plain::Fic(vec![vec![-1.2], vec![0.1], vec![1.5]]), Plain::hilbert(&[3.5], 8)] {
        let transition = scalar(kernel.clone(), Some(&basis.choice()));
        let z = points(&x, &[]);
        let e = residuals(&transition, &x, &z);
        let l = cholesky(&covariance(&transition, Some(&basis), &z), z.len());
        let white = whiten(&l, z.len(), &e);
        let stars = [vec![-1.9], vec![0.4], vec![2.2]];
        let f = transition.f_posterior(&x, &[], &stars, &[]).unwrap();
        for (i, star) in stars.iter().enumerate() {
            let (phi, extra) = basis.features(&kernel, star);
            let cross: Vec<f64> = z.iter().map(|z| dot(&phi, &basis.features(&kernel, z).0)).collect();
            let cross = whiten(&l, z.len(), &cross);
            close(f.mean[i], star[0] + dot(&cross, &white), 1e-9);
            close(f.covariance[i * 3 + i], dot(&phi, &phi) + extra - dot(&cross, &cross), 1e-9);
        }
    }
}

#[test]
fn outside_the_box_f_is_its_mean() {
    let choice = Plain::hilbert(&[2.0], 10).choice();
    let kernel = Kernel::squared_exponential(2.0, &[1.0]);
    let transition = scalar(kernel.clone(), Some(&choice));
    let x: Rows = [0.3, 0.9, 1.7, 0.2].map(|x| vec![x]).to_vec();
    let f = transition.f_posterior(&x, &[], &[vec![2.0], vec![-2.5], vec![7.0]], &[]).unwrap();
    assert_eq!(f.mean, [2.0, -2.5, 7.0]);
    assert!(f.covariance.iter().all(|covariance| *covariance == 0.0));
    assert!(features(&kernel, &choice, &[1.9]).0.iter().any(|phi| *phi != 0.0));
}

/// Inducing inputs that nearly coincide say what one of them says.
#[test]
fn inducing_inputs_that_nearly_coincide_keep_the_digits() {
    let (x, _) = path(1);
    let distinct: Rows = [-1.5, 0.0, 1.4].map(|x| vec![x]).to_vec();
    let mut crowded = distinct.clone();
    crowded.extend([-1.5 + 1e-9, 1e-9, -1e-9, 1.4 - 1e-9].map(|x| vec![x]));
    for fic in [true, false] {
        let of = |rows: &Rows| {
            let basis = if fic { Plain::Fic(rows.clone()) } else { Plain::Dtc(rows.clone()) };
            let transition = scalar(Kernel::squared_exponential(2.0, &[1.0]), Some(&basis.choice()));
            let next = transition.one_step(&x, &[]).unwrap();
            [transition.log_joint(&x, &[]).unwrap(), next.mean[0], next.covariance[0]]
        };
        for (a, b) in of(&crowded).into_iter().zip(of(&distinct)) {
            assert!(a.is_finite());
            close(a, b, 1e-6);
        }
    }
}

fn line_record(length: usize) -> Sequence {
    let y: Vec<f64> = (0..=length).map(|t| (0.3 * t as f64).sin()).collect();
    Sequence::scalar(&y, None).unwrap()
}

/// One sweep of a model with one observed state and fixed inducing inputs.
fn sweep_info(inducing: Rows, length: usize) -> gpssm::mcmc::SweepInfo {
    let dynamics = DynamicsSpec::Fic { inducing: InducingSpec::Given(inducing), mode: Mode::Collapsed };
    let model = Model { dynamics, ..Model::observed(1, 0) };
    let problem = Problem::new(model, &Functions::new(), line_record(length).into()).unwrap();
    let problem = prepare(&problem, &Settings::default()).unwrap();
    // On the outputs themselves, with hyper-parameters from the prior.
    let theta = problem.table().sample(&mut stream(1, 0, Purpose::StartTheta, 0, 0)).unwrap();
    let y: Vec<f64> = (0..=length).map(|t| problem.record().sequences()[0].y(t)[0]).collect();
    let state = ChainState::new(&problem, theta, vec![problem.path_to_internal(&y)]);
    Chain::new(&problem, FilterOptions::new(3), 1, 0, state).sweep()
}

/// Jitter is part of what a sweep reports.
#[test]
fn sweeps_report_jitter() {
    let apart = sweep_info(vec![vec![-1.0], vec![0.0], vec![1.0]], 20);
    assert_eq!((apart.relative_jitter, apart.refreshed, apart.breakdowns), (0.0, 0, 0));
    let crowded = sweep_info(vec![vec![-1.0], vec![0.0], vec![1e-9], vec![2e-9], vec![1.0]], 20);
    assert!(crowded.relative_jitter >= 1e-10 && crowded.relative_jitter < 1e-3, "{crowded:?}");
    assert_eq!(crowded.filter_failures, 0);
}

/// So are fresh sums.
#[test]
fn sweeps_report_fresh_sums() {
    // B starts at time 1 and is summed anew where 1024 and 512 of its pairs are left.
    let long = sweep_info(vec![vec![-1.0], vec![1.0]], 1200);
    assert_eq!((long.refreshed, long.breakdowns, long.filter_failures), (2, 0, 0));
}

/// One dimension far from the inducing inputs, where rounding takes its variance to that of the noise, must not
/// take the variance of the others along.
#[test]
fn far_from_the_inducing_inputs_other_dimensions_keep_their_variance() {
    let kernels =
        vec![Kernel::squared_exponential(1.0, &[1.0, 50.0]), Kernel::squared_exponential(25.0, &[50.0, 6.0])];
    let noise = ProcessNoise::Full(vec![0.1, 0.05, 0.05, 0.1]);
    let choice = Plain::Dtc(vec![vec![0.0, 0.0]]).choice();
    let transition = transition(kernels, noise, Some(&choice));
    let future = vec![vec![30.0, 3.0], vec![30.0, 2.0]];
    for i in 0..2000 {
        let far = 5.0 + 0.001 * f64::from(i);
        let prefix = |by: f64| vec![vec![0.1 + by, -60.0], vec![far + 0.1 * by, 0.5]];
        let prefixes = vec![prefix(0.0), prefix(0.3), prefix(-0.2)];
        let log_w = transition.ancestor_log_weights(&prefixes, &future, &[]).unwrap();
        for (prefix, log_w) in prefixes.iter().zip(log_w) {
            let joint = |x: &[Vec<f64>]| transition.log_joint(x, &[]).unwrap();
            close(log_w, joint(&[&prefix[..], &future].concat()) - joint(prefix), 1e-8);
        }
    }
}

/// Outputs and inputs of a damped, driven system.
fn record(n_u: usize) -> Sequence {
    let mut x = 0.5;
    let (mut y, mut u) = (Vec::new(), Vec::new());
    for t in 0..21 {
        let input = (0.7 * f64::from(t)).sin();
        y.push(x + 0.05 * (3.1 * f64::from(t)).cos());
        u.push(input);
        x = 0.7 * x + 0.8 * input - 0.2 * f64::sin(2.0 * x);
    }
    Sequence::scalar(&y, (n_u > 0).then_some(&u[..])).unwrap()
}

fn with_kernel(kernel: KernelSpec, dynamics: DynamicsSpec) -> Result<Problem, gpssm::Error> {
    let mut model = Model { dynamics, ..Model::observed(1, 0) };
    if let TransitionSpec::Gp { kernel: own, .. } = &mut model.states[0].transition {
        *own = kernel;
    }
    Problem::new(model, &Functions::new(), record(0).into())
}

/// Seen failing without the check.
#[test]
fn an_odd_kernel_is_no_factor() {
    let se = || KernelSpec::new(&SQUARED_EXPONENTIAL);
    let odd = KernelSpec::Sum(vec![KernelSpec::Odd(Box::new(se()))]);
    let error = with_kernel(KernelSpec::Product(vec![se(), odd]), DynamicsSpec::Exact).unwrap_err();
    assert!(error.to_string().contains("take the odd part of the product"), "{error}");
}

#[test]
fn kernels_without_spectral_density_are_refused() {
    let mode = Mode::Collapsed;
    let se = || KernelSpec::new(&SQUARED_EXPONENTIAL);
    let matern = KernelSpec::new(&MATERN32);
    for (kernel, name) in [
        (KernelSpec::new(&PERIODIC), "periodic"),
        (KernelSpec::new(&RATIONAL_QUADRATIC), "rational quadratic"),
        (KernelSpec::Product(vec![se(), matern.clone()]), "product"),
        (KernelSpec::Odd(Box::new(KernelSpec::Product(vec![se(), matern]))), "product"),
        (KernelSpec::Sum(vec![se(), KernelSpec::new(&PERIODIC)]), "periodic"),
    ] {
        for dynamics in [
            DynamicsSpec::Hilbert { functions: 10, half_width: Vec::new(), mode },
            DynamicsSpec::Fourier { frequencies: 10, mode },
        ] {
            let message = with_kernel(kernel.clone(), dynamics).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("spectral density"), "{message}");
            assert!(message.contains("states[0]"), "{message}");
        }
        for inducing in [InducingSpec::KMeans(5), InducingSpec::Given(vec![vec![0.0]])] {
            assert!(with_kernel(kernel.clone(), DynamicsSpec::Fic { inducing, mode }).is_ok());
        }
    }
}

fn run(model: &Model, sequence: Sequence, chains: u32, threads: usize) -> (RunReport, Vec<ChainDraws>) {
    let problem = Problem::new(model.clone(), &Functions::new(), sequence.into()).unwrap();
    let settings = Settings {
        seed: 7,
        chains,
        tune: 3,
        draws: Some(4),
        particles: 5,
        threads: Some(threads),
        start: StartSettings { restarts: 2, particles: Some(100) },
        ..Settings::default()
    };
    let sink = MemorySink::new();
    let report = sample(&problem, &settings, &sink, &|_| true).unwrap();
    (report, sink.into_chains())
}

/// Runs with one chain and with two, which must share the basis; the first chain is the same in both.
fn check_run(model: &Model, sequence: &Sequence) -> BasisChoice {
    let (one, draws) = run(model, sequence.clone(), 1, 1);
    let (two, more) = run(model, sequence.clone(), 2, 2);
    assert_eq!((draws.len(), more.len()), (1, 2));
    assert_eq!(draws[0], more[0]);
    for chain in &more {
        assert_eq!(chain.theta.len(), 4);
        assert!(chain.theta.concat().iter().all(|theta| theta.is_finite()));
        assert!(chain.paths.concat().concat().iter().all(|x| x.is_finite()));
        assert!(chain.info.iter().all(|info| info.log_joint.is_finite() && info.filter_failures == 0));
    }
    assert_eq!(one.basis, two.basis);
    one.basis.expect("a basis")
}

#[test]
fn runs_with_every_basis() {
    let size = |basis: &BasisChoice| match basis {
        BasisChoice::Fic(points) | BasisChoice::Dtc(points) => points.len(),
        BasisChoice::Hilbert(choice) => choice.n_functions,
        BasisChoice::Fourier(choice) => choice.radii.len(),
    };
    for mode in [Mode::Collapsed, Mode::Sampled] {
        let given = vec![vec![-1.0, 0.0], vec![0.0, 0.5], vec![1.0, -0.5]];
        let fic = |inducing| DynamicsSpec::Fic { inducing, mode };
        for (dynamics, expected) in [
            (fic(InducingSpec::Given(given.clone())), 3),
            (fic(InducingSpec::Grid(vec![3, 2])), 6),
            (fic(InducingSpec::KMeans(5)), 5),
            (fic(InducingSpec::Greedy(5)), 5),
            (fic(InducingSpec::Variance(5)), 5),
            (DynamicsSpec::Dtc { inducing: InducingSpec::Given(given), mode }, 3),
            (DynamicsSpec::Hilbert { functions: 12, half_width: Vec::new(), mode }, 12),
            (DynamicsSpec::Hilbert { functions: 12, half_width: vec![4.0, 2.0], mode }, 12),
            (DynamicsSpec::Fourier { frequencies: 8, mode }, 8),
        ] {
            let name = format!("{dynamics:?}");
            let mut model = Model { dynamics, ..Model::observed(1, 1) };
            assert_eq!(size(&check_run(&model, &record(1))), expected, "{name}");
            if let TransitionSpec::Gp { kernel, .. } = &mut model.states[0].transition {
                *kernel = KernelSpec::Odd(Box::new(kernel.clone()));
            }
            let basis = check_run(&model, &record(1));
            assert_eq!(size(&basis), expected, "odd, {name}");
            if let BasisChoice::Hilbert(choice) = basis {
                assert_eq!(choice.center, [0.0, 0.0], "an odd function has its box around zero");
            }
        }
    }
}

#[test]
fn a_declared_symmetry_is_kept_by_the_inducing_inputs() {
    let dynamics = DynamicsSpec::Fic { inducing: InducingSpec::KMeans(8), mode: Mode::Collapsed };
    let model = Model { dynamics, ..Model::with_hidden_states(2, 1, 1) };
    assert_eq!(model.symmetries.len(), 1);
    assert!(matches!(model.sensor.predictor(), Some(Predictor::States)));
    let BasisChoice::Fic(points) = check_run(&model, &record(1)) else { panic!("not FIC") };
    assert_eq!(points.len(), 8);
    let rows: Rows = (0..points.len()).map(|i| points.row(i)).collect();
    for row in &rows {
        let mirror = vec![row[0], -row[1], row[2]];
        assert!(rows.contains(&mirror), "{row:?} has no mirror image");
    }
}
