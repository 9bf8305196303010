//! Which of several fitted models predicts a record best, one step ahead.
//!
//! The one-step log score sum_t log p(y_t | y_{0:t-1}) is the evidence of the record under the learned model. Leave-one-out on
//! p(y_t | x_t) would mislead: the states were drawn given y_t itself.

use serde::{Deserialize, Serialize};

use super::Posterior;
use super::online::OnlineOptions;
use super::simulate::Initial;
use super::warning::Warning;
use crate::error::Error;
use crate::record::Sequence;

/// A model's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranked {
    /// Its name.
    pub name: String,
    /// Mean one-step log score of a row.
    pub log_score: f64,
    /// How much less than the best.
    pub difference: f64,
    /// Standard error of the difference, rows taken as independent.
    pub standard_error: f64,
    /// Log scores of the rows from `n_init` on.
    pub rows: Vec<f64>,
    /// What to know.
    pub warnings: Vec<Warning>,
}

/// Models by their mean one-step log score on a record, best first; the first `n_init` rows are filtered but not
/// scored, nor those whose past some model cannot know, and rows without an observed output are left out.
pub fn compare(
    models: &[(&str, &Posterior)],
    sequence: &Sequence,
    n_init: usize,
    options: &OnlineOptions,
    on_progress: &dyn Fn(usize, usize) -> bool,
) -> Result<Vec<Ranked>, Error> {
    let presample =
        models.iter().map(|(_, posterior)| posterior.problem().model().presample).max().unwrap_or(0);
    let n_init = if presample > 0 { n_init.max(presample + 1) } else { n_init };
    let scored: Vec<usize> =
        (n_init..sequence.n_rows()).filter(|&t| sequence.y(t).iter().any(|y| !y.is_nan())).collect();
    if scored.is_empty() {
        return Err(Error::settings("n_init", "no row with an observed output is left to score"));
    }
    let mut ranked = Vec::new();
    for (m, (name, posterior)) in models.iter().enumerate() {
        if !on_progress(m, models.len()) {
            break;
        }
        let filtered = posterior.filter(sequence, &Initial::Model, options, &|_, _| true)?;
        let rows: Vec<f64> = scored.iter().map(|&t| filtered.log_marginal_likelihood[t]).collect();
        ranked.push(((*name).into(), rows, filtered.warnings));
    }
    Ok(rank(ranked))
}

/// Models by the mean of the log scores of their rows, which are the same rows for all of them; best first.
pub fn rank(models: Vec<(String, Vec<f64>, Vec<Warning>)>) -> Vec<Ranked> {
    let place = |(name, rows, warnings): (String, Vec<f64>, Vec<Warning>)| {
        let log_score = rows.iter().sum::<f64>() / rows.len() as f64;
        Ranked { name, log_score, difference: 0.0, standard_error: 0.0, rows, warnings }
    };
    let mut ranked: Vec<Ranked> = models.into_iter().map(place).collect();
    ranked.sort_by(|a, b| b.log_score.total_cmp(&a.log_score));
    let Some(best) = ranked.first().map(|best| best.rows.clone()) else { return ranked };
    let n = best.len() as f64;
    for model in &mut ranked {
        let differences: Vec<f64> = best.iter().zip(&model.rows).map(|(a, b)| a - b).collect();
        model.difference = differences.iter().sum::<f64>() / n;
        let variance = differences.iter().map(|d| (d - model.difference).powi(2)).sum::<f64>() / n;
        model.standard_error = (variance / n).sqrt();
    }
    ranked
}
