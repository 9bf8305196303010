//! Speed of what is done with the draws, one JSON object a line; times are the best of several runs; predictions use all cores, the rest one.
//!
//! `cargo bench -p gpssm --bench posterior`, or with `-- predict` its first part alone. Draws are made up: a path of the paper's benchmark with errors, T = 200.

use std::time::Instant;

use gpssm::kernel::MATERN32;
use gpssm::model::{
    FunctionSpec, InitialSpec, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec,
    TransitionSpec,
};
use gpssm::posterior::{
    DistilOptions, DistilledFunction, Initial, OnlineFilter, OnlineOptions, SimulateOptions, Target,
    WeightedDraw,
};
use gpssm::smc::Proposal;
use gpssm::{Error, Functions, KernelSpec, Model, Points, Posterior, Prior, Problem, Sequence};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

const T: usize = 200;

fn posterior(n_draws: usize) -> Result<Posterior, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut normal = |sd: f64| sd * rng.sample::<f64, _>(StandardNormal);
    let u: Vec<f64> = (0..=T).map(|t| (1.2 * (t as f64 + 1.0)).cos()).collect();
    let mut x = vec![0.3];
    for t in 0..T {
        x.push(0.5 * x[t] + 25.0 * x[t] / (1.0 + x[t] * x[t]) + 8.0 * u[t] + normal(3.0));
    }
    let fixed = |value: f64| Prior::Fixed { value };
    let scale = |value: f64| vec![ScalePrior::on_sd(fixed(value))];
    let kernel =
        KernelSpec::new(&MATERN32).with("sigma_f", fixed(10.0)).with("ell", vec![fixed(4.0), fixed(2.0)]);
    let transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    let model = Model {
        states: vec![StateSpec { transition, scale: None }],
        process_noise: ProcessNoiseSpec::Diagonal(scale(3.0)),
        sensor: SensorSpec::Gaussian {
            mean: Default::default(),
            noise: SensorNoiseSpec::Diagonal(scale(1.0)),
        },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![5.0] },
        ..Model::observed(1, 1)
    };
    let problem = Problem::new(model, &Functions::new(), Sequence::scalar(&x, Some(&u))?.into())?;
    let theta = problem.table().sample(&mut ChaCha8Rng::seed_from_u64(0))?;
    let draws = (0..n_draws).map(|_| WeightedDraw {
        theta: theta.clone(),
        paths: vec![x.iter().map(|x| x + normal(1.0)).collect()],
        weight: 1.0,
    });
    let draws = draws.collect();
    Posterior::from_draws(&problem, draws)
}

/// Seconds of the fastest of `n` runs.
fn best(n: usize, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut seconds = f64::INFINITY;
    for _ in 0..n {
        let began = Instant::now();
        run()?;
        seconds = seconds.min(began.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn main() -> Result<(), Error> {
    let posterior = posterior(100)?;
    let mut z = Points::new(2);
    (0..10_000).for_each(|i| z.push(&[-20.0 + 0.004 * f64::from(i), (0.1 * f64::from(i)).cos()]));
    let began = Instant::now();
    posterior.predict_at(&Points::from_rows(2, [&[0.0, 0.0][..]]), Target::Function)?;
    println!(r#"{{"what":"100 factors, T = 200","seconds":{:.4}}}"#, began.elapsed().as_secs_f64());
    let seconds = best(5, || posterior.predict_at(&z, Target::Function).map(drop))?;
    println!(r#"{{"what":"predict, 100 draws, 10000 points","seconds":{seconds:.4}}}"#);
    if std::env::args().any(|argument| argument == "predict") {
        return Ok(());
    }

    let inputs: Vec<Vec<f64>> = (0..T).map(|t| vec![(1.2 * t as f64).cos()]).collect();
    let options = SimulateOptions { n_paths: 200, ..SimulateOptions::default() };
    let seconds = best(3, || posterior.simulate(&inputs, &Initial::Model, &options, &|_, _| true).map(drop))?;
    println!(r#"{{"what":"simulate, a path of 200 steps","milliseconds":{:.3}}}"#, 1e3 * seconds / 200.0);

    let options = OnlineOptions { functions: 20, particles: 20, ..OnlineOptions::default() };
    let mut filter = OnlineFilter::new(&posterior, &Initial::Model, &options)?;
    let mut t = 0.0;
    for _ in 0..2 {
        let seconds = best(5, || {
            for _ in 0..100 {
                t += 1.0;
                filter.step(&[10.0 * f64::sin(0.4 * t)], &[f64::cos(1.2 * t)])?;
            }
            Ok(())
        })?;
        let step = 1e6 * seconds / 100.0;
        println!(
            r#"{{"what":"online step, 20 functions of 20 particles, 256 waves","after":{t},"microseconds":{step:.1}}}"#
        );
    }

    let distilled = posterior.distil(&DistilOptions { size: Some(50), ..DistilOptions::default() })?;
    let mut function = DistilledFunction::new(&distilled)?;
    let (mut mean, mut variance, mut jacobian) = ([0.0], [0.0], [0.0; 2]);
    let mut sum = 0.0;
    let seconds = best(5, || {
        for i in 0..10_000 {
            function.evaluate(&[-20.0 + 0.004 * f64::from(i)], &[0.5], &mut mean, &mut variance);
            sum += mean[0] + variance[0];
        }
        Ok(())
    })?;
    println!(
        r#"{{"what":"distilled, 50 inducing inputs, mean and variance","microseconds":{:.3}}}"#,
        1e2 * seconds
    );
    let seconds = best(5, || {
        for i in 0..10_000 {
            function.jacobian(&[-20.0 + 0.004 * f64::from(i)], &[0.5], &mut jacobian);
            sum += jacobian[0];
        }
        Ok(())
    })?;
    println!(r#"{{"what":"distilled, 50 inducing inputs, jacobian","microseconds":{:.3}}}"#, 1e2 * seconds);
    let mut filter = OnlineFilter::from_distilled(&distilled, posterior.problem(), 100, Proposal::Auto, 1)?;
    let seconds = best(5, || {
        for _ in 0..100 {
            t += 1.0;
            filter.step(&[10.0 * f64::sin(0.4 * t)], &[f64::cos(1.2 * t)])?;
        }
        Ok(())
    })?;
    println!(r#"{{"what":"distilled filter step, 100 particles","microseconds":{:.1}}}"#, 1e4 * seconds);
    println!(r#"{{"what":"check","sum":{sum:.3}}}"#);
    Ok(())
}
