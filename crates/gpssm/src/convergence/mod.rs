//! Convergence of a run: the verdict, summaries of every unknown quantity, and warnings.
//!
//! - [`Verdict`]: whether all that is identified has converged; used to end runs, by summaries, reports and Python
//! - [`assess`]: the verdict with summaries and warnings in words
//! - `identified`, `quantities`: what is judged, and what is not

mod identified;
mod quantities;
mod verdict;

use std::fmt;

use self::identified::Identified;
pub use self::quantities::Quantity;
pub(crate) use self::verdict::Judge;
pub use self::verdict::{Judged, R_HAT_LIMIT, Verdict};
use crate::diagnostics::{Summary, UpdateRate, ess_bulk, rhat, summarise};
use crate::mcmc::settings::Settings;
use crate::mcmc::sink::ChainDraws;
use crate::mcmc::sweep::SweepInfo;
use crate::model::compile::Problem;

/// R-hat above which chains are said to disagree on states, which are looked at in every row.
pub const STATE_R_HAT_LIMIT: f64 = 1.1;
/// Part of the sweeps below which a state is said to change rarely.
pub const UPDATE_LIMIT: f64 = 0.02;
/// Times of a sequence at which states are looked at.
pub const MAX_TIMES: usize = 2_000;

/// A hyper-parameter and what the draws say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSummary {
    /// Name.
    pub name: String,
    /// Known, not learned.
    pub fixed: bool,
    /// Estimates and diagnostics.
    pub summary: Summary,
}

/// The states of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceAssessment {
    /// Rows that were looked at.
    pub rows: Vec<usize>,
    /// R-hat by row looked at and state, row-major; none where it is not defined.
    pub r_hat: Vec<Option<f64>>,
    /// Bulk effective sample size, the same way.
    pub ess_bulk: Vec<Option<f64>>,
    /// Part of the sweeps in which x_t changed, for every row, over all chains.
    pub update_rate: Vec<f64>,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Draws of each chain.
    pub draws: Vec<usize>,
    /// Hyper-parameters in the order of the table.
    pub parameters: Vec<ParameterSummary>,
    /// log p(theta, x, y).
    pub log_joint: Summary,
    /// States, by sequence.
    pub sequences: Vec<SequenceAssessment>,
    /// Counts of all draws.
    pub totals: SweepInfo,
    /// Whether all that is identified has converged.
    pub verdict: Verdict,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// A warning about convergence or numerics.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// Fewer than four draws in a chain: nothing can be judged.
    TooShort {
        /// Draws of the shortest chain.
        draws: usize,
    },
    /// Chains have different numbers of draws; only the common part is judged.
    Unequal {
        /// Draws that all chains have.
        common: usize,
    },
    /// Chains that have no draws, or so few that they are not judged: the others say nothing about them.
    LeftOut {
        /// Which, from 0.
        chains: Vec<usize>,
        /// Most draws that one of them has.
        draws: usize,
    },
    /// One chain cannot be compared with others.
    OneChain,
    /// A point estimate, whose intervals leave out what is not known of hyper-parameters and states.
    Point,
    /// Each chain is steady, but they are at different places: they found different solutions.
    Apart(Box<Verdict>),
    /// Too few draws for what is asked of them.
    Slow(Box<Verdict>),
    /// Chains disagree on states.
    States {
        /// State.
        state: String,
        /// Sequence, from 0, if there are several.
        sequence: Option<usize>,
        /// First and last rows of stretches, rows from 0.
        stretches: Vec<(usize, usize)>,
        /// Largest R-hat.
        r_hat: f64,
    },
    /// States that rarely change.
    Stuck {
        /// Sequence, from 0, if there are several.
        sequence: Option<usize>,
        /// First and last rows of stretches, rows from 0.
        stretches: Vec<(usize, usize)>,
        /// Smallest rate.
        rate: f64,
    },
    /// Numerical events.
    Numerical {
        /// What happened.
        what: &'static str,
        /// How often.
        count: u64,
        /// What it means.
        meaning: &'static str,
    },
}

/// Names in messages.
pub struct Wording<'a> {
    /// Time of each row, by sequence; empty for row numbers.
    pub time: &'a [Vec<f64>],
    /// How times are written.
    pub clock: &'a dyn Fn(f64) -> String,
    /// Label of each sequence; empty for numbers.
    pub sequences: &'a [String],
    /// How more draws are asked for, such as a command line.
    pub resume: &'a str,
}

/// A time as a number.
pub fn as_number(time: f64) -> String {
    time.to_string()
}

impl Wording<'_> {
    /// Row numbers, and nothing that is known of who asks.
    pub const ROWS: Wording<'static> = Wording {
        time: &[],
        clock: &as_number,
        sequences: &[],
        resume: "a resumed run with a larger budget",
    };

    /// A row of a sequence, both from 0.
    pub(crate) fn place(&self, (sequence, row): (usize, usize)) -> String {
        let which = match (sequence, self.sequences.get(sequence)) {
            (_, Some(label)) if self.sequences.len() > 1 => format!(" of sequence {label}"),
            (1.., None) => format!(" of sequence {}", sequence + 1),
            _ => String::new(),
        };
        format!("t = {}{which}", self.row(sequence, row))
    }

    fn row(&self, sequence: usize, row: usize) -> String {
        let time = self.time.get(sequence).and_then(|time| time.get(row));
        time.map_or_else(|| row.to_string(), |time| (self.clock)(*time))
    }

    fn stretches(&self, sequence: Option<usize>, stretches: &[(usize, usize)]) -> String {
        const SHOWN: usize = 4;
        let s = sequence.unwrap_or(0);
        let mut parts: Vec<String> = stretches
            .iter()
            .take(SHOWN)
            .map(|&(first, last)| {
                if first == last {
                    self.row(s, first)
                } else {
                    format!("{}..{}", self.row(s, first), self.row(s, last))
                }
            })
            .collect();
        if stretches.len() > SHOWN {
            parts.push(format!("and {} more stretches", stretches.len() - SHOWN));
        }
        let which = sequence.map_or(String::new(), |s| {
            let label = self.sequences.get(s).cloned().unwrap_or_else(|| (s + 1).to_string());
            format!(" of sequence {label}")
        });
        format!("t = {}{which}", parts.join(", "))
    }
}

impl Warning {
    /// The warning as one line of text.
    pub fn describe(&self, wording: &Wording) -> String {
        match self {
            Self::TooShort { draws } => {
                format!(
                    "The shortest chain has {draws} draws, too few for any diagnostic. Continue with: {}",
                    wording.resume
                )
            }
            Self::Unequal { common } => format!(
                "The chains have different lengths; diagnostics use the first {common} draws of each. Continue with: {}",
                wording.resume
            ),
            Self::LeftOut { chains, draws } => {
                let numbers: Vec<String> = chains.iter().map(|chain| (chain + 1).to_string()).collect();
                let which = match &numbers[..] {
                    [one] => format!("Chain {one} has"),
                    all => format!("Chains {} have", all.join(", ")),
                };
                let few =
                    if *draws == 0 { "no draws".into() } else { format!("only {draws} draws or fewer") };
                format!(
                    "{which} {few}, so estimates are those of the other chains, and convergence is not known. \
                     Continue with: {}",
                    wording.resume
                )
            }
            Self::OneChain => {
                "There is only one chain, so convergence cannot be checked. Run at least four.".into()
            }
            Self::Point => "This is a point estimate: hyper-parameters and states are single values, and all intervals leave out \
                            that they are not known."
                .into(),
            Self::Apart(verdict) => format!(
                "The chains found different solutions: {}. More draws will not help; fit again with more restarts: \
                 sampler.start.restarts = 256.",
                verdict.describe_worst(wording)
            ),
            Self::Slow(verdict) => {
                let factor = verdict.factor().filter(|factor| *factor > 1.0);
                let more = factor.map_or_else(String::new, |factor| match factor.ceil() {
                    ..2.5 => "About twice as many draws are needed. ".into(),
                    factor @ ..1000.0 => format!("About {factor:.0} times as many draws are needed. "),
                    _ => "More than 1000 times as many draws are needed. ".into(),
                });
                format!(
                    "Not converged: {}. {more}Continue with: {}",
                    verdict.describe_worst(wording),
                    wording.resume
                )
            }
            Self::States { state, sequence, stretches, r_hat } => format!(
                "The chains disagree on {state} at {} (R-hat up to {r_hat:.2}).",
                wording.stretches(*sequence, stretches)
            ),
            Self::Stuck { sequence, stretches, rate } => format!(
                "The states at {} rarely change (in {:.1} % of the sweeps at worst). Use more particles (sampler.particles).",
                wording.stretches(*sequence, stretches),
                100.0 * rate
            ),
            Self::Numerical { what, count, meaning } => format!("{what} {count} times. {meaning}"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.describe(&Wording::ROWS))
    }
}

/// Judges a run. `level` is the probability of the equal-tailed intervals.
pub fn assess(problem: &Problem, settings: &Settings, chains: &[ChainDraws], level: f64) -> Assessment {
    let draws: Vec<usize> = chains.iter().map(|chain| chain.theta.len()).collect();
    let counted: Vec<&ChainDraws> = counted(chains).into_iter().map(|i| &chains[i]).collect();
    let common = counted.iter().map(|chain| chain.theta.len()).min().unwrap_or(0);
    let table = problem.table();
    let columns = |value: &dyn Fn(&ChainDraws, usize) -> f64| -> Vec<Vec<f64>> {
        counted.iter().map(|chain| (0..common).map(|i| value(chain, i)).collect()).collect()
    };
    let parameters: Vec<ParameterSummary> = (0..table.len())
        .map(|k| ParameterSummary {
            name: table.parameters[k].name.clone(),
            fixed: table.is_fixed(k),
            summary: summarise(&slices(&columns(&|chain, i| chain.theta[i][k])), level),
        })
        .collect();
    let log_joint = summarise(&slices(&columns(&|chain, i| chain.info[i].log_joint)), level);
    let sequences: Vec<SequenceAssessment> =
        (0..problem.sequences().len()).map(|s| assess_sequence(problem, &counted, common, s)).collect();
    let mut totals = SweepInfo::default();
    chains.iter().flat_map(|chain| &chain.info).for_each(|info| totals.add(info));
    let verdict = verdict(problem, settings, chains);
    let mut found =
        Assessment { draws, parameters, log_joint, sequences, totals, verdict, warnings: Vec::new() };
    found.warnings = match settings.point && common > 0 {
        true => vec![Warning::Point],
        false => warnings(problem, chains, &found, common),
    };
    found
}

/// The verdict on the draws that all chains have; one that has hardly any is left out, and the verdict is not good then.
pub fn verdict(problem: &Problem, settings: &Settings, chains: &[ChainDraws]) -> Verdict {
    let counted = counted(chains);
    let common = counted.iter().map(|&i| chains[i].theta.len()).min().unwrap_or(0);
    let numbers: Vec<u32> = counted.iter().map(|&i| i as u32).collect();
    let judge = Judge::new(problem, settings, &numbers);
    judge.take_all(counted.iter().map(|&i| (i as u32, &chains[i])));
    Verdict { left_out: chains.len() - counted.len(), ..judge.verdict(common) }
}

/// Fewest draws of a chain that is judged, ...
const FEWEST_DRAWS: usize = 4;
/// ... and how many times as many the longest one may have.
const MOST_UNEQUAL: usize = 10;

/// Chains with draws enough to be judged; all if there are none.
fn counted(chains: &[ChainDraws]) -> Vec<usize> {
    let longest = chains.iter().map(|chain| chain.theta.len()).max().unwrap_or(0);
    let fewest = FEWEST_DRAWS.max(longest / MOST_UNEQUAL);
    let counted: Vec<usize> = (0..chains.len()).filter(|&i| chains[i].theta.len() >= fewest).collect();
    if counted.is_empty() { (0..chains.len()).collect() } else { counted }
}

fn slices(columns: &[Vec<f64>]) -> Vec<&[f64]> {
    columns.iter().map(Vec::as_slice).collect()
}

fn assess_sequence(problem: &Problem, chains: &[&ChainDraws], common: usize, s: usize) -> SequenceAssessment {
    let n_x = problem.n_x();
    let n_rows = problem.sequences()[s].n_rows();
    let every = n_rows.div_ceil(MAX_TIMES).max(1);
    let rows: Vec<usize> = (0..n_rows).step_by(every).collect();
    let mut r_hat = Vec::with_capacity(rows.len() * n_x);
    let mut ess = Vec::with_capacity(rows.len() * n_x);
    for &row in &rows {
        for d in 0..n_x {
            let columns: Vec<Vec<f64>> = chains
                .iter()
                .map(|chain| chain.paths[..common].iter().map(|paths| paths[s][row * n_x + d]).collect())
                .collect();
            let columns = slices(&columns);
            r_hat.push(rhat(&columns));
            ess.push(ess_bulk(&columns));
        }
    }
    let mut changed = vec![0.0; n_rows];
    let mut sweeps = 0.0f64;
    for chain in chains {
        let mut rate = UpdateRate::new(n_rows);
        for pair in chain.paths.windows(2) {
            // Both paths have the shape of their sequence.
            let _ = rate.record(&pair[0][s], &pair[1][s], n_x);
        }
        changed.iter_mut().zip(rate.changed()).for_each(|(sum, &count)| *sum += count as f64);
        sweeps += rate.sweeps() as f64;
    }
    let update_rate = changed.iter().map(|count| count / sweeps.max(1.0)).collect();
    SequenceAssessment { rows, r_hat, ess_bulk: ess, update_rate }
}

fn warnings(problem: &Problem, chains: &[ChainDraws], found: &Assessment, common: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if common < FEWEST_DRAWS {
        warnings.push(Warning::TooShort { draws: common });
        return warnings;
    }
    // A run whose time was up has chains that differ by a few draws.
    let counted = counted(chains);
    if counted.iter().any(|&i| 10 * common < 9 * found.draws[i]) {
        warnings.push(Warning::Unequal { common });
    }
    let left_out: Vec<usize> = (0..chains.len()).filter(|i| !counted.contains(i)).collect();
    if !left_out.is_empty() {
        let draws = left_out.iter().map(|&i| found.draws[i]).max().unwrap_or(0);
        warnings.push(Warning::LeftOut { chains: left_out, draws });
    }
    if found.draws.len() == 1 {
        warnings.push(Warning::OneChain);
    }
    let verdict = &found.verdict;
    if counted.len() > 1 && verdict.n_bad() > 0 {
        let verdict = Box::new(verdict.clone());
        warnings.push(if verdict.apart { Warning::Apart(verdict) } else { Warning::Slow(verdict) });
    }
    let identified = Identified::new(problem).states;
    let n_x = problem.n_x();
    let names = problem.model().state_names();
    let several = found.sequences.len() > 1;
    for (s, sequence) in found.sequences.iter().enumerate() {
        for d in (0..n_x).filter(|d| identified[*d]) {
            let bad = |i: usize| sequence.r_hat[i * n_x + d].filter(|r_hat| *r_hat > STATE_R_HAT_LIMIT);
            let stretches = stretches(&sequence.rows, |i| bad(i).is_some());
            if !stretches.is_empty() {
                let r_hat = (0..sequence.rows.len()).filter_map(bad).fold(0.0, f64::max);
                let state = names[d].clone();
                warnings.push(Warning::States { state, sequence: several.then_some(s), stretches, r_hat });
            }
        }
    }
    for (s, sequence) in found.sequences.iter().enumerate() {
        let rows: Vec<usize> = (0..sequence.update_rate.len()).collect();
        let stretches = stretches(&rows, |row| sequence.update_rate[row] < UPDATE_LIMIT);
        // States that never move in any chain are held on purpose.
        let held = sequence.update_rate.iter().all(|rate| *rate == 0.0);
        if !stretches.is_empty() && !held {
            let rate = sequence.update_rate.iter().copied().fold(1.0, f64::min);
            warnings.push(Warning::Stuck { sequence: several.then_some(s), stretches, rate });
        }
    }
    let totals = &found.totals;
    for (what, count, meaning) in [
        (
            "A particle filter failed",
            totals.filter_failures,
            "The old path was kept; check priors and sensor.",
        ),
        (
            "The density of a path could not be computed",
            totals.density_failures,
            "Those proposals were rejected.",
        ),
        ("A log density was not a number", totals.slice_failures, "Those proposals were rejected."),
        (
            "A slice update reached its step limit",
            totals.slice_capped,
            "The parameter kept its value in that sweep.",
        ),
    ] {
        // Rejected proposals are part of slice sampling near the edge of what can be computed.
        let draws: usize = found.draws.iter().sum();
        if count as f64 > 0.01 * draws as f64 {
            warnings.push(Warning::Numerical { what, count, meaning });
        }
    }
    warnings
}

/// Neighbouring rows for which `bad` holds.
fn stretches(rows: &[usize], bad: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    let mut open = false;
    for (i, &row) in rows.iter().enumerate() {
        if !bad(i) {
            open = false;
        } else if let (true, Some(last)) = (open, stretches.last_mut()) {
            last.1 = row;
        } else {
            stretches.push((row, row));
            open = true;
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Functions, Model, Sequence};

    fn settings() -> Settings {
        Settings { ess: 300, ..Settings::default() }
    }

    /// Two chains of four rows; in the second one states of rows 1 and 2 lie elsewhere, and the last row may be held.
    fn chains(shift: f64, held: bool) -> (Problem, Vec<ChainDraws>) {
        let sequence = Sequence::scalar(&[0.0, 1.0, -1.0, 0.5], None).unwrap();
        let problem = Problem::new(Model::observed(1, 0), &Functions::new(), sequence.into()).unwrap();
        let n = problem.table().len();
        // A plain recurrence makes well mixed numbers.
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let chains = (0..2)
            .map(|chain| {
                let mut draws = ChainDraws::default();
                for _ in 0..400 {
                    draws.theta.push((0..n).map(|_| uniform()).collect());
                    let mut path: Vec<f64> = (0..4).map(|_| uniform()).collect();
                    path[1] += shift * f64::from(chain);
                    path[2] += shift * f64::from(chain);
                    if held {
                        path[3] = 0.25;
                    }
                    draws.paths.push(vec![path]);
                    draws.info.push(SweepInfo { log_joint: uniform(), ..SweepInfo::default() });
                }
                draws
            })
            .collect();
        (problem, chains)
    }

    #[test]
    fn independent_draws_are_good_if_there_are_enough_of_them() {
        let (problem, chains) = chains(0.0, false);
        let found = assess(&problem, &settings(), &chains, 0.9);
        assert_eq!(found.warnings, []);
        assert!(found.verdict.is_good() && found.verdict.n_bad() == 0 && found.verdict.excluded.is_empty());
        // Each learned parameter, four states, and f where three transitions begin.
        let n_learned = found.parameters.iter().filter(|parameter| !parameter.fixed).count();
        assert_eq!(found.verdict.judged.len(), n_learned + 4 + 3);
        let more = Settings { ess: 5_000, ..settings() };
        let found = assess(&problem, &more, &chains, 0.9);
        let [Warning::Slow(verdict)] = &found.warnings[..] else { panic!("{:?}", found.warnings) };
        assert!(!verdict.is_good() && !verdict.apart);
        let words = found.warnings[0].to_string();
        assert!(words.starts_with("Not converged: ") && words.contains("target 5000"), "{words}");
        assert!(words.ends_with("Continue with: a resumed run with a larger budget"), "{words}");
    }

    #[test]
    fn a_state_that_never_moves_is_named_and_is_no_pass() {
        let (problem, chains) = chains(0.0, true);
        let found = assess(&problem, &settings(), &chains, 0.9);
        let [Warning::Slow(verdict), Warning::Stuck { stretches, rate, sequence: None }] =
            &found.warnings[..]
        else {
            panic!("{:?}", found.warnings)
        };
        let worst = verdict.worst_r_hat().unwrap();
        assert_eq!(worst.quantity, Quantity::State { name: "x".into(), at: (0, 3) });
        assert_eq!((worst.r_hat, verdict.n_bad()), (None, 1));
        assert_eq!((stretches.as_slice(), *rate), ([(3, 3)].as_slice(), 0.0));
        assert_eq!(found.sequences[0].update_rate, [1.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn chains_that_disagree_are_named_with_their_times() {
        let (problem, chains) = chains(3.0, false);
        let found = assess(&problem, &settings(), &chains, 0.9);
        let times = [vec![10.0, 10.5, 11.0, 11.5]];
        let names = Wording { time: &times, clock: &as_number, sequences: &[], resume: "more" };
        let words: Vec<String> = found.warnings.iter().map(|warning| warning.describe(&names)).collect();
        assert!(words[0].starts_with("The chains found different solutions: "), "{words:?}");
        assert!(words[0].contains("(x at t = 1") && words[0].contains("sampler.start.restarts"), "{words:?}");
        assert!(words[1].starts_with("The chains disagree on x at t = 10.5..11 (R-hat up to "), "{words:?}");
    }

    #[test]
    fn chains_of_unequal_length_are_judged_on_what_they_share() {
        let (problem, mut chains) = chains(0.0, true);
        chains[1].theta.truncate(100);
        chains[1].paths.truncate(100);
        chains[1].info.truncate(100);
        let found = assess(&problem, &settings(), &chains, 0.9);
        assert!(found.warnings.contains(&Warning::Unequal { common: 100 }));
    }

    /// The other chain is summarised all the same, and the run has not converged. Seen failing with a verdict on the
    /// chains that have draws.
    #[test]
    fn a_chain_without_draws_is_named_and_leaves_the_summary() {
        let (problem, mut chains) = chains(0.0, false);
        let plain = assess(&problem, &settings(), &chains, 0.9);
        chains.push(ChainDraws::default());
        let found = assess(&problem, &settings(), &chains, 0.9);
        assert_eq!(found.warnings, [Warning::LeftOut { chains: vec![2], draws: 0 }]);
        assert_eq!((&found.parameters, &found.log_joint), (&plain.parameters, &plain.log_joint));
        assert!(plain.verdict.is_good() && !found.verdict.is_good());
        assert!(found.warnings[0].to_string().starts_with("Chain 3 has no draws, so estimates are"));
        let none = assess(&problem, &settings(), &chains[2..], 0.9);
        assert_eq!(none.warnings, [Warning::TooShort { draws: 0 }]);
        assert!(!none.verdict.is_good());
    }

    #[test]
    fn stretches_join_neighbours_only() {
        let rows = [0, 1, 2, 3, 4, 5];
        assert_eq!(stretches(&rows, |i| [0, 1, 3, 5].contains(&i)), [(0, 1), (3, 3), (5, 5)]);
    }
}
