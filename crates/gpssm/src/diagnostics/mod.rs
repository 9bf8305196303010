//! Convergence diagnostics for several chains of one scalar quantity.
//!
//! Everything but the update rate and the smoothed weights follows Vehtari, Gelman, Simpson, Carpenter
//! and Bürkner (2021), "Rank-normalization, folding, and localization: an
//! improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16(2),
//! 667-718, <https://doi.org/10.1214/20-BA1221>, and agrees numerically with
//! ArviZ 1.x (tests: relative 1e-8).
//!
//! | file               | idea                                                       |
//! |--------------------|------------------------------------------------------------|
//! | `chains`           | which input is usable; splitting every chain in two halves |
//! | `moments`          | mean, variance, quantile of finite draws                   |
//! | `rank`             | rank normalisation and folding                             |
//! | `rhat`             | rank-normalised split R-hat                                |
//! | `autocovariance`   | one lag at a time, on demand                               |
//! | `ess`              | effective sample size: bulk, tail, mean                    |
//! | `summary`          | Monte Carlo standard error; one table row per quantity     |
//! | `update_rate`      | how often particle Gibbs renews each `x_t`                 |
//! | `pareto`           | importance weights with a smoothed tail, and its shape     |
//! | `golden`           | tests: the same numbers as ArviZ                           |
//!
//! # Values returned
//!
//! No function panics or returns NaN. `None` means "not defined for these
//! draws": no chain, chains of unequal length, fewer than four draws per chain,
//! or a draw that is not finite. Two cases deserve a word, both as in ArviZ:
//!
//! * All draws equal: [`rhat`] is `None` (zero variance within and between),
//!   the effective sample sizes equal the number of draws used, and
//!   [`mcse_mean`] is zero.
//! * Every chain stuck at a place of its own: [`rhat`] is `f64::INFINITY`.

mod autocovariance;
mod chains;
mod ess;
mod moments;
mod pareto;
mod rank;
mod rhat;
mod summary;
mod update_rate;

#[cfg(test)]
mod golden;

pub use ess::{ess_bulk, ess_mean, ess_tail};
pub use pareto::{ParetoSmoothed, pareto_k_threshold, pareto_smooth};
pub use rhat::rhat;
pub use summary::{Summary, mcse_mean, summarise};
pub use update_rate::{PathShapeMismatch, UpdateRate};
