//! Effective draws of the states for each CPU second of sweeps that hold the hyper-parameters: what shortlists and proposals are
//! judged by.

use gpssm::diagnostics::ess_bulk;
use gpssm::mcmc::Chain;

use crate::clock::cpu_seconds;

/// Times at which states are looked at, at most.
const TIMES: usize = 200;
/// Runs, and sweeps of each.
const RUNS: usize = 6;
const SWEEPS: usize = 200;

/// Prints the effective number of draws for each CPU second, of the median state and at the slowest tenth of the times, with
/// the standard error over some runs.
pub fn show(chain: &mut Chain, sweep: &mut impl FnMut(&mut Chain), n_x: usize) {
    let rows = chain.state.paths[0].len() / n_x;
    let times = TIMES.min(rows);
    let at: Vec<usize> = (0..times).map(|i| i * (rows - 1) / (times - 1) * n_x).collect();
    let runs: Vec<[f64; 4]> = (0..RUNS)
        .map(|_| {
            let mut draws = vec![Vec::with_capacity(SWEEPS); times];
            let began = cpu_seconds();
            for _ in 0..SWEEPS {
                sweep(chain);
                draws.iter_mut().zip(&at).for_each(|(draws, &at)| draws.push(chain.state.paths[0][at]));
            }
            let seconds = cpu_seconds() - began;
            let mut ess: Vec<f64> = draws.iter().map(|draws| ess_bulk(&[draws]).unwrap_or(0.0)).collect();
            ess.sort_by(f64::total_cmp);
            let (median, least) = (ess[times / 2], ess[times / 10]);
            [median / seconds, least / seconds, median / SWEEPS as f64, least / SWEEPS as f64]
        })
        .collect();
    let mean = |k: usize| runs.iter().map(|run| run[k]).sum::<f64>() / RUNS as f64;
    let error = |k: usize| {
        let square: f64 = runs.iter().map(|run| (run[k] - mean(k)).powi(2)).sum();
        (square / (RUNS * (RUNS - 1)) as f64).sqrt()
    };
    println!(
        "  effective draws of x: median {:.0} ± {:.0} for each CPU second, {:.3} for each sweep; slowest tenth {:.0} ± {:.0}, {:.3} ± {:.3}",
        mean(0),
        error(0),
        mean(2),
        mean(1),
        error(1),
        mean(3),
        error(3)
    );
}
