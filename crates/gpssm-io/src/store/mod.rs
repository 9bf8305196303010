//! The posterior store: one folder for a run, in Zarr v3.
//!
//! xarray and ArviZ open it as it is (`xr.open_datatree(path, engine="zarr")`). Groups:
//!
//! | group | arrays |
//! |---|---|
//! | `posterior`, `warmup_posterior` | learned hyper-parameters (chain, draw, ...), such as `process_sd` (state), `sensor_sd` (output), `se_ell` (state, component); `x` (chain, draw, time, state) |
//! | `sample_stats`, `warmup_sample_stats` | `lp` and every field of [`SweepInfo`](gpssm::mcmc::SweepInfo) (chain, draw); log p(y given x, theta) is `log_likelihood_total`, since ArviZ takes a `log_likelihood` for pointwise |
//! | `observed_data` | `y` (time, output); NaN where nothing was measured |
//! | `constant_data` | `u` (time, input), units (`x_shift`, `x_scale`, ...), the finite basis, first rows of sequences, hyper-parameters that are not learned |
//!
//! Sequences follow each other along `time`, whose values are times if no time comes twice, and numbers of rows
//! otherwise. In `observed_data` and `constant_data` the coordinates `sequence` and `time_value` tell the label and
//! the time of every row; draws have no such coordinates, because ArviZ cannot summarise arrays with them.
//! Without warm-up there are no `warmup_` groups.
//!
//! # Hyper-parameters
//!
//! Numbers that do the same for different states, outputs or components of z are one array, whose coordinates are the
//! user's names. A dimension is `state`, `moving_state` (those that are not lags), `output` or `component` where all of
//! them are there, and one of the array's own, such as `se_ell_component`, where some are. Entries that form no
//! rectangle, such as those of a Cholesky factor, lie along one dimension with labels such as `x2, u1`. The attribute
//! `theta` of an array has the places of its numbers in theta; the attribute `parameters` of the root the names
//! of all of theta. Arrays of those that are not learned are in `constant_data`. A name that no folder can have, or that
//! the store needs itself, is changed a little, with the true one in the attribute `long_name`.
//!
//! # Commits
//!
//! Everything that grows is in chunks of one chain and a block of draws. A chunk is replaced only by one that
//! holds more (temporary file, rename). The root `zarr.json` holds the metadata of all arrays, and replacing it
//! by a rename commits: it says how many draws each chain has (`committed_draws`, `committed_warmup`) and
//! in which file the chain's state is (`state/`, outside the hierarchy). Arrays show the draws that all
//! chains have; [`StoredRun`] gives each chain its own. What lies beyond is never shown, and is removed
//! when the run is resumed.
//!
//! Nothing in the folder depends on time, machine or the moments of commits, so a run that was killed and resumed
//! leaves the same bytes as one that was not.
//!
//! # Checks
//!
//! Every chunk ends with its CRC-32C, unwritten rows hold a pattern that no draw has, states carry their checksum in
//! their name, and the root its own in its first attribute. Metadata of single arrays are copies for other
//! readers.
//!
//! - `tree`: Zarr metadata; `codec`: bytes of chunks
//! - `layout`: the arrays of a run; `description`, `parameters`, `statistics`: what they hold
//! - `disk`, `lock`: changes of files; `files`: reading them with all checks
//! - `build`, `chain`, `writer`, `resume`, `reader`, `merge`: what is done with a store

mod build;
mod chain;
mod codec;
mod description;
mod disk;
mod error;
mod files;
mod layout;
mod lock;
mod merge;
mod parameters;
mod reader;
mod resume;
mod statistics;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

pub use description::Description;
pub use error::StoreError;
pub use merge::merge;
pub use parameters::{Dimension, ParameterArray};
pub use reader::{ChainLength, StoredRun};
pub use resume::{Resumed, ResumedChain};
pub use writer::Store;
