//! What is done with the draws: exactness of predictions, simulations, filters and scores.

mod calibration;
mod distillation;
mod errors;
mod everything;
mod filters;
mod golden;
mod models;
mod scores;
mod simulations;
