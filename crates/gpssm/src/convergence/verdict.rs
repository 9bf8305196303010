//! The verdict on a run: whether all that is identified has converged.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Wording;
use super::quantities::{Quantities, Quantity};
use crate::diagnostics::{ess_bulk, ess_tail, rhat};
use crate::mcmc::settings::Settings;
use crate::mcmc::sink::ChainDraws;
use crate::model::compile::Problem;

/// Largest R-hat of a quantity that has converged (Vehtari et al. 2021, <https://doi.org/10.1214/20-BA1221>).
pub const R_HAT_LIMIT: f64 = 1.01;
/// R-hat from which on chains may be said to be at different places.
const APART: f64 = 1.1;
/// Effective draws of each chain alone from which on they may be said to stay there.
const STEADY: f64 = 50.0;

/// A quantity and how well the draws determine it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What it is.
    pub quantity: Quantity,
    /// Rank-normalised split R-hat, the larger of bulk and folded; none where it is not defined.
    pub r_hat: Option<f64>,
    /// Bulk effective sample size.
    pub ess_bulk: Option<f64>,
    /// Tail effective sample size.
    pub ess_tail: Option<f64>,
}

impl Judged {
    /// The smaller effective sample size.
    pub fn ess(&self) -> Option<f64> {
        Some(self.ess_bulk?.min(self.ess_tail?))
    }

    /// Whether it has converged. What is not defined has not.
    pub fn is_good(&self, ess: f64) -> bool {
        self.r_hat.is_some_and(|r_hat| r_hat <= R_HAT_LIMIT) && self.ess().is_some_and(|found| found >= ess)
    }
}

/// The verdict on the first draws of all chains.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Draws of each chain that were judged.
    pub draws: usize,
    /// Effective sample size that is asked for.
    pub target: f64,
    /// All that is identified: hyper-parameters, states and f at some twenty rows, or what stands in for them.
    pub judged: Vec<Judged>,
    /// Names of what is not judged because the data do not determine it.
    pub excluded: Vec<String>,
    /// Chains with too few draws to be judged.
    pub left_out: usize,
    /// Whether the chains stay at different places, so that more draws would not help.
    pub apart: bool,
}

impl Verdict {
    /// Whether all that is identified has converged. Without draws, or with chains that have none, nothing has.
    pub fn is_good(&self) -> bool {
        self.draws > 0 && self.left_out == 0 && self.judged.iter().all(|judged| judged.is_good(self.target))
    }

    /// Quantities that have not converged.
    pub fn n_bad(&self) -> usize {
        self.judged.iter().filter(|judged| !judged.is_good(self.target)).count()
    }

    /// The quantity with the largest R-hat; one without any is worse.
    pub fn worst_r_hat(&self) -> Option<&Judged> {
        let key = |judged: &Judged| judged.r_hat.unwrap_or(f64::INFINITY);
        self.judged.iter().max_by(|a, b| key(a).total_cmp(&key(b)))
    }

    /// The quantity with the smallest effective sample size; one without any is worse.
    pub fn worst_ess(&self) -> Option<&Judged> {
        let key = |judged: &Judged| judged.ess().unwrap_or(0.0);
        self.judged.iter().min_by(|a, b| key(a).total_cmp(&key(b)))
    }

    /// How many times as many draws would do, if these are typical: effective sample sizes grow with the draws, and
    /// R-hat^2 - 1 falls with them.
    pub fn factor(&self) -> Option<f64> {
        let needs = |judged: &Judged| {
            let by_ess = self.target / judged.ess()?;
            let by_r_hat = (judged.r_hat?.powi(2) - 1.0) / (R_HAT_LIMIT * R_HAT_LIMIT - 1.0);
            Some(by_ess.max(by_r_hat)).filter(|factor| factor.is_finite())
        };
        let factors: Option<Vec<f64>> = self.judged.iter().map(needs).collect();
        factors.map(|factors| factors.into_iter().fold(0.0, f64::max))
    }

    /// What is not judged, in one sentence; none if everything is.
    pub fn describe_excluded(&self) -> Option<String> {
        const SHOWN: usize = 8;
        if self.excluded.is_empty() {
            return None;
        }
        let mut names = self.excluded.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if self.excluded.len() > SHOWN {
            names += &format!(" and {} more", self.excluded.len() - SHOWN);
        }
        let mut instead = Vec::new();
        let has = |is: fn(&Quantity) -> bool| self.judged.iter().any(|judged| is(&judged.quantity));
        if has(|quantity| matches!(quantity, Quantity::FunctionOnPath { .. })) {
            instead.push("f along the sampled paths");
        }
        if has(|quantity| matches!(quantity, Quantity::Output { .. })) {
            instead.push("the means of the outputs");
        }
        let instead = match instead.is_empty() {
            true => String::new(),
            false => format!("; judged instead: {}", instead.join(" and ")),
        };
        Some(format!("Not judged, because the data do not determine it: {names}{instead}."))
    }

    /// What the worst quantities are, in half a sentence.
    pub fn describe_worst(&self, wording: &Wording) -> String {
        let (Some(r), Some(e)) = (self.worst_r_hat(), self.worst_ess()) else { return String::new() };
        let r_hat = r.r_hat.map_or_else(|| "undefined".into(), |r_hat| format!("{r_hat:.3}"));
        let ess = e.ess().map_or_else(|| "undefined".into(), |ess| format!("{ess:.0}"));
        format!(
            "{} of {} quantities; largest R-hat {r_hat} ({}, limit {R_HAT_LIMIT}), smallest ESS {ess} ({}, target {:.0})",
            self.n_bad(),
            self.judged.len(),
            r.quantity.describe(wording),
            e.quantity.describe(wording),
            self.target
        )
    }
}

/// Collects what is judged of the draws of all chains, and judges it.
pub(crate) struct Judge<'a> {
    quantities: Quantities<'a>,
    target: f64,
    threads: usize,
    /// Columns by chain, in the order of the numbers of chains; by quantity in each.
    chains: Vec<(u32, Mutex<Columns>)>,
}

/// Draws of one chain.
#[derive(Default)]
struct Columns {
    /// Numbers of all draws so far, one draw after the other.
    values: Vec<f64>,
    /// Draws that came before the first draw of the first chain: hyper-parameters and paths.
    early: Vec<(Vec<f64>, Vec<Vec<f64>>)>,
}

impl<'a> Judge<'a> {
    /// For these chains, in ascending order.
    pub(crate) fn new(problem: &'a Problem, settings: &Settings, chains: &[u32]) -> Self {
        Self {
            quantities: Quantities::new(problem, settings),
            target: settings.ess as f64,
            threads: settings.n_threads(),
            chains: chains.iter().map(|chain| (*chain, Mutex::default())).collect(),
        }
    }

    /// Takes the next draw of a chain.
    pub(crate) fn take(&self, chain: u32, theta: &[f64], paths: &[Vec<f64>]) {
        let Some(place) = self.chains.iter().position(|(number, _)| *number == chain) else { return };
        if place == 0 {
            self.quantities.begin(paths);
        }
        let columns = &mut *self.chains[place].1.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.quantities.is_ready() {
            columns.early.push((theta.to_vec(), paths.to_vec()));
            return;
        }
        self.catch_up(columns);
        let mut values = Vec::new();
        self.quantities.values(theta, paths, &mut values);
        columns.values.extend(values);
    }

    /// Looks at draws that came before it was known where.
    fn catch_up(&self, columns: &mut Columns) {
        let mut values = Vec::new();
        for (theta, paths) in std::mem::take(&mut columns.early) {
            self.quantities.values(&theta, &paths, &mut values);
            columns.values.extend_from_slice(&values);
        }
    }

    /// Takes all draws of several chains, in threads.
    pub(crate) fn take_all<'b>(&self, chains: impl Iterator<Item = (u32, &'b ChainDraws)>) {
        let chains: Vec<(u32, &ChainDraws)> = chains.collect();
        if let Some((_, first)) = chains.iter().find(|(number, _)| Some(*number) == self.first()) {
            first.paths.first().inspect(|paths| self.quantities.begin(paths));
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(chains.len()) {
                scope.spawn(|| {
                    while let Some((number, draws)) = chains.get(next.fetch_add(1, Ordering::Relaxed)) {
                        for (theta, paths) in draws.theta.iter().zip(&draws.paths) {
                            self.take(*number, theta, paths);
                        }
                    }
                });
            }
        });
    }

    fn first(&self) -> Option<u32> {
        self.chains.first().map(|(number, _)| *number)
    }

    /// The verdict on the first `draws` draws of each chain.
    pub(crate) fn verdict(&self, draws: usize) -> Verdict {
        let list = self.quantities.list();
        let n = list.len();
        let chains: Vec<Vec<f64>> = self
            .chains
            .iter()
            .map(|(_, columns)| {
                let columns = &mut *columns.lock().unwrap_or_else(PoisonError::into_inner);
                if self.quantities.is_ready() {
                    self.catch_up(columns);
                }
                columns.values[..(draws * n).min(columns.values.len())].to_vec()
            })
            .collect();
        let of = |i: usize| -> Vec<Vec<f64>> {
            chains.iter().map(|values| values.iter().skip(i).step_by(n).copied().collect()).collect()
        };
        let next = AtomicUsize::new(0);
        let found: Mutex<Vec<Option<Judged>>> = Mutex::new(vec![None; n]);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(n) {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(quantity) = list.get(i).cloned() else { break };
                        let columns = of(i);
                        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
                        let judged = Judged {
                            quantity,
                            r_hat: rhat(&slices),
                            ess_bulk: ess_bulk(&slices),
                            ess_tail: ess_tail(&slices),
                        };
                        found.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(judged);
                    }
                });
            }
        });
        let judged = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut verdict = Verdict {
            draws,
            target: self.target,
            judged: judged.into_iter().flatten().collect(),
            excluded: self.quantities.excluded.clone(),
            left_out: 0,
            apart: false,
        };
        let key = |i: usize| verdict.judged[i].r_hat.unwrap_or(0.0);
        let worst = (0..verdict.judged.len()).max_by(|a, b| key(*a).total_cmp(&key(*b)));
        verdict.apart = worst.is_some_and(|i| {
            let steady = |chain: &Vec<f64>| ess_bulk(&[chain]).is_some_and(|ess| ess >= STEADY);
            key(i) > APART && of(i).iter().all(steady)
        });
        verdict
    }
}
