//! The coordinates at one theta.

use super::anchor::Anchor;
use super::given::{BlockValues, GivenFunction};
use super::seen::Sight;
use crate::initial::BoundInitial;
use crate::linalg::banded::Banded;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::model::compile::Problem;
use crate::points::Points;
use crate::state_space::StateSpace;

/// Variance of the first state where p(x_0) is a user's own density, relative to the square of its size.
const VAGUE: f64 = 4.0;

/// Step of the slopes of f, relative to the size of a state.
const STEP: f64 = 1e-3;

/// Expansions of f and the sensor, each around the mean of the one before.
const EXPANSIONS: usize = 4;

/// Distance of two means, in sizes of the state, below which another expansion would change nothing.
const CLOSE: f64 = 0.01;

/// How far a mean may be from the path of the anchor, in sizes of the state: further out f is not known.
const REACH: f64 = 10.0;

/// mu and L of the states of all sequences that are not lags: x = mu + L^{-T} z.
pub(crate) struct Frame {
    mean: Vec<f64>,
    /// L.
    factor: Banded,
    /// Unknowns that do not move.
    held: Vec<usize>,
    lags: Vec<Option<usize>>,
    moving: Vec<usize>,
}

impl Frame {
    /// Of the model with numbers, given f; of `paths` only states that are held or before row 0, and signs, are looked at.
    pub(crate) fn new(
        problem: &Problem,
        model: &StateSpace,
        anchor: &Anchor,
        f: &GivenFunction,
        paths: &[Vec<f64>],
    ) -> Result<Self, NotPositiveDefinite> {
        let start = |(s, path): (usize, &Vec<f64>)| anchor.start(s, path);
        let mut around: Vec<Vec<f64>> = paths.iter().enumerate().map(start).collect();
        let mut expansion = 1;
        loop {
            let mut builder = Builder::new(problem, model, anchor, paths, &around);
            builder.add_sensors();
            builder.add_initial()?;
            builder.add_transitions(f)?;
            builder.hold();
            let frame = builder.finish()?;
            let mean = frame.place(&vec![0.0; frame.mean.len()], paths);
            let mut furthest = 0.0f64;
            for (s, (around, mean)) in around.iter_mut().zip(mean).enumerate() {
                let from = anchor.start(s, &paths[s]);
                for (k, (around, mean)) in around.iter_mut().zip(mean).enumerate() {
                    let size = anchor.sizes[k % anchor.sizes.len()];
                    let next = mean.clamp(from[k] - REACH * size, from[k] + REACH * size);
                    furthest = furthest.max((next - *around).abs() / size);
                    *around = next;
                }
            }
            if expansion == EXPANSIONS || furthest < CLOSE {
                return Ok(frame);
            }
            expansion += 1;
        }
    }

    /// z = L' (x - mu).
    pub(crate) fn whiten(&self, paths: &[Vec<f64>]) -> Vec<f64> {
        let n_x = self.lags.len();
        let states = paths.iter().flat_map(|path| path.chunks_exact(n_x));
        let states = states.flat_map(|x| self.moving.iter().map(|&d| x[d]));
        let mut z: Vec<f64> = states.zip(&self.mean).map(|(x, mean)| x - mean).collect();
        self.factor.multiply_lower_transposed(&mut z);
        z
    }

    /// x = mu + L^{-T} z; what is before row 0 is as in `paths`.
    pub(crate) fn place(&self, z: &[f64], paths: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (n_x, p) = (self.lags.len(), self.moving.len());
        let mut states = z.to_vec();
        self.factor.solve_lower_transposed(&mut states);
        states.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x += mean);
        let mut rows = states.chunks_exact(p);
        let mut paths = paths.to_vec();
        for path in &mut paths {
            for t in 0..path.len() / n_x {
                let row = rows.next().unwrap_or_default();
                self.moving.iter().zip(row).for_each(|(&d, x)| path[t * n_x + d] = *x);
                if t > 0 {
                    for (d, of) in self.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
                        path[t * n_x + d] = path[(t - 1) * n_x + of];
                    }
                }
            }
        }
        paths
    }

    /// Makes a step in z that moves no state that is held.
    pub(crate) fn keep_held(&self, step: &mut [f64]) {
        self.held.iter().for_each(|&k| step[k] = 0.0);
    }

    /// log |dx / dz|.
    pub(crate) fn log_volume(&self) -> f64 {
        -self.factor.log_diagonal()
    }
}

/// Puts mean and precision together.
struct Builder<'a> {
    problem: &'a Problem,
    model: &'a StateSpace,
    anchor: &'a Anchor,
    paths: &'a [Vec<f64>],
    /// What f and the sensor are expanded around.
    around: &'a [Vec<f64>],
    moving: Vec<usize>,
    /// Unknown number of the first state of each sequence.
    first: Vec<usize>,
    precision: Banded,
    b: Vec<f64>,
    held: Vec<usize>,
}

/// Where a state stands among the unknowns.
enum Place {
    Unknown(usize),
    /// Before row 0.
    Known(f64),
}

/// A transition of one block, whitened: sum over unknowns of column * x = target + noise.
#[derive(Default)]
struct Equation {
    /// Unknowns, and their columns of coefficients one after the other.
    unknowns: Vec<usize>,
    columns: Vec<f64>,
    target: Vec<f64>,
}

impl<'a> Builder<'a> {
    fn new(
        problem: &'a Problem,
        model: &'a StateSpace,
        anchor: &'a Anchor,
        paths: &'a [Vec<f64>],
        around: &'a [Vec<f64>],
    ) -> Self {
        let moving: Vec<usize> = model.transition.moving().collect();
        let p = moving.len();
        let mut n = 0;
        let first = problem.sequences().iter().map(|sequence| {
            n += sequence.n_rows() * p;
            n - sequence.n_rows() * p
        });
        let first = first.collect();
        let band = ((model.transition.memory() + 2) * p - 1).min(n.saturating_sub(1));
        let (precision, b) = (Banded::new(n, band), vec![0.0; n]);
        Self { problem, model, anchor, paths, around, moving, first, precision, b, held: Vec::new() }
    }

    /// State `d` of row `t`: a lag is a state of an earlier row, or from before the record.
    fn place(&self, s: usize, t: usize, d: usize) -> Place {
        let (mut row, mut dim) = (t, d);
        while let Some(of) = self.model.transition.lags[dim] {
            if row == 0 {
                return Place::Known(self.paths[s][dim]);
            }
            (row, dim) = (row - 1, of);
        }
        let i = self.moving.iter().position(|&m| m == dim).unwrap_or(0);
        Place::Unknown(self.first[s] + row * self.moving.len() + i)
    }

    fn add_sensors(&mut self) {
        let n_x = self.model.transition.n_x();
        let mut sight = Sight::new(&self.model.sensor, &self.anchor.sizes);
        for (s, sequence) in self.problem.sequences().iter().enumerate() {
            for t in 0..sequence.n_rows() {
                let seen = sight.at(sequence, t, &self.around[s][t * n_x..(t + 1) * n_x]);
                let places: Vec<Place> = (0..n_x).map(|d| self.place(s, t, d)).collect();
                for (i, place) in places.iter().enumerate() {
                    let Place::Unknown(row) = *place else { continue };
                    self.b[row] += seen.b[i];
                    for (j, place) in places.iter().enumerate() {
                        let h = seen.precision[i * n_x + j];
                        match *place {
                            Place::Known(x) => self.b[row] -= h * x,
                            Place::Unknown(column) if column <= row => self.precision.add(row, column, h),
                            Place::Unknown(_) => {}
                        }
                    }
                }
            }
        }
    }

    fn add_initial(&mut self) -> Result<(), NotPositiveDefinite> {
        let p = self.moving.len();
        let (mean, covariance) = match &self.model.initial {
            BoundInitial::Gaussian { mean, chol } => {
                let n_x = mean.len();
                let covariance = small::covariance(chol, n_x);
                let of = |&a: &usize| self.moving.iter().map(move |&b| (a, b));
                let own = self.moving.iter().flat_map(of).map(|(a, b)| covariance[a * n_x + b]).collect();
                (self.moving.iter().map(|&d| mean[d]).collect(), own)
            }
            BoundInitial::Fixed(_) | BoundInitial::User { .. } => {
                let mut covariance = vec![0.0; p * p];
                for (i, &d) in self.moving.iter().enumerate() {
                    covariance[i * p + i] = VAGUE * self.anchor.sizes[d] * self.anchor.sizes[d];
                }
                (vec![0.0; p], covariance)
            }
        };
        let precision = inverse(covariance, p)?;
        for first in self.first.clone() {
            for i in 0..p {
                for j in 0..p {
                    self.b[first + i] += precision[i * p + j] * mean[j];
                    if j <= i {
                        self.precision.add(first + i, first + j, precision[i * p + j]);
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything that the transitions say, block by block.
    fn add_transitions(&mut self, f: &GivenFunction) -> Result<(), NotPositiveDefinite> {
        let (transition, n_x) = (&self.model.transition, self.model.transition.n_x());
        let mut points = Points::new(n_x + self.problem.model().n_u);
        for (around, sequence) in self.around.iter().zip(self.problem.sequences()) {
            for (t, x) in around.chunks_exact(n_x).enumerate().take(sequence.length()) {
                points.push_parts(x, sequence.u(t));
            }
        }
        let n = points.len();
        // Those above and below in each state.
        let shifted = |(j, sign): (usize, f64)| {
            let mut points = points.clone();
            let step = sign * STEP * self.anchor.sizes[j];
            points.column_mut(j).iter_mut().for_each(|x| *x += step);
            points
        };
        let mut nearby = Points::new(points.n_components());
        (0..n_x).flat_map(|j| [(j, 1.0), (j, -1.0)]).map(shifted).for_each(|points| nearby.append(&points));
        for block in f.at(transition, &points, &nearby)? {
            let p = block.dims.len();
            let slope = |k: usize, a: usize, j: usize| {
                let value = |set: usize| block.f[(set * n + k) * p + a];
                (value(1 + 2 * j) - value(2 + 2 * j)) / (2.0 * STEP * self.anchor.sizes[j])
            };
            let mut equation = Equation::default();
            let mut k = 0;
            for s in 0..self.around.len() {
                for t in 0..self.problem.sequences()[s].length() {
                    self.set_equation(&mut equation, s, t, k, &block, slope);
                    let Equation { unknowns, columns, target } = &equation;
                    for (row, a) in unknowns.iter().zip(columns.chunks_exact(p)) {
                        self.b[*row] += dot(a, target);
                        for (column, other) in unknowns.iter().zip(columns.chunks_exact(p)) {
                            if column <= row {
                                self.precision.add(*row, *column, dot(a, other));
                            }
                        }
                    }
                    k += 1;
                }
            }
        }
        Ok(())
    }

    /// Of transition `t` of sequence `s`, number `k` of all.
    fn set_equation(
        &self,
        equation: &mut Equation,
        s: usize,
        t: usize,
        k: usize,
        block: &BlockValues,
        slope: impl Fn(usize, usize, usize) -> f64,
    ) {
        let (n_x, p, n) = (self.model.transition.n_x(), self.moving.len(), block.dims.len());
        let around = &self.around[s][t * n_x..(t + 1) * n_x];
        let Equation { unknowns, columns, target } = equation;
        unknowns.clear();
        columns.clear();
        target.clear();
        target.extend_from_slice(&block.f[k * n..(k + 1) * n]);
        for (a, d) in block.dims.iter().enumerate() {
            let i = self.moving.iter().position(|m| m == d).unwrap_or(0);
            unknowns.push(self.first[s] + (t + 1) * p + i);
            columns.extend((0..n).map(|b| if a == b { 1.0 } else { 0.0 }));
        }
        for j in 0..n_x {
            let x = match self.place(s, t, j) {
                Place::Known(x) => around[j] - x,
                Place::Unknown(unknown) => {
                    let at = unknowns.iter().position(|other| *other == unknown).unwrap_or_else(|| {
                        unknowns.push(unknown);
                        columns.resize(unknowns.len() * n, 0.0);
                        unknowns.len() - 1
                    });
                    columns[at * n..(at + 1) * n]
                        .iter_mut()
                        .enumerate()
                        .for_each(|(a, c)| *c -= slope(k, a, j));
                    around[j]
                }
            };
            target.iter_mut().enumerate().for_each(|(a, c)| *c -= slope(k, a, j) * x);
        }
        let chol = &block.chol[k * n * n..(k + 1) * n * n];
        small::solve_lower(chol, n, target);
        columns.chunks_exact_mut(n).for_each(|column| small::solve_lower(chol, n, column));
    }

    /// Conditions on the states that do not move.
    fn hold(&mut self) {
        let (n_x, p) = (self.model.transition.n_x(), self.moving.len());
        let fixed = matches!(self.model.initial, BoundInitial::Fixed(_));
        for (s, sequence) in self.problem.sequences().iter().enumerate() {
            for t in (0..sequence.n_rows()).filter(|&t| self.anchor.held[s][t] || (t == 0 && fixed)) {
                for (i, &d) in self.moving.iter().enumerate() {
                    let (k, x) = (self.first[s] + t * p + i, self.paths[s][t * n_x + d]);
                    let b = &mut self.b;
                    self.precision.isolate(k, |j, value| b[j] -= value * x);
                    b[k] = x;
                    self.held.push(k);
                }
            }
        }
    }

    fn finish(mut self) -> Result<Frame, NotPositiveDefinite> {
        self.precision.factor()?;
        self.precision.solve_lower(&mut self.b);
        self.precision.solve_lower_transposed(&mut self.b);
        if self.b.iter().any(|x| !x.is_finite()) {
            return Err(NotPositiveDefinite { order: self.b.len(), index: 0 });
        }
        let lags = self.model.transition.lags.clone();
        Ok(Frame { mean: self.b, factor: self.precision, held: self.held, lags, moving: self.moving })
    }
}

fn inverse(mut covariance: Vec<f64>, n: usize) -> Result<Vec<f64>, NotPositiveDefinite> {
    if !small::cholesky(&mut covariance, n) {
        return Err(NotPositiveDefinite { order: n, index: 0 });
    }
    let mut inverse = vec![0.0; n * n];
    for (i, row) in inverse.chunks_exact_mut(n).enumerate() {
        row[i] = 1.0;
        small::solve_lower(&covariance, n, row);
        small::solve_lower_transposed(&covariance, n, row);
    }
    Ok(inverse)
}
