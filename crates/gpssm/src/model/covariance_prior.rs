//! Priors of a full noise covariance matrix.

mod inverse_wishart;
mod lkj;

use rand::Rng;
use serde::{Deserialize, Serialize};
use std::f64::consts::LN_2;

use super::prior_error::{PriorError, require_finite, require_positive};
use super::scale_prior::ScalePrior;
use super::small_matrix::{cholesky, is_cholesky_factor};

const INVERSE_WISHART: &str = "inverse_wishart";
const LKJ: &str = "lkj";

/// The prior of an `n x n` covariance matrix `Q = L L^T`.
///
/// Matrices are exchanged as the Cholesky factor `L`, row-major with `n * n`
/// numbers; entries above the diagonal are not read and are zero in draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CovariancePrior {
    /// `p(Q) = |S|^(v/2) / (2^(v n / 2) Gamma_n(v/2)) |Q|^(-(v + n + 1)/2)
    /// exp(-tr(S Q^-1) / 2)` with `v = dof > n - 1`, `S = scale`; the mean is
    /// `S / (v - n - 1)` where `v > n + 1`.
    InverseWishart {
        /// Degrees of freedom.
        dof: f64,
        /// Symmetric positive definite scale matrix, as a list of rows.
        scale: Vec<Vec<f64>>,
    },
    /// `Q = D R D` with `D = diag(s_1, .., s_n)`, independent priors of the
    /// standard deviations `s_i` and `p(R) = |R|^(eta - 1) / c_n(eta)` of the
    /// correlation matrix (Lewandowski, Kurowicka and Joe 2009), so
    /// `p(Q) = p(R) prod_i p(s_i) / (2^n prod_i s_i^n)`.
    Lkj {
        /// Concentration; 1 is uniform over correlation matrices.
        eta: f64,
        /// Priors of the standard deviations, one per dimension.
        sd: Vec<ScalePrior>,
    },
}

impl CovariancePrior {
    /// Checks the parameters for dimension `n`.
    ///
    /// Fixed standard deviations are refused: with them the covariance matrix
    /// has no density.
    pub(crate) fn validate(&self, n: usize) -> Result<(), PriorError> {
        match self {
            CovariancePrior::InverseWishart { dof, scale } => {
                require_finite(INVERSE_WISHART, "dof", *dof)?;
                if *dof <= n as f64 - 1.0 {
                    return Err(PriorError::OutOfRange {
                        prior: INVERSE_WISHART,
                        field: "dof",
                        value: *dof,
                        allowed: "greater than the dimension minus one",
                    });
                }
                scale_cholesky(scale, n).map(|_| ())
            }
            CovariancePrior::Lkj { eta, sd } => {
                require_positive(LKJ, "eta", *eta)?;
                require_length(LKJ, "sd", sd.len(), n)?;
                sd.iter().enumerate().try_for_each(|(index, prior)| {
                    validate_lkj_sd(prior).map_err(|error| PriorError::Entry {
                        field: "sd",
                        index,
                        source: Box::new(error),
                    })
                })
            }
        }
    }

    /// Normalised log density of `Q = L L^T` with respect to Lebesgue measure
    /// on its `n (n + 1) / 2` free entries.
    ///
    /// `-inf` if `chol` is not a Cholesky factor of dimension `n` or the prior
    /// is not valid for it.
    pub fn log_density(&self, chol: &[f64], n: usize) -> f64 {
        if !is_cholesky_factor(chol, n) {
            return f64::NEG_INFINITY;
        }
        let value = match self {
            CovariancePrior::InverseWishart { dof, scale } => match scale_cholesky(scale, n) {
                Ok(scale_chol) => inverse_wishart::log_density(*dof, &scale_chol, chol, n),
                Err(_) => f64::NEG_INFINITY,
            },
            CovariancePrior::Lkj { sd, .. } if sd.len() != n => f64::NEG_INFINITY,
            CovariancePrior::Lkj { eta, sd } => lkj::log_density(*eta, sd, chol, n),
        };
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }

    /// `ln |dQ / d(ln L_ii, L_ij)|` for `Q = L L^T`: adding it to
    /// [`Self::log_density`] gives the log density of the unconstrained
    /// coordinates (logarithms of the diagonal, the entries below it).
    ///
    /// `-inf` if `chol` is not a Cholesky factor of dimension `n`.
    pub fn log_jacobian_log_cholesky(chol: &[f64], n: usize) -> f64 {
        if !is_cholesky_factor(chol, n) {
            return f64::NEG_INFINITY;
        }
        // |dQ/dL| = 2^n prod L_ii^(n - i), i from 0, and dL_ii = L_ii d ln L_ii.
        let powers: f64 = (0..n).map(|i| (n - i + 1) as f64 * chol[i * n + i].ln()).sum();
        n as f64 * LN_2 + powers
    }

    /// Draws `Q` and returns its Cholesky factor.
    ///
    /// # Errors
    ///
    /// What the check of the prior says, if the prior is not valid for `n`.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R, n: usize) -> Result<Vec<f64>, PriorError> {
        self.validate(n)?;
        match self {
            CovariancePrior::InverseWishart { dof, scale } => {
                let scale_chol = scale_cholesky(scale, n)?;
                Ok(inverse_wishart::sample(*dof, &scale_chol, rng, n))
            }
            CovariancePrior::Lkj { eta, sd } => Ok(lkj::sample(*eta, sd, rng, n)),
        }
    }
}

/// A standard deviation of the LKJ prior: a scale prior that has a density.
fn validate_lkj_sd(prior: &ScalePrior) -> Result<(), PriorError> {
    prior.validate()?;
    match prior.fixed_sd() {
        Some(value) => Err(PriorError::NoDensity { prior: LKJ, value }),
        None => Ok(()),
    }
}

/// Checks the scale matrix of the inverse Wishart prior and factorises it.
fn scale_cholesky(scale: &[Vec<f64>], n: usize) -> Result<Vec<f64>, PriorError> {
    let prior = INVERSE_WISHART;
    require_length(prior, "scale", scale.len(), n)?;
    for row in scale {
        require_length(prior, "a row of scale", row.len(), n)?;
        for &entry in row {
            require_finite(prior, "an entry of scale", entry)?;
        }
    }
    for (row, entries) in scale.iter().enumerate() {
        for (column, &value) in entries.iter().enumerate().take(row) {
            let mirrored = scale[column][row];
            // Room for numbers that went through a text with few digits lost.
            if (value - mirrored).abs() > 1e-10 * value.abs().max(mirrored.abs()) {
                return Err(PriorError::NotSymmetric { prior, row, column, value, mirrored });
            }
        }
    }
    cholesky(&scale.concat(), n).map_err(|order| PriorError::NotPositiveDefinite { prior, order })
}

/// Refuses lists whose length is not the dimension.
fn require_length(
    prior: &'static str,
    field: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), PriorError> {
    if found == expected { Ok(()) } else { Err(PriorError::WrongLength { prior, field, found, expected }) }
}

#[cfg(test)]
mod tests;
