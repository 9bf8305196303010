//! What a report shows, computed from draws.
//!
//! | file | section |
//! |---|---|
//! | `headline` | what was fitted, warnings, checks at a glance |
//! | `choice` | the models that were tried before the fit |
//! | `states` | data and smoothed states over time |
//! | `functions` | posterior of f at many points, one draw at a time |
//! | `transition` | the learned transition function |
//! | `parameters` | hyper-parameters: table, traces, ranks, densities |
//! | `residuals` | one-step predictions of the outputs |
//! | `health` | the sampler |
//! | `sensor` | what a sensor shows of a state, and its distribution function |
//! | `statistics` | quantiles, densities, splits |

pub mod choice;
pub(crate) mod functions;
pub(crate) mod headline;
pub(crate) mod health;
pub(crate) mod parameters;
pub(crate) mod residuals;
pub(crate) mod sensor;
pub(crate) mod states;
pub(crate) mod statistics;
pub(crate) mod transition;

use gpssm::Problem;
use gpssm::convergence::Verdict;
use gpssm::mcmc::ChainDraws;

use crate::Error;
use crate::chart::TimeTicks;

/// All that a report is made from.
#[derive(Clone, Debug)]
pub struct ReportInput<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Model and record, with the finite basis of the run if there is one.
    pub problem: &'a Problem,
    /// Draws in original units, oriented, by chain.
    pub chains: &'a [ChainDraws],
    /// Names and times; [`Names::default`] for x1, y1, ... and row numbers.
    pub names: Names,
    /// Whether all that is identified has converged; none to leave it out.
    pub verdict: Option<&'a Verdict>,
    /// The verdict on the run, which stands first; none to leave it out.
    pub lights: Option<Lights>,
    /// What the reader must know first, in plain sentences.
    pub warnings: Vec<String>,
    /// Facts of the run: seed, settings, versions, ...
    pub facts: Vec<(String, String)>,
    /// How the model was chosen, if it was chosen from the record.
    pub choice: Option<choice::Choice>,
    /// The configuration as it was written.
    pub configuration: Option<&'a str>,
}

/// The verdict on a run: may it be trusted?
#[derive(Clone, Debug, Default)]
pub struct Lights {
    /// In a few sentences.
    pub paragraph: String,
    /// One by one.
    pub lights: Vec<Light>,
    /// Scores beside simple models: header, rows and caption; empty for none.
    pub scores: (Vec<String>, Vec<Vec<String>>, String),
}

/// One question, its answer and what to do next.
#[derive(Clone, Debug)]
pub struct Light {
    /// `good`, `fair`, `unknown` or `bad`.
    pub state: &'static str,
    /// What is asked.
    pub question: String,
    /// What was found.
    pub finding: String,
    /// What to do.
    pub next: String,
}

/// Names of everything; what is missing gets a plain name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Of the states; x1, x2, ... if missing.
    pub states: Vec<String>,
    /// Of the inputs.
    pub inputs: Vec<String>,
    /// Of the outputs.
    pub outputs: Vec<String>,
    /// Of the sequences.
    pub sequences: Vec<String>,
    /// Of the time axis, with its unit.
    pub time_label: String,
    /// How it is divided.
    pub time_ticks: TimeTicks,
    /// Times of the rows of every sequence; row numbers where they are missing or do not fit.
    pub times: Vec<Vec<f64>>,
}

fn name(given: &[String], i: usize, letter: &str) -> String {
    given.get(i).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("{letter}{}", i + 1))
}

impl Names {
    pub(crate) fn state(&self, d: usize) -> String {
        name(&self.states, d, "x")
    }

    pub(crate) fn input(&self, c: usize) -> String {
        name(&self.inputs, c, "u")
    }

    pub(crate) fn output(&self, k: usize) -> String {
        name(&self.outputs, k, "y")
    }

    pub(crate) fn sequence(&self, s: usize) -> String {
        name(&self.sequences, s, "sequence ")
    }

    /// Component `c` of z = (x, u).
    pub(crate) fn component(&self, c: usize, n_x: usize) -> String {
        if c < n_x { self.state(c) } else { self.input(c - n_x) }
    }

    pub(crate) fn time_label(&self) -> String {
        if self.time_label.is_empty() { "t".into() } else { self.time_label.clone() }
    }

    /// Times of a sequence of `n` rows.
    pub(crate) fn times(&self, s: usize, n: usize) -> Vec<f64> {
        let given = self.times.get(s).filter(|times| times.len() == n && times.iter().all(|t| t.is_finite()));
        given.cloned().unwrap_or_else(|| (0..n).map(|t| t as f64).collect())
    }
}

/// A block of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph of plain text.
    Text(String),
    /// A figure: SVG and caption.
    Figure {
        /// The SVG element.
        svg: String,
        /// What to look for.
        caption: String,
    },
    /// A table with a header; cells are plain text.
    Table {
        /// Names of the columns.
        header: Vec<String>,
        /// Cells; rows whose flag is set are marked.
        rows: Vec<(bool, Vec<String>)>,
        /// What to look for.
        caption: String,
    },
    /// Figures of the same axes, of which one is shown at a time.
    Slides {
        /// What tells them apart.
        name: String,
        /// Its value in each of them.
        labels: Vec<String>,
        /// The SVG elements.
        svgs: Vec<String>,
        /// The one that is shown first, and on paper.
        first: usize,
        /// What to look for.
        caption: String,
    },
    /// Blocks that are shown on demand.
    Folded {
        /// One line.
        summary: String,
        /// What is folded.
        blocks: Vec<Block>,
    },
    /// Text that is shown on demand.
    Details {
        /// One line.
        summary: String,
        /// As it is.
        text: String,
    },
}

/// A section of the page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Anchor.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// A check at a glance.
#[derive(Clone, Debug)]
pub struct Check {
    /// Whether it is as it should be.
    pub good: bool,
    /// One sentence.
    pub text: String,
}

/// Everything on the page.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Title of the page.
    pub title: String,
    /// What was fitted, in words.
    pub summary: Vec<String>,
    /// The verdict.
    pub lights: Option<Lights>,
    /// Warnings of the caller.
    pub warnings: Vec<String>,
    /// Checks at a glance.
    pub checks: Vec<Check>,
    /// Facts of the run.
    pub facts: Vec<(String, String)>,
    /// Sections.
    pub sections: Vec<Section>,
}

/// Computes everything that the page shows.
pub fn contents(input: &ReportInput) -> Result<Contents, Error> {
    check(input)?;
    let functions = functions::evaluate(input)?;
    let (parameters, parameter_checks) = parameters::section(input);
    let (residuals, residual_checks) = residuals::section(input, &functions);
    let (health, health_checks) = health::section(input);
    let mut sections =
        vec![states::section(input), transition::section(input, &functions), parameters, residuals, health];
    sections.extend(input.choice.as_ref().map(choice::section));
    if let Some(text) = input.configuration {
        let details = Block::Details { summary: "Configuration as written".into(), text: text.into() };
        sections.push(Section { id: "configuration", title: "Configuration".into(), blocks: vec![details] });
    }
    Ok(Contents {
        title: input.title.to_owned(),
        summary: headline::summary(input),
        lights: input.lights.clone(),
        warnings: input.warnings.clone(),
        checks: [parameter_checks, residual_checks, health_checks].concat(),
        facts: input.facts.clone(),
        sections,
    })
}

/// Refuses draws that do not fit the problem, or are not numbers.
fn check(input: &ReportInput) -> Result<(), Error> {
    let refuse = |message: String| Err(Error::Draws { message });
    let (n_x, n_theta) = (input.problem.n_x(), input.problem.table().len());
    let sequences = input.problem.record().sequences();
    if input.chains.iter().all(|chain| chain.theta.is_empty()) {
        return refuse("there are none: a report needs at least one draw".into());
    }
    for (c, chain) in input.chains.iter().enumerate() {
        if chain.theta.len() != chain.paths.len() {
            return refuse(format!(
                "chain {c} has {} draws of hyper-parameters but {} of paths",
                chain.theta.len(),
                chain.paths.len()
            ));
        }
        for (j, (theta, paths)) in chain.theta.iter().zip(&chain.paths).enumerate() {
            let fits = theta.len() == n_theta
                && paths.len() == sequences.len()
                && paths.iter().zip(sequences).all(|(path, sequence)| path.len() == n_x * sequence.n_rows());
            if !fits {
                return refuse(format!(
                    "chain {c}, draw {j} does not have the shape of this model and record"
                ));
            }
            if theta.iter().chain(paths.iter().flatten()).any(|value| !value.is_finite()) {
                return refuse(format!("chain {c}, draw {j} holds numbers that are not finite"));
            }
        }
    }
    Ok(())
}

/// Draw `j` of chain `c`, for all that are kept.
pub(crate) fn all_draws(input: &ReportInput) -> Vec<(usize, usize)> {
    let chains = input.chains.iter().enumerate();
    chains.flat_map(|(c, chain)| (0..chain.theta.len()).map(move |j| (c, j))).collect()
}

/// At most `n` of them, evenly spaced.
pub(crate) fn some_draws(input: &ReportInput, n: usize) -> Vec<(usize, usize)> {
    let all = all_draws(input);
    let n = n.clamp(1, all.len());
    (0..n).map(|i| all[(2 * i + 1) * all.len() / (2 * n)]).collect()
}

/// At most `n` of `total` indices in increasing order, one from each of equal parts, at places that follow no
/// period of the data.
pub(crate) fn scattered(total: usize, n: usize) -> Vec<usize> {
    if total <= n {
        return (0..total).collect();
    }
    let part = total as f64 / n as f64;
    // Multiples of the golden section fill an interval evenly and never repeat.
    let within = |i: usize| (i as f64 * 0.618_033_988_749_895).fract();
    (0..n).map(|i| (((i as f64 + within(i)) * part) as usize).min(total - 1)).collect()
}

/// "one state", "two states": a count in words.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    const WORDS: [&str; 11] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let number = WORDS.get(n).map_or_else(|| n.to_string(), |word| (*word).to_owned());
    format!("{number} {}", if n == 1 { one } else { many })
}
