//! `gpssm reproduce`: results of the paper's section 6, from a cold start, beside the published figures.

pub mod cache;
pub mod rows;
pub mod table1;

use clap::Subcommand;

use crate::failure::Failure;

/// What to reproduce.
#[derive(Debug, Subcommand)]
pub enum Reproduce {
    /// Table 1: prediction and smoothing errors of six models on the nonlinear benchmark, and rows of our own.
    Table1(table1::Table1Args),
}

/// Runs the command; the exit code.
pub fn run(what: &Reproduce) -> Result<u8, Failure> {
    match what {
        Reproduce::Table1(args) => table1::run(args),
    }
}
