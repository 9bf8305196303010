//! Time of a sweep beside the speed of a matrix product measured in the same run.
//!
//! `cargo bench --bench sweep [-- NAME]` prints one JSON line for each case whose name/basis/length/particles
//! contains NAME (as in `fic/40/200/`):
//! `sweep_ms` is the median time of one conditional filter (or filter), `hyper_ms` that of one update of all
//! hyper-parameters, `evaluations` the evidences it evaluated, `gemm_gflops` the rate of a product of two
//! matrices of order 1000 on one thread, and `floor_ratio` the sweep's time over that of n_x (N + 2) T^3
//! floating-point operations at this rate (n_x^3 with full Q). Finite bases have their size in `basis`, and
//! `peak_mb` is the most memory that the program held so far.

use std::time::Instant;

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::mcmc::moves::{HyperParameters, Move, States, Weights};
use gpssm::mcmc::{Chain, ChainState, StartSettings, SweepInfo};
use gpssm::model::{
    DynamicsSpec, FunctionRef, FunctionSpec, InducingSpec, InitialSpec, Mode, Predictor, ProcessNoiseSpec,
    ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec,
};
use gpssm::smc::{FilterOptions, particle_filter};
use gpssm::state_space::SharedPairs;
use gpssm::{Functions, KernelSpec, Model, Points, Prior, Problem, Sequence, Settings, prepare};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;
use serde_json::json;

fn around(median: f64) -> Prior {
    Prior::LogNormal { median, sigma: 0.5 }
}

fn user(name: &str) -> FunctionRef {
    FunctionRef { name: name.into(), parameters: Vec::new() }
}

fn functions() -> Functions {
    Functions::new()
        .with("truth", |z: &Points, _: &[f64], out: &mut [f64]| {
            for ((out, x), u) in out.iter_mut().zip(z.column(0)).zip(z.column(1)) {
                *out = 0.5 * x + 25.0 * x / (1.0 + x * x) + 8.0 * u;
            }
        })
        .with("squared", |z: &Points, _: &[f64], out: &mut [f64]| {
            for (out, x) in out.iter_mut().zip(z.column(0)) {
                *out = 0.05 * x * x;
            }
        })
}

/// The paper's benchmark with T transitions: the problem and the true path.
fn benchmark(length: usize, parametric: bool, dynamics: DynamicsSpec) -> (Problem, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut normal = |sd: f64| sd * rng.sample::<f64, _>(StandardNormal);
    let u: Vec<f64> = (0..=length).map(|t| (1.2 * (t as f64 + 1.0)).cos()).collect();
    let mut x = vec![normal(5f64.sqrt())];
    for t in 0..length {
        let mean = 0.5 * x[t] + 25.0 * x[t] / (1.0 + x[t] * x[t]) + 8.0 * u[t];
        x.push(mean + normal(10f64.sqrt()));
    }
    let y: Vec<f64> = x.iter().map(|x| 0.05 * x * x + normal(1.0)).collect();
    let transition = if parametric {
        TransitionSpec::Parametric { function: FunctionSpec::User(user("truth")) }
    } else {
        let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL)
            .with("sigma_f", around(10.0))
            .with("ell", vec![around(5.0), around(2.0)]);
        TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity }
    };
    let model = Model {
        states: vec![StateSpec { transition, scale: None }],
        dynamics,
        process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(3.0))]),
        sensor: SensorSpec::Gaussian {
            mean: Predictor::Functions(vec![user("squared")]),
            noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(1.0))]),
        },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![5f64.sqrt()] },
        standardise: false,
        ..Model::observed(1, 1)
    };
    let record = Sequence::scalar(&y, Some(&u)).expect("whole rows");
    let problem = Problem::new(model, &functions(), record.into()).expect("a valid model");
    let settings =
        Settings { start: StartSettings { restarts: 1, particles: Some(2) }, ..Settings::default() };
    (prepare(&problem, &settings).expect("a basis"), x)
}

/// Inducing inputs on a grid of `n` points over the region that the benchmark visits.
fn inducing(n: usize) -> InducingSpec {
    let (along_x, along_u) = (n / 4, 4);
    let position = |i: usize, n: usize, reach: f64| reach * (2.0 * i as f64 / (n - 1) as f64 - 1.0);
    let point = |i: usize| vec![position(i / along_u, along_x, 25.0), position(i % along_u, along_u, 1.0)];
    InducingSpec::Given((0..along_x * along_u).map(point).collect())
}

/// The prior over f of a case.
fn dynamics(name: &str, basis: usize) -> DynamicsSpec {
    let half_width = vec![40.0, 1.5];
    match name {
        "fic" => DynamicsSpec::Fic { inducing: inducing(basis), mode: Mode::Collapsed },
        "filter-fic" => DynamicsSpec::Fic { inducing: inducing(basis), mode: Mode::Collapsed },
        "filter-hilbert" => DynamicsSpec::Hilbert { functions: basis, half_width, mode: Mode::Collapsed },
        "hilbert-collapsed" => DynamicsSpec::Hilbert { functions: basis, half_width, mode: Mode::Collapsed },
        "hilbert-sampled" => DynamicsSpec::Hilbert { functions: basis, half_width, mode: Mode::Sampled },
        _ => DynamicsSpec::Exact,
    }
}

/// Coupled states, all seen.
fn coupled(n_x: usize, length: usize, full: bool, dynamics: DynamicsSpec) -> (Problem, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut normal = |sd: f64| sd * rng.sample::<f64, _>(StandardNormal);
    let mut x = vec![vec![0.0f64; n_x]];
    let u: Vec<Vec<f64>> = (0..=length).map(|t| vec![(0.3 * t as f64).sin()]).collect();
    for t in 0..length {
        let mean = |d: usize| 0.7 * x[t][d] + 0.5 * x[t][(d + 1) % n_x].sin() + 0.3 * u[t][0];
        let next = (0..n_x).map(mean).collect::<Vec<_>>();
        x.push(next.into_iter().map(|mean| mean + normal(0.2)).collect());
    }
    let y = x.iter().map(|x| x.iter().map(|x| x + normal(0.1)).collect()).collect();
    let mut model = Model { standardise: false, dynamics, ..Model::observed(n_x, 1) };
    for state in &mut model.states {
        let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL);
        state.transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    }
    if full {
        model.process_noise = ProcessNoiseSpec::Full(None);
    }
    let record = Sequence::new(y, u).expect("whole rows");
    let problem = Problem::new(model, &Functions::new(), record.into()).expect("a valid model");
    (prepare(&problem, &Settings::default()).expect("a basis"), x.concat())
}

/// Hyper-parameters at the medians of their priors, diagonal covariances.
fn typical(problem: &Problem) -> Vec<f64> {
    use gpssm::model::ParameterPrior;
    let value = |prior: &ParameterPrior| match prior {
        ParameterPrior::Scalar(prior) => prior.median(),
        ParameterPrior::Scale(prior) => prior.median_sd(),
        ParameterPrior::Matrix { row, column, .. } => {
            if row == column {
                0.2
            } else {
                0.0
            }
        }
    };
    problem.table().parameters.iter().map(|parameter| value(&parameter.prior)).collect()
}

/// Rate of one product of matrices of order 1000 on one thread, best of five.
fn gemm_gflops() -> f64 {
    let n = 1000;
    let a = faer::Mat::<f64>::from_fn(n, n, |i, j| ((7 * i + j) % 13) as f64);
    let mut c = faer::Mat::<f64>::zeros(n, n);
    let times = (0..5).map(|_| {
        let began = Instant::now();
        faer::linalg::matmul::matmul(c.as_mut(), faer::Accum::Replace, &a, &a, 1.0, faer::Par::Seq);
        began.elapsed().as_secs_f64()
    });
    2e-9 * (n as f64).powi(3) / times.fold(f64::INFINITY, f64::min)
}

/// Median in milliseconds over at least three repetitions and about a second; a run of half a minute is not repeated.
fn median_ms(mut run: impl FnMut()) -> f64 {
    let mut times = Vec::new();
    let began = Instant::now();
    while times.is_empty()
        || (times.len() < 3 && began.elapsed().as_secs_f64() < 30.0)
        || (began.elapsed().as_secs_f64() < 1.0 && times.len() < 200)
    {
        let start = Instant::now();
        run();
        times.push(1e3 * start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Most memory that this process ever held, where the system tells it.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

struct Case {
    name: &'static str,
    length: usize,
    particles: usize,
    states: usize,
    full: bool,
    /// Functions or inducing inputs; none for the exact Gaussian process.
    basis: Option<usize>,
}

fn run(case: &Case) {
    let n_x = case.states;
    let (problem, path) = match case.name {
        "exact-4-diagonal" | "exact-4-full" => coupled(4, case.length, case.full, DynamicsSpec::Exact),
        "two-hilbert-collapsed" => {
            let (functions, mode) = (case.basis.unwrap_or(0), Mode::Collapsed);
            let half_width = vec![5.0, 5.0, 1.5];
            coupled(2, case.length, false, DynamicsSpec::Hilbert { functions, half_width, mode })
        }
        name => {
            let dynamics = dynamics(name, case.basis.unwrap_or(0));
            benchmark(case.length, name.starts_with("parametric"), dynamics)
        }
    };
    let state = ChainState::new(&problem, typical(&problem), vec![path]);
    let options = FilterOptions::new(case.particles);
    let (sweep_ms, hyper_ms, evaluations) = if case.name.starts_with("filter") {
        let model = problem.bind(&state.theta);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let shared = SharedPairs::none(n_x, 1);
        let time = median_ms(|| {
            particle_filter(&model, &problem.sequences()[0], &shared, options, &mut rng)
                .expect("a filter that runs");
        });
        (time, None, None)
    } else {
        let mut chain = Chain::new(&problem, options, 1, 0, state);
        // Widths adapt before they are timed, where that does not take minutes.
        for _ in 0..if case.length < 50_000 { 5 } else { 0 } {
            chain.state.sweep += 1;
            chain.make(&HyperParameters, &mut SweepInfo::default());
        }
        let (mut info, mut updates) = (SweepInfo::default(), 0);
        let hyper = median_ms(|| {
            chain.state.sweep += 1;
            updates += 1;
            chain.make(&HyperParameters, &mut info);
        });
        let sweep = median_ms(|| {
            chain.state.sweep += 1;
            if Weights.applies(&problem) {
                chain.make(&Weights, &mut info);
            }
            chain.make(&States, &mut info);
        });
        (sweep, Some(hyper), Some(info.density_evaluations as f64 / f64::from(updates)))
    };
    let gemm_gflops = gemm_gflops();
    let order = if case.full { n_x.pow(3) } else { n_x } as f64;
    let flop = order * (case.particles as f64 + 2.0) * (case.length as f64).powi(3);
    let line = json!({
        "case": case.name,
        "length": case.length,
        "particles": case.particles,
        "states": n_x,
        "basis": case.basis,
        "sweep_ms": sweep_ms,
        "hyper_ms": hyper_ms,
        "evaluations": evaluations,
        "gemm_gflops": gemm_gflops,
        "peak_mb": peak_mb(),
        "floor_ratio": sweep_ms * 1e-3 / (flop / (gemm_gflops * 1e9)),
    });
    println!("{line}");
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let exact = |length| Case { name: "exact", length, particles: 20, states: 1, full: false, basis: None };
    let mut cases: Vec<Case> = [100, 200, 400, 800, 1600].into_iter().map(exact).collect();
    cases.push(Case {
        name: "exact-4-diagonal",
        length: 200,
        particles: 20,
        states: 4,
        full: false,
        basis: None,
    });
    cases.push(Case { name: "exact-4-full", length: 200, particles: 20, states: 4, full: true, basis: None });
    for (length, particles) in [(200, 20), (200, 1000), (2000, 20), (2000, 1000)] {
        cases.push(Case { name: "parametric", length, particles, states: 1, full: false, basis: None });
    }
    cases.push(Case { name: "filter", length: 200, particles: 3000, states: 1, full: false, basis: None });
    for (name, basis) in [("filter-fic", 40), ("filter-hilbert", 30)] {
        let (length, particles) = (200, 3000);
        cases.push(Case { name, length, particles, states: 1, full: false, basis: Some(basis) });
    }
    for length in [1_000, 10_000, 100_000] {
        let (name, basis) = ("two-hilbert-collapsed", Some(100));
        cases.push(Case { name, length, particles: 20, states: 2, full: false, basis });
    }
    for (name, basis) in [
        ("fic", 40),
        ("hilbert-collapsed", 30),
        ("hilbert-collapsed", 100),
        ("hilbert-sampled", 30),
        ("hilbert-sampled", 100),
    ] {
        for length in [200, 400, 1_000, 10_000, 100_000] {
            cases.push(Case { name, length, particles: 20, states: 1, full: false, basis: Some(basis) });
        }
    }
    let label =
        |case: &Case| format!("{}/{}/{}/{}", case.name, case.basis.unwrap_or(0), case.length, case.particles);
    cases.iter().filter(|case| label(case).contains(&wanted)).for_each(run);
}
