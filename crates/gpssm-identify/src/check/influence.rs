//! Rows that the estimates hang on: how far the hyper-parameters would move if a row were not there.
//!
//! Draws are weighted by 1 / p(y_t | x_t, theta). The states were drawn given y_t, so rows that stand out here do stand out, and
//! others may hide. With a precise sensor few draws carry all the weight and nothing can be said; such rows are left out.

use serde::{Deserialize, Serialize};

use super::statistics::moments;
use crate::fitted::FittedModel;

/// Rows that are named.
const MOST: usize = 10;
/// Share of the draws that must carry the weight.
const FEWEST_SHARE: f64 = 0.1;

/// A row and what hangs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Influence {
    /// Sequence and row of the model, from 0.
    pub at: (usize, usize),
    /// Largest change of the mean of a hyper-parameter, in its posterior standard deviations.
    pub change: f64,
    /// Which.
    pub parameter: String,
    /// Effective number of draws behind this, of all.
    pub effective: f64,
}

pub(super) fn influence(fitted: &FittedModel) -> Vec<Influence> {
    let posterior = &fitted.posterior;
    let (draws, table) = (posterior.draws(), posterior.problem().table());
    let learned: Vec<usize> = (0..table.len()).filter(|k| !table.is_fixed(*k)).collect();
    let of = |k: usize| moments(draws.iter().map(move |draw| draw.theta[k]));
    let usual: Vec<(f64, f64)> = learned.iter().map(|&k| of(k)).collect();
    let found = posterior.log_likelihood();
    let each = found.values.len() / draws.len().max(1);
    let n_rows: usize = posterior.problem().sequences().iter().map(|s| s.n_rows()).sum();
    let width = each / n_rows.max(1);
    let mut all = Vec::new();
    let mut first = 0;
    for (s, sequence) in posterior.problem().sequences().iter().enumerate() {
        for t in 0..sequence.n_rows() {
            let row = first + t;
            let density = |j: usize| -> f64 {
                let values = &found.values[j * each + row * width..j * each + (row + 1) * width];
                values.iter().filter(|value| !value.is_nan()).sum()
            };
            let logs: Vec<f64> = (0..draws.len()).map(|j| -density(j)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if !most.is_finite() {
                continue;
            }
            let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            let square: f64 = weights.iter().map(|w| w * w).sum();
            let change = |(i, &k): (usize, &usize)| {
                let mean = draws.iter().zip(&weights).map(|(draw, w)| w * draw.theta[k]).sum::<f64>() / total;
                let change = (mean - usual[i].0).abs() / usual[i].1;
                (change.is_finite()).then_some((change, k))
            };
            let largest = learned.iter().enumerate().filter_map(change).max_by(|a, b| a.0.total_cmp(&b.0));
            let effective = total * total / square;
            if let Some((change, k)) = largest.filter(|_| effective >= FEWEST_SHARE * draws.len() as f64) {
                let parameter = table.parameters[k].name.clone();
                all.push(Influence { at: (s, t), change, parameter, effective });
            }
        }
        first += sequence.n_rows();
    }
    all.sort_by(|a, b| b.change.total_cmp(&a.change));
    all.truncate(MOST);
    all
}
