//! What a sensor shows of a state.

use gpssm::Points;
use gpssm::model::{Predictor, SensorSpec, Value};
use gpssm::scaling::Scaling;
use gpssm::sensor::BoundSensor;
use gpssm::sensor::family::Link;

/// The state that an output shows directly, if it does.
pub(crate) fn shown_state(sensor: &SensorSpec, k: usize) -> Option<usize> {
    let (_, mean) = sensor.family().filter(|(family, _)| family.link == Link::Identity)?;
    let is = |value: &Value, number: f64| matches!(value, Value::Known(v) if *v == number);
    match mean {
        Predictor::States => Some(k),
        Predictor::Linear { c, d, offset } => {
            let plain = d.get(k).is_none_or(|row| row.iter().all(|v| is(v, 0.0)))
                && offset.get(k).is_none_or(|v| is(v, 0.0))
                && c[k].iter().all(|v| is(v, 0.0) || is(v, 1.0));
            let ones: Vec<usize> = (0..c[k].len()).filter(|&d| is(&c[k][d], 1.0)).collect();
            (plain && ones.len() == 1).then(|| ones[0])
        }
        Predictor::Functions(_) | Predictor::Formulas(_) => None,
    }
}

/// What [`signal`] is called for output `name`; none if the sensor is the user's own.
pub(crate) fn signal_name(sensor: &SensorSpec, name: &str) -> Option<String> {
    sensor.family().map(|(family, _)| family.figure.replace("{y}", name))
}

/// The noise-free output at all points, row-major (point, output), original units; for stochastic volatility
/// the standard deviation. None if the sensor is the user's own.
pub(crate) fn signal(sensor: &BoundSensor, z: &Points, scaling: &Scaling) -> Option<Vec<f64>> {
    let n_y = scaling.y.scale.len();
    if let Some(mut means) = sensor.gaussian_means(z) {
        means.iter_mut().enumerate().for_each(|(i, mean)| *mean = scaling.y.to_original(i % n_y, *mean));
        return Some(means);
    }
    let BoundSensor::Family { predictors, families } = sensor else { return None };
    let mut values = vec![0.0; z.len() * n_y];
    let mut eta = vec![0.0; z.len()];
    for (k, (predictor, family)) in predictors.iter().zip(families).enumerate() {
        predictor.evaluate(z, &mut eta);
        for (i, eta) in eta.iter().enumerate() {
            values[i * n_y + k] = scaling.y.to_original(k, family.signal(*eta));
        }
    }
    Some(values)
}
