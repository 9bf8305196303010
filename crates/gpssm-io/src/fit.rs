//! Fits: a run goes into a store, goes on from there, or is read back.

use std::path::{Path, PathBuf};

use gpssm::mcmc::ChainDraws;
use gpssm::{
    Budget, ChainPlan, Phase, Posterior, Problem, Progress, Record, RunReport, Settings, prepare,
    sample_chains,
};
use gpssm_identify::fitted::spread_draws;
use gpssm_identify::{Calibration, FittedModel};
use thiserror::Error;

use crate::config::{ChoiceConfig, DataConfig, Run, RunError, RunFile};
use crate::store::{Description, Store, StoreError, StoredRun};
use crate::table::{Clock, Data, Dates, TimeUnit};

/// Why a fit cannot begin or go on.
#[derive(Debug, Error)]
pub enum FitError {
    /// The run file, the options or the data.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] gpssm::Error),
    /// A chain that the run does not have.
    #[error("chain {chain}: the run has chains 0 to {}; choose one of them or raise sampler.chains", chains - 1)]
    NoSuchChain {
        /// Asked for.
        chain: u32,
        /// Chains of the run.
        chains: u32,
    },
    /// A chain that would have to be compared with others to know when it is done.
    #[error("--chain-id {chain} needs --draws: whether draws are enough is judged on all chains together")]
    NeedsDraws {
        /// Asked for.
        chain: u32,
    },
}

/// How a run is to go on; what is not given stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Longer {
    /// Draws of each chain in all.
    pub draws: Option<u64>,
    /// Effective sample size of all that is identified, in place of a fixed number of draws.
    pub ess: Option<u64>,
    /// Time limit from here on.
    pub budget: Budget,
    /// Threads; none for one for each core.
    pub threads: Option<usize>,
}

/// A run on its way into a store.
pub struct Fit {
    /// The problem, its finite basis chosen.
    pub problem: Problem,
    /// How it is sampled.
    pub settings: Settings,
    /// Where draws go.
    pub store: Store,
    /// What a user should know before it goes on.
    pub warnings: Vec<String>,
    /// Chains that are run.
    plans: Vec<ChainPlan>,
}

impl Fit {
    /// A new run at `path`, where nothing may be yet; all chains, or one of them.
    pub fn begin(path: &Path, run: &Run, data: &Data, chain: Option<u32>) -> Result<Self, FitError> {
        let settings = run.settings.clone();
        if let Some(chain) = chain.filter(|chain| *chain >= settings.chains) {
            return Err(FitError::NoSuchChain { chain, chains: settings.chains });
        }
        if let Some(chain) = chain.filter(|_| settings.draws.is_none()) {
            return Err(FitError::NeedsDraws { chain });
        }
        let problem = prepare(&run.problem, &settings)?;
        let chains: Vec<u32> = chain.map_or_else(|| (0..settings.chains).collect(), |chain| vec![chain]);
        let description = description(run, &problem, data, chains.clone());
        let store = Store::create(path, &description)?;
        let plans = chains.into_iter().map(|chain| ChainPlan { chain, ..ChainPlan::default() }).collect();
        Ok(Self { problem, settings, store, warnings: Vec::new(), plans })
    }

    /// Goes on with the run at `path`: for the rest of its draws, or for as many as are now asked for.
    pub fn resume(path: &Path, longer: &Longer) -> Result<Self, FitError> {
        let stored = StoredRun::open(path)?;
        let (mut run, data) = restore(&stored, longer)?;
        run.settings.threads = longer.threads;
        run.settings.budget = longer.budget;
        let problem = with_basis(&run.problem, &stored);
        let chains = stored.chains().iter().map(|chain| chain.chain).collect();
        let description = description(&run, &problem, &data, chains);
        let resumed = Store::resume(path, &description)?;
        // Read anew: nobody else writes from here on.
        let stored = StoredRun::open(path)?;
        let mut plans = Vec::new();
        for (index, chain) in resumed.chains.into_iter().enumerate() {
            // A rule that looks at all draws needs those that there are.
            let earlier = match run.settings.draws {
                Some(_) => ChainDraws::default(),
                None => stored.draws(index, Phase::Sample)?,
            };
            plans.push(ChainPlan { chain: chain.chain, from: chain.state, earlier });
        }
        let (store, warnings) = (resumed.store, resumed.warnings);
        Ok(Self { problem, settings: run.settings, store, warnings, plans })
    }

    /// Number of chains that are run.
    pub fn n_chains(&self) -> usize {
        self.plans.len()
    }

    /// Makes the draws. Whatever was drawn is in the store when this returns, however it ends.
    pub fn sample(
        &mut self,
        on_progress: &(dyn Fn(&Progress) -> bool + Sync),
    ) -> Result<RunReport, FitError> {
        let plans = std::mem::take(&mut self.plans);
        let report = sample_chains(&self.problem, &self.settings, plans, &self.store, on_progress);
        let flushed = self.store.flush();
        let report = report?;
        flushed?;
        Ok(report)
    }
}

/// What the store is told about a run.
pub fn description<'a>(
    run: &'a Run,
    problem: &'a Problem,
    data: &'a Data,
    chains: Vec<u32>,
) -> Description<'a> {
    Description {
        problem,
        settings: &run.settings,
        configuration: run.to_toml(),
        data_sha256: data.sha256.clone(),
        sequences: data.sequence_labels.clone(),
        time: data.time.clone(),
        measured: data.measured.as_ref(),
        dates: data.dates.clone(),
        chains,
    }
}

/// The run of a store, and its data.
fn restore(stored: &StoredRun, longer: &Longer) -> Result<(Run, Data), FitError> {
    let name = stored.path().display().to_string();
    let file = RunFile::parse(stored.configuration(), &name).map_err(RunError::from)?;
    let mut config = file.config().map_err(RunError::from)?;
    config.sampler.draws = longer.draws.or(config.sampler.draws.filter(|_| longer.ess.is_none()));
    config.sampler.ess = longer.ess.unwrap_or(config.sampler.ess);
    let source = config.data.file.clone().unwrap_or(name);
    let timed = config.data.time.is_some() || config.data.dt.is_some();
    let data = Data {
        time: stored.time(),
        time_unit: match (stored.dates(), timed) {
            (Some(_), _) => TimeUnit::Seconds,
            (None, true) => TimeUnit::Given,
            (None, false) => TimeUnit::Rows,
        },
        dt: config.data.dt,
        sequence_labels: stored.sequences(),
        sha256: stored.data_sha256().to_owned(),
        measured: stored.measured(),
        dates: stored.dates(),
        ..Data::from_record(stored.record().clone(), stored.outputs(), stored.inputs(), &source)
    };
    Ok((file.resolve(&config, &data)?, data))
}

fn with_basis(problem: &Problem, stored: &StoredRun) -> Problem {
    stored.basis().map_or_else(|| problem.clone(), |basis| problem.with_basis(basis))
}

/// A stored run, ready to be looked at.
pub struct LoadedRun {
    /// Its folder.
    pub path: PathBuf,
    /// Name of its folder.
    pub name: String,
    /// The problem, its finite basis chosen.
    pub problem: Problem,
    /// How it was sampled.
    pub settings: Settings,
    /// Numbers of the chains.
    pub chain_ids: Vec<u32>,
    /// Draws of each chain.
    pub chains: Vec<ChainDraws>,
    /// Time of every row, by sequence.
    pub time: Vec<Vec<f64>>,
    /// Dates behind the times.
    pub dates: Option<Dates>,
    /// Labels of sequences.
    pub sequence_labels: Vec<String>,
    /// The data's file and columns.
    pub data: DataConfig,
    /// Calibration of its free runs.
    pub calibration: Calibration,
    /// How the model was chosen, if it was.
    pub choice: Option<ChoiceConfig>,
    /// The record as it was measured, where the model sees another.
    pub measured: Option<Record>,
    /// The configuration.
    pub configuration: String,
    /// Version that made it.
    pub version: String,
}

impl LoadedRun {
    /// Reads and checks all draws of the run at `path`.
    pub fn open(path: &Path) -> Result<Self, FitError> {
        let stored = StoredRun::open(path)?;
        let (run, data) = restore(&stored, &Longer::default())?;
        let problem = with_basis(&run.problem, &stored);
        let lengths = stored.chains();
        let chains = (0..lengths.len()).map(|index| stored.draws(index, Phase::Sample));
        Ok(Self {
            path: path.to_path_buf(),
            name: path
                .file_name()
                .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned()),
            chains: chains.collect::<Result<_, _>>()?,
            chain_ids: lengths.iter().map(|chain| chain.chain).collect(),
            problem,
            settings: run.settings,
            data: run.data,
            calibration: run.calibration.unwrap_or_default(),
            choice: run.choice,
            measured: data.measured,
            time: stored.time(),
            dates: data.dates,
            sequence_labels: stored.sequences(),
            configuration: stored.configuration().to_owned(),
            version: stored.version().to_owned(),
        })
    }

    /// Turns times of rows into the words of the data file.
    pub fn clock(&self) -> Clock {
        Clock::new(self.dates.as_ref())
    }

    /// Times of the rows in the words of the data file, by sequence.
    pub fn time_texts(&self) -> Vec<Vec<String>> {
        let clock = self.clock();
        self.time.iter().map(|times| clock.texts(times)).collect()
    }

    /// The fitted model with so many of its draws.
    pub fn fitted(&self, max_draws: usize) -> Result<FittedModel, gpssm::Error> {
        let posterior = Posterior::new(&self.problem, &spread_draws(&self.chains, max_draws))?;
        let layout = self.data.columns().layout();
        FittedModel::new(posterior, layout, self.calibration.clone(), self.measured.clone())
    }

    /// One line: what was fitted to what, and how many draws there are.
    pub fn describe(&self) -> String {
        let record = self.problem.record();
        let rows: usize = record.sequences().iter().map(|sequence| sequence.n_rows()).sum();
        let several = match record.sequences().len() {
            1 => String::new(),
            n => format!(" in {n} sequences"),
        };
        let draws: Vec<String> = self.chains.iter().map(|chain| chain.theta.len().to_string()).collect();
        let equal = draws.windows(2).all(|pair| pair[0] == pair[1]);
        let draws = if equal { draws.first().cloned().unwrap_or_default() } else { draws.join(", ") };
        format!(
            "{}: {}, {}, {}, {rows} rows{several}; {} of {draws} draws",
            self.name,
            count(self.problem.n_x(), "state"),
            count(record.n_y(), "output"),
            count(record.n_u(), "input"),
            count(self.chains.len(), "chain"),
        )
    }
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
