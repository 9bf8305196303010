//! Axes: from numbers to places, and the numbers written beside them.

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal factors.
    Log,
}

/// An interval of an axis. Its ends are finite and differ, whatever it was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
}

/// Numbers beyond this are as good as infinite on paper.
const LARGEST: f64 = 1e300;

impl Scale {
    /// A linear axis between two numbers.
    pub fn linear(low: f64, high: f64) -> Self {
        let (low, high) = proper(low, high);
        Self { kind: Kind::Linear, low, high }
    }

    /// A logarithmic axis between two positive numbers; a linear one if they are not.
    pub fn log(low: f64, high: f64) -> Self {
        let possible = [low, high].iter().all(|end| (1e-290..LARGEST).contains(end));
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        match possible {
            true if high / low < 1.0 + 1e-9 => Self { kind: Kind::Log, low: low / 1.1, high: high * 1.1 },
            true => Self { kind: Kind::Log, low, high },
            false => Self::linear(low, high),
        }
    }

    /// A linear axis that shows all finite values, with a little room at both ends.
    pub fn covering(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        let scale = Self::linear(low, high);
        let room = 0.04 * (scale.high - scale.low);
        Self::linear(scale.low - room, scale.high + room)
    }

    /// Whether equal steps stand for equal factors.
    pub fn is_log(&self) -> bool {
        self.kind == Kind::Log
    }

    /// The lower end.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Where a value lies, from 0 at the lower end to 1 at the upper end.
    pub fn fraction(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
            Kind::Log if value <= 0.0 => -1e3,
            Kind::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Round numbers within the axis in increasing order: at least 3 and at most 12, near to `wanted`.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        if let Some(ticks) = (self.kind == Kind::Log).then(|| self.log_ticks(wanted)).flatten() {
            return ticks;
        }
        let wanted = wanted.clamp(3, 10) as i64;
        let width = self.high - self.low;
        let decade = (width / wanted as f64).log10().floor();
        let steps = (-1..=1).flat_map(|shift| [1.0, 2.0, 5.0].map(|m| nice(m, decade + f64::from(shift))));
        let candidates = steps.filter_map(|step| {
            let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
            let n = last - first + 1.0;
            (3.0..=12.0).contains(&n).then_some((step, first, n as i64))
        });
        let best = candidates.min_by_key(|(_, _, n)| (n - wanted).abs());
        let Some((step, first, n)) = best else {
            return vec![self.low, 0.5 * self.low + 0.5 * self.high, self.high];
        };
        let tick = |i: i64| {
            let k = first + i as f64;
            // A division by a whole number is exact where a product with 0.1 is not.
            if step < 1.0 { k / (1.0 / step).round() } else { k * step }
        };
        (0..n).map(tick).map(|tick| tick.clamp(self.low, self.high)).collect()
    }

    /// Powers of ten with a stride, or with round numbers between them: whatever is nearest to `wanted`.
    fn log_ticks(&self, wanted: usize) -> Option<Vec<f64>> {
        let (low, high) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decade = |k: i32, m: f64| if k < 0 { m / 10f64.powi(-k) } else { m * 10f64.powi(k) };
        let ticks = |stride: i32, multiples: &[f64]| -> Vec<f64> {
            let decades = (low..=high).filter(|k| k.rem_euclid(stride) == 0);
            let all = decades.flat_map(|k| multiples.iter().map(move |m| decade(k, *m)));
            all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
        };
        let fewest_and_most = ((high - low) / 13).max(1)..=(high - low) / 2 + 1;
        let powers = fewest_and_most.rev().map(|stride| ticks(stride, &[1.0]));
        let candidates = powers.chain([ticks(1, &[1.0, 3.0]), ticks(1, &[1.0, 2.0, 5.0])]);
        candidates
            .filter(|ticks| (3..=12).contains(&ticks.len()))
            .min_by_key(|ticks| ticks.len().abs_diff(wanted))
    }
}

/// m * 10^decade with as little rounding as possible.
fn nice(m: f64, decade: f64) -> f64 {
    if decade < 0.0 { m / 10f64.powf(-decade) } else { m * 10f64.powf(decade) }
}

/// Smallest and largest finite value; 0 and 1 if there is none.
pub fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

fn proper(low: f64, high: f64) -> (f64, f64) {
    let clean = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(-LARGEST, LARGEST) };
    let (low, high) = (clean(low.min(high)), clean(high.max(low)));
    let size = low.abs().max(high.abs());
    if high - low > 1e-9 * size && high - low > 1e-290 {
        return (low, high);
    }
    // A constant is shown in the middle of an interval of its own size.
    let half = if size > 1e-280 { 0.5 * size } else { 1.0 };
    (low - half, high + half)
}

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// 10 to a power, as text.
fn power_of_ten(exponent: i32) -> String {
    let digits = exponent.unsigned_abs().to_string();
    let digits = digits.bytes().map(|b| SUPERSCRIPTS[usize::from(b - b'0')]);
    "10".chars().chain((exponent < 0).then_some('⁻')).chain(digits).collect()
}

fn with_minus(text: String) -> String {
    text.replace('-', "−")
}

/// Texts of ticks, and what they share: a power of ten or an offset.
pub fn labels(ticks: &[f64]) -> (Vec<String>, Option<String>) {
    let size = ticks.iter().fold(0.0f64, |size, tick| size.max(tick.abs()));
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if size == 0.0 || !step.is_finite() || step <= 0.0 {
        return (ticks.iter().map(|tick| with_minus(significant(*tick, 4))).collect(), None);
    }
    let smallest = ticks.iter().map(|tick| tick.abs()).filter(|tick| *tick > 0.0).fold(size, f64::min);
    let powers = ticks.iter().all(|tick| *tick > 0.0 && (tick.log10() - tick.log10().round()).abs() < 1e-9);
    if powers && (size >= 9e4 || smallest < 9e-4) {
        return (ticks.iter().map(|tick| power_of_ten(tick.log10().round() as i32)).collect(), None);
    }
    let linear = ticks.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 1e-6 * step.max(1e-300));
    if linear && size / step > 2e4 {
        // A long number that all ticks share is said once.
        let offset = ticks[0];
        let (rest, unit) = labels(&ticks.iter().map(|tick| tick - offset).collect::<Vec<_>>());
        let offset = with_minus(format!("{offset}"));
        let offset = if offset.starts_with('−') { offset } else { format!("+{offset}") };
        return (rest, Some(unit.map_or(offset.clone(), |unit| format!("{unit} {offset}"))));
    }
    let exponent = if !(1e-3..1e5).contains(&size) { (size.log10() / 3.0).floor() as i32 * 3 } else { 0 };
    let unit = 10f64.powi(exponent);
    let text = |tick: &f64| {
        let resolution = if linear { step } else { tick.abs() };
        let decimals = (-(resolution / unit).log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
        with_minus(format!("{:.decimals$}", tick / unit + 0.0))
    };
    let texts = ticks.iter().map(text).collect();
    (texts, (exponent != 0).then(|| format!("×{}", power_of_ten(exponent))))
}

/// A number with so many significant digits, for tables and sentences.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-4..6).contains(&exponent) {
        let decimals = digits.saturating_sub(1);
        let text = format!("{value:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{mantissa}·{}", power_of_ten(exponent.parse().unwrap_or(0)));
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(scale: Scale, wanted: usize) -> Result<(), TestCaseError> {
        let ticks = scale.ticks(wanted);
        prop_assert!((3..=12).contains(&ticks.len()), "{scale:?}: {ticks:?}");
        prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{scale:?}: {ticks:?}");
        prop_assert!(
            ticks.iter().all(|tick| (scale.low()..=scale.high()).contains(tick)),
            "{scale:?}: {ticks:?}"
        );
        let (texts, _) = labels(&ticks);
        prop_assert_eq!(texts.len(), ticks.len());
        prop_assert!(texts.windows(2).all(|pair| pair[0] != pair[1]), "{:?}: {:?}", ticks, texts);
        prop_assert!(texts.iter().all(|text| text.chars().count() <= 12), "{:?}", texts);
        for tick in ticks {
            prop_assert!((-1e-9..=1.0 + 1e-9).contains(&scale.fraction(tick)));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn ticks_are_few_ordered_and_inside(
            low in -1.0f64..1.0, width in -12i32..13, size in -30i32..31, wanted in 3usize..10,
        ) {
            let (low, width) = (low * 10f64.powi(size), 10f64.powi(size - 3 + width / 3));
            check(Scale::linear(low, low + width), wanted)?;
            check(Scale::covering([low, low + width]), wanted)?;
        }

        #[test]
        fn log_ticks_too(low in -40.0f64..40.0, decades in 0.0f64..30.0, wanted in 3usize..10) {
            check(Scale::log(10f64.powf(low), 10f64.powf(low + decades)), wanted)?;
        }
    }

    #[test]
    fn odd_ends_make_an_axis() {
        let odd = [0.0, f64::NAN, f64::INFINITY, -f64::INFINITY, f64::MAX, 5e-324, -3.0, 1e-300];
        for low in odd {
            for high in odd {
                for scale in [Scale::linear(low, high), Scale::log(low, high), Scale::covering([low, high])] {
                    check(scale, 5).unwrap();
                }
            }
        }
    }

    #[test]
    fn labels_are_what_a_person_would_write() {
        let texts = |ticks: &[f64]| labels(ticks).0.join(" ");
        assert_eq!(texts(&[-0.2, 0.0, 0.2]), "−0.2 0.0 0.2");
        assert_eq!(texts(&[0.0, 50.0, 100.0]), "0 50 100");
        assert_eq!(labels(&[0.0, 2e6, 4e6]), (vec!["0".into(), "2".into(), "4".into()], Some("×10⁶".into())));
        assert_eq!(labels(&[1e6, 1e6 + 1.0, 1e6 + 2.0]).1, Some("+1000000".into()));
        assert_eq!(texts(&[1e-6, 1e-3, 1.0]), "10⁻⁶ 10⁻³ 10⁰");
        assert_eq!(texts(&[0.1, 0.3, 1.0, 3.0, 10.0]), "0.1 0.3 1 3 10");
        assert_eq!(significant(1234.5678, 3), "1235");
        assert_eq!(significant(0.012345, 3), "0.0123");
        assert_eq!(significant(-1.5e-7, 2), "-1.5·10⁻⁷");
    }
}
