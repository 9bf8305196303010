//! The benchmark of the paper's section 6.1: how its data are made and how a fit is judged.
//!
//! ```text
//! x_{t+1} = 0.5 x_t + 25 x_t / (1 + x_t^2) + 8 u_t + v_t,  v_t ~ N(0, 10)
//! y_t     = 0.05 x_t^2 + e_t,                              e_t ~ N(0, 1),  u_t = cos(1.2 (t + 1))
//! ```
//!
//! The sensor does not see the sign of x; the mean function of the learned transition is the paper's wrong "model B".

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

use gpssm::kernel::{LINEAR, MATERN32};
use gpssm::model::{
    FunctionSpec, InitialSpec, Orientation, Predictor, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec,
    SensorSpec, StateSpec, Symmetry, TransitionSpec,
};
use gpssm::posterior::Target;
use gpssm::{Error, KernelSpec, Model, Points, Posterior, Prior, Record, Sequence};

/// Transitions of a training record.
pub const T: usize = 200;
/// Points at which a learned function is compared with the truth.
pub const N_TEST: usize = 10_000;
/// Variance of the process noise.
pub const Q: f64 = 10.0;
/// Variance of the sensor noise.
pub const R: f64 = 1.0;
/// Variance of x_0.
pub const P_0: f64 = 5.0;

/// States, inputs and outputs of one record.
pub struct Simulated {
    /// x_{0:T}.
    pub x: Vec<f64>,
    /// u_{0:T}.
    pub u: Vec<f64>,
    /// y_{0:T}.
    pub y: Vec<f64>,
}

impl Simulated {
    /// What a fit may see of it.
    pub fn record(&self) -> Result<Record, Error> {
        Ok(Sequence::scalar(&self.y, Some(&self.u))?.into())
    }
}

/// A model to learn it with: mean function model B, and the mirror image settled by "u raises x".
pub fn model(kernel: KernelSpec) -> Model {
    let mean = FunctionSpec::Formula("0.3*x + 7.5*x/(1 + x^2)".into());
    Model {
        states: vec![StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: Some(10.0) }],
        process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(3.0))]),
        sensor: SensorSpec::Gaussian {
            mean: Predictor::Formulas(vec!["0.05*x^2".into()]),
            noise: SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(around(1.0))]),
        },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![P_0.sqrt()] },
        standardise: false,
        symmetries: vec![Symmetry {
            flip: vec![0],
            flip_parameters: Vec::new(),
            orientation: Orientation::InputRaisesState { input: 0, state: 0 },
        }],
        ..Model::observed(1, 1)
    }
}

/// A kernel for it: Matern-3/2 + linear with wide priors.
pub fn kernel() -> KernelSpec {
    let matern32 = KernelSpec::new(&MATERN32).with("sigma_f", around(10.0)).with("ell", around(3.0));
    KernelSpec::Sum(vec![matern32, KernelSpec::new(&LINEAR).with("sigma", around(1.0))])
}

fn around(median: f64) -> Prior {
    Prior::LogNormal { median, sigma: 1.0 }
}

/// f(x, u).
pub fn truth(x: f64, u: f64) -> f64 {
    0.5 * x + 25.0 * x / (1.0 + x * x) + 8.0 * u
}

/// A record of so many transitions.
pub fn simulate(seed: u64, transitions: usize) -> Simulated {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = |variance: f64| variance.sqrt() * rng.sample::<f64, _>(StandardNormal);
    let u: Vec<f64> = (0..=transitions).map(|t| (1.2 * (t as f64 + 1.0)).cos()).collect();
    let mut x = vec![normal(P_0)];
    for t in 0..transitions {
        let next = truth(x[t], u[t]) + normal(Q);
        x.push(next);
    }
    let y = x.iter().map(|x| 0.05 * x * x + normal(R)).collect();
    Simulated { x, u, y }
}

/// Fresh points along a record of the true system, from a seed that no training record uses.
pub fn test_points(seed: u64) -> Simulated {
    simulate(seed ^ 0x7465_7374_0000_0000, N_TEST)
}

/// Root mean square over draws and times of the sampled path minus the truth.
pub fn smoothing_rmse<'a>(paths: impl Iterator<Item = &'a [f64]>, x: &[f64]) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for path in paths {
        sum += path.iter().zip(x).map(|(drawn, true_x)| (drawn - true_x).powi(2)).sum::<f64>();
        n += x.len() as f64;
    }
    (sum / n).sqrt()
}

/// Root mean square over the test points of the mixture mean of f minus the truth.
pub fn prediction_rmse(posterior: &Posterior, test: &Simulated) -> Result<f64, Error> {
    let mut z = Points::new(2);
    for (x, u) in test.x.iter().zip(&test.u).take(N_TEST) {
        z.push(&[*x, *u]);
    }
    let prediction = posterior.predict_at(&z, Target::Function)?;
    let square = |i: usize| (prediction.mean(i)[0] - truth(test.x[i], test.u[i])).powi(2);
    Ok(((0..N_TEST).map(square).sum::<f64>() / N_TEST as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_b_misses_the_truth_by_what_the_paper_says() {
        // 7.1 in table 1: a check of the protocol.
        let test = test_points(1);
        let square = |(x, u): (&f64, &f64)| (0.3 * x + 7.5 * x / (1.0 + x * x) - truth(*x, *u)).powi(2);
        let n = N_TEST as f64;
        let rmse = (test.x.iter().zip(&test.u).take(N_TEST).map(square).sum::<f64>() / n).sqrt();
        assert!((rmse - 7.1).abs() < 0.2, "{rmse}");
    }
}
