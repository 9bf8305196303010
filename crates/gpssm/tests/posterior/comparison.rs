//! Comparison and thinning.

use gpssm::model::FunctionSpec;
use gpssm::posterior::{OnlineOptions, ThinMethod, WeightedDraw, compare};
use gpssm::{Functions, Posterior, Problem, Sequence};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

use super::models::{scalar, single, squared_exponential};

/// x' = 1.5 sin(x) + u, seen with noise.
fn system(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move |sd: f64| sd * rng.sample::<f64, _>(StandardNormal);
    let u: Vec<f64> = (0..n).map(|_| normal(1.0)).collect();
    let mut x: Vec<f64> = vec![0.2];
    for t in 0..n - 1 {
        x.push(1.5 * (2.0 * x[t]).sin() + 0.5 * u[t] + normal(0.1));
    }
    let y = x.iter().map(|x| x + normal(0.1)).collect();
    (x, u, y)
}

fn learned(ell: f64) -> Posterior {
    let (x, u, _) = system(150, 1);
    let model = scalar(squared_exponential(2.0, &[ell, 3.0 * ell]), FunctionSpec::Zero, 0.1, 0.1, 1);
    single(model, &Functions::new(), &x, u.iter().map(|u| vec![*u]).collect())
}

#[test]
fn comparison_ranks_by_one_step_log_score() {
    let (good, bad) = (learned(0.8), learned(30.0));
    let (_, u, y) = system(100, 3);
    let record = Sequence::scalar(&y, Some(&u)).unwrap();
    let options = OnlineOptions { functions: 10, particles: 30, waves: 64, ..OnlineOptions::default() };
    let ranked = compare(&[("flat", &bad), ("wavy", &good)], &record, 3, &options, &|_, _| true).unwrap();
    assert_eq!((ranked[0].name.as_str(), ranked[0].difference, ranked[0].rows.len()), ("wavy", 0.0, 97));
    assert!(ranked[1].difference > 5.0 * ranked[1].standard_error);
    assert!(compare(&[("wavy", &good)], &record, 100, &options, &|_, _| true).is_err());
}

/// 40 draws, half of the weight on 4 of them: herding loses less than random choice does on average.
#[test]
fn herding_loses_less_than_chance() {
    let single = learned(0.8);
    let problem: &Problem = single.problem();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let draws = (0..40).map(|j| {
        let mut draw: WeightedDraw = single.draws()[0].clone();
        let shift = 0.5 * rng.sample::<f64, _>(StandardNormal);
        draw.paths[0].iter_mut().for_each(|x| *x += shift);
        draw.weight = if j < 4 { 9.0 } else { 1.0 };
        draw
    });
    let posterior = Posterior::from_draws(problem, draws.collect()).unwrap();
    let (thinned, herded) = posterior.thin(8, ThinMethod::Herding, 0).unwrap();
    assert_eq!((thinned.len(), herded.kept.len()), (8, 8));
    let random: Vec<_> = (0..20).map(|seed| posterior.thin(8, ThinMethod::Random, seed).unwrap().1).collect();
    let mean = |f: &dyn Fn(&gpssm::posterior::ThinLoss) -> f64| random.iter().map(f).sum::<f64>() / 20.0;
    assert!(herded.mean_error < mean(&|loss| loss.mean_error), "{herded:?}");
    assert!(herded.divergence < mean(&|loss| loss.divergence), "{herded:?}");
    let (_, all) = posterior.thin(40, ThinMethod::Random, 0).unwrap();
    assert_eq!(all.kept.len(), 40);
    assert!(posterior.thin(41, ThinMethod::Random, 0).is_err());
}
