//! A small run that is written to a store, stopped half way, and resumed. May be killed and started again.
//!
//!     cargo run --release -p gpssm-io --example store -- run.zarr
//!     python tools/check_store.py run.zarr

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gpssm::model::{DynamicsSpec, InducingSpec, Mode};
use gpssm::{
    ChainPlan, Functions, Model, Phase, Problem, Progress, Record, Sequence, Settings, prepare, sample,
    sample_chains,
};
use gpssm_io::store::{Description, Store, StoredRun};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("give the name of the store")?);

    // Two sequences of a stable nonlinear system, with a missing value.
    let sequence = |n: usize, phase: f64| {
        let u: Vec<f64> = (0..n).map(|t| (0.4 * t as f64 + phase).sin()).collect();
        let mut y = vec![phase.cos()];
        (1..n).for_each(|t| y.push(0.7 * y[t - 1] + (u[t - 1] + 0.2 * y[t - 1]).tanh()));
        y[n / 2] = f64::NAN;
        Sequence::scalar(&y, Some(&u))
    };
    let record = Record::new(vec![sequence(30, 0.0)?, sequence(20, 2.0)?])?;
    let dynamics = DynamicsSpec::Fic { inducing: InducingSpec::KMeans(8), mode: Mode::default() };
    let model = Model { dynamics, ..Model::observed(1, 1) };
    let settings = Settings { chains: 4, tune: 40, draws: Some(150), particles: 10, ..Settings::default() };
    let problem = prepare(&Problem::new(model, &Functions::new(), record)?, &settings)?;
    let description = Description {
        configuration: "draws = 150\n".into(),
        sequences: vec!["first".into(), "second".into()],
        ..Description::new(&problem, &settings)
    };

    // The run stops after some sweeps ...
    if !path.exists() {
        let sweeps = AtomicU64::new(0);
        let keep_going = |_: &Progress| sweeps.fetch_add(1, Ordering::Relaxed) < 300;
        let store = Store::create(&path, &description)?;
        sample(&problem, &settings, &store, &keep_going)?;
        store.flush()?;
    }

    // ... and goes on from there.
    let resumed = Store::resume(&path, &description)?;
    resumed.warnings.iter().for_each(|warning| println!("{warning}"));
    let plans = resumed.chains.into_iter().map(|chain| ChainPlan {
        chain: chain.chain,
        from: chain.state,
        ..ChainPlan::default()
    });
    sample_chains(&problem, &settings, plans.collect(), &resumed.store, &|_| true)?;
    resumed.store.flush()?;

    let run = StoredRun::open(&path)?;
    for (index, chain) in run.chains().iter().enumerate() {
        let draws = run.draws(index, Phase::Sample)?;
        println!("chain {}: {} draws after {} of warm-up", chain.chain, draws.theta.len(), chain.warmup);
    }
    Ok(())
}
