//! Internal and original units.

use serde::{Deserialize, Serialize};

use crate::points::Points;

/// value in original units = shift + scale * internal value, for each component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// Original value of the internal zero.
    pub shift: Vec<f64>,
    /// Original size of the internal unit.
    pub scale: Vec<f64>,
}

impl Affine {
    /// The same units inside and outside.
    pub fn identity(n: usize) -> Self {
        Self { shift: vec![0.0; n], scale: vec![1.0; n] }
    }

    /// Internal value of component `c`.
    pub fn to_internal(&self, c: usize, original: f64) -> f64 {
        (original - self.shift[c]) / self.scale[c]
    }

    /// Original value of component `c`.
    pub fn to_original(&self, c: usize, internal: f64) -> f64 {
        self.shift[c] + self.scale[c] * internal
    }

    fn is_identity(&self) -> bool {
        self.shift.iter().all(|&s| s == 0.0) && self.scale.iter().all(|&s| s == 1.0)
    }
}

/// Units of states, inputs and outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// States.
    pub x: Affine,
    /// Inputs.
    pub u: Affine,
    /// Outputs.
    pub y: Affine,
}

impl Scaling {
    /// The same units inside and outside.
    pub fn identity(n_x: usize, n_u: usize, n_y: usize) -> Self {
        Self { x: Affine::identity(n_x), u: Affine::identity(n_u), y: Affine::identity(n_y) }
    }

    /// Whether states and inputs have the same units inside and outside.
    pub(crate) fn is_identity_in_z(&self) -> bool {
        self.x.is_identity() && self.u.is_identity()
    }

    /// Original size of the internal unit of component `c` of z = (x, u).
    pub fn z_scale(&self, c: usize) -> f64 {
        let n_x = self.x.scale.len();
        if c < n_x { self.x.scale[c] } else { self.u.scale[c - n_x] }
    }

    /// Original value of the internal zero of component `c` of z = (x, u).
    pub fn z_shift(&self, c: usize) -> f64 {
        let n_x = self.x.shift.len();
        if c < n_x { self.x.shift[c] } else { self.u.shift[c - n_x] }
    }

    /// Points z = (x, u) in original units.
    pub fn points_to_original(&self, z: &Points) -> Points {
        let mut original = z.clone();
        for c in 0..z.n_components() {
            let (shift, scale) = (self.z_shift(c), self.z_scale(c));
            for value in original.column_mut(c) {
                *value = shift + scale * *value;
            }
        }
        original
    }
}

/// Mean and standard deviation of the finite values, computed so that squares neither overflow nor
/// vanish; a constant or empty column gets standard deviation `None`.
pub(crate) fn mean_and_sd(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, Option<f64>)> {
    let finite = values.filter(|v| v.is_finite());
    let largest = finite.clone().fold(0.0f64, |largest, v| largest.max(v.abs()));
    let n = finite.clone().count();
    if n == 0 {
        return None;
    }
    if largest == 0.0 {
        return Some((0.0, None));
    }
    let mean = finite.clone().map(|v| v / largest).sum::<f64>() / n as f64;
    let variance = finite.map(|v| (v / largest - mean).powi(2)).sum::<f64>() / n as f64;
    // A column that differs from a constant by rounding only is a constant.
    let sd = (variance.sqrt() > 1e-13).then(|| variance.sqrt() * largest);
    Some((mean * largest, sd.filter(|sd| sd.is_normal())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_scales_neither_overflow_nor_vanish() {
        for scale in [1e-150, 1.0, 1e150] {
            let values = [1.0, 2.0, 3.0, f64::NAN].map(|v| v * scale);
            let (mean, sd) = mean_and_sd(values.into_iter()).unwrap();
            assert!((mean / scale - 2.0).abs() < 1e-14);
            assert!((sd.unwrap() / scale - (2.0f64 / 3.0).sqrt()).abs() < 1e-14);
        }
        assert_eq!(mean_and_sd([4.0, 4.0].into_iter()), Some((4.0, None)));
        assert_eq!(mean_and_sd([f64::NAN].into_iter()), None);
    }
}
