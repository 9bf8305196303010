//! A run as a file that leaves nothing open.

use std::fmt::Write;

use gpssm::model::TransitionSpec;
use serde::Serialize;
use toml::Value;

use super::resolve::Run;

pub(super) fn to_toml(run: &Run) -> String {
    let mut file = File(String::new());
    let model = run.problem.model();
    let data = &run.data;
    file.section("[data]");
    file.entry("file", &data.file);
    file.entry("y", &data.y);
    file.entry("u", &data.u);
    file.entry("time", &data.time);
    file.entry("dt", &data.dt);
    file.entry("sequence", &data.sequence);
    file.entry("rows", &data.rows);
    file.entry("every", &data.every);
    file.entry("input_lags", &data.input_lags);
    file.entry("delay", &data.delay);

    file.section("[model]");
    file.entry("standardise", &model.standardise);
    file.entry("dynamics", &model.dynamics);
    file.entry("process_noise", &model.process_noise);
    file.entry("sensor", &model.sensor);
    file.entry("initial", &model.initial);
    file.entry("symmetries", &model.symmetries);
    file.entry("presample", &(model.presample > 0).then_some(model.presample));
    for (d, state) in model.states.iter().enumerate() {
        file.section("[[model.state]]");
        file.entry("name", &model.names.states.get(d));
        match &state.transition {
            TransitionSpec::Gp { kernel, mean } => {
                file.entry("kernel", kernel);
                file.entry("mean", mean);
            }
            TransitionSpec::Parametric { function } => file.entry("function", function),
            TransitionSpec::Lag { of } => file.entry("lag_of", &format!("x{}", of + 1)),
        }
        file.entry("scale", &state.scale);
    }
    if !model.parameters.is_empty() {
        file.section("[model.parameters]");
        for (name, prior) in &model.parameters {
            file.entry(name, prior);
        }
    }

    file.section("[sampler]");
    // These change no draw.
    let machine = ["threads", "max_memory_mb", "budget"];
    if let Ok(Value::Table(settings)) = Value::try_from(&run.settings) {
        for (key, value) in settings.iter().filter(|(key, _)| !machine.contains(&key.as_str())) {
            file.entry(key, value);
        }
    }
    if let Some(calibration) = &run.calibration {
        file.section("[calibration]");
        file.entry("scale", &calibration.scale);
        file.entry("constant", &calibration.constant);
        file.entry("range", &calibration.range);
    }
    if let Some(choice) = &run.choice {
        file.section("[choice]");
        file.entry("chosen", &choice.chosen);
        file.entry("constant_crps", &choice.constant_crps);
        file.entry("linear_crps", &choice.linear_crps);
        file.entry("trials", &choice.trials);
    }
    file.0
}

struct File(String);

impl File {
    fn section(&mut self, name: &str) {
        let space = if self.0.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{space}{name}");
    }

    /// One line, or none if there is no value.
    fn entry<T: Serialize>(&mut self, key: &str, value: &T) {
        if let Ok(value) = Value::try_from(value) {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let bare = !key.is_empty() && key.chars().all(plain);
            let key = if bare { key.to_owned() } else { Value::String(key.to_owned()).to_string() };
            let _ = writeln!(self.0, "{key} = {value}");
        }
    }
}
