//! What is frozen.

use serde::{Deserialize, Serialize};

use super::seen::{STEP, Seen};
use crate::dynamics::function_mean::FunctionMean;
use crate::dynamics::transition::Transition;
use crate::kernel::Kernel;
use crate::linalg::dense::NotPositiveDefinite;
use crate::model::compile::Problem;
use crate::model::spec::{StateSpec, TransitionSpec};
use crate::model::symmetry::Symmetry;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::BoundSensor;
use crate::state_space::SharedPairs;

/// Share of the states that is held where a sensor does not see signs: those that it sees worst.
const HELD: f64 = 0.5;

/// What a Gaussian approximation is expanded around; constants of a chain once warm-up is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// One expansion; or two, for positive and negative states, where a declared symmetry flips the state.
    pub(super) branches: Vec<Vec<Expansion>>,
    /// States (sequence, row) that do not move.
    pub(super) held: Vec<Vec<bool>>,
    /// Size of each state: root mean square distance of its mean path from the mean.
    pub(super) sizes: Vec<f64>,
    /// Mean and size of each component of z along the mean path.
    pub(super) components: Vec<(f64, f64)>,
}

/// Of one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Expansion {
    /// x̄, (t, d).
    pub(super) path: Vec<f64>,
    /// d f_i / d x_j at x̄_t, (t, i, j), i over the states that are not lags.
    pub(super) slopes: Vec<f64>,
}

impl Anchor {
    /// Whether it has two branches: one state, whose sign the sensor does not see.
    pub(crate) fn is_signed(problem: &Problem) -> bool {
        let model = problem.model();
        let flipped = |symmetry: &Symmetry| symmetry.flip.contains(&0);
        !model.sensor.is_linear_gaussian() && model.symmetries.iter().any(flipped)
    }

    /// Whether there are such coordinates for this problem. Several states whose signs a sensor does not see have too many
    /// branches.
    pub(crate) fn exists_for(problem: &Problem) -> bool {
        problem.model().presample == 0 && (!Self::is_signed(problem) || problem.n_x() == 1)
    }

    /// Around `center`, the mean path, with the slopes of the mean function; where that is constant, or the sensor does not see
    /// signs, those of the posterior mean of f given theta and `paths`.
    pub fn new(
        problem: &Problem,
        theta: &[f64],
        paths: &[Vec<f64>],
        center: &[Vec<f64>],
    ) -> Result<Self, NotPositiveDefinite> {
        let model = problem.bind(theta);
        let (sequences, n_x) = (problem.sequences(), problem.n_x());
        let components = components(center, sequences, n_x);
        let sizes: Vec<f64> = components[..n_x].iter().map(|(_, size)| *size).collect();
        let mut pairs = SharedPairs::none(n_x, problem.model().n_u);
        for (path, sequence) in paths.iter().zip(sequences) {
            pairs.add(&model.transition, path, sequence);
        }
        let f = FunctionMean::new(&model.transition, &pairs.0)?;
        let mut mean = model.transition.clone();
        mean.kernels.fill(Kernel::zero());
        let m = FunctionMean::new(&mean, &pairs.0)?;
        let signs: &[f64] = if Self::is_signed(problem) { &[1.0, -1.0] } else { &[] };
        let branch = |path: &dyn Fn(&f64) -> f64| {
            let of_sequence = |(center, sequence): (&Vec<f64>, &Sequence)| {
                let path: Vec<f64> = center.iter().map(path).collect();
                let of =
                    |function: &FunctionMean| slopes(&model.transition, function, &path, sequence, &sizes);
                // Where the mean function says how a state depends on the last, so does the approximation.
                let of_mean = of(&m)?;
                let slopes = if signs.is_empty() && of_mean.iter().any(|slope| *slope != 0.0) {
                    of_mean
                } else {
                    of(&f)?
                };
                Ok(Expansion { path, slopes })
            };
            center.iter().zip(sequences).map(of_sequence).collect::<Result<Vec<_>, NotPositiveDefinite>>()
        };
        let branches = match signs {
            [] => vec![branch(&|x| *x)?],
            signs => signs.iter().map(|sign| branch(&|x| sign * x.abs())).collect::<Result<_, _>>()?,
        };
        let held = branches[0].iter().zip(sequences).map(|(expansion, sequence)| match signs {
            [] => vec![false; sequence.n_rows()],
            _ => seen_worst(&model.sensor, sequence, &expansion.path, &sizes),
        });
        let anchor = Self { held: held.collect(), branches, sizes, components };
        if anchor.is_finite() { Ok(anchor) } else { Err(NotPositiveDefinite { order: 0, index: 0 }) }
    }

    /// Component `c` of z, relative to where the mean path was.
    pub(super) fn standardised(&self, c: usize, z: f64) -> f64 {
        let (mean, size) = self.components[c];
        (z - mean) / size
    }

    fn is_finite(&self) -> bool {
        let numbers = |e: &Expansion| e.path.iter().chain(&e.slopes).all(|x| x.is_finite());
        self.branches.iter().flatten().all(numbers)
            && self.sizes.iter().all(|size| *size > 0.0)
            && self.components.iter().all(|(mean, size)| mean.is_finite() && *size > 0.0)
    }

    /// Whether it belongs to a record of this shape.
    pub(crate) fn fits(&self, problem: &Problem) -> bool {
        let (n_x, n_u) = (problem.n_x(), problem.model().n_u);
        let is_lag = |state: &&StateSpec| matches!(state.transition, TransitionSpec::Lag { .. });
        let p = n_x - problem.model().states.iter().filter(is_lag).count();
        let fits = |e: &Expansion, s: &Sequence| {
            e.path.len() == s.n_rows() * n_x && e.slopes.len() == s.length() * p * n_x
        };
        let sequences = problem.sequences();
        self.is_finite()
            && self.sizes.len() == n_x
            && self.components.len() == n_x + n_u
            && self.held.len() == sequences.len()
            && self.held.iter().zip(sequences).all(|(held, s)| held.len() == s.n_rows())
            && self.branches.iter().all(|branch| {
                branch.len() == sequences.len() && branch.iter().zip(sequences).all(|(e, s)| fits(e, s))
            })
    }

    /// The expansion of sequence `s` for a row with this state.
    pub(super) fn branch(&self, s: usize, x: &[f64]) -> &Expansion {
        let negative = self.branches.len() == 2 && x[0] < 0.0;
        &self.branches[usize::from(negative)][s]
    }

    /// Whether states on the way from one path to the other keep their branches.
    pub(crate) fn keeps_branches(&self, from: &[Vec<f64>], to: &[Vec<f64>]) -> bool {
        self.branches.len() == 1
            || from.iter().flatten().zip(to.iter().flatten()).all(|(a, b)| (*a < 0.0) == (*b < 0.0))
    }
}

/// Mean of some numbers, and their root mean square distance from it; where they do not differ, the distance from zero.
fn location_and_size(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let square = values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, [square.sqrt(), mean.abs()].into_iter().find(|size| *size > 0.0).unwrap_or(1.0))
}

/// Of each component of z along the mean path.
fn components(center: &[Vec<f64>], sequences: &[Sequence], n_x: usize) -> Vec<(f64, f64)> {
    let n_u = sequences.first().map_or(0, Sequence::n_u);
    let state = |d: usize| {
        location_and_size(center.iter().flat_map(move |path| path.iter().skip(d).step_by(n_x).copied()))
    };
    let input = |c: usize| {
        location_and_size(
            sequences.iter().flat_map(move |sequence| (0..sequence.length()).map(move |t| sequence.u(t)[c])),
        )
    };
    (0..n_x).map(state).chain((0..n_u).map(input)).collect()
}

/// Rows whose state the sensor sees worst, by its curvature along the path.
fn seen_worst(sensor: &BoundSensor, sequence: &Sequence, path: &[f64], sizes: &[f64]) -> Vec<bool> {
    let seen = |t: usize| Seen::new(sensor, sequence, t, &path[t..=t], sizes).precision[0];
    let seen: Vec<f64> = (0..sequence.n_rows()).map(seen).collect();
    let mut sorted = seen.clone();
    sorted.sort_by(f64::total_cmp);
    let least = sorted[((HELD * sorted.len() as f64) as usize).min(sorted.len() - 1)];
    seen.iter().map(|seen| *seen < least).collect()
}

/// d f_i / d x_j along a path, (t, i, j), by differences.
pub(super) fn slopes(
    transition: &Transition,
    f: &FunctionMean,
    path: &[f64],
    sequence: &Sequence,
    sizes: &[f64],
) -> Result<Vec<f64>, NotPositiveDefinite> {
    let n_x = transition.n_x();
    let moving: Vec<usize> = transition.moving().collect();
    let z = points_along(path, sequence, n_x);
    let mut slopes = vec![0.0; z.len() * moving.len() * n_x];
    for j in 0..n_x {
        let step = STEP * sizes[j];
        let shifted = |step: f64| {
            let mut z = z.clone();
            z.column_mut(j).iter_mut().for_each(|x| *x += step);
            f.at(&z)
        };
        let (above, below) = (shifted(step)?, shifted(-step)?);
        for t in 0..z.len() {
            for (i, &d) in moving.iter().enumerate() {
                slopes[(t * moving.len() + i) * n_x + j] =
                    (above[t * n_x + d] - below[t * n_x + d]) / (2.0 * step);
            }
        }
    }
    Ok(slopes)
}

/// z_t of the transitions of a path.
pub(super) fn points_along(path: &[f64], sequence: &Sequence, n_x: usize) -> Points {
    let mut z = Points::new(n_x + sequence.n_u());
    for (t, x) in path.chunks_exact(n_x).enumerate().take(sequence.length()) {
        z.push_parts(x, sequence.u(t));
    }
    z
}
