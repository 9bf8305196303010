//! Random numbers, keyed by what they are for.
//!
//! Every stream is a ChaCha generator whose key is (seed, chain, purpose, sweep, index). So nothing about a
//! generator has to be saved, the order in which chains run does not matter, and a resumed run goes on as if
//! it had never stopped.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum Purpose {
    /// Hyper-parameters of a start; the index is the stage and the candidate.
    StartTheta = 1,
    /// States of a start; the sweep is the stage, the index the candidate and the sequence.
    StartStates = 2,
    /// Hyper-parameters of a sweep.
    Theta = 3,
    /// States of a sweep; the index is the sequence.
    States = 4,
    /// Weights of a finite basis in a sweep.
    Weights = 5,
    /// The choice of a finite basis.
    Basis = 6,
    /// Sweeps within a start; the index is the candidate.
    StartSweeps = 7,
    /// Sensor noise and observed states of a sweep, together.
    Interweaving = 8,
    /// Signs that the sensor does not see.
    Signs = 9,
    /// Noise levels and the path of a sweep, together.
    PathAndNoise = 10,
    /// What is done with the draws afterwards; the chain and the sweep tell what.
    Posterior = 100,
}

/// The stream for one purpose.
pub fn stream(seed: u64, chain: u32, purpose: Purpose, sweep: u64, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&chain.to_le_bytes());
    key[12..16].copy_from_slice(&(purpose as u32).to_le_bytes());
    key[16..24].copy_from_slice(&sweep.to_le_bytes());
    key[24..].copy_from_slice(&index.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}
