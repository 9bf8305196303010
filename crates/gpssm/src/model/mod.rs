//! What the user describes.
pub mod covariance_prior;
pub mod family;
pub mod prior;
pub mod prior_error;
pub mod scale_prior;
mod small_matrix;
mod special;

#[cfg(test)]
mod numeric_checks;
