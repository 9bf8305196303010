//! Autocovariances one lag at a time.

use super::moments::mean;

/// Centred chains, from which the autocovariance at any lag is computed on
/// demand.
///
/// A Fourier transform would give all lags at once, but Geyer's truncation
/// needs only some multiples of the autocorrelation time: for chains that mix
/// the direct sums are cheaper, and cost nothing where no one looks.
pub(super) struct Autocovariance {
    centred: Vec<Vec<f64>>,
}

impl Autocovariance {
    /// Centres each chain at its own mean.
    pub(super) fn new<C: AsRef<[f64]>>(chains: &[C]) -> Self {
        let centre = |chain: &C| {
            let draws = chain.as_ref();
            let mean = mean(draws);
            draws.iter().map(|draw| draw - mean).collect()
        };
        Self { centred: chains.iter().map(centre).collect() }
    }

    /// Mean over the chains of `1/N * sum_{i} (x_i - m) (x_{i+lag} - m)`.
    ///
    /// The divisor is `N`, not `N - lag`: the estimate is biased towards zero at
    /// large lags, where it would be mostly noise. Zero beyond the last lag.
    pub(super) fn at(&self, lag: usize) -> f64 {
        let one_chain = |chain: &Vec<f64>| {
            let later = chain.get(lag..).unwrap_or_default();
            sum_of_products(chain, later) / chain.len().max(1) as f64
        };
        self.centred.iter().map(one_chain).sum::<f64>() / self.centred.len().max(1) as f64
    }
}

/// `sum_i left_i * right_i` over the length of the shorter slice.
///
/// Eight partial sums, because the order of a single one would forbid the
/// compiler to use vector instructions; they also round less.
fn sum_of_products(left: &[f64], right: &[f64]) -> f64 {
    const LANES: usize = 8;
    let length = left.len().min(right.len());
    let (left, right) = (&left[..length], &right[..length]);
    let (left_blocks, left_rest) = left.as_chunks::<LANES>();
    let (right_blocks, right_rest) = right.as_chunks::<LANES>();
    let mut partial = [0.0; LANES];
    for (a, b) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..LANES {
            partial[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    partial.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        let draws: Vec<f64> = (0..21).map(|i| f64::from(i * i % 13)).collect();
        let mean = draws.iter().sum::<f64>() / 21.0;
        let autocovariance = Autocovariance::new(&[&draws]);
        for lag in 0..25 {
            let expected: f64 =
                (lag..21).map(|i| (draws[i] - mean) * (draws[i - lag] - mean)).sum::<f64>() / 21.0;
            assert!((autocovariance.at(lag) - expected).abs() < 1e-12);
        }
    }
}
