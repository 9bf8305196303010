//! Files of gpssm: data tables, model files, the posterior store, and a problem in words.
//!
//! - [`table`]: a CSV file and the names of its columns become a record
//! - [`config`]: a run file (TOML), overridden by options, becomes a model and settings
//! - [`words`]: what is about to be run, in words

pub mod config;
mod suggest;
pub mod table;
pub mod words;
