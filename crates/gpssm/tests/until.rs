//! Runs that go on until they are good: the same draws, and as many of them, however the run is made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpssm::convergence::{Quantity, R_HAT_LIMIT, verdict};
use gpssm::mcmc::ChainDraws;
use gpssm::mcmc::StartSettings;

use gpssm::model::{FunctionSpec, ProcessNoiseSpec, ScalePrior, StateSpec, TransitionSpec};
use gpssm::run::{FIRST_LOOK, next_look};
use gpssm::{
    Budget, ChainPlan, Ended, Functions, MemorySink, Model, Phase, Prior, Problem, Sequence, Settings,
    sample, sample_chains,
};

/// A linear model, all of it known but the noise of the sensor: cheap sweeps that mix well.
fn problem() -> Problem {
    let y: Vec<f64> = (0..12).map(|t| (0.31 * f64::from(t * t)).cos()).collect();
    let mut model = Model::observed(1, 0);
    let function = FunctionSpec::Formula("0.7*x1".into());
    model.states[0] = StateSpec { transition: TransitionSpec::Parametric { function }, scale: None };
    let known = ScalePrior::on_sd(Prior::Fixed { value: 0.5 });
    model.process_noise = ProcessNoiseSpec::Diagonal(vec![known]);
    Problem::new(model, &Functions::new(), Sequence::scalar(&y, None).unwrap().into()).unwrap()
}

fn settings(threads: usize) -> Settings {
    Settings {
        seed: 5,
        chains: 3,
        tune: 20,
        ess: 150,
        budget: Budget::None,
        particles: 10,
        threads: Some(threads),
        start: StartSettings { restarts: 2, particles: Some(20) },
        ..Settings::default()
    }
}

fn run(problem: &Problem, settings: &Settings) -> Vec<ChainDraws> {
    let sink = MemorySink::new();
    let report = sample(problem, settings, &sink, &|_| true).unwrap();
    assert_eq!(report.ended, Ended::Complete);
    sink.into_chains()
}

fn is_look(draws: usize) -> bool {
    let mut look = FIRST_LOOK as usize;
    while look < draws {
        look = next_look(look as u64) as usize;
    }
    look == draws
}

fn head(chains: &[ChainDraws], n: usize) -> Vec<ChainDraws> {
    let cut = |chain: &ChainDraws| ChainDraws {
        theta: chain.theta[..n].to_vec(),
        paths: chain.paths[..n].to_vec(),
        info: chain.info[..n].to_vec(),
    };
    chains.iter().map(cut).collect()
}

#[test]
fn a_run_ends_when_it_was_good_twice_and_not_before() {
    let (problem, settings) = (problem(), settings(2));
    let chains = run(&problem, &settings);
    let n = chains[0].theta.len();
    assert!(chains.iter().all(|chain| chain.theta.len() == n) && is_look(n), "{n}");
    let good = |n: usize| verdict(&problem, &settings, &head(&chains, n)).is_good();
    let mut looks = vec![FIRST_LOOK as usize];
    while looks[looks.len() - 1] < n {
        looks.push(next_look(looks[looks.len() - 1] as u64) as usize);
    }
    let verdicts: Vec<bool> = looks.iter().map(|look| good(*look)).collect();
    let first = verdicts.windows(2).position(|pair| pair == [true, true]);
    assert_eq!(first, Some(looks.len() - 2), "{looks:?} {verdicts:?}");
    let found = verdict(&problem, &settings, &chains);
    let parameter = Quantity::Parameter { name: "sensor_sd[y]".into() };
    assert_eq!(found.judged.len(), 13, "the noise of the sensor and twelve states");
    assert!(found.judged.iter().any(|judged| judged.quantity == parameter));
    for judged in &found.judged {
        assert!(judged.r_hat.unwrap() <= R_HAT_LIMIT && judged.ess().unwrap() >= 150.0, "{judged:?}");
    }
}

#[test]
fn threads_do_not_change_how_many_draws_there_are() {
    let problem = problem();
    let one = run(&problem, &settings(1));
    for threads in [2, 8] {
        assert!(run(&problem, &settings(threads)) == one, "{threads} threads");
    }
}

#[test]
fn a_run_that_was_stopped_ends_like_an_unbroken_one() {
    let (problem, settings) = (problem(), Settings { ess: 4 * settings(2).ess, ..settings(2) });
    let whole = run(&problem, &settings);
    // In warm-up, before the first look, at it, and after it.
    for stop_after in [40, 300, 660, 900] {
        let sink = MemorySink::new();
        let sweeps = AtomicU64::new(0);
        let report = sample(&problem, &settings, &sink, &|progress| {
            progress.phase == Phase::Start || sweeps.fetch_add(1, Ordering::SeqCst) < stop_after
        })
        .unwrap();
        assert_eq!(report.ended, Ended::Cancelled);
        let mut first = sink.into_chains();
        first.resize_with(3, ChainDraws::default);
        let plan = |(report, earlier): (gpssm::mcmc::ChainReport, &ChainDraws)| ChainPlan {
            chain: report.chain,
            from: report.state,
            earlier: earlier.clone(),
        };
        let plans: Vec<ChainPlan> = report.chains.into_iter().zip(&first).map(plan).collect();
        assert!(plans.iter().all(|plan| plan.from.is_some()), "{stop_after}");
        let sink = MemorySink::new();
        let report = sample_chains(&problem, &settings, plans, &sink, &|_| true).unwrap();
        assert_eq!(report.ended, Ended::Complete);
        for (chain, more) in first.iter_mut().zip(sink.into_chains()) {
            chain.theta.extend(more.theta);
            chain.paths.extend(more.paths);
            chain.info.extend(more.info);
        }
        assert!(first == whole, "stopped after {stop_after} sweeps");
    }
}

#[test]
fn a_budget_ends_a_run_and_keeps_its_draws() {
    let problem = problem();
    let endless = Settings { ess: 1 << 40, budget: Budget::Time(Duration::from_millis(300)), ..settings(2) };
    let sink = MemorySink::new();
    let report = sample(&problem, &endless, &sink, &|_| true).unwrap();
    assert_eq!(report.ended, Ended::Budget);
    let made: u64 = report.chains.iter().map(|chain| chain.draws).sum();
    assert_eq!(made, sink.into_chains().iter().map(|chain| chain.theta.len() as u64).sum::<u64>());
    // A budget holds for a fixed number of draws as well, and there is none for it unless it is asked for.
    let fixed = Settings { draws: Some(u64::MAX / 4), ..endless.clone() };
    assert_eq!(sample(&problem, &fixed, &MemorySink::new(), &|_| true).unwrap().ended, Ended::Budget);
    assert_eq!(Settings { budget: Budget::Auto, ..fixed }.time_limit(), None);
    assert_eq!(Settings { budget: Budget::Auto, ..endless }.time_limit(), Some(Budget::DEFAULT));
}

#[test]
fn some_chains_alone_or_without_their_draws_are_refused() {
    let (problem, settings) = (problem(), settings(1));
    let go = |plans| sample_chains(&problem, &settings, plans, &MemorySink::new(), &|_| true);
    let cold = |chain| ChainPlan { chain, ..ChainPlan::default() };
    let error = go(vec![cold(0), cold(2)]).unwrap_err().to_string();
    assert_eq!(error, "settings: draws: must be given where not all chains are run together");
    let sink = MemorySink::new();
    let fixed = Settings { draws: Some(5), ..settings.clone() };
    let report = sample(&problem, &fixed, &sink, &|_| true).unwrap();
    let plans =
        report.chains.into_iter().map(|report| ChainPlan { from: report.state, ..cold(report.chain) });
    let error = go(plans.collect()).unwrap_err().to_string();
    assert!(error.contains("chain 0: its earlier draws are not all there"), "{error}");
}

/// Hidden states are left out by name, and what stands in for them is judged: f along the path.
#[test]
fn what_is_not_identified_is_not_judged() {
    let y: Vec<f64> = (0..8).map(|t| f64::from(t).sin()).collect();
    let record = Sequence::scalar(&y, None).unwrap();
    let problem = Problem::new(Model::with_hidden_states(2, 1, 0), &Functions::new(), record.into()).unwrap();
    let fixed = Settings { chains: 2, draws: Some(12), ..settings(1) };
    let found = verdict(&problem, &fixed, &run(&problem, &fixed));
    assert!(
        ["x2", "f2", "process_sd[x2]", "se_ell[x1, x2]", "se_sigma_f[x2]"]
            .iter()
            .all(|name| found.excluded.iter().any(|excluded| excluded == name))
    );
    let names: Vec<String> = found
        .judged
        .iter()
        .map(|judged| judged.quantity.describe(&gpssm::convergence::Wording::ROWS))
        .collect();
    assert!(names.iter().any(|name| name == "x1 at t = 3") && names.iter().any(|name| name == "f1 at t = 3"));
    assert!(!names.iter().any(|name| name.contains("x2") || name.contains("f2")), "{names:?}");
    let said = found.describe_excluded().unwrap();
    assert!(said.starts_with("Not judged, because the data do not determine it: x2, f2, "), "{said}");
    assert!(said.ends_with("; judged instead: f along the sampled paths."), "{said}");
}
