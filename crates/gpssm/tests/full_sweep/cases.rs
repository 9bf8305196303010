//! Models whose full sweeps are tested: every kind of hyper-parameter and every way it is drawn.

use gpssm::kernel::{LINEAR, SQUARED_EXPONENTIAL};
use gpssm::model::{
    CovariancePrior, FunctionRef, FunctionSpec, InitialSpec, Orientation, ParameterTable, Predictor,
    ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec, StateSpec, Symmetry, TransitionSpec, Value,
};
use gpssm::{Functions, KernelSpec, Model, Points, Prior, Problem, Record, Sequence};

use crate::dense::{Numbers, Plan, SensorNoise, SquaredExponential};

/// theta by name.
pub struct Theta<'a> {
    pub table: &'a ParameterTable,
    pub values: &'a [f64],
}

impl Theta<'_> {
    fn get(&self, name: &str) -> f64 {
        let k = self.table.index(name).unwrap_or_else(|| panic!("no parameter {name}"));
        self.values[k]
    }

    /// L L' from the entries of `name`_chol.
    fn covariance(&self, name: &str) -> Vec<f64> {
        let of = if name == "sensor" { 'y' } else { 'x' };
        let l = |i: usize, j: usize| {
            if j > i { 0.0 } else { self.get(&format!("{name}_chol[{of}{}, {of}{}]", i + 1, j + 1)) }
        };
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| (0..2).map(|k| l(i, k) * l(j, k)).sum()).to_vec()
    }

    fn kernel(&self, d: usize, components: &[&str]) -> Option<SquaredExponential> {
        let state = &self.table.names.states[d - 1];
        let ell = components.iter().map(|c| self.get(&format!("se_ell[{state}, {c}]"))).collect();
        let linear = self.table.index(&format!("linear_sigma[{state}, {state}]")).map(|k| self.values[k]);
        Some(SquaredExponential { sigma_f: self.get(&format!("se_sigma_f[{state}]")), ell, linear })
    }

    fn scalar(&self, components: &[&str]) -> Numbers {
        Numbers {
            kernel: vec![self.kernel(1, components)],
            lag: vec![None],
            mean: Box::new(|d, z| z[d]),
            q: vec![self.get("process_sd[x]").powi(2)],
            sensor_mean: Box::new(|k, z| z[k]),
            sensor_noise: SensorNoise::Gaussian(vec![1.0]),
        }
    }

    fn sensor_variance(&self) -> SensorNoise {
        SensorNoise::Gaussian(vec![self.get("sensor_sd[y]").powi(2)])
    }
}

/// A model, the shape of its record, and the same model in plain formulas.
pub struct Case {
    pub name: &'static str,
    pub model: Model,
    pub functions: Functions,
    pub plans: Vec<Plan>,
    pub numbers: fn(&Theta) -> Numbers,
}

impl Case {
    /// The model with this record; outputs by sequence and row.
    pub fn problem(&self, y: &[Vec<Vec<f64>>]) -> Problem {
        let sequences = y.iter().zip(&self.plans).map(|(y, plan)| {
            let u = if self.model.n_u == 0 { Vec::new() } else { plan.u.clone() };
            Sequence::new(y.clone(), u).unwrap()
        });
        let record = Record::new(sequences.collect()).unwrap();
        Problem::new(self.model.clone(), &self.functions, record).unwrap()
    }

    /// The model with a record of zeros, for its table.
    pub fn blank(&self) -> Problem {
        let row = vec![0.0; self.model.n_y];
        let y: Vec<_> = self.plans.iter().map(|plan| vec![row.clone(); plan.u.len()]).collect();
        self.problem(&y)
    }
}

fn log_normal(median: f64, sigma: f64) -> Prior {
    Prior::LogNormal { median, sigma }
}

fn fixed(value: f64) -> Prior {
    Prior::Fixed { value }
}

fn gp(sigma_f: Prior, ell: Prior, mean: FunctionSpec) -> StateSpec {
    let kernel = KernelSpec::new(&SQUARED_EXPONENTIAL).with("sigma_f", sigma_f).with("ell", ell);
    StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: None }
}

fn user(name: &str, parameter: &str) -> FunctionRef {
    FunctionRef { name: name.into(), parameters: vec![parameter.into()] }
}

fn sensor(mean: Predictor, noise: ScalePrior) -> SensorSpec {
    SensorSpec::Gaussian { mean, noise: SensorNoiseSpec::Diagonal(vec![noise]) }
}

/// States without a prior of their own for anything; x_0 ~ N(0, I).
fn model(states: Vec<StateSpec>, n_y: usize, process_noise: ProcessNoiseSpec, sensor: SensorSpec) -> Model {
    let n_x = states.len();
    Model {
        states,
        process_noise,
        sensor,
        initial: InitialSpec::Gaussian { mean: vec![0.0; n_x], sd: vec![1.0; n_x] },
        standardise: false,
        symmetries: Vec::new(),
        ..Model::observed(n_y, 0)
    }
}

fn process_sd(prior: Prior) -> ProcessNoiseSpec {
    ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_sd(prior)])
}

/// One sequence of `length` transitions; `missing` are (t, output).
fn plan(length: usize, n_y: usize, missing: &[(usize, usize)]) -> Plan {
    let missing = (0..=length).map(|t| (0..n_y).map(|k| missing.contains(&(t, k))).collect());
    Plan { u: vec![Vec::new(); length + 1], missing: missing.collect() }
}

fn one(name: &'static str, model: Model, plan: Plan, numbers: fn(&Theta) -> Numbers) -> Case {
    Case { name, model, functions: Functions::new(), plans: vec![plan], numbers }
}

/// Everything learned, the process noise under a prior on its variance.
pub fn squared_exponential() -> Case {
    let state = gp(log_normal(1.0, 0.4), log_normal(1.0, 0.4), FunctionSpec::Identity);
    let noise = ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_variance(log_normal(0.16, 0.8))]);
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(log_normal(0.3, 0.5)));
    one("squared exponential", model(vec![state], 1, noise, sensor), plan(4, 1, &[]), |theta| Numbers {
        sensor_noise: theta.sensor_variance(),
        ..theta.scalar(&["x"])
    })
}

/// A linear part beside the smooth one.
pub fn with_linear_part() -> Case {
    let mut state = gp(log_normal(0.6, 0.4), log_normal(1.5, 0.4), FunctionSpec::Identity);
    if let TransitionSpec::Gp { kernel, .. } = &mut state.transition {
        let linear = KernelSpec::new(&LINEAR).with("sigma", log_normal(0.4, 0.4));
        *kernel = KernelSpec::Sum(vec![kernel.clone(), linear]);
    }
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(log_normal(0.3, 0.5)));
    let model = model(vec![state], 1, process_sd(log_normal(0.4, 0.4)), sensor);
    one("with a linear part", model, plan(4, 1, &[]), |theta| Numbers {
        sensor_noise: theta.sensor_variance(),
        ..theta.scalar(&["x"])
    })
}

/// Sensor noise drawn directly, with gaps in the record.
pub fn inverse_gamma_sensor() -> Case {
    let state = gp(log_normal(1.0, 0.4), fixed(1.0), FunctionSpec::Identity);
    let noise = ScalePrior::on_variance(Prior::InverseGamma { shape: 4.0, scale: 0.6 });
    let sensor = sensor(Predictor::States, noise);
    let model = model(vec![state], 1, process_sd(log_normal(0.4, 0.4)), sensor);
    one("inverse-gamma sensor", model, plan(4, 1, &[(1, 0), (3, 0)]), |theta| Numbers {
        sensor_noise: theta.sensor_variance(),
        ..theta.scalar(&["x"])
    })
}

fn two_states(name: &'static str, prior: CovariancePrior) -> Case {
    let state = || gp(log_normal(1.0, 0.4), fixed(1.5), FunctionSpec::Identity);
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(fixed(0.3)));
    let model = model(vec![state(), state()], 2, ProcessNoiseSpec::Full(Some(prior)), sensor);
    one(name, model, plan(4, 2, &[(2, 1)]), |theta| Numbers {
        kernel: [1, 2].map(|d| theta.kernel(d, &["x1", "x2"])).into(),
        lag: vec![None; 2],
        mean: Box::new(|d, z| z[d]),
        q: theta.covariance("process"),
        sensor_mean: Box::new(|k, z| z[k]),
        sensor_noise: SensorNoise::Gaussian(vec![0.09, 0.0, 0.0, 0.09]),
    })
}

fn full_q_lkj() -> Case {
    let sd = vec![ScalePrior::on_sd(log_normal(0.5, 0.4)), ScalePrior::on_variance(log_normal(0.2, 0.6))];
    two_states("full Q, LKJ", CovariancePrior::Lkj { eta: 2.0, sd })
}

fn full_q_inverse_wishart() -> Case {
    let scale = vec![vec![1.0, 0.5], vec![0.5, 1.5]];
    two_states("full Q, inverse Wishart", CovariancePrior::InverseWishart { dof: 7.0, scale })
}

/// One state seen by two outputs with correlated noise, some of them missing.
pub fn full_r() -> Case {
    let state = gp(log_normal(1.0, 0.4), fixed(1.0), FunctionSpec::Identity);
    let known = |c: f64| vec![Value::Known(c)];
    let mean = Predictor::Linear { c: vec![known(1.0), known(0.5)], d: Vec::new(), offset: Vec::new() };
    let scale = vec![vec![0.8, 0.5], vec![0.5, 0.8]];
    let prior = CovariancePrior::InverseWishart { dof: 6.0, scale };
    let sensor = SensorSpec::Gaussian { mean, noise: SensorNoiseSpec::Full(Some(prior)) };
    let model = model(vec![state], 2, process_sd(log_normal(0.4, 0.4)), sensor);
    let missing = [(0, 1), (2, 0), (3, 0), (3, 1), (4, 1)];
    one("full R, inverse Wishart", model, plan(4, 2, &missing), |theta| Numbers {
        sensor_mean: Box::new(|k, z| if k == 0 { z[0] } else { 0.5 * z[0] }),
        sensor_noise: SensorNoise::Gaussian(theta.covariance("sensor")),
        ..theta.scalar(&["x"])
    })
}

fn times(g: fn(f64) -> f64) -> impl Fn(&Points, &[f64], &mut [f64]) {
    move |z, parameters, out| {
        for (out, x) in out.iter_mut().zip(z.column(0)) {
            *out = parameters[0] * g(*x);
        }
    }
}

/// x' = a sin(x) + v with a learned.
fn parametric() -> Case {
    let function = FunctionSpec::User(user("sine", "a"));
    let state = StateSpec { transition: TransitionSpec::Parametric { function }, scale: None };
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(fixed(0.4)));
    let mut model = model(vec![state], 1, process_sd(log_normal(0.5, 0.4)), sensor);
    model.parameters.insert("a".into(), Prior::Normal { mean: 1.0, sd: 0.6 });
    let mut case = one("parametric", model, plan(4, 1, &[]), |theta| {
        let a = theta.get("a");
        Numbers {
            kernel: vec![None],
            lag: vec![None],
            mean: Box::new(move |_, z| a * z[0].sin()),
            q: vec![theta.get("process_sd[x]").powi(2)],
            sensor_mean: Box::new(|k, z| z[k]),
            sensor_noise: SensorNoise::Gaussian(vec![0.16]),
        }
    });
    case.functions = Functions::new().with("sine", times(f64::sin));
    case
}

/// A mean function whose parameter also scales the sensor, b tanh(x) and y = b x + e.
pub fn shared_parameter() -> Case {
    let state = gp(log_normal(0.5, 0.4), fixed(1.0), FunctionSpec::User(user("tanh", "b")));
    let mean = Predictor::Functions(vec![user("line", "b")]);
    let noise = ScalePrior::on_variance(Prior::InverseGamma { shape: 4.0, scale: 0.6 });
    let mut model = model(vec![state], 1, process_sd(log_normal(0.4, 0.4)), sensor(mean, noise));
    model.parameters.insert("b".into(), log_normal(1.0, 0.5));
    let mut case = one("shared parameter", model, plan(4, 1, &[(3, 0)]), |theta| {
        let b = theta.get("b");
        Numbers {
            mean: Box::new(move |_, z| b * z[0].tanh()),
            sensor_mean: Box::new(move |_, z| b * z[0]),
            sensor_noise: theta.sensor_variance(),
            ..theta.scalar(&["x"])
        }
    });
    case.functions = Functions::new().with("tanh", times(f64::tanh)).with("line", times(|x| x));
    case
}

/// y = b x^2 / 2 + e with learned noise and a declared symmetry: signs are drawn at once, states are taken from a shortlist, and the
/// noise moves together with them.
pub fn unseen_sign() -> Case {
    let state = gp(log_normal(1.0, 0.4), fixed(1.0), FunctionSpec::User(user("tanh", "b")));
    let mean = Predictor::Functions(vec![user("square", "b")]);
    let noise = ScalePrior::on_sd(log_normal(0.3, 0.5));
    let mut model = model(vec![state], 1, process_sd(log_normal(0.5, 0.4)), sensor(mean, noise));
    model.parameters.insert("b".into(), log_normal(1.0, 0.3));
    model.symmetries = vec![Symmetry {
        flip: vec![0],
        flip_parameters: Vec::new(),
        orientation: Orientation::PositiveMean { state: 0 },
    }];
    let mut case = one("unseen sign", model, plan(4, 1, &[(2, 0)]), |theta| {
        let b = theta.get("b");
        Numbers {
            mean: Box::new(move |_, z| b * z[0].tanh()),
            sensor_mean: Box::new(move |_, z| b * (0.5 * z[0] * z[0])),
            sensor_noise: theta.sensor_variance(),
            ..theta.scalar(&["x"])
        }
    });
    case.functions = Functions::new().with("tanh", times(f64::tanh)).with("square", times(|x| 0.5 * x * x));
    case
}

fn student_t() -> Case {
    let state = gp(log_normal(1.0, 0.4), fixed(1.0), FunctionSpec::Identity);
    let sensor = SensorSpec::StudentT {
        mean: Predictor::States,
        scale: vec![ScalePrior::on_variance(log_normal(0.1, 0.8))],
        dof: Some(Prior::Gamma { shape: 4.0, rate: 1.0 }),
    };
    let model = model(vec![state], 1, process_sd(log_normal(0.4, 0.4)), sensor);
    one("Student's t", model, plan(4, 1, &[]), |theta| Numbers {
        sensor_noise: SensorNoise::StudentT {
            scale: theta.get("sensor_scale[y]"),
            dof: theta.get("sensor_dof"),
        },
        ..theta.scalar(&["x"])
    })
}

fn two_sequences() -> Case {
    let state = gp(log_normal(1.0, 0.4), log_normal(1.0, 0.4), FunctionSpec::Identity);
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(log_normal(0.3, 0.5)));
    let model = model(vec![state], 1, process_sd(log_normal(0.4, 0.4)), sensor);
    let mut case = one("two sequences", model, plan(3, 1, &[]), |theta| Numbers {
        sensor_noise: theta.sensor_variance(),
        ..theta.scalar(&["x"])
    });
    case.plans.push(plan(2, 1, &[(1, 0)]));
    case
}

/// m = a x + b u + offset, all learned; the sensor's gain too.
pub fn linear_mean() -> Case {
    let learned = |mean: f64, sd: f64| Value::Learned(Prior::Normal { mean, sd });
    let mean = FunctionSpec::Linear {
        a: vec![Value::Learned(Prior::Uniform { low: -1.0, high: 1.5 })],
        b: vec![learned(0.5, 0.5)],
        offset: learned(0.0, 0.3),
    };
    let state = gp(log_normal(0.5, 0.4), fixed(1.0), mean);
    let predictor = Predictor::Linear { c: vec![vec![learned(1.0, 0.3)]], d: vec![], offset: vec![] };
    let sensor = sensor(predictor, ScalePrior::on_sd(log_normal(0.3, 0.4)));
    let mut model = model(vec![state], 1, process_sd(log_normal(0.3, 0.4)), sensor);
    model.n_u = 1;
    let mut case = one("linear mean", model, plan(4, 1, &[]), |theta| {
        let [a, b, offset, c] = [
            "mean_coefficient[x, x]",
            "mean_coefficient[x, u]",
            "mean_offset[x]",
            "sensor_coefficient[y, x]",
        ]
        .map(|name| theta.get(name));
        Numbers {
            mean: Box::new(move |_, z| a * z[0] + b * z[1] + offset),
            sensor_mean: Box::new(move |_, z| c * z[0]),
            sensor_noise: theta.sensor_variance(),
            ..theta.scalar(&["x", "u"])
        }
    });
    case.plans[0].u = (0..5).map(|t| vec![(1.3 * f64::from(t)).sin()]).collect();
    case
}

/// A known transition x1' = x1 + x2 / 2 beside a GP for x2, and a third state that is x2 one step before.
fn known_unknown_and_lag() -> Case {
    let one_state = |transition| StateSpec { transition, scale: None };
    let known = |a: [f64; 3]| a.map(Value::Known).to_vec();
    let integrator = TransitionSpec::Parametric {
        function: FunctionSpec::Linear {
            a: known([1.0, 0.5, 0.0]),
            b: Vec::new(),
            offset: Value::Known(0.0),
        },
    };
    let unknown = gp(log_normal(1.0, 0.4), log_normal(1.5, 0.3), FunctionSpec::Zero);
    let states = vec![one_state(integrator), unknown, one_state(TransitionSpec::Lag { of: 1 })];
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(fixed(0.3)));
    let model = model(states, 1, process_sd(log_normal(0.4, 0.4)), sensor);
    one("known, unknown and lag", model, plan(4, 1, &[]), |theta| {
        let q = [1, 2].map(|d| theta.get(&format!("process_sd[x{d}]")).powi(2));
        Numbers {
            kernel: vec![None, theta.kernel(2, &["x1", "x2", "x3"]), None],
            lag: vec![None, None, Some(1)],
            mean: Box::new(|d, z| if d == 0 { z[0] + 0.5 * z[1] } else { 0.0 }),
            q: vec![q[0], 0.0, 0.0, 0.0, q[1], 0.0, 0.0, 0.0, 0.0],
            sensor_mean: Box::new(|k, z| z[k]),
            sensor_noise: SensorNoise::Gaussian(vec![0.09]),
        }
    })
}

/// x' of two past states, and a sensor whose noise is learned: its residuals move the state and its copy.
pub fn lagged() -> Case {
    let unknown = gp(log_normal(1.0, 0.4), fixed(1.5), FunctionSpec::Identity);
    let copy = StateSpec { transition: TransitionSpec::Lag { of: 0 }, scale: None };
    let sensor = sensor(Predictor::States, ScalePrior::on_sd(log_normal(0.3, 0.5)));
    let model = model(vec![unknown, copy], 1, process_sd(log_normal(0.4, 0.4)), sensor);
    one("lagged", model, plan(4, 1, &[(2, 0)]), |theta| Numbers {
        kernel: vec![theta.kernel(1, &["x1", "x2"]), None],
        lag: vec![None, Some(0)],
        mean: Box::new(|d, z| z[d]),
        q: vec![theta.get("process_sd[x1]").powi(2), 0.0, 0.0, 0.0],
        sensor_mean: Box::new(|k, z| z[k]),
        sensor_noise: theta.sensor_variance(),
    })
}

pub fn all() -> Vec<Case> {
    vec![
        squared_exponential(),
        inverse_gamma_sensor(),
        full_q_lkj(),
        full_q_inverse_wishart(),
        full_r(),
        parametric(),
        shared_parameter(),
        unseen_sign(),
        student_t(),
        two_sequences(),
        linear_mean(),
        known_unknown_and_lag(),
        lagged(),
        with_linear_part(),
    ]
}
