//! Priors over the transition function, for all particles at once.
pub mod basis;
pub(crate) mod block;
pub(crate) mod evidence;
pub(crate) mod exact;
pub(crate) mod genealogy;
pub mod gp;
pub(crate) mod parametric;
pub(crate) mod population;
pub mod predictions;
pub mod transition;

#[cfg(test)]
mod tests;
