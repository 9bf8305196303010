//! The distilled model against the mixture, on the benchmark of the paper's section 6.1.

use gpssm::posterior::{DistilOptions, Distilled, DistilledFunction, DistilledRows, Target, WeightedDraw};
use gpssm::{Functions, MemorySink, Model, Posterior, Problem, Sequence, Settings, sample};
use gpssm_dev::benchmark::{self, Simulated};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

const T: usize = benchmark::T;

fn problem(seed: u64) -> Problem {
    let record = benchmark::simulate(seed, T).record().unwrap();
    Problem::new(benchmark::model(benchmark::kernel()), &Functions::new(), record).unwrap()
}

/// Draws near the truth: the true path with errors of its smoothing distribution's size, and theta near what is learned.
fn near_truth(seed: u64) -> Posterior {
    let problem = problem(seed);
    let x = benchmark::simulate(seed, T).x;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move || rng.sample::<f64, _>(StandardNormal);
    let draws = (0..30).map(|_| {
        let theta = problem.table().parameters.iter().map(|parameter| {
            let center: f64 = match parameter.name.as_str() {
                name if name.contains("ell") => 3.0,
                name if name.contains("linear") => 2.0,
                name if name.contains("process") => 3.0,
                name if name.contains("sensor") => 1.0,
                _ => 8.0,
            };
            center * (0.2 * normal()).exp()
        });
        let theta = theta.collect();
        WeightedDraw { theta, paths: vec![x.iter().map(|x| x + 0.7 * normal()).collect()], weight: 1.0 }
    });
    let draws = draws.collect();
    Posterior::from_draws(&problem, draws).unwrap()
}

/// RMSE of the distilled mean against the mixture mean, over the sd of the latter, on a fresh record; the same for the sd.
fn errors(posterior: &Posterior, distilled: &Distilled, seed: u64) -> (f64, f64) {
    let Simulated { x, u, .. } = benchmark::simulate(seed, T);
    let points: Vec<Vec<f64>> = x[..T].iter().map(|x| vec![*x]).collect();
    let inputs: Vec<Vec<f64>> = u[..T].iter().map(|u| vec![*u]).collect();
    let mixture = posterior.predict(&points, &inputs, Target::Function).unwrap();
    let mut function = DistilledFunction::new(distilled).unwrap();
    let (mut square, mut sd_square, mut sds, mut values) = (0.0, 0.0, 0.0, Vec::new());
    for t in 0..T {
        let (mut mean, mut variance) = ([0.0], [0.0]);
        function.evaluate(&[x[t]], &[u[t]], &mut mean, &mut variance);
        square += (mean[0] - mixture.mean(t)[0]).powi(2) / T as f64;
        sd_square += (variance[0].sqrt() - mixture.sd(t, 0)).powi(2) / T as f64;
        sds += mixture.sd(t, 0) / T as f64;
        values.push(mixture.mean(t)[0]);
    }
    let center = values.iter().sum::<f64>() / T as f64;
    let sd = (values.iter().map(|v| (v - center).powi(2)).sum::<f64>() / T as f64).sqrt();
    (square.sqrt() / sd, sd_square.sqrt() / sds)
}

/// 50 inducing inputs: the mean within 5 % of the function's sd over fresh test inputs. Seen failing without the linear part
/// and with inducing inputs taken in order.
#[test]
fn fifty_inducing_inputs_follow_the_mixture() {
    let posterior = near_truth(1);
    let distilled = posterior.distil(&DistilOptions { size: Some(50), ..DistilOptions::default() }).unwrap();
    let (mean, sd) = errors(&posterior, &distilled, 77);
    println!("mean {mean:.4} sd {sd:.4} reported {:?}", distilled.loss);
    assert!(mean < 0.05 && sd < 0.3, "{mean} {sd}");
    assert!((distilled.loss.mean_error[0] / mean).ln().abs() < 1.5, "{:?} {mean}", distilled.loss);
    // Few inputs lose more, and say so.
    let coarse = posterior
        .distil(&DistilOptions { size: Some(6), max_loss: None, ..DistilOptions::default() })
        .unwrap();
    assert!(coarse.loss.mean_error[0] > 2.0 * distilled.loss.mean_error[0]);
    // Jacobian against differences.
    let mut function = DistilledFunction::new(&distilled).unwrap();
    let mut mean_at = |x: f64, u: f64| {
        let (mut mean, mut variance) = ([0.0], [0.0]);
        function.evaluate(&[x], &[u], &mut mean, &mut variance);
        mean[0]
    };
    let h = 1e-4;
    let by_x = (mean_at(1.3 + h, 0.2) - mean_at(1.3 - h, 0.2)) / (2.0 * h);
    let by_u = (mean_at(1.3, 0.2 + h) - mean_at(1.3, 0.2 - h)) / (2.0 * h);
    let mut jacobian = [0.0; 2];
    function.jacobian(&[1.3], &[0.2], &mut jacobian);
    assert!((jacobian[0] - by_x).abs() < 1e-3 * by_x.abs().max(1.0), "{jacobian:?} {by_x}");
    assert!((jacobian[1] - by_u).abs() < 1e-3 * by_u.abs().max(1.0), "{jacobian:?} {by_u}");
}

#[test]
fn other_versions_and_broken_sizes_are_refused() {
    let posterior = near_truth(2);
    let options = DistilOptions { size: Some(5), cloud: 50, max_loss: None, ..DistilOptions::default() };
    let good = posterior.distil(&options).unwrap();
    let refuse = |change: &dyn Fn(&mut Distilled)| {
        let mut bad = good.clone();
        change(&mut bad);
        DistilledFunction::new(&bad).unwrap_err().to_string()
    };
    assert!(refuse(&|d| d.version = 1).contains("version 1"));
    assert!(refuse(&|d| d.states.clear()).contains("do not fit"));
    assert!(refuse(&|d| d.process_noise.clear()).contains("do not fit"));
}

/// The real thing: a fit of the benchmark. `cargo test --release -p gpssm --test posterior -- --ignored fitted --nocapture`
#[test]
#[ignore = "long"]
fn a_fitted_benchmark_is_distilled() {
    let problem = problem(3);
    let settings = Settings { seed: 3, chains: 2, tune: 100, draws: Some(50), ..Settings::default() };
    let sink = MemorySink::new();
    sample(&problem, &settings, &sink, &|_| true).unwrap();
    let posterior = Posterior::new(&problem, &sink.into_chains()).unwrap();
    let distilled = posterior.distil(&DistilOptions { size: Some(50), ..DistilOptions::default() }).unwrap();
    let (mean, sd) = errors(&posterior, &distilled, 1_000_003);
    println!("fitted: mean {mean:.4} sd {sd:.4} reported {:?}", distilled.loss);
    assert!(mean < 0.05, "{mean}");
}

/// A tank behind a hidden one: the level x1 is measured, the other, x2, is not.
const N: usize = 160;

fn hidden_tank() -> (Problem, Vec<[f64; 2]>) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut x, mut path, mut y, mut u) = ([0.0, 0.0], Vec::new(), Vec::new(), Vec::new());
    for t in 0..N {
        let input =
            if (t / 9) % 2 == 0 { 0.8 } else { -0.6 } * (1.0 + 0.3 * rng.sample::<f64, _>(StandardNormal));
        let mut noise = |sd: f64| sd * rng.sample::<f64, _>(StandardNormal);
        path.push(x);
        y.push(x[0] + noise(0.02));
        u.push(input);
        x = [0.8 * x[0] + 0.6 * x[1].tanh() + noise(0.01), 0.7 * x[1] + 0.6 * input + noise(0.01)];
    }
    let record = Sequence::scalar(&y, Some(&u)).unwrap();
    let model = Model { symmetries: Vec::new(), ..Model::with_hidden_states(2, 1, 1) };
    (Problem::new(model, &Functions::new(), record.into()).unwrap(), path)
}

/// Draws near the truth, the hidden state of each in its own coordinates: x2 becomes `scale` x2 + `shear` x1.
fn in_own_coordinates(n: usize, coordinates: &dyn Fn(usize) -> (f64, f64)) -> Posterior {
    let (problem, path) = hidden_tank();
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut normal = move || rng.sample::<f64, _>(StandardNormal);
    let draws = (0..n).map(|j| {
        let (scale, shear) = coordinates(j);
        let size = |name: &str| if name.contains("x2") { scale.abs() } else { 1.0 };
        let theta = problem.table().parameters.iter().map(|parameter| {
            let name = parameter.name.as_str();
            let (role, place) = name.split_once('[').unwrap_or((name, ""));
            let (state, component) = place.trim_end_matches(']').split_once(", ").unwrap_or((place, place));
            let center = match role {
                role if role.contains("ell") => 2.0 * size(component),
                "process_sd" => 0.02 * size(state),
                "sensor_sd" => 0.02,
                _ => 1.0 * size(state),
            };
            center * (0.1 * normal()).exp()
        });
        let theta = theta.collect();
        let path = path.iter().flat_map(|x| {
            let x = [x[0] + 0.01 * normal(), x[1] + 0.01 * normal()];
            [x[0], scale * x[1] + shear * x[0]]
        });
        WeightedDraw { theta, paths: vec![path.collect()], weight: 1.0 }
    });
    let draws = draws.collect();
    Posterior::from_draws(&problem, draws).unwrap()
}

/// Hidden states with other signs, scales and mixes are brought together before f is averaged. Seen failing without the
/// alignment: the fit of the free run falls from 97.5 to -0.7 %.
#[test]
fn hidden_states_are_brought_to_the_same_coordinates() {
    type Wave<'a> = &'a dyn Fn(usize) -> (f64, f64);
    let cases: [(&str, Wave, bool); 4] = [
        ("the same", &|_| (1.0, 0.0), false),
        ("flipped", &|j| (if j % 2 == 0 { 1.0 } else { -1.0 }, 0.0), true),
        ("scaled", &|j| ([1.0, 0.4, 2.5, -1.5][j % 4], 0.0), true),
        ("sheared", &|j| ([1.0, -0.8, 1.4][j % 3], [0.0, 0.7, -0.5][j % 3]), true),
    ];
    for (name, coordinates, mapped) in cases {
        let posterior = in_own_coordinates(24, coordinates);
        let distilled =
            posterior.distil(&DistilOptions { max_loss: None, ..DistilOptions::default() }).unwrap();
        let loss = &distilled.loss;
        println!("{name}: {loss:?}");
        let free_run = loss.free_run.as_ref().unwrap();
        assert!(free_run.distilled_fit[0].unwrap() > 85.0, "{name}: {free_run:?}");
        assert!(loss.largest().unwrap().2 < 3.0, "{name}: {loss:?}");
        assert_eq!((loss.n_draws, loss.n_left_out), (24, 0), "{name}");
        assert_eq!(loss.n_mapped > 0, mapped, "{name}: {}", loss.n_mapped);
        assert!(distilled.largest_size() <= 50);
    }
}

/// Draws whose hidden state is another one are left out; where too few are left, there is no mixture to distil.
#[test]
fn draws_of_other_solutions_are_left_out() {
    let alien = |posterior: &Posterior, which: &dyn Fn(usize) -> bool| {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let mut draws = posterior.draws().to_vec();
        for (_, draw) in draws.iter_mut().enumerate().filter(|(j, _)| which(*j)) {
            let path = draw.paths[0].chunks_exact_mut(2);
            path.for_each(|x| x[1] = 0.5 * rng.sample::<f64, _>(StandardNormal));
        }
        Posterior::from_draws(posterior.problem(), draws).unwrap()
    };
    let posterior = in_own_coordinates(20, &|j| (if j % 2 == 0 { 1.0 } else { -1.0 }, 0.0));
    let some = alien(&posterior, &|j| j % 4 == 1);
    let distilled = some.distil(&DistilOptions::default()).unwrap();
    assert_eq!((distilled.loss.n_draws, distilled.loss.n_left_out), (15, 5));
    // Every other draw has a hidden state with dynamics of its own.
    let mut draws = posterior.draws().to_vec();
    for (j, draw) in draws.iter_mut().enumerate().skip(1) {
        let (mut x, pole) = (0.0, 0.1 * j as f64 - 1.0);
        for t in 0..N {
            draw.paths[0][2 * t + 1] = x;
            x = pole * x + posterior.problem().record().sequences()[0].u(t)[0];
        }
    }
    let all_different = Posterior::from_draws(posterior.problem(), draws).unwrap();
    let error = all_different.distil(&DistilOptions::default()).unwrap_err().to_string();
    assert!(error.contains("of 20 draws agree") && error.contains("Fit again"), "{error}");
}

/// A model that loses more fit than allowed is refused, in one line that says what to do; the same model passes where the
/// loss is allowed.
#[test]
fn a_loss_above_the_limit_is_refused() {
    let posterior = in_own_coordinates(10, &|_| (1.0, 0.0));
    let tiny = DistilOptions { size: Some(1), max_loss: Some(0.5), ..DistilOptions::default() };
    let error = posterior.distil(&tiny).unwrap_err().to_string();
    assert!(
        error.contains("loses more than 0.5 percentage points") && error.contains("size, now 1"),
        "{error}"
    );
    assert!(!error.contains('\n'));
    let allowed = posterior.distil(&DistilOptions { max_loss: None, ..tiny }).unwrap();
    assert!(allowed.loss.largest().unwrap().2 > 0.5);
}

/// The file is all that is needed: it comes back as it was, and says how outputs follow from states in original units.
#[test]
fn the_file_is_complete() {
    let posterior = in_own_coordinates(10, &|_| (1.0, 0.0));
    let rows =
        DistilledRows { sampling_time: Some(0.5), time_unit: Some("s".into()), ..DistilledRows::default() };
    let options = DistilOptions { rows: rows.clone(), ..DistilOptions::default() };
    let distilled = posterior.distil(&options).unwrap();
    let text = serde_json::to_string(&distilled).unwrap();
    let read: Distilled = serde_json::from_str(&text).unwrap();
    assert_eq!(read, distilled);
    assert_eq!((read.version, read.n_y, &read.rows), (2, 1, &rows));
    let names = [&read.state_names[..], &read.input_names, &read.output_names].concat();
    assert_eq!(names, ["x1", "x2", "u", "y"]);
    let linear = read.sensor.unwrap().linear.unwrap();
    let near =
        |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9) && a.len() == b.len();
    assert!(
        near(&linear.c, &[1.0, 0.0]) && near(&linear.d, &[0.0]) && near(&linear.offset, &[0.0]),
        "{linear:?}"
    );
    let noise = read.theta_names.iter().position(|name| name.starts_with("sensor_sd")).unwrap();
    assert!((linear.noise[0].sqrt() / read.theta[noise] - 1.0).abs() < 1e-9);
    // A file of the version before says so.
    let old = text.replacen("\"version\":2", "\"version\":1", 1);
    let old: Distilled = serde_json::from_str(&old).unwrap();
    assert!(DistilledFunction::new(&old).unwrap_err().to_string().contains("version 1"));
}
