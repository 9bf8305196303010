//! Chooses a finite basis once for a run, from seed, data and description alone.

use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::compile::Problem;
use super::dynamics::{DynamicsSpec, InducingSpec};
use super::spec::TransitionSpec;
use crate::dynamics::basis::features::BasisChoice;
use crate::dynamics::basis::fourier::FourierChoice;
use crate::dynamics::basis::hilbert::HilbertChoice;
use crate::dynamics::basis::selection::{Regression, by_information, by_variance, by_variance_above};
use crate::dynamics::block::Pairs;
use crate::error::Error;
use crate::points::Points;
use crate::random::{Purpose, stream};
use crate::state_space::SharedPairs;

/// What a choice may look at.
struct WarmUp {
    /// z_t of all sequences, t = 0..T.
    visited: Points,
    /// Their pairs, and the prior of each state dimension that has one.
    pairs: Pairs,
    regressions: Vec<Regression>,
}

impl WarmUp {
    fn new(problem: &Problem, theta: &[f64], paths: &[Vec<f64>]) -> Self {
        let (n_x, n_u) = (problem.n_x(), problem.model().n_u);
        let transition = problem.bind_transition(theta);
        let mut visited = Points::new(n_x + n_u);
        let mut shared = SharedPairs::none(n_x, n_u);
        for (path, sequence) in paths.iter().zip(problem.sequences()) {
            for (t, x) in path.chunks_exact(n_x).enumerate() {
                visited.push_parts(x, sequence.u(t));
            }
            shared.add(&transition, path, sequence);
        }
        let noise = transition.noise_covariance();
        let regressions =
            transition.moving().filter(|&d| !transition.kernels[d].is_zero()).map(|d| Regression {
                kernel: transition.kernels[d].clone(),
                residuals: shared.0.select(&[d]),
                noise: noise[d * n_x + d],
            });
        Self { visited, regressions: regressions.collect(), pairs: shared.0 }
    }

    /// The points with these indices; the first of all if none was chosen.
    fn points(&self, chosen: &[usize]) -> Points {
        let mut points = Points::new(self.visited.n_components());
        chosen.iter().for_each(|&i| points.push(&self.pairs.points.row(i)));
        if points.is_empty() {
            points.push(&self.visited.row(0));
        }
        points
    }
}

/// The basis of a problem, given a warm-up path of each sequence (internal units) and its hyper-parameters.
pub(crate) fn choose(
    problem: &Problem,
    seed: u64,
    theta: &[f64],
    paths: &[Vec<f64>],
) -> Result<Option<BasisChoice>, Error> {
    let warm_up = &WarmUp::new(problem, theta, paths);
    let mut rng = stream(seed, 0, Purpose::Basis, 0, 0);
    Ok(match &problem.model().dynamics {
        DynamicsSpec::Exact => None,
        DynamicsSpec::Fic { inducing, .. } => {
            Some(BasisChoice::Fic(Arc::new(inducing_inputs(problem, inducing, warm_up, &mut rng))))
        }
        DynamicsSpec::Dtc { inducing, .. } => {
            Some(BasisChoice::Dtc(Arc::new(inducing_inputs(problem, inducing, warm_up, &mut rng))))
        }
        DynamicsSpec::Hilbert { functions, half_width, .. } => {
            Some(BasisChoice::Hilbert(Arc::new(hilbert(problem, *functions, half_width, &warm_up.visited))))
        }
        DynamicsSpec::Fourier { frequencies, .. } => {
            Some(BasisChoice::Fourier(Arc::new(fourier(problem, *frequencies, &mut rng))))
        }
    })
}

/// Part of the prior variance of f below which another inducing input costs more digits than it adds.
const LEAST: f64 = 1e-6;

/// Up to `n` of the points that paths visit, and their mirror images, far from one another as the prior has it.
pub(crate) fn spread_out(problem: &Problem, theta: &[f64], paths: &[Vec<f64>], n: usize) -> Points {
    let warm_up = WarmUp::new(problem, theta, paths);
    let n = n.div_ceil(mirrors(problem).len());
    closed(problem, warm_up.points(&by_variance_above(LEAST, &warm_up.pairs.points, &warm_up.regressions, n)))
}

/// Whether the choice needs a warm-up path.
pub(crate) fn needs_path(spec: &DynamicsSpec) -> bool {
    match spec {
        DynamicsSpec::Exact | DynamicsSpec::Fourier { .. } => false,
        DynamicsSpec::Fic { inducing, .. } | DynamicsSpec::Dtc { inducing, .. } => {
            !matches!(inducing, InducingSpec::Given(_))
        }
        DynamicsSpec::Hilbert { half_width, .. } => half_width.is_empty(),
    }
}

/// Inducing inputs for the warm-up path itself: states at random within three of their units, inputs from
/// the record.
pub(crate) fn provisional(problem: &Problem, seed: u64, n: usize) -> BasisChoice {
    let mut rng = stream(seed, 0, Purpose::Basis, 0, 1);
    let n_x = problem.n_x();
    let mut points = Points::new(n_x + problem.model().n_u);
    for _ in 0..n {
        let x: Vec<f64> = (0..n_x).map(|_| 1.5 * rng.sample::<f64, _>(StandardNormal)).collect();
        let sequence = &problem.sequences()[rng.random_range(0..problem.sequences().len())];
        points.push_parts(&x, sequence.u(rng.random_range(0..sequence.n_rows())));
    }
    BasisChoice::Fic(Arc::new(closed(problem, points)))
}

/// Signs of z under every combination of the declared symmetries.
fn mirrors(problem: &Problem) -> Vec<Vec<f64>> {
    let n_z = problem.n_x() + problem.model().n_u;
    let mut group = vec![vec![1.0; n_z]];
    for symmetry in &problem.model().symmetries {
        for i in 0..group.len() {
            let mut signs = group[i].clone();
            symmetry.flip.iter().for_each(|&d| signs[d] = -signs[d]);
            if !group.contains(&signs) {
                group.push(signs);
            }
        }
    }
    group
}

/// The points and their mirror images, so that the prior keeps the declared symmetries.
fn closed(problem: &Problem, points: Points) -> Points {
    let mut closed = Points::new(points.n_components());
    let mut seen: Vec<Vec<u64>> = Vec::new();
    for signs in mirrors(problem) {
        for i in 0..points.len() {
            let z: Vec<f64> = points.row(i).iter().zip(&signs).map(|(z, sign)| z * sign + 0.0).collect();
            let bits: Vec<u64> = z.iter().map(|z| z.to_bits()).collect();
            if !seen.contains(&bits) {
                closed.push(&z);
                seen.push(bits);
            }
        }
    }
    closed
}

fn inducing_inputs<R: Rng>(problem: &Problem, spec: &InducingSpec, warm_up: &WarmUp, rng: &mut R) -> Points {
    let WarmUp { visited, pairs, regressions } = warm_up;
    // Mirror images count towards the size that was asked for.
    let size = |n: usize| n.div_ceil(mirrors(problem).len()).clamp(1, visited.len().max(1));
    let points = match spec {
        InducingSpec::Given(rows) => {
            let scaling = problem.scaling();
            let mut points = Points::new(visited.n_components());
            for row in rows {
                let z = row.iter().enumerate().map(|(c, z)| (z - scaling.z_shift(c)) / scaling.z_scale(c));
                points.push(&z.collect::<Vec<_>>());
            }
            points
        }
        InducingSpec::Grid(counts) => grid(counts, visited),
        InducingSpec::KMeans(n) => k_means(visited, size(*n), rng),
        InducingSpec::Greedy(n) => warm_up.points(&by_information(&pairs.points, regressions, size(*n))),
        InducingSpec::Variance(n) => warm_up.points(&by_variance(&pairs.points, regressions, size(*n))),
    };
    closed(problem, points)
}

/// Smallest and largest value of each component.
fn ranges(points: &Points) -> Vec<(f64, f64)> {
    let range = |c: usize| {
        let column = points.column(c).iter().copied();
        column.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), z| (low.min(z), high.max(z)))
    };
    (0..points.n_components()).map(range).collect()
}

fn grid(counts: &[usize], visited: &Points) -> Points {
    let mut points = Points::new(visited.n_components());
    let ranges = ranges(visited);
    for i in 0..counts.iter().product() {
        let mut rest: usize = i;
        let z: Vec<f64> = counts
            .iter()
            .zip(&ranges)
            .map(|(&n, (low, high))| {
                let step = rest % n;
                rest /= n;
                if n == 1 { 0.5 * (low + high) } else { low + (high - low) * step as f64 / (n - 1) as f64 }
            })
            .collect();
        points.push(&z);
    }
    points
}

/// Lloyd's algorithm from distant starting points, in units of each component's range.
fn k_means<R: Rng>(visited: &Points, k: usize, rng: &mut R) -> Points {
    let ranges = ranges(visited);
    let units: Vec<f64> =
        ranges.iter().map(|(low, high)| if high > low { high - low } else { 1.0 }).collect();
    let rows: Vec<Vec<f64>> = (0..visited.len())
        .map(|i| visited.row(i).iter().zip(&units).map(|(z, unit)| z / unit).collect())
        .collect();
    let distance = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
    // Each further start with probability proportional to the squared distance to those before it.
    let mut centers = vec![rows[rng.random_range(0..rows.len())].clone()];
    while centers.len() < k {
        let weights: Vec<f64> = rows
            .iter()
            .map(|row| centers.iter().map(|center| distance(row, center)).fold(f64::INFINITY, f64::min))
            .collect();
        let total: f64 = weights.iter().sum();
        let mut left = rng.random::<f64>() * total;
        let pick = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        centers.push(rows[pick.unwrap_or(0)].clone());
    }
    for _ in 0..50 {
        let mut sums = vec![(vec![0.0; units.len()], 0.0); k];
        for row in &rows {
            let nearest = (0..k)
                .min_by(|&a, &b| distance(row, &centers[a]).total_cmp(&distance(row, &centers[b])))
                .unwrap_or(0);
            sums[nearest].0.iter_mut().zip(row).for_each(|(sum, z)| *sum += z);
            sums[nearest].1 += 1.0;
        }
        let mut moved = false;
        for (center, (sum, n)) in centers.iter_mut().zip(sums) {
            if n > 0.0 {
                let next: Vec<f64> = sum.iter().map(|sum| sum / n).collect();
                moved |= next != *center;
                *center = next;
            }
        }
        if !moved {
            break;
        }
    }
    let mut points = Points::new(units.len());
    for center in centers {
        points.push(&center.iter().zip(&units).map(|(z, unit)| z * unit).collect::<Vec<_>>());
    }
    points
}

/// Room beyond what was visited: states may go further, inputs are known.
const MARGIN_STATE: f64 = 1.5;
const MARGIN_INPUT: f64 = 1.2;

fn hilbert(problem: &Problem, n_functions: usize, half_width: &[f64], visited: &Points) -> HilbertChoice {
    let n_x = problem.n_x();
    let n_z = n_x + problem.model().n_u;
    let flipped = |c: usize| problem.model().symmetries.iter().any(|symmetry| symmetry.flip.contains(&c));
    let states = &problem.model().states;
    let odd = states
        .iter()
        .any(|state| matches!(&state.transition, TransitionSpec::Gp { kernel, .. } if kernel.has_odd()));
    let ranges = if visited.is_empty() { vec![(0.0, 0.0); n_z] } else { ranges(visited) };
    let mut choice = HilbertChoice::new(Vec::new(), Vec::new(), n_functions);
    for (c, (low, high)) in ranges.into_iter().enumerate() {
        // A given box stands around the middle of the data, like the internal units, and odd functions do too.
        let centered = flipped(c) || !half_width.is_empty() || odd;
        let center = if centered { 0.0 } else { 0.5 * (low + high) };
        let reach = (high - center).max(center - low).max(f64::MIN_POSITIVE);
        let margin = if c < n_x { MARGIN_STATE } else { MARGIN_INPUT };
        let chosen = if reach > 1e-9 { margin * reach } else { 1.0 };
        choice.center.push(center);
        choice
            .half_width
            .push(half_width.get(c).map_or(chosen, |given| given / problem.scaling().z_scale(c)));
    }
    choice
}

fn fourier<R: Rng>(problem: &Problem, frequencies: usize, rng: &mut R) -> FourierChoice {
    let n_components = problem.n_x() + problem.model().n_u;
    let mirrors = mirrors(problem);
    let mut choice = FourierChoice { directions: Vec::new(), radii: Vec::new(), n_components };
    for _ in 0..frequencies.div_ceil(mirrors.len()) {
        let direction: Vec<f64> = (0..n_components).map(|_| rng.random_range(1e-12..1.0)).collect();
        let radii: [f64; 5] = std::array::from_fn(|_| rng.sample(StandardNormal));
        for signs in &mirrors {
            // The quantile of 1 - p is minus that of p.
            let mirrored =
                direction.iter().zip(signs).map(|(p, sign)| if *sign < 0.0 { 1.0 - p } else { *p });
            choice.directions.extend(mirrored);
            choice.radii.push(radii);
        }
    }
    choice
}
