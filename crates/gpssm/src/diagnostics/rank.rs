//! Rank normalisation and folding, Vehtari et al. (2021),
//! <https://doi.org/10.1214/20-BA1221>.

use statrs::function::erf::erfc_inv;

use super::chains::pooled_and_sorted;

/// Replaces every draw by the normal score of its rank among all draws,
///
/// `z = Phi^-1((r - 3/8) / (S + 1/4))`,
///
/// with `S` the number of draws over all chains and `r` the rank, averaged over
/// ties (Blom's offset). The scores have all moments even if the draws have
/// none, and do not change under monotone transformations.
pub(super) fn rank_normalise<C: AsRef<[f64]>>(chains: &[C]) -> Vec<Vec<f64>> {
    let mut order: Vec<(f64, usize, usize)> = Vec::new();
    let mut scores = Vec::with_capacity(chains.len());
    for (which, chain) in chains.iter().enumerate() {
        let draws = chain.as_ref();
        order.extend(draws.iter().enumerate().map(|(at, &x)| (x, which, at)));
        scores.push(vec![0.0; draws.len()]);
    }
    order.sort_unstable_by(|left, right| left.0.total_cmp(&right.0));
    let total = order.len() as f64;
    let mut before = 0;
    // `==` and not the sorting order decides ties: 0.0 and -0.0 are one value.
    for tied in order.chunk_by(|left, right| left.0 == right.0) {
        // Ranks before+1 ..= before+len; their average stands for each of them.
        let rank = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        let score = standard_normal_quantile((rank - 0.375) / (total + 0.25));
        for &(_, which, at) in tied {
            scores[which][at] = score;
        }
        before += tied.len();
    }
    scores
}

/// Distances from the median of all draws, `|x - median(x)|`.
///
/// R-hat of these notices chains that agree in location but not in scale.
pub(super) fn fold(chains: &[&[f64]]) -> Vec<Vec<f64>> {
    let median = median(&pooled_and_sorted(chains));
    chains.iter().map(|chain| chain.iter().map(|draw| (draw - median).abs()).collect()).collect()
}

/// Middle value, or midpoint of the two middle values, of sorted draws.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match (sorted.get(middle), middle.checked_sub(1)) {
        (Some(&upper), Some(below)) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[below], upper),
        (Some(&upper), _) => upper,
        // No draws: nothing will be folded around this value.
        (None, _) => 0.0,
    }
}

/// `Phi^-1(p)` by the inverse complementary error function.
///
/// Not by `statrs::distribution::Normal`: its `inverse_cdf` can panic.
fn standard_normal_quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_average_rank() {
        let scores = rank_normalise(&[[3.0, 0.0], [-0.0, 5.0]]);
        let expected = |rank: f64| standard_normal_quantile((rank - 0.375) / 4.25);
        assert_eq!(scores[0], [expected(3.0), expected(1.5)]);
        assert_eq!(scores[1], [expected(1.5), expected(4.0)]);
    }

    #[test]
    fn folding_is_around_the_pooled_median() {
        assert_eq!(fold(&[&[1.0, 2.0], &[4.0, 9.0]]), [[2.0, 1.0], [1.0, 6.0]]);
        assert_eq!(median(&[1.0, 2.0, 7.0]), 2.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn normal_quantile_matches_known_values() {
        // SciPy: scipy.special.ndtri.
        for (probability, expected) in
            [(0.5, 0.0), (0.975, 1.959963984540054), (0.01, -2.3263478740408408), (1e-6, -4.753424308822899)]
        {
            let found = standard_normal_quantile(probability);
            assert!((found - expected).abs() < 1e-13, "{probability}: {found}");
        }
    }
}
