//! What is done with the draws: exactness of predictions, simulations, filters and comparisons.

mod calibration;
mod comparison;
mod distillation;
mod errors;
mod everything;
mod filters;
mod golden;
mod models;
mod simulations;
