//! Coordinates of a path in which it hardly depends on the noise: those of a frozen Gaussian approximation of
//! p(x_{0:T} | y, theta).
//!
//! An [`Anchor`] holds what is frozen: a path x̄, and slopes A_t and offsets c_t of a function f̂ along it, a linear fit to
//! that path (a function that follows every turn of f would tie the path to it). With these the model is linear, s_{t+1} = A_t x_t + c_t + v, v ~ N(0, Q(theta)), s the states that are not lags; the sensor is expanded at
//! x̄_t to second order. The posterior of this model is Gaussian with a banded precision Lambda(theta) = L L' and mean mu(theta),
//! and a path has the coordinates z = L' (x - mu). A move of theta that holds z moves the path along,
//! x(theta) = mu(theta) + L(theta)^{-T} z, with volume -sum log L_ii.
//!
//! Exact for any anchor, as long as mu and L depend on y, u, theta at its new value, states that are held, and the
//! anchor; never on the states that move (on their signs alone where the anchor has two branches: then a move ends where a
//! sign changes). So anchors come from the warm-up and are frozen with it.

use serde::{Deserialize, Serialize};

use crate::dynamics::function_mean::FunctionMean;
use crate::dynamics::transition::Transition;
use crate::initial::BoundInitial;
use crate::linalg::banded::Banded;
use crate::linalg::dense::NotPositiveDefinite;
use crate::linalg::small;
use crate::model::compile::Problem;
use crate::model::symmetry::Symmetry;
use crate::points::Points;
use crate::record::Sequence;
use crate::sensor::BoundSensor;
use crate::state_space::{SharedPairs, StateSpace};

/// Step of finite differences, in internal units, where states are of size one.
const STEP: f64 = 1e-3;
/// Share of the states that is held where a sensor does not see signs: those that it sees worst.
const HELD: f64 = 0.5;
/// Precision of the first state where p(x_0) is a user's own density.
const VAGUE: f64 = 0.25;

/// What a Gaussian approximation is expanded around; constants of a chain once warm-up is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// One expansion; or two, for positive and negative states, where a declared symmetry flips the state.
    branches: Vec<Vec<Expansion>>,
    /// States (sequence, row) that do not move.
    held: Vec<Vec<bool>>,
}

/// Of one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Expansion {
    /// x̄, (t, d).
    path: Vec<f64>,
    /// d f̂_i / d x_j at x̄_t, (t, i, j), i over the states that are not lags.
    slopes: Vec<f64>,
    /// f̂(z̄_t) - A_t x̄_t, (t, i).
    offsets: Vec<f64>,
}

impl Anchor {
    /// Whether it has two branches: one state, whose sign the sensor does not see.
    pub(crate) fn is_signed(problem: &Problem) -> bool {
        let model = problem.model();
        let flipped = |symmetry: &Symmetry| symmetry.flip.contains(&0);
        !model.sensor.is_linear_gaussian() && model.symmetries.iter().any(flipped)
    }

    /// Whether there are such coordinates for this problem. Several states whose signs a sensor does not see have too many
    /// branches.
    pub(crate) fn exists_for(problem: &Problem) -> bool {
        problem.model().presample == 0 && (!Self::is_signed(problem) || problem.n_x() == 1)
    }

    /// Around `center`, the mean path. f̂ is the linear function that leads along it best; where the sensor does not see signs
    /// it is the posterior mean of f given theta and `paths`, as its slopes differ from sign to sign.
    pub fn new(
        problem: &Problem,
        theta: &[f64],
        paths: &[Vec<f64>],
        center: &[Vec<f64>],
    ) -> Result<Self, NotPositiveDefinite> {
        let model = problem.bind(theta);
        let sequences = problem.sequences();
        let anchor = if Self::is_signed(problem) {
            let mut pairs = SharedPairs::none(problem.n_x(), problem.model().n_u);
            for (path, sequence) in paths.iter().zip(sequences) {
                pairs.add(&model.transition, path, sequence);
            }
            let f = FunctionMean::new(&model.transition, &pairs.0)?;
            let branch = |sign: f64| {
                let of_sequence = |(center, sequence): (&Vec<f64>, &Sequence)| {
                    let path = center.iter().map(|x| sign * x.abs()).collect();
                    Expansion::of_function(&model.transition, &f, path, sequence)
                };
                center.iter().zip(sequences).map(of_sequence).collect::<Result<Vec<_>, _>>()
            };
            let branches = vec![branch(1.0)?, branch(-1.0)?];
            let rows = branches[0].iter().zip(sequences);
            let held = rows.map(|(e, sequence)| seen_worst(&model.sensor, sequence, &e.path)).collect();
            Self { branches, held }
        } else {
            let fit = LinearFit::new(&model.transition, center, sequences)?;
            let rows = center.iter().zip(sequences);
            let branch = rows.map(|(center, sequence)| fit.expansion(center, sequence)).collect();
            Self { branches: vec![branch], held: sequences.iter().map(|s| vec![false; s.n_rows()]).collect() }
        };
        match anchor.is_finite() {
            true => Ok(anchor),
            false => Err(NotPositiveDefinite { order: 0, index: 0 }),
        }
    }

    fn is_finite(&self) -> bool {
        let numbers = |e: &Expansion| e.path.iter().chain(&e.slopes).chain(&e.offsets).all(|x| x.is_finite());
        self.branches.iter().flatten().all(numbers)
    }

    /// Whether it belongs to a record of this shape.
    pub(crate) fn fits(&self, problem: &Problem) -> bool {
        let n_x = problem.n_x();
        let fits = |e: &Expansion, s: &Sequence| {
            let p = if s.length() == 0 { 0 } else { e.offsets.len() / s.length() };
            e.path.len() == s.n_rows() * n_x && e.slopes.len() == s.length() * p * n_x
        };
        let sequences = problem.sequences();
        self.is_finite()
            && self.held.len() == sequences.len()
            && self.held.iter().zip(sequences).all(|(held, s)| held.len() == s.n_rows())
            && self.branches.iter().all(|branch| {
                branch.len() == sequences.len() && branch.iter().zip(sequences).all(|(e, s)| fits(e, s))
            })
    }

    /// The branch of row `t`.
    fn branch(&self, s: usize, x: &[f64]) -> &Expansion {
        let negative = self.branches.len() == 2 && x[0] < 0.0;
        &self.branches[usize::from(negative)][s]
    }

    /// Whether states on the way from one path to the other keep their branches.
    pub(crate) fn keeps_branches(&self, from: &[Vec<f64>], to: &[Vec<f64>]) -> bool {
        self.branches.len() == 1
            || from.iter().flatten().zip(to.iter().flatten()).all(|(a, b)| (*a < 0.0) == (*b < 0.0))
    }
}

/// Rows whose state the sensor sees worst, by its curvature along the path.
fn seen_worst(sensor: &BoundSensor, sequence: &Sequence, path: &[f64]) -> Vec<bool> {
    let seen: Vec<f64> = (0..sequence.n_rows())
        .map(|t| Seen::new(sensor, sequence, t, &path[t..=t], &[0]).precision[0])
        .collect();
    let mut sorted = seen.clone();
    sorted.sort_by(f64::total_cmp);
    let least = sorted[((HELD * sorted.len() as f64) as usize).min(sorted.len() - 1)];
    seen.iter().map(|seen| *seen < least).collect()
}

impl Expansion {
    /// f̂ is a function that is curved.
    fn of_function(
        transition: &Transition,
        f: &FunctionMean,
        path: Vec<f64>,
        sequence: &Sequence,
    ) -> Result<Self, NotPositiveDefinite> {
        let n_x = transition.n_x();
        let moving: Vec<usize> = transition.moving().collect();
        let mut z = Points::new(n_x + sequence.n_u());
        for (t, x) in path.chunks_exact(n_x).enumerate().take(sequence.length()) {
            z.push_parts(x, sequence.u(t));
        }
        let value = f.at(&z)?;
        let mut slopes = vec![0.0; z.len() * moving.len() * n_x];
        for j in 0..n_x {
            let shifted = |step: f64| {
                let mut z = z.clone();
                z.column_mut(j).iter_mut().for_each(|x| *x += step);
                f.at(&z)
            };
            let (above, below) = (shifted(STEP)?, shifted(-STEP)?);
            for t in 0..z.len() {
                for (i, &d) in moving.iter().enumerate() {
                    let slope = (above[t * n_x + d] - below[t * n_x + d]) / (2.0 * STEP);
                    slopes[(t * moving.len() + i) * n_x + j] = slope;
                }
            }
        }
        let mut offsets = Vec::with_capacity(z.len() * moving.len());
        for t in 0..z.len() {
            for (i, &d) in moving.iter().enumerate() {
                let slopes = &slopes[(t * moving.len() + i) * n_x..][..n_x];
                let linear: f64 = slopes.iter().zip(&path[t * n_x..]).map(|(a, x)| a * x).sum();
                offsets.push(value[t * n_x + d] - linear);
            }
        }
        Ok(Self { path, slopes, offsets })
    }
}

/// s_{t+1} = A x_t + B u_t + c by least squares along the mean paths of all sequences.
struct LinearFit {
    n_x: usize,
    /// (A, B, c) of each state that is not a lag.
    coefficients: Vec<Vec<f64>>,
}

/// Keeps the fit defined where regressors depend on one another, relative to the sums of their squares.
const RIDGE: f64 = 1e-6;

impl LinearFit {
    fn new(
        transition: &Transition,
        center: &[Vec<f64>],
        sequences: &[Sequence],
    ) -> Result<Self, NotPositiveDefinite> {
        let n_x = transition.n_x();
        let moving: Vec<usize> = transition.moving().collect();
        let n = n_x + sequences.first().map_or(0, Sequence::n_u) + 1;
        let mut gram = vec![0.0; n * n];
        let mut targets = vec![vec![0.0; n]; moving.len()];
        for (path, sequence) in center.iter().zip(sequences) {
            for t in 0..sequence.length() {
                let row = [&path[t * n_x..(t + 1) * n_x], sequence.u(t), &[1.0]].concat();
                for i in 0..n {
                    (0..n).for_each(|j| gram[i * n + j] += row[i] * row[j]);
                    for (target, &d) in targets.iter_mut().zip(&moving) {
                        target[i] += row[i] * path[(t + 1) * n_x + d];
                    }
                }
            }
        }
        (0..n).for_each(|i| gram[i * n + i] = gram[i * n + i] * (1.0 + RIDGE) + RIDGE);
        if !small::cholesky(&mut gram, n) {
            return Err(NotPositiveDefinite { order: n, index: 0 });
        }
        for target in &mut targets {
            small::solve_lower(&gram, n, target);
            small::solve_lower_transposed(&gram, n, target);
        }
        Ok(Self { n_x, coefficients: targets })
    }

    fn expansion(&self, path: &[f64], sequence: &Sequence) -> Expansion {
        let n_x = self.n_x;
        let (mut slopes, mut offsets) = (Vec::new(), Vec::new());
        for t in 0..sequence.length() {
            for of in &self.coefficients {
                slopes.extend_from_slice(&of[..n_x]);
                let driven: f64 = of[n_x..].iter().zip(sequence.u(t)).map(|(b, u)| b * u).sum();
                offsets.push(driven + of[of.len() - 1]);
            }
        }
        Expansion { path: path.to_vec(), slopes, offsets }
    }
}

/// What the sensor says of the states of one row: log p(y | x) is about b'x - x' H x / 2.
struct Seen {
    /// H over the states given, row-major.
    precision: Vec<f64>,
    b: Vec<f64>,
}

impl Seen {
    /// Expanded at `x` in the states `dims`; exact where the sensor is linear and Gaussian.
    fn new(sensor: &BoundSensor, sequence: &Sequence, t: usize, x: &[f64], dims: &[usize]) -> Self {
        let n = dims.len();
        let y = sequence.y(t);
        let mut seen = Self { precision: vec![0.0; n * n], b: vec![0.0; n] };
        if y.iter().all(|y| y.is_nan()) {
            return seen;
        }
        let mut z = Points::new(x.len() + sequence.n_u());
        let mut push = |moves: &[(usize, f64)]| {
            let mut x = x.to_vec();
            moves.iter().for_each(|&(d, step)| x[d] += step);
            z.push_parts(&x, sequence.u(t));
        };
        push(&[]);
        for &d in dims {
            push(&[(d, STEP)]);
            push(&[(d, -STEP)]);
        }
        for (i, &d) in dims.iter().enumerate() {
            for &e in &dims[..i] {
                push(&[(d, STEP), (e, STEP)]);
                push(&[(d, -STEP), (e, -STEP)]);
            }
        }
        let mut value = vec![0.0; z.len()];
        sensor.add_log_density(y, &z, &mut value);
        if value.iter().any(|value| !value.is_finite()) {
            return seen;
        }
        let square = STEP * STEP;
        let second = |i: usize| (value[1 + 2 * i] + value[2 + 2 * i] - 2.0 * value[0]) / square;
        let mut cross = 1 + 2 * n;
        for i in 0..n {
            seen.precision[i * n + i] = (-second(i)).max(0.0);
            for j in 0..i {
                let both = (value[cross] + value[cross + 1] - 2.0 * value[0]) / square;
                let mixed = -0.5 * (both - second(i) - second(j));
                (seen.precision[i * n + j], seen.precision[j * n + i]) = (mixed, mixed);
                cross += 2;
            }
        }
        let mut factor = seen.precision.clone();
        (0..n).for_each(|i| factor[i * n + i] = factor[i * n + i] * (1.0 + 1e-6) + 1e-9);
        if !small::cholesky(&mut factor, n) {
            for i in 0..n {
                (0..n).filter(|j| *j != i).for_each(|j| seen.precision[i * n + j] = 0.0);
            }
        }
        for i in 0..n {
            let slope = (value[1 + 2 * i] - value[2 + 2 * i]) / (2.0 * STEP);
            let at: f64 = dims.iter().enumerate().map(|(j, &e)| seen.precision[i * n + j] * x[e]).sum();
            seen.b[i] = slope + at;
        }
        seen
    }
}

/// Mean, and factor of the precision, of the states of one sequence.
struct Gaussian {
    mean: Vec<f64>,
    factor: Banded,
}

/// Coordinates at one theta: mean and factor for each sequence.
pub(crate) struct Frame {
    sequences: Vec<Gaussian>,
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
        let moving: Vec<usize> = model.transition.moving().collect();
        let p = moving.len();
        let precision = inverse(model.transition.noise_of(&moving), p)?;
        let sequences = problem.sequences().iter().enumerate().map(|(s, sequence)| {
            let builder = Builder { model, anchor, s, sequence, path: &paths[s], moving: &moving };
            builder.build(&precision)
        });
        Ok(Self {
            sequences: sequences.collect::<Result<_, _>>()?,
            lags: model.transition.lags.clone(),
            moving,
        })
    }

    /// z = L' (x - mu).
    pub(crate) fn whiten(&self, paths: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let n_x = self.lags.len();
        let of_sequence = |(Gaussian { mean, factor }, path): (&Gaussian, &Vec<f64>)| {
            let states = path.chunks_exact(n_x).flat_map(|x| self.moving.iter().map(|&d| x[d]));
            let mut z: Vec<f64> = states.zip(mean).map(|(x, mean)| x - mean).collect();
            factor.multiply_lower_transposed(&mut z);
            z
        };
        self.sequences.iter().zip(paths).map(of_sequence).collect()
    }

    /// x = mu + L^{-T} z; what is before row 0 is as in `paths`.
    pub(crate) fn place(&self, z: &[Vec<f64>], paths: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (n_x, p) = (self.lags.len(), self.moving.len());
        let of_sequence = |((Gaussian { mean, factor }, z), path): ((&Gaussian, &Vec<f64>), &Vec<f64>)| {
            let mut states = z.clone();
            factor.solve_lower_transposed(&mut states);
            let mut path = path.clone();
            for t in 0..path.len() / n_x {
                for (i, &d) in self.moving.iter().enumerate() {
                    path[t * n_x + d] = mean[t * p + i] + states[t * p + i];
                }
                if t > 0 {
                    for (d, of) in self.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
                        path[t * n_x + d] = path[(t - 1) * n_x + of];
                    }
                }
            }
            path
        };
        self.sequences.iter().zip(z).zip(paths).map(of_sequence).collect()
    }

    /// log |dx / dz|.
    pub(crate) fn log_volume(&self) -> f64 {
        -self.sequences.iter().map(|gaussian| gaussian.factor.log_diagonal()).sum::<f64>()
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

/// Puts the precision of one sequence together.
struct Builder<'a> {
    model: &'a StateSpace,
    anchor: &'a Anchor,
    s: usize,
    sequence: &'a Sequence,
    path: &'a [f64],
    moving: &'a [usize],
}

/// Where a state stands among the unknowns.
enum Place {
    Unknown(usize),
    /// Before row 0.
    Known(f64),
}

impl Builder<'_> {
    /// State `d` of row `t`: a lag is a state of an earlier row, or from before the record.
    fn place(&self, t: usize, d: usize) -> Place {
        let (mut row, mut dim) = (t, d);
        while let Some(of) = self.model.transition.lags[dim] {
            if row == 0 {
                return Place::Known(self.path[dim]);
            }
            (row, dim) = (row - 1, of);
        }
        let i = self.moving.iter().position(|&m| m == dim).unwrap_or(0);
        Place::Unknown(row * self.moving.len() + i)
    }

    fn build(&self, precision: &[f64]) -> Result<Gaussian, NotPositiveDefinite> {
        let (n_x, p, n_rows) = (self.model.transition.n_x(), self.moving.len(), self.sequence.n_rows());
        let band = (self.model.transition.memory() + 2) * p - 1;
        let mut lambda = Banded::new(n_rows * p, band.min((n_rows * p).saturating_sub(1)));
        let mut b = vec![0.0; n_rows * p];
        self.add_initial(&mut lambda, &mut b)?;
        for t in 0..n_rows {
            let x = &self.path[t * n_x..(t + 1) * n_x];
            let expansion = self.anchor.branch(self.s, x);
            self.add_sensor(t, expansion, &mut lambda, &mut b);
            if t + 1 < n_rows {
                self.add_transition(t, expansion, precision, &mut lambda, &mut b);
            }
        }
        let fixed = matches!(self.model.initial, BoundInitial::Fixed(_));
        for t in (0..n_rows).filter(|&t| self.anchor.held[self.s][t] || (t == 0 && fixed)) {
            for (i, &d) in self.moving.iter().enumerate() {
                let (k, x) = (t * p + i, self.path[t * n_x + d]);
                lambda.isolate(k, |j, value| b[j] -= value * x);
                b[k] = x;
            }
        }
        lambda.factor()?;
        lambda.solve_lower(&mut b);
        lambda.solve_lower_transposed(&mut b);
        Ok(Gaussian { mean: b, factor: lambda })
    }

    fn add_initial(&self, lambda: &mut Banded, b: &mut [f64]) -> Result<(), NotPositiveDefinite> {
        let p = self.moving.len();
        let (mean, precision) = match &self.model.initial {
            BoundInitial::Gaussian { mean, chol } => {
                let n_x = mean.len();
                let covariance = small::covariance(chol, n_x);
                let of = |&a: &usize| self.moving.iter().map(move |&b| (a, b));
                let own = self.moving.iter().flat_map(of).map(|(a, b)| covariance[a * n_x + b]).collect();
                (self.moving.iter().map(|&d| mean[d]).collect(), inverse(own, p)?)
            }
            BoundInitial::Fixed(_) | BoundInitial::User { .. } => {
                let vague = (0..p * p).map(|k| if k % (p + 1) == 0 { VAGUE } else { 0.0 }).collect();
                (vec![0.0; p], vague)
            }
        };
        for i in 0..p {
            for j in 0..p {
                b[i] += precision[i * p + j] * mean[j];
                if j <= i {
                    lambda.add(i, j, precision[i * p + j]);
                }
            }
        }
        Ok(())
    }

    fn add_sensor(&self, t: usize, expansion: &Expansion, lambda: &mut Banded, b: &mut [f64]) {
        let n_x = self.model.transition.n_x();
        let dims: Vec<usize> = (0..n_x).collect();
        let at = &expansion.path[t * n_x..(t + 1) * n_x];
        let seen = Seen::new(&self.model.sensor, self.sequence, t, at, &dims);
        let places: Vec<Place> = dims.iter().map(|&d| self.place(t, d)).collect();
        for (i, place) in places.iter().enumerate() {
            let Place::Unknown(row) = *place else { continue };
            b[row] += seen.b[i];
            for (j, place) in places.iter().enumerate() {
                let h = seen.precision[i * n_x + j];
                match *place {
                    Place::Known(x) => b[row] -= h * x,
                    Place::Unknown(column) if column <= row => lambda.add(row, column, h),
                    Place::Unknown(_) => {}
                }
            }
        }
    }

    /// s_{t+1} - A_t x_t ~ N(c_t, Q).
    fn add_transition(
        &self,
        t: usize,
        expansion: &Expansion,
        precision: &[f64],
        lambda: &mut Banded,
        b: &mut [f64],
    ) {
        let (n_x, p) = (self.model.transition.n_x(), self.moving.len());
        let mut target = expansion.offsets[t * p..(t + 1) * p].to_vec();
        // Unknowns of this transition, each with its column of coefficients.
        let mut terms: Vec<(usize, Vec<f64>)> = Vec::with_capacity(p + n_x);
        for i in 0..p {
            terms.push(((t + 1) * p + i, (0..p).map(|k| f64::from(u8::from(k == i))).collect()));
        }
        for j in 0..n_x {
            let slope = |i: usize| expansion.slopes[(t * p + i) * n_x + j];
            match self.place(t, j) {
                Place::Known(x) => target.iter_mut().enumerate().for_each(|(i, c)| *c += slope(i) * x),
                Place::Unknown(k) => match terms.iter_mut().find(|(other, _)| *other == k) {
                    Some((_, column)) => column.iter_mut().enumerate().for_each(|(i, a)| *a -= slope(i)),
                    None => terms.push((k, (0..p).map(|i| -slope(i)).collect())),
                },
            }
        }
        for (row, a) in &terms {
            let weighted: Vec<f64> =
                (0..p).map(|j| (0..p).map(|i| a[i] * precision[i * p + j]).sum()).collect();
            b[*row] += weighted.iter().zip(&target).map(|(w, c)| w * c).sum::<f64>();
            for (column, other) in terms.iter().filter(|(column, _)| column <= row) {
                lambda.add(*row, *column, weighted.iter().zip(other).map(|(w, a)| w * a).sum());
            }
        }
    }
}
