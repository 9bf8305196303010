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
use crate::model::sensor::Given;
use crate::model::spec::{Predictor, SensorNoiseSpec, SensorSpec, Value};
use crate::record::Record;
use crate::scaling::Scaling;
use crate::sensor::family::descriptor::MOST_PARAMETERS;
use crate::sensor::family::{DefaultPrior, Descriptor, Family, FamilyParameter, ParameterKind};
use crate::sensor::linear_gaussian::{LinearGaussian, SensorNoise};
use crate::sensor::{BoundSensor, SensorDensity, UserSensor};

/// Where the values of a parameter of a family come from.
#[derive(Clone, Debug)]
enum Source {
    /// One place in theta for all outputs.
    Shared(usize),
    /// A place in theta for each output.
    Each(Vec<usize>),
    /// Known, for each output.
    Known(Vec<u32>),
}

/// A family and where its numbers come from.
#[derive(Clone, Debug)]
struct CompiledFamily {
    descriptor: &'static Descriptor,
    sources: Vec<Source>,
}

impl CompiledFamily {
    /// The family of output `k`.
    fn bind(&self, theta: &[f64], k: usize) -> Family {
        let mut numbers = [0.0; MOST_PARAMETERS];
        for (number, source) in numbers.iter_mut().zip(&self.sources) {
            *number = match source {
                Source::Shared(place) => theta[*place],
                Source::Each(places) => theta[places[k]],
                Source::Known(values) => f64::from(values[k]),
            };
        }
        Family::bind(self.descriptor, numbers)
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
                        let families = variances.iter().map(|variance| Family::gaussian(variance.sqrt()));
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
            families => self.family(families, record)?,
        };
        Ok(CompiledSensor(kind))
    }

    /// A family other than the Gaussian: places for its predictors, then for its parameters.
    fn family(&mut self, spec: &SensorSpec, record: &Record) -> Result<Kind, Error> {
        let (descriptor, predictor) =
            spec.family().ok_or_else(|| Error::model("sensor", "is of no known family"))?;
        let predictors = self.predictors(predictor)?;
        let mut spec = spec.clone();
        let given = descriptor.parameters.iter().zip(spec.parameters());
        let sources = given.map(|(parameter, given)| self.source(parameter, given, record));
        let sources = sources.collect::<Result<_, _>>()?;
        self.check_outputs(record)?;
        Ok(Kind::Family { predictors, family: CompiledFamily { descriptor, sources } })
    }

    /// Places in theta for a parameter of a family, or its known values.
    fn source(
        &mut self,
        parameter: &FamilyParameter,
        given: Given,
        record: &Record,
    ) -> Result<Source, Error> {
        let key = format!("sensor.{}", parameter.key);
        let role = Role::from(parameter);
        match given {
            Given::Scale(priors) => Ok(Source::Each(self.sensor_scales(&key, &role, priors, record)?)),
            Given::Shape(prior) => {
                let prior = prior.clone().or_else(|| default_prior(parameter.kind));
                let prior = prior.ok_or_else(|| Error::model(key, "needs a prior"))?;
                let identity = Identity::whole(Owner::Sensor, role, Unit::NONE);
                Ok(Source::Shared(self.table.add_positive(identity, prior)?))
            }
            Given::Count(counts) => {
                if counts.is_empty() || counts.contains(&0) {
                    return Err(Error::model(key, "must be a positive integer, or one for each output"));
                }
                let wrong = |message| Error::model(&key, message);
                Ok(Source::Known(Self::one_for_each(counts, self.model.n_y, |_| 1, wrong)?))
            }
            Given::Noise(_) => Err(Error::model(key, "belongs to the Gaussian family alone")),
        }
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
    fn check_outputs(&self, record: &Record) -> Result<(), Error> {
        let families = self.model.sensor.families(self.model.n_y).unwrap_or_default();
        for (s, sequence) in record.sequences().iter().enumerate() {
            for t in 0..sequence.n_rows() {
                for (k, (&y, family)) in sequence.y(t).iter().zip(&families).enumerate() {
                    family.check(y).map_err(|error| {
                        Error::data(format!("sequence {s}, row {t}, output {}: {error}", k + 1))
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The default prior of a parameter that has one of its own.
fn default_prior(kind: ParameterKind) -> Option<Prior> {
    match kind {
        ParameterKind::Shape { default: DefaultPrior::Gamma { shape, rate } } => {
            Some(Prior::Gamma { shape, rate })
        }
        ParameterKind::Shape { default: DefaultPrior::LogNormal { median, sigma } } => {
            Some(Prior::LogNormal { median, sigma })
        }
        ParameterKind::Scale | ParameterKind::Count => None,
    }
}
