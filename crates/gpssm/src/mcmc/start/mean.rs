//! A start at the Kalman smoother's path for functions that are their means.
//!
//! Where the means are a good model already, such as a linear state-space model identified from the record, the path that it
//! smooths is near those of the posterior; all that is left to find are hyper-parameters.

use super::Start;
use super::outputs::updated;
use crate::dynamics::path_density::PathDensityWork;
use crate::error::Error;
use crate::mcmc::conditional::Conditional;
use crate::mcmc::gaussian_coordinates::{Anchor, Frame, GivenFunction};
use crate::mcmc::settings::Settings;
use crate::model::compile::Problem;
use crate::random::{Purpose, stream};

/// Draws of theta from the prior, of which the best given its own path goes on.
const DRAWS: u64 = 16;

/// Theta and the path. `keep_going` is asked before each update.
pub(super) fn find(
    problem: &Problem,
    settings: &Settings,
    chain: u32,
    keep_going: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Start>, Error> {
    settings.check_presample(problem)?;
    if Anchor::is_signed(problem) {
        let message = "mean is not for sensors that do not see the sign of a state; use search";
        return Err(Error::settings("start_at", message));
    }
    let mut best: Option<Start> = None;
    for index in 0..DRAWS {
        let mut rng = stream(settings.seed, chain, Purpose::StartTheta, 0, index);
        let theta = problem.table().sample(&mut rng)?;
        let Some(paths) = smoothed(problem, &theta) else { continue };
        let mut work = PathDensityWork::default();
        let log_joint = Conditional::new(problem, &paths, &theta, &mut work).log_joint(&theta).0;
        if log_joint.is_finite() && best.as_ref().is_none_or(|best| log_joint > best.log_marginal_likelihood)
        {
            let state = crate::mcmc::sweep::ChainState::new(problem, theta, paths);
            best = Some(Start { state, log_marginal_likelihood: log_joint });
        }
    }
    let Some(start) = best else {
        let message = format!(
            "{DRAWS} draws of the hyper-parameters from the prior all had no density on the path of the mean functions; check \
             that these fit the data, or use start_at = \"search\""
        );
        return Err(Error::Start { message });
    };
    Ok(updated(problem, settings, chain, start, keep_going))
}

/// The mean path given theta and f = m; none if it is not finite.
fn smoothed(problem: &Problem, theta: &[f64]) -> Option<Vec<Vec<f64>>> {
    let model = problem.bind(theta);
    let f = GivenFunction::mean(&model.transition);
    let anchor = Anchor::at_zero(problem);
    let zero: Vec<Vec<f64>> =
        problem.sequences().iter().map(|sequence| vec![0.0; sequence.n_rows() * problem.n_x()]).collect();
    let frame = Frame::new(problem, &model, &anchor, &f, &zero).ok()?;
    let n = frame.whiten(&zero).len();
    let paths = frame.place(&vec![0.0; n], &zero);
    paths.iter().flatten().all(|x| x.is_finite()).then_some(paths)
}
