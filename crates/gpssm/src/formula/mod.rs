//! Formulas as text: `0.3*x + 7.5*x/(1 + x^2)`.
//!
//! A [`Formula`] is parsed once, its names are given a meaning once ([`Formula::bind`]), and the [`Program`]
//! that results is evaluated at all particles at once. In a model file a formula serves as mean function,
//! transition, sensor mean or sensor log density.
//!
//! # Grammar
//!
//! ```text
//! expression = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//! sum        = product { ("+" | "-") product }
//! product    = signed { ("*" | "/") signed }
//! signed     = ("+" | "-") signed | power
//! power      = atom [ ("^" | "**") exponent ]
//! exponent   = ("+" | "-") exponent | atom
//! atom       = number | name | name "(" expression { "," expression } ")" | "(" expression ")"
//! number     = digits [ "." [ digits ] ] [ ("e" | "E") [ "+" | "-" ] digits ] | "." digits ...
//! name       = letter or "_", then letters, digits and "_"
//! ```
//!
//! - `-x^2` is -(x^2), and `2^-1` is one half. `^` and `**` are the same.
//! - `2^3^2` is refused, because programs disagree on what it means: write `(2^3)^2` or `2^(3^2)`. Comparisons
//!   cannot be chained either.
//! - There is no multiplication without `*`: `2x` and `2(x + 1)` are refused.
//! - Line breaks count as spaces.
//! - A formula has at most 10,000 characters and 100 levels of nesting.
//!
//! | | |
//! |---|---|
//! | constants | `pi`, `e`, `inf` |
//! | powers and logarithms | `exp`, `expm1`, `log` or `ln` (natural), `log10`, `log1p`, `sqrt` |
//! | angles, in radians | `sin`, `cos`, `tan`, `asin`, `acos`, `atan`, `atan2(y, x)`, `sinh`, `cosh`, `tanh` |
//! | pieces | `abs`, `sign` (0 at 0), `floor`, `ceil`, `min` and `max` (two arguments or more), `if(condition, a, b)` |
//! | smooth steps | `logistic` or `sigmoid`, 1/(1 + exp(-x)); `softplus`, log(1 + exp(x)) |
//! | special functions | `lgamma` (log of the absolute gamma function), `erf`, `erfc` |
//!
//! A comparison is 1 where it holds and 0 where it does not, so `(x > 0)*x` works, `(a < x)*(x < b)` is "and",
//! and `max(a, b)` is "or". `if(condition, a, b)` is a where the condition is not zero and b where it is; what is
//! not chosen has no influence, even if it is not a number there.
//!
//! Numbers are 64-bit floats. A power with a whole number as exponent, from -64 to 64, is a product; any other
//! is as in C, in particular not a number for a negative base. Where a formula has no finite value (`log(-1)`,
//! `1/0`), the particle at that point gets weight zero.
//!
//! ```
//! use gpssm::Points;
//! use gpssm::formula::{Formula, Variable};
//!
//! let formula = Formula::parse("a*x/(1 + x^2)")?;
//! assert_eq!(formula.names(), ["a", "x"]);
//! let program = formula.bind(|name| match name {
//!     "x" => Ok(Variable::Column(0)),
//!     "a" => Ok(Variable::Scalar(0)),
//!     other => Err(format!("there is no '{other}'")),
//! })?;
//! let mut out = [0.0; 2];
//! program.evaluate(&Points::from_rows(1, [&[1.0][..], &[2.0]]), &[3.0], &mut out);
//! assert_eq!(out, [1.5, 1.2]);
//! # Ok::<(), gpssm::formula::FormulaError>(())
//! ```
//!
//! - `token`, `parse`, `tree`: from text to a tree; `function`: the closed list
//! - `graph`: equal parts once, constants folded; `program`: steps over columns
//! - `error`, `suggest`: messages that point at the column and say what was probably meant

mod error;
mod function;
mod graph;
mod parse;
mod program;
mod suggest;
mod token;
mod tree;

use self::graph::Graph;
use self::tree::{Node, Tree};

pub use self::error::FormulaError;
pub use self::function::{Binary, Unary, select};
pub use self::graph::Operation;
pub use self::program::Program;
pub use self::suggest::did_you_mean;

/// What a name in a formula stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// A component of the points, different at each.
    Column(usize),
    /// One of the numbers that are the same at all points.
    Scalar(usize),
}

/// A formula that has been parsed; its names have no meaning yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    tree: Tree,
}

impl Formula {
    /// Parses a formula; see the [module documentation](self) for the grammar.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        Ok(Self { tree: parse::parse(text)?, text: text.to_owned() })
    }

    /// The text it came from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of variables, each once, in the order of their first use.
    pub fn names(&self) -> &[String] {
        &self.tree.names
    }

    /// Gives every name a meaning. What `meaning` says against a name becomes an error at its first use.
    pub fn bind(
        &self,
        meaning: impl FnMut(&str) -> Result<Variable, String>,
    ) -> Result<Program, FormulaError> {
        let (graph, root) = self.graph(meaning)?;
        Ok(Program::new(&graph, root))
    }

    /// The formula part by part for other evaluators, equal parts once; the last part is its value.
    pub fn operations(
        &self,
        meaning: impl FnMut(&str) -> Result<Variable, String>,
    ) -> Result<Vec<Operation>, FormulaError> {
        let (mut graph, root) = self.graph(meaning)?;
        graph.operations.truncate(root + 1);
        Ok(graph.operations)
    }

    fn graph(
        &self,
        mut meaning: impl FnMut(&str) -> Result<Variable, String>,
    ) -> Result<(Graph, usize), FormulaError> {
        let mut variables = Vec::with_capacity(self.tree.names.len());
        for (name, text) in self.tree.names.iter().enumerate() {
            variables.push(meaning(text).map_err(|message| {
                let is_it = |(node, _): &&(Node, usize)| *node == Node::Name(name);
                let column = self.tree.nodes.iter().find(is_it).map_or(1, |(_, column)| *column);
                FormulaError::new(&self.text, column, message)
            })?);
        }
        Graph::new(&self.tree, &variables, &self.text)
    }
}

/// Whether a name can be used in a formula: a letter or underscore, then letters, digits and underscores.
pub fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(token::starts_name) && text.chars().all(token::continues_name)
}

/// "function" or "constant" if the name means that in every formula.
pub fn reserved(name: &str) -> Option<&'static str> {
    parse::reserved(name)
}

/// Names of all functions, synonyms included.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    function::FUNCTIONS.iter().map(|(name, _)| *name)
}
