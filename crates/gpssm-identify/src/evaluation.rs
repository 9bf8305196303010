//! A fitted model beside its baselines on a record.

use gpssm::posterior::{Initial, OnlineOptions, SimulateOptions, Simulation, Warning};
use gpssm::sensor::OutputSupport;
use gpssm::{Error, Sequence};
use serde::{Deserialize, Serialize};

use crate::baseline::{Baseline, Task, baselines};
use crate::fitted::FittedModel;
use crate::free_run::{FreeRunOptions, PhaseRun, Start};
use crate::marginal::Errors;
use crate::pooled::{Part, pooled};
use crate::score::{Scores, band_log_scores, baseline_scores, ensemble_scores};

/// What is scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreTask {
    /// A free run that sees the outputs of the first `n_init` rows only.
    #[default]
    Simulation,
    /// Predictions this many rows of the model ahead.
    Ahead(usize),
}

/// Fewest rows that set the state of a free run, unless the user asks for fewer, ...
const FEWEST_INIT: usize = 5;
/// ... and fewest that are left to score.
const FEWEST_SCORED: usize = 5;

/// How a score is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScoreOptions {
    /// Free run or steps ahead.
    pub task: ScoreTask,
    /// Rows at the beginning that are not scored; a free run starts from their outputs. Without a number, see
    /// [`FittedModel::n_init`].
    pub n_init: Option<usize>,
    /// With `n_init` of zero: the record goes on where this training sequence ended; none to start from p(x_0).
    pub after_training: Option<usize>,
    /// Simulated paths or samples.
    pub n_paths: usize,
    /// Levels of the intervals.
    pub levels: Vec<f64>,
    /// The filter, and the seed of everything.
    pub filter: OnlineOptions,
    /// Whether the calibration of free runs is left out.
    pub raw: bool,
}

impl Default for ScoreOptions {
    fn default() -> Self {
        Self {
            task: ScoreTask::Simulation,
            n_init: None,
            after_training: None,
            n_paths: 1000,
            levels: vec![0.5, 0.9, 0.95],
            filter: OnlineOptions::default(),
            raw: false,
        }
    }
}

impl ScoreOptions {
    fn start(&self, n_init: usize) -> Start {
        match (n_init, self.after_training) {
            (0, Some(sequence)) => Start::Last { sequence },
            (0, None) => Start::Model,
            (n_init, _) => Start::Outputs { n_init },
        }
    }

    fn check(&self, n_init: usize, n_rows: usize) -> Result<(), Error> {
        if n_init >= n_rows {
            let message = format!("{n_init} of {n_rows} rows are dropped: nothing is left to score");
            return Err(Error::settings("n_init", message));
        }
        match self.levels.iter().find(|level| !(**level > 0.0 && **level < 1.0)) {
            Some(level) => Err(Error::settings("levels", format!("{level} is not in (0, 1)"))),
            None => Ok(()),
        }
    }
}

/// The model beside its baselines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreReport {
    /// The model first, then the constant, the linear models and the mean function alone.
    pub scores: Vec<Scores>,
    /// What to know.
    pub warnings: Vec<Warning>,
}

impl ScoreReport {
    fn new(model: Scores, warnings: Vec<Warning>) -> Self {
        Self { scores: vec![model], warnings }
    }

    fn add(
        &mut self,
        baseline: &Baseline,
        outputs: Option<&[TrainedOutput]>,
        record: &Sequence,
        from: usize,
        levels: &[f64],
    ) -> Result<(), Error> {
        if baseline.mean.iter().chain(&baseline.sd).all(|value| value.is_finite()) {
            let errors: Option<Vec<Errors>> = outputs.map(|outputs| {
                let errors = |(of, sd): (&TrainedOutput, &f64)| Errors::new(of.support, *sd, of.mean);
                outputs.iter().zip(&baseline.sd).map(errors).collect()
            });
            self.scores.push(baseline_scores(baseline, errors.as_deref(), record, from, levels)?);
        } else {
            self.warnings.push(Warning::BaselineDiverged { name: baseline.name.clone() });
        }
        Ok(())
    }

    /// The scores of the first model or baseline with this in its name.
    pub fn named(&self, name: &str) -> Option<&Scores> {
        self.scores.iter().find(|scores| scores.name.contains(name))
    }
}

/// What is known of an output before it is predicted.
struct TrainedOutput {
    support: OutputSupport,
    /// Of the training record.
    mean: f64,
}

impl FittedModel {
    /// Where outputs can lie, and their means; none for a user's sensor that does not say.
    fn trained_outputs(&self) -> Option<Vec<TrainedOutput>> {
        let supports = self.posterior.problem().bind(&self.posterior.draws()[0].theta).sensor.supports()?;
        let means = Baseline::constant(&self.training, &self.training.sequences()[0]).mean;
        Some(supports.into_iter().zip(means).map(|(support, mean)| TrainedOutput { support, mean }).collect())
    }

    /// Scores of the model and of baselines fitted on the same training record: a constant, linear ARX and state-space models, and the
    /// mean function alone (left out for a user's sensor, whose mean is not known). The record is given as it was measured.
    pub fn score(
        &self,
        sequence: &Sequence,
        options: &ScoreOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<ScoreReport, Error> {
        match options.task {
            ScoreTask::Simulation => Ok(self.score_free_run(sequence, options, on_progress)?.0),
            ScoreTask::Ahead(k) => self.score_ahead(sequence, k, options, on_progress),
        }
    }

    /// Number of rows of a record that are not scored: as asked for, none after the training record, and else as many as the
    /// model's memory, at least 5, as long as 5 are left.
    pub fn n_init(&self, options: &ScoreOptions, n_rows: usize) -> usize {
        let default = || self.memory().max(FEWEST_INIT).min(n_rows.saturating_sub(FEWEST_SCORED));
        options.n_init.unwrap_or_else(|| if options.after_training.is_some() { 0 } else { default() })
    }

    /// Scores of a free run, and the run itself.
    ///
    /// The log score is the density of the outputs given the simulated states. Intervals that are calibrated, or that a user
    /// wants raw where they could be, have no density of their own: theirs is that of Gaussians as wide as they are.
    pub fn score_free_run(
        &self,
        sequence: &Sequence,
        options: &ScoreOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<(ScoreReport, Simulation), Error> {
        let n_init = self.n_init(options, sequence.n_rows());
        options.check(n_init, sequence.n_rows())?;
        let seed = options.filter.seed;
        let run_options = FreeRunOptions {
            simulate: SimulateOptions { n_paths: options.n_paths, seed, ..SimulateOptions::default() },
            filter: options.filter.clone(),
            raw: options.raw,
        };
        let runs = self.phase_runs(sequence, &options.start(n_init), &run_options, on_progress)?;
        let run = self.joined(&runs, options.raw);
        let log_scores = match self.calibration.is_identity() {
            true => {
                self.interleaved(&runs, &|run| self.posterior.log_scores_of(&run.simulation, &run.seen))?
            }
            false => band_log_scores(&run.y, sequence),
        };
        let levels = &options.levels;
        let model = ensemble_scores("model", sequence, &run.y, 0, &log_scores, n_init, levels)?;
        let mut report = ScoreReport::new(model, run.warnings.clone());
        let outputs = self.trained_outputs();
        // After the training record its last rows are known to the baselines, too.
        let past = match options.start(n_init) {
            Start::Last { sequence } => self.training.sequences()[sequence].clone(),
            _ => sequence.clone(),
        };
        let (record, from) = match options.start(n_init) {
            Start::Last { .. } => (past.followed_by(sequence)?, past.n_rows()),
            _ => (past, n_init),
        };
        for baseline in baselines(&self.training, &record, Task::FreeRun { n_init: from }) {
            report.add(&baseline, outputs.as_deref(), &record, from, levels)?;
        }
        if let Some(baseline) = self.mean_function_of(&runs)? {
            report.add(&baseline, outputs.as_deref(), sequence, n_init, levels)?;
        }
        Ok((report, run))
    }

    /// The reports of several sequences as one.
    pub fn together(
        &self,
        options: &ScoreOptions,
        reports: &[ScoreReport],
        sequences: &[Sequence],
    ) -> ScoreReport {
        if let [only] = reports {
            return only.clone();
        }
        // Predictions ahead are made for the rows of the model.
        let seen: Vec<Sequence> = match options.task {
            ScoreTask::Simulation => sequences.to_vec(),
            ScoreTask::Ahead(_) => sequences.iter().filter_map(|sequence| self.rows(sequence).ok()).collect(),
        };
        let from = |sequence: &Sequence| {
            let n = self.n_init(options, sequence.n_rows());
            match options.task {
                ScoreTask::Simulation => n,
                ScoreTask::Ahead(k) => n.div_ceil(self.layout.every).max(k),
            }
        };
        let parts = reports.iter().zip(&seen).zip(sequences);
        let parts: Vec<Part> = parts
            .map(|((report, sequence), measured)| Part { report, sequence, from: from(measured) })
            .collect();
        pooled(&parts)
    }

    /// What each phase says of its rows (several values each), in the order of the rows.
    fn interleaved(
        &self,
        runs: &[PhaseRun],
        of: &dyn Fn(&PhaseRun) -> Result<Vec<f64>, Error>,
    ) -> Result<Vec<f64>, Error> {
        let parts = runs.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let width = |i: usize| parts[i].len() / runs[i].seen.n_rows();
        let n_rows: usize = runs.iter().map(|run| run.seen.n_rows()).sum();
        let row = |t: usize| {
            let (i, row) = (t % parts.len(), t / parts.len());
            parts[i][row * width(i)..(row + 1) * width(i)].to_vec()
        };
        Ok((0..n_rows).flat_map(row).collect())
    }

    /// The mean function from where the model started.
    fn mean_function_of(&self, runs: &[PhaseRun]) -> Result<Option<Baseline>, Error> {
        let Some(sd) = self.posterior.mean_function_error() else { return Ok(None) };
        let mean = self.interleaved(runs, &|run| {
            let (row, x) = (run.n_init.max(1) - 1, &run.simulation.x);
            let state: Vec<f64> = (0..x.n_channels()).map(|d| x.mean(row, d)).collect();
            Ok(self.posterior.mean_function_run(&run.seen, run.n_init, &state).unwrap_or_default())
        })?;
        Ok(Some(Baseline { name: "mean function".into(), mean, sd, order: None }))
    }

    fn score_ahead(
        &self,
        sequence: &Sequence,
        k: usize,
        options: &ScoreOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<ScoreReport, Error> {
        let (record, filter, levels) = (self.rows(sequence)?, &options.filter, &options.levels);
        let n_init = self.n_init(options, sequence.n_rows()).div_ceil(self.layout.every);
        options.check(n_init, record.n_rows())?;
        let initial = Initial::Model;
        let run = self.posterior.predict_ahead(&record, k, options.n_paths, &initial, filter, on_progress)?;
        if run.y.n_rows() + k < record.n_rows() {
            return Err(Error::settings("score", "stopped before the end of the record"));
        }
        let model = ensemble_scores("model", &record, &run.y, k, &run.log_score, n_init, levels)?;
        let mut report = ScoreReport::new(model, run.warnings);
        let outputs = self.trained_outputs();
        let from = n_init.max(k);
        for baseline in baselines(self.posterior.problem().record(), &record, Task::Ahead { k }) {
            report.add(&baseline, outputs.as_deref(), &record, from, levels)?;
        }
        if let (Some(mean), Some(sd)) =
            (self.posterior.mean_function_ahead(&record, k, filter)?, self.posterior.mean_function_error())
        {
            let baseline = Baseline { name: "mean function".into(), mean, sd, order: None };
            report.add(&baseline, outputs.as_deref(), &record, from, levels)?;
        }
        Ok(report)
    }
}
