//! The C sources, compiled with every compiler that is there, against the library.

mod common;

use common::{
    Compiled, compilers, distilled, first_state, options, points, random_points, sparse, sparse_states,
};
use gpssm::Kernel;
use gpssm::kernel::Shape;
use gpssm::posterior::{Distilled, DistilledFunction, DistilledState, Scenario, SparseFunction};
use gpssm_export::{Filter, Options, Precision};

/// Every kernel of the table on two or three components, sums, products and odd parts.
fn kernels() -> Vec<(&'static str, Kernel)> {
    let radial = |shape| Kernel::stationary(shape, 1.3, &[0.8, 1.5, 2.0]);
    let periodic = Kernel::periodic(vec![1], 0.7, &[0.9], &[1.7]);
    let linear = Kernel::linear(vec![0, 2], vec![0.5, 2.0]);
    let network = Kernel::new(&gpssm::kernel::NEURAL_NETWORK, vec![0, 1], vec![1.2, 0.7, 0.9, 1.4]);
    vec![
        ("se", radial(Shape::SquaredExponential)),
        ("matern12", radial(Shape::Matern12)),
        ("matern32", radial(Shape::Matern32)),
        ("matern52", radial(Shape::Matern52)),
        ("rq", radial(Shape::RationalQuadratic { alpha: 0.8 })),
        ("periodic", periodic.clone()),
        ("neural_network", network),
        ("linear", linear.clone()),
        ("constant", Kernel::constant(0.4)),
        ("sum", Kernel::Sum(vec![linear.clone(), Kernel::constant(0.4), periodic.clone()])),
        ("product", Kernel::Product(vec![linear, radial(Shape::Matern32), periodic])),
        ("change point", Kernel::change_point(1, 0.3, 0.4, radial(Shape::Matern32), Kernel::constant(0.6))),
        ("odd", radial(Shape::Matern52).odd()),
    ]
}

/// |L^{-1}| |k| by row: how large the terms of phi are.
fn absolute_phi(f: &SparseFunction, k: &[f64]) -> Vec<f64> {
    let m = f.n_inducing;
    let mut columns = vec![vec![0.0; m]; m];
    for (j, column) in columns.iter_mut().enumerate() {
        column[j] = 1.0;
        for i in j..m {
            let sum: f64 = (j..i).map(|l| f.chol[i * (i + 1) / 2 + l] * column[l]).sum();
            column[i] = (column[i] - sum) / f.chol[i * (i + 1) / 2 + i];
        }
    }
    (0..m).map(|i| (0..=i).map(|j| columns[j][i].abs() * k[j].abs()).sum()).collect()
}

/// A state for each kernel, and one that copies the first.
fn every_kernel() -> Distilled {
    let kernels = kernels();
    let n_x = kernels.len() + 1;
    let states = kernels
        .iter()
        .enumerate()
        .map(|(i, (_, kernel))| DistilledState::Sparse(Box::new(sparse(kernel, 12, n_x + 1, i as u64))));
    let states = states.chain([DistilledState::Lag { of: 0 }]).collect();
    distilled(states, 1, first_state(n_x, 1), 1)
}

/// What the probe prints of f.
struct Row<'a> {
    mean: &'a [f64],
    variance: &'a [f64],
    mean_slope: &'a [f64],
    variance_slope: &'a [f64],
}

impl<'a> Row<'a> {
    fn of(row: &'a [f64], n_x: usize, n_z: usize) -> Self {
        let (mean, rest) = row.split_at(n_x);
        let (variance, rest) = rest.split_at(n_x);
        let (mean_slope, variance_slope) = rest.split_at(n_x * n_z);
        Self { mean, variance, mean_slope, variance_slope }
    }
}

/// Means, variances and slopes of every kernel at 1,000 random points: equal to the library to 1e-12 of the sum of absolute
/// terms, slopes of variances to differences.
#[test]
fn functions_are_those_of_the_library() {
    let model = every_kernel();
    let (n_x, n_z) = (model.n_x, model.n_x + model.n_u);
    let points = random_points(&model, 1000);
    let mut function = DistilledFunction::new(&model).unwrap();
    let (scale, shift) = (model.x_units.scale[0], model.x_units.shift[0]);
    for compiler in compilers() {
        let rows = Compiled::new(&model, &options(), compiler).run("f", &points);
        for (i, (z, row)) in points.iter().zip(&rows).enumerate() {
            let row = Row::of(row, n_x, n_z);
            let (x, u) = z.split_at(n_x);
            let (mut mean, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
            let mut jacobian = vec![0.0; n_x * n_z];
            function.evaluate(x, u, &mut mean, &mut variance);
            function.jacobian(x, u, &mut jacobian);
            let place = |c: usize| if c < n_x { (&model.x_units, c) } else { (&model.u_units, c - n_x) };
            let at: Vec<f64> = (0..n_z).map(|c| place(c).0.to_internal(place(c).1, z[c])).collect();
            for (d, (name, kernel)) in kernels().iter().enumerate() {
                let DistilledState::Sparse(f) = &model.states[d] else { unreachable!() };
                let k: Vec<f64> =
                    f.inducing.chunks_exact(n_z).map(|input| kernel.value(&at, input)).collect();
                let linear: f64 = f.slopes.iter().zip(&at).map(|(a, z)| (a * z).abs()).sum();
                let terms: f64 = k.iter().zip(&f.coefficients).map(|(k, c)| (k * c).abs()).sum();
                let sum = shift.abs() + scale * (f.offset.abs() + linear + terms);
                let square: f64 = absolute_phi(f, &k).iter().map(|phi| phi * phi).sum();
                let wide = scale * scale * (kernel.diagonal(&at) + 3.0 * square);
                let said = format!("{compiler}, {name} at {z:?}");
                assert!((row.mean[d] - mean[d]).abs() <= 1e-12 * sum, "{said}: {} {}", row.mean[d], mean[d]);
                let found = (row.variance[d], variance[d]);
                assert!((found.0 - found.1).abs() <= 1e-12 * wide, "{said}: {found:?}");
                let coefficients: f64 = f.coefficients.iter().map(|c| c.abs()).sum();
                for c in 0..n_z {
                    let found = (row.mean_slope[d * n_z + c], jacobian[d * n_z + c]);
                    let size = 1e-12 * (1.0 + 10.0 * coefficients);
                    assert!((found.0 - found.1).abs() <= size, "{said}, {c}: {found:?}");
                }
                // Differences of variances cost their digits: a few points are enough.
                for c in (0..4).filter(|_| i < 20) {
                    let mut at = |h: f64| {
                        let mut z = z.clone();
                        z[c] += h;
                        let (mut mean, mut variance) = (vec![0.0; n_x], vec![0.0; n_x]);
                        function.evaluate(&z[..n_x], &z[n_x..], &mut mean, &mut variance);
                        variance[d]
                    };
                    let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                    let found = row.variance_slope[d * n_z + c];
                    let size = 1e-4 * (1.0 + row.variance[d] + difference.abs()) + 1e-9 * wide;
                    assert!((found - difference).abs() < size, "{said}, {c}: {found} {difference}");
                }
            }
            let copy = (row.mean[n_x - 1], row.variance[n_x - 1]);
            assert!((copy.0 - x[0]).abs() < 1e-14 * (1.0 + x[0].abs()) && copy.1 == 0.0, "{copy:?}");
        }
    }
}

/// Two states with kernels of their own, and 32-bit numbers.
#[test]
fn floats_follow_doubles() {
    let Some(compiler) = compilers().first().copied() else { return };
    let distilled = sparse_states();
    let points = random_points(&distilled, 100);
    let double = Compiled::new(&distilled, &options(), compiler).run("f", &points);
    let float = Options { precision: Precision::Float, ..options() };
    let float = Compiled::new(&distilled, &float, compiler).run("f", &points);
    for (a, b) in double.iter().zip(&float) {
        for (a, b) in a[..2].iter().zip(b) {
            assert!((a - b).abs() < 1e-3 * (1.0 + a.abs()), "{a} {b}");
        }
    }
}

/// What lies outside, is no number, or is of another size is flagged.
#[test]
fn bad_use_is_flagged() {
    let Some(compiler) = compilers().first().copied() else { return };
    let distilled = sparse_states();
    let compiled = Compiled::new(&distilled, &options(), compiler);
    let flags = |z: &[f64]| compiled.run("flags", &points(&[z]))[0][0];
    assert_eq!(flags(&[0.1, 0.2, 0.3]), 0.0);
    assert_eq!(flags(&[100.0, 0.2, 0.3]), 1.0);
    assert_eq!(flags(&[0.1, 0.2, -100.0]), 1.0);
    assert_eq!(flags(&[0.1, f64::NAN, 0.3]), 2.0);
    let sizes = compiled.run("sizes", &points(&[&[0.0; 3]]));
    assert_eq!(sizes[0], [0.0, 4.0, 8.0]);
}

/// A model without inputs, one state: no array is empty, no comparison always false.
#[test]
fn models_without_inputs_compile() {
    for compiler in compilers() {
        let kernel = Kernel::squared_exponential(0.2, &[1.0]);
        let state = DistilledState::Sparse(Box::new(sparse(&kernel, 6, 1, 1)));
        let mut model = distilled(vec![state], 0, first_state(1, 0), 1);
        for filter in [Filter::Extended, Filter::Particles] {
            let options = Options { filter, particles: 20, ..options() };
            let rows = Compiled::new(&model, &options, compiler).run("f", &points(&[&[0.4]]));
            assert!(rows[0].iter().all(|value| value.is_finite()), "{rows:?}");
        }
        model.scenarios =
            vec![Scenario { draw: 0, coefficients: vec![vec![0.1; 6]], process_noise: vec![0.1] }];
        let rows = Compiled::new(&model, &options(), compiler).run("scenarios", &points(&[&[0.4]]));
        assert!(rows[0][0].is_finite());
    }
}

/// CPU time of one evaluation with 50 inducing inputs for each state and five inputs, and of a step of the filter.
#[test]
#[ignore = "long"]
fn times_are_told() {
    for compiler in compilers() {
        for n_x in [1, 2] {
            let ell: Vec<f64> = (0..n_x + 5).map(|c| 2.0 + c as f64).collect();
            let kernel = Kernel::squared_exponential(1.0, &ell);
            let state = |seed| DistilledState::Sparse(Box::new(sparse(&kernel, 50, n_x + 5, seed)));
            let model = distilled((0..n_x as u64).map(state).collect(), 5, first_state(n_x, 5), 1);
            let compiled = Compiled::new(&model, &options(), compiler);
            for line in compiled.speed(compiler, include_str!("common/speed.c")) {
                println!("{compiler}, {n_x} states: {line}");
            }
        }
    }
}
