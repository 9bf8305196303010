//! Checks of kernels.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::Nonconformity;
use crate::dynamics::basis::features::{Basis, BasisChoice};
use crate::dynamics::basis::hilbert::HilbertChoice;
use crate::kernel::radial::Radial;
use crate::kernel::{Descriptor, Kernel, Scratch};
use crate::linalg::small;
use crate::points::Points;

/// Random points, each component within -SPREAD..SPREAD.
const N_POINTS: usize = 24;
const SPREAD: f64 = 2.0;
/// Of the variance: rounding; the error of central differences and of quadratures; that of a basis of N_FUNCTIONS.
const ROUNDING: f64 = 1e-9;
const NUMERICAL: f64 = 1e-5;
const BASIS: f64 = 0.01;
const N_FUNCTIONS: usize = 1_000;

/// Checks a kernel with numbers at random points z of `n_z` components.
///
/// - It is symmetric, k(z, z) is what it says, and rows over many points are its values.
/// - Its matrix is positive semi-definite.
/// - The derivative is that of central differences, where there is one.
/// - The spectral density is the Fourier transform of the kernel, and Hilbert-space functions come close to it, where
///   there is one; inducing inputs give the kernel itself.
///
/// ```
/// use gpssm::{Kernel, Points, conformance};
///
/// // a^2 (z z')^2
/// let quadratic = |z: &Points, other: &[f64], a: &[f64], out: &mut [f64]| {
///     for (out, z) in out.iter_mut().zip(z.column(0)) {
///         *out = (a[0] * z * other[0]).powi(2);
///     }
/// };
/// conformance::kernel(&Kernel::user("quadratic", quadratic, vec![0], vec![0.7]), 1)?;
/// # Ok::<(), conformance::Nonconformity>(())
/// ```
pub fn kernel(kernel: &Kernel, n_z: usize) -> Result<(), Nonconformity> {
    if let Err(message) = kernel.parts().try_for_each(|part| part.check(n_z)) {
        return Err(Nonconformity::CannotCheck(message));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(n_z as u64);
    let rows: Vec<Vec<f64>> =
        (0..N_POINTS).map(|_| (0..n_z).map(|_| rng.random_range(-SPREAD..SPREAD)).collect()).collect();
    let points = Points::from_rows(n_z, rows.iter().map(Vec::as_slice));
    // Of all pairs: what is no covariance may be zero or negative at z = z'.
    let values = kernel.matrix(&points, &points);
    let variance = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let check = Check { kernel, rows: &rows, points, variance };
    check.values()?;
    check.definite()?;
    check.gradient()?;
    check.inducing()?;
    for part in kernel.parts() {
        if let Some(radial) = part.radial() {
            spectral_density(&radial, &radial)?;
        }
    }
    check.hilbert(n_z)
}

/// Kernels of a kind with numbers, of one and of two components.
pub fn kernel_examples(kind: &'static Descriptor) -> Vec<Kernel> {
    let numbers = |n: usize| (0..kind.n_numbers(n)).map(|i| 0.7 + 0.2 * i as f64).collect();
    match kind.has_components() {
        true => vec![Kernel::new(kind, vec![1], numbers(1)), Kernel::new(kind, vec![0, 1], numbers(2))],
        false => vec![Kernel::new(kind, Vec::new(), numbers(0))],
    }
}

/// An error unless two numbers are about the same; numbers that are not finite never are.
fn same(
    place: &dyn Fn() -> String,
    what: &str,
    found: f64,
    expected: f64,
    error: f64,
) -> Result<(), Nonconformity> {
    match (found - expected).abs() <= error {
        true => Ok(()),
        false => Err(Nonconformity::Differs { place: place(), what: what.to_owned(), found, expected }),
    }
}

struct Check<'a> {
    kernel: &'a Kernel,
    rows: &'a [Vec<f64>],
    points: Points,
    /// Largest value among the points, the variance at one of them if all is well.
    variance: f64,
}

impl Check<'_> {
    fn values(&self) -> Result<(), Nonconformity> {
        let (kernel, error) = (self.kernel, ROUNDING * self.variance);
        let matrix = kernel.matrix(&self.points, &self.points);
        let mut quick = self.points.clone();
        Kernel::precompute(std::slice::from_ref(kernel), &mut quick);
        let mut row = vec![0.0; N_POINTS];
        for (i, z) in self.rows.iter().enumerate() {
            let place = || format!("at z = {z:?}");
            same(&place, "k(z, z)", kernel.diagonal(z), kernel.value(z, z), error)?;
            kernel.row(&quick, 0..N_POINTS, z, &mut row, &mut Scratch::default());
            for (j, other) in self.rows.iter().enumerate() {
                let place = || format!("at z = {z:?}, z' = {other:?}");
                let value = kernel.value(z, other);
                same(&place, "k(z', z)", kernel.value(other, z), value, error)?;
                same(&place, "k(z, z') in a row of points", matrix[i * N_POINTS + j], value, error)?;
                same(&place, "k(z, z') in a precomputed row of points", row[j], value, error)?;
            }
        }
        Ok(())
    }

    fn definite(&self) -> Result<(), Nonconformity> {
        let mut matrix = self.kernel.matrix(&self.points, &self.points);
        (0..N_POINTS).for_each(|i| matrix[i * N_POINTS + i] += ROUNDING * self.variance);
        match self.variance == 0.0 || small::cholesky(&mut matrix, N_POINTS) {
            true => Ok(()),
            false => Err(Nonconformity::Indefinite { n: N_POINTS }),
        }
    }

    fn gradient(&self) -> Result<(), Nonconformity> {
        const STEP: f64 = 1e-5;
        for (z, other) in self.rows.iter().zip(self.rows.iter().rev()) {
            let Some(gradient) = self.kernel.gradient(z, other) else { return Ok(()) };
            for (c, found) in gradient.iter().enumerate() {
                let moved = |step: f64| {
                    let mut z = z.clone();
                    z[c] += step;
                    self.kernel.value(&z, other)
                };
                let place = || format!("at z = {z:?}, z' = {other:?}");
                let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let error = NUMERICAL * (self.variance + difference.abs());
                same(&place, &format!("dk(z, z') / dz_{}", c + 1), *found, difference, error)?;
            }
        }
        Ok(())
    }

    /// phi(z) . phi(z') with all points as inducing inputs.
    fn inducing(&self) -> Result<(), Nonconformity> {
        let choice = BasisChoice::Dtc(Arc::new(self.points.clone()));
        let basis = Basis::new(self.kernel, &choice)
            .map_err(|error| Nonconformity::CannotCheck(format!("as inducing inputs: {error}")))?;
        self.compare(&basis, "with all points as inducing inputs", NUMERICAL)
    }

    /// phi(z) . phi(z') of Hilbert-space functions, if there are any.
    fn hilbert(&self, n_z: usize) -> Result<(), Nonconformity> {
        // Of several components rough kernels need far more functions.
        if self.kernel.parts().any(|part| part.components.len() > 1) {
            return Ok(());
        }
        let choice = HilbertChoice::new(vec![0.0; n_z], vec![3.0 * SPREAD; n_z], N_FUNCTIONS);
        match Basis::new(self.kernel, &BasisChoice::Hilbert(Arc::new(choice))) {
            Ok(basis) => self.compare(&basis, "with Hilbert-space functions", BASIS),
            Err(_) => Ok(()),
        }
    }

    fn compare(&self, basis: &Basis, place: &str, error: f64) -> Result<(), Nonconformity> {
        let (mut phi, mut extra) = (Vec::new(), Vec::new());
        basis.evaluate(&self.points, &mut phi, &mut extra);
        let row = |i: usize| &phi[i * basis.len()..(i + 1) * basis.len()];
        for i in 0..N_POINTS {
            for j in 0..N_POINTS {
                let found: f64 = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
                let (z, other) = (&self.rows[i], &self.rows[j]);
                let place = || format!("{place}, at z = {z:?}, z' = {other:?}");
                same(&place, "k(z, z')", found, self.kernel.value(z, other), error * self.variance)?;
            }
        }
        Ok(())
    }
}

/// S(omega) = 2 int_0^inf k(tau) cos(omega tau) dtau of one component, by Simpson's rule; k of `kernel`, S of `density`.
fn spectral_density(kernel: &Radial<'_>, density: &Radial<'_>) -> Result<(), Nonconformity> {
    const STEPS: usize = 200_000;
    let [kernel, density] = [kernel, density].map(|radial| Radial { ell: &radial.ell[..1], ..*radial });
    let ell = kernel.ell[0];
    // Kernels with a density here fall at least as fast as exp(-r).
    let step = 40.0 * ell / STEPS as f64;
    for omega in [0.0, 0.5 / ell, 2.0 / ell] {
        let Some(log_density) = density.log_spectral_density(&[omega]) else { return Ok(()) };
        let term = |i: usize| {
            let tau = step * i as f64;
            let weight = if i == 0 || i == STEPS { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
            weight * kernel.value(tau) * (omega * tau).cos()
        };
        let integral = 2.0 * step / 3.0 * (0..=STEPS).map(term).sum::<f64>();
        let place = || format!("at omega = {omega}");
        let error = NUMERICAL * kernel.variance * ell;
        same(&place, "the spectral density", log_density.exp(), integral, error)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::part::{Covariance, Pair, Row};
    use crate::kernel::{KERNELS, Kind, Part, Shape, UserKernel};

    #[test]
    fn every_kernel_conforms() {
        for kind in KERNELS {
            for example in kernel_examples(kind) {
                for kernel_of in [example.clone(), example.clone().odd(), example.scaled(2.5)] {
                    kernel(&kernel_of, 2).unwrap_or_else(|error| panic!("{kernel_of:?}: {error}"));
                }
            }
        }
        let all: Vec<Kernel> = KERNELS.iter().flat_map(|kind| kernel_examples(kind)).collect();
        let change = Kernel::change_point(1, 0.3, 0.4, Kernel::Sum(all.clone()), all[0].clone());
        let composed = [Kernel::Sum(all.clone()), Kernel::Product(all.clone()), Kernel::Sum(all).odd()];
        for composed in composed.into_iter().chain([change.clone(), change.scaled(2.5)]) {
            kernel(&composed, 2).unwrap_or_else(|error| panic!("{composed:?}: {error}"));
        }
    }

    /// exp(-r^2 / 2) with one thing wrong.
    #[derive(Clone, Copy, PartialEq)]
    enum Wrong {
        Asymmetric,
        Indefinite,
        Negative,
        Distance,
        Diagonal,
        Row,
        Gradient,
        Density,
    }

    impl Covariance for Wrong {
        fn value(&self, _: &[f64], pair: &Pair<'_>) -> f64 {
            let (z, other) = pair.iter().next().unwrap();
            let value = (-0.5 * (z - other).powi(2)).exp();
            match self {
                Self::Asymmetric => value * (1.0 + 1e-3 * z),
                Self::Indefinite => value - 0.9,
                Self::Negative => -1.0,
                Self::Distance => (z - other).abs(),
                _ => value,
            }
        }

        fn diagonal(&self, numbers: &[f64], components: &[usize], z: &[f64]) -> f64 {
            let factor = if *self == Self::Diagonal { 1.001 } else { 1.0 };
            factor * self.value(numbers, &Pair { components, z, other: z, sign: 1.0 })
        }

        fn add_gradient(&self, numbers: &[f64], pair: &Pair<'_>, factor: f64, gradient: &mut [f64]) -> bool {
            let (z, other) = pair.iter().next().unwrap();
            let slope = if *self == Self::Gradient { 1.01 } else { 1.0 };
            gradient[pair.components[0]] -= factor * slope * (z - other) * self.value(numbers, pair);
            matches!(self, Self::Gradient | Self::Density)
        }

        fn row(&self, numbers: &[f64], row: &Row<'_>, out: &mut [f64]) {
            for (i, out) in row.range.clone().zip(out) {
                let pair =
                    Pair { components: row.components, z: &row.points.row(i), other: row.at, sign: 1.0 };
                *out = self.value(numbers, &pair) * if *self == Self::Row { 1.001 } else { 1.0 };
            }
        }

        fn radial<'a>(&self, numbers: &'a [f64]) -> Option<Radial<'a>> {
            let radial = Radial { shape: Shape::Matern12, variance: 1.0, ell: numbers };
            (*self == Self::Density).then_some(radial)
        }
    }

    #[test]
    fn every_mistake_is_found() {
        for (wrong, what) in [
            (Wrong::Asymmetric, "k(z', z)"),
            (Wrong::Indefinite, "not positive semi-definite"),
            (Wrong::Negative, "not positive semi-definite"),
            (Wrong::Distance, "not positive semi-definite"),
            (Wrong::Diagonal, "k(z, z)"),
            (Wrong::Row, "in a row of points"),
            (Wrong::Gradient, "dk(z, z') / dz_1"),
            (Wrong::Density, "with Hilbert-space functions"),
        ] {
            let kind = Kind::User(UserKernel { name: "wrong".into(), covariance: Arc::new(wrong) });
            let part = Part { kind, components: vec![0], numbers: vec![1.0] };
            let message = kernel(&Kernel::Part(part), 1).unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        }
        let [matern32, matern52] =
            [Shape::Matern32, Shape::Matern52].map(|shape| Radial { shape, variance: 1.0, ell: &[0.8] });
        assert!(spectral_density(&matern32, &matern52).is_err());
    }
}
