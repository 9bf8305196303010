//! Free runs: states and outputs under new inputs, with one function held along each path.

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::ensemble::Ensemble;
use super::function::FunctionPosterior;
use super::observe::{check_noise_free, outputs};
use super::online::OnlineOptions;
use super::paths::PathBatch;
use super::warning::Warning;
use super::{Posterior, Stream, allocate, stream_for};
use crate::error::Error;
use crate::mcmc::start::outputs::{path_on_outputs, shown_outputs};
use crate::model::compile::Problem;
use crate::points::Points;
use crate::record::Sequence;

/// Where paths start; all numbers in original units.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Initial {
    /// From p(x_0) of the model.
    #[default]
    Model,
    /// From the last state of a training sequence, each path from that of its own draw: the record goes on.
    LastTraining {
        /// Which sequence, from 0.
        sequence: usize,
    },
    /// From a known state.
    Given(Vec<f64>),
}

/// How a free run is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulateOptions {
    /// Paths, spread over the draws by their weights.
    pub n_paths: usize,
    /// Whether v_t is added to the states.
    pub process_noise: bool,
    /// Whether outputs are drawn from the sensor; otherwise they are its mean.
    pub sensor_noise: bool,
    /// Seed.
    pub seed: u64,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self { n_paths: 1000, process_noise: true, sensor_noise: true, seed: 1 }
    }
}

/// Simulated paths, original units.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// States (path, t, d).
    pub x: Ensemble,
    /// Outputs (path, t, k).
    pub y: Ensemble,
    /// The draw that each path belongs to.
    pub draws: Vec<usize>,
    /// What to know.
    pub warnings: Vec<Warning>,
}

/// Room for the own rows of a batch of paths, in numbers.
const BATCH_NUMBERS: usize = 8 << 20;

impl Posterior {
    /// Paths under the inputs u_0, u_1, ..., one row each (empty rows if the model has no inputs); row 0 is the
    /// initial state.
    ///
    /// Cost for each path of T steps given n training pairs and an exact Gaussian process: T n^2 / 2 + T^2 n / 2 + T^3 / 6
    /// multiply-adds for each state; with M weights T M. `on_progress(done, total)` counts paths and stops
    /// the run by returning false; what is finished is returned.
    pub fn simulate(
        &self,
        inputs: &[Vec<f64>],
        initial: &Initial,
        options: &SimulateOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Simulation, Error> {
        self.check_inputs(inputs)?;
        self.check_initial(initial)?;
        let draws = allocate(&self.weights(), options.n_paths);
        let start = |path: usize, rng: &mut ChaCha8Rng| -> Result<Start, Error> {
            let x = self.initial_state(initial, draws[path], rng)?;
            Ok(Start { prefix: x, weights: None })
        };
        self.run(inputs, &draws, &start, options, on_progress)
    }

    /// Paths that first follow the outputs `y` of the first rows of the record and then run free.
    ///
    /// States of these rows are drawn from the smoothing distribution under the learned model, together with the
    /// draws (reweighted by the evidence of these rows), and each path's function is conditioned on them. Output rows of
    /// the beginning are simulated like the others; scores drop them.
    pub fn simulate_from_record(
        &self,
        y: &[Vec<f64>],
        inputs: &[Vec<f64>],
        options: &SimulateOptions,
        filter: &OnlineOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Simulation, Error> {
        self.check_inputs(inputs)?;
        if y.is_empty() || y.len() > inputs.len() {
            return Err(Error::data(format!(
                "{} rows of outputs to start from, but the record has {} rows",
                y.len(),
                inputs.len()
            )));
        }
        if let Some(shown) = self.exact_outputs()
            && y.iter().flatten().all(|y| !y.is_nan())
        {
            return self.simulate_from_outputs(y, inputs, &shown, options, on_progress);
        }
        let head = if self.n_u() > 0 { inputs[..y.len()].to_vec() } else { Vec::new() };
        let head = Sequence::new(y.to_vec(), head)?;
        let smoothed = self.smooth_functions(&head, options.n_paths, filter)?;
        // Paths of one draw side by side.
        let mut order: Vec<usize> = (0..smoothed.paths.len()).collect();
        order.sort_by_key(|&i| smoothed.paths[i].draw);
        let draws: Vec<usize> = order.iter().map(|&i| smoothed.paths[i].draw).collect();
        let start = |path: usize, _: &mut ChaCha8Rng| -> Result<Start, Error> {
            let path = &smoothed.paths[order[path]];
            Ok(Start { prefix: path.x.clone(), weights: Some(path.weights.clone()) })
        };
        let mut simulation = self.run(inputs, &draws, &start, options, on_progress)?;
        simulation.warnings.extend(smoothed.warnings);
        Ok(simulation)
    }

    /// Where each state stands in the outputs, if every path of every draw is the outputs themselves.
    pub(crate) fn exact_outputs(&self) -> Option<Vec<(usize, usize)>> {
        let shown = shown_outputs(self.problem())?;
        let paths = path_on_outputs(self.problem(), &shown);
        let on_outputs = |draw: &super::WeightedDraw| {
            let on = |(path, expected): (&Vec<f64>, &Vec<f64>)| {
                let size = expected.iter().fold(0.0f64, |size, x| size.max(x.abs()));
                path.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-9 * size)
            };
            draw.paths.iter().zip(&paths).all(on)
        };
        self.draws().iter().all(on_outputs).then_some(shown)
    }

    /// Paths of a model whose states are the outputs: they go on from the last of the rows that were seen. Before the first
    /// row stands the first output.
    fn simulate_from_outputs(
        &self,
        y: &[Vec<f64>],
        inputs: &[Vec<f64>],
        shown: &[(usize, usize)],
        options: &SimulateOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Simulation, Error> {
        let draws = allocate(&self.weights(), options.n_paths);
        let rows =
            (0..y.len()).flat_map(|t| shown.iter().map(move |&(k, rows)| y[t.saturating_sub(rows)][k]));
        let prefix = self.problem().path_to_internal(&rows.collect::<Vec<f64>>());
        let start = |_: usize, _: &mut ChaCha8Rng| -> Result<Start, Error> {
            Ok(Start { prefix: prefix.clone(), weights: None })
        };
        self.run(inputs, &draws, &start, options, on_progress)
    }

    fn run(
        &self,
        inputs: &[Vec<f64>],
        draws: &[usize],
        start: &dyn Fn(usize, &mut ChaCha8Rng) -> Result<Start, Error>,
        options: &SimulateOptions,
        on_progress: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Simulation, Error> {
        if options.n_paths == 0 {
            return Err(Error::settings("n_paths", "at least one path is needed"));
        }
        let n_train = self.problem().record().n_transitions();
        let own = (inputs.len() * self.n_x()).max(1) * (n_train * self.n_x() + inputs.len() / 2).max(1);
        let batch_size = (BATCH_NUMBERS / own).clamp(1, 32);
        let mut collected = Collected::default();
        let mut from = 0;
        while from < draws.len() {
            let same = draws[from..].iter().take_while(|draw| **draw == draws[from]).count();
            let to = from + same.min(batch_size);
            if !on_progress(from, draws.len()) {
                break;
            }
            let function = self.function(draws[from])?;
            let mut rngs: Vec<ChaCha8Rng> =
                (from..to).map(|path| stream_for(options.seed, Stream::Simulate, path as u64)).collect();
            let starts = (from..to).zip(&mut rngs).map(|(path, rng)| start(path, rng));
            let starts = starts.collect::<Result<Vec<_>, _>>()?;
            simulate_batch(self.problem(), function, &starts, inputs, options, &mut rngs, &mut |x, y| {
                collected.take(x, y, draws[from]);
            })?;
            from = to;
        }
        on_progress(from, draws.len());
        let (n_x, n_y) = (self.n_x(), self.n_y());
        let mut simulation = collected.into_simulation(inputs.len(), n_x, n_y)?;
        let mut z = Points::new(n_x + self.n_u());
        for i in 0..simulation.x.n_samples() {
            for (x, u) in simulation.x.sample(i).chunks_exact(n_x).zip(inputs) {
                z.push_parts(x, u);
            }
        }
        simulation.warnings.extend(self.coverage_warnings(&z));
        Ok(simulation)
    }

    pub(crate) fn check_inputs(&self, inputs: &[Vec<f64>]) -> Result<(), Error> {
        check_inputs(self.problem(), inputs)
    }

    pub(crate) fn check_initial(&self, initial: &Initial) -> Result<(), Error> {
        let n_x = self.n_x();
        match initial {
            Initial::Model => Ok(()),
            Initial::LastTraining { sequence } if *sequence < self.problem().sequences().len() => Ok(()),
            Initial::LastTraining { sequence } => Err(Error::settings(
                "initial",
                format!(
                    "there is no training sequence {sequence}: they are 0 .. {}",
                    self.problem().sequences().len() - 1
                ),
            )),
            Initial::Given(x) if x.len() == n_x && x.iter().all(|x| x.is_finite()) => Ok(()),
            Initial::Given(x) => {
                Err(Error::settings("initial", format!("{} numbers given for {n_x} finite states", x.len())))
            }
        }
    }

    /// An initial state for a path of draw `j`, internal units.
    pub(crate) fn initial_state(
        &self,
        initial: &Initial,
        j: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<f64>, Error> {
        let n_x = self.n_x();
        Ok(match initial {
            Initial::Model => {
                let mut x = vec![0.0; n_x];
                self.function(j)?.space.initial.sample(rng, &mut x);
                x
            }
            Initial::LastTraining { sequence } => {
                let path = &self.draws()[j].paths[*sequence];
                self.problem().path_to_internal(&path[path.len() - n_x..])
            }
            Initial::Given(x) => self.problem().path_to_internal(x),
        })
    }
}

pub(super) fn check_inputs(problem: &Problem, inputs: &[Vec<f64>]) -> Result<(), Error> {
    let n_u = problem.model().n_u;
    if inputs.is_empty() {
        return Err(Error::data("a simulation needs at least one row of inputs (empty rows without inputs)"));
    }
    for (t, u) in inputs.iter().enumerate() {
        if u.len() != n_u {
            return Err(Error::data(format!(
                "input row {t} has {} values, the model has {n_u} inputs",
                u.len()
            )));
        }
        if let Some(c) = u.iter().position(|u| !u.is_finite()) {
            return Err(Error::data(format!("input {} in row {t} is {}, not a finite number", c + 1, u[c])));
        }
    }
    Ok(())
}

/// States that a path follows before it runs free, internal units, and the weights of its function.
struct Start {
    prefix: Vec<f64>,
    weights: Option<Vec<Vec<f64>>>,
}

/// Paths given one draw; `take` gets states and outputs of each path in original units.
fn simulate_batch(
    problem: &Problem,
    function: &FunctionPosterior,
    starts: &[Start],
    inputs: &[Vec<f64>],
    options: &SimulateOptions,
    rngs: &mut [ChaCha8Rng],
    take: &mut dyn FnMut(Vec<f64>, Vec<f64>),
) -> Result<(), Error> {
    let scaling = problem.scaling();
    let (n_x, n_y, n) = (problem.n_x(), problem.model().n_y, starts.len());
    let sensor = &function.space.sensor;
    if !options.sensor_noise {
        check_noise_free(sensor)?;
    }
    let mut batch = PathBatch::new(function, rngs);
    for (i, start) in starts.iter().enumerate() {
        if let Some(weights) = &start.weights {
            batch.set_weights(i, weights);
        }
    }
    let followed = |t: usize| -> Option<Vec<f64>> {
        let rows = starts.iter().map(|start| start.prefix.get(t * n_x..(t + 1) * n_x));
        rows.collect::<Option<Vec<_>>>().map(|rows| rows.concat())
    };
    let (mut xs, mut ys) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    let mut x = followed(0).unwrap_or_default();
    let mut next = vec![0.0; n * n_x];
    for (t, u) in inputs.iter().enumerate() {
        let u: Vec<f64> = u.iter().enumerate().map(|(c, u)| scaling.u.to_internal(c, *u)).collect();
        let y = outputs(sensor, scaling, &x, &u, options.sensor_noise, rngs);
        for i in 0..n {
            xs[i].extend_from_slice(&x[i * n_x..(i + 1) * n_x]);
            ys[i].extend_from_slice(&y[i * n_y..(i + 1) * n_y]);
        }
        if t + 1 < inputs.len() {
            match followed(t + 1) {
                // Nothing is learned of f where the past lies before the record.
                Some(given) if t < problem.model().presample => next.copy_from_slice(&given),
                given => batch.step(&x, &u, options.process_noise, given.as_deref(), rngs, &mut next)?,
            }
            x.copy_from_slice(&next);
        }
    }
    for (x, y) in xs.into_iter().zip(ys) {
        take(problem.path_to_original(&x), y);
    }
    Ok(())
}

/// Finished paths; those that overflowed are counted.
#[derive(Default)]
pub(super) struct Collected {
    x: Vec<f64>,
    y: Vec<f64>,
    draws: Vec<usize>,
    diverged: usize,
}

impl Collected {
    pub(super) fn take(&mut self, x: Vec<f64>, y: Vec<f64>, draw: usize) {
        if x.iter().chain(&y).all(|value| value.is_finite()) {
            self.x.extend(x);
            self.y.extend(y);
            self.draws.push(draw);
        } else {
            self.diverged += 1;
        }
    }

    pub(super) fn into_simulation(self, n_rows: usize, n_x: usize, n_y: usize) -> Result<Simulation, Error> {
        let n = self.draws.len();
        if n == 0 && self.diverged > 0 {
            return Err(Error::data(format!("all {} simulated paths overflowed", self.diverged)));
        }
        let of = n + self.diverged;
        let warnings = (self.diverged > 0)
            .then_some(Warning::Diverged { n_paths: self.diverged, of })
            .into_iter()
            .collect();
        Ok(Simulation {
            x: Ensemble::new(n, n_rows, n_x, self.x),
            y: Ensemble::new(n, n_rows, n_y, self.y),
            draws: self.draws,
            warnings,
        })
    }
}
