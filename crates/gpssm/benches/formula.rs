//! Time of a formula beside the same function in Rust, measured in the same run.
//!
//! `cargo bench --bench formula` prints one JSON line for each formula and each number of points: nanoseconds
//! per point of the formula (`formula_ns`) and of native code (`native_ns`), each the fastest of many short runs
//! that take turns, their `ratio`, and `parse_us`, the time to parse the text and bind its names.

use std::hint::black_box;
use std::time::Instant;

use gpssm::formula::{Formula, Program, Variable};
use gpssm::{Points, StateFunction};
use serde_json::json;

/// Values of a, b and y.
const SCALARS: [f64; 3] = [0.9, 1.3, 0.4];
const RUNS: usize = 300;
const REPEATS: usize = 100;

fn program(text: &str) -> Program {
    let meaning = |name: &str| match name {
        "x" => Ok(Variable::Column(0)),
        "u" => Ok(Variable::Column(1)),
        "a" => Ok(Variable::Scalar(0)),
        "b" => Ok(Variable::Scalar(1)),
        "y" => Ok(Variable::Scalar(2)),
        other => Err(format!("there is no '{other}'")),
    };
    Formula::parse(text).and_then(|formula| formula.bind(meaning)).expect("a valid formula")
}

/// Nanoseconds of one call, on average over a short run.
fn time(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..REPEATS).for_each(|_| call());
    start.elapsed().as_nanos() as f64 / REPEATS as f64
}

/// `native` is generic, so that it is compiled into its loop; both are called as a sampler calls them.
fn measure(text: &str, native: impl Fn(f64, f64, &[f64]) -> f64 + Send + Sync) {
    let native = move |z: &Points, scalars: &[f64], out: &mut [f64]| {
        for ((out, x), u) in out.iter_mut().zip(z.column(0)).zip(z.column(1)) {
            *out = native(*x, *u, scalars);
        }
    };
    let native: &dyn StateFunction = &native;
    let program = program(text);
    let parse_us =
        (0..RUNS).map(|_| time(|| drop(black_box(self::program(black_box(text)))))).fold(f64::MAX, f64::min)
            / 1e3;
    for n in [1, 10, 100, 1000] {
        let mut z = Points::new(2);
        (0..n).for_each(|i| z.push(&[0.1 * i as f64 - 3.0, 0.7 * i as f64]));
        let (mut out, mut expected) = (vec![0.0; n], vec![0.0; n]);
        let (mut formula_ns, mut native_ns) = (f64::MAX, f64::MAX);
        for _ in 0..RUNS {
            formula_ns =
                formula_ns.min(time(|| program.evaluate(black_box(&z), black_box(&SCALARS), &mut out)));
            native_ns =
                native_ns.min(time(|| native.evaluate(black_box(&z), black_box(&SCALARS), &mut expected)));
        }
        assert!(out.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs())), "{text}");
        let (formula_ns, native_ns) = (formula_ns / n as f64, native_ns / n as f64);
        println!(
            "{}",
            json!({
                "formula": text,
                "points": n,
                "formula_ns": formula_ns,
                "native_ns": native_ns,
                "ratio": formula_ns / native_ns,
                "parse_us": parse_us,
            })
        );
    }
}

fn main() {
    measure("0.5*x+25*x/(1+x^2)+8*cos(1.2*u)", |x, u, _| {
        0.5 * x + 25.0 * x / (1.0 + x * x) + 8.0 * (1.2 * u).cos()
    });
    measure("0.3*x + 7.5*x/(1 + x^2)", |x, _, _| 0.3 * x + 7.5 * x / (1.0 + x * x));
    measure("a*x + b*cos(u)", |x, u, p| p[0] * x + p[1] * u.cos());
    measure("0.05*x^2", |x, _, _| 0.05 * (x * x));
    measure("-0.5*((y - a*x)/b)^2 - log(b)", |x, _, p| {
        let residual = (p[2] - p[0] * x) / p[1];
        -0.5 * (residual * residual) - p[1].ln()
    });
}
