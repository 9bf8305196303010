//! Figure 3 of the paper: a cart with a free pendulum, learned from 100 noisy observations of its four states.
//!
//! Both records have quiet and lively stretches: the new one, which is predicted one step ahead, comes close to the training
//! record and leaves it again. The force that acts differs a little from the one that is recorded, as the model
//! assumes. How noisy the instruments are is found out as one would: by reading them for a while with everything at rest.

use std::f64::consts::TAU;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use gpssm::model::{Owner, Role};
use gpssm::posterior::Target;
use gpssm::{Points, Posterior, Record, Sequence};
use gpssm_report::figures::{OneStepSeries, figure_one_step};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use serde_json::json;

use super::fitted::{Fitted, Task};
use crate::args::Verbosity;
use crate::failure::Failure;
use crate::monitor::ProgressMode;
use crate::table::{Table, number};
use gpssm_dev::cart_pole::{Motion, NAMES, State, UNITS, observe, simulate};

const TRAINING: usize = 100;
const TEST: usize = 500;
/// Readings of the instruments at rest.
const AT_REST: usize = 1000;
/// Times that are drawn.
const SHOWN: usize = 200;

/// Left and right are alike for cart and pendulum, so f is odd. `scale` is the size of states that one expects.
const RUN_FILE: &str = r#"
[model]
kernel = "odd(se + linear)"
mean = "identity"
standardise = false

[[model.state]]
scale = 1.0
[[model.state]]
scale = 1.0
[[model.state]]
scale = 4.0
[[model.state]]
scale = 0.6
"#;

/// Priors of the noise, from what the instruments say at rest: their standard deviation is known as well as so many
/// readings tell, and disturbances between observations are thought to be smaller.
fn noise_priors(rest: &[Vec<f64>]) -> [String; 2] {
    let n = rest.len() as f64;
    let sd = |d: usize| {
        let mean = rest.iter().map(|y| y[d]).sum::<f64>() / n;
        (rest.iter().map(|y| (y[d] - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
    };
    let list = |times: f64, sigma: f64| {
        let prior = |d: usize| format!("'log_normal({}, {sigma})'", times * sd(d));
        (0..4).map(prior).collect::<Vec<_>>().join(", ")
    };
    [
        format!("model.sensor={{ noise = [{}] }}", list(1.0, 1.0 / (2.0 * n).sqrt())),
        format!("model.process_noise=[{}]", list(0.2, 0.7)),
    ]
}

/// Arguments of `gpssm reproduce cartpole`.
#[derive(Debug, Args)]
pub struct CartpoleArgs {
    /// Seed of data and sampler.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Quick check with fewer draws.
    #[arg(long)]
    pub quick: bool,
    /// Output folder.
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-cartpole")]
    pub out: PathBuf,
    /// Verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// How much cart and pendulum are excited: not at all, then up to `peak`, and back again, every 100 rows.
fn strength(peak: f64) -> impl Fn(usize) -> f64 {
    move |t| 0.5 * peak * (1.0 - (TAU * t as f64 / 100.0).cos())
}

/// Runs the command; the exit code.
pub fn run(args: &CartpoleArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    std::fs::create_dir_all(&args.out).map_err(|error| Failure::writing(&args.out, &error))?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let training = simulate(&mut rng, TRAINING, strength(1.0));
    let y: Vec<Vec<f64>> = training.x.iter().map(|x| observe(&mut rng, x)).collect();
    let rest: Vec<Vec<f64>> = (0..AT_REST).map(|_| observe(&mut rng, &[0.0; 4])).collect();
    let fitted = learn(args, stop, &y, &training.u, &rest)?;

    let mut rng = ChaCha8Rng::seed_from_u64(args.seed ^ 0x7465_7374_0000_0000);
    let test = simulate(&mut rng, TEST + 1, strength(0.9));
    let y_test: Vec<Vec<f64>> = test.x.iter().map(|x| observe(&mut rng, x)).collect();
    let predictions = one_step(&fitted, &test)?;
    let linear = least_squares(&y, &training.u);
    let distance = distances(&training, &test);
    let outcomes: Vec<Outcome> = (0..4)
        .map(|d| {
            let by_line = |t: usize| -> f64 {
                linear[d].iter().zip(features(&test.x[t], test.u[t])).map(|(c, z)| c * z).sum()
            };
            let observed: Vec<f64> = (1..=TEST).map(|t| y_test[t][d]).collect();
            let Predicted { mean, sd, sd_observed } = &predictions[d];
            Outcome {
                state: NAMES[d],
                rmse: rmse(&observed, |t| mean[t]),
                identity: rmse(&observed, |t| test.x[t][d]),
                linear: rmse(&observed, by_line),
                coverage: share_inside(&observed, mean, sd_observed),
                coverage_of_state: share_inside(
                    &(1..=TEST).map(|t| test.x[t][d]).collect::<Vec<_>>(),
                    mean,
                    sd,
                ),
                rank_correlation: rank_correlation(&distance, sd_observed),
            }
        })
        .collect();
    draw(args, &predictions, &y_test)?;
    if args.verbosity.json {
        let states: Vec<_> = outcomes.iter().map(Outcome::as_json).collect();
        println!("{:#}", json!({ "seed": args.seed, "states": states }));
        return Ok(0);
    }
    print!("{}", as_text(&outcomes));
    eprintln!("{} and errors.svg written", args.out.join("one-step.svg").display());
    Ok(0)
}

fn learn(
    args: &CartpoleArgs,
    stop: &Arc<AtomicBool>,
    y: &[Vec<f64>],
    u: &[f64],
    rest: &[Vec<f64>],
) -> Result<Fitted, Failure> {
    let (tune, draws) = if args.quick { (40, 40) } else { (80, 120) };
    let [sensor, process] = noise_priors(rest);
    Task {
        run_file: RUN_FILE,
        name: "cartpole",
        set: vec![
            sensor,
            process,
            format!("sampler.seed={}", args.seed),
            format!("sampler.draws={draws}"),
            format!("sampler.tune={tune}"),
            "sampler.chains=2".into(),
        ],
        record: Record::new(vec![Sequence::new(y.to_vec(), u.iter().map(|u| vec![*u]).collect())?])?,
        outputs: NAMES.iter().map(|name| (*name).to_owned()).collect(),
        inputs: vec!["force".into()],
        progress_mode: ProgressMode::choose(args.verbosity.quiet || args.verbosity.json),
        stop: stop.clone(),
    }
    .fit()
}

/// One state at all times of the new record, predicted from the true state before.
struct Predicted {
    mean: Vec<f64>,
    /// Of the state itself.
    sd: Vec<f64>,
    /// Of what the instrument says of it.
    sd_observed: Vec<f64>,
}

fn one_step(fitted: &Fitted, test: &Motion) -> Result<Vec<Predicted>, Failure> {
    let posterior = Posterior::new(&fitted.problem, &super::table1::thinned(&fitted.chains, 100))?;
    let found = posterior.predict_at(&points(test, TEST), Target::NextState)?;
    let predicted = |d: usize| {
        let mut noise_sd = fitted.problem.table().of(&Owner::Sensor, &Role::NoiseSd);
        let (k, _) = noise_sd.nth(d).expect("every output has its noise");
        let draws = posterior.draws();
        let noise = draws.iter().map(|draw| draw.weight * draw.theta[k].powi(2)).sum::<f64>();
        let sd: Vec<f64> = (0..TEST).map(|t| found.sd(t, d)).collect();
        Predicted {
            mean: (0..TEST).map(|t| found.mean(t)[d]).collect(),
            sd_observed: sd.iter().map(|sd| (sd * sd + noise).sqrt()).collect(),
            sd,
        }
    };
    Ok((0..4).map(predicted).collect())
}

/// The first points (x, u) of a record.
fn points(motion: &Motion, n: usize) -> Points {
    let mut z = Points::new(5);
    motion.x.iter().zip(&motion.u).take(n).for_each(|(x, u)| z.push_parts(x, &[*u]));
    z
}

fn rmse(truth: &[f64], value: impl Fn(usize) -> f64) -> f64 {
    let square = |(t, truth): (usize, &f64)| (value(t) - truth).powi(2);
    (truth.iter().enumerate().map(square).sum::<f64>() / truth.len() as f64).sqrt()
}

/// How much of the truth lies within one standard deviation.
fn share_inside(truth: &[f64], mean: &[f64], sd: &[f64]) -> f64 {
    let inside = |t: &usize| (mean[*t] - truth[*t]).abs() <= sd[*t];
    (0..truth.len()).filter(inside).count() as f64 / truth.len() as f64
}

/// Writes both figures: states, and errors.
fn draw(args: &CartpoleArgs, predictions: &[Predicted], y_test: &[Vec<f64>]) -> Result<(), Failure> {
    let write = |name: &str, title: &str, series: &[OneStepSeries]| {
        let path = args.out.join(name);
        let svg = figure_one_step(title, "t", series);
        std::fs::write(&path, svg).map_err(|error| Failure::writing(&path, &error))
    };
    let (mut states, mut errors) = (Vec::new(), Vec::new());
    for (d, predicted) in predictions.iter().enumerate() {
        let title = format!("next {} ({})", NAMES[d].replace('_', " "), UNITS[d]);
        let t: Vec<f64> = (1..=SHOWN).map(|t| t as f64).collect();
        let mean = predicted.mean[..SHOWN].to_vec();
        let sd = predicted.sd_observed[..SHOWN].to_vec();
        let truth: Vec<f64> = (1..=SHOWN).map(|t| y_test[t][d]).collect();
        errors.push(OneStepSeries {
            title: format!("{title}: error"),
            t: t.clone(),
            truth: truth.iter().zip(&mean).map(|(truth, mean)| truth - mean).collect(),
            mean: vec![0.0; SHOWN],
            sd: sd.clone(),
        });
        states.push(OneStepSeries { title, t, truth, mean, sd });
    }
    write("one-step.svg", "Cart and pole: one step ahead", &states)?;
    write("errors.svg", "Cart and pole: errors one step ahead, and what was expected of them", &errors)
}

struct Outcome {
    state: &'static str,
    rmse: f64,
    identity: f64,
    linear: f64,
    coverage: f64,
    coverage_of_state: f64,
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
            "coverage_1sd_without_sensor_noise": self.coverage_of_state,
            "rank_correlation": self.rank_correlation,
        })
    }
}

fn as_text(outcomes: &[Outcome]) -> String {
    let head = [
        "",
        "RMSE",
        "identity",
        "linear",
        "in +- 1 sd",
        "state itself",
        "sd with distance (rank correlation)",
    ];
    let mut table = Table::new(&head);
    for row in outcomes {
        table.push(vec![
            row.state.into(),
            number(row.rmse),
            number(row.identity),
            number(row.linear),
            format!("{:.0} %", 100.0 * row.coverage),
            format!("{:.0} %", 100.0 * row.coverage_of_state),
            format!("{:.2}", row.rank_correlation),
        ]);
    }
    table.render()
        + "\nNext observations, predicted from the state before. 'state itself': the same without the noise of the instruments, in\n\
           the observation and in the band.\n"
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
            gpssm::linalg::least_squares(&rows, &target).0
        })
        .collect()
}

/// Distance of each point (x, u) of the new record to the nearest of the training record, every component in units of its
/// spread there. As f is odd, the model has learned from the mirror images of the training record too.
fn distances(training: &Motion, test: &Motion) -> Vec<f64> {
    let (known, z) = (points(training, TRAINING), points(test, TEST));
    let spread = |c: usize| {
        let column = known.column(c);
        let mean = column.iter().sum::<f64>() / TRAINING as f64;
        (column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / TRAINING as f64).sqrt()
    };
    let scale: Vec<f64> = (0..5).map(spread).collect();
    let between = |i: usize, j: usize, side: f64| {
        let square = |c: usize| ((side * known.row(j)[c] - z.row(i)[c]) / scale[c]).powi(2);
        (0..5).map(square).sum::<f64>()
    };
    let nearest = |i: usize| {
        let pairs = (0..TRAINING).flat_map(|j| [between(i, j, 1.0), between(i, j, -1.0)]);
        pairs.fold(f64::INFINITY, f64::min).sqrt()
    };
    (0..TEST).map(nearest).collect()
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

    #[test]
    fn rank_correlation_knows_order_and_reverse() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 5.0], &[0.1, 0.2, 0.9]), 1.0);
        assert_eq!(rank_correlation(&[1.0, 2.0, 5.0], &[3.0, 2.0, 1.0]), -1.0);
    }
}
