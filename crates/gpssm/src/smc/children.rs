//! How many children of a particle are weighed at each step.
//!
//! A shortlist pays where the sensor tells more than the transition predicts: then few of the children are worth a place.
//! With normalised weights w of n children drawn from the prediction, n sum(w^2) of them come to one effective draw. Warm-up
//! averages this number at every row, and gives each row a multiple of it. The numbers are fixed while draws are kept: the
//! filter is exact for any of them, but not if they followed the path.

use serde::{Deserialize, Serialize};

/// Children of a particle where nothing is known of the sensor yet.
pub(crate) const LISTED: usize = 16;
/// The most that a row gets.
const MOST: f64 = 64.0;
/// Children for each effective draw.
const PER_EFFECTIVE: f64 = 0.5;
/// Fewer are not worth a list: particles are drawn once, and keep their weights.
const FEWEST: f64 = 2.0;

/// Children on the shortlist for each particle, by row of a sequence; one means that there is no list. Without numbers every
/// row has sixteen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Children(Vec<u8>);

impl Children {
    /// These numbers, one for each row; zero counts as one.
    pub fn new(numbers: Vec<u8>) -> Self {
        Self(numbers)
    }

    /// How many at row `t`.
    pub(crate) fn at(&self, t: usize) -> usize {
        self.0.get(t).map_or(LISTED, |&n| usize::from(n).max(1))
    }

    /// Whether there are numbers for a sequence of so many rows, or none at all.
    pub(crate) fn fits(&self, n_rows: usize) -> bool {
        self.0.is_empty() || self.0.len() == n_rows
    }
}

/// Children for one effective draw at each row, summed over sweeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scarcity {
    n: u64,
    sums: Vec<f64>,
}

impl Scarcity {
    /// Sweeps from which numbers are found.
    pub(crate) const ENOUGH: u64 = 10;

    /// Adds those of a sweep; nothing if there were no lists to fill.
    pub(crate) fn add(&mut self, sweep: &[f64]) {
        if sweep.is_empty() {
            return;
        }
        self.sums.resize(sweep.len(), 0.0);
        self.sums.iter_mut().zip(sweep).for_each(|(sum, needed)| *sum += needed);
        self.n += 1;
    }

    /// How many children each row should have; none after too few sweeps.
    pub(crate) fn children(&self) -> Option<Children> {
        let number = |sum: &f64| {
            let wanted = PER_EFFECTIVE * sum / self.n as f64;
            if wanted < FEWEST { 1 } else { wanted.ceil().min(MOST) as u8 }
        };
        (self.n >= Self::ENOUGH).then(|| Children(self.sums.iter().map(number).collect()))
    }
}

/// Draws that come to one effective draw, from normalised weights.
pub(crate) fn draws_for_one(weights: &[f64]) -> f64 {
    weights.len() as f64 * weights.iter().map(|w| w * w).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that tell nothing get no list, others what they need, after enough sweeps. Seen failing with sums in place of means.
    #[test]
    fn rows_get_what_they_need() {
        let mut scarcity = Scarcity::default();
        scarcity.add(&[]);
        for sweep in 0..Scarcity::ENOUGH {
            assert_eq!(scarcity.children(), None, "{sweep}");
            let alternating = if sweep % 2 == 0 { 1.0 } else { 10.0 };
            scarcity.add(&[0.0, 1.2, alternating, 1000.0]);
        }
        let children = scarcity.children().unwrap();
        let wanted = (PER_EFFECTIVE * 5.5).ceil() as usize;
        assert_eq!((0..4).map(|t| children.at(t)).collect::<Vec<_>>(), [1, 1, wanted, MOST as usize]);
        assert!(children.fits(4) && !children.fits(5));
        assert_eq!(Children::default().at(3), LISTED);
        assert!((draws_for_one(&[0.25; 4]) - 1.0).abs() < 1e-15);
        assert!((draws_for_one(&[0.0, 1.0, 0.0]) - 3.0).abs() < 1e-15);
    }
}
