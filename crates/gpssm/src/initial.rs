//! The initial state p(x_0), with numbers.

use std::fmt;
use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::linalg::small;
use crate::scaling::Scaling;

/// A density of the initial state supplied by the user, in original units.
pub trait InitialDensity: Send + Sync {
    /// log p(x_0).
    fn log_density(&self, x: &[f64]) -> f64;

    /// Draws x_0.
    fn sample(&self, rng: &mut dyn Rng, x: &mut [f64]);
}

/// p(x_0) with numbers.
#[derive(Clone)]
pub enum BoundInitial {
    /// N(mean, L L').
    Gaussian {
        /// Mean.
        mean: Vec<f64>,
        /// Lower Cholesky factor of the covariance, row-major.
        chol: Vec<f64>,
    },
    /// Known exactly.
    Fixed(Vec<f64>),
    /// A user's density.
    User {
        /// The density.
        density: Arc<dyn InitialDensity>,
        /// Units of the states.
        scaling: Arc<Scaling>,
    },
}

impl fmt::Debug for BoundInitial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gaussian { mean, chol } => {
                formatter.debug_struct("Gaussian").field("mean", mean).field("chol", chol).finish()
            }
            Self::Fixed(x) => formatter.debug_tuple("Fixed").field(x).finish(),
            Self::User { .. } => formatter.write_str("User"),
        }
    }
}

impl BoundInitial {
    /// log p(x_0); zero for a fixed state, which is never anywhere else.
    pub fn log_density(&self, x: &[f64]) -> f64 {
        match self {
            Self::Gaussian { mean, chol } => {
                let mut residual: Vec<f64> = x.iter().zip(mean).map(|(x, mean)| x - mean).collect();
                small::log_gaussian(chol, mean.len(), &mut residual)
            }
            Self::Fixed(_) => 0.0,
            Self::User { density, scaling } => {
                let original: Vec<f64> =
                    x.iter().enumerate().map(|(d, x)| scaling.x.to_original(d, *x)).collect();
                density.log_density(&original)
            }
        }
    }

    /// Draws x_0.
    pub fn sample<R: Rng>(&self, rng: &mut R, x: &mut [f64]) {
        match self {
            Self::Gaussian { mean, chol } => {
                let noise: Vec<f64> = mean.iter().map(|_| rng.sample(StandardNormal)).collect();
                small::multiply_lower(chol, mean.len(), &noise, x);
                x.iter_mut().zip(mean).for_each(|(x, mean)| *x += mean);
            }
            Self::Fixed(value) => x.copy_from_slice(value),
            Self::User { density, scaling } => {
                density.sample(rng, x);
                for (d, x) in x.iter_mut().enumerate() {
                    *x = scaling.x.to_internal(d, *x);
                }
            }
        }
    }
}
