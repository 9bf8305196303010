//! Finite-basis models in plain loops, independent of the library: kernels, features, joint densities, draws.
#![allow(dead_code)]

use std::f64::consts::PI;
use std::sync::Arc;

use gpssm::dynamics::{BasisChoice, HilbertChoice, Transition};
use gpssm::kernel::Shape;
use gpssm::{Kernel, Points};
use gpssm_dev::dense::{cholesky, dot, log_gaussian, whiten};
use gpssm_dev::normal;
use gpssm_dev::reference::{function_value, kernel_value, named, radial};
use rand::rngs::ChaCha8Rng;
use statrs::function::gamma::gamma;

/// A basis.
#[derive(Clone, Debug)]
pub enum Plain {
    Fic(Vec<Vec<f64>>),
    Dtc(Vec<Vec<f64>>),
    Hilbert { center: Vec<f64>, half_width: Vec<f64>, n: usize },
}

/// Exact features of linear and constant parts; the other kernels of a sum into `rest`.
fn split(kernel: &Kernel, z: &[f64], phi: &mut Vec<f64>, rest: &mut Vec<Kernel>) {
    match kernel {
        Kernel::Sum(parts) => parts.iter().for_each(|part| split(part, z, phi, rest)),
        Kernel::Part(part) => match named(part) {
            ("linear", components, variance) => {
                phi.extend(components.iter().zip(variance).map(|(&c, variance)| variance.sqrt() * z[c]));
            }
            ("constant", _, variance) => phi.push(variance[0].sqrt()),
            _ => rest.push(kernel.clone()),
        },
        other => rest.push(other.clone()),
    }
}

/// S(omega) of sigma^2 shape(|tau / ell|).
pub fn spectral_density(shape: Shape, variance: f64, ell: &[f64], omega: &[f64]) -> f64 {
    let d = ell.len() as f64;
    let square: f64 = ell.iter().zip(omega).map(|(ell, omega)| (ell * omega).powi(2)).sum();
    let nu = match shape {
        Shape::Matern12 => 0.5,
        Shape::Matern32 => 1.5,
        Shape::Matern52 => 2.5,
        _ => {
            let volume: f64 = ell.iter().product();
            return variance * volume * (2.0 * PI).powf(0.5 * d) * (-0.5 * square).exp();
        }
    };
    let constant = (4.0 * PI).powf(0.5 * d) * gamma(nu + 0.5 * d) * (2.0 * nu).powf(nu) / gamma(nu);
    variance * ell.iter().product::<f64>() * constant / (2.0 * nu + square).powf(nu + 0.5 * d)
}

/// The n multi-indices with the smallest eigenvalues, sorted from all that may be.
fn multi_indices(half_width: &[f64], n: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in half_width {
        // All indices below one of the smallest n are among them too.
        let more = |index: &Vec<usize>| -> Vec<Vec<usize>> {
            let most = n / index.iter().product::<usize>();
            (1..=most).map(|j| [&index[..], &[j]].concat()).collect()
        };
        all = all.iter().flat_map(more).collect();
    }
    let key = |index: &Vec<usize>| -> f64 {
        index.iter().zip(half_width).map(|(&j, l)| (j as f64 / l).powi(2)).sum()
    };
    all.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.cmp(b)));
    all.truncate(n);
    all
}

impl Plain {
    pub fn hilbert(half_width: &[f64], n: usize) -> Self {
        Self::Hilbert { center: vec![0.0; half_width.len()], half_width: half_width.to_vec(), n }
    }

    /// The same for the library.
    pub fn choice(&self) -> BasisChoice {
        let points = |rows: &[Vec<f64>]| {
            Arc::new(Points::from_rows(rows[0].len(), rows.iter().map(|row| row.as_slice())))
        };
        match self {
            Self::Fic(rows) => BasisChoice::Fic(points(rows)),
            Self::Dtc(rows) => BasisChoice::Dtc(points(rows)),
            Self::Hilbert { center, half_width, n } => {
                BasisChoice::Hilbert(Arc::new(HilbertChoice::new(center.clone(), half_width.clone(), *n)))
            }
        }
    }

    /// phi(z), and the variance that each point has on its own.
    pub fn features(&self, kernel: &Kernel, z: &[f64]) -> (Vec<f64>, f64) {
        let (mut phi, mut rest, mut extra) = (Vec::new(), Vec::new(), 0.0);
        split(kernel, z, &mut phi, &mut rest);
        if rest.is_empty() {
            return (phi, 0.0);
        }
        match self {
            Self::Fic(rows) | Self::Dtc(rows) => {
                let rest = Kernel::Sum(rest);
                let k: Vec<f64> =
                    rows.iter().flat_map(|a| rows.iter().map(|b| kernel_value(&rest, a, b))).collect();
                let at: Vec<f64> = rows.iter().map(|row| kernel_value(&rest, row, z)).collect();
                let own = whiten(&cholesky(&k, rows.len()), rows.len(), &at);
                if matches!(self, Self::Fic(_)) {
                    extra = (kernel_value(&rest, z, z) - dot(&own, &own)).max(0.0);
                }
                phi.extend(own);
            }
            Self::Hilbert { center, half_width, n } => {
                for kernel in rest {
                    let Kernel::Part(part) = &kernel else { panic!("no spectral density") };
                    let components = &part.components;
                    let (shape, variance, ell) = radial(part).expect("a kernel with a spectral density");
                    let l: Vec<f64> = components.iter().map(|&c| half_width[c]).collect();
                    let at: Vec<f64> = components.iter().map(|&c| z[c] - center[c]).collect();
                    let inside = at.iter().zip(&l).all(|(z, l)| z.abs() < *l);
                    for index in multi_indices(&l, *n) {
                        let omega: Vec<f64> =
                            index.iter().zip(&l).map(|(&j, l)| PI * j as f64 / (2.0 * l)).collect();
                        let mut psi = spectral_density(shape, variance, ell, &omega).sqrt();
                        for c in 0..l.len() {
                            psi *= (omega[c] * (at[c] + l[c])).sin() / l[c].sqrt();
                        }
                        phi.push(if inside { psi } else { 0.0 });
                    }
                }
            }
        }
        (phi, extra)
    }
}

/// m_d(z).
pub fn mean(transition: &Transition, d: usize, z: &[f64]) -> f64 {
    function_value(&transition.means[d], z)
}

/// Covariance of x_{s+1} - m(z_s), ordered (time, dimension), with f integrated out; without basis the exact one.
pub fn covariance(transition: &Transition, basis: Option<&Plain>, z: &[Vec<f64>]) -> Vec<f64> {
    let (p, q) = (transition.n_x(), transition.noise_covariance());
    let n = z.len() * p;
    let mut out = vec![0.0; n * n];
    for d in 0..p {
        let kernel = &transition.kernels[d];
        let features: Option<Vec<(Vec<f64>, f64)>> =
            basis.map(|basis| z.iter().map(|z| basis.features(kernel, z)).collect());
        for s in 0..z.len() {
            for r in 0..z.len() {
                out[(s * p + d) * n + r * p + d] = match &features {
                    None => kernel_value(kernel, &z[s], &z[r]),
                    Some(features) => {
                        let own = if s == r { features[s].1 } else { 0.0 };
                        dot(&features[s].0, &features[r].0) + own
                    }
                };
            }
            for e in 0..p {
                out[(s * p + d) * n + s * p + e] += q[d * p + e];
            }
        }
    }
    out
}

/// z_s = (x_s, u_s) of all transitions.
pub fn points(x: &[Vec<f64>], u: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let u = |s: usize| u.get(s).cloned().unwrap_or_default();
    (0..x.len() - 1).map(|s| [&x[s][..], &u(s)].concat()).collect()
}

/// x_{s+1} - m(z_s), ordered (time, dimension).
pub fn residuals(transition: &Transition, x: &[Vec<f64>], z: &[Vec<f64>]) -> Vec<f64> {
    let residual = |s: usize, d: usize| x[s + 1][d] - mean(transition, d, &z[s]);
    (0..z.len()).flat_map(|s| (0..transition.n_x()).map(move |d| residual(s, d))).collect()
}

/// log p(x_{1:T} | x_0).
pub fn log_joint(transition: &Transition, basis: Option<&Plain>, x: &[Vec<f64>], u: &[Vec<f64>]) -> f64 {
    let z = points(x, u);
    log_gaussian(&covariance(transition, basis, &z), &residuals(transition, x, &z))
}

/// x_{0:T} from given x_0: weights once, what FIC leaves unexplained and noise at each point.
pub fn draw_path(
    transition: &Transition,
    basis: &Plain,
    x_0: Vec<f64>,
    u: &[Vec<f64>],
    length: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<f64>> {
    let p = transition.n_x();
    let l = cholesky(&transition.noise_covariance(), p);
    let mut weights: Vec<Option<Vec<f64>>> = vec![None; p];
    let mut path = vec![x_0];
    for t in 0..length {
        let z = [&path[t][..], &u.get(t).cloned().unwrap_or_default()].concat();
        let white: Vec<f64> = (0..p).map(|_| normal(rng)).collect();
        let mut next = Vec::with_capacity(p);
        for d in 0..p {
            let (phi, extra) = basis.features(&transition.kernels[d], &z);
            let w = weights[d].get_or_insert_with(|| phi.iter().map(|_| normal(rng)).collect());
            let f = mean(transition, d, &z) + dot(&phi, w) + extra.sqrt() * normal(rng);
            next.push(f + dot(&l[d * p..=d * p + d], &white));
        }
        path.push(next);
    }
    path
}

/// A draw of the weights of the only dimension given a path.
pub fn draw_weights(
    transition: &Transition,
    basis: &Plain,
    x: &[Vec<f64>],
    rng: &mut ChaCha8Rng,
) -> Vec<f64> {
    let z = points(x, &[]);
    let residuals = residuals(transition, x, &z);
    let q = transition.noise_covariance()[0];
    let features: Vec<_> = z.iter().map(|z| basis.features(&transition.kernels[0], z)).collect();
    let n = features[0].0.len();
    let mut precision = vec![0.0; n * n];
    let mut b = vec![0.0; n];
    for ((phi, extra), residual) in features.iter().zip(residuals) {
        let nu = q + extra;
        for i in 0..n {
            b[i] += phi[i] * residual / nu;
            for j in 0..n {
                precision[i * n + j] += phi[i] * phi[j] / nu;
            }
        }
    }
    (0..n).for_each(|i| precision[i * n + i] += 1.0);
    let l = cholesky(&precision, n);
    let mut w = whiten(&l, n, &b);
    w.iter_mut().for_each(|w| *w += normal(rng));
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| l[k * n + i] * w[k]).sum();
        w[i] = (w[i] - known) / l[i * n + i];
    }
    w
}
