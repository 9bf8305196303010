//! A point estimate by stochastic-approximation EM on the moves of a sweep.
//!
//! Each iteration draws the path by particle Gibbs given theta, and moves theta uphill on log p(theta, x, y), f integrated out:
//!
//! theta_{k+1} = theta_k + g_k S d/dtheta log p(theta_k, x_k, y),  g_k = (k + 1)^-0.6 / 2
//!
//! in the coordinates of the sampler (logarithms of scales). By Fisher's identity the steps follow the gradient of log p(theta | y) on
//! average, so they end at its mode; the mean of the later half of the iterates is the estimate (Polyak and Juditsky 1992, doi
//! 10.1137/0330046). S is the covariance of theta over a few ordinary sweeps before, which is about the inverse curvature of log p(theta |
//! y): the best there is for such steps. Where the path is known (GP-NARX) this is gradient ascent on the marginal likelihood.
//!
//! Lindsten 2013, *An efficient stochastic approximation EM algorithm using conditional particle filters*, ICASSP (doi
//! 10.1109/ICASSP.2013.6638872); Gu and Kong 1998 for steps on the gradient in place of a maximisation (doi 10.1073/pnas.95.13.7270).

use std::time::Instant;

use super::chains::{ChainPlan, ChainReport, Ended, Progress, RunReport};
use super::conditional::Conditional;
use super::moves::{self, Move};
use super::settings::Settings;
use super::sink::{Draw, Phase, Sink};
use super::start::find_start;
use super::sweep::{Chain, SweepInfo};
use crate::diagnostics::UpdateRate;
use crate::dynamics::path_density::PathDensityWork;
use crate::error::Error;
use crate::model::compile::Problem;
use crate::model::orientation::orient;

/// Part of the iterations that are ordinary sweeps, which find the neighbourhood and its shape.
const SWEEPS: f64 = 0.4;
/// Part of these sweeps that the shape is not taken from.
const FORGOTTEN: f64 = 0.4;
/// Draws that independence counts for in the covariance of theta.
const PRIOR_DRAWS: f64 = 5.0;
/// Spread of a coordinate that did not move.
const LEAST_SPREAD: f64 = 1e-3;
/// Steps are no longer than so many standard deviations in any coordinate.
const LONGEST: f64 = 0.5;
/// Distance of the differences that stand for a derivative, in standard deviations.
const DIFFERENCE: f64 = 0.1;

/// Moves of a sweep that leave theta where it is.
const OF_THE_PATH: [&str; 3] = ["signs", "weights", "states"];

/// Finds theta and a path, and hands them to the sink as the one draw of the one chain.
pub(crate) fn estimate(
    problem: &Problem,
    settings: &Settings,
    plans: Vec<ChainPlan>,
    sink: &dyn Sink,
    on_progress: &(dyn Fn(&Progress) -> bool + Sync),
) -> Result<RunReport, Error> {
    settings.check(problem)?;
    let chain = plans.first().map_or(0, |plan| plan.chain);
    let deadline = settings.time_limit().and_then(|limit| Instant::now().checked_add(limit));
    let mut work = Work { problem, settings, chain, on_progress, deadline, ended: Ended::Complete };
    let mut report = report(problem, chain);
    // An estimate that was made before is all that is asked for.
    if let Some(state) = plans.into_iter().next().and_then(|plan| plan.from) {
        report.state = Some(state);
    } else {
        work.run(sink, &mut report)?;
    }
    Ok(RunReport { chains: vec![report], ended: work.ended, basis: problem.basis().cloned() })
}

fn report(problem: &Problem, chain: u32) -> ChainReport {
    let rates = problem.sequences().iter().map(|sequence| UpdateRate::new(sequence.n_rows()));
    ChainReport {
        chain,
        state: None,
        start: None,
        draws: 0,
        update_rates: rates.collect(),
        totals: SweepInfo::default(),
        moves: Vec::new(),
    }
}

struct Work<'a> {
    problem: &'a Problem,
    settings: &'a Settings,
    chain: u32,
    on_progress: &'a (dyn Fn(&Progress) -> bool + Sync),
    deadline: Option<Instant>,
    ended: Ended,
}

impl Work<'_> {
    /// Reports progress; false if this is to end.
    fn tell(&mut self, phase: Phase, done: u64, total: u64) -> bool {
        if !(self.on_progress)(&Progress { chain: self.chain, phase, done, total, look: None }) {
            self.ended = Ended::Cancelled;
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.ended = Ended::Budget;
        }
        self.ended == Ended::Complete
    }

    fn run(&mut self, sink: &dyn Sink, report: &mut ChainReport) -> Result<(), Error> {
        let (problem, settings) = (self.problem, self.settings);
        let number = self.chain;
        let tell = &mut |done, total| self.tell(Phase::Start, done, total);
        let Some(start) = find_start(problem, settings, number, tell)? else { return Ok(()) };
        let state = start.state.clone();
        report.start = Some(start);
        let all = moves::select(&settings.moves, settings.narx, problem);
        let of_the_path: Vec<&dyn Move> =
            all.iter().copied().filter(|step| OF_THE_PATH.contains(&step.name())).collect();
        let mut chain =
            Chain::new(problem, settings.filter_options(), settings.seed, self.chain, state).with_moves(all);
        let total = settings.tune.max(2);
        let n_sweeps = ((SWEEPS * total as f64) as u64).max(1);
        let mut seen = Seen::default();
        for k in 0..n_sweeps {
            report.totals.add(&chain.sweep());
            chain.adapt();
            orient(problem, &mut chain.state.theta, &mut chain.state.paths);
            if k as f64 >= FORGOTTEN * n_sweeps as f64 || k + 1 == n_sweeps {
                seen.0.push(problem.table().learned_coordinates(&chain.state.theta));
            }
            if !self.tell(Phase::Tune, k + 1, total) {
                break;
            }
        }
        if self.ended == Ended::Cancelled {
            return Ok(());
        }
        chain.freeze();
        let mut climb = Climb::new(problem, &chain.state.theta, &seen);
        let mut chain = chain.with_moves(of_the_path);
        let n_steps = total - n_sweeps;
        for k in 0..n_steps {
            if self.ended != Ended::Complete {
                break;
            }
            chain.state.theta.clone_from(&climb.theta);
            report.totals.add(&chain.sweep());
            orient(problem, &mut chain.state.theta, &mut chain.state.paths);
            climb.step(k, 2 * k >= n_steps, &chain.state.paths);
            self.tell(Phase::Tune, n_sweeps + k + 1, total);
        }
        if self.ended == Ended::Cancelled {
            return Ok(());
        }
        let (theta, paths) = climb.estimate(&chain.state.paths);
        chain.state.theta = theta;
        chain.state.paths = paths;
        self.hand_over(&mut chain, sink, report)
    }

    fn hand_over(&self, chain: &mut Chain, sink: &dyn Sink, report: &mut ChainReport) -> Result<(), Error> {
        let problem = self.problem;
        // The iterations before are no draws of warm-up: this is the first.
        chain.state.sweep = 1;
        let (log_joint, log_likelihood_total) = chain.state.log_densities(problem);
        let info = SweepInfo { log_joint, log_likelihood_total, ..report.totals };
        let theta = &chain.state.theta;
        let paths: Vec<Vec<f64>> =
            chain.state.paths.iter().map(|path| problem.path_to_original(path)).collect();
        let draw = Draw {
            chain: self.chain,
            phase: Phase::Sample,
            index: 0,
            theta,
            paths: &paths,
            info: &info,
            state: &chain.state,
        };
        sink.take(&draw)?;
        report.draws = 1;
        report.totals = info;
        report.state = Some(chain.state.clone());
        (self.on_progress)(&Progress {
            chain: self.chain,
            phase: Phase::Sample,
            done: 1,
            total: 1,
            look: None,
        });
        Ok(())
    }
}

/// Coordinates of theta after some sweeps.
#[derive(Default)]
struct Seen(Vec<Vec<f64>>);

impl Seen {
    fn mean(&self) -> Vec<f64> {
        let n = self.0.len() as f64;
        let m = self.0.first().map_or(0, Vec::len);
        (0..m).map(|i| self.0.iter().map(|at| at[i]).sum::<f64>() / n).collect()
    }

    /// Covariance, drawn towards independence; row-major.
    fn covariance(&self) -> Vec<f64> {
        let (mean, n) = (self.mean(), self.0.len() as f64);
        let (m, own) = (mean.len(), n / (n + PRIOR_DRAWS));
        let mut s = vec![0.0; m * m];
        for at in &self.0 {
            for i in 0..m {
                (0..m).for_each(|j| s[i * m + j] += (at[i] - mean[i]) * (at[j] - mean[j]) / n);
            }
        }
        for i in 0..m {
            (0..m).filter(|&j| j != i).for_each(|j| s[i * m + j] *= own);
            s[i * m + i] = s[i * m + i].max(LEAST_SPREAD * LEAST_SPREAD);
        }
        s
    }
}

/// Theta on its way uphill.
struct Climb<'a> {
    problem: &'a Problem,
    theta: Vec<f64>,
    covariance: Vec<f64>,
    sd: Vec<f64>,
    /// Sums of the later iterates: coordinates and paths.
    sum: Vec<f64>,
    paths: Vec<Vec<f64>>,
    n: u64,
    work: PathDensityWork,
}

impl<'a> Climb<'a> {
    fn new(problem: &'a Problem, theta: &[f64], seen: &Seen) -> Self {
        let covariance = seen.covariance();
        let m = seen.mean().len();
        let mut climb = Self {
            problem,
            theta: theta.to_vec(),
            sd: (0..m).map(|i| covariance[i * m + i].sqrt()).collect(),
            covariance,
            sum: vec![0.0; m],
            paths: Vec::new(),
            n: 0,
            work: PathDensityWork::default(),
        };
        if let Some(theta) = climb.at(&seen.mean()) {
            climb.theta = theta;
        }
        climb
    }

    /// Theta at coordinates; none where it has no density or a covariance matrix is none.
    fn at(&self, coordinates: &[f64]) -> Option<Vec<f64>> {
        let table = self.problem.table();
        let mut theta = self.theta.clone();
        for (k, x) in table.learned().zip(coordinates) {
            theta[k] = table.value_at(k, *x);
        }
        let density = table.log_prior_of_coordinates(&theta);
        (density.is_finite() && theta.iter().all(|value| value.is_finite())).then_some(theta)
    }

    /// Iteration `k`, with the path drawn in it; later ones count for the estimate.
    fn step(&mut self, k: u64, counts: bool, paths: &[Vec<f64>]) {
        let table = self.problem.table();
        let gradient = self.gradient(paths);
        let m = gradient.len();
        let gain = 0.5 * (k as f64 + 1.0).powf(-0.6);
        let mut step: Vec<f64> = (0..m)
            .map(|i| gain * (0..m).map(|j| self.covariance[i * m + j] * gradient[j]).sum::<f64>())
            .collect();
        let longest = step.iter().zip(&self.sd).map(|(step, sd)| step.abs() / sd).fold(0.0, f64::max);
        if longest > LONGEST {
            step.iter_mut().for_each(|step| *step *= LONGEST / longest);
        }
        let here = table.learned_coordinates(&self.theta);
        // A step over the edge of a prior is made shorter.
        for _ in 0..20 {
            let there: Vec<f64> = here.iter().zip(&step).map(|(x, step)| x + step).collect();
            if let Some(theta) = self.at(&there) {
                self.theta = theta;
                break;
            }
            step.iter_mut().for_each(|step| *step *= 0.5);
        }
        if counts {
            self.count(paths);
        }
    }

    fn count(&mut self, paths: &[Vec<f64>]) {
        let here = self.problem.table().learned_coordinates(&self.theta);
        self.sum.iter_mut().zip(here).for_each(|(sum, x)| *sum += x);
        if self.paths.is_empty() {
            self.paths = paths.iter().map(|path| vec![0.0; path.len()]).collect();
        }
        for (sum, path) in self.paths.iter_mut().zip(paths) {
            sum.iter_mut().zip(path).for_each(|(sum, x)| *sum += x);
        }
        self.n += 1;
    }

    /// d/dtheta log p(theta, x, y) in coordinates, by central differences.
    fn gradient(&mut self, paths: &[Vec<f64>]) -> Vec<f64> {
        let table = self.problem.table();
        let mut conditional = Conditional::new(self.problem, paths, &self.theta, &mut self.work);
        let parts = conditional.parts(&self.theta);
        let mut gradient = Vec::with_capacity(self.sd.len());
        let mut theta = self.theta.clone();
        for (k, sd) in table.learned().zip(&self.sd) {
            let (here, value) = (table.coordinate_of(k, theta[k]), theta[k]);
            let h = DIFFERENCE * sd;
            let mut at = |x: f64| {
                theta[k] = table.value_at(k, x);
                conditional.of_parameter(k, &theta, &mut parts.clone())
            };
            let (up, down) = (at(here + h), at(here - h));
            let slope = (up - down) / (2.0 * h);
            // At the edge of a prior there is one side only.
            let slope = match (up.is_finite(), down.is_finite()) {
                (true, true) => slope,
                (true, false) => (up - at(here)) / h,
                (false, true) => (at(here) - down) / h,
                (false, false) => 0.0,
            };
            gradient.push(if slope.is_finite() { slope } else { 0.0 });
            theta[k] = value;
            if table.parameters[k].function {
                conditional.rebuild_pairs(&theta);
            }
        }
        gradient
    }

    /// The estimate. A linear sensor with Gaussian noise determines the path up to a single hump: its mean is taken. Otherwise a mean of
    /// paths may be none, and it is the last one drawn.
    fn estimate(mut self, last: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
        if self.n == 0 {
            return (self.theta, last.to_vec());
        }
        let n = self.n as f64;
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / n).collect();
        let theta = self.at(&mean).unwrap_or_else(|| self.theta.clone());
        if !self.problem.model().sensor.is_linear_gaussian() {
            return (theta, last.to_vec());
        }
        self.paths.iter_mut().flatten().for_each(|x| *x /= n);
        (theta, self.paths)
    }
}
