//! Ranks of simulation-based calibration: a table and a figure on one page.

use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale};
use crate::content::{Block, Check, Contents, Section};
use crate::page;

/// Ranks of one quantity.
#[derive(Clone, Debug)]
pub struct RankSeries {
    /// What was ranked.
    pub name: String,
    /// Ranks in each of equally wide bins.
    pub counts: Vec<usize>,
    /// Band that holds all counts of a right sampler at once, in 95 % of cases.
    pub count_band: (f64, f64),
    /// Distribution function of the ranks minus that of even ranks, at equal steps from 0 to 1.
    pub ecdf_difference: Vec<f64>,
    /// Half-width of the band that holds all of it, in 95 % of cases.
    pub ecdf_band: f64,
    /// Cells of its row in the table, after the name.
    pub cells: Vec<String>,
    /// Whether its ranks are uneven.
    pub uneven: bool,
}

/// What the page says.
#[derive(Clone, Debug)]
pub struct RankPage<'a> {
    /// Title.
    pub title: &'a str,
    /// What was done, in sentences.
    pub summary: Vec<String>,
    /// What the reader must know first.
    pub warnings: Vec<String>,
    /// Names of the columns of the table, the first for the quantity.
    pub header: Vec<String>,
    /// Facts of the runs.
    pub facts: Vec<(String, String)>,
    /// The model file that leaves nothing open.
    pub configuration: &'a str,
}

/// Histogram and difference of distribution functions, a row for each quantity.
pub fn figure_ranks(title: &str, all: &[RankSeries]) -> String {
    figure(title, all).standalone()
}

fn figure(title: &str, all: &[RankSeries]) -> Figure {
    let last = all.len().saturating_sub(1);
    let rows = all.iter().enumerate().map(|(i, series)| {
        let axis = |label: &str| {
            let axis = Axis::new(if i == last { label } else { "" }, Scale::linear(0.0, 1.0));
            if i == last { axis } else { axis.without_numbers() }
        };
        let histogram =
            Panel::new(series.name.clone(), axis("rank / number of draws"), "", histogram(series));
        let difference = Panel::new("", axis("rank / number of draws"), "", difference(series));
        Row::new(vec![histogram.from_zero(), difference], 104.0 + if i == last { 28.0 } else { 0.0 })
    });
    let legend = vec![
        (Key::Area(Class::Bar), "runs with such a rank".to_owned()),
        (Key::Line(Class::Median), "distribution function of the ranks minus that of even ranks".to_owned()),
        (Key::Area(Class::Expected), "95 % of right samplers lie within".to_owned()),
    ];
    Figure::new(title, legend, rows.collect())
}

fn steps(n: usize) -> Vec<f64> {
    (0..=n).map(|i| i as f64 / n.max(1) as f64).collect()
}

fn band(low: f64, high: f64) -> Mark {
    Mark::Band { x: vec![0.0, 1.0], low: vec![low; 2], high: vec![high; 2], class: Class::Expected }
}

fn histogram(series: &RankSeries) -> Vec<Mark> {
    let heights = series.counts.iter().map(|n| *n as f64).collect();
    let (low, high) = series.count_band;
    let bars = Mark::Bars { edges: steps(series.counts.len()), heights, class: Class::Bar };
    vec![bars, band(low.max(0.0), high)]
}

fn difference(series: &RankSeries) -> Vec<Mark> {
    let x = steps(series.ecdf_difference.len().saturating_sub(1));
    let line = Mark::Line { x, y: series.ecdf_difference.clone(), class: Class::Median };
    vec![band(-series.ecdf_band, series.ecdf_band), line]
}

/// The page.
pub fn rank_page(input: &RankPage, all: &[RankSeries]) -> String {
    let rows = all.iter().map(|series| {
        let cells = std::iter::once(series.name.clone()).chain(series.cells.iter().cloned());
        (series.uneven, cells.collect())
    });
    let table = Block::Table {
        header: input.header.clone(),
        rows: rows.collect(),
        caption:
            "p-values of the hypothesis that every rank is equally likely. A small effective number of draws \
                  makes ranks uneven without an error of the sampler."
                .into(),
    };
    let figure = Block::Figure {
        svg: figure("Ranks", all).svg(),
        caption: "Left: ranks of the values that made the data among draws of the posterior. A valley in the middle: \
                  the posterior is too narrow, or its draws depend on each other. A hill: too wide. A slope: biased. Right: the \
                  same as differences of distribution functions."
            .into(),
    };
    let uneven = all.iter().filter(|series| series.uneven).count();
    let text = match uneven {
        0 => format!("Ranks of all {} quantities are even.", all.len()),
        n => format!("Ranks of {n} of {} quantities are uneven.", all.len()),
    };
    let details = Block::Details { summary: "Model file".into(), text: input.configuration.to_owned() };
    let section = |id, title: &str, blocks| Section { id, title: title.into(), blocks };
    page::page(&Contents {
        title: input.title.to_owned(),
        summary: input.summary.clone(),
        lights: None,
        warnings: input.warnings.clone(),
        checks: vec![Check { good: uneven == 0, text }],
        facts: input.facts.clone(),
        sections: vec![
            section("tests", "Tests", vec![table]),
            section("ranks", "Ranks", vec![figure]),
            section("configuration", "Configuration", vec![details]),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_marks_what_is_uneven_and_escapes_names() {
        let series = |name: &str, uneven| RankSeries {
            name: name.into(),
            counts: vec![4, 6],
            count_band: (1.0, 9.0),
            ecdf_difference: vec![0.0, -0.1, 0.0],
            ecdf_band: 0.4,
            cells: vec!["0.5".into(), "0.7".into()],
            uneven,
        };
        let input = RankPage {
            title: "SBC",
            summary: vec!["10 runs.".into()],
            warnings: Vec::new(),
            header: ["quantity", "chi-square p", "KS p"].map(String::from).to_vec(),
            facts: Vec::new(),
            configuration: "[model]",
        };
        let html = rank_page(&input, &[series("a<b", false), series("q", true)]);
        assert!(html.contains("a&lt;b") && !html.contains("a<b"));
        assert!(html.contains("Ranks of 1 of 2 quantities are uneven."));
        assert_eq!(html.matches("class=\"marked\"").count(), 1);
        assert!(figure_ranks("Ranks", &[series("q", false)]).starts_with("<svg"));
    }
}
