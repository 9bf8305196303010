//! From a run file and a record to a problem.

use gpssm::model::{
    DynamicsSpec, FunctionSpec, Identity, InducingSpec, Owner, SensorSpec, StateSpec, TransitionSpec,
};
use gpssm::{Functions, KernelSpec, Model, Problem, Settings, formula};
use gpssm_identify::{Calibration, sbc};
use thiserror::Error;

use super::error::ConfigError;
use super::tree::RunFile;
use super::{ChoiceConfig, DataConfig, ModelConfig, RunConfig, StateConfig, States, write};
use crate::table::{Data, DataError, DataProblem};

/// A run that can start: nothing is left open.
#[derive(Clone, Debug)]
pub struct Run {
    /// Model and record, all defaults filled in.
    pub problem: Problem,
    /// The sampler.
    pub settings: Settings,
    /// The data's file, without its folder, and columns.
    pub data: DataConfig,
    /// Calibration of free runs, if not the model's own.
    pub calibration: Option<Calibration>,
    /// How the model was chosen, if it was.
    pub choice: Option<ChoiceConfig>,
}

impl Run {
    /// The run file that leaves nothing open. What does not change the draws (folder of the data, threads,
    /// memory) is left out.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The run file or an option.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The data.
    #[error("{0}")]
    Data(#[from] DataError),
}

/// More states than this are a mistake.
const MOST_STATES: usize = 100;
/// A finite basis of more functions than this is a mistake.
const MOST_FUNCTIONS: usize = 1_000_000;
/// Seeds are written to files that know signed numbers only.
const LARGEST_SEED: u64 = i64::MAX as u64;

/// A key of the run file and what is wrong with it.
pub(super) type Wrong = (String, String);

fn wrong<T>(key: &str, message: impl Into<String>) -> Result<T, Wrong> {
    Err((key.to_owned(), message.into()))
}

impl RunFile {
    /// Fills in all defaults and checks the model against the record.
    pub fn resolve(&self, config: &RunConfig, data: &Data) -> Result<Run, RunError> {
        self.resolve_with(config, data, &Functions::new())
    }

    /// The same for a model with user functions.
    pub fn resolve_with(
        &self,
        config: &RunConfig,
        data: &Data,
        functions: &Functions,
    ) -> Result<Run, RunError> {
        let blame = |(key, message): Wrong| {
            let origin = self.origin(&key);
            self.error(key, origin, message)
        };
        let mut model = model(&config.model, data).map_err(blame)?;
        model.skip_missing = config.sampler.narx;
        check_counts(&model, data)?;
        let problem = problem(model, functions, data, config.model.symmetries.is_none())
            .map_err(|error| self.engine_error(error, config, data))?;
        check_settings(&config.sampler).map_err(blame)?;
        check_calibration(config.calibration.as_ref(), data.outputs.len()).map_err(blame)?;
        config.sampler.check(&problem).map_err(|error| self.engine_error(error, config, data))?;
        let file = Some(data.source.clone());
        Ok(Run {
            problem,
            settings: config.sampler.clone(),
            data: DataConfig { file, ..config.data.clone() },
            calibration: config.calibration.clone(),
            choice: config.choice.clone(),
        })
    }

    /// The same for a model that must leave nothing to defaults; the first key that does is named.
    pub fn resolve_stated(&self, config: &RunConfig, data: &Data) -> Result<Run, RunError> {
        let run = self.resolve(config, data)?;
        let given = model(&config.model, data).map_err(|(key, message)| {
            let origin = self.origin(&key);
            self.error(key, origin, message)
        })?;
        sbc::check_stated(&given, run.problem.model())
            .map_err(|error| self.engine_error(error, config, data))?;
        Ok(run)
    }

    /// What the engine says, with the key and line that it is about.
    fn engine_error(&self, error: gpssm::Error, config: &RunConfig, data: &Data) -> RunError {
        let at = |key: String, message: String| {
            let origin = self.origin(&key);
            RunError::Config(self.error(key, origin, message))
        };
        match error {
            gpssm::Error::Data { message } => RunError::Data(DataError {
                file: data.source.clone(),
                line: None,
                column: None,
                problem: Box::new(DataProblem::Other(message)),
            }),
            gpssm::Error::Model { key, message } => {
                let (key, message) = file_key(&key, message, &config.model);
                at(key, message)
            }
            gpssm::Error::Parameter { identity, name, message } => {
                at(owner_key(&identity, &config.model), format!("{name}: {message}"))
            }
            gpssm::Error::Formula { key, error } => {
                let (key, message) = file_key(&key, error.to_string(), &config.model);
                at(key, message)
            }
            gpssm::Error::Settings { key, message } => at(format!("sampler.{key}"), message),
            gpssm::Error::Memory { .. } => {
                let exact = matches!(config.model.dynamics, None | Some(DynamicsSpec::Exact));
                let basis =
                    if exact { ", or take a finite basis: model.dynamics = \"hilbert(40)\"" } else { "" };
                at("sampler".to_owned(), format!("{error}{basis}"))
            }
            other => at("model".to_owned(), other.to_string()),
        }
    }
}

fn check_calibration(calibration: Option<&Calibration>, n_y: usize) -> Result<(), Wrong> {
    let Some(calibration) = calibration else { return Ok(()) };
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(calibration.scale) {
        return wrong("calibration.scale", format!("{} is not a positive number", calibration.scale));
    }
    if !calibration.constant.is_empty() && calibration.constant.len() != n_y {
        return wrong(
            "calibration.constant",
            format!("{} numbers for {n_y} outputs", calibration.constant.len()),
        );
    }
    if !calibration.range.is_empty() && calibration.range.len() != n_y {
        return wrong("calibration.range", format!("{} pairs for {n_y} outputs", calibration.range.len()));
    }
    if let Some((low, high)) =
        calibration.range.iter().find(|(low, high)| low >= high || low.is_nan() || high.is_nan())
    {
        return wrong("calibration.range", format!("{low} is not less than {high}"));
    }
    match calibration.constant.iter().find(|value| !positive(**value)) {
        Some(value) => wrong("calibration.constant", format!("{value} is not a positive number")),
        None => Ok(()),
    }
}

/// The key of a part of a state: of its own table, or of the whole model.
fn state_key(d: usize, part: &str, config: &ModelConfig) -> String {
    match config.state.is_empty() {
        true => format!("model{part}"),
        false => format!("model.state[{}]{part}", d + 1),
    }
}

/// The key of the run file that an entry of theta comes from.
fn owner_key(identity: &Identity, config: &ModelConfig) -> String {
    match &identity.owner {
        Owner::Kernel { state, .. } => state_key(*state, ".kernel", config),
        Owner::Mean { state } => state_key(*state, ".mean", config),
        Owner::ProcessNoise => "model.process_noise".to_owned(),
        Owner::Sensor | Owner::SensorMean { .. } => "model.sensor".to_owned(),
        Owner::User => format!("model.parameters.{}", identity.role.symbol()),
    }
}

/// The key of the run file for a place in the engine's description.
fn file_key(key: &str, message: String, config: &ModelConfig) -> (String, String) {
    let state = |d: &str, rest: &str| state_key(d.parse().unwrap_or(0), rest, config);
    if let Some((d, rest)) = key.strip_prefix("states[").and_then(|rest| rest.split_once(']')) {
        return (state(d, rest), message);
    }
    if let Some((d, _)) = key.strip_prefix("names.states[").and_then(|rest| rest.split_once(']')) {
        return (state(d, ".name"), message);
    }
    if let Some((i, rest)) = key.strip_prefix("symmetries[").and_then(|rest| rest.split_once(']')) {
        return (format!("model.symmetries[{}]{rest}", i.parse::<usize>().unwrap_or(0) + 1), message);
    }
    if key.starts_with("sensor.formulas") {
        return ("model.sensor".to_owned(), message);
    }
    (format!("model.{key}"), message)
}

/// The engine's description, before its defaults.
fn model(config: &ModelConfig, data: &Data) -> Result<Model, Wrong> {
    let (n_y, n_u) = (data.outputs.len(), data.inputs.len());
    let states = match config.states {
        Some(States::Auto) => {
            return wrong(
                "model.states",
                "auto is for `gpssm fit` and `gpssm evaluate`; give a number of states here, or lags",
            );
        }
        Some(States::Number(states)) => Some(states),
        None => None,
    };
    let mut model = match (config.lags, states, config.state.len()) {
        (Some(_), _, 1..) => {
            return wrong("model.lags", "states that are given one by one have lag_of instead");
        }
        (Some(lags), states, 0) => {
            if states.is_some_and(|states| states != n_y) {
                return wrong(
                    "model.lags",
                    format!("with lags the states are the {n_y} outputs: leave states out"),
                );
            }
            if lags.saturating_mul(n_y) > MOST_STATES {
                return wrong("model.lags", format!("more than {MOST_STATES} states"));
            }
            Model::lagged_outputs(n_y, n_u, lags)
        }
        (None, Some(states), listed @ 1..) if states != listed => {
            return wrong(
                "model.states",
                format!("{states} states, but {listed} [[model.state]] tables: leave one out"),
            );
        }
        (None, states, listed) => {
            let n_x = if listed > 0 { listed } else { states.unwrap_or(n_y) };
            if n_x > MOST_STATES {
                return wrong("model.states", format!("more than {MOST_STATES} states"));
            }
            Model::with_hidden_states(n_x, n_y, n_u)
        }
    };
    names(&mut model, config, data);
    let whole = StateConfig {
        kernel: config.kernel.clone(),
        mean: config.mean.clone(),
        function: config.function.clone(),
        ..StateConfig::default()
    };
    check_state("model", &whole)?;
    for d in 0..model.states.len() {
        let own = config.state.get(d);
        if let Some(own) = own {
            check_state(&format!("model.state[{}]", d + 1), own)?;
        }
        if !matches!(model.states[d].transition, TransitionSpec::Lag { .. }) {
            model.states[d] = state(own.unwrap_or(&StateConfig::default()), &whole);
        }
    }
    for d in 0..model.states.len() {
        let names = model.names.clone();
        if let TransitionSpec::Gp { kernel, .. } = &mut model.states[d].transition {
            name_components(kernel, &names);
        }
    }
    if let Some(dynamics) = &config.dynamics {
        check_size(dynamics)?;
        model.dynamics = dynamics.clone();
    }
    if let Some(noise) = &config.process_noise {
        model.process_noise = noise.clone();
    }
    if let Some(sensor) = &config.sensor {
        if config.lags.is_some_and(|lags| lags > 0) && sensor.is_linear_gaussian() {
            // Keeps what the sensor of lagged outputs shows, unless another predictor is asked for.
            model.sensor = lagged_sensor(&model.sensor, sensor);
        } else {
            model.sensor = sensor.clone();
        }
    }
    if let Some(initial) = &config.initial {
        model.initial = initial.clone();
    }
    model.parameters = config.parameters.clone();
    model.standardise = config.standardise.unwrap_or(true);
    model.presample = config.presample.unwrap_or(0);
    let lag = |d: &usize| matches!(model.states[*d].transition, TransitionSpec::Lag { .. });
    let lags: Vec<usize> = (0..model.states.len()).filter(lag).collect();
    match &config.symmetries {
        Some(symmetries) => model.symmetries = symmetries.clone(),
        None => model.symmetries.retain(|symmetry| !symmetry.flip.iter().any(|d| lags.contains(d))),
    }
    Ok(model)
}

/// The noise that is asked for with the mean of lagged outputs.
fn lagged_sensor(lagged: &SensorSpec, asked: &SensorSpec) -> SensorSpec {
    use gpssm::model::Predictor;
    match (lagged, asked) {
        (SensorSpec::Gaussian { mean, .. }, SensorSpec::Gaussian { mean: Predictor::States, noise }) => {
            SensorSpec::Gaussian { mean: mean.clone(), noise: noise.clone() }
        }
        _ => asked.clone(),
    }
}

fn check_state(key: &str, state: &StateConfig) -> Result<(), Wrong> {
    let gp = state.kernel.is_some() || state.mean.is_some();
    if state.function.is_some() && gp {
        return wrong(
            &format!("{key}.function"),
            "a known transition has neither kernel nor mean: leave one out",
        );
    }
    if state.lag_of.is_some() && (gp || state.function.is_some()) {
        return wrong(&format!("{key}.lag_of"), "a lag has neither kernel, mean nor function: leave one out");
    }
    Ok(())
}

/// One state: its own parts, else those of the whole model, else the defaults.
fn state(own: &StateConfig, whole: &StateConfig) -> StateSpec {
    let gp = |kernel: Option<KernelSpec>, mean: Option<FunctionSpec>| TransitionSpec::Gp {
        kernel: kernel.or_else(|| whole.kernel.clone()).unwrap_or_default(),
        mean: mean.or_else(|| whole.mean.clone()).unwrap_or_default(),
    };
    let transition = match (own.lag_of, &own.function, &own.kernel, &own.mean, &whole.function) {
        (Some(of), ..) => TransitionSpec::Lag { of: of.0 },
        (_, Some(function), ..) => TransitionSpec::Parametric { function: function.clone() },
        (_, _, None, None, Some(function)) => TransitionSpec::Parametric { function: function.clone() },
        (_, _, kernel, mean, _) => gp(kernel.clone(), mean.clone()),
    };
    StateSpec { transition, scale: own.scale }
}

/// Names of states as given, of inputs and outputs from the columns, where formulas can use them.
fn names(model: &mut Model, config: &ModelConfig, data: &Data) {
    let n_x = config.state.len();
    if config.state.iter().any(|state| state.name.is_some()) {
        let name = |d: usize| config.state[d].name.clone().unwrap_or_else(|| format!("x{}", d + 1));
        model.names.states = (0..n_x).map(name).collect();
    }
    let default_of = |name: &str, letter: char| {
        name.strip_prefix(letter).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let free = |name: &String, other_letters: [char; 2]| {
        !name.trim().is_empty()
            && formula::reserved(name).is_none()
            && !config.parameters.contains_key(name)
            && !model.names.states.contains(name)
            && !other_letters.iter().any(|letter| default_of(name, *letter))
    };
    // A column that is called like something else keeps its name in the data only.
    let inputs = data.inputs.iter().all(|name| free(name, ['x', 'y']));
    let outputs = data.outputs.iter().all(|name| free(name, ['x', 'u']));
    if inputs {
        model.names.inputs = data.inputs.clone();
    }
    if outputs {
        model.names.outputs = data.outputs.clone();
    }
}

/// Names of states and columns in a kernel become x1, u2, ...
fn name_components(kernel: &mut KernelSpec, names: &gpssm::model::Names) {
    kernel.children_mut().iter_mut().for_each(|part| name_components(part, names));
    let Some(active) = kernel.active_mut() else { return };
    for name in active.iter_mut().flatten() {
        let place = |names: &[String]| names.iter().position(|other| other == name);
        // x and u alone stand for all of them.
        if name == "x" || name == "u" {
            continue;
        }
        if let Some(d) = place(&names.states) {
            *name = format!("x{}", d + 1);
        } else if let Some(c) = place(&names.inputs) {
            *name = format!("u{}", c + 1);
        }
    }
}

/// A problem; default symmetries that the model does not have are dropped.
fn problem(
    mut model: Model,
    functions: &Functions,
    data: &Data,
    default_symmetries: bool,
) -> Result<Problem, gpssm::Error> {
    let defaults = if default_symmetries { std::mem::take(&mut model.symmetries) } else { Vec::new() };
    let mut problem = Problem::new(model, functions, data.record.clone())?;
    for symmetry in defaults {
        // One that the sensor breaks is no symmetry of this model.
        let _ = problem.declare(symmetry);
    }
    Ok(problem)
}

fn check_size(dynamics: &DynamicsSpec) -> Result<(), Wrong> {
    let size = match dynamics {
        DynamicsSpec::Exact => Some(0),
        DynamicsSpec::Fic { inducing, .. } | DynamicsSpec::Dtc { inducing, .. } => match inducing {
            InducingSpec::Given(points) => Some(points.len()),
            InducingSpec::Grid(counts) => counts.iter().try_fold(1usize, |n, count| n.checked_mul(*count)),
            InducingSpec::KMeans(n) | InducingSpec::Greedy(n) | InducingSpec::Variance(n) => Some(*n),
        },
        DynamicsSpec::Hilbert { functions, .. } => Some(*functions),
        DynamicsSpec::Fourier { frequencies, .. } => Some(*frequencies),
    };
    match size.filter(|size| *size <= MOST_FUNCTIONS) {
        Some(_) => Ok(()),
        None => wrong("model.dynamics", format!("a basis of more than {MOST_FUNCTIONS} functions")),
    }
}

fn check_settings(settings: &Settings) -> Result<(), Wrong> {
    if settings.seed > LARGEST_SEED {
        return wrong("sampler.seed", format!("must be at most {LARGEST_SEED}"));
    }
    if settings.chains > 10_000 {
        return wrong("sampler.chains", "more than 10000 chains");
    }
    Ok(())
}

/// Counts must be counts: names line and column of the first that is not.
fn check_counts(model: &Model, data: &Data) -> Result<(), DataError> {
    let families = model.sensor.families(model.n_y).unwrap_or_default();
    for (sequence, lines) in data.record.sequences().iter().zip(&data.lines) {
        for t in 0..sequence.n_rows() {
            for (k, (&y, family)) in sequence.y(t).iter().zip(&families).enumerate() {
                if let Err(error) = family.check(y) {
                    return Err(DataError {
                        file: data.source.clone(),
                        line: lines.get(t).copied(),
                        column: data.outputs.get(k).cloned(),
                        problem: Box::new(DataProblem::Other(error.to_string())),
                    });
                }
            }
        }
    }
    Ok(())
}
