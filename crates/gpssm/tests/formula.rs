//! The grammar of formulas and their values, against a naive recursive evaluator; no text makes the parser panic.

use gpssm::Points;
use gpssm::formula::{Formula, FormulaError, Program, Variable, function_names, is_name, reserved};
use proptest::prelude::*;

/// More points than a block holds, and not a multiple of it.
const N: usize = 150;
const SCALARS: [f64; 2] = [0.7, -1.9];

fn meaning(name: &str) -> Result<Variable, String> {
    match name {
        "x" => Ok(Variable::Column(0)),
        "u" => Ok(Variable::Column(1)),
        "a" => Ok(Variable::Scalar(0)),
        "b" => Ok(Variable::Scalar(1)),
        other => Err(format!("there is no '{other}'")),
    }
}

fn program(text: &str) -> Result<Program, FormulaError> {
    Formula::parse(text)?.bind(meaning)
}

fn points() -> Points {
    let mut z = Points::new(2);
    for i in 0..N {
        let i = i as f64;
        z.push(&[(0.37 * i).sin() * 3.0, if i % 10.0 == 0.0 { 0.0 } else { 2.0 - 0.03 * i }]);
    }
    z
}

/// The value at x = 2, u = 3.
fn value(text: &str) -> f64 {
    let mut out = [0.0];
    let program = program(text).unwrap_or_else(|error| panic!("{error}"));
    program.evaluate(&Points::from_rows(2, [&[2.0, 3.0][..]]), &SCALARS, &mut out);
    out[0]
}

#[test]
fn operators_bind_as_in_mathematics() {
    for (text, expected) in [
        ("-x^2", -4.0),
        ("-x**2", -4.0),
        ("(-x)^2", 4.0),
        ("2 - -x^2", 6.0),
        ("2^-1", 0.5),
        ("2^-x", 0.25),
        ("x^+2", 4.0),
        ("-2^-2", -0.25),
        ("2*x^2", 8.0),
        ("(2^3)^2", 64.0),
        ("2^(3^2)", 512.0),
        ("8/4/2", 1.0),
        ("8/4*2", 4.0),
        ("8 - 4 - 2", 2.0),
        ("1 + 2*x", 5.0),
        ("6/-x", -3.0),
        ("+-+x", -2.0),
        ("1e-3*x", 2e-3),
        ("1.5E+2 + .5 + 1.", 151.5),
        ("x\n + u", 5.0),
        ("x > 1", 1.0),
        ("x + 1 <= u - 1", 0.0),
        ("(x == 2)*(u != 2)", 1.0),
        ("if(x < u, 10, 20)", 10.0),
        ("if(x > u, log(-x), 20)", 20.0),
        ("if(x, 1, 2)", 1.0),
        ("min(x, u, 1)", 1.0),
        ("max(x, u, 1, 2.5)", 3.0),
        ("x^0", 1.0),
        ("x^1", 2.0),
        ("x^10", 1024.0),
        ("x^-3", 0.125),
        ("x^64", 18_446_744_073_709_551_616.0),
        ("sign(-x) + sign(0) + sign(u)", 0.0),
        ("floor(-0.5) + ceil(-0.5)", -1.0),
        ("atan2(1, -1)*4/pi", 3.0),
        ("log(e^2)", 2.0),
        ("ln(exp(1)) + log10(1e5)", 6.0),
        ("-inf", f64::NEG_INFINITY),
        ("if(x < 0, 0, -1/0)", f64::NEG_INFINITY),
        ("pi", std::f64::consts::PI),
        ("x", 2.0),
        ("b", -1.9),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    assert!(value("max(log(-x), 1)").is_nan() && value("min(1, log(-x))").is_nan());
    assert!(value("if(log(-x), 1, 1)").is_nan());
    assert!(value("(-x)^0.5").is_nan());
}

#[test]
fn functions_have_their_values() {
    for (text, expected) in [
        ("lgamma(5)", 24f64.ln()),
        ("lgamma(0.5)", 0.5 * std::f64::consts::PI.ln()),
        // |Gamma(-1/2)| = 2 sqrt(pi), |Gamma(-5/2)| = 8 sqrt(pi) / 15.
        ("lgamma(-0.5)", (2.0 * std::f64::consts::PI.sqrt()).ln()),
        ("lgamma(-2.5)", (8.0 * std::f64::consts::PI.sqrt() / 15.0).ln()),
        ("erf(0.5)", 0.520_499_877_813_046_5),
        ("erfc(3)", 2.209_049_699_858_544e-5),
        ("logistic(0.4)", 1.0 / (1.0 + (-0.4f64).exp())),
        ("sigmoid(-0.4)", 1.0 / (1.0 + 0.4f64.exp())),
        ("log(logistic(-700))", -700.0),
        ("softplus(0.3)", (1.0 + 0.3f64.exp()).ln()),
        ("log(softplus(-700))", -700.0),
        ("softplus(1000)", 1000.0),
        ("log1p(1e-20)", 1e-20),
        ("expm1(1e-20)", 1e-20),
        ("tan(0.3) + asin(0.2) + acos(0.2)", 0.3f64.tan() + std::f64::consts::FRAC_PI_2),
        ("sinh(1)^2 - cosh(1)^2", -1.0),
    ] {
        let found = value(text);
        assert!((found - expected).abs() <= 1e-13 * expected.abs(), "{text}: {found}, not {expected}");
    }
    assert_eq!(value("lgamma(-x)"), f64::INFINITY);
    assert_eq!(value("lgamma(0)"), f64::INFINITY);
    for n in -64..=64 {
        let (product, power) = (value(&format!("(x*a)^({n})")), value(&format!("(x*a)^({n} + a - a)")));
        assert!((product / power - 1.0).abs() < 1e-13, "{n}");
    }
    for name in function_names() {
        assert_eq!(reserved(name), Some("function"));
        assert!(is_name(name));
    }
    assert_eq!(reserved("pi"), Some("constant"));
    assert_eq!(reserved("x"), None);
    assert!(is_name("\u{3b8}_1") && !is_name("1x") && !is_name("") && !is_name("x\u{b2}") && !is_name("a b"));
}

#[test]
fn errors_point_at_the_column() {
    for (text, column, message) in [
        ("a*x + b*cso(u)", 9, "unknown function 'cso'; did you mean 'cos'?"),
        ("2^3^2", 4, "powers cannot be chained: write (a^b)^c or a^(b^c)"),
        ("2**-3^2", 6, "powers cannot be chained: write (a^b)^c or a^(b^c)"),
        ("a < x < b", 7, "comparisons cannot be chained: write (a < b)*(b < c)"),
        ("", 1, "the formula is empty"),
        ("  ", 1, "the formula is empty"),
        ("x +", 4, "the formula ends where a value is missing"),
        ("* x", 1, "a value is missing before '*'"),
        ("x + )", 5, "a value is missing before ')'"),
        ("2x", 2, "'*' is missing between '2' and 'x'"),
        ("2exp(x)", 2, "'*' is missing between '2' and 'e'"),
        ("1.2.3", 4, "the number '1.2' cannot go on with a point"),
        ("2 x", 3, "an operator is missing here; write '*' to multiply"),
        ("2(x)", 2, "an operator is missing before '('; write '*' to multiply"),
        ("x(2)", 1, "unknown function 'x'; to multiply, write '*' before the bracket"),
        ("e(2)", 1, "'e' is a number, not a function; write '*' to multiply"),
        ("(x + 1", 1, "this bracket is not closed"),
        ("exp(x + 1", 4, "this bracket is not closed"),
        ("x + 1)", 6, "this bracket was never opened"),
        ("(x, u)", 3, "a comma is allowed only between the arguments of a function"),
        ("cos + 1", 1, "'cos' is a function: write cos(...)"),
        ("cos()", 1, "'cos' needs one argument, not 0"),
        ("1 + atan2(x)", 5, "'atan2' needs two arguments, not 1"),
        ("max(x)", 1, "'max' needs two arguments or more, not 1"),
        ("if(x, 1)", 1, "'if' needs three arguments, condition, value and other value, not 2"),
        ("pow(x, 2)", 1, "unknown function 'pow'; write a^b"),
        ("x = 2", 3, "unexpected '='; write '==' to compare"),
        ("x !", 3, "unexpected '!'"),
        ("x\u{b2} + 1", 2, "unexpected character '\u{b2}'; write '^2'"),
        ("x \u{2212} 1", 3, "unexpected character '\u{2212}'; write '-'"),
        ("x # 1", 3, "unexpected character '#'"),
        ("x\u{0}", 2, "unexpected control character U+0000"),
        ("1e999", 1, "this number is too large for a 64-bit float"),
        ("x + 1e-999", 5, "this number is too small for a 64-bit float"),
        ("x + log(-1)", 5, "this part is not a number, whatever the variables are"),
        ("x + 0/0", 6, "this part is not a number, whatever the variables are"),
        ("a + c + c", 5, "there is no 'c'"),
        ("\u{e9} + x", 1, "there is no '\u{e9}'"),
    ] {
        let error = program(text).unwrap_err();
        assert_eq!((error.column(), error.message()), (column, message), "{text}");
    }
    let error = program("a*x + b*cso(u)").unwrap_err();
    let line = "formula \"a*x + b*cso(u)\", column 9: unknown function 'cso'; did you mean 'cos'?";
    assert_eq!(error.to_string(), line);
    let pointed = "a*x + b*cso(u)\n        ^\nunknown function 'cso'; did you mean 'cos'?";
    assert_eq!(error.pointed(), pointed);
    // Long formulas are cut around the column, and line breaks do not break the message.
    let long = format!("{}\n + cso(x) + {}", "x + ".repeat(50), "x + ".repeat(50));
    let error = program(&long).unwrap_err();
    let pointed = error.pointed();
    let lines: Vec<&str> = pointed.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("...") && lines[0].ends_with("...") && lines[0].len() < 100);
    assert!(lines[0][lines[1].len() - 1..].starts_with("cso"));
}

#[test]
fn length_and_depth_are_capped() {
    let nested = |n: usize| format!("{}x{}", "(".repeat(n), ")".repeat(n));
    assert!(program(&nested(100)).is_ok());
    for text in [nested(101), nested(4000), "(".repeat(9000), "-".repeat(5000) + "x", "exp(".repeat(2000)] {
        assert_eq!(program(&text).unwrap_err().message(), "nested deeper than 100 levels");
    }
    let signs = format!("2^{}1", "-".repeat(101));
    assert_eq!(program(&signs).unwrap_err().column(), 104);
    // A long sum is no deep one.
    let long = "x+".repeat(4999) + "x";
    assert_eq!(value(&long), 10_000.0);
    let error = program(&format!("{long}+x")).unwrap_err();
    assert_eq!((error.column(), error.message()), (10_001, "a formula can have 10000 characters at most"));
}

/// Whatever the text: an error with a column in it, or a program that runs.
fn survives(text: &str) {
    match Formula::parse(text) {
        Ok(formula) => {
            let columns =
                |name: &str| Ok(if name.len() == 1 { Variable::Column(0) } else { Variable::Scalar(1) });
            if let Ok(program) = formula.bind(columns) {
                let mut out = [0.0; 3];
                let z = Points::from_rows(1, [&[0.5][..], &[-2.0], &[1e300]]);
                program.evaluate(&z, &SCALARS, &mut out);
            }
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column()), "{error}");
            assert_eq!(error.pointed().lines().count(), 3, "{error:?}");
            assert_eq!(error.to_string().lines().count(), 1, "{error:?}");
        }
    }
}

const WORDS: [&str; 36] = [
    "x", "u", "rate", "2", "1e-3", ".5", "1e", "e", "pi", "inf", "+", "-", "*", "/", "^", "**", "(", ")",
    "(", ")", ",", "<", "<=", "==", "=", "!", "if(", "min(", "max(", "exp(", "log(", "lgamma(", "atan2(",
    " ", "\n", "0",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn character_soup_never_panics(text in prop::collection::vec(any::<char>(), 0..60)) {
        survives(&text.iter().collect::<String>());
    }

    #[test]
    fn byte_soup_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn word_soup_never_panics(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..30)) {
        survives(&words.concat());
    }

    /// Seen failing with signs binding closer than powers, with the right operand of a difference or quotient read on without its
    /// brackets, and with
    /// registers given back before the target of a step is chosen.
    #[test]
    fn trees_have_the_values_of_the_naive_evaluator(tree in tree(), spaces in any::<bool>()) {
        let text = tree.text(0, if spaces { " " } else { "" });
        match program(&text) {
            Ok(program) => {
                let z = points();
                let mut out = vec![0.0; N];
                program.evaluate(&z, &SCALARS, &mut out);
                for (i, found) in out.iter().enumerate() {
                    let expected = tree.value(&z.row(i));
                    let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                    prop_assert!(same, "{} at point {}: {:e}, not {:e}", text, i, found, expected);
                }
            }
            Err(error) => {
                prop_assert!(error.message().starts_with("this part is not a number"), "{}", error);
                prop_assert!(tree.has_constant_nan(), "{}", error);
            }
        }
    }
}

/// The slow twin: a tree that is printed, and evaluated by plain recursion.
#[derive(Clone, Debug)]
enum Tree {
    Number(f64),
    Name(&'static str),
    Negate(Box<Tree>),
    /// An operator with its level: 0 comparison, 1 sum, 2 product.
    Infix(&'static str, usize, Box<Tree>, Box<Tree>),
    /// An exponent that is a number.
    Power(Box<Tree>, f64),
    Call(&'static str, Vec<Tree>),
}

/// Level of a sign, above products; powers are above that, and then what needs no brackets.
const SIGNED: usize = 3;
const POWER: usize = 4;
const ATOM: usize = 5;

impl Tree {
    /// The tree as text, in brackets if its level is below `level`.
    fn text(&self, level: usize, space: &str) -> String {
        let (own, text) = match self {
            Self::Number(value) => (ATOM, format!("{value:?}")),
            Self::Name(name) => (ATOM, (*name).to_owned()),
            Self::Negate(inner) => (SIGNED, format!("-{space}{}", inner.text(SIGNED, space))),
            Self::Infix(sign, own, left, right) => {
                let least = if *own == 0 { 1 } else { *own };
                let (left, right) = (left.text(least, space), right.text(own + 1, space));
                (*own, format!("{left}{space}{sign}{space}{right}"))
            }
            Self::Power(base, exponent) => {
                (POWER, format!("{}{space}^{space}{exponent:?}", base.text(ATOM, space)))
            }
            Self::Call(name, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(|a| a.text(0, space)).collect();
                (ATOM, format!("{name}({})", arguments.join(&format!(",{space}"))))
            }
        };
        if own < level { format!("({text})") } else { text }
    }

    fn value(&self, z: &[f64]) -> f64 {
        let truth = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Number(value) => *value,
            Self::Name("x") => z[0],
            Self::Name("u") => z[1],
            Self::Name("a") => SCALARS[0],
            Self::Name(_) => SCALARS[1],
            Self::Negate(inner) => -inner.value(z),
            Self::Infix(sign, _, left, right) => {
                let (a, b) = (left.value(z), right.value(z));
                match *sign {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    "<" => truth(a < b),
                    "<=" => truth(a <= b),
                    ">" => truth(a > b),
                    ">=" => truth(a >= b),
                    "==" => truth(a == b),
                    _ => truth(a != b),
                }
            }
            Self::Power(base, exponent) => {
                let x = base.value(z);
                let product = |n: f64| (0..n as usize).fold(1.0, |product, _| product * x);
                match *exponent {
                    n if n.fract() != 0.0 => x.powf(n),
                    n if n < 0.0 => 1.0 / product(-n),
                    n => product(n),
                }
            }
            Self::Call(name, arguments) => {
                let v: Vec<f64> = arguments.iter().map(|argument| argument.value(z)).collect();
                let any_nan = v.iter().any(|v| v.is_nan());
                match *name {
                    "exp" => v[0].exp(),
                    "log" => v[0].ln(),
                    "sqrt" => v[0].sqrt(),
                    "abs" => v[0].abs(),
                    "sin" => v[0].sin(),
                    "cos" => v[0].cos(),
                    "tanh" => v[0].tanh(),
                    "floor" => v[0].floor(),
                    "atan2" => v[0].atan2(v[1]),
                    "min" | "max" if any_nan => f64::NAN,
                    "min" => v.iter().fold(v[0], |least, v| if *v <= least { *v } else { least }),
                    "max" => v.iter().fold(v[0], |most, v| if *v >= most { *v } else { most }),
                    _ if v[0].is_nan() => f64::NAN,
                    _ => {
                        if v[0] != 0.0 {
                            v[1]
                        } else {
                            v[2]
                        }
                    }
                }
            }
        }
    }

    fn children(&self) -> Vec<&Tree> {
        match self {
            Self::Number(_) | Self::Name(_) => Vec::new(),
            Self::Negate(inner) | Self::Power(inner, _) => vec![inner],
            Self::Infix(_, _, left, right) => vec![left, right],
            Self::Call(_, arguments) => arguments.iter().collect(),
        }
    }

    /// Whether some part is NaN at all points.
    fn has_constant_nan(&self) -> bool {
        let z = points();
        (0..N).all(|i| self.value(&z.row(i)).is_nan())
            || self.children().iter().any(|tree| tree.has_constant_nan())
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        prop::sample::select(&[0.0, 1.0, 2.0, 0.5, 3e-3, 1e20][..]).prop_map(Tree::Number),
        prop::sample::select(&["x", "u", "a", "b"][..]).prop_map(Tree::Name),
        prop::sample::select(&["x", "u"][..]).prop_map(Tree::Name),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let signs = [
            ("+", 1),
            ("-", 1),
            ("*", 2),
            ("/", 2),
            ("+", 1),
            ("-", 1),
            ("*", 2),
            ("/", 2),
            ("<", 0),
            ("<=", 0),
            (">", 0),
            (">=", 0),
            ("==", 0),
            ("!=", 0),
        ];
        let unary = ["exp", "log", "sqrt", "abs", "sin", "cos", "tanh", "floor"];
        let exponents = [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 0.5, 2.5];
        let (a, b) = (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|tree| Tree::Negate(Box::new(tree))),
            (prop::sample::select(signs.to_vec()), a, b).prop_map(|((sign, level), a, b)| Tree::Infix(
                sign,
                level,
                Box::new(a),
                Box::new(b)
            )),
            (inner.clone(), prop::sample::select(exponents.to_vec()))
                .prop_map(|(tree, exponent)| Tree::Power(Box::new(tree), exponent)),
            (prop::sample::select(unary.to_vec()), inner.clone())
                .prop_map(|(name, a)| Tree::Call(name, vec![a])),
            (prop::sample::select(vec!["atan2", "min", "max"]), prop::collection::vec(inner.clone(), 2))
                .prop_map(|(name, arguments)| Tree::Call(name, arguments)),
            prop::collection::vec(inner, 3).prop_map(|arguments| Tree::Call("if", arguments)),
        ]
    })
}
