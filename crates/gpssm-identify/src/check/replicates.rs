//! Posterior predictive checks: statistics of the record beside those of free runs under the same inputs.

use gpssm::posterior::{SimulateOptions, quantile};
use gpssm::{Error, Record};
use serde::{Deserialize, Serialize};

use super::statistics::{correlation, moments};
use super::{CheckOptions, Test};
use crate::fitted::FittedModel;
use crate::free_run::{FreeRunOptions, Start};

/// What is computed of the outputs of a record and of free runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Mean.
    Mean,
    /// Standard deviation.
    Sd,
    /// Smallest value.
    Smallest,
    /// Largest value.
    Largest,
    /// Third standardised moment.
    Skewness,
    /// Standard deviation of the changes from row to row.
    Roughness,
    /// Correlation of a row with the row before.
    Autocorrelation,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mean,
        Self::Sd,
        Self::Smallest,
        Self::Largest,
        Self::Skewness,
        Self::Roughness,
        Self::Autocorrelation,
    ];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sd => "sd",
            Self::Smallest => "smallest",
            Self::Largest => "largest",
            Self::Skewness => "skewness",
            Self::Roughness => "roughness",
            Self::Autocorrelation => "autocorrelation",
        }
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sd => "standard deviation",
            Self::Smallest => "smallest value",
            Self::Largest => "largest value",
            Self::Skewness => "skewness",
            Self::Roughness => "sd of changes",
            Self::Autocorrelation => "autocorrelation at lag 1",
        }
    }

    /// Of series with gaps.
    fn of(self, series: &[Vec<f64>]) -> f64 {
        let known = series.iter().flatten().copied().filter(|value| value.is_finite());
        let changes = series.iter().flat_map(|values| values.windows(2)).map(|pair| pair[1] - pair[0]);
        let (mean, sd) = moments(known.clone());
        match self {
            Self::Mean => mean,
            Self::Sd => sd,
            Self::Smallest => known.fold(f64::INFINITY, f64::min),
            Self::Largest => known.fold(f64::NEG_INFINITY, f64::max),
            Self::Skewness => moments(known.map(|value| ((value - mean) / sd).powi(3))).0,
            Self::Roughness => moments(changes).1,
            Self::Autocorrelation => correlation(series, series, 1).0,
        }
    }
}

/// A statistic of one output: of the record, and of free runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replicated {
    /// Output.
    pub output: String,
    /// Which.
    pub statistic: Statistic,
    /// Of the record.
    pub observed: f64,
    /// Of every free run.
    pub replicates: Vec<f64>,
    /// Two-sided share of free runs that are as far out; none where it is not defined.
    pub p: Option<f64>,
}

impl Replicated {
    /// 5, 50 and 95 % quantiles of the free runs.
    pub fn quantiles(&self) -> [f64; 3] {
        let mut sorted = self.replicates.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        [0.05, 0.5, 0.95].map(|p| quantile(&sorted, p))
    }

    /// The test fails where the record lies beyond all free runs, or all but one of 400.
    pub(super) fn tests(&self) -> Option<Test> {
        let name = format!("free runs have its {}", self.statistic.title());
        let meaning = "free runs do not look like the record in this respect";
        // The statistic of a constant is not defined, and nothing is wrong with that.
        self.observed.is_finite().then(|| {
            Test::new(&name, &self.output, self.p, 4.5 / (self.replicates.len() + 1) as f64, meaning)
        })
    }
}

pub(super) fn replicated<P: Fn(usize, usize) -> bool>(
    fitted: &FittedModel,
    record: &Record,
    options: &CheckOptions,
    progress: &dyn Fn(usize) -> P,
) -> Result<Vec<Replicated>, Error> {
    let seed = options.filter.seed;
    let run_options = FreeRunOptions {
        simulate: SimulateOptions { n_paths: options.n_paths, seed, ..SimulateOptions::default() },
        filter: options.filter.clone(),
        raw: false,
    };
    let mut runs = Vec::new();
    for (s, sequence) in record.sequences().iter().enumerate() {
        let n_init = fitted.memory().max(5).min(sequence.n_rows() / 2).max(1);
        let run = fitted.free_run(sequence, &Start::Outputs { n_init }, &run_options, &progress(s))?;
        runs.push((n_init, run));
    }
    let n_paths = runs.iter().map(|(_, run)| run.y.n_samples()).min().unwrap_or(0);
    let names = fitted.posterior.problem().model().output_names();
    let mut all = Vec::new();
    for (k, output) in names.iter().enumerate() {
        let observed: Vec<Vec<f64>> = record
            .sequences()
            .iter()
            .zip(&runs)
            .map(|(sequence, (n_init, _))| sequence.output(k).skip(*n_init).collect())
            .collect();
        let path = |i: usize| -> Vec<Vec<f64>> {
            let values = runs.iter().zip(&observed).map(|((n_init, run), observed)| {
                let n_y = names.len();
                let own = run.y.sample(i)[n_init * n_y..].iter().skip(k).step_by(n_y);
                // With the gaps of the record.
                own.zip(observed).map(|(value, y)| if y.is_nan() { f64::NAN } else { *value }).collect()
            });
            values.collect()
        };
        let paths: Vec<Vec<Vec<f64>>> = (0..n_paths).map(path).collect();
        for &statistic in &options.statistics {
            let value = statistic.of(&observed);
            let replicates: Vec<f64> = paths.iter().map(|path| statistic.of(path)).collect();
            let (above, below) = (
                replicates.iter().filter(|other| **other >= value).count() + 1,
                replicates.iter().filter(|other| **other <= value).count() + 1,
            );
            let p = (2.0 * above.min(below) as f64 / (replicates.len() + 1) as f64).min(1.0);
            let p = (value.is_finite() && replicates.iter().all(|value| value.is_finite())).then_some(p);
            all.push(Replicated { output: output.clone(), statistic, observed: value, replicates, p });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known values; a gap takes the changes beside it with it.
    #[test]
    fn statistics_of_a_short_series() {
        let series = [vec![1.0, 2.0, 4.0, f64::NAN, 1.0]];
        let of = |statistic: Statistic| statistic.of(&series);
        assert_eq!([Statistic::Mean, Statistic::Smallest, Statistic::Largest].map(of), [2.0, 1.0, 4.0]);
        assert!((of(Statistic::Sd) - 1.5f64.sqrt()).abs() < 1e-12);
        // Changes of 1 and 2.
        assert!((of(Statistic::Roughness) - 0.5).abs() < 1e-12);
        assert!((of(Statistic::Skewness) - 1.5 / 1.5f64.powf(1.5)).abs() < 1e-12);
    }
}
