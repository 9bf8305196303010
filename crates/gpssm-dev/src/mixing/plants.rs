//! Simulated plants with noise of a known size.

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::model::ScalePrior;
use gpssm::model::{DynamicsSpec, Mode};
use gpssm::model::{FunctionSpec, Predictor, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec, TransitionSpec};
use gpssm::{Error, KernelSpec, Model, Prior, Record, Sequence};
use rand::{SeedableRng, rngs::ChaCha8Rng};

use crate::normal;

/// x' = 0.7 x + sin(x) / 2 + 0.3 u + v, seen with noise of `noise` times the standard deviation of x.
pub(super) fn seen(noise: f64) -> Result<(Model, Record), Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let u: Vec<f64> = (0..150).map(|t| (0.3 * f64::from(t)).sin()).collect();
    let mut x = vec![0.0f64];
    for t in 0..u.len() - 1 {
        x.push(0.7 * x[t] + 0.5 * x[t].sin() + 0.3 * u[t] + 0.2 * normal(&mut rng));
    }
    let r = noise * sd(&x);
    let y: Vec<f64> = x.iter().map(|x| x + r * normal(&mut rng)).collect();
    Ok((Model::observed(1, 1), Sequence::scalar(&y, Some(&u))?.into()))
}

/// A driven tank, x' = 0.8 x - 0.1 x^3 + 0.7 tanh(1.5 u) + v, 140 rows: f is curved, and its noise is small.
pub(super) fn tank() -> Result<(Model, Record), Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut level = 0.0f64;
    let u: Vec<f64> = (0..140)
        .map(|_| {
            level = 0.9 * level + 0.5 * normal(&mut rng);
            level
        })
        .collect();
    let mut x = vec![0.0f64];
    for t in 0..u.len() - 1 {
        let mean = 0.8 * x[t] - 0.1 * x[t].powi(3) + 0.7 * (1.5 * u[t]).tanh();
        x.push(mean + 0.08 * normal(&mut rng));
    }
    let y: Vec<f64> = x.iter().map(|x| x + 0.15 * normal(&mut rng)).collect();
    Ok((Model::observed(1, 1), Sequence::scalar(&y, Some(&u))?.into()))
}

fn sd(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// A ring of four states, each driven by the next one and by the input, all seen.
pub(super) fn four_states() -> Result<(Model, Record), Error> {
    const N_X: usize = 4;
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let u: Vec<Vec<f64>> = (0..100).map(|t| vec![(0.3 * f64::from(t)).sin()]).collect();
    let mut x = vec![[0.0f64; N_X]];
    for t in 0..u.len() - 1 {
        let mean = |d: usize| 0.7 * x[t][d] + 0.5 * x[t][(d + 1) % N_X].sin() + 0.3 * u[t][0];
        let next = std::array::from_fn(|d| mean(d) + 0.2 * normal(&mut rng));
        x.push(next);
    }
    let y = x.iter().map(|x| x.iter().map(|x| x + 0.1 * normal(&mut rng)).collect()).collect();
    Ok((Model::observed(N_X, 1), Sequence::new(y, u)?.into()))
}

/// Time between rows of the FitzHugh-Nagumo system, and steps that it is simulated with between them.
const STEP: f64 = 0.1;
const FINE_STEPS: usize = 100;
/// Its noise: standard deviation per square root of time, and that of the sensors.
const DIFFUSION: f64 = 0.01;
const SENSOR_SD: f64 = 0.1;

/// Boxes of the states with room on both sides; as many functions as two dimensions need.
pub(super) fn fitzhugh_nagumo_basis() -> DynamicsSpec {
    DynamicsSpec::Hilbert { functions: 100, half_width: vec![3.5, 2.5], mode: Mode::Collapsed }
}

/// dv = v - v^3 / 3 - w + 0.5, dw = 0.08 (v + 0.7 - 0.8 w), both seen every 0.1 with variance 0.01, 500 rows.
///
/// Learned with default priors, or with noises and kernel known.
pub(super) fn fitzhugh_nagumo(known: bool, dynamics: DynamicsSpec) -> Result<(Model, Record), Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let h = STEP / FINE_STEPS as f64;
    let (mut v, mut w) = (-1.0f64, 1.0f64);
    let mut y = Vec::new();
    for _ in 0..500 {
        y.push(vec![v + SENSOR_SD * normal(&mut rng), w + SENSOR_SD * normal(&mut rng)]);
        for _ in 0..FINE_STEPS {
            let (dv, dw) = (v - v.powi(3) / 3.0 - w + 0.5, 0.08 * (v + 0.7 - 0.8 * w));
            v += h * dv + DIFFUSION * h.sqrt() * normal(&mut rng);
            w += h * dw + DIFFUSION * h.sqrt() * normal(&mut rng);
        }
    }
    let mut model = Model { dynamics, ..Model::observed(2, 0) };
    if known {
        let fixed = |value: f64| Prior::Fixed { value };
        let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL)
            .with("sigma_f", fixed(0.5))
            .with("ell", vec![fixed(2.0), fixed(4.0)]);
        for state in &mut model.states {
            state.transition = TransitionSpec::Gp { kernel: kernel.clone(), mean: FunctionSpec::Identity };
        }
        let on_sd = |value: f64| vec![ScalePrior::on_sd(fixed(value))];
        model.process_noise = ProcessNoiseSpec::Diagonal(on_sd(DIFFUSION * STEP.sqrt()));
        let noise = SensorNoiseSpec::Diagonal(on_sd(SENSOR_SD));
        model.sensor = SensorSpec::Gaussian { mean: Predictor::States, noise };
    }
    Ok((model, Sequence::new(y, Vec::new())?.into()))
}
