//! `gpssm sbc`: simulation-based calibration of a model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use gpssm::{Error, Functions, Record, Sequence};
use gpssm_identify::sbc::{Sbc, SbcOptions, SbcRun, Uniformity};
use gpssm_io::config::{Run, RunConfig, RunFile};
use gpssm_io::table::{Columns, Data, read_record};
use gpssm_report::ranks::{RankPage, RankSeries, rank_page};
use serde_json::{Value, json};

use crate::args::Verbosity;
use crate::failure::{Failure, code};
use crate::output::check_folder;
use crate::progress::steps;
use crate::signals::Finishing;
use crate::table::{Table, number_or_dash};

/// Ranks with a smaller p-value are called uneven.
const UNEVEN: f64 = 1e-4;
/// Fewer independent draws than this share of all of them make ranks uneven by themselves.
const FEWEST_EFFECTIVE: f64 = 0.5;

/// Arguments of `gpssm sbc`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm sbc model.toml --runs 100 --steps 20          a model without inputs, records of 21 rows
  gpssm sbc model.toml --runs 320 --inputs u.csv      under the inputs of a file, one row for each
  gpssm sbc model.toml --runs 1000 --thin 20          under the inputs of the model's data file

Each run draws parameters, function, states and outputs from the prior, fits the outputs from a cold start, and ranks the values
that made them among the draws. Equally likely ranks show that the sampler draws from the posterior of this model. The model file must
state every prior, standardise = false, the scale of each state, p(x_0), and the box or inducing inputs of a finite basis.

Draws should be nearly independent: of the sweeps after warm-up every --thin'th is kept, and the table shows the effective number of
those kept. Raise --thin where it is below half of --draws. Ranks fall into --draws + 1 classes; choose --draws such that this has many
divisors, as in 63.

Finished runs are kept in the folder: the same command continues after a stop, and more --runs add to them, with the same results
as in one go. Exit code 3: some ranks are uneven (p < 1e-4).")]
pub struct SbcArgs {
    /// A model file.
    pub model: PathBuf,
    /// Number of runs.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: u64,
    /// Number of draws that each run keeps.
    #[arg(long, default_value_t = 63, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub draws: u32,
    /// Number of sweeps from one kept draw to the next.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub thin: u64,
    /// A CSV file with the input columns [default: the data file of the model].
    #[arg(long, value_name = "FILE", conflicts_with = "steps")]
    pub inputs: Option<PathBuf>,
    /// Number of steps to simulate, for a model without inputs.
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub seed: u64,
    /// Number of threads; the results do not depend on it [default: one for each core].
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Any key of the model file, such as sampler.particles=10; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for runs, ranks and the report [default: the name of the model with .sbc].
    #[arg(long, short, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// How much is printed.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// Runs the command; the exit code.
pub fn run(args: &SbcArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    if args.threads == Some(0) {
        return Err(Failure::input("--threads 0: must be at least one"));
    }
    let mut file = RunFile::open(&args.model)?;
    for assignment in &args.set {
        file.set(assignment)?;
    }
    let config = file.config()?;
    let data = data(args, &file, &config)?;
    let run = file.resolve_stated(&config, &data)?;
    let options = SbcOptions { draws: args.draws, thin: args.thin, seed: args.seed };
    let sbc = Sbc::new(&run.problem, &Functions::new(), &run.settings, options.clone())?;
    let stem = args.model.file_stem().unwrap_or_else(|| "model".as_ref());
    let out = args.out.clone().unwrap_or_else(|| Path::new(stem).with_extension("sbc"));
    check_folder(&out)?;
    let inputs: Vec<Vec<&[f64]>> = data.record.sequences().iter().map(rows).collect();
    let identity =
        json!({ "model": run.to_toml(), "options": options, "inputs": inputs, "quantities": sbc.names() });
    let store = Store::open(&out, &identity)?;
    let mut runs = BTreeMap::new();
    for index in 0..args.runs {
        if let Some(found) = store.get(index).filter(|found| found.ranks.len() == sbc.names().len()) {
            runs.insert(index, found);
        }
    }
    let left: Vec<u64> = (0..args.runs).filter(|index| !runs.contains_key(index)).collect();
    let quiet = args.verbosity.quiet || args.verbosity.json;
    let progress = (!quiet).then(|| steps("calibrate"));
    let runs = Mutex::new(runs);
    let already = args.runs as usize - left.len();
    let tell = |done: usize| progress.as_ref().map(|progress| progress.tell(done - already, left.len()));
    tell(already);
    let done = |index: u64, found: SbcRun| {
        store.put(index, &found).map_err(|failure| Error::Sink { message: failure.message })?;
        let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(index, found);
        tell(runs.len());
        Ok(())
    };
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    // Runs under way are short and end with their sweep; the folder keeps those that are done.
    let finishing = Finishing::begin();
    let finished = sbc.run_all(&left, threads, stop, &done)?;
    drop(finishing);
    drop(progress);
    let runs: Vec<SbcRun> = runs.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect();
    if !finished {
        let message =
            format!("stopped after {} of {} runs; the same command continues", runs.len(), args.runs);
        return Err(Failure::stopped(message));
    }
    let judged = sbc.judge(&runs);
    store.write("ranks.csv", &csv(&judged))?;
    store.write("report.html", &html(&run, &options, &judged, stem.to_string_lossy().as_ref()))?;
    print(args, &out, &judged);
    let uneven = judged.iter().any(|quantity| quantity.smallest_p() < UNEVEN);
    Ok(if uneven { code::WARNED } else { 0 })
}

fn rows(sequence: &Sequence) -> Vec<&[f64]> {
    (0..sequence.n_rows()).map(|t| sequence.u(t)).collect()
}

/// The record whose inputs and lengths are used; its outputs are not.
fn data(args: &SbcArgs, file: &RunFile, config: &RunConfig) -> Result<Data, Failure> {
    let columns = config.data.columns();
    if args.inputs.is_none() && args.steps.is_none() {
        if config.data.file.is_none() {
            let message = "no data file: give --steps for a model without inputs, or --inputs";
            return Err(Failure::input(format!("{}: {message}", args.model.display())));
        }
        return read_record(&file.data_path(config, None)?, &columns).map_err(Failure::input);
    }
    if columns.y.is_empty() {
        return Err(Failure::input(format!(
            "{}: data.y: name the outputs, as in y = \"y\"",
            args.model.display()
        )));
    }
    // Zeros and ones are outputs that every sensor can have.
    let outputs = |n: usize| (0..n).map(|t| vec![(t % 2) as f64; columns.y.len()]).collect();
    let sequences = match (&args.inputs, args.steps) {
        (Some(_), _) if columns.u.is_empty() => {
            return Err(Failure::input("--inputs: the model has no inputs (data.u); give --steps instead"));
        }
        (Some(path), _) => {
            if columns.input_lags.is_some() || columns.delay.is_some() || columns.every.is_some() {
                let message = "--inputs: data.input_lags, data.delay and data.every need a data file; give data.file instead";
                return Err(Failure::input(message));
            }
            let columns = Columns { y: columns.u.clone(), u: Vec::new(), ..columns.clone() };
            let found = read_record(path, &columns).map_err(Failure::input)?;
            let sequence = |inputs: &Sequence| {
                let u = (0..inputs.n_rows()).map(|t| inputs.y(t).to_vec()).collect();
                Sequence::new(outputs(inputs.n_rows()), u)
            };
            found.record.sequences().iter().map(sequence).collect::<Result<Vec<_>, _>>()?
        }
        (None, _) if !columns.u.is_empty() => {
            return Err(Failure::input("--steps: the model has inputs (data.u); give --inputs instead"));
        }
        (None, steps) => {
            let steps = steps.unwrap_or(0);
            if !(1..=1_000_000).contains(&steps) {
                return Err(Failure::input(format!("--steps {steps}: must be between 1 and 1000000")));
            }
            vec![Sequence::new(outputs(steps + 1), Vec::new())?]
        }
    };
    Ok(Data::from_record(Record::new(sequences)?, columns.y.clone(), columns.u.clone(), "simulated"))
}

/// A folder of finished runs.
struct Store {
    folder: PathBuf,
}

impl Store {
    /// The folder, if it is new or holds runs of the same model and options.
    fn open(folder: &Path, identity: &Value) -> Result<Self, Failure> {
        let text = format!("{identity:#}\n");
        let path = folder.join("sbc.json");
        match std::fs::read_to_string(&path) {
            Ok(found) if found == text => {}
            Ok(_) => {
                let message =
                    "holds runs of another model or with other options; choose another folder with -o";
                return Err(Failure::input(format!("{}: {message}", folder.display())));
            }
            Err(_)
                if folder.exists() && folder.read_dir().map_or(true, |mut items| items.next().is_some()) =>
            {
                let message =
                    "not a folder of gpssm sbc, so nothing is written there; choose another with -o";
                return Err(Failure::input(format!("{}: {message}", folder.display())));
            }
            Err(_) => {
                std::fs::create_dir_all(folder.join("runs"))
                    .map_err(|error| Failure::writing(folder, &error))?;
            }
        }
        let store = Self { folder: folder.to_path_buf() };
        store.write("sbc.json", &text)?;
        Ok(store)
    }

    fn name(index: u64) -> String {
        format!("runs/{index:06}.json")
    }

    /// A finished run; one that cannot be read is made again.
    fn get(&self, index: u64) -> Option<SbcRun> {
        let bytes = std::fs::read(self.folder.join(Self::name(index))).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn put(&self, index: u64, run: &SbcRun) -> Result<(), Failure> {
        self.write(&Self::name(index), &serde_json::to_string(run).map_err(Failure::other)?)
    }

    /// Writes a file whole or not at all.
    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let partial = path.with_extension("partial");
        let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path));
        written.map_err(|error| Failure::writing(&path, &error))
    }
}

/// A row for each run, a column for each quantity.
fn csv(judged: &[Uniformity]) -> String {
    let quoted = |quantity: &Uniformity| format!("\"{}\"", quantity.name.replace('"', "\"\""));
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let mut text = line(std::iter::once("run".into()).chain(judged.iter().map(quoted)).collect());
    for run in 0..judged.first().map_or(0, |quantity| quantity.ranks.len()) {
        let ranks = judged.iter().map(|quantity| quantity.ranks[run].to_string());
        text += &line(std::iter::once(run.to_string()).chain(ranks).collect());
    }
    text
}

fn cells(quantity: &Uniformity) -> Vec<String> {
    let ess = format!("{:.0} of {}", quantity.ess, quantity.draws);
    vec![number_or_dash(quantity.chi_square_p), number_or_dash(Some(quantity.ks_p)), ess]
}

const HEAD: [&str; 4] = ["quantity", "chi-square p", "KS p", "effective draws"];

/// What else one should know, in sentences.
fn warnings(judged: &[Uniformity]) -> Vec<String> {
    let dependent = |quantity: &&Uniformity| quantity.ess < FEWEST_EFFECTIVE * f64::from(quantity.draws);
    let names: Vec<&str> = judged.iter().filter(dependent).map(|quantity| quantity.name.as_str()).collect();
    match names.as_slice() {
        [] => Vec::new(),
        names => vec![format!(
            "Draws of {} depend on each other, which makes ranks uneven without an error of the sampler; raise --thin.",
            names.join(", ")
        )],
    }
}

fn html(run: &Run, options: &SbcOptions, judged: &[Uniformity], title: &str) -> String {
    let n = judged.first().map_or(0, |quantity| quantity.ranks.len());
    let series = |quantity: &Uniformity| RankSeries {
        name: quantity.name.clone(),
        counts: quantity.counts.clone(),
        count_band: quantity.count_band(),
        ecdf_difference: quantity.ecdf_difference(),
        ecdf_band: quantity.ecdf_band(),
        cells: cells(quantity),
        uneven: quantity.smallest_p() < UNEVEN,
    };
    let settings = &run.settings;
    let input = RankPage {
        title: &format!("{title}: simulation-based calibration"),
        summary: vec![format!(
            "{n} data sets were drawn from the prior and fitted from a cold start; the values that made them are ranked \
             among {} draws each, every {} sweeps.",
            options.draws, options.thin
        )],
        warnings: warnings(judged),
        header: HEAD.map(str::to_owned).to_vec(),
        facts: vec![
            ("Sampler".into(), format!("{} warm-up sweeps, {} particles", settings.tune, settings.particles)),
            (
                "Rows".into(),
                run.problem.record().sequences().iter().map(Sequence::n_rows).sum::<usize>().to_string(),
            ),
            ("Seed".into(), options.seed.to_string()),
            ("Version".into(), env!("CARGO_PKG_VERSION").into()),
        ],
        configuration: &run.to_toml(),
    };
    rank_page(&input, &judged.iter().map(series).collect::<Vec<_>>())
}

fn print(args: &SbcArgs, out: &Path, judged: &[Uniformity]) {
    let uneven = |quantity: &Uniformity| quantity.smallest_p() < UNEVEN;
    if args.verbosity.json {
        let one = |quantity: &Uniformity| {
            json!({
                "quantity": quantity.name,
                "chi_square_p": quantity.chi_square_p,
                "ks_p": quantity.ks_p,
                "effective_draws": quantity.ess,
                "bins": quantity.counts,
                "uneven": uneven(quantity),
            })
        };
        let all: Vec<Value> = judged.iter().map(one).collect();
        println!(
            "{:#}",
            json!({ "runs": args.runs, "draws": args.draws, "thin": args.thin, "quantities": all })
        );
        return;
    }
    if args.verbosity.quiet {
        return;
    }
    let mut table = Table::new(&[HEAD[0], HEAD[1], HEAD[2], HEAD[3], ""]);
    for quantity in judged {
        let mark = if uneven(quantity) { "uneven" } else { "" };
        let row = std::iter::once(quantity.name.clone()).chain(cells(quantity)).chain([mark.to_owned()]);
        table.push(row.collect());
    }
    print!("{}", table.render());
    for warning in warnings(judged) {
        eprintln!("warning: {warning}");
    }
    println!("\n{} runs in {1}. Figures: {1}/report.html", args.runs, out.display());
}
