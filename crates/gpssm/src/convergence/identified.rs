//! Which states and hyper-parameters the data can determine.
//!
//! A state that no output shows has a sign, a scale and, beside others like it, a rotation that the data leave free;
//! declared flips settle the sign, the priors more or less the rest. Chains that differ in these describe the same system,
//! so they are not compared there.

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

use crate::function::evaluate_all;
use crate::model::compile::Problem;
use crate::model::parameters::{Index, Owner, Parameter, Quantity};
use crate::model::spec::{Predictor, TransitionSpec, Value};
use crate::points::Points;
use crate::posterior::observe::sensor_mean;
use crate::state_space::StateSpace;

/// Random points at which it is tried what a state changes.
const TRIED: usize = 8;

/// What the data determine, as far as the model tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identified {
    /// States that some output depends on.
    pub seen: Vec<bool>,
    /// States with a scale and a sign of their own.
    pub states: Vec<bool>,
}

impl Identified {
    /// A state is identified if outputs depend on it, no fewer of them than there are such states with unknown dynamics;
    /// or if a known transition of an identified state depends on it.
    pub(crate) fn new(problem: &Problem) -> Self {
        let model = problem.model();
        let n_x = problem.n_x();
        let transition = |d: usize| &model.states[d].transition;
        let is_gp = |d: &usize| matches!(transition(*d), TransitionSpec::Gp { .. });
        let uses = Uses::of(problem);
        let mut states = uses.sensor.clone();
        // A lag that is seen shows the state that it copies.
        for d in 0..n_x {
            if let TransitionSpec::Lag { of } = transition(d) {
                states[*of] |= states[d];
            }
        }
        let seen = states.clone();
        let several = (0..n_x).filter(|d| states[*d]).filter(is_gp).count() > model.n_y;
        for d in (0..n_x).filter(is_gp) {
            states[d] &= !several && has_known_size(model.sensor.predictor(), d);
        }
        loop {
            let mut more = states.clone();
            for d in 0..n_x {
                match transition(d) {
                    TransitionSpec::Lag { of } => more[d] = states[*of],
                    TransitionSpec::Parametric { .. } if states[d] => {
                        (0..n_x).for_each(|e| more[e] |= uses.transitions[d][e]);
                    }
                    _ => {}
                }
            }
            if more == states {
                return Self { seen, states };
            }
            states = more;
        }
    }

    /// Whether all states are.
    pub(crate) fn all(&self) -> bool {
        self.states.iter().all(|is| *is)
    }

    /// Whether a hyper-parameter belongs to identified states alone.
    pub(crate) fn has(&self, parameter: &Parameter) -> bool {
        let identity = &parameter.identity;
        let of = |quantity: Quantity| quantity.state().is_none_or(|d| self.states[d]);
        let index = match identity.index {
            Index::Whole => true,
            Index::At(quantity) => of(quantity),
            Index::Entry(row, column) => of(row) && of(column),
        };
        let owner = match identity.owner {
            Owner::Kernel { state, .. } | Owner::Mean { state } => self.states[state],
            _ => true,
        };
        index && owner
    }
}

/// Whether the size of a state is fixed by a known coefficient of the sensor.
fn has_known_size(predictor: Option<&Predictor>, d: usize) -> bool {
    let Some(Predictor::Linear { c, .. }) = predictor else { return true };
    c.iter().any(|row| matches!(row.get(d), Some(Value::Known(value)) if *value != 0.0))
}

/// Which states the sensor and known transitions depend on, found by changing one at a time.
struct Uses {
    sensor: Vec<bool>,
    /// By transition, then by state.
    transitions: Vec<Vec<bool>>,
}

impl Uses {
    fn of(problem: &Problem) -> Self {
        let (n_x, n_u) = (problem.n_x(), problem.model().n_u);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut found = Self { sensor: vec![false; n_x], transitions: vec![vec![false; n_x]; n_x] };
        for _ in 0..3 {
            let Ok(theta) = problem.table().sample(&mut rng) else { break };
            let space = problem.bind(&theta);
            let points: Vec<Vec<f64>> = (0..TRIED)
                .map(|_| (0..n_x + n_u).map(|_| rng.sample::<f64, _>(StandardNormal)).collect())
                .collect();
            let at = |points: &[Vec<f64>]| Points::from_rows(n_x + n_u, points.iter().map(Vec::as_slice));
            let here = Values::new(problem, &space, &at(&points));
            for d in 0..n_x {
                let mut moved = points.clone();
                moved.iter_mut().for_each(|z| z[d] += 0.7);
                let there = Values::new(problem, &space, &at(&moved));
                found.sensor[d] |= differ(&here.sensor, &there.sensor);
                for (e, uses) in found.transitions.iter_mut().enumerate() {
                    let of = |means: &[f64]| means.iter().skip(e).step_by(n_x).copied().collect::<Vec<_>>();
                    uses[d] |= differ(&of(&here.means), &of(&there.means));
                }
            }
        }
        found
    }
}

/// What the sensor and the mean functions give at some points.
struct Values {
    sensor: Vec<f64>,
    means: Vec<f64>,
}

impl Values {
    fn new(problem: &Problem, space: &StateSpace, z: &Points) -> Self {
        let mut means = Vec::new();
        evaluate_all(&space.transition.means, z, &mut means);
        // A user's sensor has no mean: its density at the first rows that were measured.
        let sensor = sensor_mean(&space.sensor, z).unwrap_or_else(|| {
            let mut all = Vec::new();
            for sequence in problem.sequences() {
                let seen = |t: &usize| sequence.y(*t).iter().any(|y| !y.is_nan());
                for t in (0..sequence.n_rows()).filter(seen).take(5) {
                    let mut density = vec![0.0; z.len()];
                    space.sensor.add_log_density(sequence.y(t), z, &mut density);
                    all.extend(density);
                }
            }
            all
        });
        Self { sensor, means }
    }
}

/// Values that cannot be computed at either place do not differ.
fn differ(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a != b && !(a.is_nan() && b.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::spec::{FunctionSpec, SensorSpec};
    use crate::{Functions, Model, Sequence};

    fn problem(change: impl FnOnce(&mut Model), n_x: usize) -> Problem {
        let y: Vec<f64> = (0..12).map(|t| f64::from(t).sin()).collect();
        let mut model = Model { symmetries: Vec::new(), ..Model::with_hidden_states(n_x, 1, 0) };
        change(&mut model);
        Problem::new(model, &Functions::new(), Sequence::scalar(&y, None).unwrap().into()).unwrap()
    }

    fn parametric(text: &str) -> TransitionSpec {
        TransitionSpec::Parametric { function: FunctionSpec::Formula(text.into()) }
    }

    #[test]
    fn hidden_states_are_not_identified() {
        let found = Identified::new(&problem(|_| (), 2));
        assert_eq!((found.seen, found.states), (vec![true, false], vec![true, false]));
    }

    #[test]
    fn a_known_transition_shows_the_states_that_it_depends_on() {
        // Position and speed: the position is measured, and its transition gives the speed a scale.
        let known = |model: &mut Model| model.states[0].transition = parametric("x1 + 0.1*x2");
        assert_eq!(Identified::new(&problem(known, 2)).states, [true, true]);
        // The other way round it does not: the measured state has an unknown transition.
        let other = |model: &mut Model| model.states[1].transition = parametric("0.9*x2");
        assert_eq!(Identified::new(&problem(other, 2)).states, [true, false]);
    }

    #[test]
    fn a_lag_is_what_it_copies() {
        let lag = |model: &mut Model| model.states[1].transition = TransitionSpec::Lag { of: 0 };
        assert_eq!(Identified::new(&problem(lag, 2)).states, [true, true]);
    }

    #[test]
    fn a_sum_of_unknown_states_or_a_learned_gain_identifies_none() {
        let formula = |text: &str| {
            let mean = Predictor::Formulas(vec![text.into()]);
            SensorSpec::Gaussian { mean, noise: Default::default() }
        };
        let sum = Identified::new(&problem(|model| model.sensor = formula("x1 + x2"), 2));
        assert_eq!((sum.seen, sum.states), (vec![true, true], vec![false, false]));
        let square = Identified::new(&problem(|model| model.sensor = formula("x1^2"), 1));
        assert_eq!(square.states, [true]);
        let gain = Value::Learned(crate::Prior::Normal { mean: 0.0, sd: 1.0 });
        let linear = Predictor::Linear { c: vec![vec![gain]], d: Vec::new(), offset: Vec::new() };
        let sensor = SensorSpec::Gaussian { mean: linear, noise: Default::default() };
        let found = Identified::new(&problem(|model| model.sensor = sensor, 1));
        assert_eq!((found.seen, found.states), (vec![true], vec![false]));
    }

    #[test]
    fn parameters_follow_their_states() {
        let problem = problem(|_| (), 2);
        let found = Identified::new(&problem);
        let left: Vec<&str> = problem
            .table()
            .parameters
            .iter()
            .filter(|parameter| found.has(parameter))
            .map(|parameter| parameter.name.as_str())
            .collect();
        assert!(left.contains(&"se_sigma_f[x1]") && left.contains(&"se_ell[x1, x1]"), "{left:?}");
        assert!(left.contains(&"process_sd[x1]") && left.contains(&"sensor_sd[y]"), "{left:?}");
        assert!(!left.iter().any(|name| name.contains("x2")), "{left:?}");
    }
}
