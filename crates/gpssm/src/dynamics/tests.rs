//! The tree factor against a fresh factorisation at every t, for random trees with heavy and with no
//! coalescence.

use std::sync::Arc;

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

use super::basis::features::BasisChoice;
use super::basis::fourier::FourierChoice;
use super::basis::hilbert::HilbertChoice;
use super::block::Pairs;
use super::path_density::PathDensityWork;
use super::population::Population;
use super::predictions::Predictions;
use super::transition::{FunctionPrior, ProcessNoise, Transition};
use crate::function::ScalarFunction;
use crate::kernel::{Kernel, Shape};
use crate::points::Points;

fn normals(rng: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    (0..n).map(|_| rng.sample::<f64, _>(StandardNormal)).collect()
}

struct Case {
    transition: Transition,
    n_x: usize,
    n_u: usize,
    length: usize,
    n_particles: usize,
    n_context: usize,
    /// All particles descend from this many parents at the most.
    n_parents: usize,
}

fn transition(n_x: usize, n_u: usize, full: bool, known: Option<usize>) -> Transition {
    let kernels = (0..n_x).map(|d| {
        let ell: Vec<f64> = (0..n_x + n_u).map(|c| 0.7 + 0.3 * (c + d) as f64).collect();
        if Some(d) == known {
            Kernel::zero()
        } else if d == 0 {
            Kernel::squared_exponential(1.3, &ell)
        } else {
            Kernel::Sum(vec![
                Kernel::stationary(Shape::Matern32, 0.8, &ell),
                Kernel::linear(vec![0], vec![0.4]),
            ])
        }
    });
    let noise = if full {
        let mut q = vec![0.03; n_x * n_x];
        (0..n_x).for_each(|d| q[d * n_x + d] = 0.1 + 0.02 * d as f64);
        ProcessNoise::Full(q)
    } else {
        ProcessNoise::Diagonal((0..n_x).map(|d| 0.05 + 0.1 * d as f64).collect())
    };
    Transition {
        kernels: kernels.collect(),
        means: (0..n_x).map(ScalarFunction::Component).collect(),
        noise,
        lags: vec![None; n_x],
        prior: FunctionPrior::Exact,
    }
}

/// log p(x_{1:} | x_0, context) of a path by one dense factorisation.
fn dense(case: &Case, path: &[f64], inputs: &[Vec<f64>], context: &Pairs) -> f64 {
    let mut work = PathDensityWork::default();
    let mut total = 0.0;
    for dims in case.transition.blocks() {
        let mut pairs = context.clone();
        case.transition.append_pairs(path, |s| &inputs[s], &mut pairs);
        total += case.transition.log_density_of(&dims, &pairs, &mut work).unwrap();
        if !context.points.is_empty() {
            total -= case.transition.log_density_of(&dims, context, &mut work).unwrap();
        }
    }
    total
}

/// Makes the lags of a path agree with what they copy, from time `from` on.
fn copy_lags(transition: &Transition, path: &mut [f64], from: usize) {
    let n_x = transition.n_x();
    for t in from.max(1)..path.len() / n_x {
        for (d, of) in transition.lags.iter().enumerate() {
            if let Some(of) = of {
                path[t * n_x + d] = path[(t - 1) * n_x + of];
            }
        }
    }
}

fn check(case: &Case, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (n_x, n, length) = (case.n_x, case.n_particles, case.length);
    let inputs: Vec<Vec<f64>> = (0..=length).map(|_| normals(&mut rng, case.n_u)).collect();
    let mut reference = normals(&mut rng, (length + 1) * n_x);
    copy_lags(&case.transition, &mut reference, 1);
    let other_inputs: Vec<Vec<f64>> = (0..=case.n_context).map(|_| normals(&mut rng, case.n_u)).collect();
    let other = normals(&mut rng, (case.n_context + 1) * n_x);
    let context = case.transition.pairs(&other, |s| &other_inputs[s], case.n_u);
    let reference_pairs = case.transition.pairs(&reference, |s| &inputs[s], case.n_u);
    let mut population =
        Population::new(&case.transition, &inputs, &context, Some(&reference_pairs)).unwrap();
    let mut plain = Population::new(&case.transition, &inputs, &context, None).unwrap();
    let mut x = normals(&mut rng, n * n_x);
    let mut paths: Vec<Vec<f64>> = x.chunks_exact(n_x).map(<[f64]>::to_vec).collect();
    population.start(&x);
    plain.start(&x);
    for t in 1..=length {
        let (mut predictions, mut unconditional) = (Predictions::default(), Predictions::default());
        population.predict(&mut predictions);
        plain.predict(&mut unconditional);
        for i in 0..n {
            let pairs = predictions.mean(i).iter().zip(unconditional.mean(i));
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-10));
            let pairs = predictions.chol(i).iter().zip(unconditional.chol(i));
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-10));
        }
        let probe = normals(&mut rng, n_x);
        let mut expected = Vec::new();
        for (i, path) in paths.iter().enumerate() {
            let before = dense(case, path, &inputs, &context);
            let mut longer = path.clone();
            longer.extend_from_slice(&probe);
            copy_lags(&case.transition, &mut longer, t);
            let moving: Vec<usize> = case.transition.moving().collect();
            let p = moving.len();
            let mut residual: Vec<f64> =
                moving.iter().map(|&d| longer[t * n_x + d] - predictions.mean(i)[d]).collect();
            let chol = predictions.chol(i);
            let chol: Vec<f64> =
                moving.iter().flat_map(|&a| moving.iter().map(move |&b| chol[a * n_x + b])).collect();
            let fast = crate::linalg::small::log_gaussian(&chol, p, &mut residual);
            for (d, of) in case.transition.lags.iter().enumerate() {
                assert!(of.is_none_or(|of| predictions.mean(i)[d] == path[(t - 1) * n_x + of]));
            }
            let slow = dense(case, &longer, &inputs, &context) - before;
            assert!((fast - slow).abs() < 1e-8 * slow.abs().max(1.0), "one step at {t}: {fast} {slow}");
            let mut spliced = path.clone();
            spliced.extend_from_slice(&reference[t * n_x..]);
            copy_lags(&case.transition, &mut spliced, t);
            expected.push(dense(case, &spliced, &inputs, &context) - before);
        }
        let x_next = &reference[t * n_x..(t + 1) * n_x];
        let actual = population.log_future_density(&reference, &mut |_, _, _| {});
        let offset = expected[0] - actual[0];
        for (fast, slow) in actual.iter().zip(&expected) {
            assert!(
                (fast + offset - slow).abs() < 1e-8 * slow.abs().max(1.0),
                "future at {t}: {fast} {slow}"
            );
        }
        let parents: Vec<usize> = (0..case.n_parents).map(|_| rng.random_range(0..n)).collect();
        let ancestors: Vec<usize> = if case.n_parents == n {
            (0..n).rev().collect()
        } else {
            (0..n).map(|_| parents[rng.random_range(0..parents.len())]).collect()
        };
        x = normals(&mut rng, n * n_x);
        x[(n - 1) * n_x..].copy_from_slice(x_next);
        paths = (0..n).map(|i| [&paths[ancestors[i]], &x[i * n_x..(i + 1) * n_x]].concat()).collect();
        paths.iter_mut().for_each(|path| copy_lags(&case.transition, path, t));
        x = paths.iter().flat_map(|path| path[t * n_x..].to_vec()).collect();
        population.advance(&ancestors, &x);
        plain.advance(&ancestors, &x);
    }
    assert_eq!(population.numerics().clamped, 0);
}

fn case(
    n_x: usize,
    n_u: usize,
    full: bool,
    known: Option<usize>,
    n_context: usize,
    n_parents: usize,
) -> Case {
    Case {
        transition: transition(n_x, n_u, full, known),
        n_x,
        n_u,
        length: 21,
        n_particles: 9,
        n_context,
        n_parents,
    }
}

#[test]
fn tree_factor_equals_fresh_factorisation() {
    for n_parents in [1, 2, 4, 9] {
        check(&case(1, 0, false, None, 0, n_parents), 1);
        check(&case(1, 1, false, None, 7, n_parents), 2);
        check(&case(3, 1, false, Some(2), 0, n_parents), 3);
        check(&case(2, 1, true, None, 0, n_parents), 4);
        check(&case(3, 0, true, Some(0), 5, n_parents), 5);
    }
}

#[test]
fn one_and_two_transitions() {
    for length in [1, 2] {
        check(&Case { length, ..case(2, 1, true, None, 3, 2) }, 6);
        check(&Case { length, ..case(1, 0, false, None, 0, 2) }, 7);
    }
}

#[test]
fn lags_are_followed_until_the_futures_agree() {
    for (full, n_parents) in [(false, 2), (false, 9), (true, 2)] {
        let mut lagged = case(4, 1, full, None, 4, n_parents);
        lagged.transition.lags = vec![None, Some(0), None, Some(1)];
        lagged.transition.kernels[1] = Kernel::zero();
        lagged.transition.kernels[3] = Kernel::zero();
        check(&lagged, 8);
        check(&Case { length: 1, ..lagged }, 9);
    }
    let mut known = case(2, 0, false, Some(0), 0, 3);
    known.transition.lags = vec![None, Some(0)];
    known.transition.kernels[1] = Kernel::zero();
    check(&known, 10);
}

/// One choice of each kind for z of `n` components.
fn choices(n: usize) -> Vec<BasisChoice> {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let inducing: Vec<Vec<f64>> = (0..6).map(|_| normals(&mut rng, n)).collect();
    let inducing = Arc::new(Points::from_rows(n, inducing.iter().map(Vec::as_slice)));
    let hilbert = HilbertChoice::new(vec![0.1; n], vec![5.0; n], 9);
    let fourier = FourierChoice {
        directions: (0..5 * n).map(|_| rng.random_range(0.01..0.99)).collect(),
        radii: (0..5).map(|_| std::array::from_fn(|_| rng.sample(StandardNormal))).collect(),
        n_components: n,
    };
    vec![
        BasisChoice::Fic(Arc::clone(&inducing)),
        BasisChoice::Dtc(inducing),
        BasisChoice::Hilbert(Arc::new(hilbert)),
        BasisChoice::Fourier(Arc::new(fourier)),
    ]
}

/// Weights integrated out along the tree = one dense evidence at every t, for every basis.
#[test]
fn collapsed_bases_equal_their_evidence() {
    for n_parents in [1, 3, 9] {
        for choice in choices(1) {
            let mut scalar = case(1, 0, false, None, 0, n_parents);
            scalar.transition.prior = FunctionPrior::Collapsed(choice);
            check(&scalar, 12);
        }
        for choice in choices(4) {
            for (full, known) in [(false, Some(2)), (true, None), (true, Some(0))] {
                let mut several = case(3, 1, full, known, 5, n_parents);
                several.transition.prior = FunctionPrior::Collapsed(choice.clone());
                check(&several, 13);
                several.transition.lags = vec![None, None, Some(1)];
                several.transition.kernels[2] = Kernel::zero();
                check(&several, 14);
            }
        }
    }
}
