//! Particle Gibbs with ancestor sampling over states and hyper-parameters (Algorithm 1 of the paper).
//!
//! - `slice`: univariate slice sampling
//! - `conditional`: p(theta_k | x, y) of one hyper-parameter at a time
//! - `conjugate`: direct draws of sensor noise
//! - [`moves`]: the steps of a sweep, one file for each
//! - `sweep`: one sweep of a chain: a list of moves
//! - `start`: the cold start
//! - `point`: a point estimate by stochastic-approximation EM
//! - `chains`: several chains in threads; `settings`, `budget`, `sink`: how they run and where draws go

pub(crate) mod budget;
pub(crate) mod chains;
mod conditional;
pub(crate) mod conjugate;
pub(crate) mod gaussian_coordinates;
pub mod moves;
pub(crate) mod point;
pub(crate) mod settings;
pub(crate) mod sink;
pub(crate) mod slice;
pub(crate) mod start;
pub(crate) mod sweep;

pub use self::budget::Budget;
pub use self::chains::{ChainPlan, ChainReport, Ended, Look, Progress, RunReport};
pub use self::gaussian_coordinates::Anchor;
pub use self::settings::{Settings, StartAt, StartSettings};
pub use self::sink::{ChainDraws, Draw, MemorySink, Phase, Sink};
pub use self::slice::{SliceLimits, SliceOutcome, WidthAdaptation, slice_update};
pub use self::start::{Start, find_start, prepare, unfolded};
pub use self::sweep::{Chain, ChainState, SweepInfo};
