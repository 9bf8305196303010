//! Priors over the transition function, for all particles of a filter at once.
//!
//! The filters ask a `Population`, never single particles: p(x_t | path) of every particle (eq. 3 of the
//! paper), log p(x~_{t:T} | path) up to a constant (eq. 8), and the next generation.
//!
//! - `transition`: the transition with numbers; the one place that chooses the prior
//! - `population`, `genealogy`, `block`: particles, their common past, and what they need of a prior
//! - `exact`: the Gaussian process itself, one factor for the whole particle tree
//! - `basis`: finite bases in its place: inducing inputs, Hilbert space, Fourier features
//! - `markov`: x' = h(x, u) + v, and finite bases given one draw of their weights
//! - `function_draw`: the next state given one draw of f
//! - `path_density`: the joint density of a path (eq. 4)
//! - `gp`: these densities as building blocks

pub(crate) mod basis;
pub(crate) mod block;
pub(crate) mod covariance_cache;
pub(crate) mod exact;
pub(crate) mod function_draw;
pub(crate) mod genealogy;
pub(crate) mod gp;
pub(crate) mod markov;
pub(crate) mod numerics;
pub(crate) mod path_density;
pub(crate) mod population;
pub(crate) mod predictions;
pub(crate) mod transition;

pub use self::basis::features::{Basis, BasisChoice, BasisError};
pub use self::basis::fourier::{FourierBasis, FourierChoice};
pub use self::basis::hilbert::{HilbertBasis, HilbertChoice};
pub use self::basis::inducing::InducingBasis;
pub use self::gp::Gaussian;
pub use self::numerics::Numerics;
pub use self::predictions::Predictions;
pub use self::transition::{FunctionPrior, ProcessNoise, Transition};

#[cfg(test)]
mod tests;
