//! What the comparisons with exact answers share.
//!
//! - [`chains`]: independent chains of path updates, kept as batch means of some functionals of the path
//! - [`z_scores`]: how far batch means are from their expectation

pub mod chains;
pub mod z_scores;

use gpssm::smc::{FilterOptions, Resampling};
use serde_json::json;

/// Options as a settings file would name them; `proposal` is "auto", "bootstrap" or "adapted".
pub fn options(n_particles: usize, resampling: Resampling, proposal: &str) -> FilterOptions {
    let settings = json!({ "n_particles": n_particles, "resampling": resampling, "proposal": proposal });
    serde_json::from_value(settings).unwrap()
}
