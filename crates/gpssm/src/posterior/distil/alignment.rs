//! Draws in the coordinates of one of them.
//!
//! A hidden state has a sign and a scale that the data leave free, and several of them can mix. Averages of f over draws mean
//! nothing unless all draws speak of the same coordinates. One draw is the reference. Each other draw j is brought to it by
//! the affine map
//!
//! ```text
//! x = A x_j + b,  so that  f(x, u) = A f_j(A^{-1} (x - b), u) + b
//! ```
//!
//! that is fitted on the training paths. A draw counts if f in these coordinates predicts the path of the reference one step
//! ahead nearly as well as the reference itself does, if the reference predicts the path of the draw nearly as well as the draw
//! does, and if the sensor of the reference sees the mapped path nearly as well as its own; other draws belong to other modes
//! and are left out.

use std::cell::OnceCell;

use crate::error::Error;
use crate::linalg::least_squares::least_squares;
use crate::linalg::small;
use crate::model::spec::{Predictor, TransitionSpec, Value};
use crate::points::Points;
use crate::posterior::Posterior;

/// x = A x_j + b in internal units, from the coordinates of a draw to those of the reference.
#[derive(Clone, Debug)]
pub(crate) struct Coordinates {
    n: usize,
    /// A and its inverse, row-major.
    a: Vec<f64>,
    inverse: Vec<f64>,
    b: Vec<f64>,
    is_identity: bool,
}

impl Coordinates {
    pub(crate) fn identity(n: usize) -> Self {
        let mut a = vec![0.0; n * n];
        (0..n).for_each(|d| a[d * n + d] = 1.0);
        Self { n, inverse: a.clone(), a, b: vec![0.0; n], is_identity: true }
    }

    /// None if A has no inverse.
    fn new(n: usize, a: Vec<f64>, b: Vec<f64>) -> Option<Self> {
        let inverse = inverse(&a, n)?;
        let finite = a.iter().chain(&b).chain(&inverse).all(|value| value.is_finite());
        finite.then_some(Self { n, a, inverse, b, is_identity: false })
    }

    /// From the coordinates of the reference to those of the draw.
    fn inverted(&self) -> Self {
        let n = self.n;
        let b = (0..n).map(|d| -(0..n).map(|e| self.inverse[d * n + e] * self.b[e]).sum::<f64>()).collect();
        Self { a: self.inverse.clone(), inverse: self.a.clone(), b, ..self.clone() }
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// A x + b.
    pub(crate) fn to_reference(&self, x: &[f64], out: &mut [f64]) {
        for (d, out) in out.iter_mut().enumerate().take(self.n) {
            *out =
                self.b[d] + self.a[d * self.n..].iter().zip(x).take(self.n).map(|(a, x)| a * x).sum::<f64>();
        }
    }

    /// A path, row-major (t, d).
    pub(crate) fn path(&self, path: &[f64]) -> Vec<f64> {
        let mut mapped = path.to_vec();
        if !self.is_identity {
            for (out, x) in mapped.chunks_exact_mut(self.n).zip(path.chunks_exact(self.n)) {
                self.to_reference(x, out);
            }
        }
        mapped
    }

    /// Points z = (x, u) in the coordinates of the draw.
    pub(crate) fn points_to_draw(&self, z: &Points) -> Points {
        if self.is_identity {
            return z.clone();
        }
        let mut mapped = Points::new(z.n_components());
        for i in 0..z.len() {
            let row = z.row(i);
            let mut own = row.clone();
            for (d, own) in own.iter_mut().enumerate().take(self.n) {
                let terms = self.inverse[d * self.n..].iter().zip(row.iter().zip(&self.b)).take(self.n);
                *own = terms.map(|(a, (x, b))| a * (x - b)).sum();
            }
            mapped.push(&own);
        }
        mapped
    }

    /// A C A' of a covariance, row-major.
    pub(crate) fn covariance(&self, c: &[f64]) -> Vec<f64> {
        let n = self.n;
        let product = |left: &dyn Fn(usize, usize) -> f64, right: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..n * n).map(|i| (0..n).map(|k| left(i / n, k) * right(k, i % n)).sum()).collect()
        };
        let half = product(&|i, k| self.a[i * n + k], &|k, j| c[k * n + j]);
        product(&|i, k| half[i * n + k], &|k, j| self.a[j * n + k])
    }

    /// b_d.
    pub(crate) fn shift(&self, d: usize) -> f64 {
        self.b[d]
    }

    /// A_de.
    pub(crate) fn factor(&self, d: usize, e: usize) -> f64 {
        self.a[d * self.n + e]
    }
}

/// A draw that is averaged.
#[derive(Clone, Debug)]
pub(crate) struct Aligned {
    /// Which.
    pub draw: usize,
    /// Its share; those of all aligned draws sum to one.
    pub weight: f64,
    /// Where it stands.
    pub coordinates: Coordinates,
}

/// Draws that were tried as the reference, and draws that they were tried on.
const REFERENCES: usize = 8;
const TRIED_ON: usize = 32;
/// Rows of the paths that maps are fitted to, and transitions at which functions are compared.
const ROWS: usize = 500;
const TRANSITIONS: usize = 100;
/// A function is that of the reference if its error one step ahead is at most so many times that of the reference itself.
const WORST_ERROR: f64 = 2.0;
/// Log density of a row of outputs that a mapped path may lose.
const WORST_LOSS: f64 = 1.0;
/// A map is used only where it lowers the error by more than this factor.
const GAIN: f64 = 1.2;

impl Posterior {
    /// States whose coordinates may differ from draw to draw: unknown ones that no output shows alone with a known coefficient.
    fn hidden_states(&self) -> Vec<usize> {
        let model = self.problem().model();
        let source = |mut d: usize| {
            while let TransitionSpec::Lag { of } = model.states[d].transition {
                d = of;
            }
            d
        };
        let mut shown = vec![false; model.states.len()];
        match model.sensor.predictor() {
            Some(Predictor::States) => (0..model.n_y).for_each(|k| shown[source(k)] = true),
            Some(Predictor::Linear { c, .. }) => {
                for row in c {
                    let mut seen =
                        row.iter().enumerate().filter(|(_, value)| !matches!(value, Value::Known(0.0)));
                    if let (Some((d, Value::Known(_))), None) = (seen.next(), seen.next()) {
                        shown[source(d)] = true;
                    }
                }
            }
            _ => {}
        }
        let is_gp = |d: &usize| matches!(model.states[*d].transition, TransitionSpec::Gp { .. });
        (0..model.states.len()).filter(is_gp).filter(|&d| !shown[d]).collect()
    }

    /// Draws in the coordinates of one of them, and which that is; those that belong to another mode are left out.
    pub(crate) fn aligned(&self) -> Result<(Vec<Aligned>, usize), Error> {
        let hidden = self.hidden_states();
        let n_x = self.n_x();
        if hidden.is_empty() || self.len() == 1 {
            let whole = self.weights().into_iter().enumerate();
            let coordinates = Coordinates::identity(n_x);
            let whole =
                whole.map(|(draw, weight)| Aligned { draw, weight, coordinates: coordinates.clone() });
            return Ok((whole.collect(), 0));
        }
        let aligner = Aligner::new(self, hidden)?;
        let spread = |n: usize| -> Vec<usize> {
            let n = n.min(self.len());
            (0..n).map(|i| ((2 * i + 1) * self.len()) / (2 * n)).collect()
        };
        let mut best: Option<(f64, f64, usize)> = None;
        for reference in spread(REFERENCES) {
            let (mut taken, mut error) = (0.0, 0.0);
            for j in spread(TRIED_ON) {
                if let Some((_, own)) = aligner.align(reference, j)? {
                    taken += self.draws()[j].weight;
                    error += self.draws()[j].weight * own;
                }
            }
            let error = error / f64::max(taken, f64::MIN_POSITIVE);
            let better = |(most, least, _): &(f64, f64, usize)| {
                taken > most + 1e-9 || (taken > most - 1e-9 && error < *least)
            };
            if best.as_ref().is_none_or(better) {
                best = Some((taken, error, reference));
            }
        }
        let reference = best.map_or(0, |(_, _, reference)| reference);
        let mut aligned = Vec::new();
        for (j, weight) in self.weights().into_iter().enumerate() {
            if let Some((coordinates, _)) = aligner.align(reference, j)? {
                aligned.push(Aligned { draw: j, weight, coordinates });
            }
        }
        let total: f64 = aligned.iter().map(|aligned| aligned.weight).sum();
        aligned.iter_mut().for_each(|aligned| aligned.weight /= total);
        Ok((aligned, reference))
    }
}

/// What maps are fitted to.
struct Aligner<'a> {
    posterior: &'a Posterior,
    hidden: Vec<usize>,
    /// The state that each state copies in the end, or itself: a lag goes where its source goes.
    source: Vec<usize>,
    /// Other states that are not copies.
    others: Vec<usize>,
    /// Whether states may mix: not where lags copy some of them.
    may_mix: bool,
    /// Paths of all draws, internal units, by sequence.
    paths: Vec<Vec<Vec<f64>>>,
    /// (sequence, row) that maps are fitted to, and from which functions predict.
    rows: Vec<(usize, usize)>,
    transitions: Vec<(usize, usize)>,
    /// Each draw as the others are compared with it.
    views: Vec<OnceCell<View>>,
}

/// One draw as others are compared with it.
struct View {
    /// Points (x, u) and next states (transition, state).
    z: Points,
    next: Vec<f64>,
    /// Error of its own function one step ahead, by state.
    error: Vec<f64>,
    space: crate::state_space::StateSpace,
    /// Log density of the outputs at the rows, given its own path.
    log_density: f64,
}

/// Hidden states beside what the others say of them.
struct Remainders {
    /// Coefficients by hidden state: constant, then the others.
    lines: Vec<Vec<f64>>,
    /// (row, hidden state).
    values: Vec<f64>,
    /// Factor of their covariance.
    chol: Vec<f64>,
}

impl<'a> Aligner<'a> {
    fn new(posterior: &'a Posterior, hidden: Vec<usize>) -> Result<Self, Error> {
        let problem = posterior.problem();
        let model = problem.model();
        let n_x = problem.n_x();
        let source = (0..n_x)
            .map(|mut d| {
                while let TransitionSpec::Lag { of } = model.states[d].transition {
                    d = of;
                }
                d
            })
            .collect::<Vec<_>>();
        let is_lag = |d: &usize| source[*d] != *d;
        let others = (0..n_x).filter(|d| !is_lag(d) && !hidden.contains(d)).collect();
        let may_mix = !(0..n_x).any(|d| is_lag(&d) && hidden.contains(&source[d]));
        let paths = posterior
            .draws()
            .iter()
            .map(|draw| draw.paths.iter().map(|path| problem.path_to_internal(path)).collect())
            .collect();
        let all = |last: bool| -> Vec<(usize, usize)> {
            let sequences = problem.sequences().iter().enumerate();
            sequences.flat_map(|(s, q)| (0..q.n_rows() - usize::from(last)).map(move |t| (s, t))).collect()
        };
        let spread = |all: Vec<(usize, usize)>, n: usize| -> Vec<(usize, usize)> {
            let n = n.min(all.len());
            (0..n).map(|i| all[((2 * i + 1) * all.len()) / (2 * n)]).collect()
        };
        let (rows, transitions) = (spread(all(false), ROWS), spread(all(true), TRANSITIONS));
        let views = posterior.draws().iter().map(|_| OnceCell::new()).collect();
        Ok(Self { posterior, hidden, source, others, may_mix, paths, rows, transitions, views })
    }

    fn state(&self, draw: usize, (s, t): (usize, usize)) -> &[f64] {
        let n_x = self.source.len();
        &self.paths[draw][s][t * n_x..(t + 1) * n_x]
    }

    fn column(&self, draw: usize, d: usize) -> Vec<f64> {
        self.rows.iter().map(|row| self.state(draw, *row)[d]).collect()
    }

    fn view(&self, draw: usize) -> Result<&View, Error> {
        if self.views[draw].get().is_none() {
            let view = self.look_at(draw)?;
            return Ok(self.views[draw].get_or_init(|| view));
        }
        self.views[draw].get().ok_or_else(|| Error::data("a draw cannot be looked at"))
    }

    fn look_at(&self, draw: usize) -> Result<View, Error> {
        let problem = self.posterior.problem();
        let n_x = problem.n_x();
        let (mut z, mut next) = (Points::new(n_x + problem.model().n_u), Vec::new());
        for &(s, t) in &self.transitions {
            z.push_parts(self.state(draw, (s, t)), problem.sequences()[s].u(t));
            next.extend_from_slice(self.state(draw, (s, t + 1)));
        }
        let function = self.posterior.function(draw)?;
        let noise = function.space.transition.noise_covariance();
        let means = function.means(&z);
        let error = (0..n_x).map(|d| rms(&means, &next, d, n_x).max(noise[d * n_x + d].sqrt())).collect();
        let space = function.space.clone();
        let log_density = self.log_density(&space, draw, &Coordinates::identity(n_x));
        Ok(View { z, next, error, space, log_density })
    }

    /// Mean log density of the outputs of a row, given the mapped path of a draw and the sensor of the reference.
    fn log_density(
        &self,
        space: &crate::state_space::StateSpace,
        draw: usize,
        coordinates: &Coordinates,
    ) -> f64 {
        let sequences = self.posterior.problem().sequences();
        let n_x = self.source.len();
        let (mut sum, mut n) = (0.0, 0.0);
        let mut x = vec![0.0; n_x];
        for &(s, t) in &self.rows {
            if sequences[s].y(t).iter().all(|y| y.is_nan()) {
                continue;
            }
            coordinates.to_reference(self.state(draw, (s, t)), &mut x);
            let mut z = Points::new(n_x + sequences[s].n_u());
            z.push_parts(&x, sequences[s].u(t));
            let mut density = [0.0];
            space.sensor.add_log_density(sequences[s].y(t), &z, &mut density);
            sum += density[0];
            n += 1.0;
        }
        sum / f64::max(n, 1.0)
    }

    /// Where a draw stands beside the reference, and the error of each one step ahead over that of the other, the larger.
    fn align(&self, reference: usize, draw: usize) -> Result<Option<(Coordinates, f64)>, Error> {
        let n_x = self.source.len();
        if draw == reference {
            return Ok(Some((Coordinates::identity(n_x), 1.0)));
        }
        let (seen, own) = (self.view(reference)?, self.view(draw)?);
        let mut best: Option<(Coordinates, f64)> = None;
        let scaled = self.scaled(reference, draw);
        let mixed = if self.may_mix { self.mixed(reference, draw) } else { None };
        for candidate in std::iter::once(Some(Coordinates::identity(n_x))).chain([scaled, mixed]).flatten() {
            let there = self.error(seen, draw, &candidate)?;
            let back = self.error(own, reference, &candidate.inverted())?;
            let loss = seen.log_density - self.log_density(&seen.space, draw, &candidate);
            let error = f64::max(there, back);
            let is_consistent = error <= WORST_ERROR && loss <= WORST_LOSS;
            if is_consistent && best.as_ref().is_none_or(|(_, least)| GAIN * error < *least) {
                best = Some((candidate, error));
            }
        }
        Ok(best)
    }

    /// Error of the function of a draw along another path one step ahead over that of the other's own, the largest of the states
    /// that are not copies; `coordinates` lead from the draw to the other.
    fn error(&self, other: &View, draw: usize, coordinates: &Coordinates) -> Result<f64, Error> {
        let n_x = self.source.len();
        let own = self.posterior.function(draw)?.means(&coordinates.points_to_draw(&other.z));
        let mapped = coordinates.path(&own);
        let moving = (0..n_x).filter(|&d| self.source[d] == d);
        Ok(moving
            .map(|d| rms(&mapped, &other.next, d, n_x) / other.error[d].max(f64::MIN_POSITIVE))
            .fold(0.0, |worst, error| if error.is_nan() { f64::INFINITY } else { f64::max(worst, error) }))
    }

    /// Each hidden state by its own sign and size.
    fn scaled(&self, reference: usize, draw: usize) -> Option<Coordinates> {
        let n_x = self.source.len();
        let mut found = Coordinates::identity(n_x);
        for d in 0..n_x {
            if !self.hidden.contains(&self.source[d]) {
                continue;
            }
            let (r, j) = (self.column(reference, self.source[d]), self.column(draw, self.source[d]));
            let ((mean_r, sd_r), (mean_j, sd_j)) = (moments(&r), moments(&j));
            let together: f64 = r.iter().zip(&j).map(|(r, j)| (r - mean_r) * (j - mean_j)).sum();
            found.a[d * n_x + d] = together.signum() * sd_r / sd_j;
            found.b[d] = mean_r - found.a[d * n_x + d] * mean_j;
        }
        Coordinates::new(n_x, found.a, found.b)
    }

    /// All hidden states together, beside what the others say of them: whitened remainders of both draws are the same up to
    /// a rotation (orthogonal Procrustes).
    fn mixed(&self, reference: usize, draw: usize) -> Option<Coordinates> {
        let (n_x, h, n) = (self.source.len(), self.hidden.len(), self.rows.len());
        let of = |draw: usize| -> Option<Remainders> {
            let rows: Vec<Vec<f64>> = self
                .rows
                .iter()
                .map(|row| {
                    let x = self.state(draw, *row);
                    std::iter::once(1.0).chain(self.others.iter().map(|&d| x[d])).collect()
                })
                .collect();
            let (mut lines, mut remainders) = (Vec::new(), vec![0.0; n * h]);
            for (a, &d) in self.hidden.iter().enumerate() {
                let target = self.column(draw, d);
                let (line, _, _) = least_squares(&rows, &target);
                for (i, row) in rows.iter().enumerate() {
                    let fitted: f64 = line.iter().zip(row).map(|(c, r)| c * r).sum();
                    remainders[i * h + a] = target[i] - fitted;
                }
                lines.push(line);
            }
            let mut chol = vec![0.0; h * h];
            for row in remainders.chunks_exact(h) {
                (0..h * h).for_each(|i| chol[i] += row[i / h] * row[i % h] / n as f64);
            }
            small::cholesky(&mut chol, h).then_some(Remainders { lines, values: remainders, chol })
        };
        let Remainders { lines: lines_r, values: mut r, chol: chol_r } = of(reference)?;
        let Remainders { lines: lines_j, values: mut j, chol: chol_j } = of(draw)?;
        r.chunks_exact_mut(h).for_each(|row| small::solve_lower(&chol_r, h, row));
        j.chunks_exact_mut(h).for_each(|row| small::solve_lower(&chol_j, h, row));
        let mut cross = vec![0.0; h * h];
        for (r, j) in r.chunks_exact(h).zip(j.chunks_exact(h)) {
            (0..h * h).for_each(|i| cross[i] += r[i / h] * j[i % h] / n as f64);
        }
        let rotation = nearest_rotation(&cross, h)?;
        // A_hh = L_r Q L_j^{-1}.
        let inverse_j = inverse(&lower(&chol_j, h), h)?;
        let block = multiply(&multiply(&lower(&chol_r, h), &rotation, h), &inverse_j, h);
        let mut found = Coordinates::identity(n_x);
        for (a, &d) in self.hidden.iter().enumerate() {
            let rest =
                |c: usize| lines_r[a][c] - (0..h).map(|k| block[a * h + k] * lines_j[k][c]).sum::<f64>();
            found.a[d * n_x + d] = 0.0;
            (0..h).for_each(|k| found.a[d * n_x + self.hidden[k]] = block[a * h + k]);
            self.others.iter().enumerate().for_each(|(c, &e)| found.a[d * n_x + e] = rest(c + 1));
            found.b[d] = rest(0);
        }
        Coordinates::new(n_x, found.a, found.b)
    }
}

/// Root mean square of the difference in column `d` of rows of `n`.
fn rms(a: &[f64], b: &[f64], d: usize, n: usize) -> f64 {
    let pairs = a.iter().skip(d).step_by(n).zip(b.iter().skip(d).step_by(n));
    let count = (a.len() / n).max(1) as f64;
    (pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / count).sqrt()
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}

fn lower(l: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|i| if i % n <= i / n { l[i] } else { 0.0 }).collect()
}

fn multiply(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|i| (0..n).map(|k| a[i / n * n + k] * b[k * n + i % n]).sum()).collect()
}

/// Gauss-Jordan with pivots; none for a singular matrix.
fn inverse(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut a = a.to_vec();
    let mut inverse = Coordinates::identity(n).a;
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &j| a[i * n + c].abs().total_cmp(&a[j * n + c].abs()))?;
        if !(a[pivot * n + c].abs() > 0.0 && a[pivot * n + c].is_finite()) {
            return None;
        }
        for k in 0..n {
            a.swap(c * n + k, pivot * n + k);
            inverse.swap(c * n + k, pivot * n + k);
        }
        let factor = a[c * n + c];
        for k in 0..n {
            a[c * n + k] /= factor;
            inverse[c * n + k] /= factor;
        }
        for i in (0..n).filter(|i| *i != c) {
            let factor = a[i * n + c];
            for k in 0..n {
                a[i * n + k] -= factor * a[c * n + k];
                inverse[i * n + k] -= factor * inverse[c * n + k];
            }
        }
    }
    Some(inverse)
}

/// The orthogonal matrix nearest to M: its polar factor, by Newton's iteration Q <- (Q + Q^{-T}) / 2.
fn nearest_rotation(m: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut q = m.to_vec();
    for _ in 0..50 {
        let inverse = inverse(&q, n)?;
        let next: Vec<f64> = (0..n * n).map(|i| 0.5 * (q[i] + inverse[i % n * n + i / n])).collect();
        let moved = next.iter().zip(&q).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        q = next;
        if moved < 1e-13 {
            break;
        }
    }
    q.iter().all(|value| value.is_finite()).then_some(q)
}
