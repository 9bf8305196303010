//! Checks that a part of a model is what it claims to be; for built-in parts and for your own.
//!
//! - [`sensor`]: a density that integrates to one, draws that follow it, points that do not depend on each other
//! - [`family`]: the same for a family of sensors, and its distribution function and derivatives
//! - [`kernel`]: symmetric, positive semi-definite, with the right derivative and spectral density
//!
//! Statistical checks draw with fixed seeds, so a part passes always or never.

mod error;
mod family;
mod kernel;
mod sensor;
pub(crate) mod statistics;

pub use error::Nonconformity;
pub use family::{examples, family};
pub use kernel::{kernel, kernel_examples};
pub use sensor::sensor;
