//! A linear state-space model as a model of the engine: as it is, or as the mean of functions that are learned.

use gpssm::kernel::SQUARED_EXPONENTIAL;
use gpssm::model::{
    DynamicsSpec, FunctionSpec, InducingSpec, InitialSpec, Mode, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec, Value,
};
use gpssm::{KernelSpec, Model, Prior};

use super::matrix::{multiply, multiply_transposed};
use super::{Innovations, LinearStateSpace};
use crate::layout::Layout;

/// Noise of the states that the innovations do not drive, relative to their size: next to none.
const STILL: f64 = 1e-3;
/// Prior median of the size of a correction, relative to that of its state.
const CORRECTION: f64 = 0.1;
/// Inducing inputs of corrections.
const INDUCING: usize = 40;

impl LinearStateSpace {
    /// How rows of a record become rows of the model: inputs as late as they were found to be.
    pub fn layout(&self) -> Layout {
        Layout { delay: 1 + self.shift, ..Layout::default() }
    }

    /// The model with numbers; noise levels alone are learned. With `correction` each state has an unknown function whose mean it
    /// is. Coordinates are such that the innovations drive the first states, as many as there are outputs.
    pub fn model(&self, correction: bool) -> Model {
        let turned = turned(&self.model);
        let Innovations { n_x, n_u, n_y, .. } = turned;
        let known = |values: &[f64]| values.iter().copied().map(Value::Known).collect::<Vec<Value>>();
        let (y, u) = (&self.units.y, &self.units.u);
        let size = |d: usize| turned.spread[d * n_x + d].sqrt().clamp(1e-6, 1e6);
        // From standardised inputs to those of the record.
        let in_units = |row: &[f64]| -> (Vec<f64>, f64) {
            let own: Vec<f64> = row.iter().zip(u).map(|(b, (_, scale))| b / scale).collect();
            let offset = -own.iter().zip(u).map(|(b, (center, _))| b * center).sum::<f64>();
            (own, offset)
        };
        let transition = |d: usize| {
            let (b, offset) = in_units(&turned.b[d * n_u..(d + 1) * n_u]);
            let a = known(&turned.a[d * n_x..(d + 1) * n_x]);
            let function = FunctionSpec::Linear { a, b: known(&b), offset: Value::Known(offset) };
            if !correction {
                return TransitionSpec::Parametric { function };
            }
            let sigma_f = Prior::LogNormal { median: CORRECTION * size(d), sigma: 1.0 };
            let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL).with("sigma_f", sigma_f);
            TransitionSpec::Gp { kernel, mean: function }
        };
        let driven = n_y.min(n_x);
        let noise = |d: usize| {
            let found = noise_of_state(&turned, d).max(STILL * size(d));
            ScalePrior::on_sd(match d < driven || correction {
                true => Prior::LogNormal { median: found, sigma: 1.0 },
                false => Prior::Fixed { value: found },
            })
        };
        let (mut c, mut through, mut offset, mut sensor) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (k, (center, scale)) in y.iter().enumerate() {
            let row = |values: &[f64]| values.iter().map(|value| scale * value).collect::<Vec<f64>>();
            let (d, from_inputs) = in_units(&row(&turned.d[k * n_u..(k + 1) * n_u]));
            c.push(known(&row(&turned.c[k * n_x..(k + 1) * n_x])));
            through.push(known(&d));
            offset.push(Value::Known(center + scale * turned.offset[k] + from_inputs));
            let sd = scale * turned.noise[k * n_y + k].sqrt().max(1e-6);
            sensor.push(ScalePrior::on_sd(Prior::LogNormal { median: sd, sigma: 1.0 }));
        }
        let states = (0..n_x).map(|d| StateSpec { transition: transition(d), scale: Some(size(d)) });
        let mut model = Model::with_hidden_states(n_x.max(1), n_y, n_u);
        model.states = states.collect();
        model.symmetries.clear();
        model.process_noise = ProcessNoiseSpec::Diagonal((0..n_x).map(noise).collect());
        model.sensor = SensorSpec::Gaussian {
            mean: Predictor::Linear { c, d: through, offset },
            noise: SensorNoiseSpec::Diagonal(sensor),
        };
        model.initial = initial(&turned);
        if correction {
            model.dynamics =
                DynamicsSpec::Fic { inducing: InducingSpec::Greedy(INDUCING), mode: Mode::Sampled };
        }
        model
    }
}

/// As the states of the training record were; a little more, so that it is positive definite.
fn initial(model: &Innovations) -> InitialSpec {
    let n_x = model.n_x;
    let entry = |i: usize, j: usize| {
        let more = if i == j { 1e-4 * model.spread[i * n_x + i].max(1e-8) } else { 0.0 };
        0.5 * (model.spread[i * n_x + j] + model.spread[j * n_x + i]) + more
    };
    let covariance = (0..n_x).map(|i| (0..n_x).map(|j| entry(i, j)).collect()).collect();
    InitialSpec::GaussianFull { mean: vec![0.0; n_x], covariance }
}

/// Standard deviation of K e in a state.
fn noise_of_state(model: &Innovations, d: usize) -> f64 {
    let (n_x, n_y) = (model.n_x, model.n_y);
    let kr = multiply(&model.gain, &model.noise, n_x, n_y, n_y);
    let q = multiply_transposed(&kr, &model.gain, n_x, n_y, n_x);
    q[d * n_x + d].max(0.0).sqrt()
}

/// The same model in coordinates turned so that the columns of K lie along the first axes.
fn turned(model: &Innovations) -> Innovations {
    let (n_x, n_u, n_y) = (model.n_x, model.n_u, model.n_y);
    let mut axes: Vec<Vec<f64>> = Vec::new();
    let columns = (0..n_y).map(|k| (0..n_x).map(|i| model.gain[i * n_y + k]).collect::<Vec<f64>>());
    let units = (0..n_x).map(|i| (0..n_x).map(|j| f64::from(u8::from(i == j))).collect());
    // Gram-Schmidt: the columns of K first, then whatever completes them.
    for mut axis in columns.chain(units) {
        let size = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Twice, for rounding.
        for _ in 0..2 {
            for other in &axes {
                let along: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
                axis.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let left = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
        if axes.len() < n_x && left > 1e-6 * size && left > 0.0 {
            axes.push(axis.iter().map(|x| x / left).collect());
        }
    }
    let t: Vec<f64> = axes.concat();
    if t.len() != n_x * n_x {
        return model.clone();
    }
    let sides = |m: &[f64]| multiply_transposed(&multiply(&t, m, n_x, n_x, n_x), &t, n_x, n_x, n_x);
    Innovations {
        a: sides(&model.a),
        b: multiply(&t, &model.b, n_x, n_x, n_u),
        c: multiply_transposed(&model.c, &t, n_y, n_x, n_x),
        gain: multiply(&t, &model.gain, n_x, n_x, n_y),
        spread: sides(&model.spread),
        ..model.clone()
    }
}

#[cfg(test)]
mod tests {
    use gpssm::posterior::{Initial, OnlineOptions, SimulateOptions};
    use gpssm::{
        Functions, MemorySink, Posterior, Problem, Record, Sequence, Settings, mcmc::StartAt, sample,
    };

    use super::*;
    use crate::baseline::Task;

    /// Uniform on -1 .. 1.
    fn noise() -> impl FnMut() -> f64 {
        let mut state = 5u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        }
    }

    /// The best linear model of the first 200 rows, as a fitted model of the engine.
    fn fitted(all: &Sequence) -> (LinearStateSpace, Posterior) {
        let training: Record = all.select(0..200).unwrap().into();
        let linear = LinearStateSpace::fit(&training).unwrap();
        let rows = linear.layout().apply_to(&training).unwrap();
        let problem = Problem::new(linear.model(false), &Functions::new(), rows).unwrap();
        let settings =
            Settings { chains: 1, tune: 30, draws: Some(30), start_at: StartAt::Mean, ..Settings::default() };
        let sink = MemorySink::new();
        sample(&problem, &settings, &sink, &|_| true).unwrap();
        (linear, Posterior::new(&problem, &sink.into_chains()).unwrap())
    }

    /// A resonance seen with noise, of an offset and another unit: free runs of the engine's model have the medians of the
    /// Kalman filter's, also while the start still shows.
    #[test]
    fn free_runs_are_those_of_the_kalman_filter() {
        let mut noise = noise();
        let u: Vec<f64> =
            (0..260).map(|t| 40.0 + 10.0 * f64::from(u8::from((t / 9) % 2 == 0)) + noise()).collect();
        let mut s = vec![[0.0f64; 2]];
        for t in 0..259 {
            let [a, b] = s[t];
            s.push([1.8 * a - 0.95 * b + 0.02 * (u[t] - 45.0) + 0.01 * noise(), a]);
        }
        let y: Vec<f64> = s.iter().map(|s| 300.0 + 20.0 * s[0] + 2.0 * noise()).collect();
        let all = Sequence::scalar(&y, Some(&u)).unwrap();
        let test = all.select(200..260).unwrap();
        let (linear, posterior) = fitted(&all);
        let seen = linear.layout().apply(&test).unwrap();
        let outputs: Vec<Vec<f64>> = (0..20).map(|t| seen.y(t).to_vec()).collect();
        let inputs: Vec<Vec<f64>> = (0..60).map(|t| seen.u(t).to_vec()).collect();
        let options = SimulateOptions { n_paths: 400, ..SimulateOptions::default() };
        let filter = OnlineOptions::default();
        let run = posterior.simulate_from_record(&outputs, &inputs, &options, &filter, &|_, _| true).unwrap();
        let expected = linear.predict(&test, Task::FreeRun { n_init: 20 });
        for t in 20..60 {
            let error = run.y.quantile(t, 0, 0.5) - expected[t];
            assert!(error.abs() < 1.0, "row {t}: {error}, spread of the output 20");
        }
    }

    /// Heat through three walls, measured precisely behind the last: what disturbs the first shows rows later. Predictions one row
    /// ahead follow the Kalman filter's (seen failing with 50 particles in place of a Kalman filter).
    #[test]
    fn predictions_ahead_are_those_of_the_kalman_filter() {
        let mut noise = noise();
        let u: Vec<f64> = (0..260).map(|t| f64::from(u8::from((t / 11) % 2 == 0))).collect();
        let mut s = vec![[0.0f64; 3]];
        for t in 0..259 {
            let [a, b, c] = s[t];
            s.push([0.6 * a + 0.4 * u[t] + 0.1 * noise(), 0.7 * b + 0.3 * a, 0.75 * c + 0.25 * b]);
        }
        let y: Vec<f64> = s.iter().map(|s| s[2] + 0.0005 * noise()).collect();
        let all = Sequence::scalar(&y, Some(&u)).unwrap();
        let test = all.select(200..260).unwrap();
        let (linear, posterior) = fitted(&all);
        let seen = linear.layout().apply(&test).unwrap();
        let filter = OnlineOptions::default();
        let ahead = posterior.predict_ahead(&seen, 1, 400, &Initial::Model, &filter, &|_, _| true).unwrap();
        let expected = linear.predict(&test, Task::Ahead { k: 1 });
        let square =
            |errors: Vec<f64>| (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
        let own = square((20..60).map(|t| ahead.y.mean(t - ahead.first_row, 0) - y[200 + t]).collect());
        let kalman = square((20..60).map(|t| expected[t] - y[200 + t]).collect());
        assert!(own < 1.1 * kalman, "root mean square error {own}, of the Kalman filter {kalman}");
        let states = posterior.smooth(&seen, 100, &filter).unwrap();
        let scored: f64 = posterior
            .filter(&seen, &Initial::Model, &filter, &|_, _| true)
            .unwrap()
            .log_marginal_likelihood
            .iter()
            .sum();
        assert_eq!(states.log_marginal_likelihood, scored);
    }
}
