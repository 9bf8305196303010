//! Noise levels together with the whole path, in the coordinates of a frozen Gaussian approximation.
//!
//! Given the path, a noise level is known to within a factor of about 1 + 1/sqrt(2T), far better than given the outputs; so
//! alternating between theta and the path moves it slowly. Here the path keeps its coordinates z = L' (x - mu)
//! ([`gaussian_coordinates`](crate::mcmc::gaussian_coordinates)) while a noise level moves: where the approximation is good, z
//! and theta are nearly independent, and the noise moves as far as the outputs allow. Each is drawn by slice sampling from
//!
//! p(theta') p(x'_0) p(x'_{1:T} | x'_0, theta') p(y | x', theta') / prod_i L'_ii,  x' = mu' + L'^{-T} z.
//!
//! With weights of a finite basis drawn, p(x'_{1:T} | ...) is that given the weights.

use rand::Rng;

use super::{Move, Sweep};
use crate::dynamics::transition::Transition;
use crate::mcmc::conditional::Conditional;
use crate::mcmc::gaussian_coordinates::{Anchor, Frame};
use crate::mcmc::slice::{SliceLimits, slice_update};
use crate::model::compile::{CompiledNoise, Problem};
use crate::model::parameters::Coordinate;
use crate::random::Purpose;
use crate::state_space::StateSpace;

/// Draws each noise level of process and sensor, and the paths with it.
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

    fn by_default(&self) -> bool {
        // Its finite differences depend on internal units, so that draws would change with a declared scale.
        false
    }

    fn needs_anchor(&self) -> bool {
        true
    }

    fn update(&self, sweep: &mut Sweep) {
        let Some(anchor) = sweep.state.anchor.clone() else { return };
        let mut rng = sweep.stream(Purpose::PathAndNoise, 0);
        for k in noise_places(sweep.problem) {
            update_one(sweep, &anchor, k, &mut rng);
        }
        sweep.count_jitter();
    }
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

fn update_one<R: Rng>(sweep: &mut Sweep, anchor: &Anchor, k: usize, rng: &mut R) {
    let (problem, table) = (sweep.problem, sweep.problem.table());
    let (theta, paths) = (sweep.state.theta.clone(), sweep.state.paths.clone());
    let drawn = sweep.drawn.clone();
    let frame_at = |theta: &[f64]| {
        let model = bind(problem, theta, drawn.as_ref());
        Frame::new(problem, &model, anchor, &paths).ok().map(|frame| (model, frame))
    };
    let Some((_, frame)) = frame_at(&theta) else {
        sweep.info.density_failures += 1;
        return;
    };
    let z = frame.whiten(&paths);
    let mut candidate = theta.clone();
    let mut last: Option<(f64, Vec<Vec<f64>>)> = None;
    let mut log_density = |coordinate: f64| {
        candidate[k] = table.value_at(k, coordinate);
        let prior = table.log_prior(k, &candidate);
        if !prior.is_finite() {
            return f64::NEG_INFINITY;
        }
        let Some((model, frame)) = frame_at(&candidate) else { return f64::NEG_INFINITY };
        let moved = frame.place(&z, &paths);
        if !anchor.keeps_branches(&paths, &moved) || moved.iter().flatten().any(|x| !x.is_finite()) {
            return f64::NEG_INFINITY;
        }
        let density = prior + log_path_and_outputs(sweep, &model, &candidate, &moved) + frame.log_volume();
        last = Some((coordinate, moved));
        density
    };
    let x0 = table.coordinate_of(k, theta[k]);
    let current = log_density(x0);
    let width = WIDTH;
    let outcome = slice_update(x0, current, width, SliceLimits::default(), &mut log_density, rng);
    sweep.info.slice_failures += u64::from(outcome.failures);
    sweep.info.slice_capped += u64::from(outcome.capped);
    // The last evaluation of a successful update is at the point that is kept.
    if let Some((coordinate, moved)) =
        last.filter(|(coordinate, _)| outcome.x != x0 && *coordinate == outcome.x)
    {
        sweep.state.theta[k] = table.value_at(k, coordinate);
        sweep.state.paths = moved;
    }
}

/// Width of the slices for log noise levels. The stepping out finds wider ones.
const WIDTH: f64 = 0.5;

/// The model with numbers, with the weights that were drawn in this sweep.
fn bind(problem: &Problem, theta: &[f64], drawn: Option<&Transition>) -> StateSpace {
    let mut model = problem.bind(theta);
    if let Some(drawn) = drawn {
        model.transition.prior = drawn.prior.clone();
    }
    model
}

/// log p(x_0) p(x_{1:T} | x_0, theta) p(y | x, theta).
fn log_path_and_outputs(sweep: &mut Sweep, model: &StateSpace, theta: &[f64], paths: &[Vec<f64>]) -> f64 {
    let n_x = sweep.problem.n_x();
    let first: f64 = paths.iter().map(|path| model.initial.log_density(&path[..n_x])).sum();
    let mut conditional = Conditional::new(sweep.problem, paths, theta, sweep.work);
    let density = match &*sweep.drawn {
        Some(_) => conditional.given_weights(&model.transition, theta),
        None => {
            let parts = conditional.parts(theta);
            parts.blocks.iter().sum::<f64>() + parts.sensor
        }
    };
    sweep.info.density_evaluations += conditional.evaluations;
    sweep.info.density_failures += conditional.failures;
    first + density
}
