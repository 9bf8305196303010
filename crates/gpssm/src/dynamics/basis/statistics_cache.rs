//! Sums over pairs that stay the same while hyper-parameters move.
//!
//! phi_j = a_j psi_j, and a step of one hyper-parameter may change amplitudes alone: those of linear and constant kernels do,
//! those of Hilbert-space functions all do, and so does the noise of one state dimension where it is the same for
//! all points. Sums over the unit features psi are kept, and such a step costs O(m^3) instead of O(n m^2). Whether sums are
//! found or made anew does not change a bit of the result.

use super::regression::{Design, Statistics};
use crate::dynamics::block::Pairs;
use crate::linalg::dense::NotPositiveDefinite;
use crate::points::Points;

/// The last sums of each block.
#[derive(Debug, Default)]
pub(crate) struct StatisticsCache {
    points: Points,
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    dims: Vec<usize>,
    residuals: Vec<f64>,
    unit: Design,
    sums: Statistics,
}

impl StatisticsCache {
    /// The statistics of the dimensions `dims` over all pairs.
    pub(crate) fn statistics(
        &mut self,
        design: Design,
        dims: &[usize],
        pairs: &Pairs,
    ) -> Result<Statistics, NotPositiveDefinite> {
        if self.points != pairs.points {
            self.points.clone_from(&pairs.points);
            self.known.clear();
        }
        let (unit, amplitudes) = design.unit();
        let residuals = pairs.select(dims);
        let place = self.known.iter().position(|known| known.dims == dims);
        if let Some(place) = place
            && self.known[place].unit == unit
            && self.known[place].residuals == residuals
        {
            return Ok(self.known[place].sums.rescaled(&amplitudes));
        }
        place.map(|place| self.known.swap_remove(place));
        let mut sums = Statistics::without_prior(unit.n_weights());
        sums.add(&unit, dims, pairs, 0..pairs.points.len())?;
        let rescaled = sums.rescaled(&amplitudes);
        self.known.push(Known { dims: dims.to_vec(), residuals, unit, sums });
        Ok(rescaled)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::features::BasisChoice;
    use super::super::fourier::FourierChoice;
    use super::super::hilbert::HilbertChoice;
    use super::*;
    use crate::kernel::{Kernel, Shape};

    fn pairs() -> Pairs {
        let rows: Vec<[f64; 2]> =
            (0..23).map(|i| [(0.7 * f64::from(i)).sin() * 2.0, (1.3 * f64::from(i)).cos()]).collect();
        let residuals = (0..46).map(|i| (0.9 * f64::from(i)).cos()).collect();
        Pairs { n_x: 2, points: Points::from_rows(2, rows.iter().map(|row| &row[..])), residuals }
    }

    fn choices() -> Vec<BasisChoice> {
        let inducing = Arc::new(Points::from_rows(2, [&[-1.5, 0.3][..], &[0.1, -0.8], &[1.4, 0.5]]));
        let uniform = |i: usize| 0.03 + 0.94 * (0.618 * i as f64).fract();
        vec![
            BasisChoice::Fic(Arc::clone(&inducing)),
            BasisChoice::Dtc(inducing),
            BasisChoice::Hilbert(Arc::new(HilbertChoice::new(vec![0.0, 0.0], vec![3.0, 2.0], 6))),
            BasisChoice::Fourier(Arc::new(FourierChoice {
                directions: (0..8).map(uniform).collect(),
                radii: (0..4).map(|i| [0.3, -1.2, 0.8, 0.1, 1.1].map(|n| n + 0.2 * f64::from(i))).collect(),
                n_components: 2,
            })),
        ]
    }

    fn kernel(number: &dyn Fn(usize) -> f64) -> Kernel {
        let components = vec![0, 1];
        Kernel::Sum(vec![
            Kernel::stationary_on(components.clone(), Shape::Matern32, number(0), &[number(1), number(2)]),
            Kernel::linear(components, vec![number(3), 1e-9 * number(4)]),
            Kernel::constant(number(5)),
        ])
    }

    /// Against sums made anew while one number after the other changes, and points and residuals too, of one dimension, of the
    /// other and of both together. Seen failing when sums of other points or residuals were kept, and with b not divided by the
    /// noise.
    #[test]
    fn kept_sums_make_the_plain_evidence() {
        for choice in choices() {
            let mut pairs = pairs();
            let mut cache = StatisticsCache::default();
            let mut found = 0;
            for step in 0..120 {
                let number = |k: usize| 1.0 + 0.1 * ((step + 9 - k) / 8) as f64;
                let dims: &[usize] = [&[0][..], &[1], &[0, 1]][step / 2 % 3];
                let kernels: Vec<Kernel> = dims.iter().map(|_| kernel(&number)).collect();
                let (a, b) = (0.3 * number(6), 0.1);
                let noise = if dims.len() == 1 { vec![a] } else { vec![a, b, b, 0.4 * number(7)] };
                match step {
                    25 => pairs.points.column_mut(0)[3] = 0.4,
                    42 => pairs.residuals[7] = 0.6,
                    _ => {}
                }
                let design = || Design::new(&kernels, &choice, noise.clone()).unwrap();
                let (unit, _) = design().unit();
                found +=
                    usize::from(cache.known.iter().any(|known| known.dims == dims && known.unit == unit));
                let kept = cache.statistics(design(), dims, &pairs).unwrap();
                let mut plain = Statistics::new(design().n_weights());
                plain.add(&design(), dims, &pairs, 0..pairs.points.len()).unwrap();
                let (kept, plain) =
                    (kept.log_marginal_likelihood().unwrap(), plain.log_marginal_likelihood().unwrap());
                assert!((kept - plain).abs() < 1e-11 * (1.0 + plain.abs()), "{step}: {kept} {plain}");
                assert!(cache.known.len() <= 3);
            }
            assert!(found > 10, "{found}");
        }
    }
}
