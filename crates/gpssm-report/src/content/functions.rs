//! The posterior of f at many points: a Gaussian for each of some draws, mixed (eq. 11 of the paper).
//!
//! The factor of a draw is made, asked everything at once and dropped, so that memory does not grow with the
//! number of draws.

use gpssm::dynamics::BasisChoice;
use gpssm::posterior::{GaussianMixture, Prediction, Target, WeightedDraw};
use gpssm::{Points, Posterior};

use super::statistics::{mean, quantile, sort, spaced};
use super::{ReportInput, all_draws, scattered, some_draws};
use crate::Error;

/// Draws that the mixtures are made of, at the most.
const MOST_DRAWS: usize = 60;
/// Arithmetic that these mixtures may cost.
const BUDGET: f64 = 2e11;
/// Rows whose outputs are predicted, at the most.
const MOST_ROWS: usize = 2_000;
/// Places along a slice, and along each side of a map.
const N_SLICE: usize = 81;
const N_MAP: usize = 27;
/// Places of the draws from which ranges are found, and that are shown.
const MOST_PLACES: usize = 20_000;
const SHOWN_PLACES: usize = 500;
/// Places of a second component at which a slice is shown, as quantiles of where the draws were.
const LEVELS: [f64; 7] = [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95];
/// State dimensions with a map, at the most.
pub(crate) const MOST_MAPS: usize = 4;

/// f at points, for every draw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    n_x: usize,
    n_points: usize,
    /// (draw, point, dimension).
    means: Vec<f64>,
    sds: Vec<f64>,
    /// The mean function, the same order.
    prior_means: Vec<f64>,
}

impl Values {
    fn take(&mut self, prediction: &Prediction, prior_means: &[f64]) {
        (self.n_x, self.n_points) = (prediction.n_x(), prediction.n_points());
        for i in 0..self.n_points {
            self.means.extend_from_slice(prediction.draw_mean(0, i));
            let covariance = prediction.draw_covariance(0, i);
            self.sds.extend((0..self.n_x).map(|d| covariance[d * self.n_x + d].max(0.0).sqrt()));
        }
        self.prior_means.extend_from_slice(prior_means);
    }

    fn of<'a>(&'a self, values: &'a [f64], i: usize, d: usize) -> impl Iterator<Item = f64> + 'a {
        values.iter().skip(i * self.n_x + d).step_by(self.n_points * self.n_x).copied()
    }

    /// The mixture at point `i` in dimension `d`.
    pub(crate) fn mixture(&self, i: usize, d: usize) -> GaussianMixture {
        let means: Vec<f64> = self.of(&self.means, i, d).collect();
        let weights = vec![1.0 / means.len() as f64; means.len()];
        GaussianMixture { weights, means, sds: self.of(&self.sds, i, d).collect() }
    }

    /// The mean function at point `i`, averaged over the draws.
    pub(crate) fn prior_mean(&self, i: usize, d: usize) -> f64 {
        mean(&self.of(&self.prior_means, i, d).collect::<Vec<_>>())
    }
}

/// A line through the space of (x, u): one component varies, the others stay at their medians.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub at: Vec<f64>,
    pub values: Values,
}

/// A plane: two components vary.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub components: (usize, usize),
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub values: Values,
}

/// Slices along one component, with a second one at several places.
#[derive(Clone, Debug)]
pub(crate) struct Slides {
    pub along: usize,
    pub across: usize,
    pub at: Vec<f64>,
    /// Places of the second component, and f there.
    pub levels: Vec<(f64, Values)>,
}

/// f at the states from which one draw went on: (row, dimension), and (row, dimension, dimension).
#[derive(Clone, Debug)]
pub(crate) struct OneStep {
    pub mean: Vec<f64>,
    pub covariance: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Functions {
    pub draws: Vec<(usize, usize)>,
    /// Where the draws were, by component of (x, u).
    pub ranges: Vec<(f64, f64)>,
    /// Places of the draws, a few hundred; row-major.
    pub places: Vec<f64>,
    /// By component.
    pub slices: Vec<Slice>,
    /// By state dimension, for the first few.
    pub maps: Vec<Map>,
    /// The same, where there are more components than a map has.
    pub slides: Vec<Slides>,
    /// Rows (sequence, t) that are predicted from t - 1.
    pub rows: Vec<(usize, usize)>,
    /// By draw.
    pub one_step: Vec<OneStep>,
}

fn posterior_of(input: &ReportInput, (c, j): (usize, usize)) -> Result<Posterior, Error> {
    let chain = &input.chains[c];
    let draw = WeightedDraw { theta: chain.theta[j].clone(), paths: chain.paths[j].clone(), weight: 1.0 };
    Ok(Posterior::from_draws(input.problem, vec![draw])?)
}

/// The mean functions at points in original units, row-major (point, dimension).
fn prior_means(input: &ReportInput, theta: &[f64], points: &Points) -> Vec<f64> {
    let scaling = input.problem.scaling();
    let mut internal = points.clone();
    for c in 0..points.n_components() {
        let (shift, scale) = (scaling.z_shift(c), scaling.z_scale(c));
        internal.column_mut(c).iter_mut().for_each(|z| *z = (*z - shift) / scale);
    }
    let transition = input.problem.bind_transition(theta);
    let n_x = transition.n_x();
    let mut values = vec![0.0; points.len() * n_x];
    let mut column = vec![0.0; points.len()];
    for (d, function) in transition.means.iter().enumerate() {
        function.evaluate(&internal, &mut column);
        column.iter().enumerate().for_each(|(i, v)| values[i * n_x + d] = scaling.x.to_original(d, *v));
    }
    values
}

/// How many draws the budget allows.
fn n_draws(input: &ReportInput, n_points: usize) -> usize {
    let n = input.problem.record().n_transitions() as f64;
    let (chain, draw) = all_draws(input)[0];
    let known = input.problem.bind_transition(&input.chains[chain].theta[draw]);
    let learned = known.kernels.iter().filter(|kernel| !kernel.is_zero()).count() as f64;
    let flops = match input.problem.basis() {
        None => learned * (n.powi(3) / 3.0 + n * n * n_points as f64),
        Some(basis) => learned * (n + n_points as f64) * (basis.n_functions() as f64).powi(2),
    };
    ((BUDGET / flops.max(1.0)) as usize).clamp(8, MOST_DRAWS)
}

/// Rows that are predicted: the first ones of every sequence after its presample, equally many where there are enough.
fn predicted_rows(input: &ReportInput) -> Vec<(usize, usize)> {
    let sequences = input.problem.sequences();
    let share = (MOST_ROWS / sequences.len()).max(20);
    let rows = sequences.iter().take(MOST_ROWS / 20).enumerate();
    rows.flat_map(|(s, sequence)| {
        let first = 1 + sequence.presample();
        (first..sequence.n_rows().min(share + first)).map(move |t| (s, t))
    })
    .collect()
}

/// Values of every component of (x, u) that some draws visited, some thousands at the most; row-major.
fn visited(input: &ReportInput, draws: &[(usize, usize)]) -> Vec<f64> {
    let n_x = input.problem.n_x();
    let sequences = input.problem.record().sequences();
    let rows: Vec<(usize, usize)> = sequences
        .iter()
        .enumerate()
        .flat_map(|(s, sequence)| (0..sequence.length()).map(move |t| (s, t)))
        .collect();
    let mut places = Vec::new();
    for i in scattered(draws.len() * rows.len(), MOST_PLACES) {
        let ((c, j), (s, t)) = (draws[i / rows.len()], rows[i % rows.len()]);
        places.extend_from_slice(&input.chains[c].paths[j][s][t * n_x..(t + 1) * n_x]);
        places.extend_from_slice(sequences[s].u(t));
    }
    places
}

/// Places along a slice: where the draws were, and a little beyond.
fn along((low, high): (f64, f64), n: usize) -> Vec<f64> {
    let room = 0.12 * (high - low).max(1e-9 * high.abs().max(1e-9));
    spaced(low - room, high + room, n)
}

pub(crate) fn evaluate(input: &ReportInput) -> Result<Functions, Error> {
    let n_x = input.problem.n_x();
    let n_z = n_x + input.problem.model().n_u;
    let rows = predicted_rows(input);
    let n_maps = if n_z > 1 { n_x.min(MOST_MAPS) } else { 0 };
    let n_slides = if n_z > 2 { n_maps } else { 0 };
    let n_points = n_z * N_SLICE + n_maps * N_MAP * N_MAP + n_slides * LEVELS.len() * N_SLICE;
    let wanted = n_draws(input, n_points + rows.len());
    let draws = some_draws(input, wanted);
    let places = visited(input, &draws);
    let mut ranges = Vec::new();
    let mut medians = Vec::new();
    let mut levels = Vec::new();
    for c in 0..n_z {
        let mut column: Vec<f64> = places.iter().skip(c).step_by(n_z).copied().collect();
        sort(&mut column);
        ranges.push((quantile(&column, 0.005), quantile(&column, 0.995)));
        medians.push(quantile(&column, 0.5));
        levels.push(LEVELS.map(|p| quantile(&column, p)));
    }
    let slice_points: Vec<Points> = (0..n_z)
        .map(|c| {
            let at = along(ranges[c], N_SLICE);
            let rows = at.iter().map(|z| with(&medians, &[(c, *z)])).collect::<Vec<_>>();
            Points::from_rows(n_z, rows.iter().map(Vec::as_slice))
        })
        .collect();
    let pairs = strongest(input, &slice_points, n_maps)?;
    let map_points: Vec<Points> = pairs
        .iter()
        .map(|&(a, b)| (a.min(b), a.max(b)))
        .map(|(a, b)| {
            let (x, y) = (along(ranges[a], N_MAP), along(ranges[b], N_MAP));
            let rows = y.iter().flat_map(|y| x.iter().map(|x| with(&medians, &[(a, *x), (b, *y)])));
            let rows = rows.collect::<Vec<_>>();
            Points::from_rows(n_z, rows.iter().map(Vec::as_slice))
        })
        .collect();
    let slide_points: Vec<Points> = pairs
        .iter()
        .take(n_slides)
        .flat_map(|&(a, b)| levels[b].map(|level| (a, b, level)))
        .map(|(a, b, level)| {
            let rows = along(ranges[a], N_SLICE).into_iter().map(|z| with(&medians, &[(a, z), (b, level)]));
            let rows = rows.collect::<Vec<_>>();
            Points::from_rows(n_z, rows.iter().map(Vec::as_slice))
        })
        .collect();
    let mut slide_values = vec![Values::default(); slide_points.len()];
    let mut slice_values = vec![Values::default(); n_z];
    let mut map_values = vec![Values::default(); pairs.len()];
    let mut one_step = Vec::new();
    for &draw in &draws {
        let posterior = posterior_of(input, draw)?;
        let theta = &posterior.draws()[0].theta;
        let slices = slice_points.iter().zip(&mut slice_values);
        let maps = map_points.iter().zip(&mut map_values);
        let slides = slide_points.iter().zip(&mut slide_values);
        for (points, values) in slices.chain(maps).chain(slides) {
            let prediction = posterior.predict_at(points, Target::Function)?;
            values.take(&prediction, &prior_means(input, theta, points));
        }
        one_step.push(predict_rows(input, &posterior, &rows)?);
    }
    let slices = slice_values.into_iter().enumerate();
    let slices = slices.map(|(c, values)| Slice { at: along(ranges[c], N_SLICE), values }).collect();
    let mut slide_values = slide_values.into_iter();
    let slides = pairs.iter().take(n_slides).map(|&(a, b)| Slides {
        along: a,
        across: b,
        at: along(ranges[a], N_SLICE),
        levels: levels[b].into_iter().zip(slide_values.by_ref()).collect(),
    });
    let slides: Vec<Slides> = slides.collect();
    let pairs = pairs.into_iter().map(|(a, b)| (a.min(b), a.max(b)));
    let maps = pairs.zip(map_values).map(|((a, b), values)| Map {
        components: (a, b),
        x: along(ranges[a], N_MAP),
        y: along(ranges[b], N_MAP),
        values,
    });
    let few = scattered(places.len() / n_z, SHOWN_PLACES);
    let thinned = few.into_iter().flat_map(|i| places[i * n_z..(i + 1) * n_z].to_vec()).collect();
    Ok(Functions { draws, maps: maps.collect(), slides, ranges, places: thinned, slices, rows, one_step })
}

/// A point with some components replaced.
fn with(point: &[f64], replaced: &[(usize, f64)]) -> Vec<f64> {
    let mut point = point.to_vec();
    replaced.iter().for_each(|&(c, value)| point[c] = value);
    point
}

/// For each of the first state dimensions the two components along which f varies most, the strongest first.
fn strongest(input: &ReportInput, slices: &[Points], n_maps: usize) -> Result<Vec<(usize, usize)>, Error> {
    let n_z = slices.len();
    if n_z <= 2 {
        return Ok(vec![(0, 1); n_maps]);
    }
    let mut effects = vec![vec![0.0; n_z]; n_maps];
    for draw in some_draws(input, 4) {
        let posterior = posterior_of(input, draw)?;
        for (c, points) in slices.iter().enumerate() {
            let prediction = posterior.predict_at(points, Target::Function)?;
            for (d, effect) in effects.iter_mut().enumerate() {
                let values = (0..points.len()).map(|i| prediction.draw_mean(0, i)[d]);
                let (low, high) = crate::chart::scale::range(values);
                effect[c] += high - low;
            }
        }
    }
    let pair = |effect: Vec<f64>| {
        let mut order: Vec<usize> = (0..n_z).collect();
        order.sort_by(|&a, &b| effect[b].total_cmp(&effect[a]));
        (order[0], order[1])
    };
    Ok(effects.into_iter().map(pair).collect())
}

fn predict_rows(
    input: &ReportInput,
    posterior: &Posterior,
    rows: &[(usize, usize)],
) -> Result<OneStep, Error> {
    let n_x = input.problem.n_x();
    let draw = &posterior.draws()[0];
    let mut points = Points::new(n_x + input.problem.model().n_u);
    for &(s, t) in rows {
        points.push_parts(
            &draw.paths[s][(t - 1) * n_x..t * n_x],
            input.problem.record().sequences()[s].u(t - 1),
        );
    }
    let prediction = posterior.predict_at(&points, Target::Function)?;
    let (mut mean, mut covariance) = (Vec::new(), Vec::new());
    for i in 0..rows.len() {
        mean.extend_from_slice(prediction.draw_mean(0, i));
        covariance.extend_from_slice(prediction.draw_covariance(0, i));
    }
    Ok(OneStep { mean, covariance })
}

/// Whether leaving a transition out of what f was learned from has a closed form: not with FIC, whose noise
/// depends on the place.
pub(crate) fn can_leave_out(input: &ReportInput) -> bool {
    !matches!(input.problem.basis(), Some(BasisChoice::Fic(_)))
}
