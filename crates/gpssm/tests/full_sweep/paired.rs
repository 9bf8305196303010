//! Functionals of (theta, x) before and after, and the test of their paired differences.

use gpssm::Problem;
use gpssm::model::Coordinate;

use crate::dense::{Numbers, Plan};

/// Everything that one replicate holds.
#[derive(Clone)]
pub struct Replicate {
    pub theta: Vec<f64>,
    pub paths: Vec<Vec<f64>>,
    pub y: Vec<Vec<Vec<f64>>>,
}

/// theta in the coordinates it is sampled in, learned entries only.
pub fn coordinates(problem: &Problem, theta: &[f64]) -> Vec<f64> {
    let table = problem.table();
    let coordinate = |k: usize| match table.parameters[k].coordinate {
        Coordinate::Identity => theta[k],
        Coordinate::Log => theta[k].ln(),
    };
    (0..table.len()).filter(|&k| !table.is_fixed(k)).map(coordinate).collect()
}

/// Values, and names where they are wanted: to write them for every replicate would cost more than a sweep.
#[derive(Default)]
pub struct Functionals {
    named: bool,
    names: Vec<String>,
    values: Vec<f64>,
}

impl Functionals {
    fn push(&mut self, name: impl FnOnce() -> String, value: f64) {
        if self.named {
            self.names.push(name());
        }
        self.values.push(value);
    }
}

/// The products with theta see a theta that is right on its own but does not belong to x.
pub fn functionals(
    problem: &Problem,
    numbers: &Numbers,
    plans: &[Plan],
    replicate: &Replicate,
    named: bool,
) -> Functionals {
    let (table, n_x) = (problem.table(), problem.n_x());
    let mut out = Functionals { named, ..Functionals::default() };
    let residuals = numbers.sensor_residuals(&replicate.paths, plans, &replicate.y).concat();
    let seen: Vec<f64> = residuals.into_iter().filter(|e| !e.is_nan()).collect();
    // Logarithms, because outputs may have heavy tails.
    let misfit = seen.iter().map(|e| e.powi(2).ln_1p()).sum::<f64>() / seen.len() as f64;
    let steps = replicate.paths.iter().flat_map(|x| x.iter().zip(&x[n_x..]));
    let roughness = steps.map(|(a, b)| (b - a).powi(2).ln_1p()).sum::<f64>();
    let learned = (0..table.len()).filter(|&k| !table.is_fixed(k));
    for (k, c) in learned.zip(coordinates(problem, &replicate.theta)) {
        let name = || table.parameters[k].name.clone();
        out.push(name, c);
        out.push(|| name() + " squared", c * c);
        out.push(|| name() + " * misfit", c * misfit);
        out.push(|| name() + " * roughness", c * roughness);
    }
    for (s, x) in replicate.paths.iter().enumerate() {
        for (i, value) in x.iter().enumerate() {
            let name = || format!("x[{s},{},{}]", i / n_x, i % n_x);
            out.push(name, *value);
            out.push(|| name() + " squared", (value * value).ln_1p());
            if let Some(next) = x.get(i + n_x) {
                out.push(|| name() + " * next", (value * next).tanh());
            }
        }
    }
    out.push(|| "misfit".into(), misfit);
    out.push(|| "roughness".into(), roughness);
    out.push(|| "log p(x | theta)".into(), numbers.log_path(&replicate.paths, plans));
    out.push(|| "log p(y | x, theta)".into(), numbers.log_sensor(&replicate.paths, plans, &replicate.y));
    out
}

/// Sums of differences, their squares, and how often something changed.
#[derive(Default)]
pub struct Paired {
    names: Vec<String>,
    n: f64,
    sum: Vec<f64>,
    square: Vec<f64>,
    changed: Vec<f64>,
}

impl Paired {
    /// Whether the next functionals must carry names.
    pub fn needs_names(&self) -> bool {
        self.names.is_empty()
    }

    pub fn add(&mut self, before: Functionals, after: Functionals) {
        if self.names.is_empty() {
            let n = before.names.len();
            (self.sum, self.square, self.changed) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            self.names = before.names;
        }
        self.n += 1.0;
        for (i, (a, b)) in before.values.iter().zip(&after.values).enumerate() {
            let difference = b - a;
            assert!(difference.is_finite(), "{} went from {a} to {b}", self.names[i]);
            self.sum[i] += difference;
            self.square[i] += difference * difference;
            self.changed[i] += f64::from(difference != 0.0);
        }
    }

    pub fn merge(mut self, other: Self) -> Self {
        if self.names.is_empty() {
            return other;
        }
        self.n += other.n;
        for i in 0..other.names.len() {
            self.sum[i] += other.sum[i];
            self.square[i] += other.square[i];
            self.changed[i] += other.changed[i];
        }
        self
    }

    fn z(&self, i: usize) -> f64 {
        let mean = self.sum[i] / self.n;
        let variance = self.square[i] / self.n - mean * mean;
        mean / (variance / self.n).sqrt()
    }

    /// The functional with the largest |z|. One that never changes has none.
    pub fn worst(&self) -> (String, f64) {
        let all = (0..self.names.len()).map(|i| (self.names[i].clone(), self.z(i)));
        let moved = all.filter(|(_, z)| z.is_finite());
        moved.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap()
    }

    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The functional that changed least often, with its rate.
    pub fn stiffest(&self) -> (String, f64) {
        let all =
            self.names.iter().zip(&self.changed).map(|(name, changed)| (name.clone(), changed / self.n));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    }
}
