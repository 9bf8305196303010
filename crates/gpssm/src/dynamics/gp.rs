//! The collapsed prior as building blocks: the paper's densities of given paths, in plain rows.
//!
//! With f integrated out, a path x_{0:T} with inputs u_{0:T-1} has z_s = (x_s, u_s), prior means
//! m_s = m(z_s) and K~ = K + I (x) Q, where K holds k(z_s, z_r), ordered (time, dimension). The particle
//! filters work on many paths at once; here each of their quantities is one call.
//!
//! - [`Transition::one_step`]: p(x_t | x_{0:t-1}), eq. 3
//! - [`Transition::log_joint`]: p(x_{1:T} | x_0), eq. 4
//! - [`Transition::ancestor_log_weights`]: p(x~_{t:T} | x_{0:t-1}), eq. 8
//! - [`Transition::f_posterior`]: p(f* | z*, x_{0:T}), eq. 11 and 12
//!
//! In all of them `x` has one row for each time and one column for each state, lags included, and `u` has
//! one row for each time. Rows of `u` beyond those that are needed are not looked at; without inputs `u` may
//! be empty. Rows of the wrong width, values that are not finite, states that do not copy what they are the
//! lags of, and transitions that do not fit together are refused with an [`Error`] that says where.
//!
//! Reference: Frigola, Lindsten, Schön, Rasmussen (2013), Bayesian inference and learning in Gaussian
//! process state-space models with particle MCMC, NIPS 26.

mod checks;
#[cfg(test)]
mod tests;

use super::basis::features::BasisChoice;
use super::block::Pairs;
use super::path_density::{PathDensityWork, fill_covariance};
use super::population::Population;
use super::predictions::Predictions;
use super::transition::{FunctionPrior, Transition};
use crate::error::Error;
use crate::function::evaluate_all;
use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::Dense;
use crate::linalg::small;
use crate::points::Points;

/// N(mean, covariance).
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    /// Mean.
    pub mean: Vec<f64>,
    /// Covariance matrix, row-major.
    pub covariance: Vec<f64>,
}

impl Transition {
    /// p(x_t | x_{0:t-1}) = N(mu_t, Sigma_t), process noise included (eq. 3 of the paper).
    ///
    /// ```text
    /// mu_t    = m_{t-1}  + K_{t-1,0:t-2} K~_{0:t-2}^{-1} (x_{1:t-1} - m_{0:t-2})
    /// Sigma_t = K~_{t-1} - K_{t-1,0:t-2} K~_{0:t-2}^{-1} K_{t-1,0:t-2}'
    /// ```
    ///
    /// `x` are the t states x_{0:t-1}, `u` the inputs u_{0:t-1}. A lag has the state that it copies as its
    /// mean, and no variance.
    ///
    /// ```
    /// # use gpssm::{dynamics::{FunctionPrior, ProcessNoise, Transition}, function::ScalarFunction, kernel::Kernel};
    /// let transition = Transition {
    ///     kernels: vec![Kernel::squared_exponential(2.0, &[1.0])],
    ///     means: vec![ScalarFunction::Component(0)],
    ///     noise: ProcessNoise::Diagonal(vec![0.5]),
    ///     lags: vec![None],
    ///     prior: FunctionPrior::Exact,
    /// };
    /// let next = transition.one_step(&[vec![0.3], vec![0.8]], &[])?;
    /// let k = 2.0 * (-0.5f64 * 0.5 * 0.5).exp();
    /// assert!((next.mean[0] - (0.8 + k / 2.5 * (0.8 - 0.3))).abs() < 1e-12);
    /// assert!((next.covariance[0] - (2.5 - k * k / 2.5)).abs() < 1e-12);
    /// # Ok::<(), gpssm::Error>(())
    /// ```
    pub fn one_step(&self, x: &[Vec<f64>], u: &[Vec<f64>]) -> Result<Gaussian, Error> {
        let n_u = self.check_path(x, u, x.len())?;
        let inputs = inputs(u, x.len(), n_u);
        let mut population = Population::new(self, &inputs, &self.no_pairs(n_u), None)?;
        population.start(&x[0]);
        x[1..].iter().for_each(|x| population.advance(&[0], x));
        let mut predictions = Predictions::default();
        population.predict(&mut predictions);
        let covariance = small::covariance(predictions.chol(0), self.n_x());
        finite(Gaussian { mean: predictions.mean(0).to_vec(), covariance })
    }

    /// log p(x_{1:T} | x_0), the density of a whole path (eq. 4 of the paper).
    ///
    /// ```text
    /// log p = -1/2 (x_{1:T} - m_{0:T-1})' K~_{0:T-1}^{-1} (x_{1:T} - m_{0:T-1}) - 1/2 log |2 pi K~_{0:T-1}|
    /// ```
    ///
    /// `x` are the states x_{0:T}, `u` the inputs u_{0:T-1}. As m and K~ depend on x, this is not a Gaussian
    /// density of x. It is the density of the states that are not lags.
    ///
    /// ```
    /// # use gpssm::{dynamics::{FunctionPrior, ProcessNoise, Transition}, function::ScalarFunction, kernel::Kernel};
    /// let transition = Transition {
    ///     kernels: vec![Kernel::squared_exponential(2.0, &[1.0])],
    ///     means: vec![ScalarFunction::Component(0)],
    ///     noise: ProcessNoise::Diagonal(vec![0.5]),
    ///     lags: vec![None],
    ///     prior: FunctionPrior::Exact,
    /// };
    /// let log_density = transition.log_joint(&[vec![0.3], vec![0.8]], &[])?;
    /// let expected = -0.5 * (0.5 * 0.5 / 2.5 + (2.0 * std::f64::consts::PI * 2.5).ln());
    /// assert!((log_density - expected).abs() < 1e-12);
    /// # Ok::<(), gpssm::Error>(())
    /// ```
    pub fn log_joint(&self, x: &[Vec<f64>], u: &[Vec<f64>]) -> Result<f64, Error> {
        let pairs = self.checked_pairs(x, u)?;
        let mut work = PathDensityWork::default();
        let mut total = 0.0;
        for dims in self.blocks() {
            total += self.log_density_of(&dims, &pairs, &mut work)?;
        }
        not_nan(total, "the density of the path")
    }

    /// log p(x~_{t:T} | x_{0:t-1}^i) of several prefixes i (eq. 8 of the paper).
    ///
    /// ```text
    /// log w_i = log p({x_{0:t-1}^i, x~_{t:T}}) - log p(x_{0:t-1}^i)
    /// ```
    ///
    /// Normalised over the prefixes, these are the weights by which the conditional particle filter draws the ancestor of its reference,
    /// without the particles' own weights w_{t-1}^i. `prefixes` have t states each, `future` are the
    /// T + 1 - t states x~_{t:T}, `u` the inputs u_{0:T-1}. Lags within the future are not looked at: they
    /// follow from the prefix and the other states.
    ///
    /// ```
    /// # use gpssm::{dynamics::{FunctionPrior, ProcessNoise, Transition}, function::ScalarFunction, kernel::Kernel};
    /// # let transition = Transition {
    /// #     kernels: vec![Kernel::squared_exponential(2.0, &[1.0])],
    /// #     means: vec![ScalarFunction::Component(0)],
    /// #     noise: ProcessNoise::Diagonal(vec![0.5]),
    /// #     lags: vec![None],
    /// #     prior: FunctionPrior::Exact,
    /// # };
    /// let prefixes = [vec![vec![0.1], vec![0.4]], vec![vec![-1.2], vec![-0.3]]];
    /// let future = [vec![0.9], vec![1.3]];
    /// let log_w = transition.ancestor_log_weights(&prefixes, &future, &[])?;
    /// for (prefix, log_w) in prefixes.iter().zip(log_w) {
    ///     let whole = [&prefix[..], &future].concat();
    ///     let ratio = transition.log_joint(&whole, &[])? - transition.log_joint(prefix, &[])?;
    ///     assert!((log_w - ratio).abs() < 1e-10);
    /// }
    /// # Ok::<(), gpssm::Error>(())
    /// ```
    pub fn ancestor_log_weights(
        &self,
        prefixes: &[Vec<Vec<f64>>],
        future: &[Vec<f64>],
        u: &[Vec<f64>],
    ) -> Result<Vec<f64>, Error> {
        let n_u = self.check_prefixes(prefixes, future, u)?;
        let (n, t) = (prefixes.len(), prefixes[0].len());
        let length = t + future.len() - 1;
        let inputs = inputs(u, length, n_u);
        // Which prefix the reference itself has does not matter: its past is never conditioned on.
        let x_ref = self.follow(&prefixes[0], future);
        let reference = self.pairs(&x_ref, |s| &inputs[s], n_u);
        let mut population = Population::new(self, &inputs, &self.no_pairs(n_u), Some(&reference))?;
        let generation = |s: usize| -> Vec<f64> { prefixes.iter().flat_map(|x| x[s].clone()).collect() };
        let ancestors: Vec<usize> = (0..n).collect();
        population.start(&generation(0));
        (1..t).for_each(|s| population.advance(&ancestors, &generation(s)));
        let log_w = population.log_future_density(&x_ref, &mut |_, _, _| {}).to_vec();
        // The filter leaves out what all particles share; the likeliest prefix tells how much that is.
        let best = (0..n).max_by(|&i, &j| log_w[i].total_cmp(&log_w[j])).unwrap_or(0);
        let rows = |x: &[f64]| x.chunks_exact(self.n_x()).map(<[f64]>::to_vec).collect::<Vec<_>>();
        let whole = self.log_joint(&rows(&self.follow(&prefixes[best], future)), u)?;
        let shared = whole - self.log_joint(&prefixes[best], u)? - log_w[best];
        let shared = not_nan(shared, "the density of the future")?;
        Ok(log_w.iter().map(|log_w| log_w + shared).collect())
    }

    /// Posterior of f* = f(z*) at test points z* = (x*, u*) given a path: standard GP regression with
    /// inputs z_{0:T-1}, outputs x_{1:T} and noise covariance Q (section 5 of the paper, the components of
    /// the mixture in eq. 12).
    ///
    /// ```text
    /// mean       = m*  + K_{*,0:T-1} K~_{0:T-1}^{-1} (x_{1:T} - m_{0:T-1})
    /// covariance = K** - K_{*,0:T-1} K~_{0:T-1}^{-1} K_{*,0:T-1}'
    /// ```
    ///
    /// `x` are the states x_{0:T}, `u` the inputs u_{0:T-1}; a path of one state gives the prior. Mean and
    /// covariance are ordered (point, dimension) and without process noise. A dimension with a known
    /// transition has its mean function and no variance, a lag the state that it copies.
    ///
    /// ```
    /// # use gpssm::{dynamics::{FunctionPrior, ProcessNoise, Transition}, function::ScalarFunction, kernel::Kernel};
    /// # let transition = Transition {
    /// #     kernels: vec![Kernel::squared_exponential(2.0, &[1.0])],
    /// #     means: vec![ScalarFunction::Component(0)],
    /// #     noise: ProcessNoise::Diagonal(vec![0.5]),
    /// #     lags: vec![None],
    /// #     prior: FunctionPrior::Exact,
    /// # };
    /// let x = [vec![0.3], vec![0.8]];
    /// let f = transition.f_posterior(&x, &[], &[vec![0.3], vec![100.0]], &[])?;
    /// assert!((f.mean[0] - (0.3 + 2.0 / 2.5 * (0.8 - 0.3))).abs() < 1e-12);
    /// assert!((f.covariance[0] - (2.0 - 2.0 * 2.0 / 2.5)).abs() < 1e-12);
    /// // Far from all data f is as before.
    /// assert_eq!((f.mean[1], f.covariance[1], f.covariance[3]), (100.0, 0.0, 2.0));
    /// # Ok::<(), gpssm::Error>(())
    /// ```
    pub fn f_posterior(
        &self,
        x: &[Vec<f64>],
        u: &[Vec<f64>],
        x_star: &[Vec<f64>],
        u_star: &[Vec<f64>],
    ) -> Result<Gaussian, Error> {
        let pairs = self.checked_pairs(x, u)?;
        let (n_x, n_u, n) = (self.n_x(), pairs.points.n_components() - self.n_x(), x_star.len());
        self.check_test_points(x_star, u_star, n_u)?;
        let mut at = Points::new(n_x + n_u);
        for (x, u) in x_star.iter().zip(&inputs(u_star, n, n_u)) {
            at.push_parts(x, u);
        }
        let mut mean = Vec::new();
        evaluate_all(&self.means, &at, &mut mean);
        for (d, of) in self.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
            (0..n).for_each(|i| mean[i * n_x + d] = x_star[i][of]);
        }
        let mut f = Gaussian { mean, covariance: vec![0.0; n * n_x * n * n_x] };
        for dims in self.blocks() {
            if dims.iter().all(|&d| self.kernels[d].is_zero()) {
                continue;
            }
            match &self.prior {
                FunctionPrior::Exact => self.add_posterior_of(&dims, &pairs, &at, &mut f)?,
                FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) => {
                    self.add_basis_posterior_of(&dims, choice, &pairs, &at, &mut f)?;
                }
            }
        }
        finite(f)
    }

    /// Adds what the path says about f in the dimensions `dims` to the prior means, and sets their
    /// covariance.
    fn add_posterior_of(
        &self,
        dims: &[usize],
        pairs: &Pairs,
        at: &Points,
        f: &mut Gaussian,
    ) -> Result<(), Error> {
        let (n_x, p, n) = (self.n_x(), dims.len(), at.len());
        let kernels: Vec<Kernel> = dims.iter().map(|&d| self.kernels[d].clone()).collect();
        let mut dense = Dense::default();
        fill_covariance(
            &kernels,
            &self.noise_among(dims),
            &pairs.points,
            &mut dense,
            &mut Scratch::default(),
        );
        dense.factor()?;
        let mut residuals = pairs.select(dims);
        dense.solve_lower(&mut residuals, 1);
        // Columns L^{-1} K_{0:T-1,*}, ordered as the test points' dimensions are.
        let order = dense.order();
        let mut columns = vec![0.0; order * n * p];
        for (a, kernel) in kernels.iter().enumerate() {
            let k = kernel.matrix(at, &pairs.points);
            for (i, row) in k.chunks_exact(pairs.points.len().max(1)).enumerate() {
                let column = &mut columns[(i * p + a) * order..][..order];
                row.iter().enumerate().for_each(|(s, value)| column[s * p + a] = *value);
            }
        }
        dense.solve_lower(&mut columns, n * p);
        let column = |i: usize, a: usize| &columns[(i * p + a) * order..][..order];
        let prior: Vec<Vec<f64>> = kernels.iter().map(|kernel| kernel.matrix(at, at)).collect();
        for (i, a) in (0..n).flat_map(|i| (0..p).map(move |a| (i, a))) {
            let row = i * n_x + dims[a];
            f.mean[row] += dot(column(i, a), &residuals);
            for (j, b) in (0..n).flat_map(|j| (0..p).map(move |b| (j, b))) {
                let k = if a == b { prior[a][i * n + j] } else { 0.0 };
                f.covariance[row * n * n_x + j * n_x + dims[b]] = k - dot(column(i, a), column(j, b));
            }
        }
        Ok(())
    }

    /// The same for a finite basis, weights integrated out: f* = m* + phi* . w and, with FIC, what the inducing
    /// inputs leave unexplained, independent from point to point.
    fn add_basis_posterior_of(
        &self,
        dims: &[usize],
        choice: &BasisChoice,
        pairs: &Pairs,
        at: &Points,
        f: &mut Gaussian,
    ) -> Result<(), Error> {
        let (n_x, p, n) = (self.n_x(), dims.len(), at.len());
        let (design, mut statistics) = self.statistics(dims, choice, self.noise_among(dims), pairs)?;
        statistics.gram.factor()?;
        statistics.gram.solve_lower(&mut statistics.b, 1);
        let (mut columns, mut extra) = (Vec::new(), Vec::new());
        design.features(at, &mut columns, &mut extra);
        statistics.gram.solve_lower(&mut columns, n * p);
        let w = design.n_weights();
        let column = |i: usize, a: usize| &columns[(i * p + a) * w..][..w];
        for (i, a) in (0..n).flat_map(|i| (0..p).map(move |a| (i, a))) {
            let row = i * n_x + dims[a];
            f.mean[row] += dot(column(i, a), &statistics.b);
            for (j, b) in (0..n).flat_map(|j| (0..p).map(move |b| (j, b))) {
                let own = if (i, a) == (j, b) { extra[i * p + a] } else { 0.0 };
                f.covariance[row * n * n_x + j * n_x + dims[b]] = own + dot(column(i, a), column(j, b));
            }
        }
        Ok(())
    }

    /// Q of some dimensions, row-major.
    fn noise_among(&self, dims: &[usize]) -> Vec<f64> {
        let (q, n_x) = (self.noise_covariance(), self.n_x());
        dims.iter().flat_map(|&a| dims.iter().map(move |&b| (a, b))).map(|(a, b)| q[a * n_x + b]).collect()
    }

    fn no_pairs(&self, n_u: usize) -> Pairs {
        Pairs { n_x: self.n_x(), points: Points::new(self.n_x() + n_u), residuals: Vec::new() }
    }

    fn checked_pairs(&self, x: &[Vec<f64>], u: &[Vec<f64>]) -> Result<Pairs, Error> {
        let length = x.len().saturating_sub(1);
        let n_u = self.check_path(x, u, length)?;
        let inputs = inputs(u, length, n_u);
        Ok(self.pairs(&x.concat(), |s| &inputs[s], n_u))
    }

    /// The whole path, row-major, with the future's lags as they follow from the prefix.
    fn follow(&self, prefix: &[Vec<f64>], future: &[Vec<f64>]) -> Vec<f64> {
        let mut path = prefix.concat();
        for x in future {
            let before = path.len() - self.n_x();
            for (lag, x) in self.lags.iter().zip(x) {
                path.push(lag.map_or(*x, |of| path[before + of]));
            }
        }
        path
    }
}

/// u_{0:n-1}, and one more row that is there but never looked at.
fn inputs(u: &[Vec<f64>], n: usize, n_u: usize) -> Vec<Vec<f64>> {
    (0..=n).map(|s| u.get(s).filter(|_| s < n).cloned().unwrap_or_else(|| vec![0.0; n_u])).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn not_nan(value: f64, what: &str) -> Result<f64, Error> {
    if value.is_nan() { Err(Error::data(format!("{what} is not a number"))) } else { Ok(value) }
}

/// Refuses the outcome of mean functions and kernels that are not finite on this path.
fn finite(gaussian: Gaussian) -> Result<Gaussian, Error> {
    let position = |values: &[f64]| values.iter().position(|value| !value.is_finite());
    if let Some(i) = position(&gaussian.mean) {
        return Err(Error::data(format!("entry {i} of the mean is {}", gaussian.mean[i])));
    }
    match position(&gaussian.covariance) {
        Some(i) => Err(Error::data(format!("entry {i} of the covariance is {}", gaussian.covariance[i]))),
        None => Ok(gaussian),
    }
}
