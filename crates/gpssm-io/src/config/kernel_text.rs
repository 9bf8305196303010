//! Kernels as text: `se + linear`, `matern32(x) * periodic(u1) + constant`, `odd(se + linear)`, `2 * se + linear(x)^2`.
//!
//! ```text
//! sum     = product { "+" product }
//! product = factor { "*" factor }
//! factor  = number | part [ ( "^" | "**" ) integer ]
//! part    = name [ "(" component { "," component } ")" ] | [ "odd" ] "(" sum ")" | change
//! change  = "change_point" "(" [ component "," ] sum "," sum ")"
//! ```

use gpssm::formula::did_you_mean;
use gpssm::kernel::{Descriptor, KERNELS};
use gpssm::model::CHANGE_POINT;

use super::error::Origin;
use super::read::ReadError;
use super::tree::{Kind, Node};

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

fn too_deep() -> ReadError {
    ReadError::new(format!("a kernel with more than {DEEPEST} levels of brackets"))
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

    fn table(&self, entries: Vec<(&str, Node)>) -> Node {
        self.node(Kind::Table(entries.into_iter().map(|(key, node)| (key.to_owned(), node)).collect()))
    }

    /// One part, or several under a name.
    fn joined(&self, name: &str, mut parts: Vec<Node>) -> Node {
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                parts.extend(last);
                self.table(vec![(name, self.node(Kind::Array(parts)))])
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
        let (mut factor, mut parts) = (None, Vec::new());
        loop {
            match self.number() {
                Some(number) => factor = Some(factor.unwrap_or(1.0) * number),
                None => parts.push(self.power()?),
            }
            if !self.take('*') {
                break;
            }
        }
        match factor {
            Some(_) if parts.is_empty() => Err(self.expected("'*' and a kernel after a number")),
            Some(factor) => {
                let kernel = self.joined("product", parts);
                let entries = vec![("factor", self.node(Kind::Float(factor))), ("kernel", kernel)];
                Ok(self.table(vec![("scaled", self.table(entries))]))
            }
            None => Ok(self.joined("product", parts)),
        }
    }

    /// A positive number such as `2`, `0.5` or `1e-3`.
    fn number(&mut self) -> Option<f64> {
        self.peek().filter(|c| c.is_ascii_digit() || *c == '.')?;
        let rest = &self.text[self.at..];
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut length = digits(rest);
        if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let n = digits(&exponent[sign..]);
            length += if n > 0 { 1 + sign + n } else { 0 };
        }
        let number = rest[..length].parse().ok()?;
        self.at += length;
        Some(number)
    }

    fn power(&mut self) -> Result<Node, ReadError> {
        let part = self.part()?;
        let stars = self.peek() == Some('*') && self.text[self.at..].starts_with("**");
        self.at += if stars { 2 } else { 0 };
        if !stars && !self.take('^') {
            return Ok(part);
        }
        let exponent = self.name().and_then(|name| name.parse::<u32>().ok());
        let Some(exponent) = exponent else { return Err(self.expected("an exponent such as 2")) };
        let exponent = self.node(Kind::Integer(exponent.into()));
        Ok(self.table(vec![("power", self.table(vec![("kernel", part), ("exponent", exponent)]))]))
    }

    /// What stands between brackets, the first one taken.
    fn bracket(&mut self) -> Result<Node, ReadError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep());
        }
        let inner = self.sum()?;
        self.depth -= 1;
        if self.take(')') { Ok(inner) } else { Err(self.expected("')'")) }
    }

    /// What stands between the brackets of a change point: a component, unless there are two kernels only, and two kernels.
    fn change_point(&mut self) -> Result<Node, ReadError> {
        if !self.take('(') {
            return Err(self.expected("'('"));
        }
        let before = self.at;
        let component = self.name().filter(|name| Descriptor::in_text(name).is_none() && *name != ODD);
        let component = component.filter(|name| *name != CHANGE_POINT && self.take(','));
        let mut entries = Vec::new();
        match component {
            Some(name) => {
                entries
                    .push(("active", self.node(Kind::Array(vec![self.node(Kind::Text(name.to_owned()))]))));
            }
            None => self.at = before,
        }
        let mut kernels = Vec::new();
        for end in [',', ')'] {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(too_deep());
            }
            kernels.push(self.sum()?);
            self.depth -= 1;
            if !self.take(end) {
                return Err(self.expected(if end == ',' {
                    "',' and the kernel after the change"
                } else {
                    "')'"
                }));
            }
        }
        entries.push(("kernels", self.node(Kind::Array(kernels))));
        Ok(self.table(vec![(CHANGE_POINT, self.table(entries))]))
    }

    fn part(&mut self) -> Result<Node, ReadError> {
        if self.take('(') {
            return self.bracket();
        }
        let Some(name) = self.name() else { return Err(self.expected("the name of a kernel")) };
        if name == ODD {
            let inner = if self.take('(') { self.bracket()? } else { return Err(self.expected("'('")) };
            return Ok(self.table(vec![(ODD, inner)]));
        }
        if name == CHANGE_POINT {
            return self.change_point();
        }
        let Some(kernel) = Descriptor::in_text(name) else {
            let names = KERNELS.iter().flat_map(|kernel| kernel.names()).chain([ODD, CHANGE_POINT]);
            let suggestion = did_you_mean(name, names);
            let known = KERNELS.iter().map(|kernel| kernel.short).collect::<Vec<_>>().join(", ");
            return Err(ReadError::new(format!(
                "there is no kernel '{name}'{suggestion} (there are: {known}, odd(...) and {CHANGE_POINT}(x1, ..., ...))"
            )));
        };
        let mut entries = Vec::new();
        if kernel.has_components() && self.take('(') {
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
            entries.push(("active", self.node(Kind::Array(active))));
        }
        Ok(self.table(vec![(kernel.name, self.table(entries))]))
    }
}

#[cfg(test)]
mod tests {
    use gpssm::KernelSpec;
    use gpssm::kernel::{CONSTANT, LINEAR, MATERN32, SQUARED_EXPONENTIAL};

    use super::*;
    use crate::config::read::read;

    fn kernel(text: &str) -> Result<KernelSpec, String> {
        let node = Node::new(Origin::Default, Kind::Text(text.to_owned()));
        read(node).map_err(|error| error.message)
    }

    #[test]
    fn sums_products_and_components() {
        assert_eq!(kernel("se + linear"), Ok(KernelSpec::default()));
        assert_eq!(
            kernel(" matern32( x1 , u ) * (se + constant)+linear "),
            Ok(KernelSpec::Sum(vec![
                KernelSpec::Product(vec![
                    KernelSpec::new(&MATERN32).on(&["x1", "u"]),
                    KernelSpec::Sum(vec![KernelSpec::new(&SQUARED_EXPONENTIAL), KernelSpec::new(&CONSTANT)]),
                ]),
                KernelSpec::new(&LINEAR),
            ]))
        );
    }

    #[test]
    fn odd_parts() {
        let inner = kernel("se(x) + linear").unwrap();
        assert_eq!(kernel("odd( se(x) + linear )"), Ok(KernelSpec::Odd(Box::new(inner.clone()))));
        assert_eq!(KernelSpec::Odd(Box::new(inner)).to_string(), "odd(se(x) + linear)");
    }

    /// What a kernel is written as gives the same kernel again.
    #[test]
    fn numbers_and_powers() {
        for (text, written) in [
            ("2*se", "2 * se"),
            ("se * 0.5 * linear * 4", "2 * se * linear"),
            ("1e-1 * (se + linear)", "0.1 * (se + linear)"),
            ("linear(x)**2 + constant", "linear(x)^2 + constant"),
            ("(se + linear)^3 * periodic(u)", "(se + linear)^3 * periodic(u)"),
            ("(linear*se)^2", "(linear * se)^2"),
            ("se * (3 * linear)", "se * (3 * linear)"),
            ("change_point( u1 , se+linear, se )", "change_point(u1, se + linear, se)"),
            ("change_point(odd(se), linear)^2", "change_point(odd(se), linear)^2"),
            (
                "change_point(x1, change_point(x, se, se), 2 * se)",
                "change_point(x1, change_point(x, se, se), 2 * se)",
            ),
        ] {
            let spec = kernel(text).unwrap();
            assert_eq!(spec.to_string(), written);
            assert_eq!(kernel(written), Ok(spec));
        }
        for descriptor in KERNELS {
            for name in descriptor.names() {
                assert_eq!(kernel(name), Ok(KernelSpec::new(descriptor)));
            }
        }
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
            ("2", "expected '*' and a kernel after a number at column 2, found the end"),
            ("2 se", "expected '*' and a kernel"),
            ("se^x", "expected an exponent such as 2"),
            ("-1 * se", "expected the name of a kernel at column 1, found '-'"),
            ("odd(se", "expected ')'"),
            ("(se", "expected ')'"),
            ("change_point(x1, se)", "expected ',' and the kernel after the change at column 20, found ')'"),
            ("change_point(x1, se, se, se)", "expected ')' at column 24"),
            ("change_point", "expected '(' at column 13"),
            ("change_pint(x1, se, se)", "did you mean 'change_point'?"),
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
