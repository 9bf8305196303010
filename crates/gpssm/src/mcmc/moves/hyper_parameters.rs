//! All hyper-parameters given the states (Algorithm 1, step a; section 3.3.2 of the paper).

use rand::Rng;

use super::{Move, Sweep};
use crate::dynamics::path_density::PathDensityWork;
use crate::linalg::small;
use crate::mcmc::conditional::Conditional;
use crate::mcmc::conjugate::{draw_covariance, draw_variance};
use crate::mcmc::slice::{SliceLimits, WidthAdaptation, slice_update};
use crate::mcmc::sweep::{ChainState, SweepInfo};
use crate::model::compile::{CompiledNoise, Problem};
use crate::model::covariance_prior::CovariancePrior;
use crate::model::parameters::ParameterPrior;
use crate::random::Purpose;

/// Draws theta | x, y: each learned entry in turn by slice sampling, sensor noise directly where its prior is
/// conjugate. Widths adapt until they are frozen.
pub struct HyperParameters;

impl Move for HyperParameters {
    fn name(&self) -> &'static str {
        "hyper_parameters"
    }

    fn applies(&self, problem: &Problem) -> bool {
        (0..problem.table().len()).any(|k| !problem.table().is_fixed(k))
    }

    fn changes_states(&self) -> bool {
        false
    }

    fn update(&self, sweep: &mut Sweep) {
        let mut rng = sweep.stream(Purpose::Theta, 0);
        let ChainState { theta, paths, widths, .. } = &mut *sweep.state;
        update(sweep.problem, theta, paths, widths, sweep.work, &mut rng, sweep.info);
        sweep.count_jitter();
    }
}

fn update<R: Rng>(
    problem: &Problem,
    theta: &mut [f64],
    paths: &[Vec<f64>],
    widths: &mut [WidthAdaptation],
    work: &mut PathDensityWork,
    rng: &mut R,
    info: &mut SweepInfo,
) {
    let table = problem.table();
    let direct = conjugate_places(problem);
    let mut conditional = Conditional::new(problem, paths, theta, work);
    let mut parts = conditional.parts(theta);
    for k in (0..table.len()).filter(|&k| !table.is_fixed(k) && !direct.contains(&k)) {
        let x0 = table.coordinate_of(k, theta[k]);
        let mut current = table.log_prior(k, theta);
        for (b, density) in parts.blocks.iter().enumerate() {
            if conditional.touches(k, b) {
                current += density;
            }
        }
        if table.parameters[k].sensor {
            current += parts.sensor;
        }
        let mut candidate = theta.to_vec();
        let mut candidate_parts = parts.clone();
        let outcome = slice_update(
            x0,
            current,
            widths[k].width(),
            SliceLimits::default(),
            &mut |coordinate| {
                candidate[k] = table.value_at(k, coordinate);
                conditional.of_parameter(k, &candidate, &mut candidate_parts)
            },
            rng,
        );
        info.slice_failures += u64::from(outcome.failures);
        info.slice_capped += u64::from(outcome.capped);
        widths[k].observe(x0, &outcome);
        if outcome.x != x0 {
            // The last evaluation of a successful update is at the point that is kept.
            theta[k] = table.value_at(k, outcome.x);
            parts = candidate_parts;
        }
        if table.parameters[k].function {
            conditional.rebuild_pairs(theta);
        }
    }
    info.density_evaluations += conditional.evaluations;
    info.density_failures += conditional.failures;
    draw_directly(problem, theta, paths, rng, info);
}

/// Places in theta that are drawn directly.
fn conjugate_places(problem: &Problem) -> Vec<usize> {
    let table = problem.table();
    match problem.sensor().gaussian_noise() {
        Some(CompiledNoise::Diagonal(places)) => places
            .iter()
            .copied()
            .filter(|&k| inverse_gamma(problem, k).is_some() && !table.is_fixed(k))
            .collect(),
        Some(CompiledNoise::Full(matrix)) => {
            let parameter = &table.matrices[*matrix];
            match parameter.prior {
                CovariancePrior::InverseWishart { .. } => {
                    (parameter.first..parameter.first + parameter.n * (parameter.n + 1) / 2).collect()
                }
                CovariancePrior::Lkj { .. } => Vec::new(),
            }
        }
        None => Vec::new(),
    }
}

/// Shape and scale of an inverse-gamma prior on the variance.
fn inverse_gamma(problem: &Problem, k: usize) -> Option<(f64, f64)> {
    match &problem.table().parameters[k].prior {
        ParameterPrior::Scale(prior) => prior.as_inverse_gamma_variance(),
        _ => None,
    }
}

fn draw_directly<R: Rng>(
    problem: &Problem,
    theta: &mut [f64],
    paths: &[Vec<f64>],
    rng: &mut R,
    info: &mut SweepInfo,
) {
    let Some(noise) = problem.sensor().gaussian_noise() else { return };
    match noise {
        CompiledNoise::Diagonal(places) => {
            let conjugate: Vec<(usize, usize, (f64, f64))> = places
                .iter()
                .enumerate()
                .filter_map(|(output, &k)| inverse_gamma(problem, k).map(|prior| (output, k, prior)))
                .collect();
            if conjugate.is_empty() {
                return;
            }
            let residuals = sensor_residuals(problem, theta, paths);
            let n_y = places.len();
            for (output, k, (shape, scale)) in conjugate {
                let column = residuals.iter().skip(output).step_by(n_y).copied();
                match draw_variance(shape, scale, column, rng) {
                    Some(variance) => theta[k] = variance.sqrt(),
                    None => info.slice_failures += 1,
                }
            }
        }
        CompiledNoise::Full(matrix) => {
            let parameter = &problem.table().matrices[*matrix];
            let CovariancePrior::InverseWishart { dof, scale } = &parameter.prior else { return };
            let n = parameter.n;
            let current = small::covariance(&problem.table().matrix_factor(*matrix, theta), n);
            let mut residuals = sensor_residuals(problem, theta, paths);
            match draw_covariance(*dof, scale, &mut residuals, &current, rng) {
                Some(chol) => {
                    let entries = (0..n).flat_map(|row| (0..=row).map(move |column| row * n + column));
                    for (k, entry) in (parameter.first..).zip(entries) {
                        theta[k] = chol[entry];
                    }
                }
                None => info.slice_failures += 1,
            }
        }
    }
}

/// y - g(x, u) in original units, all sequences, row-major; missing outputs are NaN.
fn sensor_residuals(problem: &Problem, theta: &[f64], paths: &[Vec<f64>]) -> Vec<f64> {
    let sensor = problem.bind(theta).sensor;
    let mut residuals = Vec::new();
    let n_x = problem.n_x();
    for (path, sequence) in paths.iter().zip(problem.sequences()) {
        let mut z = crate::points::Points::new(n_x + sequence.n_u());
        for (t, x) in path.chunks_exact(n_x).enumerate() {
            z.push_parts(x, sequence.u(t));
        }
        let Some(means) = sensor.gaussian_means(&z) else { continue };
        for (t, mean) in means.chunks_exact(sequence.n_y()).enumerate() {
            for (k, (y, mean)) in sequence.y(t).iter().zip(mean).enumerate() {
                residuals.push((y - mean) * problem.scaling().y.scale[k]);
            }
        }
    }
    residuals
}
