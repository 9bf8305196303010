//! Single figures: for the report, and as SVG files for papers and documentation.

use crate::chart::scale::range;
use crate::chart::surface::{Surface, Wire};
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale, TimeTicks};

/// Quantiles over time: 5, 25, 50, 75 and 95 %, or whatever the caller says in the legend.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// Lower end of the outer band.
    pub low: Vec<f64>,
    /// Lower end of the inner band.
    pub inner_low: Vec<f64>,
    /// The middle.
    pub middle: Vec<f64>,
    /// Upper end of the inner band.
    pub inner_high: Vec<f64>,
    /// Upper end of the outer band.
    pub high: Vec<f64>,
}

impl Intervals {
    /// Makes gaps where the flag is set.
    pub fn leave_out(&mut self, gaps: &[bool]) {
        for line in
            [&mut self.low, &mut self.inner_low, &mut self.middle, &mut self.inner_high, &mut self.high]
        {
            line.iter_mut().zip(gaps).filter(|(_, gap)| **gap).for_each(|(value, _)| *value = f64::NAN);
        }
    }
}

/// One quantity over time. Empty lists are not drawn; values that are not finite are gaps.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Title of its panel.
    pub title: String,
    /// Times.
    pub t: Vec<f64>,
    /// What was measured, as points.
    pub data: Vec<f64>,
    /// What is known, as a line.
    pub truth: Vec<f64>,
    /// What the data cannot tell from it, as a dashed line.
    pub alternative: Vec<f64>,
    /// What is believed.
    pub bands: Option<Intervals>,
    /// Single draws.
    pub samples: Vec<Vec<f64>>,
}

fn series_marks(series: &Series) -> Vec<Mark> {
    let t = &series.t;
    let mut marks = Vec::new();
    if let Some(bands) = &series.bands {
        let band = |low: &[f64], high: &[f64], class| Mark::Band {
            x: t.clone(),
            low: low.to_vec(),
            high: high.to_vec(),
            class,
        };
        marks.push(band(&bands.low, &bands.high, Class::Outer));
        if !bands.inner_low.is_empty() {
            marks.push(band(&bands.inner_low, &bands.inner_high, Class::Inner));
        }
        marks.push(Mark::Line { x: t.clone(), y: bands.middle.clone(), class: Class::Median });
    }
    let lines = series.samples.iter().map(|y| (y, Class::Sample));
    let truth = (!series.truth.is_empty()).then_some((&series.truth, Class::Truth));
    let alternative = (!series.alternative.is_empty()).then_some((&series.alternative, Class::Mean));
    for (y, class) in lines.chain(alternative).chain(truth) {
        marks.push(Mark::Line { x: t.clone(), y: y.clone(), class });
    }
    if !series.data.is_empty() {
        marks.push(Mark::Points { x: t.clone(), y: series.data.clone(), class: Class::Data });
    }
    marks
}

/// Quantities over time, one above the other.
pub(crate) fn series_figure(title: &str, time_label: &str, ticks: &TimeTicks, all: &[Series]) -> Figure {
    let (low, high) = range(all.iter().flat_map(|series| series.t.iter().copied()));
    // Room for the first and the last point.
    let scale = Scale::linear(low - 0.006 * (high - low), high + 0.006 * (high - low));
    let last = all.len().saturating_sub(1);
    let rows = all.iter().enumerate().map(|(i, series)| {
        let x = Axis::new(if i == last { time_label } else { "" }, scale).with_time_ticks(ticks);
        let x = if i == last { x } else { x.without_numbers() };
        let small = series.bands.is_none() && series.data.is_empty() && series.samples.is_empty();
        let height = if small { 84.0 } else { 138.0 } + if i == last { 28.0 } else { 0.0 };
        Row::new(vec![Panel::new(series.title.clone(), x, "", series_marks(series))], height)
    });
    let any = |test: &dyn Fn(&Series) -> bool| all.iter().any(test);
    let mut legend = Vec::new();
    if any(&|s| !s.data.is_empty()) {
        legend.push((Key::Dot(Class::Data), "data".to_owned()));
    }
    if any(&|s| s.bands.is_some()) {
        legend.push((Key::Line(Class::Median), "median".to_owned()));
        legend.push((Key::Area(Class::Inner), "50 %".to_owned()));
        legend.push((Key::Area(Class::Outer), "90 %".to_owned()));
    }
    if any(&|s| !s.samples.is_empty()) {
        legend.push((Key::Line(Class::Sample), "single draws".to_owned()));
    }
    if any(&|s| !s.truth.is_empty() && (s.bands.is_some() || !s.samples.is_empty())) {
        legend.push((Key::Line(Class::Truth), "truth".to_owned()));
    }
    if any(&|s| !s.alternative.is_empty()) {
        legend.push((Key::Line(Class::Mean), "opposite sign".to_owned()));
    }
    Figure::new(title, legend, rows.collect())
}

/// States over time with bands, data, samples and, where it is known, the truth.
pub fn figure_states(title: &str, time_label: &str, states: &[Series]) -> String {
    series_figure(title, time_label, &TimeTicks::default(), states).standalone()
}

/// A free run: what was measured and what the model says of it from its first state on.
pub fn figure_free_run(title: &str, time_label: &str, ticks: &TimeTicks, outputs: &[Series]) -> String {
    series_figure(title, time_label, ticks, outputs).standalone()
}

/// One-step-ahead predictions of each state, mean and one standard deviation, with the truth (the paper's
/// figure 3).
pub fn figure_one_step(title: &str, time_label: &str, states: &[OneStepSeries]) -> String {
    let (low, high) = range(states.iter().flat_map(|series| series.t.iter().copied()));
    let last = states.len().saturating_sub(1);
    let rows = states.iter().enumerate().map(|(i, series)| {
        let x = Axis::new(if i == last { time_label } else { "" }, Scale::linear(low, high));
        let x = if i == last { x } else { x.without_numbers() };
        let shifted = |by: f64| series.mean.iter().zip(&series.sd).map(|(m, sd)| m + by * sd).collect();
        let (t, class) = (series.t.clone(), Class::Inner);
        let marks = vec![
            Mark::Band { x: t.clone(), low: shifted(-1.0), high: shifted(1.0), class },
            Mark::Line { x: t, y: series.truth.clone(), class: Class::Truth },
        ];
        let height = 130.0 + if i == last { 28.0 } else { 0.0 };
        Row::new(vec![Panel::new(series.title.clone(), x, "", marks)], height)
    });
    let legend = vec![
        (Key::Line(Class::Truth), "what happened".to_owned()),
        (Key::Area(Class::Inner), "prediction one step ahead, ± one standard deviation".to_owned()),
    ];
    Figure::new(title, legend, rows.collect()).standalone()
}

/// Predictions of one quantity, one step ahead.
#[derive(Clone, Debug, Default)]
pub struct OneStepSeries {
    /// Title of its panel.
    pub title: String,
    /// Times.
    pub t: Vec<f64>,
    /// What happened.
    pub truth: Vec<f64>,
    /// Mean of the prediction.
    pub mean: Vec<f64>,
    /// Its standard deviation.
    pub sd: Vec<f64>,
}

/// A learned function of one argument.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Title of its panel.
    pub title: String,
    /// Name of the argument.
    pub x_label: String,
    /// Name of the value.
    pub y_label: String,
    /// Arguments.
    pub x: Vec<f64>,
    /// Posterior of the function.
    pub bands: Intervals,
    /// Its mean function; empty if there is none.
    pub mean_function: Vec<f64>,
    /// The true function, where it is known.
    pub truth: Vec<f64>,
    /// Where the data were: (argument, value).
    pub points: Vec<(f64, f64)>,
    /// Where the data were: arguments.
    pub rug: Vec<f64>,
    /// The function is marked as extrapolated outside these arguments.
    pub known: Option<(f64, f64)>,
}

pub(crate) fn curve_panel(curve: &Curve) -> Panel {
    let (low, high) = range(curve.x.iter().copied());
    let mut marks = Vec::new();
    if let Some((from, to)) = curve.known {
        marks.push(Mark::Strip { from: low, to: from, class: Class::Beyond });
        marks.push(Mark::Strip { from: to, to: high, class: Class::Beyond });
    }
    let series = Series { t: curve.x.clone(), bands: Some(curve.bands.clone()), ..Series::default() };
    marks.extend(series_marks(&series));
    for (y, class) in [(&curve.mean_function, Class::Mean), (&curve.truth, Class::Truth)] {
        if !y.is_empty() {
            marks.push(Mark::Line { x: curve.x.clone(), y: y.clone(), class });
        }
    }
    if !curve.points.is_empty() {
        let (x, y) = curve.points.iter().copied().unzip();
        marks.push(Mark::Points { x, y, class: Class::SamplePoint });
    }
    if !curve.rug.is_empty() {
        marks.push(Mark::Rug { x: curve.rug.clone() });
    }
    let axis = Axis::new(curve.x_label.clone(), Scale::linear(low, high));
    Panel::new(curve.title.clone(), axis, curve.y_label.clone(), marks)
}

pub(crate) fn curve_legend(curves: &[Curve]) -> Vec<(Key, String)> {
    let any = |test: &dyn Fn(&Curve) -> bool| curves.iter().any(test);
    let entries = [
        (true, Key::Line(Class::Median), "median of f"),
        (true, Key::Area(Class::Inner), "50 %"),
        (true, Key::Area(Class::Outer), "90 %"),
        (any(&|c| !c.mean_function.is_empty()), Key::Line(Class::Mean), "mean function"),
        (any(&|c| !c.truth.is_empty()), Key::Line(Class::Truth), "truth"),
        (any(&|c| !c.points.is_empty()), Key::Dot(Class::SamplePoint), "draws of the states"),
        (any(&|c| !c.rug.is_empty()), Key::Line(Class::Rug), "where the data were"),
        (any(&|c| c.known.is_some()), Key::Area(Class::Beyond), "beyond the data"),
    ];
    entries.into_iter().filter(|(shown, _, _)| *shown).map(|(_, key, text)| (key, text.to_owned())).collect()
}

/// Learned functions of one argument, beside each other.
pub fn figure_transition(title: &str, curves: &[Curve]) -> String {
    curve_figure(title, curves).standalone()
}

pub(crate) fn curve_figure(title: &str, curves: &[Curve]) -> Figure {
    let columns = match curves.len() {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let height = if columns == 1 { 330.0 } else { 235.0 };
    let rows = curves.chunks(columns).map(|part| {
        let mut panels: Vec<Panel> = part.iter().map(curve_panel).collect();
        // Panels beside each other have one vertical axis, and only the first names it.
        for panel in panels.iter_mut().skip(1) {
            panel.y.label.clear();
        }
        Row { panels, height, columns }
    });
    let mut figure = Figure::new(title, curve_legend(curves), rows.collect());
    let all = figure.rows.iter().flat_map(|row| &row.panels).map(|panel| panel.y.scale);
    let (low, high) = range(all.flat_map(|scale| [scale.low(), scale.high()]));
    for panel in figure.rows.iter_mut().flat_map(|row| &mut row.panels) {
        panel.y.scale = Scale::linear(low, high);
    }
    figure
}

/// A true function of two arguments, its mean function, and draws of the states (the paper's figure 1,
/// right). Grids are row-major (second argument, first argument).
#[derive(Clone, Debug)]
pub struct SurfaceData {
    /// Names of the two arguments and the value.
    pub labels: [String; 3],
    /// Places along the first argument.
    pub x: Vec<f64>,
    /// Places along the second argument.
    pub y: Vec<f64>,
    /// The true function, or the learned one; may be empty.
    pub truth: Vec<f64>,
    /// What `truth` is called in the legend.
    pub truth_name: String,
    /// The mean function; may be empty.
    pub mean_function: Vec<f64>,
    /// Draws (first argument, second argument, value).
    pub points: Vec<[f64; 3]>,
}

/// A function of two arguments as a wire surface.
pub fn figure_surface(title: &str, data: &SurfaceData) -> String {
    let wire =
        |values: &[f64], class| Wire { x: data.x.clone(), y: data.y.clone(), values: values.to_vec(), class };
    let mut wires = Vec::new();
    let mut legend = Vec::new();
    if !data.truth.is_empty() {
        wires.push(wire(&data.truth, Class::Truth));
        legend.push((Key::Line(Class::Truth), data.truth_name.clone()));
    }
    if !data.mean_function.is_empty() {
        wires.push(wire(&data.mean_function, Class::Mean));
        legend.push((Key::Line(Class::Mean), "mean function".to_owned()));
    }
    if !data.points.is_empty() {
        legend.push((Key::Dot(Class::SamplePoint), "draws of the states".to_owned()));
    }
    let heights =
        data.truth.iter().chain(&data.mean_function).copied().chain(data.points.iter().map(|p| p[2]));
    let heights = range(heights);
    let along = |grid: &[f64], c: usize| range(grid.iter().copied().chain(data.points.iter().map(|p| p[c])));
    let axis =
        |c: usize, (low, high): (f64, f64)| Axis::new(data.labels[c].clone(), Scale::linear(low, high));
    let axes = [axis(0, along(&data.x, 0)), axis(1, along(&data.y, 1)), axis(2, heights)];
    let (points, point_class) = (data.points.clone(), Class::SamplePoint);
    Surface { title: title.to_owned(), legend, axes, wires, points, point_class }.standalone()
}

/// Coverage of central intervals: for each method its name and, by nominal level, the share of outcomes inside.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Nominal levels between 0 and 1.
    pub levels: Vec<f64>,
    /// Names and shares.
    pub methods: Vec<(String, Vec<f64>)>,
    /// Number of outcomes; the grey band is where 95 % of calibrated forecasts of so many would lie.
    pub n: usize,
}

/// Nominal against actual coverage.
pub fn figure_calibration(title: &str, data: &Coverage) -> String {
    let half = |p: f64| 1.96 * (p * (1.0 - p) / data.n.max(1) as f64).sqrt();
    let grid: Vec<f64> = (0..=50).map(|i| f64::from(i) / 50.0).collect();
    let mut marks = vec![
        Mark::Band {
            x: grid.clone(),
            low: grid.iter().map(|p| p - half(*p)).collect(),
            high: grid.iter().map(|p| p + half(*p)).collect(),
            class: Class::Expected,
        },
        Mark::Line { x: vec![0.0, 1.0], y: vec![0.0, 1.0], class: Class::Reference },
    ];
    let mut legend =
        vec![(Key::Area(Class::Expected), format!("95 % of calibrated forecasts, n = {}", data.n))];
    for (i, (name, shares)) in data.methods.iter().enumerate() {
        marks.push(Mark::Line { x: data.levels.clone(), y: shares.clone(), class: Class::Series(i) });
        legend.push((Key::Line(Class::Series(i)), name.clone()));
    }
    let unit = Scale::linear(0.0, 1.0);
    let panel =
        Panel::new("", Axis::new("nominal level of the interval", unit), "share of outcomes inside", marks);
    let row = Row::new(vec![panel.with_y(unit)], 400.0);
    Figure { width: 440.0, ..Figure::new(title, legend, vec![row]) }.standalone()
}
