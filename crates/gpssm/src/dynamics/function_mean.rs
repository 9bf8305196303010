//! The posterior mean of f given one path (eq. 11), as a function.

use super::block::Pairs;
use super::path_density::fill_covariance;
use super::transition::{FunctionPrior, Transition};
use crate::function::evaluate_all;
use crate::kernel::Scratch;
use crate::linalg::dense::{Dense, NotPositiveDefinite};
use crate::points::Points;

/// E[f | x, theta] of all state dimensions; lags copy their state.
pub(crate) struct FunctionMean<'a> {
    transition: &'a Transition,
    points: &'a Points,
    /// By block: its dimensions, and what its kernel rows or features are multiplied with.
    blocks: Vec<(Vec<usize>, Vec<f64>)>,
}

impl<'a> FunctionMean<'a> {
    /// Given these pairs.
    pub(crate) fn new(transition: &'a Transition, pairs: &'a Pairs) -> Result<Self, NotPositiveDefinite> {
        let mut blocks = Vec::new();
        for dims in transition.blocks().into_iter().filter(|dims| !transition.is_known(dims)) {
            let noise = transition.noise_of(&dims);
            let coefficients = match &transition.prior {
                FunctionPrior::Exact => {
                    let mut dense = Dense::default();
                    let kernels = transition.kernels_of(&dims);
                    fill_covariance(&kernels, &noise, &pairs.points, &mut dense, &mut Scratch::default());
                    dense.factor()?;
                    let mut residuals = pairs.select(&dims);
                    dense.solve_lower(&mut residuals, 1);
                    dense.solve_lower_transposed(&mut residuals);
                    residuals
                }
                FunctionPrior::Collapsed(choice) => {
                    let (_, mut statistics) = transition.statistics(&dims, choice, noise, pairs)?;
                    statistics.gram.factor()?;
                    statistics.gram.solve_lower(&mut statistics.b, 1);
                    statistics.gram.solve_lower_transposed(&mut statistics.b);
                    statistics.b
                }
                FunctionPrior::Sampled(_, weights) => weights[blocks.len()].clone(),
            };
            blocks.push((dims, coefficients));
        }
        Ok(Self { transition, points: &pairs.points, blocks })
    }

    /// At these points, (point, dimension).
    pub(crate) fn at(&self, points: &Points) -> Result<Vec<f64>, NotPositiveDefinite> {
        let n_x = self.transition.n_x();
        let mut values = Vec::new();
        evaluate_all(&self.transition.means, points, &mut values);
        for (dims, coefficients) in &self.blocks {
            let p = dims.len();
            match &self.transition.prior {
                FunctionPrior::Exact => {
                    let n = self.points.len();
                    for (a, &d) in dims.iter().enumerate() {
                        let k = self.transition.kernels[d].matrix(points, self.points);
                        for (i, row) in k.chunks_exact(n).enumerate() {
                            let own = coefficients.iter().skip(a).step_by(p);
                            values[i * n_x + d] += row.iter().zip(own).map(|(k, c)| k * c).sum::<f64>();
                        }
                    }
                }
                FunctionPrior::Collapsed(choice) | FunctionPrior::Sampled(choice, _) => {
                    let noise = self.transition.noise_of(dims);
                    let design = self.transition.design_of(dims, choice, noise)?;
                    let (mut f, mut extra) = (Vec::new(), Vec::new());
                    design.values(points, coefficients, &mut f, &mut extra);
                    for (i, f) in f.chunks_exact(p).enumerate() {
                        dims.iter().zip(f).for_each(|(&d, f)| values[i * n_x + d] += f);
                    }
                }
            }
        }
        Ok(values)
    }
}
