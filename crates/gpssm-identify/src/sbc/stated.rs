//! What a model must state before data are simulated from it.

use gpssm::model::{
    DynamicsSpec, Given, InducingSpec, InitialSpec, ProcessNoiseSpec, SensorNoiseSpec, TransitionSpec,
};
use gpssm::{Error, KernelSpec, Model};

/// Refuses a model that leaves a prior, a unit, a box or inducing inputs to defaults, and names the first of them: defaults are
/// chosen from the data, so that the prior that data are simulated from would not be the one that they are fitted with.
///
/// `given` is what was written, `filled` the same model with all defaults ([`gpssm::Problem::model`]).
pub fn check_stated(given: &Model, filled: &Model) -> Result<(), Error> {
    let refuse = |key: String, message: &str| {
        let message = format!("{message}; defaults depend on the data");
        Err(Error::Model { key, message })
    };
    if given.standardise {
        return refuse("standardise".into(), "set it to false and state all priors in the units of the data");
    }
    for (d, (state, full)) in given.states.iter().zip(&filled.states).enumerate() {
        if matches!(state.transition, TransitionSpec::Lag { .. }) {
            continue;
        }
        if state.scale.is_none() {
            return refuse(format!("states[{d}].scale"), "state the typical size of this state");
        }
        if let (TransitionSpec::Gp { kernel, .. }, TransitionSpec::Gp { kernel: full, .. }) =
            (&state.transition, &full.transition)
            && let Some(name) = unstated_prior(kernel, full)
        {
            return refuse(format!("states[{d}].kernel"), &format!("state the prior of {name}"));
        }
    }
    if matches!(&given.process_noise, ProcessNoiseSpec::Full(None))
        || matches!(&given.process_noise, ProcessNoiseSpec::Diagonal(priors) if priors.is_empty())
    {
        return refuse("process_noise".into(), "state its prior");
    }
    for parameter in given.sensor.clone().parameters() {
        let is_open = match parameter {
            Given::Noise(SensorNoiseSpec::Diagonal(priors)) | Given::Scale(priors) => priors.is_empty(),
            Given::Noise(SensorNoiseSpec::Full(prior)) => prior.is_none(),
            Given::Shape(prior) => prior.is_none(),
            Given::Count(_) => false,
        };
        if is_open {
            return refuse("sensor".into(), "state the priors of all its parameters");
        }
    }
    if given.initial == InitialSpec::Default {
        return refuse("initial".into(), "state p(x_0)");
    }
    match &given.dynamics {
        DynamicsSpec::Fic { inducing, .. } | DynamicsSpec::Dtc { inducing, .. }
            if !matches!(inducing, InducingSpec::Given(_)) =>
        {
            refuse("dynamics".into(), "state the inducing inputs: inducing = { given = [[...], ...] }")
        }
        DynamicsSpec::Hilbert { half_width, .. } if half_width.is_empty() => {
            refuse("dynamics".into(), "state the box: half_width = [...]")
        }
        _ => Ok(()),
    }
}

/// A hyper-parameter whose prior was left open.
fn unstated_prior(given: &KernelSpec, filled: &KernelSpec) -> Option<String> {
    if let (KernelSpec::Part(given), KernelSpec::Part(filled)) = (given, filled) {
        // One without any prior is not a parameter here: a factor of a product has no scale of its own.
        let open = |(name, priors): &(&String, &Vec<_>)| {
            !priors.is_empty() && given.parameters.get(*name).is_none_or(Vec::is_empty)
        };
        return filled.parameters.iter().find(open).map(|(name, _)| format!("{}.{name}", given.kind.short));
    }
    if let KernelSpec::ChangePoint(change) = given
        && let Some((name, _)) = [("location", &change.location), ("width", &change.width)]
            .iter()
            .find(|(_, prior)| prior.is_none())
    {
        return Some(format!("change_point.{name}"));
    }
    let mut children = given.children().iter().zip(filled.children());
    children.find_map(|(given, filled)| unstated_prior(given, filled))
}
