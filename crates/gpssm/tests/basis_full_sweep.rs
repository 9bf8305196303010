//! Full sweeps with finite bases leave theta and x invariant: theta from its prior, (x, y) from the finite-basis
//! model given theta, three sweeps with frozen slice widths; functionals before and after are compared, paired.
//!
//! Planted bug that was seen to fail: weights drawn before theta in the sampled mode (z = 10.5, 5,000 replicates).

#[path = "finite_basis/paired.rs"]
mod paired;
#[path = "finite_basis/plain.rs"]
mod plain;

use gpssm::dynamics::FunctionPrior;
use gpssm::kernel::{MATERN52, SQUARED_EXPONENTIAL};
use gpssm::mcmc::moves::HyperParameters;
use gpssm::mcmc::{Chain, ChainState, SweepInfo, WidthAdaptation};
use gpssm::model::{
    DynamicsSpec, FunctionSpec, InducingSpec, InitialSpec, Mode, Predictor, ProcessNoiseSpec, ScalePrior,
    SensorNoiseSpec, SensorSpec, StateSpec, TransitionSpec,
};
use gpssm::smc::{FilterOptions, conditional_filter};
use gpssm::state_space::SharedPairs;
use gpssm::{Functions, KernelSpec, Model, Prior, Problem, Sequence};
use gpssm_dev::normal;
use paired::{Comparison, Replicate, compare};
use plain::{Plain, draw_path, draw_weights, log_joint};
use rand::Rng;
use rand::rngs::ChaCha8Rng;

const LENGTH: usize = 4;
const SWEEPS: usize = 3;

/// f ~ GP(x, SE or Matern-5/2), everything learned; y = x + e; x_0 ~ N(0, 1).
struct Case {
    name: &'static str,
    model: Model,
    basis: Plain,
}

fn case(name: &'static str, basis: Plain, mode: Mode, matern: bool) -> Case {
    let log_normal = |median: f64, sigma: f64| Prior::LogNormal { median, sigma };
    let dynamics = match &basis {
        Plain::Fic(rows) => DynamicsSpec::Fic { inducing: InducingSpec::Given(rows.clone()), mode },
        Plain::Dtc(rows) => DynamicsSpec::Dtc { inducing: InducingSpec::Given(rows.clone()), mode },
        Plain::Hilbert { half_width, n, .. } => {
            DynamicsSpec::Hilbert { functions: *n, half_width: half_width.clone(), mode }
        }
    };
    let kernel = KernelSpec::new(if matern { &MATERN52 } else { &SQUARED_EXPONENTIAL });
    let kernel = kernel.with("sigma_f", log_normal(1.0, 0.4)).with("ell", log_normal(1.0, 0.4));
    let transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
    let noise = SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(log_normal(0.3, 0.5))]);
    let model = Model {
        states: vec![StateSpec { transition, scale: None }],
        dynamics,
        process_noise: ProcessNoiseSpec::Diagonal(vec![ScalePrior::on_variance(log_normal(0.16, 0.8))]),
        sensor: SensorSpec::Gaussian { mean: Predictor::States, noise },
        initial: InitialSpec::Gaussian { mean: vec![0.0], sd: vec![1.0] },
        standardise: false,
        symmetries: Vec::new(),
        ..Model::observed(1, 0)
    };
    Case { name, model, basis }
}

impl Case {
    fn problem(&self, sequence: &Sequence) -> Problem {
        let record = sequence.clone().into();
        let problem = Problem::new(self.model.clone(), &Functions::new(), record).expect("a problem");
        problem.with_basis(self.basis.choice())
    }

    fn blank(&self) -> Problem {
        self.problem(&Sequence::scalar(&[0.0; LENGTH + 1], None).expect("a sequence"))
    }

    fn chain_state(problem: &Problem, replicate: &Replicate) -> ChainState {
        let mut state = ChainState::new(problem, replicate.theta.clone(), vec![replicate.x.concat()]);
        for width in &mut state.widths {
            *width = WidthAdaptation::new(1.0);
            width.freeze();
        }
        state
    }

    /// All sweeps of a chain, by this step.
    fn run(
        &self,
        replicate: &mut Replicate,
        rng: &mut ChaCha8Rng,
        step: impl Fn(&Problem, &mut Chain, &mut ChaCha8Rng),
    ) {
        let problem = self.problem(&replicate.sequence);
        let state = Self::chain_state(&problem, replicate);
        let mut chain = Chain::new(&problem, FilterOptions::new(3), rng.next_u64(), 0, state);
        (0..SWEEPS).for_each(|_| step(&problem, &mut chain, rng));
        replicate.theta = chain.state.theta;
        replicate.x = rows(&chain.state.paths[0]);
    }

    fn compare(&self, n: usize, update: &(dyn Fn(&mut Replicate, &mut ChaCha8Rng) + Sync)) -> Comparison {
        let blank = self.blank();
        let place = blank.table().index("sensor_sd[y]").expect("a sensor scale");
        let start = |rng: &mut ChaCha8Rng| {
            let theta = blank.table().sample(rng).expect("a draw");
            let transition = blank.bind_transition(&theta);
            let x_0 = vec![normal(rng)];
            let x = draw_path(&transition, &self.basis, x_0, &[], LENGTH, rng);
            let y: Vec<f64> = x.iter().map(|x| x[0] + theta[place] * normal(rng)).collect();
            Replicate { theta, x, sequence: Sequence::scalar(&y, None).expect("a sequence") }
        };
        let functionals = |replicate: &Replicate| {
            let Replicate { theta, x, sequence } = replicate;
            let x_only: Vec<f64> = x.concat();
            let misfit: f64 = (0..=LENGTH).map(|t| (sequence.y(t)[0] - x_only[t]).powi(2).ln_1p()).sum();
            let roughness: f64 = x_only.windows(2).map(|x| (x[1] - x[0]).powi(2).ln_1p()).sum();
            let mut out = vec![misfit, roughness];
            for theta in theta {
                let c = theta.ln();
                out.extend([c, c * c, c * misfit, c * roughness]);
            }
            out.extend(x_only.iter().flat_map(|x| [*x, (x * x).ln_1p()]));
            out.extend(x_only.windows(2).map(|x| (x[0] * x[1]).tanh()));
            out.push(log_joint(&blank.bind_transition(theta), Some(&self.basis), x, &[]));
            out
        };
        compare(n, &start, update, &functionals)
    }

    fn check(&self, n: usize) {
        let update = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
            self.run(replicate, rng, |_, chain, _| {
                let info = chain.sweep();
                assert_eq!((info.density_failures, info.filter_failures, info.slice_failures), (0, 0, 0));
            });
        };
        self.compare(n, &update).assert_invariant(self.name);
    }
}

fn rows(path: &[f64]) -> Vec<Vec<f64>> {
    path.iter().map(|x| vec![*x]).collect()
}

fn fic() -> Plain {
    Plain::Fic([-1.5, 0.1, 1.8].map(|x| vec![x]).to_vec())
}

fn hilbert() -> Plain {
    Plain::hilbert(&[3.5], 6)
}

#[test]
fn full_sweeps_with_collapsed_weights_leave_theta_and_states_invariant() {
    case("FIC, collapsed", fic(), Mode::Collapsed, false).check(20_000);
    case("Hilbert, collapsed", hilbert(), Mode::Collapsed, true).check(20_000);
}

#[test]
fn full_sweeps_with_sampled_weights_leave_theta_and_states_invariant() {
    case("FIC, sampled", fic(), Mode::Sampled, true).check(20_000);
    case("Hilbert, sampled", hilbert(), Mode::Sampled, false).check(20_000);
}

/// A sweep in which the weights are drawn by the test, before theta or after it.
fn by_hand(case: &Case, n: usize, weights_first: bool) -> Comparison {
    let update = |replicate: &mut Replicate, rng: &mut ChaCha8Rng| {
        case.run(replicate, rng, |problem, chain, rng| {
            let draw = |chain: &Chain, rng: &mut ChaCha8Rng| {
                let transition = problem.bind_transition(&chain.state.theta);
                draw_weights(&transition, &case.basis, &rows(&chain.state.paths[0]), rng)
            };
            chain.state.sweep += 1;
            let early = draw(chain, rng);
            chain.make(&HyperParameters, &mut SweepInfo::default());
            let weights = if weights_first { early } else { draw(chain, rng) };
            let mut model = problem.bind(&chain.state.theta);
            model.transition.prior = FunctionPrior::Sampled(case.basis.choice(), vec![weights]);
            let (sequence, options) = (&problem.sequences()[0], FilterOptions::new(3));
            let none = SharedPairs::none(1, 0);
            let outcome = conditional_filter(&model, sequence, &none, options, &chain.state.paths[0], rng);
            chain.state.paths[0] = outcome.expect("a filter that finishes").path;
        });
    };
    case.compare(n, &update)
}

#[test]
fn weights_drawn_before_theta_are_caught() {
    let case = case("Hilbert", hilbert(), Mode::Sampled, false);
    by_hand(&case, 5_000, false).assert_invariant("weights after theta");
    by_hand(&case, 5_000, true).assert_caught("weights before theta");
}
