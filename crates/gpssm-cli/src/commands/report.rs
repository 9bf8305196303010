//! `gpssm report`: figures in one HTML file.

use std::path::Path;

use gpssm::convergence::assess;
use gpssm_io::config::{ChoiceConfig, TrialConfig};
use gpssm_io::fit::LoadedRun;
use gpssm_io::table::Clock;
use gpssm_report::chart::TimeTicks;
use gpssm_report::content::choice::{Choice, Trial};
use gpssm_report::content::contents;
use gpssm_report::{Light, Lights, Names, ReportInput};

use crate::args::ReportArgs;
use crate::commands::summary;
use crate::failure::Failure;
use crate::fitted::check_draws;
use crate::output::{check_file, write_page};
use crate::verdict::verdict;

/// Runs the command; the exit code.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    if let Some(out) = &args.out {
        // What is there is replaced, so it had better be a report.
        if out.extension().is_none_or(|ending| ending != "html" && ending != "htm") {
            return Err(Failure::input(format!("{}: reports are .html files", out.display())));
        }
        check_file(out, &[])?;
    }
    let run = LoadedRun::open(&args.run)?;
    check_draws(&run, 1)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new(&run.name).with_extension("html"));
    write(&run, &out, args.figures.as_deref())?;
    eprintln!("{} written", out.display());
    Ok(0)
}

/// What an axis of times shows.
pub fn time_label(clock: &Clock, times: &[Vec<f64>]) -> String {
    let all = || times.iter().flatten().copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    clock.span(low, high).map_or_else(|| "time".into(), |span| format!("time, {span}"))
}

/// Where an axis of times has its ticks.
pub fn time_ticks(clock: &Clock) -> TimeTicks {
    let (finder, clock) = (clock.clone(), clock.clone());
    let ticks = TimeTicks::new(move |low, high, wanted| finder.ticks(low, high, wanted));
    match clock.has_dates() {
        true => ticks.with_seconds(move |time| clock.civil_seconds(time)),
        false => ticks,
    }
}

/// The verdict for the page.
fn report_lights(lights: &gpssm_identify::Lights) -> Lights {
    Lights {
        paragraph: lights.paragraph.clone(),
        lights: lights
            .lights
            .iter()
            .map(|light| Light {
                state: light.state.word(),
                question: light.question.clone(),
                finding: light.finding.clone(),
                next: light.next.clone(),
            })
            .collect(),
        scores: lights.table(),
    }
}

/// What was tried before the fit, for the page.
pub fn choice_of(choice: &ChoiceConfig) -> Choice {
    let beside = [("best linear model", choice.linear_crps), ("constant", choice.constant_crps)];
    let trial = |trial: &TrialConfig| Trial {
        candidate: trial.candidate.clone(),
        crps: trial.crps,
        rmse: trial.rmse,
        coverage: trial.coverage_90,
    };
    Choice {
        trials: choice.trials.iter().map(trial).collect(),
        chosen: choice.chosen,
        beside: beside.into_iter().filter_map(|(name, crps)| Some((name.to_owned(), crps?))).collect(),
    }
}

/// Writes the report of a run, and its figures into a folder if one is named.
pub fn write(run: &LoadedRun, out: &Path, figures: Option<&Path>) -> Result<(), Failure> {
    let found = assess(&run.problem, &run.settings, &run.chains, 0.9);
    let lights = verdict(run, &found, None, false)?;
    let model = run.problem.model();
    let settings = &run.settings;
    let clock = run.clock();
    let input = ReportInput {
        title: &run.name,
        problem: &run.problem,
        chains: &run.chains,
        names: Names {
            states: model.state_names(),
            inputs: model.input_names(),
            outputs: model.output_names(),
            sequences: run.sequence_labels.clone(),
            time_label: time_label(&clock, &run.time),
            time_ticks: time_ticks(&clock),
            times: run.time.clone(),
        },
        verdict: Some(&found.verdict),
        lights: Some(report_lights(&lights)),
        warnings: summary::warnings_beside_lights(run, &found),
        facts: vec![
            ("Run".into(), run.describe()),
            ("Sampler".into(), format!("{} warm-up sweeps, {} particles", settings.tune, settings.particles)),
            ("Seed".into(), settings.seed.to_string()),
            ("Version".into(), run.version.clone()),
        ],
        choice: run.choice.as_ref().map(choice_of),
        configuration: Some(&run.configuration),
    };
    write_page(&contents(&input).map_err(Failure::other)?, out, figures)
}
