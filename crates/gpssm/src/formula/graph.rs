//! A formula as a graph without repetitions: equal parts once, parts without variables as numbers.

use std::collections::HashMap;

use super::Variable;
use super::error::FormulaError;
use super::function::{Binary, LARGEST_PRODUCT, Unary, select};
use super::tree::{Id, Node, Tree};

/// A part of a formula; operands are indices of earlier parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Bits of a number.
    Number(u64),
    /// A component of the points.
    Column(usize),
    /// A number that is the same at all points.
    Scalar(usize),
    /// A function of one part.
    Unary(Unary, Id),
    /// A function of two parts.
    Binary(Binary, Id, Id),
    /// The second where the first is not zero, otherwise the third.
    If(Id, Id, Id),
}

impl Operation {
    /// The parts that it is made of.
    pub fn operands(self) -> impl Iterator<Item = Id> {
        let (operands, n) = match self {
            Self::Number(_) | Self::Column(_) | Self::Scalar(_) => ([0; 3], 0),
            Self::Unary(_, a) => ([a, 0, 0], 1),
            Self::Binary(_, a, b) => ([a, b, 0], 2),
            Self::If(condition, a, b) => ([condition, a, b], 3),
        };
        operands.into_iter().take(n)
    }
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub operations: Vec<Operation>,
    /// Whether the value differs between points.
    pub varies: Vec<bool>,
    known: HashMap<Operation, Id>,
}

impl Graph {
    /// The graph of a tree whose names stand for `variables`, and its root.
    pub(super) fn new(tree: &Tree, variables: &[Variable], text: &str) -> Result<(Self, Id), FormulaError> {
        let mut graph = Self::default();
        // The graph's node for each node of the tree.
        let mut nodes: Vec<Id> = Vec::with_capacity(tree.nodes.len());
        for &(node, column) in &tree.nodes {
            let id = match node {
                Node::Number(value) => graph.number(value),
                Node::Name(name) => match variables[name] {
                    Variable::Column(c) => graph.push(Operation::Column(c)),
                    Variable::Scalar(k) => graph.push(Operation::Scalar(k)),
                },
                Node::Unary(unary, a) => graph.unary(unary, nodes[a]),
                Node::Binary(binary, a, b) => graph.binary(binary, nodes[a], nodes[b]),
                Node::If(condition, a, b) => graph.choice(nodes[condition], nodes[a], nodes[b]),
            };
            if graph.value(id).is_some_and(f64::is_nan) {
                return Err(FormulaError::new(
                    text,
                    column,
                    "this part is not a number, whatever the variables are",
                ));
            }
            nodes.push(id);
        }
        let root = nodes.last().copied().unwrap_or_else(|| graph.number(0.0));
        Ok((graph, root))
    }

    fn push(&mut self, operation: Operation) -> Id {
        if let Some(&id) = self.known.get(&operation) {
            return id;
        }
        let varies = matches!(operation, Operation::Column(_))
            || operation.operands().any(|operand| self.varies[operand]);
        self.operations.push(operation);
        self.varies.push(varies);
        let id = self.operations.len() - 1;
        self.known.insert(operation, id);
        id
    }

    fn number(&mut self, value: f64) -> Id {
        self.push(Operation::Number(value.to_bits()))
    }

    /// The value of a node that is a number.
    fn value(&self, id: Id) -> Option<f64> {
        match self.operations[id] {
            Operation::Number(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    fn unary(&mut self, unary: Unary, a: Id) -> Id {
        match (unary, self.operations[a]) {
            (_, Operation::Number(bits)) => self.number(unary.apply(f64::from_bits(bits))),
            (Unary::Negate, Operation::Unary(Unary::Negate, inner)) => inner,
            _ => self.push(Operation::Unary(unary, a)),
        }
    }

    fn binary(&mut self, binary: Binary, a: Id, b: Id) -> Id {
        let numbers = (self.value(a), self.value(b));
        match (binary, numbers) {
            (Binary::Power, (_, Some(exponent))) if is_product(exponent) => match exponent as i32 {
                0 => self.number(1.0),
                1 => a,
                n => self.unary(Unary::Power(n), a),
            },
            (_, (Some(left), Some(right))) => self.number(binary.apply(left, right)),
            _ if binary.commutes() => self.push(Operation::Binary(binary, a.min(b), a.max(b))),
            _ => self.push(Operation::Binary(binary, a, b)),
        }
    }

    fn choice(&mut self, condition: Id, a: Id, b: Id) -> Id {
        match self.value(condition) {
            Some(value) if select(value, 1.0, 0.0) == 1.0 => a,
            Some(value) if select(value, 1.0, 0.0) == 0.0 => b,
            _ => self.push(Operation::If(condition, a, b)),
        }
    }
}

/// Whether a power with this exponent is a product (or its reciprocal).
fn is_product(exponent: f64) -> bool {
    exponent.fract() == 0.0 && exponent.abs() <= f64::from(LARGEST_PRODUCT)
}
