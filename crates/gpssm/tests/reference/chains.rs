//! Independent chains of path updates, one thread each.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// How long to run; everything is fixed by the seed.
#[derive(Clone, Copy)]
pub struct Plan {
    pub n_chains: usize,
    /// Updates dropped at the start of each chain.
    pub n_burn_in: usize,
    /// Batches of each chain.
    pub n_batches: usize,
    /// Updates in a batch: many times the autocorrelation time, so that batch means are independent.
    pub batch: usize,
    pub seed: u64,
}

/// What is kept of the chains.
pub struct Draws {
    /// Mean of every functional over every batch of every chain.
    pub batches: Vec<Vec<f64>>,
    /// For each t, the fraction of updates in which x_t changed.
    pub update_rate: Vec<f64>,
}

impl Draws {
    /// The rate of the time that moves least.
    pub fn lowest_update_rate(&self) -> f64 {
        self.update_rate.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Starts every chain with `start`, updates it with `step`; `functionals` appends its values of a path.
pub fn run(
    plan: Plan,
    start: impl Fn(&mut ChaCha8Rng) -> Vec<f64> + Sync,
    step: impl Fn(&[f64], &mut ChaCha8Rng) -> Vec<f64> + Sync,
    functionals: impl Fn(&[f64], &mut Vec<f64>) + Sync,
) -> Draws {
    let chain = |c: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
        rng.set_stream(c as u64);
        let mut x = start(&mut rng);
        for _ in 0..plan.n_burn_in {
            x = step(&x, &mut rng);
        }
        let mut changed = vec![0usize; x.len()];
        let mut values = Vec::new();
        let batches: Vec<Vec<f64>> = (0..plan.n_batches)
            .map(|_| {
                let mut sums = Vec::new();
                for _ in 0..plan.batch {
                    let new = step(&x, &mut rng);
                    for (count, (new, old)) in changed.iter_mut().zip(new.iter().zip(&x)) {
                        *count += usize::from(new != old);
                    }
                    x = new;
                    values.clear();
                    functionals(&x, &mut values);
                    sums.resize(values.len(), 0.0);
                    sums.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
                }
                sums.iter().map(|sum| sum / plan.batch as f64).collect()
            })
            .collect();
        (batches, changed)
    };
    let chain = &chain;
    let chains: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.n_chains).map(|c| scope.spawn(move || chain(c))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let n_updates = (plan.n_chains * plan.n_batches * plan.batch) as f64;
    let mut draws = Draws { batches: Vec::new(), update_rate: vec![0.0; chains[0].1.len()] };
    for (batches, changed) in chains {
        draws.batches.extend(batches);
        for (rate, count) in draws.update_rate.iter_mut().zip(changed) {
            *rate += count as f64 / n_updates;
        }
    }
    draws
}
