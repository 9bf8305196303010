//! The page of checks: what predictions of a record miss, with figures.

use crate::chart::scale::{range, significant};
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale, TimeTicks};
use crate::content::{Block, Check, Contents, Section};
use crate::page;

/// Bins of histograms.
const N_BINS: usize = 20;
const FEW_BINS: usize = 10;
/// Outcomes from which on all bins are used.
const MANY: usize = 150;
/// Panels of inputs or statistics beside each other.
const COLUMNS: usize = 3;

/// Residuals of one output, one step ahead.
#[derive(Clone, Debug, Default)]
pub struct ResidualChecks {
    /// Output.
    pub name: String,
    /// Times of the residuals.
    pub t: Vec<f64>,
    /// Normal scores of the predictions; NaN where nothing was measured.
    pub residuals: Vec<f64>,
    /// Probability integral transforms.
    pub pit: Vec<f64>,
    /// Autocorrelation at lags 1, 2, ...
    pub autocorrelation: Vec<f64>,
    /// Inputs, lags and correlations with the residuals.
    pub cross: Vec<(String, Vec<f64>, Vec<f64>)>,
    /// Statistics: name, of the record, of free runs.
    pub statistics: Vec<(String, f64, Vec<f64>)>,
}

/// A table with what to look for.
#[derive(Clone, Debug, Default)]
pub struct CheckTable {
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells; rows whose flag is set are marked.
    pub rows: Vec<(bool, Vec<String>)>,
    /// What to look for.
    pub caption: String,
}

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct CheckPage<'a> {
    /// Title.
    pub title: &'a str,
    /// What was checked, in sentences.
    pub summary: Vec<String>,
    /// What the reader must know first.
    pub warnings: Vec<String>,
    /// Answers at a glance: whether it passed, and what was found.
    pub answers: Vec<(bool, String)>,
    /// What the time axis shows.
    pub time_label: String,
    /// How it is divided.
    pub time_ticks: TimeTicks,
    /// By output.
    pub outputs: Vec<ResidualChecks>,
    /// Rows that were not expected, rows that the estimates hang on, prior beside posterior, scores by horizon; those without
    /// rows are left out.
    pub tables: Vec<(&'static str, String, CheckTable)>,
}

/// The page.
pub fn check_page(input: &CheckPage) -> String {
    page::page(&check_contents(input))
}

/// What is on the page.
pub fn check_contents(input: &CheckPage) -> Contents {
    let mut sections = Vec::new();
    for (k, output) in input.outputs.iter().enumerate() {
        const IDS: [&str; 4] = ["output1", "output2", "output3", "output4"];
        let id = IDS[k.min(IDS.len() - 1)];
        sections.push(Section {
            id,
            title: format!("Output {}", output.name),
            blocks: blocks(input, output),
        });
    }
    for (id, title, table) in input.tables.iter().filter(|(_, _, table)| !table.rows.is_empty()) {
        let table = Block::Table {
            header: table.header.clone(),
            rows: table.rows.clone(),
            caption: table.caption.clone(),
        };
        sections.push(Section { id, title: title.clone(), blocks: vec![table] });
    }
    Contents {
        title: input.title.to_owned(),
        summary: input.summary.clone(),
        lights: None,
        warnings: input.warnings.clone(),
        checks: input.answers.iter().map(|(good, text)| Check { good: *good, text: text.clone() }).collect(),
        facts: Vec::new(),
        sections,
    }
}

fn blocks(input: &CheckPage, output: &ResidualChecks) -> Vec<Block> {
    let figure = |figure: Figure, caption: &str| Block::Figure { svg: figure.svg(), caption: caption.into() };
    let mut blocks = vec![figure(
        residuals(input, output),
        "Above: residuals one step ahead, in standard deviations of the predictions; the grey band holds 95 % of those of a \
         right model. Below, left: the probability that was given to an outcome below the one measured. High ends mean \
         intervals that are too narrow, a hump too wide ones, a slope a bias. Right: correlation of a residual with earlier \
         ones; what sticks out of the band are dynamics that the model misses.",
    )];
    if !output.cross.is_empty() {
        blocks.push(figure(
            cross(output),
            "Correlation of the residuals with each input so many rows before. What sticks out of the band on the right of zero \
             is an effect of the input that the model misses; on the left of zero it is feedback.",
        ));
    }
    if !output.statistics.is_empty() {
        blocks.push(figure(
            statistics(output),
            "Statistics of free runs under the inputs of the record (bars, without the outermost 2 % on either side) and of the \
             record itself (line). A line beyond all bars means that free runs do not look like the record in this respect.",
        ));
    }
    blocks
}

/// Half-width of the band of 95 % of the correlations of white residuals.
fn half_width(output: &ResidualChecks) -> f64 {
    1.96 / (output.pit.len().max(1) as f64).sqrt()
}

fn expected() -> Vec<(Key, String)> {
    vec![(Key::Area(Class::Expected), "95 % of a right model".to_owned())]
}

fn stems(title: String, label: &str, lags: Vec<f64>, values: Vec<f64>, half: f64) -> Panel {
    let known = values.iter().filter(|value| value.is_finite());
    let largest = known.fold(1.3 * half, |largest, value| largest.max(value.abs()));
    let (low, high) = range(lags.iter().copied());
    let marks = vec![
        Mark::Between { low: -half, high: half, class: Class::Expected },
        Mark::Horizontal { y: 0.0, class: Class::Reference },
        Mark::Stems { x: lags, y: values, class: Class::Series(0) },
    ];
    Panel::new(title, Axis::new(label, Scale::linear(low - 0.5, high + 0.5)), "", marks)
        .with_y(Scale::linear(-1.08 * largest, 1.08 * largest))
}

fn residuals(input: &CheckPage, output: &ResidualChecks) -> Figure {
    let (low, high) = range(output.t.iter().copied());
    let axis =
        Axis::new(input.time_label.clone(), Scale::linear(low, high)).with_time_ticks(&input.time_ticks);
    let over_time = Panel::new(
        "residuals one step ahead",
        axis,
        "",
        vec![
            Mark::Between { low: -1.96, high: 1.96, class: Class::Expected },
            Mark::Horizontal { y: 0.0, class: Class::Reference },
            Mark::Points { x: output.t.clone(), y: output.residuals.clone(), class: Class::Data },
        ],
    );
    let n = output.pit.len();
    let bins = if n < MANY { FEW_BINS } else { N_BINS };
    let mut counts = vec![0.0; bins];
    output.pit.iter().for_each(|p| counts[((p * bins as f64) as usize).min(bins - 1)] += 1.0);
    let share = n as f64 / bins as f64;
    let spread = 1.96 * (share * (1.0 - 1.0 / bins as f64)).sqrt() + 0.5;
    let edges = (0..=bins).map(|b| b as f64 / bins as f64).collect();
    let histogram = Panel::new(
        "probability of less",
        Axis::new("probability integral transform", Scale::linear(0.0, 1.0)),
        "rows",
        vec![
            Mark::Between { low: (share - spread).max(0.0), high: share + spread, class: Class::Expected },
            Mark::Bars { edges, heights: counts, class: Class::Bar },
            Mark::Horizontal { y: share, class: Class::Reference },
        ],
    )
    .from_zero();
    let lags = (1..=output.autocorrelation.len()).map(|lag| lag as f64).collect();
    let own = stems(
        "autocorrelation".into(),
        "lag (rows)",
        lags,
        output.autocorrelation.clone(),
        half_width(output),
    );
    let rows = vec![Row::new(vec![over_time], 190.0), Row::new(vec![histogram, own], 205.0)];
    Figure::new(format!("residuals of {}", output.name), expected(), rows)
}

fn cross(output: &ResidualChecks) -> Figure {
    let panels = output.cross.iter().map(|(input, lags, values)| {
        let title = format!("residuals after {input}");
        stems(title, "rows after the input", lags.clone(), values.clone(), half_width(output))
    });
    in_columns(format!("residuals of {} beside inputs", output.name), expected(), panels.collect(), 200.0)
}

fn in_columns(title: String, legend: Vec<(Key, String)>, panels: Vec<Panel>, height: f64) -> Figure {
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.chunks(columns).map(|part| Row { panels: part.to_vec(), height, columns });
    let rows = rows.collect();
    Figure::new(title, legend, rows)
}

fn statistics(output: &ResidualChecks) -> Figure {
    let panels = output.statistics.iter().map(|(name, observed, replicates)| {
        let mut known: Vec<f64> = replicates.iter().copied().filter(|value| value.is_finite()).collect();
        known.sort_unstable_by(f64::total_cmp);
        // A few free runs that run away would leave nothing to see of the others.
        let ends = known.len() / 50;
        let middle = &known[ends..known.len() - ends];
        let (low, high) = range(middle.iter().copied().chain([*observed]));
        let width = (high - low).max(1e-12) / N_BINS as f64;
        let mut counts = vec![0.0; N_BINS];
        let shown = known.iter().filter(|value| (low..=high).contains(*value));
        shown.for_each(|value| counts[(((value - low) / width) as usize).min(N_BINS - 1)] += 1.0);
        let most = counts.iter().copied().fold(1.0, f64::max);
        let edges = (0..=N_BINS).map(|b| low + b as f64 * width).collect();
        let marks = vec![
            Mark::Bars { edges, heights: counts, class: Class::Bar },
            Mark::Line { x: vec![*observed; 2], y: vec![0.0, most], class: Class::Truth },
        ];
        let room = 0.04 * (high - low);
        let label = format!("record: {}", significant(*observed, 3));
        Panel::new(name.clone(), Axis::new(label, Scale::linear(low - room, high + room)), "", marks)
            .from_zero()
    });
    let legend =
        vec![(Key::Area(Class::Bar), "free runs".to_owned()), (Key::Line(Class::Truth), "record".to_owned())];
    in_columns(format!("statistics of free runs of {}", output.name), legend, panels.collect(), 165.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_failed_and_escapes_names() {
        let output = ResidualChecks {
            name: "a<b".into(),
            t: (0..30).map(f64::from).collect(),
            residuals: (0..30).map(|i| if i == 4 { f64::NAN } else { (f64::from(i) * 1.3).sin() }).collect(),
            pit: (0..29).map(|i| (f64::from(i) + 0.5) / 29.0).collect(),
            autocorrelation: vec![0.3, -0.1, 0.0],
            cross: vec![("u".into(), vec![-1.0, 0.0, 1.0], vec![0.1, f64::NAN, 0.2])],
            statistics: vec![("mean".into(), 0.4, vec![0.1, 0.2, 0.3])],
        };
        let table = CheckTable {
            header: vec!["row".into()],
            rows: vec![(true, vec!["7".into()])],
            ..CheckTable::default()
        };
        let page = check_page(&CheckPage {
            title: "Checks",
            answers: vec![(false, "residuals are not white".into()), (true, "calibrated".into())],
            outputs: vec![output],
            tables: vec![("rows", "Rows".into(), table), ("none", "Nothing".into(), CheckTable::default())],
            ..CheckPage::default()
        });
        assert!(page.contains("a&lt;b") && !page.contains("a<b"));
        assert_eq!(page.matches("<figure>").count(), 3);
        assert!(page.contains("mark bad") && page.contains("mark good") && !page.contains("Nothing"));
        assert!(!page.contains("NaN"));
    }
}
