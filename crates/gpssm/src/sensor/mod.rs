//! Sensors p(y_t | x_t, u_t, theta_y) with numbers for their parameters (eq. 2c).
//!
//! - [`LinearGaussian`]: y = C x + D u + e, the sensor that admits the fully adapted filter
//! - `adapter`: its posterior of a Gaussian state
//! - [`family`]: distributions of an output given its predictor
//! - [`FormulaSensor`]: a sensor given by a formula for its log density
//! - [`OutputSupport`]: where an output can lie
//! - [`BoundSensor`]: every sensor, as the filters and the hyper-parameter updates see it

pub(crate) mod adapter;
pub mod family;
pub(crate) mod formula;
pub(crate) mod linear_gaussian;
pub(crate) mod support;

pub use self::formula::FormulaSensor;
pub use self::linear_gaussian::{LinearGaussian, SensorNoise};
pub use self::support::OutputSupport;

use std::fmt;
use std::sync::Arc;

use rand::Rng;

use crate::function::ScalarFunction;
use crate::points::Points;
use crate::scaling::Scaling;
use family::{Family, GAUSSIAN};

/// A sensor supplied by the user. It always sees original units, and many points at once.
pub trait SensorDensity: Send + Sync {
    /// Writes log p(y | x, u) for every point z = (x, u); missing components of `y` are NaN.
    fn log_density(&self, y: &[f64], z: &Points, parameters: &[f64], out: &mut [f64]);

    /// Draws y at one point z = (x, u).
    fn sample(&self, z: &[f64], parameters: &[f64], rng: &mut dyn Rng, y: &mut [f64]);

    /// Where each output can lie, if it is known: whether log densities are those of numbers or of whole numbers.
    fn supports(&self) -> Option<Vec<OutputSupport>> {
        None
    }

    /// Whether [`SensorDensity::sample`] works; if not, why, and what to do. Learning needs no draws of y,
    /// simulation does and asks first.
    fn can_sample(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A user's sensor with numbers for its parameters.
#[derive(Clone)]
pub struct UserSensor {
    /// The sensor.
    pub sensor: Arc<dyn SensorDensity>,
    /// Its parameters.
    pub parameters: Vec<f64>,
    /// From internal to original units of z; none if they are the same.
    pub scaling: Option<Arc<Scaling>>,
}

impl fmt::Debug for UserSensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UserSensor").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

/// A sensor with numbers.
#[derive(Clone, Debug)]
pub enum BoundSensor {
    /// y = C x + D u + offset + e, e ~ N(0, R).
    LinearGaussian(LinearGaussian),
    /// Each output has its own predictor and family, independent of the others.
    Family {
        /// eta_k(x, u).
        predictors: Vec<ScalarFunction>,
        /// Distribution of y_k given eta_k.
        families: Vec<Family>,
    },
    /// y ~ N(g(x, u), R) with a full R, row-major.
    Gaussian {
        /// g_k(x, u).
        predictors: Vec<ScalarFunction>,
        /// R.
        covariance: Vec<f64>,
    },
    /// A user's sensor.
    User(UserSensor),
}

impl BoundSensor {
    /// Adds log p(y | z_i) to `out[i]` for every point. A wholly missing y adds nothing.
    pub(crate) fn add_log_density(&self, y: &[f64], z: &Points, out: &mut [f64]) {
        self.add_log_density_in(y, z, out, &mut Vec::new());
    }

    /// The same, with room for predictors that is kept from call to call.
    pub(crate) fn add_log_density_in(&self, y: &[f64], z: &Points, out: &mut [f64], room: &mut Vec<f64>) {
        if y.iter().all(|y| y.is_nan()) {
            return;
        }
        match self {
            Self::LinearGaussian(sensor) => sensor.add_log_density(y, z, out, room),
            Self::Family { predictors, families } => {
                room.resize(z.len(), 0.0);
                for ((&y, predictor), family) in y.iter().zip(predictors).zip(families) {
                    if !y.is_nan() {
                        predictor.evaluate(z, room);
                        family.log_density(y, room, out);
                    }
                }
            }
            Self::Gaussian { predictors, covariance } => {
                crate::function::evaluate_all(predictors, z, room);
                linear_gaussian::add_full_gaussian(y, room, covariance, out);
            }
            Self::User(user) => {
                let mut density = vec![0.0; z.len()];
                match &user.scaling {
                    Some(scaling) => {
                        let z = scaling.points_to_original(z);
                        user.sensor.log_density(y, &z, &user.parameters, &mut density);
                    }
                    None => user.sensor.log_density(y, z, &user.parameters, &mut density),
                }
                for (out, density) in out.iter_mut().zip(density) {
                    // +inf is no log density of an observation; like NaN it makes a particle worthless.
                    *out += if density == f64::INFINITY { f64::NAN } else { density };
                }
            }
        }
    }

    /// Sum over t of log p(y_t | z_t) along a path.
    pub(crate) fn log_density_along<'a>(&self, z: &Points, y: impl Fn(usize) -> &'a [f64]) -> f64 {
        let mut point = Points::new(z.n_components());
        let mut row = vec![0.0; z.n_components()];
        let mut total = 0.0;
        for t in 0..z.len() {
            z.get(t, &mut row);
            point.clear();
            point.push(&row);
            let mut density = [0.0];
            self.add_log_density(y(t), &point, &mut density);
            total += density[0];
        }
        total
    }

    /// Whether the outputs of a row are independent given its state, so that each has a density of its own.
    pub fn has_independent_outputs(&self) -> bool {
        match self {
            Self::LinearGaussian(sensor) => matches!(sensor.noise, SensorNoise::Diagonal(_)),
            Self::Family { .. } => true,
            Self::Gaussian { .. } | Self::User(_) => false,
        }
    }

    /// Where each output can lie; none for a user's sensor that does not say.
    pub fn supports(&self) -> Option<Vec<OutputSupport>> {
        match self {
            Self::LinearGaussian(sensor) => Some(vec![OutputSupport::REAL; sensor.offset.len()]),
            Self::Gaussian { predictors, .. } => Some(vec![OutputSupport::REAL; predictors.len()]),
            Self::Family { families, .. } => Some(families.iter().map(Family::support).collect()),
            Self::User(user) => user.sensor.supports(),
        }
    }

    /// Means of a Gaussian sensor at all points, row-major (point, output); none for other sensors.
    pub fn gaussian_means(&self, z: &Points) -> Option<Vec<f64>> {
        let mut means = Vec::new();
        match self {
            Self::LinearGaussian(sensor) => means = sensor.means(z),
            Self::Gaussian { predictors, .. } => crate::function::evaluate_all(predictors, z, &mut means),
            Self::Family { predictors, families } => {
                if families.iter().any(|family| family.name() != GAUSSIAN.name) {
                    return None;
                }
                crate::function::evaluate_all(predictors, z, &mut means);
            }
            Self::User(_) => return None,
        }
        Some(means)
    }

    /// Whether outputs can be drawn; if not, why, and what to do.
    pub fn can_sample(&self) -> Result<(), String> {
        match self {
            Self::User(user) => user.sensor.can_sample(),
            Self::LinearGaussian(_) | Self::Family { .. } | Self::Gaussian { .. } => Ok(()),
        }
    }

    /// Draws y at one point z = (x, u); missing (NaN) where the sensor cannot be drawn from, see
    /// [`BoundSensor::can_sample`].
    pub fn sample(&self, z: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        let point = Points::from_rows(z.len(), [z]);
        match self {
            Self::LinearGaussian(sensor) => sensor.sample(z, rng, y),
            Self::Family { predictors, families } => {
                let mut eta = [0.0];
                for ((y, predictor), family) in y.iter_mut().zip(predictors).zip(families) {
                    predictor.evaluate(&point, &mut eta);
                    *y = family.sample(eta[0], rng);
                }
            }
            Self::Gaussian { predictors, covariance } => {
                let mut mean = Vec::new();
                crate::function::evaluate_all(predictors, &point, &mut mean);
                linear_gaussian::sample_full_gaussian(&mean, covariance, rng, y);
            }
            Self::User(user) => {
                let point = user.scaling.as_ref().map_or(point.clone(), |s| s.points_to_original(&point));
                user.sensor.sample(&point.row(0), &user.parameters, rng, y);
            }
        }
    }

    /// The linear-Gaussian sensor, if that is what it is.
    pub fn as_linear_gaussian(&self) -> Option<&LinearGaussian> {
        match self {
            Self::LinearGaussian(sensor) => Some(sensor),
            _ => None,
        }
    }
}
