//! One row of the table a user reads: estimates with their diagnostics.

use super::chains::pooled_and_sorted;
use super::ess::{ess_bulk, ess_mean, ess_tail};
use super::moments::{mean, quantile, variance};
use super::rhat::rhat;

/// Monte Carlo standard error of the mean, `sd / sqrt(ESS_mean)`, with `sd` the
/// standard deviation of all draws (Vehtari et al. 2021,
/// <https://doi.org/10.1214/20-BA1221>).
///
/// Zero if all draws are equal; `None` if the input is not usable (see the
/// module's head).
pub fn mcse_mean(chains: &[&[f64]]) -> Option<f64> {
    let deviation = variance(&chains.concat())?.sqrt();
    Some(deviation / ess_mean(chains)?.sqrt()).filter(|error| error.is_finite())
}

/// What the draws of one quantity say, and how far they can be trusted.
///
/// A field is `None` where it is not defined. The estimates need finite draws,
/// the diagnostics also chains of equal length with at least four draws.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Mean of all draws.
    pub mean: Option<f64>,
    /// Standard deviation of all draws (divisor `S - 1`).
    pub sd: Option<f64>,
    /// Probability that the interval holds, as asked for.
    pub level: f64,
    /// Lower end of the equal-tailed interval, the `(1 - level) / 2` quantile.
    pub lower: Option<f64>,
    /// Upper end of the equal-tailed interval, the `(1 + level) / 2` quantile.
    pub upper: Option<f64>,
    /// Monte Carlo standard error of the mean, [`mcse_mean`].
    pub mcse_mean: Option<f64>,
    /// Bulk effective sample size, [`ess_bulk`].
    pub ess_bulk: Option<f64>,
    /// Tail effective sample size, [`ess_tail`].
    pub ess_tail: Option<f64>,
    /// Rank-normalised split R-hat, [`rhat`]; infinite for stuck chains.
    pub r_hat: Option<f64>,
}

/// Summarises the chains of one quantity. `level` is the probability of the
/// equal-tailed interval: 0.9 gives the 5% and 95% quantiles. A level outside
/// `[0, 1]` leaves `lower` and `upper` empty.
pub fn summarise(chains: &[&[f64]], level: f64) -> Summary {
    let sorted = pooled_and_sorted(chains);
    let usable = !sorted.is_empty() && sorted.iter().all(|draw| draw.is_finite());
    // Sums of draws near the end of the range of f64 can still overflow.
    let finite = |estimate: Option<f64>| estimate.filter(|value| usable && value.is_finite());
    Summary {
        mean: finite(Some(mean(&sorted))),
        sd: finite(variance(&sorted).map(f64::sqrt)),
        level,
        lower: finite(quantile(&sorted, (1.0 - level) / 2.0)),
        upper: finite(quantile(&sorted, (1.0 + level) / 2.0)),
        mcse_mean: mcse_mean(chains),
        ess_bulk: ess_bulk(chains),
        ess_tail: ess_tail(chains),
        r_hat: rhat(chains),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_come_from_all_draws() {
        let summary = summarise(&[&[4.0, 2.0, 0.0], &[1.0, 3.0]], 0.5);
        assert_eq!(summary.mean, Some(2.0));
        assert_eq!(summary.sd, Some(2.5f64.sqrt()));
        assert_eq!((summary.lower, summary.upper), (Some(1.0), Some(3.0)));
        // Unequal lengths: no diagnostics.
        assert_eq!(summary.r_hat, None);
        assert_eq!(summary.mcse_mean, None);
    }

    #[test]
    fn diagnostics_are_those_of_the_single_functions() {
        let chain: Vec<f64> = (0..60).map(|i| f64::from(i * i % 41)).collect();
        let chains: [&[f64]; 2] = [&chain[..30], &chain[30..]];
        let summary = summarise(&chains, 0.9);
        assert!(summary.r_hat.is_some() && summary.r_hat == rhat(&chains));
        assert!(summary.ess_bulk.is_some() && summary.ess_bulk == ess_bulk(&chains));
        assert!(summary.ess_tail.is_some() && summary.ess_tail == ess_tail(&chains));
        assert!(summary.mcse_mean.is_some() && summary.mcse_mean == mcse_mean(&chains));
    }

    #[test]
    fn constants_have_no_error_and_bad_draws_no_summary() {
        let constant = summarise(&[&[0.1; 9], &[0.1; 9]], 0.9);
        assert_eq!((constant.mean, constant.sd), (Some(0.1), Some(0.0)));
        assert_eq!((constant.mcse_mean, constant.r_hat), (Some(0.0), None));
        for bad in [&[][..], &[f64::NAN, 1.0], &[1.0, f64::INFINITY]] {
            let summary = summarise(&[bad], 0.9);
            assert_eq!((summary.mean, summary.sd), (None, None));
            assert_eq!((summary.lower, summary.upper), (None, None));
            assert_eq!(summary.mcse_mean, None);
        }
        let no_level = summarise(&[&[1.0, 2.0]], 1.5);
        assert_eq!((no_level.lower, no_level.upper), (None, None));
        assert_eq!(summarise(&[&[f64::MAX, -f64::MAX]], 0.9).sd, None);
    }
}
