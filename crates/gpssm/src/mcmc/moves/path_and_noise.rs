//! Theta together with the whole path, given one draw of f, in the coordinates of a Gaussian approximation.
//!
//! Given the path, a noise level is known to within a factor of about 1 + 1/sqrt(2T), far better than given the outputs; so
//! alternating between theta and the path moves it slowly. Here f is drawn first, as weights w of a finite basis: given w the path
//! is a Markov chain, of which a Kalman smoother finds a good Gaussian approximation, and x has coordinates z in it
//! ([`gaussian_coordinates`](crate::mcmc::gaussian_coordinates)). Then theta moves with z held: where the approximation is good, z
//! and theta are nearly independent, and theta moves as far as the outputs allow. It moves on a line, by slice sampling from
//!
//! p(theta') p(x'_0) p(x'_{1:T} | x'_0, theta') g(w | x', theta') p(y | x', theta') / |L'|,  x' = mu' + L'^{-T} z.
//!
//! Coefficients of linear and constant parts of f move on the line, too ([`GivenFunction::with_coefficients`]). Last, theta is held, and z is drawn by elliptical slice sampling: it is nearly N(0, I). f is drawn anew for each line, so
//! that path and function take turns several times in a sweep at little cost.
//!
//! The lines are columns of the Cholesky factor of the covariance that the warm-up saw in the coordinates of theta (logarithms of
//! what is positive) and the coefficients: in these directions a posterior that is nearly Gaussian has independent coordinates. Each
//! line that begins with a noise level is drawn in every sweep, the others in turn.
//!
//! Reference for the last step: I. Murray, R. P. Adams, D. J. C. MacKay (2010), "Elliptical slice sampling", AISTATS 13.

use std::f64::consts::PI;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::{Move, Sweep};
use crate::mcmc::conditional::all_pairs;
use crate::mcmc::gaussian_coordinates::{Anchor, Frame, GivenFunction};
use crate::mcmc::slice::{SliceLimits, slice_update};
use crate::model::compile::{CompiledNoise, Problem};
use crate::model::parameters::Coordinate;
use crate::points::Points;
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
        let Some(anchor) = sweep.state.anchor.clone() else { return };
        let mut rng = sweep.stream(Purpose::PathAndNoise, 0);
        sweep.work.points_move = true;
        for axis in axes(sweep) {
            let transition = sweep.problem.bind_transition(&sweep.state.theta);
            let basis = anchor.basis(&transition.prior, sweep.problem.n_x() + sweep.problem.model().n_u);
            let pairs = all_pairs(sweep.problem, &sweep.state.paths, &transition);
            match GivenFunction::draw(&transition, &basis, &pairs, &mut rng) {
                Ok(f) => {
                    GivenF { problem: sweep.problem, anchor: &anchor, f: &f }.update(sweep, &axis, &mut rng)
                }
                Err(_) => sweep.info.density_failures += 1,
            }
        }
        sweep.work.points_move = false;
        sweep.count_jitter();
    }
}

/// Directions in the coordinates of theta, all entries, and in the coefficients of f: those that begin with a noise level, and one
/// of the others in turn.
fn axes(sweep: &Sweep) -> Vec<Vec<f64>> {
    let table = sweep.problem.table();
    let learned: Vec<usize> = table.learned().collect();
    let n = sweep.state.axes.len().isqrt();
    if n < learned.len() {
        return Vec::new();
    }
    let places: Vec<usize> = learned.iter().copied().chain(table.len()..).take(n).collect();
    let noise = noise_places(sweep.problem);
    let (own, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|&j| noise.contains(&places[j]));
    let turn = sweep.state.sweep as usize % others.len().max(1);
    let axis = |&j: &usize| {
        let mut axis = vec![0.0; table.len() + n - learned.len()];
        (j..n).for_each(|i| axis[places[i]] = sweep.state.axes[i * n + j]);
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

/// p(x, theta | y, f), and coordinates of x that hardly depend on theta.
struct GivenF<'a> {
    problem: &'a Problem,
    anchor: &'a Anchor,
    f: &'a GivenFunction,
}

/// A point: theta with its model, f and coordinates, the paths, and the log density of all.
struct At {
    theta: Vec<f64>,
    model: StateSpace,
    f: GivenFunction,
    frame: Frame,
    paths: Vec<Vec<f64>>,
    /// Up to a constant; that of (theta, coefficients of f, x), not of (theta, coefficients, z).
    log_density: f64,
}

impl GivenF<'_> {
    /// Draws the place on a line through theta, the path along with it; then the path.
    fn update<R: Rng>(&self, sweep: &mut Sweep, axis: &[f64], rng: &mut R) {
        let paths = sweep.state.paths.clone();
        let theta = sweep.state.theta.clone();
        let model = self.problem.bind(&theta);
        let f = self.f.clone();
        let Ok(frame) = Frame::new(self.problem, &model, self.anchor, &f, &paths) else {
            sweep.info.density_failures += 1;
            return;
        };
        let z = frame.whiten(&paths);
        let log_density = self.log_density(&theta, &model, &f, &paths, sweep);
        let mut at = At { theta, model, f, frame, paths, log_density };
        self.along(axis, &mut at, &z, sweep, rng);
        self.around(&mut at, &z, sweep, rng);
        sweep.state.coefficients = at.f.coefficients(&at.model.transition);
        sweep.state.theta = at.theta;
        sweep.state.paths = at.paths;
    }

    /// Slice sampling on the line, z held.
    fn along<R: Rng>(&self, axis: &[f64], at: &mut At, z: &[f64], sweep: &mut Sweep, rng: &mut R) {
        let table = self.problem.table();
        let current = at.log_density + at.frame.log_volume();
        let coefficients = at.f.coefficients(&at.model.transition);
        let mut last: Option<(f64, At)> = None;
        let mut log_density = |along: f64| {
            let mut theta = at.theta.clone();
            for k in (0..theta.len()).filter(|&k| axis[k] != 0.0) {
                theta[k] = table.value_at(k, table.coordinate_of(k, theta[k]) + along * axis[k]);
            }
            if !table.log_prior_of_coordinates(&theta).is_finite() {
                return f64::NEG_INFINITY;
            }
            let model = self.problem.bind(&theta);
            let steps = axis[theta.len()..].iter().chain(std::iter::repeat(&0.0));
            let moved: Vec<f64> = coefficients.iter().zip(steps).map(|(c, step)| c + along * step).collect();
            let f = at.f.with_coefficients(&model.transition, &moved);
            let Ok(frame) = Frame::new(self.problem, &model, self.anchor, &f, &at.paths) else {
                return f64::NEG_INFINITY;
            };
            let paths = frame.place(z, &at.paths);
            let log_density = self.log_density_from(&theta, &model, &f, &at.paths, &paths, sweep);
            let with_volume = log_density + frame.log_volume();
            last = Some((along, At { theta, model, f, frame, paths, log_density }));
            with_volume
        };
        let outcome = slice_update(0.0, current, WIDTH, SliceLimits::default(), &mut log_density, rng);
        // The last evaluation of a successful update is at the point that is kept.
        if let Some((_, new)) = last.filter(|(along, _)| outcome.x != 0.0 && *along == outcome.x) {
            *at = new;
        }
        sweep.info.slice_failures += u64::from(outcome.failures);
        sweep.info.slice_capped += u64::from(outcome.capped);
    }

    /// Elliptical slice sampling of z, which is nearly N(0, I) given theta (Murray, Adams, MacKay 2010).
    fn around<R: Rng>(&self, at: &mut At, z: &[f64], sweep: &mut Sweep, rng: &mut R) {
        let square = |z: &[f64]| 0.5 * z.iter().map(|z| z * z).sum::<f64>();
        let level = at.log_density + square(z) + (1.0 - rng.random::<f64>()).ln();
        let mut other: Vec<f64> = (0..z.len()).map(|_| rng.sample(StandardNormal)).collect();
        at.frame.keep_held(&mut other);
        let mut angle = rng.random::<f64>() * 2.0 * PI;
        let (mut low, mut high) = (angle - 2.0 * PI, angle);
        for _ in 0..SliceLimits::default().max_shrink {
            let (sine, cosine) = angle.sin_cos();
            let turned: Vec<f64> = z.iter().zip(&other).map(|(z, other)| cosine * z + sine * other).collect();
            let paths = at.frame.place(&turned, &at.paths);
            let log_density = self.log_density_from(&at.theta, &at.model, &at.f, &at.paths, &paths, sweep);
            if log_density + square(&turned) >= level {
                (at.paths, at.log_density) = (paths, log_density);
                break;
            }
            if angle < 0.0 {
                low = angle
            } else {
                high = angle
            }
            angle = low + (high - low) * rng.random::<f64>();
        }
    }

    /// The same, minus infinity where a sign changes that the coordinates depend on.
    fn log_density_from(
        &self,
        theta: &[f64],
        model: &StateSpace,
        f: &GivenFunction,
        from: &[Vec<f64>],
        paths: &[Vec<f64>],
        sweep: &mut Sweep,
    ) -> f64 {
        if !self.anchor.keeps_branches(from, paths) || paths.iter().flatten().any(|x| !x.is_finite()) {
            return f64::NEG_INFINITY;
        }
        self.log_density(theta, model, f, paths, sweep)
    }

    /// log p(theta) p(x_0) p(x_{1:T} | x_0, theta) g(w | x, theta) p(y | x, theta), up to a constant; of the coefficients of f, not
    /// of their weights.
    fn log_density(
        &self,
        theta: &[f64],
        model: &StateSpace,
        f: &GivenFunction,
        paths: &[Vec<f64>],
        sweep: &mut Sweep,
    ) -> f64 {
        let (n_x, transition) = (self.problem.n_x(), &model.transition);
        let mut density = self.problem.table().log_prior_of_coordinates(theta) + f.log_volume(transition);
        for (path, sequence) in paths.iter().zip(self.problem.sequences()) {
            let mut z = Points::new(n_x + sequence.n_u());
            path.chunks_exact(n_x).enumerate().for_each(|(t, x)| z.push_parts(x, sequence.u(t)));
            density += model.initial.log_density(&path[..n_x]);
            density += model.sensor.log_density_along(&z, |t| sequence.y(t));
        }
        let pairs = all_pairs(self.problem, paths, transition);
        let of_path = f.log_path(transition, &pairs).unwrap_or_else(|| {
            let mut total = f.log_density(transition, &pairs)?;
            for dims in transition.blocks() {
                total += transition.log_density_of(&dims, &pairs, sweep.work)?;
                sweep.info.density_evaluations += 1;
            }
            Ok(total)
        });
        match of_path {
            Ok(of_path) if (density + of_path).is_finite() => density + of_path,
            _ => {
                sweep.info.density_failures += 1;
                f64::NEG_INFINITY
            }
        }
    }
}

/// Width of the slices, in axes: of a Gaussian a slice is about three standard deviations long.
const WIDTH: f64 = 3.0;
