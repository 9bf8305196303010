//! Bayesian linear regression on whitened features: what a finite-basis prior over f comes to.
//!
//! A pair (z, x') says p things of the weights of its block, each with unit noise once it is whitened by the
//! factor of N(z) = Q + diag(what FIC leaves unexplained): rows H with target rho, rho = H w + e. Statistics add
//! over pairs, A = sum H' H, b = sum H' rho, and
//!
//! ```text
//! log p = -1/2 (n log 2 pi + log |I + A| + sum rho^2 - b' (I + A)^{-1} b) - sum log |L_N|
//! ```

use std::f64::consts::PI;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::features::{Basis, BasisChoice, BasisError};
use crate::dynamics::block::Pairs;
use crate::kernel::Kernel;
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::linalg::panels::{TriangularPanels, padded};
use crate::linalg::rotations::{Rotations, rank_one_update};
use crate::linalg::small;
use crate::points::Points;

/// The features of p state dimensions that share one set of weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Design {
    bases: Vec<Basis>,
    /// Process noise covariance, row-major.
    noise: Vec<f64>,
    /// Its factor.
    noise_chol: Vec<f64>,
    n_weights: usize,
    /// Whether the noise differs from point to point.
    corrected: bool,
}

/// What stands before unit features and unit noise.
pub(crate) struct Amplitudes {
    features: Vec<f64>,
    noise_sd: f64,
}

/// Whitened rows of some points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// (point, dimension, weight).
    pub rows: Vec<f64>,
    /// Factors of N(z), (point, p, p).
    pub chol: Vec<f64>,
    extra: Vec<f64>,
}

impl Design {
    pub(crate) fn new(kernels: &[Kernel], choice: &BasisChoice, noise: Vec<f64>) -> Result<Self, BasisError> {
        let bases = kernels.iter().map(|kernel| Basis::new(kernel, choice)).collect::<Result<Vec<_>, _>>()?;
        let n_weights = bases.iter().map(Basis::len).sum();
        let corrected = bases.iter().any(Basis::is_corrected);
        let mut noise_chol = noise.clone();
        if !small::cholesky(&mut noise_chol, bases.len()) {
            return Err(NotPositiveDefinite { order: bases.len(), index: 0 }.into());
        }
        Ok(Self { bases, noise, noise_chol, n_weights, corrected })
    }

    /// The same features with amplitude one, and unit noise if that is a number that all points share; and the amplitudes
    /// and noise that were taken out, for `Statistics::rescaled`.
    pub(crate) fn unit(self) -> (Self, Amplitudes) {
        let mut amplitudes = Vec::with_capacity(self.n_weights);
        let bases = self.bases.into_iter().map(|basis| {
            let (basis, own) = basis.unit();
            amplitudes.extend(own);
            basis
        });
        let mut unit = Self { bases: bases.collect(), ..self };
        let mut noise_sd = 1.0;
        if unit.p() == 1 && !unit.corrected {
            noise_sd = unit.noise_chol[0];
            (unit.noise[0], unit.noise_chol[0]) = (1.0, 1.0);
        }
        (unit, Amplitudes { features: amplitudes, noise_sd })
    }

    /// State dimensions.
    pub(crate) fn p(&self) -> usize {
        self.bases.len()
    }

    /// Weights of all dimensions.
    pub(crate) fn n_weights(&self) -> usize {
        self.n_weights
    }

    /// Exact features of all dimensions, and their amplitudes.
    pub(crate) fn exact_features(&self) -> Vec<(usize, f64)> {
        let mut offset = 0;
        let of_dimension = self.bases.iter().flat_map(|basis| {
            offset += basis.len();
            let start = offset - basis.len();
            basis.exact_features().map(move |(at, sigma)| (start + at, sigma))
        });
        of_dimension.collect()
    }

    /// Rows H before they are whitened, (point, dimension, weight), and what FIC adds to the noise, (point,
    /// dimension).
    pub(crate) fn features(&self, z: &Points, rows: &mut Vec<f64>, extra: &mut Vec<f64>) {
        let (p, w) = (self.p(), self.n_weights);
        rows.clear();
        rows.resize(z.len() * p * w, 0.0);
        extra.clear();
        extra.resize(z.len() * p, 0.0);
        if let [basis] = &self.bases[..] {
            return basis.evaluate_at(z, w, 0, rows, extra);
        }
        let mut more = vec![0.0; z.len()];
        let mut offset = 0;
        for (d, basis) in self.bases.iter().enumerate() {
            more.fill(0.0);
            basis.evaluate_at(z, p * w, d * w + offset, rows, &mut more);
            more.iter().enumerate().for_each(|(i, more)| extra[i * p + d] = *more);
            offset += basis.len();
        }
    }

    /// f(z) - m(z) of all points given the weights, row-major (point, dimension), and what FIC adds to the
    /// noise.
    pub(crate) fn values(&self, z: &Points, weights: &[f64], f: &mut Vec<f64>, extra: &mut Vec<f64>) {
        extra.clear();
        extra.resize(z.len() * self.p(), 0.0);
        self.add_values(z, weights, f, Some(extra));
    }

    /// The first of these alone, without a solve for each point.
    pub(crate) fn means(&self, z: &Points, weights: &[f64], f: &mut Vec<f64>) {
        self.add_values(z, weights, f, None);
    }

    fn add_values(&self, z: &Points, weights: &[f64], f: &mut Vec<f64>, mut extra: Option<&mut Vec<f64>>) {
        let (p, n) = (self.p(), z.len());
        f.clear();
        f.resize(n * p, 0.0);
        if let [basis] = &self.bases[..] {
            return basis.add_values(z, weights, f, extra.map(Vec::as_mut_slice));
        }
        let (mut own, mut more) = (vec![0.0; n], vec![0.0; n]);
        let mut offset = 0;
        for (d, basis) in self.bases.iter().enumerate() {
            own.fill(0.0);
            more.fill(0.0);
            let wanted = extra.is_some().then_some(&mut more[..]);
            basis.add_values(z, &weights[offset..offset + basis.len()], &mut own, wanted);
            own.iter().enumerate().for_each(|(i, own)| f[i * p + d] = *own);
            if let Some(extra) = extra.as_deref_mut() {
                more.iter().enumerate().for_each(|(i, more)| extra[i * p + d] = *more);
            }
            offset += basis.len();
        }
    }

    /// Factors of N(z) = Q + diag(extra), (point, p, p), of which `extra` tells how many there are.
    pub(crate) fn noise_factors(
        &self,
        extra: &[f64],
        chol: &mut Vec<f64>,
    ) -> Result<(), NotPositiveDefinite> {
        let p = self.p();
        chol.clear();
        if !self.corrected {
            extra.chunks_exact(p).for_each(|_| chol.extend_from_slice(&self.noise_chol));
            return Ok(());
        }
        let mut sound = true;
        for extra in extra.chunks_exact(p) {
            let from = chol.len();
            chol.extend_from_slice(&self.noise);
            extra.iter().enumerate().for_each(|(d, extra)| chol[from + d * p + d] += extra);
            sound &= small::cholesky(&mut chol[from..], p);
        }
        if sound { Ok(()) } else { Err(NotPositiveDefinite { order: p, index: 0 }) }
    }

    /// The factor of Q if that is the noise of every point.
    pub(crate) fn common_noise(&self) -> Option<&[f64]> {
        (!self.corrected).then_some(&self.noise_chol)
    }

    /// Largest jitter of the bases, relative to the diagonal.
    pub(crate) fn relative_jitter(&self) -> f64 {
        self.bases.iter().map(Basis::relative_jitter).fold(0.0, f64::max)
    }

    /// Whitened rows of all points; fails if a noise covariance cannot be factored.
    pub(crate) fn rows(&self, z: &Points, out: &mut Rows) -> Result<(), NotPositiveDefinite> {
        let (p, w) = (self.p(), self.n_weights);
        self.features(z, &mut out.rows, &mut out.extra);
        self.noise_factors(&out.extra, &mut out.chol)?;
        for (rows, chol) in out.rows.chunks_exact_mut(p * w).zip(out.chol.chunks_exact(p * p)) {
            // Row k of L^{-1} H, from the rows before it.
            for k in 0..p {
                let (before, row) = rows.split_at_mut(k * w);
                let row = &mut row[..w];
                for (j, other) in before.chunks_exact(w).enumerate() {
                    row.iter_mut().zip(other).for_each(|(value, other)| *value -= chol[k * p + j] * other);
                }
                let inverse = 1.0 / chol[k * p + k];
                row.iter_mut().for_each(|value| *value *= inverse);
            }
        }
        Ok(())
    }
}

/// Sums over pairs: I + A (lower triangle), b, sum of rho^2 and of log |L_N|, and how many rows.
#[derive(Debug)]
pub(crate) struct Statistics {
    pub gram: Dense,
    pub b: Vec<f64>,
    pub square: f64,
    pub log_noise: f64,
    pub n: usize,
}

/// Points whose features are formed at one time.
const CHUNK: usize = 512;

impl Statistics {
    /// No pairs: I + A = I.
    pub(crate) fn new(n_weights: usize) -> Self {
        let mut gram = Dense::default();
        gram.resize(n_weights);
        for j in 0..n_weights {
            let column = gram.lower_column_mut(j);
            column.fill(0.0);
            column[0] = 1.0;
        }
        Self { gram, b: vec![0.0; n_weights], square: 0.0, log_noise: 0.0, n: 0 }
    }

    /// A alone, to be rescaled.
    pub(super) fn without_prior(n_weights: usize) -> Self {
        let mut statistics = Self::new(n_weights);
        (0..n_weights).for_each(|j| *statistics.gram.get_mut(j, j) = 0.0);
        statistics
    }

    /// What sums over unit features (A alone) are with amplitudes: A becomes I + D A D and b becomes D b.
    pub(super) fn rescaled(&self, Amplitudes { features, noise_sd }: &Amplitudes) -> Self {
        let scale: Vec<f64> = features.iter().map(|a| a / noise_sd).collect();
        let mut rescaled = Self::new(scale.len());
        for (j, own) in scale.iter().enumerate() {
            let column = rescaled.gram.lower_column_mut(j).iter_mut().zip(self.gram.lower_column(j));
            for ((value, unit), other) in column.zip(&scale[j..]) {
                *value += own * unit * other;
            }
        }
        rescaled.b = self.b.iter().zip(&scale).map(|(b, a)| a * b / noise_sd).collect();
        rescaled.square = self.square / (noise_sd * noise_sd);
        rescaled.log_noise = self.log_noise + self.n as f64 * noise_sd.ln();
        rescaled.n = self.n;
        rescaled
    }

    /// Adds the pairs in `range`; `dims` are the block's dimensions.
    pub(crate) fn add(
        &mut self,
        design: &Design,
        dims: &[usize],
        pairs: &Pairs,
        range: std::ops::Range<usize>,
    ) -> Result<(), NotPositiveDefinite> {
        let (p, w) = (design.p(), design.n_weights());
        let mut rows = Rows::default();
        let mut points = Points::new(pairs.points.n_components());
        let mut z = vec![0.0; pairs.points.n_components()];
        let mut target = Vec::new();
        let mut from = range.start;
        while from < range.end {
            let to = range.end.min(from + CHUNK);
            points.clear();
            for s in from..to {
                pairs.points.get(s, &mut z);
                points.push(&z);
            }
            design.rows(&points, &mut rows)?;
            for (i, s) in (from..to).enumerate() {
                let chol = &rows.chol[i * p * p..(i + 1) * p * p];
                pairs.residual(s, dims, &mut target);
                small::solve_lower(chol, p, &mut target);
                self.log_noise += small::log_diagonal(chol, p);
                for (target, row) in target.iter().zip(rows.rows[i * p * w..].chunks_exact(w)) {
                    self.square += target * target;
                    self.b.iter_mut().zip(row).for_each(|(b, h)| *b += h * target);
                }
            }
            self.gram.add_gram(&rows.rows, (to - from) * p);
            self.n += (to - from) * p;
            from = to;
        }
        Ok(())
    }

    /// log p of the pairs with the weights integrated out; the statistics are used up.
    pub(crate) fn log_marginal_likelihood(mut self) -> Result<f64, NotPositiveDefinite> {
        self.gram.factor()?;
        self.gram.solve_lower(&mut self.b, 1);
        let explained: f64 = self.b.iter().map(|b| b * b).sum();
        let quadratic = self.n as f64 * (2.0 * PI).ln() + self.square - explained;
        Ok(-0.5 * quadratic - self.gram.log_diagonal() - self.log_noise)
    }

    /// log N(w; (I + A)^{-1} b, (I + A)^{-1}), the density of weights given the pairs, up to a constant; the statistics are
    /// used up.
    pub(crate) fn log_density_of(mut self, weights: &[f64]) -> Result<f64, NotPositiveDefinite> {
        self.gram.factor()?;
        self.gram.solve_lower(&mut self.b, 1);
        let white = |j: usize| {
            let column = self.gram.lower_column(j).iter().zip(&weights[j..]);
            column.map(|(l, w)| l * w).sum::<f64>() - self.b[j]
        };
        let square: f64 = (0..weights.len()).map(|j| white(j).powi(2)).sum();
        Ok(self.gram.log_diagonal() - 0.5 * square)
    }

    /// A draw of the weights given the pairs, N((I + A)^{-1} b, (I + A)^{-1}).
    pub(crate) fn draw_weights<R: Rng + ?Sized>(
        mut self,
        rng: &mut R,
    ) -> Result<Vec<f64>, NotPositiveDefinite> {
        self.gram.factor()?;
        self.gram.solve_lower(&mut self.b, 1);
        for b in &mut self.b {
            *b += rng.sample::<f64, _>(StandardNormal);
        }
        self.gram.solve_lower_transposed(&mut self.b);
        Ok(self.b)
    }
}

/// The factor L of I + A and L^{-1} b, as they grow pair by pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct WeightFactor {
    pub factor: TriangularPanels,
    pub b: Vec<f64>,
}

impl WeightFactor {
    /// From statistics.
    pub(crate) fn set(&mut self, dense: &mut Dense, b: &[f64]) -> Result<(), NotPositiveDefinite> {
        dense.factor()?;
        let n = dense.order();
        self.factor = TriangularPanels::with_capacity(n);
        self.factor.extend_from(dense, n);
        self.b.clear();
        self.b.extend_from_slice(b);
        dense.solve_lower(&mut self.b, 1);
        Ok(())
    }

    /// Adds one whitened row with its target.
    pub(crate) fn add(&mut self, row: &[f64], target: f64, w: &mut Vec<f64>, rotations: &mut Rotations) {
        let n = row.len();
        w.clear();
        w.extend_from_slice(row);
        w.resize(padded(n), 0.0);
        rank_one_update(&mut self.factor, w, rotations);
        let mut carry = target;
        for (r, b) in self.b.iter_mut().enumerate() {
            let (c, s) = (rotations.cosine[r], rotations.sine[r]);
            (*b, carry) = (c * *b + s * carry, c * carry - s * *b);
        }
    }
}
