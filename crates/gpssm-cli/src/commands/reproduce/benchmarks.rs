//! `gpssm reproduce benchmarks`: standard records with defaults only, beside simple models and published figures.
//!
//! Rows for training and test, and the rows whose outputs may set the state, are those of the package nonlinear_benchmarks where it
//! has the record; the tanks have five rows, as their description asks for, and records without a protocol are cut in halves.

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
use crate::commands::evaluate::{EvaluateArgs, Evaluation, From, Tested, evaluate};
use crate::failure::Failure;
use crate::table::{Table, number, number_or_dash};

/// Arguments of `gpssm reproduce benchmarks`.
#[derive(Debug, Args)]
#[command(
    after_help = "The folder holds CSV files such as gas_furnace.csv; those that are absent are left out. Results are kept, \
so that an interrupted table goes on. Published figures are from the literature and were not checked."
)]
pub struct BenchmarksArgs {
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
    #[arg(long, short, value_name = "FOLDER", default_value = "gpssm-benchmarks")]
    pub out: PathBuf,
    /// Verbosity.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// A record with a free-run score.
struct Scored {
    name: &'static str,
    /// The file to learn from, and its rows, counted from 1.
    train: Part,
    /// What to run free over: a name, file and rows; none for the second half of the first file.
    tests: &'static [(&'static str, Part)],
    n_init: Option<usize>,
    /// Units of the table in those of the data, and their name.
    unit: (f64, &'static str),
    published: &'static str,
}

/// A file, and its rows where these are not all.
struct Part {
    file: &'static str,
    rows: Option<(usize, usize)>,
}

const fn all(file: &'static str) -> Part {
    Part { file, rows: None }
}

const fn rows(file: &'static str, from: usize, to: usize) -> Part {
    Part { file, rows: Some((from, to)) }
}

const fn halves(name: &'static str, file: &'static str, published: &'static str) -> Scored {
    Scored { name, train: all(file), tests: &[], n_init: None, unit: (1.0, ""), published }
}

const SILVERBOX: &str = "silverbox.csv";
const WIENER_HAMMERSTEIN: &str = "wiener_hammerstein.csv";

const SCORED: [Scored; 11] = [
    halves("gas_furnace", "gas_furnace.csv", "PR-SSM 1.249, REVARB 1.188"),
    halves("dryer", "dryer.csv", "PR-SSM 0.140"),
    halves("ballbeam", "ballbeam.csv", "PR-SSM 0.073"),
    // Coupled electric drives (CED).
    halves("drive", "drive.csv", "PR-SSM 0.492, NIGP 0.373"),
    Scored {
        name: "cascaded_tanks",
        train: all("cascaded_tanks_est.csv"),
        tests: &[("", all("cascaded_tanks_val.csv"))],
        n_init: Some(5),
        unit: (1.0, "V"),
        published: "GRU 0.396, CT-SUBNET 0.31, LFR 0.25",
    },
    Scored {
        name: "silverbox",
        train: rows(SILVERBOX, 40_651, 105_712),
        tests: &[
            ("multisine", rows(SILVERBOX, 105_713, 127_400)),
            ("arrow", rows(SILVERBOX, 101, 40_575)),
            ("arrow without extrapolation", rows(SILVERBOX, 101, 32_100)),
        ],
        n_init: Some(50),
        unit: (1e3, "mV"),
        published: "GRU 1.49 / 2.80 / 0.95 and 0.33 / 1.43 / 0.31",
    },
    Scored {
        name: "wiener_hammerstein",
        train: rows(WIENER_HAMMERSTEIN, 5_201, 105_200),
        tests: &[("", rows(WIENER_HAMMERSTEIN, 105_201, 184_000))],
        n_init: Some(50),
        unit: (1e3, "mV"),
        published: "GRU 3.97 and 0.58, SUBNET 0.24",
    },
    Scored {
        name: "emps",
        train: all("emps_train.csv"),
        tests: &[("", all("emps_test.csv"))],
        n_init: Some(20),
        unit: (1e3, "mm"),
        published: "LSTM 74, GRU 55",
    },
    Scored {
        name: "bouc_wen",
        train: all("bouc_wen_train.csv"),
        tests: &[("multisine", all("bouc_wen_test_multisine.csv"))],
        n_init: Some(50),
        unit: (1e5, "1e-5"),
        published: "",
    },
    Scored {
        name: "parallel_wh",
        train: all("parallel_wh_train.csv"),
        tests: &[("", all("parallel_wh_test.csv"))],
        n_init: Some(50),
        unit: (1.0, ""),
        published: "",
    },
    Scored {
        name: "f16",
        train: all("f16_train.csv"),
        tests: &[("", all("f16_test.csv"))],
        n_init: Some(50),
        unit: (1.0, ""),
        published: "",
    },
];

impl Scored {
    fn files(&self) -> impl Iterator<Item = &'static str> {
        [self.train.file].into_iter().chain(self.tests.iter().map(|(_, part)| part.file))
    }
}

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
pub fn run(args: &BenchmarksArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
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
        if let Some(missing) = set.files().find(|file| !args.data.join(file).is_file()) {
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

fn free_run(args: &BenchmarksArgs, set: &Scored, stop: &Arc<AtomicBool>) -> Result<Evaluation, Failure> {
    let mut options = Vec::new();
    if let Some((from, to)) = set.train.rows {
        options.push(format!("data.rows=[{from}, {to}]"));
    }
    if !args.verbosity.quiet {
        eprintln!("{}", set.name);
    }
    let has_sequences = |file: &str| {
        let text = std::fs::read_to_string(args.data.join(file)).unwrap_or_default();
        text.lines().next().is_some_and(|head| head.split(',').any(|name| name.trim_matches('"') == "seq"))
    };
    let in_words = |(_, part): &(&str, Part)| part.rows.map(|(from, to)| format!("{from}:{to}"));
    let evaluated = EvaluateArgs {
        train: args.data.join(set.train.file),
        test: set.tests.iter().map(|(_, part)| args.data.join(part.file)).collect(),
        test_rows: set.tests.iter().filter_map(in_words).collect(),
        split: set.tests.is_empty().then_some(0.5),
        y: vec!["y".into()],
        u: vec!["u".into()],
        time: None,
        dt: None,
        sequence: has_sequences(set.train.file).then(|| "seq".into()),
        initial: From::First,
        states: "auto".into(),
        n_init: set.n_init,
        windows: None,
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

/// A test record as a row of the table.
fn line(set: &Scored, found: &Evaluation, i: usize, test: &Tested) -> Vec<String> {
    let (scale, unit) = set.unit;
    let scores = |name: &str| test.report.named(name);
    let first = |name: &str| scores(name).and_then(|scores| scores.outputs.first());
    let rmse = |name: &str| first(name).map(|output| scale * output.rmse);
    let model = first("model");
    let inside = model.and_then(|model| model.coverage.iter().find(|coverage| coverage.level == 0.9));
    let arx = ["by BIC", "by free runs"].into_iter().filter_map(rmse).min_by(f64::total_cmp);
    let part = set.tests.get(i).map_or("", |(name, _)| *name);
    let once = |text: String| if i == 0 { text } else { String::new() };
    vec![
        if part.is_empty() { set.name.to_owned() } else { format!("{} {part}", set.name) },
        number_or_dash(rmse("model")),
        unit.into(),
        number_or_dash(model.and_then(|model| model.nrmse)),
        number_or_dash(scores("model").and_then(|scores| scores.log_score)),
        number_or_dash(model.map(|model| scale * model.crps)),
        inside.map_or_else(|| "-".into(), |inside| format!("{:.0} %", 100.0 * inside.share)),
        number_or_dash(rmse("constant")),
        number_or_dash(arx),
        number_or_dash(rmse("linear state space")),
        once(format!("{:.0}", found.seconds)),
        once(set.published.into()),
    ]
}

fn tables(found: &[(&Scored, Evaluation)], ahead: &[Ahead]) -> String {
    let mut text = String::new();
    if !found.is_empty() {
        let head = [
            "free run",
            "RMSE",
            "unit",
            "NRMSE",
            "log score",
            "CRPS",
            "in 90 %",
            "constant",
            "best ARX",
            "linear state space",
            "seconds",
            "published RMSE",
        ];
        let mut table = Table::new(&head);
        for (set, found) in found {
            for (i, test) in found.tests.iter().enumerate() {
                table.push(line(set, found, i, test));
            }
        }
        text += &table.render();
        for (set, found) in found {
            text += &format!("{}: {}; {}\n", set.name, found.model, found.initial);
        }
        text += "Published figures are from the literature, not checked here.\n";
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
