//! What the commands share that use a fitted model: the model, new records, and tables of intervals.

use std::path::Path;

use clap::Args;
use gpssm::posterior::{Ensemble, Initial, Warning};
use gpssm::{Record, Sequence};
use gpssm_identify::FittedModel;
use gpssm_io::fit::LoadedRun;
use gpssm_io::table::{Clock, Columns, Data, read_header, read_record};

use crate::failure::Failure;
use crate::output::{Column, Output};
use crate::verdict::resume;

/// Probabilities of the quantiles in every table.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Fewest draws of the longest chain that predictions are made from: fewer are the end of the warm-up.
const FEWEST_DRAWS: usize = 4;

/// Which draws are used.
#[derive(Clone, Copy, Debug, Args)]
pub struct DrawArgs {
    /// Number of draws to use, evenly spaced.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub max_draws: usize,
    /// Seed of simulations and filters.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Columns of a new record; names are those of the run unless given.
#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    /// Output columns, if their names differ from those of the run.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub y: Vec<String>,
    /// Input columns, if their names differ from those of the run.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub u: Vec<String>,
    /// Column with the time of each row [default: as in the run, if the file has it].
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Column with labels of independent sequences [default: as in the run, if the file has it].
    #[arg(long, value_name = "COLUMN")]
    pub sequence: Option<String>,
    /// Rows to use, counted from 1, such as 149:296.
    #[arg(long, value_name = "FIRST:LAST", allow_hyphen_values = true)]
    pub rows: Option<String>,
    /// Rows of the file from one row of the model to the next [default: as in the run].
    #[arg(long, value_name = "K")]
    pub every: Option<usize>,
}

/// A run and its fitted model.
pub struct Fitted {
    /// The run.
    pub run: LoadedRun,
    /// Some of its draws, with layout and calibration.
    pub model: FittedModel,
}

/// Refuses a run with fewer draws of each chain: it stopped in the warm-up, or soon after.
pub fn check_draws(run: &LoadedRun, least: usize) -> Result<(), Failure> {
    let longest = run.chains.iter().map(|chain| chain.theta.len()).max().unwrap_or(0);
    let what = match longest {
        0 => "no draws yet".to_owned(),
        few if few < least => format!("only {few} draws of a chain"),
        _ => return Ok(()),
    };
    let more = resume(run);
    let message = format!(
        "{}: {what}, nothing that predictions could be made from; go on with {more}",
        run.path.display()
    );
    Err(Failure::input(message))
}

impl Fitted {
    /// Opens a run and takes so many of its draws.
    pub fn open(path: &Path, draws: DrawArgs) -> Result<Self, Failure> {
        if draws.max_draws == 0 {
            return Err(Failure::input("--max-draws 0: at least one draw is needed"));
        }
        let run = LoadedRun::open(path)?;
        // A point estimate has one on purpose.
        check_draws(&run, if run.settings.point { 1 } else { FEWEST_DRAWS })?;
        let model = run.fitted(draws.max_draws)?;
        Ok(Self { run, model })
    }

    /// The same for records that come in rows of another distance in time.
    pub fn for_record(mut self, args: &RecordArgs) -> Result<Self, Failure> {
        match args.every {
            Some(0) => Err(Failure::input("--every 0: keeps no row")),
            Some(every) => {
                self.model.layout.every = every;
                Ok(self)
            }
            None => Ok(self),
        }
    }

    fn columns(&self, path: &Path, args: &RecordArgs) -> Result<Columns, Failure> {
        let model = self.run.problem.model();
        let data = &self.run.data;
        let or =
            |given: &[String], own: &[String]| if given.is_empty() { own.to_vec() } else { given.to_vec() };
        for (option, given, own) in [("--y", &args.y, model.n_y), ("--u", &args.u, data.u.len())] {
            if !given.is_empty() && given.len() != own {
                let message = format!("{option}: {} columns, but the model has {own}", given.len());
                return Err(Failure::input(message));
            }
        }
        let rows = args.rows.as_deref().map(parse_rows).transpose()?;
        let mut columns = Columns {
            y: or(&args.y, &data.y),
            u: or(&args.u, &data.u),
            time: args.time.clone(),
            dt: None,
            sequence: args.sequence.clone(),
            rows,
            every: args.every.or(data.every),
            input_lags: data.input_lags,
            delay: data.delay,
        };
        // Columns that only tell rows apart need not be in every file.
        let there = read_header(path).map(|header| header.columns).unwrap_or_default();
        let own = |name: &Option<String>| name.clone().filter(|name| there.contains(name));
        columns.sequence = columns.sequence.or_else(|| own(&data.sequence));
        columns.time = columns.time.or_else(|| own(&data.time));
        columns.dt = data.dt.filter(|_| data.time.is_none() && columns.time.is_none());
        Ok(columns)
    }

    /// A record of outputs and inputs as the model sees it.
    pub fn record(&self, path: &Path, args: &RecordArgs) -> Result<Data, Failure> {
        self.read(path, &self.columns(path, args)?, args)
    }

    /// A record of outputs and inputs as it was measured.
    pub fn measured(&self, path: &Path, args: &RecordArgs) -> Result<Data, Failure> {
        self.read(path, &self.columns(path, args)?.as_measured(), args)
    }

    /// Inputs alone as they stand in the file, one list of rows for each sequence.
    pub fn inputs(&self, path: &Path, args: &RecordArgs) -> Result<Data, Failure> {
        // Read as inputs, beside an output that does not matter: inputs are held over rows that are missing.
        let columns = self.columns(path, args)?.as_measured();
        let columns = Columns { y: columns.u, u: Vec::new(), ..columns };
        let mut data = self.read(path, &columns, args)?;
        let mut sequences = Vec::new();
        for (s, sequence) in data.record.sequences().iter().enumerate() {
            let mut held = Vec::new();
            for t in 0..sequence.n_rows() {
                let is_made_up = t > 0 && data.lines[s][t] == data.lines[s][t - 1];
                let row = if is_made_up { held } else { sequence.y(t).to_vec() };
                if row.iter().any(|u| u.is_nan()) {
                    let message =
                        format!("{}, line {}: an input is missing", path.display(), data.lines[s][t]);
                    return Err(Failure::input(message));
                }
                sequences.extend_from_slice(&row);
                held = row;
            }
        }
        let n = columns.y.len();
        let mut rest = &sequences[..];
        let mut records = Vec::new();
        for sequence in data.record.sequences() {
            let (own, after) = rest.split_at(sequence.n_rows() * n);
            records.push(Sequence::from_flat(own.to_vec(), n, Vec::new(), 0)?);
            rest = after;
        }
        data.record = Record::new(records)?;
        Ok(data)
    }

    /// Reads a file, says what was unusual about it, and refuses steps that are not those of the run.
    fn read(&self, path: &Path, columns: &Columns, args: &RecordArgs) -> Result<Data, Failure> {
        let data = read_record(path, columns).map_err(Failure::input)?;
        say_notes(&data);
        let (own, clock) = (&self.run.time, self.run.clock());
        let is_timed = self.run.data.time.is_some() && columns.time.is_some();
        if !is_timed || clock.is_monthly() || clock.has_dates() != data.dates.is_some() {
            return Ok(data);
        }
        let steps = own.iter().filter(|times| times.len() > 1);
        let own = steps.map(|times| (times[times.len() - 1] - times[0]) / (times.len() - 1) as f64).next();
        let every = args.every.unwrap_or(self.model.layout.every) as f64;
        let found = data.dt.map(|dt| every * dt / columns.every.unwrap_or(1) as f64);
        match (own, found) {
            (Some(own), Some(found)) if (found - own).abs() > 0.05 * own => Err(Failure::input(format!(
                "{}: rows of the model would be {found} apart, but they are {own} apart in the record that was fitted; \
                 resample the file, or see --every",
                path.display()
            ))),
            _ => Ok(data),
        }
    }

    /// Where filters and free runs start: `model`, `last`, or numbers.
    pub fn initial(&self, text: &str) -> Result<Initial, Failure> {
        match text {
            "model" => Ok(Initial::Model),
            "last" => Ok(Initial::LastTraining { sequence: self.run.problem.sequences().len() - 1 }),
            _ => {
                let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
                let n_x = self.run.problem.n_x();
                match numbers {
                    Ok(x) if x.len() == n_x && x.iter().all(|x| x.is_finite()) => Ok(Initial::Given(x)),
                    _ => Err(Failure::input(format!(
                        "--initial {text}: give model, last, or {n_x} numbers between commas"
                    ))),
                }
            }
        }
    }
}

/// `first:last`, counted from 1.
pub fn parse_rows(text: &str) -> Result<(usize, usize), Failure> {
    let parts = text.split_once(':').map(|(from, to)| (from.trim().parse(), to.trim().parse()));
    match parts {
        Some((Ok(from), Ok(to))) if 1 <= from && from <= to => Ok((from, to)),
        _ => Err(Failure::input(format!("--rows {text}: give first:last, counted from 1"))),
    }
}

/// Most megabytes that samples may take.
const MOST_MB: f64 = 8000.0;
/// Samples are held as they are drawn, put in order and summed up.
const COPIES: f64 = 3.0;

/// Refuses numbers of samples that no memory holds, `each` of so many values.
pub fn check_room(option: &str, asked: usize, each: usize) -> Result<(), Failure> {
    let megabytes = asked as f64 * each as f64 * 8.0 * COPIES / 1e6;
    if megabytes > MOST_MB {
        return Err(Failure::input(format!(
            "{option} {asked}: needs about {megabytes:.0} MB, but {MOST_MB:.0} MB are allowed; ask for fewer"
        )));
    }
    Ok(())
}

/// Says on standard error how a file was read, where that is not obvious.
pub fn say_notes(data: &Data) {
    for note in &data.notes {
        eprintln!("note: {}: {note}", data.source);
    }
}

/// Says warnings on standard error.
pub fn warn(warnings: &[Warning]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

/// The rows of one sequence of bands: time, then mean, sd and quantiles of each channel.
pub struct IntervalTable {
    names: Vec<String>,
    sequence: Vec<String>,
    time: Vec<f64>,
    /// By channel: mean, sd and quantiles.
    columns: Vec<Vec<Vec<f64>>>,
}

impl IntervalTable {
    /// For channels of these names.
    pub fn new(names: Vec<String>) -> Self {
        let columns = vec![vec![Vec::new(); 2 + QUANTILES.len()]; names.len()];
        Self { names, sequence: Vec::new(), time: Vec::new(), columns }
    }

    /// Adds a sequence.
    pub fn add(&mut self, label: &str, time: &[f64], samples: &Ensemble) {
        let intervals = samples.intervals(&QUANTILES);
        let n = self.names.len();
        for t in 0..samples.n_rows() {
            self.sequence.push(label.to_owned());
            self.time.push(time.get(t).copied().unwrap_or(t as f64));
            for (k, columns) in self.columns.iter_mut().enumerate() {
                columns[0].push(intervals.mean[t * n + k]);
                columns[1].push(intervals.sd[t * n + k]);
                for (column, quantiles) in columns[2..].iter_mut().zip(&intervals.quantiles) {
                    column.push(quantiles[t * n + k]);
                }
            }
        }
    }

    /// As a table; sequences are named where there are several.
    pub fn into_output(self, several: bool, clock: &Clock) -> Output {
        let mut output = Output::default();
        if several {
            output.add("sequence", Column::Texts(self.sequence));
        }
        output.times(clock, self.time);
        for (name, columns) in self.names.iter().zip(self.columns) {
            let labels = ["mean".to_owned(), "sd".to_owned()].into_iter();
            let labels = labels.chain(QUANTILES.iter().map(|p| format!("q{:02.0}", 100.0 * p)));
            for (label, values) in labels.zip(columns) {
                output.numbers(format!("{name}_{label}"), values);
            }
        }
        output
    }
}
