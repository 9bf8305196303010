//! A model and a record, validated once.
//!
//! - `function`, `formula`, `kernel`, `sensor`: parts of the model with places in theta for their numbers
//! - `units`: internal units from the data
//! - `fill`: the chosen defaults, written into the description

mod fill;
mod formula;
mod function;
mod kernel;
mod sensor;
mod units;

use std::sync::Arc;

use self::function::CompiledFunction;
use self::kernel::CompiledKernel;
use self::sensor::CompiledSensor;
use super::covariance_prior::CovariancePrior;
use super::dynamics::{DynamicsSpec, InducingSpec};
use super::functions::Functions;
use super::names::Scope;
use super::parameters::{Identity, Owner, ParameterTable, Quantity, Role, Unit};
use super::prior::Prior;
use super::scale_prior::ScalePrior;
use super::spec::{FunctionRef, InitialSpec, Model, ProcessNoiseSpec, TransitionSpec};
use super::symmetry::Symmetry;
use crate::dynamics::basis::features::{Basis, BasisChoice, BasisError};
use crate::dynamics::basis::fourier::FourierChoice;
use crate::dynamics::basis::hilbert::HilbertChoice;
use crate::dynamics::transition::{FunctionPrior, ProcessNoise, Transition};
use crate::error::Error;
use crate::function::{ScalarFunction, StateFunction};
use crate::initial::BoundInitial;
use crate::kernel::Kernel;
use crate::linalg::small;
use crate::record::{Record, Sequence};
use crate::scaling::Scaling;
use crate::state_space::StateSpace;

/// What is sampled: p(x_{0:T}, theta | y). Made once from a model, its functions and a record.
///
/// Theta is in original units everywhere; states are in internal units inside the sampler and in original
/// units in every draw.
#[derive(Clone, Debug)]
pub struct Problem {
    model: Model,
    record: Record,
    /// The record in internal units.
    sequences: Vec<Sequence>,
    scaling: Arc<Scaling>,
    table: ParameterTable,
    states: Vec<CompiledState>,
    noise: CompiledNoise,
    sensor: CompiledSensor,
    initial: BoundInitial,
    /// The finite basis, once it is chosen.
    basis: Option<BasisChoice>,
}

#[derive(Clone, Debug)]
enum CompiledState {
    Gp { kernel: CompiledKernel, mean: CompiledFunction },
    Parametric { function: CompiledFunction },
    Lag { of: usize },
}

/// Places of the noise scales in theta.
#[derive(Clone, Debug)]
pub(crate) enum CompiledNoise {
    Diagonal(Vec<usize>),
    Full(usize),
}

/// What the parts are compiled with.
struct Compiler<'a> {
    model: &'a Model,
    functions: &'a Functions,
    scaling: Arc<Scaling>,
    table: ParameterTable,
    /// What names mean in formulas.
    scope: Scope,
}

impl Problem {
    /// Checks the model against the record and fills in the defaults.
    pub fn new(model: Model, functions: &Functions, record: Record) -> Result<Self, Error> {
        // A record can be made from a single sequence without checks.
        let record = Record::new(record.sequences().to_vec())?;
        check_shape(&model, &record)?;
        let scaling = Arc::new(units::scaling(&model, functions, &record)?);
        let mut compiler = Compiler {
            model: &model,
            functions,
            scaling: Arc::clone(&scaling),
            table: ParameterTable::new(model.all_names()),
            scope: Scope::new(&model)?,
        };
        let states = compiler.states()?;
        let noise = compiler.process_noise()?;
        let sensor = compiler.sensor(&record)?;
        let initial = compiler.initial()?;
        compiler.check_all_used()?;
        let mut table = compiler.table;
        table.attach(functions)?;
        let sequences = record.sequences().iter().map(|sequence| {
            let internal =
                sequence.mapped(|k, y| scaling.y.to_internal(k, y), |c, u| scaling.u.to_internal(c, u));
            let internal = internal.with_presample(model.presample);
            if model.skip_missing { internal.skipping_missing(model.most_lags()) } else { internal }
        });
        let sequences = sequences.collect();
        let basis = None;
        let mut model = fill::fill(model, &table, &scaling);
        let symmetries = std::mem::take(&mut model.symmetries);
        let mut problem =
            Self { model, record, sequences, scaling, table, states, noise, sensor, initial, basis };
        symmetries.into_iter().try_for_each(|symmetry| problem.declare(symmetry))?;
        problem.check_dynamics()?;
        Ok(problem)
    }

    /// One more symmetry of the model; refused if it does not hold.
    pub fn declare(&mut self, symmetry: Symmetry) -> Result<(), Error> {
        super::orientation::check(self, &symmetry).map_err(|message| {
            Error::model(format!("symmetries[{}]", self.model.symmetries.len()), message)
        })?;
        self.model.symmetries.push(symmetry);
        Ok(())
    }

    /// The model, with every default prior and unit filled in.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The record, in original units.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The record, in internal units.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// Internal and original units.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// All hyper-parameters.
    pub fn table(&self) -> &ParameterTable {
        &self.table
    }

    /// Number of states.
    pub fn n_x(&self) -> usize {
        self.states.len()
    }

    /// The finite basis that was chosen for this run.
    pub fn basis(&self) -> Option<&BasisChoice> {
        self.basis.as_ref()
    }

    /// The same problem with a finite basis in place of the exact Gaussian process.
    pub fn with_basis(&self, basis: BasisChoice) -> Self {
        Self { basis: Some(basis), ..self.clone() }
    }

    /// The first `n_transitions` of the record (at least one), in the same units; with the exact Gaussian process
    /// in place of a finite basis if `exact`.
    pub(crate) fn head(&self, n_transitions: usize, exact: bool) -> Self {
        let mut head = self.clone();
        if exact {
            head.model.dynamics = DynamicsSpec::Exact;
            head.basis = None;
        }
        if n_transitions < self.record.n_transitions() {
            head.record = self.record.head(n_transitions);
            head.sequences.truncate(head.record.sequences().len());
            for (sequence, cut) in head.sequences.iter_mut().zip(head.record.sequences()) {
                *sequence = sequence.head(cut.n_rows());
            }
        }
        head
    }

    /// The same model, priors, units and basis over another sequence alone.
    pub(crate) fn over(&self, sequence: &Sequence) -> Result<Self, Error> {
        let record = Record::new(vec![sequence.clone()])?;
        let internal =
            sequence.mapped(|k, y| self.scaling.y.to_internal(k, y), |c, u| self.scaling.u.to_internal(c, u));
        Ok(Self { record, sequences: vec![internal], ..self.clone() })
    }

    /// The same model, priors and units with the last sequence up to so many rows, at least two. A finite basis is left to be
    /// chosen again: it was chosen from the rows that are cut off, too.
    pub fn until(&self, n_rows: usize) -> Result<Self, Error> {
        let Some(last) = self.record.sequences().last() else { return Err(Error::data("an empty record")) };
        if n_rows < 2 || n_rows > last.n_rows() {
            return Err(Error::data(format!(
                "{n_rows} rows: the last sequence can be cut to between 2 and {} rows",
                last.n_rows()
            )));
        }
        let mut cut = self.head(self.record.n_transitions() - (last.n_rows() - n_rows), false);
        cut.basis = None;
        Ok(cut)
    }

    /// Refuses bases that the kernels do not have, and sizes that make no sense.
    fn check_dynamics(&self) -> Result<(), Error> {
        let n_z = self.n_x() + self.model.n_u;
        let refuse = |message: String| Err(Error::model("dynamics", message));
        let inducing = |spec: &InducingSpec| match spec {
            InducingSpec::Given(rows) if rows.is_empty() => refuse("no inducing inputs are given".into()),
            InducingSpec::Given(rows) => match rows.iter().position(|row| row.len() != n_z) {
                Some(i) => refuse(format!("inducing input {i} has {} components, not {n_z}", rows[i].len())),
                None if rows.iter().flatten().any(|z| !z.is_finite()) => {
                    refuse("inducing inputs must be finite".into())
                }
                None => Ok(()),
            },
            InducingSpec::Grid(counts) if counts.len() != n_z || counts.contains(&0) => {
                refuse(format!("a grid needs {n_z} positive numbers, one for each component of (x, u)"))
            }
            InducingSpec::Grid(_) => Ok(()),
            InducingSpec::KMeans(0) | InducingSpec::Greedy(0) | InducingSpec::Variance(0) => {
                refuse("at least one inducing input is needed".into())
            }
            InducingSpec::KMeans(_) | InducingSpec::Greedy(_) | InducingSpec::Variance(_) => Ok(()),
        };
        let probe = match &self.model.dynamics {
            DynamicsSpec::Exact => return Ok(()),
            DynamicsSpec::Fic { inducing: spec, .. } | DynamicsSpec::Dtc { inducing: spec, .. } => {
                return inducing(spec);
            }
            DynamicsSpec::Hilbert { functions, half_width, .. } => {
                if *functions == 0 {
                    return refuse("at least one function is needed".into());
                }
                let bad = half_width.iter().any(|l| !(*l > 0.0 && l.is_finite()));
                if !half_width.is_empty() && (half_width.len() != n_z || bad) {
                    return refuse(format!(
                        "half_width needs {n_z} positive numbers, one for each of (x, u)"
                    ));
                }
                let (center, half_width) = (vec![0.0; n_z], vec![1.0; n_z]);
                BasisChoice::Hilbert(Arc::new(HilbertChoice::new(center, half_width, 1)))
            }
            DynamicsSpec::Fourier { frequencies, .. } => {
                if *frequencies == 0 {
                    return refuse("at least one frequency is needed".into());
                }
                let (directions, radii) = (vec![0.5; n_z], vec![[1.0; 5]]);
                BasisChoice::Fourier(Arc::new(FourierChoice { directions, radii, n_components: n_z }))
            }
        };
        // The kinds of the kernels do not depend on theta.
        let transition = self.bind_transition(&vec![1.0; self.table.len()]);
        for (d, kernel) in transition.kernels.iter().enumerate().filter(|(_, kernel)| !kernel.is_zero()) {
            if let Err(error @ BasisError::NoSpectralDensity { .. }) = Basis::new(kernel, &probe) {
                return Err(Error::model(format!("states[{d}].kernel"), error.to_string()));
            }
        }
        Ok(())
    }

    /// The model with numbers, in internal units.
    pub fn bind(&self, theta: &[f64]) -> StateSpace {
        StateSpace {
            transition: self.bind_transition(theta),
            sensor: self.sensor.bind(theta, &self.table, &self.scaling),
            initial: self.initial.clone(),
        }
    }

    pub(crate) fn process_noise(&self) -> &CompiledNoise {
        &self.noise
    }

    pub(crate) fn sensor(&self) -> &CompiledSensor {
        &self.sensor
    }

    /// The transition with numbers, in internal units.
    pub fn bind_transition(&self, theta: &[f64]) -> Transition {
        let n_x = self.n_x();
        let mut transition = Transition {
            kernels: Vec::new(),
            means: Vec::new(),
            noise: ProcessNoise::Diagonal(Vec::new()),
            lags: vec![None; n_x],
            prior: self.basis.clone().map_or(FunctionPrior::Exact, FunctionPrior::Collapsed),
        };
        for (d, state) in self.states.iter().enumerate() {
            let (kernel, mean) = match state {
                CompiledState::Gp { kernel, mean } => (
                    kernel.bind(theta, &self.scaling, self.scaling.x.scale[d]),
                    mean.bind(theta, d, &self.scaling, self.scaling.x.shift[d], self.scaling.x.scale[d]),
                ),
                CompiledState::Parametric { function } => (
                    Kernel::zero(),
                    function.bind(theta, d, &self.scaling, self.scaling.x.shift[d], self.scaling.x.scale[d]),
                ),
                CompiledState::Lag { of } => {
                    transition.lags[d] = Some(*of);
                    (Kernel::zero(), ScalarFunction::Component(*of))
                }
            };
            transition.kernels.push(kernel);
            transition.means.push(mean);
        }
        let moving: Vec<usize> = (0..n_x).filter(|&d| transition.lags[d].is_none()).collect();
        transition.noise = match &self.noise {
            CompiledNoise::Diagonal(places) => {
                let mut variances = vec![0.0; n_x];
                for (&d, &place) in moving.iter().zip(places) {
                    variances[d] = (theta[place] / self.scaling.x.scale[d]).powi(2);
                }
                ProcessNoise::Diagonal(variances)
            }
            CompiledNoise::Full(matrix) => {
                let covariance = small::covariance(&self.table.matrix_factor(*matrix, theta), moving.len());
                let mut full = vec![0.0; n_x * n_x];
                for (a, &i) in moving.iter().enumerate() {
                    for (b, &j) in moving.iter().enumerate() {
                        let unit = self.scaling.x.scale[i] * self.scaling.x.scale[j];
                        full[i * n_x + j] = covariance[a * moving.len() + b] / unit;
                    }
                }
                ProcessNoise::Full(full)
            }
        };
        transition
    }

    /// A path in original units from one in internal units; row-major (t, d).
    pub fn path_to_original(&self, path: &[f64]) -> Vec<f64> {
        let n_x = self.n_x();
        path.iter().enumerate().map(|(i, x)| self.scaling.x.to_original(i % n_x, *x)).collect()
    }

    /// A path in internal units from one in original units.
    pub fn path_to_internal(&self, path: &[f64]) -> Vec<f64> {
        let n_x = self.n_x();
        path.iter().enumerate().map(|(i, x)| self.scaling.x.to_internal(i % n_x, *x)).collect()
    }
}

fn check_shape(model: &Model, record: &Record) -> Result<(), Error> {
    if model.states.is_empty() {
        return Err(Error::model("states", "a model needs at least one state"));
    }
    if model.n_y != record.n_y() {
        return Err(Error::model(
            "n_y",
            format!("{} outputs in the model, {} in the record", model.n_y, record.n_y()),
        ));
    }
    if model.n_u != record.n_u() {
        return Err(Error::model(
            "n_u",
            format!("{} inputs in the model, {} in the record", model.n_u, record.n_u()),
        ));
    }
    for (d, state) in model.states.iter().enumerate() {
        if state.scale.is_some_and(|scale| !(scale > 0.0 && scale.is_finite())) {
            return Err(Error::model(format!("states[{d}].scale"), "must be positive and finite"));
        }
        let mut seen = vec![false; model.states.len()];
        let mut at = d;
        while let TransitionSpec::Lag { of } = model.states[at].transition {
            if of >= model.states.len() || std::mem::replace(&mut seen[at], true) {
                return Err(Error::model(
                    format!("states[{d}].lag"),
                    format!("state {of} does not lead to a state that moves"),
                ));
            }
            at = of;
        }
    }
    Ok(())
}

impl Compiler<'_> {
    fn n_x(&self) -> usize {
        self.model.states.len()
    }

    /// The state dimensions that are not lags.
    fn moving(&self) -> Vec<usize> {
        let is_lag = |d: &usize| matches!(self.model.states[*d].transition, TransitionSpec::Lag { .. });
        (0..self.n_x()).filter(|d| !is_lag(d)).collect()
    }

    fn states(&mut self) -> Result<Vec<CompiledState>, Error> {
        let model = self.model;
        let compile = |(d, state): (usize, &super::spec::StateSpec)| -> Result<CompiledState, Error> {
            Ok(match &state.transition {
                TransitionSpec::Gp { kernel, mean } => CompiledState::Gp {
                    mean: self.function("mean", mean, d)?,
                    kernel: self.kernel(kernel, d)?,
                },
                TransitionSpec::Parametric { function } => {
                    CompiledState::Parametric { function: self.function("function", function, d)? }
                }
                TransitionSpec::Lag { of } => CompiledState::Lag { of: *of },
            })
        };
        model.states.iter().enumerate().map(compile).collect()
    }

    /// Three tenths of the state's size, within a factor of about seven either way: a tenth would invite functions that take all noise
    /// for dynamics.
    fn default_scale(unit: f64) -> ScalePrior {
        ScalePrior::on_sd(Prior::LogNormal { median: 0.3 * unit, sigma: 1.0 })
    }

    /// One prior for each of `n` noise scales from none, one or n.
    fn one_for_each<T: Clone>(
        given: &[T],
        n: usize,
        default: impl Fn(usize) -> T,
        key: impl FnOnce(String) -> Error,
    ) -> Result<Vec<T>, Error> {
        match given.len() {
            0 => Ok((0..n).map(default).collect()),
            1 => Ok(vec![given[0].clone(); n]),
            len if len == n => Ok(given.to_vec()),
            len => Err(key(format!("{len} priors where none, one or {n} are expected"))),
        }
    }

    fn process_noise(&mut self) -> Result<CompiledNoise, Error> {
        let moving = self.moving();
        let unit = |i: usize| self.scaling.x.scale[moving[i]];
        match &self.model.process_noise {
            ProcessNoiseSpec::Diagonal(given) => {
                let default = |i| Self::default_scale(unit(i));
                let wrong = |message| Error::model("process_noise", message);
                let priors = Self::one_for_each(given, moving.len(), default, wrong)?;
                let places = priors.into_iter().zip(&moving).map(|(prior, &d)| {
                    let state = Quantity::State(d);
                    let sd = Identity::at(Owner::ProcessNoise, Role::NoiseSd, state, Unit::of(state));
                    self.table.add_scale(sd, prior)
                });
                Ok(CompiledNoise::Diagonal(places.collect::<Result<_, _>>()?))
            }
            ProcessNoiseSpec::Full(given) => {
                let prior = given.clone().unwrap_or_else(|| CovariancePrior::Lkj {
                    eta: 2.0,
                    sd: (0..moving.len()).map(|i| Self::default_scale(unit(i))).collect(),
                });
                let of: Vec<Quantity> = moving.iter().map(|&d| Quantity::State(d)).collect();
                Ok(CompiledNoise::Full(self.table.add_matrix(&Owner::ProcessNoise, prior, &of)?))
            }
        }
    }

    fn initial(&self) -> Result<BoundInitial, Error> {
        let (n_x, scaling) = (self.n_x(), &self.scaling);
        let check = |key: &str, len: usize| {
            let message = format!("{len} numbers for {n_x} states");
            if len == n_x { Ok(()) } else { Err(Error::model(format!("initial.{key}"), message)) }
        };
        let internal = |mean: &[f64]| (0..n_x).map(|d| scaling.x.to_internal(d, mean[d])).collect::<Vec<_>>();
        let gaussian = |mean: &[f64], covariance: Vec<f64>| {
            let mut chol: Vec<f64> = (0..n_x * n_x)
                .map(|i| covariance[i] / scaling.x.scale[i / n_x] / scaling.x.scale[i % n_x])
                .collect();
            if !small::cholesky(&mut chol, n_x) || mean.iter().any(|m| !m.is_finite()) {
                return Err(Error::model("initial", "needs finite means and a positive definite covariance"));
            }
            Ok(BoundInitial::Gaussian { mean: internal(mean), chol })
        };
        match &self.model.initial {
            InitialSpec::Default => {
                let mut chol = vec![0.0; n_x * n_x];
                (0..n_x).for_each(|d| chol[d * n_x + d] = 2.0);
                Ok(BoundInitial::Gaussian { mean: vec![0.0; n_x], chol })
            }
            InitialSpec::Gaussian { mean, sd } => {
                check("mean", mean.len())?;
                check("sd", sd.len())?;
                let mut covariance = vec![0.0; n_x * n_x];
                (0..n_x).for_each(|d| covariance[d * n_x + d] = sd[d] * sd[d]);
                gaussian(mean, covariance)
            }
            InitialSpec::GaussianFull { mean, covariance } => {
                check("mean", mean.len())?;
                check("covariance", covariance.len())?;
                covariance.iter().try_for_each(|row| check("covariance", row.len()))?;
                gaussian(mean, covariance.concat())
            }
            InitialSpec::Fixed(x) => {
                check("fixed", x.len())?;
                if x.iter().any(|x| !x.is_finite()) {
                    return Err(Error::model("initial.fixed", "must be finite"));
                }
                Ok(BoundInitial::Fixed(internal(x)))
            }
            InitialSpec::User(name) => {
                let density = self.functions.initials.get(name).cloned();
                let density = density.ok_or_else(|| missing("initial.user", "initial density", name))?;
                Ok(BoundInitial::User { density, scaling: Arc::clone(scaling) })
            }
        }
    }

    /// A registered function and the places of its parameters.
    fn user_function(
        &mut self,
        key: &str,
        reference: &FunctionRef,
        dims: &[usize],
        sensor: bool,
    ) -> Result<(Arc<dyn StateFunction>, Vec<usize>), Error> {
        let function = self.functions.functions.get(&reference.name).cloned();
        let function = function.ok_or_else(|| missing(key, "function", &reference.name))?;
        Ok((function, self.user_parameters(key, &reference.parameters, dims, sensor)?))
    }

    /// Places of user parameters; the first use enters them into the table.
    fn user_parameters(
        &mut self,
        key: &str,
        names: &[String],
        dims: &[usize],
        sensor: bool,
    ) -> Result<Vec<usize>, Error> {
        let model = self.model;
        let place = |name: &String| {
            let prior = model.parameters.get(name).ok_or_else(|| missing(key, "parameter", name))?;
            let identity = Identity::user(name);
            let place = match self.table.place(&identity) {
                Some(place) => place,
                None => self.table.add(identity, prior.clone())?,
            };
            let parameter = &mut self.table.parameters[place];
            parameter.sensor |= sensor;
            parameter.function |= !dims.is_empty();
            parameter.dims.extend_from_slice(dims);
            parameter.dims.sort_unstable();
            parameter.dims.dedup();
            Ok(place)
        };
        names.iter().map(place).collect()
    }

    fn check_all_used(&self) -> Result<(), Error> {
        match self.model.parameters.keys().find(|name| self.table.place(&Identity::user(name)).is_none()) {
            Some(name) => Err(Error::model(
                format!("parameters.{name}"),
                "is not used by any function or formula: use it or take it out",
            )),
            None => Ok(()),
        }
    }
}

fn missing(key: &str, what: &str, name: &str) -> Error {
    Error::model(key, format!("there is no {what} named \"{name}\""))
}
