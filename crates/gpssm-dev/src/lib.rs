//! Internal to gpssm: what its tests, examples and experiments share. No promise of stability.
//!
//! - [`benchmark`]: the paper's nonlinear benchmark: data, model, errors
//! - [`cart_pole`]: a cart with a pendulum
//! - [`mixing`]: the cases of the mixing benchmark
//! - [`oracle`]: golden values of an independent dense implementation
//! - [`dense`]: small dense matrices in plain loops
//! - [`mod@reference`]: kernels and mean functions at single points, written from their formulas
//!
//! The program's `demo` and `reproduce` use the plants, so the crate is published along with it. Crates below it name it
//! as a dev-dependency without a version, which publishing leaves out. That circle works for integration tests,
//! examples and benches. Unit tests of `gpssm` see a second build of the library, so that only what is made of plain
//! numbers ([`dense`]) can be shared with them.

pub mod benchmark;
pub mod cart_pole;
pub mod dense;
pub mod mixing;
pub mod oracle;
pub mod reference;

use rand::{RngExt, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

/// A draw from N(0, 1).
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    rng.sample(StandardNormal)
}
