//! How much of the record each stage of a start sees, and what it may cost.

use crate::mcmc::settings::{Settings, n_weights};
use crate::model::compile::Problem;

/// One round of filters over the beginning of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    /// Transitions of the record, from its beginning.
    pub transitions: usize,
    /// Candidates that are filtered.
    pub candidates: u32,
    /// Particles of each filter.
    pub particles: usize,
    /// Sweeps of each candidate that goes on to the next stage.
    pub sweeps: u32,
    /// Whether the exact process stands in for a finite basis, where that is cheaper.
    pub exact: bool,
    /// Whether several candidates are moved over the whole record, and then judged by a filter with their own theta.
    pub judged: bool,
}

/// The first stage sees about this many transitions,
const FIRST: f64 = 40.0;
/// and each next one this many times more.
const GROWTH: f64 = 1.5;
/// Of the candidates this part goes on to the next stage, fewer of the first, which is cheap and decides in which mode one
/// ends; more than `MOST` never, fewer than `FEWEST` only where the cost asks for it.
const KEPT_OF_FIRST: f64 = 0.3;
const KEPT: f64 = 0.6;
const MOST: u32 = 32;
const FEWEST: u32 = 4;
/// Where every function has a known form a filter costs little: so many draws from the prior for each restart, so
/// many candidates to the end, and so many particles and sweeps.
const KNOWN_RESTARTS: u32 = 4;
const KNOWN_FEWEST: u32 = 16;
const KNOWN_PARTICLES: usize = 400;
const KNOWN_SWEEPS: f64 = 6.0;
/// Particles of a filter.
const PARTICLES: usize = 60;
const FEWEST_PARTICLES: usize = 40;
/// Multiply-adds of all filters of a stage, or of all its sweeps: a second or less.
const BUDGET: f64 = 6e9;
const SWEEPS: f64 = 3.0;

/// The stages of a start, in order; the last sees the whole record.
pub(crate) fn plan(problem: &Problem, settings: &Settings) -> Vec<Stage> {
    let mut lengths = vec![problem.record().n_transitions()];
    let mut length = lengths[0] as f64 / GROWTH;
    while length >= FIRST {
        lengths.push(length as usize);
        length /= GROWTH;
    }
    lengths.reverse();
    let cost = Cost::new(problem);
    let known = cost.blocks.is_empty();
    let restarts = settings.start.restarts;
    let (mut candidates, fewest, most_particles, most_sweeps) = match known {
        true => (restarts.saturating_mul(KNOWN_RESTARTS), KNOWN_FEWEST, KNOWN_PARTICLES, KNOWN_SWEEPS),
        false => (restarts, FEWEST, PARTICLES, SWEEPS),
    };
    let mut stages: Vec<Stage> = Vec::new();
    for transitions in lengths {
        let (each, exact) = cost.of_particle(transitions);
        if !stages.is_empty() {
            let fewest_particles = settings.start.particles.unwrap_or(FEWEST_PARTICLES) as f64;
            let kept = if stages.len() == 1 { KEPT_OF_FIRST } else { KEPT };
            let wanted = ((kept * f64::from(candidates)) as u32).clamp(fewest.min(candidates), MOST);
            candidates = wanted.min((BUDGET / (each * fewest_particles)).max(1.0) as u32);
        }
        let affordable = (BUDGET / (each * f64::from(candidates))) as usize;
        let particles = affordable.clamp(FEWEST_PARTICLES, most_particles);
        let kept = (KEPT * f64::from(candidates)).clamp(1.0, f64::from(MOST));
        let sweeps = BUDGET / (cost.of_sweep(transitions, settings.particles) * kept);
        stages.push(Stage {
            transitions,
            candidates,
            particles: settings.start.particles.unwrap_or(particles).max(2),
            sweeps: sweeps.clamp(1.0, most_sweeps) as u32,
            exact,
            judged: known,
        });
    }
    stages
}

/// Multiply-adds, roughly.
struct Cost {
    /// Dimensions of each block, and its weights if the prior is a finite basis.
    blocks: Vec<(f64, Option<f64>)>,
}

impl Cost {
    fn new(problem: &Problem) -> Self {
        let transition = problem.bind_transition(&vec![1.0; problem.table().len()]);
        let unknown = |block: &Vec<usize>| !block.iter().all(|&d| transition.kernels[d].is_zero());
        let blocks = transition.blocks().into_iter().filter(unknown);
        Self { blocks: blocks.map(|block| (block.len() as f64, n_weights(problem, block.len()))).collect() }
    }

    /// One particle of an unconditional filter, and whether the exact process is the cheaper prior.
    fn of_particle(&self, transitions: usize) -> (f64, bool) {
        let t = transitions as f64;
        let exact: f64 = self.blocks.iter().map(|(p, _)| (p * t).powi(3) / 3.0).sum();
        // A factor for each particle is copied, updated and solved with; that is bound by memory.
        let basis: f64 =
            self.blocks.iter().map(|(p, w)| w.map_or((p * t).powi(3) / 3.0, |w| 24.0 * p * w * w * t)).sum();
        // Kernel values, proposals and book-keeping of a step.
        (exact.min(basis) + 3e3 * t, exact <= basis)
    }

    /// A sweep: the conditional filter, and some thirty evidences for the hyper-parameters.
    fn of_sweep(&self, transitions: usize, particles: usize) -> f64 {
        let t = transitions as f64;
        let of_block = |(p, w): &(f64, Option<f64>)| match w {
            Some(w) => (4.0 * particles as f64 + 30.0) * p * w * w * t,
            None => (4.0 / 6.0 * particles as f64 + 10.0) * (p * t).powi(3),
        };
        self.blocks.iter().map(of_block).sum::<f64>().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcmc::settings::StartSettings;
    use crate::model::dynamics::{DynamicsSpec, InducingSpec, Mode};
    use crate::{Functions, Model, Sequence};

    fn problem(n_transitions: usize, dynamics: DynamicsSpec) -> Problem {
        let y: Vec<f64> = (0..=n_transitions).map(|t| (0.3 * t as f64).sin()).collect();
        let model = Model { dynamics, ..Model::observed(1, 0) };
        Problem::new(model, &Functions::new(), Sequence::scalar(&y, None).unwrap().into()).unwrap()
    }

    fn fic() -> DynamicsSpec {
        DynamicsSpec::Fic { inducing: InducingSpec::KMeans(40), mode: Mode::Collapsed }
    }

    #[test]
    fn stages_grow_to_the_whole_record() {
        for n_transitions in [1, 5, 59, 60, 200, 2_000] {
            let stages = plan(&problem(n_transitions, DynamicsSpec::Exact), &Settings::default());
            assert_eq!(stages[0].candidates, 64);
            assert_eq!(stages.last().unwrap().transitions, n_transitions);
            for pair in stages.windows(2) {
                assert!(
                    pair[0].transitions < pair[1].transitions && pair[0].candidates >= pair[1].candidates
                );
            }
            assert!(stages.iter().all(|stage| stage.candidates > 0 && stage.sweeps > 0 && stage.exact));
        }
        let stages = plan(&problem(200, DynamicsSpec::Exact), &Settings::default());
        let lengths: Vec<usize> = stages.iter().map(|stage| stage.transitions).collect();
        assert_eq!(lengths, [59, 88, 133, 200]);
    }

    #[test]
    fn long_records_have_few_candidates_and_particles() {
        let stages = plan(&problem(3_000, DynamicsSpec::Exact), &Settings::default());
        let last = stages.last().unwrap();
        assert_eq!((last.candidates, last.particles, last.sweeps), (1, FEWEST_PARTICLES, 1));
    }

    #[test]
    fn the_exact_process_stands_in_for_a_basis_on_short_records() {
        assert!(plan(&problem(200, fic()), &Settings::default()).iter().all(|stage| stage.exact));
        let long = plan(&problem(3_000, fic()), &Settings::default());
        assert!(long[0].exact && !long.last().unwrap().exact);
    }

    #[test]
    fn wishes_are_kept() {
        let start = StartSettings { restarts: 3, particles: Some(17) };
        let stages = plan(&problem(200, fic()), &Settings { start, ..Settings::default() });
        assert!(stages.iter().all(|stage| stage.candidates == 3 && stage.particles == 17));
    }
}
