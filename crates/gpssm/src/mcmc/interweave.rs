//! The noise of a linear sensor together with the states that are seen through it.
//!
//! Given the states, the noise r of a sensor is known to within a factor of about 1 + 1/sqrt(2T), and given r the
//! residuals of the next states have that size again: alternating between the two moves r slowly. Here r moves
//! while the standardised residuals e_t = (y_t - c x_t - d u_t) / r stay, so that the observed states go
//! along, x_t(r) = (y_t - d u_t - r e_t) / c. In the coordinates (r, e) the sensor's density has no r, and r is
//! drawn from p(r) p(x_{0:T}(r) | theta), by slice sampling.
//!
//! Reference: Y. Yu and X.-L. Meng (2011), "To center or not to center: that is not the question", *Journal of
//! Computational and Graphical Statistics* 20(3), 531-570.

use rand::Rng;

use super::conditional::Conditional;
use super::slice::{SliceLimits, slice_update};
use super::sweep::SweepInfo;
use crate::dynamics::evidence::EvidenceWork;
use crate::initial::BoundInitial;
use crate::model::compile::{CompiledNoise, Problem};
use crate::model::parameters::Coordinate;
use crate::points::Points;
use crate::sensor::linear_gaussian::LinearGaussian;

/// Width of the slices for log r. The stepping out finds wider ones.
const WIDTH: f64 = 0.5;

/// Draws the learned noise of each output that sees one state, and that state with it.
pub(crate) fn update<R: Rng>(
    problem: &Problem,
    theta: &mut [f64],
    paths: &mut Vec<Vec<f64>>,
    work: &mut EvidenceWork,
    rng: &mut R,
    info: &mut SweepInfo,
) {
    let Some(CompiledNoise::Diagonal(places)) = problem.sensor().gaussian_noise() else { return };
    let table = problem.table();
    for (output, &k) in places.iter().enumerate() {
        if table.is_fixed(k) || !matches!(table.parameters[k].coordinate, Coordinate::Log) {
            continue;
        }
        let Some(orbit) = Orbit::new(problem, theta, paths, output) else { continue };
        let (before, mut candidate) = (theta[k], theta.to_vec());
        let mut log_density = |coordinate: f64| {
            candidate[k] = table.value_at(k, coordinate);
            let ratio = candidate[k] / before;
            let moved = orbit.at(ratio);
            log_joint(problem, &candidate, &moved, k, work, info) + orbit.n_moved * ratio.ln()
        };
        let x0 = table.coordinate_of(k, before);
        let current = log_density(x0);
        let outcome = slice_update(x0, current, WIDTH, SliceLimits::default(), &mut log_density, rng);
        info.slice_failures += u64::from(outcome.failures);
        info.slice_capped += u64::from(outcome.capped);
        if outcome.x != x0 {
            theta[k] = table.value_at(k, outcome.x);
            *paths = orbit.at(theta[k] / before);
        }
    }
}

/// All paths that have the same standardised residuals.
struct Orbit {
    /// The paths as they are.
    paths: Vec<Vec<f64>>,
    /// By how much the state of each row would have to change for the residual to vanish; 0 where it does not move.
    shifts: Vec<Vec<f64>>,
    state: usize,
    lags: Vec<Option<usize>>,
    /// Rows that move.
    n_moved: f64,
}

impl Orbit {
    /// None where the output sees more than one state, or none, or a lag.
    fn new(problem: &Problem, theta: &[f64], paths: &[Vec<f64>], output: usize) -> Option<Self> {
        let model = problem.bind(theta);
        let sensor = model.sensor.as_linear_gaussian()?;
        let (state, weight) = single_state(sensor, output)?;
        let lags = model.transition.lags.clone();
        if lags[state].is_some() {
            return None;
        }
        let n_x = problem.n_x();
        // A known first state stays.
        let first = usize::from(matches!(model.initial, BoundInitial::Fixed(_)));
        let mut n_moved = 0.0;
        let shifts = paths.iter().zip(problem.sequences()).map(|(path, sequence)| {
            let mut z = Points::new(n_x + sequence.n_u());
            for (t, x) in path.chunks_exact(n_x).enumerate() {
                z.push_parts(x, sequence.u(t));
            }
            let means = sensor.means(&z);
            let shift = |t: usize| match sequence.y(t)[output] - means[t * sequence.n_y() + output] {
                residual if t < first || residual.is_nan() => 0.0,
                residual => {
                    n_moved += 1.0;
                    residual / weight
                }
            };
            (0..sequence.n_rows()).map(shift).collect()
        });
        let shifts = shifts.collect();
        Some(Self { paths: paths.to_vec(), shifts, state, lags, n_moved })
    }

    /// The paths whose residuals are so many times those of now.
    fn at(&self, ratio: f64) -> Vec<Vec<f64>> {
        let n_x = self.lags.len();
        let mut moved = self.paths.clone();
        for (path, shifts) in moved.iter_mut().zip(&self.shifts) {
            for (t, shift) in shifts.iter().enumerate() {
                path[t * n_x + self.state] += (1.0 - ratio) * shift;
            }
            for t in 1..shifts.len() {
                for (lag, of) in self.lags.iter().enumerate().filter_map(|(lag, of)| of.map(|of| (lag, of))) {
                    path[t * n_x + lag] = path[(t - 1) * n_x + of];
                }
            }
        }
        moved
    }
}

/// Everything in log p(theta, x, y) that r or the observed states enter.
fn log_joint(
    problem: &Problem,
    theta: &[f64],
    paths: &[Vec<f64>],
    k: usize,
    work: &mut EvidenceWork,
    info: &mut SweepInfo,
) -> f64 {
    let prior = problem.table().log_prior(k, theta);
    if !prior.is_finite() {
        return f64::NEG_INFINITY;
    }
    let mut conditional = Conditional::new(problem, paths, theta, work);
    let parts = conditional.parts(theta);
    info.evidence_evaluations += conditional.evaluations;
    info.evidence_failures += conditional.failures;
    let initial = problem.bind(theta).initial;
    let first: f64 = paths.iter().map(|path| initial.log_density(&path[..problem.n_x()])).sum();
    prior + first + parts.blocks.iter().sum::<f64>() + parts.sensor
}

/// The only state that an output sees, and its weight.
fn single_state(sensor: &LinearGaussian, output: usize) -> Option<(usize, f64)> {
    let n_z = sensor.weights.len() / sensor.offset.len();
    let row = &sensor.weights[output * n_z..][..sensor.n_x];
    let mut seen = row.iter().copied().enumerate().filter(|(_, weight)| *weight != 0.0);
    seen.next().filter(|_| seen.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::spec::{InitialSpec, StateSpec, TransitionSpec};
    use crate::{Functions, Model, Sequence};

    #[test]
    fn without_residuals_states_are_outputs_except_where_none_was_seen_or_the_state_is_known() {
        let copy = StateSpec { transition: TransitionSpec::Lag { of: 0 }, scale: None };
        let mut model = Model { standardise: false, ..Model::observed(1, 0) };
        model.states.push(copy);
        model.initial = InitialSpec::Fixed(vec![0.5, 0.25]);
        let sequence = Sequence::scalar(&[1.0, 2.0, f64::NAN, 4.0], None).unwrap();
        let problem = Problem::new(model, &Functions::new(), sequence.into()).unwrap();
        let theta = vec![1.0; problem.table().len()];
        let path = vec![0.5, 0.25, 1.5, 0.5, 3.5, 1.5, 3.0, 3.5];
        let orbit = Orbit::new(&problem, &theta, std::slice::from_ref(&path), 0).unwrap();
        assert_eq!(orbit.n_moved, 2.0);
        assert_eq!(orbit.at(1.0), [path]);
        assert_eq!(orbit.at(0.0), [[0.5, 0.25, 2.0, 0.5, 3.5, 2.0, 4.0, 3.5]]);
    }
}
