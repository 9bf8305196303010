//! Fewer draws that say nearly the same.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::function::Moments;
use super::mixture::GaussianMixture;
use super::{Posterior, Stream, stream_for, to_internal};
use crate::error::Error;
use crate::points::Points;

/// How draws are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinMethod {
    /// At random without replacement, with probabilities by weight.
    Random,
    /// Kernel herding (Chen, Welling, Smola 2010, arXiv 1203.3472): each next draw is the one that brings the mean embedding
    /// of those chosen closest to that of all, weights included. The kernel compares what draws say of f at
    /// points that the paths visited.
    #[default]
    Herding,
}

/// What thinning loses, over points that the paths visited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThinLoss {
    /// Draws that were kept, by their old numbers.
    pub kept: Vec<usize>,
    /// RMSE of the mixture mean of f against that of all draws, over the standard deviation of the latter over the points.
    pub mean_error: f64,
    /// RMSE of the mixture's standard deviation, over its mean.
    pub sd_error: f64,
    /// Mean divergence of the next state's distribution from that of all draws, in nats: how much log score is lost.
    pub divergence: f64,
}

/// Numbers of `k` of n points, in the order of choice, none twice: each is the one that brings the mean embedding
/// of those chosen closest to that of all (Chen, Welling, Smola 2010). `kernel` holds k(a, b) row by row, `weights`
/// the shares of the points.
pub fn kernel_herding(kernel: &[f64], weights: &[f64], k: usize) -> Vec<usize> {
    let n = weights.len();
    let row = |a: usize| &kernel[a * n..(a + 1) * n];
    let embedding: Vec<f64> = (0..n).map(|a| row(a).iter().zip(weights).map(|(k, w)| w * k).sum()).collect();
    let mut overlap = vec![0.0; n];
    let mut kept: Vec<usize> = Vec::new();
    for chosen in 0..k {
        let gain = |j: usize| embedding[j] - overlap[j] / (chosen + 1) as f64;
        let next = (0..n).filter(|j| !kept.contains(j)).max_by(|&a, &b| gain(a).total_cmp(&gain(b)));
        let Some(next) = next else { break };
        overlap.iter_mut().zip(row(next)).for_each(|(overlap, k)| *overlap += k);
        kept.push(next);
    }
    kept
}

/// Points at which draws are compared.
const ANCHORS: usize = 150;

/// What all draws say of f at the anchors, internal units, (draw, point, dimension).
struct Said {
    mean: Vec<Vec<f64>>,
    sd: Vec<Vec<f64>>,
}

impl Posterior {
    /// `n` points z = (x, u), original units, spread over all draws and times.
    pub(crate) fn visited_points(&self, n: usize) -> Points {
        let n_x = self.n_x();
        let mut rows = Vec::new();
        let sequences = self.problem().record().sequences();
        for draw in self.draws() {
            for (path, sequence) in draw.paths.iter().zip(sequences) {
                rows.extend((0..sequence.length()).map(|t| (&path[t * n_x..(t + 1) * n_x], sequence.u(t))));
            }
        }
        let mut points = Points::new(n_x + self.n_u());
        let n = n.min(rows.len());
        // Evenly spaced over draws and times.
        for i in 0..n {
            let (x, u) = rows[((i as f64 + 0.5) * rows.len() as f64 / n as f64) as usize];
            points.push_parts(x, u);
        }
        points
    }

    fn said(&self, z: &Points) -> Result<Said, Error> {
        let (n_x, internal) = (self.n_x(), to_internal(self.problem().scaling(), z));
        let mut said = Said { mean: Vec::new(), sd: Vec::new() };
        let mut moments = Moments::default();
        for j in 0..self.len() {
            self.function(j)?.evaluate(&internal, true, &mut moments);
            said.mean.push(moments.mean.clone());
            let variances = (0..z.len() * n_x).map(|i| moments.covariance[i * n_x + i % n_x].sqrt());
            said.sd.push(variances.collect());
        }
        Ok(said)
    }

    /// Keeps `k` draws with equal weights, and tells what that loses.
    pub fn thin(&self, k: usize, method: ThinMethod, seed: u64) -> Result<(Self, ThinLoss), Error> {
        if k == 0 || k > self.len() {
            return Err(Error::settings("k", format!("{k} of {} draws cannot be kept", self.len())));
        }
        let z = self.visited_points(ANCHORS);
        let said = self.said(&z)?;
        let kept = match method {
            ThinMethod::Random => self.random(k, seed),
            ThinMethod::Herding => self.herd(k, &said),
        };
        let loss = self.loss(kept, &said, &z);
        let draws = loss.kept.iter().map(|&j| {
            let mut draw = self.draws()[j].clone();
            draw.weight = 1.0 / k as f64;
            draw
        });
        let mut thinned = Self::from_draws(self.problem(), draws.collect())?;
        // Factors that were made are kept.
        thinned.functions = loss.kept.iter().map(|&j| self.functions[j].clone()).collect();
        Ok((thinned, loss))
    }

    fn random(&self, k: usize, seed: u64) -> Vec<usize> {
        let mut rng = stream_for(seed, Stream::Thin, 0);
        let mut weights = self.weights();
        let mut kept: Vec<usize> = (0..k)
            .map(|_| {
                let total: f64 = weights.iter().sum();
                let j = crate::smc::weights::index_at(&weights, rng.random::<f64>() * total);
                weights[j] = 0.0;
                j
            })
            .collect();
        kept.sort_unstable();
        kept.dedup();
        // Draws of weight zero fill up what is missing.
        (0..self.len()).for_each(|j| {
            if kept.len() < k && !kept.contains(&j) {
                kept.push(j)
            }
        });
        kept
    }

    fn herd(&self, k: usize, said: &Said) -> Vec<usize> {
        let n = self.len();
        let weights = self.weights();
        let distance = |a: usize, b: usize| -> f64 {
            let means = said.mean[a].iter().zip(&said.mean[b]).zip(said.sd[a].iter().zip(&said.sd[b]));
            means
                .filter(|(_, (s, r))| **s > 0.0 && **r > 0.0)
                .map(|((m, w), (s, r))| (m - w).powi(2) / (s * r) + (s / r).ln().powi(2))
                .sum()
        };
        let mut distances = vec![0.0; n * n];
        for a in 0..n {
            for b in 0..a {
                let d = distance(a, b);
                (distances[a * n + b], distances[b * n + a]) = (d, d);
            }
        }
        let mut sorted: Vec<f64> = distances.iter().copied().filter(|d| *d > 0.0).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let unit = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
        let kernel: Vec<f64> = distances.iter().map(|d| (-0.5 * d / unit).exp()).collect();
        let mut kept = kernel_herding(&kernel, &weights, k);
        kept.sort_unstable();
        kept
    }

    fn loss(&self, kept: Vec<usize>, said: &Said, z: &Points) -> ThinLoss {
        let (weights, share) = (self.weights(), 1.0 / kept.len() as f64);
        let n = z.len() * self.n_x();
        let mixture = |i: usize, of: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut mixture = GaussianMixture { weights: vec![], means: vec![], sds: vec![] };
            for (j, w) in of {
                mixture.weights.push(w);
                mixture.means.push(said.mean[j][i]);
                mixture.sds.push(said.sd[j][i]);
            }
            mixture
        };
        let (mut mean_square, mut sd_square, mut divergence, mut sds) = (0.0, 0.0, 0.0, 0.0);
        let mut means = Vec::with_capacity(n);
        let mut scored = 0.0;
        for i in 0..n {
            let all = mixture(i, &mut weights.iter().copied().enumerate());
            let few = mixture(i, &mut kept.iter().map(|&j| (j, share)));
            mean_square += (all.mean() - few.mean()).powi(2);
            sd_square += (all.sd() - few.sd()).powi(2);
            sds += all.sd();
            means.push(all.mean());
            if all.sds.iter().all(|sd| *sd > 0.0) {
                // E[log p_all - log p_few] at evenly spaced quantiles of the mixture of all.
                let places = (0..20).map(|q| all.quantile((f64::from(q) + 0.5) / 20.0));
                divergence += places.map(|x| (all.log_density(x) - few.log_density(x)) / 20.0).sum::<f64>();
                scored += 1.0;
            }
        }
        let count = n.max(1) as f64;
        let center = means.iter().sum::<f64>() / count;
        let spread = (means.iter().map(|m| (m - center).powi(2)).sum::<f64>() / count).sqrt();
        ThinLoss {
            kept,
            mean_error: (mean_square / count).sqrt() / spread.max(f64::MIN_POSITIVE),
            sd_error: (sd_square / count).sqrt() / (sds / count).max(f64::MIN_POSITIVE),
            divergence: divergence / f64::max(scored, 1.0),
        }
    }
}
