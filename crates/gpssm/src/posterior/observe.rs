//! Outputs that a simulated state gives, with and without the noise of the sensor.

use rand::Rng;

use crate::error::Error;
use crate::function::evaluate_all;
use crate::points::Points;
use crate::scaling::Scaling;
use crate::sensor::BoundSensor;

/// E[y | z] at all points, row-major, internal units; the centre for Student's t. None for a user's sensor, which can
/// only be drawn from.
pub(crate) fn sensor_mean(sensor: &BoundSensor, z: &Points) -> Option<Vec<f64>> {
    if let Some(means) = sensor.gaussian_means(z) {
        return Some(means);
    }
    let BoundSensor::Family { predictors, families } = sensor else { return None };
    let mut means = Vec::new();
    evaluate_all(predictors, z, &mut means);
    for (i, mean) in means.iter_mut().enumerate() {
        *mean = families[i % families.len()].mean(*mean);
    }
    Some(means)
}

/// Refuses to leave out the noise of a user's sensor.
pub(crate) fn check_noise_free(sensor: &BoundSensor) -> Result<(), Error> {
    match sensor {
        BoundSensor::User(_) => {
            Err(Error::settings("sensor_noise", "a user's sensor can only be drawn from: leave its noise on"))
        }
        _ => Ok(()),
    }
}

/// y at each state (row-major, internal units), in original units.
pub(crate) fn outputs<R: Rng>(
    sensor: &BoundSensor,
    scaling: &Scaling,
    x: &[f64],
    u: &[f64],
    noise: bool,
    rngs: &mut [R],
) -> Vec<f64> {
    let (n_x, n_y) = (scaling.x.scale.len(), scaling.y.scale.len());
    let mut z = Points::new(n_x + u.len());
    x.chunks_exact(n_x).for_each(|x| z.push_parts(x, u));
    let mut y = match sensor_mean(sensor, &z).filter(|_| !noise) {
        Some(means) => means,
        None => {
            let mut y = vec![0.0; z.len() * n_y];
            for (i, y) in y.chunks_exact_mut(n_y).enumerate() {
                sensor.sample(&z.row(i), &mut rngs[i], y);
            }
            y
        }
    };
    y.iter_mut().enumerate().for_each(|(i, y)| *y = scaling.y.to_original(i % n_y, *y));
    y
}
