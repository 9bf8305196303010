//! Sequential Monte Carlo: the particle filter, and the conditional one with ancestor sampling.
//!
//! - `weights`: normalised weights from logarithms
//! - [`resampling`]: multinomial and systematic, free and conditional on one ancestor
//! - [`proposal`]: bootstrap, fully adapted, shortlist
//! - [`filter`]: one pass over a sequence (section 3.2 of the paper; with a reference, Algorithm 1 step b)

pub mod filter;
pub mod proposal;
pub mod resampling;
pub(crate) mod weights;
