//! `gpssm reproduce real`: real records with defaults only, beside simple models and quoted figures.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use gpssm::mcmc::ChainDraws;
use gpssm::{Posterior, Sequence, prepare, sample};
use gpssm_identify::{Calibration, FittedModel, Layout, ScoreOptions, ScoreTask};
use gpssm_io::config::RunFile;
use gpssm_io::table::{Columns, read_record};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::cache::Cache;
use crate::args::Verbosity;
use crate::commands::evaluate::{EvaluateArgs, Evaluation, From, evaluate};
use crate::failure::Failure;
use crate::table::{Table, number, number_or_dash};

/// Arguments of `gpssm reproduce real`.
#[derive(Debug, Args)]
#[command(
    after_help = "The folder holds CSV files such as gas_furnace.csv; those that are absent are left out. Results are kept, \
so that an interrupted table goes on. Quoted figures are from the literature and were not checked."
)]
pub struct RealArgs {
    /// Folder that holds the records.
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Names of the records, separated by commas [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Output folder.
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-real")]
    pub out: PathBuf,
    /// Verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// A record with a free-run score.
struct Scored {
    name: &'static str,
    train: &'static str,
    /// The file to run free over, else the second half.
    test: Option<&'static str>,
    /// Rows of both.
    rows: Option<((usize, usize), (usize, usize))>,
    n_init: Option<usize>,
    quoted: &'static str,
}

const fn halves(name: &'static str, train: &'static str, quoted: &'static str) -> Scored {
    Scored { name, train, test: None, rows: None, n_init: None, quoted }
}

const SCORED: [Scored; 6] = [
    halves("gas_furnace", "gas_furnace.csv", "PR-SSM 1.249, REVARB 1.188"),
    halves("drive", "drive.csv", "PR-SSM 0.492, NIGP 0.373"),
    halves("dryer", "dryer.csv", "PR-SSM 0.140"),
    halves("ballbeam", "ballbeam.csv", "PR-SSM 0.073"),
    Scored {
        name: "cascaded_tanks",
        train: "cascaded_tanks_est.csv",
        test: Some("cascaded_tanks_val.csv"),
        rows: None,
        // As many as the benchmark allows.
        n_init: Some(5),
        quoted: "PNLSS 0.450, NLSS 0.343",
    },
    Scored {
        name: "silverbox",
        train: "silverbox.csv",
        test: Some("silverbox.csv"),
        rows: Some(((40_651, 105_712), (105_713, 127_400))),
        n_init: Some(50),
        quoted: "",
    },
];

/// A series without inputs.
struct Plain {
    name: &'static str,
    y: &'static str,
    /// Keys of the run file.
    set: &'static [&'static str],
}

const PLAIN: [Plain; 7] = [
    Plain { name: "polio", y: "y", set: &["model.sensor=poisson"] },
    Plain {
        name: "pound_dollar_8185",
        y: "y",
        set: &["model.sensor=stochastic_volatility", "model.dynamics=fic(20)"],
    },
    Plain { name: "nile", y: "y", set: &[] },
    Plain { name: "sunspots_year", y: "y", set: &["model.lags=1"] },
    Plain { name: "hare_lynx", y: "hare,lynx", set: &[] },
    Plain { name: "co2_weekly", y: "y", set: &["data.rows=[1885, 2284]", "model.lags=2"] },
    Plain { name: "blood", y: "wbc,plt,hct", set: &[] },
];

/// One step ahead on the last part of a series.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ahead {
    name: String,
    n: usize,
    model: f64,
    constant: Option<f64>,
    random_walk: f64,
    linear: Option<f64>,
}

/// Runs the command; the exit code.
pub fn run(args: &RealArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    if !args.data.is_dir() {
        return Err(Failure::input(format!("{}: there is no such folder", args.data.display())));
    }
    let cache = Cache::open(&args.out.join("results"))?;
    let asked = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let known = |name: &String| {
        SCORED.iter().any(|set| set.name == *name) || PLAIN.iter().any(|set| set.name == *name)
    };
    if let Some(name) = args.only.iter().find(|name| !known(name)) {
        return Err(Failure::input(format!("--only {name}: there is no such set")));
    }
    let mut found: Vec<(&Scored, Evaluation)> = Vec::new();
    for set in SCORED.iter().filter(|set| asked(set.name)) {
        if let Some(missing) =
            [Some(set.train), set.test].into_iter().flatten().find(|file| !args.data.join(file).is_file())
        {
            eprintln!("{}: {missing} is not in {}; left out", set.name, args.data.display());
            continue;
        }
        let key = format!("{}-{}", set.name, args.seed);
        found.push((set, cache.get(&key, || free_run(args, set, stop))?));
    }
    let mut ahead: Vec<Ahead> = Vec::new();
    for set in PLAIN.iter().filter(|set| asked(set.name)) {
        let path = args.data.join(format!("{}.csv", set.name));
        if !path.is_file() {
            eprintln!("{}: not in {}; left out", set.name, args.data.display());
            continue;
        }
        let key = format!("{}-{}", set.name, args.seed);
        ahead.push(cache.get(&key, || one_step(&path, set, args.seed))?);
    }
    if args.verbosity.json {
        let sets: Vec<_> =
            found.iter().map(|(set, found)| json!({ "set": set.name, "found": found })).collect();
        println!("{:#}", json!({ "free_runs": sets, "one_step_ahead": ahead }));
    } else {
        print!("{}", tables(&found, &ahead));
    }
    Ok(0)
}

fn free_run(args: &RealArgs, set: &Scored, stop: &Arc<AtomicBool>) -> Result<Evaluation, Failure> {
    let mut options = Vec::new();
    if let Some(((from, to), _)) = set.rows {
        options.push(format!("data.rows=[{from}, {to}]"));
    }
    if !args.verbosity.quiet {
        eprintln!("{}", set.name);
    }
    let evaluated = EvaluateArgs {
        train: args.data.join(set.train),
        test: set.test.map(|file| args.data.join(file)),
        test_rows: set.rows.map(|(_, (from, to))| format!("{from}:{to}")),
        split: set.test.is_none().then_some(0.5),
        y: vec!["y".into()],
        u: vec!["u".into()],
        time: None,
        dt: None,
        sequence: None,
        initial: From::First,
        states: "auto".into(),
        n_init: set.n_init,
        set: options,
        seed: args.seed,
        paths: 400,
        raw: false,
        out: None,
        overwrite: true,
        verbosity: args.verbosity,
    };
    let out = args.out.join(format!("{}-{}", set.name, args.seed));
    evaluate(&evaluated, &out, stop)?.ok_or_else(|| Failure::other("stopped; what is done is kept"))
}

/// Part of a series that is learned from.
const LEARNED: f64 = 0.7;

/// The last rows, each predicted from all before it.
fn one_step(path: &Path, set: &Plain, seed: u64) -> Result<Ahead, Failure> {
    let mut file = RunFile::new();
    file.option("--y", set.y)?;
    for key in ["sampler.chains=2", "sampler.tune=100", "sampler.draws=100"].iter().chain(set.set) {
        file.set(key)?;
    }
    file.option("--seed", &seed.to_string())?;
    let mut config = file.config()?;
    let all = read_record(path, &config.data.columns()).map_err(Failure::input)?;
    let first = config.data.rows.map_or(1, |(first, _)| first);
    let n = all.n_rows;
    let cut = (LEARNED * n as f64) as usize;
    config.data.rows = Some((first, first + cut - 1));
    let columns: Columns = config.data.columns();
    let data = read_record(path, &columns).map_err(Failure::input)?;
    let run = file.resolve(&config, &data)?;
    let problem = prepare(&run.problem, &run.settings)?;
    let sink = gpssm::MemorySink::new();
    sample(&problem, &run.settings, &sink, &|_| true)?;
    let chains: Vec<ChainDraws> = sink.into_chains();
    let posterior = Posterior::new(&problem, &chains)?;
    let whole = &all.record.sequences()[0];
    // The filter runs over everything; the rows that were learned from are not scored.
    let options = ScoreOptions {
        task: ScoreTask::Ahead(1),
        n_init: Some(cut),
        n_paths: 200,
        ..ScoreOptions::default()
    };
    let fitted = FittedModel::new(posterior, Layout::default(), Calibration::default(), None)?;
    let report = fitted.score(whole, &options, &|_, _| true)?;
    let of = |name: &str| report.named(name).and_then(|scores| scores.log_score);
    let model = of("model").unwrap_or(f64::NEG_INFINITY);
    Ok(Ahead {
        name: set.name.to_owned(),
        n: n - cut,
        model,
        constant: of("constant"),
        random_walk: random_walk(whole, cut),
        linear: of("ARX"),
    })
}

/// Mean log density of the rows from `cut` on when each output is the last one seen, with the error that this had before.
fn random_walk(sequence: &Sequence, cut: usize) -> f64 {
    let mut total = vec![0.0; sequence.n_rows()];
    for k in 0..sequence.n_y() {
        let mut last = f64::NAN;
        let mut errors = Vec::new();
        for t in 0..sequence.n_rows() {
            let y = sequence.y(t)[k];
            if !y.is_nan() {
                errors.push((t, y - last));
                last = y;
            }
        }
        let before: Vec<f64> =
            errors.iter().filter(|(t, e)| *t < cut && !e.is_nan()).map(|(_, e)| e * e).collect();
        let variance = (before.iter().sum::<f64>() / before.len().max(1) as f64).max(f64::MIN_POSITIVE);
        for (t, error) in errors.into_iter().filter(|(t, _)| *t >= cut) {
            total[t] -= 0.5 * (error * error / variance + variance.ln() + (2.0 * std::f64::consts::PI).ln());
        }
    }
    let rows: Vec<usize> =
        (cut..sequence.n_rows()).filter(|&t| sequence.y(t).iter().any(|y| !y.is_nan())).collect();
    rows.iter().map(|&t| total[t]).sum::<f64>() / rows.len().max(1) as f64
}

fn tables(found: &[(&Scored, Evaluation)], ahead: &[Ahead]) -> String {
    let mut text = String::new();
    if !found.is_empty() {
        let head = [
            "free-run RMSE",
            "model",
            "in 90 %",
            "constant",
            "ARX by BIC",
            "ARX by free runs",
            "linear state space",
            "seconds",
            "quoted",
        ];
        let mut table = Table::new(&head);
        for (set, found) in found {
            let rmse = |name: &str| {
                number_or_dash(found.report.named(name).and_then(|s| s.outputs.first()).map(|s| s.rmse))
            };
            let model = found.report.named("model").and_then(|scores| scores.outputs.first());
            let inside = model.and_then(|model| model.coverage.iter().find(|coverage| coverage.level == 0.9));
            table.push(vec![
                set.name.into(),
                rmse("model"),
                inside.map_or_else(|| "-".into(), |inside| format!("{:.0} %", 100.0 * inside.share)),
                rmse("constant"),
                rmse("by BIC"),
                rmse("by free runs"),
                rmse("linear state space"),
                format!("{:.0}", found.seconds),
                set.quoted.into(),
            ]);
        }
        text += &table.render();
        for (set, found) in found {
            text += &format!("{}: {}; {}\n", set.name, found.model, found.initial);
        }
        text += "Quoted figures are from the literature, not checked here.\n";
    }
    if !ahead.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        let head =
            ["log score of a row, one step ahead", "rows", "model", "random walk", "linear AR", "constant"];
        let mut table = Table::new(&head);
        for row in ahead {
            table.push(vec![
                row.name.clone(),
                row.n.to_string(),
                number(row.model),
                number(row.random_walk),
                number_or_dash(row.linear),
                number_or_dash(row.constant),
            ]);
        }
        text += &table.render();
    }
    text
}
