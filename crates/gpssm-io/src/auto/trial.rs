//! One candidate, fitted to a part of the record and run free over the rest.

use gpssm::mcmc::settings::StartAt;
use gpssm::model::spec::{SensorSpec, TransitionSpec};
use gpssm::posterior::Posterior;
use gpssm::posterior::score::ensemble_scores;
use gpssm::posterior::simulate::SimulateOptions;
use gpssm::{Functions, MemorySink, Model, Problem, Record, Sequence, Settings, sample};

use super::{Candidate, Trial, dynamics, exact_sensor};
use crate::free_run::free_run;

/// Part of the record that a trial is fitted to.
const FITTED: f64 = 0.6;
/// Draws of the hyper-parameters, after those that look for a start.
const DRAWS: u64 = 8;
const PATHS: usize = 48;
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

fn piece(sequence: &Sequence, from: usize, to: usize) -> Option<Sequence> {
    let y = (from..to).map(|t| sequence.y(t).to_vec()).collect();
    let u =
        if sequence.n_u() == 0 { Vec::new() } else { (from..to).map(|t| sequence.u(t).to_vec()).collect() };
    Sequence::new(y, u).ok()
}

/// Multiply-adds of a trial on a record of so many rows, roughly: some four evidences for each hyper-parameter of each update.
pub(super) fn cost(candidate: &Candidate, rows: usize) -> f64 {
    let n = FITTED * rows as f64 / candidate.layout.every as f64;
    let regressors = (candidate.lags + candidate.layout.window.lags + 2) as f64;
    let evidence = match dynamics(n as usize, INDUCING) {
        gpssm::model::dynamics::DynamicsSpec::Exact => n.powi(3) / 3.0 + 10.0 * regressors * n * n,
        _ => n * (INDUCING as f64 + regressors).powi(2),
    };
    2.0 * 40.0 * 4.0 * (2.0 * regressors + 2.0) * evidence
}

pub(super) fn run(candidate: &Candidate, folds: &[Fold], n_init: usize, seed: u64) -> Trial {
    let mut trial =
        Trial { candidate: candidate.clone(), crps: None, rmse: 0.0, coverage: 0.0, band_scale: 1.0 };
    let mut sums = [0.0; 4];
    let mut ratios = Vec::new();
    for fold in folds {
        let Some(posterior) = fit(candidate, fold, seed) else { return trial };
        for sequence in &fold.held_out {
            let options = SimulateOptions { n_paths: PATHS, seed, ..SimulateOptions::default() };
            let Ok(run) = free_run(&posterior, sequence, candidate.layout, n_init, &options, &|_, _| true)
            else {
                return trial;
            };
            let nothing = vec![0.0; sequence.n_rows()];
            let Ok(scores) = ensemble_scores("", sequence, &run.y, 0, &nothing, n_init, &[0.9]) else {
                return trial;
            };
            for (k, output) in scores.outputs.iter().enumerate() {
                let spread = posterior.problem().scaling().y.scale[k];
                let n = output.n as f64;
                let share = output.coverage.first().map_or(0.0, |coverage| coverage.share);
                for (sum, value) in
                    sums.iter_mut().zip([1.0, output.crps / spread, (output.rmse / spread).powi(2), share])
                {
                    *sum += n * value;
                }
                for t in n_init..sequence.n_rows() {
                    let at = |p: f64| run.y.quantile(t, k, p);
                    let (error, middle) = (sequence.y(t)[k] - at(0.5), at(0.5));
                    let side = if error > 0.0 { at(0.95) - middle } else { middle - at(0.05) };
                    ratios.push(error.abs() / side.max(f64::MIN_POSITIVE));
                }
            }
        }
    }
    let [n, crps, square, share] = sums;
    if n > 0.0 && crps.is_finite() {
        trial.crps = Some(crps / n);
        trial.rmse = (square / n).sqrt();
        trial.coverage = share / n;
        ratios.sort_unstable_by(f64::total_cmp);
        trial.band_scale = ratios[(0.9 * (ratios.len() - 1) as f64).round() as usize];
    }
    trial
}

fn fit(candidate: &Candidate, fold: &Fold, seed: u64) -> Option<Posterior> {
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
    model.dynamics = dynamics(record.n_transitions(), INDUCING);
    let problem = Problem::new(model, &Functions::new(), record).ok()?;
    let settings = Settings {
        seed,
        chains: 1,
        tune: 0,
        draws: DRAWS,
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
