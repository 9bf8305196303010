//! Formulas with places in theta for their parameters.

use std::sync::Arc;

use super::Compiler;
use super::function::CompiledFunction;
use crate::error::Error;
use crate::formula::{Formula, Program, Variable};
use crate::model::names::Meaning;
use crate::record::Record;
use crate::sensor::formula::FormulaSensor;
use crate::sensor::support::OutputSupport;

impl Compiler<'_> {
    /// A formula in states, inputs and parameters.
    pub(super) fn formula(
        &mut self,
        key: &str,
        text: &str,
        dims: &[usize],
        sensor: bool,
    ) -> Result<CompiledFunction, Error> {
        self.scope.check_parameters(self.model)?;
        let formula = Formula::parse(text).map_err(|error| Error::formula(key, error))?;
        let n_x = self.n_x();
        let mut parameters = Vec::new();
        let program = formula.bind(|name| {
            Ok(match self.scope.meaning(name, false)? {
                Meaning::State(d) => Variable::Column(d),
                Meaning::Input(c) => Variable::Column(n_x + c),
                // Outputs have no meaning here; what is left is a parameter.
                Meaning::Output(_) | Meaning::Parameter => Variable::Scalar(place(&mut parameters, name)),
            })
        });
        let program = program.map_err(|error| Error::formula(key, error))?;
        let parameters = self.user_parameters(key, &parameters, dims, sensor)?;
        Ok(CompiledFunction::User { function: Arc::new(program), parameters })
    }

    /// A sensor from its log density, and the places of its parameters.
    pub(super) fn formula_sensor(
        &mut self,
        text: &str,
        support: Option<OutputSupport>,
        record: &Record,
    ) -> Result<(FormulaSensor, Vec<usize>), Error> {
        let key = "sensor.log_density";
        self.scope.check_parameters(self.model)?;
        let formula = Formula::parse(text).map_err(|error| Error::formula(key, error))?;
        let (n_x, n_y) = (self.n_x(), self.model.n_y);
        let mut parameters = Vec::new();
        let mut seen = vec![false; n_y];
        let program = formula.bind(|name| {
            Ok(match self.scope.meaning(name, true)? {
                Meaning::State(d) => Variable::Column(d),
                Meaning::Input(c) => Variable::Column(n_x + c),
                Meaning::Output(k) => {
                    seen[k] = true;
                    Variable::Scalar(k)
                }
                Meaning::Parameter => Variable::Scalar(n_y + place(&mut parameters, name)),
            })
        });
        let program = program.map_err(|error| Error::formula(key, error))?;
        if let Some(k) = seen.iter().position(|seen| !seen) {
            let message = format!("does not depend on output y{}: it is no density of the outputs", k + 1);
            return Err(Error::model(key, message));
        }
        let drawing = match support {
            Some(support) => Some((self.drawing(&formula, support, &parameters)?, support)),
            None => None,
        };
        check_rows(record, support)?;
        let places = self.user_parameters(key, &parameters, &[], true)?;
        Ok((FormulaSensor::new(program, drawing), places))
    }

    /// The log density as a function of the output, for given z and parameters.
    fn drawing(
        &self,
        formula: &Formula,
        support: OutputSupport,
        parameters: &[String],
    ) -> Result<Program, Error> {
        let key = "sensor.support";
        if self.model.n_y != 1 {
            return Err(Error::model(key, "is possible with a single output only: take it out"));
        }
        support.validate().map_err(|message| Error::model(key, message))?;
        let (n_x, n_z) = (self.n_x(), self.n_x() + self.model.n_u);
        let program = formula.bind(|name| {
            Ok(match self.scope.meaning(name, true)? {
                Meaning::State(d) => Variable::Scalar(d),
                Meaning::Input(c) => Variable::Scalar(n_x + c),
                Meaning::Output(_) => Variable::Column(0),
                Meaning::Parameter => {
                    // Every parameter of the formula is in the list.
                    let place = parameters.iter().position(|parameter| parameter == name).unwrap_or(0);
                    Variable::Scalar(n_z + place)
                }
            })
        });
        program.map_err(|error| Error::formula(key, error))
    }
}

/// The place of a parameter in the list, where its first use enters it.
fn place(parameters: &mut Vec<String>, name: &str) -> usize {
    parameters.iter().position(|parameter| parameter == name).unwrap_or_else(|| {
        parameters.push(name.to_owned());
        parameters.len() - 1
    })
}

/// A joint density says nothing of a row with some outputs only, and a support must hold what was seen.
fn check_rows(record: &Record, support: Option<OutputSupport>) -> Result<(), Error> {
    for (s, sequence) in record.sequences().iter().enumerate() {
        for t in 0..sequence.n_rows() {
            let y = sequence.y(t);
            let missing = y.iter().filter(|y| y.is_nan()).count();
            if missing != 0 && missing != y.len() {
                let k = y.iter().position(|y| y.is_nan()).map_or(0, |k| k + 1);
                return Err(Error::data(format!(
                    "sequence {s}, row {t}: output {k} is missing and others are not: a sensor given by a log \
                     density needs all outputs of a row or none"
                )));
            }
            if let (Some(support), [y]) = (support, y)
                && !y.is_nan()
                && !support.contains(*y)
            {
                return Err(Error::data(format!(
                    "sequence {s}, row {t}: output {y} is outside of the sensor's support"
                )));
            }
        }
    }
    Ok(())
}
