//! Sensors with places in theta for their numbers.

use std::fmt;
use std::sync::Arc;

use super::function::CompiledFunction;
use super::{CompiledNoise, Compiler, missing};
use crate::error::Error;
use crate::function::ScalarFunction;
use crate::linalg::small;
use crate::model::covariance_prior::CovariancePrior;
use crate::model::parameters::{Identity, Owner, ParameterTable, Quantity, Role, Unit};
use crate::model::prior::Prior;
use crate::model::scale_prior::ScalePrior;
use crate::model::spec::{Predictor, SensorNoiseSpec, SensorSpec, Value};
use crate::record::Record;
use crate::scaling::Scaling;
use crate::sensor::family::Family;
use crate::sensor::linear_gaussian::{LinearGaussian, SensorNoise};
use crate::sensor::{BoundSensor, SensorDensity, UserSensor};

/// A family and the places of its parameters; scales are one for each output.
#[derive(Clone, Debug)]
enum CompiledFamily {
    StudentT { scales: Vec<usize>, dof: usize },
    Poisson,
    NegativeBinomial { size: usize },
    Bernoulli,
    StochasticVolatility,
}

impl CompiledFamily {
    fn bind(&self, theta: &[f64], k: usize) -> Family {
        match self {
            Self::StudentT { scales, dof } => Family::StudentT { scale: theta[scales[k]], dof: theta[*dof] },
            Self::Poisson => Family::Poisson,
            Self::NegativeBinomial { size } => Family::NegativeBinomial { size: theta[*size] },
            Self::Bernoulli => Family::Bernoulli,
            Self::StochasticVolatility => Family::StochasticVolatility,
        }
    }
}

#[derive(Clone)]
enum Kind {
    /// Gaussian; `linear` if the mean is C x + D u + offset.
    Gaussian {
        predictors: Vec<CompiledFunction>,
        noise: CompiledNoise,
        linear: bool,
    },
    Family {
        predictors: Vec<CompiledFunction>,
        family: CompiledFamily,
    },
    User {
        sensor: Arc<dyn SensorDensity>,
        parameters: Vec<usize>,
    },
}

#[derive(Clone)]
pub(crate) struct CompiledSensor(Kind);

impl fmt::Debug for CompiledSensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &self.0 {
            Kind::Gaussian { .. } => "Gaussian",
            Kind::Family { .. } => "Family",
            Kind::User { .. } => "User",
        })
    }
}

impl CompiledSensor {
    /// The places of the noise of a Gaussian sensor.
    pub(crate) fn gaussian_noise(&self) -> Option<&CompiledNoise> {
        match &self.0 {
            Kind::Gaussian { noise, .. } => Some(noise),
            _ => None,
        }
    }

    /// With numbers, in internal units.
    pub(super) fn bind(&self, theta: &[f64], table: &ParameterTable, scaling: &Arc<Scaling>) -> BoundSensor {
        let bind = |predictors: &[CompiledFunction]| -> Vec<ScalarFunction> {
            let bound = predictors.iter().enumerate();
            bound.map(|(k, f)| f.bind(theta, k, scaling, scaling.y.shift[k], scaling.y.scale[k])).collect()
        };
        match &self.0 {
            Kind::Gaussian { predictors, noise, linear } => {
                let noise = bind_noise(noise, theta, table, &scaling.y.scale);
                let predictors = bind(predictors);
                match (linear, noise) {
                    (true, noise) => {
                        BoundSensor::LinearGaussian(linear_gaussian(&predictors, noise, scaling))
                    }
                    (false, SensorNoise::Diagonal(variances)) => {
                        let families =
                            variances.iter().map(|variance| Family::Gaussian { sd: variance.sqrt() });
                        BoundSensor::Family { predictors, families: families.collect() }
                    }
                    (false, SensorNoise::Full(covariance)) => {
                        BoundSensor::Gaussian { predictors, covariance }
                    }
                }
            }
            Kind::Family { predictors, family } => BoundSensor::Family {
                families: (0..predictors.len()).map(|k| family.bind(theta, k)).collect(),
                predictors: bind(predictors),
            },
            Kind::User { sensor, parameters } => BoundSensor::User(UserSensor {
                sensor: Arc::clone(sensor),
                parameters: parameters.iter().map(|&place| theta[place]).collect(),
                scaling: (!scaling.is_identity_in_z()).then(|| Arc::clone(scaling)),
            }),
        }
    }
}

/// R in internal units.
fn bind_noise(noise: &CompiledNoise, theta: &[f64], table: &ParameterTable, scale: &[f64]) -> SensorNoise {
    match noise {
        CompiledNoise::Diagonal(places) => {
            SensorNoise::Diagonal(places.iter().zip(scale).map(|(&k, s)| (theta[k] / s).powi(2)).collect())
        }
        CompiledNoise::Full(matrix) => {
            let n = scale.len();
            let covariance = small::covariance(&table.matrix_factor(*matrix, theta), n);
            SensorNoise::Full((0..n * n).map(|i| covariance[i] / scale[i / n] / scale[i % n]).collect())
        }
    }
}

fn linear_gaussian(predictors: &[ScalarFunction], noise: SensorNoise, scaling: &Scaling) -> LinearGaussian {
    let n_x = scaling.x.scale.len();
    let n_z = n_x + scaling.u.scale.len();
    let mut weights = vec![0.0; predictors.len() * n_z];
    let mut offset = vec![0.0; predictors.len()];
    for (k, predictor) in predictors.iter().enumerate() {
        match predictor {
            ScalarFunction::Component(c) => weights[k * n_z + c] = 1.0,
            ScalarFunction::Linear { weights: row, offset: constant } => {
                weights[k * n_z..(k + 1) * n_z].copy_from_slice(row);
                offset[k] = *constant;
            }
            // A linear-Gaussian sensor has no other predictors.
            ScalarFunction::Zero | ScalarFunction::User { .. } => {}
        }
    }
    LinearGaussian { weights, offset, noise, n_x }
}

impl Compiler<'_> {
    pub(super) fn sensor(&mut self, record: &Record) -> Result<CompiledSensor, Error> {
        let model = self.model;
        let kind = match &model.sensor {
            SensorSpec::Gaussian { mean, noise } => Kind::Gaussian {
                predictors: self.predictors(mean)?,
                noise: self.sensor_noise(noise, record)?,
                linear: model.sensor.is_linear_gaussian(),
            },
            SensorSpec::StudentT { mean, scale, dof } => {
                let predictors = self.predictors(mean)?;
                let scales = self.sensor_scales("sensor.scale", &Role::NoiseScale, scale, record)?;
                let dof = dof.clone().unwrap_or(Prior::Gamma { shape: 2.0, rate: 0.1 });
                let identity = Identity::whole(Owner::Sensor, Role::DegreesOfFreedom, Unit::NONE);
                let dof = self.table.add_positive(identity, dof)?;
                Kind::Family { predictors, family: CompiledFamily::StudentT { scales, dof } }
            }
            SensorSpec::Poisson { log_rate } => {
                Kind::Family { predictors: self.predictors(log_rate)?, family: CompiledFamily::Poisson }
            }
            SensorSpec::NegativeBinomial { log_mean, size } => {
                let predictors = self.predictors(log_mean)?;
                let size = size.clone().unwrap_or(Prior::LogNormal { median: 10.0, sigma: 1.5 });
                let identity = Identity::whole(Owner::Sensor, Role::Size, Unit::NONE);
                let size = self.table.add_positive(identity, size)?;
                Kind::Family { predictors, family: CompiledFamily::NegativeBinomial { size } }
            }
            SensorSpec::Bernoulli { logit } => {
                Kind::Family { predictors: self.predictors(logit)?, family: CompiledFamily::Bernoulli }
            }
            SensorSpec::StochasticVolatility { log_variance } => Kind::Family {
                predictors: self.predictors(log_variance)?,
                family: CompiledFamily::StochasticVolatility,
            },
            SensorSpec::Formula { log_density, support } => {
                let (sensor, parameters) = self.formula_sensor(log_density, *support, record)?;
                Kind::User { sensor: Arc::new(sensor), parameters }
            }
            SensorSpec::User(reference) => {
                let sensor = self.functions.sensors.get(&reference.name).cloned();
                let sensor = sensor.ok_or_else(|| missing("sensor", "sensor", &reference.name))?;
                let parameters = self.user_parameters("sensor", &reference.parameters, &[], true)?;
                Kind::User { sensor, parameters }
            }
        };
        let sensor = CompiledSensor(kind);
        self.check_outputs(&sensor, record)?;
        Ok(sensor)
    }

    fn predictors(&mut self, predictor: &Predictor) -> Result<Vec<CompiledFunction>, Error> {
        let (n_x, n_y, key) = (self.n_x(), self.model.n_y, "sensor");
        match predictor {
            Predictor::States if n_y > n_x => Err(Error::model(
                key,
                format!("{n_y} outputs but only {n_x} states to show: give c, formulas or functions"),
            )),
            Predictor::States => Ok(vec![CompiledFunction::Identity; n_y]),
            Predictor::Linear { c, d, offset } => {
                for (name, rows) in [("c", c.len()), ("d", d.len()), ("offset", offset.len())] {
                    if rows != n_y && (name == "c" || rows != 0) {
                        return Err(Error::model(
                            format!("sensor.{name}"),
                            format!("{rows} rows for {n_y} outputs"),
                        ));
                    }
                }
                let rows = (0..n_y).map(|k| {
                    let d = d.get(k).map_or(&[][..], Vec::as_slice);
                    let offset = offset.get(k).unwrap_or(&Value::Known(0.0));
                    self.linear(
                        key,
                        &Owner::SensorMean { output: k },
                        Quantity::Output(k),
                        [&c[k], d],
                        offset,
                    )
                });
                rows.collect()
            }
            Predictor::Formulas(formulas) => {
                if formulas.len() != n_y {
                    return Err(Error::model(key, format!("{} formulas for {n_y} outputs", formulas.len())));
                }
                let compiled = formulas.iter().enumerate();
                compiled
                    .map(|(k, text)| self.formula(&format!("{key}.formulas[{k}]"), text, &[], true))
                    .collect()
            }
            Predictor::Functions(functions) => {
                if functions.len() != n_y {
                    return Err(Error::model(
                        key,
                        format!("{} functions for {n_y} outputs", functions.len()),
                    ));
                }
                let compiled = functions.iter().map(|reference| {
                    let (function, parameters) = self.user_function(key, reference, &[], true)?;
                    Ok(CompiledFunction::User { function, parameters })
                });
                compiled.collect()
            }
        }
    }

    /// Typical sizes of the outputs.
    fn output_units(&self, record: &Record) -> Vec<f64> {
        (0..self.model.n_y).map(|k| super::units::output_size(record, k).unwrap_or(1.0)).collect()
    }

    /// One scale of the noise for each output.
    fn sensor_scales(
        &mut self,
        key: &str,
        role: &Role,
        given: &[ScalePrior],
        record: &Record,
    ) -> Result<Vec<usize>, Error> {
        let unit = self.output_units(record);
        let wrong = |message| Error::model(key, message);
        let priors = Self::one_for_each(given, unit.len(), |k| Self::default_scale(unit[k]), wrong)?;
        let place = |(k, prior)| {
            let output = Quantity::Output(k);
            let identity = Identity::at(Owner::Sensor, role.clone(), output, Unit::of(output));
            self.table.add_scale(identity, prior)
        };
        priors.into_iter().enumerate().map(place).collect()
    }

    fn sensor_noise(&mut self, spec: &SensorNoiseSpec, record: &Record) -> Result<CompiledNoise, Error> {
        let n_y = self.model.n_y;
        let unit = self.output_units(record);
        match spec {
            SensorNoiseSpec::Diagonal(given) => {
                let places = self.sensor_scales("sensor.noise", &Role::NoiseSd, given, record)?;
                Ok(CompiledNoise::Diagonal(places))
            }
            SensorNoiseSpec::Full(given) => {
                // The mean of this inverse Wishart is its scale matrix.
                let prior = given.clone().unwrap_or_else(|| CovariancePrior::InverseWishart {
                    dof: n_y as f64 + 2.0,
                    scale: (0..n_y)
                        .map(|k| {
                            (0..n_y).map(|j| if j == k { (0.1 * unit[k]).powi(2) } else { 0.0 }).collect()
                        })
                        .collect(),
                });
                let of: Vec<Quantity> = (0..n_y).map(Quantity::Output).collect();
                Ok(CompiledNoise::Full(self.table.add_matrix(&Owner::Sensor, prior, &of)?))
            }
        }
    }

    /// Counts must be counts, and so on; names sequence, row and output of the first that is not.
    fn check_outputs(&self, sensor: &CompiledSensor, record: &Record) -> Result<(), Error> {
        let Kind::Family { family, .. } = &sensor.0 else { return Ok(()) };
        let family = match family {
            CompiledFamily::StudentT { .. } => return Ok(()),
            CompiledFamily::NegativeBinomial { .. } => Family::NegativeBinomial { size: 1.0 },
            other => other.bind(&[], 0),
        };
        for (s, sequence) in record.sequences().iter().enumerate() {
            for t in 0..sequence.n_rows() {
                for (k, &y) in sequence.y(t).iter().enumerate() {
                    family.check(y).map_err(|error| {
                        Error::data(format!("sequence {s}, row {t}, output {}: {error}", k + 1))
                    })?;
                }
            }
        }
        Ok(())
    }
}
