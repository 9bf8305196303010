//! p(f* | x*, u*) and p(x_{t+1} | x*, u*) at given points: one Gaussian for each draw, mixed (eq. 11).

use std::sync::atomic::{AtomicUsize, Ordering};

use super::function::Moments;
use super::mixture::{GaussianMixture, log_sum_exp};
use super::warning::Warning;
use super::{Posterior, to_internal};
use crate::dynamics::basis::features::BasisChoice;
use crate::error::Error;
use crate::linalg::small;
use crate::points::Points;

/// Draws times points from which on threads are worth their start.
const SHARED_FROM: usize = 10_000;

/// What is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// f(x*, u*).
    #[default]
    Function,
    /// The next state f(x*, u*) + v.
    NextState,
}

/// Mixtures at all points.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Prediction {
    n_x: usize,
    n_points: usize,
    weights: Vec<f64>,
    /// (draw, point, dimension).
    means: Vec<f64>,
    /// (draw, point, dimension, dimension).
    covariances: Vec<f64>,
    /// Points outside what was seen, and so on.
    pub warnings: Vec<Warning>,
}

impl Prediction {
    /// Points.
    pub fn n_points(&self) -> usize {
        self.n_points
    }

    /// State dimensions.
    pub fn n_x(&self) -> usize {
        self.n_x
    }

    /// Weights of the draws.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Mean given draw `j` at point `i`.
    pub fn draw_mean(&self, j: usize, i: usize) -> &[f64] {
        &self.means[(j * self.n_points + i) * self.n_x..][..self.n_x]
    }

    /// Covariance given draw `j` at point `i`, row-major.
    pub fn draw_covariance(&self, j: usize, i: usize) -> &[f64] {
        let size = self.n_x * self.n_x;
        &self.covariances[(j * self.n_points + i) * size..][..size]
    }

    /// Mean of the mixture at point `i`.
    pub fn mean(&self, i: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.n_x];
        for (j, w) in self.weights.iter().enumerate() {
            mean.iter_mut().zip(self.draw_mean(j, i)).for_each(|(sum, value)| *sum += w * value);
        }
        mean
    }

    /// Covariance of the mixture at point `i`, row-major: within the draws and between them.
    pub fn covariance(&self, i: usize) -> Vec<f64> {
        let (n, center) = (self.n_x, self.mean(i));
        let mut covariance = vec![0.0; n * n];
        for (j, w) in self.weights.iter().enumerate() {
            let (mean, within) = (self.draw_mean(j, i), self.draw_covariance(j, i));
            for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
                let between = (mean[a] - center[a]) * (mean[b] - center[b]);
                covariance[a * n + b] += w * (within[a * n + b] + between);
            }
        }
        covariance
    }

    /// Standard deviation of the mixture in dimension `d` at point `i`.
    pub fn sd(&self, i: usize, d: usize) -> f64 {
        self.marginal(i, d).sd()
    }

    /// Dimension `d` at point `i`: quantiles, density, CRPS.
    pub fn marginal(&self, i: usize, d: usize) -> GaussianMixture {
        let draws = 0..self.weights.len();
        GaussianMixture {
            weights: self.weights.clone(),
            means: draws.clone().map(|j| self.draw_mean(j, i)[d]).collect(),
            sds: draws.map(|j| self.draw_covariance(j, i)[d * self.n_x + d].sqrt()).collect(),
        }
    }

    /// Quantile `p` of dimension `d` at point `i`.
    pub fn quantile(&self, i: usize, d: usize, p: f64) -> f64 {
        self.marginal(i, d).quantile(p)
    }

    /// log p(x) of all dimensions together at point `i`; none if a dimension is known without noise (a lag,
    /// or f of a known transition), where there is no density.
    pub fn log_density(&self, i: usize, x: &[f64]) -> Option<f64> {
        let n = self.n_x;
        let terms: Option<Vec<f64>> = (0..self.weights.len())
            .map(|j| {
                let mut chol = self.draw_covariance(j, i).to_vec();
                let mut residual: Vec<f64> = x.iter().zip(self.draw_mean(j, i)).map(|(x, m)| x - m).collect();
                small::cholesky(&mut chol, n)
                    .then(|| self.weights[j].ln() + small::log_gaussian(&chol, n, &mut residual))
            })
            .collect();
        terms.map(|terms| log_sum_exp(&terms))
    }
}

impl Posterior {
    /// Mixtures at the points (x*, u*), one row each; without inputs `u_star` may be empty.
    ///
    /// Given the factors (O(n^3) once for each draw) this costs O(n^2) for each point, draw and state.
    pub fn predict(
        &self,
        x_star: &[Vec<f64>],
        u_star: &[Vec<f64>],
        target: Target,
    ) -> Result<Prediction, Error> {
        let z = self.points(x_star, u_star)?;
        self.predict_at(&z, target)
    }

    /// The same for points z = (x, u) in original units.
    pub fn predict_at(&self, z: &Points, target: Target) -> Result<Prediction, Error> {
        let scaling = self.problem().scaling();
        let (n_x, n_points) = (self.n_x(), z.len());
        self.check_points(z)?;
        let internal = to_internal(scaling, z);
        let mut prediction = Prediction {
            n_x,
            n_points,
            weights: self.weights(),
            means: Vec::with_capacity(self.len() * n_points * n_x),
            covariances: Vec::with_capacity(self.len() * n_points * n_x * n_x),
            warnings: self.coverage_warnings(z),
        };
        for moments in self.moments_of_all(&internal, target == Target::NextState) {
            let moments = moments?;
            let mean = moments.mean.iter().enumerate();
            prediction.means.extend(mean.map(|(i, mean)| scaling.x.to_original(i % n_x, *mean)));
            prediction.covariances.extend(
                moments
                    .covariance
                    .iter()
                    .enumerate()
                    .map(|(i, value)| value * scaling.x.scale[i / n_x % n_x] * scaling.x.scale[i % n_x]),
            );
        }
        match prediction.means.iter().chain(&prediction.covariances).any(|value| !value.is_finite()) {
            true => Err(Error::data("the mean function is not finite at one of the points")),
            false => Ok(prediction),
        }
    }

    /// f or the next state given each draw, internal units; as many threads as there are cores take draw after draw if
    /// there is enough to do. They come back in order.
    fn moments_of_all(&self, z: &Points, with_noise: bool) -> Vec<Result<Moments, Error>> {
        let of = |j: usize| -> Result<Moments, Error> {
            let mut moments = Moments::default();
            self.function(j)?.evaluate(z, with_noise, &mut moments);
            Ok(moments)
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let n_threads = if self.len() * z.len() < SHARED_FROM { 1 } else { cores.min(self.len()) };
        if n_threads == 1 {
            return (0..self.len()).map(of).collect();
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let taken = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&j| j < self.len());
            std::iter::from_fn(taken).map(|j| (j, of(j))).collect::<Vec<_>>()
        };
        let mut all: Vec<(usize, Result<Moments, Error>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
            let panicked = |_| vec![(0, Err(Error::data("a thread stopped in a user's function")))];
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        all.sort_by_key(|(j, _)| *j);
        all.into_iter().map(|(_, moments)| moments).collect()
    }

    fn points(&self, x_star: &[Vec<f64>], u_star: &[Vec<f64>]) -> Result<Points, Error> {
        let (n_x, n_u) = (self.n_x(), self.n_u());
        if n_u > 0 && u_star.len() != x_star.len() {
            return Err(Error::data(format!(
                "{} points but {} rows of inputs: the model has {n_u} inputs, give them for every point",
                x_star.len(),
                u_star.len()
            )));
        }
        if n_u == 0 && u_star.iter().any(|u| !u.is_empty()) {
            return Err(Error::data("inputs are given but the model has none"));
        }
        let mut z = Points::new(n_x + n_u);
        for (i, x) in x_star.iter().enumerate() {
            let u = u_star.get(i).map_or(&[][..], Vec::as_slice);
            if x.len() != n_x {
                return Err(Error::data(format!("point {i} has {} states, the model has {n_x}", x.len())));
            }
            if u.len() != n_u {
                return Err(Error::data(format!("point {i} has {} inputs, the model has {n_u}", u.len())));
            }
            z.push_parts(x, u);
        }
        Ok(z)
    }

    fn check_points(&self, z: &Points) -> Result<(), Error> {
        let n_z = self.n_x() + self.n_u();
        if z.n_components() != n_z {
            return Err(Error::data(format!("points have {} components, not {n_z}", z.n_components())));
        }
        for c in 0..n_z {
            if let Some(i) = z.column(c).iter().position(|value| !value.is_finite()) {
                return Err(Error::data(format!(
                    "point {i}: {} is {}, not a finite number",
                    self.component_name(c),
                    z.column(c)[i]
                )));
            }
        }
        Ok(())
    }

    /// Smallest and largest value of each component of z = (x, u) that the paths of the draws visited,
    /// original units.
    pub fn visited(&self) -> Vec<(f64, f64)> {
        let (n_x, n_u) = (self.n_x(), self.n_u());
        let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); n_x + n_u];
        let mut see = |c: usize, value: f64| {
            let (low, high) = &mut ranges[c];
            (*low, *high) = (low.min(value), high.max(value));
        };
        for draw in self.draws() {
            for (i, value) in draw.paths.iter().flat_map(|path| path.iter().enumerate()) {
                see(i % n_x, *value);
            }
        }
        for sequence in self.problem().record().sequences() {
            (0..n_u).for_each(|c| sequence.input(c).for_each(|value| see(n_x + c, value)));
        }
        ranges
    }

    /// What to say of points outside what was seen.
    pub(crate) fn coverage_warnings(&self, z: &Points) -> Vec<Warning> {
        let scaling = self.problem().scaling();
        let mut warnings = Vec::new();
        for (c, (low, high)) in self.visited().into_iter().enumerate() {
            // A tenth of the range beyond its ends is not worth a word.
            let slack = 0.1 * (high - low);
            let outside = |value: &&f64| **value < low - slack || **value > high + slack;
            if let Some(first) = z.column(c).iter().position(|value| outside(&value)) {
                let n_points = z.column(c).iter().filter(outside).count();
                let component = self.component_name(c);
                warnings.push(Warning::Extrapolation { component, n_points, first, low, high });
            }
            if let Some(BasisChoice::Hilbert(choice)) = self.problem().basis() {
                let beyond = |value: &&f64| {
                    let internal = (**value - scaling.z_shift(c)) / scaling.z_scale(c);
                    (internal - choice.center[c]).abs() >= choice.half_width[c]
                };
                if let Some(first) = z.column(c).iter().position(|value| beyond(&value)) {
                    let n_points = z.column(c).iter().filter(beyond).count();
                    let component = self.component_name(c);
                    warnings.push(Warning::OutsideBox { component, n_points, first });
                }
            }
        }
        warnings
    }
}
