//! Gauss-Newton steps that make the errors of predictions or of free runs smaller.
//!
//! All entries of A, B, C, D, o (and K), and the first state of every sequence, are free. Coordinates of the state are then
//! free as well; the Levenberg-Marquardt term holds still what the data do not see (McKelvey, Helmersson, Ribarits 2004,
//! doi 10.1016/j.automatica.2004.04.003). A step that makes A unstable is refused.

use super::Innovations;
use super::matrix::{multiply, multiply_transposed, solve, spectral_radius};
use super::units::Rows;

/// What is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Errors one row ahead.
    Prediction,
    /// Errors of free runs.
    Simulation,
}

impl Criterion {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Prediction => "prediction error",
            Self::Simulation => "simulation error",
        }
    }
}

/// Steps at the most.
const STEPS: usize = 25;
/// A step that gains less than this part is the last.
const ENOUGH: f64 = 1e-4;
/// The largest spectral radius of A: an integrator.
const MOST_RADIUS: f64 = 1.0;
/// First states are learned for at most so many sequences; others begin at the middle.
const MOST_STARTS: usize = 6;

/// What moves.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Free {
    dynamics: bool,
    gain: bool,
}

/// The parameters as one vector, by what moves: (A, B, C, D, o), K, first states.
struct Problem<'a> {
    sequences: &'a [Rows],
    free: Free,
    model: Innovations,
    starts: Vec<Vec<f64>>,
}

struct Sums {
    square: f64,
    /// J'J and J'e, if asked for.
    normal: Vec<f64>,
    gradient: Vec<f64>,
}

impl<'a> Problem<'a> {
    fn n_starts(&self) -> usize {
        if self.starts.len() <= MOST_STARTS { self.starts.len() } else { 0 }
    }

    fn n_parameters(&self) -> usize {
        let Innovations { n_x, n_u, n_y, .. } = self.model;
        let dynamics = n_x * n_x + n_x * n_u + n_y * n_x + n_y * n_u + n_y;
        usize::from(self.free.dynamics) * dynamics
            + usize::from(self.free.gain) * n_x * n_y
            + n_x * self.n_starts()
    }

    /// The same with parameters moved by a step.
    fn moved(&self, step: &[f64]) -> (Innovations, Vec<Vec<f64>>) {
        let (mut model, mut starts) = (self.model.clone(), self.starts.clone());
        let mut rest = step.iter();
        let mut add = |values: &mut [f64]| values.iter_mut().zip(rest.by_ref()).for_each(|(v, s)| *v += s);
        if self.free.dynamics {
            add(&mut model.a);
            add(&mut model.b);
            add(&mut model.c);
            add(&mut model.d);
            add(&mut model.offset);
        }
        if self.free.gain {
            add(&mut model.gain);
        }
        let n_starts = self.n_starts();
        starts[..n_starts].iter_mut().for_each(|start| add(start));
        (model, starts)
    }

    /// Sum of squared errors, with its Gauss-Newton terms.
    fn sums(&self, with_normal: bool) -> Sums {
        let n_p = if with_normal { self.n_parameters() } else { 0 };
        let mut sums = Sums { square: 0.0, normal: vec![0.0; n_p * n_p], gradient: vec![0.0; n_p] };
        for s in 0..self.sequences.len() {
            self.add_sequence(s, with_normal, n_p, &mut sums);
            if !sums.square.is_finite() {
                break;
            }
        }
        for i in 0..n_p {
            for j in 0..i {
                sums.normal[j * n_p + i] = sums.normal[i * n_p + j];
            }
        }
        sums
    }

    /// Sensitivities dx/dp are kept as n_x rows of n_p numbers.
    fn add_sequence(&self, s: usize, with_normal: bool, n_p: usize, sums: &mut Sums) {
        let m = &self.model;
        let (n_x, n_u, n_y) = (m.n_x, m.n_u, m.n_y);
        let rows = &self.sequences[s];
        let has_gain = self.free.gain;
        let mut x = self.starts[s].clone();
        let (at_b, at_c) = (n_x * n_x, n_x * n_x + n_x * n_u);
        let at_d = at_c + n_y * n_x;
        let at_o = at_d + n_y * n_u;
        let at_gain = if self.free.dynamics { at_o + n_y } else { 0 };
        let at_start = at_gain + usize::from(has_gain) * n_x * n_y;
        let mut dx = vec![0.0; n_x * n_p];
        if with_normal && s < self.n_starts() {
            (0..n_x).for_each(|i| dx[i * n_p + at_start + s * n_x + i] = 1.0);
        }
        let mut de = vec![0.0; n_y * n_p];
        for t in 0..rows.n {
            let (u, y) = (rows.u(t), rows.y(t));
            let expected = m.output(&x, u);
            let e: Vec<f64> =
                (0..n_y).map(|k| if y[k].is_nan() { 0.0 } else { y[k] - expected[k] }).collect();
            sums.square += e.iter().map(|e| e * e).sum::<f64>();
            if !sums.square.is_finite() {
                return;
            }
            if with_normal {
                de.fill(0.0);
                for k in (0..n_y).filter(|k| !y[*k].is_nan()) {
                    let row = &mut de[k * n_p..(k + 1) * n_p];
                    for i in 0..n_x {
                        let c = m.c[k * n_x + i];
                        row.iter_mut().zip(&dx[i * n_p..(i + 1) * n_p]).for_each(|(de, dx)| *de -= c * dx);
                    }
                    if self.free.dynamics {
                        (0..n_x).for_each(|i| row[at_c + k * n_x + i] -= x[i]);
                        (0..n_u).for_each(|c| row[at_d + k * n_u + c] -= u[c]);
                        row[at_o + k] -= 1.0;
                    }
                    add_normal(row, e[k], n_p, sums);
                }
                let mut next = vec![0.0; n_x * n_p];
                for i in 0..n_x {
                    let row = &mut next[i * n_p..(i + 1) * n_p];
                    for l in 0..n_x {
                        let a = m.a[i * n_x + l];
                        row.iter_mut().zip(&dx[l * n_p..(l + 1) * n_p]).for_each(|(r, dx)| *r += a * dx);
                    }
                    if has_gain {
                        for k in 0..n_y {
                            let gain = m.gain[i * n_y + k];
                            row.iter_mut()
                                .zip(&de[k * n_p..(k + 1) * n_p])
                                .for_each(|(r, de)| *r += gain * de);
                            row[at_gain + i * n_y + k] += e[k];
                        }
                    }
                    if self.free.dynamics {
                        (0..n_x).for_each(|l| row[i * n_x + l] += x[l]);
                        (0..n_u).for_each(|c| row[at_b + i * n_u + c] += u[c]);
                    }
                }
                dx = next;
            }
            let mut next = multiply(&m.a, &x, n_x, n_x, 1);
            next.iter_mut().zip(multiply(&m.b, u, n_x, n_u, 1)).for_each(|(x, bu)| *x += bu);
            if has_gain {
                next.iter_mut().zip(multiply(&m.gain, &e, n_x, n_y, 1)).for_each(|(x, ke)| *x += ke);
            }
            x = next;
        }
    }

    /// Steps until nothing is gained.
    fn solve(&mut self) -> Option<()> {
        let mut damping = 1e-3;
        let mut sums = self.sums(true);
        if !sums.square.is_finite() {
            return None;
        }
        for _ in 0..STEPS {
            let n_p = sums.gradient.len();
            let mean = (0..n_p).map(|i| sums.normal[i * n_p + i]).sum::<f64>() / n_p as f64;
            let mut gained = None;
            for _ in 0..8 {
                let mut damped = sums.normal.clone();
                for i in 0..n_p {
                    let own = sums.normal[i * n_p + i];
                    damped[i * n_p + i] += damping * own + 1e-3 * damping.min(1.0) * mean + 1e-10 * mean;
                }
                let next =
                    solve(&damped, &sums.gradient, n_p, 1).and_then(|step| self.tried(&step, sums.square));
                if let Some((next, square)) = next {
                    gained = Some(1.0 - square / sums.square);
                    *self = next;
                    damping = (0.2 * damping).max(1e-9);
                    break;
                }
                damping *= 6.0;
            }
            match gained {
                Some(gained) if gained > ENOUGH => sums = self.sums(true),
                _ => break,
            }
        }
        Some(())
    }

    /// Where a step leads, if it is stable and better.
    fn tried(&self, step: &[f64], square: f64) -> Option<(Problem<'a>, f64)> {
        let (model, starts) = self.moved(step);
        if self.free.dynamics && spectral_radius(&model.a, model.n_x) > MOST_RADIUS {
            return None;
        }
        let next = Problem { sequences: self.sequences, free: self.free, model, starts };
        let found = next.sums(false).square;
        (found < square).then_some((next, found))
    }
}

/// Of one error e with derivative `row`: the lower half of J'J, and -J'e.
fn add_normal(row: &[f64], e: f64, n_p: usize, sums: &mut Sums) {
    for i in 0..n_p {
        let factor = row[i];
        if factor == 0.0 {
            continue;
        }
        sums.gradient[i] -= factor * e;
        let target = &mut sums.normal[i * n_p..i * n_p + i + 1];
        target.iter_mut().zip(&row[..=i]).for_each(|(normal, other)| *normal += factor * other);
    }
}

impl Innovations {
    pub(super) fn zero(n_x: usize, n_u: usize, n_y: usize) -> Self {
        Self {
            n_x,
            n_u,
            n_y,
            a: vec![0.0; n_x * n_x],
            b: vec![0.0; n_x * n_u],
            c: vec![0.0; n_y * n_x],
            d: vec![0.0; n_y * n_u],
            offset: vec![0.0; n_y],
            gain: vec![0.0; n_x * n_y],
            noise: vec![0.0; n_y * n_y],
            spread: vec![0.0; n_x * n_x],
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        let parts = [&self.a, &self.b, &self.c, &self.d, &self.offset, &self.gain, &self.noise, &self.spread];
        parts.into_iter().flatten().all(|value| value.is_finite())
    }

    /// A - K C, whose powers say how errors of the past fade.
    fn predictor(&self) -> Vec<f64> {
        let kc = multiply(&self.gain, &self.c, self.n_x, self.n_y, self.n_x);
        self.a.iter().zip(kc).map(|(a, kc)| a - kc).collect()
    }
}

/// The refined model with its noise; none if its errors are not finite.
pub(super) fn refine(start: &Innovations, sequences: &[Rows], criterion: Criterion) -> Option<Innovations> {
    let mut model = start.clone();
    if spectral_radius(&model.predictor(), model.n_x) >= 1.0 {
        model.gain.fill(0.0);
    }
    let starts = vec![vec![0.0; model.n_x]; sequences.len()];
    let gain = model.gain.clone();
    let first = match criterion {
        Criterion::Prediction => Free { dynamics: true, gain: true },
        Criterion::Simulation => Free { dynamics: true, gain: false },
    };
    let mut problem = Problem { sequences, free: first, model, starts };
    problem.solve()?;
    if criterion == Criterion::Simulation {
        // What is left is partly noise of the states: the gain tells how much, for filters.
        problem.free = Free { dynamics: false, gain: true };
        problem.model.gain = gain;
        if spectral_radius(&problem.model.predictor(), problem.model.n_x) >= 1.0 {
            problem.model.gain.fill(0.0);
        }
        problem.solve()?;
    }
    let mut model = problem.model;
    set_noise(&mut model, sequences, &problem.starts);
    model.is_finite().then_some(model)
}

/// Covariance of the errors and second moment of the states along the training record.
fn set_noise(model: &mut Innovations, sequences: &[Rows], starts: &[Vec<f64>]) {
    let (n_x, n_y) = (model.n_x, model.n_y);
    let mut pairs = vec![0.0; n_y * n_y];
    let mut counts = vec![0.0; n_y * n_y];
    let (mut moment, mut n) = (vec![0.0; n_x * n_x], 0.0);
    for (rows, start) in sequences.iter().zip(starts) {
        let mut x = start.clone();
        for t in 0..rows.n {
            let expected = model.output(&x, rows.u(t));
            let e: Vec<f64> = rows.y(t).iter().zip(&expected).map(|(y, p)| y - p).collect();
            for k in 0..n_y {
                for l in (0..n_y).filter(|l| !e[k].is_nan() && !e[*l].is_nan()) {
                    pairs[k * n_y + l] += e[k] * e[l];
                    counts[k * n_y + l] += 1.0;
                }
            }
            moment.iter_mut().zip(multiply_transposed(&x, &x, n_x, 1, n_x)).for_each(|(m, x)| *m += x);
            n += 1.0;
            let e: Vec<f64> = e.iter().map(|e| if e.is_nan() { 0.0 } else { *e }).collect();
            let mut next = multiply(&model.a, &x, n_x, n_x, 1);
            next.iter_mut()
                .zip(multiply(&model.b, rows.u(t), n_x, model.n_u, 1))
                .for_each(|(x, bu)| *x += bu);
            next.iter_mut().zip(multiply(&model.gain, &e, n_x, n_y, 1)).for_each(|(x, ke)| *x += ke);
            x = next;
        }
    }
    model.noise = pairs.iter().zip(&counts).map(|(sum, n)| sum / f64::max(*n, 1.0)).collect();
    // A perfect fit still has a density.
    (0..n_y).for_each(|k| model.noise[k * n_y + k] += 1e-16);
    model.spread = moment.iter().map(|sum| sum / f64::max(n, 1.0)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J'e is the derivative of half the sum of squares. Seen failing without the term K de/dp.
    #[test]
    fn the_gradient_is_that_of_the_squared_errors() {
        let wave = |i: usize| (12.9898 * (i * i + 1) as f64).sin();
        let mut y: Vec<f64> = (0..40).map(wave).collect();
        y[7] = f64::NAN;
        let rows =
            |y: Vec<f64>| Rows { n: 20, n_y: 2, n_u: 1, y, u: (0..20).map(|t| wave(t + 50)).collect() };
        let sequences = [rows(y.clone()), rows(y.iter().map(|y| 0.5 - y).collect())];
        let numbers = |n: usize, at: usize| (0..n).map(|i| 0.4 * wave(i + at)).collect::<Vec<f64>>();
        let model = Innovations {
            a: numbers(4, 3),
            b: numbers(2, 10),
            c: numbers(4, 20),
            d: numbers(2, 30),
            offset: numbers(2, 40),
            gain: numbers(4, 60),
            ..Innovations::zero(2, 1, 2)
        };
        for free in [
            Free { dynamics: true, gain: true },
            Free { dynamics: true, gain: false },
            Free { dynamics: false, gain: true },
        ] {
            let starts = vec![numbers(2, 70), numbers(2, 80)];
            let problem = Problem { sequences: &sequences, free, model: model.clone(), starts };
            let sums = problem.sums(true);
            let n_p = problem.n_parameters();
            for i in 0..n_p {
                let at = |h: f64| {
                    let mut step = vec![0.0; n_p];
                    step[i] = h;
                    let (model, starts) = problem.moved(&step);
                    0.5 * Problem { sequences: &sequences, free, model, starts }.sums(false).square
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(
                    (slope + sums.gradient[i]).abs() < 1e-6 * (1.0 + slope.abs()),
                    "{i}: {slope} {}",
                    sums.gradient[i]
                );
            }
        }
    }
}
