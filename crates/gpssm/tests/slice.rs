//! Slice sampling: invariance of the target, power of that test against planted bugs,
//! behaviour at the limits, and adaptation of the width.
//!
//! Invariance is tested from an exact start: x is drawn from the target, some updates are made,
//! and the result must follow the target again (one-sample Kolmogorov-Smirnov test).

use gpssm::mcmc::{SliceLimits, SliceOutcome, WidthAdaptation, slice_update};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, StandardNormal};
use statrs::function::erf::erfc;

const REPLICATES: usize = 20_000;
const UPDATES: usize = 5;
/// An exact sampler falls below this in one of ten thousand tests.
const ACCEPT: f64 = 1e-4;
/// A planted bug must fall below this.
const DETECT: f64 = 1e-6;

// ---------------------------------------------------------------------------------------------
// Targets

#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    /// Gamma with shape 3 and scale 1; minus infinity for x <= 0.
    Gamma,
    /// The same, with NaN for x <= 0.
    GammaNan,
    /// ln x standard normal; minus infinity for x <= 0.
    LogNormal,
    /// Standard normal on (-0.5, 2); minus infinity outside.
    TruncatedNormal,
    /// Standard normal without (0.2, 0.8); NaN inside that hole.
    NormalWithNanHole,
    /// Standard normal without (0.2, 0.8); plus infinity inside that hole.
    NormalWithInfiniteHole,
    /// 0.3 Normal(-2, 0.5^2) + 0.7 Normal(2, 1).
    Mixture,
    /// Uniform on (0, 1) and (1.5, 1.7); minus infinity elsewhere. The slice is always the whole
    /// support, and its pieces are of unequal size, so errors of interval finding stand out.
    TwoPieces,
}

const ALL_TARGETS: [Target; 8] = [
    Target::Gamma,
    Target::GammaNan,
    Target::LogNormal,
    Target::TruncatedNormal,
    Target::NormalWithNanHole,
    Target::NormalWithInfiniteHole,
    Target::Mixture,
    Target::TwoPieces,
];

const TRUNCATION: (f64, f64) = (-0.5, 2.0);
const HOLE: (f64, f64) = (0.2, 0.8);

fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / std::f64::consts::SQRT_2)
}

impl Target {
    fn log_density(self, x: f64) -> f64 {
        match self {
            Target::Gamma if x <= 0.0 => f64::NEG_INFINITY,
            Target::GammaNan if x <= 0.0 => f64::NAN,
            Target::Gamma | Target::GammaNan => 2.0 * x.ln() - x,
            Target::LogNormal if x <= 0.0 => f64::NEG_INFINITY,
            Target::LogNormal => -x.ln() - 0.5 * x.ln().powi(2),
            Target::TruncatedNormal if x <= TRUNCATION.0 || x >= TRUNCATION.1 => f64::NEG_INFINITY,
            Target::NormalWithNanHole if x > HOLE.0 && x < HOLE.1 => f64::NAN,
            Target::NormalWithInfiniteHole if x > HOLE.0 && x < HOLE.1 => f64::INFINITY,
            Target::TruncatedNormal | Target::NormalWithNanHole | Target::NormalWithInfiniteHole => {
                -0.5 * x * x
            }
            Target::Mixture => {
                let low = 0.3 / 0.5 * (-0.5 * ((x + 2.0) / 0.5).powi(2)).exp();
                let high = 0.7 * (-0.5 * (x - 2.0).powi(2)).exp();
                (low + high).ln()
            }
            Target::TwoPieces if (x > 0.0 && x < 1.0) || (x > 1.5 && x < 1.7) => 0.0,
            Target::TwoPieces => f64::NEG_INFINITY,
        }
    }

    fn cdf(self, x: f64) -> f64 {
        match self {
            Target::Gamma | Target::GammaNan => {
                let x = x.max(0.0);
                1.0 - (-x).exp() * (1.0 + x + 0.5 * x * x)
            }
            Target::LogNormal => {
                if x <= 0.0 {
                    0.0
                } else {
                    normal_cdf(x.ln())
                }
            }
            Target::TruncatedNormal => {
                let (low, high) = (normal_cdf(TRUNCATION.0), normal_cdf(TRUNCATION.1));
                ((normal_cdf(x) - low) / (high - low)).clamp(0.0, 1.0)
            }
            Target::NormalWithNanHole | Target::NormalWithInfiniteHole => {
                let (low, high) = (normal_cdf(HOLE.0), normal_cdf(HOLE.1));
                let below_hole = normal_cdf(x).min(low);
                let above_hole = (normal_cdf(x) - high).max(0.0);
                (below_hole + above_hole) / (1.0 - (high - low))
            }
            Target::Mixture => 0.3 * normal_cdf((x + 2.0) / 0.5) + 0.7 * normal_cdf(x - 2.0),
            Target::TwoPieces => (x.clamp(0.0, 1.0) + (x.clamp(1.5, 1.7) - 1.5)) / 1.2,
        }
    }

    fn draw(self, rng: &mut ChaCha8Rng) -> f64 {
        let x = match self {
            Target::Gamma | Target::GammaNan => Gamma::new(3.0, 1.0).unwrap().sample(rng),
            Target::LogNormal => rng.sample::<f64, _>(StandardNormal).exp(),
            Target::Mixture => {
                let low = rng.random::<f64>() < 0.3;
                let standard: f64 = rng.sample(StandardNormal);
                if low { -2.0 + 0.5 * standard } else { 2.0 + standard }
            }
            Target::TwoPieces => 1.7 * rng.random::<f64>(),
            Target::TruncatedNormal | Target::NormalWithNanHole | Target::NormalWithInfiniteHole => {
                rng.sample(StandardNormal)
            }
        };
        // Rejection gives the truncated targets exactly.
        if self.log_density(x).is_finite() { x } else { self.draw(rng) }
    }
}

// ---------------------------------------------------------------------------------------------
// Kolmogorov-Smirnov

/// Survival function of the Kolmogorov distribution, `2 sum_k (-1)^(k-1) exp(-2 k^2 t^2)`.
fn kolmogorov_survival(t: f64) -> f64 {
    // The alternating sum converges slowly near zero, where the function is one to ten digits.
    if t < 0.25 {
        return 1.0;
    }
    let sum: f64 = (1..=100)
        .map(|k| {
            let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
            sign * (-2.0 * f64::from(k * k) * t * t).exp()
        })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// p-value of the one-sample test, with the finite-sample correction of Stephens (1970).
fn ks_p_value(target: Target, mut sample: Vec<f64>) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let cdf = target.cdf(x);
            (cdf - i as f64 / n).max((i + 1) as f64 / n - cdf)
        })
        .fold(0.0, f64::max);
    kolmogorov_survival((n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance)
}

// ---------------------------------------------------------------------------------------------
// Twin

/// Bugs planted in the twin.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mutant {
    /// Level `ln f(x0) + 0.5 ln u`.
    HalvedLevel,
    /// A rejected candidate pulls in the other end too, to its mirror image about x0.
    ShrinksBothSides,
    /// The end to shrink is chosen by the side of the interval's centre, not of x0.
    ShrinksTowardsCentre,
    /// The allowed steps go to the left first and what is left of them to the right.
    UnsplitStepOut,
    /// A candidate outside the slice becomes the end of the interval and is accepted there.
    AcceptsIntervalEnd,
    /// x0 lies in the middle of the first interval.
    CentredInterval,
    /// `!(ln f < z)` in place of `ln f >= z`, so that NaN counts as inside.
    NanInside,
    /// Plus infinity counts as inside.
    InfinityInside,
    /// At the limit of shrinkage the last candidate is taken in place of the old point.
    TakesLastCandidate,
}

/// One update as a plain transcription of figures 3 and 5: no counting, no shortcuts, the
/// allowances J and K counted down as in the paper. Only x is returned.
fn twin_update(
    x0: f64,
    width: f64,
    limits: SliceLimits,
    mutant: Option<Mutant>,
    log_density: &dyn Fn(f64) -> f64,
    rng: &mut dyn Rng,
) -> f64 {
    if !log_density(x0).is_finite() {
        return x0;
    }
    let is = |bug: Mutant| mutant == Some(bug);

    let log_u = (1.0 - rng.random::<f64>()).ln();
    let factor = if is(Mutant::HalvedLevel) { 0.5 } else { 1.0 };
    let z = log_density(x0) + factor * log_u;
    let inside = |x: f64| {
        let value = log_density(x);
        if value.is_nan() {
            return is(Mutant::NanInside);
        }
        if value == f64::INFINITY {
            return is(Mutant::InfinityInside);
        }
        value >= z
    };

    // Figure 3.
    let mut u: f64 = rng.random();
    if is(Mutant::CentredInterval) {
        u = 0.5;
    }
    let mut left = x0 - width * u;
    let mut right = left + width;
    let v: f64 = rng.random();
    let m = limits.max_step_out;
    let mut j = (f64::from(m) * v).floor() as u32;
    let mut k = m - 1 - j;
    if is(Mutant::UnsplitStepOut) {
        j = m - 1;
    }
    while j > 0 && inside(left) {
        left -= width;
        j -= 1;
    }
    if is(Mutant::UnsplitStepOut) {
        k = j;
    }
    while k > 0 && inside(right) {
        right += width;
        k -= 1;
    }

    // Figure 5.
    let mut candidate = x0;
    for _ in 0..limits.max_shrink {
        candidate = left + rng.random::<f64>() * (right - left);
        if inside(candidate) || is(Mutant::AcceptsIntervalEnd) {
            return candidate;
        }
        let pivot = if is(Mutant::ShrinksTowardsCentre) { 0.5 * (left + right) } else { x0 };
        if candidate < pivot {
            left = candidate;
        } else {
            right = candidate;
        }
        if is(Mutant::ShrinksBothSides) {
            let reach = (candidate - x0).abs();
            left = left.max(x0 - reach);
            right = right.min(x0 + reach);
        }
    }
    if is(Mutant::TakesLastCandidate) { candidate } else { x0 }
}

// ---------------------------------------------------------------------------------------------
// Cases

#[derive(Debug, Clone, Copy)]
struct Case {
    target: Target,
    width: f64,
    limits: SliceLimits,
}

fn case(target: Target, width: f64, max_step_out: u32, max_shrink: u32) -> Case {
    Case { target, width, limits: SliceLimits { max_step_out, max_shrink } }
}

/// Every target with the three widths of very different size under the default limits, and
/// settings in which each limit binds while the chain still moves far enough to show a bias.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in ALL_TARGETS {
        for width in [1e-3, 1.0, 1e3] {
            cases.push(Case { target, width, limits: SliceLimits::default() });
        }
        cases.push(case(target, 1.0, 1, 100));
        cases.push(case(target, 0.5, 3, 100));
        cases.push(case(target, 2.0, 1, 100));
        cases.push(case(target, 3.0, 2, 100));
        cases.push(case(target, 10.0, 16, 2));
    }
    cases
}

/// p-value after an exact start and some updates by production.
fn production_p_value(case: Case, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut log_density = |x: f64| case.target.log_density(x);
    let sample = (0..REPLICATES)
        .map(|_| {
            let mut x = case.target.draw(&mut rng);
            let mut value = log_density(x);
            for _ in 0..UPDATES {
                let outcome = slice_update(x, value, case.width, case.limits, &mut log_density, &mut rng);
                (x, value) = (outcome.x, outcome.log_density);
            }
            x
        })
        .collect();
    ks_p_value(case.target, sample)
}

/// p-value after an exact start and some updates by the twin.
fn twin_p_value(case: Case, mutant: Option<Mutant>, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let log_density = |x: f64| case.target.log_density(x);
    let sample = (0..REPLICATES)
        .map(|_| {
            let mut x = case.target.draw(&mut rng);
            for _ in 0..UPDATES {
                x = twin_update(x, case.width, case.limits, mutant, &log_density, &mut rng);
            }
            x
        })
        .collect();
    ks_p_value(case.target, sample)
}

// ---------------------------------------------------------------------------------------------
// Invariance and its power

#[test]
fn kolmogorov_survival_matches_known_quantiles() {
    // Tabulated critical values of the limiting distribution.
    for (t, p) in [(1.2238, 0.10), (1.3581, 0.05), (1.6276, 0.01), (1.9495, 0.001)] {
        assert!((kolmogorov_survival(t) / p - 1.0).abs() < 1e-3, "t {t}");
    }
}

#[test]
fn exact_draws_follow_the_distribution_function() {
    for (index, target) in ALL_TARGETS.into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(50 + index as u64);
        let p = ks_p_value(target, (0..REPLICATES).map(|_| target.draw(&mut rng)).collect());
        assert!(p >= ACCEPT, "{target:?}: p {p:e}");
    }
}

#[test]
fn update_leaves_the_target_invariant() {
    for (index, case) in cases().into_iter().enumerate() {
        let p = production_p_value(case, 100 + index as u64);
        println!("{case:?}: p {p:e}");
        assert!(p >= ACCEPT, "{case:?}: p {p:e}");
    }
}

#[test]
fn twin_without_mutation_reproduces_production() {
    for (index, case) in cases().into_iter().enumerate() {
        let seed = 300 + index as u64;
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let start = case.target.draw(&mut draws);
        let mut production_rng = ChaCha8Rng::seed_from_u64(seed + 1_000);
        let mut twin_rng = ChaCha8Rng::seed_from_u64(seed + 1_000);
        let (mut x, mut value, mut twin) = (start, case.target.log_density(start), start);
        for _ in 0..1_000 {
            let outcome = slice_update(
                x,
                value,
                case.width,
                case.limits,
                &mut |x| case.target.log_density(x),
                &mut production_rng,
            );
            (x, value) = (outcome.x, outcome.log_density);
            twin = twin_update(
                twin,
                case.width,
                case.limits,
                None,
                &|x| case.target.log_density(x),
                &mut twin_rng,
            );
            assert_eq!(x.to_bits(), twin.to_bits(), "{case:?}");
        }
    }
}

/// Every mutant falls to the same test, with the same sizes, that production passes; the cases
/// are among those of `update_leaves_the_target_invariant`.
#[test]
fn every_mutant_is_detected() {
    let detections = [
        (Mutant::HalvedLevel, case(Target::Gamma, 1.0, 16, 100)),
        (Mutant::HalvedLevel, case(Target::LogNormal, 1e3, 16, 100)),
        (Mutant::HalvedLevel, case(Target::TruncatedNormal, 1.0, 16, 100)),
        (Mutant::HalvedLevel, case(Target::Mixture, 1e3, 16, 100)),
        (Mutant::ShrinksBothSides, case(Target::TwoPieces, 2.0, 1, 100)),
        (Mutant::ShrinksBothSides, case(Target::TwoPieces, 1e3, 16, 100)),
        (Mutant::ShrinksTowardsCentre, case(Target::TwoPieces, 1.0, 16, 100)),
        (Mutant::ShrinksTowardsCentre, case(Target::NormalWithNanHole, 1.0, 16, 100)),
        (Mutant::UnsplitStepOut, case(Target::Gamma, 0.5, 3, 100)),
        (Mutant::UnsplitStepOut, case(Target::Mixture, 3.0, 2, 100)),
        (Mutant::AcceptsIntervalEnd, case(Target::Mixture, 1.0, 16, 100)),
        (Mutant::CentredInterval, case(Target::TruncatedNormal, 1.0, 1, 100)),
        (Mutant::CentredInterval, case(Target::NormalWithNanHole, 1.0, 16, 100)),
        (Mutant::CentredInterval, case(Target::TwoPieces, 1.0, 16, 100)),
        (Mutant::NanInside, case(Target::GammaNan, 1.0, 16, 100)),
        (Mutant::NanInside, case(Target::NormalWithNanHole, 1.0, 16, 100)),
        (Mutant::InfinityInside, case(Target::NormalWithInfiniteHole, 1.0, 16, 100)),
        (Mutant::TakesLastCandidate, case(Target::Mixture, 10.0, 16, 2)),
    ];
    for (index, (mutant, case)) in detections.into_iter().enumerate() {
        let p = twin_p_value(case, Some(mutant), 500 + index as u64);
        println!("{mutant:?} {case:?}: p {p:e}");
        assert!(p < DETECT, "{mutant:?} not seen in {case:?}: p {p:e}");
    }
}

// ---------------------------------------------------------------------------------------------
// Counts, limits and unusable input

fn standard_normal(x: f64) -> f64 {
    -0.5 * x * x
}

#[test]
fn outcome_reports_what_was_done() {
    for case in cases() {
        let mut rng = ChaCha8Rng::seed_from_u64(700);
        let mut x = case.target.draw(&mut rng);
        let mut value = case.target.log_density(x);
        for _ in 0..500 {
            let (mut calls, mut bad) = (0, 0);
            let outcome = slice_update(
                x,
                value,
                case.width,
                case.limits,
                &mut |x| {
                    let value = case.target.log_density(x);
                    calls += 1;
                    bad += u32::from(value.is_nan() || value == f64::INFINITY);
                    value
                },
                &mut rng,
            );
            assert_eq!((outcome.evaluations, outcome.failures), (calls, bad), "{case:?}");
            assert_eq!(outcome.log_density, case.target.log_density(outcome.x));
            assert!(outcome.step_outs < case.limits.max_step_out);
            assert!(outcome.shrinks <= case.limits.max_shrink);
            let widths = f64::from(outcome.step_outs + 1);
            assert!((outcome.interval / (widths * case.width) - 1.0).abs() < 1e-9);
            // The old point never lies further from the new one than the interval is wide.
            assert!((outcome.x - x).abs() <= outcome.interval);
            let gave_up = outcome.shrinks == case.limits.max_shrink;
            let stepped_out_in_full = outcome.step_outs + 1 == case.limits.max_step_out;
            assert_eq!(outcome.capped, gave_up || stepped_out_in_full);
            assert!(!gave_up || outcome.x == x);
            (x, value) = (outcome.x, outcome.log_density);
        }
    }
}

#[test]
fn step_out_cap_is_reported() {
    let mut rng = ChaCha8Rng::seed_from_u64(800);
    let limits = SliceLimits::default();
    let mut capped_when_narrow = 0;
    let mut capped_when_wide = 0;
    for _ in 0..1_000 {
        let mut count = |width: f64| {
            let outcome = slice_update(0.0, 0.0, width, limits, &mut standard_normal, &mut rng);
            u32::from(outcome.capped)
        };
        capped_when_narrow += count(1e-3);
        capped_when_wide += count(5.0);
    }
    // All steps are used unless the slice ends within sixteen widths of the mode on one side,
    // for which ln u must exceed -(16e-3)^2 / 2 = -1.3e-4.
    assert!(capped_when_narrow >= 998, "{capped_when_narrow}");
    assert_eq!(capped_when_wide, 0);
}

#[test]
fn shrinkage_cap_keeps_the_old_point() {
    let mut rng = ChaCha8Rng::seed_from_u64(801);
    let limits = SliceLimits { max_step_out: 16, max_shrink: 7 };
    let outcome = slice_update(0.3, -1.0, 1.0, limits, &mut |_| f64::NAN, &mut rng);
    assert_eq!((outcome.x, outcome.log_density), (0.3, -1.0));
    assert!(outcome.capped);
    assert_eq!((outcome.step_outs, outcome.shrinks), (0, 7));
    assert_eq!(outcome.failures, outcome.evaluations);
    // One candidate per shrink, and at most one look at either end.
    assert!((8..=9).contains(&outcome.evaluations));

    let outcome = slice_update(0.3, -1.0, 1.0, limits, &mut |_| f64::NEG_INFINITY, &mut rng);
    assert!(outcome.capped && outcome.x == 0.3);
    assert_eq!(outcome.failures, 0);
}

#[test]
fn unusable_input_returns_the_old_point_without_evaluations() {
    let mut rng = ChaCha8Rng::seed_from_u64(802);
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let bad_arguments = [
        (0.5, nan, 1.0),
        (0.5, infinity, 1.0),
        (0.5, -infinity, 1.0),
        (nan, 0.0, 1.0),
        (infinity, 0.0, 1.0),
        (0.5, 0.0, 0.0),
        (0.5, 0.0, -1.0),
        (0.5, 0.0, nan),
        (0.5, 0.0, infinity),
    ];
    for (x0, value, width) in bad_arguments {
        let outcome = slice_update(
            x0,
            value,
            width,
            SliceLimits::default(),
            &mut |_| unreachable!("no evaluation expected"),
            &mut rng,
        );
        assert_eq!(outcome.x.to_bits(), x0.to_bits());
        assert_eq!(outcome.log_density.to_bits(), value.to_bits());
        assert_eq!((outcome.evaluations, outcome.failures), (0, 1));
        assert!(!outcome.capped);
    }
}

#[test]
fn extreme_scales_end_without_panic() {
    let mut rng = ChaCha8Rng::seed_from_u64(803);
    let mut flat = |x: f64| {
        assert!(x.is_finite());
        0.0
    };
    let all_limits = [(0, 0), (1, 1), (16, 100), (1_000, 100)];
    let places = [(1e308, 1e308), (-1.7e308, 1e300), (1e16, 1e-3), (0.0, 5e-324), (0.0, 1e308)];
    for (max_step_out, max_shrink) in all_limits {
        let limits = SliceLimits { max_step_out, max_shrink };
        for (x0, width) in places {
            for _ in 0..20 {
                let outcome = slice_update(x0, 0.0, width, limits, &mut flat, &mut rng);
                assert!(outcome.x.is_finite());
                assert_eq!(outcome.log_density, 0.0);
                assert!(outcome.interval.is_finite() || (outcome.capped && outcome.x == x0));
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Adaptation of the width

/// Adapts during `warm_up` updates from `initial_width`, then returns the frozen width and the
/// mean number of evaluations of the next 2,000 updates. `scale` stretches the target.
fn adapt(
    target: Target,
    scale: f64,
    initial_width: f64,
    limits: SliceLimits,
    warm_up: usize,
    seed: u64,
) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut log_density = |x: f64| target.log_density(x / scale);
    let mut x = scale * target.draw(&mut rng);
    let mut value = log_density(x);
    let mut adaptation = WidthAdaptation::new(initial_width);
    let mut evaluations = 0;
    for update in 0..warm_up + 2_000 {
        if update == warm_up {
            adaptation.freeze();
            evaluations = 0;
        }
        let width = adaptation.width();
        let outcome = slice_update(x, value, width, limits, &mut log_density, &mut rng);
        adaptation.observe(x, &outcome);
        evaluations += outcome.evaluations;
        (x, value) = (outcome.x, outcome.log_density);
    }
    (adaptation.width(), f64::from(evaluations) / 2_000.0)
}

const ADAPTATION_TARGETS: [Target; 4] =
    [Target::Gamma, Target::LogNormal, Target::TruncatedNormal, Target::Mixture];

#[test]
fn adaptation_reaches_few_evaluations_from_any_width() {
    let limits = SliceLimits::default();
    for target in ADAPTATION_TARGETS {
        for initial_width in [1e-3, 1.0, 1e3] {
            for seed in 900..910 {
                let (width, soon) = adapt(target, 1.0, initial_width, limits, 20, seed);
                let message = format!("{target:?} from {initial_width}, width {width}");
                assert!(soon < 7.0, "{message}: {soon} evaluations");
                let (width, later) = adapt(target, 1.0, initial_width, limits, 200, seed);
                let message = format!("{target:?} from {initial_width}, width {width}");
                assert!(later < 5.5, "{message}: {later} evaluations");
            }
            // Without adaptation the wrong widths cost more, so the bounds above say something.
            let (width, unadapted) = adapt(target, 1.0, initial_width, limits, 0, 910);
            assert_eq!(width, initial_width);
            assert!(initial_width == 1.0 || unadapted > 10.0, "{unadapted}");
        }
    }
}

#[test]
fn adaptation_is_deterministic_and_free_of_scale() {
    // A power of two scales every number of the run without rounding.
    let scale = 2.0_f64.powi(30);
    for target in ADAPTATION_TARGETS {
        let limits = SliceLimits::default();
        let small = adapt(target, 1.0, 0.01, limits, 100, 920);
        let large = adapt(target, scale, 0.01 * scale, limits, 100, 920);
        assert_eq!(small, adapt(target, 1.0, 0.01, limits, 100, 920));
        assert_eq!((small.0 * scale, small.1), large);
    }
}

#[test]
fn adaptation_recovers_under_tight_limits() {
    for target in ADAPTATION_TARGETS {
        for initial_width in [1e-3, 1e3] {
            for (max_step_out, max_shrink) in [(2, 100), (16, 1), (2, 1)] {
                let limits = SliceLimits { max_step_out, max_shrink };
                let (width, _) = adapt(target, 1.0, initial_width, limits, 300, 930);
                let message = format!("{target:?} {limits:?} from {initial_width}: {width}");
                assert!((0.1..100.0).contains(&width), "{message}");
            }
        }
    }
}

#[test]
fn adaptation_ignores_refused_updates_and_stops_when_frozen() {
    let moved = SliceOutcome {
        x: 2.0,
        log_density: 0.0,
        evaluations: 5,
        failures: 0,
        capped: false,
        step_outs: 1,
        shrinks: 1,
        interval: 6.0,
    };
    let refused = SliceOutcome { evaluations: 0, failures: 1, ..moved };
    let mut adaptation = WidthAdaptation::new(0.25);
    adaptation.observe(0.0, &refused);
    assert_eq!(adaptation, WidthAdaptation::new(0.25));
    adaptation.observe(1.0, &moved);
    assert_eq!(adaptation.width(), 3.0);
    assert!(!adaptation.is_frozen());
    adaptation.freeze();
    let frozen = adaptation.clone();
    adaptation.observe(-50.0, &moved);
    assert!(adaptation.is_frozen());
    assert_eq!(adaptation, frozen);
}

#[test]
fn adaptation_moves_geometrically_at_the_limits() {
    let in_full = SliceOutcome {
        x: 0.1,
        log_density: 0.0,
        evaluations: 16,
        failures: 0,
        capped: true,
        step_outs: 15,
        shrinks: 0,
        interval: 16.0,
    };
    let mut adaptation = WidthAdaptation::new(1.0);
    adaptation.observe(0.0, &in_full);
    assert_eq!(adaptation.width(), 16.0);
    let gave_up = SliceOutcome { x: 0.0, shrinks: 100, ..in_full };
    adaptation.observe(0.0, &gave_up);
    assert_eq!(adaptation.width(), 2.0);
    let out_of_range = SliceOutcome { x: 0.0, interval: f64::INFINITY, ..in_full };
    adaptation.observe(0.0, &out_of_range);
    assert_eq!(adaptation.width(), 0.25);
}

#[test]
fn unusable_initial_width_is_read_as_one() {
    for width in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(WidthAdaptation::new(width), WidthAdaptation::new(1.0));
    }
}

#[test]
fn adaptation_can_be_stored() {
    fn storable<T: serde::Serialize + serde::de::DeserializeOwned>() {}
    storable::<WidthAdaptation>();
    storable::<SliceLimits>();
}
