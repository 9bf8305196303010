//! Simulation-based calibration: whether the sampler draws from the posterior of a model (Talts et al. 2018, arXiv 1804.06788).
//!
//! A run draws theta, f, states and outputs from the prior, fits the outputs from a cold start, and ranks the values that made the
//! data among L draws of the posterior. If prior, data and sampler belong together, every rank from 0 to L is equally likely.
//!
//! - [`Sbc`]: the runs; each depends on the seed and its number alone
//! - [`check_stated`]: refuses models that leave something to defaults, which would depend on the simulated data
//! - [`Uniformity`]: chi-square and Kolmogorov-Smirnov tests of the ranks of one quantity
//!
//! Ranks are even only if the L draws are nearly independent: every `thin`-th sweep is kept, and the effective number among those
//! kept is reported for each quantity.

mod stated;
mod uniformity;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use gpssm::diagnostics::ess_bulk;
use gpssm::mcmc::{ChainDraws, ChainState};
use gpssm::model::{InitialSpec, TransitionSpec, orient};
use gpssm::posterior::{Posterior, PriorSample, Target, sample_prior};
use gpssm::random::{Purpose, stream};
use gpssm::{
    ChainPlan, Draw, Error, Functions, Phase, Points, Problem, Record, Sequence, Settings, Sink, prepare,
    sample_chains,
};
use rand::RngExt;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

pub use stated::check_stated;
pub use uniformity::Uniformity;
pub(crate) use uniformity::kolmogorov_p;

/// How the runs are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SbcOptions {
    /// Draws L of the posterior that a run ranks the truth among.
    pub draws: u32,
    /// Sweeps from one of them to the next.
    pub thin: u64,
    /// Seed of everything.
    pub seed: u64,
}

impl Default for SbcOptions {
    fn default() -> Self {
        Self { draws: 63, thin: 10, seed: 0 }
    }
}

/// What one run found, by quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SbcRun {
    /// Draws below the value that made the data, 0 to L.
    pub ranks: Vec<u32>,
    /// Effective sample size of the L draws.
    pub ess: Vec<f64>,
}

/// Simulation-based calibration of one model.
#[derive(Debug)]
pub struct Sbc {
    problem: Problem,
    functions: Functions,
    inputs: Vec<Vec<Vec<f64>>>,
    settings: Settings,
    options: SbcOptions,
    points: Points,
    quantities: Vec<(String, Quantity)>,
}

/// What is ranked.
#[derive(Clone, Copy, Debug)]
enum Quantity {
    Theta(usize),
    /// State `d` in row `t` of the first sequence.
    State(usize, usize),
    /// f of state `d` at a point.
    Function(usize, usize),
    LogLikelihood,
    LogJoint,
}

/// Everything that quantities are taken from.
struct Sample<'a> {
    theta: &'a [f64],
    path: &'a [f64],
    f: &'a [f64],
    log_likelihood: f64,
    log_joint: f64,
}

impl Quantity {
    fn value(self, n_x: usize, sample: &Sample) -> f64 {
        match self {
            Self::Theta(k) => sample.theta[k],
            Self::State(t, d) => sample.path[t * n_x + d],
            Self::Function(i, d) => sample.f[i * n_x + d],
            Self::LogLikelihood => sample.log_likelihood,
            Self::LogJoint => sample.log_joint,
        }
    }
}

impl Sbc {
    /// Runs of the model of a problem, under the inputs of its record; its outputs are not looked at. The model must state
    /// everything ([`check_stated`]).
    pub fn new(
        problem: &Problem,
        functions: &Functions,
        settings: &Settings,
        options: SbcOptions,
    ) -> Result<Self, Error> {
        for (key, value) in [("draws", u64::from(options.draws)), ("thin", options.thin)] {
            if value == 0 {
                return Err(Error::settings(key, "must be at least one"));
            }
        }
        if settings.narx {
            return Err(Error::settings(
                "narx",
                "the states of a GP-NARX model are not drawn; set it to false",
            ));
        }
        let settings = Settings {
            chains: 1,
            threads: Some(1),
            seed: options.seed,
            draws: Some(u64::from(options.draws) * options.thin),
            ..settings.clone()
        };
        settings.check(problem)?;
        let problem = prepare(problem, &settings)?;
        let rows = |sequence: &Sequence| (0..sequence.n_rows()).map(|t| sequence.u(t).to_vec()).collect();
        let inputs: Vec<Vec<Vec<f64>>> = problem.record().sequences().iter().map(rows).collect();
        let points = points(&problem, &inputs[0]);
        let quantities = quantities(&problem, inputs[0].len(), points.len());
        Ok(Self { problem, functions: functions.clone(), inputs, settings, options, points, quantities })
    }

    /// Names of the quantities, in the order of all results.
    pub fn names(&self) -> Vec<&str> {
        self.quantities.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Run `index`; none if it was stopped.
    pub fn run(&self, index: u64, stop: &AtomicBool) -> Result<Option<SbcRun>, Error> {
        self.rank(index, self.truth(index)?, stop)
    }

    /// The values that make the data of run `index`.
    pub fn truth(&self, index: u64) -> Result<PriorSample, Error> {
        sample_prior(&self.problem, &self.inputs, &self.points, self.options.seed, index)
    }

    /// Fits the outputs of `truth` and ranks its values among the draws; none if it was stopped.
    pub fn rank(&self, index: u64, truth: PriorSample, stop: &AtomicBool) -> Result<Option<SbcRun>, Error> {
        let problem = self.fitted(index, &truth)?;
        let sink = Thinned { thin: self.options.thin, kept: Mutex::default() };
        let plan = ChainPlan { chain: index as u32, ..ChainPlan::default() };
        let keep_going = |_: &gpssm::Progress| !stop.load(Ordering::Relaxed);
        let report = sample_chains(&problem, &self.settings, vec![plan], &sink, &keep_going)?;
        if report.ended != gpssm::Ended::Complete {
            return Ok(None);
        }
        let kept = sink.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let f = self.functions_of(index, &problem, &kept)?;
        let (n_x, n_f) = (problem.n_x(), self.points.len() * problem.n_x());
        let draws: Vec<Sample> = (0..kept.theta.len())
            .map(|j| Sample {
                theta: &kept.theta[j],
                path: &kept.paths[j][0],
                f: &f[j * n_f..(j + 1) * n_f],
                log_likelihood: kept.info[j].log_likelihood_total,
                log_joint: kept.info[j].log_joint,
            })
            .collect();
        let PriorSample { mut theta, mut paths, f, .. } = truth;
        let internal = paths.iter().map(|path| problem.path_to_internal(path)).collect();
        let (log_joint, log_likelihood) =
            ChainState::new(&problem, theta.clone(), internal).log_densities(&problem);
        orient(&problem, &mut theta, &mut paths);
        let truth = Sample { theta: &theta, path: &paths[0], f: &f, log_likelihood, log_joint };
        let (mut ranks, mut ess) = (Vec::new(), Vec::new());
        for (_, quantity) in &self.quantities {
            let values: Vec<f64> = draws.iter().map(|draw| quantity.value(n_x, draw)).collect();
            let true_value = quantity.value(n_x, &truth);
            ranks.push(values.iter().filter(|value| **value < true_value).count() as u32);
            ess.push(ess_bulk(&[&values]).unwrap_or(values.len() as f64));
        }
        Ok(Some(SbcRun { ranks, ess }))
    }

    /// The model with the simulated record, in the units and with the basis of all runs.
    fn fitted(&self, index: u64, truth: &PriorSample) -> Result<Problem, Error> {
        let n_y = self.problem.model().n_y;
        if !truth.outputs.iter().chain(&truth.paths).flatten().all(|value| value.is_finite()) {
            let message = "the data drawn from the prior overflow; state narrower priors or fewer rows";
            return Err(Error::data(format!("run {index}: {message}")));
        }
        let sequences = truth.outputs.iter().zip(&self.inputs).map(|(y, u)| {
            let u = if self.problem.model().n_u == 0 { Vec::new() } else { u.clone() };
            Sequence::new(y.chunks_exact(n_y).map(<[f64]>::to_vec).collect(), u)
        });
        let record = Record::new(sequences.collect::<Result<_, _>>()?)?;
        let problem = Problem::new(self.problem.model().clone(), &self.functions, record)?;
        Ok(match self.problem.basis() {
            Some(basis) => problem.with_basis(basis.clone()),
            None => problem,
        })
    }

    /// f at the points given each draw (draw, point, d), drawn from its conditional distribution.
    fn functions_of(&self, index: u64, problem: &Problem, kept: &ChainDraws) -> Result<Vec<f64>, Error> {
        if self.points.is_empty() {
            return Ok(Vec::new());
        }
        let found = Posterior::new(problem, std::slice::from_ref(kept))?
            .predict_at(&self.points, Target::Function)?;
        // No other stream of what is done with draws has this number.
        let mut rng = stream(self.options.seed, u32::MAX, Purpose::Posterior, 0, index);
        let n_x = problem.n_x();
        let mut f = Vec::new();
        for j in 0..kept.theta.len() {
            for i in 0..self.points.len() {
                for (d, mean) in found.draw_mean(j, i).iter().enumerate() {
                    let variance = found.draw_covariance(j, i)[d * n_x + d];
                    f.push(mean + variance.max(0.0).sqrt() * rng.sample::<f64, _>(StandardNormal));
                }
            }
        }
        Ok(f)
    }

    /// Makes the runs of these numbers in threads and gives each to `done`; whether all were made. What is found does not depend
    /// on the number of threads.
    pub fn run_all(
        &self,
        indices: &[u64],
        threads: usize,
        stop: &AtomicBool,
        done: &(dyn Fn(u64, SbcRun) -> Result<(), Error> + Sync),
    ) -> Result<bool, Error> {
        let next = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        let work = || {
            while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                let Some(&index) = indices.get(next.fetch_add(1, Ordering::Relaxed) as usize) else { return };
                let made = self.run(index, stop).and_then(|run| run.map_or(Ok(()), |run| done(index, run)));
                if let Err(error) = made {
                    failed.store(true, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            (1..threads.clamp(1, indices.len().max(1))).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(!stop.load(Ordering::Relaxed)),
        }
    }

    /// The tests of each quantity over finished runs.
    pub fn judge(&self, runs: &[SbcRun]) -> Vec<Uniformity> {
        let one = |(i, (name, _)): (usize, &(String, Quantity))| {
            let ranks = runs.iter().map(|run| run.ranks[i]).collect();
            let ess = runs.iter().map(|run| run.ess[i]).sum::<f64>() / runs.len().max(1) as f64;
            Uniformity::new(name.clone(), ranks, self.options.draws, ess)
        };
        self.quantities.iter().enumerate().map(one).collect()
    }
}

/// Keeps every `thin`-th draw.
struct Thinned {
    thin: u64,
    kept: Mutex<ChainDraws>,
}

impl Sink for Thinned {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        if draw.phase == Phase::Sample && (draw.index + 1).is_multiple_of(self.thin) {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.theta.push(draw.theta.to_vec());
            kept.paths.push(draw.paths.to_vec());
            kept.info.push(*draw.info);
        }
        Ok(())
    }
}

/// Three points along a diagonal through the mean of x_0, each a unit of the states apart, with inputs of the beginning, the middle
/// and the end. None where f is mirrored with the states: then the truth would have to be, too.
fn points(problem: &Problem, inputs: &[Vec<f64>]) -> Points {
    let model = problem.model();
    let mut points = Points::new(problem.n_x() + model.n_u);
    if !model.symmetries.is_empty() || gp_states(problem).is_empty() {
        return points;
    }
    let centre = match &model.initial {
        InitialSpec::Gaussian { mean, .. } | InitialSpec::GaussianFull { mean, .. } => mean.clone(),
        InitialSpec::Fixed(x) => x.clone(),
        InitialSpec::Default | InitialSpec::User(_) => vec![0.0; problem.n_x()],
    };
    let last = inputs.len() - 1;
    for (side, t) in [(-1.0, 0), (0.0, last / 2), (1.0, last)] {
        let scale = |d: usize| model.states[d].scale.unwrap_or(1.0);
        let x: Vec<f64> = centre.iter().enumerate().map(|(d, x)| x + side * scale(d)).collect();
        points.push_parts(&x, &inputs[t]);
    }
    points
}

/// States whose transition is a Gaussian process.
fn gp_states(problem: &Problem) -> Vec<usize> {
    let is_gp = |d: &usize| matches!(problem.model().states[*d].transition, TransitionSpec::Gp { .. });
    (0..problem.n_x()).filter(is_gp).collect()
}

/// Learned parameters, states at the beginning, in the middle and at the end, f at the points, and log densities.
fn quantities(problem: &Problem, n_rows: usize, n_points: usize) -> Vec<(String, Quantity)> {
    let (table, names) = (problem.table(), problem.model().state_names());
    let learned = (0..table.len()).filter(|&k| !table.is_fixed(k));
    let mut all: Vec<(String, Quantity)> =
        learned.map(|k| (table.parameters[k].name.clone(), Quantity::Theta(k))).collect();
    let is_fixed = matches!(problem.model().initial, InitialSpec::Fixed(_));
    let mut rows = vec![0, (n_rows - 1) / 2, n_rows - 1];
    rows.dedup();
    for t in rows.into_iter().filter(|t| *t > 0 || !is_fixed) {
        for d in 0..problem.n_x() {
            if !matches!(problem.model().states[d].transition, TransitionSpec::Lag { .. }) {
                all.push((format!("{}[{t}]", names[d]), Quantity::State(t, d)));
            }
        }
    }
    for i in 0..n_points {
        for d in gp_states(problem) {
            all.push((format!("f{}[point {}]", d + 1, i + 1), Quantity::Function(i, d)));
        }
    }
    all.push(("log p(y | x)".into(), Quantity::LogLikelihood));
    all.push(("log joint".into(), Quantity::LogJoint));
    all
}
