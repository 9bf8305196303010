//! Theta together with the whole path, in the coordinates of a frozen Gaussian approximation.
//!
//! Given the path, a noise level is known to within a factor of about 1 + 1/sqrt(2T), far better than given the outputs; so
//! alternating between theta and the path moves it slowly. Here the path keeps its coordinates z = S^{-1} (x - mu)
//! ([`gaussian_coordinates`](crate::mcmc::gaussian_coordinates)) while theta moves: where the approximation is good, z
//! and theta are nearly independent, and theta moves as far as the outputs allow. Theta moves on lines, each drawn by slice sampling from
//!
//! p(theta') p(x'_0) p(x'_{1:T} | x'_0, theta') p(y | x', theta') |S'|,  x' = mu' + S' z.
//!
//! The lines are columns of the Cholesky factor of the covariance that the warm-up saw in the coordinates of theta (logarithms of
//! what is positive): in these directions a posterior that is nearly Gaussian has independent coordinates. Each line that
//! begins with a noise level is drawn in every sweep, the others in turn.

use rand::Rng;

use super::{Move, Sweep};
use crate::mcmc::conditional::Conditional;
use crate::mcmc::gaussian_coordinates::{Anchor, Frame};
use crate::mcmc::slice::{SliceLimits, slice_update};
use crate::model::compile::{CompiledNoise, Problem};
use crate::model::parameters::Coordinate;
use crate::random::Purpose;
use crate::state_space::StateSpace;

/// Draws theta, noise levels above all, and the paths with it.
pub struct PathAndNoise;

impl Move for PathAndNoise {
    fn name(&self) -> &'static str {
        "path_and_noise"
    }

    fn applies(&self, problem: &Problem) -> bool {
        Anchor::exists_for(problem) && !noise_places(problem).is_empty()
    }

    fn changes_states(&self) -> bool {
        true
    }

    fn needs_anchor(&self) -> bool {
        true
    }

    fn update(&self, sweep: &mut Sweep) {
        let n = sweep.problem.table().learned().count();
        let Some(anchor) = sweep.state.anchor.clone().filter(|_| sweep.state.axes.len() == n * n) else {
            return;
        };
        let mut rng = sweep.stream(Purpose::PathAndNoise, 0);
        for axis in axes(sweep) {
            update_along(sweep, &anchor, &axis, &mut rng);
        }
        sweep.count_jitter();
    }
}

/// Directions in the coordinates of theta, all entries: those that begin with a noise level, and one of the others in turn.
fn axes(sweep: &Sweep) -> Vec<Vec<f64>> {
    let table = sweep.problem.table();
    let learned: Vec<usize> = table.learned().collect();
    let n = learned.len();
    let noise = noise_places(sweep.problem);
    let (own, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|&j| noise.contains(&learned[j]));
    let turn = sweep.state.sweep as usize % others.len().max(1);
    let axis = |&j: &usize| {
        let mut axis = vec![0.0; table.len()];
        (j..n).for_each(|i| axis[learned[i]] = sweep.state.axes[i * n + j]);
        axis
    };
    others.iter().skip(turn).take(1).chain(&own).map(axis).collect()
}

/// Learned noise levels: those of the process, and positive parameters of the sensor.
fn noise_places(problem: &Problem) -> Vec<usize> {
    let table = problem.table();
    let process = match problem.process_noise() {
        CompiledNoise::Diagonal(places) => places.clone(),
        CompiledNoise::Full(matrix) => {
            let matrix = &table.matrices[*matrix];
            (matrix.first..matrix.first + matrix.n * (matrix.n + 1) / 2).collect()
        }
    };
    let positive = |k: &usize| table.parameters[*k].coordinate == Coordinate::Log;
    let sensor = (0..table.len()).filter(|&k| table.parameters[k].sensor).filter(positive);
    process.into_iter().chain(sensor).filter(|&k| !table.is_fixed(k)).collect()
}

/// Draws the place on a line through theta, the path along with it.
fn update_along<R: Rng>(sweep: &mut Sweep, anchor: &Anchor, axis: &[f64], rng: &mut R) {
    let (problem, table) = (sweep.problem, sweep.problem.table());
    let (theta, paths) = (sweep.state.theta.clone(), sweep.state.paths.clone());
    let frame_at = |theta: &[f64]| {
        let model = problem.bind(theta);
        Frame::new(problem, &model, anchor, &paths).ok().map(|frame| (model, frame))
    };
    let Some((_, frame)) = frame_at(&theta) else {
        sweep.info.density_failures += 1;
        return;
    };
    let z = frame.whiten(&paths);
    let mut last: Option<(f64, Vec<f64>, Vec<Vec<f64>>)> = None;
    let mut log_density = |along: f64| {
        let mut candidate = theta.clone();
        for k in (0..axis.len()).filter(|&k| axis[k] != 0.0) {
            candidate[k] = table.value_at(k, table.coordinate_of(k, theta[k]) + along * axis[k]);
        }
        let prior = table.log_prior_of_coordinates(&candidate);
        if !prior.is_finite() {
            return f64::NEG_INFINITY;
        }
        let Some((model, frame)) = frame_at(&candidate) else { return f64::NEG_INFINITY };
        let moved = frame.place(&z, &paths);
        if !anchor.keeps_branches(&paths, &moved) || moved.iter().flatten().any(|x| !x.is_finite()) {
            return f64::NEG_INFINITY;
        }
        let density = prior + log_path_and_outputs(sweep, &model, &candidate, &moved) + frame.log_volume();
        last = Some((along, candidate, moved));
        density
    };
    let current = log_density(0.0);
    let outcome = slice_update(0.0, current, WIDTH, SliceLimits::default(), &mut log_density, rng);
    sweep.info.slice_failures += u64::from(outcome.failures);
    sweep.info.slice_capped += u64::from(outcome.capped);
    // The last evaluation of a successful update is at the point that is kept.
    if let Some((_, theta, moved)) = last.filter(|(along, ..)| outcome.x != 0.0 && *along == outcome.x) {
        sweep.state.theta = theta;
        sweep.state.paths = moved;
    }
}

/// Width of the slices, in axes: of a Gaussian a slice is about three standard deviations long.
const WIDTH: f64 = 3.0;

/// log p(x_0) p(x_{1:T} | x_0, theta) p(y | x, theta).
fn log_path_and_outputs(sweep: &mut Sweep, model: &StateSpace, theta: &[f64], paths: &[Vec<f64>]) -> f64 {
    let n_x = sweep.problem.n_x();
    let first: f64 = paths.iter().map(|path| model.initial.log_density(&path[..n_x])).sum();
    let mut conditional = Conditional::new(sweep.problem, paths, theta, sweep.work);
    let parts = conditional.parts(theta);
    let density = parts.blocks.iter().sum::<f64>() + parts.sensor;
    sweep.info.density_evaluations += conditional.evaluations;
    sweep.info.density_failures += conditional.failures;
    first + density
}
