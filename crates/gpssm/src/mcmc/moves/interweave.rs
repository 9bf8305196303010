//! The noise of a sensor together with the states that are seen through it.
//!
//! Given the states, the noise r of a sensor is known to within a factor of about 1 + 1/sqrt(2T), and given r the
//! residuals of the next states have that size again: alternating between the two moves r slowly. Here r moves
//! while the standardised residuals e_t = (y_t - c x_t - d u_t) / r stay, so that the observed states go
//! along, x_t(r) = (y_t - d u_t - r e_t) / c. In the coordinates (r, e) the sensor's density has no r, and r is
//! drawn from p(r) p(x_{0:T}(r) | theta), by slice sampling.
//!
//! The residuals of a linear sensor stay when the states move on straight lines towards those of no residual. A curved
//! sensor of one state does the same: x_t(r') = a_t + (r' / r) (x_t - a_t), where the output at the anchor a_t is the one
//! seen. Its residuals are then held to first order, which is enough to let r move, and what changes of the sensor's density is
//! counted. Anchors depend on outputs and inputs, not on the states, or on their signs alone where a declared symmetry
//! flips them; so they are the same all along such a line, and any anchors would be exact.
//!
//! Reference: Y. Yu and X.-L. Meng (2011), "To center or not to center: that is not the question", *Journal of
//! Computational and Graphical Statistics* 20(3), 531-570.

use rand::Rng;

use super::{Move, Sweep};
use crate::dynamics::path_density::PathDensityWork;
use crate::initial::BoundInitial;
use crate::mcmc::conditional::Conditional;
use crate::mcmc::slice::{SliceLimits, slice_update};
use crate::mcmc::sweep::SweepInfo;
use crate::model::compile::{CompiledNoise, Problem};
use crate::model::parameters::Coordinate;
use crate::points::Points;
use crate::random::Purpose;
use crate::record::Sequence;
use crate::sensor::BoundSensor;
use crate::sensor::linear_gaussian::LinearGaussian;
use crate::state_space::StateSpace;

/// Width of the slices for log r. The stepping out finds wider ones.
const WIDTH: f64 = 0.5;

/// Draws the learned noise of each output that sees one state, and that state with it.
pub struct Interweave;

impl Move for Interweave {
    fn name(&self) -> &'static str {
        "interweave"
    }

    fn applies(&self, problem: &Problem) -> bool {
        matches!(problem.sensor().gaussian_noise(), Some(CompiledNoise::Diagonal(_)))
    }

    fn changes_states(&self) -> bool {
        true
    }

    fn update(&self, sweep: &mut Sweep) {
        let mut rng = sweep.stream(Purpose::Interweaving, 0);
        let state = &mut *sweep.state;
        update(sweep.problem, &mut state.theta, &mut state.paths, sweep.work, &mut rng, sweep.info);
        sweep.count_jitter();
    }
}

fn update<R: Rng>(
    problem: &Problem,
    theta: &mut [f64],
    paths: &mut Vec<Vec<f64>>,
    work: &mut PathDensityWork,
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
            orbit.at(ratio).map_or(f64::NEG_INFINITY, |moved| {
                log_joint(problem, &candidate, &moved, k, work, info) + orbit.n_moved * ratio.ln()
            })
        };
        let x0 = table.coordinate_of(k, before);
        let current = log_density(x0);
        let outcome = slice_update(x0, current, WIDTH, SliceLimits::default(), &mut log_density, rng);
        info.slice_failures += u64::from(outcome.failures);
        info.slice_capped += u64::from(outcome.capped);
        if outcome.x != x0
            && let Some(moved) = orbit.at(table.value_at(k, outcome.x) / before)
        {
            theta[k] = table.value_at(k, outcome.x);
            *paths = moved;
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
    /// Whether it ends where a state changes its sign.
    signed: bool,
}

impl Orbit {
    /// None where the output sees more than one state, or none, or a lag.
    fn new(problem: &Problem, theta: &[f64], paths: &[Vec<f64>], output: usize) -> Option<Self> {
        let model = problem.bind(theta);
        let Some(sensor) = model.sensor.as_linear_gaussian() else {
            return Self::curved(problem, &model, paths, output);
        };
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
        Some(Self { paths: paths.to_vec(), shifts, state, lags, n_moved, signed: false })
    }

    /// Of a sensor that is not linear; none where there is more than one state.
    fn curved(problem: &Problem, model: &StateSpace, paths: &[Vec<f64>], output: usize) -> Option<Self> {
        if problem.n_x() != 1 {
            return None;
        }
        let signed = problem.model().symmetries.iter().any(|symmetry| symmetry.flip.contains(&0));
        let fixed = matches!(model.initial, BoundInitial::Fixed(_));
        let mut anchors = Vec::new();
        for (path, sequence) in paths.iter().zip(problem.sequences()) {
            let anchor = |(t, x): (usize, &f64)| {
                let sign = signed.then_some(x.signum());
                if t == 0 && fixed { None } else { anchor(&model.sensor, sequence, t, output, sign) }
            };
            anchors.push(path.iter().enumerate().map(anchor).collect::<Vec<_>>());
        }
        let mut sizes: Vec<f64> = anchors.iter().flatten().flatten().map(|anchor| anchor.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        // Near zero, where the sensor hardly tells the state, lines would soon end.
        let least = if signed { *sizes.get((NEAR_ZERO * sizes.len() as f64) as usize)? } else { 0.0 };
        let mut n_moved = 0.0;
        let mut shift = |(anchor, x): (&Option<f64>, &f64)| match anchor {
            Some(anchor) if anchor.abs() >= least => {
                n_moved += 1.0;
                anchor - x
            }
            _ => 0.0,
        };
        let shifts = anchors.iter().zip(paths);
        let shifts =
            shifts.map(|(anchors, path)| anchors.iter().zip(path).map(&mut shift).collect()).collect();
        let lags = model.transition.lags.clone();
        Some(Self { paths: paths.to_vec(), shifts, state: 0, lags, n_moved, signed })
    }

    /// The paths whose residuals are so many times those of now; none beyond the end.
    fn at(&self, ratio: f64) -> Option<Vec<Vec<f64>>> {
        let n_x = self.lags.len();
        let mut moved = self.paths.clone();
        for (path, shifts) in moved.iter_mut().zip(&self.shifts) {
            for (t, shift) in shifts.iter().enumerate() {
                let x = &mut path[t * n_x + self.state];
                let before = *x;
                *x += (1.0 - ratio) * shift;
                if self.signed && (before > 0.0) != (*x > 0.0) {
                    return None;
                }
            }
            for t in 1..shifts.len() {
                for (lag, of) in self.lags.iter().enumerate().filter_map(|(lag, of)| of.map(|of| (lag, of))) {
                    path[t * n_x + lag] = path[(t - 1) * n_x + of];
                }
            }
        }
        Some(moved)
    }
}

/// Part of the anchors, the smallest ones, that do not count.
const NEAR_ZERO: f64 = 0.3;
/// Where anchors are looked for, in internal units: from the least size to the largest, each step by this factor.
const LEAST: f64 = 0.01;
const STEP: f64 = 1.15;
const N_STEPS: i32 = 60;

/// The state, with this sign if one is given, at which the output would be the one seen: where the line through two neighbours on a
/// grid crosses it for the first time.
fn anchor(
    sensor: &BoundSensor,
    sequence: &Sequence,
    t: usize,
    output: usize,
    sign: Option<f64>,
) -> Option<f64> {
    let y = sequence.y(t)[output];
    if y.is_nan() {
        return None;
    }
    let size = |i: i32| LEAST * STEP.powi(i);
    let states: Vec<f64> = match sign {
        Some(sign) => (0..N_STEPS).map(|i| sign * size(i)).collect(),
        None => {
            let below = (0..N_STEPS).rev().map(|i| -size(i));
            below.chain((0..N_STEPS).map(size)).collect()
        }
    };
    let mut z = Points::new(1 + sequence.n_u());
    states.iter().for_each(|x| z.push_parts(&[*x], sequence.u(t)));
    let means = sensor.gaussian_means(&z)?;
    let left = |i: usize| y - means[i * sequence.n_y() + output];
    let i = (0..states.len() - 1).find(|&i| left(i) * left(i + 1) <= 0.0 && left(i) != left(i + 1))?;
    Some(states[i] + (states[i + 1] - states[i]) * left(i) / (left(i) - left(i + 1)))
}

/// Everything in log p(theta, x, y) that r or the observed states enter.
fn log_joint(
    problem: &Problem,
    theta: &[f64],
    paths: &[Vec<f64>],
    k: usize,
    work: &mut PathDensityWork,
    info: &mut SweepInfo,
) -> f64 {
    let prior = problem.table().log_prior(k, theta);
    if !prior.is_finite() {
        return f64::NEG_INFINITY;
    }
    let mut conditional = Conditional::new(problem, paths, theta, work);
    let parts = conditional.parts(theta);
    info.density_evaluations += conditional.evaluations;
    info.density_failures += conditional.failures;
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
        assert_eq!(orbit.at(1.0).unwrap(), [path]);
        assert_eq!(orbit.at(0.0).unwrap(), [[0.5, 0.25, 2.0, 0.5, 3.5, 2.0, 4.0, 3.5]]);
    }
}
