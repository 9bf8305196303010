//! How well chains mix: autocorrelation times and effective draws per CPU second, with each move switched off in turn.
//!
//!     cargo bench --bench mixing -- [--data FOLDER] [--case NAME] [--off MOVE] [--tune N] [--draws N] [--chains N]

use std::path::Path;
use std::time::Instant;

use gpssm::diagnostics::{ess_bulk, rhat};
use gpssm::mcmc::moves::Move;
use gpssm::mcmc::{Chain, find_start, moves};
use gpssm::model::SensorSpec;
use gpssm::{Functions, Model, Problem, Sequence, Settings, prepare};

/// CPU seconds of this thread, where the system tells; otherwise the clock's.
fn cpu_seconds(began: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |ns| 1e-9 * ns)
}

/// Columns of a CSV file.
fn columns(path: &Path, names: &[&str]) -> Option<Vec<Vec<f64>>> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next()?.split(',').collect();
    let places: Vec<usize> =
        names.iter().map(|name| head.iter().position(|h| h == name)).collect::<Option<_>>()?;
    let mut columns = vec![Vec::new(); names.len()];
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        for (column, &place) in columns.iter_mut().zip(&places) {
            column.push(fields.get(place)?.parse().unwrap_or(f64::NAN));
        }
    }
    Some(columns)
}

fn case(name: &str, data: &Path) -> Option<Problem> {
    let (model, record) = match name {
        "nile" => {
            let y = columns(&data.join("nile.csv"), &["y"])?.remove(0);
            (Model::observed(1, 0), Sequence::scalar(&y, None).ok()?)
        }
        "polio" => {
            let y = columns(&data.join("polio.csv"), &["y"])?.remove(0);
            let sensor = SensorSpec::Poisson { log_rate: Default::default() };
            (Model { sensor, ..Model::observed(1, 0) }, Sequence::scalar(&y, None).ok()?)
        }
        "gas_furnace" => {
            let mut both = columns(&data.join("gas_furnace.csv"), &["y", "u"])?;
            let u = both.remove(1);
            (Model::observed(1, 1), Sequence::scalar(&both[0], Some(&u)).ok()?)
        }
        _ => return None,
    };
    Problem::new(model, &Functions::new(), record.into()).ok()
}

/// What is asked for on the command line.
struct Plan {
    data: String,
    cases: String,
    off: String,
    tune: u64,
    draws: u64,
    chains: u32,
    settings: Settings,
}

impl Plan {
    fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            arguments.iter().position(|argument| argument == name).and_then(|i| arguments.get(i + 1)).cloned()
        };
        let number = |name: &str, default: u64| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
        Self {
            data: value("--data").unwrap_or_else(|| folder.into()),
            cases: value("--case").unwrap_or_else(|| "nile,polio,gas_furnace".into()),
            off: value("--off").unwrap_or_default(),
            tune: number("--tune", 200),
            draws: number("--draws", 500),
            chains: number("--chains", 4) as u32,
            settings: Settings { particles: number("--particles", 20) as usize, ..Settings::default() },
        }
    }

    /// Hyper-parameters of every draw of every chain, and the CPU seconds that they took.
    fn run(&self, problem: &Problem) -> (Vec<Vec<Vec<f64>>>, f64) {
        let began = Instant::now();
        let (mut theta, mut seconds) = (Vec::new(), 0.0);
        for number in 0..self.chains {
            let start = find_start(problem, &self.settings, number, &mut |_, _| true);
            let state = start.expect("a start").expect("a start that nobody stopped").state;
            let is_on = |step: &&&dyn Move| !self.off.split(',').any(|off| off == step.name());
            let moves =
                moves::ALL.iter().filter(is_on).filter(|step| step.applies(problem)).copied().collect();
            let options = self.settings.filter_options();
            let mut chain = Chain::new(problem, options, self.settings.seed, number, state).with_moves(moves);
            for _ in 0..self.tune {
                chain.sweep();
                chain.adapt();
            }
            chain.freeze();
            let from = cpu_seconds(began);
            let draw = |_| {
                chain.sweep();
                chain.state.theta.clone()
            };
            theta.push((0..self.draws).map(draw).collect());
            seconds += cpu_seconds(began) - from;
        }
        (theta, seconds)
    }
}

fn main() {
    let plan = Plan::from_arguments();
    for name in plan.cases.split(',') {
        let Some(problem) = case(name, Path::new(&plan.data)) else {
            println!("{name}: skipped, no such case or no data in {}", plan.data);
            continue;
        };
        let problem = prepare(&problem, &plan.settings).expect("a finite basis, if one is asked for");
        let (theta, seconds) = plan.run(&problem);
        let total = (plan.draws * u64::from(plan.chains)) as f64;
        println!("{name} without [{}]: {:.1} ms of CPU time a sweep", plan.off, 1e3 * seconds / total);
        let table = problem.table();
        for k in (0..table.len()).filter(|&k| !table.is_fixed(k)) {
            let log = |chain: &Vec<Vec<f64>>| chain.iter().map(|theta| theta[k].ln()).collect::<Vec<_>>();
            let values: Vec<Vec<f64>> = theta.iter().map(log).collect();
            let views: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
            let (ess, rhat) = (ess_bulk(&views).unwrap_or(f64::NAN), rhat(&views).unwrap_or(f64::NAN));
            println!(
                "  {:24} tau {:6.1} sweeps, {:7.2} effective draws a CPU second, R-hat {rhat:.3}",
                table.parameters[k].name,
                total / ess,
                ess / seconds
            );
        }
    }
}
