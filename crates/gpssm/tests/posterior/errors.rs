//! Bad requests get a clear error or a clear warning.

use gpssm::model::FunctionSpec;
use gpssm::posterior::{
    Initial, OnlineFilter, OnlineOptions, SimulateOptions, Target, Warning, WeightedDraw,
};
use gpssm::{Functions, Posterior, Sequence};

use super::models::{scalar, single, squared_exponential};

fn posterior() -> Posterior {
    let model = scalar(squared_exponential(1.0, &[1.0, 1.0]), FunctionSpec::Zero, 0.3, 0.1, 1);
    single(model, &Functions::new(), &[0.1, 0.5, -0.4, 0.3], vec![vec![0.0], vec![1.0], vec![0.5], vec![0.2]])
}

#[track_caller]
fn says<T: std::fmt::Debug>(result: Result<T, gpssm::Error>, words: &[&str]) {
    let message = result.unwrap_err().to_string();
    assert!(!message.contains('\n'));
    words.iter().for_each(|word| assert!(message.contains(word), "{message:?} lacks {word:?}"));
}

#[test]
fn wrong_shapes_are_named() {
    let posterior = posterior();
    let u = [vec![0.0]];
    says(posterior.predict(&[vec![0.0]], &[], Target::Function), &["1 inputs", "every point"]);
    says(posterior.predict(&[vec![0.0, 1.0]], &u, Target::Function), &["point 0", "2 states"]);
    says(posterior.predict(&[vec![0.0]], &[vec![]], Target::Function), &["point 0", "0 inputs"]);
    says(posterior.predict(&[vec![f64::NAN]], &u, Target::Function), &["point 0", "x1"]);
    let run = |inputs: &[Vec<f64>], initial: Initial| {
        posterior.simulate(inputs, &initial, &SimulateOptions::default(), &|_, _| true)
    };
    says(run(&[], Initial::Model), &["at least one row"]);
    says(run(&[vec![]], Initial::Model), &["row 0", "1 inputs"]);
    says(run(&[vec![f64::INFINITY]], Initial::Model), &["row 0", "input 1"]);
    says(run(&[vec![0.0]], Initial::Given(vec![1.0, 2.0])), &["initial", "2 numbers"]);
    says(run(&[vec![0.0]], Initial::LastTraining { sequence: 3 }), &["no training sequence 3"]);
    let none = SimulateOptions { n_paths: 0, ..SimulateOptions::default() };
    says(posterior.simulate(&[vec![0.0]], &Initial::Model, &none, &|_, _| true), &["n_paths"]);
    let record = Sequence::scalar(&[0.1, 0.2], None).unwrap();
    let options = OnlineOptions::default();
    says(posterior.filter(&record, &Initial::Model, &options, &|_, _| true), &["0 inputs", "1"]);
    let record = Sequence::scalar(&[0.1, 0.2], Some(&[0.0, 0.0])).unwrap();
    let ahead = |k: usize| posterior.predict_ahead(&record, k, 10, &Initial::Model, &options, &|_, _| true);
    says(ahead(2), &["horizon", "2 rows"]);
    says(ahead(0), &["horizon"]);
    let mut filter = OnlineFilter::new(&posterior, &Initial::Model, &options).unwrap();
    says(filter.step(&[0.0], &[]), &["observation 0", "0 inputs"]);
    says(filter.step(&[0.0], &[f64::NAN]), &["input 1"]);
    let bad = OnlineOptions { forgetting: 0.0, ..options };
    says(OnlineFilter::new(&posterior, &Initial::Model, &bad), &["forgetting"]);
    let long = vec![vec![0.0]; 4];
    let from = posterior.simulate_from_record(&long, &u, &SimulateOptions::default(), &bad, &|_, _| true);
    says(from, &["4 rows of outputs", "1 rows"]);
}

#[test]
fn draws_are_checked() {
    let posterior = posterior();
    let problem = posterior.problem();
    let good = posterior.draws()[0].clone();
    says(Posterior::from_draws(problem, Vec::new()), &["at least one draw"]);
    let with = |change: &dyn Fn(&mut WeightedDraw)| {
        let mut draw = good.clone();
        change(&mut draw);
        Posterior::from_draws(problem, vec![good.clone(), draw])
    };
    says(with(&|draw| draw.theta.push(1.0)), &["draw 1", "hyper-parameters"]);
    says(with(&|draw| draw.paths.clear()), &["draw 1", "0 paths"]);
    says(with(&|draw| draw.paths[0].truncate(2)), &["draw 1", "sequence 0"]);
    says(with(&|draw| draw.paths[0][0] = f64::NAN), &["draw 1", "not finite"]);
    says(with(&|draw| draw.weight = -1.0), &["draw 1", "weight"]);
}

#[test]
fn extrapolation_is_said() {
    let posterior = posterior();
    let prediction =
        posterior.predict(&[vec![0.0], vec![9.0]], &[vec![0.1], vec![0.1]], Target::Function).unwrap();
    assert!(
        matches!(&prediction.warnings[..], [Warning::Extrapolation { component, n_points: 1, first: 1, .. }]
        if component == "x1")
    );
    assert!(prediction.warnings[0].to_string().contains("x1 outside the training range -0.4 .. 0.5"));
    let inside = posterior.predict(&[vec![0.0]], &[vec![0.1]], Target::Function).unwrap();
    assert!(inside.warnings.is_empty());
}
