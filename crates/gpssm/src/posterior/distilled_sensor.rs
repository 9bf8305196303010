//! Sensor and initial state of a distilled model with their numbers: all that a program without this library needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::formula::Formula;
use crate::function::ScalarFunction;
use crate::initial::BoundInitial;
use crate::model::compile::Problem;
use crate::model::names::{Meaning, Scope};
use crate::model::spec::{Model, Predictor, SensorSpec};
use crate::scaling::{Affine, Scaling};
use crate::sensor::BoundSensor;
use crate::sensor::family::GAUSSIAN;

/// How the states are seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistilledSensor {
    /// The sensor as the model describes it; its learned numbers stand in theta.
    pub description: SensorSpec,
    /// Its numbers, where it is linear with Gaussian noise.
    pub linear: Option<LinearSensor>,
    /// p(y | x, u) with numbers in place of parameters; none where it is a user's function.
    #[serde(default)]
    pub density: Option<OutputDensity>,
}

/// y = C x + D u + offset + e, e ~ N(0, R), original units, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearSensor {
    /// C, (output, state).
    pub c: Vec<f64>,
    /// D, (output, input).
    pub d: Vec<f64>,
    /// One for each output.
    pub offset: Vec<f64>,
    /// R.
    pub noise: Vec<f64>,
}

/// p(y | x, u) with numbers, original units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputDensity {
    /// Outputs are independent.
    Families(Vec<DistilledOutput>),
    /// y ~ N(eta, R).
    Gaussian {
        /// eta_k(x, u).
        predictors: Vec<DistilledPredictor>,
        /// R, row-major.
        noise: Vec<f64>,
    },
    /// The log density itself.
    LogDensity(BoundFormula),
}

/// One output with a distribution of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistilledOutput {
    /// Name of the family.
    pub family: String,
    /// Its parameters, in the order of the family's descriptor.
    pub numbers: Vec<f64>,
    /// eta(x, u).
    pub predictor: DistilledPredictor,
}

/// A scalar function of (x, u).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DistilledPredictor {
    /// weights . (x, u) + offset.
    Linear {
        /// One for each component of (x, u).
        weights: Vec<f64>,
        /// Constant term.
        offset: f64,
    },
    /// A formula.
    Formula(BoundFormula),
}

/// A formula with a meaning for each of its names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundFormula {
    /// See [`crate::formula`].
    pub text: String,
    /// What its names stand for.
    pub names: BTreeMap<String, Named>,
}

/// What a name in a formula stands for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// A state.
    State(usize),
    /// An input.
    Input(usize),
    /// An output.
    Output(usize),
    /// A number.
    Number(f64),
}

/// p(x_0), original units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DistilledInitial {
    /// N(mean, L L').
    Gaussian {
        /// Mean.
        mean: Vec<f64>,
        /// Lower factor of the covariance, row-major.
        chol: Vec<f64>,
    },
    /// Known exactly.
    Fixed(Vec<f64>),
}

impl DistilledInitial {
    /// None for a user's density.
    pub(crate) fn of(initial: &BoundInitial, units: &Affine) -> Option<Self> {
        let original =
            |x: &[f64]| -> Vec<f64> { x.iter().enumerate().map(|(d, x)| units.to_original(d, *x)).collect() };
        match initial {
            BoundInitial::Gaussian { mean, chol } => {
                let n = mean.len();
                let chol = chol.iter().enumerate().map(|(i, l)| l * units.scale[i / n]).collect();
                Some(Self::Gaussian { mean: original(mean), chol })
            }
            BoundInitial::Fixed(x) => Some(Self::Fixed(original(x))),
            BoundInitial::User { .. } => None,
        }
    }
}

impl LinearSensor {
    pub(crate) fn of(sensor: &BoundSensor, scaling: &Scaling) -> Option<Self> {
        let sensor = sensor.as_linear_gaussian()?;
        let (n_y, n_x) = (sensor.offset.len(), sensor.n_x);
        let n_z = sensor.weights.len() / n_y;
        let mut found = Self { c: vec![], d: vec![], offset: vec![], noise: vec![] };
        for k in 0..n_y {
            let row = &sensor.weights[k * n_z..(k + 1) * n_z];
            let (weights, offset) = linear_in_original_units(row, sensor.offset[k], k, scaling);
            found.c.extend(&weights[..n_x]);
            found.d.extend(&weights[n_x..]);
            found.offset.push(offset);
        }
        found.noise = covariance_in_original_units(&sensor.covariance(), &scaling.y);
        Some(found)
    }
}

fn covariance_in_original_units(covariance: &[f64], units: &Affine) -> Vec<f64> {
    let n = units.scale.len();
    covariance.iter().enumerate().map(|(i, c)| c * units.scale[i / n] * units.scale[i % n]).collect()
}

/// weights . z + offset of output `k`.
fn linear_in_original_units(weights: &[f64], offset: f64, k: usize, scaling: &Scaling) -> (Vec<f64>, f64) {
    let mut constant = scaling.y.to_original(k, offset);
    let mut found = Vec::with_capacity(weights.len());
    for (c, weight) in weights.iter().enumerate() {
        let weight = weight * scaling.y.scale[k] / scaling.z_scale(c);
        constant -= weight * scaling.z_shift(c);
        found.push(weight);
    }
    (found, constant)
}

impl DistilledSensor {
    /// The sensor of a problem at `theta`.
    pub(crate) fn of(problem: &Problem, theta: &[f64]) -> Self {
        let (model, sensor) = (problem.model(), problem.bind(theta).sensor);
        Self {
            description: model.sensor.clone(),
            linear: LinearSensor::of(&sensor, problem.scaling()),
            density: density(model, &sensor, problem.scaling()),
        }
    }
}

fn density(model: &Model, sensor: &BoundSensor, scaling: &Scaling) -> Option<OutputDensity> {
    let texts = match model.sensor.predictor() {
        Some(Predictor::Formulas(texts)) => texts.as_slice(),
        _ => &[],
    };
    let predictors = |bound: &[ScalarFunction]| -> Option<Vec<DistilledPredictor>> {
        let each = bound.iter().enumerate();
        each.map(|(k, function)| predictor(model, function, k, texts, scaling)).collect()
    };
    match sensor {
        BoundSensor::LinearGaussian(linear) => {
            let (n_y, n_z) = (linear.offset.len(), scaling.x.scale.len() + scaling.u.scale.len());
            let row = |k: usize| {
                let row = &linear.weights[k * n_z..(k + 1) * n_z];
                let (weights, offset) = linear_in_original_units(row, linear.offset[k], k, scaling);
                DistilledPredictor::Linear { weights, offset }
            };
            let noise = covariance_in_original_units(&linear.covariance(), &scaling.y);
            Some(OutputDensity::Gaussian { predictors: (0..n_y).map(row).collect(), noise })
        }
        BoundSensor::Gaussian { predictors: bound, covariance } => Some(OutputDensity::Gaussian {
            predictors: predictors(bound)?,
            noise: covariance_in_original_units(covariance, &scaling.y),
        }),
        BoundSensor::Family { predictors: bound, families } => {
            let outputs = predictors(bound)?.into_iter().zip(families).enumerate();
            let outputs = outputs.map(|(k, (predictor, family))| {
                let mut numbers = family.numbers().to_vec();
                // Other families keep the unit of their output.
                if family.name() == GAUSSIAN.name {
                    numbers[0] *= scaling.y.scale[k];
                }
                DistilledOutput { family: family.name().to_owned(), numbers, predictor }
            });
            Some(OutputDensity::Families(outputs.collect()))
        }
        BoundSensor::User(user) => match &model.sensor {
            SensorSpec::Formula { log_density, .. } => {
                Some(OutputDensity::LogDensity(bound_formula(model, log_density, &user.parameters, true)?))
            }
            _ => None,
        },
    }
}

fn predictor(
    model: &Model,
    function: &ScalarFunction,
    k: usize,
    texts: &[String],
    scaling: &Scaling,
) -> Option<DistilledPredictor> {
    let n_z = scaling.x.scale.len() + scaling.u.scale.len();
    let linear = |weights: &[f64], offset: f64| {
        let (weights, offset) = linear_in_original_units(weights, offset, k, scaling);
        Some(DistilledPredictor::Linear { weights, offset })
    };
    match function {
        ScalarFunction::Zero => linear(&vec![0.0; n_z], 0.0),
        ScalarFunction::Component(c) => {
            let mut weights = vec![0.0; n_z];
            weights[*c] = 1.0;
            linear(&weights, 0.0)
        }
        ScalarFunction::Linear { weights, offset } => linear(weights, *offset),
        ScalarFunction::User { function, .. } => {
            let formula = bound_formula(model, texts.get(k)?, &function.parameters, false)?;
            Some(DistilledPredictor::Formula(formula))
        }
    }
}

/// `parameters` are the values in the order of their first use.
fn bound_formula(model: &Model, text: &str, parameters: &[f64], outputs: bool) -> Option<BoundFormula> {
    let (formula, scope) = (Formula::parse(text).ok()?, Scope::new(model).ok()?);
    let mut names = BTreeMap::new();
    let mut parameters = parameters.iter();
    for name in formula.names() {
        let named = match scope.meaning(name, outputs).ok()? {
            Meaning::State(d) => Named::State(d),
            Meaning::Input(c) => Named::Input(c),
            Meaning::Output(k) => Named::Output(k),
            Meaning::Parameter => Named::Number(*parameters.next()?),
        };
        names.insert(name.clone(), named);
    }
    Some(BoundFormula { text: text.to_owned(), names })
}

/// Smallest and largest value of each component of (x, u), original units.
pub(crate) fn ranges<'a>(n: usize, points: impl Iterator<Item = &'a [f64]>) -> Vec<(f64, f64)> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); n];
    for point in points {
        for ((low, high), value) in ranges.iter_mut().zip(point) {
            (*low, *high) = (low.min(*value), high.max(*value));
        }
    }
    ranges
}
