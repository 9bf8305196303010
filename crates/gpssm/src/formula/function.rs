//! The operators and functions of a formula, and their values: the closed list.

use std::f64::consts::{E, PI};

/// Greatest exponent for which a power is a product.
pub(super) const LARGEST_PRODUCT: i32 = 64;

/// Names of constants.
pub(super) const CONSTANTS: [(&str, f64); 3] = [("pi", PI), ("e", E), ("inf", f64::INFINITY)];

/// A function of one argument; see the [table of functions](crate::formula).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of the functions say what they are")]
pub enum Unary {
    Negate,
    /// x to a whole power, by multiplication.
    Power(i32),
    Exp,
    Log,
    Log10,
    Log1p,
    Expm1,
    Sqrt,
    Abs,
    Sign,
    Floor,
    Ceil,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Lgamma,
    Erf,
    Erfc,
    Logistic,
    Softplus,
}

/// A function of two arguments; comparisons are 1 where they hold and 0 where they do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of the functions say what they are")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Atan2,
    Min,
    Max,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// What a function name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Unary(Unary),
    /// Exactly two arguments.
    Binary(Binary),
    /// Two arguments or more.
    Fold(Binary),
    /// `if(condition, a, b)`.
    If,
}

/// All functions by name, synonyms included.
pub(super) const FUNCTIONS: [(&str, Function); 30] = {
    use Function::{Binary as B, Fold, If, Unary as U};
    [
        ("exp", U(Unary::Exp)),
        ("log", U(Unary::Log)),
        ("ln", U(Unary::Log)),
        ("log10", U(Unary::Log10)),
        ("log1p", U(Unary::Log1p)),
        ("expm1", U(Unary::Expm1)),
        ("sqrt", U(Unary::Sqrt)),
        ("abs", U(Unary::Abs)),
        ("sign", U(Unary::Sign)),
        ("floor", U(Unary::Floor)),
        ("ceil", U(Unary::Ceil)),
        ("sin", U(Unary::Sin)),
        ("cos", U(Unary::Cos)),
        ("tan", U(Unary::Tan)),
        ("asin", U(Unary::Asin)),
        ("acos", U(Unary::Acos)),
        ("atan", U(Unary::Atan)),
        ("atan2", B(Binary::Atan2)),
        ("sinh", U(Unary::Sinh)),
        ("cosh", U(Unary::Cosh)),
        ("tanh", U(Unary::Tanh)),
        ("lgamma", U(Unary::Lgamma)),
        ("erf", U(Unary::Erf)),
        ("erfc", U(Unary::Erfc)),
        ("logistic", U(Unary::Logistic)),
        ("sigmoid", U(Unary::Logistic)),
        ("softplus", U(Unary::Softplus)),
        ("min", Fold(Binary::Min)),
        ("max", Fold(Binary::Max)),
        ("if", If),
    ]
};

/// What to write in place of functions that other languages have.
pub(super) const FOREIGN: [(&str, &str); 9] = [
    ("pow", "write a^b"),
    ("power", "write a^b"),
    ("square", "write x^2"),
    ("cbrt", "write sign(x)*abs(x)^(1/3)"),
    ("log2", "write log(x)/log(2)"),
    ("step", "write (x >= 0)"),
    ("heaviside", "write (x >= 0)"),
    ("where", "write if(condition, a, b)"),
    ("clip", "write min(max(x, low), high)"),
];

pub(super) fn function(name: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

pub(super) fn constant(name: &str) -> Option<f64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

impl Unary {
    /// Its value.
    #[inline(always)]
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::Negate => -x,
            Self::Power(n) => whole_power(x, n),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Log10 => x.log10(),
            Self::Log1p => x.ln_1p(),
            Self::Expm1 => x.exp_m1(),
            Self::Sqrt => x.sqrt(),
            Self::Abs => x.abs(),
            Self::Sign => sign(x),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::Asin => x.asin(),
            Self::Acos => x.acos(),
            Self::Atan => x.atan(),
            Self::Sinh => x.sinh(),
            Self::Cosh => x.cosh(),
            Self::Tanh => x.tanh(),
            Self::Lgamma => libm::lgamma(x),
            Self::Erf => libm::erf(x),
            Self::Erfc => libm::erfc(x),
            Self::Logistic => logistic(x),
            Self::Softplus => softplus(x),
        }
    }
}

impl Binary {
    /// Its value.
    #[inline(always)]
    pub fn apply(self, a: f64, b: f64) -> f64 {
        let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Power => a.powf(b),
            Self::Atan2 => a.atan2(b),
            // Unlike f64::min these keep a NaN.
            Self::Min => {
                if a < b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Self::Max => {
                if a > b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Self::Less => truth(a < b),
            Self::LessOrEqual => truth(a <= b),
            Self::Greater => truth(a > b),
            Self::GreaterOrEqual => truth(a >= b),
            Self::Equal => truth(a == b),
            Self::NotEqual => truth(a != b),
        }
    }

    /// Whether a op b and b op a are the same number to the last bit.
    pub fn commutes(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::Equal | Self::NotEqual)
    }
}

/// a where the condition is not zero, b where it is zero, NaN where it is NaN.
#[inline(always)]
pub fn select(condition: f64, a: f64, b: f64) -> f64 {
    if condition.is_nan() {
        f64::NAN
    } else if condition != 0.0 {
        a
    } else {
        b
    }
}

/// x^n by repeated squaring; unlike `powi`, the same to the last bit everywhere.
#[inline(always)]
fn whole_power(x: f64, n: i32) -> f64 {
    match n {
        2 => return x * x,
        3 => return x * x * x,
        4 => return (x * x) * (x * x),
        _ => {}
    }
    let (mut product, mut square, mut left) = (1.0, x, n.unsigned_abs());
    while left > 0 {
        if left & 1 == 1 {
            product *= square;
        }
        left >>= 1;
        square *= square;
    }
    if n < 0 { 1.0 / product } else { product }
}

#[inline(always)]
fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        // Zero keeps its sign, NaN stays NaN.
        x
    }
}

/// 1 / (1 + exp(-x)) without overflow and with all digits in the lower tail.
fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let odds = x.exp();
        odds / (1.0 + odds)
    }
}

/// log(1 + exp(x)) without overflow and with all digits in the lower tail.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
