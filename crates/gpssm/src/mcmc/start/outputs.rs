//! A start on the outputs themselves, for sensors that show every state.
//!
//! Where each state is an output, or a copy of one some rows before, the outputs are a path already; all that is
//! left to find are hyper-parameters, by a few updates given that path. Where output k shows state k through another sensor, the
//! outputs are taken back through it: log rates of counts, log odds of yes and no, moduli with the signs of [`unfolded`].

use super::{Start, unfolded};
use crate::dynamics::path_density::PathDensityWork;
use crate::error::Error;
use crate::mcmc::conditional::Conditional;
use crate::mcmc::moves::HyperParameters;
use crate::mcmc::settings::Settings;
use crate::mcmc::sweep::{Chain, ChainState, SweepInfo};
use crate::model::compile::Problem;
use crate::model::spec::{Predictor, SensorSpec, TransitionSpec, Value};
use crate::random::{Purpose, stream};
use crate::record::Sequence;

/// Draws of theta from the prior, of which the best given the outputs goes on.
const DRAWS: u64 = 16;
/// Updates of theta.
const UPDATES: u64 = 30;

/// Theta and the path that the outputs show. `keep_going` is asked before each update.
pub(super) fn find(
    problem: &Problem,
    settings: &Settings,
    chain: u32,
    keep_going: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Start>, Error> {
    let shown = shown_outputs(problem).or_else(|| seen_outputs(problem).filter(|_| !settings.narx));
    let shown = shown.ok_or_else(|| {
        let key = if settings.narx { "narx" } else { "start_at" };
        Error::settings(key, "needs a model whose states are all outputs or their lags")
    })?;
    let paths = problem.sequences().iter().map(|s| path(problem, s, &shown)).collect::<Vec<_>>();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for index in 0..DRAWS {
        let mut rng = stream(settings.seed, chain, Purpose::StartTheta, 0, index);
        let theta = problem.table().sample(&mut rng)?;
        let mut work = PathDensityWork::default();
        let log_joint = Conditional::new(problem, &paths, &theta, &mut work).log_joint(&theta).0;
        if log_joint.is_finite() && best.as_ref().is_none_or(|(highest, _)| log_joint > *highest) {
            best = Some((log_joint, theta));
        }
    }
    let Some((log_marginal_likelihood, theta)) = best else {
        let message = format!(
            "{DRAWS} draws of the hyper-parameters from the prior all had no density on the outputs; check that priors \
             fit the scale of the data"
        );
        return Err(Error::Start { message });
    };
    let start = Start { state: ChainState::new(problem, theta, paths), log_marginal_likelihood };
    Ok(updated(problem, settings, chain, start, keep_going))
}

/// The start after some updates of theta given its path; none if it was stopped.
pub(super) fn updated(
    problem: &Problem,
    settings: &Settings,
    chain: u32,
    start: Start,
    keep_going: &mut dyn FnMut(u64, u64) -> bool,
) -> Option<Start> {
    let Start { state, mut log_marginal_likelihood } = start;
    // The updates of a start must not share random numbers with those of the chain.
    let seed = rand::Rng::next_u64(&mut stream(settings.seed, chain, Purpose::StartSweeps, 0, 0));
    let mut chain = Chain::new(problem, settings.filter_options(), seed, chain, state);
    for done in 0..UPDATES {
        if !keep_going(done, UPDATES) {
            return None;
        }
        chain.state.sweep += 1;
        chain.make(&HyperParameters, &mut SweepInfo::default());
    }
    let mut state = chain.state;
    let mut work = PathDensityWork::default();
    let log_joint =
        Conditional::new(problem, &state.paths, &state.theta, &mut work).log_joint(&state.theta).0;
    if log_joint.is_finite() {
        log_marginal_likelihood = log_joint;
    }
    state.sweep = 0;
    Some(Start { state, log_marginal_likelihood })
}

/// For each state the output that shows it and how many rows before; none if some state is not shown.
pub(crate) fn shown_outputs(problem: &Problem) -> Option<Vec<(usize, usize)>> {
    let model = problem.model();
    if !model.sensor.is_linear_gaussian() {
        return None;
    }
    let direct = |d: usize| -> Option<usize> {
        match model.sensor.predictor()? {
            Predictor::States => (d < model.n_y).then_some(d),
            Predictor::Linear { c, d: through, offset } => {
                let is = |value: &Value, number: f64| *value == Value::Known(number);
                let plain = through.iter().flatten().chain(offset).all(|value| is(value, 0.0));
                let unit = |row: &[Value]| {
                    row.iter().enumerate().all(|(e, value)| is(value, if e == d { 1.0 } else { 0.0 }))
                };
                c.iter().position(|row| unit(row)).filter(|_| plain)
            }
            _ => None,
        }
    };
    through_lags(problem, &direct)
}

/// The same for other sensors of which output k shows state k alone, exactly or not.
fn seen_outputs(problem: &Problem) -> Option<Vec<(usize, usize)>> {
    let model = problem.model();
    match model.sensor.predictor()? {
        Predictor::States => {}
        Predictor::Formulas(formulas) if formulas.len() == model.n_y => {}
        _ => return None,
    }
    through_lags(problem, &|d| (d < model.n_y).then_some(d))
}

fn through_lags(problem: &Problem, direct: &dyn Fn(usize) -> Option<usize>) -> Option<Vec<(usize, usize)>> {
    let states = &problem.model().states;
    let shown = |d: usize| {
        let (mut at, mut rows) = (d, 0);
        while let TransitionSpec::Lag { of } = states[at].transition {
            (at, rows) = (of, rows + 1);
        }
        direct(at).map(|k| (k, rows))
    };
    (0..states.len()).map(shown).collect()
}

/// An output taken back through its sensor: what the state would be if it told all.
fn taken_back(problem: &Problem, sequence: &Sequence, k: usize, y: Vec<f64>) -> Vec<f64> {
    let sensor = &problem.model().sensor;
    let share = |t: usize, most: f64| {
        let near = &y[t.saturating_sub(NEARBY)..(t + NEARBY + 1).min(y.len())];
        let p = (near.iter().sum::<f64>() / most + 0.5) / (near.len() as f64 + 1.0);
        (p / (1.0 - p)).ln()
    };
    match sensor {
        SensorSpec::Poisson { .. } | SensorSpec::NegativeBinomial { .. } => {
            y.iter().map(|y| (y.max(0.0) + 0.5).ln()).collect()
        }
        SensorSpec::Bernoulli { .. } => (0..y.len()).map(|t| share(t, 1.0)).collect(),
        SensorSpec::Binomial { trials, .. } => {
            let most = trials.get(k).or(trials.first()).map_or(1.0, |n| f64::from(*n).max(1.0));
            (0..y.len()).map(|t| share(t, most)).collect()
        }
        SensorSpec::Gaussian { mean: Predictor::Formulas(formulas), .. }
            if formulas.get(k).is_some_and(|formula| formula.trim_start().starts_with("abs(")) =>
        {
            let inputs: Vec<Vec<f64>> = (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
            unfolded(&y, &inputs).0
        }
        _ => y,
    }
}

/// Rows on either side over which yes and no are counted.
const NEARBY: usize = 3;

/// The paths that the outputs show, original units.
pub(crate) fn path_on_outputs(problem: &Problem, shown: &[(usize, usize)]) -> Vec<Vec<f64>> {
    let paths = problem.sequences().iter().map(|s| path(problem, s, shown));
    paths.map(|path| problem.path_to_original(&path)).collect()
}

/// The outputs as a path in internal units. A missing output lies on the line between its neighbours; before the
/// first row stands the first value.
fn path(problem: &Problem, sequence: &Sequence, shown: &[(usize, usize)]) -> Vec<f64> {
    let scaling = problem.scaling();
    let n_y = problem.model().n_y;
    let columns: Vec<Vec<f64>> = (0..n_y)
        .map(|k| {
            let y = sequence.output(k).map(|y| scaling.y.to_original(k, y)).collect();
            taken_back(problem, sequence, k, interpolated(y, scaling.y.shift[k]))
        })
        .collect();
    let mut path = Vec::with_capacity(sequence.n_rows() * shown.len());
    for t in 0..sequence.n_rows() {
        path.extend(shown.iter().map(|&(k, rows)| columns[k][t.saturating_sub(rows)]));
    }
    problem.path_to_internal(&path)
}

fn interpolated(mut y: Vec<f64>, otherwise: f64) -> Vec<f64> {
    let seen: Vec<usize> = (0..y.len()).filter(|&t| !y[t].is_nan()).collect();
    for t in 0..y.len() {
        if !y[t].is_nan() {
            continue;
        }
        let next = seen.partition_point(|&s| s < t);
        let before = next.checked_sub(1).map(|i| seen[i]);
        y[t] = match (before, seen.get(next)) {
            (Some(a), Some(&b)) => y[a] + (y[b] - y[a]) * (t - a) as f64 / (b - a) as f64,
            (Some(a), None) => y[a],
            (None, Some(&b)) => y[b],
            (None, None) => otherwise,
        };
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::SQUARED_EXPONENTIAL;
    use crate::mcmc::settings::StartAt;
    use crate::mcmc::start::find_start;
    use crate::model::scale_prior::ScalePrior;
    use crate::model::spec::{FunctionSpec, InitialSpec, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec};
    use crate::posterior::online::{OnlineFilter, OnlineOptions};
    use crate::posterior::predict::Target;
    use crate::posterior::simulate::{Initial, SimulateOptions};
    use crate::{Functions, KernelSpec, MemorySink, Model, Points, Posterior, Prior, Record, sample};

    fn problem(model: Model, y: &[f64]) -> Problem {
        Problem::new(model, &Functions::new(), Sequence::scalar(y, None).unwrap().into()).unwrap()
    }

    #[test]
    fn the_path_is_the_outputs_and_their_past() {
        let y = [1.0, f64::NAN, 3.0, 5.0, f64::NAN, f64::NAN];
        let problem = problem(Model::lagged_outputs(1, 0, 2), &y);
        let settings = Settings { start_at: StartAt::Outputs, ..Settings::default() };
        let start = find_start(&problem, &settings, 0, &mut |_, _| true).unwrap().unwrap();
        let path = problem.path_to_original(&start.state.paths[0]);
        let expected = [1., 1., 1., 2., 1., 1., 3., 2., 1., 5., 3., 2., 5., 5., 3., 5., 5., 5.];
        for (x, expected) in path.iter().zip(expected) {
            assert!((x - expected).abs() < 1e-12, "{path:?}");
        }
        assert_eq!(start.state.sweep, 0);
        assert!(start.log_marginal_likelihood.is_finite());
    }

    /// Rows that the model does not learn from may as well not be there: the same draws of theta and the same function as
    /// from the rest of the record alone. Seen failing with inputs one row off, and with a presample that the
    /// function, a free run, a filter or the density ignores.
    #[test]
    fn nothing_is_learned_from_presample_rows() {
        const LEAD_IN: usize = 4;
        let y: Vec<f64> = (0..30).map(|t| (0.7 * f64::from(t)).sin() + 0.1 * f64::from(t % 3)).collect();
        let u: Vec<f64> = (0..30).map(|t| f64::from((t * t) % 7) / 3.0).collect();
        let prior = || Prior::LogNormal { median: 1.0, sigma: 1.0 };
        let kernel =
            KernelSpec::new(&SQUARED_EXPONENTIAL).with("sigma_f", prior()).with("ell", vec![prior(); 2]);
        let mut model = Model {
            process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(prior())]),
            sensor: SensorSpec::Gaussian {
                mean: Predictor::default(),
                noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(Prior::Fixed { value: 0.01 })]),
            },
            initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] },
            standardise: false,
            ..Model::observed(1, 1)
        };
        model.states[0].transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
        let settings = Settings { chains: 1, tune: 3, draws: Some(5), narx: true, ..Settings::default() };
        let fitted = |presample: usize, from: usize| {
            let record = Sequence::scalar(&y[from..], Some(&u[from..])).unwrap().into();
            let model = Model { presample, ..model.clone() };
            let problem = Problem::new(model, &Functions::new(), record).unwrap();
            let sink = MemorySink::new();
            sample(&problem, &settings, &sink, &|_| true).unwrap();
            let chains = sink.into_chains();
            let posterior = Posterior::new(&problem, &chains).unwrap();
            let mut z = Points::new(2);
            z.push(&[0.3, 0.5]);
            let f = posterior.predict_at(&z, Target::Function).unwrap();
            // A new record begins with rows that the model does not learn from either: rows from 4 on are the same.
            let rows = |values: &[f64], to: usize| -> Vec<Vec<f64>> {
                (from..to).map(|t| vec![values[29 - t]]).collect()
            };
            let options = SimulateOptions { n_paths: 5, sensor_noise: false, ..SimulateOptions::default() };
            let filter = OnlineOptions::default();
            let (first, inputs) = (rows(&y, 8), rows(&u, 12));
            let run =
                posterior.simulate_from_record(&first, &inputs, &options, &filter, &|_, _| true).unwrap();
            // Nor does a filter judge its functions by them.
            let mut online = OnlineFilter::new(&posterior, &Initial::Model, &filter).unwrap();
            let estimates = (0..=presample + 1).map(|t| online.step(&[y[29 - t]], &[u[29 - t]]).unwrap());
            let effective: Vec<f64> = estimates.map(|estimate| estimate.effective_functions).collect();
            assert!(effective[1..=presample].iter().all(|n| *n == effective[0]), "{effective:?}");
            assert_ne!(effective[presample + 1], effective[0]);
            let last: Vec<f64> = (0..5).map(|path| run.y.sample(path)[11 - from]).collect();
            (chains[0].theta.clone(), f.mean(0).to_vec(), f.sd(0, 0), last)
        };
        assert_eq!(fitted(LEAD_IN, 0), fitted(0, LEAD_IN));
        assert_ne!(fitted(LEAD_IN, 0), fitted(0, 0));
        // At most half of a sequence is left out.
        assert_eq!(fitted(25, 0), fitted(14, 0));

        // The density counts the transitions that are left: it does not depend on the units inside.
        let record: Record = Sequence::scalar(&y, Some(&u)).unwrap().into();
        let joint = |standardise: bool| {
            let model = Model { presample: LEAD_IN, standardise, ..model.clone() };
            let problem = Problem::new(model, &Functions::new(), record.clone()).unwrap();
            let paths = vec![path(&problem, &problem.sequences()[0], &[(0, 0)])];
            let theta = [1.5, 0.7, 2.0, 0.4, 0.01];
            let mut work = PathDensityWork::default();
            Conditional::new(&problem, &paths, &theta, &mut work).log_joint(&theta).0
        };
        assert!((joint(true) - joint(false)).abs() < 1e-8, "{} {}", joint(true), joint(false));

        let problem = Problem::new(Model { presample: LEAD_IN, ..model }, &Functions::new(), record).unwrap();
        let drawn = Settings { narx: false, ..settings };
        let error = drawn.check(&problem).unwrap_err();
        assert!(error.to_string().contains("presample is for states that are held"), "{error}");
    }

    /// A row without an output may as well be the border between two sequences, and with a lag so may the one after it: the same
    /// draws of theta.
    #[test]
    fn nothing_is_learned_from_missing_outputs() {
        let mut y: Vec<f64> = (0..30).map(|t| (0.7 * f64::from(t)).sin() + 0.1 * f64::from(t % 3)).collect();
        let prior = || Prior::LogNormal { median: 1.0, sigma: 1.0 };
        let theta = |sequences: Vec<Sequence>, lags: usize, presample: usize, skip_missing: bool| {
            let ell = vec![prior(); lags + 1];
            let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL).with("sigma_f", prior()).with("ell", ell);
            let mut model = Model {
                process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(prior())]),
                initial: InitialSpec::Gaussian { mean: vec![0.0; lags + 1], sd: vec![1.0; lags + 1] },
                standardise: false,
                presample,
                skip_missing,
                ..Model::lagged_outputs(1, 0, lags)
            };
            model.states[0].transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
            if let SensorSpec::Gaussian { noise, .. } = &mut model.sensor {
                let value = ScalePrior::on_sd(Prior::Fixed { value: 0.01 });
                *noise = SensorNoiseSpec::Diagonal(vec![value]);
            }
            let problem = Problem::new(model, &Functions::new(), Record::new(sequences).unwrap()).unwrap();
            let settings = Settings { chains: 1, tune: 3, draws: Some(5), narx: true, ..Settings::default() };
            let sink = MemorySink::new();
            sample(&problem, &settings, &sink, &|_| true).map(|_| sink.into_chains()[0].theta.clone())
        };
        let whole = |y: &[f64]| vec![Sequence::scalar(y, None).unwrap()];
        let cut = |y: &[f64]| {
            vec![Sequence::scalar(&y[..12], None).unwrap(), Sequence::scalar(&y[13..], None).unwrap()]
        };
        let apart = [0, 1].map(|lags| theta(cut(&y), lags, lags, false).unwrap());
        let all = theta(whole(&y), 0, 0, true).unwrap();
        assert_eq!(all, theta(whole(&y), 0, 0, false).unwrap());
        y[12] = f64::NAN;
        for lags in [0, 1] {
            let skipped = theta(whole(&y), lags, lags, true).unwrap();
            assert_eq!(skipped, apart[lags]);
            assert_ne!(skipped, all);
        }
        let error = theta(whole(&y), 0, 0, false).unwrap_err();
        assert!(error.to_string().contains("set skip_missing in the model"), "{error}");
        (0..30).step_by(2).for_each(|t| y[t] = f64::NAN);
        let error = theta(whole(&y), 0, 0, true).unwrap_err();
        assert!(error.to_string().contains("no transition has all its past outputs"), "{error}");
    }

    #[test]
    fn hidden_states_are_refused() {
        let hidden = problem(Model::with_hidden_states(2, 1, 0), &[0.0, 1.0, 0.5, 0.2]);
        let settings = Settings { start_at: StartAt::Outputs, ..Settings::default() };
        let error = find_start(&hidden, &settings, 0, &mut |_, _| true).unwrap_err();
        assert!(error.to_string().contains("outputs or their lags"), "{error}");
    }
}
