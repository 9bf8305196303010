//! `states="auto"`: the model is chosen from the record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gpssm_identify::auto::Choice;
use gpssm_io::auto;
use gpssm_io::config::{ChoiceConfig, RunConfig, StateConfig};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::error::to_json;
use crate::problem::{Labels, POLL, config_error, file_and_data};

/// What was chosen, as JSON: keys of the run file by section, and the candidates that were tried.
#[pyfunction]
pub(crate) fn choose(
    py: Python<'_>,
    keys: &str,
    y: Vec<PyReadonlyArray2<'_, f64>>,
    u: Option<Vec<PyReadonlyArray2<'_, f64>>>,
    labels: Labels,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (file, data) = file_and_data(keys, &y, u.as_deref(), labels)?;
    let config = file.config().map_err(config_error)?;
    let stop = AtomicBool::new(false);
    let (tried, of) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tell = |done: usize, total: usize| {
        tried.store(done, Ordering::Relaxed);
        of.store(total, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    let mut interrupt = None;
    let found = py.detach(|| {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| auto::choose(&config, &data, &|key| file.is_given(key), &tell));
            while !worker.is_finished() {
                std::thread::sleep(POLL);
                let progress = (tried.load(Ordering::Relaxed), of.load(Ordering::Relaxed));
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    on_progress.as_ref().map_or(Ok(()), |tell| tell.call1(py, progress).map(drop))
                });
                if let Err(error) = told {
                    stop.store(true, Ordering::Relaxed);
                    interrupt.get_or_insert(error);
                }
            }
            worker.join()
        })
    });
    if let Some(error) = interrupt {
        return Err(error);
    }
    // A panic of the worker goes on as one of this thread, where pyo3 makes an exception of it.
    let (chosen, choice) = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    to_json("choice", &in_keys(&chosen, &choice))
}

fn in_keys(chosen: &RunConfig, choice: &Choice) -> Value {
    let RunConfig { data, model, sampler, calibration, .. } = chosen;
    let tried = ChoiceConfig::from(choice);
    let state = |state: &StateConfig| {
        let keys = [
            ("kernel", json!(state.kernel)),
            ("mean", json!(state.mean)),
            ("function", json!(state.function)),
            ("lag_of", json!(state.lag_of.map(|of| of.0 + 1))),
            ("scale", json!(state.scale)),
        ];
        let given = keys.into_iter().filter(|(_, value)| !value.is_null());
        Value::Object(given.map(|(key, value)| (key.to_owned(), value)).collect())
    };
    let states: Vec<Value> = model.state.iter().map(state).collect();
    let mut sections = Map::new();
    sections.insert(
        "model".into(),
        json!({
            "states": (!states.is_empty()).then_some(states),
            "process_noise": model.process_noise,
            "initial": model.initial,
            "symmetries": model.symmetries,
            "lags": model.lags,
            "kernel": model.kernel,
            "dynamics": model.dynamics,
            "sensor": model.sensor,
            "presample": model.presample,
        }),
    );
    sections.insert(
        "sampler".into(),
        json!({
            "start_at": sampler.start_at,
            "narx": sampler.narx,
            "tune": sampler.tune,
            "draws": sampler.draws,
        }),
    );
    sections.insert(
        "data".into(),
        json!({ "rows": data.rows, "every": data.every, "input_lags": data.input_lags, "delay": data.delay }),
    );
    sections.insert("trials".into(), json!(tried.trials));
    sections.insert("chosen".into(), json!(choice.chosen));
    sections.insert("constant_crps".into(), json!(choice.constant_crps));
    sections.insert("linear_crps".into(), json!(choice.linear_crps));
    sections.insert("calibration".into(), json!(calibration));
    sections.insert("notes".into(), json!(choice.notes));
    Value::Object(sections)
}
