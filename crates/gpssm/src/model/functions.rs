//! User functions, by name: the part of a model that is code, not data.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::function::StateFunction;
use crate::initial::InitialDensity;
use crate::kernel::KernelFunction;
use crate::model::prior::PriorDensity;
use crate::sensor::SensorDensity;

/// The registry that the names in a [`crate::Model`] refer to.
///
/// ```
/// use gpssm::model::{FunctionRef, Predictor, SensorSpec};
/// use gpssm::{Functions, Model, Points, Problem, Sequence};
///
/// // The sensor saturates: y = tanh(x) + e.
/// let saturated = |z: &Points, _: &[f64], out: &mut [f64]| {
///     out.iter_mut().zip(z.column(0)).for_each(|(y, x)| *y = x.tanh());
/// };
/// let functions = Functions::new().with("saturated", saturated);
/// let mean = Predictor::Functions(vec![FunctionRef { name: "saturated".into(), parameters: vec![] }]);
/// let sensor = SensorSpec::Gaussian { mean, noise: Default::default() };
/// let model = Model { sensor, ..Model::observed(1, 0) };
/// let record = Sequence::scalar(&[0.1, 0.5, 0.8, 0.9], None)?;
/// Problem::new(model, &functions, record.into())?;
/// # Ok::<(), gpssm::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Functions {
    pub(crate) functions: HashMap<String, Arc<dyn StateFunction>>,
    pub(crate) sensors: HashMap<String, Arc<dyn SensorDensity>>,
    pub(crate) initials: HashMap<String, Arc<dyn InitialDensity>>,
    pub(crate) kernels: HashMap<String, (Vec<String>, Arc<dyn KernelFunction>)>,
    pub(crate) priors: HashMap<String, Arc<dyn PriorDensity>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Functions")
            .field("functions", &self.functions.keys())
            .field("sensors", &self.sensors.keys())
            .field("initials", &self.initials.keys())
            .field("kernels", &self.kernels.keys())
            .field("priors", &self.priors.keys())
            .finish()
    }
}

impl Functions {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mean function, parametric transition or sensor mean.
    #[must_use]
    pub fn with(mut self, name: &str, function: impl StateFunction + 'static) -> Self {
        self.functions.insert(name.to_owned(), Arc::new(function));
        self
    }

    /// Adds a sensor.
    #[must_use]
    pub fn with_sensor(mut self, name: &str, sensor: impl SensorDensity + 'static) -> Self {
        self.sensors.insert(name.to_owned(), Arc::new(sensor));
        self
    }

    /// Adds a density of the initial state.
    #[must_use]
    pub fn with_initial(mut self, name: &str, initial: impl InitialDensity + 'static) -> Self {
        self.initials.insert(name.to_owned(), Arc::new(initial));
        self
    }

    /// Adds a kernel with the names of its hyper-parameters, for [`crate::model::kernel::UserKernelSpec`].
    #[must_use]
    pub fn with_kernel(
        mut self,
        name: &str,
        parameters: &[&str],
        kernel: impl KernelFunction + 'static,
    ) -> Self {
        let parameters = parameters.iter().map(|&name| name.to_owned()).collect();
        self.kernels.insert(name.to_owned(), (parameters, Arc::new(kernel)));
        self
    }

    /// Adds the log density of a parameter, for [`crate::model::prior::LogDensity::function`].
    #[must_use]
    pub fn with_prior(mut self, name: &str, density: impl PriorDensity + 'static) -> Self {
        self.priors.insert(name.to_owned(), Arc::new(density));
        self
    }
}
