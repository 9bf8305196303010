//! Where draws go.

use std::sync::{Mutex, PoisonError};

use super::sweep::{ChainState, SweepInfo};
use crate::error::Error;

/// Warm-up or kept draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking for a start.
    Start,
    /// Adapting; these draws are not from the posterior.
    Tune,
    /// From the posterior.
    Sample,
}

/// One draw, in original units, on the oriented branch of every declared symmetry.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// Which chain.
    pub chain: u32,
    /// Warm-up or not.
    pub phase: Phase,
    /// Number within its phase, from 0.
    pub index: u64,
    /// Hyper-parameters, in the order of the table.
    pub theta: &'a [f64],
    /// x_{0:T} of every sequence, row-major (t, d).
    pub paths: &'a [Vec<f64>],
    /// What happened in the sweep.
    pub info: &'a SweepInfo,
    /// Where the chain is: enough to go on from here.
    pub state: &'a ChainState,
}

/// Receives draws as they are made, from several threads; those of one chain come in order.
pub trait Sink: Sync {
    /// Takes a draw. An error ends the run; draws that were taken before stay.
    fn take(&self, draw: &Draw) -> Result<(), Error>;
}

/// Kept draws of one chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainDraws {
    /// Hyper-parameters of each draw.
    pub theta: Vec<Vec<f64>>,
    /// Paths of each draw: sequences, row-major (t, d).
    pub paths: Vec<Vec<Vec<f64>>>,
    /// What happened in each sweep.
    pub info: Vec<SweepInfo>,
}

/// Keeps all draws of the sampling phase in memory.
#[derive(Debug, Default)]
pub struct MemorySink {
    chains: Mutex<Vec<ChainDraws>>,
}

impl MemorySink {
    /// An empty sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// The draws, by chain.
    pub fn into_chains(self) -> Vec<ChainDraws> {
        self.chains.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for MemorySink {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        if draw.phase == Phase::Sample {
            let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
            let n = chains.len().max(draw.chain as usize + 1);
            chains.resize_with(n, ChainDraws::default);
            let chain = &mut chains[draw.chain as usize];
            chain.theta.push(draw.theta.to_vec());
            chain.paths.push(draw.paths.to_vec());
            chain.info.push(*draw.info);
        }
        Ok(())
    }
}
