//! Diagnostics of the sampler.

use gpssm::diagnostics::UpdateRate;

use super::parameters::learned;
use super::{Block, Check, ReportInput, Section};
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale};

/// Sequences and chains that are shown at the most.
const MOST_SEQUENCES: usize = 4;
const MOST_CHAINS: usize = 8;
const MOST_BARS: usize = 30;
/// A state that changes in fewer sweeps than this is stuck.
const STUCK: f64 = 0.1;

/// For each chain, how often x_t changed from one draw to the next.
fn update_rates(input: &ReportInput, s: usize) -> Vec<Vec<f64>> {
    let n_rows = input.problem.record().sequences()[s].n_rows();
    let rate = |chain: &gpssm::mcmc::ChainDraws| {
        let mut rate = UpdateRate::new(n_rows);
        for pair in chain.paths.windows(2) {
            // Shapes were checked with the input.
            let _ = rate.record(&pair[0][s], &pair[1][s], input.problem.n_x());
        }
        rate.rates()
    };
    input.chains.iter().filter(|chain| chain.paths.len() > 1).map(rate).collect()
}

fn chain_legend(n: usize) -> Vec<(Key, String)> {
    (0..n.min(MOST_CHAINS)).map(|c| (Key::Line(Class::Series(c)), format!("chain {}", c + 1))).collect()
}

fn update_figure(input: &ReportInput, s: usize, rates: &[Vec<f64>]) -> Figure {
    let n_rows = input.problem.record().sequences()[s].n_rows();
    let t = input.names.times(s, n_rows);
    let lines = rates.iter().take(MOST_CHAINS).enumerate();
    let mut marks: Vec<Mark> = lines
        .map(|(c, rates)| Mark::Line { x: t.clone(), y: rates.clone(), class: Class::Series(c) })
        .collect();
    marks.insert(0, Mark::Between { low: 0.0, high: STUCK, class: Class::Beyond });
    let many = input.problem.record().sequences().len() > 1;
    let title = if many { input.names.sequence(s) } else { String::new() };
    let (low, high) = crate::chart::scale::range(t.iter().copied());
    let x = Axis::new(input.names.time_label(), Scale::linear(low, high));
    let x = x.with_time_ticks(&input.names.time_ticks);
    let panel = Panel::new(title, x, "share of sweeps", marks).with_y(Scale::linear(0.0, 1.0));
    Figure::new(
        "update rate of the states over time",
        chain_legend(rates.len()),
        vec![Row::new(vec![panel], 180.0)],
    )
}

fn log_joint_figure(input: &ReportInput) -> Option<Figure> {
    let chains: Vec<Vec<f64>> =
        input.chains.iter().map(|chain| chain.info.iter().map(|info| info.log_joint).collect()).collect();
    let longest = chains.iter().map(Vec::len).max().filter(|n| *n > 0)?;
    let lines = chains.iter().take(MOST_CHAINS).enumerate().map(|(c, values)| Mark::Line {
        x: (0..values.len()).map(|i| i as f64).collect(),
        y: values.clone(),
        class: Class::Series(c),
    });
    let x = Axis::new("draw", Scale::linear(0.0, longest as f64));
    let panel = Panel::new("log p(θ, x, y)", x, "", lines.collect());
    Some(Figure::new(
        "log joint density of each draw",
        chain_legend(chains.len()),
        vec![Row::new(vec![panel], 180.0)],
    ))
}

/// Effective draws of each hyper-parameter, as bars; the worst first.
fn ess_figure(input: &ReportInput) -> Option<(Figure, usize)> {
    let mut all: Vec<(String, f64, f64)> = learned(input)
        .into_iter()
        .filter_map(|p| Some((p.name, p.summary.ess_bulk?, p.summary.ess_tail?)))
        .collect();
    if all.is_empty() {
        return None;
    }
    all.sort_by(|a, b| a.1.min(a.2).total_cmp(&b.1.min(b.2)));
    let n = all.len().min(MOST_BARS);
    let pair = |k: usize| (k as f64 + 0.14, k as f64 + 0.5, k as f64 + 0.86);
    // Bars of zero width between the pairs are left out by gaps in the heights.
    let (mut edges, mut bulk, mut tail) = (vec![0.0], Vec::new(), Vec::new());
    for (k, (_, b, t)) in all.iter().take(n).enumerate() {
        let (left, middle, right) = pair(k);
        edges.extend([left, middle, right]);
        bulk.extend([f64::NAN, *b, f64::NAN]);
        tail.extend([f64::NAN, f64::NAN, *t]);
    }
    let mut marks = vec![
        Mark::Bars { edges: edges.clone(), heights: bulk, class: Class::Bar },
        Mark::Bars { edges, heights: tail, class: Class::OtherBar },
    ];
    if let Some(verdict) = input.verdict {
        marks.push(Mark::Horizontal { y: verdict.target, class: Class::Reference });
    }
    let names: Vec<String> = all.iter().take(n).map(|(name, _, _)| name.clone()).collect();
    let x = Axis::new("", Scale::linear(0.0, n as f64)).with_categories(names);
    let panel = Panel::new("", x, "effective sample size", marks).from_zero();
    let mut legend =
        vec![(Key::Area(Class::Bar), "bulk".to_owned()), (Key::Area(Class::OtherBar), "tail".to_owned())];
    if let Some(verdict) = input.verdict {
        legend.push((Key::Line(Class::Reference), format!("target {:.0}", verdict.target)));
    }
    Some((Figure::new("effective sample sizes", legend, vec![Row::new(vec![panel], 250.0)]), all.len() - n))
}

fn events(input: &ReportInput) -> Option<(Block, u64)> {
    if input.chains.iter().all(|chain| chain.info.is_empty()) {
        return None;
    }
    let sums: Vec<[u64; 6]> = input
        .chains
        .iter()
        .map(|chain| {
            let counts = chain.info.iter().map(|info| {
                [
                    info.density_evaluations,
                    info.density_failures,
                    info.slice_failures,
                    info.slice_capped,
                    info.filter_failures,
                    info.clamped,
                ]
            });
            counts.fold([0; 6], |sum, counts| std::array::from_fn(|i| sum[i] + counts[i]))
        })
        .collect();
    const NAMES: [&str; 6] = [
        "path densities evaluated",
        "path densities that failed (proposal rejected)",
        "log densities that were not a number (proposal rejected)",
        "slice updates that reached their step limit",
        "particle filters that failed (path kept)",
        "variances raised to the process noise after rounding",
    ];
    let header =
        std::iter::once("kept sweeps".to_owned()).chain((1..=sums.len()).map(|c| format!("chain {c}")));
    let rows = NAMES.iter().enumerate().map(|(i, name)| {
        let numbers = sums.iter().map(|sum| sum[i].to_string());
        let marked = i > 0 && i < 5 && sums.iter().any(|sum| sum[i] > 0);
        (marked, std::iter::once((*name).to_owned()).chain(numbers).collect())
    });
    let bad = sums.iter().map(|sum| sum[1] + sum[2] + sum[4]).sum();
    let caption = "Numerical events. A few are harmless, because the sampler rejects the proposal and continues. Many \
                   suggest that the model or its priors do not fit the data.";
    Some((Block::Table { header: header.collect(), rows: rows.collect(), caption: caption.into() }, bad))
}

pub(crate) fn section(input: &ReportInput) -> (Section, Vec<Check>) {
    let mut blocks = Vec::new();
    let mut checks = Vec::new();
    let n_sequences = input.problem.record().sequences().len();
    let (mut stuck, mut times) = (0usize, 0usize);
    for s in 0..n_sequences {
        let rates = update_rates(input, s);
        if rates.is_empty() {
            break;
        }
        let n_rows = rates[0].len();
        times += n_rows;
        stuck += (0..n_rows).filter(|&t| rates.iter().any(|rates| rates[t] < STUCK)).count();
        if s < MOST_SEQUENCES {
            let caption = format!(
                "Share of sweeps in which x_t changed. The maximum with N particles is 1 − 1/N. In the shaded area (below \
                 {} %) the path rarely changes; use more particles.{}",
                100.0 * STUCK,
                if s == 0 && n_sequences > MOST_SEQUENCES {
                    format!(" The first {MOST_SEQUENCES} of {n_sequences} sequences are shown.")
                } else {
                    String::new()
                }
            );
            blocks.push(Block::Figure { svg: update_figure(input, s, &rates).svg(), caption });
        }
    }
    if times > 0 {
        checks.push(if stuck > 0 {
            let text = format!(
                "At {stuck} of {times} times the states of a chain changed in fewer than 10 % of the sweeps."
            );
            Check { good: false, text }
        } else {
            Check { good: true, text: "The states change often enough at all times.".into() }
        });
    }
    if let Some(figure) = log_joint_figure(input) {
        let caption = "Log joint density of hyper-parameters, states and data. It should fluctuate around the same level in \
                       all chains. A trend means that the warm-up was too short; different levels mean that the chains \
                       found different solutions.";
        blocks.push(Block::Figure { svg: figure.svg(), caption: caption.into() });
    }
    if let Some((figure, more)) = ess_figure(input) {
        let more = if more > 0 { format!(" {more} more are not shown.") } else { String::new() };
        let caption = format!(
            "Effective sample size of each hyper-parameter, smallest first: bulk for means, tail for the 5 % and 95 % \
             quantiles.{more}"
        );
        blocks.push(Block::Figure { svg: figure.svg(), caption });
    }
    if let Some((table, bad)) = events(input) {
        blocks.push(table);
        if bad > 0 {
            checks.push(Check {
                good: false,
                text: format!("There were {bad} numerical failures; see the table."),
            });
        }
    }
    (Section { id: "health", title: "Sampler diagnostics".into(), blocks }, checks)
}
