//! Predictions one step ahead: what is left of the outputs should be white, unrelated to the inputs, and as uncertain as it was
//! said to be.

use gpssm::posterior::{Initial, standard_quantile};
use gpssm::{Error, Record};
use serde::{Deserialize, Serialize};

use super::statistics::{correlation, largest_correlation, ljung_box, uniform};
use super::{CheckOptions, LEVEL, Test};
use crate::fitted::FittedModel;

/// Lags that are looked at, at the most; an eighth of the rows where that is less.
const MOST_LAGS: usize = 25;
const LAGS_OF_ROWS: usize = 8;
/// Fewest residuals that are tested.
const FEWEST: usize = 20;
/// Rows that are named as surprising, and the residual from which on they are.
const MOST_SURPRISES: usize = 10;
const SURPRISE: f64 = 3.0;

/// Correlation of residuals with an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossCorrelation {
    /// Input.
    pub input: String,
    /// Rows from the input to the residual; below zero the input follows the residual, as under feedback.
    pub lags: Vec<i64>,
    /// Correlations; NaN of an input that is constant.
    pub values: Vec<f64>,
    /// Of the largest one at lags from zero on.
    pub p: Option<f64>,
}

/// A row whose output the model did not expect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surprise {
    /// Sequence and row of the record, from 0.
    pub at: (usize, usize),
    /// What was measured.
    pub measured: f64,
    /// Median of the prediction.
    pub predicted: f64,
    /// Normal score of the prediction at what was measured.
    pub residual: f64,
}

/// Predictions of one output, one row of the model ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputResiduals {
    /// Output.
    pub output: String,
    /// Rows of the record, by sequence.
    pub rows: Vec<Vec<usize>>,
    /// Normal scores of the predictions; NaN where nothing was measured.
    pub residuals: Vec<Vec<f64>>,
    /// Probability integral transforms of what was measured.
    pub pit: Vec<f64>,
    /// Autocorrelation at lags 1, 2, ...
    pub autocorrelation: Vec<f64>,
    /// Of the test that all of them are zero.
    pub white_p: Option<f64>,
    /// Of the test that the transforms are uniform.
    pub pit_p: Option<f64>,
    /// By input.
    pub cross: Vec<CrossCorrelation>,
    /// Rows that were not expected, the worst first.
    pub surprises: Vec<Surprise>,
}

impl OutputResiduals {
    /// Number of residuals.
    pub fn n(&self) -> usize {
        self.pit.len()
    }

    pub(super) fn tests(&self) -> Vec<Test> {
        let test = |name: &str, p, meaning: &str| Test::new(name, &self.output, p, LEVEL, meaning);
        let mut tests = vec![
            test(
                "residuals are white",
                self.white_p,
                "the past holds information that the model does not use: more states or lags may help",
            ),
            test(
                "predictions are calibrated",
                self.pit_p,
                "intervals one step ahead are too wide, too narrow or shifted; see the histogram",
            ),
        ];
        tests.extend(self.cross.iter().filter(|cross| cross.values.iter().all(|r| r.is_finite())).map(
            |cross| {
                let name = format!("residuals do not follow {}", cross.input);
                test(
                    &name,
                    cross.p,
                    "the input acts in a way that the model misses: more past inputs or states may help",
                )
            },
        ));
        tests
    }
}

pub(super) fn residuals<P: Fn(usize, usize) -> bool>(
    fitted: &FittedModel,
    record: &Record,
    inputs: &[String],
    options: &CheckOptions,
    progress: &dyn Fn(usize) -> P,
) -> Result<Vec<OutputResiduals>, Error> {
    let every = fitted.layout.every;
    let names = fitted.posterior.problem().model().output_names();
    let mut all: Vec<OutputResiduals> = names
        .into_iter()
        .map(|output| OutputResiduals {
            output,
            rows: Vec::new(),
            residuals: Vec::new(),
            pit: Vec::new(),
            autocorrelation: Vec::new(),
            white_p: None,
            pit_p: None,
            cross: Vec::new(),
            surprises: Vec::new(),
        })
        .collect();
    // Inputs beside the residuals, by input and sequence.
    let mut beside: Vec<Vec<Vec<f64>>> = vec![Vec::new(); inputs.len()];
    for (s, measured) in record.sequences().iter().enumerate() {
        let seen = fitted.rows(measured)?;
        let skip = fitted.memory().max(5).div_ceil(every).min(seen.n_rows() / 2).max(1);
        let filter = &options.filter;
        let run = fitted.posterior.predict_ahead(
            &seen,
            1,
            options.n_paths,
            &Initial::Model,
            filter,
            &progress(s),
        )?;
        if run.y.n_rows() + 1 < seen.n_rows() {
            return Err(Error::settings("check", "stopped before the end of the record"));
        }
        for (k, found) in all.iter_mut().enumerate() {
            let (mut rows, mut residuals) = (Vec::new(), Vec::new());
            for t in skip..seen.n_rows() {
                let y = seen.y(t)[k];
                rows.push(t * every);
                if y.is_nan() {
                    residuals.push(f64::NAN);
                    continue;
                }
                let pit = run.y.pit(t - 1, k, y);
                // Beyond all samples nothing more is known than that.
                let beyond = 0.5 / options.n_paths as f64;
                let residual = standard_quantile(pit.clamp(beyond, 1.0 - beyond));
                found.pit.push(pit);
                residuals.push(residual);
                if residual.abs() >= SURPRISE.min(standard_quantile(1.0 - beyond)) {
                    let predicted = run.y.quantile(t - 1, k, 0.5);
                    found.surprises.push(Surprise { at: (s, t * every), measured: y, predicted, residual });
                }
            }
            found.rows.push(rows);
            found.residuals.push(residuals);
        }
        for (c, series) in beside.iter_mut().enumerate() {
            series.push((skip..seen.n_rows()).map(|t| measured.u(t * every)[c]).collect());
        }
    }
    all.iter_mut().for_each(|found| finish(found, inputs, &beside));
    Ok(all)
}

/// Tests of the residuals of one output.
fn finish(found: &mut OutputResiduals, inputs: &[String], beside: &[Vec<Vec<f64>>]) {
    let n = found.n();
    let size = |surprise: &Surprise| (surprise.measured - surprise.predicted).abs();
    found
        .surprises
        .sort_by(|a, b| b.residual.abs().total_cmp(&a.residual.abs()).then(size(b).total_cmp(&size(a))));
    found.surprises.truncate(MOST_SURPRISES);
    if n < FEWEST {
        return;
    }
    let lags = MOST_LAGS.min(n / LAGS_OF_ROWS) as i64;
    let own: Vec<(f64, usize)> =
        (1..=lags).map(|lag| correlation(&found.residuals, &found.residuals, lag)).collect();
    found.white_p = ljung_box(&own, n);
    found.autocorrelation = own.into_iter().map(|(r, _)| r).collect();
    found.pit_p = uniform(&found.pit);
    found.cross = inputs
        .iter()
        .zip(beside)
        .map(|(input, series)| {
            let range: Vec<i64> = (-lags / 3..=lags).collect();
            let all: Vec<(f64, usize)> =
                range.iter().map(|lag| correlation(&found.residuals, series, *lag)).collect();
            let caused: Vec<(f64, usize)> =
                range.iter().zip(&all).filter(|(lag, _)| **lag >= 0).map(|(_, r)| *r).collect();
            let values = all.into_iter().map(|(r, _)| r).collect();
            CrossCorrelation { input: input.clone(), lags: range, values, p: largest_correlation(&caused) }
        })
        .collect();
}
