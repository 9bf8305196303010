//! The mean function m(x, u) alone, without a Gaussian process: what the learned part of f adds to it.

use super::Posterior;
use super::observe::sensor_mean;
use super::online::OnlineOptions;
use super::simulate::Initial;
use crate::error::Error;
use crate::function::evaluate_all;
use crate::points::Points;
use crate::record::Sequence;
use crate::state_space::StateSpace;

/// x' = m(x, u) with theta at its posterior mean, without noise.
struct MeanFunction<'a> {
    posterior: &'a Posterior,
    space: StateSpace,
    sequence: &'a Sequence,
}

impl MeanFunction<'_> {
    fn point(&self, x: &[f64], t: usize) -> Points {
        let scaling = &self.posterior.problem().scaling().u;
        let u = self.sequence.u(t).iter().enumerate().map(|(c, u)| scaling.to_internal(c, *u));
        let mut z = Points::new(self.posterior.n_x() + self.posterior.n_u());
        z.push_parts(x, &u.collect::<Vec<f64>>());
        z
    }

    fn step(&self, x: &[f64], t: usize) -> Vec<f64> {
        let mut next = Vec::new();
        evaluate_all(&self.space.transition.means, &self.point(x, t), &mut next);
        let lags = self.space.transition.lags.iter().enumerate();
        lags.filter_map(|(d, of)| of.map(|of| (d, of))).for_each(|(d, of)| next[d] = x[of]);
        next
    }

    /// In original units.
    fn output(&self, x: &[f64], t: usize) -> Option<Vec<f64>> {
        let scaling = &self.posterior.problem().scaling().y;
        let y = sensor_mean(&self.space.sensor, &self.point(x, t))?;
        Some(y.iter().enumerate().map(|(k, y)| scaling.to_original(k, *y)).collect())
    }
}

impl Posterior {
    fn mean_function<'a>(&'a self, sequence: &'a Sequence) -> MeanFunction<'a> {
        MeanFunction { posterior: self, space: self.problem().bind(&self.mean_theta()), sequence }
    }

    /// Outputs of a free run of the mean function from `state` in row `n_init` - 1 (rows before it repeat its output),
    /// row-major; none for a user's sensor, whose mean is not known.
    pub fn mean_function_run(&self, sequence: &Sequence, n_init: usize, state: &[f64]) -> Option<Vec<f64>> {
        let function = self.mean_function(sequence);
        let mut mean = Vec::with_capacity(sequence.n_rows() * self.n_y());
        let mut x = self.problem().path_to_internal(state);
        for t in 0..sequence.n_rows() {
            if t >= n_init.max(1) {
                x = function.step(&x, t - 1);
            }
            mean.extend(function.output(&x, t)?);
        }
        Some(mean)
    }

    /// Outputs k steps of the mean function after each filtered state of the model; none for a user's sensor.
    pub fn mean_function_ahead(
        &self,
        sequence: &Sequence,
        k: usize,
        filter: &OnlineOptions,
    ) -> Result<Option<Vec<f64>>, Error> {
        let (function, n_x) = (self.mean_function(sequence), self.n_x());
        let filtered = self.filter(sequence, &Initial::Model, filter, &|_, _| true)?;
        let row = |t: usize| {
            let from = t.saturating_sub(k);
            let mut x = self.problem().path_to_internal(&filtered.mean[from * n_x..(from + 1) * n_x]);
            (from..t).for_each(|s| x = function.step(&x, s));
            function.output(&x, t)
        };
        let rows: Option<Vec<Vec<f64>>> = (0..sequence.n_rows()).map(row).collect();
        Ok(rows.map(|rows| rows.concat()))
    }

    /// Root mean square of the training outputs around the sensor's mean after one step of the mean function along the mean of
    /// the drawn paths, by output; none for a user's sensor, whose mean is not known.
    pub fn mean_function_error(&self) -> Option<Vec<f64>> {
        let space = self.problem().bind(&self.mean_theta());
        let (n_x, n_y) = (self.n_x(), self.n_y());
        let mut sums = vec![(0.0, 0.0); n_y];
        for (s, sequence) in self.problem().sequences().iter().enumerate() {
            let mut path = vec![0.0; sequence.n_rows() * n_x];
            for draw in self.draws() {
                let own = self.problem().path_to_internal(&draw.paths[s]);
                path.iter_mut().zip(own).for_each(|(mean, x)| *mean += draw.weight * x);
            }
            for t in 1..sequence.n_rows() {
                let mut z = Points::new(n_x + self.n_u());
                z.push_parts(&path[(t - 1) * n_x..t * n_x], sequence.u(t - 1));
                let mut x = Vec::new();
                evaluate_all(&space.transition.means, &z, &mut x);
                z.clear();
                z.push_parts(&x, sequence.u(t));
                let y = sensor_mean(&space.sensor, &z)?;
                for k in (0..n_y).filter(|&k| !sequence.y(t)[k].is_nan()) {
                    let error = (sequence.y(t)[k] - y[k]) * self.problem().scaling().y.scale[k];
                    sums[k] = (sums[k].0 + error * error, sums[k].1 + 1.0);
                }
            }
        }
        Some(sums.iter().map(|(sum, n): &(f64, f64)| (sum / n.max(1.0)).sqrt().max(1e-12)).collect())
    }

    /// Theta averaged over the draws, positive entries by their logarithms.
    pub(crate) fn mean_theta(&self) -> Vec<f64> {
        let table = self.problem().table();
        let average = |k: usize| {
            let coordinates =
                self.draws().iter().map(|draw| draw.weight * table.coordinate_of(k, draw.theta[k]));
            table.value_at(k, coordinates.sum())
        };
        (0..table.len()).map(average).collect()
    }
}
