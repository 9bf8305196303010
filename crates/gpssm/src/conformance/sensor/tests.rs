use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::*;
use crate::conformance::{examples, family};
use crate::function::ScalarFunction;
use crate::sensor::family::{FAMILIES, Family};
use crate::sensor::{SensorDensity, UserSensor};

#[test]
fn every_family_conforms() {
    for descriptor in FAMILIES {
        for example in examples(descriptor) {
            for eta in [-1.3, 0.0, 1.7] {
                family(&example, eta).unwrap();
            }
        }
    }
}

/// Every family as the filters see it.
#[test]
fn every_family_conforms_as_a_sensor() {
    let points = Points::from_rows(1, [&[-0.5][..], &[1.2]]);
    for descriptor in FAMILIES {
        let families: Vec<Family> = examples(descriptor);
        let supports: Vec<OutputSupport> = families.iter().map(Family::support).collect();
        let predictors = vec![ScalarFunction::Component(0); families.len()];
        sensor(&BoundSensor::Family { predictors, families }, &points, &supports).unwrap();
    }
}

/// Two outputs that share the state, with bugs to plant.
struct Planted {
    log_constant: f64,
    scale: f64,
    shift: f64,
    leak: f64,
}

const SOUND: Planted = Planted { log_constant: 0.0, scale: 1.0, shift: 0.0, leak: 0.0 };

impl SensorDensity for Planted {
    fn log_density(&self, y: &[f64], z: &Points, _: &[f64], out: &mut [f64]) {
        let first = z.row(0)[0];
        for (i, out) in out.iter_mut().enumerate() {
            let x = z.row(i)[0] + self.leak * first;
            let term = |e: f64| -0.5 * (e * e + std::f64::consts::TAU.ln()) + self.log_constant;
            *out = y.iter().filter(|y| !y.is_nan()).map(|y| term(y - x)).sum();
        }
    }

    fn sample(&self, z: &[f64], _: &[f64], rng: &mut dyn Rng, y: &mut [f64]) {
        for y in y {
            let e: f64 = rng.sample(StandardNormal);
            *y = z[0] + self.shift + self.scale * e;
        }
    }
}

fn found(planted: Planted, supports: [OutputSupport; 2]) -> Result<(), Nonconformity> {
    let user = UserSensor { sensor: Arc::new(planted), parameters: vec![], scaling: None };
    let points = Points::from_rows(1, [&[0.0][..], &[3.0], &[-2.0]]);
    sensor(&BoundSensor::User(user), &points, &supports)
}

#[test]
fn planted_bugs_are_found() {
    use Nonconformity::{Differs, Draws, OutsideSupport, Total};
    let real = [OutputSupport::REAL; 2];
    found(SOUND, real).unwrap();
    assert!(matches!(found(Planted { log_constant: 0.01, ..SOUND }, real), Err(Total { .. })));
    assert!(matches!(found(Planted { scale: 1.07, ..SOUND }, real), Err(Draws { .. })));
    assert!(matches!(found(Planted { shift: 0.06, ..SOUND }, real), Err(Draws { .. })));
    // A leak from the first point to the others changes their density when they are evaluated together.
    let points = Points::from_rows(1, [&[1.0][..], &[3.0]]);
    let leak = Planted { leak: 0.01, ..SOUND };
    let user = UserSensor { sensor: Arc::new(leak), parameters: vec![], scaling: None };
    assert!(matches!(batch(&BoundSensor::User(user), &points, &[0.3, 0.1]), Err(Differs { .. })));
    let positive = [OutputSupport::Interval { low: 0.0, high: f64::INFINITY }; 2];
    let outside = found(SOUND, positive);
    assert!(matches!(outside, Err(OutsideSupport { .. } | Total { .. })), "{outside:?}");
}
