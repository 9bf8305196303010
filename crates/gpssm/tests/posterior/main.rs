//! What is done with the draws: exactness of predictions, simulations, filters and scores.

mod errors;
mod filters;
mod golden;
mod models;
mod simulations;
