//! What a run will take, from its sizes alone: times of sweeps that were measured once, and how they grow.
//!
//! The figures are those of `docs/performance.md` (one thread of an AMD EPYC with AVX-512, 20 particles); a test compares them.
//! On other machines, and for models unlike those that were measured, they are right within a factor of a few.

// A measured time may be 3.14 ms.
#![allow(clippy::approx_constant)]

use gpssm::Problem;
use gpssm::model::{DynamicsSpec, InducingSpec, Mode, ProcessNoiseSpec, TransitionSpec};

/// Particles of all measurements.
const PARTICLES: f64 = 20.0;
/// Exact process: transitions, milliseconds of a sweep, and of one update of all hyper-parameters.
pub const EXACT: [(f64, f64, f64); 6] = [
    (50.0, 1.23, 0.186),
    (100.0, 3.14, 0.459),
    (200.0, 10.6, 1.60),
    (400.0, 52.1, 7.75),
    (800.0, 317.0, 43.9),
    (1600.0, 2551.0, 363.0),
];
/// Bases: functions and milliseconds of a sweep of 1000 transitions.
pub const INDUCING: [(f64, f64); 1] = [(40.0, 52.3)];
/// Weights integrated out.
pub const COLLAPSED: [(f64, f64); 2] = [(30.0, 56.5), (100.0, 100.0)];
/// Weights drawn in each sweep.
pub const SAMPLED: [(f64, f64); 2] = [(30.0, 3.14), (100.0, 3.86)];
/// A known transition: milliseconds of a sweep of 2000 transitions.
pub const KNOWN: f64 = 2.17;
/// Hyper-parameters are updated twice in a sweep: given the path, and together with it.
const UPDATES: f64 = 2.0;

/// Seconds of one sweep of a chain.
pub fn seconds_per_sweep(problem: &Problem, particles: usize) -> f64 {
    let model = problem.model();
    let t = problem.record().n_transitions().max(1) as f64;
    let learned =
        model.states.iter().filter(|state| matches!(state.transition, TransitionSpec::Gp { .. })).count()
            as f64;
    let share = (particles as f64 + 2.0) / (PARTICLES + 2.0);
    let known = KNOWN * t / 2000.0 * particles as f64 / PARTICLES;
    let full = matches!(model.process_noise, ProcessNoiseSpec::Full(_));
    // States with correlated noise share one factor.
    let blocks = if full { learned.powi(3) } else { learned };
    let milliseconds = match &model.dynamics {
        _ if learned == 0.0 => known,
        DynamicsSpec::Exact => {
            let (sweep, update) =
                (along(t, &EXACT.map(|(t, s, _)| (t, s))), along(t, &EXACT.map(|(t, _, u)| (t, u))));
            blocks * (share * sweep + UPDATES * update)
        }
        DynamicsSpec::Fic { inducing, mode } | DynamicsSpec::Dtc { inducing, mode } => {
            blocks * basis(t, n_inducing(inducing), mode, &INDUCING) * share
        }
        DynamicsSpec::Hilbert { functions, mode, .. } => {
            blocks * basis(t, *functions as f64, mode, &COLLAPSED) * share
        }
        DynamicsSpec::Fourier { frequencies, mode } => {
            blocks * basis(t, 2.0 * *frequencies as f64, mode, &COLLAPSED) * share
        }
    };
    1e-3 * milliseconds.max(known)
}

fn n_inducing(inducing: &InducingSpec) -> f64 {
    match inducing {
        InducingSpec::Given(points) => points.len() as f64,
        InducingSpec::Grid(counts) => counts.iter().product::<usize>() as f64,
        InducingSpec::KMeans(n) | InducingSpec::Greedy(n) | InducingSpec::Variance(n) => *n as f64,
    }
}

/// Milliseconds with so many functions: linear in the record, and in the functions or their square.
fn basis(t: f64, functions: f64, mode: &Mode, collapsed: &[(f64, f64)]) -> f64 {
    let (measured, power) = match mode {
        Mode::Sampled => (&SAMPLED[..], 1.0),
        Mode::Collapsed => (collapsed, 2.0),
    };
    let (m, ms) = measured[0];
    let slope = match (measured, power) {
        (&[(a, x), .., (b, y)], power) => (y - x) / (f64::powf(b, power) - f64::powf(a, power)),
        // One measurement: as weights that are integrated out grow elsewhere.
        _ => (COLLAPSED[1].1 - COLLAPSED[0].1) / (COLLAPSED[1].0.powi(2) - COLLAPSED[0].0.powi(2)),
    };
    let grown = ms + slope * (functions.powf(power) - m.powf(power));
    grown.max(0.1 * ms) * t / 1000.0
}

/// Between measurements along straight lines of logarithms; beyond the last one with the cube.
fn along(t: f64, measured: &[(f64, f64)]) -> f64 {
    let (first, last) = (measured[0], measured[measured.len() - 1]);
    if t <= first.0 {
        return first.1 * t / first.0;
    }
    if t >= last.0 {
        return last.1 * (t / last.0).powi(3);
    }
    let place = measured.partition_point(|(size, _)| *size < t);
    let ((a, x), (b, y)) = (measured[place - 1], measured[place]);
    let share = (t / a).ln() / (b / a).ln();
    (x.ln() + share * (y / x).ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of the page.
    #[test]
    fn the_figures_are_those_of_the_performance_page() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/performance.md"));
        // A published crate comes without the page.
        let Ok(page) = page else { return };
        let column = |case: &str, column: usize| -> f64 {
            let row = page.lines().find(|line| line.starts_with(&format!("| {case} |")));
            let row = row.unwrap_or_else(|| panic!("no case {case}"));
            row.split('|').nth(column + 1).unwrap().trim().parse().unwrap()
        };
        for (t, sweep, update) in EXACT {
            let case = format!("exact/{t}/20");
            assert_eq!((column(&case, 1), column(&case, 4)), (sweep, update), "{case}");
        }
        assert_eq!(column("parametric/2000/20", 1), KNOWN);
        for (name, measured) in
            [("fic", &INDUCING[..]), ("hilbert-collapsed", &COLLAPSED), ("hilbert-sampled", &SAMPLED)]
        {
            for (functions, ms) in measured {
                let case = format!("{name}-{functions}/1000/20");
                assert_eq!(column(&case, 1), *ms, "{case}");
            }
        }
    }

    #[test]
    fn estimates_meet_the_measurements_and_grow_between_them() {
        let sweep = EXACT.map(|(t, ms, _)| (t, ms));
        for (t, ms) in sweep {
            assert!((along(t, &sweep) - ms).abs() < 1e-9 * ms);
        }
        assert!((along(3200.0, &sweep) - 8.0 * 2551.0).abs() < 1e-6);
        let grows = (1..400).map(|i| along(10.0 * f64::from(i), &sweep)).collect::<Vec<_>>();
        assert!(grows.windows(2).all(|pair| pair[0] < pair[1]));
        for (m, ms) in COLLAPSED {
            assert!((basis(1000.0, m, &Mode::Collapsed, &COLLAPSED) - ms).abs() < 1e-9);
        }
        assert!((basis(10_000.0, 100.0, &Mode::Sampled, &COLLAPSED) - 38.6).abs() < 1e-9);
    }
}
