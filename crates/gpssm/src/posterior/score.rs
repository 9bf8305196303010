//! How good predictions are: on test records, beside simple baselines.
//!
//! RMSE, NRMSE = RMSE / sd(y), fit = 100 (1 - NRMSE) %, R^2 = 1 - NRMSE^2 and MAE are per output, over the rows
//! from `n_init` on, with missing outputs left out and sd(y) over the same rows (divisor n): the numbers of the
//! nonlinear_benchmarks package.

use serde::{Deserialize, Serialize};

use super::Posterior;
use super::baseline::{Arx, Baseline, Task};
use super::ensemble::{Ensemble, quantile};
use super::mixture::{log_sum_exp, standard_quantile};
use super::online::{OnlineOptions, log_unit};
use super::simulate::{Initial, SimulateOptions, Simulation};
use super::warning::Warning;
use crate::error::Error;
use crate::points::Points;
use crate::record::Sequence;

/// Share of outcomes inside the central interval of a level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Nominal level.
    pub level: f64,
    /// Share of outcomes inside.
    pub share: f64,
}

/// Scores of one output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputScores {
    /// Rows that were scored.
    pub n: usize,
    /// Root mean square error of the median of the samples, or of a baseline's prediction.
    pub rmse: f64,
    /// RMSE over the standard deviation of y; none for a constant y.
    pub nrmse: Option<f64>,
    /// 100 (1 - NRMSE).
    pub fit: Option<f64>,
    /// 1 - NRMSE^2.
    pub r2: Option<f64>,
    /// Mean absolute error of the same.
    pub mae: f64,
    /// Mean CRPS.
    pub crps: f64,
    /// Coverage of central intervals.
    pub coverage: Vec<Coverage>,
    /// Probability integral transform of each scored row: uniform on (0, 1) if calibrated.
    pub pit: Vec<f64>,
}

/// Scores of a model or a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Whose.
    pub name: String,
    /// By output.
    pub outputs: Vec<OutputScores>,
    /// Mean log density of a row of outputs; larger is better.
    pub log_score: f64,
}

/// What is scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreTask {
    /// A free run that sees the outputs of the first `n_init` rows only.
    #[default]
    Simulation,
    /// Predictions this many steps ahead.
    Ahead(usize),
}

/// How a score is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScoreOptions {
    /// Free run or steps ahead.
    pub task: ScoreTask,
    /// Rows at the beginning that are not scored; a free run starts from their outputs.
    pub n_init: usize,
    /// With `n_init` of zero: the record goes on where this training sequence ended; none to start from p(x_0).
    pub after_training: Option<usize>,
    /// Simulated paths or samples.
    pub n_paths: usize,
    /// Levels of the intervals.
    pub levels: Vec<f64>,
    /// The filter, and the seed of everything.
    pub filter: OnlineOptions,
    /// Largest order of the ARX baseline.
    pub max_order: usize,
}

impl Default for ScoreOptions {
    fn default() -> Self {
        Self {
            task: ScoreTask::Simulation,
            n_init: 0,
            after_training: None,
            n_paths: 1000,
            levels: vec![0.5, 0.9, 0.95],
            filter: OnlineOptions::default(),
            max_order: 10,
        }
    }
}

/// The model beside its baselines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreReport {
    /// The model first, then the constant, the linear ARX model and the mean function alone.
    pub scores: Vec<Scores>,
    /// Order of the ARX model.
    pub arx_order: Option<usize>,
    /// What to know.
    pub warnings: Vec<Warning>,
}

/// Scores of point predictions, row-major (row, output), of the rows from `n_init` on.
pub fn point_scores(
    sequence: &Sequence,
    predicted: &[f64],
    n_init: usize,
) -> Result<Vec<OutputScores>, Error> {
    let (n, n_y) = (sequence.n_rows(), sequence.n_y());
    if predicted.len() != n * n_y {
        return Err(Error::data(format!("{} predictions for {n} rows of {n_y} outputs", predicted.len())));
    }
    let score = |k: usize| {
        let rows = (n_init..n).map(|t| (sequence.y(t)[k], predicted[t * n_y + k]));
        let rows: Vec<(f64, f64)> = rows.filter(|(y, _)| !y.is_nan()).collect();
        if rows.is_empty() {
            return Err(Error::data(format!("output {} has no value from row {n_init} on to score", k + 1)));
        }
        let count = rows.len() as f64;
        let mean = rows.iter().map(|(y, _)| y).sum::<f64>() / count;
        let sd = (rows.iter().map(|(y, _)| (y - mean).powi(2)).sum::<f64>() / count).sqrt();
        let rmse = (rows.iter().map(|(y, p)| (y - p).powi(2)).sum::<f64>() / count).sqrt();
        let nrmse = (sd > 1e-10 * mean.abs().max(f64::MIN_POSITIVE)).then(|| rmse / sd);
        Ok(OutputScores {
            n: rows.len(),
            rmse,
            nrmse,
            fit: nrmse.map(|nrmse| 100.0 * (1.0 - nrmse)),
            r2: nrmse.map(|nrmse| 1.0 - nrmse * nrmse),
            mae: rows.iter().map(|(y, p)| (y - p).abs()).sum::<f64>() / count,
            ..OutputScores::default()
        })
    };
    (0..n_y).map(score).collect()
}

/// Scores of samples whose row 0 predicts row `first` of the record, from row `n_init` on. `log_score` are log densities
/// of the predicted rows.
pub fn ensemble_scores(
    name: &str,
    sequence: &Sequence,
    samples: &Ensemble,
    first: usize,
    log_score: &[f64],
    n_init: usize,
    levels: &[f64],
) -> Result<Scores, Error> {
    let (n, n_y) = (sequence.n_rows(), sequence.n_y());
    let from = n_init.max(first);
    // The median: the mean of a free run is hostage to the few paths that run away.
    let mut middles = vec![0.0; first * n_y];
    middles.extend(samples.medians());
    let mut outputs = point_scores(sequence, &middles, from)?;
    for (k, scores) in outputs.iter_mut().enumerate() {
        let mut inside = vec![0usize; levels.len()];
        for t in (from..n).filter(|&t| !sequence.y(t)[k].is_nan()) {
            let y = sequence.y(t)[k];
            let mut sorted = samples.column(t - first, k);
            sorted.sort_unstable_by(f64::total_cmp);
            scores.crps += super::ensemble::crps(&sorted, y) / scores.n as f64;
            scores.pit.push(samples.pit(t - first, k, y));
            for (inside, level) in inside.iter_mut().zip(levels) {
                let low = quantile(&sorted, 0.5 - 0.5 * level);
                let high = quantile(&sorted, 0.5 + 0.5 * level);
                *inside += usize::from(low <= y && y <= high);
            }
        }
        let share = |inside: usize| inside as f64 / scores.n as f64;
        scores.coverage = levels
            .iter()
            .zip(inside)
            .map(|(&level, inside)| Coverage { level, share: share(inside) })
            .collect();
    }
    Ok(Scores { name: name.into(), outputs, log_score: mean_log_score(sequence, log_score, first, from) })
}

/// Log density of each row under Gaussians with the medians of the samples and sds after their 5 % and 95 % quantiles, all
/// outputs on their own; those that are missing are left out.
pub fn band_log_scores(samples: &Ensemble, sequence: &Sequence) -> Vec<f64> {
    const Z: f64 = 1.644_853_626_951_472_2;
    let row = |t: usize| {
        let of_output = |(k, y): (usize, &f64)| {
            let mut sorted = samples.column(t, k);
            sorted.sort_unstable_by(f64::total_cmp);
            let [low, middle, high] = [0.05, 0.5, 0.95].map(|p| quantile(&sorted, p));
            let sd = ((high - low) / (2.0 * Z)).max(f64::MIN_POSITIVE);
            -0.5 * ((y - middle) / sd).powi(2) - sd.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln()
        };
        sequence.y(t).iter().enumerate().filter(|(_, y)| !y.is_nan()).map(of_output).sum()
    };
    (0..sequence.n_rows()).map(row).collect()
}

/// Mean over the rows in which something was observed.
fn mean_log_score(sequence: &Sequence, log_score: &[f64], first: usize, from: usize) -> f64 {
    let rows = (from..sequence.n_rows()).filter(|&t| sequence.y(t).iter().any(|y| !y.is_nan()));
    let (sum, n) = rows.fold((0.0, 0usize), |(sum, n), t| (sum + log_score[t - first], n + 1));
    sum / n.max(1) as f64
}

/// Scores of a baseline whose errors are taken as independent Gaussians.
pub fn baseline_scores(
    baseline: &Baseline,
    sequence: &Sequence,
    from: usize,
    levels: &[f64],
) -> Result<Scores, Error> {
    let n_y = sequence.n_y();
    let mut outputs = point_scores(sequence, &baseline.mean, from)?;
    let mut log_score = vec![0.0; sequence.n_rows()];
    for (k, scores) in outputs.iter_mut().enumerate() {
        let sd = baseline.sd[k];
        let mut inside = vec![0usize; levels.len()];
        for t in (from..sequence.n_rows()).filter(|&t| !sequence.y(t)[k].is_nan()) {
            let error = sequence.y(t)[k] - baseline.mean[t * n_y + k];
            let marginal =
                super::mixture::GaussianMixture { weights: vec![1.0], means: vec![0.0], sds: vec![sd] };
            scores.crps += marginal.crps(error) / scores.n as f64;
            scores.pit.push(marginal.cdf(error));
            log_score[t] += marginal.log_density(error);
            for (inside, level) in inside.iter_mut().zip(levels) {
                *inside += usize::from(error.abs() <= sd * standard_quantile(0.5 + 0.5 * level));
            }
        }
        let n = scores.n as f64;
        scores.coverage =
            levels.iter().zip(inside).map(|(&level, i)| Coverage { level, share: i as f64 / n }).collect();
    }
    let log_score = mean_log_score(sequence, &log_score, 0, from);
    Ok(Scores { name: baseline.name.clone(), outputs, log_score })
}

impl Posterior {
    /// log p(y_t) of every row of a record under a simulation: the densities p(y_t | x_t) mixed over the paths.
    pub fn log_scores_of(&self, simulation: &Simulation, sequence: &Sequence) -> Result<Vec<f64>, Error> {
        let scaling = self.problem().scaling();
        let (n_x, n) = (self.n_x(), simulation.x.n_samples());
        let rows = (0..sequence.n_rows()).map(|t| {
            let y: Vec<f64> =
                sequence.y(t).iter().enumerate().map(|(k, y)| scaling.y.to_internal(k, *y)).collect();
            let u: Vec<f64> =
                sequence.u(t).iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u)).collect();
            let mut log_densities = Vec::with_capacity(n);
            let mut from = 0;
            while from < n {
                let draw = simulation.draws[from];
                let to = from + simulation.draws[from..].iter().take_while(|d| **d == draw).count();
                let mut z = Points::new(n_x + u.len());
                for i in from..to {
                    let x = &simulation.x.sample(i)[t * n_x..(t + 1) * n_x];
                    z.push_parts(&self.problem().path_to_internal(x), &u);
                }
                let mut out = vec![0.0; to - from];
                self.function(draw)?.space.sensor.add_log_density(&y, &z, &mut out);
                log_densities.extend(out.into_iter().filter(|value| !value.is_nan()));
                from = to;
            }
            Ok(log_sum_exp(&log_densities) - (n as f64).ln() - log_unit(scaling, sequence.y(t)))
        });
        rows.collect()
    }

    /// Scores of the model and of three baselines fitted on the same training data: constant, linear ARX, and the mean
    /// function alone (left out for a user's sensor, whose mean is not known).
    pub fn score(
        &self,
        sequence: &Sequence,
        options: &ScoreOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<ScoreReport, Error> {
        self.score_with(sequence, options, None, on_progress)
    }

    /// The same with simulated outputs of a free run that are `reshape`d before they are scored. As their density is not known
    /// then, log scores are [`band_log_scores`].
    pub fn score_with(
        &self,
        sequence: &Sequence,
        options: &ScoreOptions,
        reshape: Option<&dyn Fn(&Ensemble) -> Ensemble>,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<ScoreReport, Error> {
        self.check_record(sequence)?;
        if options.n_init >= sequence.n_rows() {
            return Err(Error::settings(
                "n_init",
                format!(
                    "{} of {} rows are dropped: nothing is left to score",
                    options.n_init,
                    sequence.n_rows()
                ),
            ));
        }
        if let Some(level) = options.levels.iter().find(|level| !(**level > 0.0 && **level < 1.0)) {
            return Err(Error::settings("levels", format!("{level} is not in (0, 1)")));
        }
        let rows = |t: usize| sequence.u(t).to_vec();
        let inputs: Vec<Vec<f64>> = (0..sequence.n_rows()).map(rows).collect();
        let n_init = options.n_init;
        let (model, task, state, warnings) = match options.task {
            ScoreTask::Simulation => {
                let simulate = SimulateOptions {
                    n_paths: options.n_paths,
                    seed: options.filter.seed,
                    ..Default::default()
                };
                let run = if let (0, Some(training)) = (n_init, options.after_training) {
                    self.simulate_on(training, &inputs, &simulate, on_progress)?
                } else if n_init == 0 {
                    self.simulate(&inputs, &Initial::Model, &simulate, on_progress)?
                } else {
                    let y: Vec<Vec<f64>> = (0..n_init).map(|t| sequence.y(t).to_vec()).collect();
                    self.simulate_from_record(&y, &inputs, &simulate, &options.filter, on_progress)?
                };
                let (y, log_scores) = match reshape {
                    Some(reshape) => {
                        let y = reshape(&run.y);
                        let log_scores = band_log_scores(&y, sequence);
                        (y, log_scores)
                    }
                    None => (run.y.clone(), self.log_scores_of(&run, sequence)?),
                };
                let scores = ensemble_scores("model", sequence, &y, 0, &log_scores, n_init, &options.levels)?;
                let row = n_init.max(1) - 1;
                let state: Vec<f64> = (0..self.n_x()).map(|d| run.x.mean(row, d)).collect();
                (scores, Task::FreeRun { n_init }, Some(state), run.warnings)
            }
            ScoreTask::Ahead(k) => {
                let run = self.predict_ahead(
                    sequence,
                    k,
                    options.n_paths,
                    &Initial::Model,
                    &options.filter,
                    on_progress,
                )?;
                if run.y.n_rows() + k < sequence.n_rows() {
                    return Err(Error::settings("score", "stopped before the end of the record"));
                }
                let scores =
                    ensemble_scores("model", sequence, &run.y, k, &run.log_score, n_init, &options.levels)?;
                (scores, Task::Ahead { k }, None, run.warnings)
            }
        };
        let from = match task {
            Task::FreeRun { n_init } => n_init,
            Task::Ahead { k } => n_init.max(k),
        };
        let mut report = ScoreReport { scores: vec![model], arx_order: None, warnings };
        let training = self.problem().record();
        let mut baselines = vec![Baseline::constant(training, sequence)];
        if let Some(arx) = Arx::fit(training, options.max_order) {
            report.arx_order = Some(arx.order());
            baselines.push(arx.baseline(training, sequence, task));
        }
        baselines.extend(self.mean_function_baseline(sequence, task, state.as_deref(), &options.filter)?);
        for baseline in &baselines {
            match baseline.mean.iter().chain(&baseline.sd).all(|value| value.is_finite()) {
                true => report.scores.push(baseline_scores(baseline, sequence, from, &options.levels)?),
                false => {
                    report.warnings.push(Warning::BaselineDiverged { name: baseline.name.clone() });
                }
            }
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of a Gaussian give its log density; a missing output says nothing.
    /// Seen failing without the logarithm of the width.
    #[test]
    fn band_log_scores_are_those_of_a_gaussian() {
        let z = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|z: f64| 1.644_853_626_951_472_2 * z / 1.8);
        // With five samples the 5 % and 95 % quantiles lie a fifth of the way from the outer to the next ones.
        let (mean, sd) = ([3.0, -1.0], [0.5, 2.0]);
        let values = z.iter().flat_map(|z| [mean[0] + sd[0] * z, mean[1] + sd[1] * z]).collect();
        let samples = Ensemble::new(5, 1, 2, values);
        let density = |y: f64, k: usize| {
            -0.5 * ((y - mean[k]) / sd[k]).powi(2) - (sd[k] * (2.0 * std::f64::consts::PI).sqrt()).ln()
        };
        let of =
            |y: [f64; 2]| band_log_scores(&samples, &Sequence::new(vec![y.to_vec()], Vec::new()).unwrap())[0];
        assert!((of([3.4, 0.2]) - density(3.4, 0) - density(0.2, 1)).abs() < 1e-12);
        assert!((of([f64::NAN, 0.2]) - density(0.2, 1)).abs() < 1e-12);
    }
}
