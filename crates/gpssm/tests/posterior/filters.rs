//! Filters and smoothers against Kalman answers: with a linear kernel f is a random slope.

use gpssm::kernel::LINEAR;
use gpssm::model::FunctionSpec;
use gpssm::posterior::{Initial, OnlineFilter, OnlineOptions};
use gpssm::smc::Proposal;
use gpssm::{Functions, KernelSpec, Posterior, Sequence};

use super::models::{fixed, scalar, single};

const Q: f64 = 0.4;
const R: f64 = 0.3;
const SLOPE_SD: f64 = 0.8;
const TRAINING: [f64; 5] = [1.0, 0.4, 0.6, -0.3, 0.2];
const NEW: [f64; 8] = [0.9, 0.8, f64::NAN, 0.5, -0.1, 0.4, 0.2, -0.6];

fn posterior() -> Posterior {
    let kernel = KernelSpec::new(&LINEAR).with("sigma", fixed(SLOPE_SD));
    single(scalar(kernel, FunctionSpec::Zero, Q, R, 0), &Functions::new(), &TRAINING, Vec::new())
}

/// log p(y | a), E[x_T | y, a] and Var, and E[x_0 | y, a] by the Kalman filter and smoother.
fn kalman(a: f64) -> (f64, f64, f64, f64) {
    let (mut mean, mut variance, mut log_marginal_likelihood) = (0.0, 1.0, 0.0);
    let (mut filtered, mut predicted) = (Vec::new(), Vec::new());
    for (t, y) in NEW.iter().enumerate() {
        if t > 0 {
            (mean, variance) = (a * mean, a * a * variance + Q * Q);
        }
        predicted.push((mean, variance));
        if !y.is_nan() {
            let s = variance + R * R;
            log_marginal_likelihood -= 0.5 * ((y - mean).powi(2) / s + (2.0 * std::f64::consts::PI * s).ln());
            let gain = variance / s;
            mean += gain * (y - mean);
            variance *= 1.0 - gain;
        }
        filtered.push((mean, variance));
    }
    let last = (mean, variance);
    let mut smooth = mean;
    for t in (0..NEW.len() - 1).rev() {
        let gain = filtered[t].1 * a / predicted[t + 1].1;
        smooth = filtered[t].0 + gain * (smooth - predicted[t + 1].0);
    }
    (log_marginal_likelihood, last.0, last.1, smooth)
}

/// The same with the slope integrated out over its posterior given the training path.
fn exact() -> (f64, f64, f64, f64) {
    let pairs = TRAINING.windows(2);
    let precision = 1.0 / SLOPE_SD.powi(2) + pairs.clone().map(|p| p[0] * p[0]).sum::<f64>() / (Q * Q);
    let mean = pairs.map(|p| p[0] * p[1]).sum::<f64>() / (Q * Q) / precision;
    let sd = precision.sqrt().recip();
    let (mut total, mut first, mut second, mut start) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..2001 {
        let z = -8.0 + 16.0 * f64::from(i) / 2000.0;
        let (log_marginal_likelihood, mean, variance, smooth) = kalman(mean + sd * z);
        let w = (-0.5 * z * z + log_marginal_likelihood).exp() * 16.0
            / 2000.0
            / (2.0 * std::f64::consts::PI).sqrt();
        total += w;
        first += w * mean;
        second += w * (variance + mean * mean);
        start += w * smooth;
    }
    let mean = first / total;
    (total.ln(), mean, (second / total - mean * mean).sqrt(), start / total)
}

fn z_score(values: &[f64], expected: f64) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean - expected) / (variance / n).sqrt()
}

/// 40 runs, |z| <= 4.5, adapted and bootstrap. Seen failing with functions weighted equally instead of by evidence, with the
/// slope's prior in place of its posterior, with e left out of Matheron's rule, and with the first output ignored.
#[test]
fn linear_kernel_gives_kalman_answers() {
    let posterior = posterior();
    let record = Sequence::scalar(&NEW, None).unwrap();
    let (log_marginal_likelihood, mean, sd, start) = exact();
    for proposal in [Proposal::Auto, Proposal::Bootstrap] {
        let mut ratio = Vec::new();
        let mut ends: [Vec<f64>; 3] = Default::default();
        for seed in 0..40 {
            let options =
                OnlineOptions { functions: 100, particles: 50, proposal, seed, ..OnlineOptions::default() };
            let filtered = posterior.filter(&record, &Initial::Model, &options, &|_, _| true).unwrap();
            ratio
                .push((filtered.log_marginal_likelihood.iter().sum::<f64>() - log_marginal_likelihood).exp());
            ends[0].push(*filtered.mean.last().unwrap());
            ends[1].push(filtered.sd.last().unwrap().powi(2));
            let smoothed = posterior.smooth(&record, 300, &options).unwrap();
            assert!(
                (smoothed.log_marginal_likelihood - filtered.log_marginal_likelihood.iter().sum::<f64>())
                    .abs()
                    < 1e-9
            );
            ends[2].push(smoothed.x.mean(0, 0));
        }
        let z = [
            z_score(&ratio, 1.0),
            z_score(&ends[0], mean),
            z_score(&ends[1], sd * sd),
            z_score(&ends[2], start),
        ];
        assert!(z.iter().all(|z| z.abs() < 4.5), "{proposal:?} {z:?}");
    }
}

/// One step ahead the log score is the evidence of the filter; k steps ahead the mean is that of powers of the slope.
#[test]
fn predictions_ahead_agree_with_the_filter() {
    let posterior = posterior();
    let record = Sequence::scalar(&NEW, None).unwrap();
    let options = OnlineOptions { functions: 100, particles: 100, ..OnlineOptions::default() };
    let filtered = posterior.filter(&record, &Initial::Model, &options, &|_, _| true).unwrap();
    let ahead = posterior.predict_ahead(&record, 1, 10_000, &Initial::Model, &options, &|_, _| true).unwrap();
    assert_eq!((ahead.y.n_rows(), ahead.first_row), (7, 1));
    for t in 1..NEW.len() {
        let (a, b) = (ahead.log_score[t - 1], filtered.log_marginal_likelihood[t]);
        assert!((a - b).abs() < 0.05, "{t} {a} {b}");
    }
    assert_eq!(ahead.log_score[1], 0.0);
    let far = posterior.predict_ahead(&record, 7, 4000, &Initial::Model, &options, &|_, _| true).unwrap();
    assert_eq!(far.y.n_rows(), 1);
    assert!(far.y.sd(0, 0) > Q);
}

/// The state of the filter does not grow, and forgetting keeps functions alive. Length of the long version: 10^6, run
/// with `cargo test --release -p gpssm --test posterior -- --ignored --nocapture million`; it prints the time of a step and
/// the memory of the process by tenths.
fn run_for(steps: u64) {
    let posterior = posterior();
    let options = OnlineOptions { functions: 8, particles: 8, forgetting: 0.99, ..OnlineOptions::default() };
    let mut filter = OnlineFilter::new(&posterior, &Initial::Model, &options).unwrap();
    let mut x: f64 = 0.3;
    let mut size = 0;
    let (mut began, mut memory) = (std::time::Instant::now(), None);
    for t in 0..steps {
        if t > 0 && t % (steps / 10) == 0 {
            let microseconds = began.elapsed().as_secs_f64() / (steps / 10) as f64 * 1e6;
            println!("after {t}: {microseconds:.2} microseconds a step, {:?} pages", pages());
            began = std::time::Instant::now();
            memory = memory.or_else(pages);
        }
        x = 0.5 * x + Q * (0.7 * t as f64).sin();
        let y = if t % 7 == 3 { f64::NAN } else { x };
        let estimate = filter.step(&[y], &[]).unwrap();
        assert!(
            estimate.mean[0].is_finite()
                && estimate.sd[0].is_finite()
                && estimate.log_marginal_likelihood.is_finite()
        );
        assert!(estimate.effective_functions > 1.0);
        if t == 100 {
            size = filter.particles().0.len();
        }
    }
    assert_eq!(size, filter.particles().0.len());
    assert_eq!(filter.t(), steps);
    if steps >= 1_000_000
        && let (Some(first), Some(last)) = (memory, pages())
    {
        println!("in the end: {last} pages");
        assert!(last <= first + 64, "memory grew from {first} to {last} pages");
    }
}

/// Memory of this process in pages, where the system tells.
fn pages() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_filter_may_run_for_ever() {
    run_for(20_000);
}

#[test]
#[ignore = "long"]
fn a_filter_runs_for_a_million_observations() {
    run_for(1_000_000);
}
