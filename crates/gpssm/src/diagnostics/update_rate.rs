//! How often particle Gibbs renews each part of the path.

use std::fmt;

/// For each time `t`, in what fraction of the sweeps the state `x_t` changed.
///
/// Particle Gibbs without ancestor sampling tends to keep the early part of its
/// reference path, since all particles descend from it there; the rate shows
/// this directly. Drawing the path among `N` equally good particles, of which the
/// reference is one, would give the rate `1 - 1/N` at all times (Lindsten, Jordan
/// and Schön 2014, JMLR 15, 2145-2184,
/// <https://jmlr.org/papers/v15/lindsten14a.html>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateRate {
    changed: Vec<u64>,
    sweeps: u64,
}

/// A path that has not the shape the counter was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathShapeMismatch;

impl fmt::Display for PathShapeMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the paths do not have one state per time of the update rate")
    }
}

impl std::error::Error for PathShapeMismatch {}

impl UpdateRate {
    /// A counter for paths of `times` states, with no sweep recorded.
    pub fn new(times: usize) -> Self {
        Self { changed: vec![0; times], sweeps: 0 }
    }

    /// Counts one sweep that took the path `old` to `new`, both row-major
    /// `(t, d)` with `n_x` components per state.
    ///
    /// A state changed if any component did, bit by bit: particle Gibbs copies
    /// a state it keeps, so that equality is exact.
    ///
    /// # Errors
    ///
    /// [`PathShapeMismatch`], with nothing counted, unless `n_x` is positive and
    /// both paths hold `n_x` numbers for every time.
    pub fn record(&mut self, old: &[f64], new: &[f64], n_x: usize) -> Result<(), PathShapeMismatch> {
        let expected = self.changed.len().checked_mul(n_x);
        if n_x == 0 || expected != Some(old.len()) || expected != Some(new.len()) {
            return Err(PathShapeMismatch);
        }
        let states = old.chunks_exact(n_x).zip(new.chunks_exact(n_x));
        for (count, (before, after)) in self.changed.iter_mut().zip(states) {
            let mut components = before.iter().zip(after);
            *count += u64::from(components.any(|(a, b)| a.to_bits() != b.to_bits()));
        }
        self.sweeps += 1;
        Ok(())
    }

    /// For each time, the number of sweeps in which the state changed.
    pub fn changed(&self) -> &[u64] {
        &self.changed
    }

    /// The number of sweeps recorded.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// For each time, the fraction of sweeps in which the state changed; zero
    /// before the first sweep.
    pub fn rates(&self) -> Vec<f64> {
        let sweeps = self.sweeps.max(1) as f64;
        let rate = |&count: &u64| count as f64 / sweeps;
        self.changed.iter().map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_states_not_components() {
        let mut rate = UpdateRate::new(3);
        assert_eq!(rate.rates(), [0.0; 3]);
        let old = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let new = [0.0, 1.0, 2.0, 9.0, 8.0, 7.0];
        rate.record(&old, &new, 2).unwrap();
        rate.record(&new, &new, 2).unwrap();
        let later = [0.0, 1.0, 2.0, 9.0, 8.5, 7.0];
        rate.record(&new, &later, 2).unwrap();
        rate.record(&later, &later, 2).unwrap();
        assert_eq!(rate.rates(), [0.0, 0.25, 0.5]);
        assert_eq!((rate.changed(), rate.sweeps()), (&[0, 1, 2][..], 4));
    }

    #[test]
    fn wrong_shapes_are_refused_and_not_counted() {
        let mut rate = UpdateRate::new(2);
        assert_eq!(rate.record(&[1.0], &[1.0, 2.0], 1), Err(PathShapeMismatch));
        assert_eq!(rate.record(&[1.0; 2], &[1.0], 1), Err(PathShapeMismatch));
        assert_eq!(rate.record(&[], &[], 0), Err(PathShapeMismatch));
        assert_eq!(rate.record(&[], &[], usize::MAX), Err(PathShapeMismatch));
        assert_eq!(rate.sweeps(), 0);
        assert!(!PathShapeMismatch.to_string().is_empty());
    }
}
