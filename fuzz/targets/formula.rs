//! Any text as a formula: numbers at every point, or an error that points into the text.
#![no_main]

use gpssm::Points;
use gpssm::formula::{Formula, Variable};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let formula = match Formula::parse(text) {
        Ok(formula) => formula,
        Err(error) => {
            assert!(!error.to_string().contains('\n'));
            assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1);
            return;
        }
    };
    let meaning = |name: &str| match name {
        "x" | "x1" => Ok(Variable::Column(0)),
        "u" | "u1" => Ok(Variable::Column(1)),
        "a" | "b" => Ok(Variable::Scalar(0)),
        _ => Err("unknown name".to_owned()),
    };
    let Ok(program) = formula.bind(meaning) else { return };
    let points = [[0.5, -1.0], [-3.0, 0.0], [1e200, f64::MIN_POSITIVE]];
    let together = Points::from_rows(2, points.iter().map(|point| &point[..]));
    let mut values = [0.0; 3];
    program.evaluate(&together, &[0.3], &mut values);
    // Each point alone gives what it gives among others, whether that is a number or not.
    for (point, value) in points.iter().zip(values) {
        let mut alone = [0.0];
        program.evaluate(&Points::from_rows(2, [&point[..]]), &[0.3], &mut alone);
        assert!(alone[0].to_bits() == value.to_bits() || (alone[0].is_nan() && value.is_nan()));
    }
});
