//! Whether ranks are equally likely.

use gpssm::posterior::standard_quantile;
use serde::Serialize;
use statrs::function::gamma::gamma_ur;

/// At most this many bins of a histogram.
const MOST_BINS: u32 = 20;
/// Ranks that a bin is expected to hold at least.
const FEWEST_IN_BIN: usize = 5;

/// Ranks of one quantity over all runs, and tests of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Uniformity {
    /// What was ranked.
    pub name: String,
    /// Ranks by run, each of 0, 1, ..., `draws`.
    pub ranks: Vec<u32>,
    /// Draws L of each run.
    pub draws: u32,
    /// Effective sample size of the L draws, mean over the runs.
    pub ess: f64,
    /// Ranks in each bin; all bins hold equally many ranks.
    pub counts: Vec<usize>,
    /// Of Pearson's test that all bins are equally likely; none with too few runs for two bins.
    pub chi_square_p: Option<f64>,
    /// Of the Kolmogorov-Smirnov test, a little too large as ranks are whole numbers.
    pub ks_p: f64,
}

impl Uniformity {
    /// Tests of these ranks.
    pub fn new(name: String, ranks: Vec<u32>, draws: u32, ess: f64) -> Self {
        let n_ranks = draws + 1;
        let fits =
            |bins: &u32| n_ranks.is_multiple_of(*bins) && ranks.len() >= FEWEST_IN_BIN * *bins as usize;
        let bins = (1..=MOST_BINS.min(n_ranks)).rev().find(fits).unwrap_or(1);
        let mut counts = vec![0; bins as usize];
        ranks.iter().for_each(|rank| counts[(rank / (n_ranks / bins)) as usize] += 1);
        let expected = ranks.len() as f64 / f64::from(bins);
        let statistic: f64 = counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        let freedom = f64::from(bins - 1);
        let chi_square_p = match (bins > 1, statistic > 0.0) {
            (false, _) => None,
            (true, false) => Some(1.0),
            (true, true) => Some(gamma_ur(0.5 * freedom, 0.5 * statistic)),
        };
        let mut found = Self { name, ranks, draws, ess, counts, chi_square_p, ks_p: 1.0 };
        let distance = found.ecdf_difference().into_iter().fold(0.0f64, |most, d| most.max(d.abs()));
        found.ks_p = kolmogorov_p(distance, found.ranks.len());
        found
    }

    /// The smaller of both p-values.
    pub fn smallest_p(&self) -> f64 {
        self.chi_square_p.unwrap_or(1.0).min(self.ks_p)
    }

    /// Share of runs with a rank below k, minus k / (L + 1), for k = 0, ..., L + 1.
    pub fn ecdf_difference(&self) -> Vec<f64> {
        let n_ranks = self.draws + 1;
        let n = self.ranks.len().max(1) as f64;
        let share = |k: u32| self.ranks.iter().filter(|rank| **rank < k).count() as f64 / n;
        (0..=n_ranks).map(|k| share(k) - f64::from(k) / f64::from(n_ranks)).collect()
    }

    /// Half-width of the band that holds the whole of [`Self::ecdf_difference`] in 95 % of right samplers.
    pub fn ecdf_band(&self) -> f64 {
        1.358 / stephens(self.ranks.len())
    }

    /// Band that holds all bins at once in 95 % of right samplers, by Bonferroni and the normal approximation.
    pub fn count_band(&self) -> (f64, f64) {
        let bins = self.counts.len() as f64;
        let n = self.ranks.len() as f64;
        let half = standard_quantile(1.0 - 0.025 / bins) * (n / bins * (1.0 - 1.0 / bins)).sqrt();
        (n / bins - half, n / bins + half)
    }
}

/// What distances are multiplied by for the limit law (Stephens 1970).
fn stephens(n: usize) -> f64 {
    let root = (n.max(1) as f64).sqrt();
    root + 0.12 + 0.11 / root
}

/// P(D > distance) for n independent uniform numbers.
pub(crate) fn kolmogorov_p(distance: f64, n: usize) -> f64 {
    let lambda = distance * stephens(n);
    if lambda < 0.2 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(k * k) * lambda * lambda).exp()
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranks: Vec<u32>, draws: u32) -> Uniformity {
        Uniformity::new("q".into(), ranks, draws, 60.0)
    }

    #[test]
    fn bins_hold_equally_many_ranks_and_enough_runs() {
        let even: Vec<u32> = (0..320).map(|i| i % 64).collect();
        let found = of(even.clone(), 63);
        assert_eq!(found.counts, vec![20; 16]);
        assert_eq!((found.chi_square_p, found.ks_p), (Some(1.0), 1.0));
        assert_eq!(of(even[..64].to_vec(), 63).counts.len(), 8);
        assert_eq!(of(vec![3, 5], 63).chi_square_p, None);
        // A prime number of ranks leaves one bin.
        assert_eq!(of(vec![7; 500], 30).counts, [500]);
    }

    /// 20 ranks too many in the first of 16 bins, out of the last: 2 * 20^2 / 20 = 40 with 15 degrees of freedom, p = 4.5e-4 by tables.
    #[test]
    fn p_values_are_those_of_the_tables() {
        let mut ranks: Vec<u32> = (0..320).map(|i| i % 64).collect();
        ranks.iter_mut().filter(|rank| **rank >= 60).for_each(|rank| *rank -= 60);
        let found = of(ranks, 63);
        assert!((found.chi_square_p.unwrap() - 4.5e-4).abs() < 0.1e-4, "{:?}", found.chi_square_p);
        // The empirical distribution function runs ahead by 20 / 320.
        let ahead = found.ecdf_difference().into_iter().fold(0.0, f64::max);
        assert!((ahead - 0.0625).abs() < 1e-12, "{ahead}");
        // Kolmogorov's 5 % point.
        assert!((kolmogorov_p(1.358 / stephens(100), 100) - 0.05).abs() < 1e-3);
        assert!((kolmogorov_p(1.628 / stephens(50), 50) - 0.01).abs() < 1e-3);
        assert!((found.ecdf_band() - 1.358 / (320f64.sqrt() + 0.12 + 0.11 / 320f64.sqrt())).abs() < 1e-12);
    }
}
