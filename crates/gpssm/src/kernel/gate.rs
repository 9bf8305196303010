//! The factors of a change point kernel: covariances s(z) s(z') of one function, which goes from 1 to 0 or from 0 to 1 along a
//! component of z (Saatci, Turner, Rasmussen 2010; Lloyd et al. 2014, arXiv 1402.4304). Their numbers are the location of the
//! change and its width.

use serde::{Deserialize, Serialize};

use super::part::{Covariance, Pair, Row};

/// The side of a change point on which a function is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Where the component is smaller than the location: s(z) = 1 / (1 + exp((z_c - location) / width)).
    Before,
    /// Where it is larger: one minus that.
    After,
}

impl Side {
    pub(super) fn covariance(self) -> &'static dyn Covariance {
        match self {
            Self::Before => &Gate(-1.0),
            Self::After => &Gate(1.0),
        }
    }
}

/// The sign of the slope of s.
struct Gate(f64);

impl Gate {
    /// s(z) and its derivative.
    fn open(&self, numbers: &[f64], z: f64) -> (f64, f64) {
        let at = self.0 * (z - numbers[0]) / numbers[1];
        // Of -|at|, so that nothing overflows.
        let small = (-at.abs()).exp();
        let value = if at >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
        (value, self.0 / numbers[1] * small / (1.0 + small).powi(2))
    }
}

impl Covariance for Gate {
    fn value(&self, numbers: &[f64], pair: &Pair<'_>) -> f64 {
        pair.iter().map(|(z, other)| self.open(numbers, z).0 * self.open(numbers, other).0).product()
    }

    fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
        // There is one component.
        for (&c, (z, other)) in pair.components.iter().zip(pair.iter()) {
            gradient[c] += factor * self.open(numbers, z).1 * self.open(numbers, other).0;
        }
        true
    }

    fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
        let Some(&c) = row.components.first() else { return out.fill(1.0) };
        let other = self.open(numbers, row.at[c]).0;
        for (out, &z) in out.iter_mut().zip(&row.points.column(c)[row.range.clone()]) {
            *out = other * self.open(numbers, z).0;
        }
    }
}
