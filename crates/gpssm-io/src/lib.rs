//! Files of gpssm: data tables, run files, and the posterior store.
//!
//! - [`table`]: a CSV file and the names of its columns become a record
//! - [`config`]: the run file and the options of the command line, through one schema
//! - [`auto`]: lags, delay, sampling, kernel and prior chosen from the training record
//! - [`bands`]: bands of free runs, set right
//! - [`free_run`]: a learned model runs free under the inputs of a record
//! - [`words`]: a run in words
//! - [`store`]: draws on disk, safe at any moment
//! - [`fit`]: a run goes into a store, goes on from there, or is read back

pub mod auto;
pub mod calibration;
pub mod config;
pub mod describe;
pub mod fit;
pub mod free_run;
pub mod store;
mod suggest;
pub mod table;
