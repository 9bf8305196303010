//! Data from the model before any fit.

use rand::rngs::ChaCha8Rng;

use super::function::FunctionPosterior;
use super::observe::{check_noise_free, outputs};
use super::paths::PathBatch;
use super::simulate::{Collected, SimulateOptions, Simulation, check_inputs};
use super::{Stream, stream_for, to_internal};
use crate::dynamics::block::Pairs;
use crate::error::Error;
use crate::model::compile::Problem;
use crate::model::dynamics::DynamicsSpec;
use crate::points::Points;

/// One draw from the prior of everything, original units.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorSample {
    /// Hyper-parameters, in the order of the table.
    pub theta: Vec<f64>,
    /// x_{0:T} of every sequence, row-major (t, d).
    pub paths: Vec<Vec<f64>>,
    /// y_{0:T} of every sequence, row-major (t, k).
    pub outputs: Vec<Vec<f64>>,
    /// f at the points that were asked for (point, d).
    pub f: Vec<f64>,
}

/// theta, f, states and outputs from the prior: theta from its prior, x_0 from the model, f as one function that all
/// sequences share (an exact Gaussian process conditioned step by step, or weights of a finite basis), outputs from the sensor.
///
/// `inputs` has the rows u_0, u_1, ... of each sequence (empty rows without inputs); f is also evaluated at `points`
/// z = (x, u), which may be none. Sample `index` of a seed depends on nothing else.
pub fn sample_prior(
    problem: &Problem,
    inputs: &[Vec<Vec<f64>>],
    points: &Points,
    seed: u64,
    index: u64,
) -> Result<PriorSample, Error> {
    let all: Vec<&[Vec<f64>]> = inputs.iter().map(Vec::as_slice).collect();
    check(problem, &all)?;
    let options = SimulateOptions { seed, ..SimulateOptions::default() };
    draw(problem, &all, points, &options, stream_for(seed, Stream::Prior, index))
}

/// Paths under one sequence of inputs, each with a theta and an f of its own; see [`sample_prior`]. The draw index of a path is
/// its number.
pub fn simulate_prior(
    problem: &Problem,
    inputs: &[Vec<f64>],
    options: &SimulateOptions,
    on_progress: &dyn Fn(usize, usize) -> bool,
) -> Result<Simulation, Error> {
    check(problem, &[inputs])?;
    let none = Points::new(problem.n_x() + problem.model().n_u);
    let mut collected = Collected::default();
    for path in 0..options.n_paths {
        if !on_progress(path, options.n_paths) {
            break;
        }
        let rng = stream_for(options.seed, Stream::Prior, path as u64);
        let PriorSample { mut paths, mut outputs, .. } = draw(problem, &[inputs], &none, options, rng)?;
        collected.take(paths.remove(0), outputs.remove(0), path);
    }
    collected.into_simulation(inputs.len(), problem.n_x(), problem.model().n_y)
}

/// The theta of path `path` of [`simulate_prior`]: the first thing that its stream draws.
pub fn prior_theta(problem: &Problem, seed: u64, path: usize) -> Result<Vec<f64>, Error> {
    problem.table().sample(&mut stream_for(seed, Stream::Prior, path as u64))
}

fn check(problem: &Problem, inputs: &[&[Vec<f64>]]) -> Result<(), Error> {
    inputs.iter().try_for_each(|inputs| check_inputs(problem, inputs))?;
    if problem.model().dynamics != DynamicsSpec::Exact && problem.basis().is_none() {
        return Err(Error::model(
            "dynamics",
            "the finite basis is not chosen yet: choose it first (mcmc::start::prepare)",
        ));
    }
    Ok(())
}

fn draw(
    problem: &Problem,
    inputs: &[&[Vec<f64>]],
    points: &Points,
    options: &SimulateOptions,
    mut rng: ChaCha8Rng,
) -> Result<PriorSample, Error> {
    let (scaling, n_x, n_u) = (problem.scaling(), problem.n_x(), problem.model().n_u);
    let theta = problem.table().sample(&mut rng)?;
    let pairs = Pairs { n_x, points: Points::new(n_x + n_u), residuals: Vec::new() };
    let function = FunctionPosterior::from_pairs(problem.bind(&theta), pairs)?;
    let space = &function.space;
    if !options.sensor_noise {
        check_noise_free(&space.sensor)?;
    }
    let mut x = vec![0.0; n_x];
    space.initial.sample(&mut rng, &mut x);
    let mut rngs = [rng];
    let mut batch = PathBatch::new(&function, &mut rngs);
    let (mut paths, mut all_outputs) = (Vec::new(), Vec::new());
    let mut next = vec![0.0; n_x];
    for (s, inputs) in inputs.iter().enumerate() {
        if s > 0 {
            space.initial.sample(&mut rngs[0], &mut x);
        }
        let (mut path, mut y) = (Vec::new(), Vec::new());
        for (t, u) in inputs.iter().enumerate() {
            let u: Vec<f64> = u.iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u)).collect();
            y.extend(outputs(&space.sensor, scaling, &x, &u, options.sensor_noise, &mut rngs));
            path.extend_from_slice(&x);
            if t + 1 < inputs.len() {
                batch.step(&x, &u, options.process_noise, None, &mut rngs, &mut next)?;
                x.copy_from_slice(&next);
            }
        }
        paths.push(problem.path_to_original(&path));
        all_outputs.push(y);
    }
    let internal = to_internal(scaling, points);
    let mut f = Vec::new();
    for i in 0..internal.len() {
        let z = internal.row(i);
        batch.step(&z[..n_x], &z[n_x..], false, None, &mut rngs, &mut next)?;
        f.extend_from_slice(&next);
    }
    Ok(PriorSample { theta, paths, outputs: all_outputs, f: problem.path_to_original(&f) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::SQUARED_EXPONENTIAL;
    use crate::model::dynamics::Mode;
    use crate::model::kernel::KernelSpec;
    use crate::model::prior::Prior;
    use crate::model::scale_prior::ScalePrior;
    use crate::model::spec::{FunctionSpec, InitialSpec, Model, ProcessNoiseSpec, TransitionSpec};
    use crate::{Functions, Sequence, prepare};

    /// Two sequences, and the first visited points of both asked for again.
    fn problem(dynamics: DynamicsSpec) -> Problem {
        let fixed = |value: f64| Prior::Fixed { value };
        let kernel =
            KernelSpec::new(&SQUARED_EXPONENTIAL).with("sigma_f", fixed(2.0)).with("ell", fixed(1.0));
        let mut model = Model {
            dynamics,
            standardise: false,
            initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] },
            process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(fixed(1e-4))]),
            ..Model::observed(1, 0)
        };
        model.states[0].transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Zero };
        let sequences = [4, 3].map(|n| Sequence::scalar(&vec![0.0; n], None).unwrap());
        let record = crate::Record::new(sequences.to_vec()).unwrap();
        let problem = Problem::new(model, &Functions::new(), record).unwrap();
        prepare(&problem, &crate::Settings::default()).unwrap()
    }

    #[test]
    fn sequences_and_points_share_one_function() {
        let hilbert = |mode| DynamicsSpec::Hilbert { functions: 40, half_width: vec![12.0], mode };
        for dynamics in [DynamicsSpec::Exact, hilbert(Mode::Collapsed), hilbert(Mode::Sampled)] {
            let problem = problem(dynamics);
            let inputs = [vec![Vec::new(); 4], vec![Vec::new(); 3]];
            let first = sample_prior(&problem, &inputs, &Points::new(1), 7, 3).unwrap();
            let mut points = Points::new(1);
            first.paths.iter().for_each(|path| points.push(&path[..1]));
            let again = sample_prior(&problem, &inputs, &points, 7, 3).unwrap();
            assert_eq!(
                (&first.theta, &first.paths, &first.outputs),
                (&again.theta, &again.paths, &again.outputs)
            );
            // The process noise is 1e-4 of what f can be.
            for (path, f) in first.paths.iter().zip(&again.f) {
                assert!((path[1] - f).abs() < 1e-3, "{} {f}", path[1]);
            }
            assert_ne!(first.paths[0], sample_prior(&problem, &inputs, &points, 7, 4).unwrap().paths[0]);
        }
    }
}
