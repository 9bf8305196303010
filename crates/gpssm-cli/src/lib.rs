//! The program `gpssm` as a library with one function; and what its reports share with those of the Python package.

mod args;
mod commands;
mod failure;
mod fitted;
mod journal;
mod monitor;
mod output;
mod progress;
mod signals;
mod table;
mod usage;
mod verdict;

pub use commands::report::{choice_of, time_label, time_ticks};

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use args::Command;
use failure::Failure;

/// Runs the program with these words, the first of which is its name; its exit code. Signals are caught from here on, and may
/// end the process.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    output::forgive_closed_pipes();
    let cli = match usage::parse(words) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let stop = Arc::new(AtomicBool::new(false));
    match signals::listen(&stop).and_then(|()| dispatch(&cli.command, &stop)) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {}", failure.line());
            failure.code
        }
    }
}

fn dispatch(command: &Command, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    match command {
        Command::Fit(args) => commands::fit::run(args, stop),
        Command::Init(args) => commands::init::run(args),
        Command::Demo(args) => commands::demo::run(args, stop),
        Command::Summary(args) => commands::summary::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Merge(args) => commands::merge::run(args),
        Command::Predict(args) => commands::predict::run(args),
        Command::Forecast(args) => commands::forecast::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Filter(args) => commands::filter::filter(args),
        Command::Smooth(args) => commands::filter::smooth(args),
        Command::Score(args) => commands::score::score(args),
        Command::Evaluate(args) => commands::evaluate::run(args, stop),
        Command::Check(args) => commands::check::run(args, stop),
        Command::Compare(args) => commands::compare::run(args, stop),
        Command::Thin(args) => commands::distil::thin(args),
        Command::Sbc(args) => commands::sbc::run(args, stop),
        Command::Reproduce { what } => commands::reproduce::run(what, stop),
        Command::Distil(args) => commands::distil::distil(args),
        Command::Export(args) => commands::export::run(args),
        Command::Linearize(args) => commands::linearize::linearize(args),
        Command::Equilibrium(args) => commands::linearize::equilibrium(args),
        Command::Completions(args) => commands::shell::completions(args),
        Command::Man(args) => commands::shell::man(args),
    }
}
