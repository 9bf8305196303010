//! Scores of several sequences as one.

use gpssm::Sequence;

use crate::evaluation::ScoreReport;
use crate::score::{Coverage, OutputScores, Scores};

/// The scores of one sequence.
pub struct Part<'a> {
    /// The model and its baselines.
    pub report: &'a ScoreReport,
    /// What was scored, as it was measured.
    pub sequence: &'a Sequence,
    /// From which row on.
    pub from: usize,
}

/// Scores over the scored rows of all sequences: what scoring them as one long record without their beginnings would give.
/// A baseline that failed on one of them is left out. Warnings are those of all.
pub fn pooled(parts: &[Part]) -> ScoreReport {
    let Some(first) = parts.first() else { return ScoreReport { scores: Vec::new(), warnings: Vec::new() } };
    let of_name = |name: &str| -> Option<Vec<&Scores>> {
        parts.iter().map(|part| part.report.scores.iter().find(|scores| scores.name == name)).collect()
    };
    let scores = first.report.scores.iter().filter_map(|scores| {
        let all = of_name(&scores.name)?;
        Some(together(&all, parts))
    });
    let mut warnings = Vec::new();
    for warning in parts.iter().flat_map(|part| &part.report.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    ScoreReport { scores: scores.collect(), warnings }
}

/// One model over all sequences.
fn together(all: &[&Scores], parts: &[Part]) -> Scores {
    let n_y = all.iter().map(|scores| scores.outputs.len()).min().unwrap_or(0);
    let outputs = (0..n_y).map(|k| {
        let of: Vec<&OutputScores> = all.iter().map(|scores| &scores.outputs[k]).collect();
        output(&of, spread(parts, k))
    });
    // Rows in which something was observed carry the log score.
    let rows = |part: &Part| {
        let observed = |t: &usize| part.sequence.y(*t).iter().any(|y| !y.is_nan());
        (part.from..part.sequence.n_rows()).filter(observed).count() as f64
    };
    let weights: Vec<f64> = parts.iter().map(rows).collect();
    let total: f64 = weights.iter().sum();
    let logs: Option<Vec<f64>> = all.iter().map(|scores| scores.log_score).collect();
    let log_score = logs.map(|logs| logs.iter().zip(&weights).map(|(log, w)| log * w).sum::<f64>() / total);
    let orders: Vec<_> = all.iter().map(|scores| scores.order).collect();
    let order = orders[0].filter(|_| orders.iter().all(|order| *order == orders[0]));
    Scores { name: all[0].name.clone(), outputs: outputs.collect(), log_score, order }
}

fn output(of: &[&OutputScores], sd: Option<f64>) -> OutputScores {
    let n: usize = of.iter().map(|scores| scores.n).sum();
    let mean = |value: &dyn Fn(&OutputScores) -> f64| {
        of.iter().map(|scores| scores.n as f64 * value(scores)).sum::<f64>() / n as f64
    };
    let rmse = mean(&|scores| scores.rmse.powi(2)).sqrt();
    let nrmse = sd.map(|sd| rmse / sd);
    let levels = of[0].coverage.iter().map(|coverage| coverage.level).enumerate();
    OutputScores {
        n,
        rmse,
        nrmse,
        fit: nrmse.map(|nrmse| 100.0 * (1.0 - nrmse)),
        r2: nrmse.map(|nrmse| 1.0 - nrmse * nrmse),
        mae: mean(&|scores| scores.mae),
        crps: mean(&|scores| scores.crps),
        coverage: levels
            .map(|(i, level)| Coverage { level, share: mean(&|scores| scores.coverage[i].share) })
            .collect(),
        pit: of.iter().flat_map(|scores| scores.pit.iter().copied()).collect(),
    }
}

/// Standard deviation of an output over all scored rows; none for a constant.
fn spread(parts: &[Part], k: usize) -> Option<f64> {
    let of_part = |part: &Part| -> Vec<f64> {
        (part.from..part.sequence.n_rows()).map(|t| part.sequence.y(t)[k]).filter(|y| !y.is_nan()).collect()
    };
    let values: Vec<f64> = parts.iter().flat_map(of_part).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n).sqrt();
    (sd > 1e-10 * mean.abs().max(f64::MIN_POSITIVE)).then_some(sd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::point_scores;

    /// Two sequences are scored as one that follows the other.
    #[test]
    fn two_sequences_are_scored_as_one() {
        let sequence = |y: &[f64]| Sequence::scalar(y, None).unwrap();
        let (a, b) = (sequence(&[9.0, 1.0, 2.0, f64::NAN, 4.0]), sequence(&[7.0, 3.0, 8.0]));
        let (pa, pb) = ([0.0, 1.5, 2.0, 0.0, 3.0], [0.0, 2.0, 9.5]);
        let report = |sequence: &Sequence, predicted: &[f64]| {
            let outputs = point_scores(sequence, predicted, 1).unwrap();
            let scores = Scores { name: "model".into(), outputs, log_score: Some(predicted[1]), order: None };
            ScoreReport { scores: vec![scores], warnings: Vec::new() }
        };
        let (ra, rb) = (report(&a, &pa), report(&b, &pb));
        let parts =
            [Part { report: &ra, sequence: &a, from: 1 }, Part { report: &rb, sequence: &b, from: 1 }];
        let found = pooled(&parts);
        let joined = sequence(&[1.0, 2.0, f64::NAN, 4.0, 3.0, 8.0]);
        let expected = &point_scores(&joined, &[1.5, 2.0, 0.0, 3.0, 2.0, 9.5], 0).unwrap()[0];
        let one = &found.scores[0].outputs[0];
        assert_eq!(one.n, expected.n);
        for (a, b) in [(one.rmse, expected.rmse), (one.mae, expected.mae)] {
            assert!((a - b).abs() < 1e-12);
        }
        assert!((one.fit.unwrap() - expected.fit.unwrap()).abs() < 1e-9);
        assert!((found.scores[0].log_score.unwrap() - (3.0 * 1.5 + 2.0 * 2.0) / 5.0).abs() < 1e-12);
    }
}
