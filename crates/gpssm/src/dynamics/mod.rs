//! Priors over the transition function, for all particles of a filter at once.
//!
//! The filters ask a `Population`, never single particles: p(x_t | path) of every particle (eq. 3 of the
//! paper), log p(x~_{t:T} | path) up to a constant (eq. 8), and the next generation.
//!
//! - [`transition`]: the transition with numbers; the one place that chooses the prior
//! - `population`, `genealogy`, `block`: particles, their common past, and what they need of a prior
//! - `exact`: the Gaussian process itself, one factor for the whole particle tree
//! - [`basis`]: finite bases in its place: inducing inputs, Hilbert space, Fourier features
//! - `markov`: x' = h(x, u) + v, and finite bases given one draw of their weights
//! - `function_draw`: the next state given one draw of f
//! - `evidence`: the joint density of a path (eq. 4)
//! - [`gp`]: these densities as building blocks
//! - [`predictions`]: one-step predictions of all particles
//! - [`numerics`]: what is counted of the arithmetic

pub mod basis;
pub(crate) mod block;
pub(crate) mod covariance_cache;
pub(crate) mod exact;
pub(crate) mod function_draw;
pub(crate) mod function_mean;
pub(crate) mod genealogy;
pub mod gp;
pub(crate) mod markov;
pub mod numerics;
pub(crate) mod path_density;
pub(crate) mod population;
pub mod predictions;
pub mod transition;

#[cfg(test)]
mod tests;
