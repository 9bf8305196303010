//! Writes the default priors and units that were chosen into the description.

use crate::model::covariance_prior::CovariancePrior;
use crate::model::kernel::{CHANGE_POINT, KernelSpec};
use crate::model::parameters::{KernelNumbers, Owner, ParameterPrior, ParameterTable, Role};
use crate::model::prior::Prior;
use crate::model::scale_prior::ScalePrior;
use crate::model::sensor::Given;
use crate::model::spec::{Model, ProcessNoiseSpec, SensorNoiseSpec, TransitionSpec};
use crate::scaling::Scaling;

/// The same model without defaults, as far as they are priors and units.
pub(super) fn fill(mut model: Model, table: &ParameterTable, scaling: &Scaling) -> Model {
    let table = Table(table);
    for (d, state) in model.states.iter_mut().enumerate() {
        if matches!(state.transition, TransitionSpec::Lag { .. }) {
            continue;
        }
        state.scale = Some(scaling.x.scale[d]);
        if let TransitionSpec::Gp { kernel, .. } = &mut state.transition {
            table.kernel(kernel, d, &mut KernelNumbers::default());
        }
    }
    match &mut model.process_noise {
        ProcessNoiseSpec::Diagonal(priors) => *priors = table.scales(&Owner::ProcessNoise, &Role::NoiseSd),
        ProcessNoiseSpec::Full(prior) => *prior = table.matrix(&Owner::ProcessNoise).or(prior.take()),
    }
    let family = model.sensor.family().map(|(family, _)| family);
    for (parameter, given) in
        family.iter().flat_map(|family| family.parameters).zip(model.sensor.parameters())
    {
        let role = Role::from(parameter);
        match given {
            Given::Noise(SensorNoiseSpec::Diagonal(priors)) | Given::Scale(priors) => {
                *priors = table.scales(&Owner::Sensor, &role);
            }
            Given::Noise(SensorNoiseSpec::Full(prior)) => {
                *prior = table.matrix(&Owner::Sensor).or(prior.take());
            }
            Given::Shape(prior) => *prior = table.scalar(&Owner::Sensor, &role),
            Given::Count(_) => {}
        }
    }
    model
}

/// Priors by what they are for.
struct Table<'a>(&'a ParameterTable);

impl Table<'_> {
    fn priors<T>(&self, owner: &Owner, role: &Role, prior: impl Fn(&ParameterPrior) -> Option<T>) -> Vec<T> {
        self.0.of(owner, role).filter_map(|(_, parameter)| prior(&parameter.prior)).collect()
    }

    fn scalars(&self, owner: &Owner, role: &Role) -> Vec<Prior> {
        self.priors(owner, role, |prior| match prior {
            ParameterPrior::Scalar(prior) => Some(prior.clone()),
            _ => None,
        })
    }

    fn scalar(&self, owner: &Owner, role: &Role) -> Option<Prior> {
        self.scalars(owner, role).pop()
    }

    fn scales(&self, owner: &Owner, role: &Role) -> Vec<ScalePrior> {
        self.priors(owner, role, |prior| match prior {
            ParameterPrior::Scale(prior) => Some(prior.clone()),
            _ => None,
        })
    }

    fn matrix(&self, owner: &Owner) -> Option<CovariancePrior> {
        let mut all = self.priors(owner, &Role::Cholesky, |prior| match prior {
            ParameterPrior::Matrix { matrix, .. } => Some(self.0.matrices[*matrix].prior.clone()),
            _ => None,
        });
        all.pop()
    }

    /// Kernels of a kind are numbered in the order in which they stand; users' kernels have no defaults.
    fn kernel(&self, kernel: &mut KernelSpec, d: usize, numbers: &mut KernelNumbers) {
        if let KernelSpec::Part(spec) = kernel {
            let owner = Owner::Kernel { state: d, part: numbers.next(spec.kind.short) };
            for parameter in spec.kind.parameters {
                let priors = self.scalars(&owner, &parameter.into());
                spec.parameters.insert(parameter.name.to_owned(), priors);
            }
        }
        if let KernelSpec::User(spec) = kernel {
            numbers.next(&spec.name);
        }
        if let KernelSpec::ChangePoint(spec) = kernel {
            let owner = Owner::Kernel { state: d, part: numbers.next(CHANGE_POINT) };
            let prior = |role: &str| self.scalar(&owner, &Role::Named(role.into()));
            (spec.location, spec.width) = (prior("location"), prior("width"));
        }
        kernel.children_mut().iter_mut().for_each(|part| self.kernel(part, d, numbers));
    }
}
