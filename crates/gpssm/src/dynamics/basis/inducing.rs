//! phi(z) = L_UU^{-1} k(U, z): inducing inputs U, as FIC or DTC.
//!
//! In this whitened form the paper's formulas with P = (K_UU + ...)^{-1} keep their digits however close
//! inducing inputs lie together.

use super::features::BasisError;
use crate::kernel::{Cross, Kernel, Scratch};
use crate::linalg::dense::Dense;
use crate::linalg::panels::{TriangularPanels, padded};
use crate::linalg::simd::dot;
use crate::points::Points;

/// Jitter that is tried after none, relative to the diagonal; each further try takes a hundred times more.
const RELATIVE_JITTER: f64 = 1e-10;

/// Inducing inputs with the factor of their covariance.
#[derive(Clone, Debug)]
pub struct InducingBasis {
    kernel: Kernel,
    points: std::sync::Arc<Points>,
    factor: TriangularPanels,
    corrected: bool,
    relative_jitter: f64,
}

impl PartialEq for InducingBasis {
    /// The factor follows from the rest.
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel && self.corrected == other.corrected && self.points == other.points
    }
}

impl InducingBasis {
    /// Factors K_UU, with as little jitter as it takes.
    pub fn new(kernel: Kernel, points: &std::sync::Arc<Points>, corrected: bool) -> Result<Self, BasisError> {
        let n = points.len();
        let mut scratch = Scratch::default();
        let mut dense = Dense::default();
        let mut relative_jitter = 0.0;
        loop {
            super::super::path_density::fill_covariance(
                std::slice::from_ref(&kernel),
                &[0.0],
                points,
                &mut dense,
                &mut scratch,
            );
            for i in 0..n {
                *dense.get_mut(i, i) *= 1.0 + relative_jitter;
            }
            match dense.factor() {
                Ok(()) => break,
                Err(error) if relative_jitter > 1e-5 => return Err(error.into()),
                Err(_) => relative_jitter = (100.0 * relative_jitter).max(RELATIVE_JITTER),
            }
        }
        let mut factor = TriangularPanels::with_capacity(n);
        factor.extend_from(&dense, n);
        Ok(Self { kernel, points: std::sync::Arc::clone(points), factor, corrected, relative_jitter })
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether what the inducing inputs leave unexplained enters the noise.
    pub(super) fn is_corrected(&self) -> bool {
        self.corrected
    }

    pub(super) fn relative_jitter(&self) -> f64 {
        self.relative_jitter
    }

    /// Adds phi(z) . w = k(z, U) L_UU^{-T} w to `f` at all points: no solve for each of them.
    pub(super) fn add_means(&self, z: &Points, weights: &[f64], f: &mut [f64]) {
        let n = self.len();
        let mut coefficients = weights.to_vec();
        self.factor.solve_transposed(&mut coefficients);
        let column = padded(n);
        let mut columns = vec![0.0; column * z.len()];
        let all: Vec<usize> = (0..z.len()).collect();
        let cross = Cross { points: &self.points, range: 0..n, at: z, which: &all };
        self.kernel.rows(&cross, &mut columns, column, &mut Scratch::default());
        for (f, k) in f.iter_mut().zip(columns.chunks_exact(column)) {
            *f += dot(&k[..n], &coefficients);
        }
    }

    pub(super) fn evaluate(
        &self,
        z: &Points,
        stride: usize,
        offset: usize,
        phi: &mut [f64],
        extra: &mut [f64],
    ) {
        let n = self.len();
        let column = padded(n);
        let mut columns = vec![0.0; column * z.len()];
        let mut scratch = Scratch::default();
        let all: Vec<usize> = (0..z.len()).collect();
        let cross = Cross { points: &self.points, range: 0..n, at: z, which: &all };
        self.kernel.rows(&cross, &mut columns, column, &mut scratch);
        let mut at = vec![0.0; z.n_components()];
        self.factor.solve(n, &mut columns, column, z.len());
        for (i, values) in columns.chunks_exact(column).enumerate() {
            phi[i * stride + offset..i * stride + offset + n].copy_from_slice(&values[..n]);
            if self.corrected {
                z.get(i, &mut at);
                let explained: f64 = values[..n].iter().map(|v| v * v).sum();
                // What the inducing inputs leave unexplained; rounding must not make it negative.
                extra[i] += (self.kernel.diagonal(&at) - explained).max(0.0);
            }
        }
    }
}
