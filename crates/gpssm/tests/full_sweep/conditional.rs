//! The slice sampler on the real conditional of the hyper-parameters: theta from the prior, x and y given
//! theta, then updates of theta alone. Averaged over y and x, theta must follow its prior again.

use gpssm::mcmc::moves::HyperParameters;
use gpssm::mcmc::{Chain, SweepInfo};
use gpssm::model::{ParameterPrior, ScaleKind};
use gpssm::smc::FilterOptions;
use gpssm::{Prior, Problem};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use statrs::function::erf::erfc;

use crate::cases::{self, Case};
use crate::paired::Replicate;
use crate::twin::{Mutant, Twin};
use crate::{chain_state, exact_start};

const UPDATES: usize = 5;

/// Largest distance to the uniform distribution, as a p-value (Kolmogorov-Smirnov).
fn ks_p_value(mut p: Vec<f64>) -> f64 {
    p.sort_by(f64::total_cmp);
    let n = p.len() as f64;
    let distance = p.iter().enumerate().map(|(i, p)| (p - i as f64 / n).max((i + 1) as f64 / n - p));
    let lambda = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance.fold(0.0, f64::max);
    if lambda < 0.3 {
        return 1.0;
    }
    let term = |k: i32| f64::from(1 - 2 * (k % 2)) * (-2.0 * f64::from(k * k) * lambda * lambda).exp();
    (-2.0 * (1..=100).map(term).sum::<f64>()).clamp(0.0, 1.0)
}

/// Prior probability of a value below this one; the prior must be log-normal.
fn below(problem: &Problem, k: usize, value: f64) -> f64 {
    let (prior, value) = match &problem.table().parameters[k].prior {
        ParameterPrior::Scalar(prior) => (prior.clone(), value),
        ParameterPrior::Scale(scale) if scale.on == ScaleKind::Sd => (scale.prior.clone(), value),
        ParameterPrior::Scale(scale) => (scale.prior.clone(), value * value),
        ParameterPrior::Matrix { .. } => panic!("a matrix"),
    };
    let Prior::LogNormal { median, sigma } = prior else { panic!("{prior:?}") };
    0.5 * erfc(-(value / median).ln() / sigma / std::f64::consts::SQRT_2)
}

fn library(problem: &Problem, start: &Replicate, seed: u64, width: f64) -> Vec<f64> {
    let mut chain = Chain::new(problem, FilterOptions::new(2), seed, 0, chain_state(problem, start, width));
    let mut info = SweepInfo::default();
    for _ in 0..UPDATES {
        // Its number keys the random numbers of a sweep.
        chain.state.sweep += 1;
        chain.make(&HyperParameters, &mut info);
    }
    assert_eq!(info.slice_failures, 0);
    chain.state.theta
}

/// p-value of each entry of theta; half of the replicates in each of two threads.
fn p_values(
    case: &Case,
    n_replicates: u64,
    seed: u64,
    update: &(dyn Fn(&Problem, &Replicate, u64) -> Vec<f64> + Sync),
) -> Vec<(String, f64)> {
    let blank = case.blank();
    let part = |range: std::ops::Range<u64>| -> Vec<Vec<f64>> {
        let one = |replicate: u64| {
            let seed = (seed << 32) + replicate;
            let start = exact_start(case, &blank, seed).unwrap();
            let theta = update(&case.problem(&start.y), &start, seed);
            (0..theta.len()).map(|k| below(&blank, k, theta[k])).collect()
        };
        range.map(one).collect()
    };
    let middle = n_replicates / 2;
    let all = std::thread::scope(|scope| {
        let second = scope.spawn(|| part(middle..n_replicates));
        [part(0..middle), second.join().unwrap()].concat()
    });
    let parameters = blank.table().parameters.iter().enumerate();
    parameters.map(|(k, p)| (p.name.clone(), ks_p_value(all.iter().map(|row| row[k]).collect()))).collect()
}

#[test]
fn theta_given_the_states_is_drawn_from_its_conditional() {
    let case = cases::squared_exponential();
    for (width, n_replicates) in [(1.0, 20_000), (1e-3, 3_000), (1e3, 3_000)] {
        let found =
            p_values(&case, n_replicates, 4, &|problem, start, seed| library(problem, start, seed, width));
        println!("width {width}: {found:.3?}");
        assert!(found.iter().all(|(_, p)| *p >= 1e-4), "width {width}: {found:?}");
    }
}

#[test]
fn the_conditional_without_its_jacobian_is_seen() {
    let case = cases::squared_exponential();
    let update = |problem: &Problem, start: &Replicate, seed: u64| {
        let twin = Twin { case: &case, problem, mutant: Some(Mutant::NoJacobian) };
        let (mut state, mut rng) = (start.clone(), ChaCha8Rng::seed_from_u64(seed));
        (0..UPDATES).for_each(|_| twin.update_theta(&mut state, 1.0, &mut rng));
        state.theta
    };
    let found = p_values(&case, 1_000, 5, &update);
    // 5e-21 for the length-scale.
    assert!(found.iter().any(|(_, p)| *p < 1e-6), "{found:?}");
}
