//! Scores and baselines.

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::model::{
    FunctionSpec, InitialSpec, Predictor, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec,
    StateSpec, TransitionSpec,
};
use gpssm::posterior::{OnlineOptions, WeightedDraw};
use gpssm::{Functions, KernelSpec, Model, Posterior, Prior, Problem, Record, Sequence};
use gpssm_identify::baseline::{Arx, Task};
use gpssm_identify::score::point_scores;
use gpssm_identify::{Calibration, FittedModel, Layout, ScoreOptions, ScoreTask};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

/// Numbers that nonlinear_benchmarks 1.0.1 gives for the same arrays.
#[test]
fn point_scores_are_those_of_nonlinear_benchmarks() {
    let y = [[1.0, 10.0], [2.5, 11.0], [-0.3, 14.0], [4.2, 9.5], [0.7, 12.25], [3.1, 8.0]];
    let p = [[0.8, 10.5], [2.0, 11.5], [0.4, 13.0], [4.0, 9.0], [1.0, 12.0], [2.2, 9.5]];
    let expected = [
        (
            0,
            [
                0.5354126134736337,
                0.34835995268137965,
                65.16400473186204,
                0.878645343367827,
                0.4666666666666666,
            ],
        ),
        (2, [0.5979130371550699, 0.3315668485431771, 66.8433151456823, 0.8900634249471459, 0.525]),
    ];
    let second = [
        (
            0,
            [
                0.8228507357554792,
                0.4244273414017178,
                57.55726585982822,
                0.8198614318706697,
                0.7083333333333334,
            ],
        ),
        (2, [0.9437293044088437, 0.4042781965615432, 59.57218034384568, 0.8365591397849462, 0.8125]),
    ];
    let record = Sequence::new(y.iter().map(|row| row.to_vec()).collect(), Vec::new()).unwrap();
    for (k, cases) in [expected, second].iter().enumerate() {
        for (n_init, numbers) in cases {
            let s = &point_scores(&record, &p.concat(), *n_init).unwrap()[k];
            let ours = [s.rmse, s.nrmse.unwrap(), s.fit.unwrap(), s.r2.unwrap(), s.mae];
            ours.iter().zip(numbers).for_each(|(a, b)| assert!((a - b).abs() <= 1e-13 * b.abs(), "{a} {b}"));
        }
    }
    // A missing row is as if it were not there.
    let mut rows: Vec<Vec<f64>> = y.iter().map(|row| row.to_vec()).collect();
    rows.insert(3, vec![f64::NAN, f64::NAN]);
    let mut predicted = p.concat();
    (0..2).for_each(|_| predicted.insert(6, 99.0));
    let with_gap = point_scores(&Sequence::new(rows, Vec::new()).unwrap(), &predicted, 2).unwrap();
    assert_eq!(with_gap, point_scores(&record, &p.concat(), 2).unwrap());
}

/// A second-order linear system is found, free runs and predictions ahead included.
#[test]
fn arx_finds_a_linear_system() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut normal = move || rng.sample::<f64, _>(StandardNormal);
    let mut simulate = |n: usize| {
        let u: Vec<f64> = (0..n).map(|_| normal()).collect();
        let mut y = vec![0.3, -0.2];
        for t in 2..n {
            y.push(2.0 + 1.2 * y[t - 1] - 0.6 * y[t - 2] + 0.5 * u[t] - 0.3 * u[t - 1] + 1e-3 * normal());
        }
        Sequence::scalar(&y, Some(&u)).unwrap()
    };
    let (training, test) = (simulate(200), simulate(80));
    let arx = Arx::fit(&Record::from(training), 6).unwrap();
    assert_eq!(arx.order(), 2);
    for task in [Task::FreeRun { n_init: 2 }, Task::Ahead { k: 3 }] {
        let scores = &point_scores(&test, &arx.predict(&test, task), 4).unwrap()[0];
        assert!(scores.rmse < 0.01, "{task:?} {}", scores.rmse);
    }
    // A pure cosine input makes its lags dependent: no coefficient explodes.
    let u: Vec<f64> = (0..100).map(|t| (1.2 * f64::from(t)).cos()).collect();
    let y: Vec<f64> = u.iter().enumerate().map(|(t, u)| u + (0.4 * t as f64).sin()).collect();
    let record = Sequence::scalar(&y, Some(&u)).unwrap();
    let arx = Arx::fit(&record.clone().into(), 8).unwrap();
    assert!(arx.predict(&record, Task::FreeRun { n_init: 10 }).iter().all(|y| y.abs() < 100.0));
}

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
    let fixed = |value: f64| Prior::Fixed { value };
    let scale = |sd: f64| vec![ScalePrior::on_sd(fixed(sd))];
    let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL)
        .with("sigma_f", fixed(2.0))
        .with("ell", vec![fixed(ell), fixed(3.0 * ell)]);
    let transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Zero };
    let model = Model {
        states: vec![StateSpec { transition, scale: None }],
        process_noise: ProcessNoiseSpec::Diagonal(scale(0.1)),
        sensor: SensorSpec::Gaussian {
            mean: Predictor::default(),
            noise: SensorNoiseSpec::Diagonal(scale(0.1)),
        },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] },
        standardise: false,
        ..Model::observed(1, 1)
    };
    let record = Sequence::scalar(&x, Some(&u)).unwrap();
    let problem = Problem::new(model, &Functions::new(), record.into()).unwrap();
    let theta = problem.table().sample(&mut ChaCha8Rng::seed_from_u64(0)).unwrap();
    Posterior::from_draws(&problem, vec![WeightedDraw { theta, paths: vec![x], weight: 1.0 }]).unwrap()
}

/// The model beats its baselines on data from a nonlinear system, and its intervals hold what they promise, roughly: one data
/// set, so wide bounds (calibration proper is tested elsewhere).
#[test]
fn model_and_baselines_side_by_side() {
    let fitted = FittedModel::new(learned(0.8), Layout::default(), Calibration::default(), None).unwrap();
    let (_, u, y) = system(120, 2);
    let record = Sequence::scalar(&y, Some(&u)).unwrap();
    let filter = OnlineOptions { functions: 20, particles: 30, waves: 64, ..OnlineOptions::default() };
    let options = ScoreOptions {
        task: ScoreTask::Ahead(1),
        n_init: Some(5),
        n_paths: 400,
        filter,
        ..Default::default()
    };
    let report = fitted.score(&record, &options, &|_, _| true).unwrap();
    let names: Vec<&str> = report.scores.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["model", "constant", "ARX by BIC", "linear state space", "mean function"]);
    let model = &report.scores[0];
    for other in &report.scores[1..] {
        let (ours, theirs) = (model.log_score.unwrap(), other.log_score.unwrap());
        assert!(ours > theirs + 0.3, "{} {theirs}", other.name);
        assert!(
            model.outputs[0].rmse < 0.6 * other.outputs[0].rmse,
            "{} {}",
            other.name,
            other.outputs[0].rmse
        );
        assert!(model.outputs[0].crps < other.outputs[0].crps);
    }
    let shares: Vec<f64> = model.outputs[0].coverage.iter().map(|c| c.share).collect();
    assert!((0.3..0.7).contains(&shares[0]) && shares[2] > 0.85, "{shares:?}");
    assert_eq!(model.outputs[0].pit.len(), 115);
    let free = ScoreOptions { task: ScoreTask::Simulation, ..options };
    let report = fitted.score(&record, &free, &|_, _| true).unwrap();
    assert!(report.scores[0].outputs[0].crps < report.scores[1].outputs[0].crps);
}
