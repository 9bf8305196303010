//! Effective sample size, Vehtari et al. (2021),
//! <https://doi.org/10.1214/20-BA1221>, with the truncation of Geyer (1992),
//! <https://doi.org/10.1214/ss/1177011137>.

use super::autocovariance::Autocovariance;
use super::chains::{pooled_and_sorted, split_halves};
use super::moments::{mean, quantile, variance};
use super::rank::rank_normalise;

/// The quantiles whose estimates tail ESS looks at.
const TAILS: [f64; 2] = [0.05, 0.95];

/// Bulk effective sample size: that of the rank-normalised split chains.
///
/// Equals the number of draws if they are all equal; `None` if the input is not
/// usable (see the module's head).
pub fn ess_bulk(chains: &[&[f64]]) -> Option<f64> {
    effective_sample_size(&rank_normalise(&split_halves(chains)?))
}

/// Tail effective sample size: the smaller of those of the indicators
/// `x <= q` with `q` the 5% and the 95% quantile of all draws.
///
/// An indicator that is constant because of ties counts as independent draws.
/// `None` if the input is not usable (see the module's head).
///
/// Where a quantile falls on a draw or between equal draws, ArviZ 0.23 can round
/// it to just below and so leave that draw out; ArviZ 1.x does not, nor do we.
pub fn ess_tail(chains: &[&[f64]]) -> Option<f64> {
    let halves = split_halves(chains)?;
    // Quantiles of all draws, with the middle ones that splitting leaves out.
    let sorted = pooled_and_sorted(chains);
    let of_tail = |probability: f64| {
        let threshold = quantile(&sorted, probability)?;
        let below = |draw: &f64| if *draw <= threshold { 1.0 } else { 0.0 };
        let indicators: Vec<Vec<f64>> = halves.iter().map(|half| half.iter().map(below).collect()).collect();
        effective_sample_size(&indicators)
    };
    let [lower, upper] = TAILS.map(of_tail);
    Some(lower?.min(upper?))
}

/// Effective sample size for the mean: that of the split chains as they are.
///
/// Meaningful only if the quantity has a finite variance; [`ess_bulk`] is the
/// one to judge the sampler by. Equals the number of draws if they are all
/// equal; `None` if the input is not usable (see the module's head).
pub fn ess_mean(chains: &[&[f64]]) -> Option<f64> {
    effective_sample_size(&split_halves(chains)?)
}

/// `S / tau` with `S` the number of draws and `tau` the integrated
/// autocorrelation time, where the autocorrelation of all chains together is
///
/// `rho_t = 1 - (W - mean_m acov_m(t)) / var_plus`,
/// `var_plus = (N - 1) / N * W + B / N`.
///
/// Chains that disagree have a large `B` and so a slowly falling `rho_t`. `tau`
/// is at least `1 / log10(S)`: antithetic chains earn an ESS above `S`, but no
/// more than noise in the estimate can bear.
fn effective_sample_size<C: AsRef<[f64]>>(chains: &[C]) -> Option<f64> {
    let draws = chains.first()?.as_ref().len();
    let total = (chains.len() * draws) as f64;
    if all_equal(chains) {
        return Some(total);
    }
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain.as_ref())).collect();
    let autocovariance = Autocovariance::new(chains);
    let biased_within = autocovariance.at(0);
    let within = biased_within * draws as f64 / (draws as f64 - 1.0);
    let pooled = biased_within + variance(&means).unwrap_or(0.0);
    // Draws so small or so large that their squares leave the range of f64.
    if !(pooled > 0.0 && pooled.is_finite()) {
        return None;
    }
    let correlation = |lag: usize| match lag {
        0 => 1.0,
        _ => 1.0 - (within - autocovariance.at(lag)) / pooled,
    };
    let time = integrated_autocorrelation_time(correlation, draws);
    Some(total / time.max(1.0 / total.log10()))
}

/// `-1 + 2 sum_t rho_t`, summed by Geyer's initial monotone sequence.
///
/// For a reversible chain the sums of pairs `rho_{2k} + rho_{2k+1}` are positive
/// and falling. Pairs are therefore taken as long as they are positive, each no
/// larger than the one before. Of the pair that ends the sequence, by its sign
/// or because the chain has no more lags, only the even part may enter, and
/// once instead of twice: this lessens the variance for antithetic chains.
fn integrated_autocorrelation_time(correlation: impl Fn(usize) -> f64, draws: usize) -> f64 {
    let mut time = -1.0;
    let mut ceiling = f64::INFINITY;
    let mut lag = 0;
    loop {
        let even = correlation(lag);
        let pair = even + correlation(lag + 1);
        let last = lag + 4 >= draws;
        if pair <= 0.0 || last {
            // A negative even part counts only with an odd part that outweighs it.
            return if even > 0.0 || pair >= 0.0 { time + even } else { time };
        }
        ceiling = pair.min(ceiling);
        time += 2.0 * ceiling;
        lag += 2;
    }
}

/// Whether one value is all there is. Exact, and so independent of scale; ArviZ
/// also takes any range below 1e-15 for none.
fn all_equal<C: AsRef<[f64]>>(chains: &[C]) -> bool {
    let mut draws = chains.iter().flat_map(|chain| chain.as_ref());
    let first = draws.next();
    draws.all(|draw| Some(draw) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_draws_count_fully() {
        let chains: [&[f64]; 2] = [&[0.1; 21], &[0.1; 21]];
        // The two middle draws fall out.
        assert_eq!(ess_bulk(&chains), Some(40.0));
        assert_eq!(ess_tail(&chains), Some(40.0));
        assert_eq!(ess_mean(&chains), Some(40.0));
    }

    #[test]
    fn unusable_input_gives_nothing() {
        for chains in [&[][..], &[&[1.0, 2.0, 3.0][..]], &[&[f64::NAN; 9][..]]] {
            assert_eq!(ess_bulk(chains), None);
            assert_eq!(ess_tail(chains), None);
            assert_eq!(ess_mean(chains), None);
        }
        // Squares overflow; ranks do not.
        let huge = [1e200, -1e200, 3e200, 2e200, 1e199, -3e200];
        assert_eq!(ess_mean(&[&huge]), None);
        assert!(ess_bulk(&[&huge]).is_some());
    }

    #[test]
    fn scale_does_not_matter() {
        let draws: Vec<f64> = (0..50).map(|i| f64::from(i * i % 37)).collect();
        let small: Vec<f64> = draws.iter().map(|draw| draw * 2f64.powi(-60)).collect();
        assert_eq!(ess_mean(&[&draws]), ess_mean(&[&small]));
    }
}
