//! Draws from a Gaussian process prior as finite sums of waves, for any of our kernels.
//!
//! ```text
//! g(z) = sum_i a_i prod(z) cos(omega_i . z + b_i),  a_i ~ N(0, 2 sigma^2 / M),  b_i ~ U(0, 2 pi)
//! ```
//!
//! with frequencies omega_i from the spectral distribution of the kernel (random Fourier features; Rahimi, Recht 2007).
//! Every function has frequencies of its own, so over functions the covariance is the kernel's exactly, and only
//! the Gaussian shape of the joint distribution is approximate, with error O(1 / M). Linear and constant parts are
//! exact. Products of stationary kernels add their frequencies; products with linear kernels multiply the waves by
//! components of z.

use std::f64::consts::PI;

use pulp::Simd;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::error::Error;
use crate::kernel::Kernel;
use crate::linalg::simd::{Vectorised, dispatch, multiply_add};
use crate::points::Points;

/// One draw of a function; evaluation costs O(waves) and no allocation.
#[derive(Clone, Debug)]
pub(crate) struct PriorDraw {
    parts: Vec<Part>,
}

/// Waves that are multiplied by the same components of z.
#[derive(Clone, Debug)]
struct Part {
    monomial: Vec<usize>,
    /// Whether only its odd part is meant.
    odd: bool,
    /// Added to the sum of waves.
    constant: f64,
    /// Components of z that the waves depend on, with frequencies (component, wave).
    components: Vec<usize>,
    omega: Vec<f64>,
    phase: Vec<f64>,
    amplitude: Vec<f64>,
    angle: Vec<f64>,
}

/// A product of components of z, with or without stationary kernels.
#[derive(Clone)]
struct Term<'a> {
    variance: f64,
    odd: bool,
    monomial: Vec<usize>,
    stationary: Vec<&'a crate::kernel::Part>,
}

fn expand(kernel: &Kernel) -> Vec<Term<'_>> {
    let one = |variance: f64| Term { variance, odd: false, monomial: Vec::new(), stationary: Vec::new() };
    match kernel {
        Kernel::Part(part) => match part.features() {
            Some(features) => features
                .into_iter()
                .map(|feature| Term {
                    monomial: feature.component.into_iter().collect(),
                    ..one(feature.variance)
                })
                .collect(),
            None => vec![Term { stationary: vec![part], ..one(part.variance()) }],
        },
        Kernel::Sum(parts) => parts.iter().flat_map(expand).collect(),
        Kernel::Odd(kernel) => expand(kernel).into_iter().map(|term| Term { odd: true, ..term }).collect(),
        Kernel::Product(parts) => parts.iter().fold(vec![one(1.0)], |terms, part| {
            let others = expand(part);
            let product = |a: &Term<'_>, b: &Term<'_>| a.variance * b.variance;
            let multiplied = terms.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
            // The parts live in the kernel, not in the lists that are multiplied here.
            let multiplied: Vec<_> = multiplied
                .map(|(a, b)| {
                    (
                        product(a, b),
                        [&a.monomial[..], &b.monomial].concat(),
                        [&a.stationary[..], &b.stationary].concat(),
                    )
                })
                .collect();
            multiplied
                .into_iter()
                .map(|(variance, monomial, stationary)| Term { variance, odd: false, monomial, stationary })
                .collect()
        }),
    }
}

/// For a kernel that is neither stationary nor of finitely many features.
fn no_waves(kind: &str) -> Error {
    let message = format!(
        "functions with the {kind} kernel cannot be drawn as sums of waves: use a basis of inducing inputs, such as fic(30)"
    );
    Error::model("kernel", message)
}

impl PriorDraw {
    /// A draw with `n_waves` waves for each product of stationary kernels.
    pub(crate) fn new<R: Rng>(
        kernel: &Kernel,
        n_z: usize,
        n_waves: usize,
        rng: &mut R,
    ) -> Result<Self, Error> {
        let parts = expand(kernel).into_iter().map(|term| {
            let mut part = Part {
                monomial: term.monomial,
                odd: term.odd,
                constant: 0.0,
                components: Vec::new(),
                omega: Vec::new(),
                phase: Vec::new(),
                amplitude: Vec::new(),
                angle: Vec::new(),
            };
            if term.stationary.is_empty() {
                part.constant = term.variance.sqrt() * rng.sample::<f64, _>(StandardNormal);
                return Ok(part);
            }
            let mut by_wave = vec![0.0; n_waves * n_z];
            for omega in by_wave.chunks_exact_mut(n_z) {
                if let Some(part) = term.stationary.iter().find(|part| !part.add_frequency(rng, omega)) {
                    return Err(no_waves(part.kind.title()));
                }
                part.phase.push(rng.random_range(0.0..2.0 * PI));
                let scale = (2.0 * term.variance / n_waves as f64).sqrt();
                part.amplitude.push(scale * rng.sample::<f64, _>(StandardNormal));
            }
            part.components =
                (0..n_z).filter(|&c| by_wave.chunks_exact(n_z).any(|omega| omega[c] != 0.0)).collect();
            for &c in &part.components {
                part.omega.extend(by_wave.chunks_exact(n_z).map(|omega| omega[c]));
            }
            part.angle = vec![0.0; n_waves];
            Ok(part)
        });
        Ok(Self { parts: parts.collect::<Result<_, _>>()? })
    }

    /// Adds g(z_i) to `out[i * stride + offset]`.
    pub(crate) fn add(&mut self, z: &Points, stride: usize, offset: usize, out: &mut [f64]) {
        for part in &mut self.parts {
            for i in 0..z.len() {
                let value = if part.odd {
                    0.5 * (part.value(z, i, 1.0) - part.value(z, i, -1.0))
                } else {
                    part.value(z, i, 1.0)
                };
                out[i * stride + offset] += value;
            }
        }
    }
}

impl Part {
    /// At sign z_i.
    fn value(&mut self, z: &Points, i: usize, sign: f64) -> f64 {
        let monomial: f64 = self.monomial.iter().map(|&c| sign * z.column(c)[i]).product();
        let mut sum = self.constant;
        if !self.amplitude.is_empty() {
            let n = self.amplitude.len();
            self.angle.copy_from_slice(&self.phase);
            for (&c, omega) in self.components.iter().zip(self.omega.chunks_exact(n)) {
                let z = sign * z.column(c)[i];
                self.angle.iter_mut().zip(omega).for_each(|(angle, omega)| *angle += omega * z);
            }
            sum += dispatch(Waves { amplitude: &self.amplitude, angle: &mut self.angle });
        }
        monomial * sum
    }
}

struct Waves<'a> {
    amplitude: &'a [f64],
    angle: &'a mut [f64],
}

impl Vectorised for Waves<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        for angle in self.angle.iter_mut() {
            *angle = cosine::<S>(*angle);
        }
        crate::linalg::simd::dot_inline(simd, self.amplitude, self.angle)
    }
}

/// cos(a) with absolute error of about 1e-15 (1 + |a|), free of branches: cos(2 pi r) = sin(2 pi (1/4 - |r|)) with
/// |r| <= 1/2, and a Taylor polynomial of degree 19.
#[inline(always)]
fn cosine<S: Simd>(a: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const TAYLOR: [f64; 10] = {
        let mut terms = [1.0; 10];
        let mut n = 1;
        while n < 10 {
            terms[n] = -terms[n - 1] / ((2 * n) * (2 * n + 1)) as f64;
            n += 1;
        }
        terms
    };
    let turns = a * (0.5 / PI);
    let r = turns - ((turns + ROUND) - ROUND);
    let x = 2.0 * PI * (0.25 - r.abs());
    let square = x * x;
    let mut polynomial = TAYLOR[9];
    for n in (0..9).rev() {
        polynomial = multiply_add::<S>(polynomial, square, TAYLOR[n]);
    }
    x * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::shapes_and_compositions;
    use crate::random::{Purpose, stream};

    #[test]
    fn cosine_agrees_with_the_standard_library() {
        for i in -2000..2000 {
            let a = 0.037 * f64::from(i);
            let mut angle = [a];
            let value = dispatch(Waves { amplitude: &[1.0], angle: &mut angle });
            assert!((value - a.cos()).abs() < 1e-13, "{a}");
        }
    }

    /// Every kernel: the covariance of 20,000 draws at three points, |z| <= 5. Seen failing with Student-t of
    /// twice the degrees of freedom, with the phase left out, and with one Poisson variate for a periodic kernel.
    #[test]
    fn covariance_over_draws_is_the_kernel() {
        let periodic = Kernel::periodic(vec![1], 0.7, &[0.9], &[1.7]);
        let mut kernels = shapes_and_compositions();
        kernels.push(periodic);
        let rows = [[0.2, -0.5], [0.9, 0.4], [-1.0, 1.1]];
        let z = Points::from_rows(2, rows.iter().map(|row| &row[..]));
        for (k, kernel) in kernels.iter().enumerate() {
            let n = 20_000;
            let mut sums = [[(0.0, 0.0); 3]; 3];
            for i in 0..n {
                let mut rng = stream(5, 0, Purpose::Posterior, k as u64, i);
                let mut f = [0.0; 3];
                PriorDraw::new(kernel, 2, 8, &mut rng).unwrap().add(&z, 1, 0, &mut f);
                for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                    let product = f[a] * f[b];
                    sums[a][b].0 += product;
                    sums[a][b].1 += product * product;
                }
            }
            for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                let mean = sums[a][b].0 / n as f64;
                let error = ((sums[a][b].1 / n as f64 - mean * mean) / n as f64).sqrt();
                let z_score = (mean - kernel.value(&rows[a], &rows[b])) / error;
                assert!(z_score.abs() < 5.0, "{kernel:?} {a} {b} {z_score}");
            }
        }
    }
}
