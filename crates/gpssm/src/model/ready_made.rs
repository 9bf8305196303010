//! Models that many users start from.

use std::collections::BTreeMap;

use super::dynamics::DynamicsSpec;
use super::kernel::KernelSpec;
use super::names::Names;
use super::spec::{
    FunctionSpec, InitialSpec, Model, Predictor, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec, StateSpec,
    TransitionSpec, Value,
};
use super::symmetry::{Orientation, Symmetry};

impl Model {
    /// As many states as outputs, each seen with Gaussian noise.
    pub fn observed(n_y: usize, n_u: usize) -> Self {
        Self::with_hidden_states(n_y, n_y, n_u)
    }

    /// The first n_y of n_x states are seen with Gaussian noise. The others are hidden: of unit size, their
    /// signs declared free and oriented by how they drive the first state.
    pub fn with_hidden_states(n_x: usize, n_y: usize, n_u: usize) -> Self {
        let hidden = |d: usize| Symmetry {
            flip: vec![d],
            flip_parameters: Vec::new(),
            orientation: Orientation::StateRaisesState { from: d, to: 0 },
        };
        let state = || StateSpec {
            transition: TransitionSpec::Gp { kernel: KernelSpec::default(), mean: FunctionSpec::Identity },
            scale: None,
        };
        Self {
            states: (0..n_x).map(|_| state()).collect(),
            n_u,
            n_y,
            dynamics: DynamicsSpec::default(),
            process_noise: ProcessNoiseSpec::default(),
            sensor: SensorSpec::default(),
            initial: InitialSpec::Default,
            parameters: BTreeMap::new(),
            names: Names::default(),
            standardise: true,
            presample: 0,
            skip_missing: false,
            symmetries: (n_y..n_x).map(hidden).collect(),
        }
    }

    /// Past values among the states: the longest chain of lags.
    pub fn most_lags(&self) -> usize {
        let depth = |mut d: usize| {
            let mut depth = 0;
            while let TransitionSpec::Lag { of } = self.states[d].transition {
                // A chain that leads back to itself is refused where models are compiled.
                if depth > self.states.len() {
                    break;
                }
                (d, depth) = (of, depth + 1);
            }
            depth
        };
        (0..self.states.len()).map(depth).max().unwrap_or(0)
    }

    /// Each output and its `n_lags` latest values are the state (a nonlinear ARX model with noise in process
    /// and sensor): x = (s_t, s_{t-1}, ..., s_{t-n_lags}), outputs show s_t.
    pub fn lagged_outputs(n_y: usize, n_u: usize, n_lags: usize) -> Self {
        let mut model = Self::observed(n_y, n_u);
        for lag in 0..n_lags {
            for k in 0..n_y {
                let transition = TransitionSpec::Lag { of: lag * n_y + k };
                model.states.push(StateSpec { transition, scale: None });
            }
        }
        let n_x = model.states.len();
        let row = |k: usize| (0..n_x).map(|d| Value::Known(if d == k { 1.0 } else { 0.0 })).collect();
        if n_lags > 0 {
            let mean =
                Predictor::Linear { c: (0..n_y).map(row).collect(), d: Vec::new(), offset: Vec::new() };
            model.sensor = SensorSpec::Gaussian { mean, noise: SensorNoiseSpec::default() };
        }
        model
    }
}
