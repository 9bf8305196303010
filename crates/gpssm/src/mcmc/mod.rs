//! Particle Gibbs with ancestor sampling over states and hyper-parameters (Algorithm 1 of the paper).
//!
//! - [`mod@slice`]: univariate slice sampling
//! - `conditional`: p(theta_k | x, y) of one hyper-parameter at a time
//! - [`conjugate`]: direct draws of sensor noise
//! - `hyper`: all hyper-parameters given the states (step a)
//! - `interweave`: sensor noise and the states seen through it, together
//! - `signs`: the signs that a sensor does not see, at all times at once
//! - [`sweep`]: one sweep of a chain (steps a to c)
//! - [`start`]: the cold start
//! - [`chains`]: several chains in threads; [`settings`], [`sink`]: how they run and where draws go

pub mod chains;
mod conditional;
pub mod conjugate;
mod hyper;
mod interweave;
pub mod settings;
mod signs;
pub mod sink;
pub mod slice;
pub mod start;
pub mod sweep;
