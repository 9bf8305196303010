//! Leave-future-out cross-validation: how well a model predicts each row from the rows before it, learned from those alone.
//!
//! Row t has the score log p(y_t | y_{0:t-1}), with everything marginalised: hyper-parameters, f and states. A fit to the rows
//! before some row i gives draws (theta, x_{0:i-1}), and each draw a function f. Particle filters take the functions on along the
//! later rows; a function's weight after rows i to t-1 is its likelihood of them, so
//!
//! log p(y_t | y_{0:t-1}) = log sum_s w_s p(y_t | y_{i:t-1}, f_s), with w_s proportional to p(y_{i:t-1} | f_s).
//!
//! The weights are Pareto smoothed; where the shape k of their tail says that they cannot be trusted, the model is fitted again to
//! all rows before t. Bürkner, Gabry and Vehtari (2020), "Approximate leave-future-out cross-validation for Bayesian time series
//! models", Journal of Statistical Computation and Simulation 90(14), 2499-2523; here f and the states are marginalised, too.
//!
//! Priors that follow the scale of the data are those of the whole record in every fit. Of several sequences the last one is cut;
//! the others are known throughout.

use gpssm::diagnostics::{pareto_k_threshold, pareto_smooth};
use gpssm::posterior::{Initial, OnlineFilter, OnlineOptions, Ranked, rank};
use gpssm::{ChainPlan, Ended, Error, MemorySink, Posterior, Problem, Settings, prepare, sample_chains};
use serde::{Deserialize, Serialize};

use crate::fitted::spread_draws;

/// Fewest draws from which the tail of weights can be fitted.
const FEWEST_DRAWS: usize = 25;

/// How it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LfoOptions {
    /// Rows at the beginning that are learned from but not predicted; half of them by default.
    pub n_init: Option<usize>,
    /// Draws of each chain of a fit, after its warm-up.
    pub draws: u64,
    /// Draws that are weighted, spread evenly over those of a fit.
    pub functions: usize,
    /// Particles of each of them.
    pub particles: usize,
    /// Shape of the weights' tail above which the model is fitted again; by default what the number of functions allows, at
    /// most 0.7. Minus infinity fits the model for every row.
    pub k_threshold: Option<f64>,
    /// Seed of the filters.
    pub seed: u64,
}

impl Default for LfoOptions {
    fn default() -> Self {
        Self { n_init: None, draws: 500, functions: 400, particles: 50, k_threshold: None, seed: 1 }
    }
}

/// Scores of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeaveFutureOut {
    /// Rows of the last sequence that were predicted: those with an observed output.
    pub rows: Vec<usize>,
    /// log p(y_t | y_{0:t-1}) of these rows, original units.
    pub log_scores: Vec<f64>,
    /// Shape of the weights' tail at these rows; none just after a fit, where the weights are equal.
    pub pareto_k: Vec<Option<f64>>,
    /// Rows at which the model was fitted to all rows before them.
    pub fits: Vec<usize>,
}

/// A model's place, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LfoRanked {
    /// Its place by the mean score of a row.
    #[serde(flatten)]
    pub place: Ranked,
    /// Rows at which it was fitted.
    pub fits: Vec<usize>,
    /// Largest shape of the weights that were used.
    pub largest_k: Option<f64>,
}

/// Told the rows that are done, all rows, and fits so far; whether to go on.
pub type OnRow<'a> = dyn Fn(usize, usize, usize) -> bool + Sync + 'a;

/// Scores of the last sequence of a problem; none if it was stopped. The fits have the settings of the run, with the draws of the
/// options. The scores depend on seeds alone, not on threads.
pub fn leave_future_out(
    problem: &Problem,
    settings: &Settings,
    options: &LfoOptions,
    on_row: &OnRow,
) -> Result<Option<LeaveFutureOut>, Error> {
    let n_init = n_init(problem, options)?;
    let Some(sequence) = problem.record().sequences().last() else { return Ok(None) };
    let threshold = options.k_threshold.unwrap_or_else(|| pareto_k_threshold(options.functions));
    let n = sequence.n_rows();
    let mut found =
        LeaveFutureOut { rows: Vec::new(), log_scores: Vec::new(), pareto_k: Vec::new(), fits: Vec::new() };
    let mut after: Option<Future> = None;
    for t in n_init..n {
        if !on_row(t - n_init, n - n_init, found.fits.len()) {
            return Ok(None);
        }
        let mut weights = after.as_ref().map(|future| pareto_smooth(&future.log_weights));
        if weights.as_ref().is_none_or(|weights| weights.k.is_nan() || weights.k > threshold) {
            let keep_going = || on_row(t - n_init, n - n_init, found.fits.len());
            let Some(fitted) = Future::new(problem, t, settings, options, &keep_going)? else {
                return Ok(None);
            };
            found.fits.push(t);
            weights = Some(pareto_smooth(&fitted.log_weights));
            after = Some(fitted);
        }
        let (Some(future), Some(weights)) = (after.as_mut(), weights) else { continue };
        future.filter.step(sequence.y(t), sequence.u(t))?;
        let log_densities = future.filter.log_densities();
        if sequence.y(t).iter().any(|y| !y.is_nan()) {
            let terms: Vec<f64> = weights.log_weights.iter().zip(log_densities).map(|(w, p)| w + p).collect();
            found.rows.push(t);
            found.log_scores.push(log_sum_exp(&terms));
            found.pareto_k.push(weights.k.is_finite().then_some(weights.k));
        }
        future.log_weights.iter_mut().zip(log_densities).for_each(|(w, p)| *w += p);
    }
    Ok(Some(found))
}

/// Models of the same record by their mean score of a row, best first; none if it was stopped. Each is a name, a problem and the
/// settings of its run; all are scored on the rows after the longest beginning that one of them needs.
pub fn compare_futures(
    models: &[(&str, &Problem, &Settings)],
    options: &LfoOptions,
    on_row: &(dyn Fn(usize, usize, usize, usize) -> bool + Sync),
) -> Result<Option<Vec<LfoRanked>>, Error> {
    let n_init = models.iter().map(|(_, problem, _)| n_init(problem, options)).max_by_key(rows_or_error);
    let options = LfoOptions { n_init: n_init.transpose()?, ..options.clone() };
    for (name, problem, _) in models {
        if !same_outputs(models[0].1, problem) {
            return Err(Error::data(format!("{} and {name} were fitted to different outputs", models[0].0)));
        }
    }
    let mut scores = Vec::new();
    for (m, (_, problem, settings)) in models.iter().enumerate() {
        let on_row = |done: usize, of: usize, fits: usize| on_row(m, done, of, fits);
        let Some(found) = leave_future_out(problem, settings, &options, &on_row)? else { return Ok(None) };
        scores.push(found);
    }
    let places = models.iter().zip(&scores);
    let places = rank(places.map(|((name, ..), s)| ((*name).into(), s.log_scores.clone(), vec![])).collect());
    let with_fits = |place: Ranked| {
        let own = models.iter().position(|(name, ..)| *name == place.name).unwrap_or(0);
        let largest_k = scores[own].pareto_k.iter().flatten().copied().reduce(f64::max);
        LfoRanked { place, fits: scores[own].fits.clone(), largest_k }
    };
    Ok(Some(places.into_iter().map(with_fits).collect()))
}

/// Errors count as most rows, so that they are seen.
fn rows_or_error(found: &Result<usize, Error>) -> usize {
    found.as_ref().copied().unwrap_or(usize::MAX)
}

/// Whether two models saw the same outputs, missing ones included.
fn same_outputs(a: &Problem, b: &Problem) -> bool {
    let outputs = |problem: &Problem| -> Vec<Vec<Vec<u64>>> {
        let rows = |s: &gpssm::Sequence| {
            (0..s.n_rows())
                .map(|t| s.y(t).iter().map(|y| if y.is_nan() { 0 } else { y.to_bits() }).collect())
                .collect()
        };
        problem.record().sequences().iter().map(rows).collect()
    };
    outputs(a) == outputs(b)
}

/// Rows that are not predicted, checked.
fn n_init(problem: &Problem, options: &LfoOptions) -> Result<usize, Error> {
    if options.draws == 0 || options.particles == 0 {
        let key = if options.draws == 0 { "draws" } else { "particles" };
        return Err(Error::settings(key, "at least one is needed"));
    }
    if options.functions < FEWEST_DRAWS {
        let message = format!("at least {FEWEST_DRAWS} are needed to judge their weights");
        return Err(Error::settings("functions", message));
    }
    let n = problem.record().sequences().last().map_or(0, gpssm::Sequence::n_rows);
    let fewest = problem.model().presample + 2;
    let n_init = options.n_init.unwrap_or((n / 2).max(fewest));
    if n_init < fewest || n_init >= n {
        return Err(Error::settings(
            "n_init",
            format!("{n_init} rows to learn from, of {n}: give {fewest} to {}", n.saturating_sub(1)),
        ));
    }
    Ok(n_init)
}

/// Functions of a fit on their way along the rows after it.
struct Future {
    filter: OnlineFilter,
    /// Log likelihood of the rows since the fit, of each function.
    log_weights: Vec<f64>,
}

impl Future {
    /// Fits the rows before `t`; none if it was stopped.
    fn new(
        problem: &Problem,
        t: usize,
        settings: &Settings,
        options: &LfoOptions,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>, Error> {
        let settings = Settings { draws: Some(options.draws), ..settings.clone() };
        let past = prepare(&problem.until(t)?, &settings)?;
        let plans = (0..settings.chains).map(|chain| ChainPlan { chain, ..ChainPlan::default() }).collect();
        let sink = MemorySink::new();
        let report = sample_chains(&past, &settings, plans, &sink, &|_| keep_going())?;
        if report.ended != Ended::Complete {
            return Ok(None);
        }
        let draws = spread_draws(&sink.into_chains(), options.functions);
        let posterior = Posterior::new(&past, &draws)?;
        let filter = OnlineOptions {
            functions: options.functions,
            particles: options.particles,
            // Every fit has random numbers of its own.
            seed: options.seed.wrapping_add(t as u64),
            ..OnlineOptions::default()
        };
        let last = past.record().sequences().len() - 1;
        let mut filter = OnlineFilter::new(&posterior, &Initial::LastTraining { sequence: last }, &filter)?;
        // The filter begins in the last row of the fit, whose output the states know already.
        let sequence = &past.record().sequences()[last];
        filter.step(&vec![f64::NAN; sequence.n_y()], sequence.u(t - 1))?;
        Ok(Some(Self { filter, log_weights: vec![0.0; options.functions] }))
    }
}

fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f64>().ln()
}
