//! Learn nonlinear dynamics from recorded inputs and outputs, with honest uncertainty.
//!
//! The model is a state-space model whose transition function is unknown and has a Gaussian process prior
//! (Frigola, Lindsten, Schön, Rasmussen: *Bayesian Inference and Learning in Gaussian Process State-Space
//! Models with Particle MCMC*, NIPS 2013):
//!
//! ```text
//! x_{t+1} = f(x_t, u_t) + v_t,  v_t ~ N(0, Q),  f ~ GP(m, k)
//! y_t ~ p(y | x_t, u_t, theta_y)
//! ```
//!
//! The function is integrated out exactly, and the states x_{0:T} and the hyper-parameters theta are drawn
//! from their posterior p(x_{0:T}, theta | y_{0:T}) by particle Gibbs with ancestor sampling.
//!
//! ```
//! use gpssm::{Functions, MemorySink, Model, Problem, Sequence, Settings, sample};
//!
//! // A record: one input, one output.
//! let u: Vec<f64> = (0..25).map(|t| (0.3 * f64::from(t)).sin()).collect();
//! let mut y = vec![0.0];
//! for t in 0..24 {
//!     y.push(0.8 * y[t] + u[t]);
//! }
//! let record = Sequence::scalar(&y, Some(&u))?;
//!
//! // One state, seen with noise; everything else by default.
//! let problem = Problem::new(Model::observed(1, 1), &Functions::new(), record.into())?;
//! let settings = Settings { chains: 1, tune: 10, draws: Some(20), ..Settings::default() };
//! let sink = MemorySink::new();
//! sample(&problem, &settings, &sink, &|_| true)?;
//! let draws = &sink.into_chains()[0];
//! assert_eq!(draws.paths.len(), 20);
//! # Ok::<(), gpssm::Error>(())
//! ```
//!
//! Where to find what:
//!
//! | in the paper | here |
//! |---|---|
//! | eq. 2, the model | [`Model`], and with numbers [`StateSpace`](state_space::StateSpace) |
//! | eq. 3, one-step prediction with f integrated out | [`Transition::one_step`](dynamics::Transition::one_step) |
//! | eq. 4, joint density of a path | [`Transition::log_joint`](dynamics::Transition::log_joint) |
//! | eq. 5, proposals | [`smc::Proposal`] |
//! | eq. 8, ancestor weights | [`Transition::ancestor_log_weights`](dynamics::Transition::ancestor_log_weights), [`smc::conditional_filter`] |
//! | section 4, FIC | [`dynamics::InducingBasis`] |
//! | eq. 11 and 12, posterior of f | [`Transition::f_posterior`](dynamics::Transition::f_posterior) |
//! | Algorithm 1 | [`mcmc::Chain::sweep`], [`mcmc::moves`] |
//! | section 3.3.2, hyper-parameters | [`mcmc::slice_update`], [`mcmc::moves::HyperParameters`] |
//!
//! For users of models:
//!
//! - [`Sequence`], [`Record`]: measured outputs and inputs
//! - [`model`]: the model as plain data, validated with a record into a [`Problem`]
//! - [`mcmc`]: settings, chains, and sinks for their draws
//! - [`posterior`]: predict, simulate, filter, smooth, compare, thin, distil
//! - [`run`]: chains until they have converged, or for a fixed number of draws
//! - [`convergence`], [`diagnostics`]: verdict, summaries and warnings; R-hat and effective sample sizes
//! - [`formula`]: functions as text
//! - [`conformance`]: checks for kernels and sensors of your own
//!
//! For developers of methods, the parts with numbers: [`kernel`], [`function`], [`sensor`], [`dynamics`],
//! [`state_space`], [`smc`], [`mcmc::moves`], and beneath them [`linalg`], [`scaling`] and [`random`].

pub mod conformance;
pub mod convergence;
pub mod diagnostics;
pub mod dynamics;
mod error;
pub mod formula;
pub mod function;
mod identity;
mod initial;
pub mod kernel;
pub mod linalg;
pub mod mcmc;
pub mod model;
mod points;
pub mod posterior;
pub mod random;
mod record;
pub mod run;
pub mod scaling;
pub mod sensor;
pub mod smc;
mod special;
pub mod state_space;

#[cfg(test)]
mod numeric_checks;

pub use error::Error;
pub use function::StateFunction;
pub use initial::InitialDensity;
pub use kernel::Kernel;
pub use mcmc::{
    Budget, ChainPlan, Draw, Ended, Look, MemorySink, Phase, Progress, RunReport, Settings, Sink, prepare,
};
pub use model::{Functions, KernelSpec, Model, Prior, PriorDensity, Problem};
pub use points::Points;
pub use posterior::Posterior;
pub use record::{Record, Sequence};
pub use run::{sample, sample_chains};
pub use sensor::SensorDensity;
