//! Golden values of the transition prior from an independent dense implementation, full GP and FIC.
//!
//! Conventions of `fixtures/oracle.json`: block order (time, dimension), m(x) = x, `var` is the signal variance and `ell`
//! the length-scales over z = (x, u), one row for each state; `prefixes` are x_{0:t-1}; `as_logw` is
//! log p(x_{t:T} | prefix) as it stands, not normalised over the prefixes, and without the particles' own weights;
//! `log_joint` lacks p(x_0); `f_cov` is full and ordered (point, dimension), `fic_f_cov` has one block for each point.

use serde::Deserialize;

/// A matrix, or points, by rows.
pub type Rows = Vec<Vec<f64>>;

#[derive(Deserialize)]
struct Oracle {
    cases: Vec<Case>,
}

/// One transition prior, a path, and what the independent implementation says of them.
#[derive(Deserialize)]
pub struct Case {
    /// Number of states.
    pub nx: usize,
    /// Kernel: `se`, `matern12`, `matern32` or `matern52`.
    pub kind: String,
    /// Mean function; always `identity`.
    pub mean: String,
    /// Where the prefixes end.
    pub t: usize,
    /// Q.
    #[serde(rename = "Q")]
    pub q: Rows,
    /// x_{0:T}.
    pub x: Rows,
    /// u_{0:T-1}.
    pub u: Option<Rows>,
    /// States of the test points.
    pub xs: Rows,
    /// Inputs of the test points.
    pub us: Option<Rows>,
    /// Paths x_{0:t-1}.
    pub prefixes: Vec<Rows>,
    /// Signal variance, one for each state.
    pub var: Vec<f64>,
    /// Length-scales, one row for each state.
    pub ell: Rows,
    /// Mean of p(x_t | x_{0:t-1}).
    pub mu_t: Vec<f64>,
    /// Covariance of p(x_t | x_{0:t-1}), including Q.
    #[serde(rename = "Sigma_t")]
    pub sigma_t: Rows,
    /// log p(x_{1:T} | x_0).
    pub log_joint: f64,
    /// log p(x_{t:T} | prefix).
    pub as_logw: Vec<f64>,
    /// Mean of f at the test points.
    pub f_mean: Rows,
    /// Covariance of f at the test points.
    pub f_cov: Rows,
    /// Inducing inputs.
    pub inducing: Rows,
    /// `mu_t` under FIC.
    pub fic_mu_t: Vec<f64>,
    /// `sigma_t` under FIC.
    #[serde(rename = "fic_Sigma_t")]
    pub fic_sigma_t: Rows,
    /// `log_joint` under FIC.
    pub fic_log_joint: f64,
    /// `as_logw` under FIC.
    pub fic_as_logw: Vec<f64>,
    /// `f_mean` under FIC.
    pub fic_f_mean: Rows,
    /// Covariance of f under FIC, one block for each test point.
    pub fic_f_cov: Vec<Rows>,
}

/// All cases.
///
/// # Panics
/// If the fixture is not what [`Case`] says, which the tests of this crate would show.
pub fn cases() -> Vec<Case> {
    let oracle: Oracle =
        serde_json::from_str(include_str!("../fixtures/oracle.json")).expect("the fixture is valid");
    oracle.cases
}

impl Case {
    /// Inputs; empty without.
    pub fn u(&self) -> &[Vec<f64>] {
        self.u.as_deref().unwrap_or(&[])
    }

    /// Inputs of the test points; empty without.
    pub fn us(&self) -> &[Vec<f64>] {
        self.us.as_deref().unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::cases;

    #[test]
    fn the_fixture_is_complete() {
        let cases = cases();
        assert_eq!(cases.len(), 7);
        assert!(cases.iter().all(|case| case.mean == "identity" && case.x[0].len() == case.nx));
    }
}
