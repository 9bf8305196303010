//! Checks that a part of a model is what it claims to be; for built-in parts and for your own.
//!
//! - [`sensor`]: a density that integrates to one, draws that follow it, points that do not depend on each other
//! - [`family`]: the same for a family of sensors, and its distribution function, mean and derivatives
//!
//! Statistical checks draw with fixed seeds, so a part passes always or never.

mod error;
mod family;
mod sensor;
pub(crate) mod statistics;

pub use error::Nonconformity;
pub use family::{examples, family};
pub use sensor::sensor;
