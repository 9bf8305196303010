//! Densities of outputs under simulated states, and under the states of the draws.

use super::mixture::log_sum_exp;
use super::observe::outputs;
use super::online::log_unit;
use super::simulate::Simulation;
use super::{Posterior, Stream, stream_for};
use crate::error::Error;
use crate::points::Points;
use crate::record::Sequence;

/// Log densities of the observations of the training record under each draw, original units.
#[derive(Clone, Debug, PartialEq)]
pub struct PointwiseLogLikelihood {
    /// Whether every output has a value; otherwise there is one for each row.
    pub by_output: bool,
    /// log p(y | x_t, theta), row-major (draw, row, output) or (draw, row) over the rows of all sequences; NaN where
    /// nothing was observed.
    pub values: Vec<f64>,
}

impl Posterior {
    /// log p(y_{t,k} | x_t, theta) of every observation under every draw. Outputs that are not independent given the
    /// state (full R, a user's sensor of several outputs) have one value for each row. The values of a draw sum to
    /// log p(y | x, theta).
    pub fn log_likelihood(&self) -> PointwiseLogLikelihood {
        let (problem, n_x, n_y) = (self.problem(), self.n_x(), self.n_y());
        let by_output = n_y == 1 || problem.bind(&self.draws()[0].theta).sensor.has_independent_outputs();
        let parts: Vec<Vec<usize>> = match by_output {
            true => (0..n_y).map(|k| vec![k]).collect(),
            false => vec![(0..n_y).collect()],
        };
        let mut values = Vec::new();
        for draw in self.draws() {
            let sensor = problem.bind(&draw.theta).sensor;
            for (path, sequence) in draw.paths.iter().zip(problem.sequences()) {
                let path = problem.path_to_internal(path);
                for (t, x) in path.chunks_exact(n_x).enumerate() {
                    let mut z = Points::new(n_x + self.n_u());
                    z.push_parts(x, sequence.u(t));
                    for part in &parts {
                        let mut y = vec![f64::NAN; n_y];
                        part.iter().for_each(|&k| y[k] = sequence.y(t)[k]);
                        let mut density = [f64::NAN];
                        if y.iter().any(|y| !y.is_nan()) {
                            density = [-log_unit(problem.scaling(), &y)];
                            sensor.add_log_density(&y, &z, &mut density);
                        }
                        values.extend(density);
                    }
                }
            }
        }
        PointwiseLogLikelihood { by_output, values }
    }

    /// Replicated outputs of the training record: y_t drawn from p(y | x_t, theta) of each draw, row-major (draw, row, output)
    /// over the rows of all sequences.
    pub fn replicate(&self, seed: u64) -> Vec<f64> {
        let (problem, n_x) = (self.problem(), self.n_x());
        let mut values = Vec::new();
        for (j, draw) in self.draws().iter().enumerate() {
            let sensor = problem.bind(&draw.theta).sensor;
            let mut rngs = [stream_for(seed, Stream::Replicate, j as u64)];
            for (path, sequence) in draw.paths.iter().zip(problem.sequences()) {
                let path = problem.path_to_internal(path);
                for (t, x) in path.chunks_exact(n_x).enumerate() {
                    values.extend(outputs(&sensor, problem.scaling(), x, sequence.u(t), true, &mut rngs));
                }
            }
        }
        values
    }

    /// log p(y_t) of every row of a record under a simulation: the densities p(y_t | x_t) mixed over the paths.
    pub fn log_scores_of(&self, simulation: &Simulation, sequence: &Sequence) -> Result<Vec<f64>, Error> {
        let scaling = self.problem().scaling();
        let (n_x, n) = (self.n_x(), simulation.x.n_samples());
        let rows = (0..sequence.n_rows()).map(|t| {
            let y: Vec<f64> =
                sequence.y(t).iter().enumerate().map(|(k, y)| scaling.y.to_internal(k, *y)).collect();
            let u: Vec<f64> =
                sequence.u(t).iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u)).collect();
            let mut log_densities = Vec::with_capacity(n);
            let mut from = 0;
            while from < n {
                let draw = simulation.draws[from];
                let to = from + simulation.draws[from..].iter().take_while(|d| **d == draw).count();
                let mut z = Points::new(n_x + u.len());
                for i in from..to {
                    let x = &simulation.x.sample(i)[t * n_x..(t + 1) * n_x];
                    z.push_parts(&self.problem().path_to_internal(x), &u);
                }
                let mut out = vec![0.0; to - from];
                self.function(draw)?.space.sensor.add_log_density(&y, &z, &mut out);
                log_densities.extend(out.into_iter().filter(|value| !value.is_nan()));
                from = to;
            }
            Ok(log_sum_exp(&log_densities) - (n as f64).ln() - log_unit(scaling, sequence.y(t)))
        });
        rows.collect()
    }
}
