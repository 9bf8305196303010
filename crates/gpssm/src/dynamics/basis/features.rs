//! Whitened features of one state dimension.

use std::sync::Arc;

use super::fourier::FourierBasis;
use super::hilbert::HilbertBasis;
use super::inducing::InducingBasis;
use crate::kernel::{KERNELS, Kernel};
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::simd::dot;
use crate::points::Points;

/// What was chosen once for a run: it is part of the model, not of theta.
#[derive(Clone, Debug, PartialEq)]
pub enum BasisChoice {
    /// Fully independent conditional (the paper's section 4) on inducing inputs.
    Fic(Arc<Points>),
    /// The same without its correction of the variance.
    Dtc(Arc<Points>),
    /// Laplace eigenfunctions on a box.
    Hilbert(Arc<super::hilbert::HilbertChoice>),
    /// Random Fourier features.
    Fourier(Arc<super::fourier::FourierChoice>),
}

impl BasisChoice {
    /// Functions for each kernel of a sum.
    pub fn n_functions(&self) -> usize {
        match self {
            Self::Fic(points) | Self::Dtc(points) => points.len(),
            Self::Hilbert(choice) => choice.n_functions,
            Self::Fourier(choice) => 2 * choice.radii.len(),
        }
    }
}

/// Why a kernel has no basis of this kind.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BasisError {
    /// Only some kernels have a spectral density of their own.
    #[error(
        "the {kind} kernel has no spectral density here: use {}, or a basis of inducing inputs",
        with_density()
    )]
    NoSpectralDensity {
        /// The kernel.
        kind: String,
    },
    /// The covariance of the inducing inputs is singular.
    #[error("inducing inputs: {0}")]
    Numerical(#[from] NotPositiveDefinite),
}

/// The kernels with a spectral density.
fn with_density() -> String {
    let names = KERNELS.iter().filter(|kernel| kernel.has_spectral_density()).map(|kernel| kernel.short);
    names.collect::<Vec<_>>().join(", ")
}

/// A part of the basis.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// A feature of a kernel that has finitely many.
    Exact {
        /// z_c; none for a constant.
        component: Option<usize>,
        sigma: f64,
    },
    Inducing(InducingBasis),
    Hilbert(HilbertBasis),
    Fourier(FourierBasis),
}

/// The basis of one state dimension with numbers for the kernel's hyper-parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    parts: Vec<Part>,
    n: usize,
}

impl Basis {
    /// The basis of a kernel. Linear and constant parts of a sum enter as exact features.
    pub fn new(kernel: &Kernel, choice: &BasisChoice) -> Result<Self, BasisError> {
        let mut parts = Vec::new();
        let mut rest = Vec::new();
        split(kernel, &mut parts, &mut rest);
        match choice {
            BasisChoice::Fic(points) | BasisChoice::Dtc(points) => {
                if !rest.is_empty() {
                    let corrected = matches!(choice, BasisChoice::Fic(_));
                    parts.push(Part::Inducing(InducingBasis::new(Kernel::Sum(rest), points, corrected)?));
                }
            }
            BasisChoice::Hilbert(choice) => {
                for kernel in &rest {
                    parts.push(Part::Hilbert(HilbertBasis::new(kernel, choice)?));
                }
            }
            BasisChoice::Fourier(choice) => {
                for kernel in &rest {
                    parts.push(Part::Fourier(FourierBasis::new(kernel, choice)?));
                }
            }
        }
        let n = parts.iter().map(Part::len).sum();
        Ok(Self { parts, n })
    }

    /// Number of features.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// phi(z) of all points, row-major (point, feature), and what FIC adds to the noise at each point.
    pub fn evaluate(&self, z: &Points, phi: &mut Vec<f64>, extra: &mut Vec<f64>) {
        phi.clear();
        phi.resize(z.len() * self.n, 0.0);
        extra.clear();
        extra.resize(z.len(), 0.0);
        self.evaluate_at(z, self.n, 0, phi, extra);
    }

    /// The same into rows that are `stride` long, from column `at` on; adds to `extra`.
    pub(crate) fn evaluate_at(
        &self,
        z: &Points,
        stride: usize,
        mut at: usize,
        phi: &mut [f64],
        extra: &mut [f64],
    ) {
        for part in &self.parts {
            part.evaluate(z, stride, at, phi, extra);
            at += part.len();
        }
    }

    /// Adds phi(z) . w to `f` at all points, and what FIC adds to the noise to `extra`, if that is asked for.
    pub(crate) fn add_values(
        &self,
        z: &Points,
        weights: &[f64],
        f: &mut [f64],
        mut extra: Option<&mut [f64]>,
    ) {
        let mut at = 0;
        for part in &self.parts {
            let weights = &weights[at..at + part.len()];
            match (part, extra.as_deref_mut()) {
                (Part::Inducing(basis), None) => basis.add_means(z, weights, f),
                (part, extra) => part.add_values(z, weights, f, extra),
            }
            at += part.len();
        }
    }

    /// The basis with amplitude one of every feature, and the amplitudes: phi_j = a_j psi_j. A length-scale of Hilbert-space
    /// functions and all numbers of linear and constant kernels are amplitudes alone.
    pub(crate) fn unit(mut self) -> (Self, Vec<f64>) {
        let amplitudes = self.parts.iter_mut().flat_map(Part::take_amplitudes).collect();
        (self, amplitudes)
    }

    /// Exact features, of linear and constant kernels: which they are, and their amplitudes.
    pub(crate) fn exact_features(&self) -> impl Iterator<Item = (usize, f64)> {
        let starts = self.parts.iter().scan(0, |at, part| {
            *at += part.len();
            Some(*at - part.len())
        });
        self.parts.iter().zip(starts).filter_map(|(part, at)| match part {
            Part::Exact { sigma, .. } => Some((at, *sigma)),
            _ => None,
        })
    }

    /// Whether the noise differs from point to point.
    pub(crate) fn is_corrected(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Inducing(basis) if basis.is_corrected()))
    }

    /// Jitter that had to be added to the covariance of the inducing inputs, relative to its diagonal.
    pub fn relative_jitter(&self) -> f64 {
        let jitter =
            |part: &Part| if let Part::Inducing(basis) = part { basis.relative_jitter() } else { 0.0 };
        self.parts.iter().map(jitter).fold(0.0, f64::max)
    }
}

impl Part {
    /// Adds phi(z) . w to `f`, and to `extra` what it adds to the noise.
    fn add_values(&self, z: &Points, weights: &[f64], f: &mut [f64], extra: Option<&mut [f64]>) {
        match self {
            Self::Exact { component: Some(c), sigma } => {
                let slope = sigma * weights[0];
                f.iter_mut().zip(z.column(*c)).for_each(|(f, z)| *f += slope * z);
            }
            Self::Exact { sigma, .. } => f.iter_mut().for_each(|f| *f += sigma * weights[0]),
            Self::Hilbert(basis) => basis.add_values(z, weights, f),
            Self::Inducing(_) | Self::Fourier(_) => {
                let mut phi = vec![0.0; z.len() * self.len()];
                self.evaluate(z, self.len(), 0, &mut phi, extra.unwrap_or_default());
                for (f, phi) in f.iter_mut().zip(phi.chunks_exact(self.len())) {
                    *f += dot(phi, weights);
                }
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Exact { .. } => 1,
            Self::Inducing(basis) => basis.len(),
            Self::Hilbert(basis) => basis.len(),
            Self::Fourier(basis) => basis.len(),
        }
    }

    /// Sets all amplitudes to one; what they were.
    fn take_amplitudes(&mut self) -> Vec<f64> {
        match self {
            Self::Exact { sigma, .. } => vec![std::mem::replace(sigma, 1.0)],
            // Its amplitude enters what it leaves unexplained too.
            Self::Inducing(basis) => vec![1.0; basis.len()],
            Self::Hilbert(basis) => basis.take_amplitudes(),
            Self::Fourier(basis) => basis.take_amplitudes(),
        }
    }

    /// Features of all points into rows that are `stride` long, from column `at` on; adds to `extra`.
    fn evaluate(&self, z: &Points, stride: usize, at: usize, phi: &mut [f64], extra: &mut [f64]) {
        match self {
            Self::Exact { component: Some(c), sigma } => {
                for (i, z) in z.column(*c).iter().enumerate() {
                    phi[i * stride + at] = sigma * z;
                }
            }
            Self::Exact { sigma, .. } => (0..z.len()).for_each(|i| phi[i * stride + at] = *sigma),
            Self::Inducing(basis) => basis.evaluate(z, stride, at, phi, extra),
            Self::Hilbert(basis) => basis.evaluate(z, stride, at, phi),
            Self::Fourier(basis) => basis.evaluate(z, stride, at, phi),
        }
    }
}

/// The exact features of a kernel's linear and constant parts, and the sum of its other parts.
pub(crate) fn without_exact_parts(kernel: &Kernel) -> (Basis, Kernel) {
    let (mut parts, mut rest) = (Vec::new(), Vec::new());
    split(kernel, &mut parts, &mut rest);
    let n = parts.len();
    (Basis { parts, n }, Kernel::Sum(rest))
}

/// Takes sums apart: exact features into `parts`, the other kernels into `rest`.
fn split(kernel: &Kernel, parts: &mut Vec<Part>, rest: &mut Vec<Kernel>) {
    match kernel {
        Kernel::Sum(kernels) => kernels.iter().for_each(|kernel| split(kernel, parts, rest)),
        Kernel::Part(part) => {
            match part.features() {
                Some(features) => parts.extend(features.into_iter().map(|feature| Part::Exact {
                    component: feature.component,
                    sigma: feature.variance.sqrt(),
                })),
                None => rest.push(kernel.clone()),
            }
        }
        other => rest.push(other.clone()),
    }
}
