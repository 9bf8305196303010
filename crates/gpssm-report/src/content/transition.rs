//! The learned transition function.

use gpssm::model::{FunctionSpec, TransitionSpec};

use super::functions::{Functions, MOST_MAPS, Map, Slides, Values};
use super::statistics::LEVELS;
use super::{Block, ReportInput, Section, scattered};
use crate::chart::scale::{range, significant};
use crate::chart::{Axis, Class, Figure, Heat, Key, Mark, Panel, Row, Scale};
use crate::figures::{Curve, Intervals, curve_figure};

/// State dimensions, and slices of one dimension, that are shown at the most.
const MOST_STATES: usize = 6;
const MOST_SLICES: usize = 9;

fn bands(values: &Values, n: usize, d: usize) -> Intervals {
    let mut quantiles = vec![Vec::with_capacity(n); LEVELS.len()];
    for i in 0..n {
        let mixture = values.mixture(i, d);
        quantiles.iter_mut().zip(LEVELS).for_each(|(out, p)| out.push(mixture.quantile(p)));
    }
    let [low, inner_low, middle, inner_high, high] = <[Vec<f64>; 5]>::try_from(quantiles).unwrap_or_default();
    Intervals { low, inner_low, middle, inner_high, high }
}

fn next(input: &ReportInput, d: usize) -> String {
    format!("next {}", input.names.state(d))
}

/// Slices of dimension `d` along all components.
fn curves(input: &ReportInput, functions: &Functions, d: usize) -> Vec<Curve> {
    let n_x = input.problem.n_x();
    let n_z = functions.slices.len();
    let is_gp = matches!(input.problem.model().states[d].transition, TransitionSpec::Gp { .. });
    let slices = functions.slices.iter().enumerate().take(MOST_SLICES);
    slices
        .map(|(c, slice)| {
            let n = slice.at.len();
            let mean_function = (0..n).map(|i| slice.values.prior_mean(i, d)).collect();
            Curve {
                x_label: input.names.component(c, n_x),
                y_label: next(input, d),
                x: slice.at.clone(),
                bands: bands(&slice.values, n, d),
                mean_function: if is_gp { mean_function } else { Vec::new() },
                points: if n_z == 1 { transitions(input, functions, d) } else { Vec::new() },
                rug: functions.places.iter().skip(c).step_by(n_z).copied().collect(),
                known: Some(functions.ranges[c]),
                ..Curve::default()
            }
        })
        .collect()
}

/// Pairs (x_t, x_{t+1}) of some draws, for a single component.
fn transitions(input: &ReportInput, functions: &Functions, d: usize) -> Vec<(f64, f64)> {
    let n_x = input.problem.n_x();
    let draws = functions.draws.iter().flat_map(|&(c, j)| &input.chains[c].paths[j]);
    let pairs =
        draws.flat_map(|path| (1..path.len() / n_x).map(|t| (path[(t - 1) * n_x + d], path[t * n_x + d])));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    scattered(pairs.len(), 600).into_iter().map(|i| pairs[i]).collect()
}

/// Grid points with no draw near them.
fn far_away(functions: &Functions, map: &Map) -> Vec<bool> {
    let (a, b) = map.components;
    let n_z = functions.ranges.len();
    let span = |grid: &[f64]| (grid[grid.len() - 1] - grid[0]).max(f64::MIN_POSITIVE);
    let (wide, high) = (span(&map.x), span(&map.y));
    let near = |x: f64, y: f64| {
        let mut places = functions.places.chunks_exact(n_z);
        places
            .any(|place| ((place[a] - x) / wide).powi(2) + ((place[b] - y) / high).powi(2) < 0.09f64.powi(2))
    };
    map.y.iter().flat_map(|y| map.x.iter().map(move |x| (*x, *y))).map(|(x, y)| !near(x, y)).collect()
}

/// Median and width of f over two components.
fn map_figure(input: &ReportInput, functions: &Functions, map: &Map, d: usize) -> Figure {
    let n_x = input.problem.n_x();
    let (a, b) = map.components;
    let n = map.x.len() * map.y.len();
    let n_z = functions.ranges.len();
    let (mut middle, mut spread) = (Vec::new(), Vec::new());
    for i in 0..n {
        let mixture = map.values.mixture(i, d);
        middle.push(mixture.mean());
        spread.push(mixture.sd());
    }
    let faded = far_away(functions, map);
    let column = |c: usize| functions.places.iter().skip(c).step_by(n_z).copied().collect::<Vec<f64>>();
    let panel = |title: &str, values: Vec<f64>| {
        let mut heat = Heat::new(map.x.clone(), map.y.clone(), values);
        heat.faded = faded.clone();
        let scale = |grid: &[f64]| Scale::linear(grid[0], grid[grid.len() - 1]);
        let axis = |c: usize, grid: &[f64]| Axis::new(input.names.component(c, n_x), scale(grid));
        Panel {
            title: title.to_owned(),
            x: axis(a, &map.x),
            y: axis(b, &map.y),
            marks: vec![
                Mark::Heat(heat),
                Mark::Points { x: column(a), y: column(b), class: Class::SamplePoint },
            ],
        }
    };
    let panels = vec![
        panel(&format!("{}: mean of f", next(input, d)), middle),
        panel(&format!("{}: standard deviation of f", next(input, d)), spread),
    ];
    let legend = vec![(Key::Dot(Class::SamplePoint), "draws of the states; faded far from them".to_owned())];
    Figure::new(format!("{} over two components", next(input, d)), legend, vec![Row::new(panels, 300.0)])
}

/// Slices along the most important component, one for each place of the second.
fn slides(input: &ReportInput, functions: &Functions, slides: &Slides, d: usize) -> Block {
    let n_x = input.problem.n_x();
    let (along, across) =
        (input.names.component(slides.along, n_x), input.names.component(slides.across, n_x));
    let labels: Vec<String> =
        slides.levels.iter().map(|(level, _)| format!("{across} = {}", significant(*level, 3))).collect();
    let figure = |(values, label): (&Values, &String)| {
        let n = slides.at.len();
        let curve = Curve {
            title: label.clone(),
            x_label: along.clone(),
            y_label: next(input, d),
            x: slides.at.clone(),
            bands: bands(values, n, d),
            known: Some(functions.ranges[slides.along]),
            ..Curve::default()
        };
        curve_figure(
            &format!("transition function of {} along {along}, {label}", input.names.state(d)),
            &[curve],
        )
    };
    let mut figures: Vec<Figure> =
        slides.levels.iter().map(|(_, values)| values).zip(&labels).map(figure).collect();
    let panels = figures.iter().flat_map(|figure| &figure.rows).flat_map(|row| &row.panels);
    let (low, high) = range(panels.flat_map(|panel| [panel.y.scale.low(), panel.y.scale.high()]));
    for panel in figures.iter_mut().flat_map(|figure| &mut figure.rows).flat_map(|row| &mut row.panels) {
        panel.y.scale = Scale::linear(low, high);
    }
    Block::Slides {
        svgs: figures.iter().map(Figure::svg).collect(),
        first: labels.len() / 2,
        labels,
        caption: format!(
            "The same function along {along}, with {across} held at a value that the slider chooses and the others at their medians."
        ),
        name: across,
    }
}

fn mean_function_words(mean: &FunctionSpec) -> String {
    match mean {
        FunctionSpec::Zero => "zero".into(),
        FunctionSpec::Identity => "the state itself".into(),
        FunctionSpec::Linear { .. } => "linear".into(),
        FunctionSpec::Formula(text) => text.clone(),
        FunctionSpec::User(_) => "given by a function".into(),
    }
}

pub(crate) fn section(input: &ReportInput, functions: &Functions) -> Section {
    let (states, n_z) = (&input.problem.model().states, functions.slices.len());
    let mut blocks = vec![Block::Text(format!(
        "Posterior of f itself, without process noise: a mixture over {} draws of states and hyper-parameters, each \
         a Gaussian at every point.{}",
        functions.draws.len(),
        if n_z > 1 { " Slices vary one component and hold the others at their medians." } else { "" }
    ))];
    for (d, state) in states.iter().enumerate().take(MOST_STATES) {
        let name = input.names.state(d);
        let prior = match &state.transition {
            TransitionSpec::Lag { of } => {
                let of = input.names.state(*of);
                blocks.push(Block::Text(format!("{name} is the previous value of {of}.")));
                continue;
            }
            TransitionSpec::Parametric { .. } => {
                " The form is known; the intervals show the uncertainty of its parameters.".to_owned()
            }
            TransitionSpec::Gp { mean, .. } => format!(
                " The dashed line is the prior mean ({}); differences from it were learned from the data.",
                mean_function_words(mean)
            ),
        };
        let all = curves(input, functions, d);
        let shown = if n_z > MOST_SLICES {
            format!(" The first {MOST_SLICES} of {n_z} components are shown.")
        } else {
            String::new()
        };
        let figure = curve_figure(&format!("transition function of {name}"), &all);
        let caption = format!(
            "Predicted next {name}.{prior} The shaded ends are outside the range of the data, where predictions rely on the \
             prior.{shown}"
        );
        blocks.push(Block::Figure { svg: figure.svg(), caption });
        if let Some(map) = functions.maps.get(d) {
            let (a, b) = map.components;
            let n_x = input.problem.n_x();
            let others = if n_z > 2 {
                ", the two most important components, with the others at their medians"
            } else {
                ""
            };
            let caption = format!(
                "The same function over {} and {}{others}. The standard deviation should be small near the draws; the faded \
                 region is extrapolation.",
                input.names.component(a, n_x),
                input.names.component(b, n_x)
            );
            blocks.push(Block::Figure { svg: map_figure(input, functions, map, d).svg(), caption });
        }
        if let Some(found) = functions.slides.get(d) {
            blocks.push(slides(input, functions, found, d));
        }
    }
    if states.len() > MOST_STATES {
        blocks.push(Block::Text(format!(
            "The first {MOST_STATES} of {} states are shown, the first {MOST_MAPS} with maps.",
            states.len()
        )));
    }
    Section { id: "transition", title: "Transition function".into(), blocks }
}
