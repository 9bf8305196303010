//! Kernels that fall with the scaled distance r, r^2 = sum_c ((z_c - z'_c) / ell_c)^2: squared exponential, Matérn, rational
//! quadratic. Their numbers are those of the shape, the signal variance, and one length-scale for each component (ARD).

mod rows;

use std::f64::consts::PI;

use rand::{Rng, RngExt};
use rand_distr::{ChiSquared, Distribution, Gamma, StandardNormal};
use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;

use super::descriptor::{Descriptor, KernelParameter, Median, Role, Unit};
use super::part::{Covariance, Pair, Row};
use crate::linalg::simd::dispatch;

const PARAMETERS: &[KernelParameter] = &[KernelParameter::SIGMA_F, KernelParameter::ELL];

/// exp(-r^2 / 2).
pub static SQUARED_EXPONENTIAL: Descriptor = Descriptor {
    name: "squared_exponential",
    short: "se",
    aliases: &["rbf"],
    title: "squared exponential",
    formula: "sigma_f^2 exp(-r^2 / 2)",
    parameters: PARAMETERS,
    covariance: &Shape::SquaredExponential,
};

/// Matérn-1/2.
pub static MATERN12: Descriptor = Descriptor {
    name: "matern12",
    short: "matern12",
    aliases: &[],
    title: "Matérn-1/2",
    formula: "sigma_f^2 exp(-r)",
    parameters: PARAMETERS,
    covariance: &Shape::Matern12,
};

/// Matérn-3/2.
pub static MATERN32: Descriptor = Descriptor {
    name: "matern32",
    short: "matern32",
    aliases: &[],
    title: "Matérn-3/2",
    formula: "sigma_f^2 (1 + sqrt(3) r) exp(-sqrt(3) r)",
    parameters: PARAMETERS,
    covariance: &Shape::Matern32,
};

/// Matérn-5/2.
pub static MATERN52: Descriptor = Descriptor {
    name: "matern52",
    short: "matern52",
    aliases: &[],
    title: "Matérn-5/2",
    formula: "sigma_f^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)",
    parameters: PARAMETERS,
    covariance: &Shape::Matern52,
};

/// A mixture of squared exponentials.
pub static RATIONAL_QUADRATIC: Descriptor = Descriptor {
    name: "rational_quadratic",
    short: "rq",
    aliases: &[],
    title: "rational quadratic",
    formula: "sigma_f^2 (1 + r^2 / (2 alpha))^(-alpha)",
    parameters: &[
        KernelParameter {
            name: "alpha",
            role: Role::Shape,
            unit: Unit::None,
            each: false,
            median: Median::Units(1.0),
            help: "Weight of the small scales; large values give the squared exponential.",
        },
        KernelParameter::SIGMA_F,
        KernelParameter::ELL,
    ],
    covariance: &Shape::RationalQuadratic { alpha: 1.0 },
};

/// How a kernel falls with the scaled distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// exp(-r^2 / 2).
    SquaredExponential,
    /// exp(-r).
    Matern12,
    /// (1 + sqrt(3) r) exp(-sqrt(3) r).
    Matern32,
    /// (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r).
    Matern52,
    /// (1 + r^2 / (2 alpha))^(-alpha).
    RationalQuadratic {
        /// Weight of the small scales; the squared exponential is its limit for large alpha.
        alpha: f64,
    },
}

/// How the frequencies of a shape are distributed: normal, stretched by a random factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spectrum {
    /// Not stretched.
    Normal,
    /// Student-t: stretched by sqrt(dof / chi^2_dof).
    StudentT {
        /// Degrees of freedom.
        dof: usize,
    },
    /// Stretched by the root of a gamma variate with this shape and mean one.
    Gamma {
        /// Shape.
        shape: f64,
    },
}

impl Shape {
    /// The descriptor, and the numbers of the shape.
    pub fn descriptor(self) -> (&'static Descriptor, Vec<f64>) {
        match self {
            Self::SquaredExponential => (&SQUARED_EXPONENTIAL, vec![]),
            Self::Matern12 => (&MATERN12, vec![]),
            Self::Matern32 => (&MATERN32, vec![]),
            Self::Matern52 => (&MATERN52, vec![]),
            Self::RationalQuadratic { alpha } => (&RATIONAL_QUADRATIC, vec![alpha]),
        }
    }

    /// The shape with its numbers, and the other numbers.
    fn split(self, numbers: &[f64]) -> (Self, &[f64]) {
        match (self, numbers) {
            (Self::RationalQuadratic { .. }, [alpha, rest @ ..]) => {
                (Self::RationalQuadratic { alpha: *alpha }, rest)
            }
            _ => (self, numbers),
        }
    }

    /// Its value and the derivative with respect to r^2 / 2.
    fn value_and_slope(self, r2: f64) -> (f64, f64) {
        match self {
            Self::SquaredExponential => {
                let value = (-0.5 * r2).exp();
                (value, -value)
            }
            Self::Matern12 => {
                let r = r2.sqrt();
                let value = (-r).exp();
                // The kernel has a kink at zero distance; its mean slope there is zero.
                (value, if r > 0.0 { -value / r } else { 0.0 })
            }
            Self::Matern32 => {
                let a = (3.0 * r2).sqrt();
                let decay = (-a).exp();
                (finite_product(1.0 + a, decay), -3.0 * decay)
            }
            Self::Matern52 => {
                let a = (5.0 * r2).sqrt();
                let decay = (-a).exp();
                (finite_product(1.0 + a + a * a / 3.0, decay), -5.0 / 3.0 * finite_product(1.0 + a, decay))
            }
            Self::RationalQuadratic { alpha } => {
                let base = r2 / (2.0 * alpha);
                ((-alpha * base.ln_1p()).exp(), -((-alpha - 1.0) * base.ln_1p()).exp())
            }
        }
    }

    /// How its frequencies are distributed.
    pub(crate) fn spectrum(self) -> Spectrum {
        match self {
            Self::SquaredExponential => Spectrum::Normal,
            Self::Matern12 => Spectrum::StudentT { dof: 1 },
            Self::Matern32 => Spectrum::StudentT { dof: 3 },
            Self::Matern52 => Spectrum::StudentT { dof: 5 },
            Self::RationalQuadratic { alpha } => Spectrum::Gamma { shape: alpha },
        }
    }
}

/// `polynomial * decay`, where no decay wins over an infinite polynomial.
#[inline(always)]
fn finite_product(polynomial: f64, decay: f64) -> f64 {
    if decay == 0.0 { 0.0 } else { polynomial * decay }
}

/// variance * shape(r).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Radial<'a> {
    /// How it falls with distance.
    pub shape: Shape,
    /// Signal variance.
    pub variance: f64,
    /// Length-scales, one for each component.
    pub ell: &'a [f64],
}

impl<'a> Radial<'a> {
    fn new(shape: Shape, numbers: &'a [f64]) -> Self {
        let (shape, rest) = shape.split(numbers);
        let (variance, ell) = rest.split_first().map_or((1.0, rest), |(variance, ell)| (*variance, ell));
        Self { shape, variance, ell }
    }

    /// At a distance along the first component.
    pub(crate) fn value(&self, distance: f64) -> f64 {
        self.variance * self.shape.value_and_slope((distance / self.ell[0]).powi(2)).0
    }

    /// r^2 of a pair.
    fn square(&self, pair: &Pair<'_>) -> f64 {
        pair.iter().zip(self.ell).map(|((z, other), ell)| ((z - other) / ell).powi(2)).sum()
    }

    /// Log spectral density at angular frequencies omega, one for each component; none if it has no closed form here.
    ///
    /// Squared exponential: sigma^2 (2 pi)^(D/2) prod ell exp(-|ell omega|^2 / 2). Matérn nu: sigma^2
    /// 2^D pi^(D/2) Gamma(nu + D/2) (2 nu)^nu / Gamma(nu) prod ell (2 nu + |ell omega|^2)^-(nu + D/2).
    pub(crate) fn log_spectral_density(&self, omega: &[f64]) -> Option<f64> {
        let d = self.ell.len() as f64;
        let square: f64 = self.ell.iter().zip(omega).map(|(ell, omega)| (ell * omega).powi(2)).sum();
        let log_ell: f64 = self.ell.iter().map(|ell| ell.ln()).sum();
        let shape = match self.shape.spectrum() {
            Spectrum::Normal => 0.5 * d * (2.0 * PI).ln() - 0.5 * square,
            Spectrum::StudentT { dof } => {
                let nu = 0.5 * dof as f64;
                d * 2f64.ln() + 0.5 * d * PI.ln() + ln_gamma(nu + 0.5 * d) - ln_gamma(nu)
                    + nu * (2.0 * nu).ln()
                    - (nu + 0.5 * d) * (2.0 * nu + square).ln()
            }
            Spectrum::Gamma { .. } => return None,
        };
        Some(self.variance.ln() + log_ell + shape)
    }
}

impl Covariance for Shape {
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64 {
        let radial = Radial::new(*self, numbers);
        radial.variance * radial.shape.value_and_slope(radial.square(pair)).0
    }

    fn diagonal(&self, numbers: &[f64], _: &[usize], _: &[f64]) -> f64 {
        Radial::new(*self, numbers).variance
    }

    fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
        let radial = Radial::new(*self, numbers);
        let (_, slope) = radial.shape.value_and_slope(radial.square(pair));
        for ((&c, (z, other)), ell) in pair.components.iter().zip(pair.iter()).zip(radial.ell) {
            gradient[c] += factor * radial.variance * slope * (z - other) / (ell * ell);
        }
        true
    }

    fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
        Radial::new(*self, numbers).row(row, false, out);
    }

    fn radial<'a>(&self, numbers: &'a [f64]) -> Option<Radial<'a>> {
        Some(Radial::new(*self, numbers))
    }

    fn add_frequency(
        &self,
        numbers: &[f64],
        components: &[usize],
        rng: &mut dyn Rng,
        omega: &mut [f64],
    ) -> bool {
        let radial = Radial::new(*self, numbers);
        let stretch = match radial.shape.spectrum() {
            Spectrum::Normal => 1.0,
            Spectrum::StudentT { dof } => {
                let dof = dof as f64;
                ChiSquared::new(dof).map_or(1.0, |chi: ChiSquared<f64>| (dof / chi.sample(rng)).sqrt())
            }
            Spectrum::Gamma { shape } => {
                Gamma::new(shape, 1.0 / shape).map_or(1.0, |gamma: Gamma<f64>| gamma.sample(rng).sqrt())
            }
        };
        for (&c, ell) in components.iter().zip(radial.ell) {
            omega[c] += stretch * rng.sample::<f64, _>(StandardNormal) / ell;
        }
        true
    }
}

impl Radial<'_> {
    /// k(z_i, z') of many points, or that of the odd part.
    pub(super) fn row(&self, row: &Row<'_>, odd: bool, out: &mut [f64]) {
        dispatch(rows::Rows { radial: *self, row, odd, out });
    }
}
