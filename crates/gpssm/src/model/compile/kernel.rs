//! Kernels with places in theta for their numbers.

use std::sync::Arc;

use super::{Compiler, missing};
use crate::error::Error;
use crate::kernel::descriptor::{KernelParameter, Role as KernelRole, Unit as KernelUnit};
use crate::kernel::{Descriptor, InUnits, Kernel, Kind, Part, UserKernel};
use crate::model::functions::Functions;
use crate::model::kernel::{Active, CHANGE_POINT, ChangePointSpec, KernelSpec, PartSpec, UserKernelSpec};
use crate::model::names::Scope;
use crate::model::parameters::{
    Identity, Index, KernelNumbers, Owner, Parameter, ParameterPrior, ParameterTable, Quantity, Role, Unit,
};
use crate::model::prior::Prior;
use crate::model::spec::Model;
use crate::scaling::Scaling;

#[derive(Clone, Debug)]
pub(super) enum CompiledKernel {
    Part { kind: &'static Descriptor, components: Vec<usize>, places: Vec<usize>, scale: Scale },
    User { kind: Kind, components: Vec<usize>, places: Vec<usize> },
    Sum(Vec<CompiledKernel>),
    Product(Vec<CompiledKernel>),
    Scaled(f64, Box<CompiledKernel>),
    Power(Box<CompiledKernel>, usize),
    ChangePoint { component: usize, places: [usize; 2], kernels: Box<[CompiledKernel; 2]> },
    Odd(Box<CompiledKernel>),
}

/// The scale of a kernel's values. In a product only the first factor carries the unit of the state, and in a power each
/// factor carries a root of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scale {
    /// The state's squared, or its n-th root.
    State { root: u32 },
    /// No unit; by default one.
    One,
}

impl Scale {
    /// The unit of amplitudes, from the state's.
    fn unit(self, state: f64) -> f64 {
        match self {
            Self::State { root: 1 } => state,
            Self::State { root } => state.powf(1.0 / f64::from(root)),
            Self::One => 1.0,
        }
    }
}

impl CompiledKernel {
    /// With numbers, in internal units; `unit` is the size of the state's internal unit.
    pub(super) fn bind(&self, theta: &[f64], scaling: &Scaling, unit: f64) -> Kernel {
        let all = |parts: &[Self]| parts.iter().map(|part| part.bind(theta, scaling, unit)).collect();
        match self {
            Self::Part { kind, components, places, scale } => {
                let state = scale.unit(unit);
                let number = |((parameter, i), &place): ((&KernelParameter, usize), &usize)| {
                    let component = components.get(i).map_or(1.0, |&c| scaling.z_scale(c));
                    parameter.unit.to_internal(theta[place], state, component)
                };
                let numbers = kind.numbers(components.len()).zip(places).map(number).collect();
                Kernel::new(kind, components.clone(), numbers)
            }
            Self::User { kind, components, places } => Kernel::Part(Part {
                kind: kind.clone(),
                components: components.clone(),
                numbers: places.iter().map(|&place| theta[place]).collect(),
            }),
            Self::Sum(parts) => Kernel::Sum(all(parts)),
            Self::Product(parts) => Kernel::Product(all(parts)),
            Self::Scaled(factor, kernel) => kernel.bind(theta, scaling, unit).scaled(*factor),
            Self::Power(kernel, exponent) => {
                Kernel::Product(vec![kernel.bind(theta, scaling, unit); *exponent])
            }
            Self::ChangePoint { component: c, places: [location, width], kernels } => {
                let [before, after] = kernels.each_ref().map(|kernel| kernel.bind(theta, scaling, unit));
                let location = (theta[*location] - scaling.z_shift(*c)) / scaling.z_scale(*c);
                Kernel::change_point(*c, location, theta[*width] / scaling.z_scale(*c), before, after)
            }
            Self::Odd(kernel) => kernel.bind(theta, scaling, unit).odd(),
        }
    }
}

impl KernelSpec {
    /// The kernel with numbers, for `n_x` states and `n_u` inputs, if all its hyper-parameters are fixed.
    pub fn with_numbers(&self, n_x: usize, n_u: usize, functions: &Functions) -> Result<Kernel, Error> {
        if matches!(self, Self::Sum(parts) if parts.is_empty()) {
            return Ok(Kernel::zero());
        }
        let model = Model::observed(n_x, n_u);
        let scaling = Arc::new(Scaling::identity(n_x, n_u, n_x));
        let (table, scope) = (ParameterTable::new(model.all_names()), Scope::new(&model)?);
        let mut compiler = Compiler { model: &model, functions, scaling: Arc::clone(&scaling), table, scope };
        let kernel = compiler.kernel(self, 0)?;
        let number = |parameter: &Parameter| match &parameter.prior {
            ParameterPrior::Scalar(prior) if prior.is_fixed() => Ok(prior.fixed_value().unwrap_or(1.0)),
            _ => Err(Error::parameter(&parameter.identity, &compiler.table.names, "a number is needed here")),
        };
        let theta = compiler.table.parameters.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        Ok(kernel.bind(&theta, &scaling, 1.0))
    }
}

impl Compiler<'_> {
    pub(super) fn kernel(&mut self, spec: &KernelSpec, d: usize) -> Result<CompiledKernel, Error> {
        self.kernel_part(spec, d, &mut KernelNumbers::default(), Scale::State { root: 1 })
    }

    fn kernel_part(
        &mut self,
        spec: &KernelSpec,
        d: usize,
        numbers: &mut KernelNumbers,
        scale: Scale,
    ) -> Result<CompiledKernel, Error> {
        let wrong =
            |part: &str, message: &str| Err(Error::model(format!("states[{d}].kernel.{part}"), message));
        Ok(match spec {
            KernelSpec::Part(part) => self.table_kernel(part, d, numbers, scale)?,
            KernelSpec::User(kernel) => self.user_kernel(kernel, d, numbers, scale)?,
            KernelSpec::Sum(parts) if parts.is_empty() => return wrong("sum", "needs at least one part"),
            KernelSpec::Product(parts) if parts.is_empty() => {
                return wrong("product", "needs at least one part");
            }
            KernelSpec::Product(_) | KernelSpec::Power(_) | KernelSpec::ChangePoint(_) if spec.has_odd() => {
                return wrong(
                    "product",
                    "an odd kernel cannot be a factor: take the odd part of the product",
                );
            }
            KernelSpec::Odd(_) if spec.user().is_some() || spec.has_change_point() => {
                return wrong(
                    "odd",
                    "the odd part of a user's kernel or of a change point is not known: write the odd kernel itself",
                );
            }
            KernelSpec::Scaled(scaled) if !(scaled.factor > 0.0 && scaled.factor.is_finite()) => {
                return wrong("scaled", "the factor of a kernel must be positive and finite");
            }
            KernelSpec::Power(power) if power.exponent == 0 || power.exponent > LARGEST_EXPONENT => {
                return wrong("power", &format!("the exponent of a kernel must be 1 to {LARGEST_EXPONENT}"));
            }
            KernelSpec::Sum(parts) => CompiledKernel::Sum(
                parts
                    .iter()
                    .map(|part| self.kernel_part(part, d, numbers, scale))
                    .collect::<Result<_, _>>()?,
            ),
            KernelSpec::Product(parts) => {
                let scales = std::iter::once(scale).chain(std::iter::repeat(Scale::One));
                let factors =
                    parts.iter().zip(scales).map(|(part, scale)| self.kernel_part(part, d, numbers, scale));
                CompiledKernel::Product(factors.collect::<Result<_, _>>()?)
            }
            KernelSpec::Scaled(scaled) => CompiledKernel::Scaled(
                scaled.factor,
                Box::new(self.kernel_part(&scaled.kernel, d, numbers, scale)?),
            ),
            KernelSpec::Power(power) => {
                let scale = match scale {
                    Scale::State { root } => Scale::State { root: root * power.exponent },
                    Scale::One => Scale::One,
                };
                let kernel = self.kernel_part(&power.kernel, d, numbers, scale)?;
                CompiledKernel::Power(Box::new(kernel), power.exponent as usize)
            }
            KernelSpec::ChangePoint(change) => self.change_point(change, d, numbers, scale)?,
            KernelSpec::Odd(kernel) => {
                CompiledKernel::Odd(Box::new(self.kernel_part(kernel, d, numbers, scale)?))
            }
        })
    }

    fn table_kernel(
        &mut self,
        spec: &PartSpec,
        d: usize,
        numbers: &mut KernelNumbers,
        scale: Scale,
    ) -> Result<CompiledKernel, Error> {
        let kind = spec.kind;
        let owner = Owner::Kernel { state: d, part: numbers.next(kind.short) };
        let whole = |role: Role| Identity::whole(owner.clone(), role, Unit::NONE);
        let known = |name: &&String| kind.parameters.iter().any(|parameter| parameter.name == **name);
        if let Some(name) = spec.parameters.keys().find(|name| !known(name)) {
            return Err(Error::parameter(
                &whole(Role::Named(name.clone())),
                &self.table.names,
                "the kernel has no such hyper-parameter",
            ));
        }
        let components = if kind.has_components() { self.components(&spec.active, d)? } else { Vec::new() };
        let mut places = Vec::with_capacity(kind.n_numbers(components.len()));
        for parameter in kind.parameters {
            let given = spec.parameters.get(parameter.name).map_or(&[][..], Vec::as_slice);
            let n = if parameter.each { components.len() } else { 1 };
            let whole = whole(parameter.into());
            let default = |i: usize| default_prior(parameter, &components, i, &self.scaling, d, scale);
            let wrong = |message| Error::parameter(&whole, &self.table.names, message);
            for (i, prior) in Self::one_for_each(given, n, default, wrong)?.into_iter().enumerate() {
                let at = components.get(i).map(|&c| Quantity::component(c, self.n_x()));
                let identity = Identity {
                    index: at.filter(|_| parameter.each).map_or(Index::Whole, Index::At),
                    unit: unit(parameter.unit, at, d, scale),
                    ..whole.clone()
                };
                places.push(self.table.add_positive(identity, prior)?);
            }
        }
        Ok(CompiledKernel::Part { kind, components, places, scale })
    }

    fn user_kernel(
        &mut self,
        spec: &UserKernelSpec,
        d: usize,
        numbers: &mut KernelNumbers,
        scale: Scale,
    ) -> Result<CompiledKernel, Error> {
        let key = format!("states[{d}].kernel.user");
        let (names, function) = self
            .functions
            .kernels
            .get(&spec.name)
            .cloned()
            .ok_or_else(|| missing(&key, "kernel", &spec.name))?;
        if let Some(name) = spec.parameters.keys().find(|name| !names.contains(name)) {
            return Err(missing(&key, "parameter of this kernel", name));
        }
        let owner = Owner::Kernel { state: d, part: numbers.next(&spec.name) };
        let components = self.components(&spec.active, d)?;
        let mut places = Vec::with_capacity(names.len());
        for name in &names {
            let identity = Identity::whole(owner.clone(), Role::Named(name.clone()), Unit::NONE);
            let prior = spec.parameters.get(name).cloned();
            let prior =
                prior.ok_or_else(|| Error::parameter(&identity, &self.table.names, "needs a prior"))?;
            places.push(self.table.add(identity, prior)?);
        }
        let unit = scale.unit(self.scaling.x.scale[d]);
        let values =
            InUnits { function, scaling: Some(Arc::clone(&self.scaling)), variance_unit: unit * unit };
        let kernel = UserKernel { name: spec.name.as_str().into(), covariance: Arc::new(values) };
        Ok(CompiledKernel::User { kind: Kind::User(kernel), components, places })
    }

    fn change_point(
        &mut self,
        spec: &ChangePointSpec,
        d: usize,
        numbers: &mut KernelNumbers,
        scale: Scale,
    ) -> Result<CompiledKernel, Error> {
        let owner = Owner::Kernel { state: d, part: numbers.next(CHANGE_POINT) };
        let components = self.components(&spec.active, d)?;
        let [component] = components[..] else {
            let message = "a change point is along one component of z: name it, such as active = [\"x1\"]";
            return Err(Error::model(format!("states[{d}].kernel.{CHANGE_POINT}.active"), message));
        };
        let (middle, size) = (self.scaling.z_shift(component), self.scaling.z_scale(component));
        let unit = Unit::of(Quantity::component(component, self.n_x()));
        let identity = |role: &str| Identity::whole(owner.clone(), Role::Named(role.into()), unit);
        let location = spec.location.clone().unwrap_or(Prior::Normal { mean: middle, sd: size });
        let width = spec.width.clone().unwrap_or(Prior::LogNormal { median: 0.1 * size, sigma: 1.0 });
        let places = [
            self.table.add(identity("location"), location)?,
            self.table.add_positive(identity("width"), width)?,
        ];
        let [before, after] = &*spec.kernels;
        let before = self.kernel_part(before, d, numbers, scale)?;
        let kernels = Box::new([before, self.kernel_part(after, d, numbers, scale)?]);
        Ok(CompiledKernel::ChangePoint { component, places, kernels })
    }

    /// Indices into z of the components that are named.
    fn components(&self, active: &Active, d: usize) -> Result<Vec<usize>, Error> {
        let (n_x, n_u) = (self.n_x(), self.model.n_u);
        let Some(names) = active else { return Ok((0..n_x + n_u).collect()) };
        let mut components = Vec::new();
        for name in names {
            let bad = || {
                let message =
                    format!("there is no component \"{name}\": name x, u, x1..x{n_x} or u1..u{n_u}");
                Error::model(format!("states[{d}].kernel.active"), message)
            };
            let number = |digits: &str, n: usize| match digits {
                "" => Some((0, n)),
                digits => digits.parse::<usize>().ok().filter(|i| (1..=n).contains(i)).map(|i| (i - 1, i)),
            };
            let (offset, range) = if let Some(digits) = name.strip_prefix('x') {
                (0, number(digits, n_x))
            } else if let Some(digits) = name.strip_prefix('u') {
                (n_x, number(digits, n_u))
            } else {
                (0, None)
            };
            let (from, to) = range.filter(|(from, to)| from < to).ok_or_else(bad)?;
            components.extend((from..to).map(|c| offset + c));
        }
        components.sort_unstable();
        components.dedup();
        if components.is_empty() {
            return Err(Error::model(format!("states[{d}].kernel.active"), "names no component"));
        }
        Ok(components)
    }
}

/// Powers beyond this are products by mistake.
const LARGEST_EXPONENT: u32 = 8;

/// The unit of a hyper-parameter of a kernel of state `d`, for the component `at`; that of a root is left out.
fn unit(unit: KernelUnit, at: Option<Quantity>, d: usize, scale: Scale) -> Unit {
    let state = match scale {
        Scale::State { root: 1 } => Unit::of(Quantity::State(d)),
        _ => Unit::NONE,
    };
    match (unit, at) {
        (KernelUnit::State, _) => state,
        (KernelUnit::Component, Some(at)) => Unit::of(at),
        (KernelUnit::StatePerComponent, Some(at)) => state.per(at),
        (KernelUnit::PerComponent, Some(at)) => Unit::NONE.per(at),
        _ => Unit::NONE,
    }
}

/// Log-normal around the descriptor's median, within a factor of about seven either way; a length-scale inverse-gamma of shape
/// four, which makes short ones unlikely (decision 15). A factor without a scale of its
/// own has amplitude one.
fn default_prior(
    parameter: &KernelParameter,
    components: &[usize],
    i: usize,
    scaling: &Scaling,
    d: usize,
    scale: Scale,
) -> Prior {
    if matches!(scale, Scale::One) && parameter.unit == KernelUnit::State {
        return Prior::Fixed { value: 1.0 };
    }
    let component = components.get(i).map_or(1.0, |&c| scaling.z_scale(c));
    let unit = parameter.unit.size(scale.unit(scaling.x.scale[d]), component);
    let median = parameter.median.in_units(components.len()) * unit;
    match parameter.role {
        KernelRole::LengthScale => Prior::InverseGamma { shape: 4.0, scale: MEDIAN_OF_GAMMA_4 * median },
        _ => Prior::LogNormal { median, sigma: 1.0 },
    }
}

/// Median of a gamma variable of shape four: an inverse-gamma one of that shape has its scale over this as median.
const MEDIAN_OF_GAMMA_4: f64 = 3.672_060_748_850_897;
