//! The weights of a finite basis, drawn once a sweep: given them the sequences are independent and Markov.

use super::{Move, Sweep};
use crate::model::compile::Problem;
use crate::random::Purpose;
use crate::state_space::SharedPairs;

/// Draws w | x, theta of a finite basis in `sampled` mode. Theta moved before with w integrated out.
pub struct Weights;

impl Move for Weights {
    fn name(&self) -> &'static str {
        "weights"
    }

    fn applies(&self, problem: &Problem) -> bool {
        problem.model().dynamics.is_sampled()
    }

    fn changes_states(&self) -> bool {
        // The weights serve moves of states only.
        true
    }

    fn update(&self, sweep: &mut Sweep) {
        let transition = sweep.problem.bind_transition(&sweep.state.theta);
        let mut pairs = SharedPairs::none(sweep.problem.n_x(), sweep.problem.model().n_u);
        for (path, sequence) in sweep.state.paths.iter().zip(sweep.problem.sequences()) {
            pairs.add(&transition, path, sequence);
        }
        let mut rng = sweep.stream(Purpose::Weights, 0);
        *sweep.drawn = transition.with_drawn_weights(&pairs.0, &mut rng).ok();
    }
}
