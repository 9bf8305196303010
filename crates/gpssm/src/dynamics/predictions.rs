//! One-step predictions of all particles.

/// N(mean_i, L_i L_i') for each particle i.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    n_x: usize,
    mean: Vec<f64>,
    chol: Vec<f64>,
}

impl Predictions {
    /// Room for `n` predictions; every factor is zero.
    pub(crate) fn reset(&mut self, n: usize, n_x: usize) {
        self.n_x = n_x;
        self.mean.clear();
        self.mean.resize(n * n_x, 0.0);
        self.chol.clear();
        self.chol.resize(n * n_x * n_x, 0.0);
    }

    /// Mean of particle `i`.
    pub fn mean(&self, i: usize) -> &[f64] {
        &self.mean[i * self.n_x..(i + 1) * self.n_x]
    }

    /// Lower Cholesky factor of the covariance of particle `i`, row-major.
    pub fn chol(&self, i: usize) -> &[f64] {
        let size = self.n_x * self.n_x;
        &self.chol[i * size..(i + 1) * size]
    }

    /// Sets the mean of a dimension that is known exactly.
    pub(crate) fn set_known(&mut self, i: usize, d: usize, value: f64) {
        self.mean[i * self.n_x + d] = value;
    }

    /// Sets the mean and standard deviation of dimension `d` of particle `i`, which is independent of the others.
    #[inline]
    pub(crate) fn set_scalar(&mut self, i: usize, d: usize, mean: f64, sd: f64) {
        self.mean[i * self.n_x + d] = mean;
        self.chol[(i * self.n_x + d) * self.n_x + d] = sd;
    }

    /// Sets the dimensions `dims` of particle `i`, which are independent of the others.
    pub(crate) fn set_block(&mut self, i: usize, dims: &[usize], mean: &[f64], chol: &[f64]) {
        let (n_x, p) = (self.n_x, dims.len());
        for (a, &d) in dims.iter().enumerate() {
            self.mean[i * n_x + d] = mean[a];
            // Blocks of several dimensions list them in increasing order, so lower stays lower.
            for (b, &other) in dims.iter().enumerate().take(a + 1) {
                self.chol[(i * n_x + d) * n_x + other] = chol[a * p + b];
            }
        }
    }
}
