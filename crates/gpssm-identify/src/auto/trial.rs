//! One candidate, fitted to a part of the record and run free over the rest.

use std::f64::consts::PI;
use std::sync::OnceLock;
use std::time::Instant;

use crate::baseline::{Arx, Baseline, MOST_ORDER, Task};
use crate::linear::LinearStateSpace;
use crate::score::baseline_scores;
use gpssm::mcmc::StartAt;
use gpssm::model::{DynamicsSpec, InducingSpec, SensorSpec};
use gpssm::posterior::{OnlineOptions, SimulateOptions, standard_cdf};
use gpssm::{Functions, MemorySink, Posterior, Problem, Record, Sequence, Settings, sample};

use super::{Candidate, Elapsed, MOST_DRAWN, States, Trial, calibrate, dynamics, exact_sensor, screen};
use crate::calibration::Calibration;
use crate::fitted::FittedModel;
use crate::free_run::{FreeRunOptions, Start};

/// Part of the record that a trial is fitted to.
const FITTED: f64 = 0.6;
/// How much work goes into a free run.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Chains, each with a start of its own.
    pub chains: u32,
    /// Draws of the hyper-parameters of each, after those that look for a start.
    pub draws: u64,
    /// Simulated paths.
    pub paths: usize,
    /// Threads for the chains; they change nothing but the time.
    pub threads: usize,
}

/// Multiply-adds that the first trial of a candidate may take where several chains are affordable.
const CHEAP: f64 = 5e10;

/// Enough to see which candidates are near the best: one chain, or several where they cost little, as on thinned records.
pub(super) fn first_effort(cost: f64) -> Effort {
    let chains = (CHEAP / cost).clamp(1.0, f64::from(SECOND.chains)) as u32;
    Effort { chains, paths: 48 * chains as usize, ..SECOND }
}

/// Enough to tell those apart: hyper-parameters may have several modes, and a fit will pool its chains too.
pub(super) const SECOND: Effort = Effort { chains: 4, draws: 8, paths: 192, threads: 1 };
/// Whatever the seed of the run: what is chosen depends on the record alone.
const SEED: u64 = 0;
/// Inducing inputs of a trial.
const INDUCING: usize = 50;

/// What is fitted and what runs free.
pub(super) struct Fold {
    fitted: Vec<Sequence>,
    held_out: Vec<Sequence>,
    linear: OnceLock<Option<LinearStateSpace>>,
}

impl Fold {
    fn new(fitted: Vec<Sequence>, held_out: Vec<Sequence>) -> Self {
        Self { fitted, held_out, linear: OnceLock::new() }
    }

    /// The best linear state-space model of what is fitted.
    fn linear(&self) -> Option<&LinearStateSpace> {
        let fit = || LinearStateSpace::fit(&Record::new(self.fitted.clone()).ok()?);
        self.linear.get_or_init(fit).as_ref()
    }
}

/// The two ends of every sequence in turn; sequences too short to be cut are fitted only.
pub(super) fn folds(record: &Record, n_init: usize) -> Vec<Fold> {
    let mut folds = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for sequence in record.sequences() {
        let n = sequence.n_rows();
        let head = (FITTED * n as f64) as usize;
        if n - head < n_init + 10 {
            folds.iter_mut().for_each(|(fitted, _)| fitted.push(sequence.clone()));
            continue;
        }
        folds[0].0.extend(piece(sequence, 0, head));
        folds[0].1.extend(piece(sequence, head, n));
        folds[1].0.extend(piece(sequence, n - head, n));
        folds[1].1.extend(piece(sequence, 0, n - head));
    }
    let folds = folds.into_iter().map(|(fitted, held_out)| Fold::new(fitted, held_out));
    folds.filter(|fold| !fold.held_out.is_empty()).collect()
}

/// Each of `n_parts` parts of every sequence is fitted in turn, and what lies before and after it is held out.
pub(super) fn parts(record: &Record, n_parts: usize, n_init: usize) -> Vec<Fold> {
    let fold = |part: usize| {
        let mut fold = Fold::new(Vec::new(), Vec::new());
        for sequence in record.sequences() {
            let n = sequence.n_rows();
            let (from, to) = (part * n / n_parts, (part + 1) * n / n_parts);
            fold.fitted.extend(piece(sequence, from, to));
            for (from, to) in [(0, from), (to, n)] {
                if to - from >= n_init + 10 {
                    fold.held_out.extend(piece(sequence, from, to));
                }
            }
        }
        fold
    };
    (0..n_parts).map(fold).filter(|fold| !fold.held_out.is_empty() && !fold.fitted.is_empty()).collect()
}

fn piece(sequence: &Sequence, from: usize, to: usize) -> Option<Sequence> {
    sequence.select(from..to).ok()
}

/// Warm-up sweeps of a trial whose states are drawn, and as many draws.
const SWEEPS: u64 = 80;
/// Moves of these sweeps: without the one that makes process noise mix, which takes longer than all others. Free runs depend
/// little on how white noise is divided.
const QUICK_MOVES: [&str; 4] = ["hyper_parameters", "interweave", "weights", "states"];

/// Multiply-adds of a trial on a record, roughly: some four evidences for each hyper-parameter of each update, and the filter where
/// states are drawn. With a finite basis evidences of linear and constant parts cost nearly nothing.
pub(super) fn cost(candidate: &Candidate, record: &Record) -> f64 {
    let rows: usize = record.sequences().iter().map(Sequence::n_rows).sum();
    let n = FITTED * rows as f64 / candidate.layout.every as f64;
    let n_z = candidate.n_regressors(record);
    let regressors = n_z as f64;
    let (evidence, parameters) = match dynamics(candidate, n_z, n as usize, INDUCING) {
        DynamicsSpec::Fic { inducing: InducingSpec::Greedy(inducing), .. } => {
            (n * (inducing as f64 + regressors).powi(2), regressors + 2.0)
        }
        _ => (n.powi(3) / 3.0 + 10.0 * regressors * n * n, 2.0 * regressors + 3.0),
    };
    let parameters = if candidate.kernel.is_linear() { parameters - regressors } else { parameters };
    let update = 4.0 * parameters * evidence;
    2.0 * match candidate.states {
        States::Linear { .. } => 1e6 * n,
        States::Corrected { order } => {
            let features = MOST_DRAWN as f64;
            let update = 4.0 * (regressors + 2.0) * n * (features + regressors).powi(2);
            let filter = PARTICLES * n * (features * (regressors + 10.0) + 100.0);
            order as f64 * 2.0 * SWEEPS as f64 * (update + 2.0 * filter)
        }
        States::Held => 40.0 * update,
        States::Drawn => {
            let features = if candidate.kernel.is_linear() { regressors } else { MOST_DRAWN as f64 };
            let filter = PARTICLES * n * (features * (regressors + 10.0) + 100.0);
            2.0 * SWEEPS as f64 * (update + 2.0 * filter)
        }
    }
}

/// Of the filter.
const PARTICLES: f64 = 20.0;

/// An outcome of a free run beside its forecast, relative to the spread of the output.
pub(super) struct Outcome {
    /// Of the paths, held within the range that counts.
    pub crps: f64,
    /// Distance from the median.
    pub error: f64,
    /// Distance of the 5 % or 95 % quantile on that side from the median.
    pub side: f64,
}

/// All folds.
pub(super) fn run(candidate: &Candidate, folds: &[Fold], n_init: usize, effort: Effort) -> Trial {
    let began = Instant::now();
    let of_fold = |fold: &Fold| match candidate.is_state_space() {
        true => linear_runs(fold, n_init),
        false => free_runs(candidate, fold, n_init, effort),
    };
    let found: Option<Vec<Vec<Outcome>>> = folds.iter().map(of_fold).collect();
    let found = found.unwrap_or_default();
    // A fold is a record of its own: the mean of their scales, not the scale of the wildest; and half a fold's worth of belief
    // in the model's own intervals.
    let scales: Option<Vec<f64>> =
        found.iter().map(|outcomes| Some(calibrate::scale(outcomes)?.ln())).collect();
    let mean = |values: &dyn Fn(&Outcome) -> f64| {
        let values = found.iter().flatten().map(values);
        let (sum, n) = values.fold((0.0, 0usize), |(sum, n), value| (sum + value, n + 1));
        Some(sum / n as f64).filter(|mean| mean.is_finite())
    };
    Trial {
        candidate: candidate.clone(),
        crps: mean(&|outcome| outcome.crps),
        rmse: mean(&|outcome| outcome.error.powi(2)).unwrap_or(0.0).sqrt(),
        coverage: mean(&|outcome| f64::from(u8::from(outcome.error <= outcome.side))).unwrap_or(0.0),
        scale: scales
            // Of the errors in the training record, not of what the model says itself.
            .filter(|_| !candidate.is_state_space())
            .map(|logs| (logs.iter().sum::<f64>() / (logs.len() as f64 + 0.5)).exp())
            .filter(|scale| scale.is_finite()),
        by_fold: found.iter().map(|outcomes| mean_crps(outcomes)).collect(),
        again: false,
        elapsed: Elapsed(began.elapsed().as_secs_f64()),
    }
}

fn mean_crps(outcomes: &[Outcome]) -> f64 {
    outcomes.iter().map(|outcome| outcome.crps).sum::<f64>() / outcomes.len() as f64
}

/// Root mean square error of free runs over the very rows that were fitted, relative to the spread: of few numbers and many rows it
/// tells models apart that held-out rows cannot, where these differ in level from those that were fitted.
pub(super) fn error_within(
    candidate: &Candidate,
    record: &Record,
    linear: Option<&LinearStateSpace>,
    n_init: usize,
) -> Option<f64> {
    let fold = Fold::new(record.sequences().to_vec(), record.sequences().to_vec());
    let outcomes = match (candidate.is_state_space(), linear) {
        (true, Some(linear)) => linear_outcomes(linear, &fold, n_init),
        _ => free_runs(candidate, &fold, n_init, SECOND),
    }?;
    let square = outcomes.iter().map(|outcome| outcome.error.powi(2)).sum::<f64>() / outcomes.len() as f64;
    Some(square.sqrt()).filter(|error| error.is_finite())
}

fn linear_runs(fold: &Fold, n_init: usize) -> Option<Vec<Outcome>> {
    linear_outcomes(fold.linear()?, fold, n_init)
}

/// Free runs of a linear model with Gaussian errors as large as those over the rows that were fitted.
fn linear_outcomes(linear: &LinearStateSpace, fold: &Fold, n_init: usize) -> Option<Vec<Outcome>> {
    let fitted = Record::new(fold.fitted.clone()).ok()?;
    let mut outcomes = Vec::new();
    for sequence in &fold.held_out {
        let forecast = linear.baseline(&fitted, sequence, Task::FreeRun { n_init });
        for t in n_init..sequence.n_rows() {
            for (k, &y) in sequence.y(t).iter().enumerate().filter(|(_, y)| !y.is_nan()) {
                let spread = screen::sd_of_output(&fitted, k);
                let (error, sd) = ((y - forecast.mean[t * sequence.n_y() + k]).abs(), forecast.sd[k]);
                outcomes.push(Outcome {
                    crps: gaussian_crps(error / sd) * sd / spread,
                    error: error / spread,
                    side: Z * sd / spread,
                });
            }
        }
    }
    outcomes.iter().all(|outcome| outcome.crps.is_finite()).then_some(outcomes)
}

/// 95 % quantile of the standard normal distribution.
const Z: f64 = 1.6449;

/// CRPS of N(0, 1) at z: z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi) (Gneiting and Raftery 2007).
fn gaussian_crps(z: f64) -> f64 {
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    z * (2.0 * standard_cdf(z) - 1.0) + 2.0 * density - 1.0 / PI.sqrt()
}

/// Fits a candidate to a part of the record and lets it run free over the rest; none if something failed.
pub(super) fn free_runs(
    candidate: &Candidate,
    fold: &Fold,
    n_init: usize,
    effort: Effort,
) -> Option<Vec<Outcome>> {
    let fitted = fit(candidate, fold, effort)?;
    let simulate = SimulateOptions { n_paths: effort.paths, seed: SEED, ..SimulateOptions::default() };
    let filter = OnlineOptions { seed: SEED, ..OnlineOptions::default() };
    let options = FreeRunOptions { simulate, filter, raw: true };
    let range = screen::range(&fold.fitted);
    let training = &fitted.training;
    let spreads: Vec<f64> = (0..training.n_y()).map(|k| screen::sd_of_output(training, k)).collect();
    let mut outcomes = Vec::new();
    for sequence in &fold.held_out {
        let run = fitted.free_run(sequence, &Start::Outputs { n_init }, &options, &|_, _| true).ok()?;
        // How far paths go that run away does not matter: the CRPS of clamped paths is a proper score too, and one path of
        // many that goes to infinity does not decide.
        let clamped = run.y.clamped(&range);
        for t in n_init..sequence.n_rows() {
            for (k, &y) in sequence.y(t).iter().enumerate().filter(|(_, y)| !y.is_nan()) {
                let spread = spreads[k];
                let [low, middle, high] = [0.05, 0.5, 0.95].map(|p| run.y.quantile(t, k, p));
                let side = if y > middle { high - middle } else { middle - low };
                outcomes.push(Outcome {
                    crps: clamped.crps(t, k, y.clamp(range[k].0, range[k].1)) / spread,
                    error: (y - middle).abs() / spread,
                    side: side / spread,
                });
            }
        }
    }
    Some(outcomes)
}

/// The same CRPS for the mean of the rows that would be fitted.
pub(super) fn constant_crps(folds: &[Fold], n_init: usize) -> Option<f64> {
    baseline_crps(folds, n_init, &|fitted| {
        let fitted = fitted.clone();
        Some(Box::new(move |sequence| Baseline::constant(&fitted, sequence)))
    })
}

/// The same CRPS for the better of the best linear models: ARX, and state space.
pub(super) fn linear_crps(folds: &[Fold], n_init: usize) -> Option<f64> {
    let task = Task::FreeRun { n_init };
    let arx = baseline_crps(folds, n_init, &|fitted| {
        let arx = Arx::fit_for_free_runs(fitted, MOST_ORDER)?;
        let fitted = fitted.clone();
        Some(Box::new(move |sequence| arx.baseline("ARX", &fitted, sequence, task)))
    });
    let state_space = baseline_crps(folds, n_init, &|fitted| {
        let linear = folds.iter().find(|fold| fold.fitted == fitted.sequences())?.linear()?.clone();
        let fitted = fitted.clone();
        Some(Box::new(move |sequence| linear.baseline(&fitted, sequence, task)))
    });
    arx.into_iter().chain(state_space).min_by(f64::total_cmp)
}

type Predict = Box<dyn Fn(&Sequence) -> Baseline>;

fn baseline_crps(folds: &[Fold], n_init: usize, fit: &dyn Fn(&Record) -> Option<Predict>) -> Option<f64> {
    let (mut rows, mut total) = (0.0, 0.0);
    for fold in folds {
        let fitted = Record::new(fold.fitted.clone()).ok()?;
        let predict = fit(&fitted)?;
        for sequence in &fold.held_out {
            let baseline = predict(sequence);
            let scores = baseline_scores(&baseline, None, sequence, n_init, &[]).ok()?;
            for (k, output) in scores.outputs.iter().enumerate() {
                rows += output.n as f64;
                total += output.n as f64 * output.crps / screen::sd_of_output(&fitted, k);
            }
        }
    }
    Some(total / rows).filter(|crps| crps.is_finite())
}

fn fit(candidate: &Candidate, fold: &Fold, effort: Effort) -> Option<FittedModel> {
    let training = Record::new(fold.fitted.clone()).ok()?;
    let (layout, own) = match candidate.states {
        States::Linear { .. } => (fold.linear()?.layout(), Some(fold.linear()?.model(false))),
        States::Corrected { .. } => (fold.linear()?.layout(), Some(fold.linear()?.model(true))),
        _ => (candidate.layout, None),
    };
    let record = layout.apply_to(&training).ok()?;
    let mut model = own.unwrap_or_else(|| candidate.model(&record, INDUCING));
    if candidate.states == States::Held
        && let (SensorSpec::Gaussian { noise, .. }, SensorSpec::Gaussian { noise: exact, .. }) =
            (&mut model.sensor, exact_sensor(&record))
    {
        *noise = exact;
    }
    let problem = Problem::new(model, &Functions::new(), record).ok()?;
    let settings =
        Settings { seed: SEED, chains: effort.chains, threads: Some(effort.threads), ..Settings::default() };
    let settings = match candidate.states {
        States::Held => Settings { tune: 0, draws: Some(effort.draws), narx: true, ..settings },
        // A known linear function has paths that are one Gaussian, and moves that know it cost little.
        States::Linear { .. } => {
            Settings { tune: SWEEPS, draws: Some(SWEEPS), start_at: StartAt::Mean, ..settings }
        }
        States::Corrected { .. } | States::Drawn => Settings {
            tune: SWEEPS,
            draws: Some(SWEEPS),
            start_at: if candidate.is_drawn() { StartAt::Outputs } else { StartAt::Mean },
            moves: QUICK_MOVES.map(String::from).into(),
            ..settings
        },
    };
    let sink = MemorySink::new();
    let report = sample(&problem, &settings, &sink, &|_| true).ok()?;
    let problem = report.basis.map_or_else(|| problem.clone(), |basis| problem.with_basis(basis));
    let posterior = Posterior::new(&problem, &sink.into_chains()).ok()?;
    FittedModel::new(posterior, layout, Calibration::default(), Some(training)).ok()
}
