//! Filters and free runs in C, against twins written here and against the library's particle filter.

mod common;

use common::{Compiled, compilers, distilled, normals, options, sparse, sparse_states, with_density};
use gpssm::Kernel;
use gpssm::posterior::{
    DistilOptions, Distilled, DistilledFunction, DistilledInitial, DistilledPredictor, DistilledState,
    OnlineFilter, OutputDensity, Scenario, WeightedDraw,
};
use gpssm::smc::Proposal;
use gpssm::{Functions, Posterior, Problem};
use gpssm_dev::benchmark;
use gpssm_export::{Filter, Options};

/// Two learned states, a lag, two outputs with correlated noise, an input.
fn plant() -> Distilled {
    let kernel = Kernel::squared_exponential(0.2, &[1.0, 1.5, 2.0, 2.0]);
    let state = |seed: u64| DistilledState::Sparse(Box::new(sparse(&kernel, 6, 4, seed)));
    let row =
        |weights: [f64; 4], offset: f64| DistilledPredictor::Linear { weights: weights.to_vec(), offset };
    let predictors = vec![row([1.0, 0.2, 0.0, 0.1], 0.3), row([0.0, 0.7, -0.4, 0.0], -0.2)];
    let density = OutputDensity::Gaussian { predictors, noise: vec![0.05, 0.02, 0.02, 0.08] };
    let mut model =
        distilled(vec![state(1), state(2), DistilledState::Lag { of: 0 }], 1, with_density(density), 2);
    let shrunk = |state: &mut DistilledState| {
        if let DistilledState::Sparse(f) = state {
            f.coefficients.iter_mut().chain(&mut f.weights).for_each(|c| *c *= 0.2);
        }
    };
    model.states.iter_mut().for_each(shrunk);
    model
}

/// Rows (y, u) with some outputs missing.
fn rows(n: usize, n_y: usize) -> Vec<Vec<f64>> {
    let mut normal = normals(8);
    let row = |t: usize, normal: &mut dyn FnMut() -> f64| -> Vec<f64> {
        let missing = |k: usize| t % 7 == 3 + k || t % 11 == 5;
        let y = (0..n_y).map(|k| if missing(k) { f64::NAN } else { 0.5 + 0.6 * normal() });
        y.collect::<Vec<_>>().into_iter().chain([0.5 * normal()]).collect()
    };
    (0..n).map(|t| row(t, &mut normal)).collect()
}

type Matrix = Vec<Vec<f64>>;

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    a.iter()
        .map(|row| (0..b[0].len()).map(|j| row.iter().zip(b).map(|(a, b)| a * b[j]).sum()).collect())
        .collect()
}

fn transpose(a: &Matrix) -> Matrix {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

/// The inverse and the log determinant, by Gauss and Jordan.
fn inverse(a: &Matrix) -> (Matrix, f64) {
    let n = a.len();
    let mut work: Matrix = a
        .iter()
        .enumerate()
        .map(|(i, row)| row.iter().copied().chain((0..n).map(|j| f64::from(i == j))).collect())
        .collect();
    let mut log = 0.0;
    for i in 0..n {
        let pivot = work[i][i];
        log += pivot.ln();
        work[i].iter_mut().for_each(|v| *v /= pivot);
        for k in (0..n).filter(|&k| k != i) {
            let factor = work[k][i];
            let row = work[i].clone();
            work[k].iter_mut().zip(row).for_each(|(v, r)| *v -= factor * r);
        }
    }
    (work.into_iter().map(|row| row[n..].to_vec()).collect(), log)
}

/// The textbook's extended Kalman filter, with covariances: (log likelihood, mean, covariance) of each row.
fn twin(model: &Distilled, scenario: Option<&Scenario>, rows: &[Vec<f64>]) -> Vec<(f64, Vec<f64>, Matrix)> {
    let (n_x, n_y) = (model.n_x, model.n_y);
    let mut function = DistilledFunction::new(model).unwrap();
    let Some(OutputDensity::Gaussian { predictors, noise }) = &model.sensor.as_ref().unwrap().density else {
        unreachable!()
    };
    let sensor: Vec<(&Vec<f64>, f64)> = predictors
        .iter()
        .map(|p| match p {
            DistilledPredictor::Linear { weights, offset } => (weights, *offset),
            DistilledPredictor::Formula(_) => unreachable!(),
        })
        .collect();
    let Some(DistilledInitial::Gaussian { mean, chol }) = &model.initial else { unreachable!() };
    let square = |flat: &[f64], n: usize| -> Matrix { flat.chunks_exact(n).map(<[f64]>::to_vec).collect() };
    let (mut x, mut p) = (mean.clone(), product(&square(chol, n_x), &transpose(&square(chol, n_x))));
    let mut before: Option<Vec<f64>> = None;
    let mut found = Vec::new();
    for row in rows {
        let (y, u) = row.split_at(n_y);
        if let Some(u) = before.replace(u.to_vec()) {
            let (mut next, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
            let mut slopes = vec![0.0; n_x * (n_x + 1)];
            let noise = match scenario {
                Some(scenario) => {
                    let mut at = |x: &[f64]| {
                        let mut next = vec![0.0; n_x];
                        function.scenario(scenario, x, &u, &mut next);
                        next
                    };
                    next = at(&x);
                    for c in 0..n_x {
                        let moved = |h: f64| {
                            let mut x = x.clone();
                            x[c] += h;
                            x
                        };
                        let (up, down) = (at(&moved(1e-5)), at(&moved(-1e-5)));
                        (0..n_x).for_each(|d| slopes[d * (n_x + 1) + c] = (up[d] - down[d]) / 2e-5);
                    }
                    &scenario.process_noise
                }
                None => {
                    function.evaluate(&x, &u, &mut next, &mut variance);
                    function.jacobian(&x, &u, &mut slopes);
                    &model.process_noise
                }
            };
            let a: Matrix = slopes.chunks_exact(n_x + 1).map(|row| row[..n_x].to_vec()).collect();
            p = product(&product(&a, &p), &transpose(&a));
            for d in 0..n_x {
                (0..n_x).for_each(|e| p[d][e] += noise[d * n_x + e]);
                p[d][d] += variance[d];
            }
            x = next;
        }
        let seen: Vec<usize> = (0..n_y).filter(|&k| !y[k].is_nan()).collect();
        let mut log = 0.0;
        if !seen.is_empty() {
            let c: Matrix = seen.iter().map(|&k| sensor[k].0[..n_x].to_vec()).collect();
            let mut s = product(&product(&c, &p), &transpose(&c));
            for (i, &k) in seen.iter().enumerate() {
                seen.iter().enumerate().for_each(|(j, &l)| s[i][j] += noise[k * n_y + l]);
            }
            let (inverted, log_determinant) = inverse(&s);
            let residual: Matrix = seen
                .iter()
                .map(|&k| {
                    let z: Vec<f64> = x.iter().copied().chain(u.iter().copied()).collect();
                    let mean: f64 = sensor[k].0.iter().zip(&z).map(|(w, z)| w * z).sum();
                    vec![y[k] - mean - sensor[k].1]
                })
                .collect();
            let gain = product(&product(&p, &transpose(&c)), &inverted);
            let square = product(&product(&transpose(&residual), &inverted), &residual)[0][0];
            log = -0.5 * (square + log_determinant + seen.len() as f64 * (2.0 * std::f64::consts::PI).ln());
            let moved = product(&gain, &residual);
            (0..n_x).for_each(|d| x[d] += moved[d][0]);
            let less = product(&product(&gain, &c), &p);
            (0..n_x).for_each(|d| (0..n_x).for_each(|e| p[d][e] -= less[d][e]));
        }
        found.push((log, x.clone(), p.clone()));
    }
    found
}

/// 200 rows with missing outputs: the square-root filter is the textbook's to 1e-10.
#[test]
fn the_extended_filter_is_the_textbooks() {
    let model = plant();
    let rows = rows(200, 2);
    let expected = twin(&model, None, &rows);
    for compiler in compilers() {
        let compiled = Compiled::new(&model, &options(), compiler);
        for (t, (row, (log, mean, covariance))) in
            compiled.run("filter", &rows).iter().zip(&expected).enumerate()
        {
            let flat: Vec<f64> = [&[*log][..], mean, &covariance.concat()].concat();
            for (found, expected) in row.iter().zip(&flat) {
                assert!(
                    (found - expected).abs() < 1e-10 * (1.0 + expected.abs()),
                    "{compiler}, row {t}: {found} {expected}"
                );
            }
        }
    }
}

/// An input that is no number keeps its last value, an infinite output or one out of all reach is missing: the filter goes on as if such
/// a row had come mended. (Without this, one such row made all later states no numbers.)
#[test]
fn rows_that_are_no_numbers_leave_the_filter_alive() {
    let Some(compiler) = compilers().first().copied() else { return };
    for filter in [Filter::Extended, Filter::Particles] {
        let options = Options { filter, particles: 50, ..options() };
        let compiled = Compiled::new(&plant(), &options, compiler);
        let (mut bad, mut mended) = (rows(30, 2), rows(30, 2));
        bad[9][2] = f64::NAN;
        mended[9][2] = mended[8][2];
        bad[14][0] = f64::INFINITY;
        mended[14][0] = f64::NAN;
        bad[20][0] = 1e300;
        bad[20][1] = f64::NAN;
        (mended[20][0], mended[20][1]) = (f64::NAN, f64::NAN);
        let (found, expected) = (compiled.run("filter", &bad), compiled.run("filter", &mended));
        assert!(found.iter().flatten().all(|value| value.is_finite()), "{filter:?}: {found:?}");
        assert_eq!(found, expected, "{filter:?}");
    }
}

/// A controller knows the input only after the state: told so, the filter is that of all inputs at once, where the sensor does not see
/// them.
#[test]
fn inputs_may_be_chosen_after_the_state() {
    let Some(compiler) = compilers().first().copied() else { return };
    let model = sparse_states();
    let rows = rows(40, 1);
    for filter in [Filter::Extended, Filter::Particles] {
        let options = Options { filter, particles: 50, ..options() };
        let compiled = Compiled::new(&model, &options, compiler);
        let at_once = compiled.run("filter", &rows);
        for (later, at_once) in compiled.run("controlled_filter", &rows).iter().zip(&at_once) {
            assert_eq!(later[..], at_once[..later.len()], "{filter:?}");
        }
    }
}

/// Free runs repeat f and the sensor.
#[test]
fn free_runs_repeat_the_function() {
    let Some(compiler) = compilers().first().copied() else { return };
    let model = plant();
    let rows: Vec<Vec<f64>> = (0..50).map(|t| vec![0.3, -0.2, 0.1, (0.3 * f64::from(t)).sin()]).collect();
    let mut function = DistilledFunction::new(&model).unwrap();
    let (mut x, mut next, mut variance) = (rows[0][..3].to_vec(), vec![0.0; 3], vec![0.0; 3]);
    for (row, found) in rows.iter().zip(Compiled::new(&model, &options(), compiler).run("simulate", &rows)) {
        let u = row[3];
        let y = [x[0] + 0.2 * x[1] + 0.1 * u + 0.3, 0.7 * x[1] - 0.4 * x[2] - 0.2];
        function.evaluate(&x, &[u], &mut next, &mut variance);
        x.clone_from(&next);
        for (found, expected) in found.iter().zip(y.iter().chain(&x)) {
            assert!((found - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }
}

/// Draws near the truth of the paper's benchmark, distilled, with scenarios.
fn benchmark_model(scenarios: usize) -> (Distilled, Problem, benchmark::Simulated) {
    let simulated = benchmark::simulate(4, 120);
    let model = benchmark::model(benchmark::kernel());
    let problem = Problem::new(model, &Functions::new(), simulated.record().unwrap()).unwrap();
    let mut normal = normals(5);
    let draws = (0..12).map(|_| {
        let theta = problem.table().parameters.iter().map(|parameter| {
            let center: f64 = match parameter.name.as_str() {
                name if name.contains("ell") => 3.0,
                name if name.contains("linear") => 2.0,
                name if name.contains("process") => 3.0,
                name if name.contains("sensor") => 1.0,
                _ => 8.0,
            };
            center * (0.1 * normal()).exp()
        });
        let theta: Vec<f64> = theta.collect();
        let path = simulated.x.iter().map(|x| x + 0.5 * normal()).collect();
        WeightedDraw { theta, paths: vec![path], weight: 1.0 }
    });
    let draws = draws.collect();
    let posterior = Posterior::from_draws(&problem, draws).unwrap();
    let options = DistilOptions { size: Some(30), max_loss: None, cloud: 500, ..DistilOptions::default() };
    let mut distilled = posterior.distil(&options).unwrap();
    if scenarios > 0 {
        posterior.add_scenarios(&mut distilled, scenarios, 1).unwrap();
    }
    (distilled, problem, simulated)
}

/// The benchmark's sensor does not see signs: its filter has particles, and its log likelihood and means are those of the
/// library's filter on the same model to Monte Carlo error.
#[test]
fn the_particle_filter_is_the_librarys() {
    let Some(compiler) = compilers().first().copied() else { return };
    let (model, problem, simulated) = benchmark_model(0);
    let options = Options { particles: 2000, ..options() };
    let compiled = Compiled::new(&model, &options, compiler);
    let rows: Vec<Vec<f64>> = simulated.y.iter().zip(&simulated.u).map(|(y, u)| vec![*y, *u]).collect();
    let found = compiled.run("filter", &rows);
    let mut filter = OnlineFilter::from_distilled(&model, &problem, 2000, Proposal::Auto, 3).unwrap();
    let (mut total, mut expected, mut square) = (0.0, 0.0, 0.0);
    for (row, found) in rows.iter().zip(&found) {
        let estimate = filter.step(&row[..1], &row[1..]).unwrap();
        total += found[0];
        expected += estimate.log_marginal_likelihood;
        square += ((found[1] - estimate.mean[0]) / estimate.sd[0].max(1.0)).powi(2) / rows.len() as f64;
    }
    // Log likelihoods of 2,000 particles vary by about one over seeds here.
    assert!((total - expected).abs() < 6.0, "{total} {expected}");
    assert!(square.sqrt() < 0.3, "{square}");
    let again = compiled.run("filter", &rows);
    assert_eq!(again, found, "the same seed gives the same numbers");
}

/// Scenarios are the library's, each has a filter of its own, and those that predict the record count more.
#[test]
fn scenarios_are_functions_of_their_own() {
    let Some(compiler) = compilers().first().copied() else { return };
    let (model, ..) = benchmark_model(4);
    assert_eq!(model.scenarios.len(), 4);
    let options = Options { filter: Filter::Extended, ..options() };
    let compiled = Compiled::new(&model, &options, compiler);
    let points: Vec<Vec<f64>> =
        (0..200).map(|i| vec![0.1 * f64::from(i) - 10.0, (0.2 * f64::from(i)).cos()]).collect();
    let mut function = DistilledFunction::new(&model).unwrap();
    let mut spread = 0.0;
    for (z, row) in points.iter().zip(compiled.run("scenarios", &points)) {
        for (k, scenario) in model.scenarios.iter().enumerate() {
            let mut next = [0.0];
            function.scenario(scenario, &z[..1], &z[1..], &mut next);
            let size: f64 = scenario.coefficients[0].iter().map(|c| c.abs()).sum::<f64>() * 100.0;
            assert!((row[2 * k] - next[0]).abs() < 1e-12 * (1.0 + size), "{} {next:?}", row[2 * k]);
            let at = |h: f64| {
                let mut next = [0.0];
                let mut function = DistilledFunction::new(&model).unwrap();
                function.scenario(scenario, &[z[0] + h], &z[1..], &mut next);
                next[0]
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (row[2 * k + 1] - slope).abs() < 1e-4 * (1.0 + slope.abs()),
                "{} {slope}",
                row[2 * k + 1]
            );
            spread += (row[2 * k] - row[0]).abs() / 800.0;
        }
    }
    assert!(spread > 0.05, "functions of the posterior differ: {spread}");
}

/// The filters of scenarios are the textbook's on their functions; weights follow from their log likelihoods.
#[test]
fn scenarios_are_filtered_and_weighed() {
    let Some(compiler) = compilers().first().copied() else { return };
    let mut model = plant();
    let mut normal = normals(21);
    model.scenarios = (0..3)
        .map(|draw| Scenario {
            draw,
            coefficients: model
                .states
                .iter()
                .map(|state| match state {
                    DistilledState::Sparse(f) => {
                        f.coefficients.iter().map(|c| c * (1.0 + 0.5 * normal())).collect()
                    }
                    _ => vec![],
                })
                .collect(),
            process_noise: model.process_noise.iter().map(|q| q * (1.0 + draw as f64)).collect(),
        })
        .collect();
    let rows = rows(60, 2);
    let found = Compiled::new(&model, &options(), compiler).run("scenario_filter", &rows);
    let runs: Vec<_> = model.scenarios.iter().map(|scenario| twin(&model, Some(scenario), &rows)).collect();
    let mut logs = [0.0; 3];
    for (t, row) in found.iter().enumerate() {
        (0..3).for_each(|k| logs[k] += runs[k][t].0);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
        for k in 0..3 {
            let own = &row[k * 4..(k + 1) * 4];
            let weight = (logs[k] - most).exp() / sum;
            assert!((own[0] - weight).abs() < 1e-6, "row {t}, {k}: {} {weight}", own[0]);
            for (found, expected) in own[1..].iter().zip(&runs[k][t].1) {
                assert!(
                    (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                    "row {t}, {k}: {found} {expected}"
                );
            }
        }
    }
}
