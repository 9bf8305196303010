//! Default fits of made-up records, of which the hidden states and noise levels are known.
//!
//!     cargo run --release -p gpssm-cli --example made_up -- [--rows 400] [--seeds 1] [--budget 120s] [NAMES]
//!
//! One line for each record: the chosen model, its free run over fresh rows beside the best linear models, how well the drawn
//! states show the true hidden ones after a linear map, and whether the noise of the sensor lies in its 90 % interval.

use std::time::Instant;

use gpssm::linalg::least_squares;
use gpssm::{MemorySink, Posterior, Record, Sequence, prepare, sample};
use gpssm_identify::{Calibration, FittedModel, Layout, ScoreOptions};
use gpssm_io::config::RunFile;
use gpssm_io::{auto, table::Data};

/// Numbers that look random.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A made-up record: inputs, outputs, and the states behind them.
struct Made {
    u: Vec<f64>,
    y: Vec<f64>,
    hidden: Vec<Vec<f64>>,
    /// Of the sensor, where it is Gaussian.
    noise: Option<f64>,
}

const NAMES: [&str; 13] = [
    "tanks",
    "motor",
    "oscillator10",
    "oscillator30",
    "modulus",
    "saturating",
    "counts",
    "binary",
    "integrator",
    "dead_time",
    "resonance",
    "feedback",
    "order10",
];

/// Levels that last for some rows.
fn steps(n: usize, longest: f64, noise: &mut Noise) -> Vec<f64> {
    let mut u = Vec::new();
    while u.len() < n {
        let level = 2.0 * noise.uniform() - 1.0;
        u.extend(std::iter::repeat_n(level, 1 + (longest * noise.uniform()) as usize));
    }
    u.truncate(n);
    u
}

fn sd(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// States of x' = f(x, u), and what is seen of them.
fn run(
    n: usize,
    u: &mut [f64],
    x0: &[f64],
    f: &mut dyn FnMut(&[f64], &mut f64) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let mut x = vec![x0.to_vec()];
    for t in 0..n - 1 {
        x.push(f(&x[t], &mut u[t]));
    }
    x
}

fn column(x: &[Vec<f64>], d: usize) -> Vec<f64> {
    x.iter().map(|x| x[d]).collect()
}

/// y = s + e, the noise this part of the spread of s.
fn seen(x: Vec<Vec<f64>>, d: usize, u: Vec<f64>, part: f64, noise: &mut Noise) -> Made {
    let s = column(&x, d);
    let level = part * sd(&s);
    let y = s.iter().map(|s| s + level * noise.normal()).collect();
    Made { u, y, hidden: x, noise: Some(level) }
}

fn made(name: &str, n: usize, seed: u64) -> Made {
    let mut noise = Noise(1 + 7919 * seed);
    let mut jumps = Noise(5 + 104_729 * seed);
    let mut u = steps(n, 20.0, &mut jumps);
    let oscillator = |u: &mut Vec<f64>, v: &mut Noise| {
        run(n, u, &[0.0, 0.0], &mut |x, u| {
            let force = *u - 0.9 * x[0] - 0.6 * x[0].powi(3) - 0.25 * x[1];
            vec![x[0] + 0.3 * x[1], x[1] + 0.3 * force + 0.02 * v.normal()]
        })
    };
    match name {
        "tanks" => {
            u.iter_mut().for_each(|u| *u = 1.2 + 0.9 * *u);
            let x = run(n, &mut u, &[1.0, 1.0], &mut |x, u| {
                let (a, b) = (x[0].max(0.0).sqrt(), x[1].max(0.0).sqrt());
                vec![
                    (x[0] + 0.25 * (*u - a) + 0.01 * noise.normal()).max(0.0),
                    (x[1] + 0.25 * (a - b) + 0.01 * noise.normal()).max(0.0),
                ]
            });
            seen(x, 1, u, 0.05, &mut noise)
        }
        "motor" => {
            let x = run(n, &mut u, &[0.0, 0.0], &mut |x, u| {
                vec![
                    0.95 * x[0] + 0.3 * x[1] - 0.05 * x[0].tanh() + 0.01 * noise.normal(),
                    0.7 * x[1] - 0.15 * x[0] + 0.5 * *u + 0.01 * noise.normal(),
                ]
            });
            seen(x, 0, u, 0.05, &mut noise)
        }
        "oscillator10" | "oscillator30" => {
            let x = oscillator(&mut u, &mut noise);
            seen(x, 0, u, if name.ends_with("30") { 0.3 } else { 0.1 }, &mut noise)
        }
        "modulus" => {
            let x = oscillator(&mut u, &mut noise);
            let s = column(&x, 0);
            let level = 0.03 * sd(&s);
            let y = s.iter().map(|s| s.abs() + level * noise.normal()).collect();
            Made { u, y, hidden: x, noise: Some(level) }
        }
        "saturating" => {
            let x = oscillator(&mut u, &mut noise);
            let s = column(&x, 0);
            let (level, limit) = (0.03 * sd(&s), 0.8 * sd(&s));
            let y = s.iter().map(|s| (s + level * noise.normal()).min(limit)).collect();
            Made { u, y, hidden: x, noise: None }
        }
        "counts" | "binary" => {
            let x = run(n, &mut u, &[0.0], &mut |x, u| vec![0.85 * x[0] + 0.5 * *u + 0.05 * noise.normal()]);
            let poisson = |rate: f64, noise: &mut Noise| {
                let (mut k, mut p) = (0.0, noise.uniform());
                while p > (-rate).exp() {
                    (k, p) = (k + 1.0, p * noise.uniform());
                }
                k
            };
            let y = x.iter().map(|x| match name {
                "counts" => poisson((0.8 + 0.8 * x[0]).exp(), &mut noise),
                _ => f64::from(u8::from(noise.uniform() < 1.0 / (1.0 + (-2.5 * x[0]).exp()))),
            });
            let y = y.collect();
            Made { u, y, hidden: x, noise: None }
        }
        "integrator" => {
            let x = run(n, &mut u, &[0.0], &mut |x, u| {
                *u -= 0.05 * x[0];
                vec![x[0] + 0.3 * *u + 0.01 * noise.normal()]
            });
            seen(x, 0, u, 0.02, &mut noise)
        }
        "dead_time" => {
            let late: Vec<f64> = (0..n).map(|t| if t < 6 { 0.0 } else { u[t - 6] }).collect();
            let mut t = 0;
            let x = run(n, &mut u, &[0.0], &mut |x, _| {
                t += 1;
                vec![0.85 * x[0] + 0.3 * late[t - 1] + 0.02 * noise.normal()]
            });
            seen(x, 0, u, 0.05, &mut noise)
        }
        "resonance" => {
            let x = run(n, &mut u, &[0.0, 0.0, 0.0], &mut |x, u| {
                let (c, s) = (0.985 * 0.6f64.cos(), 0.985 * 0.6f64.sin());
                vec![
                    c * x[0] - s * x[1] + 0.2 * *u + 0.01 * noise.normal(),
                    s * x[0] + c * x[1] + 0.1 * *u,
                    0.9 * x[2] + 0.2 * x[0],
                ]
            });
            let sum: Vec<Vec<f64>> = x.iter().map(|x| vec![x[0] + 0.5 * x[2], x[1], x[2]]).collect();
            seen(sum, 0, u, 0.1, &mut noise)
        }
        "feedback" => {
            let x = run(n, &mut u, &[0.0], &mut |x, u| {
                *u = 0.5 * *u - 0.8 * x[0];
                vec![1.05 * x[0] + 0.5 * *u + 0.02 * noise.normal()]
            });
            seen(x, 0, u, 0.05, &mut noise)
        }
        // Many lags of a colored disturbance: least squares of a high order is unstable now and then.
        _ => {
            let mut past = [0.0; 10];
            let x = run(n, &mut u, &[0.0, 0.0], &mut |x, u| {
                past.rotate_right(1);
                past[0] = noise.normal();
                let color: f64 = past.iter().sum::<f64>() / 10.0;
                vec![1.6 * x[0] - 0.8 * x[1] + 0.2 * *u + 0.05 * color, x[0]]
            });
            seen(x, 0, u, 0.3, &mut noise)
        }
    }
}

/// Correlation of a state with the best linear map of drawn ones.
fn correlation(truth: &[f64], drawn: &[Vec<f64>]) -> f64 {
    let rows: Vec<Vec<f64>> = drawn.iter().map(|x| x.iter().copied().chain([1.0]).collect()).collect();
    let (_, square, _) = least_squares(&rows, truth);
    let total = sd(truth).powi(2) * truth.len() as f64;
    (1.0 - square / total).max(0.0).sqrt()
}

fn fit(name: &str, rows: usize, seed: u64, budget: &str) -> Result<(), Box<dyn std::error::Error>> {
    let made = made(name, 2 * rows, seed);
    let part = |from: usize, to: usize| Sequence::scalar(&made.y[from..to], Some(&made.u[from..to]));
    let (training, test): (Record, Sequence) = (part(0, rows)?.into(), part(rows, 2 * rows)?);
    let data = Data::from_record(training.clone(), vec!["y".into()], vec!["u".into()], "made_up");
    let mut file = RunFile::new();
    for (option, text) in [("--y", "y"), ("--u", "u"), ("--states", "auto"), ("--budget", budget)] {
        file.option(option, text)?;
    }
    let began = Instant::now();
    let (config, choice) = auto::choose(&file.config()?, &data, &|key| file.is_given(key), &|_, _| true);
    let chosen_after = began.elapsed().as_secs_f64();
    let columns = config.data.columns();
    let layout = Layout {
        input_lags: columns.input_lags.unwrap_or(0),
        delay: columns.delay.unwrap_or(1),
        every: columns.every.unwrap_or(1),
    };
    let seen = Data::from_record(
        layout.apply_to(&training)?,
        vec!["y".into()],
        layout.names(&["u".into()]),
        "made_up",
    );
    let resolved = file.resolve(&config, &seen)?;
    let problem = prepare(&resolved.problem, &resolved.settings)?;
    let sink = MemorySink::new();
    let report = sample(&problem, &resolved.settings, &sink, &|_| true)?;
    let chains = sink.into_chains();
    let posterior = Posterior::new(&problem, &chains)?;
    let calibration = resolved.calibration.clone().unwrap_or_default();
    let fitted = FittedModel::new(posterior, layout, calibration.clone(), Some(training))?;
    let scores = fitted.score(&test, &ScoreOptions::default(), &|_, _| true)?;
    let of = |name: &str| scores.named(name).and_then(|s| s.outputs.first()).map_or(f64::NAN, |s| s.rmse);
    let linear = of("linear state space").min(of("ARX by BIC")).min(of("ARX by free runs"));
    let inside =
        scores.scores[0].outputs[0].coverage.iter().find(|c| c.level == 0.9).map_or(0.0, |c| c.share);
    // The mean path over the draws, in rows of the model.
    let (n_x, n) = (problem.n_x(), problem.sequences()[0].n_rows());
    let draws: Vec<&Vec<f64>> =
        chains.iter().flat_map(|chain| chain.paths.iter().map(|paths| &paths[0])).collect();
    let mean: Vec<Vec<f64>> = (0..n)
        .map(|t| {
            let at = |d: usize| {
                draws.iter().map(|path| path[t * n_x + d]).sum::<f64>() / draws.len().max(1) as f64
            };
            (0..n_x).map(at).collect()
        })
        .collect();
    let shown: Vec<String> = (0..made.hidden[0].len())
        .map(|d| {
            let truth: Vec<f64> = (0..n).map(|t| made.hidden[t * layout.every][d]).collect();
            format!("{:.3}", correlation(&truth, &mean))
        })
        .collect();
    let sensor = problem.table().parameters.iter().position(|p| p.sensor && p.name.starts_with("sensor"));
    let interval = sensor.map(|k| {
        let mut values: Vec<f64> = chains.iter().flat_map(|c| c.theta.iter().map(|theta| theta[k])).collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |p: f64| values[((values.len() - 1) as f64 * p) as usize];
        (at(0.05), at(0.5), at(0.95))
    });
    let noise = match (made.noise, interval) {
        (Some(truth), Some((low, middle, high))) => {
            let verdict = if (low..=high).contains(&truth) { "in" } else { "out of" };
            format!("{truth:.4} {verdict} {low:.4} .. {high:.4} ({middle:.4})")
        }
        _ => "-".into(),
    };
    println!(
        "{name} {seed}: {}; RMSE {:.4}, linear {linear:.4}, constant {:.4}; {:.0} % in 90 %, scale {:.2}; states {}; \
         sensor {noise}; choice {chosen_after:.0} s, all {:.0} s, {:?}, {} draws",
        choice.winner().map_or_else(|| "none".into(), |w| w.candidate.describe()),
        of("model"),
        of("constant"),
        100.0 * inside,
        if calibration == Calibration::default() { 1.0 } else { calibration.scale },
        shown.join(" "),
        began.elapsed().as_secs_f64(),
        report.ended,
        draws.len(),
    );
    for note in &choice.notes {
        println!("    {note}");
    }
    let mut ranked: Vec<_> = choice.trials.iter().filter_map(|t| Some((t.crps?, t))).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (crps, trial) in ranked
        .iter()
        .take(5)
        .chain(ranked.iter().filter(|(_, t)| t.candidate.describe().contains("state-space")))
    {
        println!(
            "    {crps:.4} {:.4?} {:.1} s {}",
            trial.by_fold,
            trial.elapsed.0,
            trial.candidate.describe()
        );
    }
    Ok(())
}

fn main() {
    let mut words = std::env::args().skip(1);
    let (mut rows, mut seeds, mut budget, mut names) = (400, 1, "120s".to_owned(), Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rows" => rows = words.next().and_then(|n| n.parse().ok()).unwrap_or(rows),
            "--seeds" => seeds = words.next().and_then(|n| n.parse().ok()).unwrap_or(seeds),
            "--budget" => budget = words.next().unwrap_or(budget),
            _ => names.push(word),
        }
    }
    if names.is_empty() {
        names = NAMES.map(String::from).into();
    }
    for name in &names {
        for seed in 0..seeds {
            if let Err(error) = fit(name, rows, seed, &budget) {
                println!("{name} {seed}: {error}");
            }
        }
    }
}
