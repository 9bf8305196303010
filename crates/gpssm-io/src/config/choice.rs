//! What `states = "auto"` tried: kept with the run for its report.

use gpssm_identify::auto::{Choice, Trial};
use serde::{Deserialize, Serialize};

/// The candidates, and which was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChoiceConfig {
    /// In the order in which they were tried.
    pub trials: Vec<TrialConfig>,
    /// Place of the one that was chosen, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<usize>,
    /// CRPS of a constant over the same rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant_crps: Option<f64>,
    /// CRPS of the best linear model over the same rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear_crps: Option<f64>,
}

/// A candidate, and how its free runs over held-out rows went; without scores if it could not be fitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrialConfig {
    /// In words.
    pub candidate: String,
    /// CRPS, relative to the spread of the outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crps: Option<f64>,
    /// Root mean square error, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Share of the outputs in the 90 % intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage_90: Option<f64>,
}

impl From<&Trial> for TrialConfig {
    fn from(trial: &Trial) -> Self {
        Self {
            candidate: trial.candidate.describe(),
            crps: trial.crps,
            rmse: trial.crps.map(|_| trial.rmse),
            coverage_90: trial.crps.map(|_| trial.coverage),
        }
    }
}

impl From<&Choice> for ChoiceConfig {
    fn from(choice: &Choice) -> Self {
        Self {
            trials: choice.trials.iter().map(TrialConfig::from).collect(),
            chosen: choice.chosen,
            constant_crps: choice.constant_crps,
            linear_crps: choice.linear_crps,
        }
    }
}
