//! `gpssm compare --plot`: free runs of several models and of linear ones over one record.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpssm::posterior::{OnlineOptions, Simulation};
use gpssm_identify::baseline::{Task, baselines};
use gpssm_identify::score::Scores;
use gpssm_identify::{ScoreOptions, ScoreReport};
use gpssm_io::table::Data;
use gpssm_report::comparison::{Compared, ComparisonPage, Prediction, comparison_contents};
use serde_json::json;

use super::{CompareArgs, needed};
use crate::commands::report::{time_label, time_ticks};
use crate::failure::Failure;
use crate::fitted::{Fitted, check_room, warn};
use crate::output::{check_file, write_page};
use crate::progress::steps;
use crate::table::{Table, number};

/// Figures of a page, at the most.
const MOST_FIGURES: usize = 12;

/// One model over all sequences.
struct Run {
    name: String,
    report: ScoreReport,
    /// By sequence.
    runs: Vec<Simulation>,
}

pub(super) fn run(
    args: &CompareArgs,
    record: Option<&Path>,
    out: &Path,
    fitted: &[Fitted],
    names: &[String],
    stop: &Arc<AtomicBool>,
) -> Result<u8, Failure> {
    let file = needed(record)?;
    let Some(first) = fitted.first() else { return Err(Failure::input("no run to compare")) };
    if out.extension().is_none_or(|ending| ending != "html" && ending != "htm") {
        return Err(Failure::input(format!("--plot {}: pages are .html files", out.display())));
    }
    check_file(out, &[file])?;
    let data = first.measured(file, &args.record)?;
    check_room("--paths", args.paths, data.n_rows * data.outputs.len())?;
    let sequences = data.record.sequences();
    // One start for all: what the most forgetful model needs.
    let needs = |n_rows: usize| {
        let one = |fitted: &Fitted| fitted.model.n_init(&ScoreOptions::default(), n_rows);
        fitted.iter().map(one).max().unwrap_or(1)
    };
    let n_init =
        args.n_init.unwrap_or_else(|| sequences.iter().map(|s| needs(s.n_rows())).min().unwrap_or(1));
    let options = ScoreOptions {
        n_init: Some(n_init.max(1)),
        n_paths: args.paths,
        filter: OnlineOptions { seed: args.draws.seed, ..OnlineOptions::default() },
        ..ScoreOptions::default()
    };
    let progress = steps("compare");
    let n = fitted.len() * sequences.len();
    let mut all: Vec<Run> = Vec::new();
    for (i, (model, name)) in fitted.iter().zip(names).enumerate() {
        let (mut reports, mut runs) = (Vec::new(), Vec::new());
        for (s, sequence) in sequences.iter().enumerate() {
            let tell = |done: usize, of: usize| {
                progress.tell((i * sequences.len() + s) * of + done, n * of) && !stop.load(Ordering::Relaxed)
            };
            let (report, run) = model.model.score_free_run(sequence, &options, &tell)?;
            reports.push(report);
            runs.push(run);
        }
        let report = model.model.together(&options, &reports, sequences);
        all.push(Run { name: name.clone(), report, runs });
    }
    drop(progress);
    all.iter().for_each(|run| warn(&run.report.warnings));
    let scores = ranked(&all, data.outputs.len());
    if args.json {
        let scores: Vec<_> =
            scores.iter().map(|(name, scores)| json!({ "name": name, "scores": scores })).collect();
        println!("{:#}", json!({ "n_init": n_init, "free_runs": scores }));
    } else {
        for (k, output) in data.outputs.iter().enumerate() {
            let mut table = Table::new(&[output, "fit %", "RMSE", "in 90 %"]);
            rows(&scores, k).into_iter().for_each(|row| table.push(row));
            print!("{}", table.render());
        }
    }
    let outputs = figures(&all, first, &data, n_init)?;
    let clock = data.clock();
    let mut table = Vec::new();
    for (k, output) in data.outputs.iter().enumerate() {
        for row in rows(&scores, k) {
            table.push((false, [vec![output.clone()], row].concat()));
        }
    }
    let header = ["output", "model", "fit %", "RMSE", "inside 90 %"].map(str::to_owned).to_vec();
    let summary = format!(
        "Free runs over {} from the state after {n_init} rows, best first for each output.",
        data.source
    );
    let contents = comparison_contents(&ComparisonPage {
        title: &format!("Models over {}", data.source),
        summary: vec![summary],
        scores: (header, table),
        caption: "Fit is 100 (1 - RMSE / sd) %. The linear models were fitted to the training record of the first run.".into(),
        time_label: time_label(&clock, &data.time),
        time_ticks: time_ticks(&clock),
        outputs,
    });
    write_page(&contents, out, args.figures.as_deref())?;
    if !args.json {
        println!("\nFigures: {}", out.display());
    }
    Ok(0)
}

/// Models and the baselines of the first one.
fn ranked(all: &[Run], n_y: usize) -> Vec<(String, Scores)> {
    let own = all.iter().filter_map(|run| Some((run.name.clone(), run.report.scores.first()?.clone())));
    let others = all[0].report.scores.iter().skip(1).filter(|scores| scores.name != "mean function");
    let others = others.map(|scores| (title(&scores.name, scores.order), scores.clone()));
    let mut scores: Vec<(String, Scores)> = own.chain(others).collect();
    // By the mean of the relative errors of all outputs.
    let size = |scores: &Scores| {
        scores.outputs.iter().map(|output| output.nrmse.unwrap_or(output.rmse)).sum::<f64>()
            / n_y.max(1) as f64
    };
    scores.sort_by(|a, b| size(&a.1).total_cmp(&size(&b.1)));
    scores
}

fn title(name: &str, order: Option<usize>) -> String {
    order.map_or_else(|| name.to_owned(), |order| format!("{name} (order {order})"))
}

fn rows(scores: &[(String, Scores)], k: usize) -> Vec<Vec<String>> {
    let row = |(name, scores): &(String, Scores)| {
        let found = &scores.outputs[k];
        let inside = found.coverage.iter().find(|coverage| coverage.level == 0.9);
        vec![
            name.clone(),
            found.fit.map_or_else(|| "-".into(), |fit| format!("{fit:.1}")),
            number(found.rmse),
            inside.map_or_else(|| "-".into(), |coverage| format!("{:.0} %", 100.0 * coverage.share)),
        ]
    };
    scores.iter().map(row).collect()
}

/// Every output of every sequence.
fn figures(all: &[Run], first: &Fitted, data: &Data, n_init: usize) -> Result<Vec<Compared>, Failure> {
    let mut figures = Vec::new();
    let n_y = data.outputs.len();
    for (s, sequence) in data.record.sequences().iter().enumerate() {
        let linear = baselines(&first.model.training, sequence, Task::FreeRun { n_init });
        for (k, output) in data.outputs.iter().enumerate() {
            let hidden = |t: usize, value: f64| if t < n_init { f64::NAN } else { value };
            let fit = |scores: &Scores| {
                scores.outputs[k].fit.map_or_else(String::new, |fit| format!(": {fit:.1} %"))
            };
            let own = all.iter().map(|run| {
                let line = |p: f64| -> Vec<f64> {
                    (0..sequence.n_rows()).map(|t| hidden(t, run.runs[s].y.quantile(t, k, p))).collect()
                };
                let scores = run.report.scores.first();
                let name = format!("{}{}", run.name, scores.map_or_else(String::new, fit));
                (
                    scores.map_or(f64::INFINITY, |scores| scores.outputs[k].rmse),
                    Prediction { name, middle: line(0.5), low: line(0.05), high: line(0.95) },
                )
            });
            let own: Vec<(f64, Prediction)> = own.collect();
            let least = own.iter().map(|(rmse, _)| *rmse).fold(f64::INFINITY, f64::min);
            // Intervals of one model can be read; of several they cannot.
            let mut models: Vec<Prediction> = own
                .into_iter()
                .map(|(rmse, model)| match rmse <= least {
                    true => model,
                    false => Prediction { low: Vec::new(), high: Vec::new(), ..model },
                })
                .collect();
            for baseline in
                linear.iter().filter(|baseline| baseline.order.is_some() && baseline.name != "ARX by BIC")
            {
                let scores = all[0].report.scores.iter().find(|scores| scores.name == baseline.name);
                let middle = baseline.mean[k..].iter().step_by(n_y).enumerate().map(|(t, y)| hidden(t, *y));
                let name = title(&baseline.name, baseline.order);
                models.push(Prediction {
                    name: format!("{name}{}", scores.map_or_else(String::new, fit)),
                    middle: middle.collect(),
                    ..Prediction::default()
                });
            }
            let title = match data.sequence_labels.len() {
                1 => output.clone(),
                _ => format!("{output}, {}", data.sequence_labels[s]),
            };
            let (t, measured) = (data.time[s].clone(), sequence.output(k).collect());
            figures.push(Compared { title, t, data: measured, models });
            if figures.len() == MOST_FIGURES {
                return Ok(figures);
            }
        }
    }
    Ok(figures)
}
