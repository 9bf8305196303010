//! The density of the hyper-parameters given the states, p(theta) p(x_{1:T} | x_0, theta) p(y | x, theta).

use crate::dynamics::block::Pairs;
use crate::dynamics::path_density::PathDensityWork;
use crate::dynamics::transition::Transition;
use crate::initial::BoundInitial;
use crate::model::compile::Problem;
use crate::points::Points;
use crate::state_space::SharedPairs;

/// The states of all sequences (internal units), held fixed while theta moves.
pub(crate) struct Conditional<'a> {
    problem: &'a Problem,
    paths: &'a [Vec<f64>],
    /// z_t, t = 0..T, of each sequence.
    points: Vec<Points>,
    /// State dimensions that share a factor.
    blocks: Vec<Vec<usize>>,
    /// Pairs of all sequences under the mean functions of the last theta that changed them.
    pairs: Pairs,
    work: &'a mut PathDensityWork,
    pub(crate) evaluations: u64,
    pub(crate) failures: u64,
}

/// Log densities of the parts, each up to nothing.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) blocks: Vec<f64>,
    pub(crate) sensor: f64,
}

impl<'a> Conditional<'a> {
    pub(crate) fn new(
        problem: &'a Problem,
        paths: &'a [Vec<f64>],
        theta: &[f64],
        work: &'a mut PathDensityWork,
    ) -> Self {
        let n_x = problem.n_x();
        let transition = problem.bind_transition(theta);
        let points = paths.iter().zip(problem.sequences()).map(|(path, sequence)| {
            let mut z = Points::new(n_x + sequence.n_u());
            for (t, x) in path.chunks_exact(n_x).enumerate() {
                z.push_parts(x, sequence.u(t));
            }
            z
        });
        Self {
            problem,
            paths,
            points: points.collect(),
            blocks: transition.blocks(),
            pairs: all_pairs(problem, paths, &transition),
            work,
            evaluations: 0,
            failures: 0,
        }
    }

    /// All parts at theta.
    pub(crate) fn parts(&mut self, theta: &[f64]) -> Parts {
        let transition = self.problem.bind_transition(theta);
        self.pairs = all_pairs(self.problem, self.paths, &transition);
        let blocks = (0..self.blocks.len()).map(|b| self.block(b, &transition)).collect();
        Parts { blocks, sensor: self.sensor(theta) }
    }

    /// log p(x_{1:T} | x_0) of one block (eq. 4), minus infinity where it cannot be computed.
    fn block(&mut self, b: usize, transition: &Transition) -> f64 {
        self.evaluations += 1;
        match transition.log_density_of(&self.blocks[b], &self.pairs, self.work) {
            Ok(density) if density.is_finite() => density,
            _ => {
                self.failures += 1;
                f64::NEG_INFINITY
            }
        }
    }

    /// log p(y | x, theta_y), all sequences.
    fn sensor(&self, theta: &[f64]) -> f64 {
        let sensor = self.problem.bind(theta).sensor;
        let sequences = self.points.iter().zip(self.problem.sequences());
        let density: f64 =
            sequences.map(|(z, sequence)| sensor.log_density_along(z, |t| sequence.y(t))).sum();
        if density.is_nan() { f64::NEG_INFINITY } else { density }
    }

    /// Whether parameter `k` enters block `b`.
    pub(crate) fn touches(&self, k: usize, b: usize) -> bool {
        let dims = &self.problem.table().parameters[k].dims;
        self.blocks[b].iter().any(|d| dims.contains(d))
    }

    /// Takes the residuals under the mean functions at theta.
    pub(crate) fn rebuild_pairs(&mut self, theta: &[f64]) {
        self.pairs = all_pairs(self.problem, self.paths, &self.problem.bind_transition(theta));
    }

    /// What changes of the joint density when parameter `k` moves, at theta; `parts` holds the rest.
    pub(crate) fn of_parameter(&mut self, k: usize, theta: &[f64], parts: &mut Parts) -> f64 {
        let parameter = &self.problem.table().parameters[k];
        let mut total = self.problem.table().log_prior(k, theta);
        if total == f64::NEG_INFINITY || total.is_nan() {
            return f64::NEG_INFINITY;
        }
        if !parameter.dims.is_empty() {
            let transition = self.problem.bind_transition(theta);
            if parameter.function {
                self.pairs = all_pairs(self.problem, self.paths, &transition);
            }
            for b in 0..self.blocks.len() {
                if self.touches(k, b) {
                    parts.blocks[b] = self.block(b, &transition);
                    total += parts.blocks[b];
                }
            }
        }
        if parameter.sensor {
            parts.sensor = self.sensor(theta);
            total += parts.sensor;
        }
        total
    }

    /// log p(theta, x, y) in original units, without p(x_0) of fixed initial states.
    pub(crate) fn log_joint(&mut self, theta: &[f64]) -> (f64, f64) {
        let parts = self.parts(theta);
        let model = self.problem.bind(theta);
        let (scaling, n_x) = (self.problem.scaling(), self.problem.n_x());
        let moving: f64 = model.transition.moving().map(|d| scaling.x.scale[d].ln()).sum();
        let mut joint =
            self.problem.table().log_density(theta) + parts.blocks.iter().sum::<f64>() + parts.sensor;
        let mut likelihood = parts.sensor;
        for (path, sequence) in self.paths.iter().zip(self.problem.sequences()) {
            joint += model.initial.log_density(&path[..n_x]);
            joint -=
                moving * sequence.learned_from().iter().map(ExactSizeIterator::len).sum::<usize>() as f64;
            // A user's density is in original units already, and a fixed state has none.
            if matches!(model.initial, BoundInitial::Gaussian { .. }) {
                joint -= scaling.x.scale.iter().map(|scale| scale.ln()).sum::<f64>();
            }
            for k in 0..sequence.n_y() {
                let n_observed = sequence.output(k).filter(|y| !y.is_nan()).count() as f64;
                joint -= n_observed * scaling.y.scale[k].ln();
                likelihood -= n_observed * scaling.y.scale[k].ln();
            }
        }
        (joint, likelihood)
    }
}

pub(crate) fn all_pairs(problem: &Problem, paths: &[Vec<f64>], transition: &Transition) -> Pairs {
    let mut shared = SharedPairs::none(problem.n_x(), problem.model().n_u);
    for (path, sequence) in paths.iter().zip(problem.sequences()) {
        shared.add(transition, path, sequence);
    }
    shared.0
}
