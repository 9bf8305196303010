//! `gpssm summary`: what was learned, and whether to trust it.

use gpssm::convergence::{Assessment, RowNames, assess};
use gpssm::diagnostics::Summary;
use gpssm_io::fit::LoadedRun;
use serde_json::{Value, json};

use crate::args::SummaryArgs;
use crate::failure::{Failure, code};
use crate::table::{Table, number_or_dash};

/// Runs the command; the exit code.
pub fn run(args: &SummaryArgs) -> Result<u8, Failure> {
    if !(args.level > 0.0 && args.level < 1.0) {
        return Err(Failure::input(format!("--level {}: must lie between 0 and 1", args.level)));
    }
    let run = LoadedRun::open(&args.run)?;
    let found = assess(&run.problem, &run.chains, args.level);
    if args.json {
        println!("{:#}", as_json(&run, &found));
    } else {
        print!("{}", as_text(&run, &found, args.level));
    }
    Ok(if args.strict && !found.warnings.is_empty() { code::WARNED } else { 0 })
}

fn row_names(run: &LoadedRun) -> RowNames<'_> {
    RowNames { time: &run.time, sequences: &run.sequence_labels }
}

/// Warnings, one line each.
pub fn warnings(run: &LoadedRun, found: &Assessment) -> Vec<String> {
    found.warnings.iter().map(|warning| warning.describe(&row_names(run))).collect()
}

/// The summary as people read it.
pub fn as_text(run: &LoadedRun, found: &Assessment, level: f64) -> String {
    let mut text = format!("{}\n\n", run.describe());
    let percent = format!("{:.0} %", 100.0 * level);
    let head = ["", "mean", "sd", &format!("{percent} from"), "to", "ESS bulk", "ESS tail", "R-hat"];
    let mut table = Table::new(&head);
    for parameter in found.parameters.iter().filter(|parameter| !parameter.fixed) {
        table.push(row(&parameter.name, &parameter.summary));
    }
    table.push(row("log density", &found.log_joint));
    text += &table.render();
    text += &format!("Intervals are equal-tailed, {percent}.\n");
    for parameter in found.parameters.iter().filter(|parameter| parameter.fixed) {
        text += &format!("{} = {} (known)\n", parameter.name, number_or_dash(parameter.summary.mean));
    }
    text.push('\n');
    for (s, sequence) in found.sequences.iter().enumerate() {
        let which =
            if found.sequences.len() > 1 { format!(" of sequence {}", label(run, s)) } else { String::new() };
        let rates = &sequence.update_rate;
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let worst = sequence.r_hat.iter().flatten().copied().fold(1.0, f64::max);
        let ess = sequence.ess_bulk.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        text += &format!(
            "States{which}: changed in {:.0} % of the sweeps (minimum {:.0} %), worst R-hat {worst:.2}, smallest ESS {}\n",
            100.0 * mean,
            100.0 * least.min(1.0),
            number_or_dash(Some(ess).filter(|ess| ess.is_finite()))
        );
    }
    let totals = &found.totals;
    text += &format!(
        "Numerics: {} path densities ({} failed), {} failed filters, {} slice updates at their limit, {} covariances \
         raised to the process noise\n",
        totals.density_evaluations,
        totals.density_failures,
        totals.filter_failures,
        totals.slice_capped,
        totals.clamped
    );
    let warnings = warnings(run, found);
    if warnings.is_empty() {
        text += "\nNo warnings: the chains agree.\n";
    }
    for warning in warnings {
        text += &format!("\nWarning: {warning}\n");
    }
    text
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
pub fn as_json(run: &LoadedRun, found: &Assessment) -> Value {
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
        "chains": run.chain_ids,
        "draws": found.draws,
        "interval": "equal-tailed",
        "parameters": parameters,
        "log_joint": summary_json(&found.log_joint),
        "sequences": sequences,
        "totals": found.totals,
        "warnings": warnings(run, found),
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
