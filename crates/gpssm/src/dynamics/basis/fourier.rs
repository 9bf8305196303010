//! Random Fourier features (Rahimi, Recht 2007): pairs sqrt(sigma^2 / m) (cos(omega . z), sin(omega . z)) with
//! frequencies from the kernel's spectral distribution, one draw for the whole run.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::features::BasisError;
use super::hilbert::{of_odd_part, refused};
use crate::kernel::Kernel;
use crate::kernel::radial::Spectrum;
use crate::points::Points;

/// Draws from which the frequencies of any kernel are made: numbers in (0, 1).
///
/// They are chosen once and do not depend on theta: length-scales divide frequencies, so a feature moves
/// smoothly when they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FourierChoice {
    /// Uniforms for the directions, row-major (frequency, component of z).
    pub directions: Vec<f64>,
    /// For each frequency the standard normals whose squares make its chi-square, for Matérn kernels.
    pub radii: Vec<[f64; 5]>,
    /// Components of z.
    pub n_components: usize,
}

/// The features of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct FourierBasis {
    components: Vec<usize>,
    /// Row-major (frequency, component).
    omega: Vec<f64>,
    scale: f64,
    /// Sines alone.
    odd: bool,
}

impl FourierBasis {
    /// Frequencies of a stationary kernel: normal for the squared exponential, Student-t with 2 nu degrees of
    /// freedom for Matérn nu.
    pub fn new(kernel: &Kernel, choice: &FourierChoice) -> Result<Self, BasisError> {
        let (part, radial, odd) = of_odd_part(kernel)?;
        let components = &part.components;
        let dof = match radial.shape.spectrum() {
            Spectrum::Normal => None,
            Spectrum::StudentT { dof } => Some(dof),
            Spectrum::Gamma { .. } => return Err(refused(part.kind.title())),
        };
        let normal = Normal::standard();
        let mut omega = Vec::with_capacity(choice.radii.len() * components.len());
        for (directions, radii) in choice.directions.chunks_exact(choice.n_components).zip(&choice.radii) {
            let stretch = dof.map_or(1.0, |dof: usize| {
                let chi_square: f64 = radii[..dof].iter().map(|n| n * n).sum();
                (dof as f64 / chi_square).sqrt()
            });
            for (&c, ell) in components.iter().zip(radial.ell) {
                omega.push(normal.inverse_cdf(directions[c]) * stretch / ell);
            }
        }
        let scale = (radial.variance / choice.radii.len() as f64).sqrt();
        Ok(Self { components: components.clone(), omega, scale, odd })
    }

    pub(super) fn len(&self) -> usize {
        self.each() * self.omega.len() / self.components.len()
    }

    /// Sets the amplitude of all features to one; what it was for each of them.
    pub(super) fn take_amplitudes(&mut self) -> Vec<f64> {
        vec![std::mem::replace(&mut self.scale, 1.0); self.len()]
    }

    /// Features of a frequency.
    fn each(&self) -> usize {
        if self.odd { 1 } else { 2 }
    }

    pub(super) fn evaluate(&self, z: &Points, stride: usize, offset: usize, phi: &mut [f64]) {
        let d = self.components.len();
        for i in 0..z.len() {
            let row = &mut phi[i * stride + offset..i * stride + offset + self.len()];
            for (pair, omega) in row.chunks_exact_mut(self.each()).zip(self.omega.chunks_exact(d)) {
                let angle: f64 = omega.iter().zip(&self.components).map(|(w, &c)| w * z.column(c)[i]).sum();
                let (sine, cosine) = (angle % (2.0 * PI)).sin_cos();
                pair[0] = self.scale * if self.odd { sine } else { cosine };
                if let Some(second) = pair.get_mut(1) {
                    *second = self.scale * sine;
                }
            }
        }
    }
}
