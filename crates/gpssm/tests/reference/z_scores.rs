//! Means against what they should be, in units of their Monte Carlo error.

/// Mean and its standard error from independent values.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// Mean over its standard error, for values whose expectation should be zero. Values that never change are
/// infinitely far from it: a chain that does not move is no evidence of anything.
pub fn z_score(values: &[f64]) -> f64 {
    let (mean, error) = mean_and_error(values);
    if error > 1e-13 * mean.abs() { mean / error } else { f64::INFINITY }
}

/// The largest |z| over the columns of `errors`, one row for each batch, and its column.
pub fn largest_z(errors: &[Vec<f64>]) -> (f64, usize) {
    let column = |k: usize| errors.iter().map(|row| row[k]).collect::<Vec<_>>();
    (0..errors[0].len())
        .map(|k| (z_score(&column(k)).abs(), k))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .expect("at least one functional")
}
