//! Paired comparison of functionals before and after some sweeps, over independent replicates.

use std::ops::Range;

use gpssm::Sequence;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// A correct sampler exceeds this in one of 1.7 million tests.
pub const ACCEPT: f64 = 5.0;
/// A planted bug must exceed this.
pub const DETECT: f64 = 6.0;
/// Every number that is sampled must change in more than this part of the replicates.
pub const MOVES: f64 = 0.2;

/// Learned hyper-parameters (all of theta), one path, and what was seen of it.
#[derive(Clone)]
pub struct Replicate {
    pub theta: Vec<f64>,
    pub x: Vec<Vec<f64>>,
    pub sequence: Sequence,
}

/// z of every functional, and how often each number moved.
pub struct Comparison {
    z: Vec<f64>,
    moves: Vec<f64>,
}

impl Comparison {
    pub fn worst(&self) -> f64 {
        self.z.iter().fold(0.0, |worst, z| worst.max(z.abs()))
    }

    pub fn assert_invariant(&self, name: &str) {
        let least = self.moves.iter().copied().filter(|rate| *rate > 0.0).fold(1.0, f64::min);
        println!("{name}: |z| <= {:.2} of {}, moved {least:.2}", self.worst(), self.z.len());
        assert!(self.worst() <= ACCEPT, "{name}: {:?}", self.z);
        assert!(least > MOVES, "{name}: moves {:?}", self.moves);
    }

    pub fn assert_caught(&self, name: &str) {
        println!("{name}: |z| = {:.1}", self.worst());
        assert!(self.worst() > DETECT, "{name} was not caught: |z| = {}", self.worst());
    }
}

#[derive(Default)]
struct Sums {
    difference: Vec<f64>,
    square: Vec<f64>,
    moves: Vec<f64>,
}

fn add(sums: &mut Vec<f64>, values: impl Iterator<Item = f64>) {
    for (i, value) in values.enumerate() {
        if i == sums.len() {
            sums.push(0.0);
        }
        sums[i] += value;
    }
}

/// Draws a replicate exactly, updates it, and compares; two threads, each with half of the replicates.
pub fn compare(
    n: usize,
    start: &(dyn Fn(&mut ChaCha8Rng) -> Replicate + Sync),
    update: &(dyn Fn(&mut Replicate, &mut ChaCha8Rng) + Sync),
    functionals: &(dyn Fn(&Replicate) -> Vec<f64> + Sync),
) -> Comparison {
    let part = |range: Range<usize>| {
        let mut sums = Sums::default();
        for index in range {
            let mut rng = ChaCha8Rng::seed_from_u64(2013);
            rng.set_stream(index as u64);
            let before = start(&mut rng);
            let mut after = before.clone();
            update(&mut after, &mut rng);
            let (old, new) = (functionals(&before), functionals(&after));
            assert!(new.iter().all(|value| value.is_finite()), "replicate {index}: {new:?}");
            let difference = || new.iter().zip(&old).map(|(new, old)| new - old);
            add(&mut sums.difference, difference());
            add(&mut sums.square, difference().map(|d| d * d));
            let numbers = |replicate: &Replicate| [&replicate.theta[..], &replicate.x.concat()].concat();
            let moved = numbers(&before).into_iter().zip(numbers(&after));
            add(&mut sums.moves, moved.map(|(before, after)| f64::from(u8::from(before != after))));
        }
        sums
    };
    let total = std::thread::scope(|scope| {
        let second = scope.spawn(|| part(n / 2..n));
        let mut total = part(0..n / 2);
        let second = second.join().expect("a worker panicked");
        add(&mut total.difference, second.difference.into_iter());
        add(&mut total.square, second.square.into_iter());
        add(&mut total.moves, second.moves.into_iter());
        total
    });
    let n = n as f64;
    let z = total.difference.iter().zip(&total.square).map(|(sum, square)| {
        let spread = square - sum * sum / n;
        if *square == 0.0 { 0.0 } else { sum / spread.sqrt() }
    });
    Comparison { z: z.collect(), moves: total.moves.iter().map(|moves| moves / n).collect() }
}
