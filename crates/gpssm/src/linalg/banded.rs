//! Symmetric positive definite matrices with a band: factor and solves at O(n b^2) and O(n b).

use super::dense::NotPositiveDefinite;

/// The lower band of a symmetric matrix, or of its Cholesky factor: entries (i, j) with i - b <= j <= i.
#[derive(Clone, Debug)]
pub struct Banded {
    n: usize,
    b: usize,
    /// Row-major, b + 1 entries a row; the last is the diagonal.
    rows: Vec<f64>,
}

impl Banded {
    /// Zeros of order `n` with half-bandwidth `b`.
    pub fn new(n: usize, b: usize) -> Self {
        Self { n, b, rows: vec![0.0; n * (b + 1)] }
    }

    fn at(&self, i: usize, j: usize) -> usize {
        i * (self.b + 1) + self.b + j - i
    }

    /// Entry (i, j) of the lower band.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.rows[self.at(i, j)]
    }

    /// Adds to entry (i, j) = (j, i).
    pub fn add(&mut self, i: usize, j: usize, value: f64) {
        let at = self.at(i.max(j), i.min(j));
        self.rows[at] += value;
    }

    /// Makes row and column `i` those of the identity, after `visit` has seen each entry (j, value) beside the diagonal.
    pub fn isolate(&mut self, i: usize, mut visit: impl FnMut(usize, f64)) {
        for j in i.saturating_sub(self.b)..(i + self.b + 1).min(self.n) {
            let at = self.at(i.max(j), i.min(j));
            if j != i {
                visit(j, self.rows[at]);
            }
            self.rows[at] = if j == i { 1.0 } else { 0.0 };
        }
    }

    /// Replaces the matrix by its Cholesky factor L.
    pub fn factor(&mut self) -> Result<(), NotPositiveDefinite> {
        for i in 0..self.n {
            for j in i.saturating_sub(self.b)..=i {
                let from = i.saturating_sub(self.b).max(j.saturating_sub(self.b));
                let (a, c) = (self.at(i, from), self.at(j, from));
                let known: f64 = self.rows[a..a + j - from]
                    .iter()
                    .zip(&self.rows[c..c + j - from])
                    .map(|(a, c)| a * c)
                    .sum();
                let at = self.at(i, j);
                let rest = self.rows[at] - known;
                if i != j {
                    self.rows[at] = rest / self.get(j, j);
                } else if rest > 0.0 && rest.is_finite() {
                    self.rows[at] = rest.sqrt();
                } else {
                    return Err(NotPositiveDefinite { order: self.n, index: i });
                }
            }
        }
        Ok(())
    }

    /// x becomes L^{-1} x.
    pub fn solve_lower(&self, x: &mut [f64]) {
        for i in 0..self.n {
            let from = i.saturating_sub(self.b);
            let row = &self.rows[self.at(i, from)..=self.at(i, i)];
            let known: f64 = row[..i - from].iter().zip(&x[from..i]).map(|(l, x)| l * x).sum();
            x[i] = (x[i] - known) / row[i - from];
        }
    }

    /// x becomes L^{-T} x.
    pub fn solve_lower_transposed(&self, x: &mut [f64]) {
        for i in (0..self.n).rev() {
            let from = i.saturating_sub(self.b);
            x[i] /= self.get(i, i);
            let (value, at) = (x[i], self.at(i, from));
            for (x, l) in x[from..i].iter_mut().zip(&self.rows[at..]) {
                *x -= l * value;
            }
        }
    }

    /// x becomes L' x.
    pub fn multiply_lower_transposed(&self, x: &mut [f64]) {
        for i in 0..self.n {
            let from = i.saturating_sub(self.b);
            let (value, at) = (x[i], self.at(i, from));
            x[i] *= self.get(i, i);
            for (x, l) in x[from..i].iter_mut().zip(&self.rows[at..]) {
                *x += l * value;
            }
        }
    }

    /// Sum of the logarithms of the diagonal: half the log determinant of the matrix that was factored.
    pub fn log_diagonal(&self) -> f64 {
        (0..self.n).map(|i| self.get(i, i).ln()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against plain products: L L' is the matrix, and the solves undo the products.
    #[test]
    fn a_band_is_factored_and_solved() {
        let (n, b) = (9, 3);
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => 4.0 + i as f64 / 10.0,
            k if k <= b => (((i + j) * 7 % 11) as f64 / 11.0 - 0.5) / k as f64,
            _ => 0.0,
        };
        let mut band = Banded::new(n, b);
        for i in 0..n {
            (i.saturating_sub(b)..=i).for_each(|j| band.add(i, j, entry(i, j)));
        }
        band.factor().unwrap();
        let l = |i: usize, j: usize| if j <= i && i - j <= b { band.get(i, j) } else { 0.0 };
        for i in 0..n {
            for j in 0..=i {
                let product: f64 = (0..n).map(|k| l(i, k) * l(j, k)).sum();
                assert!((product - entry(i, j)).abs() < 1e-13, "({i}, {j})");
            }
        }
        let x: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let mut there = x.clone();
        band.multiply_lower_transposed(&mut there);
        for (j, there) in there.iter().enumerate() {
            assert!((there - (0..n).map(|i| l(i, j) * x[i]).sum::<f64>()).abs() < 1e-13);
        }
        band.solve_lower_transposed(&mut there);
        let mut product: Vec<f64> = (0..n).map(|i| (0..n).map(|j| l(i, j) * x[j]).sum()).collect();
        band.solve_lower(&mut product);
        for ((x, there), product) in x.iter().zip(&there).zip(&product) {
            assert!((x - there).abs() < 1e-13 && (x - product).abs() < 1e-13);
        }
        let mut bad = Banded::new(2, 1);
        bad.add(0, 0, 1.0);
        bad.add(1, 0, 2.0);
        bad.add(1, 1, 1.0);
        assert_eq!(bad.factor().unwrap_err().index, 1);
    }

    #[test]
    fn a_row_is_isolated() {
        let mut band = Banded::new(4, 2);
        for i in 0..4usize {
            (i.saturating_sub(2)..=i).for_each(|j| band.add(i, j, (10 * i + j) as f64));
        }
        let mut seen = Vec::new();
        band.isolate(1, |j, value| seen.push((j, value)));
        assert_eq!(seen, [(0, 10.0), (2, 21.0), (3, 31.0)]);
        assert_eq!((band.get(1, 0), band.get(1, 1), band.get(2, 1), band.get(3, 1)), (0.0, 1.0, 0.0, 0.0));
        assert_eq!(band.get(2, 0), 20.0);
    }
}
