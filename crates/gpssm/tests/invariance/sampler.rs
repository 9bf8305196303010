//! Exact draws of f, x and y: f is drawn point by point, noise is added to it.
//!
//! This is the model as it is written down (eq. 2), without any formula of a filter.

use gpssm::Sequence;
use gpssm::dynamics::Transition;
use gpssm::state_space::BoundInitial;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::cases::Case;
use super::gaussian_process::{Gaussian, moving, noise};
use gpssm_dev::dense::{cholesky, whiten};
use gpssm_dev::reference::{function_value, kernel_value};

/// mean + L times standard normals, one for each component in order.
pub fn sample_gaussian<R: Rng + ?Sized>(gaussian: &Gaussian, rng: &mut R) -> Vec<f64> {
    let n = gaussian.mean.len();
    let e: Vec<f64> = (0..n).map(|_| rng.sample(StandardNormal)).collect();
    let row = |d: usize| gaussian.chol[d * n..(d + 1) * n].iter().zip(&e).map(|(l, e)| l * e).sum::<f64>();
    (0..n).map(|d| gaussian.mean[d] + row(d)).collect()
}

pub fn sample_initial<R: Rng>(initial: &BoundInitial, rng: &mut R) -> Vec<f64> {
    match initial {
        BoundInitial::Gaussian { mean, chol } => {
            sample_gaussian(&Gaussian { mean: mean.clone(), chol: chol.clone() }, rng)
        }
        BoundInitial::Fixed(x) => x.clone(),
        BoundInitial::User { density, scaling } => {
            let mut x = vec![0.0; scaling.x.shift.len()];
            density.sample(rng, &mut x);
            (0..x.len()).map(|d| (x[d] - scaling.x.shift[d]) / scaling.x.scale[d]).collect()
        }
    }
}

/// f - m of one dimension at the points asked for so far.
struct Function<'a> {
    transition: &'a Transition,
    dimension: usize,
    points: Vec<Vec<f64>>,
    values: Vec<f64>,
}

impl Function<'_> {
    /// Draws f(z) - m(z) given the values drawn before.
    fn draw(&mut self, z: &[f64], rng: &mut ChaCha8Rng) -> f64 {
        let kernel = &self.transition.kernels[self.dimension];
        self.points.push(z.to_vec());
        let n = self.points.len();
        let k: Vec<f64> = self
            .points
            .iter()
            .flat_map(|a| self.points.iter().map(move |b| kernel_value(kernel, a, b)))
            .collect();
        let l = cholesky(&k, n);
        let e = whiten(&l, n, &self.values);
        let mean: f64 = l[(n - 1) * n..].iter().zip(&e).map(|(l, e)| l * e).sum();
        let value = mean + l[n * n - 1] * rng.sample::<f64, _>(StandardNormal);
        self.values.push(value);
        value
    }
}

/// v ~ N(0, Q) in the dimensions that move.
fn process_noise(transition: &Transition, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let dims = moving(transition);
    let q: Vec<f64> = dims.iter().flat_map(|&a| dims.iter().map(move |&b| noise(transition, a, b))).collect();
    let chol = cholesky(&q, dims.len());
    sample_gaussian(&Gaussian { mean: vec![0.0; dims.len()], chol }, rng)
}

/// Paths (row-major) and sequences that share one f.
pub struct Replicate {
    pub paths: Vec<Vec<f64>>,
    pub sequences: Vec<Sequence>,
}

impl Replicate {
    /// The states of sequence s.
    pub fn path(&self, s: usize, n_x: usize) -> Vec<Vec<f64>> {
        self.paths[s].chunks_exact(n_x).map(<[f64]>::to_vec).collect()
    }
}

/// Draws everything from the model.
pub fn simulate(case: &Case, rng: &mut ChaCha8Rng) -> Replicate {
    let transition = &case.model.transition;
    let n_x = transition.n_x();
    let mut f: Vec<Function> = (0..n_x)
        .map(|dimension| Function { transition, dimension, points: Vec::new(), values: Vec::new() })
        .collect();
    let mut replicate = Replicate { paths: Vec::new(), sequences: Vec::new() };
    for (s, &length) in case.lengths.iter().enumerate() {
        let mut x = sample_initial(&case.model.initial, rng);
        let mut path = Vec::new();
        let (mut y, mut u) = (Vec::new(), Vec::new());
        for t in 0..=length {
            let u_t = case.input(s, t);
            let z = [&x[..], &u_t].concat();
            let mut y_t = vec![0.0; case.n_y];
            case.model.sensor.sample(&z, rng, &mut y_t);
            (0..case.n_y).filter(|&k| (case.missing)(s, t, k)).for_each(|k| y_t[k] = f64::NAN);
            path.extend_from_slice(&x);
            y.extend(y_t);
            u.extend(u_t);
            if t == length {
                break;
            }
            let v = process_noise(transition, rng);
            let mut next: Vec<f64> = transition.lags.iter().map(|of| of.map_or(0.0, |of| x[of])).collect();
            for (&d, v) in moving(transition).iter().zip(v) {
                next[d] = function_value(&transition.means[d], &z) + f[d].draw(&z, rng) + v;
            }
            x = next;
        }
        replicate.paths.push(path);
        replicate.sequences.push(Sequence::from_flat(y, case.n_y, u, case.n_u).expect("a valid sequence"));
    }
    replicate
}
