//! Against all sign patterns of short records, each with its density from the Cholesky factor of its own covariance.

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

use super::*;
use crate::dynamics::path_density::PathDensityWork;
use crate::mcmc::conditional::Conditional;
use crate::mcmc::start::prepare;
use crate::model::covariance_prior::CovariancePrior;
use crate::model::dynamics::{DynamicsSpec, InducingSpec, Mode};
use crate::model::scale_prior::ScalePrior;
use crate::model::spec::{
    FunctionRef, FunctionSpec, Predictor, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec, StateSpec,
    TransitionSpec,
};
use crate::model::symmetry::{Orientation, Symmetry};
use crate::{Functions, KernelSpec, Model, Prior, Record, Settings};

fn user(name: &str) -> FunctionRef {
    FunctionRef { name: name.into(), parameters: Vec::new() }
}

fn functions() -> Functions {
    let of_x = |f: fn(f64) -> f64| {
        move |z: &Points, _: &[f64], out: &mut [f64]| {
            out.iter_mut().zip(z.column(0)).for_each(|(out, x)| *out = f(*x));
        }
    };
    Functions::new().with("square", of_x(|x| 0.5 * x * x)).with("odd", of_x(|x| 2.0 * x / (1.0 + x * x)))
}

/// Two short sequences whose outputs are squares of the first state.
fn problem(n_x: usize, noise: &ProcessNoiseSpec, dynamics: DynamicsSpec) -> Problem {
    let gp = |mean: FunctionSpec| TransitionSpec::Gp { kernel: KernelSpec::default(), mean };
    let state = |d: usize| {
        let transition = match (d, noise) {
            (0, _) => gp(FunctionSpec::User(user("odd"))),
            (_, ProcessNoiseSpec::Full(_)) => gp(FunctionSpec::Zero),
            (_, ProcessNoiseSpec::Diagonal(_)) => TransitionSpec::Parametric { function: FunctionSpec::Zero },
        };
        StateSpec { transition, scale: None }
    };
    let model = Model {
        states: (0..n_x).map(state).collect(),
        sensor: SensorSpec::Gaussian {
            mean: Predictor::Functions(vec![user("square")]),
            noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(Prior::Fixed { value: 0.5 })]),
        },
        process_noise: noise.clone(),
        dynamics,
        standardise: false,
        symmetries: vec![Symmetry {
            flip: vec![0],
            flip_parameters: Vec::new(),
            orientation: Orientation::PositiveMean { state: 0 },
        }],
        ..Model::observed(1, 1)
    };
    let sequence = |y: &[f64], shift: f64| {
        let u: Vec<f64> = (0..y.len()).map(|t| (1.2 * t as f64 + shift).cos()).collect();
        Sequence::scalar(y, Some(&u)).unwrap()
    };
    let sequences = vec![sequence(&[0.3, 0.9, f64::NAN, 0.4], 0.0), sequence(&[0.6, 0.2], 1.0)];
    let record = Record::new(sequences).unwrap();
    Problem::new(model, &functions(), record).unwrap()
}

fn flipped(paths: &[Vec<f64>], n_x: usize, pattern: usize) -> Vec<Vec<f64>> {
    let mut paths = paths.to_vec();
    for (bit, x) in paths.iter_mut().flat_map(|path| path.chunks_exact_mut(n_x)).enumerate() {
        if pattern >> bit & 1 == 1 {
            x[0] = -x[0];
        }
    }
    paths
}

/// Largest distance in standard deviations between what the move makes of exact draws and their distribution, and how often it
/// moves.
fn worst(problem: &Problem, n: usize) -> (f64, f64) {
    let n_x = problem.n_x();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let theta = problem.table().sample(&mut rng).unwrap();
    let paths: Vec<Vec<f64>> = problem
        .sequences()
        .iter()
        .map(|sequence| (0..sequence.n_rows() * n_x).map(|_| 0.4 + rng.random::<f64>()).collect())
        .collect();
    let n_signs: usize = problem.sequences().iter().map(Sequence::n_rows).sum();
    let mut work = PathDensityWork::default();
    let log_density: Vec<f64> = (0..1 << n_signs)
        .map(|pattern| {
            let paths = flipped(&paths, n_x, pattern);
            Conditional::new(problem, &paths, &theta, &mut work).log_joint(&theta).0
        })
        .collect();
    let best = log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_density.iter().map(|density| (density - best).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut counts = vec![0.0; weights.len()];
    let mut n_moved = 0.0;
    for _ in 0..n {
        let mut left = rng.random::<f64>() * total;
        let start = weights
            .iter()
            .position(|weight| {
                left -= weight;
                left < 0.0
            })
            .unwrap_or(0);
        let mut moved = flipped(&paths, n_x, start);
        let mut info = SweepInfo::default();
        update(problem, &theta, &mut moved, &mut rng, &mut info);
        assert_eq!(info, SweepInfo::default());
        let end = (0..weights.len()).find(|pattern| flipped(&paths, n_x, *pattern) == moved).unwrap();
        counts[end] += 1.0;
        n_moved += f64::from(u8::from(end != start));
    }
    let n = n as f64;
    let z = counts.iter().zip(&weights).map(|(count, weight)| {
        let share = weight / total;
        // Rare patterns are not normal.
        if n * share < 25.0 { 0.0 } else { (count - n * share) / (n * share * (1.0 - share)).sqrt() }
    });
    (z.map(f64::abs).fold(0.0, f64::max), n_moved / n)
}

/// Seen failing when f was drawn from its prior (|z| = 17), with the whole Q as the noise of a draw (19), and when the second
/// sequence was given the points of the first (150). Leaving p(x_0) out does not show: a declared symmetry makes it even.
#[test]
fn signs_of_exact_draws_stay_distributed_as_they_were() {
    let diagonal = ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(Prior::Fixed { value: 0.6 })]);
    let scale = vec![vec![1.5, 0.0], vec![0.0, 1.0]];
    let full = ProcessNoiseSpec::Full(Some(CovariancePrior::InverseWishart { dof: 6.0, scale }));
    let inducing = InducingSpec::Given(vec![vec![-1.0, 0.0], vec![0.2, 0.5], vec![1.3, -0.4]]);
    let fic = DynamicsSpec::Fic { inducing, mode: Mode::Collapsed };
    let cases = [
        ("one state", problem(1, &diagonal, DynamicsSpec::Exact)),
        ("a known state beside it", problem(2, &diagonal, DynamicsSpec::Exact)),
        ("full noise", problem(2, &full, DynamicsSpec::Exact)),
        ("inducing inputs", problem(1, &diagonal, fic)),
    ];
    for (name, problem) in cases {
        let problem = prepare(&problem, &Settings::default()).unwrap();
        let (z, moved) = worst(&problem, 20_000);
        assert!(z < 4.5, "{name}: {z}");
        assert!(moved > 0.2, "{name}: moves {moved}");
    }
}
