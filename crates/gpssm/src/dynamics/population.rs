//! All particles of one filter, with their common past.

use super::block::{Block, Pairs};
use super::genealogy::{Birth, Genealogy, Slot};
use super::numerics::Numerics;
use super::predictions::Predictions;
use super::transition::Transition;
use crate::function::evaluate_all;
use crate::linalg::dense::NotPositiveDefinite;
use crate::points::Points;

/// Is told time, states (row-major) and the log weights to add to.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(usize, &[f64], &mut [f64]);

/// The particles of one filter over one sequence: their paths, and the transition prior given them.
///
/// The filter asks the population, never single particles, so that a prior can work on all of them at
/// once and share what they share.
pub(crate) struct Population<'a> {
    transition: &'a Transition,
    /// u_t, t = 0..T.
    inputs: &'a [Vec<f64>],
    blocks: Vec<Box<dyn Block>>,
    genealogy: Genealogy,
    /// Generation of the current particles, and their states, row-major.
    t: usize,
    x: Vec<f64>,
    length: usize,
    log_future_density: Vec<f64>,
    /// Room for one step.
    means: Vec<f64>,
    z: Points,
    births: Vec<Birth>,
    origins: Vec<Slot>,
}

impl<'a> Population<'a> {
    /// With a reference (its pairs), the population can tell ancestor weights. `context` are the pairs of
    /// the other sequences.
    pub(crate) fn new(
        transition: &'a Transition,
        inputs: &'a [Vec<f64>],
        context: &Pairs,
        reference: Option<&Pairs>,
    ) -> Result<Self, NotPositiveDefinite> {
        let length = inputs.len() - 1;
        let blocks = transition.populate(length, context, reference)?;
        // Two generations meet at a step, and particles are led on for as long as their lags look back.
        let memory = blocks.iter().all(|block| block.is_markov()).then(|| 2 + transition.memory());
        Ok(Self {
            transition,
            inputs,
            blocks,
            genealogy: Genealogy::new(memory),
            t: 0,
            x: Vec::new(),
            length,
            log_future_density: Vec::new(),
            means: Vec::new(),
            z: Points::new(transition.n_x() + inputs[0].len()),
            births: Vec::new(),
            origins: Vec::new(),
        })
    }

    fn n_x(&self) -> usize {
        self.transition.n_x()
    }

    /// Generation 0; `x` is row-major by particle.
    pub(crate) fn start(&mut self, x: &[f64]) {
        self.genealogy.start(x.len() / self.n_x(), &mut self.births);
        self.t = 0;
        self.edges(x);
        self.rows(x, 0);
        self.x = x.to_vec();
    }

    /// p(x_t | path_i) of the next state, all particles (eq. 3).
    pub(crate) fn predict(&self, out: &mut Predictions) {
        let current = self.genealogy.current();
        out.reset(current.len(), self.transition.n_x());
        for block in &self.blocks {
            block.predict(current, out);
        }
        for (d, of) in self.transition.lags.iter().enumerate().filter_map(|(d, of)| of.map(|of| (d, of))) {
            for i in 0..current.len() {
                out.set_known(i, d, self.x[i * self.transition.n_x() + of]);
            }
        }
    }

    /// log p(x~_{t:T} | path_i) + const, all particles (eq. 8); `x_ref` is the whole reference x~_{0:T}.
    ///
    /// With lags the reference's next states differ from particle to particle in the components that copy
    /// the particle's own past. Each particle is led on along the reference until they agree; `visit` is
    /// told the states on the way, for sensors that see the lags.
    pub(crate) fn log_future_density(&mut self, x_ref: &[f64], visit: Visit) -> &[f64] {
        let n_x = self.n_x();
        let (n, t) = (self.genealogy.current().len(), self.t + 1);
        let memory = self.transition.memory();
        let mut out = std::mem::take(&mut self.log_future_density);
        out.clear();
        out.resize(n, 0.0);
        self.origins.clear();
        self.origins.extend_from_slice(self.genealogy.current());
        let mut x = if memory > 0 { self.x.clone() } else { Vec::new() };
        for s in t..(t + memory).min(self.length + 1) {
            x = self.splice(&x, &x_ref[s * n_x..(s + 1) * n_x]);
            visit(s, &x, &mut out);
            if s < self.length {
                self.genealogy.venture(&mut self.births);
                self.edges(&x);
                self.rows(&x, s);
            }
        }
        let n_ventured = memory.min(self.length - t);
        let x_next = &x_ref[(t + n_ventured) * n_x..(t + n_ventured + 1) * n_x];
        for block in &mut self.blocks {
            block.add_log_futures(&self.genealogy, &self.origins, x_next, &mut out);
        }
        for _ in 0..n_ventured {
            self.genealogy.retreat();
        }
        self.log_future_density = out;
        &self.log_future_density
    }

    /// States that follow `x` and agree with `x_next` in all but their lags; row-major.
    fn splice(&self, x: &[f64], x_next: &[f64]) -> Vec<f64> {
        let lags = &self.transition.lags;
        let rows = x.chunks_exact(self.n_x());
        rows.flat_map(|x| lags.iter().zip(x_next).map(|(lag, next)| lag.map_or(*next, |of| x[of]))).collect()
    }

    /// Particle i of the next generation has state x_i and descends from particle `ancestors[i]`.
    pub(crate) fn advance(&mut self, ancestors: &[usize], x: &[f64]) {
        self.genealogy.branch(ancestors, &mut self.births);
        self.t += 1;
        self.x.clear();
        self.x.extend_from_slice(x);
        self.edges(x);
        if self.t == self.length {
            return;
        }
        self.genealogy.prune();
        while let Some(slot) = self.genealogy.promote() {
            for block in &mut self.blocks {
                block.promote(slot, self.genealogy.trunk() - 1);
            }
        }
        for block in &mut self.blocks {
            block.forget(&self.genealogy);
        }
        self.rows(x, self.t);
    }

    /// Outputs of the parents of the last births.
    fn edges(&mut self, x: &[f64]) {
        for block in &mut self.blocks {
            block.edges(&self.births, x, self.transition.n_x());
        }
    }

    /// Inputs z_t of the last births.
    fn rows(&mut self, x: &[f64], t: usize) {
        let n_x = self.n_x();
        self.z.set_states(x, n_x, &self.inputs[t]);
        evaluate_all(&self.transition.means, &self.z, &mut self.means);
        for block in &mut self.blocks {
            block.rows(&self.genealogy, &self.births, &self.z, &self.means, n_x);
        }
    }

    /// What happened so far.
    pub(crate) fn numerics(&self) -> Numerics {
        let mut total = Numerics::default();
        self.blocks.iter().for_each(|block| total.add(&block.numerics()));
        total
    }
}
