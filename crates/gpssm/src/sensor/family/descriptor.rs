//! What the program knows of a family: names, parameters, words and mathematics.

use std::fmt;

use rand::Rng;
use serde::Serialize;

use super::super::support::OutputSupport;

/// Most parameters of a family.
pub(crate) const MOST_PARAMETERS: usize = 2;

/// Values of a family's parameters in the order of its descriptor; places that it does not use are zero.
pub type Numbers = [f64; MOST_PARAMETERS];

/// One family of sensors. Everything that reads, writes, compiles, explains or plots sensors reads this.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Descriptor {
    /// Name in model files, on the command line and, in capitals (`student_t`: `StudentT`), in Python.
    pub name: &'static str,
    /// What the outputs are, such as "Poisson counts".
    pub summary: &'static str,
    /// The density, or how y comes about, in terms of the predictor eta and the parameters.
    pub formula: &'static str,
    /// One output in words; `{y}` is its name and `{eta}` its predictor.
    pub statement: &'static str,
    /// Title of the figure of an output and its noise-free value; `{y}` is the name of the output.
    pub figure: &'static str,
    /// Key of the predictor eta.
    pub predictor: &'static str,
    /// What the predictor is.
    pub link: Link,
    /// Parameters, at most `MOST_PARAMETERS`.
    pub parameters: &'static [FamilyParameter],
    /// The mathematics.
    #[serde(skip)]
    pub(crate) density: &'static dyn Density,
}

/// What a predictor eta is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Link {
    /// The location of y.
    Identity,
    /// The logarithm of the mean.
    Log,
    /// The log odds.
    Logit,
    /// The logarithm of the variance; the mean is zero.
    LogVariance,
}

/// One parameter of a family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FamilyParameter {
    /// Its name; in theta it is `sensor_` and this.
    pub name: &'static str,
    /// Its key in model files and Python.
    pub key: &'static str,
    /// What it is and where its value comes from.
    pub kind: ParameterKind,
}

/// What a parameter is and where its value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ParameterKind {
    /// A scale in the unit of the output, one for each output; the default prior is scaled to the data.
    Scale,
    /// A positive number without a unit, shared by all outputs.
    Shape {
        /// Prior if none is given.
        default: DefaultPrior,
    },
    /// A known positive integer, one for each output or one for all. It is no part of theta and must be given.
    Count,
}

/// Default prior of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DefaultPrior {
    /// With mean shape / rate.
    Gamma {
        /// Shape.
        shape: f64,
        /// Rate.
        rate: f64,
    },
    /// ln v ~ N(ln median, sigma^2).
    LogNormal {
        /// Median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

/// The distribution of one output y given its predictor eta.
///
/// Callers go through [`Family`](super::Family), which deals with missing and impossible outputs: here y is in the
/// support and eta is a number.
pub(crate) trait Density: fmt::Debug + Sync {
    /// Where y can lie.
    fn support(&self, numbers: Numbers) -> OutputSupport;

    /// Adds `log p(y | eta[i])` to `out[i]` for every i, by `add_each`.
    fn add_log_density(&self, numbers: Numbers, y: f64, eta: &[f64], out: &mut [f64]);

    /// First and second derivative of `log p(y | eta)` in eta.
    fn d_log_density(&self, numbers: Numbers, y: f64, eta: f64) -> (f64, f64);

    /// Draws y; `eta` is finite. Values that overflow are brought back by the caller.
    fn sample(&self, numbers: Numbers, eta: f64, rng: &mut dyn Rng) -> f64;

    /// P(Y <= y).
    fn cdf(&self, numbers: Numbers, y: f64, eta: f64) -> f64;

    /// E(Y); the centre of y where there is no mean.
    fn mean(&self, numbers: Numbers, eta: f64) -> f64;
}

/// Adds a function of every predictor to the corresponding sum; NaN and `+inf` count as `-inf`.
#[inline]
pub(crate) fn add_each(eta: &[f64], out: &mut [f64], log_density: impl Fn(f64) -> f64) {
    for (o, &e) in out.iter_mut().zip(eta) {
        let value = log_density(e);
        // One comparison sorts out both NaN and +inf.
        *o += if value < f64::INFINITY { value } else { f64::NEG_INFINITY };
    }
}
