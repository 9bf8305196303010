//! Small models with known numbers, and draws of them.

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::model::{
    FunctionSpec, InitialSpec, ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec,
    TransitionSpec,
};
use gpssm::posterior::WeightedDraw;
use gpssm::{Functions, KernelSpec, Model, Posterior, Prior, Problem, Sequence};

pub fn fixed(value: f64) -> Prior {
    Prior::Fixed { value }
}

pub fn squared_exponential(sigma_f: f64, ell: &[f64]) -> KernelSpec {
    KernelSpec::new(&SQUARED_EXPONENTIAL)
        .with("sigma_f", fixed(sigma_f))
        .with("ell", ell.iter().map(|ell| fixed(*ell)).collect::<Vec<_>>())
}

pub fn scales(sd: &[f64]) -> Vec<ScalePrior> {
    sd.iter().map(|sd| ScalePrior::on_sd(fixed(*sd))).collect()
}

/// One state that is seen with noise, all numbers known, units as they are.
pub fn scalar(kernel: KernelSpec, mean: FunctionSpec, q: f64, r: f64, n_u: usize) -> Model {
    Model {
        states: vec![StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: None }],
        process_noise: ProcessNoiseSpec::Diagonal(scales(&[q])),
        sensor: SensorSpec::Gaussian {
            mean: Default::default(),
            noise: SensorNoiseSpec::Diagonal(scales(&[r])),
        },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] },
        standardise: false,
        ..Model::observed(1, n_u)
    }
}

/// A posterior of one draw with the given path as the state of one sequence.
pub fn single(model: Model, functions: &Functions, path: &[f64], u: Vec<Vec<f64>>) -> Posterior {
    let (n_x, n_y) = (model.states.len(), model.n_y);
    let y = path.chunks_exact(n_x).map(|x| x[..n_y].to_vec()).collect();
    let problem = Problem::new(model, functions, Sequence::new(y, u).unwrap().into()).unwrap();
    let theta = known_theta(&problem);
    Posterior::from_draws(&problem, vec![WeightedDraw { theta, paths: vec![path.to_vec()], weight: 1.0 }])
        .unwrap()
}

/// Theta of a model whose numbers are all fixed.
pub fn known_theta(problem: &Problem) -> Vec<f64> {
    use rand::SeedableRng;
    problem.table().sample(&mut rand::rngs::ChaCha8Rng::seed_from_u64(0)).unwrap()
}
