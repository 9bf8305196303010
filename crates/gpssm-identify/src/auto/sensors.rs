//! Sensors that a record asks for: what is noticed of an output, and the models that are tried because of it.

use gpssm::mcmc::unfolded;
use gpssm::model::{Orientation, Predictor, SensorNoiseSpec, SensorSpec, Symmetry};
use gpssm::{Model, Record, Sequence};

use super::screen;

/// How a candidate sees its states.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Sensor {
    /// The states themselves, with Gaussian noise.
    #[default]
    Gaussian,
    /// Their moduli: y = |s| + e.
    Modulus,
    /// Up to a limit: y = min(max(s, low), high) + e.
    Saturating {
        /// The lower limit, if there is one.
        low: Option<f64>,
        /// The upper limit, if there is one.
        high: Option<f64>,
    },
    /// Counts with rate exp(s).
    Poisson,
    /// Counts with mean exp(s), more spread than those of a Poisson.
    NegativeBinomial,
    /// 0 or 1 with log odds s.
    Bernoulli,
}

/// Part of the rows at one end of the range, and so many of them in a row, that make it a limit.
const AT_LIMIT: f64 = 0.02;
const RUN_AT_LIMIT: usize = 3;
/// Fewest different values of an output that has limits.
const FEWEST_VALUES: usize = 12;
/// Unfolding must make the squared error of a linear model smaller by this factor (coupled drives, training half: 0.88),
const UNFOLDS: f64 = 0.93;
/// with so many changes of the sign,
const FEWEST_CHANGES: usize = 4;
/// at an output that is this near zero, relative to its largest value, at its lowest.
const TOUCHES: f64 = 0.05;
/// Counts are below this at their lowest, and an output that is rounded to whole numbers is above.
const COUNTS_FROM: f64 = 5.0;
/// Steps in the standard deviation of an output that is clearly rounded.
const COARSE: f64 = 12.0;

/// What to try beside Gaussian sensors, and a sentence that says why. Records of several outputs are looked at for counts alone.
pub(super) fn noticed(record: &Record, notes: &mut Vec<String>) -> Vec<Sensor> {
    let outputs: Vec<Vec<f64>> = (0..record.n_y())
        .map(|k| record.sequences().iter().flat_map(|s| s.output(k)).filter(|y| !y.is_nan()).collect())
        .collect();
    let all = |test: &dyn Fn(f64) -> bool| outputs.iter().flatten().all(|y| test(*y));
    if all(&|y| y == 0.0 || y == 1.0) {
        notes.push("the output is 0 or 1 in every row: a Bernoulli sensor is tried".into());
        return vec![Sensor::Bernoulli];
    }
    let low = outputs.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    if all(&|y| y >= 0.0 && y.fract() == 0.0) && low < COUNTS_FROM {
        notes.push(
            "the output is a whole number from zero on in every row, as counts are: Poisson and negative binomial sensors are \
             tried"
                .into(),
        );
        return vec![Sensor::Poisson, Sensor::NegativeBinomial];
    }
    let [values] = &outputs[..] else { return Vec::new() };
    if let Some(limits @ (low, high)) = limits(record, values) {
        let word = |name: &str, limit: Option<f64>| limit.map(|limit| format!("{name} {limit}"));
        let words: Vec<String> = [word("below", low), word("above", high)].into_iter().flatten().collect();
        notes.push(format!(
            "the output stays at the end of its range for rows on end, as if it could not go {}: a saturating sensor is tried",
            words.join(" or ")
        ));
        return vec![Sensor::Saturating { low: limits.0, high: limits.1 }];
    }
    if is_modulus(record, values) {
        notes.push(
            "the output never goes below zero and bounces there, as a modulus does: the sensor y = |x| is tried".into(),
        );
        return vec![Sensor::Modulus];
    }
    if let Some(step) = step(values)
        && screen::sd_of_output(record, 0) < COARSE * step
    {
        notes.push(format!(
            "the output moves in steps of {step}: rounding is taken for sensor noise with a standard deviation of about {:.2}",
            step / 12f64.sqrt()
        ));
    }
    Vec::new()
}

/// Ends of the range where the output stays.
fn limits(record: &Record, values: &[f64]) -> Option<(Option<f64>, Option<f64>)> {
    let mut different = values.to_vec();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    let (&low, &high) = (different.first()?, different.last()?);
    if different.len() < FEWEST_VALUES {
        return None;
    }
    let stays = |limit: f64| {
        let at = values.iter().filter(|y| **y == limit).count();
        let longest = record.sequences().iter().map(|sequence| {
            let mut run = 0;
            let runs = sequence.output(0).map(|y| {
                run = if y == limit { run + 1 } else { 0 };
                run
            });
            runs.max().unwrap_or(0)
        });
        at as f64 > AT_LIMIT * values.len() as f64 && longest.max() >= Some(RUN_AT_LIMIT)
    };
    let [low, high] = [low, high].map(|limit| Some(limit).filter(|limit| stays(*limit)));
    (low.is_some() || high.is_some()).then_some((low, high))
}

/// Whether the longest sequence becomes simpler where it is unfolded at zero.
fn is_modulus(record: &Record, values: &[f64]) -> bool {
    let (low, high) =
        values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), y| (low.min(*y), high.max(*y)));
    // Noise of the sensor may take it a little below.
    if low < -TOUCHES * high || low > TOUCHES * high {
        return false;
    }
    let Some(longest) = record.sequences().iter().max_by_key(|sequence| sequence.n_rows()) else {
        return false;
    };
    let y: Vec<f64> = longest.output(0).collect();
    let inputs: Vec<Vec<f64>> = (0..longest.n_rows()).map(|t| longest.u(t).to_vec()).collect();
    if y.iter().any(|y| y.is_nan()) {
        return false;
    }
    let (signed, ratio) = unfolded(&y, &inputs);
    let changes = signed.windows(2).filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0)).count();
    ratio < UNFOLDS && changes >= FEWEST_CHANGES
}

/// The step that all differences are multiples of, if there is one.
fn step(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.dedup();
    let size = sorted.last()? - sorted.first()?;
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let step = gaps.clone().filter(|gap| *gap > 1e-9 * size).fold(f64::INFINITY, f64::min);
    let whole = |gap: f64| (gap / step - (gap / step).round()).abs() < 1e-3;
    (step.is_finite() && gaps.into_iter().all(whole)).then_some(step)
}

impl Sensor {
    /// Its name in lists.
    pub(super) fn describe(self) -> Option<&'static str> {
        Some(match self {
            Self::Gaussian => return None,
            Self::Modulus => "sees |x|",
            Self::Saturating { .. } => "saturating sensor",
            Self::Poisson => "Poisson sensor",
            Self::NegativeBinomial => "negative binomial sensor",
            Self::Bernoulli => "Bernoulli sensor",
        })
    }

    /// Whether outputs are whole numbers.
    pub(super) fn is_discrete(self) -> bool {
        matches!(self, Self::Poisson | Self::NegativeBinomial | Self::Bernoulli)
    }

    /// A model of lagged outputs with this sensor in place of its own. `record` has been laid out.
    pub(super) fn install(self, model: &mut Model, record: &Record) {
        let formula = |text: String| SensorSpec::Gaussian {
            mean: Predictor::Formulas(vec![text]),
            noise: SensorNoiseSpec::default(),
        };
        let sd = screen::sd_of_output(record, 0).max(f64::MIN_POSITIVE);
        let mut size = 1.0;
        model.sensor = match self {
            Self::Gaussian => return,
            Self::Modulus => {
                size = root_mean_square(record.sequences());
                let orientation = match record.n_u() {
                    0 => Orientation::PositiveMean { state: 0 },
                    _ => Orientation::InputRaisesState { input: 0, state: 0 },
                };
                let flip = (0..model.states.len()).collect();
                model.symmetries = vec![Symmetry { flip, flip_parameters: Vec::new(), orientation }];
                formula("abs(x1)".into())
            }
            Self::Saturating { low, high } => {
                size = sd;
                let inner = low.map_or_else(|| "x1".into(), |low| format!("max(x1, {low:?})"));
                formula(high.map_or_else(|| inner.clone(), |high| format!("min({inner}, {high:?})")))
            }
            Self::Poisson => SensorSpec::Poisson { log_rate: Predictor::States },
            Self::NegativeBinomial => {
                SensorSpec::NegativeBinomial { log_mean: Predictor::States, size: None }
            }
            Self::Bernoulli => SensorSpec::Bernoulli { logit: Predictor::States },
        };
        model.states.iter_mut().for_each(|state| state.scale = Some(size));
    }
}

fn root_mean_square(sequences: &[Sequence]) -> f64 {
    let values = || sequences.iter().flat_map(|s| s.output(0)).filter(|y| !y.is_nan());
    let n = values().count().max(1) as f64;
    (values().map(|y| y * y).sum::<f64>() / n).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(y: &[f64], u: &[f64]) -> Vec<Sensor> {
        noticed(&Sequence::scalar(y, Some(u)).unwrap().into(), &mut Vec::new())
    }

    /// Each kind once, and records that only look like it.
    #[test]
    fn what_an_output_is_like_is_noticed() {
        let u: Vec<f64> =
            (0..300).map(|t| f64::from((t / 15) % 2) - 0.5 + 0.3 * (0.31 * f64::from(t)).sin()).collect();
        let mut s = vec![0.0, 0.0];
        (2..300).for_each(|t| s.push(1.6 * s[t - 1] - 0.7 * s[t - 2] + 0.3 * u[t - 1]));
        let of = |map: &dyn Fn(f64) -> f64| found(&s.iter().map(|s| map(*s)).collect::<Vec<f64>>(), &u);
        assert_eq!(of(&|s| s), []);
        assert_eq!(of(&|s| s + 20.0), []);
        assert_eq!(of(&f64::abs), [Sensor::Modulus]);
        // Positive, but it turns before zero.
        assert_eq!(of(&f64::exp), []);
        assert_eq!(of(&|s| s.min(0.6)), [Sensor::Saturating { low: None, high: Some(0.6) }]);
        assert_eq!(of(&|s| f64::from(u8::from(s > 0.0))), [Sensor::Bernoulli]);
        assert_eq!(of(&|s| (3.0 * s.exp()).floor()), [Sensor::Poisson, Sensor::NegativeBinomial]);
        assert_eq!(of(&|s| (500.0 + 100.0 * s).round()), []);
        let mut notes = Vec::new();
        let rounded: Vec<f64> = s.iter().map(|s| 0.25 * (4.0 * s).round() + 10.0).collect();
        noticed(&Sequence::scalar(&rounded, Some(&u)).unwrap().into(), &mut notes);
        assert!(notes[0].contains("steps of 0.25"), "{notes:?}");
    }
}
