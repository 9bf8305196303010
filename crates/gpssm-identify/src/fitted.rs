//! A fitted model with everything needed to use it.

use std::collections::BTreeSet;

use gpssm::mcmc::ChainDraws;
use gpssm::{Error, Posterior, Record, Sequence};

use crate::calibration::Calibration;
use crate::layout::Layout;

/// A posterior, how records become its rows, and how its prediction intervals are calibrated.
///
/// Records are given as they were measured: every row, without past values of inputs.
#[derive(Debug)]
pub struct FittedModel {
    /// What was learned.
    pub posterior: Posterior,
    /// How the rows of a record become the rows of the model.
    pub layout: Layout,
    /// Of the prediction intervals of free runs.
    pub calibration: Calibration,
    /// The training record as it was measured.
    pub training: Record,
}

impl FittedModel {
    /// `training` is the record as it was measured; none where the model saw it as it is.
    pub fn new(
        posterior: Posterior,
        layout: Layout,
        calibration: Calibration,
        training: Option<Record>,
    ) -> Result<Self, Error> {
        let n_u = posterior.problem().model().n_u;
        let training = match training {
            Some(training) => training,
            None if layout.is_plain() => posterior.problem().record().clone(),
            None => {
                let message = "the rows of the training record as they were measured are missing";
                return Err(Error::data(message));
            }
        };
        let fitted = Self { posterior, layout, calibration, training };
        if fitted.training.n_u() * layout.n_values() != n_u {
            return Err(Error::data(format!(
                "{} inputs with {} past values each make another number than the {n_u} inputs of the model",
                fitted.training.n_u(),
                layout.input_lags
            )));
        }
        Ok(fitted)
    }

    /// Past outputs among the states: the longest chain of lags.
    pub fn lags(&self) -> usize {
        self.posterior.problem().model().most_lags()
    }

    /// Rows of a record that a state and its inputs reach back over.
    pub fn memory(&self) -> usize {
        // A hidden state is as good as a past value of every output.
        let model = self.posterior.problem().model();
        let hidden = (model.states.len() / model.n_y.max(1)).saturating_sub(1);
        self.layout.memory(self.lags().max(hidden))
    }

    /// Inputs of a record, without past values.
    pub fn n_u(&self) -> usize {
        self.training.n_u()
    }

    /// A sequence as the model sees it.
    pub fn rows(&self, sequence: &Sequence) -> Result<Sequence, Error> {
        self.check(sequence)?;
        self.layout.apply(sequence)
    }

    /// Rows of inputs alone, all outputs missing; rows are empty where the model has no inputs.
    pub fn inputs(&self, u: Vec<Vec<f64>>) -> Result<Sequence, Error> {
        let y = vec![vec![f64::NAN; self.training.n_y()]; u.len()];
        Sequence::new(y, if self.n_u() == 0 { Vec::new() } else { u })
    }

    pub(crate) fn check(&self, sequence: &Sequence) -> Result<(), Error> {
        let (n_y, n_u) = (self.training.n_y(), self.n_u());
        if (sequence.n_y(), sequence.n_u()) != (n_y, n_u) {
            return Err(Error::data(format!(
                "the record has {} outputs and {} inputs, the model has {n_y} and {n_u}",
                sequence.n_y(),
                sequence.n_u()
            )));
        }
        Ok(())
    }
}

/// At most so many draws, spread evenly over those of all chains.
pub fn spread_draws(chains: &[ChainDraws], most: usize) -> Vec<ChainDraws> {
    let total: usize = chains.iter().map(|chain| chain.theta.len()).sum();
    if total <= most {
        return chains.to_vec();
    }
    // Places i * total / most of the chains one after another: none twice.
    let wanted: BTreeSet<usize> = (0..most).map(|i| i * total / most).collect();
    let mut first = 0;
    let part = |chain: &ChainDraws| {
        let kept: Vec<usize> = (0..chain.theta.len()).filter(|i| wanted.contains(&(first + i))).collect();
        first += chain.theta.len();
        ChainDraws {
            theta: kept.iter().map(|&i| chain.theta[i].clone()).collect(),
            paths: kept.iter().map(|&i| chain.paths[i].clone()).collect(),
            info: kept.iter().map(|&i| chain.info[i]).collect(),
        }
    };
    chains.iter().map(part).collect()
}
