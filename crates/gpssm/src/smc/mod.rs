//! Sequential Monte Carlo: the particle filter, and the conditional one with ancestor sampling.
//!
//! - `weights`: normalised weights from logarithms
//! - [`Resampling`]: multinomial and systematic, free and conditional on one ancestor
//! - [`Proposal`]: bootstrap, fully adapted, shortlist
//! - [`Children`]: how long the shortlist of each row is
//! - [`particle_filter`], [`conditional_filter`]: one pass over a sequence (section 3.2 of the paper; with a reference, Algorithm 1 step b)

pub(crate) mod children;
pub(crate) mod filter;
mod pass;
pub(crate) mod proposal;
pub(crate) mod resampling;
mod shortlist;
pub(crate) mod weights;

pub use self::children::Children;
pub use self::filter::{
    FilterError, FilterOptions, FilterOutcome, conditional_filter, conditional_filter_with, particle_filter,
};
pub use self::proposal::Proposal;
pub use self::resampling::Resampling;
