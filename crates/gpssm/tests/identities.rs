//! Identities of the collapsed prior, for random kernels, means, noise, lags and paths.
//!
//! Planted bugs that were seen to fail:
//! - `one_step_predictions_multiply_to_the_joint`: one-step covariance with a tenth of Q; x_0 cut from the
//!   history; in the joint: residuals in reversed order, only the diagonal of Q, inputs one step late
//! - `ancestor_weights_are_sums_of_one_step_terms`: the next step instead of the whole future; the joint
//!   instead of the ratio; prefixes in reversed order; normalised over the prefixes; only the diagonal of Q
//!   over the reference
//! - `diagonal_noise_gives_a_sum_of_one_dimensional_evidences`: the variance of the first state for all;
//!   residuals in reversed order
//! - `f_passes_through_outputs_without_noise`: prior mean of f; inputs one step late
//! - `one_step_is_f_plus_noise`: one-step covariance with a tenth of Q; posterior covariance of f with Q;
//!   0.9 Q in K~; cross-covariance ordered (dimension, time)

use gpssm::Kernel;
use gpssm::dynamics::{FunctionPrior, Gaussian, ProcessNoise, Transition};
use gpssm::function::ScalarFunction;
use gpssm::kernel::Shape;
use gpssm::linalg::small;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::test_runner::RngSeed;

type Rows = Vec<Vec<f64>>;

#[derive(Clone, Debug)]
struct Case {
    transition: Transition,
    /// x_{0:T}.
    x: Rows,
    /// u_{0:T}.
    u: Rows,
}

impl Case {
    fn length(&self) -> usize {
        self.x.len() - 1
    }

    fn moving(&self) -> Vec<usize> {
        (0..self.transition.n_x()).filter(|&d| self.transition.lags[d].is_none()).collect()
    }

    /// log N(x | mean, covariance) of the states that are not lags.
    fn log_density(&self, gaussian: &Gaussian, x: &[f64]) -> f64 {
        let (moving, n_x) = (self.moving(), x.len());
        let mut residual: Vec<f64> = moving.iter().map(|&d| x[d] - gaussian.mean[d]).collect();
        let entries = moving.iter().flat_map(|a| moving.iter().map(move |b| a * n_x + b));
        let mut chol: Vec<f64> = entries.map(|entry| gaussian.covariance[entry]).collect();
        assert!(small::cholesky(&mut chol, moving.len()));
        small::log_gaussian(&chol, moving.len(), &mut residual)
    }

    /// log p(x_{from:} | x_{0:from-1}), one step after another.
    fn log_steps(&self, x: &[Vec<f64>], from: usize) -> f64 {
        let step = |t: usize| self.log_density(&self.transition.one_step(&x[..t], &self.u).unwrap(), &x[t]);
        (from..x.len()).map(step).sum()
    }

    /// Makes the lags copy what they are the lags of.
    fn copy_lags(&self, mut x: Rows) -> Rows {
        for t in 1..x.len() {
            for (d, of) in self.transition.lags.iter().enumerate() {
                if let Some(of) = of {
                    x[t][d] = x[t - 1][*of];
                }
            }
        }
        x
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::SquaredExponential),
        Just(Shape::Matern12),
        Just(Shape::Matern32),
        Just(Shape::Matern52),
        (0.3..3.0).prop_map(|alpha| Shape::RationalQuadratic { alpha }),
    ]
}

/// A single kernel on some of the components.
fn leaf(n_z: usize) -> impl Strategy<Value = Kernel> {
    let components = || subsequence((0..n_z).collect::<Vec<_>>(), 1..=n_z);
    let scales = move || vec(0.5..2.0, n_z);
    let stationary = (shapes(), 0.2..2.0, components(), scales()).prop_map(|(shape, variance, c, ell)| {
        let ell = &ell[..c.len()];
        Kernel::stationary_on(c, shape, variance, ell)
    });
    let periodic = (0.2..2.0, components(), scales(), scales()).prop_map(|(variance, c, ell, period)| {
        let (ell, period) = (ell[..c.len()].to_vec(), period[..c.len()].to_vec());
        Kernel::periodic(c, variance, &ell, &period)
    });
    let linear = (components(), scales()).prop_map(|(c, variance)| {
        let variance = variance[..c.len()].to_vec();
        Kernel::linear(c, variance)
    });
    prop_oneof![
        4 => stationary,
        2 => periodic,
        1 => linear,
        1 => (0.2..2.0).prop_map(Kernel::constant),
    ]
}

fn kernels(n_z: usize) -> impl Strategy<Value = Kernel> {
    leaf(n_z).prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..=3).prop_map(Kernel::Sum),
            vec(inner.clone(), 1..=3).prop_map(Kernel::Product),
            inner.prop_map(|kernel| Kernel::Odd(Box::new(kernel))),
        ]
    })
}

fn means(n_z: usize) -> impl Strategy<Value = ScalarFunction> {
    prop_oneof![
        Just(ScalarFunction::Zero),
        (0..n_z).prop_map(ScalarFunction::Component),
        (vec(-0.8..0.8, n_z), -1.0..1.0)
            .prop_map(|(weights, offset)| ScalarFunction::Linear { weights, offset }),
    ]
}

/// Variances, and a covariance L L' with rows of L about as large.
fn noise(n_x: usize) -> impl Strategy<Value = ProcessNoise> {
    let full = (vec(0.2..0.8, n_x), vec(-0.4..0.4, n_x * n_x)).prop_map(move |(diagonal, mut l)| {
        (0..n_x).for_each(|d| l[d * n_x + d] = diagonal[d]);
        ProcessNoise::Full(small::covariance(&l, n_x))
    });
    prop_oneof![vec(0.05..0.5, n_x).prop_map(ProcessNoise::Diagonal), full]
}

/// The last state may be a lag, and any state may have a known transition.
fn transitions(n_x: usize, n_u: usize) -> impl Strategy<Value = Transition> {
    let parts = (
        vec(kernels(n_x + n_u), n_x),
        vec(means(n_x + n_u), n_x),
        noise(n_x),
        vec(prop::bool::weighted(0.15), n_x),
        prop::bool::weighted(0.25),
    );
    parts.prop_map(move |(mut kernels, means, noise, known, has_lag)| {
        let mut lags = vec![None; n_x];
        if has_lag && n_x > 1 {
            lags[n_x - 1] = Some(n_x - 2);
        }
        for d in 0..n_x {
            if known[d] || lags[d].is_some() {
                kernels[d] = Kernel::zero();
            }
        }
        Transition { kernels, means, noise, lags, prior: FunctionPrior::Exact }
    })
}

fn states(n_x: usize, n: usize) -> impl Strategy<Value = Rows> {
    vec(vec(-2.0..2.0, n_x), n)
}

fn cases() -> impl Strategy<Value = Case> {
    (1..=3usize, 0..=2usize, 1..=12usize)
        .prop_flat_map(|(n_x, n_u, length)| {
            (transitions(n_x, n_u), states(n_x, length + 1), states(n_u, length + 1))
        })
        .prop_map(|(transition, x, u)| {
            let case = Case { transition, x: Vec::new(), u };
            Case { x: case.copy_lags(x), ..case }
        })
}

/// A case, and other states to make prefixes of.
fn cases_with_prefixes() -> impl Strategy<Value = (Case, usize, Vec<Rows>)> {
    cases().prop_flat_map(|case| {
        let (n_x, length) = (case.transition.n_x(), case.length());
        (Just(case), 1..=length)
            .prop_flat_map(move |(case, t)| (Just(case), Just(t), vec(states(n_x, t), 1..=4)))
    })
}

#[track_caller]
fn assert_close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    let most = expected.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
    for (i, (a, b)) in actual.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-8 * most, "entry {i}: {a} should be {b}");
    }
}

/// The same kernel of z with its components in another order: `position[c]` is where component c went.
fn reorder(kernel: &Kernel, position: &[usize]) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.for_each_part(&mut |part| part.components.iter_mut().for_each(|c| *c = position[*c]));
    kernel
}

/// log p(x_{1:T}^d | x_0, the other states): state d alone, all other states among its inputs.
fn log_evidence_alone(case: &Case, d: usize, variance: f64) -> f64 {
    let (n_x, n_u) = (case.transition.n_x(), case.u[0].len());
    let order: Vec<usize> = [d].into_iter().chain((0..n_x + n_u).filter(|&c| c != d)).collect();
    let mut position = vec![0; n_x + n_u];
    order.iter().enumerate().for_each(|(to, &from)| position[from] = to);
    let mean = match &case.transition.means[d] {
        ScalarFunction::Component(c) => ScalarFunction::Component(position[*c]),
        ScalarFunction::Linear { weights, offset } => {
            ScalarFunction::Linear { weights: order.iter().map(|&c| weights[c]).collect(), offset: *offset }
        }
        other => other.clone(),
    };
    let alone = Transition {
        kernels: vec![reorder(&case.transition.kernels[d], &position)],
        means: vec![mean],
        noise: ProcessNoise::Diagonal(vec![variance]),
        lags: vec![None],
        prior: FunctionPrior::Exact,
    };
    let z = case.x.iter().zip(&case.u).map(|(x, u)| [&x[..], &u[..]].concat());
    let z: Rows = z.map(|z| order.iter().map(|&c| z[c]).collect()).collect();
    let (x, u): (Rows, Rows) = z.into_iter().map(|z| (z[..1].to_vec(), z[1..].to_vec())).unzip();
    alone.log_joint(&x, &u).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// prod_t p(x_t | x_{0:t-1}) = p(x_{1:T} | x_0): eq. 3 = eq. 4.
    #[test]
    fn one_step_predictions_multiply_to_the_joint(case in cases()) {
        let joint = case.transition.log_joint(&case.x, &case.u).unwrap();
        assert_close(&[case.log_steps(&case.x, 1)], &[joint]);
    }

    /// log p(x~_{t:T} | x_{0:t-1}) is the sum of one-step terms along the concatenated path: eq. 8.
    #[test]
    fn ancestor_weights_are_sums_of_one_step_terms((case, t, prefixes) in cases_with_prefixes()) {
        let prefixes: Vec<Rows> = prefixes.into_iter().map(|prefix| case.copy_lags(prefix)).collect();
        let future = &case.x[t..];
        let log_w = case.transition.ancestor_log_weights(&prefixes, future, &case.u).unwrap();
        let steps: Vec<f64> = prefixes
            .iter()
            .map(|prefix| case.log_steps(&case.copy_lags([prefix, future].concat()), t))
            .collect();
        assert_close(&log_w, &steps);
    }

    /// With diagonal Q the states are independent given their inputs, in both forms of Q.
    #[test]
    fn diagonal_noise_gives_a_sum_of_one_dimensional_evidences(case in cases()) {
        let n_x = case.transition.n_x();
        let q = case.transition.noise_covariance();
        let variances: Vec<f64> = (0..n_x).map(|d| q[d * n_x + d]).collect();
        let mut full = vec![0.0; n_x * n_x];
        (0..n_x).for_each(|d| full[d * n_x + d] = variances[d]);
        let alone: f64 = case.moving().iter().map(|&d| log_evidence_alone(&case, d, variances[d])).sum();
        for noise in [ProcessNoise::Diagonal(variances.clone()), ProcessNoise::Full(full.clone())] {
            let transition = Transition { noise, ..case.transition.clone() };
            assert_close(&[transition.log_joint(&case.x, &case.u).unwrap()], &[alone]);
            let steps = Case { transition, ..case.clone() }.log_steps(&case.x, 1);
            assert_close(&[steps], &[alone]);
        }
    }

    /// Almost without noise f passes through the outputs, at inputs that are apart.
    #[test]
    fn f_passes_through_outputs_without_noise(case in cases(), ell in 0.5..1.5f64) {
        let mut case = case;
        let n_x = case.transition.n_x();
        let n_z = n_x + case.u[0].len();
        case.transition.noise = ProcessNoise::Diagonal(vec![1e-12; n_x]);
        case.transition.lags = vec![None; n_x];
        for kernel in &mut case.transition.kernels {
            // A rough part makes any outputs possible.
            let rough = Kernel::stationary(Shape::Matern12, 1.0, &vec![ell; n_z]);
            *kernel = Kernel::Sum(vec![kernel.clone(), rough]);
        }
        for (t, x) in case.x.iter_mut().enumerate() {
            x[0] = 0.1 * x[0] + 0.8 * ((5 * t) % 13) as f64 - 4.0;
        }
        let length = case.length();
        let f = case.transition.f_posterior(&case.x, &case.u, &case.x[..length], &case.u).unwrap();
        assert_close(&f.mean, &case.x[1..].concat());
        assert_close(&f.covariance, &vec![0.0; f.covariance.len()]);
    }

    /// x_t = f(z_{t-1}) + v: eq. 3 is the posterior of f given the path so far, plus Q.
    #[test]
    fn one_step_is_f_plus_noise(case in cases()) {
        let n_x = case.transition.n_x();
        let q = case.transition.noise_covariance();
        for t in 1..=case.length() + 1 {
            let (x, last) = (&case.x[..t], t - 1);
            let next = case.transition.one_step(x, &case.u).unwrap();
            let f = case.transition.f_posterior(x, &case.u, &x[last..], &case.u[last..t]).unwrap();
            assert_close(&next.mean, &f.mean);
            let covariance: Vec<f64> = (0..n_x * n_x)
                .map(|entry| {
                    let is_lag = |d: usize| case.transition.lags[d].is_some();
                    let without = is_lag(entry / n_x) || is_lag(entry % n_x);
                    f.covariance[entry] + if without { 0.0 } else { q[entry] }
                })
                .collect();
            assert_close(&next.covariance, &covariance);
        }
    }
}
