//! Equally weighted samples of a table of numbers, and what they say of each entry.

/// Samples (sample, row, channel).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ensemble {
    n_samples: usize,
    n_rows: usize,
    n_channels: usize,
    values: Vec<f64>,
}

/// Mean, standard deviation and quantiles of every entry, row-major (row, channel).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Intervals {
    /// Means.
    pub mean: Vec<f64>,
    /// Standard deviations.
    pub sd: Vec<f64>,
    /// The probabilities that were asked for.
    pub probabilities: Vec<f64>,
    /// For each probability all quantiles.
    pub quantiles: Vec<Vec<f64>>,
}

impl Ensemble {
    /// From values (sample, row, channel).
    pub fn new(n_samples: usize, n_rows: usize, n_channels: usize, values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len(), n_samples * n_rows * n_channels);
        Self { n_samples, n_rows, n_channels, values }
    }

    /// Samples.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Channels: states or outputs.
    pub fn n_channels(&self) -> usize {
        self.n_channels
    }

    /// Sample `i`, row-major (row, channel).
    pub fn sample(&self, i: usize) -> &[f64] {
        let size = self.n_rows * self.n_channels;
        &self.values[i * size..(i + 1) * size]
    }

    /// Without the rows before this one.
    #[must_use]
    pub fn from_row(&self, row: usize) -> Self {
        let row = row.min(self.n_rows);
        let rest = |i: usize| self.sample(i)[row * self.n_channels..].iter().copied();
        let values = (0..self.n_samples).flat_map(rest).collect();
        Self::new(self.n_samples, self.n_rows - row, self.n_channels, values)
    }

    /// Rows of these tables in turn: row 0 of each, then row 1 of each, and so on, `n_rows` in all. Tables may have one row
    /// less than the first; samples that not all of them have are left out.
    #[must_use]
    pub fn interleaved(parts: &[Self], n_rows: usize) -> Self {
        let n_samples = parts.iter().map(|part| part.n_samples).min().unwrap_or(0);
        let n_channels = parts.first().map_or(0, |part| part.n_channels);
        let mut values = Vec::with_capacity(n_samples * n_rows * n_channels);
        for i in 0..n_samples {
            for t in 0..n_rows {
                let row = t / parts.len();
                values.extend_from_slice(&parts[t % parts.len()].sample(i)[row * n_channels..][..n_channels]);
            }
        }
        Self::new(n_samples, n_rows, n_channels, values)
    }

    /// Every sample farther from the median of its entry, or nearer: `factors(row, channel)` are those below and above it.
    #[must_use]
    pub fn reshaped(&self, factors: &dyn Fn(usize, usize) -> (f64, f64)) -> Self {
        let medians = self.medians();
        let cells = (0..self.n_rows).flat_map(|t| (0..self.n_channels).map(move |k| (t, k)));
        let factors: Vec<(f64, f64)> = cells.map(|(t, k)| factors(t, k)).collect();
        let entry = |(i, value): (usize, &f64)| {
            let (median, (below, above)) = (medians[i % medians.len()], factors[i % medians.len()]);
            let distance = value - median;
            median + distance * if distance < 0.0 { below } else { above }
        };
        let values = self.values.iter().enumerate().map(entry).collect();
        Self::new(self.n_samples, self.n_rows, self.n_channels, values)
    }

    /// Samples outside the range of their channel, moved to its ends.
    #[must_use]
    pub fn clamped(&self, ranges: &[(f64, f64)]) -> Self {
        let entry = |(i, value): (usize, &f64)| {
            let (low, high) = ranges[i % self.n_channels];
            value.max(low).min(high)
        };
        let values = self.values.iter().enumerate().map(entry).collect();
        Self::new(self.n_samples, self.n_rows, self.n_channels, values)
    }

    /// The channels of both, side by side; rows and samples that only one of them has are left out.
    #[must_use]
    pub fn beside(&self, other: &Self) -> Self {
        let n_samples = self.n_samples.min(other.n_samples);
        let n_rows = self.n_rows.min(other.n_rows);
        let mut values = Vec::with_capacity(n_samples * n_rows * (self.n_channels + other.n_channels));
        for i in 0..n_samples {
            for t in 0..n_rows {
                for part in [self, other] {
                    values.extend_from_slice(&part.sample(i)[t * part.n_channels..][..part.n_channels]);
                }
            }
        }
        Self::new(n_samples, n_rows, self.n_channels + other.n_channels, values)
    }

    /// Entry (t, k) of all samples.
    pub fn column(&self, t: usize, k: usize) -> Vec<f64> {
        (0..self.n_samples).map(|i| self.sample(i)[t * self.n_channels + k]).collect()
    }

    /// Mean of entry (t, k).
    pub fn mean(&self, t: usize, k: usize) -> f64 {
        mean(&self.column(t, k))
    }

    /// Standard deviation of entry (t, k).
    pub fn sd(&self, t: usize, k: usize) -> f64 {
        sd(&self.column(t, k))
    }

    /// Quantile `p` of entry (t, k).
    pub fn quantile(&self, t: usize, k: usize, p: f64) -> f64 {
        let mut column = self.column(t, k);
        column.sort_unstable_by(f64::total_cmp);
        quantile(&column, p)
    }

    /// Means of all entries, row-major.
    pub fn means(&self) -> Vec<f64> {
        let mut means = vec![0.0; self.n_rows * self.n_channels];
        for i in 0..self.n_samples {
            let share = 1.0 / self.n_samples as f64;
            means.iter_mut().zip(self.sample(i)).for_each(|(sum, value)| *sum += share * value);
        }
        means
    }

    /// Medians of all entries, row-major.
    pub fn medians(&self) -> Vec<f64> {
        let entries = (0..self.n_rows).flat_map(|t| (0..self.n_channels).map(move |k| (t, k)));
        entries.map(|(t, k)| self.quantile(t, k, 0.5)).collect()
    }

    /// Mean, standard deviation and quantiles of every entry.
    pub fn intervals(&self, probabilities: &[f64]) -> Intervals {
        let n = self.n_rows * self.n_channels;
        let mut bands = Intervals {
            mean: Vec::with_capacity(n),
            sd: Vec::with_capacity(n),
            probabilities: probabilities.to_vec(),
            quantiles: vec![Vec::with_capacity(n); probabilities.len()],
        };
        for (t, k) in (0..self.n_rows).flat_map(|t| (0..self.n_channels).map(move |k| (t, k))) {
            let mut column = self.column(t, k);
            bands.mean.push(mean(&column));
            bands.sd.push(sd(&column));
            column.sort_unstable_by(f64::total_cmp);
            for (out, p) in bands.quantiles.iter_mut().zip(probabilities) {
                out.push(quantile(&column, *p));
            }
        }
        bands
    }

    /// CRPS of the outcome `y` of entry (t, k) under the samples' own distribution.
    pub fn crps(&self, t: usize, k: usize, y: f64) -> f64 {
        let mut column = self.column(t, k);
        column.sort_unstable_by(f64::total_cmp);
        crps(&column, y)
    }

    /// Share of samples below the outcome `y` of entry (t, k); equal ones count half.
    pub fn pit(&self, t: usize, k: usize, y: f64) -> f64 {
        let column = self.column(t, k);
        let below = column.iter().filter(|x| **x < y).count() as f64;
        let equal = column.iter().filter(|x| **x == y).count() as f64;
        (below + 0.5 * equal) / self.n_samples as f64
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sd(values: &[f64]) -> f64 {
    let center = mean(values);
    (values.iter().map(|v| (v - center).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// Quantile of sorted values, linear between neighbours (NumPy's default).
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, share) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + share * (sorted[high] - sorted[low])
}

/// mean |x_i - y| - mean |x_i - x_j| / 2 of sorted samples x.
pub fn crps(sorted: &[f64], y: f64) -> f64 {
    let n = sorted.len() as f64;
    let to_outcome = sorted.iter().map(|x| (x - y).abs()).sum::<f64>() / n;
    // sum_ij |x_i - x_j| = 2 sum_i (2 i + 1 - n) x_(i).
    let spread: f64 = sorted.iter().enumerate().map(|(i, x)| (2.0 * i as f64 + 1.0 - n) * x).sum();
    to_outcome - spread / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_tables_come_in_turn() {
        let a = Ensemble::new(2, 2, 1, vec![0.0, 2.0, 10.0, 12.0]);
        let b = Ensemble::new(1, 1, 1, vec![1.0]);
        assert_eq!(Ensemble::interleaved(&[a, b], 3), Ensemble::new(1, 3, 1, vec![0.0, 1.0, 2.0]));
    }

    #[test]
    fn bands_are_reshaped_around_the_median() {
        let samples = Ensemble::new(3, 1, 2, vec![0.0, 5.0, 1.0, 5.0, 3.0, 6.0]);
        let wider = samples.reshaped(&|_, k| if k == 0 { (2.0, 0.5) } else { (1.0, 2.0) });
        assert_eq!(wider, Ensemble::new(3, 1, 2, vec![-1.0, 5.0, 1.0, 5.0, 2.0, 7.0]));
        assert_eq!(samples.medians(), [1.0, 5.0]);
    }

    /// Seen failing with the upper end left out.
    #[test]
    fn samples_are_clamped() {
        let samples = Ensemble::new(3, 1, 2, vec![0.0, 5.0, 1.0, 9.0, -3.0, 6.0]);
        let clamped = samples.clamped(&[(-1.0, 0.5), (5.5, 7.0)]);
        assert_eq!(clamped, Ensemble::new(3, 1, 2, vec![0.0, 5.5, 0.5, 7.0, -1.0, 6.0]));
    }

    /// Against the double sum and the integral of the squared difference of distribution functions. Seen
    /// failing with the divisor n (n - 1).
    #[test]
    fn crps_of_samples_is_the_double_sum() {
        let sorted = [-1.3, 0.2, 0.2, 1.7, 4.0];
        for y in [-3.0, 0.2, 1.0, 5.5] {
            let n = sorted.len() as f64;
            let to_outcome: f64 = sorted.iter().map(|x: &f64| (x - y).abs()).sum::<f64>() / n;
            let spread: f64 =
                sorted.iter().flat_map(|a| sorted.iter().map(move |b| (a - b).abs())).sum::<f64>() / (n * n);
            assert!((crps(&sorted, y) - (to_outcome - 0.5 * spread)).abs() < 1e-14);
            let step = 1e-4;
            let integral: f64 = (0..120_000)
                .map(|i| -6.0 + step * (i as f64 + 0.5))
                .map(|x| {
                    let below = sorted.iter().filter(|s| **s <= x).count() as f64 / n;
                    step * (below - f64::from(u8::from(x >= y))).powi(2)
                })
                .sum();
            assert!((crps(&sorted, y) - integral).abs() < 1e-3, "{y}");
        }
    }

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[1.0], 0.3), 1.0);
        let ensemble = Ensemble::new(2, 1, 2, vec![1.0, 10.0, 3.0, 30.0]);
        let bands = ensemble.intervals(&[0.5]);
        assert_eq!(
            (bands.mean, bands.sd, &bands.quantiles[0]),
            (vec![2.0, 20.0], vec![1.0, 10.0], &vec![2.0, 20.0])
        );
        assert_eq!(ensemble.pit(0, 0, 2.0), 0.5);
    }
}
