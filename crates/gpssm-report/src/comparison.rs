//! Several models over one record, on one page.

use crate::chart::scale::range;
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale, TimeTicks};
use crate::content::{Block, Contents, Section};
use crate::page;

/// What one model says of one output.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// Name, with its fit.
    pub name: String,
    /// Medians by row; NaN where nothing is predicted.
    pub middle: Vec<f64>,
    /// Ends of the 90 % intervals, of the model whose intervals are shown; else empty.
    pub low: Vec<f64>,
    /// Upper ends.
    pub high: Vec<f64>,
}

/// One output of one sequence.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Title of its figure.
    pub title: String,
    /// Times.
    pub t: Vec<f64>,
    /// What was measured.
    pub data: Vec<f64>,
    /// Models, then baselines.
    pub models: Vec<Prediction>,
}

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct ComparisonPage<'a> {
    /// Title.
    pub title: &'a str,
    /// What was compared, in sentences.
    pub summary: Vec<String>,
    /// Header and rows of the table of scores; rows whose flag is set are marked.
    pub scores: (Vec<String>, Vec<(bool, Vec<String>)>),
    /// What the table shows.
    pub caption: String,
    /// What the time axis shows.
    pub time_label: String,
    /// How it is divided.
    pub time_ticks: TimeTicks,
    /// Figures.
    pub outputs: Vec<Compared>,
}

/// The page.
pub fn comparison_page(input: &ComparisonPage) -> String {
    page::page(&comparison_contents(input))
}

/// What is on the page.
pub fn comparison_contents(input: &ComparisonPage) -> Contents {
    let (header, rows) = input.scores.clone();
    let table = Block::Table { header, rows, caption: input.caption.clone() };
    let figures = input.outputs.iter().map(|output| Block::Figure {
        svg: figure(output, &input.time_label, &input.time_ticks).svg(),
        caption: "Free runs: every model sees the inputs, and outputs of the first rows only. The legend hides and shows them."
            .into(),
    });
    Contents {
        title: input.title.to_owned(),
        summary: input.summary.clone(),
        lights: None,
        warnings: Vec::new(),
        checks: Vec::new(),
        facts: Vec::new(),
        sections: vec![
            Section { id: "scores", title: "Scores".into(), blocks: vec![table] },
            Section { id: "runs", title: "Free runs".into(), blocks: figures.collect() },
        ],
    }
}

/// One output as a file of its own.
pub fn figure_comparison(output: &Compared, time_label: &str, ticks: &TimeTicks) -> String {
    figure(output, time_label, ticks).standalone()
}

fn figure(output: &Compared, time_label: &str, ticks: &TimeTicks) -> Figure {
    let (low, high) = range(output.t.iter().copied());
    let room = 0.006 * (high - low);
    let axis = Axis::new(time_label, Scale::linear(low - room, high + room)).with_time_ticks(ticks);
    let mut marks = Vec::new();
    let mut legend = vec![(Key::Dot(Class::Data), "data".to_owned())];
    for model in output.models.iter().filter(|model| !model.low.is_empty()) {
        let (x, low, high) = (output.t.clone(), model.low.clone(), model.high.clone());
        marks.push(Mark::Band { x, low, high, class: Class::Outer });
        legend.push((Key::Area(Class::Outer), format!("90 % of {}", model.name)));
    }
    for (i, model) in output.models.iter().enumerate() {
        let class = Class::Series(i);
        marks.push(Mark::Line { x: output.t.clone(), y: model.middle.clone(), class });
        legend.push((Key::Line(class), model.name.clone()));
    }
    marks.push(Mark::Points { x: output.t.clone(), y: output.data.clone(), class: Class::Data });
    // A model that runs away would leave nothing to see of the others.
    let (bottom, top) = range(output.data.iter().copied());
    let around = 0.75 * (top - bottom);
    let shown = |value: &&f64| (bottom - around..=top + around).contains(*value);
    let lines =
        output.models.iter().flat_map(|model| model.middle.iter().chain(&model.low).chain(&model.high));
    let scale = Scale::covering(output.data.iter().chain(lines.filter(shown)).copied().collect::<Vec<_>>());
    let panel = Panel::new(output.title.clone(), axis, "", marks).with_y(scale);
    Figure::new(output.title.clone(), legend, vec![Row::new(vec![panel], 320.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_models_are_in_legend_and_figure() {
        let t: Vec<f64> = (0..20).map(f64::from).collect();
        let line = |shift: f64| t.iter().map(|t| t.sin() + shift).collect::<Vec<_>>();
        let model = |name: &str, shift: f64| Prediction {
            name: name.into(),
            middle: line(shift),
            ..Prediction::default()
        };
        let best = Prediction { low: line(-0.5), high: line(0.5), ..model("a<b", 0.1) };
        let output = Compared {
            title: "y".into(),
            t: t.clone(),
            data: line(0.0),
            models: vec![best, model("ARX", 1e9)],
        };
        let page = comparison_page(&ComparisonPage {
            title: "Models",
            outputs: vec![output],
            scores: (vec!["model".into()], vec![(false, vec!["a".into()])]),
            ..ComparisonPage::default()
        });
        assert!(page.contains("90 % of a&lt;b") && page.contains(">ARX<") && !page.contains("a<b"));
        assert!(page.contains("class=\"c0\"") && page.contains("class=\"c1\"") && !page.contains("NaN"));
        // The axis is that of the data, not of what runs away.
        let (_, ends) = page.split_once(" data-y=\"").unwrap();
        let (low, high) = ends.split_once('"').unwrap().0.split_once(' ').unwrap();
        assert!(low.parse::<f64>().unwrap() > -3.0 && high.parse::<f64>().unwrap() < 3.0, "{low} {high}");
    }
}
