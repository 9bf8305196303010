//! One-step predictions of the outputs against what was measured.
//!
//! For every draw, x_t is predicted from x_{t-1} of that draw by f, learned from all transitions of the draw
//! except this one; the prediction of y_t is the sensor's. With N(m, V) the posterior of f(x_{t-1}) given all
//! transitions and process noise Q, leaving x_t out gives N(m + V (Q - V)^{-1} (m - x_t), V + V (Q - V)^{-1} V),
//! and x_t itself has Q more. The prediction of y_t is the mixture over the draws.

use gpssm::Points;
use gpssm::linalg::small;
use gpssm::posterior::{standard_cdf, standard_quantile};
use gpssm::random::{Purpose, stream};
use gpssm::sensor::BoundSensor;
use rand::{RngExt, rngs::ChaCha8Rng};

use super::functions::{Functions, OneStep, can_leave_out};
use super::statistics::{mean, sd};
use super::{Block, Check, ReportInput, Section, count};
use crate::chart::scale::significant;
use crate::chart::{Axis, Class, Figure, Key, Mark, Panel, Row, Scale};

/// States drawn from each draw's prediction where the sensor is not linear and Gaussian.
const N_INSIDE: usize = 8;
const N_BINS: usize = 20;
const MOST_LAGS: usize = 25;
/// Outputs that are shown at the most.
const MOST_OUTPUTS: usize = 6;

/// P(Y_t < y_t) and P(Y_t <= y_t) under the prediction, for every row and output; NaN where y_t is missing.
#[derive(Clone, Debug)]
struct Distribution {
    low: Vec<f64>,
    high: Vec<f64>,
}

/// Leaves the transition to `x` out of N(mean, v): both change in place. Does nothing where Q - V is not
/// positive definite, which is so only up to rounding.
pub(crate) fn leave_out(mean: &mut [f64], v: &mut [f64], q: &[f64], x: &[f64]) {
    let n = mean.len();
    let mut chol: Vec<f64> = q.iter().zip(v.iter()).map(|(q, v)| q - v).collect();
    if !small::cholesky(&mut chol, n) {
        return;
    }
    // Columns W = L^{-1} V, and r = L^{-1} (m - x).
    let mut w = vec![0.0; n * n];
    for c in 0..n {
        let mut column: Vec<f64> = (0..n).map(|r| v[r * n + c]).collect();
        small::solve_lower(&chol, n, &mut column);
        (0..n).for_each(|r| w[r * n + c] = column[r]);
    }
    let mut residual: Vec<f64> = mean.iter().zip(x).map(|(m, x)| m - x).collect();
    small::solve_lower(&chol, n, &mut residual);
    for a in 0..n {
        mean[a] += (0..n).map(|r| w[r * n + a] * residual[r]).sum::<f64>();
        for b in 0..n {
            v[a * n + b] += (0..n).map(|r| w[r * n + a] * w[r * n + b]).sum::<f64>();
        }
    }
}

/// Prediction of x_t of the dimensions that are not lags, in internal units: mean and covariance of all.
fn predicted_state(
    input: &ReportInput,
    step: &OneStep,
    i: usize,
    x: &[f64],
    q: &[f64],
    lags: &[Option<usize>],
) -> (Vec<f64>, Vec<f64>) {
    let (n_x, scaling) = (input.problem.n_x(), input.problem.scaling());
    let mut mean: Vec<f64> = (0..n_x).map(|d| scaling.x.to_internal(d, step.mean[i * n_x + d])).collect();
    let unit = |a: usize, b: usize| scaling.x.scale[a] * scaling.x.scale[b];
    let raw = &step.covariance[i * n_x * n_x..(i + 1) * n_x * n_x];
    let mut v: Vec<f64> = (0..n_x * n_x).map(|e| raw[e] / unit(e / n_x, e % n_x)).collect();
    let moving: Vec<usize> = (0..n_x).filter(|&d| lags[d].is_none()).collect();
    if can_leave_out(input) && moving.iter().any(|&d| v[d * n_x + d] > 0.0) {
        let p = moving.len();
        let part = |all: &[f64]| -> Vec<f64> {
            (0..p * p).map(|e| all[moving[e / p] * n_x + moving[e % p]]).collect()
        };
        let mut own_mean: Vec<f64> = moving.iter().map(|&d| mean[d]).collect();
        let mut own_v = part(&v);
        let own_x: Vec<f64> = moving.iter().map(|&d| scaling.x.to_internal(d, x[d])).collect();
        leave_out(&mut own_mean, &mut own_v, &part(q), &own_x);
        for (a, &d) in moving.iter().enumerate() {
            mean[d] = own_mean[a];
            moving.iter().enumerate().for_each(|(b, &e)| v[d * n_x + e] = own_v[a * p + b]);
        }
    }
    for &a in &moving {
        moving.iter().for_each(|&b| v[a * n_x + b] += q[a * n_x + b]);
    }
    (mean, v)
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    standard_quantile(rng.random_range(1e-12..1.0 - 1e-12))
}

/// A lower factor of a covariance that may be singular in lags.
fn factor(v: &[f64], n: usize) -> Vec<f64> {
    let mut chol = vec![0.0; n * n];
    for a in 0..n {
        for b in 0..=a {
            let rest = v[a * n + b] - (0..b).map(|c| chol[a * n + c] * chol[b * n + c]).sum::<f64>();
            chol[a * n + b] = match () {
                () if a == b => rest.max(0.0).sqrt(),
                () if chol[b * n + b] > 0.0 => rest / chol[b * n + b],
                () => 0.0,
            };
        }
    }
    chol
}

/// Adds this draw's share of P(Y < y) and P(Y <= y) for all outputs of a row.
fn add_outputs(
    sensor: &BoundSensor,
    (mean, v): (&[f64], &[f64]),
    u: &[f64],
    y: &[f64],
    rng: &mut ChaCha8Rng,
    out: &mut [(f64, f64)],
) {
    let n = mean.len();
    if let BoundSensor::LinearGaussian(linear) = sensor {
        let (n_z, n_y) = (n + u.len(), y.len());
        let r = linear.covariance();
        for (k, out) in out.iter_mut().enumerate() {
            let c = &linear.weights[k * n_z..(k + 1) * n_z];
            let center =
                linear.offset[k] + c.iter().zip(mean.iter().chain(u)).map(|(c, z)| c * z).sum::<f64>();
            let spread = (0..n * n).map(|e| c[e / n] * v[e] * c[e % n]).sum::<f64>() + r[k * n_y + k];
            let p = standard_cdf((y[k] - center) / spread.sqrt());
            *out = (out.0 + p, out.1 + p);
        }
        return;
    }
    let chol = factor(v, n);
    let share = 1.0 / N_INSIDE as f64;
    let mut drawn = vec![0.0; y.len()];
    for _ in 0..N_INSIDE {
        let e: Vec<f64> = (0..n).map(|_| normal(rng)).collect();
        let mut z = vec![0.0; n];
        small::multiply_lower(&chol, n, &e, &mut z);
        z.iter_mut().zip(mean).for_each(|(z, mean)| *z += mean);
        z.extend_from_slice(u);
        let point = Points::from_rows(z.len(), [z.as_slice()]);
        match sensor {
            BoundSensor::Family { predictors, families } => {
                let mut eta = [0.0];
                for (k, out) in out.iter_mut().enumerate() {
                    predictors[k].evaluate(&point, &mut eta);
                    let (low, high) = families[k].distribution(y[k], eta[0]);
                    *out = (out.0 + share * low, out.1 + share * high);
                }
            }
            BoundSensor::Gaussian { covariance, .. } => {
                let centers = sensor.gaussian_means(&point).unwrap_or_default();
                for (k, (out, center)) in out.iter_mut().zip(centers).enumerate() {
                    let p = share * standard_cdf((y[k] - center) / covariance[k * y.len() + k].sqrt());
                    *out = (out.0 + p, out.1 + p);
                }
            }
            BoundSensor::LinearGaussian(_) | BoundSensor::User(_) => {
                sensor.sample(&z, rng, &mut drawn);
                for (k, out) in out.iter_mut().enumerate() {
                    let (below, equal) =
                        (f64::from(u8::from(drawn[k] < y[k])), f64::from(u8::from(drawn[k] == y[k])));
                    *out = (out.0 + share * below, out.1 + share * (below + equal));
                }
            }
        }
    }
}

fn distributions(input: &ReportInput, functions: &Functions) -> Distribution {
    let problem = input.problem;
    let (n_x, n_y) = (problem.n_x(), problem.model().n_y);
    let mut sums = vec![(0.0, 0.0); functions.rows.len() * n_y];
    let mut rng = stream(0, 0, Purpose::Posterior, 7, 0);
    for (&(c, j), step) in functions.draws.iter().zip(&functions.one_step) {
        let space = problem.bind(&input.chains[c].theta[j]);
        let q = space.transition.noise_covariance();
        for (i, &(s, t)) in functions.rows.iter().enumerate() {
            let sequence = &problem.sequences()[s];
            if sequence.y(t).iter().all(|y| y.is_nan()) {
                continue;
            }
            let x = &input.chains[c].paths[j][s][t * n_x..(t + 1) * n_x];
            let (mean, v) = predicted_state(input, step, i, x, &q, &space.transition.lags);
            let out = &mut sums[i * n_y..(i + 1) * n_y];
            add_outputs(&space.sensor, (&mean, &v), sequence.u(t), sequence.y(t), &mut rng, out);
        }
    }
    let n = functions.draws.len() as f64;
    let missing = |e: usize| {
        let (s, t) = functions.rows[e / n_y];
        problem.sequences()[s].y(t)[e % n_y].is_nan()
    };
    let share = |e: usize, sum: f64| if missing(e) { f64::NAN } else { (sum / n).clamp(0.0, 1.0) };
    Distribution {
        low: sums.iter().enumerate().map(|(e, sum)| share(e, sum.0)).collect(),
        high: sums.iter().enumerate().map(|(e, sum)| share(e, sum.1)).collect(),
    }
}

/// Autocorrelation of values that follow each other within sequences; gaps are left out.
fn autocorrelation(runs: &[Vec<f64>], lags: usize) -> Vec<f64> {
    let all: Vec<f64> = runs.iter().flatten().copied().filter(|v| v.is_finite()).collect();
    let center = mean(&all);
    let variance = all.iter().map(|v| (v - center).powi(2)).sum::<f64>() / all.len().max(1) as f64;
    let at = |lag: usize| {
        let pairs = runs.iter().flat_map(|run| run.iter().zip(run.iter().skip(lag)));
        let products = pairs.map(|(a, b)| (a - center) * (b - center)).filter(|v| v.is_finite());
        let (n, sum) = products.fold((0usize, 0.0), |(n, sum), v| (n + 1, sum + v));
        if n == 0 || variance <= 0.0 { 0.0 } else { sum / n as f64 / variance }
    };
    (1..=lags).map(at).collect()
}

/// Where 95 % of binomial counts lie, by the normal approximation with a correction for whole numbers.
fn binomial_band(n: usize, p: f64) -> (f64, f64) {
    let (center, spread) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    ((center - 1.96 * spread - 0.5).max(0.0), center + 1.96 * spread + 0.5)
}

/// Probability of a larger chi-squared number, after Wilson and Hilferty.
fn chi_squared_p_value(statistic: f64, dof: f64) -> f64 {
    let a = 2.0 / (9.0 * dof);
    1.0 - standard_cdf(((statistic / dof).cbrt() - (1.0 - a)) / a.sqrt())
}

/// p-value of the chi-squared statistic of a histogram against equal shares.
fn uniform_p_value(counts: &[f64]) -> f64 {
    let n: f64 = counts.iter().sum();
    let expected = n / counts.len() as f64;
    if expected <= 0.0 {
        return 1.0;
    }
    let statistic: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
    chi_squared_p_value(statistic, (counts.len() - 1) as f64)
}

/// p-value of no autocorrelation up to the last lag, after Ljung and Box (1978), doi 10.1093/biomet/65.2.297.
fn no_autocorrelation_p_value(correlations: &[f64], n: usize) -> f64 {
    let n = n as f64;
    let terms = correlations.iter().enumerate().map(|(k, r)| r * r / (n - (k + 1) as f64).max(1.0));
    chi_squared_p_value(n * (n + 2.0) * terms.sum::<f64>(), correlations.len() as f64)
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

struct Output {
    figure: Figure,
    caption: String,
    check: Check,
}

fn output(input: &ReportInput, functions: &Functions, all: &Distribution, k: usize) -> Option<Output> {
    let n_y = input.problem.model().n_y;
    let name = input.names.output(k);
    let mut rng = stream(0, 0, Purpose::Posterior, 8, k as u64);
    // Where the distribution jumps at y_t, a uniform number places it within the jump.
    let pit = |i: usize, v: f64| all.low[i * n_y + k] + v * (all.high[i * n_y + k] - all.low[i * n_y + k]);
    let pits: Vec<f64> = (0..functions.rows.len()).map(|i| pit(i, rng.random_range(0.0..1.0))).collect();
    let known: Vec<f64> = pits.iter().copied().filter(|p| p.is_finite()).collect();
    if known.len() < 10 {
        return None;
    }
    let scores: Vec<f64> = pits.iter().map(|p| standard_quantile(p.clamp(1e-9, 1.0 - 1e-9))).collect();
    let n = known.len();
    let bins = if n < 100 { 10 } else { N_BINS };
    let mut counts = vec![0.0; bins];
    known.iter().for_each(|p| counts[((p * bins as f64) as usize).min(bins - 1)] += 1.0);
    let p_value = uniform_p_value(&counts);
    let (low, high) = binomial_band(n, 1.0 / bins as f64);
    let edges: Vec<f64> = (0..=bins).map(|b| b as f64 / bins as f64).collect();
    let histogram = Panel::new(
        "PIT histogram",
        Axis::new("probability integral transform", Scale::linear(0.0, 1.0)),
        "rows",
        vec![
            Mark::Between { low, high, class: Class::Expected },
            Mark::Bars { edges, heights: counts, class: Class::Bar },
            Mark::Horizontal { y: n as f64 / bins as f64, class: Class::Reference },
        ],
    )
    .from_zero();
    let mut runs: Vec<Vec<f64>> = Vec::new();
    for rows in functions.rows.chunk_by(|a, b| a.0 == b.0) {
        let from = runs.iter().map(Vec::len).sum::<usize>();
        runs.push(scores[from..from + rows.len()].to_vec());
    }
    let longest = runs.iter().map(Vec::len).max().unwrap_or(0);
    let n_lags = MOST_LAGS.min(longest / 4).max(1);
    let correlations = autocorrelation(&runs, n_lags);
    let band = 1.96 / (n as f64).sqrt();
    let p_correlation = no_autocorrelation_p_value(&correlations, n);
    let largest = correlations.iter().fold(0.0f64, |largest, r| largest.max(r.abs())).max(1.3 * band);
    let correlogram = Panel::new(
        "autocorrelation",
        Axis::new("lag (rows)", Scale::linear(0.0, n_lags as f64 + 0.5)),
        "",
        vec![
            Mark::Between { low: -band, high: band, class: Class::Expected },
            Mark::Horizontal { y: 0.0, class: Class::Reference },
            Mark::Stems {
                x: (1..=n_lags).map(|l| l as f64).collect(),
                y: correlations.clone(),
                class: Class::Series(0),
            },
        ],
    )
    .with_y(Scale::linear(-1.08 * largest, 1.08 * largest));
    let over_time = Panel::new(
        format!("{name}: standardised residuals over time"),
        Axis::new("row (sequences in order)", Scale::linear(0.0, pits.len() as f64)),
        "",
        vec![
            Mark::Between { low: -1.96, high: 1.96, class: Class::Expected },
            Mark::Horizontal { y: 0.0, class: Class::Reference },
            Mark::Points {
                x: (0..scores.len()).map(|i| i as f64 + 1.0).collect(),
                y: scores.clone(),
                class: Class::Data,
            },
        ],
    );
    let rows = vec![Row::new(vec![over_time], 178.0), Row::new(vec![histogram, correlogram], 200.0)];
    let finite: Vec<f64> = scores.iter().copied().filter(|z| z.is_finite()).collect();
    let good = p_value > 0.01 && p_correlation > 0.01;
    let legend = vec![(Key::Area(Class::Expected), "95 % of calibrated predictions".to_owned())];
    let caption = format!(
        "One-step predictions of {name} in {n} rows. Residuals: mean {}, standard deviation {} (0 and 1 are \
         expected). A histogram outside the grey area means miscalibration: high ends mean overconfident predictions, a \
         hump means intervals that are too wide, a slope means bias. Autocorrelation outside the grey area means dynamics that \
         the model misses. Test of uniformity: p = {}; Ljung-Box test of autocorrelation ({n_lags} lags): p = {}.",
        significant(mean(&finite), 2),
        significant(sd(&finite), 2),
        p_text(p_value),
        p_text(p_correlation)
    );
    let text = if good {
        format!("One-step predictions of {name} are calibrated and their residuals are uncorrelated in time.")
    } else if p_value <= 0.01 {
        format!("One-step predictions of {name} are not calibrated; see the PIT histogram.")
    } else {
        format!("One-step residuals of {name} are correlated in time; see the autocorrelation.")
    };
    let figure = Figure::new(format!("residual checks of {name}"), legend, rows);
    Some(Output { figure, caption, check: Check { good, text } })
}

pub(crate) fn section(input: &ReportInput, functions: &Functions) -> (Section, Vec<Check>) {
    let n_y = input.problem.model().n_y;
    let all = distributions(input, functions);
    let left_out = if can_leave_out(input) {
        "fitted to all other transitions"
    } else {
        "fitted to all transitions including this one, as FIC has no closed form without it"
    };
    let mut blocks = vec![Block::Text(format!(
        "For each of {} draws, x_t is predicted from x_(t−1) of that draw by f ({left_out}), and y_t by the sensor; the \
         prediction is the mixture over the draws. PIT is the predicted probability of an outcome below y_t (randomised for counts), and \
         the residual is its normal score. Because x_(t−1) and the hyper-parameters depend on y_t, this check is optimistic; \
         predictions of held-out data are a stronger test.",
        functions.draws.len()
    ))];
    let n_rows: usize = input.problem.record().n_transitions();
    if functions.rows.len() < n_rows {
        blocks.push(Block::Text(format!(
            "{} of {n_rows} transitions are checked, the first ones of each sequence.",
            functions.rows.len()
        )));
    }
    let mut checks = Vec::new();
    for k in 0..n_y.min(MOST_OUTPUTS) {
        match output(input, functions, &all, k) {
            Some(output) => {
                blocks.push(Block::Figure { svg: output.figure.svg(), caption: output.caption });
                checks.push(output.check);
            }
            None => blocks.push(Block::Text(format!(
                "There are too few measurements of {} for a check.",
                input.names.output(k)
            ))),
        }
    }
    if n_y > MOST_OUTPUTS {
        blocks.push(Block::Text(format!(
            "{} are not shown.",
            count(n_y - MOST_OUTPUTS, "more output", "more outputs")
        )));
    }
    (Section { id: "residuals", title: "One-step residuals".into(), blocks }, checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f at three points with a known covariance: leaving out the last observation must give what the other two
    /// say alone. Seen to fail with the sign of (m - x) turned.
    #[test]
    fn leaving_out_is_regression_without_the_point() {
        let k = |a: f64, b: f64| 2.0 * (-0.5 * (a - b) * (a - b)).exp();
        let (z, x, q): ([f64; 3], [f64; 3], f64) = ([0.0, 0.7, 1.5], [0.4, -0.3, 1.1], 0.3);
        let posterior = |n: usize| {
            let mut chol: Vec<f64> =
                (0..n * n).map(|e| k(z[e / n], z[e % n]) + if e / n == e % n { q } else { 0.0 }).collect();
            assert!(small::cholesky(&mut chol, n));
            let mut column: Vec<f64> = (0..n).map(|i| k(z[i], z[2])).collect();
            let mut r = x[..n].to_vec();
            small::solve_lower(&chol, n, &mut column);
            small::solve_lower(&chol, n, &mut r);
            let m: f64 = column.iter().zip(&r).map(|(a, b)| a * b).sum();
            (m, k(z[2], z[2]) - column.iter().map(|a| a * a).sum::<f64>())
        };
        let ((m, v), (exact_m, exact_v)) = (posterior(3), posterior(2));
        let (mut m, mut v) = ([m], [v]);
        leave_out(&mut m, &mut v, &[q], &[x[2]]);
        assert!((m[0] - exact_m).abs() < 1e-12 && (v[0] - exact_v).abs() < 1e-12);
    }

    #[test]
    fn chi_squared_p_values() {
        assert!(uniform_p_value(&[10.0; 20]) > 0.99);
        // 19 degrees of freedom: 30.14 is the 5 % point.
        let mut counts = vec![100.0; 20];
        let shift = (30.14f64 * 100.0 / 2.0).sqrt();
        (counts[0], counts[1]) = (100.0 + shift, 100.0 - shift);
        assert!((uniform_p_value(&counts) - 0.05).abs() < 0.003);
    }

    /// Seen to fail with the lags' divisors left out.
    #[test]
    fn ljung_box_of_a_known_case() {
        // Q = 100 * 102 * (0.04 / 99 + 0.01 / 98) = 5.162 with 2 degrees of freedom: p = exp(-Q / 2).
        let p = no_autocorrelation_p_value(&[0.2, 0.1], 100);
        assert!((p - (-5.162f64 / 2.0).exp()).abs() < 0.004, "{p}");
    }

    #[test]
    fn autocorrelation_of_an_alternation() {
        let run: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let found = autocorrelation(&[run.clone(), run], 3);
        assert!((found[0] + 1.0).abs() < 1e-9 && (found[1] - 1.0).abs() < 1e-9);
    }
}
