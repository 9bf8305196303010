//! The slow, obviously right version of the hyper-parameter update: the whole joint density from plain
//! formulas at every evaluation. It reproduces the library's draws from the same random numbers, and it
//! carries the planted bugs.

use gpssm::Problem;
use gpssm::mcmc::{SliceLimits, slice_update};
use gpssm::model::{Coordinate, CovariancePrior, ParameterPrior, ScaleKind, SensorSpec};
use gpssm::random::{Purpose, stream};
use gpssm::smc::{FilterOptions, conditional_filter};
use gpssm::state_space::SharedPairs;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};

use crate::N_PARTICLES;
use crate::cases::{Case, Theta};
use crate::dense::Numbers;
use crate::paired::Replicate;

/// Bugs that a sampler can have and still look plausible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mutant {
    /// The states are drawn with the factor of the theta before the update.
    StaleFactor,
    /// Log coordinates without their Jacobian.
    NoJacobian,
    /// Sensor noise is drawn as if missing outputs had been seen.
    CountsMissing,
    /// A prior on the variance is used as one on the standard deviation.
    SdPrior,
    /// A mean function's parameter moves, the residuals do not.
    StaleResiduals,
    /// The sensor's parameter is drawn from the transition alone.
    SensorForgotten,
    /// States move with the sensor noise as if their volume stayed the same.
    NoVolume,
    /// A Gaussian approximation is expanded around the path that it moves.
    AnchorFollows,
    /// Which states are held is decided by the states.
    HeldByState,
    /// The approximation's mean at the new theta is one that the old state had a say in.
    StaleFrame,
    /// The path moves as if the draw of f said nothing of it.
    FunctionForgotten,
    /// Coefficients of f move as if their weights had moved.
    AmplitudeForgotten,
    /// The coordinates of the path are redrawn as if they were independent normals.
    EveryAngle,
}

pub struct Twin<'a> {
    pub case: &'a Case,
    pub problem: &'a Problem,
    pub mutant: Option<Mutant>,
}

impl Twin<'_> {
    pub fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub fn numbers(&self, theta: &[f64]) -> Numbers {
        (self.case.numbers)(&Theta { table: self.problem.table(), values: theta })
    }

    /// Whether entry `k` is drawn directly: sensor noise with a conjugate prior.
    fn is_direct(&self, k: usize) -> bool {
        let table = self.problem.table();
        let parameter = &table.parameters[k];
        match &parameter.prior {
            ParameterPrior::Scalar(_) => false,
            ParameterPrior::Scale(prior) => {
                parameter.name.starts_with("sensor_sd") && prior.as_inverse_gamma_variance().is_some()
            }
            ParameterPrior::Matrix { matrix, .. } => {
                let prior = &table.matrices[*matrix].prior;
                parameter.sensor && matches!(prior, CovariancePrior::InverseWishart { .. })
            }
        }
    }

    /// log p of all of theta in the coordinates it is sampled in.
    fn log_prior(&self, theta: &[f64]) -> f64 {
        let table = self.problem.table();
        let mut total = 0.0;
        for (k, parameter) in table.parameters.iter().enumerate().filter(|(k, _)| !table.is_fixed(*k)) {
            total += match &parameter.prior {
                ParameterPrior::Scalar(prior) => prior.log_density(theta[k]),
                ParameterPrior::Scale(scale) => match scale.on {
                    ScaleKind::Variance if !self.is(Mutant::SdPrior) => {
                        scale.prior.log_density(theta[k].powi(2)) + (2.0 * theta[k]).ln()
                    }
                    _ => scale.prior.log_density(theta[k]),
                },
                ParameterPrior::Matrix { .. } => continue,
            };
            if parameter.coordinate == Coordinate::Log && !self.is(Mutant::NoJacobian) {
                total += theta[k].ln();
            }
        }
        for (m, matrix) in table.matrices.iter().enumerate() {
            let chol = table.matrix_factor(m, theta);
            total += matrix.prior.log_density(&chol, matrix.n);
            total += CovariancePrior::log_jacobian_log_cholesky(&chol, matrix.n);
        }
        total
    }

    /// log p(theta, x, y) at a candidate; `before` is theta before this entry moved.
    pub fn log_joint(&self, theta: &[f64], before: &[f64], state: &Replicate) -> f64 {
        let prior = self.log_prior(theta);
        if prior == f64::NEG_INFINITY {
            return prior;
        }
        let mut numbers = self.numbers(theta);
        if self.is(Mutant::StaleResiduals) {
            numbers.mean = self.numbers(before).mean;
        }
        let mut total = prior + numbers.log_path(&state.paths, &self.case.plans);
        if !self.is(Mutant::SensorForgotten) {
            total += numbers.log_sensor(&state.paths, &self.case.plans, &state.y);
        }
        total
    }

    /// theta given x and y.
    pub fn update_theta(&self, state: &mut Replicate, width: f64, rng: &mut ChaCha8Rng) {
        let table = self.problem.table();
        for k in (0..table.len()).filter(|&k| !table.is_fixed(k) && !self.is_direct(k)) {
            let log = table.parameters[k].coordinate == Coordinate::Log;
            let before = state.theta.clone();
            let mut theta = before.clone();
            let outcome = slice_update(
                if log { before[k].ln() } else { before[k] },
                self.log_joint(&before, &before, state),
                width,
                SliceLimits::default(),
                &mut |coordinate| {
                    theta[k] = if log { coordinate.exp() } else { coordinate };
                    self.log_joint(&theta, &before, state)
                },
                rng,
            );
            state.theta[k] = if log { outcome.x.exp() } else { outcome.x };
        }
        for k in (0..table.len()).filter(|&k| self.is_direct(k)) {
            match &table.parameters[k].prior {
                ParameterPrior::Scale(prior) => {
                    let (shape, scale) = prior.as_inverse_gamma_variance().unwrap();
                    state.theta[k] = self.draw_variance(shape, scale, state, rng).sqrt();
                }
                ParameterPrior::Matrix { matrix, row: 0, column: 0 } => {
                    let chol = self.draw_covariance(*matrix, state, rng);
                    state.theta[k..k + 3].copy_from_slice(&[chol[0], chol[2], chol[3]]);
                }
                _ => {}
            }
        }
    }

    /// One output: IG(shape + n/2, scale + sum e^2 / 2).
    fn draw_variance(&self, shape: f64, scale: f64, state: &Replicate, rng: &mut ChaCha8Rng) -> f64 {
        let rows = self.numbers(&state.theta).sensor_residuals(&state.paths, &self.case.plans, &state.y);
        let seen: Vec<f64> = rows.iter().map(|row| row[0]).filter(|e| !e.is_nan()).collect();
        let n = if self.is(Mutant::CountsMissing) { rows.len() } else { seen.len() };
        let square: f64 = seen.iter().map(|e| e * e).sum();
        (scale + 0.5 * square) / Gamma::new(shape + 0.5 * n as f64, 1.0).unwrap().sample(rng)
    }

    /// Two outputs: IW(dof + n, Psi + sum e e') after the missing one was drawn given the other.
    fn draw_covariance(&self, matrix: usize, state: &Replicate, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let table = self.problem.table();
        let CovariancePrior::InverseWishart { mut dof, mut scale } = table.matrices[matrix].prior.clone()
        else {
            panic!("not conjugate")
        };
        let l = table.matrix_factor(matrix, &state.theta);
        let r = [l[0] * l[0], l[0] * l[2], l[2] * l[2] + l[3] * l[3]];
        for mut e in self.numbers(&state.theta).sensor_residuals(&state.paths, &self.case.plans, &state.y) {
            match (e[0].is_nan(), e[1].is_nan()) {
                (true, true) => {
                    dof += f64::from(self.is(Mutant::CountsMissing));
                    continue;
                }
                (false, false) => {}
                (first_is_missing, _) => {
                    let (missing, seen, own) = if first_is_missing { (0, 1, r[0]) } else { (1, 0, r[2]) };
                    let of_seen = if first_is_missing { r[2] } else { r[0] };
                    let sd = (own - r[1] * r[1] / of_seen).sqrt();
                    e[missing] = r[1] / of_seen * e[seen] + sd * rng.sample::<f64, _>(StandardNormal);
                }
            }
            dof += 1.0;
            for i in 0..2 {
                for j in 0..2 {
                    scale[i][j] += e[i] * e[j];
                }
            }
        }
        CovariancePrior::InverseWishart { dof, scale }.sample(rng, 2).unwrap()
    }

    /// The paths given theta, one sequence after the other.
    fn update_states(&self, theta: &[f64], state: &mut Replicate, seed: u64, sweep: u64) {
        let model = self.problem.bind(theta);
        let sequences = self.problem.sequences();
        for (s, sequence) in sequences.iter().enumerate() {
            let mut rng = stream(seed, 0, Purpose::States, sweep, s as u64);
            let mut shared = SharedPairs::none(self.problem.n_x(), sequence.n_u());
            for other in (0..sequences.len()).filter(|&other| other != s) {
                shared.add(&model.transition, &state.paths[other], &sequences[other]);
            }
            let options = FilterOptions::new(N_PARTICLES);
            let outcome =
                conditional_filter(&model, sequence, &shared, options, &state.paths[s], &mut rng).unwrap();
            state.paths[s] = outcome.path;
        }
    }

    /// Sensor noise with the standardised residuals held: every row that output `k` has seen moves with it.
    fn interweave(&self, state: &mut Replicate, rng: &mut ChaCha8Rng) {
        // The functions of these cases are straight lines too, so that anchors on a grid are exact.
        if !matches!(&self.problem.model().sensor, SensorSpec::Gaussian { .. }) {
            return;
        }
        let table = self.problem.table();
        for output in 0..self.problem.model().n_y {
            let Some(k) = table
                .index(&format!("sensor_sd[{}]", table.names.outputs[output]))
                .filter(|&k| !table.is_fixed(k))
            else {
                continue;
            };
            let (theta, start) = (state.theta.clone(), state.clone());
            let at = |coordinate: f64| {
                let mut moved = start.clone();
                moved.theta[k] = coordinate.exp();
                let ratio = moved.theta[k] / theta[k];
                let n_moved = self.scale_residuals(output, ratio, &mut moved.paths, &start);
                (moved, n_moved * ratio.ln())
            };
            let mut density = |coordinate: f64| {
                let (moved, log_volume) = at(coordinate);
                let log_volume = if self.is(Mutant::NoVolume) { 0.0 } else { log_volume };
                // x_0 ~ N(0, I) moves too.
                let n_x = self.problem.n_x();
                let square: f64 = moved.paths.iter().flat_map(|path| &path[..n_x]).map(|x| x * x).sum();
                self.log_joint(&moved.theta, &theta, &moved) - 0.5 * square + log_volume
            };
            let x0 = theta[k].ln();
            let current = density(x0);
            let outcome = slice_update(x0, current, 0.5, SliceLimits::default(), &mut density, rng);
            *state = at(outcome.x).0;
        }
    }

    /// Multiplies the residuals of one output by moving the state of the same number, and all copies of that; returns how
    /// many there were.
    fn scale_residuals(&self, output: usize, ratio: f64, paths: &mut [Vec<f64>], start: &Replicate) -> f64 {
        let numbers = self.numbers(&start.theta);
        let n_x = numbers.n_x();
        let mut n_moved = 0.0;
        for ((path, y), plan) in paths.iter_mut().zip(&start.y).zip(&self.case.plans) {
            for (t, y) in y.iter().enumerate() {
                if y[output].is_nan() {
                    n_moved += f64::from(self.is(Mutant::CountsMissing));
                    continue;
                }
                let mut z = [&path[t * n_x..][..n_x], &plan.u[t]].concat();
                let mean = (numbers.sensor_mean)(output, &z);
                z[output] += 1.0;
                let gain = (numbers.sensor_mean)(output, &z) - mean;
                path[t * n_x + output] += (1.0 - ratio) * (y[output] - mean) / gain;
                n_moved += 1.0;
            }
            for t in 1..y.len() {
                for (d, of) in numbers.lag.iter().enumerate() {
                    if let Some(of) = of {
                        path[t * n_x + d] = path[(t - 1) * n_x + of];
                    }
                }
            }
        }
        n_moved
    }

    /// The sweep with number `sweep`, counted from 1.
    pub fn sweep(&self, state: &mut Replicate, width: f64, seed: u64, sweep: u64) {
        let old = state.theta.clone();
        let mut rng = stream(seed, 0, Purpose::Theta, sweep, 0);
        self.update_theta(state, width, &mut rng);
        self.interweave(state, &mut stream(seed, 0, Purpose::Interweaving, sweep, 0));
        let theta = if self.is(Mutant::StaleFactor) { old } else { state.theta.clone() };
        self.update_states(&theta, state, seed, sweep);
    }
}
