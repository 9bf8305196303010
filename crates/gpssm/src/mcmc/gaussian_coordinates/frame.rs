//! The coordinates at one theta.

use super::anchor::Anchor;
use super::seen::Seen;
use crate::function::evaluate_all;
use crate::initial::BoundInitial;
use crate::linalg::banded::Banded;
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::linalg::simd::dot;
use crate::linalg::small;
use crate::model::compile::Problem;
use crate::points::Points;
use crate::state_space::StateSpace;

/// Variance of the first state where p(x_0) is a user's own density, relative to the square of its size.
const VAGUE: f64 = 4.0;
/// Keeps the directions of weights that hardly touch the path defined.
const RIDGE: f64 = 1e-13;

/// mu and S of the states of all sequences that are not lags: x = mu + S z, S = L^{-T} (I + O (J - I) O'), where L L' is the
/// precision given the weights, O spans what the weights do to the path, and J = T^{-T}.
pub(crate) struct Frame {
    mean: Vec<f64>,
    /// L.
    factor: Banded,
    /// O, (unknown, weight).
    span: Vec<f64>,
    /// T.
    stretch: Dense,
    lags: Vec<Option<usize>>,
    moving: Vec<usize>,
}

impl Frame {
    /// Of the model with numbers, around the anchor; of `paths` only states that are held, and signs, are looked at.
    pub(crate) fn new(
        problem: &Problem,
        model: &StateSpace,
        anchor: &Anchor,
        paths: &[Vec<f64>],
    ) -> Result<Self, NotPositiveDefinite> {
        let mut builder = Builder::new(problem, model, anchor, paths);
        builder.add_sensors();
        builder.add_initial()?;
        builder.add_transitions()?;
        builder.hold();
        builder.finish()
    }

    /// z = S^{-1} (x - mu).
    pub(crate) fn whiten(&self, paths: &[Vec<f64>]) -> Vec<f64> {
        let n_x = self.lags.len();
        let states = paths.iter().flat_map(|path| path.chunks_exact(n_x));
        let states = states.flat_map(|x| self.moving.iter().map(|&d| x[d]));
        let mut z: Vec<f64> = states.zip(&self.mean).map(|(x, mean)| x - mean).collect();
        self.factor.multiply_lower_transposed(&mut z);
        self.stretch_along(&mut z, |t, y| {
            let product = |j: usize| dot(t.lower_column(j), &y[j..]);
            (0..y.len()).map(product).collect()
        });
        z
    }

    /// x = mu + S z; what is before row 0 is as in `paths`.
    pub(crate) fn place(&self, z: &[f64], paths: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (n_x, p) = (self.lags.len(), self.moving.len());
        let mut states = z.to_vec();
        self.stretch_along(&mut states, inverse_transposed);
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

    /// log |dx / dz|.
    pub(crate) fn log_volume(&self) -> f64 {
        -self.factor.log_diagonal() - self.stretch.log_diagonal()
    }

    /// x becomes (I + O (M - I) O') x, where `multiply` gives M y.
    fn stretch_along(&self, x: &mut [f64], multiply: impl Fn(&Dense, &[f64]) -> Vec<f64>) {
        let m = self.stretch.order();
        if m == 0 {
            return;
        }
        let mut y = vec![0.0; m];
        for (x, row) in x.iter().zip(self.span.chunks_exact(m)) {
            y.iter_mut().zip(row).for_each(|(y, o)| *y += o * x);
        }
        let more: Vec<f64> = multiply(&self.stretch, &y).iter().zip(&y).map(|(new, y)| new - y).collect();
        x.iter_mut().zip(self.span.chunks_exact(m)).for_each(|(x, row)| *x += dot(row, &more));
    }
}

/// T^{-T} y.
fn inverse_transposed(t: &Dense, y: &[f64]) -> Vec<f64> {
    let mut y = y.to_vec();
    t.solve_lower_transposed(&mut y);
    y
}

/// Puts mean and precision together.
struct Builder<'a> {
    problem: &'a Problem,
    model: &'a StateSpace,
    anchor: &'a Anchor,
    paths: &'a [Vec<f64>],
    moving: Vec<usize>,
    /// Unknown number of the first state of each sequence.
    first: Vec<usize>,
    /// B, and the right-hand side that belongs to it.
    precision: Banded,
    b: Vec<f64>,
    /// U, (unknown, weight).
    u: Vec<f64>,
    n_weights: usize,
}

/// Where a state stands among the unknowns.
enum Place {
    Unknown(usize),
    /// Before row 0.
    Known(f64),
}

/// Features of one block, whitened by the factor of its noise.
struct Whitened<'a> {
    rows: &'a [f64],
    chol: &'a [f64],
}

/// A transition of one block, whitened: sum over unknowns of column * x = target + rows * w + noise.
struct Equation {
    /// Unknowns, each with its column of coefficients.
    terms: Vec<(usize, Vec<f64>)>,
    target: Vec<f64>,
}

impl<'a> Builder<'a> {
    fn new(problem: &'a Problem, model: &'a StateSpace, anchor: &'a Anchor, paths: &'a [Vec<f64>]) -> Self {
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
        Self { problem, model, anchor, paths, moving, first, precision, b, u: Vec::new(), n_weights: 0 }
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

    /// State of row `t`, of which the sign chooses the branch.
    fn state(&self, s: usize, t: usize) -> &[f64] {
        let n_x = self.model.transition.n_x();
        &self.paths[s][t * n_x..(t + 1) * n_x]
    }

    fn add_sensors(&mut self) {
        let n_x = self.model.transition.n_x();
        for (s, sequence) in self.problem.sequences().iter().enumerate() {
            for t in 0..sequence.n_rows() {
                let at = &self.anchor.branch(s, self.state(s, t)).path[t * n_x..(t + 1) * n_x];
                let seen = Seen::new(&self.model.sensor, sequence, t, at, &self.anchor.sizes);
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
    fn add_transitions(&mut self) -> Result<(), NotPositiveDefinite> {
        let transition = &self.model.transition;
        let (points, slopes) = self.along();
        let mut means = Vec::new();
        evaluate_all(&transition.means, &points, &mut means);
        let n_features = 1 + points.n_components();
        let blocks = transition.blocks();
        let unknown = |dims: &[usize]| dims.iter().filter(|&&d| !transition.kernels[d].is_zero()).count();
        self.n_weights = blocks.iter().map(|dims| unknown(dims) * n_features).sum();
        self.u = vec![0.0; self.b.len() * self.n_weights];
        let mut from = 0;
        for dims in &blocks {
            let mut chol = transition.noise_of(dims);
            if !small::cholesky(&mut chol, dims.len()) {
                return Err(NotPositiveDefinite { order: dims.len(), index: 0 });
            }
            let rows = self.features(&points, dims, &chol);
            let m = unknown(dims) * n_features;
            let mut gram = Dense::default();
            gram.set_multiple_of_identity(m, 1.0);
            gram.add_gram(&rows, if m == 0 { 0 } else { points.len() * dims.len() });
            gram.factor()?;
            let mut targets = vec![0.0; m];
            self.add_block(dims, &slopes, &means, &Whitened { rows: &rows, chol: &chol }, &mut targets, from);
            self.integrate_weights_out(&gram, targets, from);
            from += m;
        }
        Ok(())
    }

    /// Linear functions of z with unknown coefficients, (point, dimension, weight), whitened by the noise.
    fn features(&self, points: &Points, dims: &[usize], chol: &[f64]) -> Vec<f64> {
        let (p, n_z) = (dims.len(), points.n_components());
        let unknown: Vec<usize> =
            (0..p).filter(|&a| !self.model.transition.kernels[dims[a]].is_zero()).collect();
        let m = unknown.len() * (1 + n_z);
        let mut rows = vec![0.0; points.len() * p * m];
        let mut column = vec![0.0; p];
        for i in 0..points.len() {
            for (number, &a) in unknown.iter().enumerate() {
                let size = self.anchor.sizes[dims[a]];
                for c in 0..=n_z {
                    column.fill(0.0);
                    column[a] = match c {
                        0 => size,
                        c => size * self.anchor.standardised(c - 1, points.column(c - 1)[i]),
                    };
                    small::solve_lower(chol, p, &mut column);
                    for (b, value) in column.iter().enumerate() {
                        rows[(i * p + b) * m + number * (1 + n_z) + c] = *value;
                    }
                }
            }
        }
        rows
    }

    /// U = D' W phi L_w^{-T}, from column `from` on, and b loses what the weights explain.
    fn integrate_weights_out(&mut self, gram: &Dense, mut targets: Vec<f64>, from: usize) {
        let m = gram.order();
        if m == 0 {
            return;
        }
        let own = |row: &[f64]| row[from..from + m].to_vec();
        let mut columns: Vec<f64> = self.u.chunks_exact(self.n_weights).flat_map(own).collect();
        gram.solve_lower(&mut columns, self.b.len());
        gram.solve_lower(&mut targets, 1);
        let rows = self.u.chunks_exact_mut(self.n_weights).zip(columns.chunks_exact(m));
        for ((row, column), b) in rows.zip(&mut self.b) {
            row[from..from + m].copy_from_slice(column);
            *b -= dot(column, &targets);
        }
    }

    /// z̄ of all transitions, and the slopes there.
    fn along(&self) -> (Points, Vec<f64>) {
        let (n_x, p) = (self.model.transition.n_x(), self.moving.len());
        let mut points = Points::new(n_x + self.problem.model().n_u);
        let mut slopes = Vec::new();
        for (s, sequence) in self.problem.sequences().iter().enumerate() {
            for t in 0..sequence.length() {
                let expansion = self.anchor.branch(s, self.state(s, t));
                points.push_parts(&expansion.path[t * n_x..(t + 1) * n_x], sequence.u(t));
                slopes.extend_from_slice(&expansion.slopes[t * p * n_x..(t + 1) * p * n_x]);
            }
        }
        (points, slopes)
    }

    /// Adds the transitions of one block to B and b, and D' W phi to U from column `from` on; adds phi' W c to `targets`.
    fn add_block(
        &mut self,
        dims: &[usize],
        slopes: &[f64],
        means: &[f64],
        whitened: &Whitened,
        targets: &mut [f64],
        from: usize,
    ) {
        let (p, m, n_weights) = (dims.len(), targets.len(), self.n_weights);
        let mut k = 0;
        for s in 0..self.paths.len() {
            for t in 0..self.problem.sequences()[s].length() {
                let equation = self.equation(s, t, k, dims, slopes, means, whitened.chol);
                for (row, a) in &equation.terms {
                    self.b[*row] += dot(a, &equation.target);
                    for (column, other) in equation.terms.iter().filter(|(column, _)| column <= row) {
                        self.precision.add(*row, *column, dot(a, other));
                    }
                }
                for i in (0..p).filter(|_| m > 0) {
                    let phi = &whitened.rows[(k * p + i) * m..(k * p + i + 1) * m];
                    targets.iter_mut().zip(phi).for_each(|(sum, phi)| *sum += phi * equation.target[i]);
                    for (row, a) in &equation.terms {
                        let u = &mut self.u[row * n_weights + from..][..m];
                        u.iter_mut().zip(phi).for_each(|(u, phi)| *u += a[i] * phi);
                    }
                }
                k += 1;
            }
        }
    }

    /// Of transition `t` of sequence `s`, number `k` of all.
    #[allow(clippy::too_many_arguments)]
    fn equation(
        &self,
        s: usize,
        t: usize,
        k: usize,
        dims: &[usize],
        slopes: &[f64],
        means: &[f64],
        chol: &[f64],
    ) -> Equation {
        let (n_x, p, n) = (self.model.transition.n_x(), self.moving.len(), dims.len());
        let center = &self.anchor.branch(s, self.state(s, t)).path[t * n_x..(t + 1) * n_x];
        let which: Vec<usize> = dims.iter().filter_map(|d| self.moving.iter().position(|m| m == d)).collect();
        let mut target: Vec<f64> = dims.iter().map(|&d| means[k * n_x + d]).collect();
        let mut terms: Vec<(usize, Vec<f64>)> = Vec::with_capacity(n + n_x);
        for (a, &i) in which.iter().enumerate() {
            let unit = (0..n).map(|b| if a == b { 1.0 } else { 0.0 }).collect();
            terms.push((self.first[s] + (t + 1) * p + i, unit));
        }
        for j in 0..n_x {
            let slope = |a: usize| slopes[(k * p + which[a]) * n_x + j];
            target.iter_mut().enumerate().for_each(|(a, c)| *c -= slope(a) * center[j]);
            match self.place(s, t, j) {
                Place::Known(x) => target.iter_mut().enumerate().for_each(|(a, c)| *c += slope(a) * x),
                Place::Unknown(k) => match terms.iter_mut().find(|(other, _)| *other == k) {
                    Some((_, column)) => column.iter_mut().enumerate().for_each(|(a, c)| *c -= slope(a)),
                    None => terms.push((k, (0..n).map(|a| -slope(a)).collect())),
                },
            }
        }
        small::solve_lower(chol, n, &mut target);
        terms.iter_mut().for_each(|(_, column)| small::solve_lower(chol, n, column));
        Equation { terms, target }
    }

    /// Conditions on the states that do not move.
    fn hold(&mut self) {
        let (n_x, p, m) = (self.model.transition.n_x(), self.moving.len(), self.n_weights);
        let fixed = matches!(self.model.initial, BoundInitial::Fixed(_));
        let mut along = vec![0.0; m];
        let mut held = Vec::new();
        for (s, sequence) in self.problem.sequences().iter().enumerate() {
            for t in (0..sequence.n_rows()).filter(|&t| self.anchor.held[s][t] || (t == 0 && fixed)) {
                for (i, &d) in self.moving.iter().enumerate() {
                    held.push((self.first[s] + t * p + i, self.paths[s][t * n_x + d]));
                }
            }
        }
        for &(k, x) in &held {
            let row = &mut self.u[k * m..(k + 1) * m];
            along.iter_mut().zip(row.iter()).for_each(|(sum, u)| *sum += u * x);
            row.fill(0.0);
        }
        if m > 0 && !held.is_empty() {
            self.b.iter_mut().zip(self.u.chunks_exact(m)).for_each(|(b, row)| *b += dot(row, &along));
        }
        for &(k, x) in &held {
            let b = &mut self.b;
            self.precision.isolate(k, |j, value| b[j] -= value * x);
            b[k] = x;
        }
    }

    fn finish(mut self) -> Result<Frame, NotPositiveDefinite> {
        let m = self.n_weights;
        self.precision.factor()?;
        let (mut span, mut stretch) = (self.u, Dense::default());
        if m > 0 {
            self.precision.solve_lower_rows(&mut span, m);
            // V'V = N N', O = V N^{-T}, and T T' = I - N'N.
            let mut gram = Dense::default();
            gram.set_multiple_of_identity(m, RIDGE);
            gram.add_gram(&span, self.b.len());
            gram.factor()?;
            gram.solve_lower(&mut span, self.b.len());
            let row = |i: usize| (0..m).map(move |j| (i, j));
            let factor = |(i, j): (usize, usize)| if j <= i { gram.get(i, j) } else { 0.0 };
            let rows: Vec<f64> = (0..m).flat_map(row).map(factor).collect();
            stretch.set_multiple_of_identity(m, 0.0);
            stretch.add_gram(&rows, m);
            for j in 0..m {
                let column = stretch.lower_column_mut(j);
                column.iter_mut().for_each(|value| *value = -*value);
                column[0] += 1.0;
            }
            stretch.factor()?;
        }
        let lags = self.model.transition.lags.clone();
        let mut frame =
            Frame { mean: Vec::new(), factor: self.precision, span, stretch, lags, moving: self.moving };
        // mu = S S' b.
        frame.factor.solve_lower(&mut self.b);
        frame.stretch_along(&mut self.b, |t, y| {
            let mut y = y.to_vec();
            t.solve_lower(&mut y, 1);
            inverse_transposed(t, &y)
        });
        frame.factor.solve_lower_transposed(&mut self.b);
        frame.mean = self.b;
        Ok(frame)
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
