//! Paired comparison of functionals before and after some sweeps, over independent replicates.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::cases::Case;
use super::functionals::evaluate;
use super::sampler::{Replicate, simulate};

/// Updates of all sequences before x is compared with what it was.
pub const SWEEPS: usize = 3;
const CHUNK: usize = 250;
const THREADS: usize = 2;

/// The generator of one replicate, the same in any thread.
pub fn generator(case: &Case, replicate: usize) -> ChaCha8Rng {
    let seed =
        case.name.bytes().fold(2013, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(replicate as u64);
    rng
}

/// A new path of sequence s given all paths.
pub trait Update: Fn(&Replicate, usize, &mut ChaCha8Rng) -> Vec<f64> + Sync {}
impl<F: Fn(&Replicate, usize, &mut ChaCha8Rng) -> Vec<f64> + Sync> Update for F {}

/// Sums over replicates of the differences, their squares, and of moves of every state.
#[derive(Clone, Default)]
struct Sums {
    n: f64,
    difference: Vec<f64>,
    square: Vec<f64>,
    moves: Vec<f64>,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        let add = |sum: &mut Vec<f64>, values: &[f64]| {
            sum.resize(values.len(), 0.0);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        };
        self.n += other.n;
        add(&mut self.difference, &other.difference);
        add(&mut self.square, &other.square);
        add(&mut self.moves, &other.moves);
    }
}

/// z of every functional, and how often each state component moved.
pub struct Comparison {
    pub z: Vec<f64>,
    pub moves: Vec<f64>,
}

impl Comparison {
    /// Largest |z|.
    pub fn worst(&self) -> f64 {
        self.z.iter().fold(0.0, |worst, z| worst.max(z.abs()))
    }
}

fn one_replicate(case: &Case, update: &impl Update, index: usize) -> Sums {
    let mut rng = generator(case, index);
    let mut replicate = simulate(case, &mut rng);
    let (paths, old) = (replicate.paths.clone(), evaluate(case, &replicate));
    for _ in 0..SWEEPS {
        for s in 0..paths.len() {
            replicate.paths[s] = update(&replicate, s, &mut rng);
        }
    }
    let new = evaluate(case, &replicate);
    let difference: Vec<f64> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
    let states = paths.concat().into_iter().zip(replicate.paths.concat());
    Sums {
        n: 1.0,
        square: difference.iter().map(|difference| difference * difference).collect(),
        difference,
        moves: states.map(|(before, after)| f64::from(u8::from(before != after))).collect(),
    }
}

/// Draws (x, y) exactly, updates x given y, and compares; the result does not depend on the threads.
pub fn compare(case: &Case, replicates: usize, update: impl Update) -> Comparison {
    let n_chunks = replicates.div_ceil(CHUNK);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= n_chunks {
                return done;
            }
            let mut sums = Sums::default();
            for index in chunk * CHUNK..((chunk + 1) * CHUNK).min(replicates) {
                sums.add(&one_replicate(case, &update, index));
            }
            done.push((chunk, sums));
        }
    };
    let mut chunks: Vec<(usize, Sums)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker panicked")).collect()
    });
    chunks.sort_by_key(|(chunk, _)| *chunk);
    let mut total = Sums::default();
    chunks.iter().for_each(|(_, sums)| total.add(sums));
    let z = total.difference.iter().zip(&total.square).map(|(sum, square)| {
        // Sum of squares about the mean; zero only for what cannot change.
        let spread = square - sum * sum / total.n;
        if *square == 0.0 { 0.0 } else { sum / (spread * total.n / (total.n - 1.0)).sqrt() }
    });
    Comparison { z: z.collect(), moves: total.moves.iter().map(|moves| moves / total.n).collect() }
}
