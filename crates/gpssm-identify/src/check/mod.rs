//! Checks of a fitted model on a record: what do its predictions miss?
//!
//! - `residuals`: one step ahead: whiteness, correlation with inputs, calibration
//! - `replicates`: do free runs look like the record, in chosen statistics
//! - `informed`: what the data said about hyper-parameters that the prior did not
//! - `influence`: rows that the estimates hang on
//! - `horizons`: scores of predictions several steps ahead
//! - `statistics`: tests and correlations

mod horizons;
mod influence;
mod informed;
mod replicates;
mod residuals;
mod statistics;

use gpssm::posterior::OnlineOptions;
use gpssm::{Error, Record};
use serde::{Deserialize, Serialize};

pub use horizons::HorizonScore;
pub use influence::Influence;
pub use informed::Informed;
pub use replicates::{Replicated, Statistic};
pub use residuals::{CrossCorrelation, OutputResiduals, Surprise};

use crate::fitted::FittedModel;

/// Level of each kind of test of one output, all its lags together.
pub const LEVEL: f64 = 0.01;

/// How checks are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckOptions {
    /// Free runs that are compared with the record, and samples of each prediction.
    pub n_paths: usize,
    /// Statistics of the record and of free runs.
    pub statistics: Vec<Statistic>,
    /// Steps ahead that are scored; none by default.
    pub horizons: Vec<usize>,
    /// The filter, and the seed of everything.
    pub filter: OnlineOptions,
}

impl Default for CheckOptions {
    fn default() -> Self {
        let filter = OnlineOptions::default();
        Self { n_paths: 400, statistics: Statistic::ALL.to_vec(), horizons: Vec::new(), filter }
    }
}

/// One yes-or-no question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// What is tested.
    pub name: String,
    /// Output.
    pub output: String,
    /// p-value; none where it is not defined, which is no pass.
    pub p: Option<f64>,
    /// Whether it passed.
    pub passed: bool,
    /// What it means if it did not.
    pub meaning: String,
}

impl Test {
    fn new(name: &str, output: &str, p: Option<f64>, level: f64, meaning: &str) -> Self {
        let passed = p.is_some_and(|p| p >= level);
        Self { name: name.into(), output: output.into(), p, passed, meaning: meaning.into() }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Whether the rows are those of the fit, on which every model looks better than it is.
    pub on_training: bool,
    /// All tests.
    pub tests: Vec<Test>,
    /// Predictions one step ahead, by output.
    pub residuals: Vec<OutputResiduals>,
    /// Statistics of the record and of free runs, by output; empty where no free run could be made.
    pub replicated: Vec<Replicated>,
    /// Prior and posterior of each learned hyper-parameter.
    pub informed: Vec<Informed>,
    /// Rows that the estimates hang on, the most influential first; empty for a new record.
    pub influence: Vec<Influence>,
    /// Scores several steps ahead.
    pub horizons: Vec<HorizonScore>,
    /// What could not be checked, and why.
    pub left_out: Vec<String>,
}

impl CheckReport {
    /// Whether every test passed.
    pub fn passed(&self) -> bool {
        self.tests.iter().all(|test| test.passed)
    }
}

/// Checks a model on its training record, or on one that was not used in the fit, as it was measured. `inputs` are the names
/// of its inputs. `on_progress` may end it.
pub fn check(
    fitted: &FittedModel,
    held_out: Option<&Record>,
    inputs: &[String],
    options: &CheckOptions,
    on_progress: &dyn Fn(usize, usize) -> bool,
) -> Result<CheckReport, Error> {
    let record = held_out.unwrap_or(&fitted.training);
    let n_parts = (2 + options.horizons.len()) * record.sequences().len();
    let part = |i: usize| move |done: usize, of: usize| on_progress(i * of + done, n_parts * of);
    let residuals = residuals::residuals(fitted, record, inputs, options, &part)?;
    let mut left_out = Vec::new();
    let first = record.sequences().len();
    let replicated = match replicates::replicated(fitted, record, options, &|s| part(first + s)) {
        Ok(found) => found,
        Err(error) => {
            left_out.push(format!("free runs could not be compared with the record: {error}"));
            Vec::new()
        }
    };
    let mut scores = Vec::new();
    for (i, &k) in options.horizons.iter().enumerate() {
        let first = (2 + i) * record.sequences().len();
        scores.extend(horizons::scores(fitted, record, k, options, &|s| part(first + s))?);
    }
    let influence = if held_out.is_none() { influence::influence(fitted) } else { Vec::new() };
    if held_out.is_none() && influence.is_empty() {
        left_out.push(
            "rows that the estimates hang on: the sensor is so precise that weights of draws say nothing"
                .into(),
        );
    }
    let mut tests: Vec<Test> = residuals.iter().flat_map(OutputResiduals::tests).collect();
    tests.extend(replicated.iter().flat_map(Replicated::tests));
    Ok(CheckReport {
        on_training: held_out.is_none(),
        tests,
        residuals,
        replicated,
        informed: informed::informed(fitted)?,
        influence,
        horizons: scores,
        left_out,
    })
}
