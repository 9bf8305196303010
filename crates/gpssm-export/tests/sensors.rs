//! Every sensor that can be exported, in C, against the library.

mod common;

use std::collections::BTreeMap;

use common::{Compiled, compilers, distilled, normals, options, sparse, with_density};
use gpssm::Kernel;
use gpssm::formula::{Formula, Variable};
use gpssm::posterior::{
    BoundFormula, Distilled, DistilledInitial, DistilledOutput, DistilledPredictor, DistilledState, Named,
    OutputDensity,
};
use gpssm::sensor::family::{FAMILIES, Family};
use gpssm::{Points, kernel};
use gpssm_export::{Filter, Model, Options, State};

fn predictor(text: &str) -> DistilledPredictor {
    let formula = Formula::parse(text).unwrap();
    let meaning = |name: &str| match name {
        "x1" => Named::State(0),
        "x2" => Named::State(1),
        "u" => Named::Input(0),
        _ => Named::Number(0.7),
    };
    let names: BTreeMap<String, Named> =
        formula.names().iter().map(|name| (name.clone(), meaning(name))).collect();
    DistilledPredictor::Formula(BoundFormula { text: text.into(), names })
}

fn plant(density: OutputDensity, n_y: usize) -> Distilled {
    let kernel = Kernel::squared_exponential(0.3, &[1.0, 1.5, 2.0]);
    let first = DistilledState::Sparse(Box::new(sparse(&kernel, 5, 3, 2)));
    distilled(vec![first, DistilledState::Lag { of: 0 }], 1, with_density(density), n_y)
}

/// Every function of formulas but lgamma, which has no derivative here.
const TEXTS: [&str; 6] = [
    "0.3*x1 + a*sin(x2) - cos(u)*tanh(x1*x2) + exp(-x1^2) - log(2 + x2^2)",
    "sqrt(1 + x1^2)/(2 + cos(u)) + abs(x2) + atan2(x1, 2 + u^2) + atan(x2) + x1^3/10",
    "min(x1, x2) + max(u, x1) + if(x1 > u, x2, a) + floor(x1) + sign(u) + ceil(x2) + (1 + x2^2)^-2",
    "logistic(x1) + softplus(x2) + erf(u) - erfc(x1) + log1p(x1^2) + expm1(0.1*x2) + log10(3 + u^2)",
    "sinh(0.3*x1) + cosh(0.3*x2) + asin(0.5*sin(u)) + acos(0.5*cos(x1)) + tan(0.2*x2) + x1^7/100 + x2^5/9 + 2^x1",
    "(x1 < u) + (x2 <= x1) + (x1 >= a) + (x2 == u)*x1 + (x1 != x2)*0.3*u + (2 + cos(x1))^u",
];

fn families() -> Vec<Family> {
    let numbers = |name: &str| match name {
        "student_t" => [0.8, 3.5],
        "binomial" => [9.0, 0.0],
        "negative_binomial" => [2.5, 0.0],
        _ => [0.6, 0.0],
    };
    FAMILIES.into_iter().map(|family| Family::bind(family, numbers(family.name))).collect()
}

/// Outputs of every family, each with a formula of its own as its predictor: means with their slopes, variances, and log
/// densities of a known state.
#[test]
fn families_and_formulas_are_those_of_the_library() {
    let families = families();
    let n_y = families.len();
    let outputs = families.iter().enumerate().map(|(k, family)| DistilledOutput {
        family: family.name().into(),
        numbers: family.numbers().to_vec(),
        predictor: predictor(TEXTS[k % TEXTS.len()]),
    });
    let mut model = plant(OutputDensity::Families(outputs.collect()), n_y);
    model.initial = Some(DistilledInitial::Fixed(vec![0.4, -0.9]));
    let programs: Vec<_> = (0..n_y)
        .map(|k| {
            Formula::parse(TEXTS[k % TEXTS.len()])
                .unwrap()
                .bind(|name| {
                    Ok(match name {
                        "x1" => Variable::Column(0),
                        "x2" => Variable::Column(1),
                        "u" => Variable::Column(2),
                        _ => Variable::Scalar(0),
                    })
                })
                .unwrap()
        })
        .collect();
    let eta = |k: usize, z: &[f64]| {
        let mut out = [0.0];
        programs[k].evaluate(&Points::from_rows(3, [z]), &[0.7], &mut out);
        out[0]
    };
    let mut normal = normals(3);
    let points: Vec<Vec<f64>> = (0..300).map(|_| (0..3).map(|_| normal()).collect()).collect();
    for compiler in compilers() {
        let few = Options { particles: 3, ..options() };
        let compiled = Compiled::new(&model, &few, compiler);
        for (z, row) in points.iter().zip(compiled.run("output", &points)) {
            for (k, family) in families.iter().enumerate() {
                let (at, said) = (eta(k, z), format!("{compiler}, {} at {z:?}", family.name()));
                let near = |a: f64, b: f64, size: f64| (a - b).abs() <= size * (1.0 + a.abs().max(b.abs()));
                assert!(near(row[k], family.mean(at), 1e-12), "{said}: {} {}", row[k], family.mean(at));
                let variance = match family.name() {
                    "gaussian" => 0.36,
                    "student_t" => 0.64 * 3.5 / 1.5,
                    "poisson" | "stochastic_volatility" => at.exp(),
                    "negative_binomial" => at.exp() + at.exp().powi(2) / 2.5,
                    name => {
                        let p = 1.0 / (1.0 + (-at).exp());
                        p * (1.0 - p) * if name == "binomial" { 9.0 } else { 1.0 }
                    }
                };
                assert!(near(row[n_y + k], variance, 1e-12), "{said}: {} {variance}", row[n_y + k]);
                for c in 0..3 {
                    let moved = |h: f64| {
                        let mut z = z.clone();
                        z[c] += h;
                        family.mean(eta(k, &z))
                    };
                    let (h, found) = (1e-6, row[2 * n_y + 3 * k + c]);
                    let (up, down) = ((moved(h) - moved(0.0)) / h, (moved(0.0) - moved(-h)) / h);
                    // A step lies between: no slope to compare with.
                    if (up - down).abs() < 1e-2 * (1.0 + up.abs()) {
                        assert!(near(found, 0.5 * (up + down), 1e-3), "{said}, {c}: {found} {up} {down}");
                    }
                }
            }
        }
        let u = [0.3];
        let rows: Vec<Vec<f64>> = [1.0, 0.0, 1.0].map(|y| [vec![y; n_y], u.to_vec()].concat()).into();
        for (row, y) in rows.iter().zip([1.0, 0.0, 1.0]) {
            // All particles of a known state are the same: the log likelihood of the first row is their log density.
            let found = compiled.run("filter", std::slice::from_ref(row))[0][0];
            let each = families.iter().enumerate().map(|(k, family)| {
                let mut density = [0.0];
                family.log_density(y, &[eta(k, &[0.4, -0.9, u[0]])], &mut density);
                density[0]
            });
            let expected: f64 = each.sum();
            assert!(
                (found - expected).abs() < 1e-11 * (1.0 + expected.abs()),
                "{compiler} {found} {expected}"
            );
        }
        // Missing outputs do not count.
        let row = [vec![f64::NAN; n_y - 1], vec![0.8], u.to_vec()].concat();
        let found = compiled.run("filter", &[row])[0][0];
        let mut density = [0.0];
        families[n_y - 1].log_density(0.8, &[eta(n_y - 1, &[0.4, -0.9, u[0]])], &mut density);
        assert!((found - density[0]).abs() < 1e-11, "{found} {density:?}");
    }
}

/// A formula for the joint log density.
#[test]
fn log_densities_are_those_of_their_formula() {
    let text = "-a*(y - x1 - u)^2 - 0.5*abs(x2)";
    let names =
        [("y", Named::Output(0)), ("x1", Named::State(0)), ("x2", Named::State(1)), ("u", Named::Input(0))];
    let mut names: BTreeMap<String, Named> = names.map(|(name, named)| (name.into(), named)).into();
    names.insert("a".into(), Named::Number(0.7));
    let formula = BoundFormula { text: text.into(), names };
    let mut model = plant(OutputDensity::LogDensity(formula), 1);
    model.initial = Some(DistilledInitial::Fixed(vec![0.4, -0.9]));
    for compiler in compilers() {
        let compiled = Compiled::new(&model, &Options { particles: 2, ..options() }, compiler);
        let found = compiled.run("filter", &[vec![1.5, 0.3]])[0][0];
        let expected = -0.7 * (1.5f64 - 0.4 - 0.3).powi(2) - 0.45;
        assert!((found - expected).abs() < 1e-13, "{found} {expected}");
    }
}

fn filter_of(density: OutputDensity, n_y: usize, filter: Filter) -> Result<Filter, String> {
    let options = Options { filter, ..options() };
    let made = Model::new(&plant(density, n_y), &options);
    made.map(|model| model.options.filter).map_err(|error| error.to_string())
}

/// An output that turns round within the data has several states: particles. What cannot be done is refused.
#[test]
fn filters_suit_their_sensors() {
    let gaussian =
        |text: &str| OutputDensity::Gaussian { predictors: vec![predictor(text)], noise: vec![0.1] };
    let choose = |text: &str| filter_of(gaussian(text), 1, Filter::Auto).unwrap();
    assert_eq!(choose("x1 + 0.1*x1^3"), Filter::Extended);
    assert_eq!(choose("exp(0.2*x1) - x2"), Filter::Extended);
    assert_eq!(choose("0.05*x1^2"), Filter::Particles);
    let poisson = || {
        OutputDensity::Families(vec![DistilledOutput {
            family: "poisson".into(),
            numbers: vec![],
            predictor: predictor("x1"),
        }])
    };
    assert_eq!(filter_of(poisson(), 1, Filter::Auto).unwrap(), Filter::Particles);
    let error = filter_of(poisson(), 1, Filter::Extended).unwrap_err();
    assert!(error.contains("Gaussian noise"), "{error}");
    let error = filter_of(gaussian("lgamma(3 + x1)"), 1, Filter::Auto).unwrap_err();
    assert!(error.contains("lgamma has no derivative"), "{error}");
}

/// Parts that are functions of another program are refused by name.
#[test]
fn what_cannot_leave_is_refused() {
    let noise = || OutputDensity::Gaussian { predictors: vec![predictor("x1")], noise: vec![0.1] };
    let refused = |model: &Distilled, options: &Options| Model::new(model, options).unwrap_err().to_string();
    let mut user = plant(noise(), 1);
    let own = |z: &Points, other: &[f64], _: &[f64], out: &mut [f64]| {
        out.iter_mut().zip(z.column(0)).for_each(|(out, z)| *out = (z * other[0]).tanh());
    };
    let DistilledState::Sparse(sparse) = &mut user.states[0] else { unreachable!() };
    sparse.kernel = kernel::Kernel::user("mine", own, vec![0], vec![]);
    assert!(refused(&user, &options()).contains("the kernel 'mine' cannot be exported"));
    let mut without = plant(noise(), 1);
    without.sensor.as_mut().unwrap().density = None;
    assert!(refused(&without, &options()).contains("give the sensor as a formula"));
    let mut old = plant(noise(), 1);
    old.visited.clear();
    assert!(refused(&old, &options()).contains("distil again"));
    let bad = Options { name: "2 fast".into(), ..options() };
    assert!(refused(&plant(noise(), 1), &bad).contains("no name in C"));
    let model = Model::new(&plant(noise(), 1), &options()).unwrap();
    assert!(matches!(model.states[1], State::Lag(0)));
}
