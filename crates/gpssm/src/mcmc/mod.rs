//! Particle Gibbs with ancestor sampling over states and hyper-parameters (Algorithm 1 of the paper).
//!
//! - [`mod@slice`]: univariate slice sampling
//! - `conditional`: p(theta_k | x, y) of one hyper-parameter at a time
//! - [`conjugate`]: direct draws of sensor noise
//! - [`moves`]: the steps of a sweep, one file for each
//! - [`sweep`]: one sweep of a chain: a list of moves
//! - [`start`]: the cold start
//! - [`chains`]: several chains in threads; [`settings`], [`sink`]: how they run and where draws go

pub mod chains;
mod conditional;
pub mod conjugate;
pub mod gaussian_coordinates;
pub mod moves;
pub mod settings;
pub mod sink;
pub mod slice;
pub mod start;
pub mod sweep;
