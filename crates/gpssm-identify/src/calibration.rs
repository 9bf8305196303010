//! Prediction intervals of free runs, calibrated on held-out parts of the training record.

use gpssm::posterior::Ensemble;
use serde::{Deserialize, Serialize};

/// How the prediction intervals of a free run differ from those of the model itself; a part of the fitted model.
///
/// What the model says is stretched by a factor and put together with what a constant says, as one would join two independent
/// measurements: 1 / side^2 = 1 / (scale * own side)^2 + 1 / (constant's side)^2. A model that knows
/// more than a constant is left alone by this, and one whose paths drift apart without end gets the constant's intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Factor of the distance of quantiles from the median.
    pub scale: f64,
    /// Distance of the 5 % and 95 % quantiles of a constant forecast from its middle, by output; empty to leave it out.
    #[serde(default)]
    pub constant: Vec<f64>,
    /// What each output is taken to stay within: paths that leave it go along its end. Medians and most intervals do not notice,
    /// but the mean, the standard deviation and scores of all paths would be those of the few that run away. Empty
    /// to leave them.
    #[serde(default)]
    pub range: Vec<(f64, f64)>,
}

impl Default for Calibration {
    /// Leaves intervals as they are.
    fn default() -> Self {
        Self { scale: 1.0, constant: Vec::new(), range: Vec::new() }
    }
}

impl Calibration {
    /// Whether intervals are left as they are.
    pub fn is_identity(&self) -> bool {
        self.scale == 1.0 && self.constant.is_empty() && self.range.is_empty()
    }

    /// Simulated outputs with these intervals.
    #[must_use]
    pub fn apply(&self, samples: &Ensemble) -> Ensemble {
        let samples = if self.range.is_empty() { samples.clone() } else { samples.clamped(&self.range) };
        if self.scale == 1.0 && self.constant.is_empty() {
            return samples;
        }
        samples.reshaped(&|t, k| {
            let [low, middle, high] = [0.05, 0.5, 0.95].map(|p| samples.quantile(t, k, p));
            (self.factor(k, middle - low), self.factor(k, high - middle))
        })
    }

    /// Factor of a side of the band of output `k` that is so wide.
    fn factor(&self, k: usize, side: f64) -> f64 {
        let limit = self.constant.get(k).map_or(0.0, |constant| side / constant);
        1.0 / self.scale.recip().hypot(limit)
    }

    /// One line, if there is something to say.
    pub fn describe(&self) -> Option<String> {
        if self.is_identity() {
            return None;
        }
        let most = if self.constant.is_empty() { "" } else { ", at most to those of a constant" };
        let ranges: Vec<String> =
            self.range.iter().map(|(low, high)| format!("{low:.4} .. {high:.4}")).collect();
        let within = match ranges.as_slice() {
            [] => String::new(),
            ranges => format!("; simulated outputs are held within {}", ranges.join(", ")),
        };
        Some(format!(
            "Prediction intervals were scaled by {:.2} (calibrated on held-out training data){most}{within}",
            self.scale
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_bands_become_those_of_a_constant_and_narrow_ones_are_scaled() {
        let calibration = Calibration { scale: 2.0, constant: vec![3.0], ..Calibration::default() };
        assert!((calibration.factor(0, 1e-6) - 2.0).abs() < 1e-9);
        assert!((1e6 * calibration.factor(0, 1e6) - 3.0).abs() < 1e-9);
        // Equal sides: each has half of the say.
        assert!((1.5 * calibration.factor(0, 1.5) - 3.0 / 2.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(Calibration { scale: 2.0, ..Calibration::default() }.factor(0, 1e6), 2.0);
        let within = Calibration { range: vec![(-1.0, 2.0)], ..Calibration::default() };
        assert!(
            !within.is_identity()
                && within.describe().is_some_and(|words| words.contains("-1.0000 .. 2.0000"))
        );
        assert!(Calibration::default().is_identity() && Calibration::default().describe().is_none());
    }
}
