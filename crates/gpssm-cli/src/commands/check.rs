//! `gpssm check`: what predictions of a record miss, as a table, a page of figures and an exit code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gpssm::posterior::OnlineOptions;
use gpssm_identify::check::{CheckOptions, CheckReport, OutputResiduals, Statistic, check};
use gpssm_io::table::{Clock, Data};
use gpssm_report::checks::{CheckPage, CheckTable, ResidualChecks, check_contents};
use gpssm_report::content::Contents;

use crate::commands::report::{time_label, time_ticks};
use crate::failure::{Failure, code};
use crate::fitted::{DrawArgs, Fitted, RecordArgs, check_room};
use crate::output::{check_file, write_page};
use crate::progress::steps;
use crate::table::{Table, number, number_or_dash};

/// Statistics by their names.
fn statistics() -> impl TypedValueParser<Value = Statistic> {
    PossibleValuesParser::new(Statistic::ALL.map(Statistic::name)).try_map(|name| {
        let named = Statistic::ALL.into_iter().find(|statistic| statistic.name() == name);
        named.ok_or("no such statistic")
    })
}

/// Arguments of `gpssm check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm check run.zarr                        on the training record
  gpssm check run.zarr new.csv                on rows that were not used in the fit, which is the harder test
  gpssm check run.zarr --horizons 1,5,20      also scores of predictions 1, 5 and 20 steps ahead

One step ahead: are the residuals white (Ljung-Box), do they follow an input (cross-correlation), are the predictions calibrated \
(probability integral transform). Free runs: do they have the mean, spread, extremes and autocorrelation of the record. Also: rows that \
were not expected, rows that the estimates hang on, and hyper-parameters about which the data said nothing.

Each test has level 1 %, all its lags together. The exit code is 0 if all passed and 3 if one did not.")]
pub struct CheckArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// A CSV file with rows that were not used in the fit [default: the training record].
    pub file: Option<PathBuf>,
    /// Page of figures [default: the name of the run with .check.html].
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write each figure into this folder, too, as an SVG file.
    #[arg(long, value_name = "FOLDER")]
    pub figures: Option<PathBuf>,
    /// Statistics that free runs are compared in, comma separated [default: all].
    #[arg(long, value_parser = statistics(), value_name = "NAMES", value_delimiter = ',')]
    pub statistics: Vec<Statistic>,
    /// Also score predictions so many steps ahead, comma separated.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    pub horizons: Vec<usize>,
    /// Number of free runs, and of samples of each prediction.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub paths: usize,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// Columns of the record.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// Runs the command; the exit code.
pub fn run(args: &CheckArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    if args.paths < 100 {
        return Err(Failure::input(format!("--paths {}: at least 100 are needed", args.paths)));
    }
    let fitted = Fitted::open(&args.run, args.draws)?.for_record(&args.record)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new(&fitted.run.name).with_extension("check.html"));
    if out.extension().is_none_or(|ending| ending != "html" && ending != "htm") {
        return Err(Failure::input(format!("{}: pages are .html files", out.display())));
    }
    check_file(&out, &[])?;
    let data = args.file.as_ref().map(|file| fitted.measured(file, &args.record)).transpose()?;
    let record = data.as_ref().map_or(&fitted.model.training, |data| &data.record);
    let n_rows: usize = record.sequences().iter().map(gpssm::Sequence::n_rows).sum();
    check_room("--paths", args.paths, n_rows * record.n_y())?;
    let mut options = CheckOptions {
        n_paths: args.paths,
        horizons: args.horizons.clone(),
        filter: OnlineOptions { seed: args.draws.seed, ..OnlineOptions::default() },
        ..CheckOptions::default()
    };
    if !args.statistics.is_empty() {
        options.statistics = args.statistics.clone();
    }
    let progress = steps("check");
    let tell = |done: usize, of: usize| progress.tell(done, of) && !stop.load(Ordering::Relaxed);
    let found =
        check(&fitted.model, data.as_ref().map(|data| &data.record), &fitted.run.data.u, &options, &tell);
    drop(progress);
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::stopped("stopped; nothing was written"));
    }
    let found = found?;
    let shown = Shown::new(&fitted, data.as_ref());
    let page = page(&found, &shown, &fitted.run.name);
    write_page(&page, &out, args.figures.as_deref())?;
    if args.json {
        println!("{:#}", serde_json::json!({ "passed": found.passed(), "check": found }));
    } else {
        print!("{}", as_text(&found, &shown));
        println!("\nFigures: {}", out.display());
    }
    Ok(if found.passed() { 0 } else { code::WARNED })
}

/// Names and times of the record that was checked.
struct Shown {
    source: String,
    clock: Clock,
    time: Vec<Vec<f64>>,
    sequences: Vec<String>,
    every: usize,
}

impl Shown {
    fn new(fitted: &Fitted, data: Option<&Data>) -> Self {
        let every = fitted.model.layout.every;
        match data {
            Some(data) => Self {
                source: data.source.clone(),
                clock: data.clock(),
                time: data.time.clone(),
                sequences: data.sequence_labels.clone(),
                every: 1,
            },
            None => Self {
                source: "the training record".into(),
                clock: fitted.run.clock(),
                time: fitted.run.time.clone(),
                sequences: fitted.run.sequence_labels.clone(),
                // The times of a store are those of the rows that were learned from.
                every,
            },
        }
    }

    /// Time of a row of the record as it was measured.
    fn time(&self, s: usize, row: usize) -> f64 {
        let at = row / self.every;
        self.time.get(s).and_then(|time| time.get(at)).copied().unwrap_or(row as f64)
    }

    /// Time of a row in words, with its sequence where there are several.
    fn place(&self, (s, row): (usize, usize)) -> String {
        let text = self.clock.text(self.time(s, row));
        match self.sequences.get(s) {
            Some(label) if self.sequences.len() > 1 => format!("{text} of {label}"),
            _ => text,
        }
    }
}

fn rounded(p: Option<f64>) -> String {
    match p {
        None => "undefined".into(),
        Some(p) if p < 0.001 => "< 0.001".into(),
        Some(p) => format!("{p:.3}"),
    }
}

fn as_text(found: &CheckReport, shown: &Shown) -> String {
    let n: usize = found.residuals.iter().map(OutputResiduals::n).sum();
    let mut text = format!("Checks on {} ({n} residuals one step ahead)", shown.source);
    text += if found.on_training { ", on which every model looks better than it is\n\n" } else { "\n\n" };
    let mut table = Table::new(&["", "output", "p", ""]);
    for test in &found.tests {
        let verdict = if test.passed { "passed" } else { "FAILED" };
        table.push(vec![test.name.clone(), test.output.clone(), rounded(test.p), verdict.into()]);
    }
    text += &table.render();
    let failed: Vec<_> = found.tests.iter().filter(|test| !test.passed).collect();
    let mut said = Vec::new();
    for test in &failed {
        if !said.contains(&&test.meaning) {
            text += &format!("\n{} ({}): {}.", test.name, test.output, test.meaning);
            said.push(&test.meaning);
        }
    }
    text += match failed.is_empty() {
        true => "\nAll tests passed.\n",
        false => "\n",
    };
    for (_, title, table) in tables(found, shown) {
        if table.rows.is_empty() {
            continue;
        }
        let head: Vec<&str> = table.header.iter().map(String::as_str).collect();
        let mut cells = Table::new(&head);
        table.rows.iter().for_each(|(_, row)| cells.push(row.clone()));
        text += &format!("\n{title}\n{}", cells.render());
    }
    for note in &found.left_out {
        text += &format!("\nNot checked: {note}.\n");
    }
    text
}

/// Tables below the tests: what is not a yes or a no.
fn tables(found: &CheckReport, shown: &Shown) -> Vec<(&'static str, String, CheckTable)> {
    let header = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let surprises = found.residuals.iter().flat_map(|output| {
        output.surprises.iter().map(|row| {
            let cells = [row.measured, row.predicted].map(number);
            let head = vec![shown.place(row.at), output.output.clone()];
            (false, [head, cells.to_vec(), vec![format!("{:+.1}", row.residual)]].concat())
        })
    });
    let influence = found.influence.iter().map(|row| {
        let at = (row.at.0, row.at.1 * shown.every);
        let change = format!("{:.2}", row.change);
        (
            row.change > 1.0,
            vec![shown.place(at), row.parameter.clone(), change, format!("{:.0}", row.effective)],
        )
    });
    let interval = |values: [f64; 3]| format!("{} .. {}", number(values[0]), number(values[2]));
    let informed = found.informed.iter().map(|row| {
        let said = if row.informed { "yes" } else { "hardly" };
        let cells = vec![
            row.name.clone(),
            interval(row.prior),
            interval(row.posterior),
            format!("{:.2}", row.width),
            said.into(),
        ];
        (!row.informed, cells)
    });
    let percent =
        |share: Option<f64>| share.map_or_else(|| "-".into(), |share| format!("{:.0} %", 100.0 * share));
    let fit = |fit: Option<f64>| fit.map_or_else(|| "-".into(), |fit| format!("{fit:.1}"));
    let horizons = found.horizons.iter().map(|row| {
        let worse = row.fit.zip(row.linear).is_some_and(|(own, linear)| own < linear);
        let cells = vec![
            row.steps.to_string(),
            row.output.clone(),
            fit(row.fit),
            fit(row.linear),
            percent(row.inside),
        ];
        (worse, [cells, vec![number_or_dash(row.log_score)]].concat())
    });
    let table = |head: &[&str], rows: Vec<_>, caption: &str| CheckTable {
        header: header(head),
        rows,
        caption: caption.into(),
    };
    vec![
        (
            "horizons",
            "Predictions several steps ahead".into(),
            table(
                &["steps", "output", "fit %", "best linear", "inside 90 %", "log score"],
                horizons.collect(),
                "Fit of the model and of the best linear model; marked where the linear one is better.",
            ),
        ),
        (
            "surprises",
            "Rows that were not expected".into(),
            table(
                &["time", "output", "measured", "predicted", "residual"],
                surprises.collect(),
                "Residuals are in standard deviations of the prediction one step ahead; the largest are shown.",
            ),
        ),
        (
            "influence",
            "Rows that the estimates hang on".into(),
            table(
                &["time", "hyper-parameter", "change", "effective draws"],
                influence.collect(),
                "Change of a hyper-parameter in posterior standard deviations if the row were not there; a lower bound, as the states \
                 were drawn given the row. Marked above one.",
            ),
        ),
        (
            "informed",
            "What the data said about hyper-parameters".into(),
            table(
                &["hyper-parameter", "prior 90 %", "posterior 90 %", "width", "data said something"],
                informed.collect(),
                "Width is that of the posterior interval over that of the prior (of logarithms where all values are positive). \
                 Where the data said hardly anything, predictions rest on the prior.",
            ),
        ),
    ]
}

fn page(found: &CheckReport, shown: &Shown, name: &str) -> Contents {
    let answers = found.tests.iter().map(|test| {
        let p = match rounded(test.p) {
            p if p.starts_with(['<', 'u']) => p,
            p => format!("= {p}"),
        };
        let text = match test.passed {
            true => format!("{}: {}: yes (p {p})", test.output, test.name),
            false => format!("{}: {}: no (p {p}); {}", test.output, test.name, test.meaning),
        };
        (test.passed, text)
    });
    let failed = found.tests.iter().filter(|test| !test.passed).count();
    let mut summary = vec![match failed {
        0 => format!("All {} tests passed on {}.", found.tests.len(), shown.source),
        n => format!("{n} of {} tests failed on {}.", found.tests.len(), shown.source),
    }];
    if found.on_training {
        summary.push(
            "On the training record every model looks better than it is; rows that were not used in the fit are the harder test.".into(),
        );
    }
    let outputs = found.residuals.iter().map(|output| residual_checks(found, output, shown)).collect();
    check_contents(&CheckPage {
        title: &format!("Checks of {name}"),
        summary,
        warnings: found.left_out.iter().map(|note| format!("Not checked: {note}.")).collect(),
        answers: answers.collect(),
        time_label: time_label(&shown.clock, &shown.time),
        time_ticks: time_ticks(&shown.clock),
        outputs,
        tables: tables(found, shown),
    })
}

/// What the figures of one output show.
fn residual_checks(found: &CheckReport, output: &OutputResiduals, shown: &Shown) -> ResidualChecks {
    let times =
        output.rows.iter().enumerate().flat_map(|(s, rows)| rows.iter().map(move |row| shown.time(s, *row)));
    let own = found.replicated.iter().filter(|replicated| replicated.output == output.output);
    ResidualChecks {
        name: output.output.clone(),
        t: times.collect(),
        residuals: output.residuals.concat(),
        pit: output.pit.clone(),
        autocorrelation: output.autocorrelation.clone(),
        cross: output
            .cross
            .iter()
            .map(|cross| {
                let lags = cross.lags.iter().map(|lag| *lag as f64).collect();
                (cross.input.clone(), lags, cross.values.clone())
            })
            .collect(),
        statistics: own
            .map(|found| (found.statistic.title().to_owned(), found.observed, found.replicates.clone()))
            .collect(),
    }
}
