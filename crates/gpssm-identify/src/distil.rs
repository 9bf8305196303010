//! The distilled model of a fitted one: it knows how rows of a record become rows of the model.

use gpssm::Error;
use gpssm::posterior::{DistilOptions, Distilled, DistilledRows};

use crate::fitted::FittedModel;

impl FittedModel {
    /// One sparse Gaussian process in place of all draws, see [`gpssm::Posterior::distil`]; sampling time and unit are those of
    /// the options, everything else about rows is the model's own.
    pub fn distil(&self, options: &DistilOptions) -> Result<Distilled, Error> {
        let layout = self.layout;
        let rows = DistilledRows {
            every: layout.every,
            input_lags: layout.input_lags,
            delay: layout.delay,
            ..options.rows.clone()
        };
        self.posterior.distil(&DistilOptions { rows, ..options.clone() })
    }
}
