//! Scores of predictions several steps ahead, beside the best linear model.

use gpssm::{Error, Record};
use serde::{Deserialize, Serialize};

use super::CheckOptions;
use crate::evaluation::{ScoreOptions, ScoreReport, ScoreTask};
use crate::fitted::FittedModel;

/// Predictions of one output so many steps ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HorizonScore {
    /// Output.
    pub output: String,
    /// Steps ahead.
    pub steps: usize,
    /// Fit % of the model.
    pub fit: Option<f64>,
    /// Fit % of the best linear model.
    pub linear: Option<f64>,
    /// Share of the outputs inside the 90 % intervals.
    pub inside: Option<f64>,
    /// Mean log density of a row.
    pub log_score: Option<f64>,
}

pub(super) fn scores<P: Fn(usize, usize) -> bool>(
    fitted: &FittedModel,
    record: &Record,
    steps: usize,
    options: &CheckOptions,
    progress: &dyn Fn(usize) -> P,
) -> Result<Vec<HorizonScore>, Error> {
    let options = ScoreOptions {
        task: ScoreTask::Ahead(steps),
        n_paths: options.n_paths,
        filter: options.filter.clone(),
        ..ScoreOptions::default()
    };
    let sequences = record.sequences();
    let reports =
        sequences.iter().enumerate().map(|(s, sequence)| fitted.score(sequence, &options, &progress(s)));
    let reports = reports.collect::<Result<Vec<ScoreReport>, Error>>()?;
    let report = fitted.together(&options, &reports, sequences);
    let names = fitted.posterior.problem().model().output_names();
    let Some(model) = report.scores.first() else { return Ok(Vec::new()) };
    let of = |(k, output): (usize, &String)| {
        let own = &model.outputs[k];
        let linear = report.scores.iter().skip(1).filter(|scores| scores.order.is_some());
        let linear = linear.filter_map(|scores| scores.outputs[k].fit).reduce(f64::max);
        let inside =
            own.coverage.iter().find(|coverage| coverage.level == 0.9).map(|coverage| coverage.share);
        HorizonScore {
            output: output.clone(),
            steps,
            fit: own.fit,
            linear,
            inside,
            log_score: model.log_score,
        }
    };
    Ok(names.iter().enumerate().map(of).collect())
}
