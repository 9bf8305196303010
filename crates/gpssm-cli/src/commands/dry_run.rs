//! `gpssm fit --dry-run`: the model in words, the memory and the expected time.

use std::time::Instant;

use gpssm::mcmc::Chain;
use gpssm::mcmc::moves::select;
use gpssm::{Error, Problem, Settings, prepare};
use gpssm_io::config::Run;
use gpssm_io::describe;
use gpssm_io::table::Data;

use crate::failure::Failure;

/// Seconds after which no further sweep is timed.
const ENOUGH: f64 = 1.0;

/// Says what would be run; the exit code.
pub fn run(run: &Run, data: &Data) -> Result<u8, Failure> {
    let seconds = seconds_per_sweep(&run.problem, &run.settings)?;
    print!("{}", describe::describe(run, data, seconds));
    Ok(0)
}

/// Times a few sweeps from a place that the prior allows.
fn seconds_per_sweep(problem: &Problem, settings: &Settings) -> Result<Option<f64>, Error> {
    // A basis and a start of a few particles are enough to be timed.
    let mut quick = settings.clone();
    quick.start.restarts = 1;
    quick.start.particles = Some(50);
    let problem = prepare(problem, &quick)?;
    let Some(start) = gpssm::mcmc::find_start(&problem, &quick, 0, &mut |_, _| true)? else {
        return Ok(None);
    };
    let moves = select(&settings.moves, settings.narx, &problem);
    let chain = Chain::new(&problem, settings.filter_options(), settings.seed, 0, start.state);
    let mut chain = chain.with_moves(moves);
    let began = Instant::now();
    let mut sweeps = 0u32;
    while sweeps < 10 && began.elapsed().as_secs_f64() < ENOUGH {
        chain.sweep();
        sweeps += 1;
    }
    Ok(Some(began.elapsed().as_secs_f64() / f64::from(sweeps)))
}
