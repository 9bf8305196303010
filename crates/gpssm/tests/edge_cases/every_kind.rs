//! Every family of sensor and every kind of kernel, prior and transition, end to end.

use gpssm::kernel::{CONSTANT, KERNELS, LINEAR, MATERN32, MATERN52, PERIODIC, SQUARED_EXPONENTIAL};
use gpssm::model::{
    CovariancePrior, FunctionSpec, Predictor, ProcessNoiseSpec, SensorNoiseSpec, SensorSpec, StateSpec,
    TransitionSpec, Value,
};
use gpssm::smc::{Proposal, Resampling};
use gpssm::{KernelSpec, Model, Prior, Record, Sequence, Settings};

use crate::{assert_runs, record, short};

const ROWS: usize = 15;

fn outputs(y: impl Fn(usize) -> f64) -> Sequence {
    Sequence::scalar(&(0..ROWS).map(y).collect::<Vec<_>>(), None).unwrap()
}

#[test]
fn every_kernel_runs() {
    let plain = KERNELS.iter().map(|kernel| (kernel.title, KernelSpec::new(kernel)));
    let periodic = || KernelSpec::new(&PERIODIC);
    let composed = [
        ("default", KernelSpec::default()),
        (
            "additive",
            KernelSpec::Sum(vec![
                KernelSpec::new(&MATERN32).on(&["x"]),
                KernelSpec::new(&SQUARED_EXPONENTIAL).on(&["u1"]),
                KernelSpec::new(&LINEAR),
                KernelSpec::new(&CONSTANT),
            ]),
        ),
        ("odd", KernelSpec::Odd(Box::new(KernelSpec::Sum(vec![KernelSpec::new(&MATERN32), periodic()])))),
        ("change point", KernelSpec::change_point(KernelSpec::default(), periodic()).on(&["u1"])),
        (
            "product of sums",
            KernelSpec::Product(vec![
                KernelSpec::Sum(vec![KernelSpec::new(&MATERN52).on(&["x1"]), periodic()]),
                KernelSpec::new(&SQUARED_EXPONENTIAL).on(&["u"]),
            ]),
        ),
    ];
    for (name, kernel) in plain.chain(composed) {
        let transition = TransitionSpec::Gp { kernel, mean: FunctionSpec::Identity };
        let states = vec![StateSpec { transition, scale: None }];
        assert_runs(Model { states, ..Model::observed(1, 1) }, record(ROWS), &short(), name);
    }
}

#[test]
fn every_family_runs() {
    let states = || Predictor::States;
    let wave = |t: usize| (0.6 * t as f64).sin();
    let count = move |t: usize| (2.0 + 2.0 * wave(t)).round();
    let gaussian = SensorSpec::Gaussian { mean: states(), noise: SensorNoiseSpec::default() };
    let student = SensorSpec::StudentT { mean: states(), scale: vec![], dof: None };
    for (name, sensor, y) in [
        ("Gaussian", gaussian, outputs(wave)),
        ("Student's t", student, outputs(|t| if t == 5 { 50.0 } else { wave(t) })),
        ("Poisson", SensorSpec::Poisson { log_rate: states() }, outputs(count)),
        (
            "negative binomial",
            SensorSpec::NegativeBinomial { log_mean: states(), size: None },
            outputs(count),
        ),
        ("Bernoulli", SensorSpec::Bernoulli { logit: states() }, outputs(|t| f64::from(wave(t) > 0.0))),
        (
            "stochastic volatility",
            SensorSpec::StochasticVolatility { log_variance: states() },
            outputs(|t| wave(3 * t) * (0.5 * wave(t)).exp()),
        ),
        (
            "stochastic volatility, exact zeros",
            SensorSpec::StochasticVolatility { log_variance: states() },
            outputs(|t| if t % 4 == 0 { 0.0 } else { wave(3 * t) }),
        ),
    ] {
        assert_runs(Model { sensor, ..Model::observed(1, 0) }, y, &short(), name);
    }
}

#[test]
fn every_noise_and_transition_runs() {
    let rows: Vec<Vec<f64>> =
        (0..ROWS).map(|t| vec![(0.5 * t as f64).sin(), (0.5 * t as f64 + 1.0).cos() * 3.0]).collect();
    let two = || Sequence::new(rows.clone(), vec![]).unwrap();
    let full = |prior| SensorSpec::Gaussian { mean: Predictor::States, noise: SensorNoiseSpec::Full(prior) };
    let lkj = || CovariancePrior::Lkj {
        eta: 1.5,
        sd: vec![gpssm::model::ScalePrior::on_sd(Prior::HalfNormal { sd: 1.0 }); 2],
    };
    let observed = || Model::observed(2, 0);
    let models = [
        ("full Q", Model { process_noise: ProcessNoiseSpec::Full(None), ..observed() }),
        ("full Q, LKJ", Model { process_noise: ProcessNoiseSpec::Full(Some(lkj())), ..observed() }),
        ("full R", Model { sensor: full(None), ..observed() }),
        ("full R, LKJ", Model { sensor: full(Some(lkj())), ..observed() }),
        ("lags", Model::lagged_outputs(2, 0, 2)),
        ("hidden states", Model::with_hidden_states(3, 2, 0)),
        ("not standardised", Model { standardise: false, ..observed() }),
    ];
    for (name, model) in models {
        assert_runs(model, two(), &short(), name);
    }
    let learned = Value::Learned(Prior::Normal { mean: 0.8, sd: 0.3 });
    let function =
        FunctionSpec::Linear { a: vec![learned.clone()], b: vec![learned.clone()], offset: learned };
    let transition = TransitionSpec::Parametric { function };
    let states = vec![StateSpec { transition, scale: None }];
    assert_runs(Model { states, ..Model::observed(1, 1) }, record(ROWS), &short(), "known form");
}

#[test]
fn every_proposal_resampling_and_record_runs() {
    let several = Record::new(vec![record(ROWS), record(4), record(2)]).unwrap();
    for resampling in [Resampling::Multinomial, Resampling::Systematic] {
        for proposal in [Proposal::Auto, Proposal::Bootstrap, Proposal::Adapted] {
            let settings = Settings { resampling, proposal, ..short() };
            let what = format!("{resampling:?}, {proposal:?}");
            assert_runs(Model::observed(1, 1), several.clone(), &settings, &what);
        }
    }
}
