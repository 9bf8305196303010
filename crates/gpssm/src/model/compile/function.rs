//! Functions with places in theta for their numbers.

use std::fmt;
use std::sync::Arc;

use super::Compiler;
use crate::error::Error;
use crate::function::{ScalarFunction, StateFunction, UserFunction};
use crate::model::parameters::{Identity, Owner, Quantity, Role, Unit};
use crate::model::spec::{FunctionSpec, Value};
use crate::scaling::Scaling;

#[derive(Clone)]
pub(super) enum CompiledFunction {
    Zero,
    Identity,
    /// One place for each component of z, and one for the offset.
    Linear {
        weights: Vec<usize>,
        offset: usize,
    },
    User {
        function: Arc<dyn StateFunction>,
        parameters: Vec<usize>,
    },
}

impl fmt::Debug for CompiledFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Zero => "Zero",
            Self::Identity => "Identity",
            Self::Linear { .. } => "Linear",
            Self::User { .. } => "User",
        })
    }
}

impl CompiledFunction {
    /// With numbers: maps internal z to (value - shift) / scale, where value is in original units.
    pub(super) fn bind(
        &self,
        theta: &[f64],
        d: usize,
        scaling: &Arc<Scaling>,
        shift: f64,
        scale: f64,
    ) -> ScalarFunction {
        match self {
            Self::Zero => ScalarFunction::Zero,
            Self::Identity => {
                let (own_shift, own_scale) = (scaling.x.shift[d], scaling.x.scale[d]);
                if own_shift == shift && own_scale == scale {
                    return ScalarFunction::Component(d);
                }
                let mut weights = vec![0.0; scaling.x.scale.len() + scaling.u.scale.len()];
                weights[d] = own_scale / scale;
                ScalarFunction::Linear { weights, offset: (own_shift - shift) / scale }
            }
            Self::Linear { weights, offset } => {
                let weights: Vec<f64> = weights.iter().map(|&place| theta[place]).collect();
                let constant: f64 = weights.iter().enumerate().map(|(c, w)| w * scaling.z_shift(c)).sum();
                ScalarFunction::Linear {
                    offset: (theta[*offset] + constant - shift) / scale,
                    weights: weights
                        .iter()
                        .enumerate()
                        .map(|(c, w)| w * scaling.z_scale(c) / scale)
                        .collect(),
                }
            }
            Self::User { function, parameters } => ScalarFunction::User {
                function: UserFunction {
                    function: Arc::clone(function),
                    parameters: parameters.iter().map(|&place| theta[place]).collect(),
                    scaling: (!scaling.is_identity_in_z()).then(|| Arc::clone(scaling)),
                },
                shift,
                scale,
            },
        }
    }
}

impl Compiler<'_> {
    /// The mean function or parametric transition of state `d`.
    pub(super) fn function(
        &mut self,
        key: &str,
        spec: &FunctionSpec,
        d: usize,
    ) -> Result<CompiledFunction, Error> {
        let key = format!("states[{d}].{key}");
        match spec {
            FunctionSpec::Zero => Ok(CompiledFunction::Zero),
            FunctionSpec::Identity => Ok(CompiledFunction::Identity),
            FunctionSpec::Linear { a, b, offset } => {
                self.linear(&key, &Owner::Mean { state: d }, Quantity::State(d), [a, b], offset)
            }
            FunctionSpec::Formula(text) => self.formula(&key, text, &[d], false),
            FunctionSpec::User(reference) => {
                let (function, parameters) = self.user_function(&key, reference, &[d], false)?;
                Ok(CompiledFunction::User { function, parameters })
            }
        }
    }

    /// a . x + b . u + offset, with its numbers in theta; `value` is what it gives.
    pub(super) fn linear(
        &mut self,
        key: &str,
        owner: &Owner,
        value: Quantity,
        [a, b]: [&[Value]; 2],
        offset: &Value,
    ) -> Result<CompiledFunction, Error> {
        let (n_x, n_u) = (self.n_x(), self.model.n_u);
        if a.len() != n_x {
            return Err(Error::model(key, format!("{} coefficients for {n_x} states", a.len())));
        }
        if !b.is_empty() && b.len() != n_u {
            return Err(Error::model(key, format!("{} coefficients for {n_u} inputs", b.len())));
        }
        let zero = Value::Known(0.0);
        let unit = Unit::of(value);
        let mut weights = Vec::with_capacity(n_x + n_u);
        for c in 0..n_x + n_u {
            let coefficient = if c < n_x { &a[c] } else { b.get(c - n_x).unwrap_or(&zero) };
            let at = Quantity::component(c, n_x);
            let identity = Identity::at(owner.clone(), Role::Coefficient, at, unit.per(at));
            weights.push(self.table.add(identity, coefficient.prior())?);
        }
        let identity = Identity::whole(owner.clone(), Role::Offset, unit);
        let offset = self.table.add(identity, offset.prior())?;
        Ok(CompiledFunction::Linear { weights, offset })
    }
}
