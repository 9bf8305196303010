//! gpssm
pub mod diagnostics;
pub mod dynamics;
pub mod error;
pub mod function;
pub mod initial;
pub mod kernel;
pub mod linalg;
pub mod model;
pub mod points;
pub mod record;
pub mod scaling;
pub mod sensor;
pub mod smc;
pub mod mcmc {
    pub mod slice;
}
pub use function::StateFunction;
pub use points::Points;
