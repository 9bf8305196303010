//! Expressions as C statements.

use std::fmt::Write as _;

use gpssm::formula::{Binary, Operation, Unary};

use crate::expression::{Graph, Id};

/// A number as a constant of the model's type.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        "NAN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "INFINITY".into() } else { "(-INFINITY)".into() }
    } else {
        format!("R({value:?})")
    }
}

/// Writes the statements for some expressions of a graph. Variables are named by `variable`; expressions that `ready` names
/// have been written before. What each root is called is given back.
pub(super) struct Writer<'a> {
    pub graph: &'a Graph,
    pub variable: &'a dyn Fn(usize) -> String,
    pub indent: usize,
}

impl Writer<'_> {
    /// What stands for an expression in later statements.
    pub(super) fn term(&self, id: Id) -> String {
        match self.graph.operations()[id] {
            Operation::Number(bits) => number(f64::from_bits(bits)),
            Operation::Column(c) => (self.variable)(c),
            _ => format!("t{id}"),
        }
    }

    /// Statements for the expressions for which `wanted` holds.
    pub(super) fn statements(&self, wanted: &[bool], out: &mut String) {
        for (id, operation) in self.graph.operations().iter().enumerate().filter(|(id, _)| wanted[*id]) {
            if matches!(operation, Operation::Number(_) | Operation::Column(_) | Operation::Scalar(_)) {
                continue;
            }
            let (indent, value) = (" ".repeat(self.indent), self.operation(*operation));
            let _ = writeln!(out, "{indent}const real t{id} = {value};");
        }
    }

    fn operation(&self, operation: Operation) -> String {
        let term = |id: Id| self.term(id);
        match operation {
            Operation::Number(_) | Operation::Column(_) | Operation::Scalar(_) => String::new(),
            Operation::Unary(unary, a) => {
                let a = term(a);
                match unary {
                    Unary::Negate => format!("-{a}"),
                    Unary::Power(2) => format!("{a} * {a}"),
                    Unary::Power(3) => format!("{a} * {a} * {a}"),
                    Unary::Power(4) => format!("({a} * {a}) * ({a} * {a})"),
                    Unary::Power(-1) => format!("R(1.0) / {a}"),
                    Unary::Power(n) if n < 0 => format!("R(1.0) / whole_power({a}, {}U)", n.unsigned_abs()),
                    Unary::Power(n) => format!("whole_power({a}, {n}U)"),
                    other => format!("{}({a})", call(other)),
                }
            }
            Operation::Binary(binary, a, b) => {
                let (a, b) = (term(a), term(b));
                let compare = |sign: &str| format!("({a} {sign} {b}) ? R(1.0) : R(0.0)");
                match binary {
                    Binary::Add => format!("{a} + {b}"),
                    Binary::Subtract => format!("{a} - {b}"),
                    Binary::Multiply => format!("{a} * {b}"),
                    Binary::Divide => format!("{a} / {b}"),
                    Binary::Power => format!("POW({a}, {b})"),
                    Binary::Atan2 => format!("ATAN2({a}, {b})"),
                    Binary::Min => format!("smaller({a}, {b})"),
                    Binary::Max => format!("larger({a}, {b})"),
                    Binary::Less => compare("<"),
                    Binary::LessOrEqual => compare("<="),
                    Binary::Greater => compare(">"),
                    Binary::GreaterOrEqual => compare(">="),
                    Binary::Equal => compare("=="),
                    Binary::NotEqual => compare("!="),
                }
            }
            Operation::If(condition, a, b) => {
                format!("choose({}, {}, {})", term(condition), term(a), term(b))
            }
        }
    }
}

/// Macros of `math.h`, and helper functions of the source.
fn call(unary: Unary) -> &'static str {
    match unary {
        Unary::Exp => "EXP",
        Unary::Log => "LOG",
        Unary::Log10 => "LOG10",
        Unary::Log1p => "LOG1P",
        Unary::Expm1 => "EXPM1",
        Unary::Sqrt => "SQRT",
        Unary::Abs => "FABS",
        Unary::Floor => "FLOOR",
        Unary::Ceil => "CEIL",
        Unary::Sin => "SIN",
        Unary::Cos => "COS",
        Unary::Tan => "TAN",
        Unary::Asin => "ASIN",
        Unary::Acos => "ACOS",
        Unary::Atan => "ATAN",
        Unary::Sinh => "SINH",
        Unary::Cosh => "COSH",
        Unary::Tanh => "TANH",
        Unary::Lgamma => "LGAMMA",
        Unary::Erf => "ERF",
        Unary::Erfc => "ERFC",
        Unary::Sign => "sign",
        Unary::Logistic => "logistic",
        Unary::Softplus => "softplus",
        Unary::Negate | Unary::Power(_) => "",
    }
}

/// Functions of `math.h` that sources may call, by macro.
pub(super) const MATH: [&str; 24] = [
    "exp", "log", "log10", "log1p", "expm1", "sqrt", "fabs", "floor", "ceil", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "lgamma", "erf", "erfc", "pow", "atan2", "hypot",
];

/// Helper functions by name, those that others call first.
pub(super) const HELPERS: [(&str, &str); 7] = [
    (
        "whole_power",
        "/* x^n by repeated squaring. */
static real whole_power(real x, unsigned n)
{
    real product = R(1.0);
    real square = x;
    for (unsigned left = n; left > 0U; left >>= 1U) {
        if ((left & 1U) != 0U) {
            product *= square;
        }
        square *= square;
    }
    return product;
}
",
    ),
    (
        "smaller",
        "static real smaller(real a, real b)
{
    return ((a < b) || isnan(a)) ? a : b;
}
",
    ),
    (
        "larger",
        "static real larger(real a, real b)
{
    return ((a > b) || isnan(a)) ? a : b;
}
",
    ),
    (
        "choose",
        "static real choose(real condition, real a, real b)
{
    return isnan(condition) ? condition : ((condition != R(0.0)) ? a : b);
}
",
    ),
    (
        "sign",
        "static real sign(real x)
{
    return (x > R(0.0)) ? R(1.0) : ((x < R(0.0)) ? R(-1.0) : x);
}
",
    ),
    (
        "logistic",
        "static real logistic(real x)
{
    const real odds = EXP(-FABS(x));
    return (x >= R(0.0)) ? (R(1.0) / (R(1.0) + odds)) : (odds / (R(1.0) + odds));
}
",
    ),
    (
        "softplus",
        "/* log(1 + exp(x)). */
static real softplus(real x)
{
    return ((x > R(0.0)) ? x : R(0.0)) + LOG1P(EXP(-FABS(x)));
}
",
    ),
];
