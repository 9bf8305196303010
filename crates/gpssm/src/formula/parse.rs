//! From words to a tree, by recursive descent; the depth of the recursion is capped.

use super::did_you_mean;
use super::error::FormulaError;
use super::function::{self, Binary, CONSTANTS, FOREIGN, FUNCTIONS, Function, Unary};
use super::token::{Token, Word, words};
use super::tree::{Id, Node, Tree};

/// Longest formula, in characters.
pub(super) const MAX_LENGTH: usize = 10_000;
/// Deepest nesting of brackets, signs and exponents.
pub(super) const MAX_DEPTH: usize = 100;

pub(super) fn parse(text: &str) -> Result<Tree, FormulaError> {
    if let Some((column, _)) = text.chars().enumerate().nth(MAX_LENGTH) {
        let message = format!("a formula can have {MAX_LENGTH} characters at most");
        return Err(FormulaError::new(text, column + 1, message));
    }
    let mut parser = Parser { text, words: words(text)?, at: 0, depth: 0, tree: Tree::default() };
    if parser.words.len() == 1 {
        return Err(FormulaError::new(text, 1, "the formula is empty"));
    }
    parser.expression()?;
    match parser.next() {
        Word { token: Token::End, .. } => Ok(parser.tree),
        word => Err(parser.left_over(&word)),
    }
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word>,
    at: usize,
    depth: usize,
    tree: Tree,
}

impl Parser<'_> {
    fn peek(&self) -> &Word {
        // The end word is never passed.
        &self.words[self.at.min(self.words.len() - 1)]
    }

    fn next(&mut self) -> Word {
        let word = self.peek().clone();
        self.at += 1;
        word
    }

    /// The sign that follows, if it is one of these.
    fn sign(&mut self, among: &[&str]) -> Option<(&'static str, usize)> {
        match *self.peek() {
            Word { token: Token::Sign(sign), column } if among.contains(&sign) => {
                self.at += 1;
                Some((sign, column))
            }
            _ => None,
        }
    }

    fn error(&self, column: usize, message: impl Into<String>) -> FormulaError {
        FormulaError::new(self.text, column, message)
    }

    /// Runs a deeper level of the grammar.
    fn deeper(
        &mut self,
        level: impl FnOnce(&mut Self) -> Result<Id, FormulaError>,
    ) -> Result<Id, FormulaError> {
        if self.depth == MAX_DEPTH {
            let column = self.peek().column;
            return Err(self.error(column, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = level(self);
        self.depth -= 1;
        result
    }

    /// expression = sum [ comparison sum ]
    fn expression(&mut self) -> Result<Id, FormulaError> {
        let left = self.sum()?;
        let signs = ["<", "<=", ">", ">=", "==", "!="];
        let Some((sign, column)) = self.sign(&signs) else { return Ok(left) };
        let comparison = match sign {
            "<" => Binary::Less,
            "<=" => Binary::LessOrEqual,
            ">" => Binary::Greater,
            ">=" => Binary::GreaterOrEqual,
            "==" => Binary::Equal,
            _ => Binary::NotEqual,
        };
        let right = self.sum()?;
        if let Some((_, column)) = self.sign(&signs) {
            return Err(self.error(column, "comparisons cannot be chained: write (a < b)*(b < c)"));
        }
        Ok(self.tree.push(Node::Binary(comparison, left, right), column))
    }

    /// sum = product { ("+" | "-") product }
    fn sum(&mut self) -> Result<Id, FormulaError> {
        let mut left = self.product()?;
        while let Some((sign, column)) = self.sign(&["+", "-"]) {
            let right = self.product()?;
            let operation = if sign == "+" { Binary::Add } else { Binary::Subtract };
            left = self.tree.push(Node::Binary(operation, left, right), column);
        }
        Ok(left)
    }

    /// product = signed { ("*" | "/") signed }
    fn product(&mut self) -> Result<Id, FormulaError> {
        let mut left = self.signed()?;
        while let Some((sign, column)) = self.sign(&["*", "/"]) {
            let right = self.signed()?;
            let operation = if sign == "*" { Binary::Multiply } else { Binary::Divide };
            left = self.tree.push(Node::Binary(operation, left, right), column);
        }
        Ok(left)
    }

    /// signed = ("+" | "-") signed | power
    fn signed(&mut self) -> Result<Id, FormulaError> {
        match self.sign(&["+", "-"]) {
            Some(("-", column)) => {
                let operand = self.deeper(Self::signed)?;
                Ok(self.tree.push(Node::Unary(Unary::Negate, operand), column))
            }
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    /// power = atom [ ("^" | "**") exponent ]
    fn power(&mut self) -> Result<Id, FormulaError> {
        let base = self.atom()?;
        let Some((_, column)) = self.sign(&["^"]) else { return Ok(base) };
        let exponent = self.exponent()?;
        if let Some((_, column)) = self.sign(&["^"]) {
            return Err(self.error(column, "powers cannot be chained: write (a^b)^c or a^(b^c)"));
        }
        Ok(self.tree.push(Node::Binary(Binary::Power, base, exponent), column))
    }

    /// exponent = ("+" | "-") exponent | atom
    fn exponent(&mut self) -> Result<Id, FormulaError> {
        match self.sign(&["+", "-"]) {
            Some(("-", column)) => {
                let operand = self.deeper(Self::exponent)?;
                Ok(self.tree.push(Node::Unary(Unary::Negate, operand), column))
            }
            Some(_) => self.deeper(Self::exponent),
            None => self.atom(),
        }
    }

    /// atom = number | name | name "(" expression { "," expression } ")" | "(" expression ")"
    fn atom(&mut self) -> Result<Id, FormulaError> {
        let Word { token, column } = self.next();
        match token {
            Token::Number(value) => Ok(self.tree.push(Node::Number(value), column)),
            Token::Name(name) => match self.sign(&["("]) {
                Some(_) => self.call(&name, column),
                None => self.name(name, column),
            },
            Token::Sign("(") => {
                let inner = self.deeper(Self::expression)?;
                self.close(column)?;
                Ok(inner)
            }
            Token::Sign(")") => Err(self.error(column, "a value is missing before ')'")),
            Token::Sign(sign) => Err(self.error(column, format!("a value is missing before '{sign}'"))),
            Token::End => Err(self.error(column, "the formula ends where a value is missing")),
        }
    }

    fn close(&mut self, opened: usize) -> Result<(), FormulaError> {
        if self.sign(&[")"]).is_some() {
            return Ok(());
        }
        let word = self.next();
        Err(match word.token {
            Token::End => self.error(opened, "this bracket is not closed"),
            _ => self.left_over(&word),
        })
    }

    fn name(&mut self, name: String, column: usize) -> Result<Id, FormulaError> {
        if let Some(value) = function::constant(&name) {
            return Ok(self.tree.push(Node::Number(value), column));
        }
        if function::function(&name).is_some() {
            let message = format!("'{name}' is a function: write {name}(...)");
            return Err(self.error(column, message));
        }
        let index = self.tree.name(name);
        Ok(self.tree.push(Node::Name(index), column))
    }

    /// A call whose opening bracket has been read.
    fn call(&mut self, name: &str, column: usize) -> Result<Id, FormulaError> {
        let opened = self.words[self.at - 1].column;
        let Some(function) = function::function(name) else {
            return Err(self.error(column, unknown_function(name)));
        };
        let mut arguments = Vec::new();
        if self.sign(&[")"]).is_none() {
            loop {
                arguments.push(self.deeper(Self::expression)?);
                if self.sign(&[","]).is_none() {
                    break;
                }
            }
            self.close(opened)?;
        }
        let node = match (function, arguments.as_slice()) {
            (Function::Unary(unary), &[x]) => Node::Unary(unary, x),
            (Function::Binary(binary), &[a, b]) => Node::Binary(binary, a, b),
            (Function::Fold(binary), [first, rest @ .., last]) => {
                let left = rest
                    .iter()
                    .fold(*first, |left, x| self.tree.push(Node::Binary(binary, left, *x), column));
                Node::Binary(binary, left, *last)
            }
            (Function::If, &[condition, a, b]) => Node::If(condition, a, b),
            (function, arguments) => {
                let needed = match function {
                    Function::Unary(_) => "one argument",
                    Function::Binary(_) => "two arguments",
                    Function::Fold(_) => "two arguments or more",
                    Function::If => "three arguments, condition, value and other value",
                };
                let message = format!("'{name}' needs {needed}, not {}", arguments.len());
                return Err(self.error(column, message));
            }
        };
        Ok(self.tree.push(node, column))
    }

    /// A word where an operator or the end was expected.
    fn left_over(&self, word: &Word) -> FormulaError {
        let message = match &word.token {
            Token::Number(_) | Token::Name(_) => {
                "an operator is missing here; write '*' to multiply".to_owned()
            }
            Token::Sign("(") => "an operator is missing before '('; write '*' to multiply".to_owned(),
            Token::Sign(")") => "this bracket was never opened".to_owned(),
            Token::Sign(",") => "a comma is allowed only between the arguments of a function".to_owned(),
            Token::Sign("=") => "unexpected '='; write '==' to compare".to_owned(),
            Token::Sign(sign) => format!("unexpected '{sign}'"),
            Token::End => "the formula ends too early".to_owned(),
        };
        self.error(word.column, message)
    }
}

fn unknown_function(name: &str) -> String {
    if function::constant(name).is_some() {
        return format!("'{name}' is a number, not a function; write '*' to multiply");
    }
    match FOREIGN.iter().find(|(known, _)| *known == name) {
        Some((_, advice)) => format!("unknown function '{name}'; {advice}"),
        None => {
            let known = FUNCTIONS.iter().map(|(known, _)| *known);
            let meant = match did_you_mean(name, known) {
                meant if meant.is_empty() => "; to multiply, write '*' before the bracket".to_owned(),
                meant => meant,
            };
            format!("unknown function '{name}'{meant}")
        }
    }
}

/// Whether a name already means something in every formula.
pub(super) fn reserved(name: &str) -> Option<&'static str> {
    if FUNCTIONS.iter().any(|(known, _)| *known == name) {
        Some("function")
    } else if CONSTANTS.iter().any(|(known, _)| *known == name) {
        Some("constant")
    } else {
        None
    }
}
