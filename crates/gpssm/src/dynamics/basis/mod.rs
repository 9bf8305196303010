//! Finite bases: f(z) = m(z) + phi(z) . w with w ~ N(0, I), and a noise of its own at each point.
//!
//! - [`features`]: phi and the noise of FIC, DTC, Hilbert-space and Fourier bases
//! - [`hilbert`], [`inducing`], [`fourier`]: the three kinds
//! - `regression`: statistics, evidence and weights of Bayesian linear regression
//! - `collapsed`: the conditional filter with weights integrated out
//! - `forward`: the unconditional filter with weights integrated out
//! - `sampled`: filters given one draw of the weights

pub(crate) mod collapsed;
pub mod features;
pub(crate) mod forward;
pub mod fourier;
pub mod hilbert;
pub mod inducing;
pub(crate) mod regression;
pub(crate) mod sampled;
