//! Is the model good? Free run and one step ahead beside a constant and the best linear models.

use super::{Compared, Judging, Light, Predicted, State};
use crate::evaluation::ScoreReport;
use crate::fitted::FittedModel;
use crate::score::{OutputScores, Scores};

pub(super) const QUESTION: &str = "Is the model good?";

/// RMSE over that of the best linear model, and fit % below it, up to which a model is as good as that, ...
const AS_GOOD: (f64, f64) = (1.02, 0.5);
/// ... and from which on it is worse, and not about the same. Either may be small change.
const WORSE: (f64, f64) = (1.1, 3.0);
/// Coverage of 90 % intervals that leaves nothing to say, and below which they are misleading.
const COVERAGE: (f64, f64) = (0.8, 0.985);
const MISLEADING: f64 = 0.6;
/// Rows from which on too wide intervals are told from chance.
const WIDE_ROWS: usize = 60;
/// Part of the error of a constant above which a linear model is no better than that.
const BARELY: f64 = 0.95;

/// What one output shows.
struct Found {
    state: State,
    words: String,
    /// Whether the intervals, and not the predictions, are at fault.
    intervals: bool,
}

pub(super) fn light(
    judging: &Judging,
    fitted: &FittedModel,
    predicted: &Predicted,
) -> (Light, Vec<Compared>) {
    let outputs = fitted.posterior.problem().model().output_names();
    let of = |state, finding, next| Light { state, question: QUESTION.into(), finding, next };
    let commands = judging.commands;
    // Without inputs a free run forgets its start and becomes a constant: one step ahead is what can be judged.
    let has_inputs = fitted.n_u() > 0;
    let (main, other) = match has_inputs {
        true => (&predicted.free_run, &predicted.ahead),
        false => (&predicted.ahead, &predicted.free_run),
    };
    let report = match main {
        Ok(report) => report,
        Err(error) => {
            let finding = format!("Not known: its predictions could not be scored ({error}).");
            return (
                of(State::Unknown, finding, format!("Look closer with: {}", commands.check)),
                Vec::new(),
            );
        }
    };
    let task = if has_inputs { "a free run" } else { "predictions one step ahead" };
    let found: Vec<Found> = (0..outputs.len())
        .map(|k| {
            let other = other.as_ref().ok().filter(|_| has_inputs);
            judge(report, other, k, &outputs[k], task)
        })
        .collect();
    let worst = found.iter().map(|found| found.state).max().unwrap_or(State::Unknown);
    let words: Vec<&str> =
        found.iter().filter(|found| found.state == worst).map(|found| &*found.words).collect();
    let mut finding = words.join(" ");
    if !predicted_well(&predicted.free_run) {
        finding += " Some simulated paths overflowed.";
    }
    let only_intervals = found.iter().filter(|found| found.state == worst).all(|found| found.intervals);
    let choose = || match &commands.choose {
        Some(command) => format!("Let the structure be chosen from the data: {command}"),
        None => format!("See what it misses: {}", commands.check),
    };
    let next = match worst {
        State::Good | State::Fair if judging.held_out.is_none() && !only_intervals => {
            format!("Test it on rows that were not used in the fit: {}", commands.held_out)
        }
        State::Good => format!("Use it: {}", commands.simulate),
        _ if only_intervals => format!("See which rows lie outside: {}", commands.check),
        _ => choose(),
    };
    (of(worst, finding, next), compared(predicted, &outputs))
}

fn predicted_well(report: &Result<ScoreReport, gpssm::Error>) -> bool {
    let diverged =
        |warning: &gpssm::posterior::Warning| matches!(warning, gpssm::posterior::Warning::Diverged { .. });
    report.as_ref().is_ok_and(|report| !report.warnings.iter().any(diverged))
}

/// The best linear model of an output.
fn best_linear(report: &ScoreReport, k: usize) -> Option<(&Scores, &OutputScores)> {
    let linear = report.scores.iter().skip(1).filter(|scores| scores.order.is_some());
    linear.map(|scores| (scores, &scores.outputs[k])).min_by(|a, b| a.1.rmse.total_cmp(&b.1.rmse))
}

/// Whether predictions are worse than those of a linear model by more than a factor of the error and points of the fit.
fn is_below(model: &OutputScores, linear: &OutputScores, (factor, points): (f64, f64)) -> bool {
    let gap = linear.fit.zip(model.fit).map_or(f64::INFINITY, |(linear, model)| linear - model);
    model.rmse > factor * linear.rmse && gap > points
}

fn inside(scores: &OutputScores) -> Option<f64> {
    scores.coverage.iter().find(|coverage| coverage.level == 0.9).map(|coverage| coverage.share)
}

fn judge(report: &ScoreReport, other: Option<&ScoreReport>, k: usize, name: &str, task: &str) -> Found {
    let of = |state, words| Found { state, words, intervals: false };
    let Some(model) = report.scores.first().map(|scores| &scores.outputs[k]) else {
        return of(State::Unknown, format!("Not known for {name}: nothing was scored."));
    };
    let Some(fit) = model.fit.filter(|fit| fit.is_finite()) else {
        return of(
            State::Unknown,
            format!("Not known for {name}: it is constant over these rows, so no fit is defined."),
        );
    };
    let constant = report.named("constant").map(|scores| scores.outputs[k].rmse);
    let linear = best_linear(report, k);
    let beats = |rmse: f64| constant.is_none_or(|constant| rmse < constant);
    let beside = linear.map_or_else(String::new, |(scores, linear)| {
        let fit = linear.fit.map_or_else(|| "undefined".into(), |fit| format!("{fit:.1} %"));
        format!(", the best linear model (order {}) {fit}", scores.order.unwrap_or(0))
    });
    let fits = format!("{task} of {name} has a fit of {fit:.1} %{beside}");
    if !beats(model.rmse) {
        // A linear model that was fitted to these rows is a little better than a constant on any of them.
        return match linear.is_some_and(|(_, linear)| beats(linear.rmse / BARELY)) {
            true => of(State::Bad, format!("No: it predicts worse than a constant; {fits}.")),
            false => of(
                State::Fair,
                format!("Neither it nor a linear model predicts much better than a constant; {fits}."),
            ),
        };
    }
    if linear.is_some_and(|(_, linear)| is_below(model, linear, WORSE)) {
        return of(State::Bad, format!("No: a linear model predicts better; {fits}."));
    }
    let covered = inside(model);
    let coverage = covered.map_or_else(String::new, |share| {
        format!("; {:.0} % of its rows lie inside the 90 % intervals", 100.0 * share)
    });
    match covered {
        Some(share) if share < MISLEADING => {
            let words = format!("Its intervals mislead, they are far too narrow; {fits}{coverage}.");
            return Found { state: State::Bad, words, intervals: true };
        }
        Some(share) if share < COVERAGE.0 => {
            let words = format!("Its intervals are too narrow; {fits}{coverage}.");
            return Found { state: State::Fair, words, intervals: true };
        }
        _ => {}
    }
    if linear.is_some_and(|(_, linear)| is_below(model, linear, AS_GOOD)) {
        return of(State::Fair, format!("About as good as a linear model; {fits}{coverage}."));
    }
    let ahead = other.and_then(|other| {
        let model = &other.scores.first()?.outputs[k];
        let (_, linear) = best_linear(other, k)?;
        is_below(model, linear, WORSE).then_some((model.fit, linear.fit))
    });
    if let Some((Some(model), Some(linear))) = ahead {
        let words = format!(
            "In a free run yes, but one step ahead a linear model predicts better ({model:.1} against {linear:.1} %); {fits}{coverage}."
        );
        return of(State::Fair, words);
    }
    if covered.is_some_and(|share| share > COVERAGE.1) && model.n >= WIDE_ROWS {
        let words = format!("Yes, but its intervals are wider than need be; {fits}{coverage}.");
        return Found { state: State::Fair, words, intervals: true };
    }
    of(State::Good, format!("Yes: {fits}{coverage}."))
}

/// Model and baselines in both tasks.
fn compared(predicted: &Predicted, outputs: &[String]) -> Vec<Compared> {
    let (free, ahead) = (predicted.free_run.as_ref().ok(), predicted.ahead.as_ref().ok());
    let mut names: Vec<(&str, Option<usize>)> = Vec::new();
    for scores in free.iter().chain(&ahead).flat_map(|report| &report.scores) {
        if scores.name != "mean function" && !names.iter().any(|(name, _)| *name == scores.name) {
            names.push((&scores.name, scores.order));
        }
    }
    let row = |k: usize, name: &str, order: Option<usize>| {
        let of = |report: Option<&ScoreReport>| {
            let scores = report?.scores.iter().find(|scores| scores.name == name)?;
            Some(scores.outputs[k].clone())
        };
        let (free, ahead) = (of(free), of(ahead));
        Compared {
            output: outputs[k].clone(),
            name: order.map_or_else(|| name.to_owned(), |order| format!("{name} (order {order})")),
            free_run: free.as_ref().and_then(|scores| scores.fit),
            free_run_inside: free.as_ref().and_then(inside),
            ahead: ahead.as_ref().and_then(|scores| scores.fit),
            ahead_inside: ahead.as_ref().and_then(inside),
        }
    };
    (0..outputs.len())
        .flat_map(|k| names.iter().map(move |(name, order)| row(k, name, *order)).collect::<Vec<_>>())
        .collect()
}
