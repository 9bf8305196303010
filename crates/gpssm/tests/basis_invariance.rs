//! Exact-start invariance of the conditional filter with finite bases: as for the exact Gaussian process, but
//! (x, y) is drawn from the finite-basis model (weights once, what FIC leaves unexplained and noise at each point).
//!
//! T = 4, N = 3, three sweeps; functionals of x before and after are compared, paired: |z| <= 5. Planted bugs that
//! were seen to fail:
//!
//! | planted bug | FIC | Hilbert | replicates |
//! |---|---|---|---|
//! | one-step ancestor weight | 11.5 | 15.3 | 4,000 |
//! | weights from their prior, not given x | 42.7 | 50.7 | 4,000 |
//! | filter without FIC's correction | 23.1 | | 4,000 |
//! | weights drawn without FIC's correction | 10.0 | | 15,000 |

#[path = "finite_basis/paired.rs"]
mod paired;
#[path = "finite_basis/plain.rs"]
mod plain;

use gpssm::dynamics::{FunctionPrior, Transition};
use gpssm::kernel::{Descriptor, LINEAR, MATERN32, SQUARED_EXPONENTIAL};
use gpssm::mcmc::moves::{States, Weights};
use gpssm::mcmc::{Chain, ChainState, SweepInfo};
use gpssm::model::{
    DynamicsSpec, FunctionSpec, InducingSpec, InitialSpec, Mode, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec, Value,
};
use gpssm::smc::{FilterOptions, Proposal, Resampling, conditional_filter};
use gpssm::state_space::{BoundInitial, SharedPairs, StateSpace};
use gpssm::{Functions, KernelSpec, Model, Prior, Problem, Sequence};
use gpssm_dev::dense::{cholesky, dot, log_gaussian, whiten};
use gpssm_dev::normal;
use paired::{Comparison, Replicate, compare};
use plain::{Plain, draw_path, draw_weights, log_joint};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt};

const LENGTH: usize = 4;
const SWEEPS: usize = 3;
const R: f64 = 0.3;

fn fixed(value: f64) -> Prior {
    Prior::Fixed { value }
}

fn known(values: &[f64]) -> Vec<Value> {
    values.iter().copied().map(Value::Known).collect()
}

fn stationary(kind: &'static Descriptor, sigma_f: f64, ell: &[f64]) -> KernelSpec {
    let ell: Vec<Prior> = ell.iter().copied().map(fixed).collect();
    KernelSpec::new(kind).with("sigma_f", fixed(sigma_f)).with("ell", ell)
}

fn state(kernel: KernelSpec, mean: FunctionSpec) -> StateSpec {
    StateSpec { transition: TransitionSpec::Gp { kernel, mean }, scale: None }
}

fn model(
    states: Vec<StateSpec>,
    n_u: usize,
    process_noise: ProcessNoiseSpec,
    mean: Predictor,
    dynamics: DynamicsSpec,
) -> Model {
    let n_x = states.len();
    let noise = SensorNoiseSpec::Diagonal(vec![ScalePrior::on_variance(fixed(R))]);
    Model {
        states,
        process_noise,
        dynamics,
        sensor: SensorSpec::Gaussian { mean, noise },
        initial: InitialSpec::Gaussian { mean: vec![0.0; n_x], sd: vec![1.0; n_x] },
        standardise: false,
        symmetries: Vec::new(),
        ..Model::observed(1, n_u)
    }
}

/// A model with numbers, its basis, and how y follows: y = C (x, u) + e.
struct Case {
    name: &'static str,
    model: Model,
    theta: Vec<f64>,
    bound: StateSpace,
    basis: Plain,
    c: Vec<f64>,
}

impl Case {
    fn new(name: &'static str, basis: Plain, c: &[f64], model: impl Fn(DynamicsSpec) -> Model) -> Self {
        let mode = Mode::Sampled;
        let dynamics = match &basis {
            Plain::Fic(rows) => DynamicsSpec::Fic { inducing: InducingSpec::Given(rows.clone()), mode },
            Plain::Dtc(rows) => DynamicsSpec::Dtc { inducing: InducingSpec::Given(rows.clone()), mode },
            Plain::Hilbert { half_width, n, .. } => {
                DynamicsSpec::Hilbert { functions: *n, half_width: half_width.clone(), mode }
            }
        };
        let model = model(dynamics);
        let n_u = model.n_u;
        let blank = Sequence::new(vec![vec![0.0]; LENGTH + 1], inputs(n_u)).expect("a sequence");
        let problem = Problem::new(model.clone(), &Functions::new(), blank.into()).expect("a problem");
        let problem = problem.with_basis(basis.choice());
        let table = problem.table();
        let theta = table.parameters.iter().map(|parameter| match parameter.name.as_str() {
            // Q = ((0.2, 0.14), (0.14, 0.2)).
            "process_chol[x1, x1]" => 0.2f64.sqrt(),
            "process_chol[x2, x1]" => 0.14 / 0.2f64.sqrt(),
            "process_chol[x2, x2]" => (0.2 - 0.14 * 0.14 / 0.2f64).sqrt(),
            _ => f64::NAN,
        });
        let mut theta: Vec<f64> = theta.collect();
        let mut rng: ChaCha8Rng = rand::SeedableRng::seed_from_u64(1);
        let sampled = table.sample(&mut rng).expect("a draw");
        theta.iter_mut().zip(sampled).filter(|(theta, _)| theta.is_nan()).for_each(|(a, b)| *a = b);
        let bound = problem.bind(&theta);
        assert!(matches!(bound.initial, BoundInitial::Gaussian { .. }));
        Self { name, model, theta, bound, basis, c: c.to_vec() }
    }

    fn transition(&self) -> &Transition {
        &self.bound.transition
    }

    fn output(&self, x: &[f64], u: &[f64]) -> f64 {
        dot(&self.c, &[x, u].concat())
    }

    /// (x, y), with x from `basis`.
    fn start(&self, basis: &Plain, rng: &mut ChaCha8Rng) -> Replicate {
        let u = inputs(self.model.n_u);
        let x_0 = (0..self.transition().n_x()).map(|_| normal(rng)).collect();
        let x = draw_path(self.transition(), basis, x_0, &u, LENGTH, rng);
        let mut y = Vec::new();
        for (t, x) in x.iter().enumerate() {
            let u = u.get(t).cloned().unwrap_or_default();
            y.push(vec![self.output(x, &u) + R.sqrt() * normal(rng)]);
        }
        Replicate { theta: Vec::new(), x, sequence: Sequence::new(y, u).expect("a sequence") }
    }

    fn functionals(&self, replicate: &Replicate) -> Vec<f64> {
        let Replicate { x, sequence, .. } = replicate;
        let mut out = state_moments(x);
        let e = |t: usize| sequence.y(t)[0] - self.output(&x[t], sequence.u(t));
        let square: f64 = (0..=LENGTH).map(|t| e(t).powi(2)).sum();
        out.push(square);
        out.push((0..=LENGTH).map(|t| sequence.y(t)[0] * x[t][0]).sum());
        let log_joint = log_joint(self.transition(), Some(&self.basis), x, &inputs(self.model.n_u));
        out.extend([log_joint, log_joint - 0.5 * dot(&x[0], &x[0]) - 0.5 * square / R]);
        out
    }

    fn compare(&self, n: usize, update: &(dyn Fn(&mut Replicate, &mut ChaCha8Rng) + Sync)) -> Comparison {
        let sweeps = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
            (0..SWEEPS).for_each(|_| update(replicate, rng));
        };
        compare(n, &|rng| self.start(&self.basis, rng), &sweeps, &|replicate| self.functionals(replicate))
    }

    /// One sweep of the conditional filter with this prior over f.
    fn filter(
        &self,
        prior: Option<FunctionPrior>,
        options: FilterOptions,
        replicate: &mut Replicate,
        rng: &mut ChaCha8Rng,
    ) {
        let mut bound = self.bound.clone();
        if let Some(prior) = prior {
            bound.transition.prior = prior;
        }
        let n_x = bound.transition.n_x();
        let none = SharedPairs::none(n_x, self.model.n_u);
        let outcome =
            conditional_filter(&bound, &replicate.sequence, &none, options, &replicate.x.concat(), rng)
                .expect("a filter that finishes");
        replicate.x = rows(&outcome.path, n_x);
    }
}

/// Moments of the states: x, x^2, products of neighbours and of dimensions.
fn state_moments(x: &[Vec<f64>]) -> Vec<f64> {
    let (last, n_x) = (x.len() - 1, x[0].len());
    let mut out = Vec::new();
    for d in 0..n_x {
        out.extend(x.iter().map(|x| x[d]));
        out.extend(x.iter().map(|x| x[d] * x[d]));
        out.extend((0..last).map(|t| x[t][d] * x[t + 1][d]));
        out.push(x[0][d] * x[last][d]);
        for e in (0..n_x).filter(|&e| e != d) {
            out.push((0..last).map(|t| x[t][d] * x[t + 1][e]).sum());
            out.push((0..=last).map(|t| x[t][d] * x[t][e]).sum());
        }
    }
    out
}

fn rows(path: &[f64], n_x: usize) -> Vec<Vec<f64>> {
    path.chunks_exact(n_x).map(<[f64]>::to_vec).collect()
}

fn inputs(n_u: usize) -> Vec<Vec<f64>> {
    if n_u == 0 { Vec::new() } else { [1.0, -0.5, 0.8, -1.2, 0.3].map(|u| vec![u]).to_vec() }
}

fn options(proposal: Proposal) -> FilterOptions {
    FilterOptions { n_particles: 3, resampling: Resampling::Systematic, proposal }
}

/// f ~ GP(0, 2 exp(-(x - x')^2 / (2 0.8^2))), q = 0.1; y = x + e, r = 0.3; x_0 ~ N(0, 1).
fn scalar(name: &'static str, basis: Plain) -> Case {
    Case::new(name, basis, &[1.0], |dynamics| {
        let kernel = stationary(&SQUARED_EXPONENTIAL, 2f64.sqrt(), &[0.8]);
        let noise = ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_variance(fixed(0.1))]);
        model(vec![state(kernel, FunctionSpec::Zero)], 0, noise, Predictor::States, dynamics)
    })
}

/// f_a ~ GP(0.6 a, SE(1.5; 1, 2, 1.5)), f_b ~ GP(0.5 b + 0.3 u, Matern-3/2(1; 1.5, 1, 2) + 0.3 a a'); Q =
/// diag(0.1, 0.2) or with correlation 0.7; y = a + 0.5 b + 0.4 u + e, r = 0.3; x_0 ~ N(0, I).
fn planar(name: &'static str, basis: Plain, full: bool) -> Case {
    Case::new(name, basis, &[1.0, 0.5, 0.4], |dynamics| {
        let linear = KernelSpec::new(&LINEAR).on(&["x1"]).with("sigma", fixed(0.3f64.sqrt()));
        let second = KernelSpec::Sum(vec![stationary(&MATERN32, 1.0, &[1.5, 1.0, 2.0]), linear]);
        let first = stationary(&SQUARED_EXPONENTIAL, 1.5f64.sqrt(), &[1.0, 2.0, 1.5]);
        let mean = |a: [f64; 2], b: f64| FunctionSpec::Linear {
            a: known(&a),
            b: known(&[b]),
            offset: Value::Known(0.0),
        };
        let states = vec![state(first, mean([0.6, 0.0], 0.0)), state(second, mean([0.0, 0.5], 0.3))];
        let noise = if full {
            ProcessNoiseSpec::Full(None)
        } else {
            let variance = |q| ScalePrior::on_variance(fixed(q));
            ProcessNoiseSpec::Diagonal(vec![variance(0.1), variance(0.2)])
        };
        let sensor =
            Predictor::Linear { c: vec![known(&[1.0, 0.5])], d: vec![known(&[0.4])], offset: Vec::new() };
        model(states, 1, noise, sensor, dynamics)
    })
}

fn line() -> Vec<Vec<f64>> {
    [-1.2, 0.1, 1.5].map(|x| vec![x]).to_vec()
}

fn cloud() -> Vec<Vec<f64>> {
    [[-1.0, 0.2, 0.5], [0.9, -0.8, -0.7], [0.1, 1.1, 0.9]].map(|z| z.to_vec()).to_vec()
}

fn fic() -> Case {
    scalar("FIC", Plain::Fic(line()))
}

fn hilbert() -> Case {
    scalar("Hilbert", Plain::hilbert(&[3.0], 6))
}

fn planar_cases() -> Vec<Case> {
    let hilbert = || Plain::hilbert(&[4.0, 4.0, 2.5], 5);
    vec![
        planar("FIC, two states, diagonal Q", Plain::Fic(cloud()), false),
        planar("FIC, two states, full Q", Plain::Fic(cloud()), true),
        planar("Hilbert, two states, diagonal Q", hilbert(), false),
        planar("Hilbert, two states, full Q", hilbert(), true),
    ]
}

fn collapsed(case: &Case, n: usize) {
    for proposal in [Proposal::Bootstrap, Proposal::Adapted] {
        let update = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
            case.filter(None, options(proposal), replicate, rng);
        };
        case.compare(n, &update).assert_invariant(&format!("{}, collapsed, {proposal:?}", case.name));
    }
}

#[test]
fn collapsed_weights_leave_the_path_invariant() {
    collapsed(&fic(), 20_000);
    collapsed(&hilbert(), 20_000);
}

#[test]
fn collapsed_weights_leave_two_states_invariant() {
    planar_cases().iter().for_each(|case| collapsed(case, 10_000));
}

/// Weights given the path, then the path given the weights, by the steps of a chain.
fn sampled(case: &Case, n: usize) {
    let n_x = case.transition().n_x();
    let update = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
        let record = replicate.sequence.clone().into();
        let problem = Problem::new(case.model.clone(), &Functions::new(), record).expect("a problem");
        let problem = problem.with_basis(case.basis.choice());
        let mut state = ChainState::new(&problem, case.theta.clone(), vec![replicate.x.concat()]);
        state.sweep = 1;
        let mut chain = Chain::new(&problem, FilterOptions::new(3), rng.next_u64(), 0, state);
        let mut info = SweepInfo::default();
        chain.make(&Weights, &mut info);
        chain.make(&States, &mut info);
        assert_eq!(info.filter_failures, 0);
        replicate.x = rows(&chain.state.paths[0], n_x);
    };
    case.compare(n, &update).assert_invariant(&format!("{}, sampled", case.name));
}

#[test]
fn sampled_weights_leave_the_path_invariant() {
    sampled(&fic(), 20_000);
    sampled(&hilbert(), 20_000);
    planar_cases().iter().for_each(|case| sampled(case, 10_000));
}

/// The conditional filter by dense joint densities: bootstrap proposals, multinomial resampling, one state. With
/// `one_step` the ancestor of the reference is weighted by its next state alone.
fn twin(case: &Case, one_step: bool, replicate: &mut Replicate, rng: &mut ChaCha8Rng) {
    let (transition, basis, n) = (case.transition(), Some(&case.basis), 3);
    let reference = replicate.x.clone();
    let joint = |x: &[Vec<f64>]| if x.len() < 2 { 0.0 } else { log_joint(transition, basis, x, &[]) };
    let log_y = |t: usize, x: &[f64]| log_gaussian(&[R], &[replicate.sequence.y(t)[0] - case.output(x, &[])]);
    let pick = |log_w: &[f64], rng: &mut ChaCha8Rng| {
        let most = log_w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let w: Vec<f64> = log_w.iter().map(|w| (w - most).exp()).collect();
        let mut left = rng.random::<f64>() * w.iter().sum::<f64>();
        w.iter().position(|w| {
            left -= w;
            left < 0.0
        })
    };
    let mut paths: Vec<Vec<Vec<f64>>> = (1..n).map(|_| vec![vec![normal(rng)]]).collect();
    paths.push(vec![reference[0].clone()]);
    let weigh = |t: usize, paths: &[Vec<Vec<f64>>]| -> Vec<f64> {
        paths.iter().map(|path| log_y(t, &path[t])).collect()
    };
    for t in 1..=LENGTH {
        let log_w = weigh(t - 1, &paths);
        let end = if one_step { t } else { LENGTH };
        let future = |path: &Vec<Vec<f64>>| joint(&[&path[..], &reference[t..=end]].concat()) - joint(path);
        let with_future: Vec<f64> = paths.iter().zip(&log_w).map(|(path, w)| w + future(path)).collect();
        let mut next = Vec::new();
        for _ in 1..n {
            let mut path = paths[pick(&log_w, rng).unwrap_or(0)].clone();
            // Mean and variance of the last residual given those before it.
            path.push(vec![0.0]);
            let z = plain::points(&path, &[]);
            let l = cholesky(&plain::covariance(transition, basis, &z), t);
            let e = plain::residuals(transition, &path, &z);
            let mut white = whiten(&l, t, &e);
            white[t - 1] = normal(rng);
            path[t][0] = plain::mean(transition, 0, &z[t - 1]) + dot(&l[(t - 1) * t..], &white);
            next.push(path);
        }
        let mut own = paths[pick(&with_future, rng).unwrap_or(0)].clone();
        own.push(reference[t].clone());
        next.push(own);
        paths = next;
    }
    let last = pick(&weigh(LENGTH, &paths), rng).unwrap_or(0);
    replicate.x = paths.swap_remove(last);
}

#[test]
fn planted_bugs_are_caught() {
    let bootstrap = options(Proposal::Bootstrap);
    for case in [fic(), hilbert()] {
        let name = |bug: &str| format!("{}: {bug}", case.name);
        let sound = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| twin(&case, false, replicate, rng);
        case.compare(4_000, &sound).assert_invariant(&name("slow twin"));
        let one_step = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| twin(&case, true, replicate, rng);
        case.compare(4_000, &one_step).assert_caught(&name("one-step ancestor weight"));
        let given = |weights: Vec<f64>| Some(FunctionPrior::Sampled(case.basis.choice(), vec![weights]));
        let sound = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
            let w = draw_weights(case.transition(), &case.basis, &replicate.x, rng);
            case.filter(given(w), bootstrap, replicate, rng);
        };
        case.compare(10_000, &sound).assert_invariant(&name("weights drawn by the test"));
        let prior = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
            let w = case.basis.features(&case.transition().kernels[0], &[0.0]).0;
            let w = w.iter().map(|_| normal(rng)).collect();
            case.filter(given(w), bootstrap, replicate, rng);
        };
        case.compare(4_000, &prior).assert_caught(&name("weights from their prior"));
    }
    let case = fic();
    let without = Plain::Dtc(line());
    let dtc = Some(FunctionPrior::Collapsed(without.choice()));
    let update = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
        case.filter(dtc.clone(), bootstrap, replicate, rng);
    };
    case.compare(4_000, &update).assert_caught("FIC: filter without the correction");
    let dtc_weights = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
        let w = draw_weights(case.transition(), &without, &replicate.x, rng);
        let prior = FunctionPrior::Sampled(case.basis.choice(), vec![w]);
        case.filter(Some(prior), bootstrap, replicate, rng);
    };
    case.compare(15_000, &dtc_weights).assert_caught("FIC: weights drawn without the correction");
}
