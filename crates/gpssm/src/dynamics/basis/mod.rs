//! Finite bases: f(z) = m(z) + phi(z) . w with w ~ N(0, I), and a noise of its own at each point.
//!
//! - [`features`]: phi and the noise of FIC, DTC, Hilbert-space and Fourier bases
//! - [`hilbert`], [`inducing`], [`fourier`]: the three kinds
//! - `selection`: which points of a path become inducing inputs
//! - `regression`: statistics, evidence and weights of Bayesian linear regression
//! - `statistics_cache`: statistics while hyper-parameters move
//! - `collapsed`: the conditional filter with weights integrated out
//! - `forward`: the unconditional filter with weights integrated out
//!
//! Given one draw of the weights the transition is Markov, and `dynamics::markov` serves it.

pub(crate) mod collapsed;
pub(crate) mod features;
pub(crate) mod forward;
pub(crate) mod fourier;
pub(crate) mod hilbert;
pub(crate) mod inducing;
pub(crate) mod regression;
pub(crate) mod selection;
pub(crate) mod statistics_cache;
