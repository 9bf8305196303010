//! A fit in memory, with progress.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpssm::mcmc::ChainDraws;
use gpssm::{Ended, MemorySink, Problem, Record, prepare, sample};
use gpssm_io::config::RunFile;
use gpssm_io::table::Data;

use crate::failure::Failure;
use crate::monitor::{Monitor, ProgressMode};

/// A problem and its draws.
pub struct Fitted {
    /// The problem, its finite basis chosen.
    pub problem: Problem,
    /// Draws of each chain.
    pub chains: Vec<ChainDraws>,
}

/// What is fitted.
pub struct Task<'a> {
    /// A run file without data.
    pub run_file: &'a str,
    /// Its name in messages.
    pub name: &'a str,
    /// Keys that override it, such as `sampler.draws=100`.
    pub set: Vec<String>,
    /// The record.
    pub record: Record,
    /// Names of the outputs.
    pub outputs: Vec<String>,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// How much is said meanwhile.
    pub progress_mode: ProgressMode,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

impl Task<'_> {
    /// Fits it.
    pub fn fit(self) -> Result<Fitted, Failure> {
        let mut file = RunFile::parse(self.run_file, self.name)?;
        for assignment in &self.set {
            file.set(assignment)?;
        }
        let data = Data::from_record(self.record, self.outputs, self.inputs, self.name);
        let run = file.resolve(&file.config()?, &data)?;
        let problem = prepare(&run.problem, &run.settings)?;
        let sink = MemorySink::new();
        let monitor =
            Monitor::new(self.progress_mode, &run.settings, run.settings.chains as usize, self.stop);
        let report = sample(&problem, &run.settings, &sink, &|progress| monitor.progress(progress))?;
        monitor.finish();
        if report.ended != Ended::Complete {
            return Err(Failure::stopped("stopped before there was a result"));
        }
        Ok(Fitted { problem, chains: sink.into_chains() })
    }
}
