//! Files of gpssm: data tables, run files, and the posterior store.
//!
//! - [`table`]: a CSV file and the names of its columns become a record
//! - [`config`]: the run file and the options of the command line, through one schema
//! - [`auto`]: `states = "auto"`, from keys to the choice and back to keys
//! - [`describe`]: a run in words
//! - [`speed`]: what a run will take, from its sizes
//! - [`store`]: draws on disk, safe at any moment
//! - [`fit`]: a run goes into a store, goes on from there, or is read back

pub mod auto;
pub mod config;
pub mod describe;
pub mod fit;
pub mod speed;
pub mod store;
pub mod table;
mod wording;
