//! Figure 3 of the paper: a cart with a free pendulum, learned from 100 noisy observations of its four states.
//!
//! The equations and parameters are those of Deisenroth, *Efficient Reinforcement Learning using Gaussian Processes*
//! (2010), appendix C: cart 0.5 kg, pendulum 0.5 kg and 0.6 m long, friction 0.1 N s/m, g = 9.82 m/s^2; the angle is
//! counted from the hanging position. Small random disturbances act between observations, as the model assumes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use gpssm::posterior::Posterior;
use gpssm::posterior::predict::Target;
use gpssm::{Points, Record, Sequence};
use gpssm_report::figures::{OneStepSeries, figure_one_step};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;
use serde_json::json;

use super::fitted::Task;
use crate::args::Speech;
use crate::failure::Failure;
use crate::monitor::Voice;
use crate::table::{Table, number};

const M_CART: f64 = 0.5;
const M_POLE: f64 = 0.5;
const LENGTH: f64 = 0.6;
const FRICTION: f64 = 0.1;
const GRAVITY: f64 = 9.82;
/// Seconds between observations.
const DT: f64 = 0.1;
/// Runge-Kutta steps between observations.
const STEPS: usize = 10;
/// Largest force, N.
const FORCE: f64 = 10.0;
/// Standard deviation of the observations: m, m/s, rad/s, rad.
const NOISE: [f64; 4] = [0.001, 0.01, 0.02, 0.002];
/// Standard deviation of the disturbances between observations, the same units.
const DISTURBANCE: [f64; 4] = [0.004, 0.06, 0.2, 0.012];
const NAMES: [&str; 4] = ["position", "velocity", "angular_velocity", "angle"];
const UNITS: [&str; 4] = ["m", "m/s", "rad/s", "rad"];
const TRAINING: usize = 100;
const TEST: usize = 500;
/// Times that are drawn.
const SHOWN: usize = 200;

/// The noise of the instruments is about known: without that, disturbances could pass for noise and the bands of the
/// next state would be too narrow.
const RUN_FILE: &str = r#"
[model]
kernel = "se + linear"
mean = "identity"
sensor = { noise = [
    "log_normal(0.001, 0.3)", "log_normal(0.01, 0.3)", "log_normal(0.02, 0.3)", "log_normal(0.002, 0.3)",
] }
"#;

/// Arguments of `gpssm reproduce cartpole`.
#[derive(Debug, Args)]
pub struct CartpoleArgs {
    /// Seed of data and sampler.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Fewer draws: a look, not a result.
    #[arg(long)]
    pub quick: bool,
    /// Folder for the figure.
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-cartpole")]
    pub out: PathBuf,
    /// What is said.
    #[command(flatten)]
    pub speech: Speech,
}

type State = [f64; 4];

/// Time derivatives of (position, velocity, angular velocity, angle) under a force.
fn derivative(x: &State, force: f64) -> State {
    let [_, velocity, spin, angle] = *x;
    let (sin, cos) = angle.sin_cos();
    let total = M_CART + M_POLE;
    let push = force - FRICTION * velocity;
    let acceleration =
        (2.0 * M_POLE * LENGTH * spin * spin * sin + 3.0 * M_POLE * GRAVITY * sin * cos + 4.0 * push)
            / (4.0 * total - 3.0 * M_POLE * cos * cos);
    let angular =
        (-3.0 * M_POLE * LENGTH * spin * spin * sin * cos - 6.0 * total * GRAVITY * sin - 6.0 * push * cos)
            / (4.0 * LENGTH * total - 3.0 * M_POLE * LENGTH * cos * cos);
    [velocity, acceleration, angular, spin]
}

/// The state one observation later, by Runge-Kutta of order four.
fn step(x: &State, force: f64) -> State {
    let h = DT / STEPS as f64;
    let along = |x: &State, d: &State, h: f64| -> State { std::array::from_fn(|i| x[i] + h * d[i]) };
    let mut x = *x;
    for _ in 0..STEPS {
        let a = derivative(&x, force);
        let b = derivative(&along(&x, &a, 0.5 * h), force);
        let c = derivative(&along(&x, &b, 0.5 * h), force);
        let d = derivative(&along(&x, &c, h), force);
        x = std::array::from_fn(|i| x[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]));
    }
    x
}

/// States and forces. The force is random, pulls back a cart that is far away, and takes a part of the swing out of the
/// pendulum, which has no friction of its own: it swings widely but does not turn over.
fn simulate(rng: &mut ChaCha8Rng, rows: usize) -> (Vec<State>, Vec<f64>) {
    let (mut x, mut u) = (vec![[0.0; 4]], Vec::new());
    for t in 0..rows {
        let [position, velocity, spin, angle] = x[t];
        let noise: f64 = rng.sample(StandardNormal);
        let force = 0.28 * FORCE * noise - position - velocity + 0.3 * spin * angle.cos();
        u.push(force.clamp(-FORCE, FORCE));
        let next = step(&x[t], u[t]);
        x.push(std::array::from_fn(|d| next[d] + DISTURBANCE[d] * rng.sample::<f64, _>(StandardNormal)));
    }
    x.truncate(rows);
    (x, u)
}

/// Runs the command; the exit code.
pub fn run(args: &CartpoleArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    std::fs::create_dir_all(&args.out).map_err(|error| Failure::writing(&args.out, &error))?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let (x, u) = simulate(&mut rng, TRAINING);
    let mut noisy = |x: &State| -> Vec<f64> {
        x.iter().zip(NOISE).map(|(x, sd)| x + sd * rng.sample::<f64, _>(StandardNormal)).collect()
    };
    let y: Vec<Vec<f64>> = x.iter().map(&mut noisy).collect();
    let record = Record::new(vec![Sequence::new(y.clone(), u.iter().map(|u| vec![*u]).collect())?])?;
    let (tune, draws) = if args.quick { (40, 40) } else { (80, 120) };
    let fitted = Task {
        run_file: RUN_FILE,
        name: "cartpole",
        set: vec![
            format!("sampler.seed={}", args.seed),
            format!("sampler.draws={draws}"),
            format!("sampler.tune={tune}"),
            "sampler.chains=2".into(),
        ],
        record,
        outputs: NAMES.iter().map(|name| (*name).to_owned()).collect(),
        inputs: vec!["force".into()],
        voice: Voice::choose(args.speech.quiet || args.speech.json),
        stop: stop.clone(),
    }
    .fit()?;

    let mut rng = ChaCha8Rng::seed_from_u64(args.seed ^ 0x7465_7374_0000_0000);
    let (x_test, u_test) = simulate(&mut rng, TEST + 1);
    let posterior = Posterior::new(&fitted.problem, &super::table1::thinned(&fitted.chains, 100))?;
    let mut z = Points::new(5);
    for t in 0..TEST {
        z.push(&[x_test[t].as_slice(), &[u_test[t]]].concat());
    }
    let found = posterior.predict_at(&z, Target::NextState)?;
    let linear = least_squares(&y, &u);
    let distance = distances(&z, &x, &u);
    let mut rows = Vec::new();
    let (mut states, mut errors) = (Vec::new(), Vec::new());
    for d in 0..4 {
        let truth: Vec<f64> = (0..TEST).map(|t| x_test[t + 1][d]).collect();
        let mean: Vec<f64> = (0..TEST).map(|t| found.mean(t)[d]).collect();
        let sd: Vec<f64> = (0..TEST).map(|t| found.sd(t, d)).collect();
        let rmse = |value: &dyn Fn(usize) -> f64| {
            ((0..TEST).map(|t| (value(t) - truth[t]).powi(2)).sum::<f64>() / TEST as f64).sqrt()
        };
        let inside = (0..TEST).filter(|t| (mean[*t] - truth[*t]).abs() <= sd[*t]).count();
        rows.push(Outcome {
            state: NAMES[d],
            rmse: rmse(&|t| mean[t]),
            identity: rmse(&|t| x_test[t][d]),
            linear: rmse(&|t| {
                linear[d].iter().zip(features(&x_test[t], u_test[t])).map(|(c, z)| c * z).sum()
            }),
            coverage: inside as f64 / TEST as f64,
            rank_correlation: rank_correlation(&distance, &sd),
        });
        let title = format!("next {} ({})", NAMES[d].replace('_', " "), UNITS[d]);
        let t: Vec<f64> = (1..=SHOWN).map(|t| t as f64).collect();
        let error = (0..SHOWN).map(|t| truth[t] - mean[t]).collect();
        errors.push(OneStepSeries {
            title: format!("{title}: error"),
            t: t.clone(),
            truth: error,
            mean: vec![0.0; SHOWN],
            sd: sd[..SHOWN].to_vec(),
        });
        let shown = |values: &[f64]| values[..SHOWN].to_vec();
        states.push(OneStepSeries { title, t, truth: shown(&truth), mean: shown(&mean), sd: shown(&sd) });
    }
    let write = |name: &str, title: &str, series: &[OneStepSeries]| {
        let path = args.out.join(name);
        let svg = figure_one_step(title, "t", series);
        std::fs::write(&path, svg).map_err(|error| Failure::writing(&path, &error))
    };
    write("one-step.svg", "Cart and pole: one step ahead", &states)?;
    write("errors.svg", "Cart and pole: errors one step ahead, and what was expected of them", &errors)?;
    if args.speech.json {
        println!(
            "{:#}",
            json!({ "seed": args.seed, "states": rows.iter().map(Outcome::as_json).collect::<Vec<_>>() })
        );
        return Ok(0);
    }
    let mut table =
        Table::new(&["", "RMSE", "identity", "linear", "in +- 1 sd", "sd with distance (rank correlation)"]);
    for row in &rows {
        table.push(vec![
            row.state.into(),
            number(row.rmse),
            number(row.identity),
            number(row.linear),
            format!("{:.0} %", 100.0 * row.coverage),
            format!("{:.2}", row.rank_correlation),
        ]);
    }
    print!("{}", table.render());
    eprintln!("{} and errors.svg written", args.out.join("one-step.svg").display());
    Ok(0)
}

struct Outcome {
    state: &'static str,
    rmse: f64,
    identity: f64,
    linear: f64,
    coverage: f64,
    rank_correlation: f64,
}

impl Outcome {
    fn as_json(&self) -> serde_json::Value {
        json!({
            "state": self.state,
            "rmse": self.rmse,
            "identity_rmse": self.identity,
            "linear_rmse": self.linear,
            "coverage_1sd": self.coverage,
            "rank_correlation": self.rank_correlation,
        })
    }
}

fn features(x: &State, u: f64) -> [f64; 6] {
    [1.0, x[0], x[1], x[2], x[3], u]
}

/// Coefficients of a linear model for each state, from the noisy observations.
fn least_squares(y: &[Vec<f64>], u: &[f64]) -> Vec<Vec<f64>> {
    let rows: Vec<Vec<f64>> =
        (0..y.len() - 1).map(|t| features(&[y[t][0], y[t][1], y[t][2], y[t][3]], u[t]).to_vec()).collect();
    (0..4)
        .map(|d| {
            let target: Vec<f64> = (1..y.len()).map(|t| y[t][d]).collect();
            gpssm::posterior::baseline::least_squares(&rows, &target).0
        })
        .collect()
}

/// Distance of each point to the nearest training point, every component in units of its spread there. Where the cart
/// is does not count, as it enters none of the equations of motion.
fn distances(z: &Points, x: &[State], u: &[f64]) -> Vec<f64> {
    let training: Vec<Vec<f64>> = x.iter().zip(u).map(|(x, u)| [x.as_slice(), &[*u]].concat()).collect();
    let n = training.len() as f64;
    let scale: Vec<f64> = (0..5)
        .map(|c| {
            let mean = training.iter().map(|row| row[c]).sum::<f64>() / n;
            (training.iter().map(|row| (row[c] - mean).powi(2)).sum::<f64>() / n).sqrt()
        })
        .collect();
    (0..z.len())
        .map(|i| {
            let at = z.row(i);
            let to = |row: &Vec<f64>| (1..5).map(|c| ((row[c] - at[c]) / scale[c]).powi(2)).sum::<f64>();
            training.iter().map(to).fold(f64::INFINITY, f64::min).sqrt()
        })
        .collect()
}

/// Spearman's rank correlation.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |values: &[f64]| -> Vec<f64> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
        let mut ranks = vec![0.0; values.len()];
        order.iter().enumerate().for_each(|(rank, i)| ranks[*i] = rank as f64);
        ranks
    };
    let (a, b) = (ranks(a), ranks(b));
    let middle = (a.len() as f64 - 1.0) / 2.0;
    let product: f64 = a.iter().zip(&b).map(|(a, b)| (a - middle) * (b - middle)).sum();
    let square: f64 = a.iter().map(|a| (a - middle).powi(2)).sum();
    product / square
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinetic and potential energy; the pendulum is a uniform rod.
    fn energy(x: &State) -> f64 {
        let [_, v, w, angle] = *x;
        let (sin, cos) = angle.sin_cos();
        let (half, inertia) = (0.5 * LENGTH, M_POLE * LENGTH * LENGTH / 12.0);
        let (vx, vy) = (v + half * w * cos, half * w * sin);
        0.5 * M_CART * v * v + 0.5 * M_POLE * (vx * vx + vy * vy) + 0.5 * inertia * w * w
            - M_POLE * GRAVITY * half * cos
    }

    #[test]
    fn energy_changes_by_the_work_of_force_and_friction() {
        for (x, force) in
            [([0.3, 1.2, -2.0, 0.7], 4.0), ([-1.0, -0.4, 3.0, 2.5], -7.0), ([0.0, 0.9, 0.1, -1.1], 0.0)]
        {
            let d = derivative(&x, force);
            let h = 1e-6;
            let along = |h: f64| -> State { std::array::from_fn(|i| x[i] + h * d[i]) };
            let change = (energy(&along(h)) - energy(&along(-h))) / (2.0 * h);
            let work = (force - FRICTION * x[1]) * x[1];
            assert!((change - work).abs() < 1e-6 * (1.0 + work.abs()), "{change} {work}");
        }
    }

    #[test]
    fn rank_correlation_knows_order_and_reverse() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 5.0], &[0.1, 0.2, 0.9]), 1.0);
        assert_eq!(rank_correlation(&[1.0, 2.0, 5.0], &[3.0, 2.0, 1.0]), -1.0);
    }
}
