//! What the data said about hyper-parameters that the prior did not.

use gpssm::Error;
use gpssm::posterior::{prior_theta, quantile};
use serde::{Deserialize, Serialize};

use crate::fitted::FittedModel;

/// Draws from the prior.
const PRIOR_DRAWS: usize = 1000;
/// Seed of the prior draws.
const SEED: u64 = 1;
/// Width beside that of the prior from which on the data said hardly anything.
const UNINFORMED: f64 = 0.85;

/// Prior and posterior of a hyper-parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Informed {
    /// Its name.
    pub name: String,
    /// 5, 50 and 95 % quantiles of the prior.
    pub prior: [f64; 3],
    /// The same of the posterior.
    pub posterior: [f64; 3],
    /// Width of the 90 % interval over that of the prior, of logarithms where all are positive.
    pub width: f64,
    /// Whether the data said something: the interval is narrower than that of the prior, or elsewhere.
    pub informed: bool,
}

pub(super) fn informed(fitted: &FittedModel) -> Result<Vec<Informed>, Error> {
    let problem = fitted.posterior.problem();
    let table = problem.table();
    let prior: Vec<Vec<f64>> =
        (0..PRIOR_DRAWS).map(|i| prior_theta(problem, SEED, i)).collect::<Result<_, _>>()?;
    let of = |k: usize| {
        let quantiles = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            [0.05, 0.5, 0.95].map(|p| quantile(&values, p))
        };
        let before = quantiles(prior.iter().map(|theta| theta[k]).collect());
        let after = quantiles(fitted.posterior.draws().iter().map(|draw| draw.theta[k]).collect());
        let positive = before.iter().chain(&after).all(|value| *value > 0.0);
        let scaled = |values: [f64; 3]| if positive { values.map(f64::ln) } else { values };
        let (own, others) = (scaled(after), scaled(before));
        let width = (own[2] - own[0]) / (others[2] - others[0]);
        let moved = own[1] < others[0] || own[1] > others[2];
        let informed = width.is_finite() && (width < UNINFORMED || moved);
        let name = table.parameters[k].name.clone();
        Informed { name, prior: before, posterior: after, width, informed }
    };
    Ok((0..table.len()).filter(|k| !table.is_fixed(*k)).map(of).collect())
}
