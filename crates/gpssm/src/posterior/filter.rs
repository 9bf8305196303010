//! Whole records under the learned model: filtered states, smoothed states, and predictions k steps ahead.

use rand::rngs::ChaCha8Rng;

use super::drawn::FunctionDraw;
use super::ensemble::Ensemble;
use super::mixture::log_sum_exp;
use super::observe::outputs;
use super::online::{FunctionFilter, OnlineFilter, OnlineOptions, log_predictive, log_unit};
use super::simulate::Initial;
use super::warning::Warning;
use super::{Posterior, Stream, allocate, stream_for};
use crate::dynamics::predictions::Predictions;
use crate::error::Error;
use crate::linalg::small;
use crate::record::Sequence;
use crate::smc::proposal::sample_gaussian;
use crate::smc::weights::{draw_index, normalise};

/// Filtered states of a record, original units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Filtered {
    /// E[x_t | y_{0:t}], row-major (t, d).
    pub mean: Vec<f64>,
    /// Standard deviations.
    pub sd: Vec<f64>,
    /// log p(y_t | y_{0:t-1}) of each row: the anomaly score, and the one-step log score. Zero where all outputs
    /// are missing.
    pub log_marginal_likelihood: Vec<f64>,
    /// What to know.
    pub warnings: Vec<Warning>,
}

/// Smoothed states of a record, original units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Smoothed {
    /// Trajectories from p(x_{0:T} | y_{0:T}).
    pub x: Ensemble,
    /// The draw that each trajectory belongs to.
    pub draws: Vec<usize>,
    /// log p(y_{0:T}).
    pub log_marginal_likelihood: f64,
    /// What to know.
    pub warnings: Vec<Warning>,
}

/// Predictions of y_{t+k} given y_{0:t}, for every t of a record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HorizonPrediction {
    /// Steps ahead.
    pub k: usize,
    /// Row of the record that row 0 of the samples predicts: k.
    pub first_row: usize,
    /// Samples of y (sample, row, output).
    pub y: Ensemble,
    /// log p(y_{t+k} | y_{0:t}) of each predicted row; zero where all outputs are missing.
    pub log_score: Vec<f64>,
    /// What to know.
    pub warnings: Vec<Warning>,
}

/// A trajectory with its function.
pub(crate) struct FunctionPath {
    pub draw: usize,
    /// x_{0:T}, internal units.
    pub x: Vec<f64>,
    pub weights: Vec<Vec<f64>>,
}

pub(crate) struct FunctionPaths {
    pub paths: Vec<FunctionPath>,
    pub log_marginal_likelihood: f64,
    pub warnings: Vec<Warning>,
}

/// What the filter of one function leaves behind for smoothing.
struct History {
    x: Vec<Vec<f64>>,
    weights: Vec<Vec<f64>>,
    ancestors: Vec<Vec<usize>>,
    predictions: Vec<Predictions>,
    log_marginal_likelihood: f64,
}

impl Posterior {
    pub(crate) fn check_record(&self, sequence: &Sequence) -> Result<(), Error> {
        if (sequence.n_y(), sequence.n_u()) != (self.n_y(), self.n_u()) {
            return Err(Error::data(format!(
                "the record has {} outputs and {} inputs, the model has {} and {}",
                sequence.n_y(),
                sequence.n_u(),
                self.n_y(),
                self.n_u()
            )));
        }
        Ok(())
    }

    /// The record in internal units.
    fn internal(&self, sequence: &Sequence) -> Sequence {
        let scaling = self.problem().scaling();
        sequence.mapped(|k, y| scaling.y.to_internal(k, y), |c, u| scaling.u.to_internal(c, u))
    }

    /// Filtered states and the evidence of every row. `on_progress(row, rows)` stops it by returning false.
    pub fn filter(
        &self,
        sequence: &Sequence,
        initial: &Initial,
        options: &OnlineOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Filtered, Error> {
        self.check_record(sequence)?;
        let mut filter = OnlineFilter::new(self, initial, options)?;
        let mut out = Filtered {
            mean: Vec::new(),
            sd: Vec::new(),
            log_marginal_likelihood: Vec::new(),
            warnings: Vec::new(),
        };
        let mut effective = options.functions as f64;
        for t in 0..sequence.n_rows() {
            if !on_progress(t, sequence.n_rows()) {
                break;
            }
            let estimate = filter.step(sequence.y(t), sequence.u(t))?;
            out.mean.extend(estimate.mean);
            out.sd.extend(estimate.sd);
            out.log_marginal_likelihood.push(estimate.log_marginal_likelihood);
            effective = estimate.effective_functions;
        }
        out.warnings = filter_warnings(filter.restarted(), effective, options.functions);
        Ok(out)
    }

    /// Trajectories from the smoothing distribution under the learned model. Memory O(T K N) for K functions of N particles.
    pub fn smooth(
        &self,
        sequence: &Sequence,
        n_paths: usize,
        options: &OnlineOptions,
    ) -> Result<Smoothed, Error> {
        let smoothed = self.smooth_functions(sequence, n_paths, options)?;
        let values =
            smoothed.paths.iter().flat_map(|path| self.problem().path_to_original(&path.x)).collect();
        Ok(Smoothed {
            x: Ensemble::new(n_paths, sequence.n_rows(), self.n_x(), values),
            draws: smoothed.paths.iter().map(|path| path.draw).collect(),
            log_marginal_likelihood: smoothed.log_marginal_likelihood,
            warnings: smoothed.warnings,
        })
    }

    /// Each function filters the whole record; trajectories are spread over the functions by their evidence and drawn by
    /// backward simulation (Godsill, Doucet, West 2004), or by tracing ancestors where states are lags of others.
    pub(crate) fn smooth_functions(
        &self,
        sequence: &Sequence,
        n_paths: usize,
        options: &OnlineOptions,
    ) -> Result<FunctionPaths, Error> {
        self.check_record(sequence)?;
        options.check()?;
        if n_paths == 0 {
            return Err(Error::settings("n_paths", "at least one path is needed"));
        }
        if let Some(mut exact) = self.smooth_linear(sequence, n_paths, options.functions, options.seed)? {
            let filtered = self.filter(sequence, &Initial::Model, options, &|_, _| true)?;
            exact.log_marginal_likelihood = filtered.log_marginal_likelihood.iter().sum();
            exact.warnings = filtered.warnings;
            return Ok(exact);
        }
        let record = self.internal(sequence);
        let draws = allocate(&self.weights(), options.functions);
        let mut functions = Vec::new();
        for (k, &j) in draws.iter().enumerate() {
            let posterior = self.shared_function(j)?;
            let mut rng = stream_for(options.seed, Stream::Filter, k as u64);
            let function = FunctionDraw::new(&posterior, options.waves, &mut rng)?;
            let weights = function.weights();
            let mut x = Vec::new();
            for _ in 0..options.particles {
                x.extend(self.initial_state(&Initial::Model, j, &mut rng)?);
            }
            let space = std::sync::Arc::new(posterior.space.clone());
            let filter = FunctionFilter::new(Box::new(function), space, x, options.proposal, rng);
            functions.push((j, weights, history(filter, &record, self.problem().model().presample)));
        }
        let log_marginal_likelihood: Vec<f64> = functions
            .iter()
            .map(|(_, _, h)| h.as_ref().map_or(f64::NEG_INFINITY, |h| h.log_marginal_likelihood))
            .collect();
        let mut shares = log_marginal_likelihood.clone();
        if normalise(&mut shares).is_none() {
            return Err(Error::data("no particle of any function can explain the record"));
        }
        let unit: f64 =
            (0..sequence.n_rows()).map(|t| log_unit(self.problem().scaling(), sequence.y(t))).sum();
        let lags = self.function(draws[0])?.space.transition.memory() > 0;
        let moving: Vec<usize> = self.function(draws[0])?.space.transition.moving().collect();
        let mut paths = Vec::with_capacity(n_paths);
        for (i, k) in allocate(&shares, n_paths).into_iter().enumerate() {
            let (draw, weights, Some(history)) = &functions[k] else { continue };
            let mut rng = stream_for(options.seed, Stream::Smooth, i as u64);
            let x = if lags {
                history.trace(self.n_x(), &mut rng)
            } else {
                history.backward(self.n_x(), &moving, &mut rng)
            };
            paths.push(FunctionPath { draw: *draw, x, weights: weights.clone() });
        }
        let dead = log_marginal_likelihood.iter().filter(|e| !e.is_finite()).count() as u64;
        let effective = 1.0 / shares.iter().map(|w| w * w).sum::<f64>();
        Ok(FunctionPaths {
            paths,
            log_marginal_likelihood: log_sum_exp(&log_marginal_likelihood) - (draws.len() as f64).ln() - unit,
            warnings: filter_warnings(dead, effective, draws.len()),
        })
    }

    /// Predictions k steps ahead along a record: from the filtered states of each row, `n_samples` paths of k steps, each with
    /// one function, under the inputs of the record. For a linear-Gaussian sensor the log score mixes the Gaussians of
    /// the last step; otherwise the densities p(y | x) of the sampled states.
    pub fn predict_ahead(
        &self,
        sequence: &Sequence,
        k: usize,
        n_samples: usize,
        initial: &Initial,
        options: &OnlineOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<HorizonPrediction, Error> {
        self.check_record(sequence)?;
        let n = sequence.n_rows();
        if k == 0 || k >= n {
            return Err(Error::settings(
                "horizon",
                format!(
                    "{k} steps ahead is not possible in a record of {n} rows: give 1 .. {}",
                    n.saturating_sub(1)
                ),
            ));
        }
        if n_samples == 0 {
            return Err(Error::settings("n_samples", "at least one sample is needed"));
        }
        let mut filter = OnlineFilter::new(self, initial, options)?;
        self.predict_ahead_with(&mut filter, sequence, k, n_samples, options, on_progress)
    }

    /// The same with a filter at its start, which may be that of another function.
    pub(crate) fn predict_ahead_with(
        &self,
        filter: &mut OnlineFilter,
        sequence: &Sequence,
        k: usize,
        n_samples: usize,
        options: &OnlineOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<HorizonPrediction, Error> {
        let (n, record) = (sequence.n_rows(), self.internal(sequence));
        let mut rows: Vec<Vec<f64>> = Vec::new();
        let mut log_score = Vec::new();
        let mut effective = options.functions as f64;
        for t in 0..n - k {
            if !on_progress(t, n - k) {
                break;
            }
            effective = filter.step(sequence.y(t), sequence.u(t))?.effective_functions;
            let mut rng = stream_for(options.seed, Stream::Horizon, t as u64);
            let (y, score) = self.ahead(filter, &record, t, k, n_samples, &mut rng);
            let finite = y.iter().all(|y| y.is_finite());
            if !finite {
                return Err(Error::data(format!("predictions from row {t} overflowed")));
            }
            rows.push(y);
            log_score.push(score - log_unit(self.problem().scaling(), sequence.y(t + k)));
        }
        let n_y = self.n_y();
        let by_sample = (0..n_samples)
            .flat_map(|i| rows.iter().flat_map(move |row| row[i * n_y..(i + 1) * n_y].to_vec()));
        Ok(HorizonPrediction {
            k,
            first_row: k,
            y: Ensemble::new(n_samples, rows.len(), n_y, by_sample.collect()),
            log_score,
            warnings: filter_warnings(filter.restarted(), effective, options.functions),
        })
    }

    /// Samples of y_{t+k} in original units (sample, output), and log p(y_{t+k} | y_{0:t}) in internal units.
    fn ahead(
        &self,
        filter: &mut OnlineFilter,
        record: &Sequence,
        t: usize,
        k: usize,
        n_samples: usize,
        rng: &mut ChaCha8Rng,
    ) -> (Vec<f64>, f64) {
        let (n_x, y) = (self.n_x(), record.y(t + k));
        let functions = allocate(&filter.function_weights(), n_samples);
        let (mut samples, mut log_densities) = (Vec::new(), Vec::new());
        let mut from = 0;
        while from < n_samples {
            let own = &mut filter.filters[functions[from]];
            let n = functions[from..].iter().take_while(|f| **f == functions[from]).count();
            let mut x = Vec::with_capacity(n * n_x);
            for i in allocate_systematic(&own.weights, n, rng) {
                x.extend_from_slice(&own.x[i * n_x..(i + 1) * n_x]);
            }
            let mut predictions = Predictions::default();
            for s in t..t + k {
                let mut z = crate::points::Points::new(n_x + record.n_u());
                x.chunks_exact(n_x).for_each(|x| z.push_parts(x, record.u(s)));
                own.function.predict(&z, &mut predictions);
                for (i, x) in x.chunks_exact_mut(n_x).enumerate() {
                    sample_gaussian(predictions.mean(i), predictions.chol(i), rng, x);
                }
            }
            let u = record.u(t + k);
            log_densities.extend(log_predictive(&own.space.sensor, &predictions, &x, y, u, n_x));
            let mut rngs: Vec<ChaCha8Rng> = (0..n).map(|_| rand::SeedableRng::from_rng(rng)).collect();
            samples.extend(outputs(&own.space.sensor, self.problem().scaling(), &x, u, true, &mut rngs));
            from += n;
        }
        (samples, log_sum_exp(&log_densities) - (n_samples as f64).ln())
    }
}

/// Indices with given weights, at evenly spaced points with a common random shift.
fn allocate_systematic(weights: &[f64], n: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    crate::smc::resampling::Resampling::Systematic.draw(weights, n, rng)
}

fn filter_warnings(restarted: u64, effective: f64, functions: usize) -> Vec<Warning> {
    let few = functions >= 10 && effective < 0.1 * functions as f64;
    let restarted = (restarted > 0).then_some(Warning::Restarted { n: restarted });
    restarted.into_iter().chain(few.then_some(Warning::FewDraws { effective, of: functions })).collect()
}

/// Runs the filter of one function over a record; none if all its particles die. Rows of the presample are no evidence.
fn history(mut filter: FunctionFilter, record: &Sequence, presample: usize) -> Option<History> {
    let mut history = History {
        x: Vec::new(),
        weights: Vec::new(),
        ancestors: Vec::new(),
        predictions: Vec::new(),
        log_marginal_likelihood: 0.0,
    };
    for t in 0..record.n_rows() {
        let increment = match t {
            0 => filter.start(true, record.y(0), record.u(0))?,
            _ => filter.step(record.u(t - 1), record.y(t), record.u(t))?,
        };
        if !(1..=presample).contains(&t) {
            history.log_marginal_likelihood += increment;
        }
        if t > 0 {
            history.ancestors.push(filter.ancestors.clone());
            history.predictions.push(filter.predictions.clone());
        }
        history.x.push(filter.x.clone());
        history.weights.push(filter.weights.clone());
    }
    Some(history)
}

impl History {
    /// A trajectory: each state given the next one with weights w_t^i p(x_{t+1} | x_t^i).
    fn backward(&self, n_x: usize, moving: &[usize], rng: &mut ChaCha8Rng) -> Vec<f64> {
        let last = self.x.len() - 1;
        let mut path = vec![0.0; self.x.len() * n_x];
        let mut i = draw_index(&self.weights[last], rng);
        path[last * n_x..].copy_from_slice(&self.x[last][i * n_x..(i + 1) * n_x]);
        for t in (0..last).rev() {
            let next = &path[(t + 1) * n_x..(t + 2) * n_x];
            let predictions = &self.predictions[t];
            let p = moving.len();
            let mut weights: Vec<f64> = self.weights[t]
                .iter()
                .enumerate()
                .map(|(i, w)| {
                    let (mean, chol) = (predictions.mean(i), predictions.chol(i));
                    let factor: Vec<f64> =
                        moving.iter().flat_map(|&a| moving.iter().map(move |&b| chol[a * n_x + b])).collect();
                    let mut residual: Vec<f64> = moving.iter().map(|&d| next[d] - mean[d]).collect();
                    w.ln() + small::log_gaussian(&factor, p, &mut residual)
                })
                .collect();
            // The next state has an ancestor, so some weight is positive; else its own line is followed.
            i = match normalise(&mut weights) {
                Some(_) => draw_index(&weights, rng),
                None => self.ancestors[t][i],
            };
            path[t * n_x..(t + 1) * n_x].copy_from_slice(&self.x[t][i * n_x..(i + 1) * n_x]);
        }
        path
    }

    /// The line of ancestors of a particle at the end.
    fn trace(&self, n_x: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let last = self.x.len() - 1;
        let mut path = vec![0.0; self.x.len() * n_x];
        let mut i = draw_index(&self.weights[last], rng);
        for t in (0..=last).rev() {
            path[t * n_x..(t + 1) * n_x].copy_from_slice(&self.x[t][i * n_x..(i + 1) * n_x]);
            if t > 0 {
                i = self.ancestors[t - 1][i];
            }
        }
        path
    }
}
