//! What a sensor shows of a state, and its distribution function; in the units of `BoundSensor`.

use gpssm::Points;
use gpssm::model::spec::{Predictor, SensorSpec, Value};
use gpssm::posterior::mixture::standard_cdf;
use gpssm::scaling::Scaling;
use gpssm::sensor::BoundSensor;
use gpssm::sensor::family::Family;
use statrs::function::{beta::checked_beta_reg, gamma::checked_gamma_ur};

/// The state that an output shows directly, if it does.
pub(crate) fn shown_state(sensor: &SensorSpec, k: usize) -> Option<usize> {
    let mean = match sensor {
        SensorSpec::Gaussian { mean, .. } | SensorSpec::StudentT { mean, .. } => mean,
        _ => return None,
    };
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
    Some(match sensor {
        SensorSpec::Gaussian { .. } | SensorSpec::StudentT { .. } => name.to_owned(),
        SensorSpec::Poisson { .. } => format!("{name}: counts and rate"),
        SensorSpec::NegativeBinomial { .. } => format!("{name}: counts and mean"),
        SensorSpec::Bernoulli { .. } => format!("{name}: probability of 1"),
        SensorSpec::StochasticVolatility { .. } => format!("|{name}| and its standard deviation"),
        SensorSpec::User(_) | SensorSpec::Formula { .. } => return None,
    })
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
            values[i * n_y + k] = match family {
                Family::Gaussian { .. } | Family::StudentT { .. } => scaling.y.to_original(k, *eta),
                Family::Poisson | Family::NegativeBinomial { .. } => eta.exp(),
                Family::Bernoulli => 1.0 / (1.0 + (-eta).exp()),
                Family::StochasticVolatility => (0.5 * eta).exp(),
            };
        }
    }
    Some(values)
}

/// P(Y < y) and P(Y <= y) of one output given its predictor.
pub(crate) fn distribution(family: &Family, y: f64, eta: f64) -> (f64, f64) {
    let continuous = |p: f64| (p, p);
    // P(Y <= n) of counts; statrs refuses the ends of the range, where the answer is known.
    let counts = |below: &dyn Fn(f64) -> f64| {
        let at = |n: f64| if n < 0.0 { 0.0 } else { below(n) };
        (at(y - 1.0), at(y))
    };
    let (low, high) = match family {
        Family::Gaussian { sd } => continuous(standard_cdf((y - eta) / sd)),
        Family::StudentT { scale, dof } => {
            let t = (y - eta) / scale;
            let tail = 0.5 * checked_beta_reg(0.5 * dof, 0.5, dof / (dof + t * t)).unwrap_or(0.0);
            continuous(if t > 0.0 { 1.0 - tail } else { tail })
        }
        Family::Poisson => {
            let rate = eta.exp();
            counts(&|n| checked_gamma_ur(n + 1.0, rate).unwrap_or(if rate > n { 0.0 } else { 1.0 }))
        }
        Family::NegativeBinomial { size } => {
            let p = size / (size + eta.exp());
            counts(&|n| checked_beta_reg(*size, n + 1.0, p).unwrap_or(if p > 0.5 { 1.0 } else { 0.0 }))
        }
        Family::Bernoulli => {
            let zero = 1.0 / (1.0 + eta.exp());
            if y < 0.5 { (0.0, zero) } else { (zero, 1.0) }
        }
        Family::StochasticVolatility => continuous(standard_cdf(y * (-0.5 * eta).exp())),
    };
    let clean = |p: f64| if p.is_nan() { 0.5 } else { p.clamp(0.0, 1.0) };
    (clean(low), clean(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distribution function is the sum, or the integral, of the density that the sampler uses.
    #[test]
    fn distribution_functions_belong_to_the_densities() {
        let families = [
            Family::Poisson,
            Family::NegativeBinomial { size: 2.5 },
            Family::Bernoulli,
            Family::Gaussian { sd: 1.3 },
            Family::StudentT { scale: 0.7, dof: 3.0 },
            Family::StochasticVolatility,
        ];
        for family in families {
            let eta = 0.8;
            let density = |y: f64| {
                let mut log = [0.0];
                family.log_density(y, &[eta], &mut log);
                log[0].exp()
            };
            let discrete =
                matches!(family, Family::Poisson | Family::NegativeBinomial { .. } | Family::Bernoulli);
            if discrete {
                let mut below = 0.0;
                for y in 0..if family == Family::Bernoulli { 2 } else { 30 } {
                    let y = f64::from(y);
                    let (low, high) = distribution(&family, y, eta);
                    assert!((low - below).abs() < 1e-9, "{family:?} below {y}");
                    below += density(y);
                    assert!((high - below).abs() < 1e-9, "{family:?} at {y}");
                }
            } else {
                let (a, b, n) = (-1.0, 2.0, 2000);
                let h = (b - a) / f64::from(n);
                let integral: f64 = (0..n).map(|i| h * density(a + (f64::from(i) + 0.5) * h)).sum();
                let found = distribution(&family, b, eta).1 - distribution(&family, a, eta).1;
                assert!((found - integral).abs() < 1e-6, "{family:?}: {found} {integral}");
            }
        }
    }

    #[test]
    fn extremes_are_probabilities() {
        let families = [Family::Poisson, Family::NegativeBinomial { size: 1e-3 }, Family::Bernoulli];
        for family in families {
            for eta in [-800.0, 0.0, 800.0] {
                for y in [0.0, 1.0] {
                    let (low, high) = distribution(&family, y, eta);
                    assert!((0.0..=1.0).contains(&low) && low <= high && high <= 1.0, "{family:?} {eta} {y}");
                }
            }
        }
    }
}
