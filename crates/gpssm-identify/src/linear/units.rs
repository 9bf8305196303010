//! Standardised rows of a record.

use gpssm::{Record, Sequence};

use super::filter::Forecast;

/// Shift and scale of each output and input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Units {
    pub y: Vec<(f64, f64)>,
    pub u: Vec<(f64, f64)>,
}

/// Rows of one sequence, row-major; missing outputs are NaN.
pub(super) struct Rows {
    pub n: usize,
    pub n_y: usize,
    pub n_u: usize,
    pub y: Vec<f64>,
    pub u: Vec<f64>,
}

impl Rows {
    pub fn y(&self, t: usize) -> &[f64] {
        &self.y[t * self.n_y..(t + 1) * self.n_y]
    }

    pub fn u(&self, t: usize) -> &[f64] {
        &self.u[t * self.n_u..(t + 1) * self.n_u]
    }
}

fn standard(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Columns that never change are left as they are.
    (mean, if sd > 1e-12 * mean.abs().max(f64::MIN_POSITIVE) { sd } else { 1.0 })
}

impl Units {
    pub fn of(record: &Record) -> Self {
        let sequences = record.sequences();
        Self {
            y: (0..record.n_y()).map(|k| standard(sequences.iter().flat_map(|s| s.output(k)))).collect(),
            u: (0..record.n_u()).map(|c| standard(sequences.iter().flat_map(|s| s.input(c)))).collect(),
        }
    }

    /// A sequence in these units, its inputs late by `shift` rows; before the first row stands the first input.
    pub fn rows(&self, sequence: &Sequence, shift: usize) -> Rows {
        let (n, n_y, n_u) = (sequence.n_rows(), sequence.n_y(), sequence.n_u());
        let standardise = |(value, (center, scale)): (&f64, &(f64, f64))| (value - center) / scale;
        let y = (0..n).flat_map(|t| sequence.y(t).iter().zip(&self.y).map(standardise)).collect();
        let late = |t: usize| sequence.u(t.saturating_sub(shift)).iter().zip(&self.u).map(standardise);
        Rows { n, n_y, n_u, y, u: (0..n).flat_map(late).collect() }
    }

    pub fn to_original(&self, mut forecast: Forecast) -> Forecast {
        let n_y = self.y.len();
        for (i, (mean, sd)) in forecast.mean.iter_mut().zip(&mut forecast.sd).enumerate() {
            let (center, scale) = self.y[i % n_y];
            (*mean, *sd) = (center + scale * *mean, scale * *sd);
        }
        forecast
    }
}
