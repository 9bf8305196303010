//! Time of a sweep, in CPU time of the thread and beside a matrix product of the same run, so that machines and neighbours matter
//! little.
//!
//! ```text
//! cargo bench --bench sweep -- [NAME] [--long] [--effective] [--json] [--save] [--compare]
//! ```
//!
//! NAME chooses the cases whose name-basis/length/particles contains it (`fic-40/200/`); `--long` adds those of which one sweep may
//! take half a minute, `--effective` tells effective draws of the states for each CPU second. `--save` puts what was measured into the table of `docs/performance.md`, `--compare` says what is slower
//! than there by more than 15 % (and then ends with exit code 1), `--json` prints JSON lines. A sweep is one conditional filter, with
//! a draw of the weights where they are drawn, or one filter. `benches/mixing.rs` measures effective draws.

mod clock;
mod effective;
mod problems;
mod table;

use std::process::ExitCode;
use std::time::SystemTime;

use clock::{MatrixProduct, PRODUCT_FLOP, typical_time};
use gpssm::mcmc::moves::{HyperParameters, Move, States, Weights};
use gpssm::mcmc::{Chain, ChainState, SweepInfo};
use gpssm::smc::{FilterOptions, particle_filter};
use gpssm::state_space::SharedPairs;
use problems::{Case, cases, typical};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use table::{Row, Table};

/// What is asked for on the command line.
#[derive(Default)]
struct Plan {
    name: String,
    long: bool,
    effective: bool,
    json: bool,
    save: bool,
    compare: bool,
}

impl Plan {
    fn from_arguments() -> Result<Self, String> {
        let mut plan = Self::default();
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--bench" => {}
                "--long" => plan.long = true,
                "--effective" => plan.effective = true,
                "--json" => plan.json = true,
                "--save" => plan.save = true,
                "--compare" => plan.compare = true,
                option if option.starts_with("--") => {
                    return Err(format!(
                        "unknown option {option}; there are --long, --effective, --json, --save and --compare"
                    ));
                }
                name => plan.name = name.into(),
            }
        }
        Ok(plan)
    }
}

/// Name of the processor, its vector instructions and the number of cores.
fn machine() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processors.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    #[cfg(target_arch = "x86_64")]
    let vectors = match (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx2")) {
        (true, _) => "AVX-512",
        (false, true) => "AVX2",
        (false, false) => "SSE2",
    };
    #[cfg(not(target_arch = "x86_64"))]
    let vectors = std::env::consts::ARCH;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{} ({vectors}, {cores} cores), one thread", name.unwrap_or("unknown processor").trim())
}

fn measure(case: &Case, effective: bool) -> Row {
    let (problem, path) = case.problem();
    let state = ChainState::new(&problem, typical(&problem), vec![path]);
    let options = FilterOptions::new(case.particles);
    let mut product = MatrixProduct::new();
    product.measure();
    let (sweep, hyper, evaluations) = if case.name.starts_with("filter") {
        let model = problem.bind(&state.theta);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let shared = SharedPairs::none(case.states, 1);
        let time = typical_time(|| {
            particle_filter(&model, &problem.sequences()[0], &shared, options, &mut rng)
                .expect("a filter that runs");
        });
        (time, None, None)
    } else {
        let mut chain = Chain::new(&problem, options, 1, 0, state);
        // Widths adapt before they are timed, where that does not take minutes.
        for _ in 0..if case.is_long() { 0 } else { 5 } {
            chain.state.sweep += 1;
            chain.make(&HyperParameters, &mut SweepInfo::default());
        }
        let (mut info, mut updates) = (SweepInfo::default(), 0);
        let hyper = typical_time(|| {
            chain.state.sweep += 1;
            updates += 1;
            chain.make(&HyperParameters, &mut info);
        });
        product.measure();
        let evaluations = info.density_evaluations as f64 / f64::from(updates);
        let weights_are_drawn = Weights.applies(&problem);
        let mut sweep = |chain: &mut Chain| {
            chain.state.sweep += 1;
            if weights_are_drawn {
                chain.make(&Weights, &mut info);
            }
            chain.make(&States, &mut info);
        };
        // The lengths of shortlists are what warm-up makes them.
        for _ in 0..if case.is_long() { 0 } else { 10 } {
            sweep(&mut chain);
            chain.adapt();
        }
        chain.freeze();
        let time = typical_time(|| sweep(&mut chain));
        if effective {
            effective::show(&mut chain, &mut sweep, problem.n_x());
        }
        (time, Some(hyper), Some(evaluations))
    };
    product.measure();
    let product_ms = product.cpu_ms();
    let flop_per_ms = PRODUCT_FLOP / product_ms;
    Row {
        case: case.label(),
        sweep_cpu_ms: sweep.cpu_ms,
        sweep_wall_ms: sweep.wall_ms,
        sweep_products: sweep.cpu_ms / product_ms,
        hyper_cpu_ms: hyper.map(|time| time.cpu_ms),
        hyper_products: hyper.map(|time| time.cpu_ms / product_ms),
        evaluations,
        floor_ratio: case.floor().map(|flop| sweep.cpu_ms / (flop / flop_per_ms)),
        gflops: 1e-6 * flop_per_ms,
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string()[..10].into(),
    }
}

fn run() -> Result<ExitCode, String> {
    let plan = Plan::from_arguments()?;
    let stored = plan.compare.then(Table::read).transpose()?;
    let all = cases();
    let order: Vec<String> = all.iter().map(Case::label).collect();
    let asked = |case: &&Case| case.label().contains(&plan.name) && (plan.long || !case.is_long());
    let mut rows = Vec::new();
    for case in all.iter().filter(asked) {
        let row = measure(case, plan.effective);
        if plan.json {
            println!("{}", serde_json::to_string(&row).expect("plain data"));
        } else {
            Table::show(&row, rows.is_empty());
        }
        rows.push(row);
        // After each case: what is measured stays, even if the rest is stopped.
        if plan.save {
            Table::save(&machine(), &rows, &order)?;
        }
    }
    if rows.is_empty() {
        return Err(format!("no case {}; there are {}", plan.name, order.join(", ")));
    }
    let Some(stored) = stored else { return Ok(ExitCode::SUCCESS) };
    if stored.machine != machine() {
        eprintln!("sweep: the stored table is of another machine, {}", stored.machine);
    }
    let (lines, n_slower) = stored.compare(&rows);
    lines.iter().for_each(|line| eprintln!("{line}"));
    Ok(if n_slower == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn main() -> ExitCode {
    run().unwrap_or_else(|message| {
        eprintln!("sweep: {message}");
        ExitCode::from(2)
    })
}
