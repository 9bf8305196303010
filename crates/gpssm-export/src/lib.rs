//! Learned models that leave the house: a distilled model as text that others compile or load.
//!
//! - [`Model`]: a distilled model as expressions, checked for what can be exported
//! - [`c`]: C99 without dependencies or allocation, with symbols for CasADi
//! - [`onnx`]: one step as an ONNX model; [`fmu`]: a unit for co-simulation, FMI 3.0
//! - [`expressions()`]: a model as data for builders in other languages
//! - [`expression`]: scalar expressions with their derivatives
//!
//! Nothing here samples, reads or writes files: an export is a list of names and bytes.

mod archive;
pub mod c;
mod error;
pub mod expression;
mod expressions;
pub mod fmu;
mod kernel;
mod model;
pub mod onnx;
mod sensor;

pub use error::ExportError;
pub use expressions::expressions;
pub use kernel::KernelExpression;
pub use model::{Filter, Model, Options, Precision, State};
pub use sensor::Sensor;

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name within the folder.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl File {
    pub(crate) fn text(name: impl Into<String>, text: String) -> Self {
        Self { name: name.into(), bytes: text.into_bytes() }
    }
}
