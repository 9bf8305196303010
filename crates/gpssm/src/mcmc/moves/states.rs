//! The path of each sequence given theta and y (Algorithm 1, steps b and c).

use super::{Move, Sweep, Weights};
use crate::model::compile::Problem;
use crate::random::Purpose;
use crate::smc::children::Children;
use crate::smc::filter::conditional_filter_with;
use crate::state_space::SharedPairs;

/// Draws x_{0:T} of each sequence by the conditional particle filter with ancestor sampling, given theta, y and the
/// other sequences (or the weights of the finite basis, where they are drawn).
pub struct States;

impl Move for States {
    fn name(&self) -> &'static str {
        "states"
    }

    fn applies(&self, _: &Problem) -> bool {
        true
    }

    fn changes_states(&self) -> bool {
        true
    }

    fn update(&self, sweep: &mut Sweep) {
        let problem = sweep.problem;
        let mut model = problem.bind(&sweep.state.theta);
        let sampled = Weights.applies(problem);
        if sampled {
            let Some(transition) = &*sweep.drawn else {
                sweep.info.filter_failures += problem.sequences().len() as u64;
                return;
            };
            model.transition = transition.clone();
        }
        for (s, sequence) in problem.sequences().iter().enumerate() {
            let mut rng = sweep.stream(Purpose::States, s as u64);
            let mut shared = SharedPairs::none(problem.n_x(), sequence.n_u());
            let paths = sweep.state.paths.iter().enumerate();
            for (other, path) in paths.filter(|(other, _)| *other != s && !sampled) {
                shared.add(&model.transition, path, &problem.sequences()[other]);
            }
            let x_ref = &sweep.state.paths[s];
            let default = Children::default();
            let children = sweep.state.children.get(s).unwrap_or(&default);
            match conditional_filter_with(&model, sequence, &shared, sweep.options, children, x_ref, &mut rng)
            {
                Ok(outcome) => {
                    sweep.info.count(&outcome.numerics);
                    sweep.state.paths[s] = outcome.path;
                    sweep.scarcity[s] = outcome.scarcity;
                }
                Err(_) => sweep.info.filter_failures += 1,
            }
        }
    }
}
