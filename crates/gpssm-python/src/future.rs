//! Leave-future-out comparison, and smoothed importance weights.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use gpssm::Settings;
use gpssm::diagnostics::{pareto_k_threshold, pareto_smooth};
use gpssm_identify::LfoOptions;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::{from_json, to_json, to_python};
use crate::problem::{POLL, Problem};

/// A model, what is done of it, and how often it was fitted.
type Row = (usize, usize, usize, usize);

/// Models by their leave-future-out scores, as JSON; each is a name, a problem and settings. `on_row` is told the number of the
/// model, rows done, all rows, and fits so far.
#[pyfunction]
pub(crate) fn compare_futures(
    py: Python<'_>,
    models: Vec<(String, PyRef<'_, Problem>, String)>,
    options: &str,
    on_row: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options: LfoOptions = from_json("options", options)?;
    let settings = models.iter().map(|(_, _, text)| from_json::<Settings>("settings", text));
    let settings = settings.collect::<PyResult<Vec<_>>>()?;
    let failures: Vec<_> = models.iter().map(|(_, problem, _)| &problem.failure).collect();
    let parts = models.iter().zip(&settings);
    let parts: Vec<_> = parts.map(|((name, problem, _), s)| (name.as_str(), &problem.problem, s)).collect();
    let (stop, latest) = (AtomicBool::new(false), Mutex::<Option<Row>>::new(None));
    let mut interrupt = None;
    let ranked = py.detach(|| {
        std::thread::scope(|scope| {
            let told = |model: usize, done: usize, of: usize, fits: usize| {
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((model, done, of, fits));
                !stop.load(Ordering::Relaxed) && !failures.iter().any(|failure| failure.is_raised())
            };
            let (parts, options) = (&parts, &options);
            let worker = scope.spawn(move || gpssm_identify::compare_futures(parts, options, &told));
            while !worker.is_finished() {
                std::thread::sleep(POLL);
                let row = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Err(error) = Python::attach(|py| tell(py, on_row.as_ref(), row)) {
                    stop.store(true, Ordering::Relaxed);
                    interrupt.get_or_insert(error);
                }
            }
            failures.iter().for_each(|failure| failure.kept.wait());
            worker.join()
        })
    });
    failures.iter().try_for_each(|failure| failure.check())?;
    if let Some(error) = interrupt {
        return Err(error);
    }
    // A panic of the worker goes on as one of this thread, where pyo3 makes an exception of it.
    let ranked = ranked.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(to_python)?;
    to_json("ranking", &ranked.unwrap_or_default())
}

fn tell(py: Python<'_>, on_row: Option<&Py<PyAny>>, row: Option<Row>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(on_row), Some(row)) = (on_row, row) {
        on_row.call1(py, row)?;
    }
    Ok(())
}

/// Pareto smoothed log weights, the shape of their tail, and the largest shape that can be trusted.
#[pyfunction]
pub(crate) fn smooth_weights<'py>(
    py: Python<'py>,
    log_weights: PyReadonlyArray1<'py, f64>,
) -> (Bound<'py, PyArray1<f64>>, f64, f64) {
    let values = log_weights.as_array().to_vec();
    let found = pareto_smooth(&values);
    (PyArray1::from_vec(py, found.log_weights), found.k, pareto_k_threshold(values.len()))
}
