//! Golden values of the full GP from an independent dense implementation: one-step prediction (eq. 3),
//! joint density (eq. 4), ancestor weights (eq. 8) and posterior of f (eq. 12).
//!
//! Conventions: see [`gpssm_dev::oracle`].
//!
//! Planted bugs that were seen to fail:
//! - `one_step_prediction`: Sigma_t with a tenth of Q; x_0 cut from the history
//! - `joint_density`, `density_of_the_future`: residuals in reversed order; only the diagonal of Q; the
//!   variance of the first state for all; inputs one step late
//! - `ancestor_weights`: the next step instead of the whole future; the joint instead of the ratio; prefixes
//!   in reversed order; normalised over the prefixes; only the diagonal of Q; inputs one step late
//! - `posterior_of_f`: 0.9 Q in K~; prior mean; covariance with Q; covariance or cross-covariance ordered
//!   (dimension, point); inputs one step late

use std::sync::Arc;

use gpssm::dynamics::{BasisChoice, FunctionPrior, ProcessNoise, Transition};
use gpssm::function::ScalarFunction;
use gpssm::kernel::Shape;
use gpssm::{Kernel, Points};
use gpssm_dev::oracle::{self, Case};

fn transition(case: &Case, noise: ProcessNoise) -> Transition {
    assert_eq!(case.mean, "identity");
    let shape = match case.kind.as_str() {
        "se" => Shape::SquaredExponential,
        "matern12" => Shape::Matern12,
        "matern32" => Shape::Matern32,
        "matern52" => Shape::Matern52,
        other => panic!("unknown kernel {other}"),
    };
    let kernels = case.var.iter().zip(&case.ell);
    Transition {
        kernels: kernels.map(|(variance, ell)| Kernel::stationary(shape, *variance, ell)).collect(),
        means: (0..case.nx).map(ScalarFunction::Component).collect(),
        noise,
        lags: vec![None; case.nx],
        prior: FunctionPrior::Exact,
    }
}

/// With the full matrix Q; and with its diagonal if it has no other entries.
fn transitions(case: &Case) -> Vec<Transition> {
    let diagonal: Vec<f64> = (0..case.nx).map(|d| case.q[d][d]).collect();
    let is_diagonal = (0..case.nx).all(|a| (0..case.nx).all(|b| a == b || case.q[a][b] == 0.0));
    let full = transition(case, ProcessNoise::Full(case.q.concat()));
    let diagonal = is_diagonal.then(|| transition(case, ProcessNoise::Diagonal(diagonal)));
    [full].into_iter().chain(diagonal).collect()
}

/// Runs a check on every case and every form of its Q.
fn for_all(check: impl Fn(&Case, &Transition)) {
    let mut n_diagonal = 0;
    for case in oracle::cases() {
        for transition in transitions(&case) {
            n_diagonal += usize::from(matches!(transition.noise, ProcessNoise::Diagonal(_)));
            check(&case, &transition);
        }
    }
    assert_eq!(n_diagonal, 4);
}

#[track_caller]
fn assert_relative(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    let most = expected.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    for (i, (a, b)) in actual.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-9 * most, "entry {i}: {a} should be {b}");
    }
}

#[track_caller]
fn assert_absolute(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    for (i, (a, b)) in actual.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-8, "entry {i}: {a} should be {b}");
    }
}

#[test]
fn one_step_prediction() {
    for_all(|case, transition| {
        let next = transition.one_step(&case.x[..case.t], case.u()).unwrap();
        assert_relative(&next.mean, &case.mu_t);
        assert_relative(&next.covariance, &case.sigma_t.concat());
    });
}

#[test]
fn joint_density() {
    for_all(|case, transition| {
        assert_absolute(&[transition.log_joint(&case.x, case.u()).unwrap()], &[case.log_joint]);
    });
}

#[test]
fn ancestor_weights() {
    for_all(|case, transition| {
        let future = &case.x[case.t..];
        let log_w = transition.ancestor_log_weights(&case.prefixes, future, case.u()).unwrap();
        assert_absolute(&log_w, &case.as_logw);
    });
}

/// log p(future | prefix) as a ratio of joint densities.
#[test]
fn density_of_the_future() {
    for_all(|case, transition| {
        let log_joint = |x: &[Vec<f64>]| transition.log_joint(x, case.u()).unwrap();
        let future = &case.x[case.t..];
        let ratios = case.prefixes.iter().map(|x| log_joint(&[x, future].concat()) - log_joint(x));
        assert_absolute(&ratios.collect::<Vec<_>>(), &case.as_logw);
    });
}

#[test]
fn posterior_of_f() {
    for_all(|case, transition| {
        let u_star = case.us();
        let f = transition.f_posterior(&case.x, case.u(), &case.xs, u_star).unwrap();
        assert_relative(&f.mean, &case.f_mean.concat());
        assert_relative(&f.covariance, &case.f_cov.concat());
    });
}

/// Every golden value of the FIC prior: one-step prediction, joint density, ancestor weights, posterior of f.
#[test]
fn fully_independent_conditional() {
    for_all(|case, exact| {
        let n_z = case.inducing[0].len();
        let inducing = Points::from_rows(n_z, case.inducing.iter().map(Vec::as_slice));
        let prior = FunctionPrior::Collapsed(BasisChoice::Fic(Arc::new(inducing)));
        let transition = Transition { prior, ..exact.clone() };
        let next = transition.one_step(&case.x[..case.t], case.u()).unwrap();
        assert_relative(&next.mean, &case.fic_mu_t);
        assert_relative(&next.covariance, &case.fic_sigma_t.concat());
        assert_absolute(&[transition.log_joint(&case.x, case.u()).unwrap()], &[case.fic_log_joint]);
        let future = &case.x[case.t..];
        let log_w = transition.ancestor_log_weights(&case.prefixes, future, case.u()).unwrap();
        assert_absolute(&log_w, &case.fic_as_logw);
        let u_star = case.us();
        let f = transition.f_posterior(&case.x, case.u(), &case.xs, u_star).unwrap();
        assert_relative(&f.mean, &case.fic_f_mean.concat());
        let width = case.xs.len() * case.nx;
        for (i, block) in case.fic_f_cov.iter().enumerate() {
            let own = (0..case.nx).flat_map(|a| {
                let row = (i * case.nx + a) * width + i * case.nx;
                f.covariance[row..row + case.nx].to_vec()
            });
            assert_relative(&own.collect::<Vec<_>>(), &block.concat());
        }
    });
}
