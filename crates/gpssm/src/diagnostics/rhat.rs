//! Rank-normalised split R-hat, Vehtari et al. (2021),
//! <https://doi.org/10.1214/20-BA1221>.

use super::chains::split_halves;
use super::moments::{mean, variance};
use super::rank::{fold, rank_normalise};

/// Rank-normalised split R-hat of one quantity: the larger of the R-hat of the
/// normal scores (location) and of the folded normal scores (scale).
///
/// Values above about 1.01 say that the chains do not agree yet.
///
/// `None` if the input is not usable (see the module's head), if all draws are
/// equal, or if there is only one chain: like ArviZ we do not call a single
/// chain converged because its two halves agree. `f64::INFINITY` if every chain
/// is stuck and they are stuck at different values.
pub fn rhat(chains: &[&[f64]]) -> Option<f64> {
    if chains.len() < 2 {
        return None;
    }
    let halves = split_halves(chains)?;
    let location = potential_scale_reduction(&rank_normalise(&halves))?;
    // Draws with just two values can fold to a constant. Folding then says
    // nothing, and the location part stands alone.
    let scale = potential_scale_reduction(&rank_normalise(&fold(&halves)));
    Some(scale.map_or(location, |scale| scale.max(location)))
}

/// `sqrt(((N - 1) / N * W + B / N) / W)` for chains of `N` draws, with `W` the
/// mean of the variances and `B / N` the variance of the means of the chains.
///
/// `None` if both are zero.
fn potential_scale_reduction(chains: &[Vec<f64>]) -> Option<f64> {
    let draws = chains.first()?.len() as f64;
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
    let variances: Option<Vec<f64>> = chains.iter().map(|chain| variance(chain)).collect();
    let within = mean(&variances?);
    let between = variance(&means)?;
    if within > 0.0 {
        Some((between / within + (draws - 1.0) / draws).sqrt())
    } else if between > 0.0 {
        Some(f64::INFINITY)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuck_chains_give_infinity_and_constants_nothing() {
        assert_eq!(rhat(&[&[1.0; 20], &[1.0; 20]]), None);
        assert_eq!(rhat(&[&[1.0; 20], &[2.0; 20]]), Some(f64::INFINITY));
    }

    #[test]
    fn one_chain_is_not_enough() {
        assert_eq!(rhat(&[&[1.0, 2.0, 3.0, 4.0, 3.0, 2.0]]), None);
        assert_eq!(rhat(&[]), None);
    }

    #[test]
    fn folding_to_a_constant_leaves_the_location_part() {
        let chain = [-1.0, 1.0].repeat(25);
        let found = rhat(&[&chain, &chain, &chain, &chain]).unwrap();
        // ArviZ 0.23.4 and arviz-stats 0.8.0.
        assert!((found - 0.9806927356507958).abs() < 1e-12, "{found}");
    }
}
