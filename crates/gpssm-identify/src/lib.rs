//! System identification on top of `gpssm`: from a record to a model that predicts it, and how well it does.
//!
//! - [`layout`]: rows of a record as rows of a model: lagged inputs, dead time, thinning
//! - [`auto`]: lags, delay, thinning, kernel and prior chosen from the training record
//! - `distil`: a fitted model as one sparse Gaussian process
//! - [`calibration`]: prediction intervals of free runs, calibrated on held-out parts of the training record
//! - [`fitted`]: a posterior with its layout, calibration and training record
//! - [`free_run`]: it runs free under the inputs of a record
//! - [`evaluation`]: its scores on a record, beside baselines
//! - [`check`](mod@check): what predictions of a record miss
//! - [`leave_future_out`](mod@leave_future_out): scores of every row, predicted from the rows before it alone
//! - [`linearised`]: a fitted model near a point: matrices, poles, gains, step responses; states that stay
//! - [`lights`](mod@lights): the verdict that a reader sees first
//! - [`linear`]: linear state-space models, identified from a record
//! - [`baseline`]: a constant, linear ARX models and the best linear state-space model
//! - [`marginal`]: what baselines say of an output, in the family of the sensor
//! - [`pooled`](mod@pooled): scores of several sequences as one
//! - [`sbc`]: simulation-based calibration of the sampler
//! - [`score`]: errors, CRPS, coverage and log scores of predictions

pub mod auto;
pub mod baseline;
pub mod calibration;
pub mod check;
mod distil;
pub mod evaluation;
pub mod fitted;
pub mod free_run;
pub mod layout;
pub mod leave_future_out;
pub mod lights;
pub mod linear;
pub mod linearised;
pub mod marginal;
pub mod pooled;
pub mod sbc;
pub mod score;

pub use calibration::Calibration;
pub use check::{CheckOptions, CheckReport, check};
pub use evaluation::{ScoreOptions, ScoreReport, ScoreTask};
pub use fitted::FittedModel;
pub use free_run::{FreeRunOptions, Start};
pub use layout::Layout;
pub use leave_future_out::{LeaveFutureOut, LfoOptions, LfoRanked, compare_futures, leave_future_out};
pub use lights::{Commands, Judging, Light, Lights, lights};
pub use linear::LinearStateSpace;
pub use linearised::{LinearOptions, Linearised, Rest};
pub use pooled::pooled;
