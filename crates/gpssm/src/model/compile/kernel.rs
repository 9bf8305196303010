//! Kernels with places in theta for their numbers.

use super::Compiler;
use crate::error::Error;
use crate::kernel::{Kernel, Shape};
use crate::model::kernel::{Active, KernelSpec};
use crate::model::parameters::{Identity, KernelPart, Owner, Quantity, Role, Unit};
use crate::model::prior::Prior;
use crate::scaling::Scaling;

#[derive(Clone, Debug)]
pub(super) enum CompiledKernel {
    Stationary {
        shape: StationaryShape,
        sigma_f: usize,
        components: Vec<usize>,
        ell: Vec<usize>,
        scaled: bool,
    },
    Periodic {
        sigma_f: usize,
        components: Vec<usize>,
        ell: Vec<usize>,
        period: Vec<usize>,
        scaled: bool,
    },
    Linear {
        components: Vec<usize>,
        sigma: Vec<usize>,
        scaled: bool,
    },
    Constant {
        sigma: usize,
        scaled: bool,
    },
    Sum(Vec<CompiledKernel>),
    Product(Vec<CompiledKernel>),
    Odd(Box<CompiledKernel>),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum StationaryShape {
    SquaredExponential,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic { alpha: usize },
}

impl CompiledKernel {
    /// With numbers, in internal units; `unit` is the size of the state's internal unit. In a product only
    /// the first factor carries it (`scaled`).
    pub(super) fn bind(&self, theta: &[f64], scaling: &Scaling, unit: f64) -> Kernel {
        let variance = |place: usize, scaled: bool| {
            let sigma = if scaled { theta[place] / unit } else { theta[place] };
            sigma * sigma
        };
        let lengths = |components: &[usize], places: &[usize]| -> Vec<f64> {
            components.iter().zip(places).map(|(&c, &place)| theta[place] / scaling.z_scale(c)).collect()
        };
        match self {
            Self::Stationary { shape, sigma_f, components, ell, scaled } => Kernel::Stationary {
                shape: match *shape {
                    StationaryShape::SquaredExponential => Shape::SquaredExponential,
                    StationaryShape::Matern12 => Shape::Matern12,
                    StationaryShape::Matern32 => Shape::Matern32,
                    StationaryShape::Matern52 => Shape::Matern52,
                    StationaryShape::RationalQuadratic { alpha } => {
                        Shape::RationalQuadratic { alpha: theta[alpha] }
                    }
                },
                variance: variance(*sigma_f, *scaled),
                components: components.clone(),
                ell: lengths(components, ell),
            },
            Self::Periodic { sigma_f, components, ell, period, scaled } => Kernel::Periodic {
                variance: variance(*sigma_f, *scaled),
                components: components.clone(),
                ell: ell.iter().map(|&place| theta[place]).collect(),
                period: lengths(components, period),
            },
            Self::Linear { components, sigma, scaled } => Kernel::Linear {
                components: components.clone(),
                variance: components
                    .iter()
                    .zip(sigma)
                    .map(|(&c, &place)| variance(place, *scaled) * scaling.z_scale(c).powi(2))
                    .collect(),
            },
            Self::Constant { sigma, scaled } => Kernel::Constant { variance: variance(*sigma, *scaled) },
            Self::Sum(parts) => {
                Kernel::Sum(parts.iter().map(|part| part.bind(theta, scaling, unit)).collect())
            }
            Self::Product(parts) => {
                Kernel::Product(parts.iter().map(|part| part.bind(theta, scaling, unit)).collect())
            }
            Self::Odd(kernel) => kernel.bind(theta, scaling, unit).odd(),
        }
    }
}

/// Names that were used for one state dimension, so that a second kernel of a kind gets a number.
type Used = std::collections::HashMap<&'static str, usize>;

impl Compiler<'_> {
    pub(super) fn kernel(&mut self, spec: &KernelSpec, d: usize) -> Result<CompiledKernel, Error> {
        self.kernel_part(spec, d, &mut Used::new(), true)
    }

    fn kernel_part(
        &mut self,
        spec: &KernelSpec,
        d: usize,
        used: &mut Used,
        scaled: bool,
    ) -> Result<CompiledKernel, Error> {
        let (kind, active) = match spec {
            KernelSpec::SquaredExponential(s) => ("se", &s.active),
            KernelSpec::Matern12(s) => ("matern12", &s.active),
            KernelSpec::Matern32(s) => ("matern32", &s.active),
            KernelSpec::Matern52(s) => ("matern52", &s.active),
            KernelSpec::RationalQuadratic(s) => ("rq", &s.active),
            KernelSpec::Periodic(s) => ("periodic", &s.active),
            KernelSpec::Linear(s) => ("linear", &s.active),
            KernelSpec::Constant(_) => ("constant", &None),
            KernelSpec::Sum(parts) => {
                let key = format!("states[{d}].kernel.sum");
                let parts = self.parts(&key, parts, d, used, |_| scaled)?;
                return Ok(CompiledKernel::Sum(parts));
            }
            KernelSpec::Product(parts) => {
                let key = format!("states[{d}].kernel.product");
                if parts.iter().any(KernelSpec::has_odd) {
                    let message = "an odd kernel cannot be a factor: take the odd part of the product";
                    return Err(Error::model(key, message));
                }
                let parts = self.parts(&key, parts, d, used, |i| scaled && i == 0)?;
                return Ok(CompiledKernel::Product(parts));
            }
            KernelSpec::Odd(kernel) => {
                return Ok(CompiledKernel::Odd(Box::new(self.kernel_part(kernel, d, used, scaled)?)));
            }
        };
        let count = used.entry(kind).and_modify(|count| *count += 1).or_insert(1);
        let part = KernelPart { kind: kind.to_owned(), number: *count };
        let components = self.components(active, d)?;
        let mut place = Placer { compiler: self, part, d, scaled, components: &components };
        Ok(match spec {
            KernelSpec::SquaredExponential(s) => {
                place.stationary(StationaryShape::SquaredExponential, s.sigma_f.clone(), &s.ell)?
            }
            KernelSpec::Matern12(s) => {
                place.stationary(StationaryShape::Matern12, s.sigma_f.clone(), &s.ell)?
            }
            KernelSpec::Matern32(s) => {
                place.stationary(StationaryShape::Matern32, s.sigma_f.clone(), &s.ell)?
            }
            KernelSpec::Matern52(s) => {
                place.stationary(StationaryShape::Matern52, s.sigma_f.clone(), &s.ell)?
            }
            KernelSpec::RationalQuadratic(s) => {
                let alpha = s.alpha.clone().unwrap_or(around(1.0));
                let alpha = place.add(Role::Shape, alpha, Unit::NONE)?;
                place.stationary(StationaryShape::RationalQuadratic { alpha }, s.sigma_f.clone(), &s.ell)?
            }
            KernelSpec::Periodic(s) => CompiledKernel::Periodic {
                sigma_f: place.sigma(Role::Amplitude, s.sigma_f.clone())?,
                ell: place.each(Role::LengthScale, &s.ell, |_| around(1.0), |_| Unit::NONE)?,
                period: place.periods(&s.period)?,
                components: components.clone(),
                scaled,
            },
            KernelSpec::Linear(s) => CompiledKernel::Linear {
                sigma: place.slopes(&s.sigma)?,
                components: components.clone(),
                scaled,
            },
            KernelSpec::Constant(s) => {
                CompiledKernel::Constant { sigma: place.sigma(Role::LevelSd, s.sigma.clone())?, scaled }
            }
            // Handled above.
            KernelSpec::Sum(_) | KernelSpec::Product(_) | KernelSpec::Odd(_) => {
                CompiledKernel::Sum(Vec::new())
            }
        })
    }

    fn parts(
        &mut self,
        key: &str,
        parts: &[KernelSpec],
        d: usize,
        used: &mut Used,
        scaled: impl Fn(usize) -> bool,
    ) -> Result<Vec<CompiledKernel>, Error> {
        if parts.is_empty() {
            return Err(Error::model(key, "needs at least one part"));
        }
        parts.iter().enumerate().map(|(i, part)| self.kernel_part(part, d, used, scaled(i))).collect()
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

/// Log-normal with this median, within a factor of about seven either way.
fn around(median: f64) -> Prior {
    Prior::LogNormal { median, sigma: 1.0 }
}

/// Enters the hyper-parameters of one kernel into the table.
struct Placer<'a, 'b> {
    compiler: &'a mut Compiler<'b>,
    part: KernelPart,
    d: usize,
    scaled: bool,
    components: &'a [usize],
}

impl Placer<'_, '_> {
    fn owner(&self) -> Owner {
        Owner::Kernel { state: self.d, part: self.part.clone() }
    }

    /// The unit of f, unless this is a factor that has none of its own.
    fn unit(&self) -> Unit {
        if self.scaled { Unit::of(Quantity::State(self.d)) } else { Unit::NONE }
    }

    /// The only hyper-parameter of a role.
    fn add(&mut self, role: Role, prior: Prior, unit: Unit) -> Result<usize, Error> {
        let identity = Identity::whole(self.owner(), role, unit);
        self.compiler.table.add_positive(identity, prior)
    }

    /// A signal scale: by default the size of the state, or 1 for a factor that has none of its own.
    fn sigma(&mut self, role: Role, given: Option<Prior>) -> Result<usize, Error> {
        let size = self.compiler.scaling.x.scale[self.d];
        let default = if self.scaled { around(size) } else { Prior::Fixed { value: 1.0 } };
        self.add(role, given.unwrap_or(default), self.unit())
    }

    /// One hyper-parameter for each component.
    fn each(
        &mut self,
        role: Role,
        given: &[Prior],
        default: impl Fn(usize) -> Prior,
        unit: impl Fn(Quantity) -> Unit,
    ) -> Result<Vec<usize>, Error> {
        let all = Identity::whole(self.owner(), role, Unit::NONE);
        let components = self.components;
        let wrong = |message| Error::parameter(&all, message);
        let priors = Compiler::one_for_each(given, components.len(), |i| default(components[i]), wrong)?;
        let n_x = self.compiler.n_x();
        let mut places = Vec::with_capacity(priors.len());
        for (&c, prior) in components.iter().zip(priors) {
            let at = Quantity::component(c, n_x);
            let identity = Identity::at(all.owner.clone(), all.role.clone(), at, unit(at));
            places.push(self.compiler.table.add_positive(identity, prior)?);
        }
        Ok(places)
    }

    /// Periods, by default of the size of their component.
    fn periods(&mut self, given: &[Prior]) -> Result<Vec<usize>, Error> {
        let scaling = self.compiler.scaling.clone();
        self.each(Role::Period, given, |c| around(scaling.z_scale(c)), Unit::of)
    }

    /// Length-scales, by default twice the size of their component times the root of the number of components: typical
    /// points are so much further apart where there are more of them (Hvarfner, Hellsten, Nardi 2024, arXiv 2402.02229). With
    /// half of this short records of several outputs are learned by heart (decision 11).
    fn length_scales(&mut self, given: &[Prior]) -> Result<Vec<usize>, Error> {
        let scaling = self.compiler.scaling.clone();
        let apart = 2.0 * (self.components.len() as f64).sqrt();
        self.each(Role::LengthScale, given, |c| around(apart * scaling.z_scale(c)), Unit::of)
    }

    /// Slopes, by default such that a typical input makes a typical state.
    fn slopes(&mut self, given: &[Prior]) -> Result<Vec<usize>, Error> {
        let scaling = self.compiler.scaling.clone();
        let size = if self.scaled { scaling.x.scale[self.d] } else { 1.0 };
        let unit = self.unit();
        self.each(Role::SlopeSd, given, |c| around(size / scaling.z_scale(c)), |z| unit.per(z))
    }

    fn stationary(
        &mut self,
        shape: StationaryShape,
        sigma_f: Option<Prior>,
        ell: &[Prior],
    ) -> Result<CompiledKernel, Error> {
        Ok(CompiledKernel::Stationary {
            shape,
            sigma_f: self.sigma(Role::Amplitude, sigma_f)?,
            ell: self.length_scales(ell)?,
            components: self.components.to_vec(),
            scaled: self.scaled,
        })
    }
}
