//! One candidate, fitted to a part of the record and run free over the rest.

use gpssm::mcmc::settings::StartAt;
use gpssm::model::dynamics::{DynamicsSpec, InducingSpec};
use gpssm::model::spec::{SensorSpec, TransitionSpec};
use gpssm::posterior::Posterior;
use gpssm::posterior::baseline::Baseline;
use gpssm::posterior::score::{baseline_scores, ensemble_scores};
use gpssm::posterior::simulate::SimulateOptions;
use gpssm::{Functions, MemorySink, Model, Problem, Record, Sequence, Settings, sample};

use super::{Candidate, Kernel, Trial, dynamics, exact_sensor, screen};
use crate::free_run::free_run;

/// Part of the record that a trial is fitted to.
const FITTED: f64 = 0.6;
/// How much work goes into a free run.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Draws of the hyper-parameters, after those that look for a start.
    pub draws: u64,
    /// Simulated paths.
    pub paths: usize,
}

/// Enough to tell candidates apart.
const TRIAL: Effort = Effort { draws: 8, paths: 48 };
/// Inducing inputs of a trial.
const INDUCING: usize = 50;

/// What is fitted and what runs free.
pub(super) struct Fold {
    fitted: Vec<Sequence>,
    held_out: Vec<Sequence>,
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
    let folds = folds.into_iter().map(|(fitted, held_out)| Fold { fitted, held_out });
    folds.filter(|fold| !fold.held_out.is_empty()).collect()
}

/// Each of `n_parts` parts of every sequence is fitted in turn, and what lies before and after it is held out.
pub(super) fn parts(record: &Record, n_parts: usize, n_init: usize) -> Vec<Fold> {
    let fold = |part: usize| {
        let mut fold = Fold { fitted: Vec::new(), held_out: Vec::new() };
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
    let y = (from..to).map(|t| sequence.y(t).to_vec()).collect();
    let u =
        if sequence.n_u() == 0 { Vec::new() } else { (from..to).map(|t| sequence.u(t).to_vec()).collect() };
    Sequence::new(y, u).ok()
}

/// Multiply-adds of a trial on a record, roughly: some four evidences for each hyper-parameter of each update.
pub(super) fn cost(candidate: &Candidate, record: &Record) -> f64 {
    let rows: usize = record.sequences().iter().map(Sequence::n_rows).sum();
    let n = FITTED * rows as f64 / candidate.layout.every as f64;
    let n_z = candidate.n_regressors(record);
    let regressors = n_z as f64;
    let evidence = match dynamics(&candidate.kernel, n_z, n as usize, INDUCING) {
        DynamicsSpec::Fic { inducing: InducingSpec::Greedy(inducing), .. } => {
            n * (inducing as f64 + regressors).powi(2)
        }
        _ => n.powi(3) / 3.0 + 10.0 * regressors * n * n,
    };
    let parameters = match candidate.kernel {
        Kernel::Linear | Kernel::Affine => regressors + 2.0,
        Kernel::Smooth | Kernel::Given(_) => 2.0 * regressors + 3.0,
    };
    2.0 * 40.0 * 4.0 * parameters * evidence
}

/// An outcome of a free run beside its band.
pub(super) struct Outcome {
    /// Distance from the median.
    pub error: f64,
    /// Distance of the 5 % or 95 % quantile on that side from the median.
    pub side: f64,
}

/// Sums over the free runs of a candidate.
#[derive(Default)]
pub(super) struct Found {
    /// Rows, CRPS, squared error and share inside the 90 % bands, the latter three times rows and relative to the spread
    /// of the output.
    sums: [f64; 4],
    /// Every scored row and output.
    pub outcomes: Vec<Outcome>,
}

pub(super) fn run(candidate: &Candidate, folds: &[Fold], n_init: usize, seed: u64) -> Trial {
    let mut trial = Trial { candidate: candidate.clone(), crps: None, rmse: 0.0, coverage: 0.0 };
    let mut found = Found::default();
    for fold in folds {
        if free_runs(candidate, fold, n_init, TRIAL, seed, &mut found).is_none() {
            return trial;
        }
    }
    let [n, crps, square, share] = found.sums;
    if n > 0.0 && crps.is_finite() {
        trial.crps = Some(crps / n);
        trial.rmse = (square / n).sqrt();
        trial.coverage = share / n;
    }
    trial
}

/// Fits a candidate to a part of the record and lets it run free over the rest; none if something failed.
pub(super) fn free_runs(
    candidate: &Candidate,
    fold: &Fold,
    n_init: usize,
    effort: Effort,
    seed: u64,
    found: &mut Found,
) -> Option<()> {
    let posterior = fit(candidate, fold, effort.draws, seed)?;
    for sequence in &fold.held_out {
        let options = SimulateOptions { n_paths: effort.paths, seed, ..SimulateOptions::default() };
        let run = free_run(&posterior, sequence, candidate.layout, n_init, &options, &|_, _| true).ok()?;
        let nothing = vec![0.0; sequence.n_rows()];
        let scores = ensemble_scores("", sequence, &run.y, 0, &nothing, n_init, &[0.9]).ok()?;
        for (k, output) in scores.outputs.iter().enumerate() {
            let spread = posterior.problem().scaling().y.scale[k];
            let n = output.n as f64;
            let share = output.coverage.first().map_or(0.0, |coverage| coverage.share);
            let values = [1.0, output.crps / spread, (output.rmse / spread).powi(2), share];
            found.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += n * value);
            for t in n_init..sequence.n_rows() {
                let [low, middle, high] = [0.05, 0.5, 0.95].map(|p| run.y.quantile(t, k, p));
                let error = sequence.y(t)[k] - middle;
                let side = if error > 0.0 { high - middle } else { middle - low };
                found.outcomes.push(Outcome { error: error.abs(), side });
            }
        }
    }
    Some(())
}

/// The same CRPS for the mean of the rows that would be fitted.
pub(super) fn constant_crps(folds: &[Fold], n_init: usize) -> Option<f64> {
    let (mut rows, mut total) = (0.0, 0.0);
    for fold in folds {
        let fitted = Record::new(fold.fitted.clone()).ok()?;
        for sequence in &fold.held_out {
            let constant = Baseline::constant(&fitted, sequence);
            let scores = baseline_scores(&constant, sequence, n_init, &[]).ok()?;
            for (k, output) in scores.outputs.iter().enumerate() {
                rows += output.n as f64;
                total += output.n as f64 * output.crps / screen::spread(&fitted, k);
            }
        }
    }
    Some(total / rows).filter(|crps| crps.is_finite())
}

fn fit(candidate: &Candidate, fold: &Fold, draws: u64, seed: u64) -> Option<Posterior> {
    let sequences = fold.fitted.iter().map(|s| candidate.layout.apply(s)).collect::<Result<Vec<_>, _>>();
    let record = Record::new(sequences.ok()?).ok()?;
    let mut model = Model::lagged_outputs(record.n_y(), record.n_u(), candidate.lags);
    for state in &mut model.states {
        if let TransitionSpec::Gp { kernel, .. } = &mut state.transition {
            *kernel = candidate.kernel.spec();
        }
    }
    if let (SensorSpec::Gaussian { noise, .. }, SensorSpec::Gaussian { noise: exact, .. }) =
        (&mut model.sensor, exact_sensor(&record))
    {
        *noise = exact;
    }
    let n_z = model.states.len() + record.n_u();
    model.dynamics = dynamics(&candidate.kernel, n_z, record.n_transitions(), INDUCING);
    let problem = Problem::new(model, &Functions::new(), record).ok()?;
    let settings = Settings {
        seed,
        chains: 1,
        tune: 0,
        draws,
        threads: Some(1),
        start_at: StartAt::Outputs,
        hold_states: true,
        ..Settings::default()
    };
    let sink = MemorySink::new();
    let report = sample(&problem, &settings, &sink, &|_| true).ok()?;
    let problem = report.basis.map_or_else(|| problem.clone(), |basis| problem.with_basis(basis));
    Posterior::new(&problem, &sink.into_chains()).ok()
}
