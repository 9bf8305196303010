//! The models on which invariance is tested. The power of the test depends on their numbers, so they are
//! all stated here: kernel, q, r, p(x_0), sensor.

use std::sync::Arc;

use gpssm::dynamics::{FunctionPrior, ProcessNoise, Transition};
use gpssm::function::{ScalarFunction, UserFunction};
use gpssm::kernel::Shape;
use gpssm::scaling::{Affine, Scaling};
use gpssm::sensor::family::Family;
use gpssm::sensor::{BoundSensor, LinearGaussian, SensorNoise};
use gpssm::state_space::{BoundInitial, StateSpace};
use gpssm::{Kernel, Points};

use super::user::Wide;

/// y = C z + e, row-major C, independent noise.
fn linear(n_x: usize, weights: &[f64], variances: &[f64]) -> BoundSensor {
    BoundSensor::LinearGaussian(LinearGaussian {
        weights: weights.to_vec(),
        offset: vec![0.0; variances.len()],
        noise: SensorNoise::Diagonal(variances.to_vec()),
        n_x,
    })
}

/// x_0 ~ N(0, I).
fn standard(n_x: usize) -> BoundInitial {
    let mut chol = vec![0.0; n_x * n_x];
    (0..n_x).for_each(|d| chol[d * n_x + d] = 1.0);
    BoundInitial::Gaussian { mean: vec![0.0; n_x], chol }
}

/// f ~ GP(0, 4 exp(-(x - x')^2 / (2 1.5^2))), q = 0.1; y = x + e, r = 0.3; x_0 ~ N(0, 1).
pub fn scalar() -> StateSpace {
    StateSpace {
        transition: Transition {
            kernels: vec![Kernel::squared_exponential(4.0, &[1.5])],
            means: vec![ScalarFunction::Zero],
            noise: ProcessNoise::Diagonal(vec![0.1]),
            lags: vec![None],
            prior: FunctionPrior::Exact,
        },
        sensor: linear(1, &[1.0], &[0.3]),
        initial: standard(1),
    }
}

/// f ~ GP(`slope` x, `signal` exp(-(x - x')^2 / (2 2^2))); y = x + e; x_0 ~ N(0, 1).
pub fn sloped(slope: f64, signal: f64, q: f64, r: f64) -> StateSpace {
    StateSpace {
        transition: Transition {
            kernels: vec![Kernel::squared_exponential(signal, &[2.0])],
            means: vec![ScalarFunction::Linear { weights: vec![slope], offset: 0.0 }],
            noise: ProcessNoise::Diagonal(vec![q]),
            lags: vec![None],
            prior: FunctionPrior::Exact,
        },
        sensor: linear(1, &[1.0], &[r]),
        initial: standard(1),
    }
}

/// Two states a, b and an input, f_a ~ GP(a, SE(1.5; 1, 2, 1.5)), f_b ~ GP(0.5 b + 0.3 u, Matérn-3/2(1; 1.5, 1,
/// 2) + 0.3 a a'); y = a + 0.5 b + 0.4 u + e, r = 0.2; x_0 ~ N((0.2, -0.3), L L'), L = ((0.8, 0), (0.3, 0.6)).
/// Kernels are written SE(variance; length-scales).
pub fn planar(noise: ProcessNoise) -> StateSpace {
    StateSpace {
        transition: Transition {
            kernels: vec![
                Kernel::squared_exponential(1.5, &[1.0, 2.0, 1.5]),
                Kernel::Sum(vec![
                    Kernel::stationary(Shape::Matern32, 1.0, &[1.5, 1.0, 2.0]),
                    Kernel::linear(vec![0], vec![0.3]),
                ]),
            ],
            means: vec![
                ScalarFunction::Component(0),
                ScalarFunction::Linear { weights: vec![0.0, 0.5, 0.3], offset: 0.0 },
            ],
            noise,
            lags: vec![None; 2],
            prior: FunctionPrior::Exact,
        },
        sensor: linear(2, &[1.0, 0.5, 0.4], &[0.2]),
        initial: BoundInitial::Gaussian { mean: vec![0.2, -0.3], chol: vec![0.8, 0.0, 0.3, 0.6] },
    }
}

/// Q = diag(0.1, 0.2).
pub fn diagonal() -> ProcessNoise {
    ProcessNoise::Diagonal(vec![0.1, 0.2])
}

/// Correlation 0.7.
pub fn full() -> ProcessNoise {
    ProcessNoise::Full(vec![0.2, 0.14, 0.14, 0.2])
}

/// The planar model with full Q and y = ((1, 0.5), (-0.3, 1)) x + 0.4 u + e, R with correlation 0.6.
pub fn two_outputs() -> StateSpace {
    let sensor = LinearGaussian {
        weights: vec![1.0, 0.5, 0.4, -0.3, 1.0, 0.4],
        offset: vec![0.1, -0.2],
        noise: SensorNoise::Full(vec![0.3, 0.18, 0.18, 0.3]),
        n_x: 2,
    };
    StateSpace { sensor: BoundSensor::LinearGaussian(sensor), ..planar(full()) }
}

/// x' = 0.8 x + sin(x) known, q = 0.3; y = x + e, r = 0.3; x_0 ~ N(0, 1).
pub fn parametric() -> StateSpace {
    let step = |z: &Points, parameters: &[f64], out: &mut [f64]| {
        for (out, x) in out.iter_mut().zip(z.column(0)) {
            *out = parameters[0] * x + x.sin();
        }
    };
    let function = UserFunction { function: Arc::new(step), parameters: vec![0.8], scaling: None };
    let mut model = scalar();
    model.transition.kernels = vec![Kernel::zero()];
    model.transition.means = vec![ScalarFunction::User { function, shift: 0.0, scale: 1.0 }];
    model.transition.noise = ProcessNoise::Diagonal(vec![0.3]);
    model
}

/// The planar model whose first state is known, a' = 0.7 a + 0.5 b.
pub fn mixed(noise: ProcessNoise) -> StateSpace {
    let mut model = planar(noise);
    model.transition.kernels[0] = Kernel::zero();
    model.transition.means[0] = ScalarFunction::Linear { weights: vec![0.7, 0.5, 0.0], offset: 0.0 };
    model
}

/// x_t depends on x_{t-1} and x_{t-2} by f ~ GP(0, SE(4; 1.5, 2)), q = 0.1; y = x_t + `weight` x_{t-1} + e,
/// r = 0.3.
pub fn lagged(weight: f64) -> StateSpace {
    StateSpace {
        transition: Transition {
            kernels: vec![Kernel::squared_exponential(4.0, &[1.5, 2.0]), Kernel::zero()],
            means: vec![ScalarFunction::Zero, ScalarFunction::Zero],
            noise: ProcessNoise::Diagonal(vec![0.1, 0.0]),
            lags: vec![None, Some(0)],
            prior: FunctionPrior::Exact,
        },
        sensor: linear(2, &[1.0, weight], &[0.3]),
        initial: BoundInitial::Gaussian { mean: vec![0.0, 0.3], chol: vec![1.0, 0.0, 0.4, 0.8] },
    }
}

/// a_t depends on a_{t-1}, a_{t-2}, a_{t-3} and b_{t-1}, as b_t does: SE(2; ...), Q = ((0.2, 0.1), (0.1, 0.2));
/// y = a_t - 0.6 a_{t-2} + 0.5 b_t + e, r = 0.3; x_0 ~ N(0, I).
pub fn twice_lagged() -> StateSpace {
    let kernel = |ell: &[f64]| Kernel::squared_exponential(2.0, ell);
    let mut noise = vec![0.0; 16];
    (noise[0], noise[3], noise[12], noise[15]) = (0.2, 0.1, 0.1, 0.2);
    StateSpace {
        transition: Transition {
            kernels: vec![
                kernel(&[1.5, 2.0, 2.0, 2.0]),
                Kernel::zero(),
                Kernel::zero(),
                kernel(&[2.0, 2.0, 3.0, 1.0]),
            ],
            means: vec![ScalarFunction::Zero; 4],
            noise: ProcessNoise::Full(noise),
            lags: vec![None, Some(0), Some(1), None],
            prior: FunctionPrior::Exact,
        },
        sensor: linear(4, &[1.0, 0.0, -0.6, 0.5], &[0.3]),
        initial: standard(4),
    }
}

/// The scalar model with another sensor.
pub fn sensing(sensor: BoundSensor) -> StateSpace {
    StateSpace { sensor, ..scalar() }
}

/// y of a family with predictor offset + slope x.
pub fn family(family: Family, slope: f64, offset: f64) -> StateSpace {
    let predictors = vec![ScalarFunction::Linear { weights: vec![slope], offset }];
    sensing(BoundSensor::Family { predictors, families: vec![family] })
}

/// The scalar model with x_0 ~ N(1, 2^2) in original units 0.5 + 2 x.
pub fn user_initial() -> StateSpace {
    let scaling = Scaling { x: Affine { shift: vec![0.5], scale: vec![2.0] }, ..Scaling::identity(1, 0, 1) };
    let initial = BoundInitial::User { density: Arc::new(Wide), scaling: Arc::new(scaling) };
    StateSpace { initial, ..scalar() }
}

/// y = (x^2 / 2, x) + e with R = ((0.5, 0.6), (0.6, 2)): not linear, so never fully adapted.
pub fn squared() -> StateSpace {
    let square = |z: &Points, _: &[f64], out: &mut [f64]| {
        for (out, x) in out.iter_mut().zip(z.column(0)) {
            *out = 0.5 * x * x;
        }
    };
    let function = UserFunction { function: Arc::new(square), parameters: Vec::new(), scaling: None };
    let predictors =
        vec![ScalarFunction::User { function, shift: 0.0, scale: 1.0 }, ScalarFunction::Component(0)];
    sensing(BoundSensor::Gaussian { predictors, covariance: vec![0.5, 0.6, 0.6, 2.0] })
}
