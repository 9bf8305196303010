//! What the aligned draws say of f where their paths went.

use super::alignment::Aligned;
use crate::error::Error;
use crate::points::Points;
use crate::posterior::Posterior;
use crate::posterior::function::Moments;

/// Mixture mean and variance at points, internal units, (point, dimension).
pub(super) struct Target {
    pub z: Points,
    pub mean: Vec<f64>,
    pub variance: Vec<f64>,
}

impl Posterior {
    /// `n` points z = (x, u) of the aligned paths, evenly spread over draws and times, internal units.
    pub(super) fn aligned_points(&self, draws: &[Aligned], n: usize) -> Points {
        let (problem, n_x) = (self.problem(), self.n_x());
        let sequences = problem.sequences();
        let places = || {
            draws.iter().flat_map(|aligned| {
                let rows = sequences.iter().enumerate();
                rows.flat_map(move |(s, q)| (0..q.length()).map(move |t| (aligned, s, t)))
            })
        };
        let total = places().count();
        let n = n.min(total);
        let (mut points, mut wanted) = (Points::new(n_x + self.n_u()), 0);
        let mut x = vec![0.0; n_x];
        for (i, (aligned, s, t)) in places().enumerate() {
            if wanted == n || i < ((wanted as f64 + 0.5) * total as f64 / n as f64) as usize {
                continue;
            }
            wanted += 1;
            let path = &self.draws()[aligned.draw].paths[s];
            aligned
                .coordinates
                .to_reference(&problem.path_to_internal(&path[t * n_x..(t + 1) * n_x]), &mut x);
            points.push_parts(&x, sequences[s].u(t));
        }
        points
    }

    /// The mixture of the aligned draws at points.
    pub(super) fn target(&self, draws: &[Aligned], z: Points) -> Result<Target, Error> {
        let n_x = self.n_x();
        let n = z.len() * n_x;
        let (mut mean, mut square, mut variance) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut moments = Moments::default();
        for aligned in draws {
            let (w, to) = (aligned.weight, &aligned.coordinates);
            self.function(aligned.draw)?.evaluate(&to.points_to_draw(&z), false, &mut moments);
            let f = to.path(&moments.mean);
            for (i, c) in moments.covariance.chunks_exact(n_x * n_x).enumerate() {
                let c = to.covariance(c);
                (0..n_x).for_each(|d| variance[i * n_x + d] += w * c[d * n_x + d]);
            }
            for i in 0..n {
                mean[i] += w * f[i];
                square[i] += w * f[i] * f[i];
            }
        }
        for i in 0..n {
            variance[i] += (square[i] - mean[i] * mean[i]).max(0.0);
        }
        Ok(Target { z, mean, variance })
    }
}
