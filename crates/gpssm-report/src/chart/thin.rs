//! Long series in few points: what is left out could not be seen.

/// Extremes of every pixel column, in the order in which they come: at most four points a column, and the
/// same picture.
pub(crate) fn line(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut thin: Vec<(f64, f64)> = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= 4 {
            thin.extend_from_slice(column);
            continue;
        }
        let by_height = |a: &&usize, b: &&usize| column[**a].1.total_cmp(&column[**b].1);
        let all: Vec<usize> = (0..column.len()).collect();
        let lowest = *all.iter().min_by(by_height).unwrap_or(&0);
        let highest = *all.iter().max_by(by_height).unwrap_or(&0);
        let mut kept = vec![0, lowest, highest, column.len() - 1];
        kept.sort_unstable();
        kept.dedup();
        thin.extend(kept.into_iter().map(|i| column[i]));
    }
    thin
}

/// The envelope of a band: one (x, upper, lower) for each pixel column that holds several.
pub(crate) fn band(points: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
    let columns = points.chunk_by(|a, b| a.0.floor() == b.0.floor());
    columns
        .flat_map(|column| {
            if column.len() <= 2 {
                return column.to_vec();
            }
            let upper = column.iter().map(|p| p.1.min(p.2)).fold(f64::INFINITY, f64::min);
            let lower = column.iter().map(|p| p.1.max(p.2)).fold(f64::NEG_INFINITY, f64::max);
            vec![(column[column.len() / 2].0, upper, lower)]
        })
        .collect()
}

/// Smallest and largest height in every pixel column, for clouds of points.
pub(crate) fn ranges(points: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
    let mut columns = std::collections::BTreeMap::new();
    for &(x, y) in points {
        let column = columns.entry(x.floor() as i64).or_insert((y, y));
        *column = (column.0.min(y), column.1.max(y));
    }
    columns.into_iter().map(|(x, (low, high))| (x as f64 + 0.5, low, high)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_stay_and_size_is_bounded() {
        let n = 100_000;
        let points: Vec<(f64, f64)> =
            (0..n).map(|i| (f64::from(i) * 500.0 / f64::from(n), f64::from(i * 7919 % 1000))).collect();
        let thin = line(&points);
        assert!(thin.len() <= 4 * 501);
        for column in [0, 17, 499] {
            let of = |points: &[(f64, f64)]| {
                let inside = points.iter().filter(|p| p.0.floor() == f64::from(column)).map(|p| p.1);
                let inside: Vec<f64> = inside.collect();
                (
                    inside.iter().copied().fold(f64::MAX, f64::min),
                    inside.iter().copied().fold(f64::MIN, f64::max),
                )
            };
            assert_eq!(of(&thin), of(&points));
        }
        assert!(thin.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let wide: Vec<(f64, f64, f64)> = points.iter().map(|p| (p.0, p.1, p.1 + 5.0)).collect();
        assert!(band(&wide).len() <= 501);
        assert!(ranges(&points).len() <= 501);
    }

    #[test]
    fn short_series_are_left_alone() {
        let points = [(0.0, 1.0), (10.0, 2.0), (10.5, 0.0)];
        assert_eq!(line(&points), points);
    }
}
