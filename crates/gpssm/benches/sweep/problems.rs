//! What is timed: problems with paths to start from.

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::mcmc::StartSettings;
use gpssm::model::{
    DynamicsSpec, FunctionRef, FunctionSpec, InducingSpec, InitialSpec, Mode, Predictor, ProcessNoiseSpec,
    ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec,
};
use gpssm::{Functions, KernelSpec, Model, Points, Prior, Problem, Sequence, Settings, prepare};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Transitions.
    pub length: usize,
    pub particles: usize,
    pub states: usize,
    /// Whether the process noise of the states is correlated.
    pub full: bool,
    /// Functions or inducing inputs; none for the exact Gaussian process.
    pub basis: Option<usize>,
}

impl Case {
    /// Name, size of the basis, length and particles: what is chosen by on the command line.
    pub fn label(&self) -> String {
        let basis = self.basis.map_or_else(String::new, |basis| format!("-{basis}"));
        format!("{}{basis}/{}/{}", self.name, self.length, self.particles)
    }

    /// Whether one sweep may take half a minute; only timed if that is asked for.
    pub fn is_long(&self) -> bool {
        self.length * self.states * self.states > 20_000
    }

    /// Least number of floating-point operations of a sweep with the exact Gaussian process: n_x (N + 2) T^3,
    /// with correlated noise n_x^3 (N + 2) T^3. None for finite bases, known transitions and filters, which do other work.
    pub fn floor(&self) -> Option<f64> {
        let order = if self.full { self.states.pow(3) } else { self.states } as f64;
        let flop = order * (self.particles as f64 + 2.0) * (self.length as f64).powi(3);
        self.name.starts_with("exact").then_some(flop)
    }

    /// The problem, and the true path.
    pub fn problem(&self) -> (Problem, Vec<f64>) {
        match self.name {
            "exact-4-diagonal" | "exact-4-full" => coupled(4, self.length, self.full, DynamicsSpec::Exact),
            "two-hilbert-collapsed" => {
                let (functions, mode) = (self.basis.unwrap_or(0), Mode::Collapsed);
                let half_width = vec![5.0, 5.0, 1.5];
                coupled(2, self.length, false, DynamicsSpec::Hilbert { functions, half_width, mode })
            }
            name => {
                let dynamics = dynamics(name, self.basis.unwrap_or(0));
                benchmark(self.length, name.starts_with("parametric"), dynamics)
            }
        }
    }
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let one =
        |name, length, particles, basis| Case { name, length, particles, states: 1, full: false, basis };
    let mut cases: Vec<Case> =
        [50, 100, 200, 400, 800, 1600].into_iter().map(|length| one("exact", length, 20, None)).collect();
    cases.push(Case { states: 4, ..one("exact-4-diagonal", 200, 20, None) });
    cases.push(Case { states: 4, full: true, ..one("exact-4-full", 200, 20, None) });
    for (length, particles) in [(200, 20), (200, 1000), (2000, 20), (2000, 1000)] {
        cases.push(one("parametric", length, particles, None));
    }
    for (name, basis) in [("filter", None), ("filter-fic", Some(40)), ("filter-hilbert", Some(30))] {
        cases.push(one(name, 200, 3000, basis));
    }
    for length in [1_000, 10_000, 100_000] {
        cases.push(Case { states: 2, ..one("two-hilbert-collapsed", length, 20, Some(100)) });
    }
    for (name, basis) in [
        ("fic", 40),
        ("hilbert-collapsed", 30),
        ("hilbert-collapsed", 100),
        ("hilbert-sampled", 30),
        ("hilbert-sampled", 100),
    ] {
        for length in [200, 400, 1_000, 10_000, 100_000] {
            cases.push(one(name, length, 20, Some(basis)));
        }
    }
    cases
}

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
pub fn typical(problem: &Problem) -> Vec<f64> {
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
