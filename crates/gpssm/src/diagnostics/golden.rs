//! Agreement with ArviZ: values of arviz-stats 0.8.0, the package that computes
//! them for ArviZ 1.x. ArviZ 0.23.4 gives the same, but for the one place noted.
//!
//! The draws come from integer arithmetic and from IEEE sums, products and
//! quotients alone, in the order of the Python script (`golden.py`), so that
//! both languages see the same bits.

use super::{ess_bulk, ess_mean, ess_tail, mcse_mean, rhat};

/// Linear congruential generator with Knuth's MMIX constants.
struct Generator(u64);

impl Generator {
    /// The upper 53 bits as a number in `[0, 1)`.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2f64.powi(53)
    }

    /// Nearly standard normal: the sum of twelve uniforms, less six.
    fn bell(&mut self) -> f64 {
        let mut total = 0.0;
        for _ in 0..12 {
            total += self.uniform();
        }
        total - 6.0
    }
}

type Chains = Vec<Vec<f64>>;

/// `x_i = coefficient * x_{i-1} + noise`, from zero, in every chain.
fn autoregression(seed: u64, chains: usize, draws: usize, coefficient: f64) -> Chains {
    let mut generator = Generator(seed);
    let mut chain = || {
        let mut x = 0.0;
        let mut next = || {
            x = coefficient * x + generator.bell();
            x
        };
        (0..draws).map(|_| next()).collect()
    };
    (0..chains).map(|_| chain()).collect()
}

/// Independent ratios, heavy-tailed like Cauchy draws: they have no mean.
fn ratios(seed: u64, chains: usize, draws: usize) -> Chains {
    let mut generator = Generator(seed);
    let mut next = || generator.bell() / (generator.uniform() - 0.5);
    (0..chains).map(|_| (0..draws).map(|_| next()).collect()).collect()
}

/// Applies `change(chain number, draw number, draw)` to every draw.
fn each(mut chains: Chains, change: impl Fn(f64, f64, f64) -> f64) -> Chains {
    for (m, chain) in chains.iter_mut().enumerate() {
        for (i, draw) in chain.iter_mut().enumerate() {
            *draw = change(m as f64, i as f64, *draw);
        }
    }
    chains
}

/// Name, draws, R-hat, and bulk ESS, tail ESS, mean ESS, error of the mean.
type Case = (&'static str, Chains, Option<f64>, [f64; 4]);

#[rustfmt::skip] // Two lines a case, not ten.
fn cases() -> Vec<Case> {
    vec![
        ("independent", autoregression(1, 4, 500, 0.0),
            Some(1.0002373086701517), [1883.7987886905437, 1812.8387518022398, 1888.6348766092603, 0.022195100595629666]),
        ("autocorrelated", autoregression(2, 4, 500, 0.7),
            Some(1.0080575331050619), [381.4190995943946, 596.378415354589, 381.30739399254475, 0.07050345022453562]),
        ("odd_length", autoregression(3, 4, 501, 0.5),
            Some(1.0038610863063913), [611.574102269487, 1013.1366396239583, 610.7352704407658, 0.046206722590421814]),
        ("slow", autoregression(4, 4, 1000, 0.99),
            Some(1.458730860165113), [8.50125304948041, 34.71390902617637, 8.050698863826929, 2.505426745724226]),
        ("antithetic", autoregression(5, 4, 400, -0.6),
            Some(1.0015954988712987), [5126.59197224948, 1526.2035622185424, 5126.59197224948, 0.01750060314991263]),
        ("strongly_antithetic", autoregression(6, 4, 400, -0.97),
            Some(1.1290717337785559), [5126.59197224948, 138.65508832635632, 5126.59197224948, 0.06019885048872649]),
        ("shifted", each(autoregression(7, 4, 300, 0.3), |m, _, x| x + 0.5 * m),
            Some(1.1456678141359793), [19.88372240482575, 138.44468573710503, 19.98507275363007, 0.2675420797865069]),
        ("scaled", each(autoregression(8, 4, 300, 0.3), |m, _, x| x * (1.0 + m)),
            Some(1.152567603320456), [550.3847570181046, 129.30380763023626, 510.5771585896075, 0.13125397576677394]),
        ("drifting", each(autoregression(9, 4, 301, 0.3), |_, i, x| x + 0.01 * i),
            Some(1.2481475488663292), [11.970032922881474, 189.03569602765918, 11.745142153714811, 0.4132994073175042]),
        ("one_stuck", each(autoregression(10, 4, 250, 0.4), |m, _, x| { if m == 2.0 { 0.25 } else { x } }),
            Some(1.529091460205248), [391.3297002409538, 590.0401435764254, 379.05735984903606, 0.04739159775077084]),
        // ArviZ's R-hat is 6.3e15 here, infinity but for rounding.
        ("all_stuck_apart", each(autoregression(11, 4, 40, 0.0), |m, _, _| m),
            Some(f64::INFINITY), [5.0, 5.0, 5.0, 0.5015698625755192]),
        ("ties", each(autoregression(12, 4, 203, 0.6), |_, _, x| { (2.0 * x).floor() * 0.1 }),
            Some(1.0112195637532622), [220.87510780544153, 257.9196105820991, 220.15658796575104, 0.01755129275690728]),
        ("binary", each(autoregression(13, 4, 200, 0.5), |_, _, x| { if x > 0.0 { 1.0 } else { -1.0 } }),
            Some(1.002861023685664), [390.6920432042179, 390.6920432042181, 390.6920432042181, 0.05060096509463693]),
        ("rare_event", each(autoregression(14, 4, 200, 0.5), |_, _, x| { if x > 2.0 { 1.0 } else { 0.0 } }),
            Some(1.0013471391335769), [535.7366941248376, 535.7366941248375, 535.7366941248376, 0.007521886496087715]),
        ("heavy_tails", ratios(15, 4, 400),
            Some(1.0005556453331037), [1678.7682126851619, 1658.5824713910067, 1615.9356322903295, 19.269904077290306]),
        ("large_level", each(autoregression(16, 4, 200, 0.5), |_, _, x| x + 1e6),
            Some(1.0031474556658806), [282.64055482334265, 541.5541596671325, 281.8021543849387, 0.06593625332364415]),
        ("one_chain", autoregression(17, 1, 300, 0.5),
            None, [89.67128078147472, 205.83396815757712, 88.95799444291976, 0.11744478718402]),
        // ArviZ 0.23 rounds the quantile below its draw: tail ESS 49.374.
        ("quantile_on_a_draw", autoregression(18, 1, 101, 0.5),
            None, [40.67123379760042, 51.308629634583305, 40.540043401988235, 0.18418881276580662]),
        ("two_chains", autoregression(19, 2, 150, 0.8),
            Some(1.0860238454119242), [28.530816637361312, 89.73915232844234, 27.315447496117386, 0.27181830605161084]),
        ("four_draws", autoregression(20, 4, 4, 0.0),
            Some(1.7533044371277227), [19.265919722494797, 19.265919722494797, 19.265919722494797, 0.24342703990090958]),
        ("five_draws", autoregression(21, 4, 5, 0.3),
            Some(0.9512762794830172), [19.265919722494797, 16.0, 19.265919722494797, 0.2050812576443616]),
        ("seven_draws", autoregression(22, 3, 7, 0.3),
            Some(1.2762082081137884), [22.594905091859506, 22.594905091859506, 22.594905091859506, 0.1924776366121513]),
        ("nine_draws", autoregression(23, 2, 9, 0.9),
            Some(1.8786403332230093), [19.265919722494797, 19.265919722494797, 19.265919722494797, 0.3427423240708877]),
        ("twelve_draws", autoregression(24, 2, 12, 0.9),
            Some(2.071717201069182), [7.0548146734251995, 11.739130434782608, 6.421002631282353, 1.7330565358168402]),
        ("thirteen_draws_one_chain", autoregression(25, 1, 13, 0.9),
            None, [3.967119783876427, 12.9501749525715, 3.5532058690533947, 0.7829849546813932]),
    ]
}

fn close(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-8 * b.abs(),
        (a, b) => a == b,
    }
}

#[test]
fn agrees_with_arviz() {
    for (name, chains, r_hat, others) in cases() {
        let views: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
        let [bulk, tail, mean, error] = others.map(Some);
        for (what, found, expected) in [
            ("R-hat", rhat(&views), r_hat),
            ("bulk ESS", ess_bulk(&views), bulk),
            ("tail ESS", ess_tail(&views), tail),
            ("mean ESS", ess_mean(&views), mean),
            ("error of the mean", mcse_mean(&views), error),
        ] {
            assert!(close(found, expected), "{name}, {what}: found {found:?}, ArviZ {expected:?}");
        }
    }
}
