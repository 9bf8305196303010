//! The signs of the states that a declared symmetry flips, at all times at once.
//!
//! Where the sensor sees |x| only, the posterior has modes in which a stretch of the path has the other sign, and a filter
//! seldom steps from one to the other. Here f is drawn at the points (x_t, u_t) and (-x_t, u_t) of all times. Given that, the path
//! with its moduli held is a Markov chain with two values at each time, and its signs are drawn exactly: forward
//! filtering, backward sampling. Then f is forgotten. Both steps leave p(x, f | y, theta) as it is, whether or not the
//! symmetry holds: sensor and p(x_0) are asked for both signs.

use rand::{Rng, RngExt};

use super::{Move, Sweep};
use crate::dynamics::function_draw::FunctionDraw;
use crate::linalg::dense::NotPositiveDefinite;
use crate::mcmc::sweep::SweepInfo;
use crate::model::compile::Problem;
use crate::points::Points;
use crate::random::Purpose;
use crate::record::Sequence;
use crate::sensor::BoundSensor;
use crate::state_space::{SharedPairs, StateSpace};

/// Draws the signs under each declared symmetry. States that a linear sensor does not see have no moduli to hold, and the
/// signs of lagged states hang together over time: both are left alone.
pub struct Signs;

impl Move for Signs {
    fn name(&self) -> &'static str {
        "signs"
    }

    fn applies(&self, problem: &Problem) -> bool {
        !problem.model().symmetries.is_empty()
    }

    fn changes_states(&self) -> bool {
        true
    }

    fn update(&self, sweep: &mut Sweep) {
        let mut rng = sweep.stream(Purpose::Signs, 0);
        update(sweep.problem, &sweep.state.theta, &mut sweep.state.paths, &mut rng, sweep.info);
    }
}

fn update<R: Rng>(
    problem: &Problem,
    theta: &[f64],
    paths: &mut [Vec<f64>],
    rng: &mut R,
    info: &mut SweepInfo,
) {
    let symmetries = &problem.model().symmetries;
    let model = problem.bind(theta);
    if model.transition.memory() > 0 || model.sensor.as_linear_gaussian().is_some() {
        return;
    }
    for symmetry in symmetries {
        if draw(problem, &model, &symmetry.flip, paths, rng).is_err() {
            info.density_failures += 1;
        }
    }
}

fn draw<R: Rng>(
    problem: &Problem,
    model: &StateSpace,
    flip: &[usize],
    paths: &mut [Vec<f64>],
    rng: &mut R,
) -> Result<(), NotPositiveDefinite> {
    let (n_x, n_u) = (problem.n_x(), problem.model().n_u);
    let mirrors: Vec<Vec<f64>> = paths.iter().map(|path| mirrored(path, n_x, flip)).collect();
    let mut pairs = SharedPairs::none(n_x, n_u);
    for (path, sequence) in paths.iter().zip(problem.sequences()) {
        pairs.add(&model.transition, path, sequence);
    }
    let n = pairs.0.points.len();
    let mut points = pairs.0.points.clone();
    for (mirror, sequence) in mirrors.iter().zip(problem.sequences()) {
        for (t, x) in mirror.chunks_exact(n_x).enumerate().take(sequence.length()) {
            points.push_parts(x, sequence.u(t));
        }
    }
    let drawn = FunctionDraw::new(&model.transition, &pairs.0, &points, rng)?;
    let mut first = 0;
    for ((path, mirror), sequence) in paths.iter_mut().zip(&mirrors).zip(problem.sequences()) {
        let both = [path.as_slice(), mirror];
        let row = |sign: usize, t: usize| &both[sign][t * n_x..(t + 1) * n_x];
        let log_next =
            |sign: usize, t: usize, next: usize| drawn.log_next(sign * n + first + t, row(next, t + 1));
        let mut log_seen = seen(&model.sensor, sequence, both, n_x);
        for (sign, log_seen) in log_seen[0].iter_mut().enumerate() {
            *log_seen += model.initial.log_density(row(sign, 0));
        }
        let signs = draw_signs(&log_seen, &log_next, rng);
        for (t, _) in signs.iter().enumerate().filter(|(_, flipped)| **flipped == 1) {
            path[t * n_x..(t + 1) * n_x].copy_from_slice(&mirror[t * n_x..(t + 1) * n_x]);
        }
        first += sequence.length();
    }
    Ok(())
}

fn mirrored(path: &[f64], n_x: usize, flip: &[usize]) -> Vec<f64> {
    let mut mirror = path.to_vec();
    for x in mirror.chunks_exact_mut(n_x) {
        flip.iter().for_each(|&d| x[d] = -x[d]);
    }
    mirror
}

/// log p(y_t | x_t) of both paths.
fn seen(sensor: &BoundSensor, sequence: &Sequence, both: [&[f64]; 2], n_x: usize) -> Vec<[f64; 2]> {
    let mut z = Points::new(n_x + sequence.n_u());
    let of_row = |t: usize| {
        let mut density = [0.0; 2];
        z.clear();
        both.iter().for_each(|path| z.push_parts(&path[t * n_x..(t + 1) * n_x], sequence.u(t)));
        sensor.add_log_density(sequence.y(t), &z, &mut density);
        density.map(|density| if density.is_nan() { f64::NEG_INFINITY } else { density })
    };
    (0..sequence.n_rows()).map(of_row).collect()
}

/// A draw from p(s) of two values at each time, log p = sum `log_seen[t][s_t]` + sum `log_next(s_t, t, s_{t+1})`. All zero, the
/// path as it was, if no sequence has a density.
fn draw_signs<R: Rng>(
    log_seen: &[[f64; 2]],
    log_next: &dyn Fn(usize, usize, usize) -> f64,
    rng: &mut R,
) -> Vec<usize> {
    let mut filtered: Vec<[f64; 2]> = Vec::with_capacity(log_seen.len());
    for (t, seen) in log_seen.iter().enumerate() {
        let forward = |next: usize| match filtered.last() {
            Some(before) => {
                let reached = [0, 1].map(|sign| before[sign] + log_next(sign, t - 1, next));
                log_sum(reached) + seen[next]
            }
            None => seen[next],
        };
        let forward = [forward(0), forward(1)];
        let scale = log_sum(forward);
        if !scale.is_finite() {
            return vec![0; log_seen.len()];
        }
        filtered.push(forward.map(|value| value - scale));
    }
    let mut signs = vec![0; log_seen.len()];
    for t in (0..log_seen.len()).rev() {
        let odds = match signs.get(t + 1) {
            Some(&next) => [0, 1].map(|sign| filtered[t][sign] + log_next(sign, t, next)),
            None => filtered[t],
        };
        let share = (odds[1] - log_sum(odds)).exp();
        signs[t] = usize::from(rng.random::<f64>() < share);
    }
    signs
}

fn log_sum([a, b]: [f64; 2]) -> f64 {
    let largest = a.max(b);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + ((a - largest).exp() + (b - largest).exp()).ln()
}

#[cfg(test)]
mod tests;
