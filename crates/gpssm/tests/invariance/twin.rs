//! The conditional particle filter with ancestor sampling, slow and plain.
//!
//! Every particle carries its whole path; every prediction and every ancestor weight is evaluated from dense
//! joint densities. Random numbers are used in the order that the fast filter documents: the states of
//! generation 0 (n_x normals each); for each t one uniform for the reference's ancestor, one (systematic) or
//! N - 1 uniforms (multinomial) for the others, n_x normals for each new state; last one uniform for the path.

use gpssm::Sequence;
use gpssm::smc::Resampling;
use gpssm::state_space::BoundInitial;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::cases::{Case, Proposal};
use super::gaussian_process::{Gaussian, Pair, log_joint, noise, pairs_of, predict};
use super::mutant::Mutant;
use super::sampler::{Replicate, sample_gaussian, sample_initial};
use super::sensors::{condition, log_density};
use gpssm_dev::dense::{cholesky, log_gaussian, times_transposed};

type Path = Vec<Vec<f64>>;

/// One conditional filter.
pub struct Twin<'a> {
    case: &'a Case,
    sequence: &'a Sequence,
    x_ref: Path,
    /// Pairs of the other sequences.
    context: Vec<Pair>,
    mutant: Mutant,
}

/// All particles; the reference comes last.
struct Particles {
    paths: Vec<Path>,
    /// w_t up to a factor.
    log_w: Vec<f64>,
    log_marginal_likelihood: f64,
}

/// The new path, row-major, and the estimate of log p(y).
pub struct Outcome {
    pub path: Vec<f64>,
    pub log_marginal_likelihood: f64,
}

/// Weights that sum to one, and the log of the sum.
fn normalise(log_w: &[f64]) -> (Vec<f64>, f64) {
    let largest = log_w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = log_w.iter().map(|w| (w - largest).exp()).sum();
    (log_w.iter().map(|w| (w - largest).exp() / sum).collect(), largest + sum.ln())
}

/// Whether systematic resampling gives fewer than half a pair of siblings (in order) for each particle: the scheme
/// is then left for the multinomial one. A particle has k or k + 1 children, n v of them on average.
fn lines_hardly_meet(v: &[f64]) -> bool {
    let n = v.len() as f64;
    let mut pairs = 0.0;
    for v in v {
        let k = (n * v).floor();
        let one_more = n * v - k;
        pairs += (1.0 - one_more) * k * (k - 1.0) + one_more * (k + 1.0) * k;
    }
    pairs < 0.5 * n
}

/// The index that a point of [0, 1) falls on.
fn index_at(weights: &[f64], point: f64) -> usize {
    let mut cumulative = 0.0;
    let beyond = |w: &f64| {
        cumulative += w;
        point < cumulative
    };
    weights.iter().position(beyond).unwrap_or(weights.len() - 1)
}

impl<'a> Twin<'a> {
    /// For sequence s of a replicate, given the paths of the others.
    pub fn new(case: &'a Case, replicate: &'a Replicate, s: usize, mutant: Mutant) -> Self {
        let n_x = case.model.transition.n_x();
        let others =
            (0..replicate.paths.len()).filter(|&other| other != s && mutant != Mutant::ContextIgnored);
        let context =
            others.flat_map(|o| pairs_of(&replicate.path(o, n_x), &replicate.sequences[o])).collect();
        Self { case, sequence: &replicate.sequences[s], x_ref: replicate.path(s, n_x), context, mutant }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    fn z(&self, t: usize, x: &[f64]) -> Vec<f64> {
        [x, self.sequence.u(t)].concat()
    }

    /// log p(y_t | x_t).
    fn log_likelihood(&self, t: usize, x: &[f64]) -> f64 {
        let temper = if self.is(Mutant::Tempered) { 0.9 } else { 1.0 };
        temper * log_density(&self.case.model.sensor, self.sequence.y(t), &self.z(t, x))
    }

    /// log p(y_t) and p(x_t | y_t) where x_t ~ `prior` and states are proposed given the output.
    fn look_ahead(&self, t: usize, prior: &Gaussian) -> Option<(f64, Gaussian)> {
        let sensor = self.case.model.sensor.as_linear_gaussian().filter(|_| self.case.adapted())?;
        Some(condition(sensor, self.sequence.y(t), self.sequence.u(t), prior))
    }

    /// The context and the pairs of a path.
    fn history(&self, path: &[Vec<f64>]) -> Vec<Pair> {
        let mut pairs = [&self.context[..], &pairs_of(path, self.sequence)].concat();
        if self.is(Mutant::HistoryCut) {
            pairs.drain(..pairs.len().saturating_sub(2));
        }
        pairs
    }

    /// p(x_t | path).
    fn prediction(&self, path: &[Vec<f64>]) -> Gaussian {
        let t = path.len() - 1;
        predict(&self.case.model.transition, &self.history(path), &self.z(t, &path[t]))
    }

    /// The prediction that states are drawn from.
    fn proposal(&self, path: &[Vec<f64>]) -> Gaussian {
        let mut next = self.prediction(path);
        if self.is(Mutant::SigmaWithoutQ) {
            let n_x = next.mean.len();
            let mut sigma = times_transposed(&next.chol, &next.chol, n_x);
            for a in 0..n_x {
                (0..n_x).for_each(|b| sigma[a * n_x + b] -= noise(&self.case.model.transition, a, b));
            }
            next.chol = cholesky(&sigma, n_x);
        }
        next
    }

    /// log p(x | path) of the next state.
    fn log_next(&self, path: &[Vec<f64>], x: &[f64]) -> f64 {
        let next = self.prediction(path);
        let residual: Vec<f64> = x.iter().zip(&next.mean).map(|(x, mean)| x - mean).collect();
        log_gaussian(&times_transposed(&next.chol, &next.chol, x.len()), &residual)
    }

    /// A state of the reference as a successor of x: lags are copied.
    fn successor(&self, x: &[f64], x_ref: &[f64]) -> Vec<f64> {
        let copies = |of: &Option<usize>| of.filter(|_| !self.is(Mutant::LagKept));
        let lags = self.case.model.transition.lags.iter().zip(x_ref);
        lags.map(|(of, x_ref)| copies(of).map_or(*x_ref, |of| x[of])).collect()
    }

    /// log p(x~_{t:T}, y_{t:T} | path): the whole future of the reference, as the difference of two joint
    /// densities. Outputs count where lags change what the sensor sees; otherwise they are the same for all.
    fn log_future(&self, path: &[Vec<f64>]) -> f64 {
        let t = path.len();
        let mut whole = path.to_vec();
        for x_ref in &self.x_ref[t..] {
            let x = self.successor(&whole[whole.len() - 1], x_ref);
            whole.push(x);
        }
        let outputs = || (t..whole.len()).map(|s| self.log_likelihood(s, &whole[s])).sum::<f64>();
        let joint = |path: &[Vec<f64>]| log_joint(&self.case.model.transition, &self.history(path));
        match self.mutant {
            Mutant::OneStepAncestor => self.log_next(path, &whole[t]),
            Mutant::HistoryCut => (t..whole.len()).map(|s| self.log_next(&whole[..s], &whole[s])).sum(),
            Mutant::JointInsteadOfRatio => joint(&whole) + outputs(),
            Mutant::LagSensorIgnored => joint(&whole) - joint(path),
            _ => joint(&whole) - joint(path) + outputs(),
        }
    }

    /// Probabilities of the reference's ancestor, w_{t-1} p(x~_{t:T} | path) (eq. 8).
    fn ancestor_weights(&self, particles: &Particles, log_v: &[f64]) -> Vec<f64> {
        let log_w = |i: usize| match self.mutant {
            Mutant::AncestorWithoutWeight => 0.0,
            Mutant::AncestorWithEvidence => log_v[i],
            _ => particles.log_w[i],
        };
        let weight = |(i, path): (usize, &Path)| log_w(i) + self.log_future(path);
        normalise(&particles.paths.iter().enumerate().map(weight).collect::<Vec<_>>()).0
    }

    /// The reference's ancestor from `ancestor_weights`, those of the others from `v` given it.
    fn ancestors(
        &self,
        v: &[f64],
        ancestor_weights: &[f64],
        scheme: Resampling,
        rng: &mut ChaCha8Rng,
    ) -> Vec<usize> {
        let n = v.len();
        let mut early = Vec::new();
        if self.is(Mutant::ReverseOrder) {
            early = others(v, n, n - 1, Resampling::Systematic, rng);
        } else if self.is(Mutant::PinnedSlot) {
            let start = rng.random::<f64>() / n as f64;
            early = (0..n - 1).map(|k| index_at(v, start + k as f64 / n as f64)).collect();
        }
        let j = index_at(ancestor_weights, rng.random());
        let mut ancestors = if early.is_empty() { others(v, n, j, scheme, rng) } else { early };
        ancestors.push(j);
        ancestors
    }

    /// Generation 0.
    fn start(&self, rng: &mut ChaCha8Rng) -> Particles {
        let n = self.case.n_particles;
        let initial = &self.case.model.initial;
        let given_output = match initial {
            BoundInitial::Gaussian { mean, chol } => {
                self.look_ahead(0, &Gaussian { mean: mean.clone(), chol: chol.clone() })
            }
            _ => None,
        };
        let mut draw = || match &given_output {
            Some((_, posterior)) => sample_gaussian(posterior, rng),
            None => sample_initial(initial, rng),
        };
        let mut paths: Vec<Path> = (1..n).map(|_| vec![draw()]).collect();
        paths.push(vec![if self.is(Mutant::StartRedrawn) { draw() } else { self.x_ref[0].clone() }]);
        match given_output {
            Some((log_marginal_likelihood, _)) => {
                Particles { paths, log_w: vec![0.0; n], log_marginal_likelihood }
            }
            None => self.weigh(0, paths, 0.0),
        }
    }

    /// Weights p(y_t | x_t).
    fn weigh(&self, t: usize, paths: Vec<Path>, log_marginal_likelihood: f64) -> Particles {
        let log_w: Vec<f64> = paths.iter().map(|path| self.log_likelihood(t, &path[t])).collect();
        let log_mean = normalise(&log_w).1 - (paths.len() as f64).ln();
        Particles { paths, log_w, log_marginal_likelihood: log_marginal_likelihood + log_mean }
    }

    /// Generation t from generation t - 1.
    fn step(&self, t: usize, particles: &Particles, rng: &mut ChaCha8Rng) -> Particles {
        let Particles { paths, log_w, .. } = particles;
        let mut log_marginal_likelihood = particles.log_marginal_likelihood;
        let n = paths.len();
        let mut proposals: Vec<Gaussian> = paths.iter().map(|path| self.proposal(path)).collect();
        let mut log_v = log_w.clone();
        if self.case.adapted() {
            for i in 0..n {
                let (log_output, posterior) = self.look_ahead(t, &proposals[i]).expect("a linear sensor");
                log_v[i] += log_output;
                proposals[i] = posterior;
            }
            log_marginal_likelihood += normalise(&log_v).1 - normalise(log_w).1;
        }
        let v = normalise(&log_v).0;
        let scheme = if lines_hardly_meet(&v) { Resampling::Multinomial } else { self.case.resampling };
        let ancestor_weights = self.ancestor_weights(particles, &log_v);
        let seen = self.sequence.y(t).iter().any(|y| !y.is_nan());
        if self.case.proposal == Proposal::Shortlist && seen && self.n_children(t) > 1 {
            return self.take_from_list(t, particles, &proposals, &ancestor_weights, rng);
        }
        let ancestors = self.ancestors(&v, &ancestor_weights, scheme, rng);

        let mut next: Vec<Path> = ancestors.iter().map(|&a| paths[a].clone()).collect();
        for (path, &a) in next.iter_mut().zip(&ancestors).take(n - 1) {
            path.push(sample_gaussian(&proposals[a], rng));
        }
        let of_reference = self.successor(&next[n - 1][t - 1], &self.x_ref[t]);
        next[n - 1].push(of_reference);
        if self.case.adapted() {
            return Particles { paths: next, log_w: vec![0.0; n], log_marginal_likelihood };
        }
        self.weigh(t, next, log_marginal_likelihood)
    }

    /// Children of each particle at row t.
    fn n_children(&self, t: usize) -> usize {
        self.case.children.get(t).map_or(16, |&n| usize::from(n))
    }

    /// Some children of each particle, the reference's among them, and as many of these as there are particles.
    fn take_from_list(
        &self,
        t: usize,
        particles: &Particles,
        proposals: &[Gaussian],
        ancestor_weights: &[f64],
        rng: &mut ChaCha8Rng,
    ) -> Particles {
        let (n, n_listed) = (self.case.n_particles, self.n_children(t) * self.case.n_particles);
        let j = index_at(ancestor_weights, rng.random());
        let v = normalise(&particles.log_w).0;
        let mut parents = others(&v, n_listed, j, self.case.resampling, rng);
        parents.push(j);
        let mut list: Vec<Path> = parents.iter().map(|&parent| particles.paths[parent].clone()).collect();
        for (path, &parent) in list.iter_mut().zip(&parents).take(n_listed - 1) {
            path.push(sample_gaussian(&proposals[parent], rng));
        }
        let of_reference = self.successor(&particles.paths[j][t - 1], &self.x_ref[t]);
        list[n_listed - 1].push(of_reference);
        let mut listed = self.weigh(t, list, particles.log_marginal_likelihood);
        if self.is(Mutant::ReferenceNotListed) {
            listed.log_w[n_listed - 1] = f64::NEG_INFINITY;
        }
        let w = normalise(&listed.log_w).0;
        let of_parent = |i: usize| parents.iter().zip(&w).filter(|(p, _)| **p == i).map(|(_, w)| w).sum();
        let by_parent: Vec<f64> = (0..n).map(of_parent).collect();
        let scheme =
            if lines_hardly_meet(&by_parent) { Resampling::Multinomial } else { self.case.resampling };
        let mut taken = others(&w, n, n_listed - 1, scheme, rng);
        taken.push(n_listed - 1);
        let log_w = |i: &usize| if self.is(Mutant::WeighedTwice) { listed.log_w[*i] } else { 0.0 };
        Particles {
            paths: taken.iter().map(|&i| listed.paths[i].clone()).collect(),
            log_w: taken.iter().map(log_w).collect(),
            log_marginal_likelihood: listed.log_marginal_likelihood,
        }
    }

    /// One sweep.
    pub fn sweep(&self, rng: &mut ChaCha8Rng) -> Outcome {
        let mut particles = self.start(rng);
        for t in 1..self.x_ref.len() {
            particles = self.step(t, &particles, rng);
        }
        let n = particles.paths.len();
        let weights = match self.mutant {
            Mutant::FinalUniform => vec![1.0 / n as f64; n],
            Mutant::ReferenceNeverReselected => normalise(&particles.log_w[..n - 1]).0,
            _ => normalise(&particles.log_w).0,
        };
        let last = index_at(&weights, rng.random());
        Outcome {
            path: particles.paths[last].concat(),
            log_marginal_likelihood: particles.log_marginal_likelihood,
        }
    }
}

/// All but one of n indices with probabilities v, given that the one is i: independently, or at points 1/n apart from
/// one that is uniform on the part of i.
fn others(v: &[f64], n: usize, i: usize, scheme: Resampling, rng: &mut ChaCha8Rng) -> Vec<usize> {
    match scheme {
        Resampling::Multinomial => (1..n).map(|_| index_at(v, rng.random())).collect(),
        Resampling::Systematic => {
            let start = v[..i].iter().sum::<f64>() + v[i] * rng.random::<f64>();
            (1..n).map(|k| index_at(v, (start + k as f64 / n as f64).fract())).collect()
        }
    }
}
