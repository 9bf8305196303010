//! Linear least squares.

/// Least squares by Gram-Schmidt; columns that those before them explain get no coefficient.
pub fn least_squares(rows: &[Vec<f64>], targets: &[f64]) -> (Vec<f64>, f64, usize) {
    let (n, p) = (rows.len(), rows.first().map_or(0, Vec::len));
    let mut basis: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for j in 0..p {
        let mut column: Vec<f64> = rows.iter().map(|row| row[j]).collect();
        let size = dot(&column, &column).sqrt();
        let mut above = vec![0.0; basis.len()];
        // Twice is enough.
        for _ in 0..2 {
            for (b, (_, q)) in basis.iter().enumerate() {
                let factor = dot(&column, q);
                above[b] += factor;
                column.iter_mut().zip(q).for_each(|(c, q)| *c -= factor * q);
            }
        }
        let left = dot(&column, &column).sqrt();
        if left > 1e-9 * size {
            column.iter_mut().for_each(|c| *c /= left);
            above.push(left);
            basis.push((j, column));
            triangle.push(above);
        }
    }
    let mut residual = targets.to_vec();
    let mut projected = Vec::new();
    for (_, q) in &basis {
        let factor = dot(&residual, q);
        residual.iter_mut().zip(q).for_each(|(r, q)| *r -= factor * q);
        projected.push(factor);
    }
    let mut coefficients = vec![0.0; p];
    for b in (0..basis.len()).rev() {
        let tail: f64 = (b + 1..basis.len()).map(|c| triangle[c][b] * coefficients[basis[c].0]).sum();
        coefficients[basis[b].0] = (projected[b] - tail) / triangle[b][b];
    }
    let square = if n == 0 { 0.0 } else { dot(&residual, &residual) };
    (coefficients, square, basis.len())
}
