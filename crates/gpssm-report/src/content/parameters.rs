//! Hyper-parameters: a table, and traces, ranks and densities against priors.

use gpssm::convergence::{Judged, Quantity};
use gpssm::diagnostics::{Summary, summarise};
use gpssm::model::{Coordinate, ParameterPrior};
use gpssm::random::{Purpose, stream};

use super::statistics::{density, quantile, sort, spaced};
use super::{Block, Check, ReportInput, Section};
use crate::chart::scale::significant;
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale};

/// Parameters with figures, those that are shown before the others are asked for, and chains in them, at the most.
const MOST_FIGURES: usize = 24;
const UNFOLDED: usize = 3;
const MOST_CHAINS: usize = 8;
/// Rows of the table at the most.
const MOST_ROWS: usize = 200;
const N_DENSITY: usize = 121;
/// Draws from the prior where it has no density of its own.
const N_PRIOR: usize = 4_000;

pub(crate) struct Learned {
    pub k: usize,
    pub name: String,
    pub chains: Vec<Vec<f64>>,
    pub summary: Summary,
}

/// The parameters that are learned, worst R-hat first.
pub(crate) fn learned(input: &ReportInput) -> Vec<Learned> {
    let table = input.problem.table();
    let one = |k: usize| {
        let chains: Vec<Vec<f64>> =
            input.chains.iter().map(|chain| chain.theta.iter().map(|theta| theta[k]).collect()).collect();
        let slices: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        let summary = summarise(&slices, 0.9);
        Learned { k, name: table.parameters[k].name.clone(), chains, summary }
    };
    let mut all: Vec<Learned> = (0..table.len()).filter(|&k| !table.is_fixed(k)).map(one).collect();
    let badness = |parameter: &Learned| parameter.summary.r_hat.unwrap_or(0.0);
    all.sort_by(|a, b| badness(b).total_cmp(&badness(a)).then(a.k.cmp(&b.k)));
    all
}

/// Whether the verdict says that a parameter has not converged.
fn is_bad(input: &ReportInput, name: &str) -> bool {
    let Some(verdict) = input.verdict else { return false };
    let is =
        |judged: &&Judged| matches!(&judged.quantity, Quantity::Parameter { name: other } if other == name);
    verdict.judged.iter().find(is).is_some_and(|judged| !judged.is_good(verdict.target))
}

fn table(input: &ReportInput, all: &[Learned]) -> Block {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| significant(value, 3));
    let whole = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
    let header =
        ["", "mean", "sd", "5 %", "95 %", "ESS bulk", "ESS tail", "R-hat"].map(str::to_owned).to_vec();
    let rows = all.iter().take(MOST_ROWS).map(|parameter| {
        let s = &parameter.summary;
        let r_hat = match s.r_hat {
            Some(r) if r.is_finite() => format!("{r:.3}"),
            Some(_) => "∞".to_owned(),
            None => "–".to_owned(),
        };
        let cells = vec![
            parameter.name.clone(),
            number(s.mean),
            number(s.sd),
            number(s.lower),
            number(s.upper),
            whole(s.ess_bulk),
            whole(s.ess_tail),
            r_hat,
        ];
        (is_bad(input, &parameter.name), cells)
    });
    let more = all.len().saturating_sub(MOST_ROWS);
    let more = if more > 0 { format!(" {more} more are not shown.") } else { String::new() };
    let caption = format!(
        "Hyper-parameters in original units, worst R-hat first. 5 % and 95 % are the ends of the equal-tailed 90 % interval. \
         Marked rows have not converged; run longer before using them.{more}"
    );
    Block::Table { header, rows: rows.collect(), caption }
}

fn trace(parameter: &Learned) -> Panel {
    let longest = parameter.chains.iter().map(Vec::len).max().unwrap_or(1);
    let lines = parameter.chains.iter().take(MOST_CHAINS).enumerate().map(|(c, draws)| Mark::Line {
        x: (0..draws.len()).map(|i| i as f64).collect(),
        y: draws.clone(),
        class: Class::Series(c),
    });
    let x = Axis::new("draw", Scale::linear(0.0, longest as f64));
    let mut panel = Panel::new(parameter.name.clone(), x, "", lines.collect());
    let values = parameter.chains.iter().flatten().copied();
    let (low, high) = crate::chart::scale::range(values);
    if low > 0.0 && high / low > 30.0 {
        panel.y.scale = Scale::log(low / 1.2, high * 1.2);
    }
    panel
}

/// Histograms of the ranks of each chain among the draws of all; equal heights if the chains agree.
fn ranks(parameter: &Learned) -> Panel {
    let mut order: Vec<(f64, usize)> = parameter
        .chains
        .iter()
        .enumerate()
        .flat_map(|(c, draws)| draws.iter().map(move |v| (*v, c)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = order.len();
    let n_chains = parameter.chains.len().max(1);
    let bins = ((total / n_chains) / 10).clamp(5, 20);
    let mut counts = vec![vec![0.0; bins]; n_chains];
    // Equal draws share their ranks, or a chain that repeats a value would look wrong.
    let mut at = 0.0;
    let width = total as f64 / bins as f64;
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let (from, to) = (at, at + tied.len() as f64);
        for b in ((from / width) as usize).min(bins - 1)..bins.min((to / width).ceil() as usize) {
            let common = to.min((b + 1) as f64 * width) - from.max(b as f64 * width);
            tied.iter().for_each(|(_, c)| counts[*c][b] += common.max(0.0) / (to - from));
        }
        at = to;
    }
    let edges: Vec<f64> = (0..=bins).map(|b| b as f64 / bins as f64).collect();
    let expected = total as f64 / (n_chains * bins) as f64;
    // Each of the total / bins draws in a bin is of a given chain with probability 1 / n_chains.
    let spread = 1.96 * (expected * (1.0 - 1.0 / n_chains as f64)).sqrt();
    let mut marks = vec![
        Mark::Between { low: expected - spread, high: expected + spread, class: Class::Expected },
        Mark::Horizontal { y: expected, class: Class::Reference },
    ];
    for (c, heights) in counts.into_iter().enumerate().take(MOST_CHAINS) {
        marks.push(Mark::Steps { edges: edges.clone(), heights, class: Class::Series(c) });
    }
    let x = Axis::new("rank among all chains", Scale::linear(0.0, 1.0));
    Panel::new("", x, "draws", marks).from_zero()
}

/// Posterior and prior density; of the logarithm, on a logarithmic axis, for positive numbers.
fn densities(input: &ReportInput, parameter: &Learned, prior_draws: &[Vec<f64>]) -> Panel {
    let entry = &input.problem.table().parameters[parameter.k];
    let log = entry.coordinate == Coordinate::Log;
    let to = |v: f64| if log { v.ln() } else { v };
    let back = |v: f64| if log { v.exp() } else { v };
    let mut draws: Vec<f64> =
        parameter.chains.iter().flatten().map(|v| to(*v)).filter(|v| v.is_finite()).collect();
    sort(&mut draws);
    let (low, high) = (quantile(&draws, 0.002), quantile(&draws, 0.998));
    let room = (0.9 * (high - low)).max(1e-6 * low.abs().max(1e-6));
    let at = spaced(low - room, high + room, N_DENSITY);
    let prior: Vec<f64> = match &entry.prior {
        ParameterPrior::Scalar(prior) => {
            let p = |v: &f64| (prior.log_density(back(*v)) + if log { *v } else { 0.0 }).exp();
            at.iter().map(p).collect()
        }
        ParameterPrior::Scale(prior) => {
            at.iter().map(|v| (prior.log_density_of_sd(v.exp()) + v).exp()).collect()
        }
        ParameterPrior::Matrix { .. } => {
            let values = prior_draws.iter().map(|theta| to(theta[parameter.k])).filter(|v| v.is_finite());
            density(&values.collect::<Vec<_>>(), &at)
        }
    };
    let posterior = density(&draws, &at);
    let x: Vec<f64> = at.iter().map(|v| back(*v)).collect();
    let (ends, label) = ((x[0], x[N_DENSITY - 1]), if log { "value (logarithmic)" } else { "value" });
    let scale = if log { Scale::log(ends.0, ends.1) } else { Scale::linear(ends.0, ends.1) };
    let zeros = vec![0.0; N_DENSITY];
    let marks = vec![
        Mark::Band { x: x.clone(), low: zeros, high: posterior.clone(), class: Class::Outer },
        Mark::Line { x: x.clone(), y: posterior, class: Class::Median },
        Mark::Line {
            x,
            y: prior.into_iter().map(|p| if p.is_finite() { p } else { f64::NAN }).collect(),
            class: Class::Prior,
        },
    ];
    let mut panel = Panel::new("", Axis::new(label, scale), "density", marks).from_zero();
    panel.y.numbers = false;
    panel
}

/// How much narrower the posterior is than the prior.
fn learned_from_data(input: &ReportInput, parameter: &Learned, prior_draws: &[Vec<f64>]) -> String {
    let log = input.problem.table().parameters[parameter.k].coordinate == Coordinate::Log;
    let width = |values: &mut dyn Iterator<Item = f64>| {
        let mut all: Vec<f64> =
            values.map(|v| if log { v.ln() } else { v }).filter(|v| v.is_finite()).collect();
        sort(&mut all);
        quantile(&all, 0.95) - quantile(&all, 0.05)
    };
    let posterior = width(&mut parameter.chains.iter().flatten().copied());
    let prior = width(&mut prior_draws.iter().map(|theta| theta[parameter.k]));
    let name = &parameter.name;
    let scale = if log { " (of the logarithm)" } else { "" };
    match prior / posterior {
        ratio if !ratio.is_finite() => format!("{name}."),
        ratio if ratio < 1.25 => {
            format!(
                "{name}: the 90 % interval{scale} is about as wide as that of the prior; the data are not informative."
            )
        }
        ratio => format!(
            "{name}: the 90 % interval{scale} is {} times narrower than that of the prior.",
            significant(ratio, 2)
        ),
    }
}

fn figure(input: &ReportInput, parameter: &Learned, prior_draws: &[Vec<f64>], legend: bool) -> Figure {
    let n_chains = parameter.chains.len().min(MOST_CHAINS);
    let mut keys: Vec<(Key, String)> =
        (0..n_chains).map(|c| (Key::Line(Class::Series(c)), format!("chain {}", c + 1))).collect();
    keys.push((Key::Line(Class::Median), "posterior density".into()));
    keys.push((Key::Line(Class::Prior), "prior".into()));
    keys.push((Key::Area(Class::Expected), "95 % if the chains agree".into()));
    let panels = vec![trace(parameter), ranks(parameter), densities(input, parameter, prior_draws)];
    let title = format!("{}: trace, ranks and density", parameter.name);
    Figure::new(title, if legend { keys } else { Vec::new() }, vec![Row::new(panels, 152.0)])
}

pub(crate) fn section(input: &ReportInput) -> (Section, Vec<Check>) {
    let all = learned(input);
    let mut blocks = Vec::new();
    if all.is_empty() {
        blocks.push(Block::Text("All hyper-parameters are fixed.".into()));
        let check = convergence(input).into_iter().collect();
        return (Section { id: "parameters", title: "Hyper-parameters".into(), blocks }, check);
    }
    blocks.push(table(input, &all));
    let mut rng = stream(0, 0, Purpose::Posterior, 9, 0);
    let prior_draws: Vec<Vec<f64>> =
        (0..N_PRIOR).filter_map(|_| input.problem.table().sample(&mut rng).ok()).collect();
    let mut folded = Vec::new();
    for (i, parameter) in all.iter().take(MOST_FIGURES).enumerate() {
        let mut caption = learned_from_data(input, parameter, &prior_draws);
        if i == 0 {
            caption += " Left: trace of the draws; converged chains overlap, without trends or jumps. Middle: ranks of each chain \
             among all draws; converged chains stay near the dashed line. Right: posterior and prior density. If they are \
             alike, the data are not informative about the parameter; if the posterior lies at the edge of the prior, \
             consider a wider prior. The figures below show the same for the other parameters, the worst R-hat first.";
        }
        let svg = figure(input, parameter, &prior_draws, i == 0).svg();
        let place = if i < UNFOLDED { &mut blocks } else { &mut folded };
        place.push(Block::Figure { svg, caption });
    }
    if !folded.is_empty() {
        let summary = format!(
            "Figures of {}",
            super::count(folded.len(), "further hyper-parameter", "further hyper-parameters")
        );
        blocks.push(Block::Folded { summary, blocks: folded });
    }
    if all.len() > MOST_FIGURES {
        blocks.push(Block::Text(format!(
            "{} more hyper-parameters, all with a smaller R-hat, are only in the table.",
            all.len() - MOST_FIGURES
        )));
    }
    if input.chains.len() > MOST_CHAINS {
        blocks.push(Block::Text(format!("Traces and ranks show the first {MOST_CHAINS} chains.")));
    }
    let check = convergence(input);
    (Section { id: "parameters", title: "Hyper-parameters".into(), blocks }, check.into_iter().collect())
}

fn convergence(input: &ReportInput) -> Option<Check> {
    if input.chains.len() < 2 {
        let text = "There is only one chain, so convergence cannot be checked.".into();
        return Some(Check { good: false, text });
    }
    let verdict = input.verdict?;
    let (r_hat, ess) = (verdict.worst_r_hat()?.r_hat, verdict.worst_ess()?.ess());
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.digits$}"))
    };
    let worst = format!("largest R-hat {}, smallest ESS {}", number(r_hat, 3), number(ess, 0));
    let (all, bad) = (verdict.judged.len(), verdict.n_bad());
    let mut text = match verdict.is_good() {
        true => format!("Converged: all {all} quantities that were judged ({worst})."),
        false => format!("Not converged: {bad} of {all} quantities ({worst})."),
    };
    text += &verdict.describe_excluded().map_or_else(String::new, |excluded| format!(" {excluded}"));
    Some(Check { good: verdict.is_good(), text })
}
