//! Do predictions stay inside the data? Inputs and simulated states beside those of the training record, and how much less is
//! known of f where predictions go than where it was learned.

use gpssm::Record;
use gpssm::posterior::{Simulation, Target, quantile};

use super::{Judging, Light, State};
use crate::fitted::FittedModel;

pub(super) const QUESTION: &str = "Are its predictions inside the data?";

/// Part of the range beyond its ends that is not worth a word.
const SLACK: f64 = 0.1;
/// Shares of rows outside that leave nothing to say, or too much.
const OUTSIDE: (f64, f64) = (0.02, 0.15);
/// How many times as uncertain f may be, in the same way.
const LESS_KNOWN: (f64, f64) = (2.5, 8.0);
/// Points at which f is looked at.
const POINTS: usize = 60;

/// A component of (x, u) and the share of predictions beyond its range.
struct Beyond {
    name: String,
    share: f64,
    range: (f64, f64),
}

pub(super) fn light(judging: &Judging, fitted: &FittedModel, record: &Record, runs: &[Simulation]) -> Light {
    let of = |state, finding, next| Light { state, question: QUESTION.into(), finding, next };
    if runs.len() != record.sequences().len() {
        let next = format!("Look closer with: {}", judging.commands.check);
        return of(State::Unknown, "Not known: there is no free run to look at.".into(), next);
    }
    let beyond = beyond(fitted, record, runs);
    let worst = beyond.iter().max_by(|a, b| a.share.total_cmp(&b.share)).filter(|worst| worst.share > 0.0);
    let share = worst.map_or(0.0, |worst| worst.share);
    let factor = less_known(fitted, record, runs);
    let uncertain = factor.unwrap_or(1.0);
    let state = if share > OUTSIDE.1 || uncertain > LESS_KNOWN.1 {
        State::Bad
    } else if share > OUTSIDE.0 || uncertain > LESS_KNOWN.0 {
        State::Fair
    } else {
        State::Good
    };
    let leaves = worst.filter(|worst| worst.share > OUTSIDE.0).map(|worst| {
        let (low, high) = worst.range;
        format!(
            "{} of a free run {} outside {} .. {}, the range of the training record, in {:.0} % of the rows",
            worst.name,
            if state == State::Bad && share > OUTSIDE.1 { "lies" } else { "goes" },
            digits(low),
            digits(high),
            100.0 * worst.share
        )
    });
    let known = (uncertain > LESS_KNOWN.0).then(|| {
        format!("f is {uncertain:.0} times as uncertain where predictions go as where it was learned")
    });
    let mut parts: Vec<String> = leaves.into_iter().chain(known).collect();
    if parts.is_empty() {
        parts.push("states and inputs of a free run stay within what was seen in the training record".into());
    }
    let head = match state {
        State::Good => "Yes",
        State::Fair => "Mostly",
        _ => "No",
    };
    let next = match state {
        State::Good => "Nothing.".to_owned(),
        _ => match worst.filter(|worst| worst.share > OUTSIDE.0) {
            Some(worst) => format!(
                "Rely on predictions inside this range, or record data with {} beyond it and fit again.",
                worst.name
            ),
            None => {
                "Rely on the intervals, which know of this, or record more data of this kind and fit again."
                    .into()
            }
        },
    };
    of(state, format!("{head}: {}.", parts.join("; ")), next)
}

/// For every component the share of rows (inputs) or of rows of paths (states) beyond the range of the training record.
fn beyond(fitted: &FittedModel, record: &Record, runs: &[Simulation]) -> Vec<Beyond> {
    let model = fitted.posterior.problem().model();
    let names: Vec<String> = model.state_names().into_iter().chain(model.input_names()).collect();
    let n_x = model.states.len();
    let visited = fitted.posterior.visited();
    let each = visited.into_iter().zip(names).enumerate();
    each.map(|(c, ((low, high), name))| {
        let slack = SLACK * (high - low);
        let outside = |value: f64| !(low - slack..=high + slack).contains(&value);
        let (mut n, mut all) = (0usize, 0usize);
        for (s, run) in runs.iter().enumerate() {
            if c < n_x {
                for t in 0..run.x.n_rows() {
                    n += run.x.column(t, c).into_iter().filter(|x| outside(*x)).count();
                    all += run.x.n_samples();
                }
                continue;
            }
            let inputs = seen_inputs(fitted, record, s);
            n += inputs.iter().filter(|u| outside(u[c - n_x])).count();
            all += inputs.len();
        }
        Beyond { name, share: n as f64 / all.max(1) as f64, range: (low, high) }
    })
    .collect()
}

/// Inputs of every row as the model sees them.
fn seen_inputs(fitted: &FittedModel, record: &Record, s: usize) -> Vec<Vec<f64>> {
    let (sequence, every) = (&record.sequences()[s], fitted.layout.every);
    let phases: Vec<_> = (0..every.min(sequence.n_rows()))
        .filter_map(|p| fitted.layout.apply_from(sequence, p as isize).ok())
        .collect();
    let row = |t: usize| {
        let phase = phases.get(t % every)?;
        (t / every < phase.n_rows()).then(|| phase.u(t / every).to_vec())
    };
    (0..sequence.n_rows()).filter_map(row).collect()
}

/// How many times as uncertain f is along the free runs as along the training record (95 % quantiles over rows), for the state
/// where this is most; none where there is nothing to compare.
fn less_known(fitted: &FittedModel, record: &Record, runs: &[Simulation]) -> Option<f64> {
    let posterior = &fitted.posterior;
    let n_x = posterior.problem().n_x();
    let trained = posterior.problem().record();
    let (mut x, mut u) = (Vec::new(), Vec::new());
    for (s, t) in FittedModel::spread_rows(trained, POINTS) {
        let median = |d: usize| {
            let mut values: Vec<f64> =
                posterior.draws().iter().map(|draw| draw.paths[s][t * n_x + d]).collect();
            values.sort_unstable_by(f64::total_cmp);
            quantile(&values, 0.5)
        };
        x.push((0..n_x).map(median).collect::<Vec<f64>>());
        u.push(trained.sequences()[s].u(t).to_vec());
    }
    let n_trained = x.len();
    let inputs: Vec<Vec<Vec<f64>>> = (0..runs.len()).map(|s| seen_inputs(fitted, record, s)).collect();
    for (s, t) in FittedModel::spread_rows(record, POINTS) {
        if let Some(row) = inputs[s].get(t) {
            x.push((0..n_x).map(|d| runs[s].x.quantile(t, d, 0.5)).collect());
            u.push(row.clone());
        }
    }
    let u = if posterior.problem().model().n_u == 0 { Vec::new() } else { u };
    let found = posterior.predict(&x, &u, Target::Function).ok()?;
    let factor = |d: usize| {
        let mut trained: Vec<f64> = (0..n_trained).map(|i| found.sd(i, d)).collect();
        let mut predicted: Vec<f64> = (n_trained..x.len()).map(|i| found.sd(i, d)).collect();
        trained.sort_unstable_by(f64::total_cmp);
        predicted.sort_unstable_by(f64::total_cmp);
        let usual = quantile(&trained, 0.95);
        (usual > 0.0 && !predicted.is_empty()).then(|| quantile(&predicted, 0.95) / usual)
    };
    (0..n_x).filter_map(factor).filter(|factor| factor.is_finite()).reduce(f64::max)
}

/// A number with three significant digits.
fn digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    rounded.to_string()
}
