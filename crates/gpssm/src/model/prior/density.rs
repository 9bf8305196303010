//! A prior of the user's own: a log density as a formula or a function, normalised numerically.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::super::prior_error::{PriorError, require_finite};
use super::Support;
use super::table::Table;
use crate::formula::{Formula, Program, Variable};
use crate::points::Points;

/// Name of the prior as written in a configuration.
pub(super) const NAME: &str = "log_density";

/// The name of the value in formulas.
const VALUE: &str = "v";

/// The log density of a parameter, up to a constant, supplied by the user in original units.
///
/// It is called with many values at once when the model is made, and with single ones by the sampler. Minus
/// infinity where the parameter cannot lie.
pub trait PriorDensity: Send + Sync {
    /// Writes ln p(v) + constant for every value into `out`.
    fn log_density(&self, values: &[f64], out: &mut [f64]);
}

impl<F: Fn(f64) -> f64 + Send + Sync> PriorDensity for F {
    fn log_density(&self, values: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(values).for_each(|(out, v)| *out = self(*v));
    }
}

impl PriorDensity for Program {
    fn log_density(&self, values: &[f64], out: &mut [f64]) {
        let mut points = Points::new(1);
        values.iter().for_each(|v| points.push(&[*v]));
        self.evaluate(&points, &[], out);
    }
}

/// The prior whose log density is a formula or a function of the value, between `low` and `high`.
///
/// It need not be normalised. In TOML: `{ log_density = "-0.5*(log(v)/0.7)^2 - log(v)", low = 0 }`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogDensity {
    /// A formula in `v`, the value of the parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// In place of the formula: the name of a function in [`crate::Functions`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Smallest value; none by default. Zero without a largest value means: the numbers greater than zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Greatest value; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The unit in which `v`, `low` and `high` are given; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<f64>,
    /// Made at the first use.
    #[serde(skip)]
    table: OnceLock<Result<Arc<Table>, PriorError>>,
}

impl fmt::Debug for LogDensity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.formula.as_ref().or(self.function.as_ref());
        formatter.debug_tuple("LogDensity").field(&text).field(&self.low).field(&self.high).finish()
    }
}

impl PartialEq for LogDensity {
    fn eq(&self, other: &Self) -> bool {
        self.formula == other.formula
            && self.function == other.function
            && (self.low, self.high, self.unit) == (other.low, other.high, other.unit)
    }
}

fn refuse(message: impl Into<String>) -> PriorError {
    PriorError::Density { message: message.into() }
}

impl LogDensity {
    /// From a formula in `v`, with the ends of where `v` can lie.
    pub fn formula(text: &str, low: Option<f64>, high: Option<f64>) -> Self {
        let formula = Some(text.to_owned());
        Self { formula, function: None, low, high, unit: None, table: OnceLock::new() }
    }

    /// From the name of a function in [`crate::Functions`], with the ends of where `v` can lie.
    pub fn function(name: &str, low: Option<f64>, high: Option<f64>) -> Self {
        let function = Some(name.to_owned());
        Self { formula: None, function, low, high, unit: None, table: OnceLock::new() }
    }

    /// Checks the ends and, of a formula, that it is a density; a function is checked when it is attached.
    pub(super) fn validate(&self) -> Result<(), PriorError> {
        for (field, value) in [("low", self.low), ("high", self.high), ("unit", self.unit)] {
            value.map_or(Ok(()), |value| require_finite(NAME, field, value))?;
        }
        if let Some(unit) = self.unit.filter(|unit| *unit <= 0.0) {
            return Err(PriorError::OutOfRange {
                prior: NAME,
                field: "unit",
                value: unit,
                allowed: "positive",
            });
        }
        if let (Some(low), Some(high)) = (self.low, self.high)
            && (low >= high || !(high - low).is_finite())
        {
            return Err(PriorError::BadInterval { low, high });
        }
        match (&self.formula, &self.function) {
            (Some(_), None) => self.table().map(|_| ()),
            (None, Some(_)) => Ok(()),
            _ => Err(refuse("give either a formula or the name of a function")),
        }
    }

    /// Gives the name of the function a meaning; without one there is nothing to do.
    pub(crate) fn attach(
        &mut self,
        find: impl Fn(&str) -> Option<Arc<dyn PriorDensity>>,
    ) -> Result<(), PriorError> {
        let Some(name) = &self.function else { return Ok(()) };
        let density = find(name).ok_or_else(|| refuse(format!("there is no function \"{name}\"")))?;
        self.table = OnceLock::from(Table::new(density, self.low, self.high).map(Arc::new));
        self.table().map(|_| ())
    }

    /// The normalised density.
    fn table(&self) -> Result<&Table, PriorError> {
        let made = self.table.get_or_init(|| {
            let text = self.formula.as_ref().ok_or_else(|| refuse("its function is not known here"))?;
            let formula = Formula::parse(text).map_err(|error| refuse(error.to_string()))?;
            let meaning = |name: &str| match name {
                VALUE => Ok(Variable::Column(0)),
                other => Err(format!("there is no '{other}' here: '{VALUE}' is the value of the parameter")),
            };
            let program = formula.bind(meaning).map_err(|error| refuse(error.to_string()))?;
            Table::new(Arc::new(program), self.low, self.high).map(Arc::new)
        });
        made.as_deref().map_err(Clone::clone)
    }

    fn unit(&self) -> f64 {
        self.unit.unwrap_or(1.0)
    }

    pub(super) fn support(&self) -> Support {
        let unit = self.unit();
        match (self.low, self.high) {
            (None, None) => Support::Real,
            (Some(0.0), None) => Support::Positive,
            (low, high) => Support::Interval(
                low.map_or(f64::NEG_INFINITY, |low| unit * low),
                high.map_or(f64::INFINITY, |high| unit * high),
            ),
        }
    }

    /// Normalised log density inside the support; minus infinity for a density that cannot be used.
    pub(super) fn log_density(&self, value: f64) -> f64 {
        let unit = self.unit();
        let density =
            self.table().map_or(f64::NEG_INFINITY, |table| table.log_density(value / unit) - unit.ln());
        if density.is_nan() { f64::NEG_INFINITY } else { density }
    }

    /// The value below which a fraction `p` of the prior lies; NaN for a density that cannot be used.
    pub fn quantile(&self, p: f64) -> f64 {
        self.table().map_or(f64::NAN, |table| self.unit() * table.quantile(p))
    }
}
