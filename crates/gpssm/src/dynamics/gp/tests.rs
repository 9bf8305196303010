//! What is refused, and the special dimensions. The values have golden and property tests of their own.

use crate::dynamics::transition::{FunctionPrior, ProcessNoise, Transition};
use crate::error::Error;
use crate::function::ScalarFunction;
use crate::kernel::Kernel;

/// One state, its lag, a known state, one input.
fn transition() -> Transition {
    Transition {
        kernels: vec![
            Kernel::squared_exponential(1.5, &[1.0, 0.8, 2.0, 1.2]),
            Kernel::zero(),
            Kernel::zero(),
        ],
        means: vec![ScalarFunction::Zero, ScalarFunction::Zero, ScalarFunction::Component(0)],
        noise: ProcessNoise::Full(vec![0.2, 0.0, 0.05, 0.0, 0.0, 0.0, 0.05, 0.0, 0.1]),
        lags: vec![None, Some(0), None],
        prior: FunctionPrior::Exact,
    }
}

fn path() -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let x = vec![vec![0.1, 0.5, 0.3], vec![0.7, 0.1, 0.2], vec![-0.4, 0.7, 0.9]];
    (x, vec![vec![0.3], vec![-0.6], vec![1.1]])
}

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn known_states_and_lags_have_no_variance() {
    let (transition, (x, u)) = (transition(), path());
    for noise in [transition.noise.clone(), ProcessNoise::Diagonal(vec![0.2, 0.0, 0.1])] {
        let transition = Transition { noise, ..transition.clone() };
        let f = transition.f_posterior(&x, &u, &x, &u).unwrap();
        for i in 0..3 {
            assert_eq!(f.mean[i * 3 + 1], x[i][0]);
            assert_eq!(f.mean[i * 3 + 2], x[i][0]);
        }
        for (a, b) in (0..9).flat_map(|a| (0..9).map(move |b| (a, b))) {
            let value = f.covariance[a * 9 + b];
            assert_eq!(value, f.covariance[b * 9 + a]);
            assert_eq!(value != 0.0, a % 3 == 0 && b % 3 == 0, "{a} {b} {value}");
        }
        let next = transition.one_step(&x, &u).unwrap();
        assert_eq!(next.mean[1], -0.4);
        assert_eq!((next.covariance[4], next.covariance[1]), (0.0, 0.0));
        assert!((next.covariance[8] - 0.1).abs() < 1e-15);
    }
}

#[test]
fn the_shortest_path_is_the_prior() {
    let (transition, (x, u)) = (transition(), path());
    assert_eq!(transition.log_joint(&x[..1], &u).unwrap(), 0.0);
    let f = transition.f_posterior(&x[..1], &u, &x[..1], &u).unwrap();
    assert_eq!(f.mean, [0.0, 0.1, 0.1]);
    assert_eq!(f.covariance, [1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(transition.f_posterior(&x, &u, &[], &[]).unwrap().mean.len(), 0);
}

#[test]
fn wrong_paths_are_refused_with_row_and_column() {
    let (transition, (x, u)) = (transition(), path());
    assert!(message(transition.one_step(&[], &u)).contains("at least one state"));
    assert!(message(transition.one_step(&x, &u[..2])).contains("u has 2 rows where 3"));
    assert!(transition.log_joint(&x, &u[..2]).is_ok());
    let mut narrow = x.clone();
    narrow[1].pop();
    assert!(message(transition.log_joint(&narrow, &u)).contains("x: row 1 has 2 values where 3"));
    let mut infinite = u.clone();
    infinite[1][0] = f64::NAN;
    assert!(message(transition.f_posterior(&x, &infinite, &x, &u)).contains("u: row 1, column 0 is NaN"));
    let mut torn = x.clone();
    torn[2][1] = 0.0;
    assert!(message(transition.one_step(&torn, &u)).contains("row 2, column 1 is the lag of column 0"));
    assert!(message(transition.f_posterior(&x, &u, &x, &[])).contains("u_star has 0 columns, u has 1"));
    assert!(message(transition.f_posterior(&x, &u, &x, &u[..1])).contains("u_star has 1 rows where 3"));
    let huge = vec![vec![1e300, 0.0, 0.0], vec![-1e300, 1e300, 0.0]];
    assert_eq!(transition.log_joint(&huge, &u).unwrap(), f64::NEG_INFINITY);
}

#[test]
fn wrong_prefixes_are_refused() {
    let (transition, (x, u)) = (transition(), path());
    let weights = |prefixes: &[Vec<Vec<f64>>], future: &[Vec<f64>]| {
        transition.ancestor_log_weights(prefixes, future, &u)
    };
    let uneven = [x[..2].to_vec(), x[..1].to_vec()];
    assert!(message(weights(&uneven, &x[2..])).contains("prefix 1 has 1 states, prefix 0 has 2"));
    assert!(message(weights(&[], &x)).contains("0 prefixes"));
    assert!(message(weights(&[vec![]], &x)).contains("the first of 0 states"));
    assert!(message(weights(&uneven[..1], &[])).contains("0 future states"));
    assert!(message(weights(&uneven[..1], &[x[0].clone(), x[0].clone(), x[0].clone()])).contains("u has 3"));
    assert_eq!(weights(&uneven[..1], &x[2..]).unwrap().len(), 1);
}

#[test]
fn transitions_that_do_not_fit_together_are_refused() {
    let (good, (x, u)) = (transition(), path());
    let refused = |change: &dyn Fn(&mut Transition), key: &str| {
        let mut transition = good.clone();
        change(&mut transition);
        let message = message(transition.one_step(&x, &u));
        assert!(message.starts_with(&format!("model: {key}")), "{message}");
    };
    refused(&|t| t.means.truncate(2), "transition: 3 kernels, 2 means");
    refused(&|t| t.means[0] = ScalarFunction::Component(4), "means[0]: needs 5");
    refused(&|t| t.lags[0] = Some(1), "lags[0]: a lag of itself");
    refused(&|t| t.lags[1] = Some(3), "lags[1]: state 3 of 3");
    refused(&|t| t.noise = ProcessNoise::Diagonal(vec![0.1; 2]), "noise: 2 values where 3");
    refused(&|t| t.noise = ProcessNoise::Diagonal(vec![0.0; 3]), "noise: the covariance is not positive");
    let asymmetric = vec![1.0, 0.0, 0.1, 0.0, 1.0, 0.0, 0.3, 0.0, 1.0];
    refused(&|t| t.noise = ProcessNoise::Full(asymmetric.clone()), "noise: not symmetric");
    refused(&|t| t.kernels[0] = Kernel::squared_exponential(1.0, &[1.0; 5]), "kernels[0]: component 4");
    refused(&|t| t.kernels[0] = Kernel::squared_exponential(1.0, &[0.0]), "kernels[0]: ell is 0");
    refused(&|t| t.kernels[0] = Kernel::constant(-1.0), "kernels[0]: sigma^2 is -1");
    let linear = Kernel::linear(vec![0, 1], vec![1.0]);
    refused(
        &|t| t.kernels[0] = Kernel::Sum(vec![linear.clone()]),
        "kernels[0]: 1 numbers of the linear kernel where 2 are needed",
    );
}
