//! The table of all hyper-parameters theta, in original units.

use serde::{Deserialize, Serialize};

use super::covariance_prior::CovariancePrior;
use super::functions::Functions;
use super::prior::{Prior, Support};
use super::scale_prior::ScalePrior;
use crate::error::Error;
use crate::kernel::descriptor::KernelParameter;

pub use crate::identity::{
    Axis, Identity, Index, KernelNumbers, KernelPart, Names, Owner, Quantity, Role, Unit,
};

impl From<&KernelParameter> for Role {
    fn from(parameter: &KernelParameter) -> Self {
        use crate::kernel::descriptor::Role as InKernel;
        let role = match parameter.role {
            InKernel::Amplitude => Self::Amplitude,
            InKernel::Level => Self::LevelSd,
            InKernel::LengthScale => Self::LengthScale,
            InKernel::Period => Self::Period,
            InKernel::Slope => Self::SlopeSd,
            InKernel::Shape => Self::Shape,
        };
        if role.symbol() == parameter.name { role } else { Self::Named(parameter.name.to_owned()) }
    }
}

/// Prior of one entry of theta.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ParameterPrior {
    /// Its own.
    Scalar(Prior),
    /// A standard deviation, with the prior on it or on its square.
    Scale(ScalePrior),
    /// Entry (row, column) of the Cholesky factor of a covariance matrix.
    Matrix {
        /// Index of the matrix in [`ParameterTable::matrices`].
        matrix: usize,
        /// Row.
        row: usize,
        /// Column.
        column: usize,
    },
}

/// Coordinate in which an entry is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coordinate {
    /// The value itself.
    Identity,
    /// Its logarithm.
    Log,
}

/// One entry of theta.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// What it is.
    pub identity: Identity,
    /// Its name in every text, made from what it is.
    pub name: String,
    /// Its prior.
    pub prior: ParameterPrior,
    /// How it is sampled.
    pub coordinate: Coordinate,
    /// State dimensions whose transition it enters.
    pub dims: Vec<usize>,
    /// Whether it enters the sensor.
    pub sensor: bool,
    /// Whether it enters a mean function or parametric transition.
    pub function: bool,
}

/// A covariance matrix whose Cholesky factor is part of theta, row by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixParameter {
    /// Prior of the covariance.
    pub prior: CovariancePrior,
    /// Order.
    pub n: usize,
    /// Index of its first entry in theta.
    pub first: usize,
}

/// All of theta.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParameterTable {
    /// Entries.
    pub parameters: Vec<Parameter>,
    /// Covariance matrices among them.
    pub matrices: Vec<MatrixParameter>,
    /// Names of states, inputs and outputs, which names of entries are made from.
    pub names: Names,
}

impl ParameterTable {
    pub(crate) fn new(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// Number of entries, fixed ones included.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Index of a parameter.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }

    /// Entries of a role, by index in theta and in its order; all indices of the role.
    pub fn of<'a>(
        &'a self,
        owner: &'a Owner,
        role: &'a Role,
    ) -> impl Iterator<Item = (usize, &'a Parameter)> {
        let entries = self.parameters.iter().enumerate();
        entries.filter(move |(_, entry)| entry.identity.owner == *owner && entry.identity.role == *role)
    }

    /// Index of an entry that is what this says.
    pub fn place(&self, identity: &Identity) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.identity == *identity)
    }

    pub(crate) fn add(&mut self, identity: Identity, prior: Prior) -> Result<usize, Error> {
        prior.validate().map_err(|error| Error::parameter(&identity, &self.names, error.to_string()))?;
        let coordinate =
            if prior.support() == Support::Positive { Coordinate::Log } else { Coordinate::Identity };
        self.push(identity, ParameterPrior::Scalar(prior), coordinate)
    }

    /// A parameter that must be positive: kernel scales, degrees of freedom.
    pub(crate) fn add_positive(&mut self, identity: Identity, prior: Prior) -> Result<usize, Error> {
        let allowed = match prior.support() {
            Support::Positive => true,
            Support::Interval(low, _) => low >= 0.0,
            Support::Real => false,
        };
        let fixed = prior.fixed_value();
        if fixed.map_or(!allowed, |value| value <= 0.0) {
            return Err(Error::parameter(
                &identity,
                &self.names,
                "must be positive: give it a prior on positive numbers",
            ));
        }
        self.add(identity, prior)
    }

    /// The scale of noise.
    pub(crate) fn add_scale(&mut self, identity: Identity, prior: ScalePrior) -> Result<usize, Error> {
        prior.validate().map_err(|error| Error::parameter(&identity, &self.names, error.to_string()))?;
        if prior.fixed_sd().is_some_and(|sd| sd <= 0.0) {
            return Err(Error::parameter(
                &identity,
                &self.names,
                "a noise of zero is not possible: the path would have no density",
            ));
        }
        self.push(identity, ParameterPrior::Scale(prior), Coordinate::Log)
    }

    /// The Cholesky factor of the covariance of noise in these quantities.
    pub(crate) fn add_matrix(
        &mut self,
        owner: &Owner,
        prior: CovariancePrior,
        of: &[Quantity],
    ) -> Result<usize, Error> {
        let n = of.len();
        let factor = Identity::whole(owner.clone(), Role::Cholesky, Unit::NONE);
        prior.validate(n).map_err(|error| Error::parameter(&factor, &self.names, error.to_string()))?;
        let (first, matrix) = (self.len(), self.matrices.len());
        for row in 0..n {
            for column in 0..=row {
                let coordinate = if row == column { Coordinate::Log } else { Coordinate::Identity };
                let index = Index::Entry(of[row], of[column]);
                let identity = Identity { index, unit: Unit::of(of[row]), ..factor.clone() };
                let k = self.push(identity, ParameterPrior::Matrix { matrix, row, column }, coordinate)?;
                // Every entry enters the transitions of all states.
                self.parameters[k].dims = of.iter().filter_map(Quantity::state).collect();
            }
        }
        self.matrices.push(MatrixParameter { prior, n, first });
        Ok(matrix)
    }

    /// One more entry. Where it enters follows from what it is; users' own are entered by those who use them.
    fn push(
        &mut self,
        identity: Identity,
        prior: ParameterPrior,
        coordinate: Coordinate,
    ) -> Result<usize, Error> {
        let name = identity.name(&self.names);
        if self.index(&name).is_some() {
            return Err(Error::parameter(&identity, &self.names, "two parameters have this name"));
        }
        let dims = match (&identity.owner, identity.index) {
            (Owner::Kernel { state, .. } | Owner::Mean { state }, _) => vec![*state],
            (Owner::ProcessNoise, Index::At(Quantity::State(d))) => vec![d],
            _ => Vec::new(),
        };
        let sensor = matches!(identity.owner, Owner::Sensor | Owner::SensorMean { .. });
        let function = matches!(identity.owner, Owner::Mean { .. });
        self.parameters.push(Parameter { identity, name, prior, coordinate, dims, sensor, function });
        Ok(self.len() - 1)
    }

    /// Gives the names of users' densities their meaning.
    pub(crate) fn attach(&mut self, functions: &Functions) -> Result<(), Error> {
        for parameter in &mut self.parameters {
            let prior = match &mut parameter.prior {
                ParameterPrior::Scalar(prior) => prior,
                ParameterPrior::Scale(scale) => &mut scale.prior,
                ParameterPrior::Matrix { .. } => continue,
            };
            let attached = prior.attach(functions);
            attached
                .map_err(|error| Error::parameter(&parameter.identity, &self.names, error.to_string()))?;
        }
        for matrix in &mut self.matrices {
            if let CovariancePrior::Lkj { sd, .. } = &mut matrix.prior {
                for scale in sd {
                    let attached = scale.prior.attach(functions);
                    attached.map_err(|error| Error::model("covariance", error.to_string()))?;
                }
            }
        }
        Ok(())
    }

    /// The value of an entry that is known.
    pub fn fixed_value(&self, k: usize) -> Option<f64> {
        match &self.parameters[k].prior {
            ParameterPrior::Scalar(prior) => prior.fixed_value(),
            ParameterPrior::Scale(prior) => prior.fixed_sd(),
            ParameterPrior::Matrix { .. } => None,
        }
    }

    /// Whether an entry is known.
    pub fn is_fixed(&self, k: usize) -> bool {
        self.fixed_value(k).is_some()
    }

    /// Row-major lower Cholesky factor of a matrix parameter.
    pub fn matrix_factor(&self, matrix: usize, theta: &[f64]) -> Vec<f64> {
        let MatrixParameter { n, first, .. } = self.matrices[matrix];
        let mut chol = vec![0.0; n * n];
        let mut k = first;
        for row in 0..n {
            for column in 0..=row {
                chol[row * n + column] = theta[k];
                k += 1;
            }
        }
        chol
    }

    /// Log prior of entry `k` in its own coordinate, as far as it depends on that entry.
    pub(crate) fn log_prior(&self, k: usize, theta: &[f64]) -> f64 {
        let value = theta[k];
        match &self.parameters[k].prior {
            ParameterPrior::Scalar(prior) => {
                let jacobian =
                    if self.parameters[k].coordinate == Coordinate::Log { value.ln() } else { 0.0 };
                prior.log_density(value) + jacobian
            }
            ParameterPrior::Scale(prior) => prior.log_density_of_sd(value) + value.ln(),
            ParameterPrior::Matrix { matrix, .. } => {
                let MatrixParameter { prior, n, .. } = &self.matrices[*matrix];
                let chol = self.matrix_factor(*matrix, theta);
                prior.log_density(&chol, *n) + CovariancePrior::log_jacobian_log_cholesky(&chol, *n)
            }
        }
    }

    /// Places of the learned entries.
    pub(crate) fn learned(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&k| !self.is_fixed(k))
    }

    /// Coordinates of the learned entries.
    pub(crate) fn learned_coordinates(&self, theta: &[f64]) -> Vec<f64> {
        self.learned().map(|k| self.coordinate_of(k, theta[k])).collect()
    }

    /// Log prior of all learned entries in their coordinates.
    pub(crate) fn log_prior_of_coordinates(&self, theta: &[f64]) -> f64 {
        // The prior of a matrix is counted once, with its first entry.
        let counted = |k: &usize| match &self.parameters[*k].prior {
            ParameterPrior::Matrix { matrix, .. } => self.matrices[*matrix].first == *k,
            _ => !self.is_fixed(*k),
        };
        (0..self.len()).filter(counted).map(|k| self.log_prior(k, theta)).sum()
    }

    /// log p(theta) of the learned entries, in original units.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        self.log_densities(theta).iter().sum()
    }

    /// Log prior density of every entry, original units: zero for entries that are known; the density of a matrix stands at
    /// its first entry.
    pub fn log_densities(&self, theta: &[f64]) -> Vec<f64> {
        let entry = |k: usize| match &self.parameters[k].prior {
            _ if self.is_fixed(k) => 0.0,
            ParameterPrior::Scalar(prior) => prior.log_density(theta[k]),
            ParameterPrior::Scale(prior) => prior.log_density_of_sd(theta[k]),
            ParameterPrior::Matrix { .. } => 0.0,
        };
        let mut found: Vec<f64> = (0..self.len()).map(entry).collect();
        for (m, matrix) in self.matrices.iter().enumerate() {
            found[matrix.first] += matrix.prior.log_density(&self.matrix_factor(m, theta), matrix.n);
        }
        found
    }

    /// The coordinate of entry `k`.
    pub(crate) fn coordinate_of(&self, k: usize, value: f64) -> f64 {
        match self.parameters[k].coordinate {
            Coordinate::Identity => value,
            Coordinate::Log => value.ln(),
        }
    }

    /// The value of entry `k` from its coordinate.
    pub(crate) fn value_at(&self, k: usize, coordinate: f64) -> f64 {
        match self.parameters[k].coordinate {
            Coordinate::Identity => coordinate,
            Coordinate::Log => coordinate.exp(),
        }
    }

    /// Draws theta from its prior.
    pub fn sample<R: rand::Rng + ?Sized>(&self, rng: &mut R) -> Result<Vec<f64>, Error> {
        let mut theta: Vec<f64> = self
            .parameters
            .iter()
            .map(|parameter| match &parameter.prior {
                ParameterPrior::Scalar(prior) => prior.sample(rng),
                ParameterPrior::Scale(prior) => prior.sample_sd(rng),
                ParameterPrior::Matrix { .. } => 0.0,
            })
            .collect();
        for matrix in &self.matrices {
            let n = matrix.n;
            let chol =
                matrix.prior.sample(rng, n).map_err(|error| Error::model("covariance", error.to_string()))?;
            let mut k = matrix.first;
            for row in 0..n {
                for column in 0..=row {
                    theta[k] = chol[row * n + column];
                    k += 1;
                }
            }
        }
        Ok(theta)
    }
}
