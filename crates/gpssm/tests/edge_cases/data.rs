//! Records that are short, empty, constant or wrong.

use gpssm::model::{Predictor, SensorSpec};
use gpssm::{Error, Model, Record, Sequence, Settings};

use crate::{assert_no_nan, assert_refused, assert_runs, problem, process_sd, record, run, sensor_sd, short};

fn refused(sequence: Result<Sequence, Error>) -> String {
    sequence.unwrap_err().to_string()
}

#[test]
fn short_records_run() {
    for rows in [2, 3] {
        for particles in [2, 5] {
            let settings = gpssm::Settings { particles, ..short() };
            assert_runs(Model::observed(1, 1), record(rows), &settings, &format!("{rows} rows"));
        }
    }
    assert_refused(
        problem(Model::observed(1, 1), record(1)),
        "data: sequence 0 has one row: a transition needs two",
    );
}

#[test]
fn constant_outputs_run() {
    for value in [3.0, 0.0, -1e-9, 1e9] {
        let y = Sequence::scalar(&[value; 12], None).unwrap();
        let draws = assert_runs(Model::observed(1, 0), y, &short(), &format!("y = {value}"));
        let size = if value == 0.0 { 1.0 } else { value.abs() };
        let far =
            draws.paths.iter().flatten().flatten().map(|x| (x - value).abs() / size).fold(0.0, f64::max);
        // A cold start on a record of next to nothing may be far off; it has to run.
        assert!(far < 20.0 || value.abs() < 1e-6, "y = {value}: {far}");
    }
    let u = Sequence::scalar(&[0.1, 0.5, 0.2, 0.9, 0.4], Some(&[7.0; 5])).unwrap();
    assert_runs(Model::observed(1, 1), u, &short(), "constant input");
}

#[test]
fn missing_outputs_run() {
    let nan = f64::NAN;
    let all =
        Sequence::scalar(&[nan; 10], Some(&[0.5, 1.0, 0.0, 0.3, 0.2, 0.9, 0.1, 0.4, 0.0, 1.0])).unwrap();
    assert_runs(Model::observed(1, 1), all, &short(), "y all missing");
    let poisson = SensorSpec::Poisson { log_rate: Predictor::States };
    let model = Model { sensor: poisson, ..Model::observed(1, 0) };
    assert_runs(model, Sequence::scalar(&[nan; 10], None).unwrap(), &short(), "counts all missing");
    let one = Sequence::scalar(&[nan, nan, 4.0, nan, nan, nan], None).unwrap();
    assert_runs(Model::observed(1, 0), one, &short(), "one output");
    let rows = vec![vec![1.0, nan], vec![nan, 2.0], vec![nan, nan], vec![1.5, 2.5], vec![nan, 2.0]];
    assert_runs(Model::observed(2, 0), Sequence::new(rows, vec![]).unwrap(), &short(), "components");
    let never = vec![vec![1.0, nan], vec![0.5, nan], vec![0.2, nan], vec![1.5, nan]];
    assert_runs(Model::observed(2, 0), Sequence::new(never, vec![]).unwrap(), &short(), "an unseen output");
}

/// States that repeat to rounding make rows of K equal; only the process noise keeps the matrix definite,
/// and below the rounding of the signal variance not even that: densities may then be minus infinity, or all
/// particles lost.
#[test]
fn duplicate_inputs_run() {
    let y: Vec<f64> = (0..20).map(|t| f64::from(t % 2)).collect();
    let draws = |q: f64, r: f64, seed: u64| {
        let model = Model { process_noise: process_sd(q), sensor: sensor_sd(r), ..Model::observed(1, 0) };
        let problem = problem(model, Sequence::scalar(&y, None).unwrap()).unwrap();
        run(&problem, &Settings { seed, ..short() })
    };
    for seed in 0..5 {
        for (q, r) in [(1e-2, 1e-9), (1e-6, 1e-6)] {
            assert_no_nan(&draws(q, r, seed).unwrap(), &format!("q = {q}, r = {r}, seed {seed}"));
        }
        match draws(1e-9, 1e-9, seed) {
            Ok(draws) => assert_no_nan(&draws, &format!("q = r = 1e-9, seed {seed}")),
            Err(error) => assert!(error.to_string().contains("particles have weight zero"), "{error}"),
        }
    }
    let twins = Record::new(vec![record(8), record(8), record(8)]).unwrap();
    assert_runs(Model::observed(1, 1), twins, &short(), "the same sequence three times");
}

#[test]
fn wrong_values_are_refused_with_their_place() {
    let inf = f64::INFINITY;
    assert_eq!(refused(Sequence::scalar(&[1.0, 2.0, -inf], None)), "data: output 1 in row 2 is infinite");
    assert_eq!(
        refused(Sequence::new(vec![vec![1.0, 2.0], vec![1.0, inf]], vec![])),
        "data: output 2 in row 1 is infinite"
    );
    for bad in [f64::NAN, inf] {
        assert_eq!(
            refused(Sequence::scalar(&[1.0, 2.0], Some(&[0.0, bad]))),
            "data: input 1 in row 1 is not a number: inputs must be known in every row"
        );
    }
    for (y, u, expected) in [
        (vec![], vec![], "data: a sequence needs at least one row and one output"),
        (vec![vec![]], vec![], "data: a sequence needs at least one row and one output"),
        (vec![vec![1.0], vec![1.0, 2.0]], vec![], "data: output row 1 has 2 values, not 1"),
        (vec![vec![1.0]; 2], vec![vec![0.0], vec![]], "data: input row 1 has 0 values, not 1"),
        (vec![vec![1.0]; 3], vec![vec![0.0]; 2], "data: 3 rows of outputs but 2 rows of inputs"),
    ] {
        assert_eq!(refused(Sequence::new(y, u)), expected);
    }
    assert_eq!(
        refused(Sequence::from_flat(vec![1.0; 5], 2, vec![], 0)),
        "data: outputs must be whole rows, at least one"
    );
    assert_eq!(
        refused(Sequence::from_flat(vec![1.0; 4], 2, vec![0.0], 1)),
        "data: 2 rows of outputs need 2 input values, not 1"
    );
    let other = Sequence::scalar(&[1.0; 4], None).unwrap();
    assert_eq!(
        Record::new(vec![record(3), other]).unwrap_err().to_string(),
        "data: sequence 1 has 1 outputs and 0 inputs, the first has 1 and 1"
    );
    assert_eq!(Record::new(vec![]).unwrap_err().to_string(), "data: a record needs at least one sequence");
}

#[test]
fn values_that_are_no_counts_are_refused_with_their_row() {
    let states = || Predictor::States;
    let families = [
        (SensorSpec::Poisson { log_rate: states() }, "poisson", "a non-negative integer"),
        (
            SensorSpec::NegativeBinomial { log_mean: states(), size: None },
            "negative_binomial",
            "a non-negative integer",
        ),
        (SensorSpec::Bernoulli { logit: states() }, "bernoulli", "0 or 1"),
    ];
    for (sensor, name, allowed) in families {
        for bad in [0.5, -1.0] {
            let model = Model { sensor: sensor.clone(), ..Model::observed(1, 0) };
            let y = Sequence::scalar(&[0.0, 1.0, f64::NAN, bad, 1.0], None).unwrap();
            assert_refused(
                problem(model, y),
                &format!(
                    "data: sequence 0, row 3, output 1: an observation of the {name} family is {bad}, but it \
                     must be {allowed} (or NaN where missing)"
                ),
            );
        }
    }
}
