//! Hidden states of made-up plants: drawn states are the true ones after a linear map, and the sensor's noise is found.

use gpssm::linalg::least_squares;
use gpssm::mcmc::StartAt;
use gpssm::{Functions, MemorySink, Problem, Record, Sequence, Settings, prepare, sample};
use gpssm_identify::LinearStateSpace;

/// Numbers that look random.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

const ROWS: usize = 240;

fn sd(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// Correlation of a state with the best linear map of others.
fn correlation(truth: &[f64], drawn: &[Vec<f64>]) -> f64 {
    let rows: Vec<Vec<f64>> = drawn.iter().map(|x| x.iter().copied().chain([1.0]).collect()).collect();
    let (_, square, _) = least_squares(&rows, truth);
    (1.0 - square / (sd(truth).powi(2) * truth.len() as f64)).max(0.0).sqrt()
}

/// A plant with two states of which one is seen with noise of this part of its spread: the smallest correlation of the two with the
/// mean of the drawn states, and the true noise beside the 5 %, 50 % and 95 % quantiles of the drawn.
fn found(
    seen: usize,
    part: f64,
    middle: f64,
    f: impl Fn([f64; 2], f64, &mut Noise) -> [f64; 2],
) -> (f64, [f64; 4]) {
    let mut noise = Noise(17);
    let (mut u, mut x) = (Vec::new(), vec![[middle; 2]]);
    while u.len() < ROWS {
        let level = middle + 1.8 * noise.uniform() - 0.9;
        u.extend(std::iter::repeat_n(level, 1 + (18.0 * noise.uniform()) as usize));
    }
    u.truncate(ROWS);
    (0..ROWS - 1).for_each(|t| x.push(f(x[t], u[t], &mut noise)));
    let s: Vec<f64> = x.iter().map(|x| x[seen]).collect();
    let level = part * sd(&s);
    let y: Vec<f64> = s.iter().map(|s| s + level * noise.normal()).collect();
    let training: Record = Sequence::scalar(&y, Some(&u)).unwrap().into();
    let linear = LinearStateSpace::fit(&training).unwrap();
    let rows = linear.layout().apply_to(&training).unwrap();
    let problem = Problem::new(linear.model(true), &Functions::new(), rows).unwrap();
    let settings =
        Settings { chains: 1, tune: 60, draws: Some(90), start_at: StartAt::Mean, ..Settings::default() };
    let problem = prepare(&problem, &settings).unwrap();
    let sink = MemorySink::new();
    sample(&problem, &settings, &sink, &|_| true).unwrap();
    let chain = sink.into_chains().remove(0);
    let (n_x, n) = (problem.n_x(), chain.paths.len() as f64);
    let at = |t: usize, d: usize| chain.paths.iter().map(|paths| paths[0][t * n_x + d]).sum::<f64>() / n;
    let mean: Vec<Vec<f64>> = (0..ROWS).map(|t| (0..n_x).map(|d| at(t, d)).collect()).collect();
    let truth = |d: usize| x.iter().map(|x| x[d]).collect::<Vec<f64>>();
    let least = correlation(&truth(0), &mean).min(correlation(&truth(1), &mean));
    let k = problem.table().parameters.iter().position(|parameter| parameter.sensor).unwrap();
    let mut levels: Vec<f64> = chain.theta.iter().map(|theta| theta[k]).collect();
    levels.sort_unstable_by(f64::total_cmp);
    let quantile = |p: f64| levels[((levels.len() - 1) as f64 * p) as usize];
    (least, [level, quantile(0.05), quantile(0.5), quantile(0.95)])
}

fn check(name: &str, (correlation, [truth, low, _, high]): (f64, [f64; 4])) {
    assert!(correlation > 0.95, "{name}: correlation {correlation}");
    assert!((low..=high).contains(&truth), "{name}: sensor noise {truth}, drawn {low} .. {high}");
}

/// Water runs from the upper tank into the lower one, whose level is seen.
#[test]
fn the_upper_tank_is_found() {
    let tanks = |[a, b]: [f64; 2], u: f64, noise: &mut Noise| {
        let (out_a, out_b) = (a.max(0.0).sqrt(), b.max(0.0).sqrt());
        [
            (a + 0.25 * (u - out_a) + 0.01 * noise.normal()).max(0.0),
            (b + 0.25 * (out_a - out_b) + 0.01 * noise.normal()).max(0.0),
        ]
    };
    check("tanks", found(1, 0.05, 1.2, tanks));
}

/// The current of a motor whose speed is seen.
#[test]
fn the_current_of_a_motor_is_found() {
    let motor = |[speed, current]: [f64; 2], u: f64, noise: &mut Noise| {
        [
            0.95 * speed + 0.3 * current - 0.05 * speed.tanh() + 0.01 * noise.normal(),
            0.7 * current - 0.15 * speed + 0.5 * u + 0.01 * noise.normal(),
        ]
    };
    check("motor", found(0, 0.05, 0.0, motor));
}

/// A hardening spring seen in position.
#[test]
fn the_speed_of_an_oscillator_is_found() {
    let spring = |[at, speed]: [f64; 2], u: f64, noise: &mut Noise| {
        let force = u - 0.9 * at - 0.6 * at.powi(3) - 0.25 * speed;
        [at + 0.3 * speed, speed + 0.3 * force + 0.02 * noise.normal()]
    };
    check("noise of 10 %", found(0, 0.1, 0.0, spring));
    check("noise of 30 %", found(0, 0.3, 0.0, spring));
}
