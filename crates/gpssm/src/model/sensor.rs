//! How a model says that its states are seen.

use serde::{Deserialize, Serialize};

use super::covariance_prior::CovariancePrior;
use super::prior::Prior;
use super::scale_prior::ScalePrior;
use super::spec::{FunctionRef, Value};
use crate::identity::Role;
use crate::sensor::family::descriptor::MOST_PARAMETERS;
use crate::sensor::family::{
    BERNOULLI, BINOMIAL, Descriptor, Family, FamilyParameter, GAUSSIAN, NEGATIVE_BINOMIAL, POISSON,
    STOCHASTIC_VOLATILITY, STUDENT_T,
};
use crate::sensor::support::OutputSupport;

/// Prior of the sensor noise covariance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SensorNoiseSpec {
    /// Independent components: one prior for all, one for each, or none for the default.
    Diagonal(Vec<ScalePrior>),
    /// A full matrix; without a prior inverse Wishart with default scales.
    Full(Option<CovariancePrior>),
}

impl Default for SensorNoiseSpec {
    fn default() -> Self {
        Self::Diagonal(Vec::new())
    }
}

/// What each output's distribution is centred on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Predictor {
    /// Output k shows state k.
    #[default]
    States,
    /// C x + D u + offset.
    Linear {
        /// One row for each output, one column for each state.
        c: Vec<Vec<Value>>,
        /// One row for each output, one column for each input; empty for zero.
        #[serde(default)]
        d: Vec<Vec<Value>>,
        /// One for each output; empty for zero.
        #[serde(default)]
        offset: Vec<Value>,
    },
    /// One formula in states, inputs and parameters for each output; see [`crate::formula`]. A mean that is
    /// linear is better given as `linear`: the filter can then use it to guide its particles.
    Formulas(Vec<String>),
    /// One user function for each output.
    Functions(Vec<FunctionRef>),
}

/// p(y | x, u): families with a predictor, or the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SensorSpec {
    /// y ~ N(mean, R).
    Gaussian {
        /// Mean of each output.
        #[serde(default)]
        mean: Predictor,
        /// R.
        #[serde(default)]
        noise: SensorNoiseSpec,
    },
    /// y = mean + scale * t, t Student's t: robust against outliers.
    StudentT {
        /// Location of each output.
        #[serde(default)]
        mean: Predictor,
        /// Scales: one prior for all, one for each output, or none for the default.
        #[serde(default)]
        scale: Vec<ScalePrior>,
        /// Degrees of freedom, shared by all outputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dof: Option<Prior>,
    },
    /// Counts with rate exp(log_rate).
    Poisson {
        /// Log of the rate of each output.
        #[serde(default)]
        log_rate: Predictor,
    },
    /// Counts with mean exp(log_mean) and variance mean + mean^2 / size.
    NegativeBinomial {
        /// Log of the mean of each output.
        #[serde(default)]
        log_mean: Predictor,
        /// Size, shared by all outputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Prior>,
    },
    /// 0 or 1 with log odds `logit`.
    Bernoulli {
        /// Log odds of each output.
        #[serde(default)]
        logit: Predictor,
    },
    /// Successes in a known number of trials, with log odds `logit`.
    Binomial {
        /// Log odds of each output.
        #[serde(default)]
        logit: Predictor,
        /// Number of trials: one for all outputs or one for each.
        trials: Vec<u32>,
    },
    /// y ~ N(0, exp(log_variance)).
    StochasticVolatility {
        /// Log variance of each output.
        #[serde(default)]
        log_variance: Predictor,
    },
    /// A formula for log p(y | x, u).
    Formula {
        /// In outputs, states, inputs and parameters; see [`crate::formula`]. Terms that depend neither on
        /// states nor on parameters can be left out. Rows must have all outputs or none.
        log_density: String,
        /// Where the output can lie. Needed only to draw outputs in simulations, and possible only with a
        /// single output; see [`FormulaSensor`](crate::sensor::formula::FormulaSensor).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        support: Option<OutputSupport>,
    },
    /// A user sensor that is registered under this name.
    User(FunctionRef),
}

impl Default for SensorSpec {
    fn default() -> Self {
        Self::Gaussian { mean: Predictor::default(), noise: SensorNoiseSpec::default() }
    }
}

/// What a model gives for one parameter of its sensor's family.
#[derive(Debug)]
pub enum Given<'a> {
    /// The covariance of Gaussian noise.
    Noise(&'a mut SensorNoiseSpec),
    /// Scales: one prior for all outputs, one for each, or none for the default.
    Scale(&'a mut Vec<ScalePrior>),
    /// A number shared by all outputs; none for the default prior.
    Shape(&'a mut Option<Prior>),
    /// Known integers: one for all outputs or one for each.
    Count(&'a mut Vec<u32>),
}

impl SensorSpec {
    /// The family and its predictor, unless the sensor is the user's own.
    pub fn family(&self) -> Option<(&'static Descriptor, &Predictor)> {
        Some(match self {
            Self::Gaussian { mean, .. } => (&GAUSSIAN, mean),
            Self::StudentT { mean, .. } => (&STUDENT_T, mean),
            Self::Poisson { log_rate } => (&POISSON, log_rate),
            Self::NegativeBinomial { log_mean, .. } => (&NEGATIVE_BINOMIAL, log_mean),
            Self::Bernoulli { logit } => (&BERNOULLI, logit),
            Self::Binomial { logit, .. } => (&BINOMIAL, logit),
            Self::StochasticVolatility { log_variance } => (&STOCHASTIC_VOLATILITY, log_variance),
            Self::Formula { .. } | Self::User(_) => return None,
        })
    }

    /// What is given for the parameters of the family, in its order.
    pub fn parameters(&mut self) -> Vec<Given<'_>> {
        match self {
            Self::Gaussian { noise, .. } => vec![Given::Noise(noise)],
            Self::StudentT { scale, dof, .. } => vec![Given::Scale(scale), Given::Shape(dof)],
            Self::NegativeBinomial { size, .. } => vec![Given::Shape(size)],
            Self::Binomial { trials, .. } => vec![Given::Count(trials)],
            Self::Poisson { .. }
            | Self::Bernoulli { .. }
            | Self::StochasticVolatility { .. }
            | Self::Formula { .. }
            | Self::User(_) => vec![],
        }
    }

    /// The family of each output with what is known before learning, and 1 for what is not: enough to check outputs.
    /// None if the sensor is the user's own.
    pub fn families(&self, n_y: usize) -> Option<Vec<Family>> {
        let (family, _) = self.family()?;
        let mut own = self.clone();
        let given = own.parameters();
        let family_of = |k: usize| {
            let mut numbers = [1.0; MOST_PARAMETERS];
            for (number, given) in numbers.iter_mut().zip(&given) {
                if let Given::Count(counts) = given {
                    *number = counts.get(k).or(counts.first()).map_or(1.0, |n| f64::from(*n));
                }
            }
            Family::bind(family, numbers)
        };
        Some((0..n_y).map(family_of).collect())
    }

    /// What the outputs are centred on, unless the sensor is the user's own.
    pub fn predictor(&self) -> Option<&Predictor> {
        self.family().map(|(_, predictor)| predictor)
    }

    /// Whether y = C x + D u + offset + e with Gaussian e.
    pub fn is_linear_gaussian(&self) -> bool {
        matches!(self, Self::Gaussian { mean: Predictor::States | Predictor::Linear { .. }, .. })
    }
}

impl From<&FamilyParameter> for Role {
    /// Noise has the same role in states and outputs; other parameters of sensors go by their names.
    fn from(parameter: &FamilyParameter) -> Self {
        match parameter.name {
            "sd" => Self::NoiseSd,
            name => Self::Named(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensor::family::{FAMILIES, ParameterKind};

    /// A description with the keys that the family must be given.
    fn shortest(family: &Descriptor) -> String {
        let counts = family.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Count);
        let keys: Vec<String> = counts.map(|parameter| format!("{} = [3]", parameter.key)).collect();
        format!("sensor.{} = {{ {} }}", family.name, keys.join(", "))
    }

    #[derive(Deserialize)]
    struct Holder {
        sensor: SensorSpec,
    }

    /// Every family can be written in a model, with the keys and kinds of parameters that its descriptor names.
    #[test]
    fn every_family_has_its_description() {
        for family in FAMILIES {
            let mut sensor = toml::from_str::<Holder>(&shortest(family)).unwrap().sensor;
            assert_eq!(sensor.family().unwrap().0.name, family.name);
            assert_eq!(sensor.predictor(), Some(&Predictor::States));
            let given = sensor.parameters();
            assert_eq!(given.len(), family.parameters.len(), "{}", family.name);
            for (parameter, given) in family.parameters.iter().zip(given) {
                let fits = match given {
                    Given::Noise(_) | Given::Scale(_) => parameter.kind == ParameterKind::Scale,
                    Given::Shape(_) => matches!(parameter.kind, ParameterKind::Shape { .. }),
                    Given::Count(counts) => parameter.kind == ParameterKind::Count && *counts == [3],
                };
                assert!(fits, "{}.{}", family.name, parameter.key);
            }
            let with = |key: &str| {
                let text = shortest(family).replace(" }", &format!(", {key} = 1 }}")).replace("{ ,", "{ ");
                toml::from_str::<Holder>(&text)
                    .map(|_| ())
                    .err()
                    .map_or_else(String::new, |error| error.to_string())
            };
            for key in [family.predictor].into_iter().chain(family.parameters.iter().map(|p| p.key)) {
                assert!(!with(key).contains("unexpected keys"), "{}: {key}", family.name);
            }
            assert!(with("bogus").contains("unexpected keys"), "{}", with("bogus"));
        }
    }
}
