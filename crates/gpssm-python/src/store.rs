//! Runs on disk, and reports.

use std::path::PathBuf;

use gpssm::mcmc::{ChainDraws, ChainState};
use gpssm::{Draw, Phase, Settings, Sink};
use gpssm_io::config::Run;
use gpssm_io::fit::{FitError, description};
use gpssm_io::store::{Store, StoredRun};
use gpssm_io::table::Data;
use gpssm_report::{Names, ReportInput};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{matrix, sequences};
use crate::error::{from_json, to_json, value_error};
use crate::problem::{ArrayDraws, ArraySink, Problem, chain_draws, run_error};

/// Where a run is to be stored: a path, and whether there is a run already that goes on.
#[derive(FromPyObject)]
pub(crate) struct StorePlan(PathBuf, bool);

impl StorePlan {
    pub(crate) fn open(self, run: &Run, problem: &gpssm::Problem, data: &Data) -> Result<Store, FitError> {
        let chains = (0..run.settings.chains).collect();
        let description = description(run, problem, data, chains);
        Ok(if self.1 {
            Store::resume(&self.0, &description)?.store
        } else {
            Store::create(&self.0, &description)?
        })
    }
}

/// Draws go to the disk and to memory.
pub(crate) struct Both<'a> {
    pub(crate) store: &'a Store,
    pub(crate) memory: &'a ArraySink,
}

impl Sink for Both<'_> {
    fn take(&self, draw: &Draw) -> Result<(), gpssm::Error> {
        self.store.take(draw)?;
        self.memory.take(draw)
    }
}

/// A chain as Python has it: number, state, warm-up, draws.
type ArrayChain<'py> = (u32, Option<String>, ArrayDraws<'py>, ArrayDraws<'py>);

/// Writes a run that is in memory to a new store.
#[pyfunction]
pub(crate) fn save_run(
    py: Python<'_>,
    path: PathBuf,
    problem: &Problem,
    settings: &str,
    chains: Vec<ArrayChain<'_>>,
) -> PyResult<()> {
    let run = Run { settings: from_json("settings", settings)?, ..problem.run.clone() };
    let mut all = Vec::new();
    for (number, state, warmup, draws) in chains {
        let state: Option<ChainState> = state.map(|text| from_json("state", &text)).transpose()?;
        let Some(state) = state else { continue };
        let phases = chain_draws(&[warmup, draws])?;
        all.push((number, state, phases));
    }
    py.detach(|| -> Result<(), FitError> {
        let store = StorePlan(path, false).open(&run, &problem.problem, &problem.data)?;
        for (number, state, phases) in &all {
            // The store counts sweeps; only the last state is kept.
            let mut state = ChainState { sweep: 0, ..state.clone() };
            for (phase, draws) in [(Phase::Tune, &phases[0]), (Phase::Sample, &phases[1])] {
                write(&store, *number, &mut state, phase, draws)?;
            }
        }
        store.flush()?;
        Ok(())
    })
    .map_err(run_error)
}

fn write(
    store: &Store,
    chain: u32,
    state: &mut ChainState,
    phase: Phase,
    draws: &ChainDraws,
) -> Result<(), FitError> {
    for (index, theta) in draws.theta.iter().enumerate() {
        state.sweep += 1;
        let (paths, info) = (&draws.paths[index], &draws.info[index]);
        store.take(&Draw { chain, phase, index: index as u64, theta, paths, info, state })?;
    }
    Ok(())
}

/// Reads a run: configuration, record with names, and chains.
#[pyfunction]
pub(crate) fn open_run(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let stored = py.detach(|| StoredRun::open(&path)).map_err(|error| run_error(error.into()))?;
    let result = PyDict::new(py);
    result.set_item("configuration", stored.configuration())?;
    result.set_item("states", stored.states())?;
    let dates = stored.dates().map(|dates| to_json("dates", &dates)).transpose()?;
    let labels = (stored.outputs(), stored.inputs(), stored.sequences(), stored.time(), dates);
    result.set_item("labels", labels)?;
    let (outputs, inputs) = sequences(py, stored.record())?;
    result.set_item("y", outputs)?;
    result.set_item("u", inputs)?;
    result.set_item("measured", stored.measured().map(|record| sequences(py, &record)).transpose()?)?;
    result.set_item("basis", stored.basis().as_ref().map(crate::problem::basis_to_json).transpose()?)?;
    let chains = PyList::empty(py);
    for (index, length) in stored.chains().iter().enumerate() {
        let chain = PyDict::new(py);
        chain.set_item("chain", length.chain)?;
        let read = |phase| {
            let found = py.detach(|| stored.draws(index, phase));
            found.map_err(|error| run_error(error.into()))
        };
        let state = stored.state(index).map_err(|error| run_error(error.into()))?;
        chain.set_item("state", state.as_ref().map(|state| to_json("state", state)).transpose()?)?;
        for (name, phase) in [("warmup", Phase::Tune), ("draws", Phase::Sample)] {
            let n_rows = stored.record().sequences().iter().map(|s| s.n_rows()).collect::<Vec<_>>();
            let draws = read(phase)?;
            let n_theta = stored.parameters().len();
            chain.set_item(name, phase_to_python(py, draws, n_theta, stored.states().len(), &n_rows)?)?;
        }
        chains.append(chain)?;
    }
    result.set_item("chains", chains)?;
    Ok(result)
}

fn phase_to_python<'py>(
    py: Python<'py>,
    draws: ChainDraws,
    n_theta: usize,
    n_x: usize,
    n_rows: &[usize],
) -> PyResult<Bound<'py, PyDict>> {
    let n = draws.theta.len();
    let result = PyDict::new(py);
    result.set_item("theta", matrix(py, draws.theta.concat(), n, n_theta)?)?;
    let paths = PyList::empty(py);
    for (s, rows) in n_rows.iter().enumerate() {
        let flat: Vec<f64> = draws.paths.iter().flat_map(|paths| paths[s].iter().copied()).collect();
        paths.append(numpy::PyArrayMethods::reshape(&PyArray1::from_vec(py, flat), [n, *rows, n_x])?)?;
    }
    result.set_item("paths", paths)?;
    result.set_item("statistics", crate::problem::statistics_to_python(py, &draws.info)?)?;
    Ok(result)
}

/// The report as one HTML page.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    problem: &Problem,
    chains: Vec<ArrayDraws<'_>>,
    settings: &str,
    title: &str,
    facts: Vec<(String, String)>,
) -> PyResult<String> {
    let chains = chain_draws(&chains)?;
    let settings: Settings = from_json("settings", settings)?;
    let html = py.detach(|| {
        let found = gpssm::convergence::assess(&problem.problem, &settings, &chains, 0.9);
        let model = problem.problem.model();
        let (configuration, clock) = (problem.run.to_toml(), problem.data.clock());
        let input = ReportInput {
            title,
            problem: &problem.problem,
            chains: &chains,
            names: Names {
                states: model.state_names(),
                inputs: model.input_names(),
                outputs: model.output_names(),
                sequences: problem.data.sequence_labels.clone(),
                time_label: gpssm_cli::time_label(&clock, &problem.data.time),
                time_ticks: gpssm_cli::time_ticks(&clock),
                times: problem.data.time.clone(),
            },
            verdict: Some(&found.verdict),
            lights: None,
            warnings: found.warnings.iter().map(ToString::to_string).collect(),
            facts,
            choice: problem.run.choice.as_ref().map(gpssm_cli::choice_of),
            configuration: Some(&configuration),
        };
        gpssm_report::report(&input)
    });
    problem.failure.check()?;
    html.map_err(|error| value_error(error.to_string()))
}
