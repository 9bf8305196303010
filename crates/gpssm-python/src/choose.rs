//! `states="auto"`: the model is chosen from the record.

use std::sync::atomic::{AtomicBool, Ordering};

use gpssm_identify::auto::{Choice, Trial};
use gpssm_io::auto;
use gpssm_io::config::RunConfig;
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
) -> PyResult<String> {
    let (file, data) = file_and_data(keys, &y, u.as_deref(), labels)?;
    let config = file.config().map_err(config_error)?;
    let stop = AtomicBool::new(false);
    let tell = |_: usize, _: usize| !stop.load(Ordering::Relaxed);
    let mut interrupt = None;
    let found = py.detach(|| {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| auto::choose(&config, &data, &|key| file.is_given(key), &tell));
            while !worker.is_finished() {
                std::thread::sleep(POLL);
                if let Err(error) = Python::attach(|py| py.check_signals()) {
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
    let RunConfig { data, model, sampler, calibration } = chosen;
    let trial = |trial: &Trial| {
        json!({
            "candidate": trial.candidate.describe(),
            "crps": trial.crps,
            "rmse": trial.crps.map(|_| trial.rmse),
            "coverage_90": trial.crps.map(|_| trial.coverage),
        })
    };
    let mut sections = Map::new();
    sections.insert(
        "model".into(),
        json!({
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
    sections.insert("trials".into(), choice.trials.iter().map(trial).collect());
    sections.insert("chosen".into(), json!(choice.chosen));
    sections.insert("calibration".into(), json!(calibration));
    sections.insert("notes".into(), json!(choice.notes));
    Value::Object(sections)
}
