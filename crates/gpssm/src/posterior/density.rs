//! Densities of outputs under simulated states.

use super::Posterior;
use super::mixture::log_sum_exp;
use super::online::log_unit;
use super::simulate::Simulation;
use crate::error::Error;
use crate::points::Points;
use crate::record::Sequence;

impl Posterior {
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
