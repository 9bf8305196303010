//! What the user describes, as plain data, and what becomes of it.
//!
//! - [`spec`]: the model; [`kernel`], [`sensor`], [`symmetry`]: its parts
//! - [`dynamics`]: the prior over f, exact or a finite basis; `choose`: that basis from the data
//! - [`Functions`](crate::Functions): user functions by name, the part that is code
//! - [`names`]: names of states, inputs and outputs, and what they mean in formulas
//! - [`prior`], [`scale_prior`], [`covariance_prior`]: priors of numbers, noise scales and covariances
//! - [`parameters`]: the table of all hyper-parameters
//! - [`Problem`](crate::Problem): a model and a record, validated once, with numbers in reach
//! - `ready_made`: models that many users start from
//! - [`orientation`]: which branch of a symmetry a path is on

pub(crate) mod choose;
pub(crate) mod compile;
pub mod covariance_prior;
pub mod dynamics;
pub(crate) mod functions;
pub mod kernel;
pub mod names;
pub mod orientation;
pub mod parameters;
pub mod prior;
pub mod prior_error;
mod ready_made;
pub mod scale_prior;
pub mod sensor;
mod small_matrix;
pub mod spec;
pub mod symmetry;
