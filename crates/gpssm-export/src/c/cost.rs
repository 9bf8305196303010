//! Worst-case operations of the functions of an export.

use gpssm::formula::Operation;

use crate::expression::{Cost, Graph, Id};
use crate::model::{Filter, Model, State};

/// What a call costs at most.
pub(super) struct Costs {
    pub f: Cost,
    pub f_jacobian: Cost,
    pub output: Cost,
    pub filter: Cost,
}

fn of(graph: &Graph, roots: &[Id]) -> Cost {
    let needed = graph.needed(roots);
    let operations = graph.operations().iter().zip(needed).filter(|(_, needed)| *needed);
    operations.map(|(operation, _): (&Operation, bool)| Cost::of(*operation)).sum()
}

/// Of f with its variance, and with all slopes.
fn evaluation(model: &Model, slopes: bool, variance: bool) -> Cost {
    let (n_x, n_u, _) = model.sizes();
    let n_z = n_x + n_u;
    let mut sum = Cost { simple: (4 * n_z) as u64, divisions: n_z as u64, calls: 0 };
    for state in &model.states {
        let State::Sparse(f, kernel) = state else { continue };
        let (m, active) = (f.n_inducing, kernel.gradient.len());
        let mut roots = vec![kernel.value];
        if slopes {
            roots.extend(kernel.gradient.iter().map(|(_, id)| *id));
        }
        sum = sum + of(&kernel.graph, &roots) * m as u64 + Cost::simple(2 * (m + n_z) + 2);
        if slopes {
            sum = sum + Cost::simple(2 * m * active + 2 * n_z);
        }
        if variance {
            let triangle = m * (m + 1);
            sum = sum + of(&kernel.graph, &[kernel.diagonal]) + Cost::simple(2 * triangle + 4 * m);
            sum.divisions += m as u64;
            if slopes {
                sum = sum + of(&kernel.graph, &kernel.diagonal_gradient);
                sum = sum + Cost::simple(2 * triangle + 2 * m * active + 4 * n_z);
                sum.divisions += m as u64;
            }
        }
    }
    sum
}

/// Rotations of an n x m matrix to a lower triangle.
fn rotations(n: usize, m: usize) -> Cost {
    let each = (0..n).map(|i| ((m - i - 1) * (6 * (n - i) + 2), 3 * (m - i - 1)));
    let (simple, divisions) = each.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    Cost { simple: simple as u64, divisions: divisions as u64, calls: 0 }
}

/// Of all functions.
pub(super) fn costs(model: &Model) -> Costs {
    let (n_x, _, n_y) = model.sizes();
    let (graph, moments) = (&model.sensor.graph, &model.sensor.moments);
    let mean = moments
        .as_ref()
        .map_or(Cost::default(), |moments| of(graph, &[&moments.mean[..], &moments.variance].concat()));
    let with_slopes = moments.as_ref().map_or(Cost::default(), |moments| {
        of(graph, &[&moments.mean[..], &moments.jacobian.concat()].concat())
    });
    let cube = n_x.pow(3);
    let factor = |n: usize| Cost { simple: n.pow(3) as u64, divisions: n.pow(2) as u64, calls: 0 };
    let filter = match model.options.filter {
        Filter::Extended | Filter::Auto => {
            // Slopes of the mean, and its variance: the slopes of the variance are not asked for.
            evaluation(model, true, false)
                + evaluation(model, false, true)
                + factor(n_x)
                + factor(n_y)
                + with_slopes
                + Cost::simple(2 * cube + 2 * n_x * n_x * n_y + n_y * n_y)
                + rotations(n_x, 2 * n_x)
                + rotations(n_x + n_y, n_x + n_y)
                + Cost { simple: (6 * n_y) as u64, divisions: n_y as u64, calls: n_y as u64 }
        }
        Filter::Particles => {
            let normal = Cost { simple: 14, divisions: 1, calls: 2 };
            let density = of(graph, &model.sensor.log_density) + mean + factor(n_y);
            let each = evaluation(model, false, true)
                + factor(n_x)
                + normal * n_x as u64
                + density
                + Cost { simple: (2 * n_x * n_x + 10) as u64, divisions: 2, calls: 2 };
            each * model.options.particles as u64
        }
    };
    Costs {
        f: evaluation(model, false, true),
        f_jacobian: evaluation(model, true, true),
        output: mean,
        filter,
    }
}
