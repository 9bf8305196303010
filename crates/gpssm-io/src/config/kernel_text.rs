//! Kernels as text: `se + linear`, `matern32(x) * periodic(u1) + constant`, `odd(se + linear)`.
//!
//! ```text
//! sum     = product { "+" product }
//! product = part { "*" part }
//! part    = name [ "(" component { "," component } ")" ] | [ "odd" ] "(" sum ")"
//! ```

use super::error::Origin;
use super::read::ReadError;
use super::tree::{Kind, Node};
use crate::suggest::did_you_mean;

/// Short name, and the name in the engine's tables.
const NAMES: [(&str, &str); 11] = [
    ("se", "squared_exponential"),
    ("squared_exponential", "squared_exponential"),
    ("matern12", "matern12"),
    ("matern32", "matern32"),
    ("matern52", "matern52"),
    ("rq", "rational_quadratic"),
    ("rational_quadratic", "rational_quadratic"),
    ("periodic", "periodic"),
    ("linear", "linear"),
    ("constant", "constant"),
    ("rbf", "squared_exponential"),
];

/// Of the odd part of a function with the kernel in brackets.
const ODD: &str = "odd";

const LONGEST: usize = 1_000;
const DEEPEST: usize = 30;

/// The same kernel as tables.
pub(super) fn write_out(text: &str, origin: &Origin) -> Result<Node, ReadError> {
    if text.len() > LONGEST {
        return Err(ReadError::new(format!("a kernel of more than {LONGEST} characters")));
    }
    let mut parser = Parser { text, at: 0, depth: 0, origin };
    let kernel = parser.sum()?;
    match parser.peek() {
        None => Ok(kernel),
        Some(_) => Err(parser.expected("'+', '*' or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    origin: &'a Origin,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn name(&mut self) -> Option<&'a str> {
        self.peek();
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    fn expected(&mut self, what: &str) -> ReadError {
        let found = self.peek().map_or("the end".to_owned(), |c| format!("'{c}'"));
        let column = self.text[..self.at].chars().count() + 1;
        ReadError::new(format!("kernel \"{}\": expected {what} at column {column}, found {found}", self.text))
    }

    fn node(&self, kind: Kind) -> Node {
        Node { unseen_key: true, ..Node::new(self.origin.clone(), kind) }
    }

    /// One part, or several under a name.
    fn joined(&self, name: &str, mut parts: Vec<Node>) -> Node {
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                parts.extend(last);
                self.node(Kind::Table(vec![(name.to_owned(), self.node(Kind::Array(parts)))]))
            }
        }
    }

    fn sum(&mut self) -> Result<Node, ReadError> {
        let mut parts = vec![self.product()?];
        while self.take('+') {
            parts.push(self.product()?);
        }
        Ok(self.joined("sum", parts))
    }

    fn product(&mut self) -> Result<Node, ReadError> {
        let mut parts = vec![self.part()?];
        while self.take('*') {
            parts.push(self.part()?);
        }
        Ok(self.joined("product", parts))
    }

    /// What stands between brackets, the first one taken.
    fn bracket(&mut self) -> Result<Node, ReadError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ReadError::new(format!("a kernel with more than {DEEPEST} levels of brackets")));
        }
        let inner = self.sum()?;
        self.depth -= 1;
        if self.take(')') { Ok(inner) } else { Err(self.expected("')'")) }
    }

    fn part(&mut self) -> Result<Node, ReadError> {
        if self.take('(') {
            return self.bracket();
        }
        let Some(name) = self.name() else { return Err(self.expected("the name of a kernel")) };
        if name == ODD {
            let inner = if self.take('(') { self.bracket()? } else { return Err(self.expected("'('")) };
            return Ok(self.node(Kind::Table(vec![(ODD.to_owned(), inner)])));
        }
        let Some((_, full)) = NAMES.iter().find(|(short, _)| *short == name) else {
            let suggestion = did_you_mean(name, NAMES.iter().map(|(short, _)| *short));
            return Err(ReadError::new(format!(
                "there is no kernel '{name}'{suggestion} (there are: se, matern12, matern32, matern52, rq, periodic, \
                 linear, constant and odd(...))"
            )));
        };
        let mut entries = Vec::new();
        if *full != "constant" && self.take('(') {
            let mut active = Vec::new();
            loop {
                let Some(component) = self.name() else {
                    return Err(self.expected("a component, such as x, u, x1 or u2,"));
                };
                active.push(self.node(Kind::Text(component.to_owned())));
                if !self.take(',') {
                    break;
                }
            }
            if !self.take(')') {
                return Err(self.expected("',' or ')'"));
            }
            entries.push(("active".to_owned(), self.node(Kind::Array(active))));
        }
        Ok(self.node(Kind::Table(vec![((*full).to_owned(), self.node(Kind::Table(entries)))])))
    }
}

#[cfg(test)]
mod tests {
    use gpssm::KernelSpec;
    use gpssm::model::kernel::{ConstantSpec, LinearSpec, StationarySpec};

    use super::*;
    use crate::config::read::read;

    fn kernel(text: &str) -> Result<KernelSpec, String> {
        let node = Node::new(Origin::Default, Kind::Text(text.to_owned()));
        read(node).map_err(|error| error.message)
    }

    #[test]
    fn sums_products_and_components() {
        assert_eq!(kernel("se + linear"), Ok(KernelSpec::default()));
        let on = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let stationary = |names: &[&str]| StationarySpec { active: on(names), ..StationarySpec::default() };
        assert_eq!(
            kernel(" matern32( x1 , u ) * (se + constant)+linear "),
            Ok(KernelSpec::Sum(vec![
                KernelSpec::Product(vec![
                    KernelSpec::Matern32(stationary(&["x1", "u"])),
                    KernelSpec::Sum(vec![
                        KernelSpec::SquaredExponential(StationarySpec::default()),
                        KernelSpec::Constant(ConstantSpec::default()),
                    ]),
                ]),
                KernelSpec::Linear(LinearSpec::default()),
            ]))
        );
    }

    #[test]
    fn odd_parts() {
        let inner = kernel("se(x) + linear").unwrap();
        assert_eq!(kernel("odd( se(x) + linear )"), Ok(KernelSpec::Odd(Box::new(inner.clone()))));
        let words = crate::describe::kernel_words(&KernelSpec::Odd(Box::new(inner)));
        assert_eq!(words, "odd(se(x) + linear)");
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, fragment) in [
            ("", "expected the name of a kernel at column 1, found the end"),
            ("se +", "at column 5"),
            ("se linear", "expected '+', '*' or the end at column 4, found 'l'"),
            ("sse", "there is no kernel 'sse'; did you mean 'se'?"),
            ("se(", "expected a component"),
            ("se(x", "expected ',' or ')'"),
            ("odd", "expected '(' at column 4, found the end"),
            ("odd(se", "expected ')'"),
            ("(se", "expected ')'"),
            ("matern42", "did you mean 'matern"),
            ("constant(x)", "expected '+', '*' or the end at column 9, found '('"),
        ] {
            let error = kernel(text).unwrap_err();
            assert!(error.contains(fragment), "{text}: {error}");
        }
        assert!(kernel(&"(".repeat(900)).unwrap_err().contains("levels of brackets"));
        assert!(kernel(&"se+".repeat(900)).unwrap_err().contains("more than 1000 characters"));
    }
}
