//! The distilled model beside the full posterior on the training record: in a free run, and one step ahead.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::points::Points;
use crate::posterior::distilled::{Distilled, DistilledFunction};
use crate::posterior::observe::{outputs, sensor_mean};
use crate::posterior::online::{OnlineFilter, OnlineOptions};
use crate::posterior::simulate::{Initial, SimulateOptions};
use crate::posterior::{Posterior, Stream, allocate, stream_for};
use crate::record::Sequence;
use crate::smc::proposal::Proposal;

/// Errors of both on the same rows, by output. None where a run diverged or, for fits, where the output is constant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DistilComparison {
    /// Rows that were scored.
    pub n_rows: usize,
    /// RMSE of the posterior, original units.
    pub posterior_rmse: Vec<Option<f64>>,
    /// RMSE of the distilled model.
    pub distilled_rmse: Vec<Option<f64>>,
    /// 100 (1 - RMSE / sd(y)) of the posterior.
    pub posterior_fit: Vec<Option<f64>>,
    /// The same of the distilled model.
    pub distilled_fit: Vec<Option<f64>>,
}

impl DistilComparison {
    /// The largest loss of fit in percentage points with its output; infinite if the distilled model alone has no fit.
    pub fn largest_loss(&self) -> Option<(usize, f64)> {
        let pairs = self.posterior_fit.iter().zip(&self.distilled_fit).enumerate();
        // Below zero both are worse than a constant: there is nothing to lose.
        let losses = pairs.filter_map(|(k, (full, small))| {
            Some((k, full.as_ref()?.max(0.0) - small.map_or(f64::NEG_INFINITY, |small| small.max(0.0))))
        });
        losses.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Rows of the training record that are looked at, paths and particles of the runs.
const ROWS: usize = 500;
const PATHS: usize = 60;
const PARTICLES: usize = 200;
/// Multiply-adds that the free runs of the posterior may take, about.
const WORK: f64 = 2e10;
/// Rows that set the first state at the least, and rows that are scored at the least.
const FEWEST_INIT: usize = 10;
const FEWEST_SCORED: usize = 5;

/// The record that both are run on, and how.
pub(super) struct Trial {
    sequence: Sequence,
    n_init: usize,
    filter: OnlineOptions,
    /// Medians of the posterior from row `n_init` on, and one step ahead.
    free_run: Vec<f64>,
    one_step: Vec<f64>,
}

impl Posterior {
    /// The posterior on the first rows of the longest training sequence; none if it is too short.
    pub(super) fn trial(&self) -> Result<Option<Trial>, Error> {
        let sequences = self.problem().record().sequences();
        let Some(longest) = sequences.iter().max_by_key(|sequence| sequence.n_rows()) else {
            return Ok(None);
        };
        let size =
            self.problem().basis().map_or(self.problem().record().n_transitions(), |b| b.n_functions());
        let room = WORK / (PATHS as f64 * (size as f64).powi(2) / 2.0 * self.n_x() as f64);
        let sequence = longest.head(longest.n_rows().min((room as usize).clamp(100, ROWS)));
        let memory = self.problem().bind_transition(&self.draws()[0].theta).memory();
        let n_init = (memory + 1).max(FEWEST_INIT).min(sequence.n_rows() / 3);
        if n_init <= memory || sequence.n_rows() < n_init + FEWEST_SCORED {
            return Ok(None);
        }
        let filter = OnlineOptions { functions: 20, particles: 50, ..OnlineOptions::default() };
        let y: Vec<Vec<f64>> = (0..n_init).map(|t| sequence.y(t).to_vec()).collect();
        let u: Vec<Vec<f64>> = (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
        // Without noise on both sides: what is lost is lost by the function alone.
        let has_mean = self.has_sensor_mean();
        let options = SimulateOptions {
            n_paths: PATHS,
            process_noise: false,
            sensor_noise: !has_mean,
            ..SimulateOptions::default()
        };
        let run = self.simulate_from_record(&y, &u, &options, &filter, &|_, _| true)?;
        let ahead = self.predict_ahead(&sequence, 1, 100, &Initial::Model, &filter, &|_, _| true)?;
        let free_run = run.y.medians().split_off(n_init * self.n_y());
        let one_step = ahead.y.medians().split_off((n_init - 1) * self.n_y());
        Ok(Some(Trial { sequence, n_init, filter, free_run, one_step }))
    }

    /// Errors in a free run and one step ahead, both from row `n_init` on.
    pub(super) fn judge(
        &self,
        distilled: &Distilled,
        trial: &Trial,
    ) -> Result<(DistilComparison, DistilComparison), Error> {
        let free_run = self.distilled_free_run(distilled, trial)?;
        let one_step = self.distilled_filter(distilled).and_then(|mut filter| {
            let (filter, sequence) = (&mut filter, &trial.sequence);
            self.predict_ahead_with(filter, sequence, 1, 100, &trial.filter, &|_, _| true)
        });
        // A filter that cannot explain the record has no errors.
        let one_step = one_step.map_or_else(
            |_| vec![f64::NAN; trial.one_step.len()],
            |found| found.y.medians().split_off((trial.n_init - 1) * self.n_y()),
        );
        let compare = |full: &[f64], small: &[f64]| comparison(&trial.sequence, trial.n_init, full, small);
        Ok((compare(&trial.free_run, &free_run), compare(&trial.one_step, &one_step)))
    }

    /// A user's sensor has no mean: it can only be drawn from.
    fn has_sensor_mean(&self) -> bool {
        let mut probe = Points::new(self.n_x() + self.n_u());
        probe.push(&vec![0.0; self.n_x() + self.n_u()]);
        sensor_mean(&self.problem().bind(&self.draws()[0].theta).sensor, &probe).is_some()
    }

    fn distilled_filter(&self, distilled: &Distilled) -> Result<OnlineFilter, Error> {
        OnlineFilter::from_distilled(distilled, self.problem(), PARTICLES, Proposal::Auto, 1)
    }

    /// Medians of noise-free paths of the mean of f, from states that the distilled filter leaves after the first rows.
    fn distilled_free_run(&self, distilled: &Distilled, trial: &Trial) -> Result<Vec<f64>, Error> {
        let (problem, sequence, n_x, n_y) = (self.problem(), &trial.sequence, self.n_x(), self.n_y());
        let mut paths = match self.exact_outputs() {
            Some(shown) if (0..trial.n_init).all(|t| sequence.y(t).iter().all(|y| !y.is_nan())) => {
                let last = trial.n_init - 1;
                let state: Vec<f64> =
                    shown.iter().map(|&(k, rows)| sequence.y(last.saturating_sub(rows))[k]).collect();
                problem.path_to_internal(&state)
            }
            _ => {
                let mut filter = self.distilled_filter(distilled)?;
                for t in 0..trial.n_init {
                    filter.step(sequence.y(t), sequence.u(t))?;
                }
                let found = &filter.filters[0];
                let chosen = allocate(&found.weights, PATHS);
                chosen.iter().flat_map(|i| found.x[i * n_x..(i + 1) * n_x].to_vec()).collect()
            }
        };
        let mut function = DistilledFunction::new(distilled)?;
        let sensor = problem.bind(&distilled.theta).sensor;
        let scaling = problem.scaling();
        let internal = |t: usize| -> Vec<f64> {
            sequence.u(t).iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u)).collect()
        };
        let (mut next, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
        let n_paths = paths.len() / n_x;
        let mut rngs: Vec<ChaCha8Rng> = {
            let mut rng = stream_for(1, Stream::Distilled, 1);
            (0..n_paths).map(|_| ChaCha8Rng::from_rng(&mut rng)).collect()
        };
        let noise = !self.has_sensor_mean();
        let mut medians = Vec::with_capacity(trial.free_run.len());
        for t in trial.n_init..sequence.n_rows() {
            let u = internal(t - 1);
            for x in paths.chunks_exact_mut(n_x) {
                let z = [&*x, &u[..]].concat();
                function.evaluate_internal(&z, &mut next, &mut variance);
                x.copy_from_slice(&next);
            }
            if paths.iter().any(|x| !x.is_finite()) {
                medians.resize(trial.free_run.len(), f64::NAN);
                break;
            }
            let y = outputs(&sensor, scaling, &paths, &internal(t), noise, &mut rngs);
            for k in 0..n_y {
                let mut column: Vec<f64> = y.iter().skip(k).step_by(n_y).copied().collect();
                column.sort_unstable_by(f64::total_cmp);
                medians.push(crate::posterior::quantile(&column, 0.5));
            }
        }
        Ok(medians)
    }
}

/// `full` and `small` begin at row `from`.
fn comparison(sequence: &Sequence, from: usize, full: &[f64], small: &[f64]) -> DistilComparison {
    let n_y = sequence.n_y();
    let mut found = DistilComparison { n_rows: sequence.n_rows() - from, ..DistilComparison::default() };
    for k in 0..n_y {
        let rows: Vec<(usize, f64)> =
            (from..sequence.n_rows()).map(|t| (t, sequence.y(t)[k])).filter(|(_, y)| !y.is_nan()).collect();
        let n = rows.len() as f64;
        let mean = rows.iter().map(|(_, y)| y).sum::<f64>() / n;
        let sd = (rows.iter().map(|(_, y)| (y - mean).powi(2)).sum::<f64>() / n).sqrt();
        let score = |predicted: &[f64]| {
            let errors = rows.iter().map(|(t, y)| (y - predicted[(t - from) * n_y + k]).powi(2));
            let rmse = Some((errors.sum::<f64>() / n).sqrt()).filter(|rmse| rmse.is_finite());
            let varies = sd > 1e-10 * mean.abs().max(f64::MIN_POSITIVE);
            (rmse, rmse.filter(|_| varies).map(|rmse| 100.0 * (1.0 - rmse / sd)))
        };
        let ((full_rmse, full_fit), (small_rmse, small_fit)) = (score(full), score(small));
        found.posterior_rmse.push(full_rmse);
        found.distilled_rmse.push(small_rmse);
        found.posterior_fit.push(full_fit);
        found.distilled_fit.push(small_fit);
    }
    found
}
