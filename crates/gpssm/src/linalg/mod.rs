//! Linear algebra: the only place that knows the matrix library and the instruction set.
//!
//! - `dense`: Cholesky factor of one dense matrix (the evidence of a path, eq. 4 of the paper)
//! - `branching`: rank-one updates that leave the old factor as it is
//! - [`fn@least_squares`]: linear regression with dependent columns left out
//! - `panels`: row panels of growing factors, solved for many columns at once
//! - `rotations`: rank-one updates of a panel factor by Givens rotations
//! - [`small`]: the n_x by n_x Gaussians of single particles
//! - `tiles`: the same through single rows of the bush
//! - `simd`, `exponential`: our own vectorised loops

pub(crate) mod banded;
pub(crate) mod branching;
pub(crate) mod dense;
pub(crate) mod exponential;
pub(crate) mod least_squares;
pub(crate) mod panels;
pub(crate) mod rotations;
pub(crate) mod simd;
pub mod small;
pub(crate) mod tiles;

pub use self::dense::NotPositiveDefinite;
pub use self::least_squares::least_squares;
pub use simd::instruction_set;
