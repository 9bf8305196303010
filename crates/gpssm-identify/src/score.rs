//! How good predictions are: points, samples and baselines.
//!
//! RMSE, NRMSE = RMSE / sd(y), fit = 100 (1 - NRMSE) %, R^2 = 1 - NRMSE^2 and MAE are per output, over the rows
//! from `n_init` on, with missing outputs left out and sd(y) over the same rows (divisor n): the numbers of the
//! nonlinear_benchmarks package.

use serde::{Deserialize, Serialize};

use gpssm::posterior::{Ensemble, crps, quantile};
use gpssm::{Error, Sequence};

use crate::baseline::Baseline;
use crate::marginal::Errors;

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
    /// Mean log density (log mass, of whole numbers) of a row of outputs; larger is better. None for a baseline where it is not
    /// known which of both the model has.
    pub log_score: Option<f64>,
    /// Order of a linear model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
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
            scores.crps += crps(&sorted, y) / scores.n as f64;
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
    let log_score = Some(mean_log_score(sequence, log_score, first, from));
    Ok(Scores { name: name.into(), outputs, log_score, order: None })
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

/// Scores of a baseline with these errors of each output; without errors the log score is left out, because nobody knows
/// whether that of the model is one of densities or of masses.
pub fn baseline_scores(
    baseline: &Baseline,
    errors: Option<&[Errors]>,
    sequence: &Sequence,
    from: usize,
    levels: &[f64],
) -> Result<Scores, Error> {
    let n_y = sequence.n_y();
    let mut outputs = point_scores(sequence, &baseline.mean, from)?;
    let mut log_score = vec![0.0; sequence.n_rows()];
    for (k, scores) in outputs.iter_mut().enumerate() {
        let errors = errors.map_or(Errors::Gaussian { sd: baseline.sd[k] }, |errors| errors[k]);
        let mut inside = vec![0usize; levels.len()];
        for t in (from..sequence.n_rows()).filter(|&t| !sequence.y(t)[k].is_nan()) {
            let (y, marginal) = (sequence.y(t)[k], errors.around(baseline.mean[t * n_y + k]));
            scores.crps += marginal.crps(y) / scores.n as f64;
            scores.pit.push(marginal.pit(y));
            log_score[t] += marginal.log_density(y);
            for (inside, level) in inside.iter_mut().zip(levels) {
                *inside += usize::from(marginal.contains(y, *level));
            }
        }
        let n = scores.n as f64;
        scores.coverage =
            levels.iter().zip(inside).map(|(&level, i)| Coverage { level, share: i as f64 / n }).collect();
    }
    let log_score = errors.map(|_| mean_log_score(sequence, &log_score, 0, from));
    Ok(Scores { name: baseline.name.clone(), outputs, log_score, order: baseline.order })
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
