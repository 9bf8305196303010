//! What is frozen.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::seen::Sight;
use crate::dynamics::basis::features::BasisChoice;
use crate::dynamics::transition::FunctionPrior;
use crate::error::Error;
use crate::model::choose::spread_out;
use crate::model::compile::Problem;
use crate::model::symmetry::Symmetry;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::BoundSensor;

/// Share of the states that is held where a sensor does not see signs: those that it sees worst.
const HELD: f64 = 0.5;

/// Inducing inputs of the basis that stands in for an exact Gaussian process.
const INDUCING: usize = 30;

/// What Gaussian approximations start from; constants of a chain once warm-up is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// A path of each sequence, (t, d); of moduli, where a declared symmetry flips the state.
    pub(super) paths: Vec<Vec<f64>>,
    /// Whether signs come from the state.
    pub(super) signed: bool,
    /// States (sequence, row) that do not move.
    pub(super) held: Vec<Vec<bool>>,
    /// Size of each state: root mean square distance of its path from the mean.
    pub(super) sizes: Vec<f64>,
    /// Inducing inputs z, one after the other; none where f has a finite basis of its own, or none is learned.
    inducing: Vec<f64>,
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

    /// From `center`, the mean path, with inducing inputs among the points of `paths`.
    pub fn new(
        problem: &Problem,
        theta: &[f64],
        paths: &[Vec<f64>],
        center: &[Vec<f64>],
    ) -> Result<Self, Error> {
        let model = problem.bind(theta);
        let (sequences, n_x) = (problem.sequences(), problem.n_x());
        let signed = Self::is_signed(problem);
        let own = |path: &Vec<f64>| path.iter().map(|x| if signed { x.abs() } else { *x }).collect();
        let center: Vec<Vec<f64>> = center.iter().map(own).collect();
        let sizes: Vec<f64> = (0..n_x).map(|d| size(&center, d, n_x)).collect();
        let held = center.iter().zip(sequences).map(|(path, sequence)| match signed {
            false => vec![false; sequence.n_rows()],
            true => seen_worst(&model.sensor, sequence, path, &sizes),
        });
        let held = held.collect();
        let needs_basis =
            matches!(model.transition.prior, FunctionPrior::Exact) && model.transition.is_learned();
        let inducing =
            if needs_basis { spread_out(problem, theta, paths, INDUCING) } else { Points::default() };
        let inducing = (0..inducing.len()).flat_map(|i| inducing.row(i)).collect();
        let anchor = Self { paths: center, signed, held, sizes, inducing };
        if anchor.is_finite() {
            Ok(anchor)
        } else {
            Err(Error::data("the paths of the warm-up are not finite"))
        }
    }

    /// Where nothing is known of the path yet: everything at zero, states of unit size, nothing held and no basis.
    pub(crate) fn at_zero(problem: &Problem) -> Self {
        let n_x = problem.n_x();
        let sequences = problem.sequences();
        Self {
            paths: sequences.iter().map(|sequence| vec![0.0; sequence.n_rows() * n_x]).collect(),
            signed: false,
            held: sequences.iter().map(|sequence| vec![false; sequence.n_rows()]).collect(),
            sizes: vec![1.0; n_x],
            inducing: Vec::new(),
        }
    }

    fn is_finite(&self) -> bool {
        self.paths.iter().flatten().chain(&self.inducing).all(|x| x.is_finite())
            && self.sizes.iter().all(|size| *size > 0.0)
    }

    /// Whether it belongs to a record of this shape.
    pub(crate) fn fits(&self, problem: &Problem) -> bool {
        let (n_x, n_z) = (problem.n_x(), problem.n_x() + problem.model().n_u);
        let sequences = problem.sequences();
        self.is_finite()
            && self.sizes.len() == n_x
            && self.inducing.len().is_multiple_of(n_z)
            && self.held.len() == sequences.len()
            && self.held.iter().zip(sequences).all(|(held, s)| held.len() == s.n_rows())
            && self.paths.len() == sequences.len()
            && self.paths.iter().zip(sequences).all(|(path, s)| path.len() == s.n_rows() * n_x)
    }

    /// The basis of which f is drawn: that of the model, or inducing inputs.
    pub(crate) fn basis(&self, prior: &FunctionPrior, n_z: usize) -> BasisChoice {
        match prior {
            FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) => choice.clone(),
            FunctionPrior::Exact => {
                BasisChoice::Fic(Arc::new(Points::from_rows(n_z, self.inducing.chunks_exact(n_z))))
            }
        }
    }

    /// The path to start from for a sequence whose states have these signs.
    pub(super) fn start(&self, s: usize, path: &[f64]) -> Vec<f64> {
        let own = self.paths[s].iter();
        match self.signed {
            false => own.copied().collect(),
            true => own.zip(path).map(|(own, x)| if *x < 0.0 { -own } else { *own }).collect(),
        }
    }

    /// Whether states on the way from one path to the other keep their signs, where these matter.
    pub(crate) fn keeps_branches(&self, from: &[Vec<f64>], to: &[Vec<f64>]) -> bool {
        !self.signed || from.iter().flatten().zip(to.iter().flatten()).all(|(a, b)| (*a < 0.0) == (*b < 0.0))
    }
}

/// Root mean square distance of state `d` from its mean; where it does not differ, its distance from zero.
fn size(paths: &[Vec<f64>], d: usize, n_x: usize) -> f64 {
    let values = || paths.iter().flat_map(|path| path.iter().skip(d).step_by(n_x));
    let n = values().count() as f64;
    let mean = values().sum::<f64>() / n;
    let square = values().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    [square.sqrt(), mean.abs()].into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
}

/// Rows whose state the sensor sees worst, by its curvature along the path.
fn seen_worst(sensor: &BoundSensor, sequence: &Sequence, path: &[f64], sizes: &[f64]) -> Vec<bool> {
    let mut sight = Sight::new(sensor, sizes);
    let seen: Vec<f64> =
        (0..sequence.n_rows()).map(|t| sight.at(sequence, t, &path[t..=t]).precision[0]).collect();
    let mut sorted = seen.clone();
    sorted.sort_by(f64::total_cmp);
    let least = sorted[((HELD * sorted.len() as f64) as usize).min(sorted.len() - 1)];
    seen.iter().map(|seen| *seen < least).collect()
}
