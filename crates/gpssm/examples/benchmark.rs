//! Learns the benchmark of the paper's section 6.1 from a cold start.
//!
//! x_{t+1} = 0.5 x + 25 x / (1 + x^2) + 8 u + v,  v ~ N(0, 10)
//! y_t     = 0.05 x^2 + e,                        e ~ N(0, 1),  u_t = cos(1.2 (t + 1))
//!
//! The sensor does not see the sign of x, and the mean function is the paper's wrong "model B". Run with
//! `cargo run --release -p gpssm --example benchmark [seed] [exact | fic | hilbert]`: the Gaussian process itself,
//! the paper's FIC with 40 inducing inputs, or 60 Hilbert-space functions with weights drawn in each sweep.

use gpssm::mcmc::sink::ChainDraws;
use gpssm::model::dynamics::{DynamicsSpec, InducingSpec, Mode};
use gpssm::model::kernel::{LinearSpec, StationarySpec};
use gpssm::model::scale_prior::ScalePrior;
use gpssm::model::spec::{
    FunctionRef, FunctionSpec, InitialSpec, Predictor, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec,
    StateSpec, TransitionSpec,
};
use gpssm::model::symmetry::{Orientation, Symmetry};
use gpssm::{
    Error, Functions, KernelSpec, MemorySink, Model, Phase, Points, Prior, Problem, Sequence, Settings,
    diagnostics, sample,
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

const T: usize = 200;

fn truth(x: f64, u: f64) -> f64 {
    0.5 * x + 25.0 * x / (1.0 + x * x) + 8.0 * u
}

/// States, inputs and outputs.
fn simulate(seed: u64) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = |sd: f64| sd * rng.sample::<f64, _>(StandardNormal);
    let u: Vec<f64> = (0..=T).map(|t| (1.2 * (t as f64 + 1.0)).cos()).collect();
    let mut x = vec![normal(5f64.sqrt())];
    for t in 0..T {
        let next = truth(x[t], u[t]) + normal(10f64.sqrt());
        x.push(next);
    }
    let y = x.iter().map(|x| 0.05 * x * x + normal(1.0)).collect();
    (x, u, y)
}

fn prior(name: &str) -> Option<DynamicsSpec> {
    match name {
        "exact" => Some(DynamicsSpec::Exact),
        "fic" => Some(DynamicsSpec::Fic { inducing: InducingSpec::KMeans(40), mode: Mode::Collapsed }),
        "hilbert" => {
            Some(DynamicsSpec::Hilbert { functions: 60, half_width: Vec::new(), mode: Mode::Sampled })
        }
        _ => None,
    }
}

/// Root mean square error of the posterior mean of f, averaged over the draws, on a fresh record.
fn prediction_rmse(problem: &Problem, draws: &ChainDraws, u: &[f64], seed: u64) -> Result<f64, Error> {
    let (x_star, u_star, _) = simulate(seed + 1_000_000);
    let scale = problem.scaling().x.scale[0];
    let points: Vec<Vec<f64>> = x_star[..T].iter().map(|x| vec![x / scale]).collect();
    let inputs = |u: &[f64]| u.iter().map(|u| vec![*u]).collect::<Vec<_>>();
    let mut mean = vec![0.0; T];
    for (theta, paths) in draws.theta.iter().zip(&draws.paths) {
        let path: Vec<Vec<f64>> = paths[0].iter().map(|x| vec![x / scale]).collect();
        let f = problem.bind_transition(theta).f_posterior(&path, &inputs(u), &points, &inputs(&u_star))?;
        mean.iter_mut().zip(&f.mean).for_each(|(sum, f)| *sum += scale * f / draws.theta.len() as f64);
    }
    let squares = mean.iter().zip(&x_star).zip(&u_star).map(|((f, x), u)| (f - truth(*x, *u)).powi(2));
    Ok((squares.sum::<f64>() / T as f64).sqrt())
}

fn model(dynamics: DynamicsSpec) -> (Model, Functions) {
    let around = |median: f64| Prior::LogNormal { median, sigma: 1.0 };
    let stationary = StationarySpec { sigma_f: Some(around(10.0)), ell: vec![around(3.0)], active: None };
    let linear = LinearSpec { sigma: vec![around(1.0)], active: None };
    let kernel = KernelSpec::Sum(vec![KernelSpec::Matern32(stationary), KernelSpec::Linear(linear)]);
    let named = |name: &str| FunctionRef { name: name.into(), parameters: Vec::new() };
    let mean = FunctionSpec::User(named("model B"));
    let model = Model {
        states: vec![StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: Some(10.0) }],
        dynamics,
        process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(3.0))]),
        sensor: SensorSpec::Gaussian {
            mean: Predictor::Functions(vec![named("squared")]),
            noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(1.0))]),
        },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![5f64.sqrt()] },
        standardise: false,
        symmetries: vec![Symmetry {
            flip: vec![0],
            flip_parameters: Vec::new(),
            orientation: Orientation::InputRaisesState { input: 0, state: 0 },
        }],
        ..Model::observed(1, 1)
    };
    let functions = Functions::new()
        .with("model B", |z: &Points, _: &[f64], out: &mut [f64]| {
            for (out, x) in out.iter_mut().zip(z.column(0)) {
                *out = 0.3 * x + 7.5 * x / (1.0 + x * x);
            }
        })
        .with("squared", |z: &Points, _: &[f64], out: &mut [f64]| {
            for (out, x) in out.iter_mut().zip(z.column(0)) {
                *out = 0.05 * x * x;
            }
        });
    (model, functions)
}

fn main() -> Result<(), Error> {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let name = std::env::args().nth(2).unwrap_or_else(|| "exact".into());
    let Some(dynamics) = prior(&name) else {
        eprintln!("unknown prior \"{name}\": exact, fic or hilbert");
        std::process::exit(2);
    };
    let (x, u, y) = simulate(seed);
    let (model, functions) = model(dynamics);
    let problem = Problem::new(model, &functions, Sequence::scalar(&y, Some(&u))?.into())?;
    let settings = Settings { seed, chains: 2, tune: 100, draws: 100, ..Settings::default() };
    let sink = MemorySink::new();
    let began = std::time::Instant::now();
    let report = sample(&problem, &settings, &sink, &|progress| {
        if progress.phase == Phase::Start || progress.done == progress.total {
            println!(
                "{:6.1} s  chain {}: {:?} {} of {}",
                began.elapsed().as_secs_f64(),
                progress.chain,
                progress.phase,
                progress.done,
                progress.total
            );
        }
        true
    })?;
    let chains = sink.into_chains();
    let problem = report.basis.as_ref().map_or(problem.clone(), |basis| problem.with_basis(basis.clone()));
    println!("\n{:<22} {:>9} {:>9}   90 % interval        R-hat   ESS", "hyper-parameter", "mean", "sd");
    for (k, parameter) in problem.table().parameters.iter().enumerate() {
        if problem.table().is_fixed(k) {
            continue;
        }
        let values: Vec<Vec<f64>> =
            chains.iter().map(|c| c.theta.iter().map(|theta| theta[k]).collect()).collect();
        let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let row = diagnostics::summarise(&values, 0.9);
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        println!(
            "{:<22} {:>9} {:>9}   {:>8} .. {:<8}  {:>6}  {:>5}",
            parameter.name,
            number(row.mean),
            number(row.sd),
            number(row.lower),
            number(row.upper),
            number(row.r_hat),
            row.ess_bulk.map_or("-".to_owned(), |ess| format!("{ess:.0}"))
        );
    }
    for (chain, draws) in report.chains.iter().zip(&chains) {
        let squares =
            draws.paths.iter().flat_map(|paths| paths[0].iter().zip(&x)).map(|(a, b)| (a - b).powi(2));
        let rmse = (squares.sum::<f64>() / (draws.paths.len() * (T + 1)) as f64).sqrt();
        let rates = chain.update_rates[0].rates();
        println!(
            "chain {}: RMSE of the drawn states to the true ones {rmse:.2}, of f on a fresh record {:.2}; x_t changed in \
             {:.0} % of the sweeps",
            chain.chain,
            prediction_rmse(&problem, draws, &u, seed)?,
            100.0 * rates.iter().sum::<f64>() / rates.len() as f64
        );
    }
    Ok(())
}
