//! Sensors as expressions: mean and variance of the outputs with derivatives, and log densities.

use gpssm::formula::{Formula, Variable};
use gpssm::posterior::{BoundFormula, DistilledPredictor, DistilledSensor, Named, OutputDensity};

use crate::error::ExportError;
use crate::expression::{Graph, Id};

/// A family: name, names of its numbers, mean, variance and log density as formulas in eta, y and the numbers.
struct Words {
    name: &'static str,
    numbers: &'static [&'static str],
    mean: &'static str,
    variance: &'static str,
    log_density: &'static str,
}

const FAMILIES: [Words; 7] = [
    Words {
        name: "gaussian",
        numbers: &["sd"],
        mean: "eta",
        variance: "sd^2",
        log_density: "-0.5*((y - eta)/sd)^2 - log(sd) - 0.5*log(2*pi)",
    },
    Words {
        name: "student_t",
        numbers: &["scale", "dof"],
        mean: "eta",
        variance: "if(dof > 2, scale^2*dof/(dof - 2), inf)",
        log_density: "lgamma(0.5*(dof + 1)) - lgamma(0.5*dof) - 0.5*log(dof*pi) - log(scale) \
                      - 0.5*(dof + 1)*log1p(((y - eta)/scale)^2/dof)",
    },
    Words {
        name: "poisson",
        numbers: &[],
        mean: "exp(eta)",
        variance: "exp(eta)",
        log_density: "y*eta - exp(eta) - lgamma(y + 1)",
    },
    Words {
        name: "negative_binomial",
        numbers: &["size"],
        mean: "exp(eta)",
        variance: "exp(eta) + exp(eta)^2/size",
        log_density: "lgamma(y + size) - lgamma(size) - lgamma(y + 1) - size*softplus(eta - log(size)) \
                      - y*softplus(log(size) - eta)",
    },
    Words {
        name: "bernoulli",
        numbers: &[],
        mean: "logistic(eta)",
        variance: "logistic(eta)*logistic(-eta)",
        log_density: "y*eta - softplus(eta)",
    },
    Words {
        name: "binomial",
        numbers: &["trials"],
        mean: "trials*logistic(eta)",
        variance: "trials*logistic(eta)*logistic(-eta)",
        log_density: "lgamma(trials + 1) - lgamma(y + 1) - lgamma(trials - y + 1) + y*eta - trials*softplus(eta)",
    },
    Words {
        name: "stochastic_volatility",
        numbers: &[],
        mean: "0",
        variance: "exp(eta)",
        log_density: "-0.5*(log(2*pi) + eta + y^2*exp(-eta))",
    },
];

/// A sensor in original units. Variables: the components of (x, u), then the outputs.
#[derive(Clone, Debug)]
pub struct Sensor {
    /// All expressions.
    pub graph: Graph,
    /// What the outputs are centred on; none for a joint log density.
    pub moments: Option<Moments>,
    /// Covariance of Gaussian noise, row-major, where the sensor is Gaussian.
    pub noise: Option<Vec<f64>>,
    /// Whether the sensor is linear with Gaussian noise.
    pub is_linear: bool,
    /// Log density of each output, or of all together.
    pub log_density: Vec<Id>,
    /// Whether `log_density` has an entry for each output.
    pub is_independent: bool,
}

/// Mean and variance of the outputs given state and input.
#[derive(Clone, Debug)]
pub struct Moments {
    /// By output.
    pub mean: Vec<Id>,
    /// By output.
    pub variance: Vec<Id>,
    /// d mean / d (x, u), by output and component.
    pub jacobian: Vec<Vec<Id>>,
}

impl Sensor {
    /// The sensor of a distilled model; a user's function is refused.
    pub fn new(sensor: &DistilledSensor, n_x: usize, n_u: usize, n_y: usize) -> Result<Self, ExportError> {
        let Some(density) = &sensor.density else {
            let why = "it is a function of the program that made the run; give the sensor as a formula";
            return Err(ExportError::refused("the sensor", why));
        };
        let n_z = n_x + n_u;
        let mut builder = Builder { graph: Graph::default(), n_x, n_z };
        match density {
            OutputDensity::Gaussian { predictors, noise } => {
                let eta = builder.predictors(predictors)?;
                let variance = (0..n_y).map(|k| builder.graph.number(noise[k * n_y + k])).collect();
                let is_linear = predictors.iter().all(|p| matches!(p, DistilledPredictor::Linear { .. }));
                let moments = builder.moments(eta, variance)?;
                Ok(builder.finish(Some(moments), Some(noise.clone()), is_linear, Vec::new(), true))
            }
            OutputDensity::Families(outputs) => {
                let (mut mean, mut variance, mut log_density) = (Vec::new(), Vec::new(), Vec::new());
                for (k, output) in outputs.iter().enumerate() {
                    let Some(words) = FAMILIES.iter().find(|words| words.name == output.family) else {
                        let why = "no formula for it is known here";
                        return Err(ExportError::refused(format!("the family '{}'", output.family), why));
                    };
                    let eta = builder.predictor(&output.predictor)?;
                    let y = builder.graph.variable(n_z + k);
                    mean.push(builder.words(words, words.mean, &output.numbers, eta, y)?);
                    variance.push(builder.words(words, words.variance, &output.numbers, eta, y)?);
                    log_density.push(builder.words(words, words.log_density, &output.numbers, eta, y)?);
                }
                let gaussian = outputs.iter().all(|output| output.family == "gaussian");
                let noise = gaussian.then(|| {
                    let mut noise = vec![0.0; n_y * n_y];
                    outputs.iter().enumerate().for_each(|(k, output)| {
                        noise[k * n_y + k] = output.numbers[0] * output.numbers[0];
                    });
                    noise
                });
                let is_linear = outputs
                    .iter()
                    .all(|output| matches!(output.predictor, DistilledPredictor::Linear { .. }));
                let moments = builder.moments(mean, variance)?;
                Ok(builder.finish(Some(moments), noise, gaussian && is_linear, log_density, true))
            }
            OutputDensity::LogDensity(formula) => {
                let log_density = builder.formula(formula)?;
                Ok(builder.finish(None, None, false, vec![log_density], false))
            }
            _ => Err(ExportError::refused("the sensor", "its kind is not known here")),
        }
    }
}

struct Builder {
    graph: Graph,
    n_x: usize,
    n_z: usize,
}

impl Builder {
    fn predictors(&mut self, predictors: &[DistilledPredictor]) -> Result<Vec<Id>, ExportError> {
        predictors.iter().map(|predictor| self.predictor(predictor)).collect()
    }

    fn predictor(&mut self, predictor: &DistilledPredictor) -> Result<Id, ExportError> {
        match predictor {
            DistilledPredictor::Linear { weights, offset } => {
                let terms: Vec<Id> = weights
                    .iter()
                    .enumerate()
                    .map(|(c, weight)| {
                        let z = self.graph.variable(c);
                        self.graph.scale(*weight, z)
                    })
                    .collect();
                let sum = self.graph.sum(terms);
                Ok(self.graph.shift(sum, *offset))
            }
            DistilledPredictor::Formula(formula) => self.formula(formula),
        }
    }

    fn formula(&mut self, formula: &BoundFormula) -> Result<Id, ExportError> {
        let (n_x, n_z) = (self.n_x, self.n_z);
        let mut numbers = Vec::new();
        let parsed = Formula::parse(&formula.text).map_err(|error| refused(&formula.text, &error))?;
        let parts = parsed.operations(|name| {
            Ok(match formula.names.get(name) {
                Some(Named::State(d)) => Variable::Column(*d),
                Some(Named::Input(c)) => Variable::Column(n_x + c),
                Some(Named::Output(k)) => Variable::Column(n_z + k),
                Some(Named::Number(value)) => {
                    numbers.push(*value);
                    Variable::Scalar(numbers.len() - 1)
                }
                None => return Err(format!("'{name}' has no meaning in the distilled model")),
            })
        });
        let parts = parts.map_err(|error| refused(&formula.text, &error))?;
        Ok(self.graph.insert(
            &parts,
            |graph, c| graph.variable(c),
            |graph, k| graph.number(numbers.get(k).copied().unwrap_or(f64::NAN)),
        ))
    }

    /// A formula of a family at its predictor and output.
    fn words(
        &mut self,
        words: &Words,
        text: &str,
        numbers: &[f64],
        eta: Id,
        y: Id,
    ) -> Result<Id, ExportError> {
        let formula = Formula::parse(text).map_err(|error| refused(text, &error))?;
        let parts = formula.operations(|name| match name {
            "eta" => Ok(Variable::Column(0)),
            "y" => Ok(Variable::Column(1)),
            other => {
                let place = words.numbers.iter().position(|known| *known == other);
                place.map(Variable::Scalar).ok_or_else(|| format!("'{other}' is not known"))
            }
        });
        let parts = parts.map_err(|error| refused(text, &error))?;
        Ok(self.graph.insert(
            &parts,
            |_, c| if c == 0 { eta } else { y },
            |graph, k| graph.number(numbers.get(k).copied().unwrap_or(f64::NAN)),
        ))
    }

    fn moments(&mut self, mean: Vec<Id>, variance: Vec<Id>) -> Result<Moments, ExportError> {
        let mut jacobian = Vec::new();
        for &mean in &mean {
            let row: Result<Vec<Id>, _> = (0..self.n_z).map(|c| self.graph.derivative(mean, c)).collect();
            jacobian.push(row.map_err(|function| {
                let why = format!("{function} has no derivative here: write the sensor without it");
                ExportError::refused("the sensor", why)
            })?);
        }
        Ok(Moments { mean, variance, jacobian })
    }

    fn finish(
        self,
        moments: Option<Moments>,
        noise: Option<Vec<f64>>,
        is_linear: bool,
        log_density: Vec<Id>,
        is_independent: bool,
    ) -> Sensor {
        Sensor { graph: self.graph, moments, noise, is_linear, log_density, is_independent }
    }
}

fn refused(text: &str, error: &gpssm::formula::FormulaError) -> ExportError {
    ExportError::refused(format!("the formula '{text}'"), error.to_string())
}
