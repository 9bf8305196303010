//! The model with numbers, written down plainly and independently of the library: dense matrices, every
//! density from its formula.

use gpssm_dev::dense::{cholesky, log_gaussian, lower_times, whiten};
use gpssm_dev::normal;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StudentT};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::PI;

/// sigma_f^2 exp(-r^2 / 2), r^2 = sum_c ((z_c - z'_c) / ell_c)^2, and a linear part sigma^2 z . z'.
pub struct SquaredExponential {
    pub sigma_f: f64,
    pub ell: Vec<f64>,
    /// sigma.
    pub linear: Option<f64>,
}

impl SquaredExponential {
    pub fn value(&self, a: &[f64], b: &[f64]) -> f64 {
        let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        self.smooth(a, b) + self.linear.map_or(0.0, |sigma| sigma * sigma * product)
    }

    /// Without the linear part.
    pub fn smooth(&self, a: &[f64], b: &[f64]) -> f64 {
        let square: f64 = a.iter().zip(b).zip(&self.ell).map(|((a, b), ell)| ((a - b) / ell).powi(2)).sum();
        self.sigma_f.powi(2) * (-0.5 * square).exp()
    }
}

pub enum SensorNoise {
    /// R, row-major.
    Gaussian(Vec<f64>),
    StudentT {
        scale: f64,
        dof: f64,
    },
}

/// A function of an index (state or output) and z = (x, u).
pub type Mean = Box<dyn Fn(usize, &[f64]) -> f64>;

pub struct Numbers {
    /// None for a known transition.
    pub kernel: Vec<Option<SquaredExponential>>,
    /// The state that a state copies, one step before.
    pub lag: Vec<Option<usize>>,
    pub mean: Mean,
    /// Q, row-major, all states.
    pub q: Vec<f64>,
    pub sensor_mean: Mean,
    pub sensor_noise: SensorNoise,
}

/// One sequence: inputs u_t, and which outputs are missing.
#[derive(Clone)]
pub struct Plan {
    pub u: Vec<Vec<f64>>,
    pub missing: Vec<Vec<bool>>,
}

/// z_t = (x_t, u_t), t = 0 .. T - 1 or T.
fn points(x: &[f64], n_x: usize, u: &[Vec<f64>]) -> Vec<Vec<f64>> {
    x.chunks_exact(n_x).zip(u).map(|(x, u)| [x, u].concat()).collect()
}

impl Numbers {
    pub fn n_x(&self) -> usize {
        self.kernel.len()
    }

    fn moving(&self) -> Vec<usize> {
        (0..self.n_x()).filter(|&d| self.lag[d].is_none()).collect()
    }

    /// Covariance of the residuals x_{s+1} - m(z_s), rows ordered (point, state).
    fn covariance(&self, z: &[Vec<f64>]) -> Vec<f64> {
        let (moving, n_x) = (self.moving(), self.n_x());
        let rows: Vec<(usize, usize)> =
            (0..z.len()).flat_map(|s| moving.iter().map(move |&d| (s, d))).collect();
        let entry = |&(s, d): &(usize, usize), &(r, e): &(usize, usize)| {
            let kernel = self.kernel[d].as_ref().filter(|_| d == e).map_or(0.0, |k| k.value(&z[s], &z[r]));
            kernel + if s == r { self.q[d * n_x + e] } else { 0.0 }
        };
        rows.iter().flat_map(|a| rows.iter().map(move |b| entry(a, b))).collect()
    }

    fn residuals(&self, x: &[f64], z: &[Vec<f64>]) -> Vec<f64> {
        let n_x = self.n_x();
        let residual = |s: usize, d: usize| x[(s + 1) * n_x + d] - (self.mean)(d, &z[s]);
        (0..z.len()).flat_map(|s| self.moving().into_iter().map(move |d| residual(s, d))).collect()
    }

    /// log p(x_{1:T} | x_0), all sequences together.
    pub fn log_path(&self, paths: &[Vec<f64>], plans: &[Plan]) -> f64 {
        let (mut z, mut residuals) = (Vec::new(), Vec::new());
        for (x, plan) in paths.iter().zip(plans) {
            let own = points(x, self.n_x(), &plan.u[..plan.u.len() - 1]);
            residuals.extend(self.residuals(x, &own));
            z.extend(own);
        }
        log_gaussian(&self.covariance(&z), &residuals)
    }

    /// Draws all paths, one state after the other, each given everything before it; x_0 ~ N(0, I).
    pub fn draw_paths(&self, plans: &[Plan], rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let (n_x, moving) = (self.n_x(), self.moving());
        let (mut z, mut residuals): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut paths = Vec::new();
        for plan in plans {
            let mut path: Vec<f64> = (0..n_x).map(|_| normal(rng)).collect();
            for u in &plan.u[..plan.u.len() - 1] {
                let x = path[path.len() - n_x..].to_vec();
                z.push([&x[..], u].concat());
                let n = z.len() * moving.len();
                let l = cholesky(&self.covariance(&z), n);
                let mut white = whiten(&l, n, &residuals);
                let mut next: Vec<f64> = self.lag.iter().map(|of| of.map_or(0.0, |of| x[of])).collect();
                for &d in &moving {
                    let i = white.len();
                    white.push(normal(rng));
                    let residual: f64 = (0..=i).map(|k| l[i * n + k] * white[k]).sum();
                    residuals.push(residual);
                    next[d] = residual + (self.mean)(d, &z[z.len() - 1]);
                }
                path.extend(next);
            }
            paths.push(path);
        }
        paths
    }

    /// y - g(x, u) of every row; missing outputs are NaN.
    pub fn sensor_residuals(&self, paths: &[Vec<f64>], plans: &[Plan], y: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
        let mut rows = Vec::new();
        for ((x, plan), y) in paths.iter().zip(plans).zip(y) {
            for (z, y) in points(x, self.n_x(), &plan.u).iter().zip(y) {
                rows.push(y.iter().enumerate().map(|(k, y)| y - (self.sensor_mean)(k, z)).collect());
            }
        }
        rows
    }

    /// log p(y | x), the observed components only.
    pub fn log_sensor(&self, paths: &[Vec<f64>], plans: &[Plan], y: &[Vec<Vec<f64>>]) -> f64 {
        let rows = self.sensor_residuals(paths, plans, y);
        rows.iter().map(|row| self.log_row(row)).sum()
    }

    fn log_row(&self, row: &[f64]) -> f64 {
        let seen: Vec<usize> = (0..row.len()).filter(|&k| !row[k].is_nan()).collect();
        let residual: Vec<f64> = seen.iter().map(|&k| row[k]).collect();
        match &self.sensor_noise {
            SensorNoise::Gaussian(r) => {
                let r: Vec<f64> =
                    seen.iter().flat_map(|a| seen.iter().map(move |b| r[a * row.len() + b])).collect();
                log_gaussian(&r, &residual)
            }
            SensorNoise::StudentT { scale, dof } => {
                let constant =
                    ln_gamma(0.5 * (dof + 1.0)) - ln_gamma(0.5 * dof) - 0.5 * (dof * PI).ln() - scale.ln();
                let kernel = |e: &f64| -0.5 * (dof + 1.0) * (1.0 + (e / scale).powi(2) / dof).ln();
                residual.iter().map(|e| constant + kernel(e)).sum()
            }
        }
    }

    /// Draws the outputs of all rows and blanks what is missing.
    pub fn draw_outputs(
        &self,
        paths: &[Vec<f64>],
        plans: &[Plan],
        rng: &mut ChaCha8Rng,
    ) -> Vec<Vec<Vec<f64>>> {
        let draw = |z: &Vec<f64>, missing: &Vec<bool>, rng: &mut ChaCha8Rng| -> Vec<f64> {
            let noise = self.draw_noise(missing.len(), rng);
            let value = |k: usize| (self.sensor_mean)(k, z) + noise[k];
            (0..missing.len()).map(|k| if missing[k] { f64::NAN } else { value(k) }).collect()
        };
        let sequences = paths.iter().zip(plans);
        sequences
            .map(|(x, plan)| {
                let z = points(x, self.n_x(), &plan.u);
                z.iter().zip(&plan.missing).map(|(z, missing)| draw(z, missing, rng)).collect()
            })
            .collect()
    }

    fn draw_noise(&self, n_y: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        match &self.sensor_noise {
            SensorNoise::Gaussian(r) => {
                let l = cholesky(r, n_y);
                let white: Vec<f64> = (0..n_y).map(|_| normal(rng)).collect();
                lower_times(&l, n_y, &white)
            }
            SensorNoise::StudentT { scale, dof } => {
                let t = StudentT::new(*dof).unwrap();
                (0..n_y).map(|_| scale * t.sample(rng)).collect()
            }
        }
    }
}
