//! The states of the first rows of a record where nothing is left to learn but noise and all is linear and Gaussian: draws of
//! the smoothing distribution by a Kalman smoother, in place of particles, of which many states would need too many.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::filter::{FunctionPath, FunctionPaths};
use super::{Posterior, Stream, allocate, stream_for};
use crate::error::Error;
use crate::initial::BoundInitial;
use crate::mcmc::gaussian_coordinates::{Anchor, Frame, GivenFunction};
use crate::model::spec::{FunctionSpec, TransitionSpec};
use crate::record::Sequence;

impl Posterior {
    /// Whether given theta states and outputs are one Gaussian.
    pub(super) fn is_linear_gaussian(&self) -> bool {
        let model = self.problem().model();
        let linear = |transition: &TransitionSpec| {
            matches!(
                transition,
                TransitionSpec::Lag { .. }
                    | TransitionSpec::Parametric {
                        function: FunctionSpec::Linear { .. } | FunctionSpec::Identity | FunctionSpec::Zero
                    }
            )
        };
        // Lags reach back to before the first row, which the smoother holds.
        let lags = model.states.iter().any(|state| matches!(state.transition, TransitionSpec::Lag { .. }));
        let initial = self
            .draws()
            .first()
            .map(|draw| matches!(self.problem().bind(&draw.theta).initial, BoundInitial::Gaussian { .. }));
        !lags
            && initial == Some(true)
            && model.sensor.is_linear_gaussian()
            && model.states.iter().all(|state| linear(&state.transition))
    }

    /// Paths over these rows, each of its own draw; none where the model is not linear and Gaussian.
    pub(super) fn smooth_linear(
        &self,
        head: &Sequence,
        n_paths: usize,
        n_draws: usize,
        seed: u64,
    ) -> Result<Option<FunctionPaths>, Error> {
        if n_paths == 0 || !self.is_linear_gaussian() {
            return Ok(None);
        }
        let problem = self.problem().over(head)?;
        let zero = vec![vec![0.0; head.n_rows() * self.n_x()]];
        let anchor = Anchor::at_zero(&problem);
        let draws = allocate(&self.weights(), n_draws.clamp(1, n_paths));
        let mut paths = Vec::with_capacity(n_paths);
        let mut last: Option<(usize, Frame)> = None;
        for i in 0..n_paths {
            let draw = draws[i * draws.len() / n_paths];
            if last.as_ref().is_none_or(|(other, _)| *other != draw) {
                let model = problem.bind(&self.draws()[draw].theta);
                let f = GivenFunction::mean(&model.transition);
                let Ok(frame) = Frame::new(&problem, &model, &anchor, &f, &zero) else { return Ok(None) };
                last = Some((draw, frame));
            }
            let Some((_, frame)) = &last else { return Ok(None) };
            let mut rng = stream_for(seed, Stream::Smooth, i as u64);
            let z: Vec<f64> = (0..frame.whiten(&zero).len()).map(|_| rng.sample(StandardNormal)).collect();
            let x = frame.place(&z, &zero).concat();
            paths.push(FunctionPath { draw, x, weights: Vec::new() });
        }
        Ok(Some(FunctionPaths { paths, log_marginal_likelihood: f64::NAN, warnings: Vec::new() }))
    }
}
