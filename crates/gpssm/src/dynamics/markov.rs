//! Transitions whose next state depends on the last one alone: x' = h(x, u) + v with a known function h, and
//! x' = m(z) + phi(z) . w + e with one draw of the weights of a finite basis.

use super::basis::regression::Design;
use super::block::Block;
use super::genealogy::{Birth, Genealogy, Slot};
use super::numerics::Numerics;
use super::predictions::Predictions;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::small;
use crate::points::Points;
use crate::special::LN_2_PI;

/// Dimensions whose transition function has numbers.
pub(crate) struct MarkovBlock {
    dims: Vec<usize>,
    /// The basis and its weights; none if the mean function is all there is.
    drawn: Option<(Design, Vec<f64>)>,
    /// Factor of the noise and half the logarithm of its determinant, if it is the same everywhere.
    common: Option<(Vec<f64>, f64)>,
    /// Mean of the next state of each node; factor and half log determinant unless they are common.
    mean: Vec<f64>,
    chol: Vec<f64>,
    log_scale: Vec<f64>,
    /// log p(x_{1:s} | x_0) of each node's path, where lags lead particles on along the reference.
    log_density: Option<Vec<f64>>,
    f: Vec<f64>,
    extra: Vec<f64>,
    factors: Vec<f64>,
    residual: Vec<f64>,
    n_clamped: u64,
}

impl MarkovBlock {
    /// A known transition: the mean function.
    pub(crate) fn known(dims: &[usize], noise: &[f64], memory: usize) -> Result<Self, NotPositiveDefinite> {
        let mut chol = noise.to_vec();
        if !small::cholesky(&mut chol, dims.len()) {
            return Err(NotPositiveDefinite { order: dims.len(), index: 0 });
        }
        Ok(Self::new(dims, None, Some(chol), memory))
    }

    /// A finite basis with its weights.
    pub(crate) fn drawn(dims: &[usize], design: Design, weights: Vec<f64>, memory: usize) -> Self {
        let common = design.common_noise().map(<[f64]>::to_vec);
        Self::new(dims, Some((design, weights)), common, memory)
    }

    fn new(
        dims: &[usize],
        drawn: Option<(Design, Vec<f64>)>,
        common: Option<Vec<f64>>,
        memory: usize,
    ) -> Self {
        let p = dims.len();
        Self {
            dims: dims.to_vec(),
            drawn,
            common: common.map(|chol| {
                let log_scale = small::log_diagonal(&chol, p);
                (chol, log_scale)
            }),
            mean: Vec::new(),
            chol: Vec::new(),
            log_scale: Vec::new(),
            log_density: (memory > 0).then(Vec::new),
            f: Vec::new(),
            extra: Vec::new(),
            factors: Vec::new(),
            residual: vec![0.0; p],
            n_clamped: 0,
        }
    }

    fn mean(&self, slot: Slot) -> &[f64] {
        &self.mean[slot * self.dims.len()..(slot + 1) * self.dims.len()]
    }

    /// Factor of the noise of a node, and half its log determinant.
    fn noise(&self, slot: Slot) -> (&[f64], f64) {
        let size = self.dims.len() * self.dims.len();
        match &self.common {
            Some((chol, log_scale)) => (chol, *log_scale),
            None => (&self.chol[slot * size..(slot + 1) * size], self.log_scale[slot]),
        }
    }

    /// log p(x | node).
    fn log_next(&self, slot: Slot, x: &[f64], residual: &mut [f64]) -> f64 {
        let p = self.dims.len();
        let (chol, log_scale) = self.noise(slot);
        if let ([d], [sd]) = (&self.dims[..], chol) {
            let residual = (x[*d] - self.mean[slot]) / sd;
            return -0.5 * (residual * residual + LN_2_PI) - log_scale;
        }
        for ((residual, &d), mean) in residual.iter_mut().zip(&self.dims).zip(self.mean(slot)) {
            *residual = x[d] - mean;
        }
        small::solve_lower(chol, p, residual);
        let square: f64 = residual.iter().map(|e| e * e).sum();
        -0.5 * (square + p as f64 * LN_2_PI) - log_scale
    }
}

impl Block for MarkovBlock {
    fn predict(&self, current: &[Slot], out: &mut Predictions) {
        if let [d] = self.dims[..] {
            return current.iter().enumerate().for_each(|(i, &slot)| {
                out.set_scalar(i, d, self.mean[slot], self.noise(slot).0[0]);
            });
        }
        for (i, &slot) in current.iter().enumerate() {
            out.set_block(i, &self.dims, self.mean(slot), self.noise(slot).0);
        }
    }

    fn add_log_futures(&mut self, genealogy: &Genealogy, origins: &[Slot], x_next: &[f64], out: &mut [f64]) {
        let mut residual = std::mem::take(&mut self.residual);
        for ((out, &slot), &origin) in out.iter_mut().zip(genealogy.current()).zip(origins) {
            let since = self.log_density.as_ref().map_or(0.0, |density| density[slot] - density[origin]);
            *out += since + self.log_next(slot, x_next, &mut residual);
        }
        self.residual = residual;
    }

    fn edges(&mut self, births: &[Birth], x: &[f64], n_x: usize) {
        let Some(mut log_density) = self.log_density.take() else { return };
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0);
        log_density.resize(most.max(log_density.len()), 0.0);
        let mut residual = std::mem::take(&mut self.residual);
        for birth in births {
            log_density[birth.slot] = birth.parent.map_or(0.0, |parent| {
                let x = &x[birth.particle * n_x..(birth.particle + 1) * n_x];
                log_density[parent] + self.log_next(parent, x, &mut residual)
            });
        }
        self.residual = residual;
        self.log_density = Some(log_density);
    }

    fn promote(&mut self, _: Slot, _: usize) {}

    fn forget(&mut self, _: &Genealogy) {}

    fn rows(&mut self, _: &Genealogy, births: &[Birth], z: &Points, mean: &[f64], n_x: usize) {
        let p = self.dims.len();
        let most = births.iter().map(|birth| birth.slot + 1).max().unwrap_or(0);
        self.mean.resize((most * p).max(self.mean.len()), 0.0);
        if let Some((design, weights)) = &self.drawn {
            design.values(z, weights, &mut self.f, &mut self.extra);
            if self.common.is_none() {
                self.n_clamped += u64::from(design.noise_factors(&self.extra, &mut self.factors).is_err());
            }
        }
        // A known function is the mean alone.
        self.f.resize(z.len() * p, 0.0);
        for birth in births {
            let i = birth.particle;
            let own = self.mean[birth.slot * p..(birth.slot + 1) * p].iter_mut();
            for ((own, &d), f) in own.zip(&self.dims).zip(&self.f[i * p..(i + 1) * p]) {
                *own = mean[i * n_x + d] + f;
            }
        }
        if self.common.is_none() {
            self.chol.resize((most * p * p).max(self.chol.len()), 0.0);
            self.log_scale.resize(most.max(self.log_scale.len()), 0.0);
            for birth in births {
                let chol = &self.factors[birth.particle * p * p..(birth.particle + 1) * p * p];
                self.chol[birth.slot * p * p..(birth.slot + 1) * p * p].copy_from_slice(chol);
                self.log_scale[birth.slot] = small::log_diagonal(chol, p);
            }
        }
    }

    fn is_markov(&self) -> bool {
        true
    }

    fn numerics(&self) -> Numerics {
        let relative_jitter = self.drawn.as_ref().map_or(0.0, |(design, _)| design.relative_jitter());
        Numerics { clamped: self.n_clamped, relative_jitter, ..Numerics::default() }
    }
}
