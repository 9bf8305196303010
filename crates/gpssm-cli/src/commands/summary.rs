//! `gpssm summary`: what was learned, and whether to trust it.

use gpssm::convergence::{Assessment, Judged, ParameterSummary, R_HAT_LIMIT, Warning, Wording, assess};
use gpssm::diagnostics::Summary;
use gpssm::mcmc::SweepInfo;
use gpssm_identify::Lights;
use gpssm_io::fit::LoadedRun;
use serde_json::{Value, json};

use crate::args::SummaryArgs;
use crate::failure::{Failure, code};
use crate::fitted::{DrawArgs, Fitted};
use crate::table::{Table, number_or_dash};
use crate::verdict::{self, resume, verdict};

/// Runs the command; the exit code.
pub fn run(args: &SummaryArgs) -> Result<u8, Failure> {
    if !(args.level > 0.0 && args.level < 1.0) {
        return Err(Failure::input(format!("--level {}: must lie between 0 and 1", args.level)));
    }
    let run = LoadedRun::open(&args.run)?;
    let found = assess(&run.problem, &run.settings, &run.chains, args.level);
    let fitted = args.file.as_ref().map(|_| Fitted::open(&args.run, DrawArgs { max_draws: 1, seed: 1 }));
    let held_out = match (&args.file, fitted.transpose()?) {
        (Some(file), Some(fitted)) => Some(fitted.measured(file, &args.record)?),
        _ => None,
    };
    let held_out = held_out.as_ref().map(|data| (&data.record, data.source.as_str()));
    let lights = verdict(&run, &found, held_out, args.json)?;
    if args.json {
        println!("{:#}", as_json(&run, &found, &lights));
    } else {
        print!("{}", as_text(&run, &found, &lights, args.level));
    }
    Ok(if args.strict && !found.warnings.is_empty() { code::WARNED } else { 0 })
}

/// The words of this program for the rows of a run and for going on with it.
pub fn with_wording<T>(run: &LoadedRun, tell: impl FnOnce(&Wording) -> T) -> T {
    let resume = resume(run);
    let clock = run.clock();
    let clock = |time: f64| clock.text(time);
    tell(&Wording { time: &run.time, clock: &clock, sequences: &run.sequence_labels, resume: &resume })
}

/// Warnings, one line each.
pub fn warnings(run: &LoadedRun, found: &Assessment) -> Vec<String> {
    with_wording(run, |wording| found.warnings.iter().map(|warning| warning.describe(wording)).collect())
}

/// Warnings that the three lights do not say already.
pub fn warnings_beside_lights(run: &LoadedRun, found: &Assessment) -> Vec<String> {
    let said = found.warnings.iter().filter(|warning| !is_in_lights(warning));
    with_wording(run, |wording| said.map(|warning| warning.describe(wording)).collect())
}

/// The summary as people read it.
pub fn as_text(run: &LoadedRun, found: &Assessment, lights: &Lights, level: f64) -> String {
    let mut text = format!("{}\n\n{}\n", run.describe(), verdict::text(lights));
    let percent = format!("{:.0} %", 100.0 * level);
    let head = ["", "mean", "sd", &format!("{percent} from"), "to", "ESS bulk", "ESS tail", "R-hat"];
    let mut table = Table::new(&head);
    for parameter in found.parameters.iter().filter(|parameter| !parameter.fixed) {
        table.push(row(&parameter.name, &parameter.summary));
    }
    table.push(row("log density", &found.log_joint));
    text += &table.render();
    text += &format!("Intervals are equal-tailed, {percent}.\n");
    // Of lagged outputs the sensor has a known zero for each past value.
    let told = |parameter: &&ParameterSummary| parameter.fixed && parameter.summary.mean != Some(0.0);
    for parameter in found.parameters.iter().filter(told) {
        text += &format!("{} = {} (known)\n", parameter.name, number_or_dash(parameter.summary.mean));
    }
    text.push('\n');
    if run.settings.narx {
        text += "States: held on the outputs (GP-NARX)\n";
    }
    if run.settings.point {
        text += "A point estimate: one value of each hyper-parameter, and one path\n";
    }
    let drawn = !run.settings.narx && !run.settings.point;
    for (s, sequence) in found.sequences.iter().enumerate().filter(|_| drawn) {
        let which =
            if found.sequences.len() > 1 { format!(" of sequence {}", label(run, s)) } else { String::new() };
        let rates = &sequence.update_rate;
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let worst = sequence.r_hat.iter().flatten().copied().reduce(f64::max);
        let ess = sequence.ess_bulk.iter().flatten().copied().reduce(f64::min);
        text += &format!(
            "States{which}: changed in {:.0} % of the sweeps (minimum {:.0} %), worst R-hat {}, smallest ESS {}\n",
            100.0 * mean,
            100.0 * least.min(1.0),
            worst.map_or_else(|| "undefined".into(), |worst| format!("{worst:.2}")),
            ess.map_or_else(|| "undefined".into(), |ess| format!("{ess:.0}"))
        );
    }
    text += &numerics(&found.totals);
    let verdict = &found.verdict;
    text += &verdict.describe_excluded().map_or_else(String::new, |excluded| format!("\n{excluded}\n"));
    for warning in warnings_beside_lights(run, found) {
        text += &format!("\nWarning: {warning}\n");
    }
    text
}

/// Whether the first light says it already.
fn is_in_lights(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::TooShort { .. } | Warning::OneChain | Warning::Point | Warning::Apart(_) | Warning::Slow(_)
    )
}

/// What went wrong in numbers; what did not is not said.
fn numerics(totals: &SweepInfo) -> String {
    let counts = [
        (totals.density_failures, "path densities failed"),
        (totals.filter_failures, "filters failed"),
        (totals.slice_failures, "log densities were not numbers"),
        (totals.slice_capped, "slice updates reached their limit"),
        (totals.clamped, "covariances were raised to the process noise"),
    ];
    let found: Vec<String> =
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    match found.is_empty() {
        true => String::new(),
        false => {
            format!("Numerics: {} (of {} path densities)\n", found.join(", "), totals.density_evaluations)
        }
    }
}

fn label(run: &LoadedRun, s: usize) -> String {
    run.sequence_labels.get(s).cloned().unwrap_or_else(|| (s + 1).to_string())
}

fn row(name: &str, summary: &Summary) -> Vec<String> {
    let rounded = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
    vec![
        name.to_owned(),
        number_or_dash(summary.mean),
        number_or_dash(summary.sd),
        number_or_dash(summary.lower),
        number_or_dash(summary.upper),
        rounded(summary.ess_bulk),
        rounded(summary.ess_tail),
        summary.r_hat.map_or_else(|| "-".into(), |r_hat| format!("{r_hat:.3}")),
    ]
}

/// The summary for programs.
pub fn as_json(run: &LoadedRun, found: &Assessment, lights: &Lights) -> Value {
    let parameters: Vec<Value> = found
        .parameters
        .iter()
        .map(|parameter| {
            let mut value = summary_json(&parameter.summary);
            value["name"] = json!(parameter.name);
            value["fixed"] = json!(parameter.fixed);
            value
        })
        .collect();
    let sequences: Vec<Value> = found
        .sequences
        .iter()
        .map(|s| json!({ "rows": s.rows, "r_hat": s.r_hat, "ess_bulk": s.ess_bulk, "update_rate": s.update_rate }))
        .collect();
    json!({
        "run": run.name,
        "lights": lights,
        "chains": run.chain_ids,
        "draws": found.draws,
        "interval": "equal-tailed",
        "parameters": parameters,
        "log_joint": summary_json(&found.log_joint),
        "sequences": sequences,
        "totals": found.totals,
        "verdict": verdict_json(run, found),
        "warnings": warnings(run, found),
    })
}

/// Whether all that is identified has converged, quantity by quantity.
fn verdict_json(run: &LoadedRun, found: &Assessment) -> Value {
    let verdict = &found.verdict;
    let judged = |judged: &Judged| {
        json!({
            "name": with_wording(run, |wording| judged.quantity.describe(wording)),
            "r_hat": judged.r_hat.filter(|r_hat| r_hat.is_finite()),
            "ess_bulk": judged.ess_bulk,
            "ess_tail": judged.ess_tail,
            "good": judged.is_good(verdict.target),
        })
    };
    json!({
        "converged": verdict.is_good(),
        "draws": verdict.draws,
        "ess": verdict.target,
        "r_hat": R_HAT_LIMIT,
        "judged": verdict.judged.iter().map(judged).collect::<Vec<_>>(),
        "not_identified": verdict.excluded,
    })
}

/// Infinite R-hat has no JSON form and is given as null, with a warning beside it.
fn summary_json(summary: &Summary) -> Value {
    json!({
        "mean": summary.mean,
        "sd": summary.sd,
        "level": summary.level,
        "lower": summary.lower,
        "upper": summary.upper,
        "mcse_mean": summary.mcse_mean,
        "ess_bulk": summary.ess_bulk,
        "ess_tail": summary.ess_tail,
        "r_hat": summary.r_hat.filter(|r_hat| r_hat.is_finite()),
    })
}
