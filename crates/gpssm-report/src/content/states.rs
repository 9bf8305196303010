//! Data and smoothed states over time.

use gpssm::Points;
use gpssm::sensor::family::Link;

use super::sensor::{shown_state, signal, signal_name};
use super::statistics::{LEVELS, quantile, sort, split};
use super::{Block, ReportInput, Section, all_draws, count, some_draws};
use crate::figures::{Intervals, Series, series_figure};

/// Sequences, and panels of one sequence, that are shown at the most.
const MOST_SEQUENCES: usize = 4;
const MOST_PANELS: usize = 10;
const PANELS_A_FIGURE: usize = 5;
/// Numbers that are sorted for one set of intervals, at the most.
const MOST_NUMBERS: usize = 20_000_000;
/// Two groups of draws are shown as such if they are this far apart, as a share of the axis.
const VISIBLE: f64 = 0.05;
/// Draws shown where the posterior has two modes.
const N_SAMPLES: usize = 14;

/// Quantiles over the draws at every time, and where the draws fall into two groups.
pub(crate) fn bands_of(columns: &[Vec<f64>]) -> (Intervals, Vec<bool>) {
    let n = columns.first().map_or(0, Vec::len);
    let mut quantiles = vec![Vec::with_capacity(n); LEVELS.len()];
    let mut apart = Vec::with_capacity(n);
    let mut values = vec![0.0; columns.len()];
    for t in 0..n {
        values.iter_mut().zip(columns).for_each(|(value, column)| *value = column[t]);
        sort(&mut values);
        quantiles.iter_mut().zip(LEVELS).for_each(|(out, p)| out.push(quantile(&values, p)));
        apart.push(split(&values));
    }
    let [low, inner_low, middle, inner_high, high] = <[Vec<f64>; 5]>::try_from(quantiles).unwrap_or_default();
    // Groups that could not be told apart in the figure are one.
    let (bottom, top) = crate::chart::scale::range(low.iter().chain(&high).copied());
    let seen = apart.iter().map(|apart| apart.is_some_and(|apart| apart > VISIBLE * (top - bottom)));
    let two_modes = seen.collect();
    (Intervals { low, inner_low, middle, inner_high, high }, two_modes)
}

/// A few draws where the posterior has two modes and just around it, gaps elsewhere.
fn samples(columns: &[Vec<f64>], split: &[bool]) -> Vec<Vec<f64>> {
    if !split.contains(&true) {
        return Vec::new();
    }
    let near = |t: usize| split[t.saturating_sub(1)..(t + 2).min(split.len())].contains(&true);
    let shown: Vec<bool> = (0..split.len()).map(near).collect();
    let n = N_SAMPLES.min(columns.len());
    let draw = |i: usize| &columns[(2 * i + 1) * columns.len() / (2 * n)];
    let gap = |(value, shown): (&f64, &bool)| if *shown { *value } else { f64::NAN };
    (0..n).map(|i| draw(i).iter().zip(&shown).map(gap).collect()).collect()
}

/// Panels of one sequence, and at how many of its times some state has two modes.
fn panels(input: &ReportInput, s: usize) -> (Vec<Series>, usize) {
    let (problem, names) = (input.problem, &input.names);
    let sequence = &problem.record().sequences()[s];
    let (n_x, n_rows) = (problem.n_x(), sequence.n_rows());
    let sensor = &problem.model().sensor;
    let draws = some_draws(input, (MOST_NUMBERS / n_rows / 4).clamp(20, all_draws(input).len().max(20)));
    let times = names.times(s, n_rows);
    let mut series = Vec::new();
    let mut two_modes = vec![false; n_rows];
    for d in 0..n_x {
        let columns: Vec<Vec<f64>> = draws
            .iter()
            .map(|&(c, j)| input.chains[c].paths[j][s].iter().skip(d).step_by(n_x).copied().collect())
            .collect();
        let (mut bands, split) = bands_of(&columns);
        bands.leave_out(&split);
        two_modes.iter_mut().zip(&split).for_each(|(any, split)| *any |= split);
        let outputs: Vec<usize> =
            (0..sequence.n_y()).filter(|&k| shown_state(sensor, k) == Some(d)).collect();
        let shown: Vec<String> = outputs.iter().map(|&k| names.output(k)).collect();
        let name = names.state(d);
        let title = match shown.first() {
            Some(output) if *output == name => name.clone(),
            Some(_) => format!("{name}, measured as {}", shown.join(", ")),
            None if shows_any(input, d) => name.clone(),
            None => format!("{name} (hidden)"),
        };
        series.push(Series {
            title,
            t: times.clone(),
            samples: samples(&columns, &split),
            bands: Some(bands),
            data: outputs.first().map_or_else(Vec::new, |&k| sequence.output(k).collect()),
            ..Series::default()
        });
    }
    for k in (0..sequence.n_y()).filter(|&k| shown_state(sensor, k).is_none()) {
        let absolute = sensor.family().is_some_and(|(family, _)| family.link == Link::LogVariance);
        let data = sequence.output(k).map(|y| if absolute { y.abs() } else { y }).collect();
        let title = signal_name(sensor, &names.output(k)).unwrap_or_else(|| names.output(k));
        let columns = signal_columns(input, s, k, &draws);
        let bands = columns.map(|columns| bands_of(&columns).0);
        series.push(Series { title, t: times.clone(), bands, data, ..Series::default() });
    }
    for c in 0..sequence.n_u() {
        let title = format!("{} (input)", names.input(c));
        series.push(Series {
            title,
            t: times.clone(),
            truth: sequence.input(c).collect(),
            ..Series::default()
        });
    }
    (series, two_modes.iter().filter(|two| **two).count())
}

/// Whether an output shows the state, be it through a function.
fn shows_any(input: &ReportInput, d: usize) -> bool {
    use gpssm::model::{Predictor, Value};
    match input.problem.model().sensor.predictor() {
        Some(Predictor::States) => d < input.problem.model().n_y,
        Some(Predictor::Linear { c, .. }) => c.iter().any(|row| !matches!(row[d], Value::Known(0.0))),
        _ => true,
    }
}

/// The noise-free output `k` along some draws.
fn signal_columns(
    input: &ReportInput,
    s: usize,
    k: usize,
    draws: &[(usize, usize)],
) -> Option<Vec<Vec<f64>>> {
    let problem = input.problem;
    let (n_x, n_y) = (problem.n_x(), problem.model().n_y);
    let sequence = &problem.sequences()[s];
    let some = draws.iter().step_by(draws.len().div_ceil(200));
    some.map(|&(c, j)| {
        let path = problem.path_to_internal(&input.chains[c].paths[j][s]);
        let mut z = Points::new(n_x + sequence.n_u());
        for t in 0..sequence.n_rows() {
            z.push_parts(&path[t * n_x..(t + 1) * n_x], sequence.u(t));
        }
        let space = problem.bind(&input.chains[c].theta[j]);
        let values = signal(&space.sensor, &z, problem.scaling())?;
        Some(values.iter().skip(k).step_by(n_y).copied().collect())
    })
    .collect()
}

pub(crate) fn section(input: &ReportInput) -> Section {
    let sequences = input.problem.record().sequences();
    let mut blocks = Vec::new();
    if sequences.len() > MOST_SEQUENCES {
        blocks.push(Block::Text(format!(
            "The first {MOST_SEQUENCES} of {} sequences are shown.",
            sequences.len()
        )));
    }
    for (s, sequence) in sequences.iter().enumerate().take(MOST_SEQUENCES) {
        let (mut series, two_modes) = panels(input, s);
        let all = series.len();
        series.truncate(MOST_PANELS);
        let of = if sequences.len() > 1 { format!("{}: ", input.names.sequence(s)) } else { String::new() };
        let missing = (0..sequence.n_rows()).filter(|&t| sequence.y(t).iter().any(|y| y.is_nan())).count();
        for (i, part) in series.chunks(PANELS_A_FIGURE).enumerate() {
            let names: Vec<&str> = part.iter().map(|series| series.title.as_str()).collect();
            let title = format!("{of}states, outputs and inputs over time: {}", names.join("; "));
            let mut caption = format!(
                "{of}Posterior of the states over time: median, and pointwise 50 % and 90 % intervals (equal-tailed), with \
                 the data. "
            );
            if i > 0 {
                caption = format!("{of}Continued. ");
            }
            if missing > 0 && i == 0 {
                caption += &format!(
                    "Outputs are missing in {}; the intervals are wider there. ",
                    count(missing, "row", "rows")
                );
            }
            if two_modes > 0 && i == 0 {
                caption += &format!(
                    "At {} the draws form two groups, so single draws are shown instead of intervals (orange). If all draws \
                     of a chain are in one group, the chains found different solutions. ",
                    count(two_modes, "time", "times")
                );
            } else if i == 0 {
                caption += "Check for long stretches of data outside the intervals, and for intervals wider than the spread \
                            of the data. ";
            }
            if i == 0 && all > MOST_PANELS {
                caption += &format!("The first {MOST_PANELS} of {all} panels are shown.");
            }
            let figure = series_figure(&title, &input.names.time_label(), &input.names.time_ticks, part);
            blocks.push(Block::Figure { svg: figure.svg(), caption: caption.trim_end().to_owned() });
        }
        if signal_name(&input.problem.model().sensor, "").is_none() && s == 0 {
            let text = "Outputs of user-defined sensors are shown without intervals.";
            blocks.push(Block::Text(text.into()));
        }
    }
    Section { id: "states", title: "Data and smoothed states".into(), blocks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_quantiles_and_samples_fill_the_gaps_only() {
        // Two groups at times 3 and 4 only.
        let draw = |i: usize| -> Vec<f64> {
            (0..8)
                .map(|t| i as f64 * 0.01 + if (3..5).contains(&t) && i.is_multiple_of(2) { 9.0 } else { 0.0 })
                .collect()
        };
        let columns: Vec<Vec<f64>> = (0..41).map(draw).collect();
        let (bands, split) = bands_of(&columns);
        assert!((bands.middle[0] - 0.2).abs() < 1e-12);
        assert!((bands.low[0] - 0.02).abs() < 1e-12 && (bands.inner_high[7] - 0.3).abs() < 1e-12);
        assert_eq!(split, [false, false, false, true, true, false, false, false]);
        let samples = samples(&columns, &split);
        assert_eq!(samples.len(), N_SAMPLES);
        let shown: Vec<bool> = samples[0].iter().map(|v| v.is_finite()).collect();
        assert_eq!(shown, [false, false, true, true, true, true, false, false]);
    }
}
