//! A parsed formula: nodes in a list, children before their parents, so that nothing recurses over it.

use super::function::{Binary, Unary};

/// Index of a node.
pub(super) type Id = usize;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    /// Index into the names.
    Name(usize),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    If(Id, Id, Id),
}

/// Nodes with the columns they came from; the last is the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tree {
    pub nodes: Vec<(Node, usize)>,
    /// Free names in the order of their first use.
    pub names: Vec<String>,
}

impl Tree {
    pub(super) fn push(&mut self, node: Node, column: usize) -> Id {
        self.nodes.push((node, column));
        self.nodes.len() - 1
    }

    /// The index of a name.
    pub(super) fn name(&mut self, name: String) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}
