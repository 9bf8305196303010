//! A few posterior functions on the inducing inputs of the distilled model: f_k(z) = offset + slopes . z + k(z, U) . c_k.
//!
//! Kernel herding chooses the draws; of each one function is drawn at U and carried on between by the kernel. A point estimate is one draw:
//! all functions are drawn of it.

use rand::RngExt;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use super::alignment::Aligned;
use super::{DistilledState, fit};
use crate::error::Error;
use crate::linalg::dense::Dense;
use crate::points::Points;
use crate::posterior::distilled::{Distilled, SparseFunction};
use crate::posterior::thin::ThinMethod;
use crate::posterior::{Posterior, Stream, stream_for};

/// One posterior function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The draw it comes from.
    pub draw: usize,
    /// In place of the coefficients of the mean, by state; empty for lags.
    pub coefficients: Vec<Vec<f64>>,
    /// Process noise covariance of the draw, row-major, original units.
    pub process_noise: Vec<f64>,
}

impl Posterior {
    /// Adds `k` posterior functions to a distilled model of this posterior: of `k` draws, or of the only one.
    pub fn add_scenarios(&self, distilled: &mut Distilled, k: usize, seed: u64) -> Result<(), Error> {
        let (draws, _) = self.aligned()?;
        if let ([only], 1..) = (&draws[..], k) {
            let each = (0..k as u64).map(|copy| self.scenario(distilled, only, seed, copy));
            distilled.scenarios = each.collect::<Result<_, _>>()?;
            return Ok(());
        }
        if k == 0 || k > draws.len() {
            return Err(Error::settings("scenarios", format!("{k} of {} draws cannot be kept", draws.len())));
        }
        let kept = draws.iter().map(|aligned| {
            let mut draw = self.draws()[aligned.draw].clone();
            draw.weight = aligned.weight;
            draw
        });
        let (_, loss) =
            Self::from_draws(self.problem(), kept.collect())?.thin(k, ThinMethod::Herding, seed)?;
        distilled.scenarios = loss
            .kept
            .iter()
            .map(|&place| self.scenario(distilled, &draws[place], seed, 0))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// One function of a draw; `copy` counts those of the same draw.
    fn scenario(
        &self,
        distilled: &Distilled,
        aligned: &Aligned,
        seed: u64,
        copy: u64,
    ) -> Result<Scenario, Error> {
        let (n_x, scale) = (self.n_x(), &self.problem().scaling().x.scale);
        let mut rng = stream_for(seed, Stream::Scenarios, aligned.draw as u64 | copy << 32);
        let mut coefficients = Vec::with_capacity(n_x);
        for (d, state) in distilled.states.iter().enumerate() {
            let DistilledState::Sparse(sparse) = state else {
                coefficients.push(Vec::new());
                continue;
            };
            let rows = sparse.inducing.chunks_exact(sparse.n_components);
            let inducing = Points::from_rows(sparse.n_components, rows);
            let mut normal = || rng.sample::<f64, _>(StandardNormal);
            let f = self.drawn_function(aligned, &inducing, d, &mut normal)?;
            coefficients.push(carried_on(sparse, &f)?);
        }
        let theta = &self.draws()[aligned.draw].theta;
        let q = aligned.coordinates.covariance(&self.problem().bind_transition(theta).noise_covariance());
        let process_noise = q.iter().enumerate().map(|(i, q)| q * scale[i / n_x] * scale[i % n_x]).collect();
        Ok(Scenario { draw: aligned.draw, coefficients, process_noise })
    }

    /// f_d at points, drawn from the posterior of one draw, in the coordinates of the reference.
    fn drawn_function(
        &self,
        aligned: &Aligned,
        points: &Points,
        d: usize,
        normal: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<f64>, Error> {
        let (function, z) = (self.function(aligned.draw)?, aligned.coordinates.points_to_draw(points));
        let m = points.len();
        let mut sum = vec![aligned.coordinates.shift(d); m];
        for e in (0..self.n_x()).filter(|&e| aligned.coordinates.factor(d, e) != 0.0) {
            let (factor, (mean, covariance)) = (aligned.coordinates.factor(d, e), function.joint(&z, e));
            let mut chol = Dense::default();
            chol.resize(m);
            let largest = (0..m).map(|i| covariance[i * m + i]).fold(0.0, f64::max);
            for i in 0..m {
                for j in 0..=i {
                    *chol.get_mut(i, j) = covariance[i * m + j];
                }
                // Directions that are known: a part in 1e9 of the variance, as in the distilled variance.
                *chol.get_mut(i, i) += (1e-9 * largest).max(1e-300);
            }
            chol.factor()?;
            let noise: Vec<f64> = (0..m).map(|_| normal()).collect();
            let drawn = chol.multiply_lower(&noise);
            sum.iter_mut()
                .zip(mean.iter().zip(&drawn))
                .for_each(|(sum, (mean, e))| *sum += factor * (mean + e));
        }
        Ok(sum)
    }
}

/// Coefficients whose function follows `f` at the inducing inputs: ridge regression on whitened features, L w = f - linear
/// part, so that values that the kernel cannot follow exactly do not make coefficients that cancel.
fn carried_on(sparse: &SparseFunction, f: &[f64]) -> Result<Vec<f64>, Error> {
    let m = sparse.n_inducing;
    let residual: Vec<f64> = f
        .iter()
        .zip(sparse.inducing.chunks_exact(sparse.n_components))
        .map(|(f, z)| f - sparse.offset - sparse.slopes.iter().zip(z).map(|(a, z)| a * z).sum::<f64>())
        .collect();
    let size = (residual.iter().map(|r| r * r).sum::<f64>() / m as f64).sqrt();
    let noise = (fit::FIT_NOISE * size).max(1e-12);
    let row = |i: usize| &sparse.chol[i * (i + 1) / 2..][..=i];
    let mut gram = Dense::default();
    gram.resize(m);
    let mut weights = vec![0.0; m];
    for j in 0..m {
        gram.lower_column_mut(j).fill(0.0);
    }
    for i in 0..m {
        for a in 0..=i {
            weights[a] += row(i)[a] * residual[i];
            for b in 0..=a {
                *gram.get_mut(a, b) += row(i)[a] * row(i)[b];
            }
        }
    }
    (0..m).for_each(|j| *gram.get_mut(j, j) += noise * noise);
    gram.factor()?;
    gram.solve_lower(&mut weights, 1);
    gram.solve_lower_transposed(&mut weights);
    // L^{-T} w.
    for i in (0..m).rev() {
        let sum: f64 = (i + 1..m).map(|k| row(k)[i] * weights[k]).sum();
        weights[i] = (weights[i] - sum) / row(i)[i];
    }
    Ok(weights)
}
