//! `gpssm reproduce`: results of the paper's section 6, from a cold start, beside the published figures.

pub mod benchmarks;
pub mod cache;
pub mod cartpole;
pub mod figure1;
pub mod fitted;
pub mod rows;
pub mod table1;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Subcommand;

use crate::failure::Failure;

/// What to reproduce.
#[derive(Debug, Subcommand)]
pub enum Reproduce {
    /// Table 1: prediction and smoothing errors of six models on the nonlinear benchmark, with additional models.
    Table1(table1::Table1Args),
    /// Figure 1: smoothing samples and the transition surface.
    Figure1(figure1::Figure1Args),
    /// Figure 3: one-step-ahead predictions of a cart with a pendulum.
    Cartpole(cartpole::CartpoleArgs),
    /// Standard records with default settings: free runs compared with a constant, the best linear models and published results.
    Benchmarks(benchmarks::BenchmarksArgs),
}

/// Runs the command; the exit code.
pub fn run(what: &Reproduce, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    match what {
        Reproduce::Table1(args) => table1::run(args, stop),
        Reproduce::Figure1(args) => figure1::run(args, stop),
        Reproduce::Cartpole(args) => cartpole::run(args, stop),
        Reproduce::Benchmarks(args) => benchmarks::run(args, stop),
    }
}
