//! How well chains mix: autocorrelation times, effective draws per CPU second and R-hat of cold chains, with moves switched off.
//!
//! ```text
//! cargo bench --bench mixing -- [--case NAME,...] [--off MOVE,...] [--off all]
//!     [--tune N] [--draws N] [--chains N] [--particles N] [--threads N] [--seed N]
//!     [--data FOLDER] [--save FILE] [--compare FILE]
//! ```
//!
//! `--off all` measures every case with all moves and then without each of them in turn. Judged are the logarithm of each learned hyper-parameter, the mean of f given each draw at 20 points that
//! the first chain visits, and the states at 20 times; for f and x the worst of them stands in the table. The time is that of the
//! sweeps after the warm-up. `--save` writes one JSON line for each row, `--compare` prints the table beside such a file.
//! Paths are relative to the project's root.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gpssm::diagnostics::{ess_bulk, rhat};
use gpssm::mcmc::moves::{self, HyperParameters, Move, States, Weights};
use gpssm::posterior::Target;
use gpssm::{ChainPlan, mcmc::ChainDraws};
use gpssm::{
    Draw, Error, MemorySink, Phase, Points, Posterior, Problem, Settings, Sink, prepare, sample_chains,
};
use gpssm_dev::mixing::{CASES, Case};
use serde::{Deserialize, Serialize};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Points of f, and times of x.
const N_POINTS: usize = 20;

/// CPU seconds of this thread.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a system that counts CPU time");
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    1e-9 * nanoseconds.expect("nanoseconds")
}

thread_local! {
    /// CPU seconds of this thread when it made its last sweep, of whichever chain.
    static LAST: Cell<f64> = const { Cell::new(0.0) };
}

/// Keeps the draws, and the CPU time of the sweeps after the warm-up.
#[derive(Default)]
struct TimedSink {
    draws: MemorySink,
    seconds: Mutex<f64>,
}

impl Sink for TimedSink {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        let now = cpu_seconds();
        let taken = now - LAST.replace(now);
        if draw.phase != Phase::Tune {
            *self.seconds.lock().expect("no thread that panicked") += taken;
        }
        self.draws.take(draw)
    }
}

/// One quantity of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    case: String,
    /// Moves that are left out: `-signs`.
    moves: String,
    quantity: String,
    /// Autocorrelation time in sweeps.
    tau: f64,
    /// Effective draws per CPU second.
    per_second: f64,
    rhat: f64,
    sweep_ms: f64,
}

/// What is asked for on the command line.
struct Plan {
    data: PathBuf,
    cases: Vec<String>,
    off: Vec<String>,
    save: Option<PathBuf>,
    compare: Option<PathBuf>,
    settings: Settings,
}

impl Plan {
    fn from_arguments() -> Result<Self, String> {
        let mut given: BTreeMap<String, String> = BTreeMap::new();
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            given.insert(name, value);
        }
        let mut take = |name: &str| given.remove(name);
        let list = |text: Option<String>| -> Vec<String> {
            text.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
        };
        let path = |text: String| Path::new(ROOT).join(text);
        let mut number = |name: &str, default: u64| match take(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("{name} {text}: not a whole number")),
        };
        let settings = Settings {
            tune: number("--tune", 300)?,
            draws: Some(number("--draws", 500)?),
            chains: number("--chains", 4)? as u32,
            particles: number("--particles", 20)? as usize,
            threads: Some(number("--threads", 1)? as usize),
            seed: number("--seed", 0)?,
            ..Settings::default()
        };
        let plan = Self {
            data: take("--data").map_or_else(|| path("../shared/data".into()), path),
            cases: list(take("--case")),
            off: list(take("--off")),
            save: take("--save").map(path),
            compare: take("--compare").map(path),
            settings,
        };
        if let Some(name) = given.keys().next() {
            return Err(format!("unknown option {name}; the head of benches/mixing.rs lists them"));
        }
        let known = |name: &String| CASES.iter().any(|case| case.name == name);
        if let Some(name) = plan.cases.iter().find(|name| !known(name)) {
            let all: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            return Err(format!("--case {name}: there are {}", all.join(", ")));
        }
        let known = |name: &String| name == "all" || moves::ALL.iter().any(|step| step.name() == name);
        if let Some(name) = plan.off.iter().find(|name| !known(name)) {
            let all: Vec<&str> = moves::ALL.iter().map(|step| step.name()).collect();
            return Err(format!("no move {name}: there are {}", all.join(", ")));
        }
        Ok(plan)
    }

    /// The moves of a problem, as they are asked for.
    fn moves(&self, problem: &Problem) -> Vec<&'static dyn Move> {
        let on =
            |step: &&&dyn Move| !self.off.iter().any(|name| name == step.name()) && step.applies(problem);
        moves::ALL.iter().filter(on).copied().collect()
    }

    /// All of them, and then, if that is asked for, all but each one that a chain can do without.
    fn variants(&self, problem: &Problem) -> Vec<Vec<&'static dyn Move>> {
        let all = self.moves(problem);
        let mut variants = vec![all.clone()];
        if self.off.iter().any(|name| name == "all") {
            let needed = [HyperParameters.name(), Weights.name(), States.name()];
            for off in all.iter().filter(|step| !needed.contains(&step.name())) {
                variants.push(all.iter().filter(|step| step.name() != off.name()).copied().collect());
            }
        }
        variants
    }

    /// The moves that are left out.
    fn label(problem: &Problem, moves: &[&dyn Move]) -> String {
        let is_off =
            |step: &&&dyn Move| step.applies(problem) && moves.iter().all(|made| made.name() != step.name());
        moves::ALL.iter().filter(is_off).map(|step| format!("-{}", step.name())).collect::<Vec<_>>().join(" ")
    }

    fn run(&self, case: &Case, problem: &Problem, moves: &[&dyn Move]) -> Result<Vec<Row>, Error> {
        let names = moves.iter().map(|step| step.name().to_owned()).collect();
        let settings = Settings { moves: names, ..self.settings.clone() };
        let sink = TimedSink::default();
        let plans = (0..settings.chains).map(|chain| ChainPlan { chain, ..ChainPlan::default() }).collect();
        sample_chains(problem, &settings, plans, &sink, &|_| true)?;
        let seconds = sink.seconds.into_inner().expect("no thread that panicked");
        let chains = sink.draws.into_chains();
        let total: f64 = chains.iter().map(|chain| chain.theta.len() as f64).sum();
        let row = |(quantity, columns): (String, Vec<Columns>)| {
            let views = |columns: &Columns| ess_and_rhat(columns);
            let (ess, rhat) = columns
                .iter()
                .map(views)
                .fold((f64::INFINITY, 0.0f64), |worst, found| (worst.0.min(found.0), worst.1.max(found.1)));
            Row {
                case: case.name.into(),
                moves: Self::label(problem, moves),
                quantity,
                tau: total / ess,
                per_second: ess / seconds,
                rhat,
                sweep_ms: 1e3 * seconds / total,
            }
        };
        Ok(quantities(problem, &chains)?.into_iter().map(row).collect())
    }
}

/// Draws of one quantity, by chain.
type Columns = Vec<Vec<f64>>;

/// A quantity that never changes has neither.
fn ess_and_rhat(columns: &Columns) -> (f64, f64) {
    let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    (ess_bulk(&views).unwrap_or(0.0), rhat(&views).unwrap_or(f64::INFINITY))
}

/// Log hyper-parameters one by one, f at points and x at times.
fn quantities(problem: &Problem, chains: &[ChainDraws]) -> Result<Vec<(String, Vec<Columns>)>, Error> {
    let table = problem.table();
    let mut found = Vec::new();
    for k in (0..table.len()).filter(|&k| !table.is_fixed(k)) {
        let log = |theta: &Vec<f64>| if theta[k] > 0.0 { theta[k].ln() } else { theta[k] };
        let columns = chains.iter().map(|chain| chain.theta.iter().map(log).collect()).collect();
        found.push((table.parameters[k].name.clone(), vec![columns]));
    }
    let (n_x, sequence) = (problem.n_x(), &problem.record().sequences()[0]);
    let times: Vec<usize> = (0..N_POINTS).map(|i| i * (sequence.n_rows() - 1) / (N_POINTS - 1)).collect();
    let mut z = Points::new(n_x + problem.model().n_u);
    let visited = &chains[0].paths[chains[0].paths.len() - 1][0];
    times.iter().for_each(|&t| z.push_parts(&visited[t * n_x..(t + 1) * n_x], sequence.u(t)));
    let mut f: Vec<Columns> = vec![Vec::new(); times.len() * n_x];
    for chain in chains {
        f.iter_mut().for_each(|columns| columns.push(Vec::new()));
        // One draw at a time: the factors of all of them need not fit into memory.
        for (theta, paths) in chain.theta.iter().zip(&chain.paths) {
            let one = ChainDraws { theta: vec![theta.clone()], paths: vec![paths.clone()], info: Vec::new() };
            let prediction = Posterior::new(problem, &[one])?.predict_at(&z, Target::Function)?;
            for i in 0..times.len() {
                for d in 0..n_x {
                    let column = f[i * n_x + d].last_mut().expect("a column for each chain");
                    column.push(prediction.draw_mean(0, i)[d]);
                }
            }
        }
    }
    found.push(("f".into(), f));
    let x = times.iter().flat_map(|t| t * n_x..(t + 1) * n_x).map(|at| -> Columns {
        chains.iter().map(|chain| chain.paths.iter().map(|paths| paths[0][at]).collect()).collect()
    });
    found.push(("x".into(), x.collect()));
    Ok(found)
}

/// The table, with the ratio to what was stored where there is such a row.
fn print_table(rows: &[Row], stored: &[Row]) {
    for row in rows {
        let same = |other: &&Row| {
            (&other.case, &other.moves, &other.quantity) == (&row.case, &row.moves, &row.quantity)
        };
        let before = stored.iter().find(same);
        let before = before.map_or_else(String::new, |before| {
            format!(
                " {:.1} | {:.2} | {:.2} |",
                before.tau,
                before.per_second,
                row.per_second / before.per_second
            )
        });
        println!(
            "| {} | {} | {} | {:.1} | {:.2} | {:.3} | {:.1} |{before}",
            row.case, row.moves, row.quantity, row.tau, row.per_second, row.rhat, row.sweep_ms
        );
    }
}

fn read_rows(path: &Path) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let row = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("{}, line {}: {error}", path.display(), i + 1))
    };
    text.lines().enumerate().map(row).collect()
}

fn measure(plan: &Plan) -> Result<(), String> {
    let stored = plan.compare.as_deref().map_or(Ok(Vec::new()), read_rows)?;
    let own = ["case", "moves", "quantity", "tau (sweeps)", "ESS / CPU s", "R-hat", "ms / sweep"];
    let before = ["stored tau", "stored ESS / CPU s", "ratio"];
    let head: Vec<&str> =
        own.iter().chain(before.iter().filter(|_| plan.compare.is_some())).copied().collect();
    println!("| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
    let mut all = Vec::new();
    let chosen = |case: &&Case| plan.cases.is_empty() || plan.cases.iter().any(|name| name == case.name);
    for case in CASES.iter().filter(chosen) {
        let in_case = |error: Error| format!("{}: {error}", case.name);
        let Some(problem) = case.problem(&plan.data).map_err(in_case)? else {
            eprintln!("{}: skipped, its series is not in {}", case.name, plan.data.display());
            continue;
        };
        let problem = prepare(&problem, &plan.settings).map_err(in_case)?;
        for moves in plan.variants(&problem) {
            let rows = plan.run(case, &problem, &moves).map_err(in_case)?;
            print_table(&rows, &stored);
            all.extend(rows);
            // After each variant: what is measured stays, even if the rest is stopped.
            if let Some(path) = &plan.save {
                let lines = all.iter().map(|row| serde_json::to_string(row).expect("plain data") + "\n");
                std::fs::write(path, lines.collect::<String>())
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(())
}

fn main() {
    if let Err(message) = Plan::from_arguments().and_then(|plan| measure(&plan)) {
        eprintln!("mixing: {message}");
        std::process::exit(2);
    }
}
