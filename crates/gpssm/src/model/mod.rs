//! What the user describes, as plain data, and what becomes of it.
//!
//! - [`Model`]: the model; [`StateSpec`], [`TransitionSpec`], [`KernelSpec`], [`SensorSpec`], [`InitialSpec`], [`Symmetry`]: its parts
//! - [`DynamicsSpec`]: the prior over f, exact or a finite basis
//! - [`Functions`]: user functions by name, the part that is code
//! - [`Names`]: names of states, inputs and outputs, and what they mean in formulas
//! - [`Prior`], [`ScalePrior`], [`CovariancePrior`]: priors of numbers, noise scales and covariances
//! - [`Problem`]: a model and a record, validated once; [`ParameterTable`]: all its hyper-parameters

pub(crate) mod choose;
pub(crate) mod compile;
pub(crate) mod covariance_prior;
pub(crate) mod dynamics;
pub(crate) mod functions;
pub(crate) mod kernel;
pub(crate) mod names;
pub(crate) mod orientation;
pub(crate) mod parameters;
pub(crate) mod prior;
pub(crate) mod prior_error;
mod ready_made;
pub(crate) mod scale_prior;
pub(crate) mod sensor;
mod small_matrix;
pub(crate) mod spec;
pub(crate) mod symmetry;

pub use self::compile::Problem;
pub use self::covariance_prior::CovariancePrior;
pub use self::dynamics::{DynamicsSpec, InducingSpec, Mode};
pub use self::functions::Functions;
pub use self::kernel::{
    Active, CHANGE_POINT, ChangePointSpec, KernelSpec, PartSpec, PowerSpec, ScaledSpec, UserKernelSpec,
};
pub use self::names::Names;
pub use self::orientation::orient;
pub use self::parameters::{
    Axis, Coordinate, Identity, Index, KernelNumbers, KernelPart, MatrixParameter, Owner, Parameter,
    ParameterPrior, ParameterTable, Quantity, Role, Unit,
};
pub use self::prior::{LogDensity, Prior, PriorDensity, Support};
pub use self::prior_error::PriorError;
pub use self::scale_prior::{ScaleKind, ScalePrior};
pub use self::sensor::{Given, Predictor, SensorNoiseSpec, SensorSpec};
pub use self::spec::{
    FunctionRef, FunctionSpec, InitialSpec, Model, ProcessNoiseSpec, StateSpec, TransitionSpec, Value,
};
pub use self::symmetry::{Orientation, Symmetry};
