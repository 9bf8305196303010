//! A distilled model, checked for what can be exported.

use gpssm::posterior::{Distilled, DistilledFunction, DistilledInitial, DistilledState, SparseFunction};
use serde::{Deserialize, Serialize};

use crate::error::ExportError;
use crate::kernel::KernelExpression;
use crate::sensor::Sensor;

/// Numbers of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 64 bits.
    #[default]
    Double,
    /// 32 bits.
    Float,
}

/// How an export estimates the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Extended where noise is Gaussian and every output rises or falls with each state throughout the data, otherwise particles.
    #[default]
    Auto,
    /// A square-root extended Kalman filter.
    Extended,
    /// A particle filter of fixed size.
    Particles,
}

/// How a model is exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Prefix of all names; letters, digits and underscores.
    pub name: String,
    /// Numbers.
    pub precision: Precision,
    /// The filter.
    pub filter: Filter,
    /// Particles of a particle filter.
    pub particles: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "model".into(), precision: Precision::Double, filter: Filter::Auto, particles: 200 }
    }
}

impl Options {
    /// Refuses names that are none and filters without particles.
    pub fn check(&self) -> Result<(), ExportError> {
        check_name(&self.name)?;
        match self.particles {
            0 => Err(ExportError::option("particles", "at least one is needed")),
            _ => Ok(()),
        }
    }
}

/// One state.
#[derive(Clone, Debug)]
pub enum State {
    /// A copy of another state one step before.
    Lag(usize),
    /// A sparse Gaussian process, in internal units.
    Sparse(Box<SparseFunction>, Box<KernelExpression>),
}

/// A distilled model as expressions.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it was made from.
    pub distilled: Distilled,
    /// States.
    pub states: Vec<State>,
    /// The sensor.
    pub sensor: Sensor,
    /// Options, with the filter chosen.
    pub options: Options,
}

/// Points at which slopes of the sensor are compared.
const PROBES: usize = 500;

impl Model {
    /// Checks a distilled model; what has no counterpart outside the library is refused with the reason.
    pub fn new(distilled: &Distilled, options: &Options) -> Result<Self, ExportError> {
        DistilledFunction::new(distilled)?;
        options.check()?;
        let (n_x, n_u, n_y) = (distilled.n_x, distilled.n_u, distilled.n_y);
        let (Some(sensor), true) = (&distilled.sensor, distilled.visited.len() == n_x + n_u) else {
            return Err(ExportError::refused(
                "this file",
                "it was written before models could be exported; distil again",
            ));
        };
        let mut states = Vec::new();
        for state in &distilled.states {
            states.push(match state {
                DistilledState::Lag { of } => State::Lag(*of),
                DistilledState::Sparse(function) => {
                    let kernel = KernelExpression::new(&function.kernel, n_x + n_u)?;
                    State::Sparse(function.clone(), Box::new(kernel))
                }
                _ => return Err(ExportError::refused("a state", "its kind is not known here")),
            });
        }
        let sensor = Sensor::new(sensor, n_x, n_u, n_y)?;
        let mut options = options.clone();
        options.filter = chosen(options.filter, &sensor, &distilled.visited, n_x)?;
        Ok(Self { distilled: distilled.clone(), states, sensor, options })
    }

    /// States, inputs, outputs.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.distilled.n_x, self.distilled.n_u, self.distilled.n_y)
    }

    /// Mean and standard deviations of the first state; none for a user's density.
    pub fn initial(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let n = self.distilled.n_x;
        Some(match self.distilled.initial.as_ref()? {
            DistilledInitial::Gaussian { mean, chol } => (mean.clone(), chol.clone()),
            DistilledInitial::Fixed(x) => (x.clone(), vec![0.0; n * n]),
        })
    }
}

fn check_name(name: &str) -> Result<(), ExportError> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match starts && name.chars().all(fits) && name.len() <= 40 {
        true => Ok(()),
        false => Err(ExportError::option(
            "name",
            format!("'{name}' is no name in C: a letter, then up to 39 letters, digits and underscores"),
        )),
    }
}

fn chosen(
    filter: Filter,
    sensor: &Sensor,
    visited: &[(f64, f64)],
    n_x: usize,
) -> Result<Filter, ExportError> {
    match filter {
        Filter::Particles => Ok(filter),
        Filter::Extended if sensor.noise.is_none() => Err(ExportError::option(
            "filter",
            "an extended Kalman filter needs Gaussian noise of the sensor: use particles",
        )),
        Filter::Extended => Ok(filter),
        Filter::Auto if sensor.is_linear || (sensor.noise.is_some() && is_monotone(sensor, visited, n_x)) => {
            Ok(Filter::Extended)
        }
        Filter::Auto => Ok(Filter::Particles),
    }
}

/// Whether no output turns round along a state within the range of the data: otherwise one output has several states.
fn is_monotone(sensor: &Sensor, visited: &[(f64, f64)], n_x: usize) -> bool {
    let Some(moments) = &sensor.moments else { return false };
    let slopes: Vec<usize> = moments.jacobian.iter().flat_map(|row| row[..n_x].iter().copied()).collect();
    let mut signs = vec![(false, false); slopes.len()];
    let n_y = moments.mean.len();
    for i in 0..PROBES {
        // A lattice with steps of irrational ratios fills the box evenly.
        let place = |c: usize| ((i as f64 + 0.5) * (0.5 + ((c + 2) as f64).sqrt())).fract();
        let mut z: Vec<f64> =
            visited.iter().enumerate().map(|(c, (low, high))| low + place(c) * (high - low)).collect();
        z.extend(std::iter::repeat_n(0.0, n_y));
        for (slope, (up, down)) in sensor.graph.evaluate(&slopes, &z).into_iter().zip(&mut signs) {
            (*up, *down) = (*up || slope > 0.0, *down || slope < 0.0);
        }
    }
    signs.iter().all(|(up, down)| !(*up && *down))
}
