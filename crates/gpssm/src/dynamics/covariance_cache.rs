//! Covariance matrices of the parts of a kernel at points that stay the same while hyper-parameters move.
//!
//! A step of one hyper-parameter changes one part of a sum. The others are found here, and a part of which only the
//! signal variance changed is scaled: each is kept with variance one. Whether a part is found or made anew does not
//! change a bit of the result.

use crate::kernel::{Kernel, Scratch};
use crate::linalg::dense::Dense;
use crate::linalg::simd::{Vectorised, dispatch};
use crate::points::Points;

/// Matrices that are kept, and the numbers that they may hold together (64 MB).
const MOST: usize = 8;
const MOST_NUMBERS: usize = 8 << 20;

/// Numbers that are kept at the most for `n` points.
pub(crate) fn most_cached(n: f64) -> f64 {
    (MOST as f64 * 0.5 * n * (n + 1.0)).min(MOST_NUMBERS as f64)
}

/// Matrices of parts at one set of points, the ones that were used last at the end.
#[derive(Debug, Default)]
pub(super) struct CovarianceCache {
    points: Points,
    /// Lower triangles, column by column.
    parts: Vec<(Kernel, Vec<f64>)>,
}

impl CovarianceCache {
    /// K + noise I over the points, lower triangle. False, and nothing done, if the parts would take too much room.
    pub(super) fn fill(
        &mut self,
        kernel: &Kernel,
        noise: f64,
        points: &Points,
        dense: &mut Dense,
        scratch: &mut Scratch,
    ) -> bool {
        let mut terms = Vec::new();
        kernel.terms(&mut terms);
        let n = points.len();
        let room = MOST.min(MOST_NUMBERS / (n * (n + 1) / 2).max(1));
        if terms.len() > room {
            return false;
        }
        if self.points != *points {
            self.points.clone_from(points);
            self.parts.clear();
        }
        for (_, part) in &terms {
            self.bring_to_the_end(part, room, scratch);
        }
        dense.resize(n);
        let matrix =
            |part: &Kernel| self.parts.iter().find(|(known, _)| known == part).map(|(_, matrix)| matrix);
        let used: Vec<(f64, &Vec<f64>)> =
            terms.iter().filter_map(|(variance, part)| Some((*variance, matrix(part)?))).collect();
        let mut at = vec![0.0; points.n_components()];
        let mut from = 0;
        for s in 0..n {
            let column = dense.lower_column_mut(s);
            column.fill(0.0);
            for (variance, matrix) in &used {
                dispatch(AddScaled { sum: column, factor: *variance, values: &matrix[from..from + n - s] });
            }
            points.get(s, &mut at);
            column[0] = kernel.diagonal(&at) + noise;
            from += n - s;
        }
        true
    }

    /// Finds the matrix of a part or makes it, in place of the one that was not used for longest if there is no room.
    fn bring_to_the_end(&mut self, part: &Kernel, room: usize, scratch: &mut Scratch) {
        if let Some(place) = self.parts.iter().position(|(known, _)| known == part) {
            let found = self.parts.remove(place);
            return self.parts.push(found);
        }
        let mut matrix = if self.parts.len() >= room { self.parts.remove(0).1 } else { Vec::new() };
        let n = self.points.len();
        matrix.resize(n * (n + 1) / 2, 0.0);
        Kernel::precompute(std::slice::from_ref(part), &mut self.points);
        let mut rest = matrix.as_mut_slice();
        let mut at = vec![0.0; self.points.n_components()];
        for s in 0..n {
            let (column, others) = rest.split_at_mut(n - s);
            self.points.get(s, &mut at);
            part.row(&self.points, s..n, &at, column, scratch);
            rest = others;
        }
        self.parts.push((part.clone(), matrix));
    }
}

struct AddScaled<'a> {
    sum: &'a mut [f64],
    factor: f64,
    values: &'a [f64],
}

impl Vectorised for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: pulp::Simd>(self, _: S) {
        self.sum.iter_mut().zip(self.values).for_each(|(sum, value)| *sum += self.factor * value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::path_density::fill_covariance;
    use crate::kernel::Shape;

    fn difference(cache: &mut CovarianceCache, kernel: &Kernel, points: &Points) -> f64 {
        let (mut fast, mut plain) = (Dense::default(), Dense::default());
        let mut scratch = Scratch::default();
        assert!(cache.fill(kernel, 0.3, points, &mut fast, &mut scratch));
        fill_covariance(std::slice::from_ref(kernel), &[0.3], points, &mut plain, &mut scratch);
        (0..points.len())
            .flat_map(|s| {
                let columns = fast.lower_column_mut(s).iter().zip(plain.lower_column_mut(s).iter());
                columns.map(|(a, b)| (a - b).abs()).collect::<Vec<_>>()
            })
            .fold(0.0, f64::max)
    }

    /// Against the plain matrix while one number after the other changes, and the points too. Seen failing when matrices of
    /// other points were kept, and when the one used last was thrown away.
    #[test]
    fn cached_parts_make_the_plain_matrix() {
        let rows: Vec<[f64; 2]> =
            (0..17).map(|i| [(0.7 * f64::from(i)).sin() * 3.0, (1.3 * f64::from(i)).cos()]).collect();
        let mut points = Points::from_rows(2, rows.iter().map(|row| &row[..]));
        let mut cache = CovarianceCache::default();
        for step in 0..40 {
            let number = |k: usize| 1.0 + 0.1 * ((step + k) / 5) as f64;
            let part = |shape, c: usize, k: usize| {
                Kernel::stationary_on(vec![c], shape, number(k), &[number(k + 1)])
            };
            let kernel = Kernel::Sum(vec![
                part(Shape::Matern52, 0, 0).odd(),
                Kernel::linear(vec![0, 1], vec![number(2), 0.5]),
                Kernel::Sum(vec![part(Shape::SquaredExponential, 1, 3), Kernel::constant(0.2)]),
                part(Shape::Matern52, 0, 0).odd(),
                Kernel::Product(vec![part(Shape::Matern32, 0, 4), part(Shape::Matern12, 1, 1)]),
            ]);
            if step == 22 {
                points.column_mut(0)[3] = 0.4;
            }
            assert!(difference(&mut cache, &kernel, &points) < 1e-13, "{step}");
            assert!(cache.parts.len() <= MOST);
        }
    }

    #[test]
    fn what_takes_too_much_room_is_left_alone() {
        let many = Kernel::Sum(vec![Kernel::constant(1.0); MOST + 1]);
        let points = Points::from_rows(1, [&[0.0][..]]);
        let mut dense = Dense::default();
        assert!(!CovarianceCache::default().fill(&many, 1.0, &points, &mut dense, &mut Scratch::default()));
    }
}
