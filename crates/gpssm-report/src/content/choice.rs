//! The choice of a model: what was tried, and how it went.

use super::{Block, Section, count};
use crate::chart::scale::significant;
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale};

/// Rows of the table that are shown before the others are asked for.
const UNFOLDED: usize = 8;

/// What was tried before the fit.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// In words, with their scores.
    pub trials: Vec<Trial>,
    /// Place of the one that was chosen.
    pub chosen: Option<usize>,
    /// Lines to compare with: name and CRPS.
    pub beside: Vec<(String, f64)>,
}

/// A candidate.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// In words.
    pub candidate: String,
    /// CRPS over held-out rows, relative to the spread of the outputs; none if it could not be fitted.
    pub crps: Option<f64>,
    /// Root mean square error, likewise.
    pub rmse: Option<f64>,
    /// Share of the outputs in the 90 % intervals.
    pub coverage: Option<f64>,
}

pub(crate) fn section(choice: &Choice) -> Section {
    let mut order: Vec<usize> = (0..choice.trials.len()).collect();
    let crps = |i: usize| choice.trials[i].crps.unwrap_or(f64::INFINITY);
    order.sort_by(|&a, &b| crps(a).total_cmp(&crps(b)));
    let scored: Vec<usize> = order.iter().copied().filter(|&i| choice.trials[i].crps.is_some()).collect();
    let mut blocks = Vec::new();
    if !scored.is_empty() {
        blocks.push(Block::Figure {
            svg: figure(choice, &scored).svg(),
            caption: "Every candidate was fitted to parts of the training record and ran free over the rows that were held out. Small \
                      is good. Of candidates that are about equal the simplest is chosen."
                .into(),
        });
    }
    let (first, rest) = order.split_at(order.len().min(UNFOLDED));
    // The one that was chosen is shown in any case.
    let chosen = rest.iter().copied().filter(|i| choice.chosen == Some(*i));
    let first: Vec<usize> = first.iter().copied().chain(chosen).collect();
    let rest: Vec<usize> = rest.iter().copied().filter(|i| choice.chosen != Some(*i)).collect();
    let caption = "The best candidates, with errors relative to the spread of the outputs.";
    blocks.push(table(choice, &first, caption));
    if !rest.is_empty() {
        let summary = count(rest.len(), "further candidate", "further candidates");
        blocks.push(Block::Folded { summary, blocks: vec![table(choice, &rest, "The other candidates.")] });
    }
    Section { id: "choice", title: "Choice of the model".into(), blocks }
}

fn figure(choice: &Choice, scored: &[usize]) -> Figure {
    let place = |rank: usize| rank as f64 + 1.0;
    let crps = |i: usize| choice.trials[i].crps.unwrap_or(f64::NAN);
    let x: Vec<f64> = (0..scored.len()).map(place).collect();
    let mut marks = Vec::new();
    let mut legend = vec![(Key::Dot(Class::Data), "candidates".to_owned())];
    for (i, (name, value)) in choice.beside.iter().enumerate() {
        let class = Class::Series(i + 1);
        marks.push(Mark::Horizontal { y: *value, class });
        legend.push((Key::Line(class), name.clone()));
    }
    marks.push(Mark::Points { x, y: scored.iter().map(|&i| crps(i)).collect(), class: Class::Data });
    if let Some(rank) = scored.iter().position(|i| choice.chosen == Some(*i)) {
        marks.push(Mark::Points {
            x: vec![place(rank)],
            y: vec![crps(scored[rank])],
            class: Class::SamplePoint,
        });
        legend.push((Key::Dot(Class::SamplePoint), "chosen".to_owned()));
    }
    // A candidate that runs away would leave nothing to see of the others.
    let limit = 2.0 * choice.beside.iter().map(|(_, value)| *value).fold(crps(scored[0]), f64::max);
    let shown = scored.iter().map(|&i| crps(i)).chain(choice.beside.iter().map(|(_, value)| *value));
    let top = shown.filter(|value| *value <= limit).fold(0.0, f64::max);
    let axis = Axis::new("candidates, the best first", Scale::linear(0.5, place(scored.len()) - 0.5));
    let panel = Panel::new("", axis, "CRPS, relative", marks).with_y(Scale::linear(0.0, 1.08 * top));
    Figure::new("candidates for the model and their scores", legend, vec![Row::new(vec![panel], 260.0)])
}

fn table(choice: &Choice, shown: &[usize], caption: &str) -> Block {
    let header = ["candidate", "CRPS", "RMSE", "inside 90 %", ""].map(str::to_owned).to_vec();
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| significant(value, 3));
    let row = |&i: &usize| {
        let trial = &choice.trials[i];
        let inside = trial.coverage.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        let mark = if choice.chosen == Some(i) { "chosen" } else { "" };
        let numbers = [number(trial.crps), number(trial.rmse), inside, mark.to_owned()];
        (false, [vec![trial.candidate.clone()], numbers.to_vec()].concat())
    };
    Block::Table { header, rows: shown.iter().map(row).collect(), caption: caption.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_is_shown_and_failures_have_no_score() {
        let trial = |name: &str, crps| Trial { candidate: name.into(), crps, ..Trial::default() };
        let mut trials: Vec<Trial> =
            (0..12).map(|i| trial(&format!("c{i}"), Some(0.1 + 0.01 * f64::from(i)))).collect();
        trials.push(trial("runs away", Some(1e9)));
        trials.push(trial("failed", None));
        let choice = Choice { trials, chosen: Some(10), beside: vec![("constant".into(), 0.5)] };
        let section = section(&choice);
        let [Block::Figure { svg, .. }, Block::Table { rows, .. }, Block::Folded { blocks, .. }] =
            &section.blocks[..]
        else {
            panic!("a figure, a table and a folded table")
        };
        assert!(svg.contains("chosen") && svg.contains("constant") && !svg.contains("NaN"));
        assert_eq!(rows.len(), UNFOLDED + 1);
        assert!(rows[UNFOLDED].1[0] == "c10" && rows[UNFOLDED].1[4] == "chosen");
        let Block::Table { rows, .. } = &blocks[0] else { panic!("a table") };
        assert_eq!((rows.len(), rows[4].1[1].as_str()), (5, "–"));
    }
}
