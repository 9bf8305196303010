//! Table 1 of the paper: eight models, ten data sets, no run started near the truth.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use gpssm::diagnostics::{ess_bulk, rhat};
use gpssm::mcmc::{ChainDraws, ChainReport};
use gpssm::posterior::Target;
use gpssm::{ChainPlan, Ended, MemorySink, Points, Posterior, Sequence, sample_chains};
use gpssm_io::config::{Run, RunFile};
use gpssm_io::table::Data;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::cache::Cache;
use super::rows::{ROWS, Row};
use crate::args::Verbosity;
use crate::failure::Failure;
use crate::table::Table;
use gpssm_dev::benchmark::{self, Simulated};

/// Arguments of `gpssm reproduce table1`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each data set has 201 rows; functions are compared at 10,000 fresh points. The sensor does not see the sign of x: \
draws are mapped to the mirror image in which a larger u raises x, never by looking at the truth. Results are kept in the \
folder, so an interrupted table goes on where it stopped."
)]
pub struct Table1Args {
    /// Seed of the first data set; the others follow.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of data sets.
    #[arg(long, default_value_t = 10)]
    pub runs: u64,
    /// Number of chains for each data set and model.
    #[arg(long, default_value_t = 4)]
    pub chains: u32,
    /// Rows of the table, separated by commas: known, gp-ssm-se, gp-ssm, fic, hilbert, model-b, structure, linear [default: all].
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Quick check: at most three data sets, two chains and fewer draws.
    #[arg(long)]
    pub quick: bool,
    /// Output folder.
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-table1")]
    pub out: PathBuf,
    /// Verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// What one model gave on one data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Seed of the data.
    pub seed: u64,
    /// None where the function is known.
    pub prediction_rmse: Option<f64>,
    /// Of the sampled paths.
    pub smoothing_rmse: f64,
    /// The same, by chain.
    pub smoothing_by_chain: Vec<f64>,
    /// Largest R-hat over f at 20 points and the logarithms of hyper-parameters.
    pub r_hat: Option<f64>,
    /// Effective draws of f, the least of 20 points, for each second of the whole fit.
    pub ess_f_per_second: Option<f64>,
    /// Effective draws of x_t, the least of 20 times, for each second.
    pub ess_x_per_second: Option<f64>,
    /// Seconds of the fit, with its starts unless they are those of another row.
    pub seconds: f64,
}

/// Runs the command; the exit code.
pub fn run(args: &Table1Args, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    if args.runs == 0 || args.chains == 0 {
        return Err(Failure::input("--runs and --chains: at least one is needed"));
    }
    for name in &args.rows {
        if !ROWS.iter().any(|row| row.name == name) {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            return Err(Failure::input(format!("--rows {name}: there are {}", known.join(", "))));
        }
    }
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| args.rows.is_empty() || args.rows.iter().any(|name| name == row.name))
        .collect();
    let runs = if args.quick { args.runs.min(3) } else { args.runs };
    let cache = Cache::open(&args.out)?;
    let quiet = args.verbosity.quiet || args.verbosity.json;
    let mut table = vec![Vec::new(); rows.len()];
    let total = runs as usize * rows.len();
    let (mut done, mut made, began) = (0, 0, Instant::now());
    for seed in args.seed..args.seed + runs {
        let mut starts = Starts::new();
        for (row, outcomes) in rows.iter().zip(&mut table) {
            let length = Length::of(row, args);
            let name = format!("{}-seed{seed}-{length}", row.name);
            let outcome = cache.get(&name, || {
                made += 1;
                make(row, seed, &length, &mut starts, stop)
            })?;
            done += 1;
            if !quiet {
                // Results of an earlier run cost nothing.
                let each = began.elapsed().as_secs_f64() / f64::from(made.max(1));
                let left = crate::monitor::clock(each * (total - done) as f64);
                eprintln!("{done}/{total}  seed {seed}  {:<10}  {left} left", row.name);
            }
            outcomes.push(outcome);
        }
    }
    let notices = disagreements(&rows, &table);
    if args.verbosity.json {
        println!("{:#}", as_json(&rows, &table));
        eprint!("{notices}");
    } else {
        print!("{}{notices}", as_text(&rows, &table));
    }
    Ok(0)
}

/// Chains of a run and their sweeps.
struct Length {
    chains: u32,
    tune: u64,
    draws: u64,
}

impl Length {
    /// The same for every data set: ten of them in under 20 minutes on two cores.
    fn of(row: &Row, args: &Table1Args) -> Self {
        if args.quick {
            return Self { chains: args.chains.min(2), tune: 100, draws: 100 };
        }
        let (tune, draws) = match row.name {
            // Where chains must agree they run longer. Sweeps of known forms and those with drawn weights cost little.
            "gp-ssm" => (100, 600),
            "gp-ssm-se" | "fic" => (60, 120),
            "hilbert" => (100, 300),
            "structure" | "linear" => (200, 400),
            _ => (100, 300),
        };
        Self { chains: args.chains, tune, draws }
    }
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}chains-{}+{}", self.chains, self.tune, self.draws)
    }
}

/// The run of a row on a data set.
fn prepared(row: &Row, simulated: &Simulated, seed: u64, length: &Length) -> Result<Run, Failure> {
    let mut file = RunFile::parse(&row.run_file(), row.name)?;
    file.set(&format!("sampler.seed={seed}"))?;
    file.set(&format!("sampler.chains={}", length.chains))?;
    file.set(&format!("sampler.tune={}", length.tune))?;
    file.set(&format!("sampler.draws={}", length.draws))?;
    if row.learned_function {
        // Ten that look at the sensor before they go on mix as well as twenty, at half the price.
        file.set("sampler.particles=10")?;
    }
    let record = Sequence::scalar(&simulated.y, Some(&simulated.u))?;
    let data = Data::from_record(record.into(), vec!["y".into()], vec!["u".into()], "simulated");
    Ok(file.resolve(&file.config()?, &data)?)
}

/// Where the chains of a row began, by its name; all of one data set.
type Starts = BTreeMap<&'static str, Vec<ChainPlan>>;

fn make(
    row: &Row,
    seed: u64,
    length: &Length,
    starts: &mut Starts,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let simulated = benchmark::simulate(seed, benchmark::T);
    let run = prepared(row, &simulated, seed, length)?;
    let began = Instant::now();
    let problem = gpssm::prepare(&run.problem, &run.settings)?;
    let sink = MemorySink::new();
    let cold = || (0..length.chains).map(|chain| ChainPlan { chain, ..ChainPlan::default() }).collect();
    let plans = row.starts_of.and_then(|other| starts.get(other).cloned()).unwrap_or_else(cold);
    let report = sample_chains(&problem, &run.settings, plans, &sink, &|_| !stop.load(Ordering::Relaxed))?;
    if report.ended != Ended::Complete {
        return Err(Failure::stopped("stopped; the same command goes on with what is there"));
    }
    let seconds = began.elapsed().as_secs_f64();
    let plan = |chain: ChainReport| ChainPlan {
        chain: chain.chain,
        from: chain.start.map(|start| start.state),
        ..ChainPlan::default()
    };
    starts.insert(row.name, report.chains.into_iter().map(plan).collect());
    let chains = sink.into_chains();
    let smoothing_by_chain: Vec<f64> = chains
        .iter()
        .map(|chain| {
            benchmark::smoothing_rmse(chain.paths.iter().map(|paths| paths[0].as_slice()), &simulated.x)
        })
        .collect();
    let squares = smoothing_by_chain.iter().map(|rmse| rmse * rmse).sum::<f64>();
    let smoothing_rmse = (squares / smoothing_by_chain.len() as f64).sqrt();
    let prediction_rmse = if row.prediction.is_some() || row.learned_function {
        let posterior = Posterior::new(&problem, &thinned(&chains, 100))?;
        Some(benchmark::prediction_rmse(&posterior, &benchmark::test_points(seed))?)
    } else {
        None
    };
    let (r_hat, ess_f) = agreement(&problem, &chains, seed)?;
    let ess_x =
        least_ess((0..20).map(|i| i * benchmark::T / 19).map(|t| {
            chains.iter().map(|chain| chain.paths.iter().map(|paths| paths[0][t]).collect()).collect()
        }));
    Ok(Outcome {
        seed,
        prediction_rmse,
        smoothing_rmse,
        smoothing_by_chain,
        r_hat,
        ess_f_per_second: ess_f.map(|ess| ess / seconds),
        ess_x_per_second: ess_x.map(|ess| ess / seconds),
        seconds,
    })
}

/// Every k-th draw of each chain, so many in all.
pub(super) fn thinned(chains: &[ChainDraws], most: usize) -> Vec<ChainDraws> {
    let total: usize = chains.iter().map(|chain| chain.theta.len()).sum();
    let every = total.div_ceil(most).max(1);
    let thin = |chain: &ChainDraws| ChainDraws {
        theta: chain.theta.iter().step_by(every).cloned().collect(),
        paths: chain.paths.iter().step_by(every).cloned().collect(),
        info: chain.info.iter().step_by(every).copied().collect(),
    };
    chains.iter().map(thin).collect()
}

/// Draws of one quantity, by chain.
type Columns = Vec<Vec<f64>>;

fn least_ess(quantities: impl Iterator<Item = Columns>) -> Option<f64> {
    let one = |columns: Columns| ess_bulk(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>());
    quantities.filter_map(one).reduce(f64::min)
}

/// Largest R-hat over f at 20 test points and log hyper-parameters, and least effective draws of f.
fn agreement(
    problem: &gpssm::Problem,
    chains: &[ChainDraws],
    seed: u64,
) -> Result<(Option<f64>, Option<f64>), Failure> {
    let test = benchmark::test_points(seed);
    let mut z = Points::new(2);
    for i in (0..benchmark::N_TEST).step_by(benchmark::N_TEST / 20).take(20) {
        z.push(&[test.x[i], test.u[i]]);
    }
    let mut f: Vec<Columns> = vec![Vec::new(); z.len()];
    for chain in chains {
        let posterior = Posterior::new(problem, std::slice::from_ref(chain))?;
        let found = posterior.predict_at(&z, Target::Function)?;
        for (i, columns) in f.iter_mut().enumerate() {
            columns.push((0..chain.theta.len()).map(|j| found.draw_mean(j, i)[0]).collect());
        }
    }
    let table = problem.table();
    let fitted = (0..table.len()).filter(|k| !table.is_fixed(*k));
    let log = |value: f64| if value > 0.0 { value.ln() } else { value };
    let theta = fitted.map(|k| -> Columns {
        chains.iter().map(|chain| chain.theta.iter().map(|theta| log(theta[k])).collect()).collect()
    });
    let worst = |columns: &Columns| rhat(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let r_hat =
        f.iter().filter_map(worst).chain(theta.collect::<Vec<_>>().iter().filter_map(worst)).reduce(f64::max);
    Ok((r_hat, least_ess(f.into_iter())))
}

/// Mean and standard deviation.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (!values.is_empty()).then(|| (mean, square.sqrt()))
}

fn both(outcomes: &[Outcome]) -> [Option<(f64, f64)>; 2] {
    let prediction: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.prediction_rmse).collect();
    let smoothing: Vec<f64> = outcomes.iter().map(|outcome| outcome.smoothing_rmse).collect();
    [mean_and_error(&prediction), mean_and_error(&smoothing)]
}

fn as_text(rows: &[&Row], table: &[Vec<Outcome>]) -> String {
    let cell =
        |value: Option<(f64, f64)>| value.map_or_else(|| "-".into(), |(m, s)| format!("{m:.2} +- {s:.2}"));
    let published =
        |value: Option<(f64, f64)>| value.map_or_else(|| "-".into(), |(m, s)| format!("{m:.1} +- {s:.1}"));
    let head =
        ["", "prediction", "paper", "smoothing", "paper", "right mode", "agree", "ESS f/s", "ESS x/s", "s"];
    let mut text = Table::new(&head);
    for (row, outcomes) in rows.iter().zip(table) {
        let [prediction, smoothing] = both(outcomes);
        let right = outcomes.iter().filter(|outcome| outcome.smoothing_rmse < 6.0).count();
        // Where nothing is learned there is nothing to agree on.
        let judged: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.r_hat).collect();
        let agree = match judged.len() {
            0 => "-".into(),
            n => format!("{}/{n}", judged.iter().filter(|r_hat| **r_hat <= AGREE).count()),
        };
        let mean = |value: &dyn Fn(&Outcome) -> Option<f64>| {
            let values: Vec<f64> = outcomes.iter().filter_map(value).collect();
            mean_and_error(&values).map_or_else(|| "-".into(), |(mean, _)| format!("{mean:.1}"))
        };
        text.push(vec![
            row.title.into(),
            cell(prediction),
            published(row.prediction),
            cell(smoothing),
            published(row.smoothing),
            format!("{right}/{}", outcomes.len()),
            agree,
            mean(&|outcome| outcome.ess_f_per_second),
            mean(&|outcome| outcome.ess_x_per_second),
            mean(&|outcome| Some(outcome.seconds)),
        ]);
    }
    text.render()
        + "\nRMSE, mean +- sd over data sets. 'right mode': smoothing RMSE below 6. 'agree': R-hat of chains at most 1.05 for f at\n\
           20 points and all log hyper-parameters. Draws are oriented by \"u raises x\"; no run saw the truth. FIC and Hilbert take\n\
           over the cold starts of the GP-SSM above, as they would find the same; their seconds are without.\n"
}

const AGREE: f64 = 1.05;

/// Says where the chains of a run do not agree.
fn disagreements(rows: &[&Row], table: &[Vec<Outcome>]) -> String {
    let runs = rows.iter().zip(table).flat_map(|(row, outcomes)| outcomes.iter().map(move |o| (row, o)));
    let apart =
        runs.filter_map(|(row, o)| o.r_hat.filter(|r_hat| *r_hat > AGREE).map(|r_hat| (row, o, r_hat)));
    apart
        .map(|(row, o, r_hat)| format!("{}, seed {}: chains disagree (R-hat {r_hat:.2})\n", row.name, o.seed))
        .collect()
}

fn as_json(rows: &[&Row], table: &[Vec<Outcome>]) -> serde_json::Value {
    let pair = |value: Option<(f64, f64)>| value.map(|(mean, sd)| json!({ "mean": mean, "sd": sd }));
    let rows: Vec<_> = rows
        .iter()
        .zip(table)
        .map(|(row, outcomes)| {
            let [prediction, smoothing] = both(outcomes);
            json!({
                "row": row.name,
                "prediction_rmse": pair(prediction),
                "smoothing_rmse": pair(smoothing),
                "seconds": outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>(),
                "runs": outcomes,
            })
        })
        .collect();
    json!({ "rows": rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(prediction: Option<f64>, r_hat: f64) -> Outcome {
        Outcome {
            seed: 7,
            prediction_rmse: prediction,
            smoothing_rmse: 3.0,
            smoothing_by_chain: vec![3.0],
            r_hat: Some(r_hat),
            ess_f_per_second: None,
            ess_x_per_second: Some(2.0),
            seconds: 1.5,
        }
    }

    #[test]
    fn the_table_as_json_and_what_is_said_of_it() {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| ["known", "gp-ssm"].contains(&row.name)).collect();
        let table = [vec![outcome(None, 1.0)], vec![outcome(Some(1.0), 1.01), outcome(Some(2.0), 1.2)]];
        let json = as_json(&rows, &table);
        assert_eq!(json["rows"][0]["row"], "known");
        assert!(json["rows"][0]["prediction_rmse"].is_null());
        assert_eq!(json["rows"][1]["prediction_rmse"]["mean"], 1.5);
        assert_eq!(json["rows"][1]["smoothing_rmse"]["sd"], 0.0);
        assert_eq!(json["rows"][1]["seconds"], 3.0);
        assert_eq!(json["rows"][1]["runs"][1]["r_hat"], 1.2);
        assert_eq!(disagreements(&rows, &table), "gp-ssm, seed 7: chains disagree (R-hat 1.20)\n");
    }

    /// What lets rows share their starts.
    #[test]
    fn a_finite_basis_finds_the_starts_of_the_exact_process() {
        let simulated = benchmark::simulate(3, benchmark::T);
        let length = Length { chains: 1, tune: 1, draws: 1 };
        let start = |name: &str| {
            let row = ROWS.iter().find(|row| row.name == name).unwrap();
            let mut run = prepared(row, &simulated, 3, &length).unwrap();
            run.settings.start.restarts = 8;
            let problem = gpssm::prepare(&run.problem, &run.settings).unwrap();
            gpssm::mcmc::find_start(&problem, &run.settings, 0, &mut |_, _| true).unwrap().unwrap().state
        };
        for row in ROWS.iter().filter(|row| row.starts_of.is_some()) {
            assert_eq!(start(row.name), start(row.starts_of.unwrap()), "{}", row.name);
        }
    }
}
