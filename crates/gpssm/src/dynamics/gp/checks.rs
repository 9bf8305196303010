//! What a transition, a path and test points have to look like.

use crate::dynamics::transition::{ProcessNoise, Transition};
use crate::error::Error;
use crate::function::ScalarFunction;
use crate::kernel::Kernel;
use crate::linalg::small;

impl Transition {
    /// Checks a path and the first `n` inputs; returns n_u.
    pub(super) fn check_path(&self, x: &[Vec<f64>], u: &[Vec<f64>], n: usize) -> Result<usize, Error> {
        if x.is_empty() {
            return Err(Error::data("a path needs at least one state"));
        }
        let n_u = check_inputs(u, n, "u")?;
        self.check_transition(n_u)?;
        self.check_states(x, "x")?;
        Ok(n_u)
    }

    /// Checks prefixes, the future that is to follow them and their inputs; returns n_u.
    pub(super) fn check_prefixes(
        &self,
        prefixes: &[Vec<Vec<f64>>],
        future: &[Vec<f64>],
        u: &[Vec<f64>],
    ) -> Result<usize, Error> {
        let t = prefixes.first().map_or(0, Vec::len);
        if t == 0 || future.is_empty() {
            return Err(Error::data(format!(
                "ancestor weights need a prefix and a future of at least one state each: there are {} \
                 prefixes, the first of {t} states, and {} future states",
                prefixes.len(),
                future.len()
            )));
        }
        let n_u = check_inputs(u, t + future.len() - 1, "u")?;
        self.check_transition(n_u)?;
        for (i, prefix) in prefixes.iter().enumerate() {
            if prefix.len() != t {
                let message = format!("prefix {i} has {} states, prefix 0 has {t}", prefix.len());
                return Err(Error::data(message));
            }
            self.check_states(prefix, &format!("prefix {i}"))?;
        }
        check_rows(future, self.n_x(), "the future")?;
        Ok(n_u)
    }

    /// Checks test points (x*, u*) against a path with `n_u` inputs.
    pub(super) fn check_test_points(
        &self,
        x_star: &[Vec<f64>],
        u_star: &[Vec<f64>],
        n_u: usize,
    ) -> Result<(), Error> {
        check_rows(x_star, self.n_x(), "x_star")?;
        let n = check_inputs(u_star, x_star.len(), "u_star")?;
        if n != n_u && !x_star.is_empty() {
            return Err(Error::data(format!("u_star has {n} columns, u has {n_u}")));
        }
        Ok(())
    }

    fn check_states(&self, x: &[Vec<f64>], name: &str) -> Result<(), Error> {
        check_rows(x, self.n_x(), name)?;
        for (t, pair) in x.windows(2).enumerate() {
            for (d, of) in self.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
                if pair[1][d] != pair[0][of] {
                    return Err(Error::data(format!(
                        "{name}: row {}, column {d} is the lag of column {of} but is {} where that was {}",
                        t + 1,
                        pair[1][d],
                        pair[0][of]
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_transition(&self, n_u: usize) -> Result<(), Error> {
        let n_x = self.n_x();
        if n_x == 0 || self.means.len() != n_x || self.lags.len() != n_x {
            return Err(Error::model(
                "transition",
                format!("{n_x} kernels, {} means and {} lags", self.means.len(), self.lags.len()),
            ));
        }
        for (d, kernel) in self.kernels.iter().enumerate() {
            check_kernel(kernel, n_x + n_u, &format!("kernels[{d}]"))?;
        }
        for (d, mean) in self.means.iter().enumerate() {
            let n = match mean {
                ScalarFunction::Component(c) => c + 1,
                ScalarFunction::Linear { weights, .. } => weights.len(),
                ScalarFunction::Zero | ScalarFunction::User { .. } => 0,
            };
            if n > n_x + n_u {
                let message = format!("needs {n} components, but z has {n_x} states and {n_u} inputs");
                return Err(Error::model(format!("means[{d}]"), message));
            }
        }
        self.check_lags()?;
        self.check_noise()
    }

    fn check_lags(&self) -> Result<(), Error> {
        let n_x = self.n_x();
        for (d, lag) in self.lags.iter().enumerate() {
            let mut next = *lag;
            for _ in 0..n_x {
                let Some(of) = next else { break };
                if of >= n_x {
                    let message = format!("state {of} of {n_x}");
                    return Err(Error::model(format!("lags[{d}]"), message));
                }
                next = self.lags[of];
            }
            if next.is_some() {
                return Err(Error::model(format!("lags[{d}]"), "a lag of itself"));
            }
        }
        Ok(())
    }

    fn check_noise(&self) -> Result<(), Error> {
        let n_x = self.n_x();
        let (n, expected) = match &self.noise {
            ProcessNoise::Diagonal(variances) => (variances.len(), n_x),
            ProcessNoise::Full(covariance) => (covariance.len(), n_x * n_x),
        };
        if n != expected {
            return Err(Error::model("noise", format!("{n} values where {expected} are needed")));
        }
        let moving: Vec<usize> = self.moving().collect();
        let mut q = self.noise_among(&moving);
        let p = moving.len();
        for (a, b) in (0..p).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let (lower, upper) = (q[a * p + b], q[b * p + a]);
            if (lower - upper).abs() > 1e-10 * lower.abs().max(upper.abs()) {
                let message = format!("not symmetric: {lower} below the diagonal, {upper} above");
                return Err(Error::model("noise", message));
            }
        }
        if !small::cholesky(&mut q, p) {
            return Err(Error::model("noise", "the covariance is not positive definite"));
        }
        Ok(())
    }
}

/// The number of columns of `u`, which has to have at least `n` rows or none at all.
fn check_inputs(u: &[Vec<f64>], n: usize, name: &str) -> Result<usize, Error> {
    let n_u = u.first().map_or(0, Vec::len);
    if u.len() < n && !u.is_empty() {
        return Err(Error::data(format!("{name} has {} rows where {n} are needed", u.len())));
    }
    check_rows(&u[..n.min(u.len())], n_u, name)?;
    Ok(n_u)
}

fn check_rows(rows: &[Vec<f64>], width: usize, name: &str) -> Result<(), Error> {
    for (t, row) in rows.iter().enumerate() {
        if row.len() != width {
            let message = format!("{name}: row {t} has {} values where {width} are needed", row.len());
            return Err(Error::data(message));
        }
        if let Some(c) = row.iter().position(|value| !value.is_finite()) {
            return Err(Error::data(format!("{name}: row {t}, column {c} is {}", row[c])));
        }
    }
    Ok(())
}

fn check_kernel(kernel: &Kernel, n_z: usize, key: &str) -> Result<(), Error> {
    kernel.parts().try_for_each(|part| part.check(n_z).map_err(|message| Error::model(key, message)))
}
