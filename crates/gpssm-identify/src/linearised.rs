//! A fitted model near a point, as control engineers look at it: matrices, poles, gains and step responses with intervals.

use faer::Mat;
use gpssm::Error;
use gpssm::posterior::{Equilibrium, LinearDraw};
use serde::Serialize;

use crate::fitted::FittedModel;

/// A mean over draws and an interval that holds a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Mean over the draws.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// An eigenvalue of A; those of all draws are ordered by modulus, conjugates the positive one first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pole {
    /// Of the mean of A.
    pub re: f64,
    /// Of the mean of A.
    pub im: f64,
    /// Over the draws.
    pub modulus: Interval,
    /// |im| over the draws.
    pub imaginary: Interval,
}

/// Deviation of the outputs after one input rises by one at the first row and stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepResponse {
    /// Which input.
    pub input: usize,
    /// By row of the model, then by output.
    pub rows: Vec<Vec<Interval>>,
}

/// x' = f + A (x - x*) + B (u - u*), y = h + C (x - x*) + D (u - u*) around (x*, u*): entries by row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Linearised {
    /// x*.
    pub x: Vec<f64>,
    /// u*.
    pub u: Vec<f64>,
    /// Probability that intervals hold.
    pub level: f64,
    /// Draws behind it.
    pub n_draws: usize,
    /// f(x*, u*).
    pub f: Vec<Interval>,
    /// df / dx.
    pub a: Vec<Vec<Interval>>,
    /// df / du.
    pub b: Vec<Vec<Interval>>,
    /// Outputs; empty for a user's sensor, whose mean is not known.
    pub h: Vec<Interval>,
    /// dh / dx.
    pub c: Vec<Vec<Interval>>,
    /// dh / du.
    pub d: Vec<Vec<Interval>>,
    /// Eigenvalues of A.
    pub poles: Vec<Pole>,
    /// Share of the draws whose poles lie inside the unit circle.
    pub stable: f64,
    /// C (I - A)^{-1} B + D over the stable draws, (output, input); none where no draw is stable.
    pub dc_gain: Option<Vec<Vec<Interval>>>,
    /// One for each input; empty without outputs.
    pub step_responses: Vec<StepResponse>,
}

/// A state that stays where it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rest {
    /// The input.
    pub u: Vec<f64>,
    /// Probability that intervals hold.
    pub level: f64,
    /// The state.
    pub x: Vec<Interval>,
    /// Outputs; empty for a user's sensor.
    pub y: Vec<Interval>,
    /// Share of the draws that have such a state near the start.
    pub found: f64,
}

/// How a model is linearised.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearOptions {
    /// Probability that intervals hold.
    pub level: f64,
    /// Rows of step responses; none to follow the slowest pole.
    pub steps: Option<usize>,
    /// Seed of the draws of f.
    pub seed: u64,
}

impl Default for LinearOptions {
    fn default() -> Self {
        Self { level: 0.9, steps: None, seed: 1 }
    }
}

/// Rows of step responses at the least and at most, by default.
const STEPS: std::ops::RangeInclusive<usize> = 10..=300;

impl FittedModel {
    /// The model near (x, u), see [`gpssm::Posterior::linearise`].
    pub fn linearise(&self, x: &[f64], u: &[f64], options: &LinearOptions) -> Result<Linearised, Error> {
        check_level(options.level)?;
        let draws = self.posterior.linearise(x, u, options.seed)?;
        let n_u = u.len();
        let n_x = x.len();
        let n_y = draws[0].h.len();
        let table = |rows: usize, columns: usize, of: &dyn Fn(&LinearDraw) -> &[f64]| -> Vec<Vec<Interval>> {
            let entry = |i: usize| interval(draws.iter().map(|d| (of(d)[i], d.weight)), options.level);
            (0..rows).map(|i| (0..columns).map(|j| entry(i * columns + j)).collect()).collect()
        };
        let line = |n: usize, of: &dyn Fn(&LinearDraw) -> &[f64]| table(1, n, of).remove(0);
        let a = table(n_x, n_x, &|d| &d.a);
        let means: Vec<f64> = a.iter().flatten().map(|entry| entry.mean).collect();
        let poles: Vec<Vec<(f64, f64)>> = draws.iter().map(|draw| eigenvalues(&draw.a, n_x)).collect();
        let inside = |poles: &[(f64, f64)]| poles.iter().all(|(re, im)| re.hypot(*im) < 1.0);
        let stable = poles.iter().zip(&draws).filter(|(poles, _)| inside(poles)).map(|(_, d)| d.weight).sum();
        let gains: Vec<(Vec<f64>, f64)> = poles
            .iter()
            .zip(&draws)
            .filter(|(poles, _)| inside(poles))
            .filter_map(|(_, draw)| Some((dc_gain(draw, n_x, n_u, n_y)?, draw.weight)))
            .collect();
        let gain = |i: usize| interval(gains.iter().map(|(gain, w)| (gain[i], *w)), options.level);
        let slowest = eigenvalues(&means, n_x).first().map_or(0.0, |(re, im)| re.hypot(*im));
        let steps = options.steps.unwrap_or_else(|| default_steps(slowest));
        Ok(Linearised {
            x: x.to_vec(),
            u: u.to_vec(),
            level: options.level,
            n_draws: draws.len(),
            f: line(n_x, &|d| &d.f),
            b: table(n_x, n_u, &|d| &d.b),
            h: line(n_y, &|d| &d.h),
            c: table(n_y, n_x, &|d| &d.c),
            d: table(n_y, n_u, &|d| &d.d),
            poles: eigenvalues(&means, n_x)
                .into_iter()
                .enumerate()
                .map(|(rank, (re, im))| {
                    let over = |of: fn(f64, f64) -> f64| {
                        let each = poles.iter().zip(&draws);
                        interval(each.map(|(p, d)| (of(p[rank].0, p[rank].1), d.weight)), options.level)
                    };
                    Pole { re, im, modulus: over(f64::hypot), imaginary: over(|_, im| im.abs()) }
                })
                .collect(),
            stable,
            dc_gain: (!gains.is_empty())
                .then(|| (0..n_y).map(|k| (0..n_u).map(|c| gain(k * n_u + c)).collect()).collect()),
            step_responses: match n_y {
                0 => Vec::new(),
                _ => (0..n_u).map(|input| step_response(&draws, input, n_u, steps, options.level)).collect(),
            },
            a,
        })
    }

    /// The state that stays where it is under `u`, near `x`; refused where no draw has one.
    pub fn equilibrium(&self, x: &[f64], u: &[f64], options: &LinearOptions) -> Result<Rest, Error> {
        check_level(options.level)?;
        let draws = self.posterior.equilibria(x, u, options.seed)?;
        let found: Vec<(&Equilibrium, &[f64])> =
            draws.iter().filter_map(|draw| Some((draw, draw.x.as_deref()?))).collect();
        if found.is_empty() {
            return Err(Error::data(
                "no draw has a state that stays where it is near the start; give another start or input",
            ));
        }
        let over = |of: &dyn Fn(&Equilibrium, &[f64]) -> f64| {
            interval(found.iter().map(|(draw, x)| (of(draw, x), draw.weight)), options.level)
        };
        Ok(Rest {
            u: u.to_vec(),
            level: options.level,
            x: (0..x.len()).map(|d| over(&|_, x| x[d])).collect(),
            y: (0..found[0].0.y.len()).map(|k| over(&|draw, _| draw.y[k])).collect(),
            found: found.iter().map(|found| found.0.weight).sum(),
        })
    }

    /// The middle of the training paths and inputs, original units: where a search for equilibria starts.
    pub fn middle(&self) -> (Vec<f64>, Vec<f64>) {
        let n_x = self.posterior.problem().n_x();
        let middle: Vec<f64> =
            self.posterior.visited().into_iter().map(|(low, high)| 0.5 * (low + high)).collect();
        (middle[..n_x].to_vec(), middle[n_x..].to_vec())
    }
}

fn check_level(level: f64) -> Result<(), Error> {
    match level > 0.0 && level < 1.0 {
        true => Ok(()),
        false => Err(Error::settings("level", format!("{level} is not between 0 and 1"))),
    }
}

/// Until the slowest pole has left a hundredth.
fn default_steps(slowest: f64) -> usize {
    match slowest > 0.0 && slowest < 1.0 {
        true => ((0.01f64.ln() / slowest.ln()).ceil() as usize).clamp(*STEPS.start(), *STEPS.end()),
        false => 50,
    }
}

/// Mean and equal-tailed interval of weighted values.
fn interval(values: impl Iterator<Item = (f64, f64)>, level: f64) -> Interval {
    let mut values: Vec<(f64, f64)> = values.collect();
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = values.iter().map(|(_, w)| w).sum();
    let mean = values.iter().map(|(v, w)| v * w).sum::<f64>() / total;
    // Between the middles of the shares of neighbouring values.
    let quantile = |p: f64| {
        let (mut before, mut last) = (0.0, None);
        for (value, weight) in &values {
            let place = (before + 0.5 * weight) / total;
            if place >= p {
                return match last {
                    Some((at, low)) => low + (value - low) * (p - at) / (place - at),
                    None => *value,
                };
            }
            (before, last) = (before + weight, Some((place, *value)));
        }
        last.map_or(f64::NAN, |(_, value)| value)
    };
    let tail = 0.5 * (1.0 - level);
    Interval { mean, low: quantile(tail), high: quantile(1.0 - tail) }
}

/// Eigenvalues (re, im), largest modulus first, the positive one of conjugates first; NaN where none are found.
fn eigenvalues(a: &[f64], n: usize) -> Vec<(f64, f64)> {
    let Ok(found) = Mat::from_fn(n, n, |i, j| a[i * n + j]).eigenvalues() else {
        return vec![(f64::NAN, f64::NAN); n];
    };
    let mut found: Vec<(f64, f64)> = found.into_iter().map(|value| (value.re, value.im)).collect();
    // Moduli of conjugates are equal but for rounding.
    let rounded = |(re, im): &(f64, f64)| (re.hypot(*im) * 1e9).round();
    found.sort_unstable_by(|a, b| rounded(b).total_cmp(&rounded(a)).then(b.1.total_cmp(&a.1)));
    found
}

/// C (I - A)^{-1} B + D.
fn dc_gain(draw: &LinearDraw, n_x: usize, n_u: usize, n_y: usize) -> Option<Vec<f64>> {
    use faer::linalg::solvers::Solve;
    let left = Mat::from_fn(n_x, n_x, |i, j| f64::from(i == j) - draw.a[i * n_x + j]);
    let states = left.partial_piv_lu().solve(Mat::from_fn(n_x, n_u, |i, j| draw.b[i * n_u + j]));
    let entry = |k: usize, c: usize| {
        draw.d[k * n_u + c] + (0..n_x).map(|d| draw.c[k * n_x + d] * states[(d, c)]).sum::<f64>()
    };
    let gain: Vec<f64> = (0..n_y * n_u).map(|i| entry(i / n_u, i % n_u)).collect();
    gain.iter().all(|gain| gain.is_finite()).then_some(gain)
}

fn step_response(draws: &[LinearDraw], input: usize, n_u: usize, steps: usize, level: f64) -> StepResponse {
    let (n_x, n_y) = (draws[0].f.len(), draws[0].h.len());
    let responses: Vec<Vec<f64>> = draws
        .iter()
        .map(|draw| {
            let (mut x, mut y) = (vec![0.0; n_x], Vec::with_capacity(steps * n_y));
            for _ in 0..steps {
                for k in 0..n_y {
                    let state: f64 = (0..n_x).map(|d| draw.c[k * n_x + d] * x[d]).sum();
                    y.push(state + draw.d[k * n_u + input]);
                }
                let next = |d: usize| {
                    draw.b[d * n_u + input] + (0..n_x).map(|c| draw.a[d * n_x + c] * x[c]).sum::<f64>()
                };
                x = (0..n_x).map(next).collect();
            }
            y
        })
        .collect();
    let at = |i: usize| interval(responses.iter().zip(draws).map(|(y, d)| (y[i], d.weight)), level);
    StepResponse { input, rows: (0..steps).map(|t| (0..n_y).map(|k| at(t * n_y + k)).collect()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conjugate_poles_stand_together() {
        let poles = eigenvalues(&[0.5, -0.3, 0.3, 0.5], 2);
        assert!((poles[0].0 - 0.5).abs() < 1e-12 && (poles[0].1 - 0.3).abs() < 1e-12, "{poles:?}");
        assert!((poles[1].1 + 0.3).abs() < 1e-12, "{poles:?}");
    }

    /// x' = 0.5 x + u, y = 2 x + u: the gain is 2 / 0.5 + 1, the step response 1, 3, 4, 4.5.
    #[test]
    fn gains_and_responses_are_those_of_the_matrices() {
        let draw = LinearDraw::of(1.0, [vec![0.0], vec![0.5], vec![1.0]], [vec![0.0], vec![2.0], vec![1.0]]);
        assert!((dc_gain(&draw, 1, 1, 1).unwrap()[0] - 5.0).abs() < 1e-14);
        let response = step_response(&[draw], 0, 1, 4, 0.9);
        let means: Vec<f64> = response.rows.iter().map(|row| row[0].mean).collect();
        assert_eq!(means, [1.0, 3.0, 4.0, 4.5]);
    }

    #[test]
    fn intervals_hold_their_share() {
        let found = interval((0..1000).map(|i| (f64::from(i), 1.0)), 0.9);
        assert!((found.low - 49.5).abs() < 1e-9 && (found.high - 949.5).abs() < 1e-9, "{found:?}");
        let weighted = interval([(0.0, 1.0), (1.0, 3.0)].into_iter(), 0.5);
        assert!((weighted.mean - 0.75).abs() < 1e-15, "{weighted:?}");
    }
}
