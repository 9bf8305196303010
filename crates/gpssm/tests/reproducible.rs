//! The same bytes for any number of threads, chains and interruptions; orderly ends.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use gpssm::mcmc::{Chain, ChainDraws, ChainState, StartSettings};
use gpssm::model::{Predictor, ScalePrior, SensorNoiseSpec, SensorSpec};
use gpssm::{
    ChainPlan, Draw, Ended, Error, Functions, MemorySink, Model, Phase, Prior, Problem, Record, Sequence,
    Settings, Sink, sample, sample_chains,
};

/// Two sequences with gaps, two states of which one is hidden, a conjugate sensor: every purpose of random
/// numbers is used.
fn problem() -> Problem {
    let sequence = |rows: i32, phase: f64| {
        let u: Vec<f64> = (0..rows).map(|t| (0.7 * f64::from(t) + phase).sin()).collect();
        let mut y: Vec<f64> = (0..rows).map(|t| (0.31 * f64::from(t * t) + phase).cos()).collect();
        y[3] = f64::NAN;
        Sequence::scalar(&y, Some(&u)).unwrap()
    };
    let mut model = Model::with_hidden_states(2, 1, 1);
    let noise = ScalePrior::on_variance(Prior::InverseGamma { shape: 3.0, scale: 0.05 });
    model.sensor =
        SensorSpec::Gaussian { mean: Default::default(), noise: SensorNoiseSpec::Diagonal(vec![noise]) };
    let record = Record::new(vec![sequence(9, 0.0), sequence(6, 1.0)]).unwrap();
    Problem::new(model, &Functions::new(), record).unwrap()
}

/// Two sequences of large counts: the filters have shortlists, whose lengths adapt after ten sweeps.
fn counts() -> Problem {
    let sequence = |rows: i32| {
        let y: Vec<f64> = (0..rows).map(|t| (900.0 + 800.0 * f64::from(t * t).sin()).round()).collect();
        Sequence::scalar(&y, None).unwrap()
    };
    let model =
        Model { sensor: SensorSpec::Poisson { log_rate: Predictor::States }, ..Model::observed(1, 0) };
    let record = Record::new(vec![sequence(9), sequence(6)]).unwrap();
    Problem::new(model, &Functions::new(), record).unwrap()
}

fn settings(chains: u32, threads: usize) -> Settings {
    Settings {
        seed: 42,
        chains,
        tune: 5,
        draws: Some(10),
        particles: 4,
        threads: Some(threads),
        start: StartSettings { restarts: 2, particles: Some(20) },
        ..Settings::default()
    }
}

fn draws(problem: &Problem, settings: &Settings) -> Vec<ChainDraws> {
    let sink = MemorySink::new();
    sample(problem, settings, &sink, &|_| true).unwrap();
    sink.into_chains()
}

/// Every number of a chain, as bits.
fn bits(chain: &ChainDraws) -> Vec<u64> {
    let paths = chain.paths.iter().flatten().flatten();
    let info = chain.info.iter().flat_map(|info| [&info.log_joint, &info.log_likelihood_total]);
    chain.theta.iter().flatten().chain(paths).chain(info).map(|v| v.to_bits()).collect()
}

#[test]
fn draws_do_not_depend_on_the_number_of_threads() {
    let problem = problem();
    let reference: Vec<_> = draws(&problem, &settings(8, 1)).iter().map(bits).collect();
    assert_eq!(reference.len(), 8);
    assert!(reference.iter().all(|chain| !chain.is_empty()));
    for threads in [2, 8, 16] {
        let found: Vec<_> = draws(&problem, &settings(8, threads)).iter().map(bits).collect();
        assert!(found == reference, "{threads} threads");
    }
}

#[test]
fn draws_of_a_chain_do_not_depend_on_the_number_of_chains() {
    let problem = problem();
    let five: Vec<_> = draws(&problem, &settings(5, 2)).iter().map(bits).collect();
    for chains in [1, 2] {
        let found: Vec<_> = draws(&problem, &settings(chains, 2)).iter().map(bits).collect();
        assert!(found[..] == five[..chains as usize], "{chains} chains");
    }
    // Chains are not copies of each other, and seeds matter.
    assert!(five[0] != five[1] && five[1] != five[2]);
    let other = draws(&problem, &Settings { seed: 43, ..settings(1, 1) });
    assert!(bits(&other[0]) != five[0]);
}

/// The chain goes on from its state alone, also after the state went through text.
#[test]
fn a_continued_chain_is_the_unbroken_one() {
    assert_continued(&problem(), &settings(1, 1), &[0, 2, 6, 13]);
}

/// The same with shortlists, before, while and after their lengths are found. Seen failing when what was seen of them was not kept.
#[test]
fn a_continued_chain_keeps_its_shortlists() {
    let settings = Settings { tune: 24, ..settings(1, 1) };
    let states = assert_continued(&counts(), &settings, &[4, 9, 14, 26]);
    assert!(states[8].1.children.is_empty() && !states[8].1.scarcity.is_empty());
    assert_eq!(states[9].1.children.len(), 2);
    assert!(states[19].1.children != states[9].1.children, "set anew after 20 sweeps");
    assert!(states.iter().skip(24).all(|(_, state)| state.children == states[24].1.children));
    assert!(states[33].1.scarcity.is_empty());
}

/// Goes on from some states of a run; all of its states.
fn assert_continued(problem: &Problem, settings: &Settings, from: &[usize]) -> Vec<(Phase, ChainState)> {
    let options = settings.filter_options();
    let states = Mutex::new(Vec::new());
    sample(problem, settings, &StateSink(&states), &|_| true).unwrap();
    // Draws of the sampling phase and the tuning phase: widths are still adapting in the latter.
    let states: Vec<(Phase, ChainState)> = states.into_inner().unwrap();
    assert_eq!(states.len() as u64, settings.tune + 10);
    for &from in from {
        // Not JSON: serde_json reads the last bit wrong unless its feature `float_roundtrip` is on.
        let text = toml::to_string(&states[from].1).unwrap();
        let state: ChainState = toml::from_str(&text).unwrap();
        let number = |state: &ChainState| -> Vec<u64> {
            let paths = state.paths.iter().flatten();
            let widths = state.widths.iter().map(|width| width.width());
            state.theta.iter().chain(paths).copied().chain(widths).map(f64::to_bits).collect()
        };
        assert!(state == states[from].1, "text must keep every bit");
        let mut chain = Chain::new(problem, options, 42, 0, state);
        for (phase, expected) in &states[from + 1..] {
            if *phase == Phase::Sample {
                chain.freeze();
            }
            let _ = chain.sweep();
            if *phase == Phase::Tune {
                chain.adapt();
            }
            assert_eq!(number(&chain.state), number(expected), "from {from}, sweep {}", expected.sweep);
        }
    }
    states
}

struct StateSink<'a>(&'a Mutex<Vec<(Phase, ChainState)>>);

impl Sink for StateSink<'_> {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        self.0.lock().unwrap().push((draw.phase, draw.state.clone()));
        Ok(())
    }
}

/// Counts draws of both phases.
#[derive(Default)]
struct CountingSink(AtomicU64, MemorySink);

impl Sink for CountingSink {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.take(draw)
    }
}

#[test]
fn cancelling_stops_within_one_sweep_and_keeps_the_draws() {
    let problem = problem();
    let whole: Vec<_> = draws(&problem, &settings(2, 2));
    for threads in [1, 2] {
        let sink = CountingSink::default();
        let taken_at_stop = AtomicU64::new(0);
        let report = sample(&problem, &settings(2, threads), &sink, &|progress| {
            let stop = progress.phase == Phase::Sample && progress.done == 4;
            if stop {
                let _ = taken_at_stop.compare_exchange(
                    0,
                    sink.0.load(Ordering::SeqCst),
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                );
            }
            !stop
        })
        .unwrap();
        assert!(report.ended == Ended::Cancelled);
        let (taken, at_stop) = (sink.0.load(Ordering::SeqCst), taken_at_stop.load(Ordering::SeqCst));
        // With two threads the other one may be ahead of the stop by as much as the system lets it.
        assert!(threads == 2 || taken == at_stop, "{at_stop}, then {taken}");
        let kept: u64 = report.chains.iter().map(|chain| chain.draws).sum();
        let chains = sink.1.into_chains();
        assert_eq!(kept, chains.iter().map(|chain| chain.theta.len() as u64).sum::<u64>());
        assert!(kept >= 4 && chains.iter().any(|chain| chain.theta.len() == 4));
        for (chain, whole) in chains.iter().zip(&whole) {
            assert_eq!(chain.theta[..], whole.theta[..chain.theta.len()]);
            assert_eq!(chain.paths[..], whole.paths[..chain.paths.len()]);
        }
        // Where the chain stopped is the state of its last draw.
        assert!(report.chains.iter().any(|chain| chain.state.as_ref().is_some_and(|s| s.sweep == 9)));
    }
}

#[test]
fn cancelling_during_the_start_and_the_warm_up_is_orderly() {
    let problem = problem();
    for phase in [Phase::Start, Phase::Tune] {
        let sink = MemorySink::new();
        let report = sample(&problem, &settings(3, 2), &sink, &|progress| progress.phase != phase).unwrap();
        assert!(report.ended == Ended::Cancelled);
        assert!(sink.into_chains().is_empty());
        assert!(report.chains.iter().all(|chain| chain.draws == 0));
    }
}

/// Fails at its n-th draw.
struct FullSink(AtomicU64, u64);

impl Sink for FullSink {
    fn take(&self, _: &Draw) -> Result<(), Error> {
        if self.0.fetch_add(1, Ordering::SeqCst) == self.1 {
            return Err(Error::Sink { message: "no space left".into() });
        }
        Ok(())
    }
}

#[test]
fn an_error_of_the_sink_ends_the_run() {
    let problem = problem();
    for (threads, at) in [(1, 0), (1, 12), (4, 0), (4, 30)] {
        let sink = FullSink(AtomicU64::new(0), at);
        let error = sample(&problem, &settings(4, threads), &sink, &|_| true).unwrap_err();
        assert_eq!(error, Error::Sink { message: "no space left".into() });
        assert_eq!(error.to_string(), "draws could not be stored: no space left");
        let taken = sink.0.load(Ordering::SeqCst);
        // Other threads may have gone on until they saw the failure.
        assert!(threads > 1 || taken == at + 1, "{taken} draws were offered, the failure was at {at}");
    }
}

/// Stops after so many sweeps of all chains; keeps the draws and the latest state of every chain.
struct Interrupted {
    memory: MemorySink,
    states: Mutex<Vec<Option<ChainState>>>,
}

impl Sink for Interrupted {
    fn take(&self, draw: &Draw) -> Result<(), Error> {
        // As a store would: through text.
        let text = serde_json::to_string(draw.state).unwrap();
        self.states.lock().unwrap()[draw.chain as usize] = Some(serde_json::from_str(&text).unwrap());
        self.memory.take(draw)
    }
}

#[test]
fn a_run_that_is_stopped_and_continued_gives_the_same_draws() {
    let problem = problem();
    let settings = settings(3, 2);
    let unbroken: Vec<_> = draws(&problem, &settings).iter().map(bits).collect();
    for stop_after in [1, 4, 6, 13, 22, 31, 44] {
        let mut states: Vec<Option<ChainState>> = vec![None; 3];
        let mut found = vec![ChainDraws::default(); 3];
        let mut rounds = 0;
        while states.iter().flatten().map(|state| state.sweep).sum::<u64>() < 45 {
            let sink = Interrupted { memory: MemorySink::new(), states: Mutex::new(states.clone()) };
            let plans: Vec<_> = (0..3)
                .map(|c| ChainPlan { chain: c, from: states[c as usize].clone(), ..ChainPlan::default() })
                .collect();
            let sweeps = AtomicU64::new(0);
            let go_on = |progress: &gpssm::Progress| {
                progress.phase == Phase::Start || sweeps.fetch_add(1, Ordering::Relaxed) + 1 < stop_after
            };
            let report = sample_chains(&problem, &settings, plans, &sink, &go_on).unwrap();
            // A chain that goes on does not look for a start again (a chain that was stopped before
            // its start was found has neither).
            assert!(
                report
                    .chains
                    .iter()
                    .all(|chain| chain.start.is_none() || states[chain.chain as usize].is_none())
            );
            states = sink.states.into_inner().unwrap();
            for (chain, more) in found.iter_mut().zip(sink.memory.into_chains()) {
                chain.theta.extend(more.theta);
                chain.paths.extend(more.paths);
                chain.info.extend(more.info);
            }
            rounds += 1;
            assert!(rounds < 100);
        }
        let found: Vec<_> = found.iter().map(bits).collect();
        assert!(found == unbroken, "stopped after every {stop_after} sweeps");
    }
}

#[test]
fn a_state_of_another_problem_is_refused() {
    let problem = problem();
    let settings = settings(1, 1);
    let sink = Interrupted { memory: MemorySink::new(), states: Mutex::new(vec![None]) };
    sample(&problem, &settings, &sink, &|_| true).unwrap();
    let mut state = sink.states.into_inner().unwrap()[0].clone().unwrap();
    state.paths[0].pop();
    let plans = vec![ChainPlan { chain: 0, from: Some(state), ..ChainPlan::default() }];
    let error = sample_chains(&problem, &settings, plans, &MemorySink::new(), &|_| true).unwrap_err();
    assert!(error.to_string().contains("another model or record"), "{error}");
}
