//! The verdict that a reader sees first: may this run be trusted? Three lights, each with what was found and what to do next.
//!
//! - `converged`: have the chains converged
//! - `model`: is the model good, beside a constant and the best linear models
//! - `inside`: do its predictions stay where there were data
//! - `work`: how many draws and rows this may take

mod converged;
mod inside;
mod model;
mod work;

use gpssm::convergence::{Assessment, Warning, Wording};
use gpssm::posterior::{OnlineOptions, Simulation};
use gpssm::{Error, Problem, Record};
use serde::{Deserialize, Serialize};

use crate::evaluation::{ScoreOptions, ScoreReport, ScoreTask};
use crate::fitted::FittedModel;
use work::Work;

/// What a light shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// Usable, with a reservation.
    Fair,
    /// It could not be found out, which is no pass.
    Unknown,
    /// Not to be relied on.
    Bad,
}

impl State {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Unknown => "unknown",
            Self::Bad => "bad",
        }
    }
}

/// One of the three.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Light {
    /// What it shows.
    pub state: State,
    /// What is asked.
    pub question: String,
    /// What was found.
    pub finding: String,
    /// What to do next, with the command.
    pub next: String,
}

/// Scores of one output in both tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Output.
    pub output: String,
    /// The model, or a baseline, with its order.
    pub name: String,
    /// Fit % of a free run; none where it is not defined.
    pub free_run: Option<f64>,
    /// Share of the outputs inside the 90 % intervals of the free run.
    pub free_run_inside: Option<f64>,
    /// Fit % one step ahead.
    pub ahead: Option<f64>,
    /// Share of the outputs inside the 90 % intervals one step ahead.
    pub ahead_inside: Option<f64>,
}

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lights {
    /// The verdict in a few sentences.
    pub paragraph: String,
    /// Converged, model, inside.
    pub lights: Vec<Light>,
    /// What was predicted, in words.
    pub rows: String,
    /// Model and baselines; empty where nothing could be predicted.
    pub compared: Vec<Compared>,
}

impl Lights {
    /// Whether all three are good.
    pub fn is_good(&self) -> bool {
        self.lights.iter().all(|light| light.state == State::Good)
    }

    /// Scores as a table: its head, its rows, and what it shows.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>, String) {
        let share =
            |share: Option<f64>| share.map_or_else(|| "–".into(), |share| format!("{:.0} %", 100.0 * share));
        let fit = |fit: Option<f64>| fit.map_or_else(|| "–".into(), |fit| format!("{fit:.1}"));
        let several = self.compared.windows(2).any(|pair| pair[0].output != pair[1].output);
        let rows = self.compared.iter().map(|row| {
            let name = if several { format!("{}: {}", row.output, row.name) } else { row.name.clone() };
            vec![name, fit(row.free_run), share(row.free_run_inside), fit(row.ahead), share(row.ahead_inside)]
        });
        let head = ["", "free run, fit %", "inside 90 %", "one step ahead, fit %", "inside 90 %"];
        let caption = format!(
            "Predictions of {} by the model, a constant and linear models fitted to the same record. Fit is \
             100 (1 - RMSE / sd) %; inside 90 % is the share of outputs inside the 90 % intervals.",
            self.rows
        );
        (head.map(str::to_owned).to_vec(), rows.collect(), caption)
    }
}

/// Commands, as the program or the Python package words them. None may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commands {
    /// More draws.
    pub more: String,
    /// The same fit with more starts.
    pub more_starts: String,
    /// The same fit with four chains.
    pub more_chains: String,
    /// Draws from the posterior in place of a point estimate.
    pub posterior: String,
    /// A model chosen from the data; none where this one was.
    pub choose: Option<String>,
    /// The verdict on rows that were not used in the fit.
    pub held_out: String,
    /// Checks of residuals.
    pub check: String,
    /// Predictions under new inputs.
    pub simulate: String,
}

/// What is judged.
pub struct Judging<'a> {
    /// What was fitted.
    pub problem: &'a Problem,
    /// What is known of the draws.
    pub assessment: &'a Assessment,
    /// Times and sequences in messages.
    pub wording: &'a Wording<'a>,
    /// The fitted model with at most so many of its draws.
    pub fitted: &'a dyn Fn(usize) -> Result<FittedModel, Error>,
    /// Rows that were not used in the fit, as they were measured, and where they are from; none for the training record.
    pub held_out: Option<(&'a Record, &'a str)>,
    /// What the reader can do.
    pub commands: &'a Commands,
}

/// Predictions of a record by the model and its baselines.
struct Predicted {
    free_run: Result<ScoreReport, Error>,
    ahead: Result<ScoreReport, Error>,
    runs: Vec<Simulation>,
}

/// The verdict. Costs seconds at the most: draws and rows are thinned to what that takes. `on_progress` may end it.
pub fn lights(judging: &Judging, on_progress: &dyn Fn(usize, usize) -> bool) -> Result<Lights, Error> {
    let converged = converged::light(judging);
    let n_draws: usize = judging.assessment.draws.iter().sum();
    if n_draws == 0 {
        let nothing = |question: &str| Light {
            state: State::Unknown,
            question: question.into(),
            finding: "There are no draws yet, so nothing can be predicted.".into(),
            next: format!("Continue with: {}", judging.commands.more),
        };
        let paragraph =
            "This run has no draws yet: it stopped in the warm-up, and nothing was learned that can be used.";
        return Ok(Lights {
            paragraph: paragraph.into(),
            lights: vec![converged, nothing(model::QUESTION), nothing(inside::QUESTION)],
            rows: String::new(),
            compared: Vec::new(),
        });
    }
    let work = Work::new(judging.problem, judging.held_out.map(|(record, _)| record));
    let fitted = (judging.fitted)(work.draws)?;
    let whole = judging.held_out.map_or(&fitted.training, |(record, _)| record);
    let record = work.part(whole)?;
    let predicted = predict(&fitted, &record, &work, on_progress);
    let rows = describe_rows(judging, whole, &record);
    let (model, compared) = model::light(judging, &fitted, &predicted);
    let inside = inside::light(judging, &fitted, &record, &predicted.runs);
    let lights = vec![converged, model, inside];
    let is_point = judging.assessment.warnings.contains(&Warning::Point);
    Ok(Lights { paragraph: paragraph(&lights, &compared, is_point), lights, rows, compared })
}

fn predict(
    fitted: &FittedModel,
    record: &Record,
    work: &Work,
    on_progress: &dyn Fn(usize, usize) -> bool,
) -> Predicted {
    let options = |task| ScoreOptions {
        task,
        n_paths: work.paths,
        filter: OnlineOptions {
            functions: work.functions,
            particles: work.particles,
            ..OnlineOptions::default()
        },
        ..ScoreOptions::default()
    };
    let (free, ahead) = (options(ScoreTask::Simulation), options(ScoreTask::Ahead(1)));
    let n = 2 * record.sequences().len();
    let (mut free_reports, mut ahead_reports, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (i, sequence) in record.sequences().iter().enumerate() {
        let tell =
            |part: usize| move |done: usize, of: usize| on_progress((2 * i + part) * of + done, n * of);
        free_reports.push(fitted.score_free_run(sequence, &free, &tell(0)).map(|(report, run)| {
            runs.push(run);
            report
        }));
        ahead_reports.push(fitted.score(sequence, &ahead, &tell(1)));
    }
    let together = |options: &ScoreOptions, reports: Vec<Result<ScoreReport, Error>>| {
        let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(fitted.together(options, &reports, record.sequences()))
    };
    Predicted { free_run: together(&free, free_reports), ahead: together(&ahead, ahead_reports), runs }
}

/// Which rows were predicted.
fn describe_rows(judging: &Judging, whole: &Record, part: &Record) -> String {
    let count = |record: &Record| record.sequences().iter().map(gpssm::Sequence::n_rows).sum::<usize>();
    let (all, some) = (count(whole), count(part));
    let from = match judging.held_out {
        Some((_, source)) => format!("rows of {source}"),
        None => "training rows".to_owned(),
    };
    if some < all { format!("the first {some} of {all} {from}") } else { format!("all {all} {from}") }
}

/// The three lights in sentences.
fn paragraph(lights: &[Light], compared: &[Compared], is_point: bool) -> String {
    let [converged, model, inside] = lights else { return String::new() };
    let first = match converged.state {
        _ if is_point => "This is a point estimate, whose intervals are too narrow",
        State::Good => "The chains have converged",
        State::Fair => "The chains have nearly converged",
        State::Unknown => "It is not known whether the chains have converged",
        State::Bad => "The chains have not converged, so all estimates are provisional",
    };
    let fit = match compared {
        [only, ..] if compared.iter().all(|row| row.output == only.output) => {
            only.free_run.map_or_else(String::new, |fit| format!(" (fit of a free run: {fit:.1} %)"))
        }
        _ => String::new(),
    };
    let second = match model.state {
        State::Good => format!("the model predicts at least as well as the best linear one{fit}"),
        State::Fair => {
            format!("the model is usable, with the reservations that are named below{fit}")
        }
        State::Unknown => "it is not known how well the model predicts".into(),
        State::Bad => format!("the model does not predict well enough{fit}"),
    };
    let third = match inside.state {
        State::Good => "Its predictions stay inside the data.",
        State::Fair => "Some of its predictions leave the data.",
        State::Unknown => "Whether its predictions stay inside the data is not known.",
        State::Bad => "Its predictions go far beyond the data.",
    };
    let join = if (converged.state == State::Good) == (model.state <= State::Fair) { "and" } else { "but" };
    format!("{first}, {join} {second}. {third}")
}

#[cfg(test)]
mod tests;
