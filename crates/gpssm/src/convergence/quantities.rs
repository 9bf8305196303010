//! What is judged of every draw: numbers that mean the same in every chain.

use std::sync::OnceLock;

use super::Wording;
use super::identified::Identified;
use crate::mcmc::settings::Settings;
use crate::model::compile::Problem;
use crate::model::spec::{InitialSpec, Predictor, TransitionSpec};
use crate::points::Points;
use crate::posterior::function::{FunctionPosterior, Moments};
use crate::posterior::observe::sensor_mean;
use crate::posterior::to_internal;

/// Rows at which states, f and outputs are looked at.
const ROWS: usize = 20;

/// A number of a draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A hyper-parameter.
    Parameter {
        /// Its name.
        name: String,
    },
    /// A state in one row.
    State {
        /// Its name.
        name: String,
        /// Sequence and row, both from 0.
        at: (usize, usize),
    },
    /// The mean of f given the draw, at a point that the first draw visited.
    Function {
        /// State whose transition it is, from 0.
        state: usize,
        /// The point (x, u), in original units.
        z: Vec<f64>,
    },
    /// The mean of f given the draw, where the draw's own path is in one row.
    FunctionOnPath {
        /// State whose transition it is, from 0.
        state: usize,
        /// Sequence and row, both from 0.
        at: (usize, usize),
    },
    /// The mean of an output given the state.
    Output {
        /// Its name.
        name: String,
        /// Sequence and row, both from 0.
        at: (usize, usize),
    },
}

impl Quantity {
    /// Its name in messages.
    pub fn describe(&self, wording: &Wording) -> String {
        match self {
            Self::Parameter { name } => name.clone(),
            Self::State { name, at } => format!("{name} at {}", wording.place(*at)),
            Self::Function { state, z } => {
                let z: Vec<String> = z.iter().map(|value| short(*value)).collect();
                format!("f{}({})", state + 1, z.join(", "))
            }
            Self::FunctionOnPath { state, at } => format!("f{} at {}", state + 1, wording.place(*at)),
            Self::Output { name, at } => format!("mean of {name} at {}", wording.place(*at)),
        }
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    let size = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    format!("{value:.*}", (2.0 - size).clamp(0.0, 6.0) as usize)
}

/// Where f is looked at.
enum Places {
    /// At the same points in every draw; those that the first draw visited, internal units.
    Fixed(OnceLock<Points>),
    /// Where the path of the draw is.
    OnPath,
}

/// Which numbers of a draw are judged, and how they are found.
pub(crate) struct Quantities<'a> {
    problem: &'a Problem,
    parameters: Vec<usize>,
    rows: Vec<(usize, usize)>,
    /// States that are judged.
    states: Vec<usize>,
    /// States whose f is judged.
    functions: Vec<usize>,
    points: Places,
    /// Whether means of outputs are judged.
    outputs: bool,
    /// Names of what is left out because the data do not determine it.
    pub excluded: Vec<String>,
}

impl<'a> Quantities<'a> {
    pub(crate) fn new(problem: &'a Problem, settings: &Settings) -> Self {
        let (model, table) = (problem.model(), problem.table());
        let identified = Identified::new(problem);
        let names = model.state_names();
        let transition = |d: usize| &model.states[d].transition;
        let (mut states, mut functions, mut excluded) = (Vec::new(), Vec::new(), Vec::new());
        for (d, name) in names.iter().enumerate() {
            let moves =
                matches!(transition(d), TransitionSpec::Gp { .. } | TransitionSpec::Parametric { .. });
            // Held states vary in no draw, and f along them only with the hyper-parameters.
            let varies = |k: usize| table.parameters[k].dims.contains(&d) && !table.is_fixed(k);
            let learned = matches!(transition(d), TransitionSpec::Gp { .. })
                && (!settings.narx || (0..table.len()).any(varies));
            if !identified.states[d] {
                excluded.extend((moves && !settings.narx).then(|| name.clone()));
                excluded.extend(learned.then(|| format!("f{}", d + 1)));
                continue;
            }
            states.extend((moves && !settings.narx).then_some(d));
            functions.extend(learned.then_some(d));
        }
        let mut parameters = Vec::new();
        for k in (0..table.len()).filter(|k| !table.is_fixed(*k)) {
            match identified.has(&table.parameters[k]) {
                true => parameters.push(k),
                false => excluded.push(table.parameters[k].name.clone()),
            }
        }
        let plain = matches!(model.sensor.predictor(), Some(Predictor::States));
        let theta = vec![1.0; table.len()];
        let has_means =
            || sensor_mean(&problem.bind(&theta).sensor, &Points::new(problem.n_x() + model.n_u)).is_some();
        let fixed = identified.all();
        Self {
            problem,
            parameters,
            rows: rows(problem),
            states,
            functions,
            points: if fixed { Places::Fixed(OnceLock::new()) } else { Places::OnPath },
            // Held states vary in no draw, so neither do means of outputs.
            outputs: !settings.narx && !plain && identified.seen != identified.states && has_means(),
            excluded,
        }
    }

    /// Rows whose state is not known.
    fn state_rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let known = matches!(self.problem.model().initial, InitialSpec::Fixed(_));
        self.rows.iter().copied().filter(move |(_, row)| !known || *row > 0)
    }

    /// Rows that a transition follows.
    fn function_rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let sequences = self.problem.sequences();
        self.rows.iter().copied().filter(move |(s, row)| *row < sequences[*s].length())
    }

    /// z = (x, u) of some rows of a draw, original units.
    fn z(&self, paths: &[Vec<f64>], rows: impl Iterator<Item = (usize, usize)>) -> Points {
        let (n_x, n_u) = (self.problem.n_x(), self.problem.model().n_u);
        let record = self.problem.record().sequences();
        let mut z = Points::new(n_x + n_u);
        rows.for_each(|(s, t)| z.push_parts(&paths[s][t * n_x..(t + 1) * n_x], record[s].u(t)));
        z
    }

    /// Whether the points at which f is looked at are known.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.points {
            Places::Fixed(points) => points.get().is_some(),
            Places::OnPath => true,
        }
    }

    /// Takes the points at which f is looked at from the first draw of the first chain.
    pub(crate) fn begin(&self, paths: &[Vec<f64>]) {
        if let Places::Fixed(points) = &self.points {
            points.get_or_init(|| self.z(paths, self.function_rows()));
        }
    }

    /// What the numbers are, in order.
    pub(crate) fn list(&self) -> Vec<Quantity> {
        let model = self.problem.model();
        let (states, outputs) = (model.state_names(), model.output_names());
        let name = |k: &usize| self.problem.table().parameters[*k].name.clone();
        let mut list: Vec<Quantity> =
            self.parameters.iter().map(|k| Quantity::Parameter { name: name(k) }).collect();
        for at in self.state_rows() {
            list.extend(self.states.iter().map(|&d| Quantity::State { name: states[d].clone(), at }));
        }
        if !self.functions.is_empty() {
            for (i, at) in self.function_rows().enumerate() {
                list.extend(self.functions.iter().map(|&state| match &self.points {
                    Places::Fixed(points) => {
                        Quantity::Function { state, z: points.get().map_or(Vec::new(), |z| z.row(i)) }
                    }
                    Places::OnPath => Quantity::FunctionOnPath { state, at },
                }));
            }
        }
        if self.outputs {
            for &at in &self.rows {
                list.extend(outputs.iter().map(|name| Quantity::Output { name: name.clone(), at }));
            }
        }
        list
    }

    /// The numbers of a draw, in the order of the list; not a number where one cannot be computed.
    pub(crate) fn values(&self, theta: &[f64], paths: &[Vec<f64>], values: &mut Vec<f64>) {
        let (n_x, scaling) = (self.problem.n_x(), self.problem.scaling());
        values.clear();
        values.extend(self.parameters.iter().map(|&k| theta[k]));
        for (s, row) in self.state_rows() {
            values.extend(self.states.iter().map(|&d| paths[s][row * n_x + d]));
        }
        if !self.functions.is_empty() {
            let own;
            let z = match &self.points {
                Places::Fixed(points) => points.get_or_init(|| self.z(paths, self.function_rows())),
                Places::OnPath => {
                    own = self.z(paths, self.function_rows());
                    &own
                }
            };
            let mut moments = Moments::default();
            match FunctionPosterior::new(self.problem, theta, paths) {
                Ok(function) => {
                    function.evaluate(&to_internal(scaling, z), false, &mut moments);
                    for mean in moments.mean.chunks_exact(n_x) {
                        // Units do not change how chains compare.
                        values.extend(self.functions.iter().map(|&d| mean[d]));
                    }
                }
                Err(_) => values.extend(std::iter::repeat_n(f64::NAN, z.len() * self.functions.len())),
            }
        }
        if self.outputs {
            let n = self.rows.len() * self.problem.model().n_y;
            let z = to_internal(scaling, &self.z(paths, self.rows.iter().copied()));
            let means = sensor_mean(&self.problem.bind(theta).sensor, &z);
            values.extend(means.unwrap_or_else(|| vec![f64::NAN; n]));
        }
    }
}

/// Sequence and row of about twenty rows, evenly over the record.
fn rows(problem: &Problem) -> Vec<(usize, usize)> {
    let sequences = problem.sequences().iter().enumerate();
    let all: Vec<(usize, usize)> =
        sequences.flat_map(|(s, sequence)| (0..sequence.n_rows()).map(move |t| (s, t))).collect();
    let n = all.len().min(ROWS);
    (0..n).map(|i| all[(2 * i + 1) * all.len() / (2 * n)]).collect()
}
