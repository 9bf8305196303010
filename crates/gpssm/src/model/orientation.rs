//! Which branch of a declared symmetry a path is on, and whether the symmetry holds.

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

use super::compile::Problem;
use super::parameters::ParameterPrior;
use super::prior::Prior;
use super::symmetry::{Orientation, Symmetry};
use crate::function::evaluate_all;
use crate::initial::BoundInitial;
use crate::linalg::small;
use crate::points::Points;

/// Maps a draw (theta, and the paths of all sequences) to the branch that the rules pick.
///
/// Theta is in original units; the paths may be in either, flipped states have the same zero in both.
pub fn orient(problem: &Problem, theta: &mut [f64], paths: &mut [Vec<f64>]) {
    for symmetry in &problem.model().symmetries {
        if statistic(problem, symmetry.orientation, paths) < 0.0 {
            flip(problem, symmetry, theta, paths);
        }
    }
}

fn flip(problem: &Problem, symmetry: &Symmetry, theta: &mut [f64], paths: &mut [Vec<f64>]) {
    let n_x = problem.n_x();
    for path in paths {
        for row in path.chunks_exact_mut(n_x) {
            symmetry.flip.iter().for_each(|&d| row[d] = -row[d]);
        }
    }
    flip_theta(problem, symmetry, theta);
}

/// Q -> S Q S, and the named parameters change sign.
fn flip_theta(problem: &Problem, symmetry: &Symmetry, theta: &mut [f64]) {
    let table = problem.table();
    for name in &symmetry.flip_parameters {
        if let Some(k) = table.index(name) {
            theta[k] = -theta[k];
        }
    }
    for (k, parameter) in table.parameters.iter().enumerate() {
        // Row i of the factor of S Q S is s_i s_j times that of Q, the diagonal stays positive.
        if let (ParameterPrior::Matrix { row, column, .. }, false) = (&parameter.prior, parameter.sensor) {
            let flipped = |i: usize| parameter.dims.get(i).is_some_and(|d| symmetry.flip.contains(d));
            if flipped(*row) != flipped(*column) {
                theta[k] = -theta[k];
            }
        }
    }
}

/// An odd function of the flipped states of the path.
fn statistic(problem: &Problem, orientation: Orientation, paths: &[Vec<f64>]) -> f64 {
    let n_x = problem.n_x();
    match orientation {
        Orientation::PositiveMean { state } => {
            paths.iter().flat_map(|path| path.iter().skip(state).step_by(n_x)).sum()
        }
        Orientation::InputRaisesState { input, state } => {
            regression_coefficient(problem, paths, state, n_x + input)
        }
        Orientation::StateRaisesState { from, to } => regression_coefficient(problem, paths, to, from),
    }
}

/// Coefficient of component `c` of (x_t, u_t, 1) in the least-squares fit of x_{t+1, d}.
///
/// A tiny ridge keeps collinear components apart; the sign is what counts.
fn regression_coefficient(problem: &Problem, paths: &[Vec<f64>], d: usize, c: usize) -> f64 {
    let (n_x, n_u) = (problem.n_x(), problem.model().n_u);
    let n = n_x + n_u + 1;
    let mut gram = vec![0.0; n * n];
    let mut right = vec![0.0; n];
    for (path, sequence) in paths.iter().zip(problem.sequences()) {
        for t in 0..sequence.length() {
            let x = &path[t * n_x..(t + 1) * n_x];
            let row: Vec<f64> = x.iter().chain(sequence.u(t)).copied().chain([1.0]).collect();
            for i in 0..n {
                for j in 0..=i {
                    gram[i * n + j] += row[i] * row[j];
                }
                right[i] += row[i] * path[(t + 1) * n_x + d];
            }
        }
    }
    for i in 0..n {
        gram[i * n + i] += 1e-9 * gram[i * n + i] + f64::MIN_POSITIVE;
    }
    if !small::cholesky(&mut gram, n) {
        return 0.0;
    }
    small::solve_lower(&gram, n, &mut right);
    small::solve_lower_transposed(&gram, n, &mut right);
    right[c]
}

/// Refuses a symmetry that does not hold. Structure is checked as such; functions are compared at random
/// points and random parameters.
pub(super) fn check(problem: &Problem, symmetry: &Symmetry) -> Result<(), String> {
    let n_x = problem.n_x();
    if symmetry.flip.is_empty() || symmetry.flip.iter().any(|&d| d >= n_x) {
        return Err(format!("flip must name states 0..{}", n_x - 1));
    }
    let flipped = |d: usize| symmetry.flip.contains(&d);
    let odd = match symmetry.orientation {
        Orientation::PositiveMean { state } => flipped(state),
        Orientation::InputRaisesState { input, state } => input < problem.model().n_u && flipped(state),
        Orientation::StateRaisesState { from, to } => from < n_x && to < n_x && flipped(from) != flipped(to),
    };
    if !odd {
        return Err("the orientation does not change sign with the flipped states".into());
    }
    if symmetry.flip.iter().any(|&d| problem.scaling().x.shift[d] != 0.0) {
        return Err("a flipped state is shown by the sensor".into());
    }
    for name in &symmetry.flip_parameters {
        let symmetric = match problem.model().parameters.get(name) {
            Some(Prior::Normal { mean, .. }) => *mean == 0.0,
            Some(Prior::Uniform { low, high }) => *low == -*high,
            Some(Prior::Fixed { value }) => *value == 0.0,
            _ => false,
        };
        if !symmetric {
            return Err(format!("parameter \"{name}\" needs a prior that is symmetric about zero"));
        }
    }
    check_numerically(problem, symmetry)
}

fn check_numerically(problem: &Problem, symmetry: &Symmetry) -> Result<(), String> {
    let (n_x, n_u) = (problem.n_x(), problem.model().n_u);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut normal = |scale: f64| scale * rng.sample::<f64, _>(StandardNormal);
    let mirrored = |z: &[f64]| {
        let mut z = z.to_vec();
        symmetry.flip.iter().for_each(|&d| z[d] = -z[d]);
        z
    };
    let points: Vec<Vec<f64>> =
        (0..20).map(|i| (0..n_x + n_u).map(|_| normal(0.3 * (1 + i) as f64)).collect()).collect();
    let here = Points::from_rows(n_x + n_u, points.iter().map(Vec::as_slice));
    let there: Vec<Vec<f64>> = points.iter().map(|z| mirrored(z)).collect();
    let there = Points::from_rows(n_x + n_u, there.iter().map(Vec::as_slice));
    let close = |a: f64, b: f64| {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs())) || (!a.is_finite() && !b.is_finite())
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..3 {
        let theta = problem.table().sample(&mut rng).map_err(|error| error.to_string())?;
        let mut other = theta.clone();
        flip_theta(problem, symmetry, &mut other);
        let prior = (problem.table().log_density(&theta), problem.table().log_density(&other));
        if !close(prior.0, prior.1) {
            return Err("the prior of the parameters is not symmetric".into());
        }
        let (model, mirror) = (problem.bind(&theta), problem.bind(&other));
        let (mut means, mut mirror_means) = (Vec::new(), Vec::new());
        evaluate_all(&model.transition.means, &here, &mut means);
        evaluate_all(&mirror.transition.means, &there, &mut mirror_means);
        for (i, (a, b)) in means.iter().zip(&mirror_means).enumerate() {
            let sign = if symmetry.flip.contains(&(i % n_x)) { -1.0 } else { 1.0 };
            if !close(*a, sign * b) {
                return Err(format!("the mean function of state {} is not mirrored", i % n_x));
            }
        }
        for sequence in problem.sequences() {
            let seen = |t: &usize| sequence.y(*t).iter().any(|y| !y.is_nan());
            for t in (0..sequence.n_rows()).filter(seen).take(5) {
                let (mut density, mut mirror_density) = (vec![0.0; here.len()], vec![0.0; here.len()]);
                model.sensor.add_log_density(sequence.y(t), &here, &mut density);
                mirror.sensor.add_log_density(sequence.y(t), &there, &mut mirror_density);
                if density.iter().zip(&mirror_density).any(|(a, b)| !close(*a, *b)) {
                    return Err("the sensor tells the two signs apart".into());
                }
            }
        }
        for z in &points {
            if let BoundInitial::Fixed(x) = &model.initial {
                if symmetry.flip.iter().any(|&d| x[d] != 0.0) {
                    return Err("the fixed initial state has a sign".into());
                }
            } else if !close(
                model.initial.log_density(&z[..n_x]),
                model.initial.log_density(&mirrored(z)[..n_x]),
            ) {
                return Err("the initial density tells the two signs apart".into());
            }
        }
        for kernel in &model.transition.kernels {
            for (a, b) in points.iter().zip(points.iter().skip(1)) {
                if !close(kernel.value(a, b), kernel.value(&mirrored(a), &mirrored(b))) {
                    return Err("a kernel is not even".into());
                }
            }
        }
    }
    Ok(())
}
