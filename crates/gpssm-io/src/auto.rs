//! `states = "auto"`, the default where nothing is said of the model: what the run file fixes goes to [`gpssm_identify::auto`], what it chooses ends as ordinary keys of the
//! run.

use gpssm::Model;
use gpssm::mcmc::StartAt;
use gpssm::model::{InitialSpec, ProcessNoiseSpec, StateSpec, TransitionSpec};
use gpssm_identify::Layout;
use gpssm_identify::auto::{self, Candidate, Choice, Given, Structure};

use crate::config::{ChoiceConfig, ModelConfig, RunConfig, StateConfig, StateNumber, States};
use crate::table::Data;

/// Whether a configuration leaves the model open: it asks for it, or says nothing of the model.
pub fn is_asked_for(config: &RunConfig) -> bool {
    config.model.states == Some(States::Auto) || config.model == ModelConfig::default()
}

/// Settles everything that `auto` leaves open. `data` is the record as it was measured. What the configuration gives
/// (lags, input lags, delay, every, kernel, dynamics) stays as it is. `given` says whether a key of the sampler was set by
/// the user.
pub fn choose(
    config: &RunConfig,
    data: &Data,
    given: &dyn Fn(&str) -> bool,
    on_progress: &(dyn Fn(usize, usize) -> bool + Sync),
) -> (RunConfig, Choice) {
    let thinned = Layout { every: config.data.every.unwrap_or(1), ..Layout::default() };
    // What cannot be thinned is refused where the run is resolved.
    let record = thinned.apply_to(&data.record).unwrap_or_else(|_| data.record.clone());
    let choice = auto::choose(&fixed(config, given), &record, on_progress);
    let mut chosen = config.clone();
    chosen.model.states = None;
    if let (Some(rows), None) = (choice.first_rows, &config.data.sequence) {
        let first = config.data.rows.map_or(1, |(first, _)| first);
        chosen.data.rows = Some((first, first + rows * config.data.every.unwrap_or(1) - 1));
    }
    if let Some(structure) = &choice.structure {
        settle(&mut chosen, structure, !data.inputs.is_empty(), given);
    }
    chosen.choice = (!choice.trials.is_empty()).then(|| ChoiceConfig::from(&choice));
    if is_asked_for(&chosen) {
        chosen.model.states = Some(States::Number(data.outputs.len()));
    }
    (chosen, choice)
}

/// What would be tried on a record as it was measured, and the multiply-adds of it; the reason where nothing can be tried.
pub fn plan(
    config: &RunConfig,
    data: &Data,
    given: &dyn Fn(&str) -> bool,
) -> Result<(Vec<Candidate>, f64), &'static str> {
    auto::plan(&fixed(config, given), &data.record)
}

/// What the run file fixes.
fn fixed(config: &RunConfig, given: &dyn Fn(&str) -> bool) -> Given {
    let model = &config.model;
    let states = match (given("sampler.narx"), given("sampler.start_at")) {
        (true, _) if config.sampler.narx => Some(auto::States::Held),
        (false, false) => None,
        _ => Some(auto::States::Drawn),
    };
    Given {
        states,
        lags: model.lags,
        input_lags: config.data.input_lags,
        delay: config.data.delay,
        thinned: config.data.every.is_some(),
        kernel: model.kernel.clone(),
        calibrated: config.calibration.is_some(),
        other_sensor: model.sensor.as_ref().is_some_and(|sensor| !sensor.is_linear_gaussian()),
        own_states: !model.state.is_empty() || model.function.is_some() || model.mean.is_some(),
    }
}

/// A whole model as keys: every state by itself.
fn settle_model(config: &mut ModelConfig, model: &Model) {
    let state = |state: &StateSpec| {
        let mut own = StateConfig { scale: state.scale, ..StateConfig::default() };
        match &state.transition {
            TransitionSpec::Gp { kernel, mean } => {
                (own.kernel, own.mean) = (Some(kernel.clone()), Some(mean.clone()));
            }
            TransitionSpec::Parametric { function } => own.function = Some(function.clone()),
            TransitionSpec::Lag { of } => own.lag_of = Some(StateNumber(*of)),
        }
        own
    };
    // Each state says all of itself.
    (config.lags, config.kernel) = (None, None);
    config.state = model.states.iter().map(state).collect();
    config.sensor = Some(model.sensor.clone());
    config.symmetries = Some(model.symmetries.clone());
    config.process_noise =
        Some(model.process_noise.clone()).filter(|noise| *noise != ProcessNoiseSpec::default());
    config.initial = Some(model.initial.clone()).filter(|initial| *initial != InitialSpec::Default);
    // A model without unknown functions has no use for a prior over them.
    let learned = |state: &StateSpec| matches!(state.transition, TransitionSpec::Gp { .. });
    if model.states.iter().any(learned) {
        config.dynamics.get_or_insert_with(|| model.dynamics.clone());
    }
}

/// Writes the chosen model into the keys that are open.
fn settle(config: &mut RunConfig, chosen: &Structure, has_inputs: bool, given: &dyn Fn(&str) -> bool) {
    match &chosen.model {
        Some(model) => settle_model(&mut config.model, model),
        None => {
            config.model.lags = Some(chosen.lags);
            config.model.kernel = Some(chosen.kernel.clone());
            config.model.dynamics.get_or_insert_with(|| chosen.dynamics.clone());
        }
    }
    if has_inputs {
        config.data.input_lags = Some(chosen.layout.input_lags);
        config.data.delay = Some(chosen.layout.delay);
    }
    // What the record was read with stays a part of it.
    let every = chosen.layout.every * config.data.every.unwrap_or(1);
    config.data.every = (every > 1).then_some(every);
    match chosen.states {
        auto::States::Held => {
            config.sampler.narx = true;
            config.model.presample.get_or_insert(chosen.presample);
        }
        _ if given("sampler.start_at") => {}
        auto::States::Linear { .. } | auto::States::Corrected { .. } => {
            config.sampler.start_at = StartAt::Mean
        }
        _ => config.sampler.start_at = StartAt::Outputs,
    }
    if let Some(sensor) = &chosen.sensor {
        config.model.sensor.get_or_insert_with(|| sensor.clone());
    }
    if let Some(tune) = chosen.tune.filter(|_| !given("sampler.tune")) {
        config.sampler.tune = tune;
    }
    config.calibration = config.calibration.take().or_else(|| chosen.calibration.clone());
}
