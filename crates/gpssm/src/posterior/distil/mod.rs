//! One sparse Gaussian process in place of the mixture (end of section 5 of the paper).
//!
//! Draws whose hidden states have another sign, scale or mix are brought to the coordinates of one of them first, and draws
//! of other modes are left out (`alignment`). The cloud {z_t, f_t} of all draws says where f matters (`target`). Inducing
//! inputs U are chosen greedily among its points, under the kernel at the mean of theta (`fit`). With whitened features
//! phi(z) = L_UU^{-1} k(U, z) the distilled function is
//!
//! ```text
//! f_d(z) = a . z + c + phi(z) . w,  w ~ N(w_bar, S),  and k(z, z) - |phi(z)|^2 beside it
//! ```
//!
//! a, c and w_bar are least-squares fits to the mixture mean over the cloud (with the prior w ~ N(0, I) as a weak
//! regulariser), S is what the mixture says of f(U): covariance within the draws and between them. Losses of f are measured
//! on points of the cloud that were not used in the fit. What counts in the end is the distilled model as a model: its free
//! run and its filter on the training record beside those of the full posterior (`judge`).

pub(crate) mod alignment;
mod fit;
pub(crate) mod judge;
pub(crate) mod scenarios;
mod target;

use serde::{Deserialize, Serialize};

use self::alignment::Aligned;
use self::fit::{distilling_kernel, held_out_error};
use self::judge::{DistilComparison, Trial};
use self::target::Target;
use super::Posterior;
use super::distilled::{
    DISTILLED_VERSION, Distilled, DistilledFunction, DistilledRows, DistilledState, SparseFunction,
};
use super::distilled_sensor::{DistilledInitial, DistilledSensor, ranges};
use crate::error::Error;
use crate::points::Points;
use crate::scaling::mean_and_sd;

/// How a posterior is distilled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DistilOptions {
    /// Inducing inputs; none to take the smallest size whose held-out error of the mean is below `tolerance`.
    pub size: Option<usize>,
    /// Largest size that is tried.
    pub max_size: usize,
    /// Wanted error of the mean, relative to the standard deviation of f over the cloud.
    pub tolerance: f64,
    /// Points of the cloud that are fitted; a quarter as many are held out.
    pub cloud: usize,
    /// Percentage points of fit that the distilled model may lose against the posterior on the training record, in a free run
    /// and one step ahead; a model that loses more is refused. None to take every model.
    pub max_loss: Option<f64>,
    /// How rows of a record become rows of the model; kept in the distilled model.
    pub rows: DistilledRows,
}

impl Default for DistilOptions {
    fn default() -> Self {
        Self {
            size: None,
            max_size: 50,
            tolerance: 0.02,
            cloud: 2000,
            max_loss: Some(3.0),
            rows: DistilledRows::default(),
        }
    }
}

/// What distilling loses against the full mixture. Errors of f are those on held-out points of the cloud; by state, zero for
/// lags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DistilLoss {
    /// RMSE of the mean, original units.
    pub mean_rmse: Vec<f64>,
    /// The same, relative to the standard deviation of the mixture mean over the points.
    pub mean_error: Vec<f64>,
    /// RMSE of the standard deviation of f, original units.
    pub sd_rmse: Vec<f64>,
    /// The same, relative to the mean of the mixture's standard deviation of f.
    pub sd_error: Vec<f64>,
    /// Points they were measured at.
    pub n_points: usize,
    /// Draws that were averaged.
    #[serde(default)]
    pub n_draws: usize,
    /// Those of them that were mapped to the coordinates of the first.
    #[serde(default)]
    pub n_mapped: usize,
    /// Draws that were left out, because their hidden states cannot be mapped.
    #[serde(default)]
    pub n_left_out: usize,
    /// A free run over the training record; none if it is too short for one.
    #[serde(default)]
    pub free_run: Option<DistilComparison>,
    /// One step ahead along the training record.
    #[serde(default)]
    pub one_step: Option<DistilComparison>,
}

impl DistilLoss {
    /// The largest loss of fit in percentage points: in which task, of which output, how much.
    pub fn largest(&self) -> Option<(&'static str, usize, f64)> {
        let tasks = [("a free run", &self.free_run), ("one step ahead", &self.one_step)];
        let losses = tasks.into_iter().filter_map(|(task, found)| {
            let (k, loss) = found.as_ref()?.largest_loss()?;
            Some((task, k, loss))
        });
        losses.max_by(|a, b| a.2.total_cmp(&b.2))
    }
}

/// Length-scale factors that are tried, smallest held-out error kept.
const STRETCHES: [f64; 3] = [1.0, 0.5, 2.0];

/// Sizes that are tried in turn.
const SIZES: [usize; 10] = [10, 20, 35, 50, 75, 100, 150, 200, 300, 500];

/// Fewest draws that make a mixture, where there are so many, and the smallest share of all.
const FEWEST_DRAWS: usize = 5;
const SMALLEST_SHARE: f64 = 0.1;

/// What all sizes have in common.
struct Ready<'a> {
    options: &'a DistilOptions,
    draws: Vec<Aligned>,
    theta: Vec<f64>,
    fitted: Target,
    held_out: Target,
    trial: Option<Trial>,
}

impl Posterior {
    /// A single sparse Gaussian process with the losses it brings. Where the size is free and the model loses more fit than
    /// [`DistilOptions::max_loss`], the largest size is tried as well before it is refused.
    pub fn distil(&self, options: &DistilOptions) -> Result<Distilled, Error> {
        if options.size == Some(0) || options.max_size == 0 || options.cloud < 10 {
            return Err(Error::settings(
                "size",
                "at least one inducing input and ten points of the cloud are needed",
            ));
        }
        if let Some(most) = options.max_loss.filter(|most| most.is_nan() || *most < 0.0) {
            return Err(Error::settings("max_loss", format!("{most} is not a number from 0 on")));
        }
        let ready = self.ready(options)?;
        let sizes: Vec<usize> = match options.size {
            Some(size) => vec![size],
            None => {
                let smaller = SIZES.into_iter().filter(|size| *size < options.max_size);
                smaller.chain([options.max_size]).collect()
            }
        };
        let mut distilled = self.distilled(&ready, &sizes)?;
        let loses = |distilled: &Distilled| {
            let largest = distilled.loss.largest();
            largest.filter(|(_, _, loss)| options.max_loss.is_some_and(|most| *loss > most))
        };
        if loses(&distilled).is_some()
            && distilled.largest_size() < options.max_size
            && options.size.is_none()
        {
            let larger = self.distilled(&ready, &[options.max_size])?;
            if larger.loss.largest().map(|l| l.2) < distilled.loss.largest().map(|l| l.2) {
                distilled = larger;
            }
        }
        match loses(&distilled) {
            Some(largest) => Err(self.refusal(&distilled, options, largest)),
            None => Ok(distilled),
        }
    }

    fn refusal(
        &self,
        distilled: &Distilled,
        options: &DistilOptions,
        (task, k, _): (&str, usize, f64),
    ) -> Error {
        let loss = &distilled.loss;
        let found = if task == "a free run" { &loss.free_run } else { &loss.one_step };
        let fit = |of: &dyn Fn(&DistilComparison) -> Option<f64>| {
            found.as_ref().and_then(of).map_or_else(|| "none".into(), |fit| format!("{fit:.1} %"))
        };
        let output = &self.problem().model().output_names()[k];
        Error::settings(
            "max_loss",
            format!(
                "the distilled model loses more than {} percentage points of fit on the training record ({task} of {output}: \
                 {} against {} of all draws); give it more inducing inputs (size, now {}), or allow a larger loss",
                options.max_loss.unwrap_or(f64::INFINITY),
                fit(&|found| found.distilled_fit[k]),
                fit(&|found| found.posterior_fit[k]),
                distilled.largest_size(),
            ),
        )
    }

    fn ready<'a>(&self, options: &'a DistilOptions) -> Result<Ready<'a>, Error> {
        let (draws, reference) = self.aligned()?;
        let share: f64 = draws.iter().map(|aligned| self.draws()[aligned.draw].weight).sum();
        if draws.len() < FEWEST_DRAWS.min(self.len()) || share < SMALLEST_SHARE {
            return Err(Error::data(format!(
                "the hidden states of only {} of {} draws agree, up to sign, scale and rotation: the chains found different \
                 solutions, and an average of them is none. Fit again with more restarts or with fewer hidden states",
                draws.len(),
                self.len()
            )));
        }
        // Every fifth point is held out.
        let all = self.aligned_points(&draws, options.cloud + options.cloud / 4);
        let (mut fitted, mut held_out) = (Points::new(all.n_components()), Points::new(all.n_components()));
        for i in 0..all.len() {
            if i % 5 == 4 { held_out.push(&all.row(i)) } else { fitted.push(&all.row(i)) }
        }
        if held_out.is_empty() {
            held_out = fitted.clone();
        }
        let (fitted, held_out) = (self.target(&draws, fitted)?, self.target(&draws, held_out)?);
        let theta = self.theta_of(&draws, reference);
        Ok(Ready { options, theta, fitted, held_out, trial: self.trial()?, draws })
    }

    /// The mean of theta; that of the reference where other draws had to be mapped, because gains and sizes go with the states.
    fn theta_of(&self, draws: &[Aligned], reference: usize) -> Vec<f64> {
        if draws.iter().any(|aligned| !aligned.coordinates.is_identity()) {
            return self.draws()[reference].theta.clone();
        }
        let table = self.problem().table();
        let average = |k: usize| {
            let coordinates = draws
                .iter()
                .map(|aligned| aligned.weight * table.coordinate_of(k, self.draws()[aligned.draw].theta[k]));
            table.value_at(k, coordinates.sum())
        };
        (0..table.len()).map(average).collect()
    }

    /// The smallest of these sizes that follows the mixture mean, or the best.
    fn distilled(&self, ready: &Ready, sizes: &[usize]) -> Result<Distilled, Error> {
        let (problem, n_x) = (self.problem(), self.n_x());
        let transition = problem.bind_transition(&ready.theta);
        let mut states = Vec::new();
        for d in 0..n_x {
            if let Some(of) = transition.lags[d] {
                states.push(DistilledState::Lag { of });
                continue;
            }
            let mut best: Option<(f64, SparseFunction)> = None;
            for &size in sizes {
                for stretch in STRETCHES {
                    let kernel = distilling_kernel(&transition.kernels[d], &ready.fitted, d, n_x, stretch);
                    let Ok(candidate) = self.fit_state(&ready.draws, &kernel, size, d, &ready.fitted) else {
                        continue;
                    };
                    let error = held_out_error(&candidate, &ready.held_out, d, n_x);
                    if best.as_ref().is_none_or(|(lowest, _)| error < *lowest) {
                        best = Some((error, candidate));
                    }
                }
                if best.as_ref().is_some_and(|(error, _)| *error <= ready.options.tolerance) {
                    break;
                }
            }
            let Some((_, state)) = best else {
                return Err(Error::data(format!("state {}: no sparse fit succeeded", d + 1)));
            };
            states.push(DistilledState::Sparse(Box::new(state)));
        }
        let (scaling, model) = (problem.scaling(), problem.model());
        let mut noise = vec![0.0; n_x * n_x];
        for aligned in &ready.draws {
            let theta = &self.draws()[aligned.draw].theta;
            let q = aligned.coordinates.covariance(&problem.bind_transition(theta).noise_covariance());
            for (i, (sum, q)) in noise.iter_mut().zip(q).enumerate() {
                *sum += aligned.weight * q * scaling.x.scale[i / n_x] * scaling.x.scale[i % n_x];
            }
        }
        let parameters = &problem.table().parameters;
        let mut distilled = Distilled {
            version: DISTILLED_VERSION,
            n_x,
            n_u: self.n_u(),
            n_y: self.n_y(),
            state_names: model.state_names(),
            input_names: model.input_names(),
            output_names: model.output_names(),
            rows: ready.options.rows.clone(),
            x_units: scaling.x.clone(),
            u_units: scaling.u.clone(),
            y_units: scaling.y.clone(),
            states,
            process_noise: noise,
            sensor: Some(DistilledSensor::of(problem, &ready.theta)),
            initial: DistilledInitial::of(&problem.bind(&ready.theta).initial, &scaling.x),
            visited: self.aligned_ranges(&ready.draws),
            scenarios: Vec::new(),
            theta_names: parameters.iter().map(|parameter| parameter.name.clone()).collect(),
            theta: ready.theta.clone(),
            loss: DistilLoss {
                n_points: ready.held_out.z.len(),
                n_draws: ready.draws.len(),
                n_mapped: ready.draws.iter().filter(|aligned| !aligned.coordinates.is_identity()).count(),
                n_left_out: self.len() - ready.draws.len(),
                ..DistilLoss::default()
            },
        };
        self.measure(&mut distilled, &ready.held_out)?;
        if let Some(trial) = &ready.trial {
            let (free_run, one_step) = self.judge(&distilled, trial)?;
            (distilled.loss.free_run, distilled.loss.one_step) = (Some(free_run), Some(one_step));
        }
        Ok(distilled)
    }

    /// Where the aligned paths and their inputs went, original units.
    fn aligned_ranges(&self, draws: &[Aligned]) -> Vec<(f64, f64)> {
        let (problem, n_x) = (self.problem(), self.n_x());
        let units = &problem.scaling().x;
        let mapped: Vec<f64> = draws
            .iter()
            .flat_map(|aligned| {
                let paths = self.draws()[aligned.draw].paths.iter();
                paths.flat_map(|path| aligned.coordinates.path(&problem.path_to_internal(path)))
            })
            .enumerate()
            .map(|(i, x)| units.to_original(i % n_x, x))
            .collect();
        let mut found = ranges(n_x, mapped.chunks_exact(n_x));
        let sequences = problem.record().sequences();
        let rows = sequences.iter().flat_map(|s| (0..s.n_rows()).map(|t| s.u(t)));
        found.extend(ranges(self.n_u(), rows));
        found
    }

    /// Errors of f on held-out points.
    fn measure(&self, distilled: &mut Distilled, held_out: &Target) -> Result<(), Error> {
        let (n_x, n) = (self.n_x(), held_out.z.len());
        let scale = &self.problem().scaling().x.scale;
        let mut function = DistilledFunction::new(distilled)?;
        let (mut mean_square, mut sd_square, mut sds) = (vec![0.0; n_x], vec![0.0; n_x], vec![0.0; n_x]);
        let (mut mean, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
        for i in 0..n {
            function.evaluate_internal(&held_out.z.row(i), &mut mean, &mut variance);
            for d in 0..n_x {
                let (m, v) = (held_out.mean[i * n_x + d], held_out.variance[i * n_x + d]);
                mean_square[d] += (mean[d] - m).powi(2) / n as f64;
                sd_square[d] += (variance[d].sqrt() - v.sqrt()).powi(2) / n as f64;
                sds[d] += v.sqrt() / n as f64;
            }
        }
        let loss = &mut distilled.loss;
        for d in 0..n_x {
            let column = (0..n).map(|i| held_out.mean[i * n_x + d]);
            let spread = mean_and_sd(column).and_then(|(_, sd)| sd).unwrap_or(1.0);
            loss.mean_rmse.push(mean_square[d].sqrt() * scale[d]);
            loss.mean_error.push(mean_square[d].sqrt() / spread);
            loss.sd_rmse.push(sd_square[d].sqrt() * scale[d]);
            loss.sd_error.push(if sds[d] > 0.0 { sd_square[d].sqrt() / sds[d] } else { 0.0 });
        }
        Ok(())
    }
}
