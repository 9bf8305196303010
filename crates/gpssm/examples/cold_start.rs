//! Measures the cold start on the benchmark of the paper's section 6.1: how often it finds the right signs, how
//! close the draws are to the truth, what it costs, and whether chains agree.
//!
//! x_{t+1} = 0.5 x + 25 x / (1 + x^2) + 8 u + v,  v ~ N(0, 10),  x_0 ~ N(0, 5)
//! y_t     = 0.05 x^2 + e,                        e ~ N(0, 1),   u_t = cos(1.2 (t + 1)),  T = 200
//!
//! `cargo run --release -p gpssm --example cold_start kernel=additive engine=exact seeds=1..11 chains=4`
//!
//! | key | values | default |
//! |---|---|---|
//! | `kernel` | `se`, `matern`, `se+linear`, `matern+linear`, `additive` (Matérn-3/2 of x, SE of u, linear) | `matern+linear` |
//! | `engine` | `exact`, `fic` (40 inducing inputs), `hilbert` (60 functions, weights drawn) | `exact` |
//! | `seeds` | data sets, `from..to` | `1..11` |
//! | `chains`, `tune`, `draws`, `particles`, `threads` | as in the settings of a run | 1, 100, 100, 20, all cores |
//! | `restarts`, `start_particles` | as in the settings of the start | the settings' own |
//! | `test` | points of the test record | 2000 |
//! | `sigma`, `ell` | width of the log-normal priors, and median of those of the length-scales | 1, 3 |
//! | `theta` | 1 to print the mean and sd of each hyper-parameter | 0 |
//!
//! No run sees the true states or parameters; these enter the errors that are printed only. A chain is in
//! the right mode if its smoothing error is below 6. R-hat is the largest over the mean of f at 20 points and all log
//! hyper-parameters. Seconds are those of the processor, not of the clock.

use std::collections::HashMap;
use std::sync::Mutex;

use gpssm::kernel::{LINEAR, MATERN32, SQUARED_EXPONENTIAL};
use gpssm::mcmc::{ChainDraws, StartSettings};
use gpssm::model::{DynamicsSpec, InducingSpec, Mode};
use gpssm::posterior::Target;
use gpssm::{
    Error, Functions, KernelSpec, MemorySink, Model, Phase, Posterior, Prior, Problem, Progress, Settings,
    diagnostics, sample,
};
use gpssm_dev::benchmark::{self, Simulated};

/// Smoothing errors of wrong sign patterns are 6 and more.
const RIGHT: f64 = 6.0;
const AGREE: f64 = 1.05;

fn kernel(name: &str, ell: f64, around: impl Fn(f64) -> Prior) -> Option<KernelSpec> {
    let stationary = |kind| KernelSpec::new(kind).with("sigma_f", around(10.0)).with("ell", around(ell));
    let (se, matern) = (|| stationary(&SQUARED_EXPONENTIAL), || stationary(&MATERN32));
    let linear = || KernelSpec::new(&LINEAR).with("sigma", around(1.0));
    Some(match name {
        "se" => se(),
        "matern" => matern(),
        "se+linear" => KernelSpec::Sum(vec![se(), linear()]),
        "matern+linear" => KernelSpec::Sum(vec![matern(), linear()]),
        "additive" => KernelSpec::Sum(vec![matern().on(&["x"]), se().on(&["u"]), linear()]),
        _ => return None,
    })
}

fn engine(name: &str) -> Option<DynamicsSpec> {
    Some(match name {
        "exact" => DynamicsSpec::Exact,
        "fic" => DynamicsSpec::Fic { inducing: InducingSpec::KMeans(40), mode: Mode::Collapsed },
        "hilbert" => DynamicsSpec::Hilbert { functions: 60, half_width: Vec::new(), mode: Mode::Sampled },
        _ => return None,
    })
}

fn model(kernel_name: &str, engine_name: &str, sigma: f64, ell: f64) -> Option<Model> {
    let around = |median: f64| Prior::LogNormal { median, sigma };
    Some(Model { dynamics: engine(engine_name)?, ..benchmark::model(kernel(kernel_name, ell, around)?) })
}

/// Seconds that this thread has had of a processor, where the system tells.
fn thread_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns * 1e-9)
}

/// Processor seconds of each chain at the end of each phase, from the first sign of life on.
#[derive(Default)]
struct Clock {
    began: HashMap<u32, f64>,
    /// Until the first sweep, and in all.
    spent: HashMap<u32, (f64, f64)>,
}

impl Clock {
    fn tell(&mut self, progress: &Progress) {
        let now = thread_seconds();
        let began = *self.began.entry(progress.chain).or_insert(now);
        let spent = self.spent.entry(progress.chain).or_default();
        spent.1 = now - began;
        if progress.phase == Phase::Start || (progress.phase == Phase::Tune && progress.done == 1) {
            spent.0 = now - began;
        }
    }
}

/// Errors of one chain: of the drawn states, and of the mean of f at the test points.
struct Errors {
    smoothing: f64,
    prediction: f64,
}

struct TestSet {
    x: Vec<Vec<f64>>,
    u: Vec<Vec<f64>>,
    f: Vec<f64>,
}

impl TestSet {
    fn new(seed: u64, n: usize) -> Self {
        let Simulated { x, u, .. } = benchmark::simulate(seed + 1_000_000, n);
        Self {
            f: x.iter().zip(&u).map(|(x, u)| benchmark::truth(*x, *u)).collect(),
            x: x.iter().map(|x| vec![*x]).collect(),
            u: u.iter().map(|u| vec![*u]).collect(),
        }
    }

    fn errors(&self, posterior: &Posterior, draws: &ChainDraws, x: &[f64]) -> Result<Errors, Error> {
        let squares =
            draws.paths.iter().flat_map(|paths| paths[0].iter().zip(x)).map(|(a, b)| (a - b).powi(2));
        let smoothing = (squares.sum::<f64>() / (draws.paths.len() * x.len()) as f64).sqrt();
        Ok(Errors { smoothing, prediction: self.prediction(posterior)? })
    }

    fn prediction(&self, posterior: &Posterior) -> Result<f64, Error> {
        let f = posterior.predict(&self.x, &self.u, Target::Function)?;
        let squares = self.f.iter().enumerate().map(|(i, truth)| (f.mean(i)[0] - truth).powi(2));
        Ok((squares.sum::<f64>() / self.f.len() as f64).sqrt())
    }

    /// Means of f of each draw at 20 points.
    fn traces(&self, posterior: &Posterior) -> Result<Vec<Vec<f64>>, Error> {
        let step = self.x.len() / 20;
        let every = |rows: &[Vec<f64>]| rows.iter().step_by(step).take(20).cloned().collect::<Vec<_>>();
        let f = posterior.predict(&every(&self.x), &every(&self.u), Target::Function)?;
        Ok((0..20).map(|i| (0..posterior.len()).map(|j| f.draw_mean(j, i)[0]).collect()).collect())
    }
}

/// Largest R-hat of the same quantities in several chains, and which it is.
fn worst_rhat(chains: &[Vec<Vec<f64>>]) -> (f64, usize) {
    let of = |k: usize| {
        let values: Vec<&[f64]> = chains.iter().map(|chain| chain[k].as_slice()).collect();
        diagnostics::rhat(&values).unwrap_or(f64::INFINITY)
    };
    (0..chains[0].len()).map(|k| (of(k), k)).fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a })
}

fn mean_sd(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{mean:.2} ± {:.2}", variance.sqrt())
}

struct Arguments(HashMap<String, String>);

impl Arguments {
    fn text(&self, key: &str, default: &str) -> String {
        self.0.get(key).cloned().unwrap_or_else(|| default.to_owned())
    }

    fn number<N: std::str::FromStr>(&self, key: &str) -> Option<N> {
        self.0.get(key).map(|value| {
            value.parse().unwrap_or_else(|_| {
                eprintln!("{key}={value}: not a number");
                std::process::exit(2)
            })
        })
    }
}

fn main() -> Result<(), Error> {
    let pairs = std::env::args().skip(1).map(|argument| match argument.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => {
            eprintln!("\"{argument}\": arguments are key=value");
            std::process::exit(2)
        }
    });
    let arguments = Arguments(pairs.collect());
    let (kernel, engine) = (arguments.text("kernel", "matern+linear"), arguments.text("engine", "exact"));
    let seeds = arguments.text("seeds", "1..11");
    let Some((Ok(from), Ok(to))) = seeds.split_once("..").map(|(from, to)| (from.parse(), to.parse::<u64>()))
    else {
        eprintln!("seeds={seeds}: write from..to");
        std::process::exit(2)
    };
    let start = StartSettings::default();
    let settings = Settings {
        chains: arguments.number("chains").unwrap_or(1),
        tune: arguments.number("tune").unwrap_or(100),
        draws: Some(arguments.number("draws").unwrap_or(100)),
        particles: arguments.number("particles").unwrap_or(20),
        threads: arguments.number("threads"),
        start: StartSettings {
            restarts: arguments.number("restarts").unwrap_or(start.restarts),
            particles: arguments.number("start_particles"),
        },
        ..Settings::default()
    };
    let n_test = arguments.number("test").unwrap_or(2000).max(20);
    let sigma = arguments.number("sigma").unwrap_or(1.0);
    let ell = arguments.number("ell").unwrap_or(3.0);
    let (mut smoothing, mut prediction, mut starts, mut totals) = (vec![], vec![], vec![], vec![]);
    let mut together = Vec::new();
    let (mut right, mut agreeing) = (0, 0);
    for seed in from..to {
        let Some(model) = model(&kernel, &engine, sigma, ell) else {
            eprintln!("kernel={kernel} engine={engine}: unknown, see the top of this example");
            std::process::exit(2)
        };
        let simulated = benchmark::simulate(seed, benchmark::T);
        let problem = Problem::new(model, &Functions::new(), simulated.record()?)?;
        let settings = Settings { seed, ..settings.clone() };
        let (sink, clock) = (MemorySink::new(), Mutex::new(Clock::default()));
        let report = sample(&problem, &settings, &sink, &|progress| {
            clock.lock().is_ok_and(|mut clock| {
                clock.tell(progress);
                true
            })
        })?;
        let problem =
            report.basis.as_ref().map_or(problem.clone(), |basis| problem.with_basis(basis.clone()));
        let clock = clock.into_inner().unwrap_or_default();
        let test = TestSet::new(seed, n_test);
        let mut traces = Vec::new();
        let chains = sink.into_chains();
        for (chain, draws) in report.chains.iter().zip(&chains) {
            let posterior = Posterior::new(&problem, std::slice::from_ref(draws))?;
            let errors = test.errors(&posterior, draws, &simulated.x)?;
            let mut trace = test.traces(&posterior)?;
            let learned = (0..problem.table().len()).filter(|&k| !problem.table().is_fixed(k));
            trace.extend(learned.map(|k| draws.theta.iter().map(|theta| theta[k].ln()).collect::<Vec<_>>()));
            traces.push(trace);
            let spent = clock.spent.get(&chain.chain).copied().unwrap_or_default();
            println!(
                "data {seed:3} chain {}: smoothing {:5.2}, prediction {:5.2}, evidence of the start {:8.1}, {:4.1} s to the \
                 start, {:5.1} s in all{}",
                chain.chain,
                errors.smoothing,
                errors.prediction,
                chain.start.as_ref().map_or(f64::NAN, |start| start.log_marginal_likelihood),
                spent.0,
                spent.1,
                if errors.smoothing < RIGHT { "" } else { "  WRONG" }
            );
            if arguments.number("theta") == Some(1) {
                for (k, parameter) in problem.table().parameters.iter().enumerate() {
                    let values: Vec<f64> = draws.theta.iter().map(|theta| theta[k]).collect();
                    println!("    {:24} {}", parameter.name, mean_sd(&values));
                }
            }
            right += u32::from(errors.smoothing < RIGHT);
            smoothing.push(errors.smoothing);
            prediction.push(errors.prediction);
            starts.push(spent.0);
            totals.push(spent.1);
        }
        if traces.len() > 1 {
            let (worst, k) = worst_rhat(&traces);
            agreeing += u32::from(worst <= AGREE);
            let names =
                problem.table().parameters.iter().enumerate().filter(|(k, _)| !problem.table().is_fixed(*k));
            let what = match k.checked_sub(20) {
                None => format!("f at point {k}"),
                Some(k) => names.map(|(_, parameter)| parameter.name.clone()).nth(k).unwrap_or_default(),
            };
            let pooled = test.prediction(&Posterior::new(&problem, &chains)?)?;
            println!(
                "data {seed:3}: largest R-hat {worst:.3} ({what}), prediction of all chains together {pooled:.2}"
            );
            together.push(pooled);
        }
    }
    println!(
        "{kernel}, {engine}: {right} of {} chains right, {agreeing} of {} data sets agree; smoothing {}, prediction {}; {} s to \
         the start, {} s in all",
        smoothing.len(),
        to - from,
        mean_sd(&smoothing),
        mean_sd(&prediction),
        mean_sd(&starts),
        mean_sd(&totals)
    );
    if !together.is_empty() {
        println!("prediction of all chains together {}", mean_sd(&together));
    }
    Ok(())
}
