//! Which sets of chains the diagnostics accept, and how they are split.

/// Below four draws a half-chain has no variance to estimate.
const MINIMUM_DRAWS: usize = 4;

/// Splits every chain into its first and its last half.
///
/// Splitting makes a drift inside one chain visible as a difference between
/// two. A chain of odd length loses its middle draw, so that all halves have
/// the same length. The halves of a chain stay next to each other.
///
/// `None` if there is no chain, if lengths differ, if a chain has fewer than
/// four draws, or if any draw is not finite.
pub(super) fn split_halves<'a>(chains: &[&'a [f64]]) -> Option<Vec<&'a [f64]>> {
    let length = chains.first()?.len();
    let usable = length >= MINIMUM_DRAWS
        && chains.iter().all(|chain| chain.len() == length && chain.iter().all(|draw| draw.is_finite()));
    if !usable {
        return None;
    }
    let half = length / 2;
    let mut halves = Vec::with_capacity(2 * chains.len());
    for &chain in chains {
        halves.push(&chain[..half]);
        halves.push(&chain[length - half..]);
    }
    Some(halves)
}

/// All draws of all chains, in increasing order (of `total_cmp`, should some of
/// them be NaN).
pub(super) fn pooled_and_sorted(chains: &[&[f64]]) -> Vec<f64> {
    let mut draws = chains.concat();
    draws.sort_unstable_by(f64::total_cmp);
    draws
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_length_drops_the_middle_draw() {
        let chain = [1.0, 2.0, 3.0, 4.0, 5.0];
        let halves = split_halves(&[&chain]).unwrap();
        assert_eq!(halves, [&[1.0, 2.0][..], &[4.0, 5.0][..]]);
    }

    #[test]
    fn unusable_input_is_refused() {
        let good = [1.0, 2.0, 3.0, 4.0];
        assert!(split_halves(&[]).is_none());
        assert!(split_halves(&[&[]]).is_none());
        assert!(split_halves(&[&good[..3]]).is_none());
        assert!(split_halves(&[&good, &good[..3]]).is_none());
        assert!(split_halves(&[&good, &[1.0, f64::NAN, 2.0, 3.0]]).is_none());
        assert!(split_halves(&[&good, &[1.0, f64::INFINITY, 2.0, 3.0]]).is_none());
        assert!(split_halves(&[&good, &good]).is_some());
    }
}
